//! What the engine asks of an author's function: borrowed from the message where it is answered at once, owned where it
//! waits for the event loop.

use crate::about::About;
use crate::function::{Arguments, Callee, Functions};
use crate::template::push_value;
use mcp_resources::catalog::HandlerId;
use mcp_resources::connection::{AskId, Caller, Event, RequestToken};
use mcp_resources::jsonrpc::Json;
use mcp_resources::template::Params;
use napi::Env;
use napi::bindgen_prelude::Result;
use std::borrow::Cow;
use std::sync::Arc;

/// What is to be done about an event.
#[expect(clippy::large_enum_variant, reason = "on the stack of one call; boxed where it waits")]
pub(crate) enum Work<'m> {
    Ask(Request<'m>),
    Cancel(RequestToken),
    /// A client has answered with a result, or with an error; or it has not.
    Replied(AskId, Option<std::result::Result<Cow<'m, str>, Cow<'m, str>>>),
    /// Nothing of the binding looks at who watches, or hears what is not ours.
    Nothing,
}

/// See the module.
pub(crate) struct Request<'m> {
    pub(crate) token: RequestToken,
    pub(crate) handler: HandlerId,
    asked: Asked<'m>,
    who: Who<'m>,
}

enum Asked<'m> {
    Read { uri: Cow<'m, str>, params: Option<Params<'m>> },
    Complete { variable: Cow<'m, str>, value: Cow<'m, str>, arguments: Vec<(Cow<'m, str>, Cow<'m, str>)> },
    List { cursor: Option<String> },
    Call { params: Option<Cow<'m, str>> },
}

/// Who asks, and what a further round brings.
enum Who<'m> {
    Caller { caller: Option<Caller<'m>>, inputs: Option<&'m str>, state: Option<Vec<u8>> },
    Kept(About),
}

impl<'m> Work<'m> {
    pub(crate) fn of(event: Event<'m>) -> Self {
        let one = |caller| Who::Caller { caller, inputs: None, state: None };
        let (token, handler, asked, who) = match event {
            Event::Read(read) => {
                let inputs = read.inputs.map(|inputs| inputs.raw());
                let who = Who::Caller { caller: Some(read.caller), inputs, state: read.state };
                (read.token, read.handler, Asked::Read { uri: read.uri, params: read.params }, who)
            }
            Event::Complete(complete) => {
                let (variable, value) = (complete.variable, complete.value);
                let asked = Asked::Complete { variable, value, arguments: complete.arguments };
                (complete.token, complete.handler, asked, one(Some(complete.caller)))
            }
            Event::List(list) => {
                (list.token, list.handler, Asked::List { cursor: list.cursor }, one(list.caller))
            }
            Event::Call(call) => {
                let inputs = call.inputs.map(|inputs| inputs.raw());
                let params = call.params.map(|params| Cow::Borrowed(params.raw()));
                let who = Who::Caller { caller: Some(call.caller), inputs, state: call.state };
                (call.token, call.handler, Asked::Call { params }, who)
            }
            Event::Cancelled(token) => return Self::Cancel(token),
            Event::Replied { ask, answer } => {
                let text = |json: Json<'m>| Cow::Borrowed(json.raw());
                return Self::Replied(ask, answer.map(|answer| answer.map(text).map_err(text)));
            }
            Event::Notified { .. } | Event::Watched { .. } | Event::Unwatched { .. } => return Self::Nothing,
        };
        Self::Ask(Request { token, handler, asked, who })
    }

    /// For the event loop; `None` if nothing is to be done.
    pub(crate) fn into_owned(self) -> Option<Work<'static>> {
        match self {
            Self::Ask(request) => Some(Work::Ask(request.into_owned())),
            Self::Cancel(token) => Some(Work::Cancel(token)),
            Self::Replied(ask, answer) => {
                Some(Work::Replied(ask, answer.map(|answer| answer.map(owned).map_err(owned))))
            }
            Self::Nothing => None,
        }
    }
}

impl Request<'_> {
    fn into_owned(mut self) -> Request<'static> {
        let mut about = About::default();
        self.tell(&mut about);
        let asked = match self.asked {
            Asked::Read { uri, params } => {
                Asked::Read { uri: owned(uri), params: params.map(Params::into_owned) }
            }
            Asked::Complete { variable, value, arguments } => {
                let arguments = arguments.into_iter().map(|(name, value)| (owned(name), owned(value)));
                Asked::Complete {
                    variable: owned(variable),
                    value: owned(value),
                    arguments: arguments.collect(),
                }
            }
            Asked::List { cursor } => Asked::List { cursor },
            Asked::Call { params } => Asked::Call { params: params.map(owned) },
        };
        Request { token: self.token, handler: self.handler, asked, who: Who::Kept(about) }
    }

    /// The function that answers it.
    pub(crate) fn callee(&self, functions: &Functions) -> Option<Arc<Callee>> {
        match &self.asked {
            Asked::Read { .. } | Asked::Call { .. } => Some(functions.reader.clone()),
            Asked::Complete { variable, .. } => functions.completers.get(&**variable).cloned(),
            Asked::List { .. } => functions.lister.clone(),
        }
    }

    /// Says what a handler may ask of it.
    pub(crate) fn tell(&mut self, about: &mut About) {
        match &mut self.who {
            Who::Kept(kept) => std::mem::swap(about, kept),
            Who::Caller { caller, inputs, state } => {
                about.begin(caller.as_ref());
                about.round(*inputs, state.as_deref());
                if let Asked::Read { uri, .. } = &self.asked {
                    about.of(uri);
                }
            }
        }
    }

    /// What the function is called with, besides its numbers.
    pub(crate) fn fill(&self, env: &Env, arguments: &mut Arguments) -> Result<()> {
        match &self.asked {
            Asked::Read { params: None, .. }
            | Asked::List { cursor: None }
            | Asked::Call { params: None } => {}
            Asked::Read { params: Some(params), .. } => {
                for variable in params.variables() {
                    match params.get(&variable.name) {
                        Some(value) => push_value(env, arguments, value)?,
                        None => arguments.push_undefined(env)?,
                    }
                }
            }
            Asked::Complete { value, arguments: chosen, .. } => {
                arguments.push_text(env, value)?;
                for (name, value) in chosen {
                    arguments.push_text(env, name)?;
                    arguments.push_text(env, value)?;
                }
            }
            Asked::List { cursor: Some(cursor) } => arguments.push_text(env, cursor)?,
            Asked::Call { params: Some(params) } => arguments.push_text(env, params)?,
        }
        Ok(())
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
