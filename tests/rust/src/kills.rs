//! A program that puts results into a file is killed at any moment: what it was told is put is there, and the file is whole (S-06).

use mcp_resources_providers::results::{Content, Options, Results};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often it is killed, unless the variable `MCP_RESOURCES_KILLS` says otherwise.
const KILLS: u64 = 10;

fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("put-results");
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
        let mut child = Command::new(program())
            .args([file.as_os_str(), round.to_string().as_ref()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reader = std::thread::spawn(move || lines.map_while(Result::ok).count() as u64);
        std::thread::sleep(Duration::from_micros(20_000 + round.wrapping_mul(7_919) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let count = reader.join().unwrap();
        acknowledged += count;
        // The last number that each id was put with.
        for number in 0..count {
            expected.insert(format!("{round}-{}", number % 40), number);
        }
        let options = Options::new().file(&file).entries(1_000_000).bytes(1 << 30);
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
