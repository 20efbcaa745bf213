//! Options of the db provider.

use super::ssl_mode::SslMode;
use super::url::rebased;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{self, DAY, OptionDefault, OptionType};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The most connections to one database for requests.
pub(super) const MOST_CONNECTIONS: usize = 32;
/// The most rows on a page.
pub(super) const MOST_ROWS: usize = 1_000;
/// The kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DbEngine {
    Sqlite,
    Postgres,
}

/// A text that must not appear in messages or logs, such as a URL with a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

provider_options! {
    /// The databases that a [`Db`](super::Db) serves.
    ///
    /// ```no_run
    /// use mcp_resources_provider_db::db::{Database, Db, DbOptions};
    /// let shop = Database::new("sqlite:/srv/shop.db").tables(["customers"]).columns_deny(["password"]);
    /// let db = Db::new(DbOptions::new().database("shop", shop))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct DbOptions: "an object with databases" {
        /// Serves each database as `db:///NAME`, with the options below.
        databases: custom(Vec<(String, Database)>, databases, OptionType::Named("a database", Database::TABLE));
    }
}

provider_options! {
    /// One database and its options. Only the tables and statements named here are served.
    #[derive(Clone, Debug)]
    pub struct Database: "an object with a url" {
        /// `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the environment variable that has it.
        url: custom(Secret, secret, OptionType::Secret);
        /// The password for Postgres, if the URL does not have it.
        password: custom(Option<Secret>, some_secret, OptionType::Secret, OptionDefault::Null) = None;
        /// The use of TLS with Postgres, as libpq names it. Default: that of the URL, or `prefer`.
        sslmode: custom(Option<SslMode>, some_mode, OptionType::Words(SslMode::WORDS), OptionDefault::Null) = None;
        /// The certificates of the authorities that may sign that of the Postgres server, in PEM. Default: those of the system.
        sslrootcert: file = None;
        /// The certificate that a Postgres server is shown, in PEM.
        sslcert: file = None;
        /// The private key of `sslcert`, in PEM. Only its owner may be able to read it.
        sslkey: file = None;
        /// The most connections to the database for requests. One more reports changes while a client watches.
        connections: count(1, MOST_CONNECTIONS) = 4;
        /// The tables that are served, such as `customers`, or `sales.customers` for a schema of Postgres.
        tables: texts("name") = [];
        /// The columns that are not served, such as `password`, or `customers.password` for one table.
        columns_deny: texts("name") = [];
        /// SQL queries that clients can run, by name. Each is a `SELECT`; clients supply values for parameters such as `:city`.
        views: custom(Vec<(String, String)>, views, OptionType::NamedTexts("statement"), OptionDefault::Names) = Vec::new();
        /// The number of rows on a page of a table unless the client chooses one.
        rows: count(1, MOST_ROWS) = 100;
        /// The interval of checks for changes while a client watches.
        poll: time(Duration::from_millis(10), DAY) = Duration::from_millis(200);
        /// The tools that are offered, out of `db_rows`, `db_row`, and `db_NAME_VIEW` for each view. Default: all, if the server
        /// offers its resources as tools.
        tools: tools;
    }
}

impl DbOptions {
    /// No database yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves `database` as `db:///NAME`.
    #[must_use]
    pub fn database(mut self, name: impl Into<String>, database: Database) -> Self {
        self.databases.push((name.into(), database));
        self
    }

    /// Takes relative paths of files as beginning at `folder`: those of SQLite, of certificates and of keys.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        for (_, database) in &mut self.databases {
            let url = &mut database.url.0;
            match url.strip_prefix("sqlite:") {
                Some(path) if !path.starts_with('/') => {
                    *url = format!("sqlite:{}", folder.join(path).display())
                }
                Some(_) => {}
                None => *url = rebased(url, folder),
            }
            let files = [&mut database.sslrootcert, &mut database.sslcert, &mut database.sslkey];
            for file in files.into_iter().flatten().filter(|file| !is_system(file)) {
                *file = folder.join(&file);
            }
        }
        self
    }
}

