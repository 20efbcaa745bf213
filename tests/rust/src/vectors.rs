//! Others' files, which are not kept here: the official cases of RFC 6570 and the schemas of the protocol.
//!
//! They are looked for in the directory that `MCP_RESOURCES_VECTORS` names, then in `target/vectors`, where `make setup` writes
//! what it finds in packages.

use std::io::Write;
use std::path::PathBuf;

/// The directory of this name among the vectors, if it is there.
pub fn directory(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("MCP_RESOURCES_VECTORS").map(PathBuf::from);
    let made = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folders = named.into_iter().chain([made.join("vectors")]);
    folders.map(|vectors| project().join(vectors).join(name)).find(|directory| directory.is_dir())
}

/// The root of the project.
pub fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Says that the test under way is left out, wholly or in part. `tests/checks/ran.py` counts the reasons.
pub fn left_out(reason: &str) {
    println!("left out: {reason}");
    let thread = std::thread::current();
    record(&serde_json::json!({ "of": thread.name(), "left_out": reason }));
}

/// Says that a case of a fixture passed: `covers` are the requirements that it tests.
pub fn passed(case: &str, covers: &serde_json::Value) {
    record(&serde_json::json!({ "of": case, "cites": covers.to_string() }));
}

/// Appends to the file that `tests/rust/run` reads, if there is one.
fn record(entry: &serde_json::Value) {
    let Some(path) = std::env::var_os("MCP_RESOURCES_RECORD") else { return };
    let file = std::fs::OpenOptions::new().append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(format!("{entry}\n").as_bytes())) {
        eprintln!("the record of the tests cannot be written: {error}");
    }
}
