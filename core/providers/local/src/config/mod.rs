//! The config provider: `config:///{app}` and `config:///{app}/{+key}`, for files in YAML, TOML, JSON or `.env` form.
//!
//! ```text
//!   Options ──▶ Config ──▶ App, one for each file: read when it has changed ──▶ Tree: what is allowed, with its masks
//!                 └─ Watch: a thread looks at the files while somebody watches a key or the lists
//! ```
//!
//! Law: only keys that `allow` names exist. A key that is absent, not allowed, or denied by the guard is not found; all
//! cases look the same. A value is masked before it is kept, if its name stands for a secret or a detector finds one in
//! it.

mod app;
mod dotenv;
mod options;
mod parse;
mod tree;
mod watch;

pub use options::ConfigOptions;

use crate::masks::{Detectors, Masks, globs};
use app::{App, Log};
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{COMPLETED, completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::named;
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, Responder,
};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use tree::{TreeSettings, is_plain};
use watch::ConfigWatch;

const INDEX: &str = "config:///";
const APPS: &str = "config:///{app}";
const KEYS: &str = "config:///{app}/{+key}";

routes! {
    /// The resources and templates of the provider.
    enum ConfigRoute {
        Index,
        Apps,
        Keys,
    }
}

/// Maximum number of listed keys of an application. All allowed keys can be read.
const LISTED: usize = 1_000;
pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain";

/// The page of a list that is context for.
struct ConfigListContext<'a> {
    cursor: Option<&'a str>,
    limit: usize,
    permits: &'a tree::Permits<'a>,
    log: &'a Log<'a>,
}

/// Files of configuration that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Config {
    apps: Vec<Arc<App>>,
    own: OwnWatch,
    watch: Arc<ConfigWatch>,
}

impl Config {
    /// Makes a provider of the files of `options`. Each is read once, so that mistakes are reported at the start.
    ///
    /// # Errors
    /// There is no file, a file cannot be read or is invalid, two have the same name, or no key is allowed: a server
    /// without any key would look as if it did not work.
    pub fn new(options: ConfigOptions) -> Result<Self, OptionError> {
        if options.apps.is_empty() {
            let reason = "config: there is no file; name one: `apps: {NAME: FILE}`, or config:FILE";
            return Err(OptionError::sentence(reason));
        }
        let Some(allow) = &options.allow else {
            let file = options.apps.first().map(|app| app.path.display().to_string()).unwrap_or_default();
            return Err(OptionError::sentence(format!(
                "config: nothing of {file} is allowed; say which keys are served: `allow: [\"server\", \"server/**\"]`, or \
                 'config:{file},server,server/**' with the command"
            )));
        };
        let settings = TreeSettings {
            allow: globs("allow", allow)?,
            masks: Masks::new(&options.redact, &options.reveal)?,
        };
        let settings = Arc::new(settings);
        let mut config = Self { apps: Vec::new(), own: OwnWatch::default(), watch: Arc::default() };
        for named in &options.apps {
            let name = options::name_of(named)?;
            let mut uri = String::from(INDEX);
            path::append(&mut uri, &name);
            let app = App::open(name, uri, named.path.clone(), settings.clone()).map_err(|what| {
                OptionError::sentence(format!("config: the file {} {what}", named.path.display()))
            })?;
            config.add(Arc::new(app))?;
        }
        Ok(config)
    }

    /// The files of both, each with its own options.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    fn add(&mut self, app: Arc<App>) -> Result<(), OptionError> {
        if let Some(first) = self.apps.iter().find(|first| first.name == app.name) {
            return Err(named::same_name("config", "files", &app.name, &first.file, &app.file));
        }
        self.apps.push(app);
        Ok(())
    }
}

impl Declare for Config {
    const KIND: OptionKind = OptionKind {
        name: "config",
        about: "The keys of configuration files that are allowed, as config:///APP/KEY.",
        options: ConfigOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: ConfigOptions = declared::read("config", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        self.apps.iter().map(|own| declared::place(&own.uri)).collect()
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.apps.len();
        other.apps.into_iter().try_for_each(|app| self.add(app)).inspect_err(|_| self.apps.truncate(before))
    }

    /// `FILE,GLOB,…` or `NAME=FILE,GLOB,…`: the file, and globs of the allowed keys.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        if rest.is_empty() {
            return Err(OptionError::sentence(
                "\"config:\" names no file; write config:FILE,GLOB or config:NAME=FILE,GLOB",
            ));
        }
        let mut parts = rest.split(',');
        let file = named::parse_path(parts.next().unwrap_or_default());
        let mut members = vec![("apps".to_owned(), OptionValue::List(vec![file]))];
        let globs: Vec<OptionValue> = parts.map(|glob| glob.trim().into()).collect();
        if !globs.is_empty() {
            members.push(("allow".into(), OptionValue::List(globs)));
        }
        Ok(OptionValue::Members(members))
    }
}

