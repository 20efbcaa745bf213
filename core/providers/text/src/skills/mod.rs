//! The skills provider, Agent Skills: `skill://{+path}`, for folders of skills, with the methods of the extension
//! `io.modelcontextprotocol/skills` (SEP-2640).
//!
//! ```text
//!   Options ──▶ Skills ──▶ Library: the folders ──refresh──▶ Snapshot: each Skill with its front matter and digests
//!                 ├─ methods: skills/list, skills/get, and the children of directories
//!                 └─ SkillSource: a tracker compares digests while somebody watches a file or the lists
//! ```
//!
//! A directory with a `SKILL.md` is a skill, wherever it is in a folder: `skill://acme/billing/refunds` is the directory
//! `acme/billing/refunds`. Skills may be nested; the files of the inner one are files of the outer one too. Which part of a URI
//! is the path of the skill is known from the skills that there are.
//!
//! Law: only files of skills are served, and no skill that a conforming host might refuse: a skill that does not follow
//! the Agent Skills specification or exceeds its limits is logged and left out.

mod contents;
mod library;
mod methods;
mod options;
mod skill;
mod watch;

pub use options::SkillOptions;

use contents::SkillTarget;
use library::{SkillLibrary, SkillSnapshot};
use mcp_resources_engine::connection::{Completion, Contents, ListPage, RawResult, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{COMPLETED, completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::named;
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::tracker::{ProcessTracker, Tracker};
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Call, Complete, Directory, DirectoryPage, Feed, InterestChange, List, Mount, Provider, Read, Responder,
};
use mcp_resources_template::uri;
use serde_json::json;
use skill::{INDEX, SCHEME, Skill};
use std::path::Path;
use std::sync::Arc;
use watch::SkillSource;

const PATHS: &str = "skill://{+path}";
const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Directories can be read.
const SETTINGS: &str = r#"{"directoryRead":true}"#;

routes! {
    /// The resources and templates of the provider.
    enum SkillRoute {
        Index,
        Paths,
        List,
        Get,
    }
}

/// The longest URI, in bytes: the engine's own limit has been applied before.
const LONGEST: usize = 1 << 20;

/// Folders of skills that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Skills {
    library: Arc<SkillLibrary>,
    list_max: usize,
    watch: bool,
    own: OwnWatch,
    tracker: ProcessTracker<SkillSource>,
}

impl Skills {
    /// Makes a provider of the folders of `options`. Nothing is opened before the first request.
    ///
    /// # Errors
    /// There is no folder, one is not a directory, or an option cannot be used.
    pub fn new(options: SkillOptions) -> Result<Self, OptionError> {
        if options.paths.is_empty() {
            let reason = "skills: there is no directory; name one: `paths: [DIR]`, or skills:DIR";
            return Err(OptionError::sentence(reason));
        }
        let library = Arc::new(SkillLibrary::new(&options)?);
        let SkillOptions { list_max, watch, .. } = options;
        Ok(Self { library, list_max, watch, own: OwnWatch::default(), tracker: ProcessTracker::default() })
    }
}

impl Declare for Skills {
    const KIND: OptionKind = OptionKind {
        name: "skills",
        about: "Folders of Agent Skills, as skill://PATH, with the methods of the skills extension.",
        options: SkillOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: SkillOptions = declared::read("skills", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        let roots = &self.library.roots;
        match roots.iter().any(|root| root.prefix.is_empty()) {
            true => Vec::new(),
            false => roots.iter().map(|root| format!("skill://{}", root.prefix)).collect(),
        }
    }

    fn schemes(&self) -> Vec<String> {
        vec!["skill".into()]
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let roots = Arc::try_unwrap(other.library).map(|library| library.roots);
        if let (Some(own), Ok(roots)) = (Arc::get_mut(&mut self.library), roots) {
            own.roots.extend(roots);
        }
        self.list_max = self.list_max.max(other.list_max);
        self.watch |= other.watch;
        Ok(())
    }

    /// `DIR` or `PREFIX=DIR`. A directory whose own name has a `=` is `./a=b`.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        match rest {
            "" => {
                let forms = "\"skills:\" names no directory; write skills:DIR or skills:PREFIX=DIR";
                Err(OptionError::sentence(forms))
            }
            _ => Ok(OptionValue::List(vec![named::parse_path(rest)])),
        }
    }
}

