//! The list of the files of all roots: a lazy walk, one page at a time.
//!
//! ```text
//!   a directory ──▶ its files by name ──▶ its subdirectories by name, each in the same way
//!   cursor = files so far . directories so far : root / path        `…/` begins with that directory, else behind that file
//! ```
//!
//! Law: a page holds in memory its own entries, the first names of one directory, and a limited number of subdirectory
//! names for each level. The cursor is a position in an order, so files that come and go move nothing. At most
//! `list_max` files are listed of the roots that were declared together, and a walk visits a limited number of
//! directories.

use super::contents::{file_item, resolve};
use super::root_directory::{DirectoryEntry, FileKind, Missing, RootDirectory};
use super::rules::Chain;
use super::select::Smallest;
use super::tree::{Tree, join};
use mcp_resources_engine::connection::{Item, ListPage};
use mcp_resources_engine::resource::Resource;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::uri_path;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of directories that one page visits.
const VISITS: usize = 500;
/// Maximum number of directories that a whole walk visits.
const ALL_VISITS: usize = 100_000;
/// Maximum number of subdirectories of one directory that are held in memory.
const BATCH: usize = 256;

/// The parts of a request that a page of a list needs.
pub(super) struct FileListContext<'a> {
    pub(super) cursor: Option<&'a str>,
    pub(super) limit: usize,
    pub(super) permits: &'a dyn Fn(&str) -> bool,
    pub(super) is_cancelled: &'a dyn Fn() -> bool,
}

/// The position of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WalkPosition {
    /// The number of files already listed of the roots that were declared together with this one.
    files: usize,
    directories: usize,
    root: String,
    at: ListPosition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ListPosition {
    /// Before the first file of this directory.
    Directory(Vec<u8>),
    /// Behind this file.
    File(Vec<u8>),
}

/// A page of the list. A root that cannot be opened now is named as missing.
pub(super) fn page(trees: &[Arc<Tree>], asked: &FileListContext<'_>) -> ListPage {
    let first = trees.first().map(|tree| WalkPosition::begin(tree, 0));
    let mut position = match asked.cursor {
        None => first,
        Some(cursor) => WalkPosition::parse(cursor),
    };
    let mut page = ListPage::default();
    let mut visits = 0;
    while let Some(now) = position {
        let Some(place) = trees.iter().position(|tree| *tree.name() == *now.root) else { break };
        let tree = &trees[place];
        let mut walk = FileWalk { tree, asked, page: &mut page, now, visits, stack: Vec::new() };
        let end = tree.open().and_then(|root| walk.run(&root));
        visits = walk.visits;
        let now = walk.now;
        position = match end {
            Ok(WalkEnd::Full) => {
                page.next = Some(now.cursor());
                return page;
            }
            Ok(WalkEnd::Done) => after(trees, place, &now),
            Err(_) => {
                page.missing.push(tree.name().to_owned());
                after(trees, place, &now)
            }
        };
    }
    page
}

/// The beginning of the root behind the one at `place`.
fn after(trees: &[Arc<Tree>], place: usize, now: &WalkPosition) -> Option<WalkPosition> {
    let next = trees.get(place + 1)?;
    let is_together = Arc::ptr_eq(next.settings(), trees.get(place)?.settings());
    let mut begin = WalkPosition::begin(next, now.directories);
    if is_together {
        begin.files = now.files;
    }
    Some(begin)
}

/// Why a walk has stopped.
enum WalkEnd {
    /// The page is full, or has cost enough.
    Full,
    /// There is nothing more in this root, or nothing more may be listed of it.
    Done,
}

/// The walk through one root, for one page.
struct FileWalk<'w> {
    tree: &'w Tree,
    asked: &'w FileListContext<'w>,
    page: &'w mut ListPage,
    now: WalkPosition,
    visits: usize,
    stack: Vec<WalkFrame>,
}

/// A directory whose files were listed.
struct WalkFrame {
    path: Vec<u8>,
    chain: Chain,
    /// The next subdirectories.
    batch: VecDeque<Vec<u8>>,
    /// Behind which subdirectory to look for more; `None` if the batch has the last.
    more: Option<Vec<u8>>,
}

