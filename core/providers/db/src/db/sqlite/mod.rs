//! A SQLite database.
//!
//! Law: no statement writes. The file is opened with `mode=ro`, `query_only` is set, and an authorizer checks each
//! statement as it is compiled: see `authorizer`. The file is identified before each query, so a file that has replaced
//! it is opened.

mod authorizer;
mod schema;
#[cfg(test)]
mod tests;

use super::catalog::{CatalogRow, DbCatalog, TableForm};
use super::options::DbEngine;
use super::query::DbQuery;
use super::session::{DbChange, DbSession, LARGEST, SessionFault, TIME, Visit};
use super::source::{DbSource, Location};
use super::value::DbValue;
use authorizer::{AllowedTables, AuthorizerScope};
use mcp_resources_engine::connection::Cancelled;
use mcp_resources_provider_kit::file_id::FileId;
use mcp_resources_runtime::sync::Mutex;
use mcp_resources_template::uri::encode;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, ffi};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum time to wait for a lock of another process.
const BUSY: Duration = Duration::from_secs(2);
/// The number of virtual machine instructions between two checks of the time.
const STEPS: i32 = 1_000;
/// The most compiled statements of a connection.
const COMPILED: usize = 64;

/// A session with a SQLite file.
pub(super) struct Sqlite {
    source: Arc<DbSource>,
    open: Option<OpenDatabase>,
    /// The file and its data version at the last check for changes.
    seen: Option<(FileId, i64)>,
    request: Option<Cancelled>,
}

struct OpenDatabase {
    connection: Connection,
    file: FileId,
    allowed: Arc<AllowedTables>,
    deadline: Arc<Deadline>,
    /// With the version of the schema that it was made of.
    catalog: Option<(i64, Arc<DbCatalog>)>,
}

/// The end of the current query: a time in milliseconds since the session was opened, or the cancellation of its request.
struct Deadline {
    begun: Instant,
    at: AtomicU64,
    request: Mutex<Option<Cancelled>>,
}

impl Deadline {
    fn begin(&self, request: Option<Cancelled>) {
        *self.request.lock() = request;
        let at = self.begun.elapsed() + TIME;
        self.at.store(u64::try_from(at.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        let request = self.request.lock();
        request.as_ref().is_some_and(Cancelled::get)
            || self.begun.elapsed().as_millis() > u128::from(self.at.load(Ordering::Relaxed))
    }
}

impl Sqlite {
    pub(super) fn new(source: Arc<DbSource>) -> Self {
        Self { source, open: None, seen: None, request: None }
    }

    /// The current database.
    fn open(&mut self) -> Result<&mut OpenDatabase, SessionFault> {
        let Location::Sqlite(path) = &self.source.location else {
            return Err(SessionFault::Down("it is not a file".into()));
        };
        let file = identify(path)?;
        if self.open.as_ref().is_some_and(|open| open.file != file) {
            self.open = None;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => OpenDatabase::new(path, file, &self.source)?,
        };
        open.deadline.begin(self.request.clone());
        Ok(self.open.insert(open))
    }
}

impl DbSession for Sqlite {
    fn attend(&mut self, request: Option<Cancelled>) {
        self.request = request;
    }

    fn catalog(&mut self) -> Result<Arc<DbCatalog>, SessionFault> {
        let source = self.source.clone();
        let open = self.open()?;
        let version = open.number("PRAGMA schema_version")?;
        if let Some((_, catalog)) = open.catalog.as_ref().filter(|(known, _)| *known == version) {
            return Ok(catalog.clone());
        }
        let catalog = Arc::new(open.read_catalog(&source)?);
        open.catalog = Some((version, catalog.clone()));
        Ok(catalog)
    }

    fn run(&mut self, query: &DbQuery<'_>, visit: &mut Visit<'_>) -> Result<(), SessionFault> {
        self.open()?.run(query, visit)
    }

    fn changed(&mut self) -> Result<DbChange, SessionFault> {
        let open = self.open()?;
        let now = (open.file, open.number("PRAGMA data_version")?);
        let before = self.seen.replace(now);
        Ok(if before == Some(now) { DbChange::Nothing } else { DbChange::Something })
    }
}

impl OpenDatabase {
    fn new(path: &Path, file: FileId, source: &Arc<DbSource>) -> Result<Self, SessionFault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
        let connection = Connection::open_with_flags(uri_of(path), flags).map_err(fault)?;
        let allowed = Arc::new(AllowedTables::new(source.clone()));
        let deadline = Arc::new(Deadline {
            begun: Instant::now(),
            at: AtomicU64::new(u64::MAX),
            request: Mutex::default(),
        });
        harden(&connection, &allowed, &deadline).map_err(fault)?;
        Ok(Self { connection, file, allowed, deadline, catalog: None })
    }

    fn number(&self, pragma: &str) -> Result<i64, SessionFault> {
        self.allowed.enter(AuthorizerScope::Nothing);
        let mut statement = self.connection.prepare_cached(pragma).map_err(fault)?;
        statement.query_row([], |row| row.get(0)).map_err(fault)
    }

    fn run(&self, query: &DbQuery<'_>, visit: &mut Visit<'_>) -> Result<(), SessionFault> {
        self.allowed.enter(match query {
            DbQuery::View { .. } => AuthorizerScope::Statement,
            DbQuery::Page { table, .. } | DbQuery::Row { table, .. } | DbQuery::Keys { table, .. } => {
                AuthorizerScope::Table(table.name.clone())
            }
        });
        let bound = query.bind(DbEngine::Sqlite);
        let mut statement = self.connection.prepare_cached(&bound.sql).map_err(fault)?;
        if !statement.readonly() {
            return Err(SessionFault::Down("a statement would write".into()));
        }
        let parameters = statement.parameter_count();
        for (at, value) in bound.values.iter().enumerate().take(parameters) {
            statement.raw_bind_parameter(at + 1, value).map_err(fault)?;
        }
        let columns = query.columns();
        let keys = query.keys();
        let limit = query.limit();
        let mut rows = statement.raw_query();
        for _ in 0..limit {
            let Some(row) = rows.next().map_err(fault)? else { break };
            let value = |at: usize| row.get_ref(at).map(DbValue::from).map_err(fault);
            let values = (0..columns.len()).map(value).collect::<Result<_, _>>()?;
            let key = (columns.len()..columns.len() + keys).map(value).collect::<Result<_, _>>()?;
            if !visit(CatalogRow { values, key })? {
                break;
            }
        }
        Ok(())
    }
}

/// Switches off everything that reading an untrusted file does not need.
fn harden(
    connection: &Connection,
    allowed: &Arc<AllowedTables>,
    deadline: &Arc<Deadline>,
) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    for (option, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        // Otherwise a quoted name that is no column would be a text.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        connection.set_db_config(option, is_on)?;
    }
    for pragma in ["query_only", "cell_size_check"] {
        connection.pragma_update(None, pragma, true)?;
    }
    connection.pragma_update(None, "mmap_size", 0)?;
    for (limit, max) in [
        (Limit::SQLITE_LIMIT_LENGTH, i32::try_from(LARGEST).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    ] {
        connection.set_limit(limit, max)?;
    }
    connection.set_prepared_statement_cache_capacity(COMPILED);
    let deadline = deadline.clone();
    connection.progress_handler(STEPS, Some(move || deadline.is_over()))?;
    let allowed = allowed.clone();
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| allowed.judge(&context)))
}

