//! Handlers with their types erased.

use super::answer::{AccessDecision, Call, Complete, Handled, IntoAnswer, List, Read};
use super::request::{CallRequest, CompletionRequest, DecisionRequest, ListRequest, NamedCall, ReadRequest};
use mcp_resources_engine::catalog::ItemSource;
use mcp_resources_engine::connection::{Answer, Contents};
use mcp_resources_engine::engine::AccessQuestion;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::principal::Principal;
use std::pin::Pin;
use std::sync::Arc;

/// The future of a handler.
pub(super) type Work = Pin<Box<dyn Future<Output = Handled> + Send>>;

/// A handler function with its type erased.
pub(super) type Handler<Request> = Box<dyn Fn(Request) -> Work + Send + Sync>;

/// Erases the type of a handler.
pub(super) fn erase<Kind, Request, F, Fut>(function: F) -> Handler<Request>
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoAnswer<Kind>> + Send + 'static,
{
    Box::new(move |request| {
        let work = function(request);
        Box::pin(async move { work.await.into_answer() })
    })
}

/// The handlers behind one number.
pub(super) enum Functions {
    /// For a resource or template.
    HandlerSet(HandlerSet),
    /// For a custom method.
    Method(Handler<CallRequest>),
    /// For a tool or prompt.
    Named(NamedHandlers),
}

impl Functions {
    pub(super) fn entry(&self) -> Option<&HandlerSet> {
        match self {
            Self::HandlerSet(entry) => Some(entry),
            Self::Method(_) | Self::Named(_) => None,
        }
    }

    /// The completer of a variable or argument.
    pub(super) fn completer(&self, variable: &str) -> Option<&Handler<CompletionRequest>> {
        let complete = match self {
            Self::HandlerSet(entry) => &entry.others.as_ref()?.complete,
            Self::Named(named) => &named.complete,
            Self::Method(_) => return None,
        };
        complete.iter().find(|(name, _)| name == variable).map(|(_, handler)| handler)
    }
}

/// The handlers of a tool or prompt.
pub(super) struct NamedHandlers {
    pub(super) call: Handler<NamedCall>,
    /// By argument.
    pub(super) complete: Vec<(String, Handler<CompletionRequest>)>,
}

impl NamedHandlers {
    pub(super) fn new<Kind, F, Fut>(call: F) -> Self
    where
        F: Fn(NamedCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Kind>> + Send + 'static,
    {
        Self { call: erase::<Kind, _, _, _>(call), complete: Vec::new() }
    }
}

/// The handlers of a resource or template.
pub(super) struct HandlerSet {
    pub(super) read: Handler<ReadRequest>,
    /// Boxed, because most resources have none.
    others: Option<Box<OtherHandlers>>,
}

/// The handlers besides the one that reads.
#[derive(Default)]
struct OtherHandlers {
    /// By variable.
    complete: Vec<(String, Handler<CompletionRequest>)>,
    list: Option<Handler<ListRequest>>,
    access: Option<Handler<DecisionRequest>>,
}

impl HandlerSet {
    pub(super) fn new<F, Fut>(read: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        Self { read: erase(read), others: None }
    }

    /// Lists the resources of the template.
    pub(super) fn list(&self) -> Option<&Handler<ListRequest>> {
        self.others.as_ref()?.list.as_ref()
    }

    /// Decides who may use a resource.
    pub(super) fn access(&self) -> Option<&Handler<DecisionRequest>> {
        self.others.as_ref()?.access.as_ref()
    }

    fn others(&mut self) -> &mut OtherHandlers {
        self.others.get_or_insert_default()
    }

    /// Reads constant contents.
    pub(super) fn constant(source: ItemSource) -> Self {
        Self::new(move |_| {
            let contents = match &source {
                ItemSource::Text(text) => Ok(Contents::shared_text(text.clone())),
                ItemSource::Bytes(bytes) => Ok(Contents::shared_blob(bytes.clone())),
                ItemSource::Handler(_) => Err(ReadError::Failed),
            };
            std::future::ready(contents)
        })
    }

    pub(super) fn completes<F, Fut>(&mut self, variable: String, function: F)
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Complete>> + Send + 'static,
    {
        self.others().complete.push((variable, erase(function)));
    }

    pub(super) fn lists<F, Fut>(&mut self, function: F)
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.others().list = Some(erase(function));
    }
}

impl HandlerSet {
    /// Asks `function` about one URI after the other. A failure concerns its own URI alone, and is logged.
    pub(super) fn decides<F, Fut>(&mut self, function: F)
    where
        F: Fn(Arc<Principal>, AccessQuestion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<AccessDecision>> + Send + 'static,
    {
        let function = Arc::new(function);
        self.others().access = Some(Box::new(move |request: DecisionRequest| {
            let function = function.clone();
            Box::pin(async move {
                let mut allowed = Vec::with_capacity(request.questions.len());
                for question in request.questions.iter() {
                    let decided = function(request.principal.clone(), question.clone()).await.into_answer();
                    allowed.push(match decided {
                        Ok(Answer::Access(one)) => one.first().copied().flatten(),
                        Ok(_) => None,
                        Err(error) => {
                            request.log(error);
                            None
                        }
                    });
                }
                Ok(Answer::Access(allowed))
            })
        }));
    }

    /// Asks `function` about many URIs at once.
    pub(super) fn decides_all<F, Fut>(&mut self, function: F)
    where
        F: Fn(Arc<Principal>, Arc<[AccessQuestion]>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<AccessDecision>> + Send + 'static,
    {
        self.others().access =
            Some(erase(move |request: DecisionRequest| function(request.principal, request.questions)));
    }
}

/// Erases the type of the handler of a custom method.
pub(super) fn erase_call<F, Fut>(function: F) -> Handler<CallRequest>
where
    F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoAnswer<Call>> + Send + 'static,
{
    erase::<Call, _, _, _>(function)
}
