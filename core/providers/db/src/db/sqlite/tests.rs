//! Tests of the actions that no statement can perform, whatever its text.

use super::authorizer::AuthorizerScope;
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
        Sqlite::new(DbSource::new("shop".into(), database).unwrap())
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
    "SELECT * FROM pragma_table_info('customers')",
    "EXPLAIN DELETE FROM customers",
];

// S-20: every form of writing, and all that tells of more than tables, fails below the text of the statement.
#[test]
fn nothing_is_written() {
    let file = File::new("writes", SHOP);
    let before = fs::read(&file.0).unwrap();
    let mut session = file.session(&["customers"], &["password"]);
    let open = session.open().unwrap();
    for scope in
        [AuthorizerScope::Nothing, AuthorizerScope::Table("customers".into()), AuthorizerScope::Statement]
    {
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

// S-20: without the authorizer the file is read-only all the same.
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

// S-20: a table that is not declared, and a column that is denied, are read by no question about another table; a view of the
// database shows NULL for it.
#[test]
fn only_what_is_declared_is_read() {
    let file = File::new("reads", SHOP);
    let mut session = file.session(&["customers"], &["password"]);
    let open = session.open().unwrap();
    let ask = |sql: &str, scope: AuthorizerScope| {
        open.allowed.enter(scope);
        let mut statement = open.connection.prepare(sql).map_err(fault)?;
        statement.query_row([], |row| row.get_ref(0).map(DbValue::from)).map_err(fault)
    };
    let table = || AuthorizerScope::Table("customers".into());
    assert_eq!(ask("SELECT name FROM customers", table()), Ok(DbValue::Text("a".into())));
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
    assert_eq!(
        ask("SELECT secret FROM other", AuthorizerScope::Statement),
        Ok(DbValue::Text("hunter2-canary".into()))
    );
    assert_eq!(ask("SELECT p FROM everyone", AuthorizerScope::Statement), Ok(DbValue::Null));
    assert!(ask("SELECT password FROM customers", AuthorizerScope::Statement).is_err());
    assert!(ask("SELECT max(password) FROM customers", AuthorizerScope::Statement).is_err());
}

// S-20: a question that would never end is ended.
#[test]
fn a_question_has_a_time() {
    let file = File::new("time", SHOP);
    let mut session = file.session(&["customers"], &[]);
    let open = session.open().unwrap();
    open.allowed.enter(AuthorizerScope::Statement);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let mut statement = open.connection.prepare(endless).unwrap();
    open.deadline.at.store(0, Ordering::Relaxed);
    let ended = statement.query_row([], |row| row.get::<_, i64>(0));
    assert_eq!(ended.map_err(fault), Err(SessionFault::Time));
}

// S-20: a file that is replaced, gone, no database, or a pipe is a fault and no panic; another in its place is opened.
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
    assert!(matches!(session.catalog(), Err(SessionFault::Down(_))));
    fs::remove_file(&file.0).unwrap();
    assert!(matches!(session.catalog(), Err(SessionFault::Down(what)) if what.contains("does not exist")));
    Connection::open(&file.0).unwrap().execute_batch(SHOP).unwrap();
    assert_eq!(session.catalog().unwrap().tables[0].key[0].name, "id");
}

// S-20: the version of the data moves with the commits of others, in both journal modes, and not with reads.
#[test]
fn commits_are_seen() {
    for mode in ["wal", "delete"] {
        let file = File::new(mode, &format!("PRAGMA journal_mode = {mode}; {SHOP}"));
        let writer = Connection::open(&file.0).unwrap();
        let mut session = file.session(&["customers"], &[]);
        assert_eq!(session.changed(), Ok(DbChange::Something));
        assert_eq!(session.changed(), Ok(DbChange::Nothing));
        session.catalog().unwrap();
        assert_eq!(session.changed(), Ok(DbChange::Nothing));
        writer.execute_batch("UPDATE customers SET name = 'b'").unwrap();
        assert_eq!(session.changed(), Ok(DbChange::Something), "{mode}");
        assert_eq!(session.changed(), Ok(DbChange::Nothing));
    }
}

// S-20: every function that is allowed exists, and none is left out that only computes with its arguments.
#[test]
fn the_functions_are_those_of_sqlite() {
    /// Functions that return state of the process or the connection, return large or random values, or load and write.
    const REFUSED: &[&str] = &[
        "last_insert_rowid",
        "load_extension",
        "optimize",
        "random",
        "randomblob",
        "sqlite_compileoption_get",
        "sqlite_compileoption_used",
        "sqlite_log",
        "sqlite_source_id",
        "sqlite_version",
        "total_changes",
        "zeroblob",
    ];
    let connection = Connection::open_in_memory().unwrap();
    let mut statement = connection.prepare("SELECT DISTINCT name FROM pragma_function_list").unwrap();
    let known: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let absent: Vec<&&str> =
        authorizer::FUNCTIONS.iter().filter(|name| !known.iter().any(|known| known == **name)).collect();
    assert!(absent.is_empty(), "{absent:?}");
    let others: Vec<&String> = known
        .iter()
        .filter(|name| !authorizer::FUNCTIONS.contains(&name.as_str()) && !REFUSED.contains(&name.as_str()))
        .filter(|name| !name.starts_with("fts") && !name.starts_with("rtree") && !name.starts_with("geopoly"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

// S-20: keys of every kind of table page forth without loss, and each row is read under its own key.
#[test]
fn keys_of_every_kind_of_table() {
    use crate::db::contents::{RowReader, read};
    use crate::db::target::DbTarget;
    let file = File::new(
        "kinds",
        "CREATE TABLE d(id INTEGER PRIMARY KEY DESC, v); INSERT INTO d VALUES (3,1),(NULL,2),(NULL,3),('x',4),(x'00',5),(1.5,6);
         CREATE TABLE i(id INT PRIMARY KEY, v); INSERT INTO i VALUES (3,1),(NULL,2),(NULL,3),('x',4);
         CREATE TABLE r(id INTEGER PRIMARY KEY, v); INSERT INTO r VALUES (3,1),(-1,2);
         CREATE TABLE s(id INTEGER PRIMARY KEY DESC, v INT) STRICT; INSERT INTO s VALUES (3,1),(1,2);
         CREATE TABLE w(a TEXT COLLATE NOCASE, b, PRIMARY KEY (a DESC, b)) WITHOUT ROWID; INSERT INTO w VALUES ('B',1),('a',2),('c',3);
         CREATE TABLE \"rowid\"(rowid TEXT, oid); INSERT INTO \"rowid\" VALUES ('x', 1), ('x', 2);
         CREATE TABLE c(a, b, c, PRIMARY KEY (a, b)); INSERT INTO c VALUES (1,NULL,1),(1,NULL,2),(NULL,NULL,3),(2,x'',4),('',0.5,5);
         CREATE TABLE g(id TEXT PRIMARY KEY, n INT, twice INT AS (n * 2)); INSERT INTO g(id, n) VALUES ('~',1),('a,b',2),('../x',3);",
    );
    let names = ["d", "i", "r", "s", "w", "rowid", "c", "g"];
    let url = format!("sqlite:{}", file.0.display());
    let source = DbSource::new("shop".into(), Database::new(url).tables(names)).unwrap();
    let mut session = Sqlite::new(source.clone());
    assert_eq!(session.catalog().unwrap().faults, Vec::<String>::new());
    let reader = RowReader { permits: &|_| true, fits: &|_| Ok(()), log: &|_| {} };
    for name in names {
        let mut after = None;
        let mut rows = Vec::new();
        for _ in 0..10 {
            let target = DbTarget::Page { table: name.into(), after: after.take(), rows: Some(1) };
            let page = read(&source, &mut session, &target, &reader).unwrap().text;
            let page: serde_json::Value = serde_json::from_str(&page).unwrap();
            rows.extend(page["rows"].as_array().unwrap().iter().map(ToString::to_string));
            let Some(next) = page["next"].as_str() else { break };
            let next = next.split_once("after=").unwrap().1.strip_suffix("&rows=1").unwrap();
            after = Some(mcp_resources_provider_kit::path::decoded(next).unwrap());
        }
        let connection = Connection::open(&file.0).unwrap();
        let count: i64 =
            connection.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0)).unwrap();
        assert_eq!(rows.len() as i64, count, "{name}: {rows:?}");
        let mut distinct = rows.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), rows.len(), "{name}: {rows:?}");
    }
    for (name, key, is_there) in [
        ("d", "x", true),
        ("d", "1.5", true),
        ("d", "~x00", true),
        ("d", "~", false),
        ("r", "3", true),
        ("w", "b,1", false),
    ] {
        let found =
            read(&source, &mut session, &DbTarget::Row { table: name.into(), key: key.into() }, &reader);
        assert_eq!(found.is_ok(), is_there, "{name}/{key}");
    }
}

