//! The engine's requests to user functions in another language: borrowed from the message if answered at once, owned if
//! they wait for that language's event loop.

use mcp_resources_engine::catalog::HandlerId;
use mcp_resources_engine::connection::{
    AccessRequest, AskId, Caller, ClientInfo, Event, ListCaller, OwnedCaller, RequestToken,
};
use mcp_resources_engine::engine::AccessQuestion;
use mcp_resources_engine::error::ErrorPurpose;
use mcp_resources_engine::headers::Headers;
use mcp_resources_engine::jsonrpc::Json;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::version::Revision;
use mcp_resources_template::MatchedParams;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The action for an event.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "on the stack of one call; boxed where it waits")]
pub enum Work<'m> {
    /// Call a function.
    Ask(WorkRequest<'m>),
    /// The answer to this request is no longer wanted.
    Cancel(RequestToken),
    /// A client has answered a question with a result or an error (JSON text); `None` after a time-out.
    Replied(AskId, Option<Result<Cow<'m, str>, Cow<'m, str>>>),
    /// Nothing: the event is of no use for bindings.
    Nothing,
}

/// A function to call.
#[derive(Debug)]
pub struct WorkRequest<'m> {
    /// Identifies the request in the answer.
    pub token: RequestToken,
    /// The number of the handler.
    pub handler: HandlerId,
    /// The operation and its arguments.
    pub params: RequestParams<'m>,
    /// The sender of the request.
    pub who: Who<'m>,
}

/// The operation of a call, with its arguments.
#[derive(Debug)]
pub enum RequestParams<'m> {
    /// See [`ReadRequest`](mcp_resources_engine::connection::ReadRequest).
    Read {
        /// The URI as the client spelled it.
        uri: Cow<'m, str>,
        /// The values of the template's variables; `None` for a resource.
        params: Option<MatchedParams<'m>>,
    },
    /// See [`CompletionRequest`](mcp_resources_engine::connection::CompletionRequest).
    Complete {
        /// The variable to complete.
        variable: Cow<'m, str>,
        /// The text typed so far.
        value: Cow<'m, str>,
        /// The values chosen so far.
        arguments: Vec<(Cow<'m, str>, Cow<'m, str>)>,
    },
    /// See [`ListRequest`](mcp_resources_engine::connection::ListRequest).
    List {
        /// The cursor of the page.
        cursor: Option<String>,
    },
    /// The decision who may use resources: see
    /// [`AccessRequest`](mcp_resources_engine::connection::AccessRequest).
    Access {
        /// The questions; the answer has one `bool` for each, in their order.
        questions: Arc<[AccessQuestion]>,
    },
    /// A call of a tool: see [`NamedRequest`](mcp_resources_engine::connection::NamedRequest).
    Tool {
        /// The name of the tool.
        name: Cow<'m, str>,
        /// The arguments as JSON text: an object.
        arguments: Cow<'m, str>,
    },
    /// The request for a prompt: see [`NamedRequest`](mcp_resources_engine::connection::NamedRequest).
    Prompt {
        /// The name of the prompt.
        name: Cow<'m, str>,
        /// The arguments as JSON text: an object of texts.
        arguments: Cow<'m, str>,
    },
    /// See [`CallRequest`](mcp_resources_engine::connection::CallRequest).
    Call {
        /// The method.
        method: Cow<'m, str>,
        /// The params as JSON text, if there are any: an object.
        params: Option<Cow<'m, str>>,
    },
}

/// The sender of a request, its terms, and the input of a further round.
#[derive(Clone, Debug, Default)]
pub struct Who<'m> {
    principal: Option<Cow<'m, Arc<Principal>>>,
    headers: Option<Cow<'m, Arc<Headers>>>,
    revision: Option<Revision>,
    client_info: ClientInfo<'m>,
    meta: Option<Cow<'m, str>>,
    inputs: Option<Cow<'m, str>>,
    state: Option<Vec<u8>>,
}

/// The functions behind one number.
#[derive(Debug)]
pub struct WorkFunctions<F> {
    /// Reads, calls a tool, gets a prompt, or answers a custom method.
    pub reader: F,
    /// Completers, by variable or argument.
    pub completers: HashMap<String, F>,
    /// Lists the resources of a template.
    pub lister: Option<F>,
    /// Decides who may use the resource, or those of the template.
    pub access: Option<F>,
}

