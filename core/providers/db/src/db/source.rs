//! The declaration of one database, before anything is opened.

use super::catalog::DbCatalog;
use super::options::{Database, DbEngine, Secret, is_system};
use super::pool::SessionPool;
use super::reach::Reach;
use super::statement::Statement;
use super::tls::TlsSettings;
use super::url::PostgresUrl;
use mcp_resources_engine::option::OptionError;
use mcp_resources_engine::suggest::closest;
use mcp_resources_provider_kit::offered::OfferedTools;
use mcp_resources_provider_kit::path;
use mcp_resources_runtime::sync::Mutex;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The channel of the notifications.
pub(super) const CHANNEL: &str = "mcp_resources";

/// Maximum time to wait for a connection to Postgres.
const CONNECT: Duration = Duration::from_secs(5);

/// One declared database.
#[derive(Debug)]
pub(super) struct DbSource {
    pub(super) name: String,
    /// `db:///NAME`.
    pub(super) uri: String,
    pub(super) location: Location,
    pub(super) tables: Vec<DeclaredTable>,
    denied: Vec<DeniedColumn>,
    pub(super) views: Vec<DeclaredView>,
    pub(super) rows: usize,
    pub(super) poll: Duration,
    pub(super) tools: OfferedTools,
    /// The sessions of requests.
    pub(super) pool: Arc<SessionPool>,
    /// Whether the server can be reached.
    pub(super) reach: Reach,
    /// Why the database could not be reached at the start.
    pub(super) down: OnceLock<String>,
    /// The faults that were logged last.
    faults: Mutex<Vec<String>>,
}

/// The location of the database.
pub(super) enum Location {
    Sqlite(PathBuf),
    Postgres(Box<PostgresLocation>),
}

/// The location of a Postgres server.
pub(super) struct PostgresLocation {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: TlsSettings,
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres"),
        }
    }
}

/// A table that is to be served.
#[derive(Debug)]
pub(super) struct DeclaredTable {
    pub(super) name: String,
    pub(super) uri: String,
}

/// A statement that clients may have run.
#[derive(Debug)]
pub(super) struct DeclaredView {
    pub(super) name: String,
    pub(super) uri: String,
    pub(super) statement: Statement,
}

/// A column that is not served: in one table, or in all.
#[derive(Debug)]
struct DeniedColumn {
    table: Option<String>,
    column: String,
}

impl DbSource {
    /// Reads the declaration of a database.
    ///
    /// # Errors
    /// A name or the URL cannot be served, or a statement is invalid: with the fix, and without the URL.
    pub(super) fn new(name: String, database: Database) -> Result<Arc<Self>, OptionError> {
        let wrong = |what: String| OptionError::sentence(format!("db: the database {name:?} {what}"));
        if !is_segment(&name) {
            return Err(OptionError::sentence(format!(
                "db: {name:?} is no name for a database; give it one of letters, digits, `-`, `_` and `.`"
            )));
        }
        let location = Location::from_database(&database).map_err(wrong)?;
        let uri = under("db://", &name);
        let mut source = Self {
            location,
            tables: Vec::new(),
            denied: database.columns_deny.iter().map(|text| DeniedColumn::parse(text)).collect(),
            views: Vec::new(),
            rows: database.rows,
            poll: database.poll,
            tools: database.tools,
            pool: Arc::new(SessionPool::new(database.connections)),
            reach: Reach::default(),
            down: OnceLock::new(),
            faults: Mutex::default(),
            uri,
            name: name.clone(),
        };
        for table in database.tables {
            source.declare(table).map_err(wrong)?;
        }
        let queries = under(&source.uri, "query");
        for (view, sql) in database.views {
            let statement = Statement::parse(&sql, source.engine());
            let statement =
                statement.map_err(|reason| wrong(format!("has the view {view:?}, which {reason}")))?;
            if !is_segment(&view) {
                return Err(wrong(format!(
                    "has a view {view:?}; give it a name of letters, digits, `-`, `_` and `.`"
                )));
            }
            source.views.push(DeclaredView { uri: under(&queries, &view), name: view, statement });
        }
        Ok(Arc::new(source))
    }

    fn declare(&mut self, table: String) -> Result<(), String> {
        if matches!(table.as_str(), "schema" | "query") {
            return Err(format!(
                "has a table {table:?}, whose URI is that of something else; serve it with a view: `views: {{all: \"SELECT * FROM {table}\"}}`"
            ));
        }
        if table.is_empty() || self.tables.iter().any(|declared| declared.name == table) {
            return Err(format!("names the table {table:?} twice, or without a name; name each once"));
        }
        let text = path::text(table.as_bytes());
        self.tables.push(DeclaredTable { uri: under(&self.uri, &text), name: table });
        Ok(())
    }

    pub(super) fn engine(&self) -> DbEngine {
        match self.location {
            Location::Sqlite(_) => DbEngine::Sqlite,
            Location::Postgres(_) => DbEngine::Postgres,
        }
    }

    /// The declared table with this name in URIs.
    pub(super) fn declared(&self, segment: &str) -> Option<&DeclaredTable> {
        self.tables.iter().find(|declared| path::text(declared.name.as_bytes()) == segment)
    }

    /// Whether a column of a table is not served. The case of letters does not matter, as in SQLite.
    pub(super) fn denies(&self, table: &str, column: &str) -> bool {
        self.denied.iter().any(|denied| denied.is(table, column))
    }

    /// The same for a table in a schema of Postgres, which may be named with its schema or without.
    pub(super) fn denies_in(&self, schema: &str, table: &str, column: &str) -> bool {
        self.denies(table, column) || self.denies(&format!("{schema}.{table}"), column)
    }

    pub(super) fn has_denied(&self) -> bool {
        !self.denied.is_empty()
    }

