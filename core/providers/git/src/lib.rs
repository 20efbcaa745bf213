//! The git provider: read-only repositories as `git:///{repo}/…`.
//!
//! ```text
//!   git:///                       the repositories, with their URIs          JSON
//!   …/status  …/branches{?after}  …/tags{?after}                             JSON
//!   …/log{?n,path}  …/log/{ref}  …/commit/{id}                               JSON
//!   …/diff/{from}/{to}            a patch that `git apply` takes             text/x-diff
//!   …/tree/{ref}/{+path}  …/blob/{ref}/{+path}                               children; the file as it was committed
//!
//!   Options ──▶ Git ──▶ Repository, one for each: opened with the first request ──▶ gix, without configuration, children, network
//! ```
//!
//! Law: no program is run and no file is written. A file that is absent, hidden, excluded or denied by the guard is not
//! found, and is missing from every tree, diff, log and status.

mod answers;
mod base85;
mod changes;
mod commits;
mod complete;
mod config;
mod contents;
mod delta;
mod graph;
mod index;
mod index_file;
mod layout;
mod message;
mod object_cache;
mod objects;
mod options;
mod packs;
mod parts;
mod patch;
mod ref_store;
mod references;
mod repository;
#[doc(hidden)]
pub mod revision;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod untracked;
mod watch;
mod worktree;

pub use options::GitOptions;

use commits::LogRequest;
use complete::PathOf;
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, ReadTool, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::media::DIRECTORY;
use mcp_resources_provider_kit::named;
use mcp_resources_provider_kit::offered::{choice, number, text as described};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::tracker::{ProcessTracker, Tracker};
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Directory, DirectoryPage, Feed, InterestChange, List, Mount, Provider, Read, RequestContext,
    Responder,
};
use mcp_resources_template::{TemplateOptions, VariableOptions};
use references::After;
use repository::{GitRepository, Handle, INDEX};
use revision::GitRevision;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use watch::{GitSource, GitTarget};

const STATUS: &str = "git:///{repo}/status";
const BRANCHES: &str = "git:///{repo}/branches{?after}";
const TAGS: &str = "git:///{repo}/tags{?after}";
const LOG: &str = "git:///{repo}/log{?n,path}";
const LOG_OF: &str = "git:///{repo}/log/{ref}";
const COMMIT: &str = "git:///{repo}/commit/{id}";
const DIFF: &str = "git:///{repo}/diff/{from}/{to}";
const TREE: &str = "git:///{repo}/tree/{ref}/{+path}";
const BLOB: &str = "git:///{repo}/blob/{ref}/{+path}";

routes! {
    /// The resources and templates of the provider.
    enum GitRoute {
        Index,
        Status,
        Branches,
        Tags,
        Log,
        LogOfRevision,
        Commit,
        Diff,
        Tree,
        Blob,
    }
}

const JSON: &str = "application/json";
const PATCH: &str = "text/x-diff";
/// The names of the tools.
const TOOLS: [&str; 3] = ["git_log", "git_diff", "git_show"];
/// Maximum number of listed references of a repository.
const LISTED: usize = 1_000;

/// Repositories that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Git {
    repositories: Vec<Arc<GitRepository>>,
    own: OwnWatch,
    tracker: ProcessTracker<GitSource>,
}

impl Git {
    /// The repositories of `options`. Each is opened here once, so that errors are reported at the start. It is closed again,
    /// because a process may fork.
    ///
    /// # Errors
    /// There is no repository, one is invalid or leads out of its directory, two have the same name, or an option is wrong.
    pub fn new(options: GitOptions) -> Result<Self, OptionError> {
        if options.repos.is_empty() {
            let reason = "git: there is no repository; name one: `repos: {NAME: DIR}`, or git:DIR";
            return Err(OptionError::sentence(reason));
        }
        if options.settings.log_max == 0 {
            return Err(OptionError::sentence("git: log_max is 0, expected a whole number from 1"));
        }
        repository::check_folders(&options.settings.refs)?;
        options.settings.tools.check("git", &TOOLS)?;
        let settings = Arc::new(options.settings);
        let mut git =
            Self { repositories: Vec::new(), own: OwnWatch::default(), tracker: ProcessTracker::default() };
        for named in &options.repos {
            git.add(Arc::new(GitRepository::new(named, &settings)?))?;
        }
        Ok(git)
    }

