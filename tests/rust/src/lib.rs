//! The shared fixtures run through Rust; see `tests/fixtures/README.md`.

pub mod guarding;
pub mod matching;
pub mod uritemplate;
pub mod vectors;

#[cfg(test)]
mod audit;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod http;
#[cfg(test)]
mod requirements;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod statuses;
#[cfg(test)]
mod talk;
#[cfg(test)]
mod wire;
