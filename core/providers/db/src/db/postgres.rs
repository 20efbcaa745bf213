//! A Postgres database.
//!
//! ```text
//!   no connection ──a question──▶ connected ──it breaks──▶ no connection: connected again, at once and then ever more slowly
//! ```
//!
//! Law: nothing writes. Each query runs in a READ ONLY transaction with a time limit, which is rolled back. Only
//! constants of this module use the simple protocol; everything else uses the extended protocol, which accepts one
//! statement.

mod connect;
mod schema;
mod stream;
#[cfg(test)]
mod tests;

use super::catalog::{CatalogRow, DbCatalog, TableForm};
use super::options::DbEngine;
use super::query::{Bound, DbQuery};
use super::session::{DbChange, DbSession, LARGEST, SessionFault, TIME, Visit};
use super::source::{CHANNEL, DbSource, Location, PostgresLocation};
use super::tls::Encryption;
use super::value::DbValue;
use connect::{Address, Unconnected};
use futures_util::TryStreamExt as _;
use mcp_resources_engine::connection::Cancelled;
use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stream::MessageCounts;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, SimpleQueryMessage, Statement};

/// The settings of a connection.
const SETTINGS: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET statement_timeout = '10s'; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'; SET datestyle = 'ISO'; \
     SET intervalstyle = 'postgres'; SET extra_float_digits = 1; SET client_encoding = 'UTF8'";
/// Time for which a schema is reused before it is read again.
const FRESH: Duration = Duration::from_secs(30);
/// The rows fetched at a time.
const CHUNK: i32 = 100;
/// The most prepared statements of a connection.
const PREPARED: usize = 64;
/// The interval of checks that a listening connection still works.
const TRIED: Duration = Duration::from_secs(5);
/// Time for which a connection may be idle without being checked before its next use: services cut idle connections, some
/// without a word.
const IDLE: Duration = Duration::from_secs(10);
/// Maximum time for that check.
const CHECK: Duration = Duration::from_secs(3);
/// Interval between checks whether the client of a running query has left.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum time for telling a server to stop a query.
const STOP: Duration = Duration::from_secs(1);
/// The longest text of a server's in the log, in characters.
const SAID: usize = 300;

/// A session with a Postgres server.
pub(super) struct Postgres {
    source: Arc<DbSource>,
    runtime: Option<Runtime>,
    link: Option<PostgresConnection>,
    catalog: Option<(Instant, Arc<DbCatalog>)>,
    /// Whether an earlier connection listened: notifications may have been lost since.
    has_listened: bool,
    request: Option<Cancelled>,
}

/// A connection.
struct PostgresConnection {
    client: Client,
    address: Address,
    encryption: Encryption,
    received: Arc<MessageCounts>,
    statements: HashMap<String, Statement>,
    notifications: Arc<Notifications>,
    is_listening: bool,
    tried: Instant,
    /// When it was used last.
    used: Instant,
}

/// Messages that the server sends on its own.
#[derive(Default)]
struct Notifications {
    is_notified: AtomicBool,
}

impl Postgres {
    pub(super) fn new(source: Arc<DbSource>) -> Self {
        Self { source, runtime: None, link: None, catalog: None, has_listened: false, request: None }
    }

