//! One repository at run time: its objects and references, opened with the first request.
//!
//! ```text
//!   Repository::with ──▶ Handle ──resolve(revision)──▶ id ──tree, entry, object──▶ bytes of the object database
//! ```
//!
//! Law: no program is run and no file is written. The repository's configuration is not trusted: its filters, hooks,
//! text converters and fsmonitor are ignored, and replaced objects are not followed. Nothing is opened before the first
//! request.

use super::config::RepositoryConfig;
use super::graph::{CommitGraph, GraphStamp};
use super::index::GitIndex;
use super::layout::{GitLayout, LayoutRefusal, Signature};
use super::message::TagText;
use super::object_cache::{HALF, ObjectCache};
use super::options::GitSettings;
use super::parts::{Areas, PartError, PartStamp};
use super::ref_store::{RefPointer, RefStore};
use super::revision::{EXPECTED, GitRevision, RevisionStep, SHORTEST_ID, is_id};
use super::store::ObjectStore;
use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::tree::EntryMode;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, PathStep as OptionStep};
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::selection::Selection;
use mcp_resources_provider_kit::uri_path;
use mcp_resources_runtime::provider::RequestContext;
use mcp_resources_runtime::sync::Mutex;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

pub(super) const INDEX: &str = "git:///";
/// The largest list of the last commits of a shallow clone, in bytes.
const SHALLOW: u64 = 16 << 20;

/// When commits and tags were made: their objects never change.
pub(super) type Times = HashMap<ObjectId, u64>;

/// A repository: its name, its directory, and the settings for serving it.
#[derive(Debug)]
pub(super) struct GitRepository {
    /// Its decoded name in URIs.
    pub(super) name: String,
    /// `git:///NAME/`.
    pub(super) uri: String,
    dir: PathBuf,
    pub(super) settings: Arc<GitSettings>,
    pub(super) selection: Selection,
    is_bare: bool,
    opened: Mutex<Option<(Signature, Arc<OpenRepository>)>>,
    objects: Mutex<ObjectCache<ObjectId>>,
}

/// An open repository: the location of its parts, and its caches.
pub(super) struct OpenRepository {
    pub(super) layout: GitLayout,
    pub(super) areas: Areas,
    pub(super) config: RepositoryConfig,
    pub(super) store: ObjectStore,
    refs: RefStore,
    pub(super) index: Mutex<Option<(PartStamp, Arc<GitIndex>)>>,
    times: Mutex<Times>,
    graph: Mutex<(GraphStamp, Option<Arc<CommitGraph>>)>,
}

/// An open repository, for one request.
pub(super) struct Handle<'r> {
    pub(super) own: &'r GitRepository,
    pub(super) open: Arc<OpenRepository>,
    pub(super) context: &'r RequestContext<'r>,
    shallow: OnceCell<HashSet<ObjectId>>,
}

/// An entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GitEntry {
    pub(super) mode: EntryMode,
    pub(super) id: ObjectId,
}

impl GitRepository {
    /// Checks the repository by opening it once.
    pub(super) fn new(named: &NamedPath, settings: &Arc<GitSettings>) -> Result<Self, OptionError> {
        let (name, dir) = named::directory("git", "repository", named)?;
        let refused = |reason: &dyn std::fmt::Display| {
            OptionError::sentence(format!("git: the repository {} {reason}", dir.display()))
        };
        let (layout, _) = GitLayout::find(&dir).map_err(|refusal| refused(&refusal))?;
        OpenRepository::new(layout.clone()).map_err(|refusal| refused(&refusal))?;
        let name = path::text(name.as_bytes());
        let mut uri = String::from(INDEX);
        path::append(&mut uri, &name);
        uri.push('/');
        Ok(Self {
            name,
            uri,
            is_bare: layout.work_dir.is_none(),
            selection: Selection::new("git", settings.hidden, &settings.include, &settings.exclude)?,
            settings: settings.clone(),
            dir,
            opened: Mutex::default(),
            objects: Mutex::new(ObjectCache::new(HALF)),
        })
    }