impl FileWalk<'_> {
    fn run(&mut self, root: &RootDirectory) -> Result<WalkEnd, Missing> {
        let at = self.now.at.clone();
        if let Some(end) = self.resume(root, &at)? {
            return Ok(end);
        }
        while let Some(frame) = self.stack.last_mut() {
            let Some(name) = frame.batch.pop_front() else {
                let Some(from) = frame.more.take() else {
                    self.stack.pop();
                    continue;
                };
                let path = frame.path.clone();
                let chain = frame.chain.clone();
                // One that is gone meanwhile has no more.
                if let Ok((_, (names, more), _)) = self.scan(root, &path, &chain, None, &from)
                    && let Some(frame) = self.stack.last_mut()
                {
                    frame.fill(names, more);
                }
                continue;
            };
            let path = join(&frame.path, &name);
            let Some(chain) = self.tree.below(root, frame.chain.clone(), &path) else { continue };
            if let Some(end) = self.enter(root, path, chain, &[])? {
                return Ok(end);
            }
        }
        Ok(WalkEnd::Done)
    }

    /// Puts the directories of the position on the stack, as far as they are still there, and lists the files of the last.
    fn resume(&mut self, root: &RootDirectory, at: &ListPosition) -> Result<Option<WalkEnd>, Missing> {
        let (directory, file) = match at {
            ListPosition::Directory(path) => (&**path, &b""[..]),
            ListPosition::File(path) => match path.iter().rposition(|byte| *byte == b'/') {
                Some(slash) => (&path[..slash], &path[slash + 1..]),
                None => (&b""[..], &**path),
            },
        };
        let Some(mut chain) = self.tree.chain(root, b"") else { return Ok(Some(WalkEnd::Done)) };
        let mut path = Vec::new();
        for name in super::root_directory::components(directory) {
            let below = join(&path, name);
            let frame =
                WalkFrame { path, chain: chain.clone(), batch: VecDeque::new(), more: Some(name.to_vec()) };
            self.stack.push(frame);
            let Some(next) = self.tree.below(root, chain, &below) else { return Ok(None) };
            chain = next;
            path = below;
        }
        self.enter(root, path, chain, file)
    }

    /// Lists the files of a directory behind `after`, and pushes it on the stack.
    fn enter(
        &mut self,
        root: &RootDirectory,
        path: Vec<u8>,
        chain: Chain,
        after: &[u8],
    ) -> Result<Option<WalkEnd>, Missing> {
        let list_max = self.tree.settings().list_max;
        if self.now.files >= list_max || self.now.directories >= ALL_VISITS {
            return Ok(Some(WalkEnd::Done));
        }
        if self.visits >= VISITS || self.page.items.len() >= self.asked.limit {
            if after.is_empty() {
                self.now.at = ListPosition::Directory(path);
            }
            return Ok(Some(WalkEnd::Full));
        }
        self.visits += 1;
        self.now.directories += 1;
        let room = (self.asked.limit - self.page.items.len()).min(list_max - self.now.files);
        let (items, (names, more), has_more) = match self.scan(root, &path, &chain, Some((after, room)), &[])
        {
            Ok(found) => found,
            // It is gone, or not to be read: the rest is listed.
            Err(_) if !path.is_empty() => return Ok(None),
            Err(missing) => return Err(missing),
        };
        self.now.files += items.len();
        for (own, item) in items {
            self.page.items.push(item);
            self.now.at = ListPosition::File(own);
        }
        if has_more {
            let is_over = self.now.files >= list_max;
            return Ok(Some(if is_over { WalkEnd::Done } else { WalkEnd::Full }));
        }
        let mut frame = WalkFrame { path, chain, batch: VecDeque::new(), more: None };
        frame.fill(names, more);
        self.stack.push(frame);
        Ok(None)
    }

    /// One pass over a directory: its files behind a name, as many as there is room for, and its next subdirectories.
    #[expect(
        clippy::type_complexity,
        reason = "files with their paths, subdirectories, and whether there are more of either"
    )]
    fn scan(
        &self,
        root: &RootDirectory,
        path: &[u8],
        chain: &Chain,
        files: Option<(&[u8], usize)>,
        directories: &[u8],
    ) -> Result<(Vec<(Vec<u8>, Item)>, (Vec<Vec<u8>>, bool), bool), Missing> {
        let dir = root.open(path)?.into_dir().ok_or(Missing::NotFound)?;
        let (after, room) = files.unwrap_or((&[], 0));
        let mut some = Smallest::new(room + 1);
        let mut below = Smallest::new(BATCH);
        for DirectoryEntry { name, kind } in dir.entries()? {
            if (self.asked.is_cancelled)() {
                return Err(Missing::NotFound);
            }
            let own = join(path, &name);
            let is_file = matches!(kind, FileKind::File | FileKind::Link) && files.is_some();
            if kind == FileKind::Directory {
                if *name > *directories && below.wants(&name) && self.tree.admits_entry(chain, &own, true) {
                    below.push(name, true);
                }
            } else if is_file
                && *name > *after
                && some.wants(&name)
                && self.is_listed(root, chain, &own, kind)
            {
                some.push(name, false);
            }
        }
        // What is not served is no reason for another page.
        let mut some = some.into_sorted().0;
        let has_more = some.len() > room;
        some.truncate(room);
        let mut items = Vec::with_capacity(some.len());
        for (name, _) in some {
            let own = join(path, &name);
            let facts = match dir.stat(&name) {
                Some(facts) if facts.kind == FileKind::Link => {
                    root.open(&own).ok().map(|opened| opened.facts)
                }
                other => other,
            };
            let item = Resource::new(self.tree.uri(&own, false)).name(String::from_utf8_lossy(&own));
            let item = file_item(item, &own, facts.as_ref());
            items.push((own, item.into()));
        }
        let (below, more_below) = below.into_sorted();
        let below = below.into_iter().map(|(name, _)| name).collect();
        Ok((items, (below, more_below), has_more))
    }

    /// Whether a file is listed. Directories behind links are not walked: they are listed where they are.
    fn is_listed(&self, root: &RootDirectory, chain: &Chain, path: &[u8], kind: FileKind) -> bool {
        self.tree.admits_entry(chain, path, false)
            && resolve(self.tree, root, path, kind, self.asked.permits) == Some(FileKind::File)
            && (self.asked.permits)(&self.tree.uri(path, false))
    }
}

