//! Providers of documents: pages with full-text search, passages that questions find, and Agent Skills.
//!
//! ```text
//!   folders, by the rules of `files` ──▶ docs   pages and their sections ─┐
//!                                    ──▶ rag    passages of documents ────┴──▶ search: an index in SQLite
//!   Google Drive, or another source ───▶
//!   folders of skills ─────────────────▶ skills  with their methods
//! ```
//!
//! Each is a module and a feature of the same name.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "docs")]
pub mod docs;
// Of `docs` and `rag`.
#[cfg(feature = "docs")]
#[doc(hidden)]
pub mod indexes;
#[cfg(feature = "rag")]
pub mod rag;
#[cfg(feature = "docs")]
#[doc(hidden)]
pub mod search;
#[cfg(feature = "skills")]
pub mod skills;

#[cfg(feature = "docs")]
pub use docs::Docs;
#[cfg(feature = "rag")]
pub use rag::Rag;
#[cfg(feature = "skills")]
pub use skills::Skills;
