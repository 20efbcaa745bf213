//! A client of one or more servers: lists, reads, completes and watches the resources that an allow-list permits.
//!
//! ```text
//!  Client ── a call ──▶ ServerHandle (a task for each server) ──▶ Machine (engine) ──▶ ClientTransport: a child's pipes, HTTP, memory
//!         ◀─ a result ─┘                              ◀── messages ───────────┘
//! ```
//!
//! A server is started, or connected to, when it is first needed. Watches survive a lost connection.
//!
//! # Examples
//! ```no_run
//! use mcp_resources_runtime::client::{Client, Target};
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

mod builder;
mod config;
mod handle;
mod link;
mod listing;
/// A client for an event loop: used by the bindings, which have one each.
#[doc(hidden)]
pub mod queue;
mod runtime;
mod target;
#[cfg(test)]
mod tests;
mod transport;
mod watching;

pub use builder::{Answer, ClientBuilder, ProgressFn};
pub use config::{ClientConfig, ConfigError, ServerConfig};
pub use handle::{Client, ListChanges, ListScope};
pub use listing::Listing;
pub use mcp_resources_engine::client::{
    AllowList, Change, ClientError, ClientLimits, ClientQuestion, Failure, Listed, Progress, ServerAbout,
};
pub use runtime::runtime;
pub use target::Target;
pub use watching::Watch;
