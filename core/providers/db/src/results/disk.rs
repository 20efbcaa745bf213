//! Stores results in a SQLite file, which several processes may share.
//!
//! ```text
//!   put ──▶ BEGIN IMMEDIATE ─ uses that were noted, what has expired, the result, what makes room ─ COMMIT ──▶ acknowledged
//! ```
//!
//! Law: an acknowledged result is in the write-ahead log, so it survives the end of the process, however it ends; a
//! power cut may lose the last commits but leaves the file intact (`synchronous = NORMAL`). A damaged file, or one of
//! another application, is refused and never deleted. A connection is used only in the process that opened it.

use super::entry::{Audience, Content, ResultEntry, ResultKey, ResultsError, Summary};
use super::open_files::{OpenFiles, create};
use super::options::ResultLimits;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `mcpR`: says that a file is one of these.
const APPLICATION: i64 = 0x6D63_7052;
const VERSION: i64 = 1;
/// Maximum time that a write waits for another process.
const PATIENCE: Duration = Duration::from_secs(5);
const DAMAGED: &str = "is damaged, or no SQLite database; move it away, and a new one is made";
/// Maximum number of uses noted before they are written.
const NOTED: usize = 4_096;

/// `who` is empty for everybody and `=` with a principal for that one. `used` and `put` are readings of the clock in
/// `state`, which counts puts and uses; `keys` there counts the changes of the set of results. `writer` identifies the
/// connection that stored the row.
const TABLES: [&str; 5] = [
    "CREATE TABLE result (id TEXT NOT NULL, who TEXT NOT NULL, mime_type TEXT, is_text INTEGER NOT NULL, \
     created INTEGER NOT NULL, expires INTEGER NOT NULL, put INTEGER NOT NULL, writer INTEGER NOT NULL, \
     used INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE UNIQUE INDEX result_key ON result (id, who)",
    "CREATE INDEX result_expires ON result (expires)",
    "CREATE INDEX result_used ON result (used)",
    "CREATE TABLE state (entries INTEGER NOT NULL, bytes INTEGER NOT NULL, clock INTEGER NOT NULL, keys INTEGER NOT NULL)",
];
/// Counts the results and their bytes.
const TOTALS: &str =
    "UPDATE state SET (entries, bytes) = (SELECT count(*), coalesce(sum(length(body)), 0) FROM result)";
const COLUMNS: &str = "mime_type, is_text, created, expires, length(body)";

type Failure = rusqlite::Error;

/// A store in a SQLite file.
#[derive(Debug)]
pub(super) struct Disk {
    file: PathBuf,
    limits: ResultLimits,
    open: Option<OpenResults>,
}

/// The file, opened by one process.
#[derive(Debug)]
struct OpenResults {
    process: u32,
    connection: Connection,
    files: OpenFiles,
    /// Its number among all that write to the file.
    writer: i64,
    /// The results used since the last write, with the order of the uses.
    noted: HashMap<ResultKey, u64>,
    uses: u64,
    /// The version of the file, as other processes had written it at the last look.
    seen: SeenVersion,
}

#[derive(Debug, Default)]
struct SeenVersion {
    /// `PRAGMA data_version`: it changes with a commit of another connection.
    version: Option<i64>,
    clock: i64,
    keys: i64,
    /// The state of each list: by `who`, the number of results, and the clock of the last put. With the clock, two
    /// states of a list are equal only if nothing was added or removed.
    lists: BTreeMap<String, (i64, i64)>,
    /// This process has changed a list since.
    is_stale: bool,
    /// The results with watched ids: by `who`, the clock of the last put.
    watched: BTreeMap<Arc<str>, BTreeMap<String, i64>>,
}

/// A transaction that writes.
struct Write<'t> {
    transaction: Transaction<'t>,
    state: Totals,
    writer: i64,
    seen: &'t mut SeenVersion,
}

/// The changes made by other processes.
#[derive(Debug, Default)]
pub(super) struct ForeignFile {
    pub(super) changed: Vec<ResultKey>,
    /// Those whose lists have other results now.
    pub(super) listed: Vec<Audience>,
}

