//! What is known of all pages, and the thread that keeps it up to date.
//!
//! ```text
//!   a request, an interest ──▶ the thread begins ──walk──▶ pages read, indexed ──▶ Snapshot of each site, search index
//!                                   ▲   │ no request for a while, and no subscriber
//!     the watcher of folders ──touched──┘ └──▶ no thread, no watcher; the index stays, and is compared before it is used again
//! ```
//!
//! Law: what the watcher says is where to look. A page counts as changed if its bytes have another digest, and each
//! watched URI is compared by what a reader of it would get.

use super::page::{Description, DocsPage, INDEXED, page_digest, text_of};
use super::site::{self, DocsSite, PageTarget};
use crate::files::folder::{FileFacts, FolderChanges, FolderWatch, GoneFolder};
use crate::indexes::{IndexFile, Indexes};
use crate::search::{Index, Put, SearchTokens};
use crate::subscribers::{Subscribers, digest};
use mcp_resources_runtime::provider::Feed;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use unicode_normalization::UnicodeNormalization;

/// The most pages of a site.
const PAGES: usize = 100_000;
/// How many pages are put into the index at once, and how many bytes of them: few, so that little waits in memory and what is
/// indexed is soon found; not fewer, because the index merges what was put into it.
const BATCH: usize = 4_096;
const BATCH_BYTES: usize = 4 << 20;
/// The pause after each step of merging the index, for searches that wait for it.
const BREATH: Duration = Duration::from_millis(2);
/// How long the thread goes on after the last request, without anybody who watches.
const IDLE: Duration = Duration::from_secs(10);
/// Everything is compared so often in case the system has reported less than has happened; and at most this part of the time.
const COMPARE: Duration = Duration::from_secs(5);
const SHARE: u32 = 100;
/// How old what is known of a site may be that is not watched.
const UNWATCHED: Duration = Duration::from_secs(1);
/// How long changes are gathered.
const GATHER: Duration = Duration::from_millis(5);
/// How many paths may wait to be looked at; more are one walk.
const TOUCHED: usize = 1_024;
/// How many digests of what was last read are remembered, and faults that were logged.
const READS: usize = 4_096;

/// What sites have in common that were declared together.
#[derive(Debug)]
pub(super) struct SiteGroup {
    pub(super) list_max: usize,
    pub(super) max_bytes: Option<u64>,
    pub(super) watch: bool,
    /// How long a request waits for the first index.
    pub(super) patience: Duration,
    pub(super) index: Arc<IndexFile>,
}

/// What is known of a page.
#[derive(Clone, Debug)]
pub(super) struct PageEntry {
    pub(super) key: String,
    /// Where it is on disk.
    path: Vec<u8>,
    pub(super) description: Description,
    pub(super) size: u64,
    pub(super) modified: Option<String>,
    /// Of its bytes.
    digest: u64,
    /// Of each section, by its slug.
    sections: Vec<(String, u64)>,
    /// What the file was like; `None` if a later change need not show in that.
    stamp: Option<String>,
    /// Whether the index has it. If it could not be written, the next walk puts it there.
    is_indexed: bool,
}

/// All pages of a site at one time.
#[derive(Debug, Default)]
pub(super) struct SiteSnapshot {
    pub(super) pages: BTreeMap<String, Arc<PageEntry>>,
    /// Whether its folder was there.
    pub(super) is_there: bool,
    /// Whether all pages have been looked at.
    pub(super) is_whole: bool,
    /// The number of changes of any page, and of the list.
    generation: u64,
    lists: u64,
    order: OnceLock<Vec<Arc<PageEntry>>>,
}

impl SiteSnapshot {
    /// The pages by priority, then by name. One without a priority is in the middle.
    pub(super) fn by_priority(&self) -> &[Arc<PageEntry>] {
        self.order.get_or_init(|| {
            let mut pages: Vec<_> = self.pages.values().cloned().collect();
            pages.sort_by(|one, other| one.rank().cmp(&other.rank()));
            pages
        })
    }