impl Provider for Config {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("config", feed)?;
        self.watch.begin_anew();
        let index = Resource::new(INDEX)
            .name("config")
            .title("The applications whose configuration is served")
            .mime_type(JSON)
            .priority(1.0);
        let apps = Template::new(APPS)
            .title("The configuration of an application, as far as it is served")
            .mime_type(JSON)
            .completes("app")
            .list(ListSource { pages: true });
        let keys = Template::new(KEYS)
            .title("A key of it: a value, or an object of keys")
            .description("The path of the key, as server/port. A slash within a name is ~2F.")
            .completes("app")
            .completes("key")
            .list(ListSource { pages: true });
        Ok(Mount::new("config")
            .resource(ConfigRoute::Index, index)
            .template(ConfigRoute::Apps, apps)
            .template(ConfigRoute::Keys, keys))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = self.answer(&request, &|what| reply.log(what)).and_then(|(value, mime_type)| {
            let text = tree::text(value);
            reply.facts(text.len() as u64)?;
            Ok(Contents::text(text).with_mime_type(mime_type).into())
        });
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let permits = |uri: &str| request.permits(uri);
        let context = ConfigListContext {
            cursor: request.cursor(),
            limit: request.limit().max(1),
            permits: &permits,
            log: &|what| reply.log(what),
        };
        let page = match ConfigRoute::parse(request.route()) {
            Some(ConfigRoute::Apps) => self.list_apps(&context),
            _ => self.list_keys(&context),
        };
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let permits = |uri: &str| request.permits(uri);
        let values: Vec<String> = match request.variable() {
            "app" => {
                let fits = self.apps.iter().filter(|app| app.name.starts_with(typed) && permits(&app.uri));
                fits.map(|app| app.name.clone()).take(COMPLETED).collect()
            }
            "key" => {
                let app = match request.argument("app") {
                    Some(app) => self.app(app),
                    None => self.apps.first().filter(|_| self.apps.len() == 1),
                };
                app.map(|app| self.complete_keys(app, typed, &permits, &|what| reply.log(what)))
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        };
        reply.send(Ok(completion(values)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        self.watch.interest(change, self.own.feed(), &self.apps);
    }
}

impl Config {
    /// The value that is read, and its media type.
    fn answer(&self, request: &Read, log: &Log<'_>) -> Result<(Value, &'static str), ReadError> {
        let permits = |uri: &str| request.permits(uri);
        if ConfigRoute::parse(request.route()) == Some(ConfigRoute::Index) {
            let apps = self.apps.iter().filter(|app| permits(&app.uri));
            let apps: Map<_, _> = apps.map(|app| (app.name.clone(), app.uri.clone().into())).collect();
            return Ok((Value::Object(apps), JSON));
        }
        let app = self.app(request.param("app").unwrap_or_default()).ok_or(ReadError::NotFound)?;
        let root = self.now(app, log).ok_or(ReadError::Failed)?;
        let key = request.param("key").unwrap_or_default();
        let node = root.root.find(key).ok_or(ReadError::NotFound)?;
        let value = node.value(&uri_of(app, key), &permits);
        let mime_type = if is_plain(&value) { TEXT } else { JSON };
        Ok((value, mime_type))
    }

    fn list_apps(&self, context: &ConfigListContext<'_>) -> ListPage {
        let ConfigListContext { cursor, limit, permits, log } = *context;
        let from =
            cursor.map_or(0, |cursor| self.apps.iter().take_while(|app| app.name != cursor).count() + 1);
        let rest = self.apps.iter().skip(from).filter(|app| permits(&app.uri));
        page(
            limit,
            rest,
            |app| app.name.clone(),
            |app| {
                let listed = Resource::new(&*app.uri).name(&*app.name).mime_type(JSON).priority(0.9);
                match self.now(app, log).and_then(|now| now.modified.clone()) {
                    Some(modified) => listed.last_modified(modified),
                    None => listed,
                }
            },
        )
    }

    fn list_keys(&self, context: &ConfigListContext<'_>) -> ListPage {
        let ConfigListContext { cursor, limit, permits, log } = *context;
        // Behind which key of which application. The order is that of the walk: by segments.
        let (from, after) = cursor.and_then(|cursor| cursor.split_once('/')).unzip();
        let skip = from.map_or(0, |from| self.apps.iter().take_while(|app| app.name != from).count());
        let mut items = Vec::new();
        let mut last = None;
        let mut missing = Vec::new();
        let mut more = false;
        for (at, app) in self.apps.iter().enumerate().skip(skip) {
            let Some(now) = self.now(app, log) else {
                missing.push(app.name.clone());
                continue;
            };
            let after = after.filter(|_| at == skip);
            let mut listed = 0;
            now.root.walk(&app.uri, &mut |visit| {
                if !permits(visit.uri) {
                    return true;
                }
                listed += 1;
                if listed > LISTED {
                    return false;
                }
                if after.is_some_and(|after| visit.path.split('/').le(after.split('/'))) {
                    return true;
                }
                if items.len() == limit {
                    more = true;
                    return false;
                }
                last = Some(format!("{}/{}", app.name, visit.path));
                items.push(item(&visit, now.modified.as_deref()));
                true
            });
            if more {
                break;
            }
        }
        ListPage { next: last.filter(|_| more), missing, ..ListPage::new(items) }
    }

    /// The paths of keys that begin with the typed text, percent-encoded or not.
    fn complete_keys(
        &self,
        app: &App,
        typed: &str,
        permits: &tree::Permits<'_>,
        log: &Log<'_>,
    ) -> Vec<String> {
        let mut values = Vec::new();
        let Some(now) = self.now(app, log) else { return values };
        let plain = path::decoded(typed);
        now.root.walk(&app.uri, &mut |visit| {
            let encoded = visit.uri.get(app.uri.len() + 1..).unwrap_or_default();
            let fits = encoded.starts_with(typed)
                || plain.as_ref().is_some_and(|plain| visit.path.starts_with(plain));
            if fits && permits(visit.uri) {
                values.push(encoded.to_owned());
            }
            values.len() < COMPLETED
        });
        values
    }

    fn app(&self, name: &str) -> Option<&Arc<App>> {
        self.apps.iter().find(|app| app.name == name)
    }

    /// Returns the current state of an application. Notifies its subscribers if it has changed.
    fn now(&self, app: &App, log: &Log<'_>) -> Option<Arc<app::ConfigSnapshot>> {
        match self.own.feed() {
            Some(feed) => self.watch.see(app, &feed, log),
            None => app.now().0,
        }
    }
}

/// The keys and values that are served of a file with this name and these bytes if all is allowed, each at its URI: for the
/// fuzz target.
///
/// # Errors
/// Why the file is not served.
#[doc(hidden)]
pub fn served(file: &Path, bytes: &[u8]) -> Result<Vec<(String, Value)>, String> {
    // Patterns are compiled once: it is called for many files.
    static ALL: LazyLock<Result<TreeSettings, OptionError>> = LazyLock::new(|| {
        let allow = globs("allow", &["**".to_owned()])?;
        Ok(TreeSettings { allow, masks: Masks::new(&Detectors::All, &[])? })
    });
    let settings = ALL.as_ref().map_err(ToString::to_string)?;
    let format = parse::ConfigFormat::from_path(file).ok_or("it has no extension of a configuration file")?;
    let members = format.parse(bytes).map_err(|fault| fault.to_string())?.members;
    let root = tree::ConfigNode::root(members, settings).0;
    let mut all = Vec::new();
    root.walk("config:///app", &mut |visit| {
        let found = root.find(visit.path).map(|node| node.value(visit.uri, &|_| true));
        all.extend(found.map(|value| (visit.uri.to_owned(), value)));
        true
    });
    Ok(all)
}

/// The list entry of a key. An object has no size there: its size depends on the keys that the client may see.
fn item(visit: &tree::TreeVisit<'_>, modified: Option<&str>) -> Resource {
    // A name has something to see in it.
    let name = if visit.path.trim().is_empty() { visit.uri } else { visit.path };
    let mut listed = Resource::new(visit.uri).name(name);
    listed = match visit.node.leaf() {
        Some(Value::String(text)) => listed.mime_type(TEXT).size(text.len() as u64),
        Some(value) => {
            listed.mime_type(if is_plain(value) { TEXT } else { JSON }).size(value.to_string().len() as u64)
        }
        None => listed.mime_type(JSON),
    };
    match modified {
        Some(modified) => listed.last_modified(modified),
        None => listed,
    }
}

/// The URI of a key whose path is spelled as keys are.
fn uri_of(app: &App, key: &str) -> String {
    let mut uri = app.uri.clone();
    if !key.is_empty() {
        uri.push('/');
        path::append(&mut uri, key);
    }
    uri
}
