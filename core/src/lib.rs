//! Serve the *Resources* feature of the Model Context Protocol.

pub mod base64;
pub mod catalog;
#[cfg(feature = "client")]
pub mod client;
pub mod connection;
pub mod engine;
pub mod error;
pub mod guard;
pub mod headers;
pub mod http;
pub mod hub;
pub mod json_text;
pub mod jsonrpc;
pub mod limits;
pub mod meta;
pub mod now;
pub mod principal;
pub mod rank;
pub mod resource;
pub mod seal;
#[cfg(all(feature = "server", unix))]
pub mod server;
pub mod suggest;
pub mod template;
#[cfg(all(feature = "server", unix))]
pub mod testing;
pub mod trace;
#[cfg(any(feature = "http", feature = "pipe"))]
pub mod transport;
pub mod uri;
pub mod version;

#[cfg(all(feature = "server", not(unix)))]
compile_error!(
    "the feature \"server\" needs Linux or macOS; without default features the engine compiles everywhere"
);

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
