//! Programs that write a file are killed at any moment. Of results, what was acknowledged is there (S-06). An index of pages or
//! documents can be read, and searches are answered as without it (S-03, S-07).

use crate::docs::wait_for_free;
use crate::indexed;
use mcp_resources_providers::results::{Content, ResultOptions, Results};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often it is killed, unless the variable `MCP_RESOURCES_KILLS` says otherwise.
const KILLS: u64 = 10;

fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join(name);
    assert!(program.is_file(), "{} is missing: run tests/rust/build", program.display());
    program
}

fn kills() -> u64 {
    std::env::var("MCP_RESOURCES_KILLS")
        .map_or(KILLS, |text| text.parse().expect("MCP_RESOURCES_KILLS is a number"))
}

/// The number in a result.
fn number(content: &Content) -> u64 {
    let Content::Text(text) = content else { panic!("{content:?}") };
    let (number, rest) = text.split_once(' ').unwrap();
    assert!(matches!(rest.len(), 50 | 20_000), "{}", rest.len());
    number.parse().unwrap()
}

/// S-06: nothing acknowledged is lost, whenever the process is killed, and the file can be opened each time.
#[test]
fn nothing_acknowledged_is_lost() {
    let folder = std::env::temp_dir().join(format!("mcp-results-kills-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("results.db");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let mut acknowledged = 0;
    for round in 0..kills() {
        let mut child = Command::new(program("put-results"))
            .args([file.as_os_str(), round.to_string().as_ref()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // However long it takes to begin.
        let first = u64::from(lines.next().is_some());
        let reader = std::thread::spawn(move || first + lines.map_while(Result::ok).count() as u64);
        std::thread::sleep(Duration::from_micros(20_000 + round.wrapping_mul(7_919) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let count = reader.join().unwrap();
        acknowledged += count;
        // The last number that each id was put with.
        for number in 0..count {
            expected.insert(format!("{round}-{}", number % 40), number);
        }
        let options = ResultOptions::new().file(&file).entries(1_000_000).bytes(1 << 30);
        let results = Results::new(options).unwrap();
        for (id, least) in &expected {
            let entry = results.get(id, None).unwrap().unwrap_or_else(|| panic!("{id} is lost"));
            // A put that was not acknowledged any more may be there.
            assert!(number(&entry.content) >= *least, "{id} is older than what was acknowledged");
        }
    }
    assert!(acknowledged > kills(), "{acknowledged} results in all: it was killed too early");
    std::fs::remove_dir_all(folder).unwrap();
}

/// How many pages there are.
const PAGES: u64 = 120;

/// Writes the half of the pages that has changed in this round, and removes one.
fn edit(folder: &Path, round: u64) {
    for page in (0..PAGES).filter(|page| round == 0 || (page + round).is_multiple_of(2)) {
        let text =
            format!("# Page {page}\n\nword{} of round{round}\n\n## More\n\nneedle\n", (page + round) % 10);
        std::fs::write(folder.join(format!("{page}.md")), text).unwrap();
    }
    let _ = std::fs::remove_file(folder.join(format!("{}.md", round * 7 % PAGES)));
}

/// How many rows there are in an index that a killed process has left, which is sound.
fn rows(file: &Path) -> u64 {
    let db = Connection::open(file).unwrap();
    let said: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ok");
    // It may have been killed before there was a table.
    let rows = db.query_row("SELECT count(*) FROM doc", [], |row| row.get::<_, i64>(0));
    rows.map_or(0, i64::unsigned_abs)
}

async fn an_index_outlives_a_kill(kind: &str) {
    let folder = std::env::temp_dir().join(format!("mcp-{kind}-kills-{}", std::process::id()));
    let pages = folder.join("pages");
    let file = folder.join("kb.index");
    std::fs::create_dir_all(&pages).unwrap();
    let mut left = 0;
    for round in 0..kills() {
        edit(&pages, round);
        if round.checked_rem(3) == Some(2) {
            // A file that a process has made, and that no other has opened.
            std::fs::remove_file(&file).unwrap();
        }
        let mut child = Command::new(program("search-index"))
            .arg(kind)
            .args([&pages, &file])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        std::thread::sleep(Duration::from_micros(round.wrapping_mul(7_919) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        left += rows(&file);
        let log = Arc::new(Mutex::new(Vec::new()));
        let said = log.clone();
        let server = indexed::server(kind, &pages, Some(&file), move |line| said.lock().unwrap().push(line));
        let fresh = indexed::server(kind, &pages, None, |_| {});
        let last = format!("round{round}");
        let before = format!("round{}", round.wrapping_sub(1));
        for word in ["needle", "word1", "word2", &last, &before] {
            let own = indexed::found(&server, kind, word).await;
            assert_eq!(own, indexed::found(&fresh, kind, word).await, "{word} in round {round}");
            assert!(!own.is_empty() || ![&*last, "needle"].contains(&word), "{word} in round {round}");
        }
        assert!(log.lock().unwrap().is_empty(), "{log:?}");
        drop(server);
        wait_for_free(&file).await;
    }
    assert!(left > 0, "it was killed too early");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Where the file of the index cannot grow, clients are answered and the file is sound; once it can, all is found.
async fn an_index_outlives_a_full_disk(kind: &str) {
    let folder = std::env::temp_dir().join(format!("mcp-{kind}-full-{}", std::process::id()));
    let pages = folder.join("pages");
    let file = folder.join("kb.index");
    std::fs::create_dir_all(&pages).unwrap();
    for page in 0..20 {
        std::fs::write(pages.join(format!("{page}.md")), format!("# Page {page}\n\nword1\n")).unwrap();
    }
    // Both indexes exist before the disk is full.
    let server = indexed::server(kind, &pages, Some(&file), |_| {});
    assert_eq!(indexed::found(&server, kind, "word1").await.len(), 20);
    drop(server);
    wait_for_free(&file).await;
    let text: String = (0..60_000).map(|number| format!("w{number} ")).collect();
    std::fs::write(pages.join("new.md"), format!("# New\n\nword1\n\n{text}\n")).unwrap();
    // As a full disk: no file may grow beyond 160 KiB, and a write beyond it fails.
    let script = "trap '' XFSZ; ulimit -S -f 160; exec \"$@\"";
    let mut child = Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(program("search-index"))
        .arg(kind)
        .args([&pages, &file])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!((lines.next().as_deref(), lines.next().as_deref()), (Some("begun"), Some("20")));
    let limit = ["--pid", &child.id().to_string(), "--fsize=unlimited:unlimited"].map(str::to_owned);
    assert!(Command::new("prlimit").args(limit).status().unwrap().success());
    assert_eq!(lines.next().as_deref(), Some("21"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(rows(&file) >= 21);
    std::fs::remove_dir_all(folder).unwrap();
}

/// S-07: a full disk costs pages only what they could not be searched for.
#[tokio::test]
async fn an_index_of_pages_outlives_a_full_disk() {
    an_index_outlives_a_full_disk("docs").await;
}

/// S-03: nor more of documents.
#[tokio::test]
async fn an_index_of_documents_outlives_a_full_disk() {
    an_index_outlives_a_full_disk("rag").await;
}

/// S-07: the index of pages is whole, and answers are right, whenever the process is killed.
#[tokio::test]
async fn an_index_of_pages_outlives_a_kill() {
    an_index_outlives_a_kill("docs").await;
}

/// S-03: so is that of documents.
#[tokio::test]
async fn an_index_of_documents_outlives_a_kill() {
    an_index_outlives_a_kill("rag").await;
}
