//! The files provider: `file:///{root}/{+path}`, where `root` is the name of a served directory, so that no path of the
//! machine is visible.
//!
//! ```text
//!   Options ──▶ Files ──▶ Tree, one for each root: opens under it, judges, spells; nothing stays open between two requests
//!   interest ──▶ Watch, a thread while there are subscribers: compares what is there with what was, and notifies the Feed
//! ```
//!
//! Answers may not be cached (`ttlMs` is 0): the next reader may be the program that has just written the file, and
//! reading a file again costs little.
//!
//! Law: the opened file is the one that was judged. A file that is absent, ignored, hidden, excluded, reached by a link
//! that may not be followed, or not a regular file is not found; all cases look the same.

mod complete;
mod contents;
mod directory_names;
// For the providers of documents.
#[doc(hidden)]
pub mod folder;
mod gitignore;
mod known_directories;
mod list;
// For the provider of skills.
#[doc(hidden)]
pub mod open_folder;
mod options;
mod repository;
mod root_directory;
mod rule_files;
mod rules;
mod select;
#[cfg(test)]
mod tests;
mod tree;
mod watch;
mod wildmatch;

pub use options::{FileOptions, Symlinks};

use contents::LineRange;
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::completion;
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::named;
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Directory, DirectoryPage, Feed, InterestChange, List, Mount, Provider, Read, RequestContext,
    Responder,
};
use mcp_resources_template::{TemplateOptions, VariableOptions};
use root_directory::{Missing, Resolution};
use std::path::Path;
use std::sync::Arc;
use tree::{INDEX, Tree};
use watch::FileWatch;

const ROOT: &str = "file:///{root}";
const PATHS: &str = "file:///{root}/{+path}";
const LINES: &str = "file:///{root}/{+path}{?lines}";

routes! {
    /// The resources and templates of the provider.
    enum FileRoute {
        Index,
        /// A root by the template.
        AnyRoot,
        Paths,
        Lines,
        /// A root by its own resource.
        Root(at: usize),
    }
}

/// Directories that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Files {
    trees: Vec<Arc<Tree>>,
    own: OwnWatch,
    watch: FileWatch,
}

impl Files {
    /// The roots of `options`. No descriptor is kept: a root is opened for each request, so that it may be replaced or
    /// come back, and that a process may fork.
    ///
    /// # Errors
    /// There is no root, one is not a directory, or two have the same name.
    pub fn new(options: FileOptions) -> Result<Self, OptionError> {
        Self::with(options, Resolution::best())
    }

    fn with(options: FileOptions, way: Resolution) -> Result<Self, OptionError> {
        if options.roots.is_empty() {
            let reason = "files: there is no root; name a directory: `roots: {NAME: DIR}`, or files:DIR";
            return Err(OptionError::sentence(reason));
        }
        let mut files = Self { trees: Vec::new(), own: OwnWatch::default(), watch: FileWatch::default() };
        files.add(Tree::all(&options, way)?)?;
        Ok(files)
    }

    /// The roots of both, each with its own options.
    ///
    /// # Errors
    /// Two roots have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    fn add(&mut self, trees: Vec<Arc<Tree>>) -> Result<(), OptionError> {
        for tree in trees {
            if let Some(first) = self.trees.iter().find(|first| first.name() == tree.name()) {
                return Err(named::same_name("files", "roots", tree.name(), first.dir(), tree.dir()));
            }
            self.trees.push(tree);
        }
        Ok(())
    }
}

impl Declare for Files {
    const KIND: OptionKind = OptionKind {
        name: "files",
        about: "The files of directories, as file:///NAME/PATH.",
        options: FileOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: FileOptions = declared::read("files", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        self.trees.iter().map(|tree| declared::place(&tree.uri(b"", true))).collect()
    }

    fn schemes(&self) -> Vec<String> {
        vec!["file".into()]
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.trees.len();
        self.add(other.trees).inspect_err(|_| self.trees.truncate(before))
    }

    /// `DIR` or `NAME=DIR`. A directory whose own name has a `=` is `./a=b`.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        named::parse_shorthand("files", "directory", rest)
    }
}