impl<'m> Work<'m> {
    /// The action for `event`. Bindings get it from [`Peer::work`](crate::transport::Peer::work), which asks providers
    /// first.
    pub(super) fn from_event(event: Event<'m>) -> Self {
        let (token, handler, params, who) = match event {
            Event::Read(read) => {
                let who = Who::round(read.caller, read.inputs, read.state);
                (read.token, read.handler, RequestParams::Read { uri: read.uri, params: read.params }, who)
            }
            Event::Complete(complete) => {
                let variable = complete.variable;
                let value = complete.value;
                let params = RequestParams::Complete { variable, value, arguments: complete.arguments };
                (complete.token, complete.handler, params, Who::from_caller(complete.caller))
            }
            Event::List(list) => {
                let who = match list.caller {
                    ListCaller::Message(caller) => Who::from_caller(caller),
                    ListCaller::Kept(caller) => Who::kept(Arc::unwrap_or_clone(caller)),
                };
                (list.token, list.handler, RequestParams::List { cursor: list.cursor }, who)
            }
            Event::Access(AccessRequest { token, batch, caller }) => {
                let who = Who::kept(Arc::unwrap_or_clone(caller));
                (token, batch.handler, RequestParams::Access { questions: batch.questions }, who)
            }
            Event::Tool(call) => {
                let who = Who::round(call.caller, call.inputs, call.state);
                let arguments = object_text(call.arguments);
                (call.token, call.handler, RequestParams::Tool { name: call.name, arguments }, who)
            }
            Event::Prompt(call) => {
                let who = Who::round(call.caller, call.inputs, call.state);
                let arguments = object_text(call.arguments);
                (call.token, call.handler, RequestParams::Prompt { name: call.name, arguments }, who)
            }
            Event::Call(call) => {
                let params = call.params.map(|params| Cow::Borrowed(params.raw()));
                let who = Who::round(call.caller, call.inputs, call.state);
                (call.token, call.handler, RequestParams::Call { method: call.method, params }, who)
            }
            Event::Cancelled(token) => return Self::Cancel(token),
            Event::Replied { ask, answer } => {
                let text = |json: Json<'m>| Cow::Borrowed(json.raw());
                return Self::Replied(ask, answer.map(|answer| answer.map(text).map_err(text)));
            }
            Event::Shared(_) | Event::Notified { .. } | Event::Interest | Event::Again(_) => {
                return Self::Nothing;
            }
        };
        Self::Ask(WorkRequest { token, handler, params, who })
    }

    /// Copies borrowed data, for use on another thread; `None` if there is nothing to do.
    pub fn into_owned(self) -> Option<Work<'static>> {
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

impl WorkRequest<'_> {
    fn into_owned(self) -> WorkRequest<'static> {
        let Self { token, handler, params, who } = self;
        let params = match params {
            RequestParams::Read { uri, params } => {
                RequestParams::Read { uri: owned(uri), params: params.map(MatchedParams::into_owned) }
            }
            RequestParams::Complete { variable, value, arguments } => {
                let arguments = arguments.into_iter().map(|(name, value)| (owned(name), owned(value)));
                let arguments = arguments.collect();
                RequestParams::Complete { variable: owned(variable), value: owned(value), arguments }
            }
            RequestParams::List { cursor } => RequestParams::List { cursor },
            RequestParams::Access { questions } => RequestParams::Access { questions },
            RequestParams::Tool { name, arguments } => {
                RequestParams::Tool { name: owned(name), arguments: owned(arguments) }
            }
            RequestParams::Prompt { name, arguments } => {
                RequestParams::Prompt { name: owned(name), arguments: owned(arguments) }
            }
            RequestParams::Call { method, params } => {
                RequestParams::Call { method: owned(method), params: params.map(owned) }
            }
        };
        WorkRequest { token, handler, params, who: who.into_owned() }
    }

    /// The URI of a read, as the client spelled it.
    pub fn uri(&self) -> Option<&str> {
        match &self.params {
            RequestParams::Read { uri, .. } => Some(uri),
            _ => None,
        }
    }

    /// The kind of request, as a word for the log.
    pub fn what(&self) -> &str {
        match &self.params {
            RequestParams::Read { uri, .. } => uri,
            RequestParams::Complete { variable, .. } => variable,
            RequestParams::List { .. } => "list",
            RequestParams::Access { .. } => "access",
            RequestParams::Tool { name, .. } | RequestParams::Prompt { name, .. } => name,
            RequestParams::Call { method, .. } => method,
        }
    }
}