/// The single row of `state`.
#[derive(Clone, Copy, Debug)]
struct Totals {
    entries: u64,
    bytes: u64,
    clock: i64,
    keys: i64,
}

impl Disk {
    /// Checks that a file can be used, and creates it if it is absent. It is closed again, because the process may
    /// fork.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn check(file: &Path, limits: ResultLimits) -> Result<Self, String> {
        create(file)?;
        let connection = open(file)?;
        connection.close().map_err(|(_, error)| said(&error))?;
        Ok(Self { file: file.into(), limits, open: None })
    }

    /// Stores a result, which must not exceed the limit. Returns whether it replaces one, and the results that are
    /// gone: the expired ones, and those removed to make room.
    pub(super) fn put(
        &mut self,
        key: &ResultKey,
        entry: &ResultEntry,
        now: u64,
    ) -> Result<(bool, Vec<ResultKey>), ResultsError> {
        let limits = self.limits;
        self.write(|write| {
            let mut gone = write.expire(now)?;
            let is_new = write.take(key)?.is_none();
            let size = entry.content.len() as u64;
            while write.state.entries >= limits.entries as u64 || write.state.bytes + size > limits.bytes {
                let sql = "SELECT id, who FROM result ORDER BY used LIMIT 1";
                let Some(oldest) = write.transaction.query_row(sql, [], key_of).optional()? else { break };
                write.take(&oldest)?;
                gone.push(oldest);
            }
            write.insert(key, entry)?;
            Ok((!is_new, gone))
        })
    }

    /// The result that `principal` sees under an id at `now`: its own, or else the one for everybody. Counts as a use.
    /// `admits` is asked about the size before the contents are read.
    pub(super) fn get<E>(
        &mut self,
        id: &str,
        principal: Option<&str>,
        now: u64,
        admits: impl FnOnce(u64) -> Result<(), E>,
    ) -> Result<Option<Result<ResultEntry, E>>, ResultsError> {
        let entry = self.with(|open| {
            let sql = format!(
                "SELECT rowid, who, {COLUMNS} FROM result WHERE id = ?1 AND who IN ('', ?2) AND expires > ?3 \
                 ORDER BY who DESC LIMIT 1"
            );
            let found = {
                let mut statement = open.connection.prepare_cached(&sql)?;
                let row = |row: &Row<'_>| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, FileHead::from_row(row, 2)?))
                };
                statement.query_row(params![id, who_of(principal), signed(now)], row).optional()?
            };
            let Some((row, who, head)) = found else { return Ok(None) };
            if let Err(error) = admits(head.size) {
                return Ok(Some(Err(error)));
            }
            open.note_use(ResultKey { id: id.into(), principal: principal_of(&who) });
            let mut statement = open.connection.prepare_cached("SELECT body FROM result WHERE rowid = ?1")?;
            let entry = statement.query_row([row], |row| head.with(row.get_ref(0)?)).optional()?;
            Ok(entry.map(Ok))
        })?;
        if self.open.as_ref().is_some_and(|open| open.noted.len() >= NOTED) {
            self.write(|_| Ok(()))?;
        }
        Ok(entry)
    }

    /// Takes out one result; whether it was there.
    pub(super) fn remove(&mut self, key: &ResultKey, now: u64) -> Result<bool, ResultsError> {
        self.write(|write| Ok(write.take(key)?.is_some_and(|expires| expires > signed(now))))
    }

    /// Removes expired results. Writes nothing if there are none.
    pub(super) fn expire(&mut self, now: u64) -> Result<Vec<ResultKey>, ResultsError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM result WHERE expires <= ?1)";
        let some = self.with(|open| {
            open.connection.prepare_cached(sql)?.query_row([signed(now)], |row| row.get::<_, bool>(0))
        })?;
        if !some {
            return Ok(Vec::new());
        }
        self.write(|write| write.expire(now))
    }

    /// Visits the results that `principal` sees at `now`, ordered by id, until `each` stops.
    pub(super) fn walk(
        &mut self,
        after: Option<&str>,
        principal: &str,
        now: u64,
        each: &mut dyn FnMut(Summary) -> bool,
    ) -> Result<(), ResultsError> {
        // An own result comes after everybody's with the same id, and takes its place.
        let sql = format!(
            "SELECT id, {COLUMNS} FROM result AS one WHERE id > ?1 AND who IN ('', ?2) AND expires > ?3 AND NOT \
             (who = '' AND EXISTS (SELECT 1 FROM result WHERE id = one.id AND who = ?2 AND expires > ?3)) ORDER BY id"
        );
        self.with(|open| {
            let mut statement = open.connection.prepare_cached(&sql)?;
            let mut rows =
                statement.query(params![after.unwrap_or_default(), who_of(Some(principal)), signed(now)])?;
            while let Some(row) = rows.next()? {
                let FileHead { mime_type, created, expires, size, .. } = FileHead::from_row(row, 1)?;
                let id = row.get::<_, String>(0)?.into();
                if !each(Summary { id, size, mime_type, created, expires }) {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(super) fn len(&mut self) -> Result<usize, ResultsError> {
        let count = self.with(|open| {
            let mut statement = open.connection.prepare_cached("SELECT entries FROM state")?;
            statement.query_row([], |row| row.get::<_, i64>(0))
        })?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// The changes that other processes made since the last call, limited to the watched ids.
    pub(super) fn foreign<'i>(
        &mut self,
        watched: impl Iterator<Item = &'i str>,
    ) -> Result<ForeignFile, ResultsError> {
        self.with(|open| {
            let sql = "PRAGMA data_version";
            let version: i64 = open.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            let mut before = std::mem::take(&mut open.seen);
            let is_changed = before.version != Some(version);
            if is_changed {
                let state = Totals::read(&open.connection)?;
                open.seen.clock = state.clock;
                open.seen.keys = state.keys;
            } else {
                open.seen.clock = before.clock;
                open.seen.keys = before.keys;
            }
            open.seen.version = Some(version);
            let is_first = before.version.is_none();
            let mut found = ForeignFile::default();
            let is_listed_otherwise = !is_first && open.seen.keys != before.keys;
            let old = std::mem::take(&mut before.lists);
            if is_first || is_listed_otherwise || before.is_stale {
                open.seen.lists = open.lists()?;
                let whos: BTreeSet<&String> = old.keys().chain(open.seen.lists.keys()).collect();
                let is_changed = |who: &&String| old.get(*who) != open.seen.lists.get(*who);
                if is_listed_otherwise {
                    found.listed = whos.into_iter().filter(is_changed).map(|who| principal_of(who)).collect();
                }
            } else {
                open.seen.lists = old;
            }
            for id in watched {
                let old = before.watched.remove(id);
                let new = match old {
                    Some(old) if !is_changed => old,
                    old => {
                        open.compare(id, old, if is_first { i64::MAX } else { before.clock }, &mut found)?
                    }
                };
                open.seen.watched.insert(id.into(), new);
            }
            Ok(found)
        })
    }

    /// Runs `work` on the file that is at the path now.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut OpenResults) -> Result<T, Failure>,
    ) -> Result<T, ResultsError> {
        let open = self.current()?;
        work(open).map_err(|error| {
            ResultsError::File(format!("results: the file {} {}", self.file.display(), said(&error)))
        })
    }

    /// The open file at the path. If the file was replaced or removed, the new one gets the acknowledged results.
    fn current(&mut self) -> Result<&mut OpenResults, ResultsError> {
        let failed = |file: &Path, what: &str| {
            ResultsError::File(format!("results: the file {} {what}", file.display()))
        };
        let process = std::process::id();
        let open = match &mut self.open {
            Some(open) if open.process != process => {
                // Two processes with one connection would damage the file.
                return Err(failed(
                    &self.file,
                    "was opened before this process was forked; put the first result, or read it, after the fork",
                ));
            }
            Some(open) => {
                if !open.files.are_at(&self.file) {
                    open.follow(&self.file).map_err(|what| failed(&self.file, &what))?;
                }
                open
            }
            none => {
                let connection = open(&self.file).map_err(|what| failed(&self.file, &what))?;
                let writer = RandomState::new().hash_one(process).cast_signed();
                let noted = Default::default();
                let uses = Default::default();
                let seen = Default::default();
                let files = OpenFiles::at(&self.file);
                none.insert(OpenResults { process, connection, files, writer, noted, uses, seen })
            }
        };
        Ok(open)
    }

    /// Runs `work` as one transaction, with the uses that were noted before it.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Write<'_>) -> Result<T, Failure>,
    ) -> Result<T, ResultsError> {
        let done = self.with(|open| {
            let OpenResults { connection, noted, seen, writer, .. } = open;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let state = Totals::read(&transaction)?;
            let keys = state.keys;
            let mut write = Write { transaction, state, writer: *writer, seen };
            write.uses(noted)?;
            let done = work(&mut write)?;
            let Write { transaction, state, seen, .. } = write;
            state.write(&transaction)?;
            transaction.commit()?;
            noted.clear();
            // What this process changes is not news for it.
            seen.keys += state.keys - keys;
            seen.is_stale |= state.keys != keys;
            Ok(done)
        })?;
        // It is acknowledged once it is in the file that is there.
        self.current()?;
        Ok(done)
    }
}

impl Drop for OpenResults {
    fn drop(&mut self) {
        self.files.let_be(&self.connection);
    }
}

impl OpenResults {
    /// Continues with the file that is at the path now, and creates it if it is absent. Results that are missing there
    /// are copied.
    fn follow(&mut self, file: &Path) -> Result<(), String> {
        self.files.remove_leftovers(file);
        create(file)?;
        let mut connection = open(file)?;
        copy(&self.connection, &mut connection).map_err(|error| said(&error))?;
        self.files.let_be(&self.connection);
        self.connection = connection;
        self.files = OpenFiles::at(file);
        // It was changed: what is watched is compared with what was known of the other file.
        self.seen.version = self.seen.version.map(|_| i64::MIN);
        Ok(())
    }

    fn note_use(&mut self, key: ResultKey) {
        self.uses += 1;
        self.noted.insert(key, self.uses);
    }

    /// For [`SeenVersion::lists`].
    fn lists(&self) -> Result<BTreeMap<String, (i64, i64)>, Failure> {
        let mut statement =
            self.connection.prepare_cached("SELECT who, count(*), max(put) FROM result GROUP BY who")?;
        statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?.collect()
    }

    /// Adds to `found` the results with an id that others have changed since `old`, or if it was not watched before,
    /// since `clock`. Returns the current results.
    fn compare(
        &self,
        id: &str,
        old: Option<BTreeMap<String, i64>>,
        clock: i64,
        found: &mut ForeignFile,
    ) -> Result<BTreeMap<String, i64>, Failure> {
        let mut new = BTreeMap::new();
        let sql = "SELECT who, put, writer FROM result WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let (who, put, writer): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let is_changed = old.as_ref().map_or(put > clock, |old| old.get(&who) != Some(&put));
            if is_changed && writer != self.writer {
                found.changed.push(ResultKey { id: id.into(), principal: principal_of(&who) });
            }
            new.insert(who, put);
        }
        let gone = old.iter().flat_map(BTreeMap::keys).filter(|who| !new.contains_key(*who));
        found.changed.extend(gone.map(|who| ResultKey { id: id.into(), principal: principal_of(who) }));
        Ok(new)
    }
}

impl Write<'_> {
    /// Writes the noted uses, in their order.
    fn uses(&mut self, noted: &HashMap<ResultKey, u64>) -> Result<(), Failure> {
        let mut uses: Vec<(&ResultKey, &u64)> = noted.iter().collect();
        uses.sort_by_key(|(_, order)| **order);
        for (key, _) in uses {
            self.state.clock += 1;
            let sql = "UPDATE result SET used = ?1 WHERE id = ?2 AND who = ?3";
            let who = who_of(key.principal.as_deref());
            self.transaction.prepare_cached(sql)?.execute(params![self.state.clock, key.id, who])?;
        }
        Ok(())
    }

    fn insert(&mut self, key: &ResultKey, entry: &ResultEntry) -> Result<(), Failure> {
        self.state.clock += 1;
        self.state.keys += 1;
        self.state.entries += 1;
        self.state.bytes += entry.content.len() as u64;
        let sql = "INSERT INTO result (id, who, mime_type, is_text, created, expires, put, writer, used, body) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?7, ?9)";
        self.transaction.prepare_cached(sql)?.execute(params![
            key.id,
            who_of(key.principal.as_deref()),
            entry.mime_type,
            matches!(entry.content, Content::Text(_)),
            signed(entry.created),
            signed(entry.expires),
            self.state.clock,
            self.writer,
            entry.content.bytes(),
        ])?;
        Ok(())
    }

    /// Removes one result; returns the time of its expiry, if it existed.
    fn take(&mut self, key: &ResultKey) -> Result<Option<i64>, Failure> {
        let who = who_of(key.principal.as_deref());
        let sql = "DELETE FROM result WHERE id = ?1 AND who = ?2 RETURNING length(body), expires";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let row = |row: &Row<'_>| Ok((unsigned(row.get(0)?), row.get(1)?));
        let Some((size, expires)) = statement.query_row(params![key.id, who], row).optional()? else {
            return Ok(None);
        };
        self.state.keys += 1;
        self.state.entries = self.state.entries.saturating_sub(1);
        self.state.bytes = self.state.bytes.saturating_sub(size);
        if let Some(watched) = self.seen.watched.get_mut(&key.id) {
            watched.remove(&who);
        }
        Ok(Some(expires))
    }

    fn expire(&mut self, now: u64) -> Result<Vec<ResultKey>, Failure> {
        let gone: Vec<ResultKey> = {
            let sql = "SELECT id, who FROM result WHERE expires <= ?1";
            let mut statement = self.transaction.prepare_cached(sql)?;
            statement.query_map([signed(now)], key_of)?.collect::<Result<_, _>>()?
        };
        gone.iter().try_for_each(|key| self.take(key).map(drop))?;
        Ok(gone)
    }
}

