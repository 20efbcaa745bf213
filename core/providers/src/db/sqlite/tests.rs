//! What no statement can do, whatever its text.

use super::authorizer::Scope;
use super::*;
use crate::db::options::Database;
use std::fs;
use std::path::PathBuf;

/// A database of the test's own, gone with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, sql: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-sqlite-{}-{name}.db", std::process::id()));
        let file = Self(path);
        file.remove();
        Connection::open(&file.0).unwrap().execute_batch(sql).unwrap();
        file
    }

    fn session(&self, tables: &[&str], denied: &[&str]) -> Sqlite {
        let url = format!("sqlite:{}", self.0.display());
        let database = Database::new(url).tables(tables.to_vec()).columns_deny(denied.to_vec());
        Sqlite::new(Source::new("shop".into(), database).unwrap())
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

const SHOP: &str = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, password TEXT);
    CREATE TABLE other (id INTEGER PRIMARY KEY, secret TEXT);
    CREATE VIEW everyone AS SELECT id, name, password AS p FROM customers;
    CREATE INDEX names ON customers (name);
    INSERT INTO customers VALUES (1, 'a', 'hunter2-canary'); INSERT INTO other VALUES (1, 'hunter2-canary');";

const WRITES: &[&str] = &[
    "INSERT INTO customers VALUES (2, 'b', 'c')",
    "INSERT INTO customers VALUES (2, 'b', 'c') RETURNING id",
    "REPLACE INTO customers VALUES (1, 'b', 'c')",
    "UPDATE customers SET name = 'b'",
    "DELETE FROM customers",
    "WITH x AS (SELECT 1) DELETE FROM customers",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "CREATE TRIGGER t AFTER INSERT ON customers BEGIN SELECT 1; END",
    "CREATE INDEX i ON customers (name)",
    "CREATE VIEW v AS SELECT 1",
    "DROP TABLE customers",
    "ALTER TABLE customers RENAME TO c",
    "ALTER TABLE customers ADD COLUMN c",
    "ATTACH ':memory:' AS m",
    "ATTACH '/tmp/mcp-never.db' AS m",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '/tmp/mcp-never.db'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 7",
    "PRAGMA schema_version = 7",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA wal_checkpoint",
    "PRAGMA optimize",
    "PRAGMA incremental_vacuum",
    "PRAGMA temp_store_directory = '/tmp'",
    "SELECT load_extension('/tmp/x')",
    "SELECT writefile('/tmp/x', 'y')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('x')",
    "SELECT zeroblob(1000000000)",
    "SELECT randomblob(1000000000)",
    "SELECT sqlite_version()",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_table_list",
    "SELECT * FROM dbstat",
    "EXPLAIN DELETE FROM customers",
];

/// S-20: every form of writing, and all that tells of more than tables, fails below the text of the statement.
#[test]
fn nothing_is_written() {
    let file = File::new("writes", SHOP);
    let before = fs::read(&file.0).unwrap();
    let mut session = file.session(&["customers"], &["password"]);
    let open = session.open().unwrap();
    for scope in [Scope::Nothing, Scope::Table("customers".into()), Scope::Statement] {
        for sql in WRITES {
            open.allowed.enter(scope.clone());
            let ran = open
                .connection
                .prepare(sql)
                .and_then(|mut statement| statement.raw_query().next().map(|row| row.is_some()));
            assert!(ran.is_err(), "{sql} in {scope:?}: {ran:?}");
        }
    }
    assert_eq!(fs::read(&file.0).unwrap(), before);
    assert!(!Path::new("/tmp/mcp-never.db").exists());
}

/// S-20: without the authorizer the file is read-only all the same.
#[test]
fn the_file_is_opened_read_only() {
    let file = File::new("ro", SHOP);
    let mut session = file.session(&["customers"], &[]);
    let open = session.open().unwrap();
    let none: Option<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization> = None;
    open.connection.authorizer(none).unwrap();
    assert!(open.connection.is_readonly("main").unwrap());
    open.connection.execute_batch("PRAGMA query_only = OFF").unwrap();
    for sql in ["INSERT INTO customers VALUES (2, 'b', 'c')", "CREATE TABLE t (a)", "PRAGMA user_version = 7"]
    {
        let said = open.connection.execute_batch(sql).unwrap_err().to_string();
        assert!(said.contains("readonly database"), "{sql}: {said}");
    }
}