impl<'m> Who<'m> {
    fn from_caller(caller: Caller<'m>) -> Self {
        Self {
            principal: Some(Cow::Borrowed(caller.principal)),
            headers: caller.headers.map(Cow::Borrowed),
            revision: Some(caller.revision),
            client_info: caller.client_info,
            meta: caller.meta.map(|meta| Cow::Borrowed(meta.raw())),
            inputs: None,
            state: None,
        }
    }

    fn kept(caller: OwnedCaller) -> Self {
        Self {
            principal: Some(Cow::Owned(caller.principal)),
            headers: caller.headers.map(Cow::Owned),
            revision: Some(caller.revision),
            client_info: caller.client_info.map_or(ClientInfo::None, ClientInfo::Session),
            meta: caller.meta.map(|meta| Cow::Owned(meta.as_ref().to_owned())),
            inputs: None,
            state: None,
        }
    }

    fn round(caller: Caller<'m>, inputs: Option<Json<'m>>, state: Option<Vec<u8>>) -> Self {
        let inputs = inputs.map(|inputs| Cow::Borrowed(inputs.raw()));
        Self { inputs, state, ..Self::from_caller(caller) }
    }

    /// Copies borrowed data, for later use.
    pub fn into_owned(self) -> Who<'static> {
        Who {
            principal: self.principal.map(|principal| Cow::Owned(principal.into_owned())),
            headers: self.headers.map(|headers| Cow::Owned(headers.into_owned())),
            revision: self.revision,
            client_info: match self.client_info {
                ClientInfo::None => ClientInfo::None,
                ClientInfo::Request(text) => ClientInfo::Session(text.into()),
                ClientInfo::Session(text) => ClientInfo::Session(text),
            },
            meta: self.meta.map(owned),
            inputs: self.inputs.map(owned),
            state: self.state,
        }
    }

    /// The identity verified by the transport; empty for the local process.
    pub fn principal(&self) -> &str {
        self.principal.as_ref().map_or("", |principal| principal.id())
    }

    /// The headers of the HTTP request, without credentials; `None` over a pipe.
    pub fn headers(&self) -> Option<&Arc<Headers>> {
        self.headers.as_deref()
    }

    /// The principal with its scopes and claims.
    pub fn identity(&self) -> Option<&Arc<Principal>> {
        self.principal.as_deref()
    }

    /// The revision of the request.
    pub fn revision(&self) -> &'static str {
        self.revision.map_or("", Revision::as_str)
    }

    /// The client's description of itself, unverified: a JSON object.
    pub fn client_info(&self) -> Option<&str> {
        self.client_info.as_str()
    }

    /// `_meta` of the request: a JSON object.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_deref()
    }

    /// The client's answers to an earlier question: a JSON object.
    pub fn inputs(&self) -> Option<&str> {
        self.inputs.as_deref()
    }

    /// The handler's own state from that question.
    pub fn state(&self) -> Option<&[u8]> {
        self.state.as_deref()
    }
}

impl RequestParams<'_> {
    /// The operation, without its arguments.
    pub fn purpose(&self) -> ErrorPurpose {
        match self {
            Self::Read { .. } => ErrorPurpose::Read,
            Self::Access { .. } => ErrorPurpose::Access,
            Self::Complete { .. } => ErrorPurpose::Complete,
            Self::List { .. } => ErrorPurpose::List,
            Self::Call { .. } => ErrorPurpose::Call,
            Self::Tool { .. } => ErrorPurpose::Tool,
            Self::Prompt { .. } => ErrorPurpose::Prompt,
        }
    }
}

impl<F> From<F> for WorkFunctions<F> {
    fn from(reader: F) -> Self {
        Self { reader, completers: HashMap::new(), lister: None, access: None }
    }
}

impl<F> WorkFunctions<F> {
    /// The function for this operation; `None` if there is none.
    pub fn called(&self, params: &RequestParams<'_>) -> Option<&F> {
        match params {
            RequestParams::Read { .. }
            | RequestParams::Call { .. }
            | RequestParams::Tool { .. }
            | RequestParams::Prompt { .. } => Some(&self.reader),
            RequestParams::Complete { variable, .. } => self.completers.get(&**variable),
            RequestParams::List { .. } => self.lister.as_ref(),
            RequestParams::Access { .. } => self.access.as_ref(),
        }
    }
}