    /// Runs `work` with a connection. If an idle connection has broken, a new one is tried once, while `may_repeat` allows it.
    fn linked<T>(
        &mut self,
        may_repeat: impl Fn() -> bool,
        mut work: impl AsyncFnMut(&mut PostgresConnection) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, SessionFault> {
        self.check_idle();
        let was_connected = self.link.is_some();
        self.connect()?;
        let ended = self.attempt(&mut work);
        let is_broken = self.link.is_none() && !matches!(ended, Ok(_) | Err(SessionFault::Time));
        if was_connected && is_broken && may_repeat() {
            self.connect()?;
            return self.attempt(&mut work);
        }
        ended
    }

    /// Leaves a connection that has been idle for long and no longer answers.
    fn check_idle(&mut self) {
        let (Some(runtime), Some(link)) = (&self.runtime, &self.link) else { return };
        if link.used.elapsed() < IDLE {
            return;
        }
        link.received.begin();
        let checked = runtime.block_on(async { timeout(CHECK, link.client.check_connection()).await });
        if !matches!(checked, Ok(Ok(()))) {
            self.disconnect();
        }
    }

    fn attempt<T>(
        &mut self,
        work: &mut impl AsyncFnMut(&mut PostgresConnection) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, SessionFault> {
        let (Some(runtime), Some(link)) = (&self.runtime, &mut self.link) else {
            return Err(SessionFault::Down("there is no connection".into()));
        };
        let received = link.received.clone();
        let (address, encryption) = (link.address.clone(), link.encryption);
        let stop = link.client.cancel_token();
        let request = self.request.clone();
        received.begin();
        link.used = Instant::now();
        // The server's own limit is shorter: it ends the query and keeps the connection.
        let end = Instant::now() + TIME + TIME;
        let ended = runtime.block_on(async {
            let mut work = pin!(work(link));
            loop {
                match timeout(LOOK, &mut work).await {
                    Ok(ended) => break Some(ended),
                    Err(_) if request.as_ref().is_some_and(Cancelled::get) || Instant::now() >= end => {
                        break None;
                    }
                    Err(_) => {}
                }
            }
        });
        match ended {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) => {
                let fault = match received.excess() {
                    Some(excess) => SessionFault::Down(format!("it is left, because it sends {excess}")),
                    None => self.fault(&error),
                };
                if error.is_closed() || error.as_db_error().is_none() || is_ending(&error) {
                    self.disconnect();
                }
                if matches!(fault, SessionFault::Stale(_)) {
                    self.catalog = None;
                    self.link.iter_mut().for_each(|link| link.statements.clear());
                }
                Err(fault)
            }
            None => {
                self.stop(&address, encryption, &stop);
                self.disconnect();
                Err(SessionFault::Time)
            }
        }
    }

    /// Asks the server to stop the query of an abandoned connection: otherwise it would notice only when it has an
    /// answer.
    fn stop(&self, address: &Address, encryption: Encryption, token: &CancelToken) {
        let (Some(runtime), Location::Postgres(location)) = (&self.runtime, &self.source.location) else {
            return;
        };
        // If that fails, the server's own limit ends it.
        let cancel = async {
            let (socket, begun) = connect::socket(location, address, encryption).await.ok()?;
            token.cancel_query_raw(socket, begun).await.ok()
        };
        // A time-out can only be made inside of the runtime.
        let _ = runtime.block_on(async { timeout(STOP, cancel).await });
    }

    /// Closes the connection. Its task ends with its runtime, whatever the server still sends.
    fn disconnect(&mut self) {
        self.link = None;
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    fn connect(&mut self) -> Result<(), SessionFault> {
        if self.link.as_ref().is_some_and(|link| !link.client.is_closed()) {
            return Ok(());
        }
        self.disconnect();
        let source = self.source.clone();
        let Location::Postgres(location) = &source.location else {
            return Err(SessionFault::Down("it is no Postgres".into()));
        };
        if let Some(fault) = source.reach.refusal() {
            return Err(fault);
        }
        let began = Instant::now();
        match self.open(location) {
            Ok(()) => {
                source.reach.connected();
                Ok(())
            }
            Err(fault) => {
                self.disconnect();
                source.reach.failed(began, &fault);
                Err(fault)
            }
        }
    }

    fn open(&mut self, location: &PostgresLocation) -> Result<(), SessionFault> {
        let built = Builder::new_current_thread().enable_all().build();
        let runtime = built
            .map_err(|error| SessionFault::Down(format!("the system refuses what is needed: {error}")))?;
        let limit = location.config.get_connect_timeout().copied().unwrap_or(TIME);
        let connected =
            runtime.block_on(async { timeout(limit, PostgresConnection::open(location, limit)).await });
        self.runtime = Some(runtime);
        match connected {
            Ok(Ok(link)) => {
                self.link = Some(link);
                self.catalog = None;
                Ok(())
            }
            Ok(Err((error, excess))) => Err(match excess {
                Some(excess) => SessionFault::Down(format!("it cannot be connected to: it sends {excess}")),
                None => unconnected(&location.config, error),
            }),
            Err(_) => Err(SessionFault::Down("it cannot be connected to: it does not answer in time".into())),
        }
    }

    fn fault(&self, error: &tokio_postgres::Error) -> SessionFault {
        let text = match &self.source.location {
            Location::Postgres(location) => said(&location.config, error),
            Location::Sqlite(_) => String::new(),
        };
        match error.code().map(tokio_postgres::error::SqlState::code) {
            // A value has not the form of its type, or cannot be computed with.
            Some(code) if code.starts_with("22") => SessionFault::Data(text),
            Some("57014") => SessionFault::Time,
            // A column, a table, a type or a function is gone, or a plan that was kept no longer fits.
            Some("42703" | "42P01" | "42704" | "42883" | "0A000" | "26000") => SessionFault::Stale(text),
            _ => SessionFault::Down(text),
        }
    }

    /// Finds the parameter whose value the database refuses.
    fn culprit(&mut self, casts: &[String], values: &[String]) -> Option<usize> {
        let pairs = casts.iter().zip(values).enumerate();
        for (at, (cast, value)) in pairs {
            let bound = Bound { sql: cast.clone(), values: vec![DbValue::Text(value.clone())] };
            let tried = self.linked(|| true, async |link| link.ask(&bound, &mut |_| Ok(true)).await);
            if matches!(tried, Err(SessionFault::Data(_))) {
                return Some(at);
            }
        }
        None
    }
}

impl DbSession for Postgres {
    fn attend(&mut self, request: Option<Cancelled>) {
        self.request = request;
    }

    fn catalog(&mut self) -> Result<Arc<DbCatalog>, SessionFault> {
        if let (Some((read, catalog)), Some(_)) = (&self.catalog, &self.link)
            && read.elapsed() < FRESH
        {
            return Ok(catalog.clone());
        }
        let source = self.source.clone();
        let catalog = Arc::new(self.linked(|| true, async |link| schema::read(&source, link).await)?);
        self.catalog = Some((Instant::now(), catalog.clone()));
        Ok(catalog)
    }

    fn run(&mut self, query: &DbQuery<'_>, visit: &mut Visit<'_>) -> Result<(), SessionFault> {
        let bound = query.bind(DbEngine::Postgres);
        let columns = query.columns();
        let mut size = 0;
        let mut stopped = None;
        // Rows that were delivered must not come again.
        let is_delivering = Cell::new(false);
        let asked = self.linked(
            || !is_delivering.get(),
            async |link| {
                let take = &mut |row: &tokio_postgres::Row| {
                    is_delivering.set(true);
                    size += row.raw_size_bytes() as u64;
                    if size > LARGEST {
                        stopped = Some(SessionFault::Size(LARGEST));
                        return Ok(false);
                    }
                    let value = |at: usize| {
                        value(row, at, columns.get(at).map_or(TableForm::Text, |column| column.form))
                    };
                    let values = (0..columns.len()).map(value).collect::<Result<_, _>>()?;
                    let key = (columns.len()..row.len()).map(value).collect::<Result<_, _>>()?;
                    match visit(CatalogRow { values, key }) {
                        Ok(goes_on) => Ok(goes_on),
                        Err(fault) => {
                            stopped = Some(fault);
                            Ok(false)
                        }
                    }
                };
                link.ask(&bound, take).await
            },
        );
        if let Some(fault) = stopped {
            return Err(fault);
        }
        const EXPECTED: &str = "a value of its type";
        match (asked, query) {
            (Err(SessionFault::Data(what)), DbQuery::View { view, values, .. }) if !values.is_empty() => {
                Err(match self.culprit(&view.casts, values) {
                    Some(at) => SessionFault::parameter(at.to_string(), EXPECTED),
                    None => SessionFault::Data(format!("a view fails with the values of a client: {what}")),
                })
            }
            // The key of a client's.
            (Err(SessionFault::Data(_)), DbQuery::Row { .. } | DbQuery::Page { after: Some(_), .. }) => {
                Err(SessionFault::parameter("", EXPECTED))
            }
            (asked, _) => asked,
        }
    }

    fn changed(&mut self) -> Result<DbChange, SessionFault> {
        if let (Some(runtime), Some(link)) = (&self.runtime, &self.link) {
            link.received.begin();
            // Gives the connection's task time to read notifications that have arrived.
            runtime.block_on(async { sleep(Duration::from_millis(1)).await });
            if link.is_listening && !link.client.is_closed() && link.tried.elapsed() < TRIED {
                let is_notified = link.notifications.is_notified.swap(false, Ordering::AcqRel);
                return Ok(if is_notified { DbChange::Something } else { DbChange::Nothing });
            }
        }
        let began = self.linked(
            || true,
            async |link| {
                link.tried = Instant::now();
                match std::mem::replace(&mut link.is_listening, true) {
                    true => link.client.check_connection().await.map(|()| false),
                    false => link.client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map(|()| true),
                }
            },
        )?;
        match (began, std::mem::replace(&mut self.has_listened, true)) {
            (true, true) => Ok(DbChange::Lost),
            (true, false) => Ok(DbChange::Something),
            (false, _) => self.changed(),
        }
    }
}

impl PostgresConnection {
    /// Connects to the first host of a URL that accepts the requested session.
    async fn open(
        location: &PostgresLocation,
        limit: Duration,
    ) -> Result<Self, (Unconnected, Option<&'static str>)> {
        let addresses = connect::addresses(&location.config);
        let share = limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let absent = std::io::Error::new(std::io::ErrorKind::NotFound, "its URL has no host");
        let mut last = (Unconnected::Socket(absent), None);
        for address in addresses {
            match timeout(share, Self::open_at(location, address)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => last = error,
                Err(_) => {
                    let slow =
                        std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer in time");
                    last = (Unconnected::Socket(slow), None);
                }
            }
        }
        Err(last)
    }

    /// Connects to one host, in the ways that `sslmode` allows.
    async fn open_at(
        location: &PostgresLocation,
        address: Address,
    ) -> Result<Self, (Unconnected, Option<&'static str>)> {
        let mut last = None;
        for encryption in address.attempts(location.tls.mode) {
            let received = Arc::new(MessageCounts::default());
            match Self::open_as(location, &address, &received, *encryption).await {
                Ok(link) => return Ok(link),
                Err(error) => {
                    let is_final = !error.may_be_encryption();
                    last = Some((error, received.excess()));
                    if is_final {
                        break;
                    }
                }
            }
        }
        let none = || (Unconnected::Socket(std::io::ErrorKind::Unsupported.into()), None);
        Err(last.unwrap_or_else(none))
    }

    async fn open_as(
        location: &PostgresLocation,
        address: &Address,
        received: &Arc<MessageCounts>,
        encryption: Encryption,
    ) -> Result<Self, Unconnected> {
        let config = &location.config;
        let (client, mut driver) = connect::open(location, address, received, encryption).await?;
        let notifications = Arc::new(Notifications::default());
        let own = notifications.clone();
        tokio::spawn(async move {
            // It ends with the connection, or when the client is gone.
            while let Some(Ok(message)) = poll_fn(|context| driver.poll_message(context)).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    own.is_notified.store(true, Ordering::Release);
                }
            }
        });
        let link = Self {
            client,
            address: address.clone(),
            encryption,
            received: received.clone(),
            statements: HashMap::new(),
            notifications,
            is_listening: false,
            tried: Instant::now(),
            used: Instant::now(),
        };
        link.prepare_session(config).await?;
        Ok(link)
    }

