//! One peer of a server: hands the engine's events to the author's functions and their answers back.
//!
//! Law: a function is polled once where the message was read; what is ready then is answered without leaving the
//! thread. What is not goes on as a task, and its answer is worded and written by the thread that has it.

use super::answer::Handled;
use super::handlers::Work;
use super::link::{Link, Way};
use super::request::{CallRequest, CompletionRequest, ListRequest, ReadRequest};
use super::shared::Shared;
use super::{Diagnostic, ResourceServer};
use crate::connection::{Answer, Encoded, Event, Events, Outcome, RequestToken, Status};
use crate::error::ReadError;
use crate::jsonrpc::Line;
use crate::now::Now;
use crate::transport::{Cancelled, Flushed, Pipe, Stdio, Wake};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

/// Words for the threads of a peer.
pub(super) mod word {
    /// The hub has something to tell.
    pub(in crate::server) const DELIVER: u32 = 1;
    /// Stop: finish what is in flight, then end.
    pub(in crate::server) const STOP: u32 = 2;
    /// Look again: at deadlines, at output that waits for room, at what is in flight.
    pub(in crate::server) const LOOK: u32 = 4;
    /// The input has come to its end.
    pub(in crate::server) const ENDED: u32 = 8;
}

/// See the module.
pub(super) struct Host {
    shared: Arc<Shared>,
    pipe: Pipe,
    stdio: Stdio,
    runtime: Handle,
    wake: Arc<Wake>,
    /// The peer has left: nothing more is taken from it.
    over: AtomicBool,
    draining: AtomicBool,
    /// Requests that left the loop and are not answered.
    tasks: Mutex<HashMap<RequestToken, Weak<Link>>>,
}

impl Host {
    pub(super) fn new(shared: Arc<Shared>, stdio: Stdio, runtime: Handle, wake: Arc<Wake>) -> Arc<Self> {
        let pipe = Pipe::new(&shared.engine, shared.clock.clone());
        shared.joined(pipe.id(), wake.clone());
        let (over, draining, tasks) = Default::default();
        Arc::new(Self { shared, pipe, stdio, runtime, wake, over, draining, tasks })
    }

    pub(super) fn pipe(&self) -> &Pipe {
        &self.pipe
    }

