//! The db provider: `db:///{name}/schema`, `db:///{name}/{table}`, `db:///{name}/{table}/{key}` and
//! `db:///{name}/query/VIEW`, for SQLite and Postgres.
//!
//! ```text
//!   Options ──▶ Source, one for each database ──▶ Target: what a URI names ──▶ contents: JSON
//!                                                                                │ Query, bound
//!      Watch: a thread while a URI is watched ──▶ Session, one for each thread ◀─┘
//!                                                   └─ sqlite | postgres
//! ```
//!
//! Law: clients never send SQL. They read declared tables, and the operator's statements with bound parameters. Nothing
//! is written: see `sqlite` and `postgres`.

mod catalog;
mod contents;
mod key;
mod options;
mod pool;
mod postgres;
mod query;
mod reach;
mod session;
mod sessions;
mod source;
mod sqlite;
mod ssl_mode;
mod statement;
mod target;
mod tls;
mod tools;
mod triggers;
mod url;
mod value;
mod watch;

pub use options::{Database, DbOptions};
pub use ssl_mode::SslMode;
pub use triggers::triggers;

use contents::RowReader;
use mcp_resources_engine::connection::{Cancelled, Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue, PathStep};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{COMPLETED, completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::tracker::{ProcessTracker, Tracker};
use mcp_resources_provider_kit::watching::OwnWatch;
use mcp_resources_runtime::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, ReadRef, Responder,
};
use query::DbQuery;
use session::SessionFault;
use source::DbSource;
use std::path::Path;
use std::sync::Arc;
use target::{DbRoute, DbTarget, INDEX, ROW, SCHEMA, TABLE};
use watch::RowSource;

const JSON: &str = "application/json";
/// Maximum number of requests that wait for a thread.
const QUEUE: usize = 256;

/// Databases that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Db {
    sources: Vec<Arc<DbSource>>,
    own: OwnWatch,
    /// One for each database, so that one that does not answer delays no other.
    trackers: Vec<ProcessTracker<RowSource>>,
}

impl Db {
    /// Makes a provider of the databases of `options`. Each is opened once and closed again, so that mistakes are
    /// reported at the start. A Postgres server that does not answer within 5 seconds is logged, and reads fail until
    /// it is back.
    ///
    /// # Errors
    /// There is no database, two have the same name, a URL or a name cannot be served, a SQLite file cannot be opened, a
    /// Postgres server refuses the user, the password or the database, a table or statement that is declared cannot be served,
    /// or a denied column does not exist.
    pub fn new(options: DbOptions) -> Result<Self, OptionError> {
        if options.databases.is_empty() {
            return Err(OptionError::sentence(
                "db: there is no database; name one: `databases: {NAME: {url: \"sqlite:PATH\", tables: [TABLE]}}`, or \
                 db:NAME=URL,TABLE",
            ));
        }
        let mut db = Self { sources: Vec::new(), own: OwnWatch::default(), trackers: Vec::new() };
        for (name, database) in options.databases {
            database.check_ranges().map_err(|error| error.under(PathStep::Name(name.clone().into())))?;
            let source = DbSource::new(name, database)?;
            source.check()?;
            db.add(source)?;
        }
        tools::check(&db.sources)?;
        Ok(db)
    }

    /// The databases of both.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    fn add(&mut self, source: Arc<DbSource>) -> Result<(), OptionError> {
        if self.sources.iter().any(|first| first.name == source.name) {
            return Err(OptionError::sentence(format!(
                "db: two databases have the name {:?}; give one of them another: db:NAME=URL, or `databases: {{NAME: …}}`",
                source.name
            )));
        }
        self.sources.push(source);
        self.trackers.push(ProcessTracker::default());
        Ok(())
    }
}

