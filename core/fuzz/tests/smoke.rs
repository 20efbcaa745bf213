//! Drives every target with its corpus and with mutations of it. See the crate's first lines.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test outside the engine: it reads its corpus and the date, prints its seed, and fails by panicking"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mcp_resources_fuzz::{Mutator, TARGETS, Target};

/// The default number of mutated inputs for each target.
const ITERATIONS: u64 = 5_000;

/// Other inputs every day, the same ones all day. A failure names the seed; `MCP_RESOURCES_FUZZ_SEED` sets it.
fn seed() -> u64 {
    let days = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a date after 1970");
        since.as_secs() / 86_400
    };
    std::env::var("MCP_RESOURCES_FUZZ_SEED").map_or_else(|_| days(), |asked| asked.parse().expect("a number"))
}

fn drive(name: &str) {
    let target = *TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus = corpus(name);
    assert!(corpus.len() > 2, "the corpus of {name} is empty");
    corpus.iter().for_each(|input| run(target, input, "it is in the corpus"));
    let asked = std::env::var("MCP_RESOURCES_FUZZ_ITERATIONS");
    let iterations = asked.map_or(ITERATIONS, |asked| asked.parse().expect("a number"));
    let seed = seed();
    println!("MCP_RESOURCES_FUZZ_SEED={seed}");
    let mut mutator = Mutator::new(seed);
    (0..iterations).for_each(|_| run(target, &mutator.next_input(&corpus), &format!("the seed is {seed}")));
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// The files of a corpus by name, so that each run is the same.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        folder(name).read_dir().expect("a corpus").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Runs one input. One that fails is kept in the corpus, so that it is run each time from then on.
fn run(target: Target, input: &[u8], how: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let file = folder(target.name).join(format!("failed-{:016x}", digest(input)));
        let kept = std::fs::write(&file, input);
        let kept = kept.map_or_else(|error| error.to_string(), |()| format!("kept in {}", file.display()));
        panic!("target {} fails for b\"{}\"; {how}; {kept}", target.name, input.escape_ascii());
    }
}

/// FNV-1a.
fn digest(input: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    input.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

//
#[test]
fn decode() {
    drive("decode");
}

//
#[test]
fn lines() {
    drive("lines");
}

//
#[test]
fn text() {
    drive("text");
}

//
#[test]
fn seal() {
    drive("seal");
}

//
#[test]
fn uri() {
    drive("uri");
}

// S-11
#[test]
fn guard() {
    drive("guard");
}

// S-01, S-10
#[test]
fn config() {
    drive("config");
}

// S-04
#[test]
fn config_file() {
    drive("config_file");
}

//
#[test]
fn template() {
    drive("template");
}

// S-12, S-13
#[test]
fn client() {
    drive("client");
}

// S-01, S-11
#[test]
fn files_path() {
    drive("files_path");
}

// S-07, S-56
#[test]
fn front_matter() {
    drive("front_matter");
}

// S-02
#[test]
fn git_ref() {
    drive("git_ref");
}

// S-20
#[test]
fn api_url() {
    drive("api_url");
}

#[test]
fn every_target_has_a_program() {
    for target in TARGETS {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets").join(format!("{}.rs", target.name));
        assert!(program.exists(), "{}", program.display());
    }
}
