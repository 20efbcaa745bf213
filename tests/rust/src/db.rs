//! Databases, served to a client: what is declared and nothing else, keys of any text, pages under inserts, changes.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::db::{Database, Db, DbOptions};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CANARY: &str = "hunter2-canary";

const SHOP: &str = "
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, password TEXT, balance REAL, photo BLOB, big INTEGER);
INSERT INTO customers VALUES (1, 'Ada', 'London', 'hunter2-canary', 1.5, x'000102', 9223372036854775807),
  (2, 'Bea', 'Oslo', 'hunter2-canary', NULL, NULL, -9223372036854775808), (3, 'Cy', 'Oslo', 'hunter2-canary', 0.1, x'', 0);
CREATE TABLE lines (order_id INTEGER, line INTEGER, item TEXT, PRIMARY KEY (order_id, line)) WITHOUT ROWID;
INSERT INTO lines VALUES (2, 3, 'tea'), (2, 4, 'milk'), (3, 1, 'rice');
CREATE TABLE codes (code TEXT PRIMARY KEY, meaning TEXT);
INSERT INTO codes VALUES ('a/b', 'slash'), ('c,d', 'comma'), ('~', 'tilde'), ('~2F', 'escape'), ('..', 'dots'), ('', 'empty'),
  (NULL, 'null'), ('検索 100%?#', 'text'), ('C:', 'drive'), ('3', 'digit'), ('a', 'a');
CREATE TABLE log (what TEXT);
INSERT INTO log VALUES ('one'), ('two');
CREATE TABLE hidden (secret TEXT); INSERT INTO hidden VALUES ('hunter2-canary');
";

/// A database of the test's own, in a directory that is gone with it.
struct Shop {
    folder: PathBuf,
    path: PathBuf,
}

impl Shop {
    fn new(sql: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mcp-db-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let shop = Self { path: folder.join("shop.db"), folder };
        shop.run(sql);
        shop
    }

    fn run(&self, sql: &str) {
        Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }

    fn database<const N: usize>(&self, tables: [&str; N]) -> Database {
        Database::new(format!("sqlite:{}", self.path.display())).tables(tables).columns_deny(["password"])
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn served(database: Database, policy: &str) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let server = ResourceServer::builder("db", "1")
        .mount(Db::new(DbOptions::new().database("shop", database)).unwrap())
        .guard(Policy::from_json(policy).unwrap())
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

fn client(database: Database) -> Client {
    Client::modern(&served(database, "{}").0).unwrap()
}

async fn json_at(client: &mut Client, uri: &str) -> Value {
    serde_json::from_str(&client.read_text(uri).await.unwrap()).unwrap()
}

async fn completed(client: &mut Client, variable: &str, typed: &str, table: &str) -> Value {
    let asked = json!({
        "ref": {"type": "ref/resource", "uri": "db:///{name}/{table}/{key}"},
        "argument": {"name": variable, "value": typed},
        "context": {"arguments": {"name": "shop", "table": table}}
    });
    client.request("complete", asked).await.unwrap()["completion"]["values"].clone()
}

/// All rows of a table, a page at a time.
async fn walked(client: &mut Client, first: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(uri) = next {
        let page = json_at(client, &uri).await;
        rows.extend(page["rows"].as_array().unwrap().iter().cloned());
        next = page["next"].as_str().map(str::to_owned);
        assert!(rows.len() < 10_000, "pages without an end");
    }
    rows
}

/// S-20: what is declared is listed, read and completed in both eras; values are exact.
#[tokio::test]
async fn what_is_declared_is_served() {
    let shop = Shop::new(SHOP);
    let by_city = "SELECT id, name FROM customers WHERE city = :city ORDER BY name";
    let database = shop
        .database(["customers", "lines"])
        .view("by_city", by_city)
        .view("count", "SELECT count(*) AS n FROM log");
    let (server, log) = served(database, "{}");
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let items = client.list_resources().await.unwrap();
        let uris: Vec<&str> = items.iter().map(|item| item["uri"].as_str().unwrap()).collect();
        assert_eq!(
            uris,
            [
                "db:///",
                "db:///shop/query/count",
                "db:///shop/schema",
                "db:///shop/customers",
                "db:///shop/lines"
            ]
        );
        let index = json_at(&mut client, "db:///").await;
        assert_eq!(
            index["databases"][0],
            json!({
                "name": "shop", "schema": "db:///shop/schema", "tables": ["db:///shop/customers", "db:///shop/lines"],
                "views": ["db:///shop/query/by_city{?city}", "db:///shop/query/count"]
            })
        );
        let schema = client.read_text("db:///shop/schema").await.unwrap();
        assert!(!schema.contains("password"), "{schema}");
        let schema: Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["tables"]["lines"]["key"], json!(["order_id", "line"]));
        assert_eq!(
            schema["tables"]["customers"]["columns"][1],
            json!({"name": "name", "type": "TEXT", "nullable": false})
        );
        assert_eq!(schema["views"]["by_city"]["parameters"], json!(["city"]));

        let text = client.read_text("db:///shop/customers/1").await.unwrap();
        assert_eq!(
            text,
            "{\"id\":1,\"name\":\"Ada\",\"city\":\"London\",\"balance\":1.5,\"photo\":{\"base64\":\"AAEC\"},\"big\":9223372036854775807}"
        );
        assert!(client.read_text("db:///shop/customers/2").await.unwrap().contains("-9223372036854775808"));
        assert_eq!(json_at(&mut client, "db:///shop/lines/2,3").await["item"], "tea");
        assert_eq!(json_at(&mut client, "db:///shop/customers").await["rows"].as_array().unwrap().len(), 3);
        assert_eq!(
            json_at(&mut client, "db:///shop/query/by_city?city=Oslo").await,
            json!({"rows": [{"id": 2, "name": "Bea"}, {"id": 3, "name": "Cy"}]})
        );
        assert_eq!(json_at(&mut client, "db:///shop/query/count").await, json!({"rows": [{"n": 2}]}));
        assert_eq!(completed(&mut client, "name", "s", "").await, json!(["shop"]));
        assert_eq!(completed(&mut client, "table", "c", "").await, json!(["customers"]));
        assert_eq!(completed(&mut client, "key", "", "customers").await, json!(["1", "2", "3"]));
        assert_eq!(completed(&mut client, "key", "2,", "lines").await, json!(["2,3", "2,4"]));
    }
    assert!(log.lock().unwrap().is_empty(), "{log:?}");
}