    /// How often a page has changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// How often the list of pages has changed.
    pub(super) fn lists(&self) -> u64 {
        self.lists
    }

    /// A digest of what a reader gets; `None` if there is no such thing.
    fn digest(&self, target: &PageTarget) -> Option<u64> {
        match target {
            PageTarget::Contents => Some(self.lists),
            PageTarget::Search => Some(self.generation),
            PageTarget::Page(key, None) => Some(self.pages.get(key)?.digest),
            PageTarget::Page(key, Some(slug)) => {
                let sections = &self.pages.get(key)?.sections;
                let found = sections.iter().find(|(other, _)| other == slug).or_else(|| {
                    let normal: String = slug.nfc().collect();
                    sections.iter().find(|(other, _)| other.nfc().eq(normal.chars()))
                });
                found.map(|(_, digest)| *digest)
            }
        }
    }
}

#[cfg(test)]
impl SiteSnapshot {
    /// A whole site of pages with these keys and priorities.
    pub(super) fn with_pages(pages: impl Iterator<Item = (String, usize)>) -> Self {
        let entry = |(key, priority): (String, usize)| {
            let priority = u16::try_from(priority).ok();
            let description = Description { priority, ..Description::default() };
            let own = PageEntry {
                key: key.clone(),
                path: Vec::new(),
                description,
                size: 0,
                modified: None,
                digest: 0,
                sections: Vec::new(),
                stamp: None,
                is_indexed: true,
            };
            (key, Arc::new(own))
        };
        Self { pages: pages.map(entry).collect(), is_there: true, is_whole: true, ..Self::default() }
    }
}

impl PageEntry {
    /// Its place in lists.
    pub(super) fn rank(&self) -> (u16, &str) {
        (1_000 - self.description.priority.unwrap_or(500).min(1_000), &self.key)
    }

    /// The slugs of its sections.
    pub(super) fn slugs(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|(slug, _)| &**slug)
    }

    /// Whether the index has this file as it is.
    fn is_of(&self, path: &[u8], facts: &FileFacts) -> bool {
        self.is_indexed && self.stamp.is_some() && self.stamp == facts.stamp() && self.path == path
    }

    /// As the index keeps it for the next process.
    fn head(&self) -> String {
        let Description { title, description, priority, audience, lang } = &self.description;
        let audience: Vec<&str> = audience.iter().map(|audience| audience.as_str()).collect();
        let about = (title, description, priority, audience, lang);
        json!([about, self.size, self.modified, self.digest, self.sections, self.path]).to_string()
    }

    fn from_head(key: String, stamp: String, head: &str) -> Option<Self> {
        type About = (Option<String>, Option<String>, Option<u16>, Vec<String>, Option<String>);
        let (about, size, modified, digest, sections, path): (About, _, _, _, _, _) =
            serde_json::from_str(head).ok()?;
        let (title, description, priority, audience, lang) = about;
        let audience = audience
            .iter()
            .filter_map(|word| mcp_resources_engine::resource::Audience::parse(word))
            .collect();
        let description = Description { title, description, priority, audience, lang };
        let stamp = Some(stamp).filter(|stamp| !stamp.is_empty());
        Some(Self { key, path, description, size, modified, digest, sections, stamp, is_indexed: true })
    }
}

/// Shared by requests, the watcher and the thread.
#[derive(Debug)]
pub(super) struct SiteLibrary {
    state: Mutex<LibraryState>,
    changed: Condvar,
    indexes: Indexes,
}

#[derive(Debug)]
struct LibraryState {
    sites: Vec<Arc<SiteSnapshot>>,
    is_running: bool,
    /// Whether what is known is as new as it can be.
    is_ready: bool,
    compared: Option<Instant>,
    /// When a request last asked for what is known.
    used: Option<Instant>,
    subscribers: Subscribers,
    /// Whether one of them is new.
    has_news: bool,
    touched: HashSet<(String, Vec<u8>)>,
    is_moved: bool,
    /// Faults that were logged.
    faults: HashSet<u64>,
}