/// The file that is at `path` now.
fn identify(path: &Path) -> Result<FileId, SessionFault> {
    let metadata = std::fs::metadata(path).map_err(|error| {
        SessionFault::Down(match error.kind() {
            std::io::ErrorKind::NotFound => format!("the file {} does not exist", path.display()),
            kind => format!("the file {} cannot be opened: {kind}", path.display()),
        })
    })?;
    match metadata.is_file() {
        true => Ok(FileId::from(&metadata)),
        // A pipe would be opened for ever.
        false => Err(SessionFault::Down(format!("{} is no file", path.display()))),
    }
}

/// The URI by which SQLite opens a path with any characters.
fn uri_of(path: &Path) -> String {
    // With an empty host: a path may begin with two slashes.
    let mut uri = String::from(if path.is_absolute() { "file://" } else { "file:" });
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.');
    encode(&mut uri, path.as_os_str().as_bytes(), is_plain);
    uri + "?mode=ro"
}

const INTERRUPTED: &str = "a program was interrupted while it wrote to the file, and what it wrote must be undone first; open it \
     once with a program that may write to it, as with: sqlite3 FILE .schema";
const WAL: &str = "the file is in WAL mode, and this process may not create the files -wal and -shm beside it; let it write to the \
     folder, or end the mode with: sqlite3 FILE 'PRAGMA journal_mode = DELETE'";

/// The message of SQLite, without the text of the statement.
fn fault(error: rusqlite::Error) -> SessionFault {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => {
            let text = text.unwrap_or_else(|| code.to_string());
            match code.code {
                ErrorCode::OperationInterrupted => SessionFault::Time,
                ErrorCode::TooBig => SessionFault::Size(LARGEST),
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                    SessionFault::Down(format!("another process has locked it: {text}"))
                }
                _ if code.extended_code == ffi::SQLITE_READONLY_ROLLBACK => {
                    SessionFault::Down(INTERRUPTED.into())
                }
                // Nothing is written: it is the log of the WAL mode, or its index, that cannot be made or read.
                ErrorCode::ReadOnly => SessionFault::Down(WAL.into()),
                ErrorCode::CannotOpen => SessionFault::Down(format!("{text}: {WAL}")),
                _ => SessionFault::Down(text),
            }
        }
        rusqlite::Error::SqlInputError { msg, .. } => SessionFault::Down(msg),
        other => SessionFault::Down(other.to_string()),
    }
}

impl From<ValueRef<'_>> for DbValue {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(whole) => Self::Integer(whole),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Self::Text(text.into()),
                Err(_) => Self::OddText(bytes.into()),
            },
            ValueRef::Blob(bytes) => Self::Blob(bytes.into()),
        }
    }
}

impl ToSql for DbValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Bool(truth) => ValueRef::Integer(i64::from(*truth)),
            Self::Integer(whole) => ValueRef::Integer(*whole),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Single(number) => ValueRef::Real(f64::from(*number)),
            Self::Text(text) | Self::Json(text) => ValueRef::Text(text.as_bytes()),
            Self::OddText(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Every value has its own type.
const FORM: TableForm = TableForm::Plain;