    /// The repositories of both, each with its own options.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    fn add(&mut self, new: Arc<GitRepository>) -> Result<(), OptionError> {
        if let Some(first) = self.repositories.iter().find(|first| first.name == new.name) {
            return Err(named::same_name("git", "repositories", &new.name, first.dir(), new.dir()));
        }
        self.repositories.push(new);
        Ok(())
    }
}

impl Declare for Git {
    const KIND: OptionKind = OptionKind {
        name: "git",
        about: "Git repositories, as git:///NAME/status, /log, /diff/FROM/TO and /blob/REF/PATH.",
        options: GitOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: GitOptions = declared::read("git", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        self.repositories.iter().map(|own| declared::place(&own.uri)).collect()
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.repositories.len();
        other
            .repositories
            .into_iter()
            .try_for_each(|repository| self.add(repository))
            .inspect_err(|_| self.repositories.truncate(before))
    }

    /// `DIR` or `NAME=DIR`. A directory whose own name has a `=` is `./a=b`.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        named::parse_shorthand("git", "repository", rest)
    }
}

impl Provider for Git {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("git", feed.clone())?;
        self.tracker.clear();
        let index = Resource::new(INDEX)
            .name("git")
            .title("The git repositories that are served, with their URIs")
            .mime_type(JSON)
            .priority(1.0);
        let template =
            |text, title, mime_type| Template::new(text).title(title).mime_type(mime_type).completes("repo");
        let listed = |template: Template| template.list(ListSource { pages: true });
        let status = template(STATUS, "What was staged, changed and added in the working tree", JSON);
        let branches = template(BRANCHES, "The branches, each with its last commit, the newest first", JSON);
        let tags = template(TAGS, "The tags, the newest first", JSON);
        let log = template(LOG, "The newest commits, as n=20, or of a path", JSON);
        let log_of = template(LOG_OF, "The commits of a branch, a tag or another revision", JSON)
            .description("A slash in a name is ~2F, as in feature~2Fx. HEAD~2 and main^ are revisions too.");
        let commit = template(COMMIT, "A commit: who, when, why, and which files", JSON);
        let diff = template(DIFF, "The difference between two revisions, as a patch", PATCH);
        let tree = Template::new(TREE)
            .title("The children of a directory in a revision")
            .options(may_be_empty())
            .mime_type(DIRECTORY)
            .completes("repo");
        let blob = Template::new(BLOB).title("A file as it is in a revision").completes("repo");
        let mount = Mount::new("git").directories();
        let mount = mount
            .resource(GitRoute::Index, index)
            .template(GitRoute::Status, listed(status))
            .template(GitRoute::Branches, listed(branches))
            .template(GitRoute::Tags, listed(tags))
            .template(GitRoute::Log, listed(log.completes("n").completes("path")))
            .template(GitRoute::LogOfRevision, listed(log_of.completes("ref")))
            .template(GitRoute::Commit, commit.completes("id"))
            .template(GitRoute::Diff, diff.completes("from").completes("to"))
            .template(GitRoute::Tree, listed(tree.completes("ref").completes("path")))
            .template(GitRoute::Blob, blob.completes("ref").completes("path"));
        Ok(self.tools(&feed).into_iter().fold(mount, Mount::tool))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let context = request.context(&reply);
        let answer = match GitRoute::parse(request.route()) {
            Some(GitRoute::Index) => self.index(&context),
            _ => self.answer(&request, &context),
        };
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let context = request.context(&reply);
        let mut missing = Vec::new();
        let mut items = Vec::new();
        for (at, repository) in self.repositories.iter().enumerate() {
            match listed(repository, GitRoute::parse(request.route()), &context) {
                Ok(found) => items.extend(found.into_iter().map(|(key, item)| ((at, key), item))),
                Err(_) => missing.push(repository.name.clone()),
            }
        }
        let after = request.cursor().and_then(|cursor| cursor.split_once('/'));
        let after = after.and_then(|(at, key)| Some((at.parse::<usize>().ok()?, key.to_owned())));
        let rest = items.into_iter().filter(|(key, item)| {
            after.as_ref().is_none_or(|after| key > after) && request.permits(&item.uri)
        });
        let page = page(request.limit(), rest, |((at, key), _)| format!("{at}/{key}"), |(_, item)| item);
        reply.send(Ok(ListPage { missing, ..page }));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let context = request.context(&reply);
        let values = self.completed(&request, &context).unwrap_or_default();
        reply.send(Ok(completion(values)));
    }

    fn directory(&self, request: Directory, reply: Responder<DirectoryPage>) {
        let context = request.context(&reply);
        let answer = self.children(&request, &context);
        reply.send(answer.map(|children| request.page(children)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        if self.repositories.iter().any(|repository| repository.settings.watch) {
            self.tracker().interest(change, self.own.feed());
        }
    }
}

impl Git {
    /// The tracker of this process.
    fn tracker(&self) -> Arc<Tracker<GitSource>> {
        self.tracker.get(|| GitSource::new(&self.repositories))
    }

    /// The tools that are offered, each for the repositories whose declaration offers it.
    fn tools(&self, feed: &Feed) -> Vec<ReadTool> {
        let revision = "A branch, a tag, a commit, or HEAD~2. A slash in a name is ~2F, as in feature~2Fx.";
        let tools = [
            ReadTool::new("git_log", LOG)
                .title("Log of commits")
                .description("Lists the newest commits of a git repository: who, when, why. Give path for one file or directory.")
                .parameter(number("n", "How many commits."))
                .parameter(described("path", "A file or directory within the repository.")),
            ReadTool::new("git_diff", DIFF)
                .title("Difference of two revisions")
                .description("Shows the difference between two revisions of a git repository, as a patch.")
                .parameter(described("from", revision))
                .parameter(described("to", revision)),
            ReadTool::new("git_show", COMMIT)
                .title("One commit")
                .description("Shows one commit of a git repository: who, when, why, and which files it changed.")
                .parameter(described("id", "The commit, as git_log names it, or a branch, a tag, or HEAD~2.")),
        ];
        let offered = tools.into_iter().filter_map(|tool| {
            let offers = |own: &&Arc<GitRepository>| own.settings.tools.offers(&tool.tool.name, feed);
            let names: Vec<_> = self.repositories.iter().filter(offers).map(|own| own.name.clone()).collect();
            (!names.is_empty()).then(|| tool.parameter(choice("repo", "The repository.", names)))
        });
        offered.collect()
    }

    /// The children of a directory of a revision.
    fn children(
        &self,
        request: &Directory,
        context: &RequestContext<'_>,
    ) -> Result<Vec<Resource>, ReadError> {
        let absent = |error| if error == ReadError::Failed { error } else { request.absent() };
        let repository = request.param("repo").and_then(|name| self.repository(name));
        let is_tree = GitRoute::parse(request.route()) == Some(GitRoute::Tree);
        let repository = repository.filter(|_| is_tree).ok_or_else(|| request.absent())?;
        let revision = request.param("ref").and_then(GitRevision::parse).ok_or_else(|| request.absent())?;
        let path = request.param("path").unwrap_or_default();
        let children = |handle: &Handle<'_>| {
            contents::children(handle, &revision, path, Directory::MOST_CHILDREN, context)
        };
        repository.with(context, children).map(|(children, ..)| children).map_err(absent)
    }

    /// The index: the repositories that the client may see, with their URIs.
    fn index(&self, context: &RequestContext<'_>) -> Result<ReadResult<'static>, ReadError> {
        let mut all = Map::new();
        for repository in &self.repositories {
            let mut uris = Map::new();
            for (name, rest) in [
                ("status", "status"),
                ("branches", "branches"),
                ("tags", "tags"),
                ("log", "log"),
                ("tree", "tree/HEAD/"),
            ] {
                let uri = format!("{}{rest}", repository.uri);
                if context.permits(&uri) && !(name == "status" && repository.is_bare()) {
                    uris.insert(name.into(), uri.into());
                }
            }
            if !uris.is_empty() {
                all.insert(repository.name.clone(), Value::Object(uris));
            }
        }
        text(Value::Object(all).to_string(), JSON, context)
    }

    fn answer(&self, request: &Read, context: &RequestContext<'_>) -> Result<ReadResult<'static>, ReadError> {
        let repository = request.param("repo").and_then(|name| self.repository(name));
        let repository = repository.ok_or(ReadError::NotFound)?;
        let path = request.param("path");
        // Malformed values are refused before the repository is opened.
        let target = target(request)?;
        let max = count(request.param("n"), repository.settings.log_max)?;
        let after = request.param("after").map(|after| {
            After::parse(after)
                .ok_or_else(|| wrong("after", "the value of `after` in a URI that `next` gave"))
        });
        let after = after.transpose()?;
        let answer = |handle: &Handle<'_>| {
            let (json, mark) = match &target {
                GitTarget::Status => status::status(handle, context)?,
                GitTarget::Branches => references::branches(handle, after.as_ref(), context)?,
                GitTarget::Tags => references::tags(handle, after.as_ref(), context)?,
                GitTarget::Log(revision) => {
                    let log = LogRequest { revision: revision.as_ref(), path, max };
                    commits::log(handle, &log, context)?
                }
                GitTarget::Commit(revision) => commits::commit(handle, revision, context)?,
                GitTarget::Diff(from, to) => {
                    let (patch, mark) = patch::diff(handle, from, to, context)?;
                    return Ok((text(patch, PATCH, context)?, mark));
                }
                GitTarget::Path(revision, _) if GitRoute::parse(request.route()) == Some(GitRoute::Tree) => {
                    return contents::tree(handle, revision, path.unwrap_or_default(), context);
                }
                GitTarget::Path(revision, _) => {
                    return contents::blob(handle, revision, path.unwrap_or_default(), context);
                }
                GitTarget::Lists => return Err(ReadError::NotFound),
            };
            Ok((text(json, JSON, context)?, mark))
        };
        let watching = repository.settings.watch.then(|| self.tracker());
        let start = watching.as_ref().map(|tracker| tracker.start_read());
        let (result, mark) = repository.with(context, |handle| {
            answer(handle).inspect_err(|error| {
                if matches!(error, ReadError::Failed) && !context.is_cancelled() {
                    let dir = repository.dir().display();
                    context.log(&format!("{} cannot be read, in {dir}", request.uri()));
                }
            })
        })?;
        if let Some((tracker, start)) = watching.zip(start) {
            tracker.saw_any_spelling(request.uri(), mark, start);
        }
        Ok(result)
    }

    fn completed(&self, request: &Complete, context: &RequestContext<'_>) -> Option<Vec<String>> {
        let variable = request.variable();
        let typed = request.value();
        let repository = match request.argument("repo") {
            Some(name) => self.repository(name),
            None => self.repositories.first().filter(|_| self.repositories.len() == 1),
        };
        if variable == "repo" {
            let fits = self.repositories.iter().filter(|repository| {
                repository.name.starts_with(typed) && context.permits(&format!("{}log", repository.uri))
            });
            return Some(fits.map(|repository| repository.name.clone()).collect());
        }
        let repository = repository?;
        if variable == "n" {
            let numbers = [10, 20, 50, 100, 200, 500, 1_000].into_iter();
            let numbers = numbers.filter(|n| *n <= repository.settings.log_max).map(|n: usize| n.to_string());
            return Some(numbers.filter(|n| n.starts_with(typed)).collect());
        }
        let completed = |handle: &Handle<'_>| match variable {
            "ref" | "from" | "to" => complete::revisions(handle, typed, context),
            "id" => complete::ids(handle, typed, context),
            _ => {
                let revision = request.argument("ref").unwrap_or("HEAD");
                let of = match GitRoute::parse(request.route()) {
                    Some(GitRoute::Tree) => PathOf::Tree,
                    Some(GitRoute::Log) => PathOf::Log,
                    _ => PathOf::Blob,
                };
                complete::paths(handle, revision, typed, of, context)
            }
        };
        repository.with(context, completed).ok()
    }

    fn repository(&self, name: &str) -> Option<&Arc<GitRepository>> {
        self.repositories.iter().find(|repository| repository.name == name)
    }
}

