//! The Node binding: a list of modules whose exports `js/` wraps. Every protocol word, code and rule is in the core.

mod calls;
mod client;
mod command;
mod serve;
mod testing;
mod values;