impl Declare for Db {
    const KIND: OptionKind = OptionKind {
        name: "db",
        about: "The tables and views of databases that are declared, as db:///NAME/TABLE and db:///NAME/TABLE/KEY.",
        options: DbOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: DbOptions = declared::read("db", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        self.sources.iter().map(|own| declared::place(&own.uri)).collect()
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.sources.len();
        let mut sources = other.sources.into_iter();
        sources.try_for_each(|source| self.add(source)).inspect_err(|_| {
            self.sources.truncate(before);
            self.trackers.truncate(before);
        })
    }

    /// `NAME=URL,TABLE,…` or `URL,TABLE,…`: the database, and the tables that are served.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        let (first, tables) = rest.split_at(url_length(rest));
        let first = first.trim();
        let parts = tables.split(',').skip(1).map(str::trim);
        let (name, url) = match first.split_once('=') {
            Some((name, url)) if !name.contains([':', '/']) => (name.to_owned(), url),
            _ => (own_name(first), first),
        };
        if url.is_empty() || name.is_empty() {
            return Err(OptionError::sentence(
                "\"db:\" names no database; write db:NAME=sqlite:PATH,TABLE or db:NAME=postgres://HOST/NAME,TABLE",
            ));
        }
        let tables = parts.map(OptionValue::from).collect();
        let member = |name: &str, value: OptionValue| (name.to_owned(), value);
        let database = OptionValue::Members(vec![
            member("url", url.into()),
            member("tables", OptionValue::List(tables)),
        ]);
        let databases = OptionValue::Members(vec![(name, database)]);
        Ok(OptionValue::Members(vec![member("databases", databases)]))
    }
}

/// The length of the part of a shorthand before its tables. Passwords and lists of hosts may contain commas too.
fn url_length(word: &str) -> usize {
    let authority = word.find("://").map_or(0, |at| at + 3);
    let rest = word.get(authority..).unwrap_or_default();
    let path = rest.find('/').or_else(|| rest.rfind('@')).unwrap_or_default();
    let comma = rest.get(path..).and_then(|path| path.find(','));
    comma.map_or(word.len(), |at| authority + path + at)
}

/// The name of a database that is given none: that of the file, or the last part of the URL.
fn own_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit(['/', ':']).next().unwrap_or_default();
    match url.starts_with("sqlite:") {
        true => last.split('.').next().unwrap_or_default().to_owned(),
        false => last.to_owned(),
    }
}

