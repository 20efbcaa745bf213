//! Full-text search for providers, in Japanese and English: an index in SQLite (FTS5) over words that are folded by
//! this module.
//!
//! ```text
//!   text ──Tokens──▶ folded tokens ──▶ Index (FTS5)          query ──Query──▶ phrases ──▶ Index ──▶ candidates, best first
//!                                                                              └──▶ Hits in a text ──▶ snippet, score
//! ```
//!
//! Law: the index decides what matches; where, and how well, is computed from the texts of permitted candidates alone. So a
//! score does not depend on texts that a client may not see.

mod fold;
mod index;
mod query;
mod score;
mod snippet;
mod words;

pub use index::{Index, IndexRow, Put};
pub use query::SearchQuery;
pub use score::score;
pub use snippet::snippet;
pub use words::{SearchTokens, is_cjk};
