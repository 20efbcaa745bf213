//! Ready-made providers of resources: a folder, a git repository, configuration, metrics, documents, a database.
//!
//! ```text
//!  mcp-resources-cli      mcp-resources-providers    mcp-resources-provider-…         mcp-resources-runtime, -engine
//!  serve files:DIR   ──▶  registry: files        ──▶  files, git, text, db, api, … ──▶ mounts ──▶ catalogue, guard, hub
//! ```
//!
//! Each provider is a cargo feature and, here, a module of the same name. Their code is in the crates below this folder, which
//! are cut along heavy dependencies, so a program compiles only what its providers need. Two are small enough to be read
//! as examples of [`Provider`](mcp_resources_runtime::provider::Provider): [`clock`], which answers from memory and reports the
//! passing time, and [`memory`], whose entries come and go. A program that names its providers in a file or on a
//! command line makes them with [`registry`]; their options as data are [`options`]. A provider of
//! your own can use the parts of the [`kit`].
//!
//! - [`files`] serves directories, [`git`] repositories, [`skills`] folders of Agent Skills.
//! - [`config`] serves files of configuration and, with the same feature, [`env`](mod@env) the environment.
//! - [`docs`] serves pages of Markdown with full-text search, [`rag`] passages of documents that questions find.
//! - [`db`] serves tables of databases, [`api`] answers of HTTP APIs, [`metrics`] series of numbers.
//! - [`results`] keeps what a program has computed, until it expires.
//! - [`upstream`] serves what other MCP servers have.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod registry;

pub use mcp_resources_provider_kit::{self as kit, declared, options};

#[cfg(feature = "api")]
pub use mcp_resources_provider_api::{self as api, Api};
#[cfg(feature = "db")]
pub use mcp_resources_provider_db::{Db, db};
#[cfg(feature = "results")]
pub use mcp_resources_provider_db::{Results, results};
#[cfg(feature = "files")]
pub use mcp_resources_provider_files::{self as files, Files};
#[cfg(feature = "git")]
pub use mcp_resources_provider_git::{self as git, Git};
#[cfg(feature = "clock")]
pub use mcp_resources_provider_local::{Clock, clock};
#[cfg(feature = "config")]
pub use mcp_resources_provider_local::{Config, config};
#[cfg(feature = "config")]
pub use mcp_resources_provider_local::{Env, env};
#[cfg(feature = "memory")]
pub use mcp_resources_provider_local::{Memory, memory};
#[cfg(feature = "metrics")]
pub use mcp_resources_provider_local::{Metrics, metrics};
#[cfg(feature = "docs")]
pub use mcp_resources_provider_text::{Docs, docs};
#[cfg(feature = "rag")]
pub use mcp_resources_provider_text::{Rag, rag};
#[cfg(feature = "skills")]
pub use mcp_resources_provider_text::{Skills, skills};
#[cfg(all(feature = "upstream", unix))]
pub use mcp_resources_provider_upstream::{self as upstream, Upstream};