impl Provider for Db {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("db", feed.clone())?;
        for source in &self.sources {
            if let Some(what) = source.down.get() {
                feed.log(&format!("{}: {what}; reads fail until it is back", source.name));
            }
        }
        self.trackers.iter().for_each(ProcessTracker::clear);
        let index = Resource::new(INDEX)
            .name("db")
            .title("The databases that are served, with their tables and views")
            .mime_type(JSON)
            .priority(1.0);
        let schema = Template::new(SCHEMA)
            .title("The tables of a database, with their columns and keys, and its views")
            .mime_type(JSON)
            .completes("name")
            .list(ListSource { pages: true });
        let table = Template::new(TABLE)
            .title("The rows of a table, in the order of their keys, a page at a time")
            .description("`rows` is how many, up to 1000. `next` in a page is the URI of the next one.")
            .mime_type(JSON)
            .completes("name")
            .completes("table")
            .completes("after")
            .completes("rows")
            .list(ListSource { pages: true });
        let row = Template::new(ROW)
            .title("A row of a table")
            .description("The key of the row, as 3, or as 2,3 where a key has two columns.")
            .mime_type(JSON)
            .completes("name")
            .completes("table")
            .completes("key");
        let threads = self.sources.iter().map(|source| source.pool.max()).max().unwrap_or(1);
        let mount = Mount::new("db")
            .resource(DbRoute::Index, index)
            .template(DbRoute::Schema, schema)
            .template(DbRoute::Table, table)
            .template(DbRoute::Row, row)
            .workers(threads, QUEUE);
        let views = target::views(&self.sources).enumerate();
        let mount = views.fold(mount, |mount, (number, (at, view))| match self.sources.get(at) {
            Some(source) => with_view(mount, source, view, DbRoute::View(number)),
            None => mount,
        });
        Ok(tools::offered(&self.sources, &feed).into_iter().fold(mount, Mount::tool))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        (DbRoute::parse(request.route()) == Some(DbRoute::Index)).then(|| {
            let text = contents::index(&self.sources, &|uri| request.permits(uri));
            Ok(Contents::text(text).with_mime_type(JSON).into())
        })
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = self.answer(&request, &reply).map(|text| {
            let contents: ReadResult<'static> = Contents::text(text).with_mime_type(JSON).into();
            contents
        });
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let schema = |source: &Arc<DbSource>| (format!("{}/schema", source.uri), source.name.clone());
        let is_schema = DbRoute::parse(request.route()) == Some(DbRoute::Schema);
        let all: Vec<(String, String)> = match is_schema {
            true => self.sources.iter().map(schema).collect(),
            false => self
                .sources
                .iter()
                .flat_map(|source| source.tables.iter().map(|table| (table.uri.clone(), table.name.clone())))
                .collect(),
        };
        let from = request
            .cursor()
            .map_or(0, |cursor| all.iter().position(|(uri, _)| uri == cursor).map_or(all.len(), |at| at + 1));
        let rest = all.iter().skip(from).filter(|(uri, _)| request.permits(uri));
        let page = page(
            request.limit(),
            rest,
            |(uri, _)| uri.clone(),
            |(uri, name)| {
                let listed = Resource::new(uri.as_str()).mime_type(JSON);
                match is_schema {
                    true => listed.name(format!("{name}/schema")).priority(0.9),
                    false => listed.name(name.as_str()).priority(0.8),
                }
            },
        );
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let sources = || self.sources.iter().filter(|source| source.name.starts_with(typed));
        let values: Vec<String> = match request.variable() {
            "name" => sources()
                .filter(|source| self.shows(source, &request))
                .map(|source| source.name.clone())
                .collect(),
            "table" => {
                let source = self.source_of(&request);
                let tables = source.into_iter().flat_map(|source| &source.tables);
                let fits = tables.filter(|table| request.permits(&table.uri));
                fits.map(|table| mcp_resources_provider_kit::path::text(table.name.as_bytes()))
                    .filter(|name| name.starts_with(typed))
                    .collect()
            }
            "rows" => ["10", "100", "1000"]
                .into_iter()
                .filter(|rows| rows.starts_with(typed))
                .map(String::from)
                .collect(),
            // A completion that fails has no values.
            _ => self.complete_keys(&request, reply.cancelled()).unwrap_or_else(|fault| {
                drop(fault.answer(&|what| reply.log(what)));
                Vec::new()
            }),
        };
        reply.send(Ok(completion(values)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        // The lists and the index never change, because tables are declared.
        let InterestChange::Uri { uri, .. } = change else { return };
        let is_under =
            |source: &DbSource| uri.strip_prefix(&*source.uri).is_some_and(|rest| rest.starts_with('/'));
        let number = self.sources.iter().position(|source| is_under(source));
        if let Some(tracker) = number.and_then(|number| self.tracker(number)) {
            tracker.interest(change, self.own.feed());
        }
    }
}

/// A statement as a template, or as a resource if it has no parameters.
fn with_view(mount: Mount, source: &DbSource, view: usize, route: DbRoute) -> Mount {
    let Some(declared) = source.views.get(view) else { return mount };
    let title = format!("The view {} of the database {}", declared.name, source.name);
    if declared.statement.names.is_empty() {
        let resource = Resource::new(declared.uri.as_str()).name(declared.name.as_str()).title(title);
        return mount.resource(route, resource.mime_type(JSON).priority(0.8));
    }
    let template = Template::new(target::template(source, view)).name(declared.name.as_str()).title(title);
    mount.template(route, template.mime_type(JSON))
}

impl Db {
    /// The tracker of a database in this process.
    fn tracker(&self, number: usize) -> Option<Arc<Tracker<RowSource>>> {
        let source = self.sources.get(number)?;
        Some(self.trackers.get(number)?.get(|| RowSource::new(&self.sources, number, source)))
    }

