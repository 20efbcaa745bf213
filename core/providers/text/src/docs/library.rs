//! The known pages of all sites, and the thread that keeps them up to date.
//!
//! ```text
//!   a request, an interest ──▶ the thread begins ──walk──▶ pages read, indexed ──▶ Snapshot of each site, search index
//!                                   ▲   │ no request for a while, and no subscriber, also in the middle of a walk
//!     the watcher of folders ──touched──┘ └──▶ no thread, no watcher; the index stays, and is compared before it is used again
//! ```
//!
//! Law: what the watcher says is where to look. A page counts as changed if its bytes have another digest, and each
//! watched URI is compared by what a reader of it would get.

use super::page::{Description, DocsPage, INDEXED, page_digest, text_of};
use super::site::{self, DocsSite, PageTarget, SiteGroup};
use crate::indexes::Indexes;
use crate::search::{Index, Put, SearchTokens};
use mcp_resources_provider_files::folder::{FileFacts, Folder, FolderChanges, FolderWatch, GoneFolder};
use mcp_resources_provider_kit::digest::digest;
use mcp_resources_provider_kit::tracker::{LISTS, TrackedSource, Tracker, TrackerWork};
use mcp_resources_runtime::provider::Feed;
use mcp_resources_runtime::sync::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};
use unicode_normalization::UnicodeNormalization;

/// The most pages of a site.
const PAGES: usize = 100_000;
/// Maximum number of pages, and of their bytes, put into the index at once: few, so that little waits in memory and a page is
/// soon found; not fewer, because the index merges its parts.
const BATCH: usize = 4_096;
const BATCH_BYTES: usize = 4 << 20;
/// The pause after each step of merging the index, for searches that wait for it.
const BREATH: Duration = Duration::from_millis(2);
/// Time after the last request until the thread ends, without a subscriber.
const IDLE: Duration = Duration::from_secs(10);
/// Everything is compared so often in case the system has reported less than has happened; and at most this part of the time.
const COMPARE: Duration = Duration::from_secs(5);
const SHARE: u32 = 100;
/// Maximum age of a snapshot of an unwatched site.
const UNWATCHED: Duration = Duration::from_secs(1);
/// Time in which changes are gathered.
const GATHER: Duration = Duration::from_millis(5);
/// Maximum number of paths that wait to be looked at; more cause one walk.
const TOUCHED: usize = 1_024;
/// Maximum number of faults remembered as logged.
const FAULTS: usize = 4_096;
/// The digest of what is not there.
const ABSENT: u64 = 0;

/// The facts about a page.
#[derive(Clone, Debug)]
pub(super) struct PageEntry {
    pub(super) key: String,
    /// Its path on disk.
    path: Vec<u8>,
    pub(super) description: Description,
    pub(super) size: u64,
    pub(super) modified: Option<String>,
    /// When its file was written; `None` if another process has read it.
    written: Option<SystemTime>,
    /// Of its bytes.
    digest: u64,
    /// Of each section, by its slug.
    sections: Vec<(String, u64)>,
    /// The facts that identify the file's state; `None` if a later change may leave them as they are.
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

    /// The number of changes of pages.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of changes of the list of pages.
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
                written: None,
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
        Some(Self {
            key,
            path,
            description,
            size,
            modified,
            written: None,
            digest,
            sections,
            stamp,
            is_indexed: true,
        })
    }
}

/// Finds the pages of all sites. Shared by requests, the watcher and the thread.
#[derive(Debug)]
pub(super) struct SiteLibrary {
    sites: Vec<Arc<DocsSite>>,
    indexes: Indexes,
    inbox: Mutex<SiteInbox>,
}

/// Work for the thread.
#[derive(Debug, Default)]
struct SiteInbox {
    touched: HashSet<(String, Vec<u8>)>,
    /// Whether all pages are to be compared.
    is_moved: bool,
    /// When all pages were last compared.
    compared: Option<Instant>,
    /// Faults that were logged.
    faults: HashSet<u64>,
}

/// The state of the thread.
pub(super) struct SiteWorker {
    watch: FolderWatch,
    folders: Vec<Folder>,
    /// The time between two comparisons of everything.
    pause: Duration,
}

impl SiteLibrary {
    pub(super) fn new(sites: &[Arc<DocsSite>]) -> Self {
        let indexes = Indexes::new(sites.iter().map(|site| &site.group.index));
        Self { sites: sites.to_vec(), indexes, inbox: Mutex::default() }
    }

    /// Asks the index of a group; `None` if there is none.
    pub(super) fn with_index<T>(
        &self,
        group: &Arc<SiteGroup>,
        ask: impl FnOnce(&mut Index) -> T,
    ) -> Option<T> {
        self.indexes.with(&group.index, ask)
    }

    /// Whether a site that is not watched may have changed since it was last compared. Then the next refresh compares.
    pub(super) fn is_outdated(&self) -> bool {
        let mut inbox = self.inbox.lock();
        let is_old = inbox.compared.is_none_or(|then| then.elapsed() > UNWATCHED);
        let is_outdated = is_old && self.sites.iter().any(|site| !site.group.watch);
        inbox.is_moved |= is_outdated;
        is_outdated
    }