    /// Checks that the server is of the kind that the URL wants, and makes the settings.
    async fn prepare_session(&self, config: &Config) -> Result<(), Unconnected> {
        let wanted = match config.get_target_session_attrs() {
            TargetSessionAttrs::ReadWrite => Some("off"),
            TargetSessionAttrs::ReadOnly => Some("on"),
            _ => None,
        };
        if let Some(wanted) = wanted {
            let asked = self.client.simple_query("SHOW transaction_read_only").await;
            let answer = asked.map_err(Unconnected::Postgres)?;
            let is_wanted = answer.iter().any(|message| {
                matches!(message, SimpleQueryMessage::Row(row) if row.try_get(0).ok().flatten() == Some(wanted))
            });
            if !is_wanted {
                let what = "it is not the server that target_session_attrs wants";
                return Err(Unconnected::Socket(std::io::Error::other(what)));
            }
        }
        self.client.batch_execute(SETTINGS).await.map_err(Unconnected::Postgres)
    }

    /// Queries system tables, up to a maximum number of rows.
    async fn rows(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
        max: usize,
        each: &mut dyn FnMut(&tokio_postgres::Row) -> Result<(), tokio_postgres::Error>,
    ) -> Result<(), tokio_postgres::Error> {
        self.received.begin();
        let mut rows = pin!(self.client.query_raw(sql, parameters.iter().copied()).await?);
        let mut count = 0;
        // What is too much is received, and limited there, but not kept.
        while let Some(row) = rows.try_next().await? {
            if count < max {
                each(&row)?;
                count += 1;
            }
        }
        Ok(())
    }

