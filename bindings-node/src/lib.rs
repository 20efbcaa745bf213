//! The Node binding: a list of modules whose exports `js/` wraps. Every protocol word, code and rule is the core's.

mod error;
mod template;
