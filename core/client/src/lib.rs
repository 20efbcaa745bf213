//! A client of one or more servers: lists, reads, completes and watches the resources that an allow-list permits.
//!
//! ```text
//!  Client ── a call ──▶ ServerHandle (a task for each server) ──▶ Machine (engine) ──▶ ClientTransport: pipes, HTTP, a stream
//!         ◀─ a result ─┘                              ◀── messages ───────────┘
//! ```
//!
//! A server is started, or connected to, when it is first needed. Watches survive a lost connection. Programs use this crate
//! as `mcp_resources::client`, with the feature `client` of `mcp-resources`.
//!
//! # Examples
//! ```no_run
//! use mcp_resources_client::{Client, Target};
//!
//! # async fn show() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder().server("notes", Target::command("notes-server", ["--all"])).connect()?;
//! let mut resources = client.list();
//! while let Some(resource) = resources.next().await {
//!     println!("{}", resource?.uri);
//! }
//! let mut changes = client.watch("notes://monday");
//! while let Some(change) = changes.next().await {
//!     println!("{:?}", change?.contents);
//! }
//! # Ok(()) }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
// As for the server, Linux and macOS: elsewhere this crate is empty.
#![cfg(unix)]

mod builder;
mod config;
mod handle;
mod hooks;
mod link;
mod listing;
// Hidden, for the bindings: a client for an event loop, which each of them has.
#[doc(hidden)]
pub mod queue;
mod runtime;
mod target;
#[cfg(test)]
mod tests;
mod transport;
mod watch;
mod watching;

pub use builder::ClientBuilder;
pub use config::{ClientConfig, ConfigError, ServerConfig};
// Hidden, for the command: the file of `serve` has the same references.
#[doc(hidden)]
pub use config::ExpandScope;
// Hidden, for the command: `browse` shows how long contents are kept.
#[doc(hidden)]
pub use handle::ClientRead;
pub use handle::{Client, Hearing, ListChanges, ListScope};
pub use hooks::{Answer, HearFn, Heard, ProgressFn};
pub use listing::Listing;
pub use mcp_resources_engine::client::{
    AllowList, Change, ClientError, ClientLimits, ClientQuestion, Failure, Listed, Progress, ServerAbout,
};
pub use runtime::runtime;
// Hidden, for the command: a gateway leaves no server behind.
pub use target::{ClientCredentials, StreamConnector, Target};
#[doc(hidden)]
pub use transport::guard_children;
pub use watch::Watch;
