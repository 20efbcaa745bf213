//! Serves a directory with its search index in a file, and searches it again and again: `search-index docs|rag DIR
//! FILE`. It writes a line before the first search, then the number of pages that have a word whenever it is another, and goes
//! on until it is killed. For the tests that the index outlives that, and a full disk.
#![expect(clippy::expect_used, reason = "what goes wrong here ends a test")]

use mcp_resources_tests::indexed;
use std::io::Write;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, dir, file] = &*arguments else { return eprintln!("usage: search-index docs|rag DIR FILE") };
    let server = indexed::server(kind, dir.as_ref(), Some(file.as_ref()), |_| {});
    println!("begun");
    std::io::stdout().flush().expect("somebody reads");
    let mut before = None;
    loop {
        let found = indexed::found(&server, kind, "word1").await.len();
        if before.replace(found) != Some(found) {
            // The test may have stopped reading.
            let _ = writeln!(std::io::stdout(), "{found}");
        }
    }
}