/// S-20: a table that is not declared, and a column that is denied, are read by no question about another table; a view of the
/// database shows NULL for it.
#[test]
fn only_what_is_declared_is_read() {
    let file = File::new("reads", SHOP);
    let mut session = file.session(&["customers"], &["password"]);
    let open = session.open().unwrap();
    let ask = |sql: &str, scope: Scope| {
        open.allowed.enter(scope);
        let mut statement = open.connection.prepare(sql).map_err(fault)?;
        statement.query_row([], |row| row.get_ref(0).map(Value::from)).map_err(fault)
    };
    let table = || Scope::Table("customers".into());
    assert_eq!(ask("SELECT name FROM customers", table()), Ok(Value::Text("a".into())));
    for sql in [
        "SELECT secret FROM other",
        "SELECT name FROM customers, other",
        "SELECT (SELECT secret FROM other)",
        "SELECT password FROM customers",
        "SELECT PassWord FROM customers",
        "SELECT id FROM customers WHERE password > 'a'",
        "SELECT id FROM customers ORDER BY password",
        "SELECT name FROM everyone",
    ] {
        assert!(ask(sql, table()).is_err(), "{sql}");
    }
    assert_eq!(ask("SELECT secret FROM other", Scope::Statement), Ok(Value::Text("hunter2-canary".into())));
    assert_eq!(ask("SELECT p FROM everyone", Scope::Statement), Ok(Value::Null));
    assert!(ask("SELECT password FROM customers", Scope::Statement).is_err());
    assert!(ask("SELECT max(password) FROM customers", Scope::Statement).is_err());
}

/// S-20: a question that would never end is ended.
#[test]
fn a_question_has_a_time() {
    let file = File::new("time", SHOP);
    let mut session = file.session(&["customers"], &[]);
    let open = session.open().unwrap();
    open.allowed.enter(Scope::Statement);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let mut statement = open.connection.prepare(endless).unwrap();
    open.deadline.at.store(0, Ordering::Relaxed);
    let ended = statement.query_row([], |row| row.get::<_, i64>(0));
    assert_eq!(ended.map_err(fault), Err(Fault::Time));
}

/// S-20: a file that is replaced, gone, no database, or a pipe is a fault and no panic; another in its place is opened.
#[test]
fn a_file_may_change() {
    let file = File::new("change", SHOP);
    let mut session = file.session(&["customers"], &[]);
    assert_eq!(session.catalog().unwrap().tables.len(), 1);
    let other = File::new("change-other", "CREATE TABLE customers (code TEXT PRIMARY KEY, name TEXT)");
    fs::rename(&other.0, &file.0).unwrap();
    assert_eq!(session.catalog().unwrap().tables[0].key[0].name, "code");
    fs::write(
        &file.0,
        "this is no database, and long enough to have a header of one hundred bytes or more, is it not? yes",
    )
    .unwrap();
    assert!(matches!(session.catalog(), Err(Fault::Down(_))));
    fs::remove_file(&file.0).unwrap();
    assert!(matches!(session.catalog(), Err(Fault::Down(what)) if what.contains("does not exist")));
    Connection::open(&file.0).unwrap().execute_batch(SHOP).unwrap();
    assert_eq!(session.catalog().unwrap().tables[0].key[0].name, "id");
}

/// S-20: the version of the data moves with the commits of others, in both journal modes, and not with reads.
#[test]
fn commits_are_seen() {
    for mode in ["wal", "delete"] {
        let file = File::new(mode, &format!("PRAGMA journal_mode = {mode}; {SHOP}"));
        let writer = Connection::open(&file.0).unwrap();
        let mut session = file.session(&["customers"], &[]);
        assert_eq!(session.changed(), Ok(Change::Something));
        assert_eq!(session.changed(), Ok(Change::Nothing));
        session.catalog().unwrap();
        assert_eq!(session.changed(), Ok(Change::Nothing));
        writer.execute_batch("UPDATE customers SET name = 'b'").unwrap();
        assert_eq!(session.changed(), Ok(Change::Something), "{mode}");
        assert_eq!(session.changed(), Ok(Change::Nothing));
    }
}
