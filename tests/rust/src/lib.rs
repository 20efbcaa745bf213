//! The shared fixtures run through Rust; see `tests/fixtures/README.md`.
