//! What the engine asks of an author's function: borrowed from the message where it is answered at once, owned where it
//! waits for the event loop.

use crate::context::{About, loads};
use crate::convert::Sort;
use crate::function::{Function, value_to_py};
use crate::server::Handler;
use mcp_resources::catalog::HandlerId;
use mcp_resources::connection::{AskId, Caller, Event, RequestToken};
use mcp_resources::jsonrpc::Json;
use mcp_resources::template::Params;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::borrow::Cow;

/// What is to be done about an event.
#[expect(clippy::large_enum_variant, reason = "on the stack of one call; boxed where it waits")]
pub(crate) enum Work<'m> {
    Ask(Request<'m>),
    Cancel(RequestToken),
    /// A client has answered with a result, or with an error; or it has not.
    Replied(AskId, Option<Result<Cow<'m, str>, Cow<'m, str>>>),
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
    Call { method: Cow<'m, str>, params: Option<Cow<'m, str>> },
}

/// Who asks, and what a further round brings: put together only for a function that wants to know.
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
                (call.token, call.handler, Asked::Call { method: call.method, params }, who)
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

    /// For another thread; `None` if nothing is to be done.
    pub(crate) fn into_owned(self) -> Option<Work<'static>> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Ask(request) => Some(Work::Ask(request.into_owned())),
            Self::Cancel(token) => Some(Work::Cancel(token)),
            Self::Replied(ask, answer) => {
                Some(Work::Replied(ask, answer.map(|answer| answer.map(own).map_err(own))))
            }
            Self::Nothing => None,
        }
    }
}

impl Request<'_> {
    fn into_owned(self) -> Request<'static> {
        let about = self.about();
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let asked = match self.asked {
            Asked::Read { uri, params } => {
                Asked::Read { uri: own(uri), params: params.map(Params::into_owned) }
            }
            Asked::Complete { variable, value, arguments } => {
                let arguments = arguments.into_iter().map(|(name, value)| (own(name), own(value)));
                Asked::Complete { variable: own(variable), value: own(value), arguments: arguments.collect() }
            }
            Asked::List { cursor } => Asked::List { cursor },
            Asked::Call { method, params } => Asked::Call { method: own(method), params: params.map(own) },
        };
        Request { token: self.token, handler: self.handler, asked, who: Who::Kept(about) }
    }

    pub(crate) fn sort(&self) -> Sort {
        match self.asked {
            Asked::Read { .. } => Sort::Read,
            Asked::Complete { .. } => Sort::Complete,
            Asked::List { .. } => Sort::List,
            Asked::Call { .. } => Sort::Call,
        }
    }

    /// What is asked for, for the author's log.
    pub(crate) fn what(&self) -> &str {
        match &self.asked {
            Asked::Read { uri, .. } => uri,
            Asked::Complete { variable, .. } => variable,
            Asked::List { .. } => "list",
            Asked::Call { method, .. } => method,
        }
    }

    /// The function that answers it.
    pub(crate) fn function<'h>(&self, handler: &'h Handler) -> Option<&'h Py<Function>> {
        match &self.asked {
            Asked::Read { .. } | Asked::Call { .. } => Some(&handler.function),
            Asked::Complete { variable, .. } => handler.completers.get(&**variable),
            Asked::List { .. } => handler.lister.as_ref(),
        }
    }

    /// What fills an argument of this name.
    pub(crate) fn value<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.asked {
            Asked::Read { params, .. } => {
                let value = params.as_ref().and_then(|params| params.get(name));
                value.map(|value| value_to_py(py, value)).transpose()
            }
            Asked::Complete { value, .. } if name == "value" => Ok(Some(PyString::new(py, value).into_any())),
            Asked::Complete { arguments, .. } => {
                let chosen = PyDict::new(py);
                for (name, value) in arguments {
                    chosen.set_item(&**name, &**value)?;
                }
                Ok(Some(chosen.into_any()))
            }
            Asked::List { cursor } => Ok(cursor.as_ref().map(|cursor| PyString::new(py, cursor).into_any())),
            Asked::Call { params: None, .. } => Ok(Some(PyDict::new(py).into_any())),
            Asked::Call { params, .. } => loads(py, params.as_deref()).map(Some),
        }
    }

    pub(crate) fn about(&self) -> About {
        let (caller, inputs, state) = match &self.who {
            Who::Kept(about) => return about.clone(),
            Who::Caller { caller, inputs, state } => (caller, *inputs, state.clone()),
        };
        let about = caller.as_ref().map(About::new).unwrap_or_default().round(inputs, state);
        match &self.asked {
            Asked::Read { uri, .. } => about.of(uri),
            _ => about,
        }
    }
}