/// The columns of a row other than its contents.
struct FileHead {
    mime_type: Option<Arc<str>>,
    is_text: bool,
    created: u64,
    expires: u64,
    size: u64,
}

impl FileHead {
    /// From [`COLUMNS`], of which the first is column `at`.
    fn from_row(row: &Row<'_>, at: usize) -> Result<Self, Failure> {
        Ok(Self {
            mime_type: row.get::<_, Option<String>>(at)?.map(Into::into),
            is_text: row.get(at + 1)?,
            created: unsigned(row.get(at + 2)?),
            expires: unsigned(row.get(at + 3)?),
            size: unsigned(row.get(at + 4)?),
        })
    }

    fn with(self, body: ValueRef<'_>) -> Result<ResultEntry, Failure> {
        let bytes = body.as_blob()?;
        let content = if self.is_text {
            Content::Text(std::str::from_utf8(bytes).map_err(|error| Failure::Utf8Error(0, error))?.into())
        } else {
            Content::Blob(bytes.into())
        };
        Ok(ResultEntry { content, mime_type: self.mime_type, created: self.created, expires: self.expires })
    }
}

impl Totals {
    fn read(connection: &Connection) -> Result<Self, Failure> {
        let sql = "SELECT entries, bytes, clock, keys FROM state";
        connection.prepare_cached(sql)?.query_row([], |row| {
            let entries = unsigned(row.get(0)?);
            let bytes = unsigned(row.get(1)?);
            Ok(Self { entries, bytes, clock: row.get(2)?, keys: row.get(3)? })
        })
    }

