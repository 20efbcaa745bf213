//! The shared fixtures run through Rust; see `tests/fixtures/README.md`.
#![expect(clippy::expect_used, clippy::panic, reason = "what runs fixtures stops at its own mistakes")]

pub mod drive;
pub mod guarding;
pub mod indexed;
pub mod matching;
pub mod uritemplate;
pub mod vectors;

#[cfg(test)]
mod access;
#[cfg(test)]
mod api;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod config;
#[cfg(test)]
mod db;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod drives;
#[cfg(test)]
mod files;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod from_config;
#[cfg(test)]
mod git;
#[cfg(test)]
mod hidden;
mod http;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod offered;
#[cfg(test)]
mod outlived;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod rag;
#[cfg(test)]
mod results;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod statuses;
#[cfg(test)]
mod talk;
#[cfg(test)]
mod wakes;
#[cfg(test)]
mod watching;
mod wire;

pub use http::served::serve;