    pub(super) fn stdio(&self) -> &Stdio {
        &self.stdio
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    pub(super) fn server(&self) -> ResourceServer {
        ResourceServer::from(self.shared.clone())
    }

    pub(super) fn now(&self) -> Now {
        self.shared.clock.now()
    }

    /// Takes one line; the answers that are ready are in the output.
    pub(super) fn line(self: &Arc<Self>, line: Line<'_>) {
        let outcome = self.pipe.line(line);
        self.after(outcome);
    }

    /// Does what a call of the engine's asks for, and what follows from that.
    pub(super) fn after(self: &Arc<Self>, outcome: Outcome<'_>) {
        let mut following = self.step(outcome);
        while let Some(outcome) = following.pop() {
            following.append(&mut self.step(outcome));
        }
    }

    fn step(self: &Arc<Self>, outcome: Outcome<'_>) -> Vec<Outcome<'static>> {
        if let Some(misuse) = &outcome.misuse {
            self.shared.diagnose(&Diagnostic::Misuse(misuse));
        }
        if outcome.wakes {
            self.pipe.deliver();
        }
        let mut following = Vec::new();
        for event in outcome.events {
            let next = self.event(event);
            if !next.events.is_empty() || next.misuse.is_some() {
                following.push(next);
            }
        }
        following
    }

    /// Writes what waits, as far as the other side takes it.
    pub(super) fn flush(&self) -> Flushed {
        let flushed = self.pipe.flush(|bytes| self.stdio.write(bytes));
        if flushed != Flushed::All {
            self.wake.say(word::LOOK);
        }
        flushed
    }

    /// Writes a report of a request that is still wanted.
    pub(super) fn report(&self, cancelled: &Cancelled, bytes: &[u8]) {
        self.pipe.report(cancelled, bytes);
        self.flush();
    }

    /// Gives an answer that was worded elsewhere; there is nothing to follow from a failure.
    pub(super) fn finish(&self, token: RequestToken, encoded: Encoded) {
        self.pipe.finish(token, encoded);
        self.tasks().remove(&token);
        self.flush();
        self.settled();
    }

    /// Frees the place of a request that gets no answer.
    pub(super) fn abandon(&self, token: RequestToken) {
        self.pipe.abandon(token);
        self.tasks().remove(&token);
        self.settled();
    }

    /// From now on the keeper waits for what is in flight.
    pub(super) fn drains(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// A request that had left the loop is dealt with.
    fn settled(&self) {
        if self.draining.load(Ordering::SeqCst) {
            self.wake.say(word::LOOK);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The peer has left.
    pub(super) fn close(self: &Arc<Self>) {
        self.over.store(true, Ordering::Release);
        self.shared.left(self.pipe.id());
        for event in self.pipe.close() {
            self.event(event);
        }
    }

    fn event(self: &Arc<Self>, event: Event<'_>) -> Outcome<'static> {
        let handlers = &self.shared.handlers;
        match event {
            Event::Read(request) => {
                let link = Link::new(self.clone(), request.token);
                let entry = handlers.get(request.handler);
                let request = ReadRequest::new(request, link.clone());
                self.start(&link, || entry.map(|entry| (entry.read)(request)))
            }
            Event::Complete(request) => {
                let link = Link::new(self.clone(), request.token);
                let entry = handlers.get(request.handler);
                let request = CompletionRequest::new(request, link.clone());
                self.start(&link, || {
                    let entry = entry?;
                    entry.completer(&request.variable).map(|complete| complete(request))
                })
            }
            Event::List(request) => {
                let link = Link::new(self.clone(), request.token);
                let entry = handlers.get(request.handler);
                let request = ListRequest::new(request, link.clone());
                self.start(&link, || entry?.list.as_ref().map(|list| list(request)))
            }
            Event::Call(request) => {
                let link = Link::new(self.clone(), request.token);
                let call = handlers.call(request.handler);
                let request = CallRequest::new(request, link.clone());
                self.start(&link, || call.map(|call| call(request)))
            }
            Event::Cancelled(token) => {
                self.cancel(token);
                nothing()
            }
            Event::Watched { uri } => self.shared.watched(&uri, true),
            Event::Unwatched { uri } => self.shared.watched(&uri, false),
            Event::Replied { .. } | Event::Notified { .. } => nothing(),
        }
    }

    /// Calls a function and polls it once. `None` is a function that has been removed meanwhile.
    fn start(self: &Arc<Self>, link: &Arc<Link>, call: impl FnOnce() -> Option<Work>) -> Outcome<'static> {
        let started = catch_unwind(AssertUnwindSafe(|| {
            let Some(mut work) = call() else { return Ok(Poll::Ready(Err(ReadError::NotFound.into()))) };
            match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(handled) => Ok(Poll::Ready(handled)),
                Poll::Pending => Err(work),
            }
        }));
        match started {
            Ok(Ok(Poll::Ready(handled))) => self.answer(link, handled),
            Ok(Ok(Poll::Pending)) => nothing(),
            Ok(Err(work)) => {
                self.spawn(link.clone(), work);
                nothing()
            }
            Err(_panic) => self.panicked(link),
        }
    }

    /// Lets a function go on as a task.
    fn spawn(self: &Arc<Self>, link: Arc<Link>, work: Work) {
        if !link.detach() {
            return;
        }
        self.tasks().insert(link.token(), Arc::downgrade(&link));
        if let Some(deadline) = self.pipe.deadline() {
            self.wake.due(deadline, word::LOOK);
        }
        self.runtime.spawn(run(link, work));
    }

    fn cancel(&self, token: RequestToken) {
        let link = self.tasks().remove(&token).and_then(|link| link.upgrade());
        if let Some(link) = link {
            link.cancel();
        }
    }

    fn answer(self: &Arc<Self>, link: &Link, handled: Handled) -> Outcome<'static> {
        let answer = handled.unwrap_or_else(|error| {
            if let Some(error) = error.cause() {
                self.shared.diagnose(&Diagnostic::Failed(error));
            }
            Answer::Failed(error.into_told())
        });
        match link.way() {
            Way::Respond => self.pipe.respond(link.token(), answer),
            Way::Finish(reply) => {
                let encoded = reply.encode(answer, self.now());
                let outcome = self.pipe.finish(link.token(), encoded);
                self.tasks().remove(&link.token());
                outcome
            }
            Way::Nowhere => nothing(),
        }
    }

    fn panicked(self: &Arc<Self>, link: &Link) -> Outcome<'static> {
        self.shared.diagnose(&Diagnostic::Panicked);
        self.answer(link, Err(ReadError::Failed.into()))
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<RequestToken, Weak<Link>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A function as a task: until it is done, or no longer wanted.
async fn run(link: Arc<Link>, mut work: Work) {
    let host = link.host().clone();
    let ended = {
        let mut cancelled = pin!(link.cancelled());
        std::future::poll_fn(|context| match cancelled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => {
                let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
                match polled {
                    Ok(poll) => poll.map(|handled| Some(Ok(handled))),
                    Err(panic) => Poll::Ready(Some(Err(panic))),
                }
            }
        })
        .await
    };
    let outcome = match ended {
        Some(Ok(handled)) => host.answer(&link, handled),
        Some(Err(_panic)) => host.panicked(&link),
        None => return,
    };
    host.after(outcome);
    host.flush();
    host.settled();
}

/// Nothing follows.
pub(super) fn nothing() -> Outcome<'static> {
    Outcome { status: Status::Accepted, events: Events::new(), misuse: None, wakes: false }
}
