//! Work that is no longer wanted: it stops, and gives its thread back.
//!
//! A provider has a few threads. If work went on after its time-out, as many requests as there are threads would stop all
//! others.

use mcp_resources_engine::limits::Limits;
use mcp_resources_providers::db::{Database, Db, DbOptions};
use mcp_resources_providers::docs::{Docs, DocsOptions};
use mcp_resources_providers::rag::{DriveOptions, Rag, RagOptions};
use mcp_resources_runtime::provider::Provider;
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use rusqlite::Connection;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::drive::LoopbackDrive;

/// More requests than any provider has threads.
const MANY: usize = 10;
/// When a thread must be free again: a second, and what a busy machine needs.
const FREE: Duration = Duration::from_secs(10);

/// A directory of the test's own, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mcp-outlived-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn served(provider: impl Provider, read_timeout: u64) -> ResourceServer {
    let mut limits = Limits::default();
    limits.read_timeout = read_timeout;
    limits.contents = 1 << 40;
    ResourceServer::builder("outlived", "1").mount(provider).limits(limits).build().unwrap()
}

/// Reads `endless` until the time is over on all threads, and also as clients that leave; then `other` is answered soon.
async fn outlives_nothing(server: &ResourceServer, endless: &str, other: &str) {
    for _ in 0..MANY {
        let mut client = Client::modern(server).unwrap();
        // The client leaves with its connection.
        let _ = tokio::time::timeout(Duration::from_millis(20), client.read(endless)).await;
    }
    for _ in 0..MANY {
        let mut client = Client::modern(server).unwrap();
        let error = client.read(endless).await.unwrap_err();
        assert_eq!(error.code, -31008, "{endless}: {error}");
    }
    let mut client = Client::modern(server).unwrap();
    let begun = Instant::now();
    let mut last = client.read_text(other).await;
    while last.is_err() && begun.elapsed() < FREE {
        last = client.read_text(other).await;
    }
    assert!(last.is_ok(), "{endless}: {other} is not answered: {last:?}");
}

/// S-32: a view and a table that never end leave the threads of a database free.
#[tokio::test]
async fn endless_queries_end() {
    let scratch = Scratch::new();
    let path = scratch.0.join("shop.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE few (id INTEGER PRIMARY KEY); INSERT INTO few VALUES (1)")
        .unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n WHERE i > :least";
    let database =
        Database::new(format!("sqlite:{}", path.display())).tables(["few"]).view("endless", endless);
    let db = Db::new(DbOptions::new().database("shop", database)).unwrap();
    let server = served(db, 300);
    outlives_nothing(&server, "db:///shop/query/endless?least=0", "db:///shop/few/1").await;
}

/// S-32: a page that grows for as long as it is read.
#[tokio::test]
async fn pages_without_an_end_end() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("small.md"), "# Small\n").unwrap();
    let path = scratch.0.join("endless.md");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(b"# Endless\n").unwrap();
    // It has no blocks, and is larger than any machine reads within the time.
    file.set_len(1 << 38).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = is_over.clone();
    let grower = std::thread::spawn(move || {
        for size in 1_u64.. {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            let _ = file.set_len((1 << 38) + size * 4_096);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let docs = Docs::new(DocsOptions::new().site("book", &scratch.0)).unwrap();
    let server = served(docs, 300);
    outlives_nothing(&server, "docs:///book/endless.md", "docs:///book/small.md").await;
    is_over.store(true, Ordering::Relaxed);
    grower.join().unwrap();
}

/// S-32: a Drive that wants no calls for half a minute, and one that does not answer.
#[tokio::test]
async fn waits_for_a_drive_end() {
    let drive = LoopbackDrive::start();
    drive.put("doc1", "Plan", "text/plain", "Open the shop in Kawagoe.");
    drive.put("doc2", "Notes", "text/plain", "Espresso is in the kitchen.");
    let scratch = Scratch::new();
    let credentials = scratch.0.join("credentials.json");
    fs::write(&credentials, r#"{"client_id": "a", "client_secret": "b", "refresh_token": "c"}"#).unwrap();
    let options = RagOptions::new().drive("kb", DriveOptions::new(credentials).base_url(&drive.url));
    let server = served(Rag::new(options).unwrap(), 2_000);
    let mut client = Client::modern(&server).unwrap();
    let begun = Instant::now();
    while client.read_text("gdrive:///doc2").await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "there are no documents");
    }
    drive.state().held = Some("files/doc1".into());
    outlives_nothing(&server, "gdrive:///doc1", "gdrive:///doc2").await;
    drive.state().held = None;
}
