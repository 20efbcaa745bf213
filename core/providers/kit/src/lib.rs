//! The common parts of the providers of [`mcp-resources`](https://docs.rs/mcp-resources).
//!
//! ```text
//!   options by name ──▶ declared ── named ── option_file          a provider of values from a file, a command, a language
//!   request         ──▶ route ── path ── uri_path ── answers      which part a URI names, and the text of a path in it
//!   interest        ──▶ watching ── tracker ── wanted             one thread while somebody watches, and its end
//! ```
//!
//! [`Declare`](declared::Declare) is implemented by a provider that a program can declare by name, and [`options`] holds its
//! options as data. [`document_source`] is the interface of stores of documents, such as Google Drive. [`answers`], [`route`]
//! and [`watching`] are of use to any provider: completion, the numbers of its parts, and a thread while somebody watches.
//! The other modules are for the providers of this repository only: they may change in every release.
//!
//! A feature is a dependency: `digest` is a hash that files may keep, `documents` reads JSON and YAML, `toml` reads TOML too,
//! `http` is a connection whose request can be given up, and `paths` has globs and media types.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod answers;
pub mod declared;
pub mod document_source;
pub mod option_rows;
pub mod options;
pub mod route;
pub mod watching;

// For the providers: what a request names.
#[doc(hidden)]
pub mod named;
#[doc(hidden)]
pub mod named_secrets;
#[doc(hidden)]
pub mod offered;
#[doc(hidden)]
pub mod path;
#[doc(hidden)]
pub mod uri_path;

// For the providers: threads, and changes.
#[doc(hidden)]
pub mod tracker;
#[doc(hidden)]
pub mod wanted;

// For the providers that keep what they have read.
#[cfg(feature = "digest")]
#[doc(hidden)]
pub mod digest;

// For the providers that read files of options, data or front matter.
#[cfg(feature = "toml")]
#[doc(hidden)]
pub mod front_matter;
#[cfg(feature = "documents")]
#[doc(hidden)]
pub mod option_file;
#[cfg(feature = "documents")]
#[doc(hidden)]
pub mod values;

// For the providers that ask a server.
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod http_transport;

// For the providers that look at files.
#[doc(hidden)]
pub mod file_id;
#[cfg(feature = "paths")]
#[doc(hidden)]
pub mod media;
#[cfg(feature = "paths")]
#[doc(hidden)]
pub mod selection;