    fn write(self, connection: &Connection) -> Result<(), Failure> {
        let sql = "UPDATE state SET entries = ?1, bytes = ?2, clock = ?3, keys = ?4";
        connection.prepare_cached(sql)?.execute(params![
            signed(self.entries),
            signed(self.bytes),
            self.clock,
            self.keys
        ])?;
        Ok(())
    }
}

/// Adds the results of one file to another one, but for those whose ids are taken there.
fn copy(from: &Connection, to: &mut Connection) -> Result<(), Failure> {
    const ROWS: &str =
        "SELECT id, who, mime_type, is_text, created, expires, put, writer, used, body FROM result";
    let transaction = to.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let old = Totals::read(from)?;
    let mut new = Totals::read(&transaction)?;
    {
        let mut rows = from.prepare(ROWS)?;
        let mut rows = rows.query([])?;
        let sql = "INSERT OR IGNORE INTO result VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let mut insert = transaction.prepare(sql)?;
        while let Some(row) = rows.next()? {
            for at in 0..10 {
                insert.raw_bind_parameter(at + 1, row.get::<_, rusqlite::types::Value>(at)?)?;
            }
            if insert.raw_execute()? > 0 {
                new.keys += 1;
            }
        }
    }
    new.clock = new.clock.max(old.clock).saturating_add(1);
    new.write(&transaction)?;
    transaction.execute(TOTALS, [])?;
    transaction.commit()
}