/// S-20: what is not declared, what is not there and every other spelling of a key are answered with the same bytes.
#[tokio::test]
async fn what_is_not_declared_is_not_there() {
    let shop = Shop::new(SHOP);
    let mut client = client(shop.database(["customers", "codes"]).view("all", "SELECT 1 AS one"));
    let mut answers = Vec::new();
    for path in [
        "shop/hidden",
        "shop/hidden/1",
        "shop/sqlite_schema",
        "shop/log",
        "shop/Customers",
        "other/customers",
        "other/schema",
        "shop/customers/4",
        "shop/customers/01",
        "shop/customers/1.0",
        "shop/customers/+1",
        "shop/customers/1e0",
        "shop/customers/a",
        "shop/customers/1,2",
        "shop/customers/~",
        "shop/customers/1%20",
        "shop/codes/A",
        "shop/codes/none",
        "shop/codes/a~2fb",
        "shop/codes/~61",
        "shop/query/none",
        "shop/query/all/x",
        "shop/customers%22",
        "shop/customers/1%27%20OR%201=1",
    ] {
        let uri = format!("db:///{path}");
        let error = client.read(&uri).await.expect_err(path);
        answers.push(format!("{error:?}").replace(&uri, "URI"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
}

/// S-20: a variable of a wrong form is named.
#[tokio::test]
async fn a_wrong_variable_is_named() {
    let shop = Shop::new(SHOP);
    let mut client = client(
        shop.database(["customers", "lines"]).view("by_city", "SELECT id FROM customers WHERE city = :city"),
    );
    for (path, name) in [
        ("customers?rows=0", "rows"),
        ("customers?rows=1001", "rows"),
        ("customers?rows=x", "rows"),
        ("customers?rows=%2B1", "rows"),
        ("customers?after=x", "after"),
        ("customers?after=1,2", "after"),
        ("customers?after=~", "after"),
        ("lines?after=~,1", "after"),
        ("lines?after=2", "after"),
        ("query/by_city", "city"),
    ] {
        let error = client.read(&format!("db:///shop/{path}")).await.expect_err(path);
        assert_eq!(error.code, -32602, "{path}");
        assert!(format!("{error:?}").contains(&format!("\"{name}\"")), "{path}: {error:?}");
    }
    // A text that looks like SQL is only a value.
    let uri = "db:///shop/query/by_city?city=Oslo%27%20OR%201%3D1%3B%20DROP%20TABLE%20customers%3B%20--";
    assert_eq!(json_at(&mut client, uri).await, json!({"rows": []}));
}

/// S-20: keys with slashes, commas, tildes, NULL, nothing and any text have one URI each.
#[tokio::test]
async fn odd_keys_have_one_spelling() {
    let shop = Shop::new(SHOP);
    let mut client = client(shop.database(["codes", "log"]));
    for (key, meaning) in [
        ("a~2Fb", "slash"),
        ("c~2Cd", "comma"),
        ("~7E", "tilde"),
        ("~7E2F", "escape"),
        ("~2E~2E", "dots"),
        ("~~", "empty"),
        ("~", "null"),
        ("%E6%A4%9C%E7%B4%A2%20100%25%3F%23", "text"),
        ("3", "digit"),
        ("C~3A", "drive"),
    ] {
        let uri = format!("db:///shop/codes/{key}");
        assert_eq!(json_at(&mut client, &uri).await["meaning"], meaning, "{key}");
    }
    // A table without a key has that of its rows.
    assert_eq!(json_at(&mut client, "db:///shop/log/2").await, json!({"what": "two"}));
    for rows in 1..4 {
        let all = walked(&mut client, &format!("db:///shop/codes?rows={rows}")).await;
        assert_eq!(all.len(), 11, "{rows}");
    }
    // Of two rows with NULL in their keys none is the one, and both are in pages.
    shop.run("INSERT INTO codes VALUES (NULL, 'null too'), (NULL, 'and more')");
    assert!(client.read("db:///shop/codes/~").await.is_err());
    assert_eq!(walked(&mut client, "db:///shop/codes?rows=1").await.len(), 13);
}

/// S-20: a key that is not UTF-8 has its place among the texts, so no page loses a row behind it.
#[tokio::test]
async fn a_key_need_not_be_utf_8() {
    let shop = Shop::new(
        "CREATE TABLE names (name TEXT PRIMARY KEY, at INTEGER);
         INSERT INTO names VALUES ('Ada', 1), (CAST(x'4DFC' AS TEXT), 2), ('Zoe', 3), (x'4DFC', 4);",
    );
    let mut client = client(shop.database(["names"]));
    let rows = walked(&mut client, "db:///shop/names?rows=1").await;
    assert_eq!(rows.iter().map(|row| row["at"].clone()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(rows[1]["name"], json!({ "base64": "Tfw=" }));
    for (key, at) in [("~u4DFC", 2), ("~x4DFC", 4)] {
        assert_eq!(json_at(&mut client, &format!("db:///shop/names/{key}")).await["at"], at, "{key}");
    }
    assert!(client.read("db:///shop/names/~u416461").await.is_err(), "another spelling of Ada");
}

/// S-20: rows that are inserted between the pages lose none of those that were there.
#[tokio::test]
async fn pages_lose_nothing_under_inserts() {
    let rows: Vec<String> = (0..500).map(|at| format!("({}, 'row')", 10 * at)).collect();
    let shop = Shop::new(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); INSERT INTO t VALUES {}",
        rows.join(",")
    ));
    let mut client = client(shop.database(["t"]));
    let mut seen = Vec::new();
    let mut next = Some("db:///shop/t?rows=7".to_owned());
    let mut round = 0;
    while let Some(uri) = next {
        let page = json_at(&mut client, &uri).await;
        let rows = page["rows"].as_array().unwrap();
        assert!(rows.len() <= 7);
        seen.extend(rows.iter().map(|row| row["id"].as_i64().unwrap()));
        next = page["next"].as_str().map(str::to_owned);
        round += 1;
        shop.run(&format!(
            "INSERT OR IGNORE INTO t VALUES ({}, 'new'), (-{round}, 'new'), ({}, 'new')",
            10 * round + 1,
            5000 - round
        ));
    }
    let old: Vec<i64> = seen.iter().copied().filter(|id| id % 10 == 0 && (0..5000).contains(id)).collect();
    assert_eq!(old, (0..500).map(|at| 10 * at).collect::<Vec<_>>());
    assert!(seen.is_sorted());
}

/// S-20, R-075: hidden rows are on no page and in no `next`, a hidden table in no index and schema; another spelling shows none.
#[tokio::test]
async fn the_guard_is_asked_first() {
    let shop = Shop::new(SHOP);
    let many: Vec<String> = (0..3_000).map(|at| format!("({at})")).collect();
    shop.run(&format!(
        "CREATE TABLE many (id INTEGER PRIMARY KEY); INSERT INTO many VALUES {}",
        many.join(",")
    ));
    let database = shop.database(["customers", "codes", "many", "lines"]).view("all", "SELECT 1 AS one");
    let deny = r#"{"deny": ["db:///shop/customers/2", "db:///shop/codes", "db:///shop/codes/**", "db:///shop/many/1*", "db:///shop/query/all"]}"#;
    let (server, _) = served(database, deny);
    let mut client = Client::modern(&server).unwrap();
    let page = json_at(&mut client, "db:///shop/customers?rows=1").await;
    assert_eq!(page["rows"][0]["id"], 1);
    assert_eq!(page["next"], "db:///shop/customers?after=1&rows=1");
    let rows = walked(&mut client, "db:///shop/customers?rows=1").await;
    assert_eq!(rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>(), [1, 3]);
    let rows = walked(&mut client, "db:///shop/many?rows=50").await;
    assert!(rows.iter().all(|row| !row["id"].to_string().starts_with('1')));
    assert_eq!(rows.len(), 3_000 - 1_111);
    for path in ["customers/2", "customers/02", "codes", "codes/a"] {
        assert!(client.read(&format!("db:///shop/{path}")).await.is_err(), "{path}");
    }
    for uri in ["db:///", "db:///shop/schema"] {
        let text = client.read_text(uri).await.unwrap();
        assert!(
            !text.contains("codes") && !text.contains("query/all") && text.contains("customers"),
            "{text}"
        );
    }
    assert_eq!(completed(&mut client, "key", "", "customers").await, json!(["1", "3"]));
    assert_eq!(completed(&mut client, "table", "c", "").await, json!(["customers"]));
}

/// S-20, R-083, R-092: a commit is reported for the rows and pages that it has changed, and for no others; in both journal modes.
#[tokio::test]
async fn only_what_changed_is_reported() {
    for mode in ["wal", "delete"] {
        let shop = Shop::new(&format!("PRAGMA journal_mode = {mode}; {SHOP}"));
        let (server, log) =
            served(shop.database(["customers", "codes"]).poll(Duration::from_millis(20)), "{}");
        let mut client = Client::modern(&server).unwrap();
        let uris = [
            "db:///shop/customers/1",
            "db:///shop/customers/2",
            "db:///shop/codes",
            "db:///shop/customers/9",
        ];
        let listen = client.listen(&uris, false).await.unwrap();
        client.read_text(uris[1]).await.unwrap();
        // Read before it is watched, and changed before the first look.
        shop.run("UPDATE customers SET city = 'Rome' WHERE id = 2");
        assert_eq!(client.next(&listen).await.unwrap().params["uri"], uris[1]);
        // A denied column is nothing to hear of, nor is a row of which nothing has changed.
        shop.run("UPDATE customers SET password = 'other'; UPDATE customers SET name = name");
        shop.run("INSERT INTO codes VALUES ('new', 'new')");
        assert_eq!(client.next(&listen).await.unwrap().params["uri"], uris[2]);
        shop.run("INSERT INTO customers (id, name) VALUES (9, 'New')");
        assert_eq!(client.next(&listen).await.unwrap().params["uri"], uris[3]);
        shop.run("DELETE FROM customers WHERE id = 9");
        assert_eq!(client.next(&listen).await.unwrap().params["uri"], uris[3]);
        assert!(log.lock().unwrap().is_empty(), "{log:?}");
    }
}

/// S-20: a server that takes connections and says nothing delays no report of another database.
#[tokio::test]
async fn a_database_that_hangs_delays_no_other() {
    let shop = Shop::new(SHOP);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me@{}/x", listener.local_addr().unwrap());
    let hangs = Arc::new(AtomicBool::new(false));
    let is_over = Arc::new(AtomicBool::new(false));
    let begun = hangs.clone();
    let ended = is_over.clone();
    std::thread::spawn(move || {
        // The first connection is the one of the start.
        drop(listener.accept());
        let Ok((mut socket, _)) = listener.accept() else { return };
        begun.store(true, Ordering::SeqCst);
        while matches!(socket.read(&mut [0; 1_024]), Ok(1..)) {}
        ended.store(true, Ordering::SeqCst);
    });
    let options = DbOptions::new()
        .database("down", Database::new(url).tables(["orders"]))
        .database("shop", shop.database(["customers"]).poll(Duration::from_millis(20)));
    let server = ResourceServer::builder("db", "1").mount(Db::new(options).unwrap()).build().unwrap();
    let mut client = Client::modern(&server).unwrap();
    client.read_text("db:///shop/customers/1").await.unwrap();
    let listen = client.listen(&["db:///down/orders/1", "db:///shop/customers/1"], false).await.unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while !hangs.load(Ordering::SeqCst) {
        assert!(std::time::Instant::now() < until, "nothing has connected");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shop.run("UPDATE customers SET name = 'Eve' WHERE id = 1");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "db:///shop/customers/1");
    assert!(!is_over.load(Ordering::SeqCst), "the report came after the attempt to connect had ended");
}

/// S-20: a denied column that no table has is logged, unless it looks like a mistake: a list may be for many databases.
#[tokio::test]
async fn a_denied_column_may_be_absent() {
    let shop = Shop::new(SHOP);
    let (server, log) = served(shop.database(["log"]).columns_deny(["password", "ssn"]), "{}");
    let mut client = Client::modern(&server).unwrap();
    for _ in 0..2 {
        client.read_text("db:///shop/log").await.unwrap();
    }
    let said = log.lock().unwrap().join("\n");
    assert_eq!(said.matches("columns_deny has \"ssn\", and no table has such a column").count(), 1, "{said}");
    assert!(!said.contains("\"password\""), "{said}");
}

/// S-20, R-076: a legacy session hears too; a database that is locked, gone and there again costs no change.
#[tokio::test]
async fn a_database_may_be_away() {
    let shop = Shop::new(SHOP);
    let (server, log) = served(shop.database(["customers"]).poll(Duration::from_millis(20)), "{}");
    let mut client = Client::legacy(&server, Revision::V2025_06_18).await.unwrap();
    client.read_text("db:///shop/customers/1").await.unwrap();
    client.subscribe("db:///shop/customers/1").await.unwrap();
    let away = shop.folder.join("away.db");
    fs::rename(&shop.path, &away).unwrap();
    let error = client.read("db:///shop/customers/1").await.unwrap_err();
    assert_eq!((error.code, format!("{error:?}").contains("shop.db")), (-32603, false));
    assert!(client.read("db:///shop/customers/7").await.is_err());
    Connection::open(&away).unwrap().execute_batch("UPDATE customers SET name = 'Eve' WHERE id = 1").unwrap();
    fs::rename(&away, &shop.path).unwrap();
    let notice = client.notification().await.unwrap();
    assert_eq!(notice["params"]["uri"], "db:///shop/customers/1");
    assert!(log.lock().unwrap().iter().any(|what| what.contains("does not exist")), "{log:?}");

    let writer = Connection::open(&shop.path).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = client.read("db:///shop/customers/1").await.unwrap_err();
    assert_eq!(error.code, -32603);
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(json_at(&mut client, "db:///shop/customers/1").await["name"], "Eve");
    assert!(!format!("{log:?}").contains(CANARY));
}

/// S-20: large values and pages are refused or cut, and nothing is lost.
#[tokio::test]
async fn sizes_have_limits() {
    let shop = Shop::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x BLOB); INSERT INTO t VALUES (1, zeroblob(4000000)), (2, zeroblob(4000000)),
         (3, zeroblob(4000000)), (4, zeroblob(4000000)), (5, zeroblob(13000000)), (6, zeroblob(3));",
    );
    let mut client = client(shop.database(["t"]));
    let error = client.read("db:///shop/t/5").await.unwrap_err();
    assert!(format!("{error:?}").contains("size_exceeded"), "{error:?}");
    let page = json_at(&mut client, "db:///shop/t").await;
    assert_eq!(page["rows"].as_array().unwrap().len(), 3);
    assert_eq!(page["next"], "db:///shop/t?after=3");
    assert!(client.read("db:///shop/t?after=4").await.is_err());
    assert_eq!(json_at(&mut client, "db:///shop/t?after=5").await["rows"][0]["id"], 6);
}

/// S-20: a view has at most 1,000 rows, and says when there are more.
#[tokio::test]
async fn views_have_a_limit() {
    let shop = Shop::new(SHOP);
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(:n AS INTEGER)) SELECT i FROM n;";
    let mut client = client(shop.database([]).view("numbers", numbers));
    let page = json_at(&mut client, "db:///shop/query/numbers?n=1000").await;
    assert_eq!((page["rows"].as_array().unwrap().len(), page.get("truncated")), (1000, None));
    let page = json_at(&mut client, "db:///shop/query/numbers?n=1001").await;
    assert_eq!((page["rows"].as_array().unwrap().len(), &page["truncated"]), (1000, &json!(true)));
}

