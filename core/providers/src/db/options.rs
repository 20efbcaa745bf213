//! Options of the db provider.

use crate::offered::OfferedTools;
use crate::options::{self, OptionRow, TimeSpan, option_table, texts};
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The most rows on a page.
pub(super) const MOST_ROWS: usize = 1_000;
/// The default of [`Database::poll`].
const POLL: Duration = Duration::from_millis(200);
/// Its lower limit.
const SHORTEST_POLL: Duration = Duration::from_millis(10);

/// The kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DbEngine {
    Sqlite,
    Postgres,
}

/// A text that must not appear in messages or logs, such as a URL with a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The databases that a [`Db`](super::Db) serves.
///
/// ```no_run
/// use mcp_resources_providers::db::{Database, Db, DbOptions};
/// let shop = Database::new("sqlite:/srv/shop.db").tables(["customers"]).columns_deny(["password"]);
/// let db = Db::new(DbOptions::new().database("shop", shop))?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DbOptions {
    pub(super) databases: Vec<(String, Database)>,
}

/// One database and its options. Only the tables and statements named here are served.
#[derive(Clone, Debug)]
pub struct Database {
    pub(super) url: Secret,
    pub(super) password: Option<Secret>,
    pub(super) tables: Vec<String>,
    pub(super) columns_deny: Vec<String>,
    pub(super) views: Vec<(String, String)>,
    pub(super) rows: usize,
    pub(super) poll: Duration,
    pub(super) tools: OfferedTools,
}

impl Default for Database {
    fn default() -> Self {
        Self::new("")
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

    /// Takes relative paths of SQLite files as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        for (_, database) in &mut self.databases {
            let url = &mut database.url.0;
            if let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.starts_with('/')) {
                *url = format!("sqlite:{}", folder.join(path).display());
            }
        }
        self
    }
}

impl Database {
    /// The database at `url`: `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/NAME`. Nothing of it is served yet.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: Secret(url.into()),
            password: None,
            tables: Vec::new(),
            columns_deny: Vec::new(),
            views: Vec::new(),
            rows: 100,
            poll: POLL,
            tools: OfferedTools::default(),
        }
    }

    /// The password, if the URL does not have it.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(Secret(password.into()));
        self
    }

    /// Serves these tables: `customers`, or `sales.customers` in a schema of Postgres.
    #[must_use]
    pub fn tables(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tables = names.into_iter().map(Into::into).collect();
        self
    }

    /// Serves no column with one of these names: `password`, or `customers.password` in that table alone.
    #[must_use]
    pub fn columns_deny(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns_deny = names.into_iter().map(Into::into).collect();
        self
    }

    /// Serves what `statement` selects, as `db:///DATABASE/query/NAME`. Clients give the values of its parameters, `:city`.
    #[must_use]
    pub fn view(mut self, name: impl Into<String>, statement: impl Into<String>) -> Self {
        self.views.push((name.into(), statement.into()));
        self
    }

    /// The number of rows on a page unless the client gives one: from 1 to 1,000. Default 100.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// The interval of checks for changes while a client watches. Default 200 ms, at least 10 ms.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every.max(SHORTEST_POLL);
        self
    }

    /// Offers the tools with these names, out of `db_rows`, `db_row` and `db_NAME_VIEW` for each view, whether or not the
    /// server offers its resources as tools. Default: all, if the server does.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = OfferedTools::Named(names.into_iter().map(Into::into).collect());
        self
    }
}

option_table!(DbOptions, "an object with databases" {
    "databases": "names with a database each", None,
        "Serves each database as db:///NAME, with the options below." =>
        |own, value| { own.databases = databases(value)?; Ok(()) };
});

option_table!(Database, "an object with a url" {
    "url": "a text, or {env: NAME}", None,
        "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/NAME, or the environment variable that has it." =>
        |own, value| { own.url = secret(value)?; Ok(()) };
    "password": "a text, or {env: NAME}", Some("null"),
        "The password for Postgres, if the URL does not have it." =>
        |own, value| {
            own.password = match value {
                OptionValue::None => None,
                value => Some(secret(value)?),
            };
            Ok(())
        };
    "tables": "a list of names", Some("[]"),
        "The tables that are served: customers, or sales.customers in a schema of Postgres." =>
        |own, value| { own.tables = texts(value)?; Ok(()) };
    "columns_deny": "a list of names", Some("[]"),
        "Columns that are not served: password in all tables, or customers.password in one." =>
        |own, value| { own.columns_deny = texts(value)?; Ok(()) };
    "views": "names with a statement each", Some("{}"),
        "Statements that clients may run: each is a SELECT, with parameters such as :city whose values the client gives." =>
        |own, value| { own.views = views(value)?; Ok(()) };
    "rows": "a whole number from 1 to 1000", Some("100"),
        "How many rows a page of a table has by default." =>
        |own, value| {
            let rows = usize::from_option(value.clone())?;
            if rows == 0 || rows > MOST_ROWS {
                return Err(OptionError::not_allowed(&value, "a whole number from 1 to 1000"));
            }
            own.rows = rows;
            Ok(())
        };
    "poll": "a time such as 200ms", Some("200ms"),
        "How often the database is asked for changes while a client watches; at least 10ms." =>
        |own, value| {
            let poll = TimeSpan::from_option(value.clone())?.0;
            if poll < SHORTEST_POLL {
                return Err(OptionError::not_allowed(&value, "a time of 10ms or more"));
            }
            own.poll = poll;
            Ok(())
        };
    "tools": "true, false or a list of names", Some("null"),
        "Which tools are offered, out of db_rows, db_row, and db_NAME_VIEW for each view. By default all, if resources are offered as tools." =>
        |own, value| { own.tools = OfferedTools::from_option(value)?; Ok(()) };
});

/// The option `databases`, followed by the options of a database.
pub(super) const ROWS: &[OptionRow] = &{
    let mut rows = [DbOptions::TABLE[0]; 1 + Database::TABLE.len()];
    let mut at = 0;
    while at < Database::TABLE.len() {
        rows[at + 1] = Database::TABLE[at];
        at += 1;
    }
    rows
};

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
