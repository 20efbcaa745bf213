//! The memory provider, a folder in memory: `memory:///{+path}`. A program adds and removes entries; clients list, read
//! and watch them.
//!
//! Law: an entry is never copied: reads share the stored bytes. The lock is a leaf: no notification is sent while it is
//! held.

use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::path;
use mcp_resources_runtime::provider::{
    Complete, Feed, List, Mount, Provider, Read, ReadRef, Responder, Route,
};
use mcp_resources_runtime::sync::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

const ROOT: &str = "memory:///";
const ENTRIES: &str = "memory:///{+path}";
const ENTRY: Route = Route(0);
/// A larger entry is not read on the thread that received the request, in bytes.
const SMALL: usize = 64 * 1024;

/// A folder in memory. Its clones are the same folder, and every server that mounts it serves it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    shared: Arc<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    entries: RwLock<BTreeMap<Arc<str>, MemoryItem>>,
    feeds: Mutex<Vec<Feed>>,
}

/// One entry.
#[derive(Clone, Debug)]
struct MemoryItem {
    body: Bytes,
    mime_type: Option<Arc<str>>,
}

/// The contents of an entry.
#[derive(Clone, Debug)]
enum Bytes {
    Text(Arc<str>),
    Blob(Arc<[u8]>),
}

impl Memory {
    /// An empty folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a text at `path`, such as `notes/today.md`, and replaces an earlier entry. Clients that watch it are
    /// notified, and if it is new, those that listen to the lists. `mime_type` is `text/plain` if there is none.
    pub fn put_text(&self, path: &str, text: impl Into<Arc<str>>, mime_type: Option<&str>) {
        self.put(path, Bytes::Text(text.into()), mime_type);
    }

    /// Like [`Self::put_text`], with bytes. `mime_type` is `application/octet-stream` if there is none.
    pub fn put_bytes(&self, path: &str, bytes: impl Into<Arc<[u8]>>, mime_type: Option<&str>) {
        self.put(path, Bytes::Blob(bytes.into()), mime_type);
    }

    /// Removes the entry at `path`; `false` if there is none.
    pub fn remove(&self, path: &str) -> bool {
        let removed = self.shared.write().remove(path).is_some();
        if removed {
            self.notify(path, true);
        }
        removed
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.shared.read().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn put(&self, path: &str, body: Bytes, mime_type: Option<&str>) {
        let item = MemoryItem { body, mime_type: mime_type.map(Arc::from) };
        let before = self.shared.write().insert(path.into(), item);
        self.notify(path, before.is_none());
    }

    fn notify(&self, path: &str, is_listed: bool) {
        let feeds = {
            let mut feeds = self.shared.feeds();
            feeds.retain(Feed::is_alive);
            feeds.clone()
        };
        if feeds.is_empty() {
            return;
        }
        let uri = uri(path);
        for feed in feeds {
            // A path that no URI can have is not served.
            let _ = feed.updated(&uri);
            if is_listed {
                feed.list_changed();
            }
        }
    }
}

impl Declare for Memory {
    const KIND: OptionKind =
        OptionKind { name: "memory", about: "A folder in memory, as memory:///PATH.", options: &[] };

    fn declare(options: OptionValue, _folder: &Path) -> Result<Self, OptionError> {
        declared::nothing("memory", &options).map(|()| Self::new())
    }

    fn merge(&mut self, _other: Self) -> Result<(), OptionError> {
        Ok(())
    }

    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        Ok(if rest.is_empty() { OptionValue::None } else { rest.into() })
    }
}

impl Provider for Memory {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.shared.feeds().push(feed);
        let entries = Template::new(ENTRIES)
            .title("An entry of the folder in memory")
            .completes("path")
            .list(ListSource { pages: true });
        Ok(Mount::new("memory").template(ENTRY, entries))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        let Some(item) = self.shared.get(request.param("path")) else {
            return Some(Err(ReadError::NotFound));
        };
        (item.body.len() <= SMALL).then(|| Ok(item.contents()))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let read = || {
            let item = self.shared.get(request.param("path")).ok_or(ReadError::NotFound)?;
            reply.facts(item.body.len() as u64)?;
            Ok(item.contents())
        };
        let answer = read();
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let start = request.cursor().map_or(Bound::Unbounded, Bound::Excluded);
        let page = {
            let entries = self.shared.read();
            let rest = entries.range::<str, _>((start, Bound::Unbounded));
            page(request.limit(), rest, |(path, _)| path.to_string(), |(path, item)| item.listed(path))
        };
        reply.send(Ok(page));
    }

    /// The paths that begin with the typed text.
    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let values = {
            let entries = self.shared.read();
            let from = entries.range::<str, _>((Bound::Included(typed), Bound::Unbounded));
            let fits = from.take_while(|(path, _)| path.starts_with(typed));
            completion(fits.map(|(path, _)| path.to_string()))
        };
        reply.send(Ok(values));
    }
}

impl MemoryState {
    fn get(&self, path: Option<&str>) -> Option<MemoryItem> {
        self.read().get(path?).cloned()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Arc<str>, MemoryItem>> {
        self.entries.read()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<Arc<str>, MemoryItem>> {
        self.entries.write()
    }

    fn feeds(&self) -> MutexGuard<'_, Vec<Feed>> {
        self.feeds.lock()
    }
}

impl MemoryItem {
    fn contents(&self) -> ReadResult<'static> {
        let contents = match &self.body {
            Bytes::Text(text) => Contents::shared_text(text.clone()),
            Bytes::Blob(bytes) => Contents::shared_blob(bytes.clone()),
        };
        match &self.mime_type {
            Some(mime_type) => contents.with_mime_type(mime_type.to_string()).into(),
            None => contents.into(),
        }
    }

    /// As it is listed: under its path, with its size.
    fn listed(&self, path: &str) -> Resource {
        let listed = Resource::new(uri(path)).name(path).size(self.body.len() as u64);
        match &self.mime_type {
            Some(mime_type) => listed.mime_type(&**mime_type),
            None => listed,
        }
    }
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }
}

/// The URI of an entry.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(ROOT.len() + path.len());
    uri.push_str(ROOT);
    path::append(&mut uri, path);
    uri
}
