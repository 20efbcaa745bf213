//! The documents of a collection, their chunks in an index, and the thread that keeps them.
//!
//! ```text
//!   a request, an interest ──▶ a thread asks each source for changes ──▶ fetch, cut, index, embed ──▶ Documents
//!                                └─ ends after a while without a request or a subscriber
//! ```
//!
//! Law: a source that does not answer leaves what is known as it is. The log says why, once until it answers again.

use super::chunk;
use super::document::{RagDocument, chunk_key, of_body, of_key};
use super::embed::{self, Embedder, VECTORS};
use crate::docs::page::DocsPage;
use crate::docs::site::is_mdx;
use crate::indexes::{IndexFile, Indexes};
use crate::search::{Index, Put};
use mcp_resources_provider_kit::digest::digest;
use mcp_resources_provider_kit::document_source::{
    DocumentSource, ListedDocument, SourceChanges, SourceError,
};
use mcp_resources_provider_kit::offered::OfferedTools;
use mcp_resources_provider_kit::tracker::{LISTS, TrackedSource, Tracker, TrackerWork};
use mcp_resources_runtime::provider::Feed;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after the last request until the thread ends, without a subscriber.
const IDLE: Duration = Duration::from_secs(10);
/// The digest of what is not there.
const ABSENT: u64 = 0;
/// Maximum number of texts embedded at once.
const EMBEDDED: usize = 64;
/// While documents are read for the first time, those that are there are published so often, and each of the first few at once.
const PUBLISHED: Duration = Duration::from_millis(100);
const FEW: usize = 64;

/// One collection.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) name: String,
    /// `rag:///NAME/`.
    pub(super) uri: String,
    pub(super) source: Box<dyn DocumentSource>,
    /// The beginning of the URIs of what documents were made of, as `gdrive:///`.
    pub(super) origin: Option<&'static str>,
    pub(super) poll: Duration,
    /// Maximum time that a request waits for the first documents.
    pub(super) patience: Duration,
    pub(super) list_max: usize,
    pub(super) hits: usize,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) index: Arc<IndexFile>,
    pub(super) tools: OfferedTools,
}

/// All documents of a collection at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Documents {
    pub(super) all: Arc<BTreeMap<String, Arc<RagDocument>>>,
    /// The vectors of chunks, by key.
    pub(super) vectors: Arc<BTreeMap<String, Arc<[f32]>>>,
    /// Whether the source has answered at least once.
    pub(super) is_known: bool,
    /// Whether all that it has answered was read.
    pub(super) is_whole: bool,
    pub(super) generation: u64,
    lists: u64,
    token: Option<String>,
    fault: Option<String>,
    /// Documents that could not be read, or not be put into the index, by id.
    unread: BTreeMap<String, UnreadDocument>,
}

/// A document that could not be read.
#[derive(Clone, Debug)]
struct UnreadDocument {
    listed: ListedDocument,
    /// As it was logged.
    reason: String,
    /// Whether it is asked for only once it has changed; otherwise with the next changes.
    is_final: bool,
}

/// Finds the documents of all collections. Shared by requests and the thread.
#[derive(Debug)]
pub(super) struct DocumentStore {
    collections: Vec<Arc<Collection>>,
    indexes: Indexes,
}

impl DocumentStore {
    pub(super) fn new(collections: &[Arc<Collection>]) -> Self {
        let indexes = Indexes::new(collections.iter().map(|collection| &collection.index));
        Self { collections: collections.to_vec(), indexes }
    }

    /// Asks the index of a collection; `None` if there is none.
    pub(super) fn with_index<T>(
        &self,
        collection: &Collection,
        ask: impl FnOnce(&mut Index) -> T,
    ) -> Option<T> {
        self.indexes.with(&collection.index, ask)
    }

    /// The number of changes of the lists of all collections.
    pub(super) fn lists(known: &[Arc<Documents>]) -> u64 {
        known.iter().map(|documents| documents.lists).fold(0, u64::wrapping_add)
    }

    /// Opens the indexes that are not open, and takes over what they know.
    fn open(&self, tracker: &Tracker<Self>, feed: &Feed) {
        let indexer = DocumentIndexer { store: self, feed, is_wanted: &|| true };
        let mut all = Vec::clone(&tracker.current());
        for (collection, documents) in self.collections.iter().zip(&mut all) {
            let together =
                self.collections.iter().filter(|other| Arc::ptr_eq(&other.index, &collection.index));
            let names: Vec<&str> = together.map(|other| &*other.name).collect();
            self.indexes.open(&collection.index, &names, &|what| feed.log(what));
            if documents.all.is_empty() {
                *documents = Arc::new(indexer.remembered(collection, documents));
            }
        }
        tracker.publish(all);
    }
}

