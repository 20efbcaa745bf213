//! The runtime of the engine of `mcp-resources`: pipes, sockets, TLS, tokens, the clock, and async functions as handlers.
//!
//! ```text
//!  world              transport                 mcp-resources-engine           server
//!  stdin, stdout ──▶  Stdio, Waiter   bytes ──▶  Connection ── Event ──▶  your async function
//!  a socket      ──▶  http, tls, jwt  ◀── bytes                ◀── Answer   (tokio)
//! ```
//!
//! Programs in Rust use `server` (feature `server`). The bindings of Python and Node have an event loop of their own and
//! use `transport` (features `http` and `pipe`). Most servers need only the crate `mcp-resources`, which has the names of
//! this crate and the engine in one flat list.
//!
//! # Examples
#![cfg_attr(all(feature = "server", unix), doc = "```")]
#![cfg_attr(not(all(feature = "server", unix)), doc = "```ignore")]
//! use mcp_resources_engine::resource::Template;
//! use mcp_resources_runtime::server::{ReadRequest, ResourceServer};
//! use mcp_resources_runtime::testing::Client;
//!
//! async fn note(request: ReadRequest) -> String {
//!     format!("Milk on {}", request.param("day").unwrap_or("a day"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ResourceServer::builder("notes", "1.0.0").template(Template::new("notes://{day}"), note).build()?;
//! // `server.run_stdio().await?` serves it over stdin and stdout.
//! let mut client = Client::modern(&server)?;
//! assert_eq!(client.read_text("notes://monday").await?, "Milk on monday");
//! # Ok(()) }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "bus")]
pub mod bus;
#[cfg(any(feature = "http", feature = "pipe"))]
pub mod provider;
#[cfg(any(feature = "http", feature = "pipe"))]
pub mod registry;
#[cfg(all(feature = "server", unix))]
pub mod server;
#[doc(hidden)]
pub mod sync;
#[cfg(all(feature = "server", unix))]
pub mod testing;
#[cfg(any(feature = "http", feature = "pipe"))]
pub mod transport;

#[cfg(all(feature = "server", not(unix)))]
compile_error!("the feature \"server\" needs Linux or macOS; mcp-resources-engine compiles everywhere");
