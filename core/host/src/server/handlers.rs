//! The author's functions, by the numbers that the engine knows them by.
//!
//! Law: a table is never changed, a changed one replaces it: a request that is under way keeps the function it found.

use super::answer::{Call, Complete, Handled, IntoAnswer, List, Read};
use super::request::{CallRequest, CompletionRequest, ListRequest, ReadRequest};
use arc_swap::ArcSwap;
use imbl::OrdMap;
use mcp_resources_engine::catalog::{HandlerId, Source};
use mcp_resources_engine::connection::Contents;
use mcp_resources_engine::error::ReadError;
use std::pin::Pin;
use std::sync::Arc;

/// A handler at work.
pub(super) type Work = Pin<Box<dyn Future<Output = Handled> + Send>>;

/// A function of the author's, of whatever type.
pub(super) type Handler<Request> = Box<dyn Fn(Request) -> Work + Send + Sync>;

/// Forgets the type of a handler.
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

/// What stands behind one number.
pub(super) struct Entry {
    pub(super) read: Handler<ReadRequest>,
    /// By variable.
    pub(super) complete: Vec<(String, Handler<CompletionRequest>)>,
    pub(super) list: Option<Handler<ListRequest>>,
}

impl Entry {
    pub(super) fn new<F, Fut>(read: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        Self { read: erase(read), complete: Vec::new(), list: None }
    }

    /// Reads what never changes.
    pub(super) fn constant(source: Source) -> Self {
        Self::new(move |_| {
            let contents = match &source {
                Source::Text(text) => Ok(Contents::shared_text(text.clone())),
                Source::Bytes(bytes) => Ok(Contents::shared_blob(bytes.clone())),
                Source::Handler(_) => Err(ReadError::Failed),
            };
            std::future::ready(contents)
        })
    }

    pub(super) fn completes<F, Fut>(&mut self, variable: String, function: F)
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Complete>> + Send + 'static,
    {
        self.complete.push((variable, erase(function)));
    }

    pub(super) fn lists<F, Fut>(&mut self, function: F)
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.list = Some(erase(function));
    }

    /// The completer of a variable.
    pub(super) fn completer(&self, variable: &str) -> Option<&Handler<CompletionRequest>> {
        self.complete.iter().find(|(name, _)| name == variable).map(|(_, handler)| handler)
    }
}

/// All entries of a server.
#[derive(Default)]
pub(super) struct Handlers {
    entries: ArcSwap<OrdMap<HandlerId, Arc<Entry>>>,
    /// Behind the extension door, by position: these are fixed when the server is built.
    pub(super) calls: Vec<Handler<CallRequest>>,
}

impl Handlers {
    /// A table with the functions of the extension door only.
    pub(super) fn new(calls: Vec<Handler<CallRequest>>) -> Self {
        Self { entries: ArcSwap::default(), calls }
    }

    /// What stands behind the number, unless it was removed.
    pub(super) fn get(&self, id: HandlerId) -> Option<Arc<Entry>> {
        self.entries.load().get(&id).cloned()
    }

    /// What stands behind the number of an extension.
    pub(super) fn call(&self, id: HandlerId) -> Option<&Handler<CallRequest>> {
        self.calls.get(usize::try_from(id).ok()?)
    }

    /// Replaces the table by one with `added` and without `removed`. Callers take turns.
    pub(super) fn change(&self, added: &[(HandlerId, Arc<Entry>)], removed: &[HandlerId]) {
        let mut entries = OrdMap::clone(&self.entries.load());
        entries.extend(added.iter().cloned());
        for id in removed {
            entries.remove(id);
        }
        self.entries.store(Arc::new(entries));
    }
}

/// Forgets the type of a function behind the extension door.
pub(super) fn erase_call<F, Fut>(function: F) -> Handler<CallRequest>
where
    F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoAnswer<Call>> + Send + 'static,
{
    erase::<Call, _, _, _>(function)
}