impl TrackedSource for DocumentStore {
    const THREAD: &'static str = "mcp-rag";
    const IDLE: Duration = IDLE;

    type Snapshot = Vec<Arc<Documents>>;
    type Digest = u64;
    /// When each source was last asked by this thread.
    type Worker = Vec<Option<Instant>>;

    fn empty(&self) -> Self::Snapshot {
        self.collections.iter().map(|_| Arc::default()).collect()
    }

    fn begin(&self, tracker: &Arc<Tracker<Self>>, feed: &Feed) -> Self::Worker {
        self.open(tracker, feed);
        self.collections.iter().map(|_| None).collect()
    }

    fn refresh(&self, asked: &mut Self::Worker, work: &TrackerWork<'_, Self>) -> Option<Duration> {
        let indexer = DocumentIndexer { store: self, feed: work.feed, is_wanted: &|| work.is_wanted() };
        // Folders first: they answer at once.
        let mut order: Vec<_> = self.collections.iter().zip(asked).enumerate().collect();
        order.sort_by_key(|(_, (collection, _))| collection.origin.is_some());
        let mut pause = Duration::MAX;
        for (at, (collection, asked)) in order {
            if asked.is_none_or(|then| then.elapsed() >= collection.poll) {
                let before = work.current().get(at).cloned().unwrap_or_default();
                *asked = Some(Instant::now());
                let publish = |now: Documents| {
                    let mut all = Vec::clone(&work.current());
                    if let Some(place) = all.get_mut(at) {
                        *place = Arc::new(now);
                    }
                    work.publish(all);
                };
                publish(indexer.ask(collection, &before, &publish));
                if !work.is_wanted() {
                    *asked = None;
                    return None;
                }
            }
            pause = pause
                .min(collection.poll.saturating_sub(asked.map_or(collection.poll, |then| then.elapsed())));
        }
        Some(pause)
    }

    fn digest(&self, known: &Self::Snapshot, uri: &str) -> Option<u64> {
        if uri == LISTS {
            return Some(Self::lists(known));
        }
        let mut both = self.collections.iter().zip(known);
        let found = both.find_map(|(collection, documents)| collection.digest(documents, uri));
        Some(found.unwrap_or(ABSENT))
    }

    fn is_whole(&self, known: &Self::Snapshot) -> bool {
        known.iter().all(|documents| documents.is_whole)
    }

    fn forget(&self) {
        self.indexes.close();
    }
}

/// Brings what is known of a collection up to date.
struct DocumentIndexer<'w> {
    store: &'w DocumentStore,
    feed: &'w Feed,
    /// Whether to read further documents.
    is_wanted: &'w dyn Fn() -> bool,
}

