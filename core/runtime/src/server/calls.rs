//! Connects the engine's events with handlers, for any kind of peer.
//!
//! Law: a handler is polled once on the thread that read the message; if it is ready then, it is answered there.
//! Otherwise it continues as a task, and the thread that has its result encodes the answer.

use super::Diagnostic;
use super::answer::Handled;
use super::client::CallerHandle;
use super::handlers::{Functions, Work};
use super::link::{HandlerLink, ReplyRoute};
use super::request::{CallRequest, CompletionRequest, DecisionRequest, ListRequest, NamedCall, ReadRequest};
use super::shared::ServerState;
use super::span::Span;
use mcp_resources_engine::connection::{Event, RequestOutcome};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::hub::ConnectionId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Handles the outcome of a call of the engine, and everything that follows from it.
pub(super) fn after(client: &Arc<CallerHandle>, outcome: RequestOutcome<'_>) {
    let mut following = step(client, outcome);
    while let Some(outcome) = following.pop() {
        following.append(&mut step(client, outcome));
    }
}

fn step(client: &Arc<CallerHandle>, outcome: RequestOutcome<'_>) -> Vec<RequestOutcome<'static>> {
    if let Some(misuse) = &outcome.misuse {
        client.shared.diagnose(&Diagnostic::Misuse(misuse));
    }
    let mut following = Vec::new();
    for event in outcome.events {
        let next = handle(client, event);
        if !next.events.is_empty() || next.misuse.is_some() {
            following.push(next);
        }
    }
    following
}

/// Handles an event without an answer.
pub(super) fn handle_notification(shared: &ServerState, connection: ConnectionId, event: &Event<'_>) {
    match event {
        Event::Replied { .. } if shared.registry.mounts().settle_ask(connection, event) => {}
        Event::Replied { ask, answer } => shared.asks.settle((connection, *ask), *answer),
        Event::Cancelled(token) => {
            // Not in the condition: the lock would be held during the whole block, and dropping a link takes it too.
            let link = shared.tasks().remove(&(connection, *token));
            if let Some(link) = link.and_then(|link| link.upgrade()) {
                link.cancel();
            }
        }
        Event::Interest => shared.engine.settle_interest(),
        _ => {}
    }
}

fn handle(client: &Arc<CallerHandle>, event: Event<'_>) -> RequestOutcome<'static> {
    let registry = &client.shared.registry;
    if let Some(part) = registry.mounts().part(&event) {
        return registry.mounts().answer(&part, &client.peer, event);
    }
    let span = Span::from_event(&event);
    match event {
        Event::Read(request) => {
            let link = HandlerLink::new(client.clone(), request.token, span);
            let entry = registry.get(request.handler);
            let uri = client.shared.redacts().then(|| request.uri.clone().into_owned());
            let request = ReadRequest::new(request, link.clone());
            start(&link, || {
                let work = (entry.as_ref()?.entry()?.read)(request);
                Some(match uri {
                    Some(uri) => redacted(client.shared.clone(), uri, work),
                    None => work,
                })
            })
        }
        Event::Complete(request) => {
            let link = HandlerLink::new(client.clone(), request.token, span);
            let entry = registry.get(request.handler);
            let request = CompletionRequest::new(request, link.clone());
            start(&link, || entry.as_ref()?.completer(&request.variable).map(|complete| complete(request)))
        }
        Event::List(request) => {
            let link = HandlerLink::new(client.clone(), request.token, span);
            let entry = registry.get(request.handler);
            let request = ListRequest::new(request, link.clone());
            start(&link, || entry.as_ref()?.entry()?.list().map(|list| list(request)))
        }
        Event::Access(request) => {
            let link = HandlerLink::new(client.clone(), request.token, span);
            let entry = registry.get(request.batch.handler);
            let request = DecisionRequest::new(&request, link.clone());
            start(&link, || entry.as_ref()?.entry()?.access().map(|decide| decide(request)))
        }
        Event::Tool(request) | Event::Prompt(request) => {
            let link = HandlerLink::new(client.clone(), request.token, span);
            let functions = registry.get(request.handler);
            let request = NamedCall::new(request, link.clone());
            start(&link, || match functions.as_deref() {
                Some(Functions::Named(named)) => Some((named.call)(request)),
                _ => None,
            })
        }
        Event::Call(request) => {
            let link = HandlerLink::new(client.clone(), request.token, span);
            let functions = registry.get(request.handler);
            let request = CallRequest::new(request, link.clone());
            start(&link, || match functions.as_deref() {
                Some(Functions::Method(call)) => Some(call(request)),
                _ => None,
            })
        }
        event => {
            handle_notification(&client.shared, client.peer.connection(), &event);
            RequestOutcome::nothing()
        }
    }
}

/// Applies the server's redaction to the result of `work`.
fn redacted(shared: Arc<ServerState>, uri: String, work: Work) -> Work {
    Box::pin(async move { shared.redacted(&uri, work.await?) })
}

/// Calls a handler and polls it once. `call` returns `None` if the handler was removed in the meantime.
fn start(link: &Arc<HandlerLink>, call: impl FnOnce() -> Option<Work>) -> RequestOutcome<'static> {
    let started = catch_unwind(AssertUnwindSafe(|| {
        let Some(mut work) = link.span().enter(call) else { return Ok(Err(ReadError::NotFound.into())) };
        let polled = link.span().enter(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        match polled {
            Poll::Ready(handled) => Ok(handled),
            Poll::Pending => Err(work),
        }
    }));
    match started {
        Ok(Ok(handled)) => answer(link, handled),
        Ok(Err(work)) => {
            spawn(link, work);
            RequestOutcome::nothing()
        }
        Err(_panic) => panicked(link),
    }
}

/// Continues a handler as a task.
fn spawn(link: &Arc<HandlerLink>, work: Work) {
    let client = link.client();
    // Registered first, so that a cancellation right after the reply is taken out finds the link.
    client.shared.tasks().insert((client.peer.connection(), link.token()), Arc::downgrade(link));
    if link.detach() {
        client.peer.pends();
        client.spawn(Box::pin(run(link.clone(), work)));
    }
}

fn answer(link: &HandlerLink, handled: Handled) -> RequestOutcome<'static> {
    let shared = &link.client().shared;
    let peer = &link.client().peer;
    let answer = handled.unwrap_or_else(|error| {
        link.span().failed(error.client_error());
        shared.failed(error)
    });
    match link.take_route() {
        ReplyRoute::Respond => peer.respond(link.token(), answer),
        ReplyRoute::Finish(reply) => {
            let encoded = reply.encode(answer, peer.now());
            // Before the answer, after which a held request may use the token again.
            shared.tasks().remove(&(peer.connection(), link.token()));
            peer.finish(encoded)
        }
        ReplyRoute::Nowhere => RequestOutcome::nothing(),
    }
}

fn panicked(link: &HandlerLink) -> RequestOutcome<'static> {
    link.client().shared.diagnose(&Diagnostic::Panicked);
    answer(link, Err(ReadError::Failed.into()))
}

/// Runs a handler as a task, until it is done or no longer wanted.
async fn run(link: Arc<HandlerLink>, mut work: Work) {
    let ended = {
        let mut cancelled = pin!(link.cancelled());
        std::future::poll_fn(|context| match cancelled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => {
                let poll = || link.span().enter(|| work.as_mut().poll(context));
                let polled = catch_unwind(AssertUnwindSafe(poll));
                match polled {
                    Ok(poll) => poll.map(|handled| Some(Ok(handled))),
                    Err(panic) => Poll::Ready(Some(Err(panic))),
                }
            }
        })
        .await
    };
    let outcome = match ended {
        Some(Ok(handled)) => answer(&link, handled),
        Some(Err(_panic)) => panicked(&link),
        None => return,
    };
    after(link.client(), outcome);
    link.client().peer.appended();
}