    /// Its directory: for log messages, never for clients.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it had no working tree at the start.
    pub(super) fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// Calls `work` with an open handle. The handle stays open as long as the repository is the same.
    pub(super) fn with<T>(
        &self,
        context: &RequestContext<'_>,
        work: impl FnOnce(&Handle<'_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let open = self.open().map_err(|refusal| {
            let dir = self.dir.display();
            context.log(&format!("the repository {:?} cannot be read: {dir} {refusal}", self.name));
            ReadError::Failed
        })?;
        work(&Handle { own: self, open, context, shallow: OnceCell::new() })
    }

    fn open(&self) -> Result<Arc<OpenRepository>, LayoutRefusal> {
        let mut opened = self.opened.lock();
        if let Some((signature, open)) = opened.as_mut()
            && open.is_current(&self.dir, signature)
        {
            return Ok(open.clone());
        }
        *opened = None;
        *self.objects() = ObjectCache::new(HALF);
        let (layout, signature) = GitLayout::find(&self.dir)?;
        let open = Arc::new(OpenRepository::new(layout)?);
        *opened = Some((signature, open.clone()));
        Ok(open)
    }

    /// The URI of the entry at `path` in the tree or blob of a revision. `kind` is `tree` or `blob`.
    pub(super) fn uri_at(&self, kind: &str, revision: &str, path: &[u8]) -> String {
        let mut uri = format!("{}{kind}/", self.uri);
        path::append(&mut uri, revision);
        uri.push('/');
        if !path.is_empty() {
            uri.push_str(&uri_path::encode(path));
            if kind == "tree" {
                uri.push('/');
            }
        }
        uri
    }

    /// The URI of `kind` with one revision: `log` or `commit`.
    pub(super) fn uri_of(&self, kind: &str, revision: &str) -> String {
        let mut uri = format!("{}{kind}/", self.uri);
        path::append(&mut uri, revision);
        uri
    }

    pub(super) fn objects(&self) -> MutexGuard<'_, ObjectCache<ObjectId>> {
        self.objects.lock()
    }
}

impl OpenRepository {
    fn new(layout: GitLayout) -> Result<Self, LayoutRefusal> {
        let areas = layout.areas();
        Ok(Self {
            config: RepositoryConfig::read(&areas, &layout.git_dir, &layout.common_dir)?,
            store: ObjectStore::new(&areas, &layout.common_dir.join("objects")),
            refs: RefStore::new(&areas, &layout.git_dir, &layout.common_dir),
            index: Mutex::default(),
            times: Mutex::default(),
            graph: Mutex::default(),
            areas,
            layout,
        })
    }

    pub(super) fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock()
    }

    /// Whether the repository in `dir` is still this one. It is checked again if its parts may have been replaced.
    fn is_current(&self, dir: &Path, signature: &mut Signature) -> bool {
        let now = self.layout.signature(dir);
        if now == *signature {
            return true;
        }
        if now.identity != signature.identity {
            return false;
        }
        match GitLayout::find(dir) {
            Ok((layout, newer)) if layout == self.layout && newer.identity == now.identity => {
                *signature = newer;
                true
            }
            _ => false,
        }
    }
}

/// The full names that `name` may mean, in order of preference.
fn full_names<'a>(name: &'a str, folders: &'a [String]) -> impl Iterator<Item = String> + 'a {
    let plain = name.strip_prefix("refs/").unwrap_or(name);
    let is_allowed = |folder: &&String| {
        plain
            .strip_prefix(folder.as_str())
            .is_some_and(|rest| rest.strip_prefix('/').is_some_and(|rest| !rest.is_empty()))
    };
    let whole = folders.iter().find(is_allowed).map(|_| format!("refs/{plain}"));
    // If a tag and a branch have the same name, git takes the tag.
    let tags = folders.iter().filter(|folder| *folder == "tags");
    let others = folders.iter().filter(|folder| *folder != "tags");
    whole.into_iter().chain(tags.chain(others).map(move |folder| format!("refs/{folder}/{name}")))
}