impl DocumentIndexer<'_> {
    /// The documents that an index has from an earlier process. Their vectors are made anew.
    fn remembered(&self, collection: &Collection, before: &Documents) -> Documents {
        let mut documents = BTreeMap::new();
        let known = self.store.with_index(collection, |index| {
            index.known(&collection.name, |key, stamp, head| {
                if let Some((id, 0)) = of_key(&key)
                    && let Some(document) = RagDocument::from_head(id, stamp, &head)
                {
                    documents.insert(id.to_owned(), Arc::new(document));
                }
            })
        });
        if !matches!(known, Some(Ok(()))) {
            return before.clone();
        }
        let all = Arc::new(documents);
        let mut now = Documents { is_known: !all.is_empty(), all: all.clone(), ..before.clone() };
        if collection.embedder.is_some() {
            for document in all.values() {
                let chunk = |at| {
                    let key = chunk_key(&document.id, at);
                    let row = self.store.with_index(collection, |index| index.get(&collection.name, &key));
                    of_body(&row?.ok()??.body)
                };
                let chunks: Vec<_> = (0..document.chunks).map_while(chunk).collect();
                self.embed(collection, &mut now, &document.id, &chunks, 0);
            }
        }
        now
    }

    /// Asks a source for changes. What there is already is published if there was nothing whole before.
    fn ask(&self, collection: &Collection, before: &Documents, publish: &dyn Fn(Documents)) -> Documents {
        let mut now = before.clone();
        let changes = collection.source.changes_since(before.token.as_deref());
        collection.source.take_faults().iter().for_each(|fault| self.feed.log(fault));
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => {
                let fault =
                    format!("the collection {:?} cannot be brought up to date: {error}", collection.name);
                if before.fault.as_ref() != Some(&fault) {
                    self.feed.log(&fault);
                }
                now.fault = Some(fault);
                return now;
            }
        };
        if now.fault.take().is_some() {
            self.feed.log(&format!("the collection {:?} is up to date again", collection.name));
        }
        let is_first = !std::mem::replace(&mut now.is_known, true);
        let (mut changed, gone) = match changes {
            SourceChanges::All { documents, token } => {
                now.token = token;
                let there: HashSet<&str> = documents.iter().map(|listed| &*listed.id).collect();
                let gone = before.all.keys().filter(|id| !there.contains(&***id)).cloned().collect();
                now.unread.retain(|id, _| there.contains(&**id));
                (documents, gone)
            }
            SourceChanges::Some { changed, gone, token } => {
                now.token = token;
                (changed, gone)
            }
        };
        if is_first && changed.is_empty() {
            let what = "there is no Markdown and no text in it";
            self.feed.log(&format!("the collection {:?} has no document: {what}", collection.name));
        }
        for id in gone {
            now.unread.remove(&id);
            self.remove(collection, &mut now, &id);
        }
        let reported: HashSet<String> = changed.iter().map(|listed| listed.id.clone()).collect();
        let again = now.unread.values().filter(|unread| !reported.contains(&unread.listed.id));
        changed.extend(again.map(|unread| unread.listed.clone()));
        self.read(collection, now, changed, publish)
    }

    /// Reads what may have changed.
    fn read(
        &self,
        collection: &Collection,
        mut now: Documents,
        changed: Vec<ListedDocument>,
        publish: &dyn Fn(Documents),
    ) -> Documents {
        let mut published = Instant::now();
        for listed in changed {
            if !now.is_whole && (now.all.len() < FEW || published.elapsed() >= PUBLISHED) {
                publish(now.clone());
                published = Instant::now();
            }
            let old = now.all.get(&listed.id).cloned();
            let is_wanted = match now.unread.get(&listed.id) {
                Some(unread) => !unread.is_final || unread.listed.stamp != listed.stamp,
                None => old.as_ref().is_none_or(|old| old.stamp != listed.stamp),
            };
            if is_wanted {
                self.fetch(collection, &mut now, listed, old.as_deref());
            }
            if !(self.is_wanted)() {
                return now;
            }
        }
        now.is_whole = true;
        now
    }

    fn remove(&self, collection: &Collection, now: &mut Documents, id: &str) {
        if !now.all.contains_key(id) {
            return;
        }
        let Some(old) = Arc::make_mut(&mut now.all).remove(id) else { return };
        let keys: Vec<String> = (0..old.chunks).map(|at| chunk_key(id, at)).collect();
        if !now.vectors.is_empty() {
            let vectors = Arc::make_mut(&mut now.vectors);
            keys.iter().for_each(|key| drop(vectors.remove(key)));
        }
        // What stays in the index is not found: it belongs to no document.
        let _ = self.change(collection, &[], &keys);
        now.generation += 1;
        now.lists += 1;
    }

    /// Reads a document and puts its chunks in the place of the old ones.
    fn fetch(
        &self,
        collection: &Collection,
        now: &mut Documents,
        listed: ListedDocument,
        old: Option<&RagDocument>,
    ) {
        let before = now.unread.remove(&listed.id);
        let fetched = match collection.source.fetch(&listed.id) {
            Ok(fetched) => fetched,
            Err(SourceError::NotFound) => return self.remove(collection, now, &listed.id),
            Err(SourceError::Failed(reason)) => {
                let reason = format!("cannot be read: {reason}");
                return self.put_off(
                    collection,
                    now,
                    UnreadDocument { listed, reason, is_final: false },
                    before,
                );
            }
            Err(SourceError::Unreadable(reason)) => {
                self.remove(collection, now, &listed.id);
                let reason = format!("cannot be read: {reason}");
                return self.put_off(
                    collection,
                    now,
                    UnreadDocument { listed, reason, is_final: true },
                    before,
                );
            }
        };
        let again = listed.clone();
        let ListedDocument { id, title, stamp, modified, size } = listed;
        let own = digest(fetched.text.as_bytes());
        let size = size.unwrap_or(fetched.text.len() as u64);
        let is_same = |old: &&RagDocument| old.digest == own && (title.is_none() || old.title == title);
        if let Some(old) = old.filter(is_same).filter(|_| before.is_none()) {
            let same = RagDocument { stamp, modified, size, ..old.clone() };
            Arc::make_mut(&mut now.all).insert(id, Arc::new(same));
            return;
        }
        let page = (fetched.mime_type == "text/markdown").then(|| match is_mdx(id.as_bytes()) {
            true => DocsPage::parse_mdx(&fetched.text),
            false => DocsPage::parse(&fetched.text),
        });
        let cut = chunk::chunks(&fetched.text, page);
        let document = RagDocument {
            id: id.clone(),
            title: title.or(cut.title),
            modified,
            size,
            mime_type: fetched.mime_type.into(),
            digest: own,
            stamp,
            chunks: cut.chunks.len(),
        };
        let known = old.map_or(0, |old| old.chunks);
        let gone: Vec<String> = (document.chunks..known).map(|at| chunk_key(&id, at)).collect();
        let put = self.change(collection, &document.puts(&cut.chunks), &gone);
        now.lists += u64::from(old.is_none_or(|old| old.title != document.title));
        Arc::make_mut(&mut now.all).insert(id.clone(), Arc::new(document));
        match put {
            Ok(()) => {
                self.embed(collection, now, &id, &cut.chunks, known);
                now.generation += 1;
            }
            // Meanwhile it can be read.
            Err(error) => {
                let reason = format!("cannot be searched: the index could not be written: {error}");
                self.put_off(
                    collection,
                    now,
                    UnreadDocument { listed: again, reason, is_final: false },
                    before,
                );
            }
        }
    }

    /// Remembers what could not be taken over, and logs the reason unless it is known.
    fn put_off(
        &self,
        collection: &Collection,
        now: &mut Documents,
        unread: UnreadDocument,
        before: Option<UnreadDocument>,
    ) {
        let UnreadDocument { listed, reason, .. } = &unread;
        if before.is_none_or(|before| before.reason != *reason) {
            self.feed.log(&format!("{}/{} {reason}", collection.name, listed.id));
        }
        now.unread.insert(listed.id.clone(), unread);
    }

    fn change(&self, collection: &Collection, puts: &[Put], gone: &[String]) -> Result<(), rusqlite::Error> {
        let changed = self.store.with_index(collection, |index| index.change(&collection.name, puts, gone));
        changed.unwrap_or(Ok(()))
    }

    /// Makes the vectors of a document's chunks, if something makes any.
    fn embed(
        &self,
        collection: &Collection,
        now: &mut Documents,
        id: &str,
        chunks: &[chunk::Chunk],
        before: usize,
    ) {
        let Some(embedder) = &collection.embedder else { return };
        let known = Arc::make_mut(&mut now.vectors);
        (0..before).for_each(|at| drop(known.remove(&chunk_key(id, at))));
        if known.len() + chunks.len() > VECTORS {
            self.feed.log(&format!("{}/{id} has no vectors: there are {VECTORS} already", collection.name));
            return;
        }
        for (batch, texts) in chunks.chunks(EMBEDDED).enumerate() {
            let texts: Vec<&str> = texts.iter().map(|chunk| &*chunk.text).collect();
            let length = known.values().next().map(|vector| vector.len());
            let vectors = match embed::vectors(&**embedder, &texts, length) {
                Ok(vectors) => vectors,
                Err(reason) => {
                    return self.feed.log(&format!("{}/{id} has no vectors: {reason}", collection.name));
                }
            };
            for (at, vector) in vectors.into_iter().enumerate() {
                known.insert(chunk_key(id, batch * EMBEDDED + at), vector.into());
            }
        }
    }
}

