//! Resources that are ready to serve: a folder, a git repository, configuration, metrics, documents, a database.
//!
//! ```text
//!  mcp-resources-cli        mcp-resources-providers            mcp-resources-host      mcp-resources-engine
//!  serve files:DIR    ──▶   files, git, config, metrics, … ──▶ the providers' seam ──▶ catalogue, guard, hub
//! ```
//!
//! A provider is a module and a cargo feature of the same name, so that a program compiles what it serves and no more. The
//! features and what they need stand in the manifest. Two are small enough to be read as examples of
//! [`Provider`](mcp_resources_host::provider::Provider): [`clock`], which answers from memory and tells of the time as it
//! passes, and [`memory`], whose entries come and go. [`files`] serves directories, [`git`] repositories;
//! [`config`] files of configuration and, with the same feature, [`env`](mod@env) the environment; [`db`] databases; [`docs`] pages of Markdown, with
//! full-text search; [`metrics`]
//! series of numbers; [`skills`] folders of Agent Skills. A program that names its providers in a
//! file or on a command line makes them with [`declared`]; their options as data are [`options`].

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
pub mod options;
#[cfg(feature = "_declared")]
mod path;
#[cfg(feature = "rag")]
pub mod rag;
#[cfg(feature = "results")]
pub mod results;
#[cfg(feature = "_search")]
mod search;
#[cfg(feature = "_paths")]
mod selection;
#[cfg(feature = "skills")]
pub mod skills;
#[cfg(feature = "_paths")]
#[doc(hidden)]
pub mod spell;
#[cfg(feature = "_values")]
mod values;
#[cfg(any(feature = "_polling", feature = "files"))]
mod watching;
