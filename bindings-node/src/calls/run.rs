//! Dispatch of the engine's events to user functions.

use crate::calls::driver::{Client, Driver, LoopTask, RequestKey};
use crate::calls::elsewhere::DeliveryReady;
use crate::calls::function::Arguments;
use crate::calls::request::fill;
use mcp_resources_engine::connection::{Answer, Contents, Events, RequestToken};
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::transport::http::InboxItem;
use mcp_resources_runtime::transport::{Work, WorkRequest};
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType};
use std::borrow::Cow;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A function that held the event loop for longer is named in the log.
const HELD: Duration = Duration::from_millis(100);

/// Passes requests to the providers that serve them, and the others to functions.
pub(crate) fn handle_all(client: &Client, events: Events<'_>) -> Result<()> {
    let state = &client.driver.shared().state;
    state.delivering(|| do_all(client, client.peer.work(events)))?
}

/// Does `work`, then the work that follows from it. A handler may answer inside this call; the work that follows from
/// such an answer is queued here, so that nothing recurses.
fn do_all<'m>(client: &Client, work: impl IntoIterator<Item = Work<'m>>) -> Result<()> {
    let shared = client.driver.shared();
    let is_outermost = !shared.is_handling.replace(true);
    let mut result = Ok(());
    for work in work {
        result = do_one(client, work).and(result);
    }
    if !is_outermost {
        return result;
    }
    loop {
        let following = shared.following.borrow_mut().pop();
        let Some((client, work)) = following else { break };
        result = do_one(&client, work).and(result);
    }
    shared.is_handling.set(false);
    result
}

/// Handles an item that another thread left for the loop.
pub(crate) fn do_left(driver: &Rc<dyn Driver>, item: InboxItem<DeliveryReady>) -> Result<()> {
    let shared = driver.shared();
    match item {
        InboxItem::Work(peer, work) => {
            let client = Client { peer: Rc::new(peer), driver: driver.clone() };
            shared.state.delivering(|| follow(&client, [*work]))?
        }
        InboxItem::Verify(token, verdict) => shared.verify(token, verdict),
        InboxItem::Misuse(what) => shared.log_misuse(None, Some(what)),
        InboxItem::Warning(what) => shared.log_refused(what),
        InboxItem::Own(DeliveryReady(response)) => shared.drive(LoopTask::Deliver, response, None),
        InboxItem::Ended => shared.drive(LoopTask::Ended, 0.0, None),
    }
}

/// Answers a request, and handles the events that follow.
pub(crate) fn respond(client: &Client, token: RequestToken, answer: Answer<'_>) -> Result<()> {
    let shared = client.driver.shared();
    shared.state.delivering(|| {
        let outcome = client.peer.respond(token, answer);
        let callee = client.driver.over(RequestKey { connection: client.peer.connection(), token });
        shared.log_misuse(callee.as_deref(), outcome.misuse)?;
        if outcome.events.is_empty() { Ok(()) } else { follow(client, client.peer.work(outcome.events)) }
    })?
}

/// Does work, or leaves it to what does other work already.
fn follow(client: &Client, work: impl IntoIterator<Item = Work<'static>>) -> Result<()> {
    let shared = client.driver.shared();
    if !shared.is_handling.get() {
        return do_all(client, work);
    }
    shared.following.borrow_mut().extend(work.into_iter().map(|work| (client.clone(), work)));
    Ok(())
}

fn do_one(client: &Client, work: Work<'_>) -> Result<()> {
    let driver = &client.driver;
    let connection = client.peer.connection();
    match work {
        Work::Ask(request) => ask(client, &request),
        Work::Cancel(token) => {
            let key = RequestKey { connection, token };
            let request = driver.number(key);
            driver.cancelled(key);
            request.map_or(Ok(()), |request| driver.shared().drive(LoopTask::Cancelled, request, None))
        }
        Work::Replied(ask, answer) => {
            let answer = answer.map(|answer| answer.map(Cow::into_owned).map_err(Cow::into_owned));
            driver.shared().replied(connection, ask, answer)
        }
        Work::Nothing => Ok(()),
    }
}

/// Calls a function and, if it returns a text, answers with that.
fn ask(client: &Client, request: &WorkRequest<'_>) -> Result<()> {
    let shared = client.driver.shared();
    let token = request.token;
    let functions = shared.state.registry.get(request.handler);
    let Some(callee) = functions.as_deref().and_then(|functions| functions.called(&request.params)) else {
        // What was to be called has been removed in the meantime.
        return respond(client, token, Answer::Failed(ReadError::NotFound));
    };
    let number = client.driver.begin(&client.peer, request, callee);
    let env = &shared.env;
    let answered = env.run_in_scope(|| {
        let mut arguments = Arguments::new(env, shared.driver, number)?;
        fill(env, request, &mut arguments)?;
        let start = Instant::now();
        let called = callee.call(env, arguments);
        let held = start.elapsed();
        if held > HELD {
            shared.log_held(&callee.name, held)?;
        }
        let value = called?;
        if value.get_type()? != ValueType::String {
            return Ok(());
        }
        let text = value.coerce_to_string()?.into_utf8()?;
        respond(client, token, Answer::Contents(Contents::text(text.as_str()?).into()))
    });
    // What the runtime wraps a function in throws nothing: the stack or the memory is at its end.
    answered.or_else(|_| respond(client, token, Answer::Failed(ReadError::Failed)))
}
