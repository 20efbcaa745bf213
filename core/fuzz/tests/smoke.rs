//! Drives every target with its corpus and with mutations of it. See the crate's first lines.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test outside the engine: it reads its corpus, and fails by panicking"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use mcp_resources_fuzz::{Mutator, TARGETS, Target};

/// How many mutated inputs each target is given by default.
const ITERATIONS: u64 = 5_000;

fn drive(name: &str) {
    let target = *TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus = corpus(name);
    assert!(corpus.len() > 2, "the corpus of {name} is empty");
    corpus.iter().for_each(|input| run(target, input));
    let asked = std::env::var("MCP_RESOURCES_FUZZ_ITERATIONS");
    let iterations = asked.map_or(ITERATIONS, |asked| asked.parse().expect("a number"));
    let mut mutator = Mutator::new(name.len() as u64);
    (0..iterations).for_each(|_| run(target, &mutator.next_input(&corpus)));
}

/// The files of a corpus by name, so that each run is the same.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<_> = folder.read_dir().expect("a corpus").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn run(target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("target {} fails for b\"{}\"", target.name, input.escape_ascii());
    }
}

///
#[test]
fn decode() {
    drive("decode");
}

///
#[test]
fn lines() {
    drive("lines");
}

///
#[test]
fn text() {
    drive("text");
}

///
#[test]
fn seal() {
    drive("seal");
}

///
#[test]
fn uri() {
    drive("uri");
}

/// S-11
#[test]
fn guard() {
    drive("guard");
}

///
#[test]
fn template() {
    drive("template");
}

#[test]
fn every_target_has_a_program() {
    for target in TARGETS {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets").join(format!("{}.rs", target.name));
        assert!(program.exists(), "{}", program.display());
    }
}
