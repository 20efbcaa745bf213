//! Serve the *Resources* feature of the Model Context Protocol (MCP): five protocol revisions, 2024-11-05 to 2026-07-28, over
//! stdio and Streamable HTTP.
//!
//! ```text
//!  client ──▶ stdio, or HTTP (feature `http`) ──▶ engine ──▶ your function
//!                    transport, http              │  finds the resource or template of a URI, checks the Guard,
//!                                                 │  encodes the answer for the revision of the client
//!                                                 └─▶ hub: who is told when a resource changes
//! ```
//!
//! A [`ResourceServer`] has [`Resource`]s at fixed URIs and [`Template`]s of URIs; a handler is an async function from a
//! [`ReadRequest`] to a text, bytes or [`Contents`], or a [`ReadError`].
//!
#![cfg_attr(all(feature = "server", unix), doc = "```")]
#![cfg_attr(not(all(feature = "server", unix)), doc = "```ignore")]
//! use mcp_resources::testing::Client;
//! use mcp_resources::{ReadError, ReadRequest, Resource, ResourceServer, Template};
//!
//! async fn note(request: ReadRequest) -> Result<&'static str, ReadError> {
//!     match request.param("day") {
//!         Some("monday") => Ok("Buy milk"),
//!         _ => Err(ReadError::NotFound),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ResourceServer::builder("notes", "1.0.0")
//!     .resource(Resource::new("notes://help"), |_| async { "One note a day" })
//!     .template(Template::new("notes://day/{day}"), note)
//!     .build()?;
//! // `server.run_stdio().await?` serves it. A test asks it in the same process:
//! let mut client = Client::modern(&server)?;
//! assert_eq!(client.read_text("notes://day/monday").await?, "Buy milk");
//! # Ok(()) }
//! ```
//!
//! The names that most servers need stand here; each module documents the rest. Without default features the crate is the
//! engine alone: no I/O, no clock, no runtime.

pub mod base64;
pub mod catalog;
#[cfg(any(feature = "client", all(feature = "server", unix)))]
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

pub use connection::{Completion, Contents, InputRequest, InputRequired, ReadResult};
pub use error::ReadError;
pub use guard::Policy;
pub use http::{Auth, Verified};
pub use limits::Limits;
pub use principal::Principal;
pub use resource::{CacheHint, CacheScope, Parameter, RegistrationError, Resource, Template};
#[cfg(all(feature = "server", feature = "http", unix))]
pub use server::HttpBuilder;
#[cfg(all(feature = "server", unix))]
pub use server::{
    Builder, Changes, CompletionRequest, Context, ListRequest, ReadRequest, ResourceServer, blocking,
};
pub use template::UriTemplate;
#[cfg(any(feature = "http", feature = "pipe"))]
pub use transport::load_policy;
pub use version::Revision;

#[cfg(all(feature = "server", not(unix)))]
compile_error!(
    "the feature \"server\" needs Linux or macOS; without default features the engine compiles everywhere"
);

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