/// The text of an object; without one, that of an empty object.
fn object_text(object: Option<Json<'_>>) -> Cow<'_, str> {
    Cow::Borrowed(object.map_or("{}", Json::raw))
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::catalog::Edit;
    use mcp_resources_engine::connection::{Answer, Arrival, ConnectionKind, ListPage, RequestOutcome};
    use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
    use mcp_resources_engine::now::Now;
    use mcp_resources_engine::resource::{ListSource, Template};

    /// The owned request equals the borrowed one after the message is gone.
    #[test]
    fn what_is_owned_says_what_was_borrowed() {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, EngineOptions::default()).unwrap();
        let edit =
            Edit::AddTemplate { template: Box::new(Template::new("note://{id}")), handler: 7, mount: None };
        engine.publish(vec![edit], Now::default()).unwrap();
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note://caf%C3%A9","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c"}}}}"#;
        let principal = Principal::new("ada");
        let arrival = Arrival { message, principal: &principal, header_check: None };
        let RequestOutcome { mut events, .. } =
            engine.connect(ConnectionKind::Stdio).message(arrival, Now::default(), &mut Vec::new());
        let Work::Ask(request) = Work::from_event(events.remove(0)) else { panic!("it is to be asked") };
        let described = |request: &WorkRequest<'_>| {
            let RequestParams::Read { params, .. } = &request.params else { panic!("it is a read") };
            let id = params.as_ref().unwrap().get("id").unwrap().as_str().unwrap().to_owned();
            let who = [request.who.principal(), request.who.revision()].map(str::to_owned);
            let said = [request.uri(), request.who.client_info(), request.who.meta()];
            (id, who, said.map(|said| said.unwrap().to_owned()), request.what().to_owned())
        };
        let before = described(&request);
        assert_eq!((&*before.0, &*before.1[0]), ("café", "ada"));
        let Some(Work::Ask(kept)) = Work::Ask(request).into_owned() else { panic!("it is kept") };
        assert_eq!(described(&kept), before);
    }

    /// A list that continues with its next source has the sender of its message, although that is gone.
    #[test]
    fn a_list_that_continues_says_who_asks() {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, EngineOptions::default()).unwrap();
        let listed = |text: &str| Template::new(text).list(ListSource::default());
        let edit = |text: &str, handler| Edit::AddTemplate {
            template: Box::new(listed(text)),
            handler,
            mount: None,
        };
        engine.publish(vec![edit("a://{x}", 7), edit("b://{x}", 8)], Now::default()).unwrap();
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c"}}}}"#;
        let principal = Principal::new("ada");
        let arrival = Arrival { message, principal: &principal, header_check: None };
        let mut connection = engine.connect(ConnectionKind::Stdio);
        let RequestOutcome { mut events, .. } = connection.message(arrival, Now::default(), &mut Vec::new());
        let Work::Ask(first) = Work::from_event(events.remove(0)) else {
            panic!("the first source is asked")
        };
        let page =
            Answer::Listed(ListPage::new(std::iter::empty::<mcp_resources_engine::connection::Item>()));
        let mut outcome = connection.respond(first.token, page, Now::default(), &mut Vec::new());
        let Work::Ask(second) = Work::from_event(outcome.events.remove(0)) else {
            panic!("so is the second")
        };
        assert_ne!(first.handler, second.handler);
        let described = |who: &Who<'_>| {
            let said = [who.client_info(), who.meta()].map(|said| said.unwrap().to_owned());
            ([who.principal(), who.revision()].map(str::to_owned), said)
        };
        assert_eq!(described(&first.who), described(&second.who));
        assert_eq!(second.who.principal(), "ada");
    }

    #[test]
    fn each_kind_of_request_has_its_function() {
        let functions = WorkFunctions {
            completers: HashMap::from([("city".into(), "completer")]),
            ..WorkFunctions::from("reader")
        };
        let complete = |variable: &'static str| RequestParams::Complete {
            variable: variable.into(),
            value: "".into(),
            arguments: Vec::new(),
        };
        assert_eq!(functions.called(&complete("city")), Some(&"completer"));
        assert_eq!(functions.called(&complete("days")), None);
        assert_eq!(functions.called(&RequestParams::List { cursor: None }), None);
        assert_eq!(functions.called(&RequestParams::Read { uri: "".into(), params: None }), Some(&"reader"));
    }
}
