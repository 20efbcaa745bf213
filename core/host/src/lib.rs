//! What surrounds the engine of `mcp-resources`: pipes, sockets, TLS, tokens, the clock, and async functions as handlers.
//!
//! ```text
//!  world              transport                 mcp-resources-engine           server
//!  stdin, stdout ──▶  Stdio, Waiter   bytes ──▶  Connection ── Event ──▶  your async function
//!  a socket      ──▶  http, tls, jwt  ◀── bytes                ◀── Answer   (tokio)
//! ```
//!
//! [`server`] is for programs in Rust. The bindings of other languages have an event loop of their own and use
//! [`transport`] alone. The crate `mcp-resources` offers what servers need under one name; its example is that of
//! [`server`].

#[cfg(all(feature = "server", unix))]
pub mod server;
#[cfg(all(feature = "server", unix))]
pub mod testing;
#[cfg(any(feature = "http", feature = "pipe"))]
pub mod transport;

#[cfg(all(feature = "server", not(unix)))]
compile_error!("the feature \"server\" needs Linux or macOS; mcp-resources-engine compiles everywhere");