/// The resources of a repository that a template lists, each with its key in the order of the list.
fn listed(
    repository: &GitRepository,
    route: Option<GitRoute>,
    context: &RequestContext<'_>,
) -> Result<Vec<(String, Resource)>, ReadError> {
    let name = &repository.name;
    let one = |rest: &str, mime_type: &str, priority: f64| {
        let item = Resource::new(format!("{}{rest}", repository.uri)).name(format!("{name}/{rest}"));
        vec![(String::new(), item.mime_type(mime_type).priority(priority))]
    };
    match route {
        Some(GitRoute::Status) if repository.is_bare() => Ok(Vec::new()),
        Some(GitRoute::Status) => Ok(one("status", JSON, 0.9)),
        Some(GitRoute::Branches) => Ok(one("branches", JSON, 0.7)),
        Some(GitRoute::Tags) => Ok(one("tags", JSON, 0.5)),
        Some(GitRoute::Log) => Ok(one("log", JSON, 0.8)),
        Some(GitRoute::Tree) => {
            let head = repository.with(context, |handle| handle.head())?;
            Ok(if head.is_some() { one("tree/HEAD/", DIRECTORY, 0.6) } else { Vec::new() })
        }
        _ => {
            let mut named = repository.with(context, |handle| {
                let newest = references::newest_first(handle, references::all(handle)?)?;
                Ok(newest.into_iter().map(|(_, named)| named).take(LISTED).collect::<Vec<_>>())
            })?;
            named.sort();
            named.dedup_by(|one, other| one.encoded == other.encoded);
            let item = |named: references::RefName| {
                let what = if named.is_tag { "tag" } else { "branch" };
                let item = Resource::new(repository.uri_of("log", &named.encoded))
                    .name(format!("{name}/log/{}", named.name))
                    .title(format!("The commits of the {what} {}", named.name))
                    .mime_type(JSON);
                (named.encoded, item)
            };
            Ok(named.into_iter().map(item).collect())
        }
    }
}

