//! Serve the *Resources* feature of the Model Context Protocol.

pub mod base64;
pub mod json_text;
pub mod jsonrpc;
pub mod limits;
pub mod now;
pub mod seal;
pub mod template;
pub mod uri;