    /// Prepares a statement.
    async fn prepare(&self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        self.received.begin();
        self.client.prepare(sql).await
    }

    /// Asks one question in a transaction of its own, until `take` wants no more.
    async fn ask(
        &mut self,
        bound: &Bound,
        take: &mut dyn FnMut(&tokio_postgres::Row) -> Result<bool, tokio_postgres::Error>,
    ) -> Result<(), tokio_postgres::Error> {
        let statement = match self.statements.get(&bound.sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(&bound.sql).await?;
                if self.statements.len() >= PREPARED {
                    self.statements.clear();
                }
                self.statements.insert(bound.sql.clone(), statement.clone());
                statement
            }
        };
        let transaction = self.client.build_transaction().read_only(true).start().await?;
        let portal = transaction.bind_raw(&statement, bound.values.iter().map(text_of)).await?;
        let mut is_stopped = false;
        'all: loop {
            // A row at a time: rows may be large.
            let mut rows = pin!(transaction.query_portal_raw(&portal, CHUNK).await?);
            while let Some(row) = rows.try_next().await? {
                if !take(&row)? {
                    is_stopped = true;
                    break 'all;
                }
            }
            // It is known once the portal has no more rows.
            if rows.rows_affected().is_some() {
                break;
            }
        }
        // Older servers let some functions write all the same, such as `lo_create`: nothing of that stays.
        if is_stopped {
            // The rest of the chunk still comes. If it is too much, the connection ends, and the answer stands.
            self.received.begin();
            let _ = transaction.rollback().await;
            return Ok(());
        }
        transaction.rollback().await
    }
}