/// The target of a request.
fn target(request: &Read) -> Result<GitTarget, ReadError> {
    let revision = |variable: &str| {
        let value = request.param(variable).unwrap_or_default();
        GitRevision::parse(value).ok_or_else(|| wrong(variable, revision::EXPECTED))
    };
    Ok(match GitRoute::parse(request.route()) {
        Some(GitRoute::Status) => GitTarget::Status,
        Some(GitRoute::Branches) => GitTarget::Branches,
        Some(GitRoute::Tags) => GitTarget::Tags,
        Some(GitRoute::Log) => GitTarget::Log(None),
        Some(GitRoute::LogOfRevision) => GitTarget::Log(Some(revision("ref")?)),
        Some(GitRoute::Commit) => GitTarget::Commit(revision("id")?),
        Some(GitRoute::Diff) => GitTarget::Diff(revision("from")?, revision("to")?),
        _ => {
            let path = request.param("path").unwrap_or_default();
            GitTarget::Path(
                revision("ref")?,
                mcp_resources_provider_kit::uri_path::path(path).ok_or(ReadError::NotFound)?.0,
            )
        }
    })
}

/// Parses the requested number of commits.
fn count(n: Option<&str>, max: usize) -> Result<usize, ReadError> {
    let Some(n) = n else { return Ok(max) };
    let number = n.bytes().all(|byte| byte.is_ascii_digit()).then(|| n.parse().ok()).flatten();
    number
        .filter(|number| (1..=max).contains(number))
        .ok_or_else(|| wrong("n", &format!("a whole number from 1 to {max}")))
}

fn wrong(variable: &str, expected: &str) -> ReadError {
    ReadError::InvalidParameter { parameter: variable.into(), expected: expected.into() }
}

fn text(
    text: String,
    mime_type: &'static str,
    context: &RequestContext<'_>,
) -> Result<ReadResult<'static>, ReadError> {
    context.facts(text.len() as u64)?;
    Ok(Contents::text(text).with_mime_type(mime_type).into())
}

/// `path` may be empty: that is the root.
fn may_be_empty() -> TemplateOptions {
    TemplateOptions::default().variable("path", VariableOptions { empty: true, ..VariableOptions::default() })
}