/// S-20: the database is not open before the first request, and closed after the provider was unmounted.
#[tokio::test]
async fn unmounting_gives_everything_back() {
    let shop = Shop::new(SHOP);
    let held = || {
        let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
        links
            .filter(|link| fs::read_link(link.path()).is_ok_and(|path| path.starts_with(&shop.folder)))
            .count()
    };
    let server = ResourceServer::builder("db", "1").build().unwrap();
    let db = Arc::new(Db::new(DbOptions::new().database("shop", shop.database(["customers"]))).unwrap());
    let mount = server.mount(db.clone()).unwrap();
    assert_eq!(held(), 0, "before the first request");
    let mut client = Client::modern(&server).unwrap();
    client.read_text("db:///shop/customers/1").await.unwrap();
    let _listen = client.listen(&["db:///shop/customers/1"], false).await.unwrap();
    assert!(held() > 0);
    server.unmount(mount);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while held() > 0 {
        assert!(std::time::Instant::now() < until, "{} descriptors are held", held());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mount = server.mount(db).unwrap();
    client.read_text("db:///shop/customers/1").await.unwrap();
    server.unmount(mount);
}

fn members(members: &[(&str, OptionValue)]) -> OptionValue {
    OptionValue::Members(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// S-20: what is wrong at the start is named with the fix, and no URL is repeated.
#[test]
#[expect(clippy::too_many_lines, reason = "one conversation, from its beginning to its end")]
fn mistakes_at_the_start() {
    let shop = Shop::new(&format!(
        "{SHOP} CREATE TABLE schema (a); CREATE TABLE pay (card TEXT PRIMARY KEY) WITHOUT ROWID; CREATE VIEW v AS SELECT 1;
         CREATE VIRTUAL TABLE words USING fts5(word);"
    ));
    let url = || ("url", OptionValue::from(format!("sqlite:{}", shop.path.display())));
    let list = |names: &[&str]| OptionValue::List(names.iter().map(|name| (*name).into()).collect());
    let view = |sql: &str| members(&[("v", sql.into())]);
    let cases: &[(&[(&str, OptionValue)], &str)] = &[
        (
            &[url()],
            "nothing of it is served; name tables: `tables: [NAME]`, or db:NAME=URL,TABLE with the command; it has codes, customers",
        ),
        (&[url(), ("table", list(&["customers"]))], "unexpected option \"table\"; did you mean \"tables\"?"),
        (
            &[url(), ("tables", list(&["customer"]))],
            "the table \"customer\" does not exist; did you mean \"customers\"?",
        ),
        (&[url(), ("tables", list(&["zzz"]))], "does not exist; there are codes"),
        (
            &[url(), ("tables", list(&["schema"]))],
            "a table \"schema\", whose URI is that of something else; serve it with a view",
        ),
        (
            &[url(), ("tables", list(&["v"]))],
            "the table \"v\" is a view of the database; serve it with a view: `views: {v: \"SELECT * FROM v\"}`",
        ),
        (
            &[url(), ("tables", list(&["words"]))],
            "the table \"words\" is a virtual table; serve it with a view",
        ),
        (
            &[url(), ("tables", list(&["customers"])), ("columns_deny", list(&["pasword"]))],
            "columns_deny has \"pasword\", and no table has such a column; did you mean \"password\"?",
        ),
        (
            &[url(), ("tables", list(&["customers"])), ("columns_deny", list(&["customer.password"]))],
            "did you mean \"customers.password\"?",
        ),
        (
            &[url(), ("tables", list(&["customers"])), ("columns_deny", list(&["main.customers.password"]))],
            "no table has such a column; write TABLE.COLUMN, or COLUMN for all tables",
        ),
        (
            &[url(), ("tables", list(&["customers"])), ("columns_deny", list(&["*"]))],
            "columns_deny has \"*\", and no table has such a column; write TABLE.COLUMN",
        ),
        (
            &[url(), ("tables", list(&["pay"])), ("columns_deny", list(&["card"]))],
            "the denied column \"card\" in its key",
        ),
        (&[url(), ("tables", list(&["log", "log"]))], "names the table \"log\" twice"),
        (
            &[url(), ("views", view("DELETE FROM log"))],
            "the view \"v\" cannot be served: it does more than to read; a view is one SELECT",
        ),
        (
            &[url(), ("views", view("SELECT 1; SELECT 2"))],
            "has the view \"v\", which has more than one statement",
        ),
        (
            &[
                url(),
                ("columns_deny", list(&["password"])),
                ("views", view("SELECT password FROM customers")),
            ],
            "access to customers.password is prohibited",
        ),
        (&[url(), ("views", view("SELECT nam FROM customers"))], "no such column: nam"),
        (
            &[url(), ("views", view("SELECT id FROM customers WHERE id = ?"))],
            "a parameter that is not written as :name",
        ),
        (
            &[url(), ("views", view("SELECT id, id FROM customers"))],
            "two of its columns have the name \"id\"",
        ),
        (&[url(), ("views", view("PRAGMA table_list"))], "the view \"v\" cannot be served"),
        (&[url(), ("rows", 0_u64.into())], "rows is 0, expected a whole number from 1 to 1000"),
        (&[url(), ("rows", 1_001_u64.into())], "rows is 1001, expected a whole number from 1 to 1000"),
        (&[url(), ("poll", "1ms".into())], "poll is \"1ms\", expected a time from 10ms to 1d"),
        (
            &[("url", "sqlite:/no/such.db".into()), ("tables", list(&["a"]))],
            "the file /no/such.db does not exist",
        ),
        (
            &[("url", "mysql://me:hunter2-canary@h/x".into())],
            "has a URL that is neither sqlite:PATH nor postgres://",
        ),
        (
            &[("url", "postgres://me:hunter2-canary@h:x/y".into())],
            "write `@`, `/`, `:` and `%` in a password as %40",
        ),
        (
            &[("url", "postgres://me:hunter2-canary@h/y?sslmode=verify-ca".into())],
            "has sslmode=verify-ca without a file of authorities",
        ),
        (&[("tables", list(&["a"]))], "has no url"),
        (
            &[("url", members(&[("env", "MCP_NEVER_SET".into())]))],
            "the variable \"MCP_NEVER_SET\" of the environment is not set",
        ),
        (
            &[("url", list(&["postgres://me:hunter2-canary@h/y"]))],
            "url and password are each a text, or {env: NAME}",
        ),
    ];
    for (options, message) in cases {
        let value = members(&[("databases", members(&[("shop", members(options))]))]);
        let said = DbOptions::from_option(value).and_then(Db::new).unwrap_err().to_string();
        assert!(said.contains(message) && !said.contains(CANARY), "{said}");
    }
    for (value, message) in [
        (members(&[]), "there is no database; name one"),
        (
            members(&[("databases", "postgres://me:hunter2-canary@h/y".into())]),
            "expected names with a database each",
        ),
        (
            members(&[("databases", members(&[("shop", "sqlite:hunter2-canary".into())]))]),
            "has no object of options",
        ),
        (
            members(&[("databases", members(&[("a/b", members(&[url()]))]))]),
            "\"a/b\" is no name for a database",
        ),
    ] {
        let said = DbOptions::from_option(value).and_then(Db::new).unwrap_err().to_string();
        assert!(said.contains(message) && !said.contains(CANARY), "{said}");
    }
    let twice = Db::new(DbOptions::new().database("a", shop.database(["log"]))).unwrap();
    let said =
        twice.join(Db::new(DbOptions::new().database("a", shop.database(["log"]))).unwrap()).unwrap_err();
    assert!(said.to_string().contains("two databases have the name \"a\""));
}