// S-20: tables that report on the file are refused at the start, and functions on JSON in bytes and on full text are allowed.
#[test]
fn views_are_judged_at_the_start() {
    let file = File::new(
        "views",
        "CREATE TABLE t(a); CREATE VIRTUAL TABLE f USING fts4(b); INSERT INTO f VALUES ('tea');",
    );
    for (sql, is_served) in [
        ("SELECT json(jsonb_extract(jsonb('{\"a\":[1]}'), '$.a')) AS a", true),
        ("SELECT offsets(f) AS o, hex(matchinfo(f)) AS m, snippet(f) AS s FROM f WHERE f MATCH 'tea'", true),
        ("SELECT value FROM json_each('[1]')", true),
        ("SELECT name FROM pragma_table_info('t')", false),
        ("SELECT name FROM dbstat", false),
        ("SELECT median(a) FROM t", false),
        ("SELECT sql FROM sqlite_schema", false),
    ] {
        let url = format!("sqlite:{}", file.0.display());
        let source = DbSource::new("shop".into(), Database::new(url).view("v", sql)).unwrap();
        let mut session = Sqlite::new(source);
        let catalog = session.catalog().unwrap();
        assert_eq!(catalog.faults.is_empty(), is_served, "{sql}: {:?}", catalog.faults);
        if let Some(view) = catalog.views[0].as_ref() {
            let mut rows = 0;
            let query = DbQuery::View { view, values: &[], limit: 5 };
            let ran = session.run(&query, &mut |_| {
                rows += 1;
                Ok(true)
            });
            assert_eq!((ran, rows), (Ok(()), 1), "{sql}");
        }
    }
}

// S-20: a path that begins with two slashes is one; an interrupted write and a folder that cannot be written say what helps.
#[test]
fn paths_and_folders() {
    let file = File::new("slashes", SHOP);
    let path = format!("/{}", file.0.display());
    let source =
        DbSource::new("shop".into(), Database::new(format!("sqlite://{path}")).tables(["customers"]))
            .unwrap();
    assert_eq!(Sqlite::new(source).catalog().unwrap().tables.len(), 1);
    for (code, part) in [
        (ffi::SQLITE_READONLY_ROLLBACK, "interrupted while it wrote"),
        (ffi::SQLITE_READONLY_CANTINIT, "WAL mode"),
        (ffi::SQLITE_READONLY, "WAL mode"),
        (ffi::SQLITE_CANTOPEN, "WAL mode"),
    ] {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("attempt".into()));
        assert!(matches!(fault(error), SessionFault::Down(what) if what.contains(part)), "{code}");
    }
}