/// A parameter: a text, which the statement casts to the right type.
fn text_of(value: &DbValue) -> Option<String> {
    match value {
        DbValue::Null => None,
        DbValue::Bool(truth) => Some(truth.to_string()),
        DbValue::Integer(whole) => Some(whole.to_string()),
        DbValue::Real(number) => Some(number.to_string()),
        DbValue::Single(number) => Some(number.to_string()),
        DbValue::Text(text) | DbValue::Json(text) => Some(text.clone()),
        // No column of Postgres has such a key: those of bytes are texts here.
        DbValue::Blob(_) | DbValue::OddText(_) => None,
    }
}

/// A value of a row.
fn value(row: &tokio_postgres::Row, at: usize, form: TableForm) -> Result<DbValue, tokio_postgres::Error> {
    let kind = row.columns().get(at).map_or(&Type::TEXT, tokio_postgres::Column::type_);
    let value = match *kind {
        Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map(DbValue::Bool),
        Type::INT2 => row.try_get::<_, Option<i16>>(at)?.map(|whole| DbValue::Integer(whole.into())),
        Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(|whole| DbValue::Integer(whole.into())),
        Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(DbValue::Integer),
        Type::FLOAT4 => row.try_get::<_, Option<f32>>(at)?.map(DbValue::Single),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map(DbValue::Real),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(DbValue::Blob),
        _ => row.try_get::<_, Option<String>>(at)?.map(|text| match form {
            TableForm::Json => DbValue::Json(text),
            TableForm::Plain | TableForm::Text => DbValue::Text(text),
        }),
    };
    Ok(value.unwrap_or(DbValue::Null))
}

/// The message of an error, without the password, on one short line.
fn said(config: &Config, error: &tokio_postgres::Error) -> String {
    let text = match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    };
    let text = match config.get_password().and_then(|password| std::str::from_utf8(password).ok()) {
        Some(password) if !password.is_empty() => text.replace(password, "…"),
        _ => text,
    };
    let line = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    match text.chars().nth(SAID) {
        Some(_) => line.take(SAID).chain(['…']).collect(),
        None => line.collect(),
    }
}

/// Converts a failure to connect.
fn unconnected(config: &Config, error: Unconnected) -> SessionFault {
    let error = match error {
        Unconnected::Socket(error) => {
            return SessionFault::Down(format!("it cannot be connected to: {error}"));
        }
        Unconnected::Handshake(error) => {
            return SessionFault::Down(format!("it cannot be connected to: TLS failed: {error}"));
        }
        Unconnected::Tls(what) => {
            return SessionFault::Refused(format!("it cannot be connected to: {what}"));
        }
        Unconnected::Settings(what) => return SessionFault::Refused(what),
        Unconnected::Postgres(error) => error,
    };
    let what = format!("it cannot be connected to: {}", said(config, &error));
    match error.code().map(tokio_postgres::error::SqlState::code) {
        Some("28000") => SessionFault::Refused(format!(
            "{what}; write the right user and password in `url`, or in `password`, and an sslmode and sslcert that the server's \
             pg_hba.conf accepts"
        )),
        Some(code) if code.starts_with("28") => SessionFault::Refused(format!(
            "{what}; write the right user and password in `url`, or in `password`"
        )),
        Some("3D000") => {
            SessionFault::Refused(format!("{what}; write the name of a database at the end of `url`"))
        }
        _ => SessionFault::Down(what),
    }
}

/// Whether the server ends the connection: it shuts down, or an administrator has ended it.
fn is_ending(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("57P") || code.code().starts_with("08"))
}