/// Opens an existing file.
fn open(file: &Path) -> Result<Connection, String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let is_file = std::fs::metadata(file).is_ok_and(|found| found.is_file());
    if !is_file {
        return Err("is no file; name another file".into());
    }
    let mut connection = Connection::open_with_flags(file, flags).map_err(|error| said(&error))?;
    let end = Instant::now() + PATIENCE;
    loop {
        match set_up(&mut connection) {
            Ok(()) => return Ok(connection),
            // SQLite does not wait for a lock while another process makes the same file.
            Err(SetUp::Sqlite(error)) if is_busy(&error) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(SetUp::Sqlite(error)) => return Err(said(&error)),
            Err(SetUp::Sentence(text)) => return Err(text.into()),
        }
    }
}

/// Why a file cannot be used.
enum SetUp {
    Sqlite(Failure),
    Sentence(&'static str),
}

impl From<Failure> for SetUp {
    fn from(error: Failure) -> Self {
        Self::Sqlite(error)
    }
}

fn set_up(connection: &mut Connection) -> Result<(), SetUp> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // Before anything is written: the file may be of something else. In one snapshot, as another process may be making it.
    {
        let snapshot = connection.transaction()?;
        is_new(&snapshot)?;
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if is_new(&transaction)? {
        for sql in TABLES {
            transaction.execute(sql, [])?;
        }
        transaction.execute("INSERT INTO state VALUES (0, 0, 0, 0)", [])?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    let sound: String = transaction.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(SetUp::Sentence(DAMAGED));
    }
    if transaction.execute(TOTALS, [])? != 1 {
        return Err(SetUp::Sentence(DAMAGED));
    }
    transaction.commit()?;
    Ok(())
}

/// Whether there is nothing in the file.
fn is_new(connection: &Connection) -> Result<bool, SetUp> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: Vec<String> = {
        let mut statement =
            connection.prepare("SELECT coalesce(sql, '') FROM sqlite_schema ORDER BY rowid")?;
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
    };
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if tables.is_empty() => Ok(true),
        (APPLICATION, VERSION) if tables == TABLES => Ok(false),
        (APPLICATION, VERSION) => Err(SetUp::Sentence(DAMAGED)),
        (APPLICATION, _) => Err(SetUp::Sentence("was written by another version; name another file")),
        _ => Err(SetUp::Sentence("is a database of something else; name another file")),
    }
}

fn is_busy(error: &Failure) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

/// An error of SQLite as a sentence about the file.
fn said(error: &Failure) -> String {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => DAMAGED.into(),
        _ if is_busy(error) => format!("was locked by another process for {} s", PATIENCE.as_secs()),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "cannot be written; let this process write it and its directory, or name another file".into()
        }
        _ => format!("cannot be used: {error}"),
    }
}

fn key_of(row: &Row<'_>) -> Result<ResultKey, Failure> {
    let (id, who): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(ResultKey { id: id.into(), principal: principal_of(&who) })
}

fn who_of(principal: Option<&str>) -> String {
    principal.map(|principal| format!("={principal}")).unwrap_or_default()
}

fn principal_of(who: &str) -> Option<Arc<str>> {
    who.strip_prefix('=').map(Into::into)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
