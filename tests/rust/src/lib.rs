//! The shared fixtures run through Rust; see `tests/fixtures/README.md`.

pub mod matching;
pub mod uritemplate;