    /// Whether a fault is to be logged: once for each.
    pub(super) fn is_new_fault(&self, fault: &str) -> bool {
        let mut inbox = self.inbox.lock();
        if inbox.faults.len() >= FAULTS {
            inbox.faults.clear();
        }
        inbox.faults.insert(digest(fault.as_bytes()))
    }

    /// The number of changes of the lists of all sites.
    pub(super) fn lists(snapshots: &[Arc<SiteSnapshot>]) -> u64 {
        snapshots.iter().map(|site| site.lists).fold(0, u64::wrapping_add)
    }

    /// The target of a canonical URI, with its site.
    fn target<'s>(
        &self,
        snapshots: &'s [Arc<SiteSnapshot>],
        uri: &str,
    ) -> Option<(&'s SiteSnapshot, PageTarget)> {
        self.sites.iter().zip(snapshots).find_map(|(site, snapshot)| {
            let target = site.target(uri, |key| snapshot.pages.contains_key(key))?;
            Some((&**snapshot, target))
        })
    }

    /// Opens the indexes that are not open, and takes over what they know.
    fn open(&self, tracker: &Tracker<Self>, feed: &Feed) {
        for site in &self.sites {
            let together = self.sites.iter().filter(|other| Arc::ptr_eq(&other.group, &site.group));
            let names: Vec<&str> = together.map(|site| site.name()).collect();
            self.indexes.open(&site.group.index, &names, &|what| feed.log(what));
        }
        let mut snapshots = Vec::clone(&tracker.current());
        for (site, snapshot) in self.sites.iter().zip(&mut snapshots) {
            let mut pages = BTreeMap::new();
            let known = self.with_index(&site.group, |index| {
                index.known(site.name(), |key, stamp, head| {
                    if let Some(entry) = PageEntry::from_head(key.clone(), stamp, &head) {
                        pages.insert(key, Arc::new(entry));
                    }
                })
            });
            if matches!(known, Some(Ok(()))) && snapshot.pages.is_empty() {
                *snapshot = Arc::new(SiteSnapshot { pages, is_there: true, ..SiteSnapshot::default() });
            }
        }
        tracker.publish(snapshots);
    }
}

impl TrackedSource for SiteLibrary {
    const THREAD: &'static str = "mcp-docs";
    const IDLE: Duration = IDLE;

    type Snapshot = Vec<Arc<SiteSnapshot>>;
    type Digest = u64;
    type Worker = SiteWorker;

    fn empty(&self) -> Self::Snapshot {
        self.sites.iter().map(|_| Arc::default()).collect()
    }

    fn begin(&self, tracker: &Arc<Tracker<Self>>, feed: &Feed) -> SiteWorker {
        self.inbox.lock().is_moved = true;
        self.open(tracker, feed);
        let watched = self.sites.iter().filter(|site| site.group.watch);
        let folders: Vec<_> = watched.map(|site| site.folder.clone()).collect();
        let watch = FolderWatch::default();
        if !folders.is_empty() {
            watch.set(true, &folders, Some(ChangeQueue { tracker: tracker.clone(), feed: feed.clone() }));
        }
        SiteWorker { watch, folders, pause: COMPARE }
    }

    fn refresh(&self, worker: &mut SiteWorker, work: &TrackerWork<'_, Self>) -> Option<Duration> {
        let begun = Instant::now();
        let (walks, is_touched) = {
            let mut inbox = self.inbox.lock();
            let is_due = inbox.compared.is_none_or(|then| then.elapsed() >= worker.pause);
            (std::mem::take(&mut inbox.is_moved) || is_due, !inbox.touched.is_empty())
        };
        if is_touched && !walks {
            std::thread::sleep(GATHER);
        }
        let touched = std::mem::take(&mut self.inbox.lock().touched);
        let indexer = PageIndexer { library: self, work };
        let is_done = self.sites.iter().enumerate().all(|(at, site)| {
            if walks {
                return indexer.walk(at, site);
            }
            let paths = touched.iter().filter(|(name, _)| name == site.name());
            indexer.look(at, site, paths.map(|(_, path)| &**path))
        });
        let mut inbox = self.inbox.lock();
        if !is_done {
            inbox.is_moved = true;
            return None;
        }
        if walks {
            worker.pause = COMPARE.max(begun.elapsed() * SHARE);
            inbox.compared = Some(Instant::now());
        }
        Some(worker.pause.saturating_sub(inbox.compared.map_or(worker.pause, |then| then.elapsed())))
    }

    fn digest(&self, snapshots: &Self::Snapshot, uri: &str) -> Option<u64> {
        if uri == LISTS {
            return Some(Self::lists(snapshots));
        }
        let target = self.target(snapshots, uri);
        Some(target.and_then(|(snapshot, target)| snapshot.digest(&target)).unwrap_or(ABSENT))
    }