/// What the thread is to do.
struct IndexWork {
    walks: bool,
    touched: HashSet<(String, Vec<u8>)>,
}

impl SiteLibrary {
    pub(super) fn new(sites: &[Arc<DocsSite>]) -> Arc<Self> {
        let indexes = Indexes::new(sites.iter().map(|site| &site.group.index));
        let state = LibraryState {
            sites: sites.iter().map(|_| Arc::default()).collect(),
            is_running: false,
            is_ready: false,
            compared: None,
            used: None,
            subscribers: Subscribers::default(),
            has_news: false,
            touched: HashSet::new(),
            is_moved: false,
            faults: HashSet::new(),
        };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), indexes })
    }

    /// Asks the index of a group; `None` if there is none.
    pub(super) fn with_index<T>(
        &self,
        group: &Arc<SiteGroup>,
        ask: impl FnOnce(&mut Index) -> T,
    ) -> Option<T> {
        self.indexes.with(&group.index, ask)
    }

    /// What is known of each site. Waits for the thread, which begins if there is none, but no longer than a group's patience:
    /// then a snapshot may have a part of the pages. `None` if the request is cancelled, or there is no thread to be had.
    pub(super) fn snapshots(
        self: &Arc<Self>,
        sites: &[Arc<DocsSite>],
        feed: Option<Feed>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Option<Vec<Arc<SiteSnapshot>>> {
        let mut state = self.lock();
        let begun = Instant::now();
        let patience = sites.iter().map(|site| site.group.patience).min().unwrap_or_default();
        state.used = Some(begun);
        let is_old = state.compared.is_none_or(|then| then.elapsed() > UNWATCHED);
        if is_old && sites.iter().any(|site| !site.group.watch) {
            state.is_ready = false;
            state.is_moved = true;
        }
        let mut tries = 0;
        loop {
            if state.is_ready && state.is_running {
                return Some(state.sites.clone());
            }
            if !state.is_running {
                tries += 1;
                if tries > 2 || !self.begin(&mut state, sites, feed.clone()?) {
                    return None;
                }
            }
            self.changed.notify_all();
            if begun.elapsed() >= patience {
                if state.sites.iter().any(|site| !site.is_whole) {
                    state.subscribers.has_seen_a_part();
                }
                return Some(state.sites.clone());
            }
            if is_cancelled() {
                return None;
            }
            state = self
                .changed
                .wait_timeout(state, Duration::from_millis(50))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// A URI, or the lists for `None`, are watched from now on, or no longer.
    pub(super) fn interest(
        self: &Arc<Self>,
        sites: &[Arc<DocsSite>],
        uri: Option<&Arc<str>>,
        on: bool,
        feed: Option<Feed>,
    ) {
        let mut state = self.lock();
        state.subscribers.watch(uri, on);
        state.has_news |= on;
        if on
            && !state.is_running
            && let Some(feed) = feed
        {
            self.begin(&mut state, sites, feed);
        }
        self.changed.notify_all();
    }

    /// What was read at a canonical URI has this digest.
    pub(super) fn saw(&self, uri: &str, digest: u64) {
        self.lock().subscribers.has_read(uri, digest);
    }

    /// Whether a fault is to be logged: once for each.
    pub(super) fn is_new_fault(&self, fault: &str) -> bool {
        let mut state = self.lock();
        if state.faults.len() >= READS {
            state.faults.clear();
        }
        state.faults.insert(digest(fault.as_bytes()))
    }

    fn begin(self: &Arc<Self>, state: &mut LibraryState, sites: &[Arc<DocsSite>], feed: Feed) -> bool {
        state.is_running = true;
        state.is_ready = false;
        state.is_moved = true;
        let own = self.clone();
        let sites = sites.to_vec();
        let run = move || {
            let keeper = PageIndexer { library: &own, sites: &sites, feed: &feed, watch: FolderWatch::new() };
            // After a mistake of ours the next request begins anew; the panic hook has said where.
            let ended = catch_unwind(AssertUnwindSafe(|| keeper.run()));
            keeper.stop(ended.is_err());
        };
        let is_begun = std::thread::Builder::new().name("mcp-docs".into()).spawn(run).is_ok();
        state.is_running = is_begun;
        is_begun
    }

    fn lock(&self) -> MutexGuard<'_, LibraryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread.
struct PageIndexer<'k> {
    library: &'k Arc<SiteLibrary>,
    sites: &'k [Arc<DocsSite>],
    feed: &'k Feed,
    watch: FolderWatch,
}

/// What a look at some pages has found.
#[derive(Default)]
struct FoundPage {
    puts: Vec<Put>,
    pages: Vec<Arc<PageEntry>>,
    gone: Vec<String>,
    /// How many bytes were read.
    bytes: usize,
}

impl PageIndexer<'_> {
    fn run(&self) {
        self.open();
        self.set_watch(true);
        let mut pause = COMPARE;
        while let Some(work) = self.take(pause) {
            let begun = Instant::now();
            for (at, site) in self.sites.iter().enumerate() {
                if work.walks {
                    self.walk(at, site);
                } else {
                    let paths: Vec<_> = work.touched.iter().filter(|(name, _)| name == site.name()).collect();
                    self.look(at, site, paths.into_iter().map(|(_, path)| &**path));
                }
            }
            if work.walks {
                pause = COMPARE.max(begun.elapsed() * SHARE);
            }
            self.report(work.walks);
            self.merge();
        }
    }

    /// Merges what a walk has put into the indexes, until there is something else to do.
    fn merge(&self) {
        for site in self.sites {
            let merge = || matches!(self.library.with_index(&site.group, Index::merge), Some(Ok(true)));
            while self.is_at_rest() && merge() {
                std::thread::sleep(BREATH);
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        let state = self.library.lock();
        state.touched.is_empty() && !state.is_moved && !state.has_news && self.feed.is_alive()
    }

    fn set_watch(&self, on: bool) {
        let watched = self.sites.iter().filter(|site| site.group.watch);
        let folders: Vec<_> = watched.map(|site| site.folder.clone()).collect();
        if !folders.is_empty() {
            let hears = ChangeQueue { library: self.library.clone(), feed: self.feed.clone() };
            self.watch.set(on, &folders, on.then_some(hears));
        }
    }

    /// Nothing runs any longer. With the mount, what is known ends too.
    fn stop(&self, has_failed: bool) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.set_watch(false)));
        let is_over = !self.feed.is_alive() || has_failed;
        let mut state = self.library.lock();
        state.is_running = false;
        state.is_ready = false;
        if is_over {
            state.sites.iter_mut().for_each(|site| *site = Arc::default());
        }
        drop(state);
        if is_over {
            self.library.indexes.close();
        }
        self.library.changed.notify_all();
    }

    /// Waits until there is something to do; `None` if the thread is to end.
    fn take(&self, pause: Duration) -> Option<IndexWork> {
        let mut state = self.library.lock();
        loop {
            let is_wanted =
                !state.subscribers.is_empty() || state.used.is_some_and(|then| then.elapsed() < IDLE);
            if !is_wanted || !self.feed.is_alive() {
                // Under the same lock: a later request starts another thread.
                state.is_running = false;
                return None;
            }
            let is_due = state.compared.is_none_or(|then| then.elapsed() >= pause);
            if state.is_moved || state.has_news || is_due || !state.touched.is_empty() {
                let walks = state.is_moved || is_due;
                state.is_moved = false;
                if !walks && !state.touched.is_empty() {
                    let gathered = self.library.changed.wait_timeout(state, GATHER);
                    state = gathered.unwrap_or_else(PoisonError::into_inner).0;
                }
                let touched = std::mem::take(&mut state.touched);
                return Some(IndexWork { walks, touched });
            }
            let wait = Duration::from_millis(500);
            state = self.library.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Opens the indexes that are not open, and takes over what they know.
    fn open(&self) {
        for site in self.sites {
            let together = self.sites.iter().filter(|other| Arc::ptr_eq(&other.group, &site.group));
            let names: Vec<&str> = together.map(|site| site.name()).collect();
            self.library.indexes.open(&site.group.index, &names, &|what| self.feed.log(what));
        }
        for (at, site) in self.sites.iter().enumerate() {
            let mut pages = BTreeMap::new();
            let known = self.library.with_index(&site.group, |index| {
                index.known(site.name(), |key, stamp, head| {
                    if let Some(entry) = PageEntry::from_head(key.clone(), stamp, &head) {
                        pages.insert(key, Arc::new(entry));
                    }
                })
            });
            if !matches!(known, Some(Ok(()))) {
                continue;
            }
            let mut state = self.library.lock();
            if let Some(snapshot) = state.sites.get_mut(at).filter(|snapshot| snapshot.pages.is_empty()) {
                *snapshot = Arc::new(SiteSnapshot { pages, is_there: true, ..SiteSnapshot::default() });
            }
        }
    }

    fn snapshot(&self, at: usize) -> Arc<SiteSnapshot> {
        self.library.lock().sites.get(at).cloned().unwrap_or_default()
    }

    /// Compares all pages of a site with what is known of them.
    fn walk(&self, at: usize, site: &DocsSite) {
        let before = self.snapshot(at);
        let mut files: BTreeMap<String, (Vec<u8>, FileFacts)> = BTreeMap::new();
        let walked = site.folder.walk(&mut |path, facts| {
            if site::is_page(&path) {
                let key = site::key(&path);
                // Of two names that normalise alike, the one that is normal already is served.
                if !files.contains_key(&key) || path == key.as_bytes() {
                    files.insert(key, (path, facts));
                }
            }
            files.len() < PAGES && self.feed.is_alive()
        });
        site.folder.take_faults().iter().for_each(|fault| self.feed.log(fault));
        match walked {
            Ok(true) => {}
            Ok(false) => {
                self.log_once(&format!(
                    "the site {:?} has more than {PAGES} pages, or too many directories; the rest is not searched",
                    site.name()
                ));
            }
            Err(GoneFolder) => {
                let dir = site.folder.dir().display();
                self.log_once(&format!("the site {:?} cannot be opened: {dir}", site.name()));
                let now = SiteSnapshot { is_there: false, is_whole: true, ..copy(&before) };
                self.publish(at, now, before.is_there);
                return;
            }
        }
        let mut now = SiteSnapshot { is_there: true, ..copy(&before) };
        let gone = before.pages.keys().filter(|key| !files.contains_key(*key)).cloned().collect();
        let mut found = FoundPage { gone, ..FoundPage::default() };
        for (key, (path, facts)) in files {
            let old = before.pages.get(&key);
            if old.is_some_and(|old| old.is_of(&path, &facts)) {
                continue;
            }
            self.read(site, key, path, old, &mut found);
            if found.puts.len() >= BATCH || found.bytes >= BATCH_BYTES {
                self.apply(site, &mut now, &mut found);
                if !before.is_whole {
                    self.publish(at, copy(&now), false);
                }
            }
            if !self.feed.is_alive() {
                return;
            }
        }
        self.apply(site, &mut now, &mut found);
        if now.pages.is_empty() {
            let dir = site.folder.dir().display();
            self.log_once(&format!(
                "the site {:?} has no page: {dir} has no .md or .markdown file to serve",
                site.name()
            ));
        }
        now.is_whole = true;
        self.publish(at, now, !before.is_there);
    }

    /// Looks at some paths of a site.
    fn look<'p>(&self, at: usize, site: &DocsSite, paths: impl Iterator<Item = &'p [u8]>) {
        let before = self.snapshot(at);
        let mut found = FoundPage::default();
        for path in paths {
            if site::is_page(path) {
                let key = site::key(path);
                let old = before.pages.get(&key);
                // The other file of a name that normalises alike is served.
                if old.is_none_or(|old| old.path == path) {
                    self.read(site, key, path.to_vec(), old, &mut found);
                }
            } else if site.folder.is_dir(path) != Some(false) && is_above(&before, path) {
                // A directory with pages is gone, or another one now.
                return self.walk(at, site);
            }
        }
        if found.pages.is_empty() && found.gone.is_empty() {
            return;
        }
        let mut now = copy(&before);
        self.apply(site, &mut now, &mut found);
        self.publish(at, now, false);
    }

    /// Reads a page, if it has changed.
    fn read(
        &self,
        site: &DocsSite,
        key: String,
        path: Vec<u8>,
        old: Option<&Arc<PageEntry>>,
        found: &mut FoundPage,
    ) {
        let read = site.folder.read(&path, INDEXED + 1, &|_| true, &|_| Ok(()));
        let Ok((mut bytes, facts)) = read else {
            if old.is_some() {
                found.gone.push(key);
            }
            return;
        };
        found.bytes += bytes.len();
        let own = page_digest(&bytes, &facts);
        let size = facts.size;
        let modified = facts.modified();
        let stamp = facts.stamp();
        let is_same = |old: &&Arc<PageEntry>| old.digest == own && old.path == path && old.size == size;
        if let Some(old) = old.filter(is_same).filter(|old| old.is_indexed) {
            found.pages.push(Arc::new(PageEntry { modified, stamp, ..PageEntry::clone(old) }));
            return;
        }
        let is_cut = bytes.len() as u64 > INDEXED;
        if is_cut {
            self.log_once(&format!(
                "{}/{key} is larger than {INDEXED} bytes; what follows is not searched",
                site.name()
            ));
            bytes.truncate(INDEXED as usize);
        }
        let text = text_of(&bytes, is_cut);
        let page = text.map_or_else(|| DocsPage::without_sections(&bytes), DocsPage::parse);
        if let Some(fault) = &page.fault {
            self.log_once(&format!("{}/{key}: {fault}", site.name()));
        }
        let sections = page.sections.iter().filter(|section| !section.slug.is_empty());
        let sections = sections
            .map(|section| {
                let own = text.and_then(|text| text.get(section.bytes.clone())).unwrap_or_default();
                (section.slug.clone(), digest(own.as_bytes()))
            })
            .collect();
        let description = page.description.clone();
        let entry = PageEntry {
            key,
            path,
            description,
            size,
            modified,
            digest: own,
            sections,
            stamp,
            is_indexed: true,
        };
        found.puts.push(put(&entry, &page));
        found.pages.push(Arc::new(entry));
    }

    /// Takes over what was found, in the index too.
    fn apply(&self, site: &DocsSite, now: &mut SiteSnapshot, found: &mut FoundPage) {
        let FoundPage { puts, mut pages, gone, .. } = std::mem::take(found);
        if pages.is_empty() && gone.is_empty() {
            return;
        }
        let is_other = !puts.is_empty() || !gone.is_empty();
        let mut is_listed_otherwise = !gone.is_empty();
        if is_other {
            let changed =
                self.library.with_index(&site.group, |index| index.change(site.name(), &puts, &gone));
            if let Some(Err(error)) = changed {
                self.log_once(&format!(
                    "the search index could not be written: {error}; this is tried again, and searches lack what has changed"
                ));
                let lacking: HashSet<&str> = puts.iter().map(|put| &*put.key).collect();
                let lacking = pages.iter_mut().filter(|page| lacking.contains(&*page.key));
                lacking.for_each(|page| Arc::make_mut(page).is_indexed = false);
            }
        }
        for key in gone {
            now.pages.remove(&key);
        }
        for page in pages {
            let old = now.pages.insert(page.key.clone(), page.clone());
            is_listed_otherwise |= old.is_none_or(|old| old.description != page.description);
        }
        now.generation += u64::from(is_other);
        now.lists += u64::from(is_listed_otherwise);
    }

    fn publish(&self, at: usize, now: SiteSnapshot, is_moved: bool) {
        let mut state = self.library.lock();
        if let Some(snapshot) = state.sites.get_mut(at) {
            let lists = now.lists + u64::from(is_moved);
            let generation = now.generation + u64::from(is_moved);
            *snapshot = Arc::new(SiteSnapshot { lists, generation, ..now });
        }
    }

    /// Notifies the subscribers of what has changed.
    fn report(&self, walked: bool) {
        let mut state = self.library.lock();
        if walked {
            state.compared = Some(Instant::now());
        }
        state.is_ready = true;
        state.has_news = false;
        let sites = state.sites.clone();
        let lists = sites.iter().map(|site| site.lists).fold(0, u64::wrapping_add);
        let report = state.subscribers.compare(lists, |uri| self.digest(&sites, uri));
        drop(state);
        self.library.changed.notify_all();
        report.send(self.feed);
    }

    /// Of what a reader of a URI gets now; 0 for nothing.
    fn digest(&self, sites: &[Arc<SiteSnapshot>], uri: &str) -> u64 {
        let found = self.sites.iter().zip(sites).find_map(|(site, snapshot)| {
            let target = site.target(uri, |key| snapshot.pages.contains_key(key))?;
            snapshot.digest(&target)
        });
        found.unwrap_or_default()
    }

    fn log_once(&self, what: &str) {
        if self.library.is_new_fault(what) {
            self.feed.log(what);
        }
    }
}

/// Leaves what the watcher reports for the thread.
#[derive(Clone)]
struct ChangeQueue {
    library: Arc<SiteLibrary>,
    feed: Feed,
}

impl FolderChanges for ChangeQueue {
    fn touched(&self, folder: &str, path: &[u8]) {
        let mut state = self.library.lock();
        if state.touched.len() < TOUCHED {
            state.touched.insert((folder.to_owned(), path.to_vec()));
        } else {
            state.is_moved = true;
        }
        self.library.changed.notify_all();
    }

    fn moved(&self) {
        self.library.lock().is_moved = true;
        self.library.changed.notify_all();
    }

    fn log(&self, what: &str) {
        self.feed.log(what);
    }

    fn is_alive(&self) -> bool {
        self.feed.is_alive()
    }
}

/// The same pages, to be changed.
fn copy(snapshot: &SiteSnapshot) -> SiteSnapshot {
    let SiteSnapshot { pages, is_there, is_whole, generation, lists, .. } = snapshot;
    SiteSnapshot {
        pages: pages.clone(),
        is_there: *is_there,
        is_whole: *is_whole,
        generation: *generation,
        lists: *lists,
        order: OnceLock::new(),
    }
}

/// Whether a page is beneath a directory.
fn is_above(snapshot: &SiteSnapshot, directory: &[u8]) -> bool {
    let is_beneath = |path: &[u8]| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"));
    snapshot.pages.values().any(|page| is_beneath(&page.path))
}

/// What is searched of a page.
fn put(entry: &PageEntry, page: &DocsPage) -> Put {
    let Description { title, description, lang, .. } = &entry.description;
    let sections = || page.sections.iter();
    let headings: Vec<&str> =
        sections().map(|section| &*section.heading).chain(description.iter().map(|text| &**text)).collect();
    let texts: Vec<&str> = sections().map(|section| &*section.text).collect();
    let body: Vec<_> = sections().map(|section| (&section.slug, &section.heading, &section.text)).collect();
    Put {
        key: entry.key.clone(),
        lang: lang.as_ref().map(|lang| lang.to_ascii_lowercase()),
        stamp: entry.stamp.clone().unwrap_or_default(),
        head: entry.head(),
        body: json!(body).to_string(),
        title: SearchTokens::from_text(title.as_deref().unwrap_or_default()).into_folded(),
        headings: SearchTokens::from_text(&headings.join("\n")).into_folded(),
        text: SearchTokens::from_text(&texts.join("\n")).into_folded(),
    }
}