    /// A denied column that a statement names. It may be that of another table of the statement.
    pub(super) fn denied_in(&self, statement: &Statement) -> Option<&str> {
        let is_named = |name: &str| statement.mentions(name, self.engine());
        let last = |name: &'_ str| name.rsplit('.').next().map(is_named).unwrap_or_default();
        let mut denied = self.denied.iter();
        let found =
            denied.find(|denied| is_named(&denied.column) && denied.table.as_deref().is_none_or(last));
        found.map(|denied| denied.column.as_str())
    }

    /// Adds to `catalog` each denied column that does not exist: if it is misspelled, the column that is meant would be served.
    /// `known` are all columns of the database, each with its table, and with the table's schema if there are schemas.
    ///
    /// A name in a list for many databases need not exist in each, so it is a fault only if it looks like an existing
    /// column, names its table, or is a pattern.
    pub(super) fn check_denied(&self, known: &[(String, String)], catalog: &mut DbCatalog) {
        let is_known = |denied: &DeniedColumn| {
            known.iter().any(|(table, column)| {
                denied.is(table, column) || denied.is(table.rsplit('.').next().unwrap_or_default(), column)
            })
        };
        for denied in self.denied.iter().filter(|denied| !is_known(denied)) {
            let (given, names): (String, Vec<String>) = match &denied.table {
                Some(table) => {
                    let short = |table: &'_ str| table.rsplit('.').next().unwrap_or_default().to_owned();
                    let names = known.iter().flat_map(|(table, column)| {
                        [table.clone(), short(table)].map(|table| format!("{table}.{column}"))
                    });
                    (format!("{table}.{}", denied.column), names.collect())
                }
                None => (denied.column.clone(), known.iter().map(|(_, column)| column.clone()).collect()),
            };
            let what = format!("columns_deny has {given:?}, and no table has such a column");
            match closest(&given, names.iter().map(String::as_str)) {
                Some(close) => catalog.faults.push(format!("{what}; did you mean {close:?}?")),
                None if denied.table.is_some() || given.contains(['*', '%']) => {
                    catalog.faults.push(format!("{what}; write TABLE.COLUMN, or COLUMN for all tables"));
                }
                None => catalog.notes.push(what),
            }
        }
    }

    /// Logs the faults and notes of a catalog once.
    pub(super) fn report(&self, catalog: &DbCatalog, log: &dyn Fn(&str)) {
        {
            let mut faults = self.faults.lock();
            if faults.iter().eq(catalog.faults.iter().chain(&catalog.notes)) {
                return;
            }
            *faults = catalog.faults.iter().chain(&catalog.notes).cloned().collect();
        }
        catalog.faults.iter().chain(&catalog.notes).for_each(|fault| log(&format!("{}: {fault}", self.name)));
    }
}

impl Location {
    fn from_database(database: &Database) -> Result<Self, String> {
        let Secret(url) = &database.url;
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = match path.strip_prefix("//") {
                Some(path) if path.starts_with('/') => path,
                Some(_) => return Err("has a URL with a host; write sqlite:/ABSOLUTE/PATH".into()),
                None => path,
            };
            return match path {
                "" => Err("has a URL without a path; write sqlite:PATH".into()),
                path => Ok(Self::Sqlite(path.into())),
            };
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Self::postgres(database);
        }
        // The URL itself is not repeated: it may have a password.
        match url.is_empty() {
            true => {
                Err("has no url; write url: \"sqlite:PATH\" or \"postgres://USER:PASSWORD@HOST:PORT/NAME\""
                    .into())
            }
            false => {
                Err("has a URL that is neither sqlite:PATH nor postgres://USER:PASSWORD@HOST:PORT/NAME"
                    .into())
            }
        }
    }

    fn postgres(database: &Database) -> Result<Self, String> {
        let Secret(url) = &database.url;
        let url = PostgresUrl::parse(url)?;
        let mut config: tokio_postgres::Config = url.driver.parse().map_err(|_| {
            "has a URL that is not postgres://USER:PASSWORD@HOST:PORT/NAME; write `@`, `/`, `:` and `%` in a password as %40, \
             %2F, %3A and %25"
        })?;
        config.connect_timeout(CONNECT).application_name("mcp-resources");
        url.keep_alive(&mut config);
        if let Some(Secret(password)) = &database.password {
            config.password(password);
        }
        let root_file = match &database.sslrootcert {
            Some(file) => Some(file.clone()).filter(|file| !is_system(file)),
            None => url.tls.root_file,
        };
        let tls = TlsSettings {
            mode: database.sslmode.or(url.sslmode).unwrap_or_default(),
            root_file,
            certificate: database.sslcert.clone().or(url.tls.certificate),
            key: database.sslkey.clone().or(url.tls.key),
            is_direct: url.tls.is_direct,
        };
        tls.check()?;
        Ok(Self::Postgres(Box::new(PostgresLocation { config, tls })))
    }
}

impl DeniedColumn {
    fn parse(text: &str) -> Self {
        match text.rsplit_once('.') {
            Some((table, column)) => Self { table: Some(table.into()), column: column.into() },
            None => Self { table: None, column: text.into() },
        }
    }

    fn is(&self, table: &str, column: &str) -> bool {
        self.column.eq_ignore_ascii_case(column)
            && self.table.as_deref().is_none_or(|only| only.eq_ignore_ascii_case(table))
    }
}

/// Whether a name needs no encoding in a URI.
fn is_segment(name: &str) -> bool {
    !name.is_empty() && path::text(name.as_bytes()) == name && !name.contains(['{', '}'])
}

fn under(uri: &str, segment: &str) -> String {
    let mut uri = format!("{uri}/");
    path::append(&mut uri, segment);
    uri
}