impl WalkFrame {
    fn fill(&mut self, names: Vec<Vec<u8>>, more: bool) {
        self.more = names.last().filter(|_| more).cloned();
        self.batch = names.into();
    }
}

impl WalkPosition {
    fn begin(tree: &Tree, directories: usize) -> Self {
        Self { files: 0, directories, root: tree.name().to_owned(), at: ListPosition::Directory(Vec::new()) }
    }

    fn cursor(&self) -> String {
        let Self { files, directories, root, at } = self;
        let root = uri_path::encode(root.as_bytes());
        let path = match at {
            ListPosition::Directory(path) if path.is_empty() => String::new(),
            ListPosition::Directory(path) => uri_path::encode(path) + "/",
            ListPosition::File(path) => uri_path::encode(path),
        };
        format!("{files}.{directories}:{root}/{path}")
    }

    /// `None` if it is no cursor: then there is nothing more.
    fn parse(cursor: &str) -> Option<Self> {
        let (counts, place) = cursor.split_once(':')?;
        let (files, directories) = counts.split_once('.')?;
        let place = path::decoded(place)?;
        let (root, path) = place.split_once('/')?;
        let root = String::from_utf8(uri_path::decode(root)?).ok()?;
        let at = match path.strip_suffix('/') {
            Some(path) => ListPosition::Directory(uri_path::decode(path)?),
            None if path.is_empty() => ListPosition::Directory(Vec::new()),
            None => ListPosition::File(uri_path::decode(path)?),
        };
        Some(Self { files: files.parse().ok()?, directories: directories.parse().ok()?, root, at })
    }
}