    /// The text that is read.
    fn answer(&self, request: &Read, reply: &Responder<ReadResult<'static>>) -> Result<String, ReadError> {
        let route = DbRoute::parse(request.route()).ok_or(ReadError::NotFound)?;
        let (number, target) = DbTarget::resolve(&self.sources, route, |name| request.param(name))?;
        let source = self.sources.get(number).ok_or(ReadError::NotFound)?;
        let log = |what: &str| {
            if source.reach.is_news(what) {
                reply.log(&format!("{}: {what}", source.name));
            }
        };
        let reader = RowReader {
            permits: &|uri| request.permits(uri),
            fits: &|size| reply.facts(size).map_err(SessionFault::from),
            log: &|what| reply.log(what),
        };
        let read = || {
            sessions::with(source, reply.cancelled(), |session| {
                contents::read(source, session, &target, &reader)
            })
        };
        let tracker = self.tracker(number);
        let start = tracker.as_ref().map(|tracker| tracker.start_read());
        let read = match read() {
            Err(SessionFault::Stale(_)) => read(),
            other => other,
        };
        let read = read.map_err(|fault| fault.answer(&log))?;
        if source.reach.is_back() {
            reply.log(&format!("{}: it answers again", source.name));
        }
        if let Some((tracker, start)) = tracker.zip(start) {
            tracker.saw_any_spelling(request.uri(), read.state, start);
        }
        Ok(read.text)
    }

    /// Whether anything of a database may be seen.
    fn shows(&self, source: &DbSource, request: &Complete) -> bool {
        let mut uris =
            source.tables.iter().map(|table| &table.uri).chain(source.views.iter().map(|view| &view.uri));
        request.permits(&format!("{}/schema", source.uri)) || uris.any(|uri| request.permits(uri))
    }

    /// The database that a completion is about; the only one need not be said.
    fn source_of(&self, request: &Complete) -> Option<&Arc<DbSource>> {
        match request.argument("name") {
            Some(name) => self.sources.iter().find(|source| source.name == name),
            None => self.sources.first().filter(|_| self.sources.len() == 1),
        }
    }

    /// The keys that begin with the typed text.
    fn complete_keys(
        &self,
        request: &Complete,
        cancelled: Option<Cancelled>,
    ) -> Result<Vec<String>, SessionFault> {
        let source = self.source_of(request).ok_or(SessionFault::NotFound)?;
        let name = request.argument("table").and_then(|table| source.declared(table));
        let name = &name.ok_or(SessionFault::NotFound)?.name;
        sessions::with(source, cancelled, |session| {
            let catalog = session.catalog()?;
            let table = catalog.table(name).ok_or(SessionFault::NotFound)?;
            let (first, prefix) = table.read_prefix(request.value()).ok_or(SessionFault::NotFound)?;
            let mut keys = Vec::new();
            let query = DbQuery::Keys { table, first: &first, prefix: &prefix, limit: 10 * COMPLETED };
            session.run(&query, &mut |row| {
                let key = table.key_text(&row.key);
                if request.permits(&table.row_uri(&key)) {
                    keys.push(key);
                }
                Ok(keys.len() < COMPLETED)
            })?;
            Ok(keys)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: the tables begin behind the URL, which may have commas in its password and its hosts.
    #[test]
    fn tables_stand_behind_the_url() {
        for (word, length) in [
            ("sqlite:shop.db,a,b", "sqlite:shop.db"),
            ("shop=sqlite:///srv/shop.db,a", "shop=sqlite:///srv/shop.db"),
            ("postgres://h/shop,a", "postgres://h/shop"),
            ("postgres://me:1,2@h,i/shop,a,b", "postgres://me:1,2@h,i/shop"),
            ("postgres://me:1,2@h,a", "postgres://me:1,2@h"),
            ("postgres://h/shop", "postgres://h/shop"),
            (",a", ""),
        ] {
            assert_eq!(&word[..url_length(word)], length, "{word}");
        }
    }
}