impl Collection {
    /// The URI of a document.
    pub(super) fn document_uri(&self, id: &str) -> String {
        let mut uri = format!("{}doc/", self.uri);
        mcp_resources_provider_kit::path::append(&mut uri, id);
        uri
    }

    /// The URI of what a document was made of, if it has another.
    pub(super) fn source_uri(&self, id: &str) -> Option<String> {
        let mut uri = self.origin?.to_owned();
        mcp_resources_provider_kit::path::append(&mut uri, id);
        Some(uri)
    }

    /// Of what a canonical URI gives; `None` if it is none of this collection.
    fn digest(&self, documents: &Documents, uri: &str) -> Option<u64> {
        if let Some(id) = self.origin.and_then(|origin| uri.strip_prefix(origin)) {
            return documents
                .all
                .get(&*mcp_resources_provider_kit::path::decoded(id)?)
                .map(|document| document.digest);
        }
        let rest = match uri.strip_prefix(&*self.uri) {
            Some(rest) => rest,
            None => (self.uri.strip_suffix('/') == Some(uri)).then_some("")?,
        };
        Some(match rest.strip_prefix("doc/") {
            Some(id) => documents
                .all
                .get(&*mcp_resources_provider_kit::path::decoded(id)?)
                .map_or(0, |document| document.digest),
            None if rest.is_empty() => documents.lists,
            None => documents.generation,
        })
    }
}

impl Documents {
    /// The number of changes of the list.
    pub(super) fn lists(&self) -> u64 {
        self.lists
    }

    /// Whether the source did not answer the last time.
    pub(super) fn has_failed(&self) -> bool {
        self.fault.is_some()
    }
}
