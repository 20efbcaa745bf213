//! Serve the *Resources* feature of the Model Context Protocol.

pub mod base64;
pub mod catalog;
pub mod connection;
pub mod engine;
pub mod error;
pub mod hub;
pub mod json_text;
pub mod jsonrpc;
pub mod limits;
pub mod meta;
pub mod now;
pub mod principal;
pub mod rank;
pub mod resource;
pub mod seal;
pub mod template;
#[cfg(feature = "pipe")]
pub mod transport;
pub mod uri;
pub mod version;