impl Provider for Skills {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("skills", feed)?;
        self.tracker.clear();
        let index = Resource::new(INDEX)
            .name("skills")
            .title("The skills that are served")
            .mime_type("application/json")
            .priority(1.0);
        let paths = Template::new(PATHS)
            .title("A file of a skill, or the children of one of its directories")
            .completes("path")
            .list(ListSource { pages: true });
        let mount =
            Mount::new("skills").resource(SkillRoute::Index, index).template(SkillRoute::Paths, paths);
        let mount = mount.method(SkillRoute::List, "skills/list").method(SkillRoute::Get, "skills/get");
        Ok(mount.directories().extension(EXTENSION, SETTINGS))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = match SkillRoute::parse(request.route()) {
            Some(SkillRoute::Index) => self.index(&request, &reply),
            _ => self.contents(&request, &reply),
        };
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let Some(now) = self.library.refresh(request.context(&reply)) else {
            return reply.send(Err(ReadError::Failed));
        };
        let cursor = request.cursor().unwrap_or_default();
        let items = listed(&now).into_iter().take(self.list_max);
        let shows = |uri: &str| now.shows(uri, &|uri| request.permits(uri));
        let rest = items.filter(|item| *item.key > *cursor && shows(&item.uri));
        reply.send(Ok(page(
            request.limit(),
            rest,
            |item| item.key.clone(),
            |item| {
                let file = item.skill.files.get(item.at);
                let path = file.map(|file| &*file.path).unwrap_or_default();
                match file {
                    Some(file) => item.skill.resource(path, &file.stamp, now.head(item.skill, path)),
                    None => Resource::new(item.uri),
                }
            },
        )));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let now = self.library.refresh(request.context(&reply));
        let plain = mcp_resources_provider_kit::path::decoded(typed).unwrap_or_default();
        let begins = |path: &str| {
            path.starts_with(typed)
                || mcp_resources_provider_kit::path::decoded(path)
                    .is_some_and(|path| path.starts_with(&plain))
        };
        let now = now.unwrap_or_default();
        let items = listed(&now);
        let shows = |uri: &str| now.shows(uri, &|uri| request.permits(uri));
        let uris = items.iter().map(|item| &*item.uri).filter(|uri| shows(uri));
        let paths = uris.filter_map(|uri| uri.strip_prefix(SCHEME)).filter(|path| begins(path));
        reply.send(Ok(completion(paths.take(COMPLETED).map(str::to_owned))));
    }

    fn call(&self, request: Call, reply: Responder<RawResult<'static>>) {
        let answer = match self.library.refresh(request.context(&reply)) {
            None => Err(ReadError::Failed),
            Some(now) => match SkillRoute::parse(request.route()) {
                Some(SkillRoute::List) => methods::list(&request, &now),
                _ => methods::get(&request, &now),
            },
        };
        reply.send(answer);
    }

    fn directory(&self, request: Directory, reply: Responder<DirectoryPage>) {
        let answer = match self.library.refresh(request.context(&reply)) {
            None => Err(ReadError::Failed),
            Some(now) => {
                let children = methods::directory(&request, &now, &self.library);
                children.map(|children| request.page(children)).ok_or_else(|| request.absent())
            }
        };
        reply.send(answer);
    }

    fn interest(&self, change: InterestChange<'_>) {
        if self.watch {
            self.tracker().interest(change, self.own.feed());
        }
    }
}

impl Skills {
    /// The tracker of this process.
    fn tracker(&self) -> Arc<Tracker<SkillSource>> {
        self.tracker.get(|| SkillSource(self.library.clone()))
    }

    /// The skills that the client may see, for clients without the extension.
    fn index(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let start = self.tracker().start_read();
        let now = self.library.refresh(request.context(reply));
        let now = now.ok_or(ReadError::Failed)?;
        let visible = now.skills.values().map(|skill| (skill.uri(), skill));
        let skills: Vec<_> = visible
            .filter(|(uri, _)| request.permits(uri))
            .map(|(uri, skill)| {
                json!({ "uri": uri, "name": skill.head.name, "description": skill.head.description })
            })
            .collect();
        let text = json!({ "skills": skills }).to_string();
        reply.facts(text.len() as u64)?;
        self.tracker().saw(INDEX, now.mark(INDEX), start);
        Ok(Contents::text(text).with_mime_type("application/json").into())
    }

    fn contents(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let uri = uri::normalize(request.uri(), LONGEST).map_err(|_| ReadError::NotFound)?;
        let tracker = self.tracker();
        let start = tracker.start_read();
        let known = self.library.current();
        if let Some((skill, path)) = known.find(&uri) {
            let root = self.library.roots.get(skill.folder).ok_or(ReadError::NotFound)?;
            if root.folder.open().is_ok_and(|folder| known.is_current(skill, &folder)) {
                return contents::read(
                    &SkillTarget { snapshot: &known, skill, path: &path, uri: &uri, start },
                    &tracker,
                    request,
                    reply,
                );
            }
        }
        let now = self.library.refresh(request.context(reply));
        let now = now.ok_or(ReadError::Failed)?;
        let (skill, path) = now.find(&uri).ok_or(ReadError::NotFound)?;
        contents::read(
            &SkillTarget { snapshot: &now, skill, path: &path, uri: &uri, start },
            &tracker,
            request,
            reply,
        )
    }
}

/// A file that is listed.
struct ListedSkill<'s> {
    /// Its sort key: the `SKILL.md` of all skills come first.
    key: String,
    uri: String,
    skill: &'s Skill,
    /// Its place among the files of the skill.
    at: usize,
}

/// All files of all skills, each once.
fn listed(snapshot: &SkillSnapshot) -> Vec<ListedSkill<'_>> {
    let mut all: Vec<ListedSkill<'_>> = Vec::new();
    for skill in snapshot.skills.values() {
        for (at, file) in skill.files.iter().enumerate() {
            let uri = skill.uri_of(&file.path);
            let is_manifest = snapshot.head(skill, &file.path).is_some();
            let key = format!("{}{uri}", if is_manifest { '0' } else { '1' });
            all.push(ListedSkill { key, uri, skill, at });
        }
    }
    all.sort_by(|one, other| one.key.cmp(&other.key));
    // The files of a nested skill are files of the skill around it too.
    all.dedup_by(|one, other| one.key == other.key);
    all
}
