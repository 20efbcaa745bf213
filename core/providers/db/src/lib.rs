//! Providers of tables: databases as they are, and a cache of results.
//!
//! ```text
//!   SQLite, Postgres ──▶ db       declared tables, their rows and views, read-only
//!   the program puts ──▶ results  texts and bytes, in memory or in a SQLite file, until they expire
//! ```
//!
//! Each is a module and a feature of the same name.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "db")]
pub mod db;
#[cfg(feature = "results")]
pub mod results;

#[cfg(feature = "db")]
pub use db::Db;
#[cfg(feature = "results")]
pub use results::Results;
