//! One repository at run time: its objects and references, opened with the first request.
//!
//! ```text
//!   Repository::with ──▶ Handle ──resolve(revision)──▶ id ──tree, entry, object──▶ bytes of the object database
//! ```
//!
//! Law: nothing is run and nothing is written. The repository's configuration is not trusted: its filters, hooks, text converters
//! and fsmonitor are ignored, and replaced objects are not followed. Nothing is open before the first request.

use super::layout::{Layout, Signature};
use super::objects::ObjectCache;
use super::options::Settings;
use super::revision::{EXPECTED, Revision, SHORTEST_ID, Step, is_id};
use crate::named::{self, NamedPath};
use crate::path;
use crate::selection::Selection;
use crate::spell;
use gix::bstr::BStr;
use gix::objs::Kind;
use gix::objs::tree::EntryMode;
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, Step as OptionStep};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const INDEX: &str = "git:///";
/// The most handles that are kept for later requests: one for each worker.
const IDLE: usize = 4;
/// The largest object that the library decodes: 256 MiB.
const LARGEST_OBJECT: &str = "gitoxide.objects.allocLimit=268435456";

/// The request that is being answered.
pub(super) struct Context<'a> {
    /// Whether the client may see a URI.
    pub(super) permits: &'a dyn Fn(&str) -> bool,
    pub(super) is_cancelled: &'a dyn Fn() -> bool,
    /// Whether an answer may have so many bytes.
    pub(super) facts: &'a dyn Fn(u64) -> Result<(), ReadError>,
    pub(super) log: &'a dyn Fn(&str),
}

/// A repository: its name, its directory, and the settings that decide what is served.
#[derive(Debug)]
pub(super) struct Repository {
    /// As it stands in URIs, decoded.
    pub(super) name: String,
    /// `git:///NAME/`.
    pub(super) uri: String,
    dir: PathBuf,
    pub(super) settings: Arc<Settings>,
    pub(super) selection: Selection,
    is_bare: bool,
    opened: Mutex<Option<OpenRepository>>,
    objects: Mutex<ObjectCache>,
}

/// An open repository, with the signature that it had when it was opened.
struct OpenRepository {
    layout: Layout,
    signature: Signature,
    shared: gix::ThreadSafeRepository,
    idle: Vec<gix::Repository>,
    /// Counts how often the repository was opened.
    generation: u64,
}

/// An open repository, for one request.
pub(super) struct Handle<'r> {
    pub(super) own: &'r Repository,
    repo: gix::Repository,
}

/// An entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) mode: EntryMode,
    pub(super) id: ObjectId,
}