impl Handle<'_> {
    /// The object that a revision names, with annotated tags followed. `variable` is for errors.
    pub(super) fn resolve(&self, variable: &str, revision: &GitRevision) -> Result<ObjectId, ReadError> {
        let wrong = |expected: &str| ReadError::InvalidParameter {
            parameter: variable.into(),
            expected: expected.into(),
        };
        let mut id = match &*revision.name {
            "HEAD" => self.head()?.ok_or(ReadError::NotFound)?,
            name if is_id(name) => {
                let id = parse_id(name).ok_or_else(|| wrong(EXPECTED))?;
                // What a client names may be absent; what a reference names may not.
                self.kind(id).map(|_| id)?
            }
            name => match self.reference(name)? {
                Some(id) => id,
                None => {
                    self.abbreviated(name)?.ok_or_else(|| wrong("an id of more digits: several begin so"))?
                }
            },
        };
        id = self.peel(id)?;
        for step in &revision.steps {
            self.check()?;
            id = self.step(id, *step)?;
        }
        Ok(id)
    }

    /// The object that HEAD leads to; `None` if nothing was committed yet.
    pub(super) fn head(&self) -> Result<Option<ObjectId>, ReadError> {
        self.follow("HEAD")
    }

    /// The full name of the branch that HEAD is on, if it is on one. It may not have a commit yet.
    pub(super) fn branch(&self) -> Result<Option<String>, ReadError> {
        Ok(match self.find("HEAD")? {
            Some(RefPointer::Name(name)) => Some(name),
            _ => None,
        })
    }

    /// The references under a folder such as `refs/heads/`, each with the object that it leads to.
    pub(super) fn references(&self, folder: &str) -> Result<Vec<(String, ObjectId)>, ReadError> {
        self.open.refs.under(folder).map_err(|error| self.unreadable("packed-refs", &error))
    }

    /// The object of a reference of an allowed folder.
    fn reference(&self, name: &str) -> Result<Option<ObjectId>, ReadError> {
        for full in full_names(name, &self.own.settings.refs) {
            if self.find(&full)?.is_some() {
                return self.follow(&full);
            }
        }
        Ok(None)
    }

    /// Whether `name` in a URI is something else than the reference `full`, which ends with it: HEAD, an id, or a reference that
    /// is found first.
    pub(super) fn means_another(&self, name: &str, full: &str) -> bool {
        let is_found = |other: String| matches!(self.find(&other), Ok(Some(_)));
        let mut before = full_names(name, &self.own.settings.refs).take_while(|other| other != full);
        name == "HEAD" || is_id(name) || before.any(is_found)
    }

    fn find(&self, full: &str) -> Result<Option<RefPointer>, ReadError> {
        self.open.refs.find(full).map_err(|error| self.unreadable(full, &error))
    }

    /// The object that a reference leads to; `None` if one on the way is not there.
    fn follow(&self, full: &str) -> Result<Option<ObjectId>, ReadError> {
        let Some(pointer) = self.find(full)? else { return Ok(None) };
        self.open.refs.follow(pointer).map_err(|error| self.unreadable(full, &error))
    }

    /// The last commits of a shallow clone; none, if it is not one.
    pub(super) fn shallow(&self) -> Result<&HashSet<ObjectId>, ReadError> {
        if let Some(known) = self.shallow.get() {
            return Ok(known);
        }
        let last = match self.open.areas.read(&self.open.layout.common_dir.join("shallow"), SHALLOW) {
            Ok((text, _)) => text
                .split(|byte| *byte == b'\n')
                .filter_map(|line| ObjectId::from_hex(line.trim_ascii()).ok())
                .collect(),
            Err(PartError::NotFound) => HashSet::new(),
            Err(error) => return Err(self.unreadable("shallow", &error)),
        };
        Ok(self.shallow.get_or_init(|| last))
    }

    /// The commit-graph; `None` if there is none, or if it has parents that a shallow clone does not.
    pub(super) fn graph(&self) -> Result<Option<Arc<CommitGraph>>, ReadError> {
        if !self.shallow()?.is_empty() {
            return Ok(None);
        }
        let objects = self.open.layout.common_dir.join("objects");
        let stamp = CommitGraph::stamp(&objects);
        let mut known = self.open.graph.lock();
        if known.0 != stamp {
            let graph = CommitGraph::open(&self.open.areas, &objects, &|| self.context.is_cancelled());
            // Opening it may have stopped for this.
            self.check()?;
            *known = (stamp, graph.map(Arc::new));
        }
        Ok(known.1.clone())
    }

    /// The object whose id begins with `digits`; `None` if there are several. Commits come first, then trees: the kinds
    /// that git expects in the place of a revision.
    fn abbreviated(&self, digits: &str) -> Result<Option<ObjectId>, ReadError> {
        if digits.len() < SHORTEST_ID || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ReadError::NotFound);
        }
        let prefix = gix::hash::Prefix::from_hex(digits).map_err(|_| ReadError::NotFound)?;
        let all = self.open.store.with_prefix(prefix);
        let all = all.map_err(|error| self.fault(&format!("its objects cannot be listed: {error}")))?;
        let mut wanted = (Vec::new(), Vec::new(), Vec::new());
        for id in all {
            self.check()?;
            match self.peel(id).and_then(|id| self.kind(id)) {
                Ok(Kind::Commit) => wanted.0.push(id),
                Ok(Kind::Tree) => wanted.1.push(id),
                _ => wanted.2.push(id),
            }
        }
        let first = [wanted.0, wanted.1, wanted.2].into_iter().find(|ids| !ids.is_empty());
        match first.as_deref() {
            None => Err(ReadError::NotFound),
            Some([id]) => Ok(Some(*id)),
            Some(_) => Ok(None),
        }
    }

    /// Follows annotated tags.
    pub(super) fn peel(&self, id: ObjectId) -> Result<ObjectId, ReadError> {
        /// Tags of tags.
        const DEPTH: usize = 10;
        let mut id = id;
        for _ in 0..DEPTH {
            let known = self.cached(id).map(|(kind, _)| kind);
            match known.map_or_else(|| self.header(id).map(|(kind, _)| kind), Ok)? {
                Kind::Tag => {
                    let tag = self.tag(id)?;
                    id = TagText::parse(&tag).target.ok_or(ReadError::NotFound)?;
                }
                _ => return Ok(id),
            }
        }
        Err(ReadError::NotFound)
    }

    fn step(&self, id: ObjectId, step: RevisionStep) -> Result<ObjectId, ReadError> {
        let parent = |id, at: usize| {
            self.check()?;
            self.parents(id)?.get(at).copied().ok_or(ReadError::NotFound)
        };
        match step {
            RevisionStep::Parent(0) => self.parents(id).map(|_| id),
            RevisionStep::Parent(n) => parent(id, n as usize - 1),
            RevisionStep::Ancestor(n) => (0..n).try_fold(id, |id, _| parent(id, 0)),
        }
    }

    /// An error if the request was cancelled.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        if self.context.is_cancelled() { Err(ReadError::Failed) } else { Ok(()) }
    }

    /// Logs a problem with the repository.
    pub(super) fn fault(&self, what: &str) -> ReadError {
        if !self.context.is_cancelled() {
            self.context.log(&format!("the repository {:?} cannot be read: {what}", self.own.name));
        }
        ReadError::Failed
    }

    fn unreadable(&self, part: &str, error: &PartError) -> ReadError {
        self.fault(&format!("its {part} cannot be read: {error}"))
    }
}

/// An id of 40 hexadecimal digits.
fn parse_id(text: &str) -> Option<ObjectId> {
    ObjectId::from_hex(text.as_bytes()).ok()
}

/// Checks that names of folders of `refs` can be requested.
pub(super) fn check_folders(folders: &[String]) -> Result<(), OptionError> {
    for folder in folders {
        let is_plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !folder.split('/').all(is_plain) || folder == "refs" || folder.starts_with("refs/") {
            let reason = format!(
                "git: refs has {folder:?}, which is no folder of refs; heads and tags are, and remotes or remotes/origin"
            );
            return Err(OptionError::sentence(reason).under(OptionStep::Name("refs".into())));
        }
    }
    Ok(())
}

impl std::fmt::Debug for OpenRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenRepository").field("layout", &self.layout).finish_non_exhaustive()
    }
}
