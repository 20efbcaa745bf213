//! One root at run time: what reads, lists, completes and watches all stand on.
//!
//! ```text
//!   Tree::open(path) ──▶ Opened, a file or a Dir     beneath the root, by its descriptor; never by a path that was judged before
//!   Dir::entries(most) ──▶ Entry { name, kind }      with Dir::stat(name): inode, time of modification, size
//!   Tree::judge(path, kind) ──▶ whether it is served  hidden, ignored, excluded, not included
//!   Tree::uri(path, kind) ──▶ its URI                 the one encoder; a directory's ends with `/`
//! ```
//!
//! A path is one of bytes, relative to the root, without `.`, `..`, a slash at either end or two in a row: `Path`.

use super::options::{Options, Settings};
use mcp_resources_engine::option::OptionError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One root: its name, where it is, and what is served of it. Nothing is open in it between two requests: it may be
/// replaced, disappear and come back, and a process may fork.
#[derive(Debug)]
pub(super) struct Tree {
    name: String,
    dir: PathBuf,
    settings: Arc<Settings>,
}

impl Tree {
    /// One for each root of `options`.
    pub(super) fn all(options: &Options) -> Result<Vec<Arc<Self>>, OptionError> {
        let settings = Arc::new(options.settings.clone());
        let tree = |root: &super::options::NamedDir| {
            let (name, dir) = root.resolve()?;
            Ok(Arc::new(Self { name, dir, settings: settings.clone() }))
        };
        options.roots.iter().map(tree).collect()
    }

    /// Its name, as a person gave it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}
