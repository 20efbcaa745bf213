//! JSON-RPC 2.0 at the level of bytes: decodes a message without copying it, encodes one into the caller's buffer,
//! splits a stream into lines. Contains no method, revision or error code: those belong to the levels above.

mod decode;
mod encode;
mod id;
mod json;
mod lines;
mod members;
mod oversized;
mod scan;

pub use decode::{DecodeLimits, Decoded, Malformed, Message, RawParams, decode};
pub use encode::{ArrayWriter, Envelope, ErrorHead, ErrorId, ObjectWriter, array, end, object};
pub use id::{Id, OwnedId};
pub use json::{Elements, Json, JsonKind};
pub use lines::{Line, Lines};
pub use members::JsonMembers;
pub use oversized::OversizedLine;

#[cfg(test)]
mod tests;
