//! Files: `file:///{root}/{+path}`, where `root` is the name of a directory that is served, so that no path of the machine
//! is seen.
//!
//! ```text
//!   Options ──▶ Files ──▶ Tree, one for each root: opens beneath it, judges, spells; nothing stays open between two requests
//! ```
//!
//! Law: what is judged is what was opened. A file that is absent, ignored, hidden, excluded, reached by a link that may not
//! be followed, or no file at all is one and the same: not found.

mod options;
mod tree;

pub use options::{Options, Symlinks};

use mcp_resources_engine::connection::ReadResult;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::OptionError;
use mcp_resources_engine::resource::{RegistrationError, Template};
use mcp_resources_host::provider::{Feed, Mount, Provider, Read, Responder, Route};
use std::sync::{Arc, PoisonError, RwLock};
use tree::Tree;

const PATHS: &str = "file:///{root}/{+path}";

const OF_PATHS: Route = Route(0);

/// The word for it where providers are declared.
pub const KIND: crate::options::Kind = crate::options::Kind {
    name: "files",
    about: "The files of directories, as file:///NAME/PATH.",
    options: Options::TABLE,
};

/// Directories that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Files {
    trees: Vec<Arc<Tree>>,
    feed: RwLock<Option<Feed>>,
}

impl Files {
    /// The roots of `options`. No descriptor is kept: a root is opened for each request, so that it may be replaced or
    /// come back, and that a process may fork.
    ///
    /// # Errors
    /// There is no root, one is not a directory, or two have the same name.
    pub fn new(options: Options) -> Result<Self, OptionError> {
        if options.roots.is_empty() {
            let reason = "files: there is no root; name a directory: `roots: {NAME: DIR}`, or files:DIR";
            return Err(OptionError::sentence(reason));
        }
        let mut files = Self { trees: Vec::new(), feed: RwLock::default() };
        files.add(Tree::all(&options)?)?;
        Ok(files)
    }

    /// The roots of both, each with its own options.
    ///
    /// # Errors
    /// Two roots have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.take(other)?;
        Ok(self)
    }

    /// The same in place. After an error nothing has changed.
    pub(crate) fn take(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.trees.len();
        self.add(other.trees).inspect_err(|_| self.trees.truncate(before))
    }

    fn add(&mut self, trees: Vec<Arc<Tree>>) -> Result<(), OptionError> {
        for tree in trees {
            if let Some(first) = self.trees.iter().find(|first| first.name() == tree.name()) {
                return Err(OptionError::sentence(format!(
                    "files: two roots have the name {:?}: {} and {}; give one of them another: NAME=DIR, or \
                     `roots: {{NAME: DIR}}`",
                    tree.name(),
                    first.dir().display(),
                    tree.dir().display()
                )));
            }
            self.trees.push(tree);
        }
        Ok(())
    }
}

impl Provider for Files {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        let mut own = self.feed.write().unwrap_or_else(PoisonError::into_inner);
        if own.as_ref().is_some_and(Feed::is_alive) {
            let reason = "it is mounted already; make another for each server".into();
            return Err(RegistrationError::Mount { mount: "files".into(), reason });
        }
        *own = Some(feed);
        Ok(Mount::new("files").template(OF_PATHS, Template::new(PATHS).title("A file or directory")))
    }

    fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
        let served = self.trees.iter().any(|tree| tree.settings().hidden);
        let _ = served;
        reply.send(Err(ReadError::NotFound));
    }
}
