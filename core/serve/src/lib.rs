//! Servers from the configuration file of `mcp-resources serve`: one reader for the command, Rust, Python and Node.
//!
//! ```text
//!  file ──▶ ServeDocument ──▶ OpenedConfig ──▶ a server of any language ──▶ RunningConfig ──▶ ServeWatch
//!           keys, values      sources, tokens,    from its setup             mounts            changes of the files
//!                             certificate, policy
//! ```
//!
//! Law: every file gives either a server, or one sentence with the file, the key and the remedy, which has no secret. A file
//! that becomes wrong while its server runs changes nothing.
//!
//! Programs in Rust use [`FromConfig`].
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audience;
mod auth;
mod bus;
mod document;
mod log;
mod opened;
mod opened_guard;
mod pushed;
mod running;
mod secrets;
mod server;
mod tokens;
mod watch;

pub use log::ConfigFileError;
pub use server::{FromConfig, FromConfigOptions};

// For the command, the bindings and the fuzz target.
#[doc(hidden)]
pub use bus::KEYS_VARIABLE;
#[doc(hidden)]
pub use document::ServeDocument;
#[doc(hidden)]
pub use log::{ConfigLog, ConfigMessage};
#[doc(hidden)]
pub use opened::{FILE_OPTIONS, OpenedConfig};
#[doc(hidden)]
pub use opened_guard::OpenedGuard;
#[doc(hidden)]
pub use running::RunningConfig;
#[doc(hidden)]
pub use secrets::{masked, without_values};
#[doc(hidden)]
pub use server::{ForeignConfig, ServedConfig, begin};
#[doc(hidden)]
pub use tokens::{TokenEntry, read_tokens};
#[doc(hidden)]
pub use watch::{ServeWatch, WatchedDocument};