    fn changed_at(&self, snapshots: &Self::Snapshot, uri: &str) -> Option<SystemTime> {
        match self.target(snapshots, uri)? {
            (snapshot, PageTarget::Page(key, _)) => snapshot.pages.get(&key)?.written,
            _ => None,
        }
    }

    fn is_whole(&self, snapshots: &Self::Snapshot) -> bool {
        snapshots.iter().all(|site| site.is_whole)
    }

    /// Merges what a walk has put into the indexes.
    fn tidy(&self, work: &TrackerWork<'_, Self>) {
        for site in &self.sites {
            let merge = || matches!(self.with_index(&site.group, Index::merge), Some(Ok(true)));
            while work.is_at_rest() && work.is_wanted() && merge() {
                std::thread::sleep(BREATH);
            }
        }
    }

    fn forget(&self) {
        let mut inbox = self.inbox.lock();
        inbox.compared = None;
        inbox.touched.clear();
        drop(inbox);
        self.indexes.close();
    }
}

impl Drop for SiteWorker {
    fn drop(&mut self) {
        let end = || self.watch.set(false, &self.folders, None::<ChangeQueue>);
        let _ = catch_unwind(AssertUnwindSafe(end));
    }
}

/// One refresh.
struct PageIndexer<'w> {
    library: &'w SiteLibrary,
    work: &'w TrackerWork<'w, SiteLibrary>,
}

/// The result of a look at some pages.
#[derive(Default)]
struct FoundPage {
    puts: Vec<Put>,
    pages: Vec<Arc<PageEntry>>,
    gone: Vec<String>,
    /// The number of bytes read.
    bytes: usize,
}

impl PageIndexer<'_> {
    fn snapshot(&self, at: usize) -> Arc<SiteSnapshot> {
        self.work.current().get(at).cloned().unwrap_or_default()
    }

    /// Compares all pages of a site with what is known of them. `false` if it was left off; the pages that were read until
    /// then stay in the index.
    fn walk(&self, at: usize, site: &DocsSite) -> bool {
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
            files.len() < PAGES && self.work.is_wanted()
        });
        if !self.work.is_wanted() {
            // What was not seen need not be gone.
            return false;
        }
        site.folder.take_faults().iter().for_each(|fault| self.work.feed.log(fault));
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
                return true;
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
            if !self.work.is_wanted() {
                self.apply(site, &mut now, &mut found);
                self.publish(at, now, false);
                return false;
            }
        }
        self.apply(site, &mut now, &mut found);
        if now.pages.is_empty() {
            let dir = site.folder.dir().display();
            self.log_once(&format!(
                "the site {:?} has no page: {dir} has no .md, .mdx or .markdown file to serve",
                site.name()
            ));
        }
        now.is_whole = true;
        self.publish(at, now, !before.is_there);
        true
    }

    /// Looks at some paths of a site. `false` if it was left off.
    fn look<'p>(&self, at: usize, site: &DocsSite, paths: impl Iterator<Item = &'p [u8]>) -> bool {
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
            return true;
        }
        let mut now = copy(&before);
        self.apply(site, &mut now, &mut found);
        self.publish(at, now, false);
        true
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
        let written = facts.written();
        let stamp = facts.stamp();
        let is_same = |old: &&Arc<PageEntry>| old.digest == own && old.path == path && old.size == size;
        if let Some(old) = old.filter(is_same).filter(|old| old.is_indexed) {
            found.pages.push(Arc::new(PageEntry { modified, written, stamp, ..PageEntry::clone(old) }));
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
        let page = match text {
            Some(text) if site::is_mdx(&path) => DocsPage::parse_mdx(text),
            Some(text) => DocsPage::parse(text),
            None => DocsPage::without_sections(&bytes),
        };
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
            written,
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
        let mut snapshots = Vec::clone(&self.work.current());
        if let Some(snapshot) = snapshots.get_mut(at) {
            let lists = now.lists + u64::from(is_moved);
            let generation = now.generation + u64::from(is_moved);
            *snapshot = Arc::new(SiteSnapshot { lists, generation, ..now });
        }
        self.work.publish(snapshots);
    }

    fn log_once(&self, what: &str) {
        if self.library.is_new_fault(what) {
            self.work.feed.log(what);
        }
    }
}

/// Leaves what the watcher reports for the thread.
#[derive(Clone)]
struct ChangeQueue {
    tracker: Arc<Tracker<SiteLibrary>>,
    feed: Feed,
}

impl FolderChanges for ChangeQueue {
    fn touched(&self, folder: &str, path: &[u8]) {
        let mut inbox = self.tracker.source.inbox.lock();
        if inbox.touched.len() < TOUCHED {
            inbox.touched.insert((folder.to_owned(), path.to_vec()));
        } else {
            inbox.is_moved = true;
        }
        drop(inbox);
        self.tracker.wake(false);
    }

    fn moved(&self) {
        self.tracker.source.inbox.lock().is_moved = true;
        self.tracker.wake(false);
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

/// The searchable text of a page.
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