impl Provider for Files {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("files", feed)?;
        let directory = |uri: &str| Resource::new(uri).mime_type(contents::DIRECTORY);
        let index = directory(INDEX).name("files").title("The directories that are served").priority(1.0);
        let mut mount = Mount::new("files").directories().resource(FileRoute::Index, index);
        for (at, tree) in self.trees.iter().enumerate() {
            let root = directory(&tree.uri(b"", true)).name(format!("{}/", tree.name())).priority(1.0);
            mount = mount.resource(FileRoute::Root(at), root);
        }
        let root = Template::new(ROOT).title("A directory that is served").completes("root");
        let paths = Template::new(PATHS)
            .title("A file, or the children of a directory")
            .options(may_be_empty())
            .completes("root")
            .completes("path")
            .list(ListSource { pages: true });
        let lines = Template::new(LINES)
            .title("Some lines of a file, as lines=10-40")
            .options(may_be_empty())
            .completes("root")
            .completes("path");
        Ok(mount
            .template(FileRoute::Paths, paths)
            .template(FileRoute::Lines, lines)
            .template(FileRoute::AnyRoot, root))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = self.answer(&request, &reply);
        self.log_faults(|what| reply.log(what));
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let page = list::page(
            &self.trees,
            &list::FileListContext {
                cursor: request.cursor(),
                limit: request.limit().max(1),
                permits: &|uri| request.permits(uri),
                is_cancelled: &|| reply.is_cancelled(),
            },
        );
        for root in page.missing.iter().filter(|_| !reply.is_cancelled()) {
            self.log_root(root, |what| reply.log(what));
        }
        self.log_faults(|what| reply.log(what));
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let values = match request.variable() {
            "root" => complete::roots(&self.trees, typed),
            "path" => {
                let tree = match request.argument("root") {
                    Some(root) => self.tree(root),
                    None => self.trees.first().filter(|_| self.trees.len() == 1),
                };
                let permits = |uri: &str| request.permits(uri);
                let found =
                    tree.and_then(|tree| complete::paths(tree, typed, &permits, &|| reply.is_cancelled()));
                found.unwrap_or_default()
            }
            _ => Vec::new(),
        };
        self.log_faults(|what| reply.log(what));
        reply.send(Ok(completion(values)));
    }

    fn directory(&self, request: Directory, reply: Responder<DirectoryPage>) {
        let answer = self.children(&request, &reply);
        self.log_faults(|what| reply.log(what));
        reply.send(answer.map(|children| request.page(children)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        self.watch.interest(&self.trees, change, self.own.feed());
    }
}

impl Files {
    fn answer(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let context = request.context(reply);
        let route = FileRoute::parse(request.route());
        if route == Some(FileRoute::Index) {
            return self.index(&context);
        }
        let lines = request.param("lines").map(LineRange::parse).transpose()?;
        let (tree, text) = match route {
            Some(FileRoute::Root(at)) => (self.trees.get(at), ""),
            _ => {
                let root = request.param("root").unwrap_or_default();
                (self.tree(root), request.param("path").unwrap_or_default())
            }
        };
        let tree = tree.ok_or(ReadError::NotFound)?;
        let (path, must_be_dir) = tree::path(text).ok_or(ReadError::NotFound)?;
        let failed = |missing: Missing| match missing {
            Missing::NotFound => ReadError::NotFound,
            Missing::Failed(error) => {
                reply
                    .log(&format!("{} could not be read: {error}", tree.dir().join(native(&path)).display()));
                ReadError::Failed
            }
        };
        let root = match tree.open() {
            Ok(root) => root,
            Err(missing) => {
                self.log_root(tree.name(), |what| reply.log(what));
                return Err(failed(missing));
            }
        };
        let opened = tree.find(&root, &path, &|uri| context.permits(uri)).map_err(failed)?;
        let facts = opened.facts;
        if !opened.is_dir() {
            if must_be_dir {
                return Err(ReadError::NotFound);
            }
            let result = contents::file(opened, &path, lines, tree.settings().max_bytes, &context);
            let whole = result.as_ref().ok().filter(|_| lines.is_none());
            self.watch.saw(tree, &path, &facts, || contents::bytes(whole?));
            return result.inspect_err(|error| {
                if *error == ReadError::Failed && !reply.is_cancelled() {
                    reply.log(&format!("{} could not be read", tree.dir().join(native(&path)).display()));
                }
            });
        }
        self.watch.saw(tree, &path, &facts, || None);
        if lines.is_some() {
            return Err(contents::wrong("no lines: it is a directory"));
        }
        let dir = opened.into_dir().ok_or(ReadError::NotFound)?;
        contents::directory(tree, &root, &path, &dir, &context).map_err(failed)
    }

    /// The children of a directory.
    fn children(
        &self,
        request: &Directory,
        reply: &Responder<DirectoryPage>,
    ) -> Result<Vec<Resource>, ReadError> {
        let context = request.context(reply);
        let (tree, text) = match FileRoute::parse(request.route()) {
            Some(FileRoute::Index) => {
                let roots = self.trees.iter().map(|tree| {
                    Resource::new(tree.uri(b"", true)).name(tree.name()).mime_type(contents::DIRECTORY)
                });
                return Ok(roots.collect());
            }
            Some(FileRoute::Root(at)) => (self.trees.get(at), ""),
            _ => {
                let root = request.param("root").unwrap_or_default();
                (self.tree(root), request.param("path").unwrap_or_default())
            }
        };
        let tree = tree.ok_or_else(|| request.absent())?;
        let (path, _) = tree::path(text).ok_or_else(|| request.absent())?;
        let failed = |missing: Missing| match missing {
            Missing::NotFound => request.absent(),
            Missing::Failed(error) => {
                reply
                    .log(&format!("{} could not be read: {error}", tree.dir().join(native(&path)).display()));
                ReadError::Failed
            }
        };
        let root = tree.open().map_err(failed)?;
        let opened = tree.find(&root, &path, &|uri| context.permits(uri)).map_err(failed)?;
        let is_shown = context.permits(&tree.uri(&path, true));
        let dir = opened.into_dir().filter(|_| is_shown).ok_or_else(|| request.absent())?;
        contents::resources(tree, &root, &path, &dir, &context).map_err(failed)
    }

    /// The roots that the client may see.
    fn index(&self, context: &RequestContext<'_>) -> Result<ReadResult<'static>, ReadError> {
        let uris = self.trees.iter().map(|tree| tree.uri(b"", true)).filter(|uri| context.permits(uri));
        let child = |uri| Contents::text("").with_uri(uri).with_mime_type(contents::DIRECTORY);
        Ok(ReadResult { contents: uris.map(child).collect(), cache: None })
    }

    fn tree(&self, name: &str) -> Option<&Arc<Tree>> {
        self.trees.iter().find(|tree| tree.name() == name)
    }

    /// Says which ignore rules could not be read.
    fn log_faults(&self, log: impl Fn(&str)) {
        self.trees.iter().flat_map(|tree| tree.take_faults()).for_each(|fault| log(&fault));
    }

    /// Logs that a root does not exist at present.
    fn log_root(&self, name: &str, log: impl Fn(&str)) {
        if let Some(tree) = self.tree(name) {
            log(&format!("the root {name:?} cannot be opened: {}", tree.dir().display()));
        }
    }
}

/// The path may be that of the root.
fn may_be_empty() -> TemplateOptions {
    TemplateOptions::default().variable("path", VariableOptions { empty: true, ..VariableOptions::default() })
}

fn native(path: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(path))
}