impl Repository {
    /// Checks the repository by opening it once.
    pub(super) fn new(named: &NamedPath, settings: &Arc<Settings>) -> Result<Self, OptionError> {
        let (name, dir) = named::directory("git", "repository", named)?;
        let refused = |reason: &dyn std::fmt::Display| {
            OptionError::sentence(format!("git: the repository {} {reason}", dir.display()))
        };
        let (layout, _) = Layout::find(&dir).map_err(|refusal| refused(&refusal))?;
        open(&layout).map_err(|error| refused(&unopened(&error)))?;
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
            objects: Mutex::default(),
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

    /// Calls `work` with an open handle. Handles are reused as long as the repository is the same.
    pub(super) fn with<T>(
        &self,
        log: &dyn Fn(&str),
        work: impl FnOnce(&Handle<'_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let (repo, generation) = self.open(log)?;
        let handle = Handle { own: self, repo };
        let done = work(&handle);
        let mut opened = self.lock();
        if let Some(opened) = opened.as_mut().filter(|opened| opened.generation == generation)
            && opened.idle.len() < IDLE
        {
            opened.idle.push(handle.repo);
        }
        done
    }

    fn open(&self, log: &dyn Fn(&str)) -> Result<(gix::Repository, u64), ReadError> {
        let failed = |reason: &dyn std::fmt::Display| {
            log(&format!("the repository {:?} cannot be read: {} {reason}", self.name, self.dir.display()));
            ReadError::Failed
        };
        let mut opened = self.lock();
        if !opened.as_mut().is_some_and(|opened| opened.is_current(&self.dir)) {
            let generation = opened.take().map_or(0, |opened| opened.generation + 1);
            *self.objects() = ObjectCache::default();
            let (layout, signature) = Layout::find(&self.dir).map_err(|refusal| failed(&refusal))?;
            let shared = open(&layout).map_err(|error| failed(&unopened(&error)))?;
            *opened = Some(OpenRepository { layout, signature, shared, idle: Vec::new(), generation });
        }
        let opened = opened.as_mut().ok_or(ReadError::Failed)?;
        let repo = opened.idle.pop().unwrap_or_else(|| opened.shared.to_thread_local());
        Ok((repo, opened.generation))
    }

    /// The URI of what is at `path` in the tree or blob of a revision. `kind` is `tree` or `blob`.
    pub(super) fn uri_at(&self, kind: &str, revision: &str, path: &[u8]) -> String {
        let mut uri = format!("{}{kind}/", self.uri);
        path::append(&mut uri, revision);
        uri.push('/');
        if !path.is_empty() {
            uri.push_str(&spell::encode(path));
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

    fn lock(&self) -> MutexGuard<'_, Option<OpenRepository>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn objects(&self) -> MutexGuard<'_, ObjectCache> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenRepository {
    /// Whether the repository in `dir` is still this one. It is checked again if its parts may have been replaced.
    fn is_current(&mut self, dir: &Path) -> bool {
        let now = self.layout.signature(dir);
        if now == self.signature {
            return true;
        }
        if now.identity != self.signature.identity {
            return false;
        }
        match Layout::find(dir) {
            Ok((layout, signature)) if layout == self.layout && signature.identity == now.identity => {
                self.signature = signature;
                true
            }
            _ => false,
        }
    }
}

/// Opens the repository with reduced trust: settings that name a program or a path are ignored.
fn open(layout: &Layout) -> gix::Result<gix::ThreadSafeRepository> {
    gix::open::Options::isolated()
        .with(gix::sec::Trust::Reduced)
        .open_path_as_is(true)
        .config_overrides(["core.useReplaceRefs=false", LARGEST_OBJECT])
        .open(match &layout.work_dir {
            // By way of `.git`, so that the working tree is known.
            Some(dir) => dir.join(".git"),
            None => layout.git_dir.clone(),
        })
}

/// Why the library does not open a repository, and what to do.
fn unopened(error: &gix::Error) -> String {
    let mut causes: Vec<String> = error.iter_errors().map(ToString::to_string).collect();
    causes.dedup();
    let causes = causes.join(": ");
    if causes.contains("extensions.objectFormat") {
        return "has other ids than SHA-1, which are not supported; name a repository with SHA-1 ids".into();
    }
    format!("cannot be opened: {causes}; `git fsck` says more")
}

/// The full names that `name` may stand for, in order of preference.
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
    pub(super) fn resolve(&self, variable: &str, revision: &Revision) -> Result<ObjectId, ReadError> {
        let wrong = |expected: &str| ReadError::InvalidParameter {
            parameter: variable.into(),
            expected: expected.into(),
        };
        let mut id = match &*revision.name {
            "HEAD" => self.head()?.ok_or(ReadError::NotFound)?,
            name if is_id(name) => parse_id(name).ok_or_else(|| wrong(EXPECTED))?,
            name => match self.reference(name)? {
                Some(id) => id,
                None => {
                    self.abbreviated(name).map_err(|()| wrong("an id of more digits: several begin so"))?
                }
            },
        };
        id = self.peel(id)?;
        for step in &revision.steps {
            id = self.step(id, *step)?;
        }
        Ok(id)
    }

    /// The object that HEAD leads to; `None` if nothing was committed yet.
    pub(super) fn head(&self) -> Result<Option<ObjectId>, ReadError> {
        let head = self.head_ref()?;
        head.map(|mut head| self.try_peel(&mut head)).transpose().map(Option::flatten)
    }

    fn head_ref(&self) -> Result<Option<gix::Reference<'_>>, ReadError> {
        self.try_find_reference("HEAD").map_err(|_| ReadError::Failed)
    }

    /// The full name of the branch that HEAD is on, if it is on one. It may not have a commit yet.
    pub(super) fn branch(&self) -> Result<Option<String>, ReadError> {
        let head = self.head_ref()?;
        let name =
            head.as_ref().and_then(|head| head.target().try_name().map(|name| name.as_bstr().to_string()));
        Ok(name)
    }

    /// The object of a reference of an allowed folder.
    fn reference(&self, name: &str) -> Result<Option<ObjectId>, ReadError> {
        for full in full_names(name, &self.own.settings.refs) {
            // The library refuses some names that are valid here.
            if let Ok(Some(mut found)) = self.try_find_reference(full.as_str()) {
                return self.try_peel(&mut found);
            }
        }
        Ok(None)
    }

    /// Whether `name` in a URI is something else than the reference `full`, which ends with it: HEAD, an id, or a reference that
    /// is found first.
    pub(super) fn means_another(&self, name: &str, full: &BStr) -> bool {
        let is_found = |other: String| matches!(self.try_find_reference(other.as_str()), Ok(Some(_)));
        let mut before =
            full_names(name, &self.own.settings.refs).take_while(|other| other.as_bytes() != &**full);
        name == "HEAD" || is_id(name) || before.any(is_found)
    }

    /// The object of a reference; `None` if it is symbolic and its target does not exist.
    fn try_peel(&self, reference: &mut gix::Reference<'_>) -> Result<Option<ObjectId>, ReadError> {
        Ok(reference.follow_to_object().ok().map(gix::Id::detach))
    }

    /// The one object whose id begins with `digits`.
    fn abbreviated(&self, digits: &str) -> Result<ObjectId, ()> {
        const NOTHING: ObjectId = ObjectId::null(hash::Kind::Sha1);
        if digits.len() < SHORTEST_ID || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(NOTHING);
        }
        let Ok(prefix) = hash::Prefix::from_hex(digits) else { return Ok(NOTHING) };
        match self.objects.lookup_prefix(prefix, None) {
            Ok(Some(Ok(id))) => Ok(id),
            Ok(Some(Err(()))) => Err(()),
            Ok(None) | Err(_) => Ok(NOTHING),
        }
    }

    /// Follows annotated tags.
    pub(super) fn peel(&self, id: ObjectId) -> Result<ObjectId, ReadError> {
        /// Tags of tags.
        const DEPTH: usize = 10;
        let mut id = id;
        for _ in 0..DEPTH {
            match self.kind(id)? {
                Kind::Tag => {
                    let tag = self.tag(id)?;
                    let tag = gix::objs::TagRef::from_bytes(&tag, hash::Kind::Sha1)
                        .map_err(|_| ReadError::NotFound)?;
                    id = tag.target();
                }
                _ => return Ok(id),
            }
        }
        Err(ReadError::NotFound)
    }

    fn step(&self, id: ObjectId, step: Step) -> Result<ObjectId, ReadError> {
        let parent = |id, at: usize| self.parents(id)?.get(at).copied().ok_or(ReadError::NotFound);
        match step {
            Step::Parent(0) => self.parents(id).map(|_| id),
            Step::Parent(n) => parent(id, n as usize - 1),
            Step::Ancestor(n) => (0..n).try_fold(id, |id, _| parent(id, 0)),
        }
    }
}

/// An id of 40 hexadecimal digits.
fn parse_id(text: &str) -> Option<ObjectId> {
    ObjectId::from_hex(text.as_bytes()).ok()
}

/// Whether names of folders of `refs` can be asked for.
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

impl Deref for Handle<'_> {
    type Target = gix::Repository;

    fn deref(&self) -> &gix::Repository {
        &self.repo
    }
}

impl std::fmt::Debug for OpenRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenRepository").field("layout", &self.layout).finish_non_exhaustive()
    }
}
