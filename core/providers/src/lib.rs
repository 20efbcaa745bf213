//! Ready-made providers of resources: a folder, a git repository, configuration, metrics, documents, a database.
//!
//! ```text
//!  mcp-resources-cli        mcp-resources-providers            mcp-resources-runtime      mcp-resources-engine
//!  serve files:DIR    ──▶   files, git, config, metrics, … ──▶ the providers' seam ──▶ catalogue, guard, hub
//! ```
//!
//! A provider is a module and a cargo feature of the same name, so that a program compiles only the providers that it
//! serves. The manifest lists the features and their dependencies. Two are small enough to be read as examples of
//! [`Provider`](mcp_resources_runtime::provider::Provider): [`clock`], which answers from memory and reports the
//! passing time, and [`memory`], whose entries come and go. A program that names its providers in a file or on a
//! command line makes them with [`registry`]; their options as data are [`options`].
//!
//! - [`files`] serves directories, [`git`] repositories, [`skills`] folders of Agent Skills.
//! - [`config`] serves files of configuration and, with the same feature, [`env`](mod@env) the environment.
//! - [`docs`] serves pages of Markdown with full-text search, [`rag`] passages of documents that questions find.
//! - [`db`] serves tables of databases, [`api`] answers of HTTP APIs, [`metrics`] series of numbers.
//! - [`results`] keeps what a program has computed, until it expires.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "_declared")]
mod answers;
#[cfg(feature = "api")]
pub mod api;
#[cfg(feature = "clock")]
pub mod clock;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "db")]
pub mod db;
#[cfg(feature = "_declared")]
pub mod declared;
#[cfg(feature = "_digest")]
mod digest;
#[cfg(feature = "docs")]
pub mod docs;
#[cfg(feature = "config")]
pub mod env;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "_front")]
#[doc(hidden)]
pub mod front_matter;
#[cfg(feature = "git")]
pub mod git;
#[cfg(any(feature = "api", feature = "rag"))]
mod http_transport;
#[cfg(feature = "_search")]
mod indexes;
#[cfg(feature = "_masks")]
mod masks;
#[cfg(feature = "_paths")]
mod media;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "_named")]
mod named;
#[cfg(any(feature = "db", feature = "docs", feature = "git"))]
mod offered;
#[cfg(any(feature = "api", feature = "rag"))]
mod option_file;
pub mod options;
#[cfg(feature = "_declared")]
mod path;
#[cfg(feature = "rag")]
pub mod rag;
#[cfg(feature = "_declared")]
pub mod registry;
#[cfg(feature = "results")]
pub mod results;
#[cfg(feature = "_options")]
mod route;
#[cfg(feature = "_search")]
mod search;
#[cfg(feature = "_paths")]
mod selection;
#[cfg(feature = "skills")]
pub mod skills;
#[cfg(feature = "_tracker")]
mod tracker;
#[cfg(feature = "_paths")]
#[doc(hidden)]
pub mod uri_path;
#[cfg(feature = "_values")]
mod values;
#[cfg(any(feature = "_tracker", feature = "api"))]
mod wanted;
#[cfg(any(feature = "_polling", feature = "_tracker", feature = "files"))]
mod watching;

#[cfg(feature = "api")]
pub use api::Api;
#[cfg(feature = "clock")]
pub use clock::Clock;
#[cfg(feature = "config")]
pub use config::Config;
#[cfg(feature = "db")]
pub use db::Db;
#[cfg(feature = "docs")]
pub use docs::Docs;
#[cfg(feature = "config")]
pub use env::Env;
#[cfg(feature = "files")]
pub use files::Files;
#[cfg(feature = "git")]
pub use git::Git;
#[cfg(feature = "memory")]
pub use memory::Memory;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
#[cfg(feature = "rag")]
pub use rag::Rag;
#[cfg(feature = "results")]
pub use results::Results;
#[cfg(feature = "skills")]
pub use skills::Skills;
