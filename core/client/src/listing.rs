//! Lists of several servers as one, page by page.

use crate::handle::Client;
use crate::hooks::ProgressFn;
use crate::link::ServerHandle;
use mcp_resources_engine::client::{
    CallOptions, ClientCall, ClientError, ClientOutcome, Failure, Listed, Page,
};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListingKind {
    Resources,
    Templates,
}

type PageResult = Result<ClientOutcome, ClientError>;

/// A list in progress: [`Client::list`], [`Client::list_templates`]. Requests the first page of all servers at once,
/// and further pages one after the other.
#[derive(Debug)]
pub struct Listing {
    client: Client,
    kind: ListingKind,
    items: VecDeque<Listed>,
    /// The remaining servers with their first pages. The first server is the current one.
    servers: VecDeque<(Arc<ServerHandle>, Option<JoinHandle<PageResult>>)>,
    /// The cursor for the next page of the current server, and the number of pages read from it.
    cursor: Option<String>,
    pages: usize,
    /// The cursors that the current server has returned, and what its pages had.
    cursors: HashSet<String>,
    pages_seen: HashSet<u64>,
    /// The number of servers, and the errors of those that failed.
    count: usize,
    failures: Vec<ClientError>,
}

impl Listing {
    pub(super) fn new(client: &Client, kind: ListingKind) -> Self {
        let links = client.links();
        let count = links.len();
        let servers = links.into_iter().map(|link| (link, None)).collect();
        let items = VecDeque::new();
        let failures = Vec::new();
        Self {
            client: client.clone(),
            kind,
            items,
            servers,
            cursor: None,
            pages: 0,
            cursors: HashSet::new(),
            pages_seen: HashSet::new(),
            count,
            failures,
        }
    }

    /// The next entry. The failure of one server of several does not end the list: it is in [`Client::failures`]. If
    /// all fail, the first error comes last.
    pub async fn next(&mut self) -> Option<Result<Listed, ClientError>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(Ok(item));
            }
            self.ask_all();
            let Some((link, first)) = self.servers.front_mut() else { return self.last() };
            let link = link.clone();
            let answered = match first.take() {
                Some(first) => first.await.unwrap_or_else(|_| Err(Failure::Cancelled.into())),
                None => {
                    let cursor = self.cursor.take();
                    self.page(&link, cursor).await
                }
            };
            match answered {
                Ok(ClientOutcome::Page(page)) => self.add(&link, page),
                Ok(_) => self.leave(),
                Err(error) => self.fail(&link, error),
            }
        }
    }

    /// The entries that are already available after one that [`Listing::next`] returned: the rest of its page.
    pub fn ready(&mut self) -> impl Iterator<Item = Listed> {
        self.items.drain(..)
    }

    /// Collects the rest of the list.
    ///
    /// # Errors
    /// As [`Listing::next`].
    pub async fn all(mut self) -> Result<Vec<Listed>, ClientError> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }

    /// Requests the first page of every server, once.
    fn ask_all(&mut self) {
        if self.pages > 0 || self.servers.len() < self.count || !self.failures.is_empty() {
            return;
        }
        for (link, first) in &mut self.servers {
            if first.is_none() {
                let own = link.clone();
                let call = call(self.kind, None);
                let (options, progress) = self.client.options();
                *first = Some(tokio::spawn(async move { own.call(call, options, progress).await }));
            }
        }
    }

    async fn page(&self, link: &ServerHandle, cursor: Option<String>) -> PageResult {
        let (options, progress): (CallOptions, Option<ProgressFn>) = self.client.options();
        link.call(call(self.kind, cursor), options, progress).await
    }

    fn add(&mut self, link: &Arc<ServerHandle>, page: Page) {
        self.pages += 1;
        // A server that ignores cursors sends the same page for ever: its entries are listed once.
        if page.items.is_empty() || self.pages_seen.insert(digest(&page.items)) {
            self.items.extend(page.items);
        }
        let max = self.client.most_pages();
        match page.next {
            None => self.leave(),
            Some(_) if self.pages >= max => {
                let reason = format!("its list has more than {max} pages");
                self.fail(link, Failure::BadAnswer { reason }.into());
            }
            Some(cursor) if !self.cursors.insert(cursor.clone()) => {
                let reason = "its list repeats a cursor, and so has no end".into();
                self.fail(link, Failure::BadAnswer { reason }.into());
            }
            Some(cursor) => self.cursor = Some(cursor),
        }
    }

    fn fail(&mut self, link: &Arc<ServerHandle>, error: ClientError) {
        self.client.note_failure(&link.name, Some(error.clone()));
        self.failures.push(error);
        self.next_server();
    }

    fn leave(&mut self) {
        if let Some((link, _)) = self.servers.front() {
            self.client.note_failure(&link.name, None);
        }
        self.next_server();
    }

    fn next_server(&mut self) {
        self.servers.pop_front();
        self.cursor = None;
        self.pages = 0;
        self.cursors.clear();
        self.pages_seen.clear();
    }

    fn last(&mut self) -> Option<Result<Listed, ClientError>> {
        let all = self.count > 0 && self.failures.len() == self.count;
        self.count = 0;
        all.then(|| self.failures.swap_remove(0)).map(Err)
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        for (_, first) in &self.servers {
            if let Some(first) = first {
                first.abort();
            }
        }
    }
}

/// A number that is the same for pages with the same entries.
fn digest(items: &[Listed]) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.iter().for_each(|item| item.json.hash(&mut hasher));
    hasher.finish()
}

fn call(kind: ListingKind, cursor: Option<String>) -> ClientCall {
    match kind {
        ListingKind::Resources => ClientCall::List { cursor },
        ListingKind::Templates => ClientCall::ListTemplates { cursor },
    }
}
