//! From an event of the core to the author's function.

use crate::function::Arguments;
use crate::peer::{Need, Peer};
use crate::request::fill;
use mcp_resources_engine::connection::{Answer, Contents, Events, RequestToken};
use mcp_resources_engine::error::ReadError;
use mcp_resources_host::transport::{Request, Work};
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType};
use std::borrow::Cow;
use std::rc::Rc;

/// Handles events, then those that came of them. A handler that answers at once has answered inside of this: what comes
/// of that waits here, so that nothing recurses.
pub(crate) fn handle_all(peer: &Rc<dyn Peer>, events: Events<'_>) -> Result<()> {
    do_all(peer, events.into_iter().map(Work::of))
}

/// Does work, and what comes of it.
pub(crate) fn do_all<'m>(peer: &Rc<dyn Peer>, work: impl IntoIterator<Item = Work<'m>>) -> Result<()> {
    let shared = peer.shared();
    let is_outermost = !shared.is_handling.replace(true);
    shared.host.delivering(|| {
        let mut result = Ok(());
        for work in work {
            result = do_one(peer, work).and(result);
        }
        if !is_outermost {
            return result;
        }
        loop {
            let following = shared.following.borrow_mut().pop();
            let Some((peer, event)) = following else { break };
            result = do_one(&peer, Work::of(event)).and(result);
        }
        shared.is_handling.set(false);
        result
    })?
}

/// Answers a request. What comes of that is handled too.
pub(crate) fn respond(peer: &Rc<dyn Peer>, token: RequestToken, answer: Answer<'_>) -> Result<()> {
    let shared = peer.shared();
    let events = shared.host.delivering(|| peer.respond(token, answer))??;
    if shared.is_handling.get() {
        shared.following.borrow_mut().extend(events.into_iter().map(|event| (peer.clone(), event)));
        return Ok(());
    }
    handle_all(peer, events)
}

fn do_one(peer: &Rc<dyn Peer>, work: Work<'_>) -> Result<()> {
    match work {
        Work::Ask(request) => ask(peer, &request),
        Work::Cancel(token) => {
            let request = peer.number(token);
            peer.cancelled(token);
            request.map_or(Ok(()), |request| peer.shared().drive(Need::Cancelled, request, None))
        }
        Work::Replied(ask, answer) => {
            let answer = answer.map(|answer| answer.map(Cow::into_owned).map_err(Cow::into_owned));
            peer.shared().replied(peer.connection(), ask, answer)
        }
        Work::Nothing => Ok(()),
    }
}

/// Calls a function and, if it returns a text, answers with that.
fn ask(peer: &Rc<dyn Peer>, request: &Request<'_>) -> Result<()> {
    let (shared, token) = (peer.shared(), request.token);
    let functions = shared.host.registry.get(request.handler);
    let Some(callee) = functions.as_deref().and_then(|functions| functions.called(&request.asked)) else {
        // What was to be called has been removed in the meantime.
        return respond(peer, token, Answer::Failed(ReadError::NotFound));
    };
    let number = peer.begin(request, callee);
    let env = &shared.env;
    let answered = env.run_in_scope(|| {
        let mut arguments = Arguments::new(env, shared.driver, number)?;
        fill(env, request, &mut arguments)?;
        let value = callee.call(shared, arguments)?;
        if value.get_type()? != ValueType::String {
            return Ok(());
        }
        let text = value.coerce_to_string()?.into_utf8()?;
        respond(peer, token, Answer::Contents(Contents::text(text.as_str()?).into()))
    });
    // What the runtime wraps a function in throws nothing: the stack or the memory is at its end.
    answered.or_else(|_| respond(peer, token, Answer::Failed(ReadError::Failed)))
}
