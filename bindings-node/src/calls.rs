//! From an event of the core to the author's function.

use crate::about::About;
use crate::function::{Arguments, Callee};
use crate::link::{Link, token_number};
use crate::template::push_value;
use mcp_resources::connection::{
    Answer, CallRequest, CompletionRequest, Contents, Event, Events, ListRequest, ReadRequest, RequestToken,
};
use mcp_resources::error::ReadError;
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType};
use std::rc::Rc;
use std::sync::Arc;

/// Handles events, then those that came of them. A handler that answers at once has answered inside of this: what comes
/// of that waits here, so that nothing recurses.
pub(crate) fn handle_all(link: &Rc<Link>, events: Events<'_>) -> Result<()> {
    let is_outermost = !link.is_handling.replace(true);
    let mut result = Ok(());
    for event in events {
        result = handle(link, event).and(result);
    }
    if !is_outermost {
        return result;
    }
    loop {
        let following = link.following.borrow_mut().pop();
        let Some(event) = following else { break };
        result = handle(link, event).and(result);
    }
    link.is_handling.set(false);
    result
}

fn handle(link: &Rc<Link>, event: Event<'_>) -> Result<()> {
    match event {
        Event::Read(request) => read(link, &request),
        Event::Complete(request) => complete(link, &request),
        Event::List(request) => list(link, &request),
        Event::Call(request) => call(link, &request),
        Event::Cancelled(token) => link.cancelled(token),
        Event::Replied { ask, answer } => link.replied(ask, answer),
        // Nothing of the binding looks at who watches, or hears what is not ours.
        Event::Notified { .. } | Event::Watched { .. } | Event::Unwatched { .. } => Ok(()),
    }
}

fn read(link: &Rc<Link>, request: &ReadRequest<'_>) -> Result<()> {
    let Some(functions) = link.host.registry.get(request.handler) else {
        return missing(link, request.token);
    };
    link.begin(request.token, |about| {
        about.begin(request.token, &functions.reader, Some(&request.caller));
        about.of(&request.uri);
        about.round(request.inputs.map(|inputs| inputs.raw()), request.state.as_deref());
    });
    run(link, request.token, &functions.reader, |arguments| {
        let Some(params) = &request.params else { return Ok(()) };
        for variable in params.variables() {
            match params.get(&variable.name) {
                Some(value) => push_value(&link.env, arguments, value)?,
                None => arguments.push_undefined(&link.env)?,
            }
        }
        Ok(())
    })
}

fn complete(link: &Rc<Link>, request: &CompletionRequest<'_>) -> Result<()> {
    let functions = link.host.registry.get(request.handler);
    let callee = functions.as_ref().and_then(|functions| functions.completers.get(&*request.variable));
    let Some(callee) = callee else { return missing(link, request.token) };
    link.begin(request.token, |about| about.begin(request.token, callee, Some(&request.caller)));
    run(link, request.token, callee, |arguments| {
        arguments.push_text(&link.env, &request.value)?;
        for (name, value) in &request.arguments {
            arguments.push_text(&link.env, name)?;
            arguments.push_text(&link.env, value)?;
        }
        Ok(())
    })
}

fn list(link: &Rc<Link>, request: &ListRequest<'_>) -> Result<()> {
    let functions = link.host.registry.get(request.handler);
    let callee = functions.as_ref().and_then(|functions| functions.lister.as_ref());
    let Some(callee) = callee else { return missing(link, request.token) };
    link.begin(request.token, |about| about.begin(request.token, callee, request.caller.as_ref()));
    run(link, request.token, callee, |arguments| {
        request.cursor.as_ref().map_or(Ok(()), |cursor| arguments.push_text(&link.env, cursor))
    })
}

fn call(link: &Rc<Link>, request: &CallRequest<'_>) -> Result<()> {
    let Some(functions) = link.host.registry.get(request.handler) else {
        return missing(link, request.token);
    };
    link.begin(request.token, |about| {
        about.begin(request.token, &functions.reader, Some(&request.caller));
        about.round(request.inputs.map(|inputs| inputs.raw()), request.state.as_deref());
    });
    run(link, request.token, &functions.reader, |arguments| {
        request.params.map_or(Ok(()), |params| arguments.push_text(&link.env, params.raw()))
    })
}

/// What was to be called has been removed in the meantime.
fn missing(link: &Rc<Link>, token: RequestToken) -> Result<()> {
    link.respond(token, Answer::Failed(ReadError::NotFound))
}

/// Calls a function and, if it returns a text, answers with that.
fn run(
    link: &Rc<Link>,
    token: RequestToken,
    callee: &Arc<Callee>,
    fill: impl FnOnce(&mut Arguments) -> Result<()>,
) -> Result<()> {
    let answered = link.env.run_in_scope(|| {
        let mut arguments = Arguments::new(&link.env, link.peer, token_number(token))?;
        fill(&mut arguments)?;
        let value = callee.call(link, arguments)?;
        if value.get_type()? != ValueType::String {
            return Ok(());
        }
        let text = value.coerce_to_string()?.into_utf8()?;
        link.respond(token, Answer::Contents(Contents::text(text.as_str()?).into()))
    });
    // What the runtime wraps a function in throws nothing: the stack or the memory is at its end.
    answered.or_else(|_| link.respond(token, Answer::Failed(ReadError::Failed)))
}

impl Link {
    /// Keeps what a handler may ask of a request.
    fn begin(&self, token: RequestToken, begin: impl FnOnce(&mut About)) {
        let mut abouts = self.abouts.borrow_mut();
        let place = place(token);
        if abouts.len() <= place {
            abouts.resize_with(place + 1, About::default);
        }
        if let Some(about) = abouts.get_mut(place) {
            begin(about);
        }
    }

    /// Answers a request.
    pub(crate) fn respond(self: &Rc<Self>, token: RequestToken, answer: Answer<'_>) -> Result<()> {
        let outcome = self.pipe.respond(token, answer);
        let callee = self.abouts.borrow_mut().get_mut(place(token)).and_then(|about| about.end(token));
        let events = self.outcome(callee.as_ref().map_or("", |callee| &callee.name), outcome)?;
        if self.is_handling.get() {
            self.following.borrow_mut().extend(events);
            return Ok(());
        }
        handle_all(self, events)
    }
}

/// The place of a request among those that wait.
#[expect(clippy::cast_possible_truncation, reason = "half of the number")]
pub(crate) fn place(token: RequestToken) -> usize {
    token.to_u64() as u32 as usize
}
