//! JSON-RPC 2.0 as bytes: reads a message without copying it, writes one into the caller's buffer, cuts a stream into
//! lines. Knows no method, no revision and no error code: those belong to the levels above.

mod decode;
mod encode;
mod id;
mod json;
mod lines;
mod members;
mod scan;

pub use decode::{DecodeLimits, Decoded, Malformed, Message, Params, decode};
pub use encode::{ArrayWriter, Envelope, ErrorHead, ErrorId, ObjectWriter, array, end, object};
pub use id::{Id, OwnedId};
pub use json::{Elements, Json, JsonKind};
pub use lines::{Line, Lines};
pub use members::Members;

#[cfg(test)]
mod tests;