impl Database {
    /// The database at `url`: `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/NAME`. Nothing of it is served yet.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: Secret(url.into()), ..Self::default() }
    }

    /// The password, if the URL does not have it.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(Secret(password.into()));
        self
    }

    /// The use of TLS with Postgres. Default: that of the URL, or [`SslMode::Prefer`].
    #[must_use]
    pub fn sslmode(mut self, mode: SslMode) -> Self {
        self.sslmode = Some(mode);
        self
    }

    /// Serves what `statement` selects, as `db:///DATABASE/query/NAME`. Clients give the values of its parameters, `:city`.
    #[must_use]
    pub fn view(mut self, name: impl Into<String>, statement: impl Into<String>) -> Self {
        self.views.push((name.into(), statement.into()));
        self
    }
}

/// Names with values: an object, or a list of pairs.
fn pairs(value: OptionValue, expected: &'static str) -> Result<Vec<(String, OptionValue)>, OptionError> {
    match value {
        OptionValue::Members(members) => Ok(members),
        OptionValue::List(items) => items
            .into_iter()
            .enumerate()
            .map(|(at, item)| {
                let wrong =
                    || OptionError::wrong_type(&OptionValue::Other, expected).under(PathStep::Item(at));
                let OptionValue::List(pair) = item else { return Err(wrong()) };
                match <[OptionValue; 2]>::try_from(pair) {
                    Ok([OptionValue::Text(name), value]) => Ok((name, value)),
                    _ => Err(wrong()),
                }
            })
            .collect(),
        // Its value may be a URL with a password.
        _ => Err(OptionError::wrong_type(&OptionValue::Other, expected)),
    }
}

fn databases(value: OptionValue) -> Result<Vec<(String, Database)>, OptionError> {
    pairs(value, "names with a database each, such as {shop: {url: \"sqlite:shop.db\"}}")?
        .into_iter()
        .map(|(name, value)| match value {
            OptionValue::Members(_) => Database::from_option(value)
                .map(|database| (name.clone(), database))
                .map_err(|error| error.under(PathStep::Name(name.into()))),
            _ => Err(OptionError::sentence(format!(
                "db: the database {name:?} has no object of options; write {{url: \"sqlite:PATH\", tables: [NAME]}}"
            ))),
        })
        .collect()
}

fn views(value: OptionValue) -> Result<Vec<(String, String)>, OptionError> {
    pairs(value, "names with a statement each, such as {by_city: \"SELECT …\"}")?
        .into_iter()
        .map(|(name, value)| match String::from_option(value) {
            Ok(statement) => Ok((name, statement)),
            Err(error) => Err(error.under(PathStep::Name(name.into()))),
        })
        .collect()
}

fn some_mode(value: OptionValue) -> Result<Option<SslMode>, OptionError> {
    match value {
        OptionValue::None => Ok(None),
        value => SslMode::from_option(value).map(Some),
    }
}

/// Whether `sslrootcert` names the authorities of the system instead of a file, as libpq has it.
pub(super) fn is_system(file: &Path) -> bool {
    file == Path::new("system")
}

fn some_secret(value: OptionValue) -> Result<Option<Secret>, OptionError> {
    match value {
        OptionValue::None => Ok(None),
        value => secret(value).map(Some),
    }
}

/// A text, or that of a variable of the environment. It is in no message, whatever it is: another language would show it.
fn secret(value: OptionValue) -> Result<Secret, OptionError> {
    let wrong = || OptionError::sentence("db: url and password are each a text, or {env: NAME}");
    let name = match value {
        OptionValue::Text(text) => return Ok(Secret(text)),
        OptionValue::Members(members) => match <[(String, OptionValue); 1]>::try_from(members) {
            Ok([(key, OptionValue::Text(name))]) if key == "env" => name,
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    std::env::var(&name).map(Secret).map_err(|_| {
        OptionError::sentence(format!(
            "db: the variable {} of the environment is not set, or is no text; set it before the start",
            options::variable(&name)
        ))
    })
}
