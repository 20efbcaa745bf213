//! Values of JavaScript as those of the core, and back: options, descriptions, templates, contents, errors.
//!
//! Law: nothing here knows a server, a request or an event loop.

pub(crate) mod blocks;
pub(crate) mod contents;
pub(crate) mod error;
pub(crate) mod guard;
pub(crate) mod options;
pub(crate) mod resource;
pub(crate) mod rules;
pub(crate) mod spelling;
pub(crate) mod template;
