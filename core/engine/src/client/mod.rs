//! The client half of the protocol, in either era, without I/O: what a client sends, what it makes of the answers, which
//! resources it watches, and what it may see.
//!
//! ```text
//!  calls, watches ──▶ Machine ──▶ Effect::Send(message) ──▶ the transport ──▶ a server
//!                       │  ids, time-outs, era, cache, allow-list
//!  results, changes ◀── Effect ◀── received(message) ◀───── the transport ◀──
//! ```
//!
//! Law: everything that a server sends is hostile. It is bounded by [`ClientLimits`], and an entry that makes no sense is
//! left out without stopping the rest.

mod access;
mod backoff;
mod cache;
mod decode;
mod error;
mod limits;
mod machine;
mod speak;
mod testing;
mod types;

pub use access::{Access, Allowed};
pub use error::{ClientError, Failure};
pub use limits::ClientLimits;
pub use machine::{Machine, MachineOptions};
pub use testing::{Heard, MessageKind, TestClient};
pub use types::{
    Call, CallOptions, Change, Effect, Listed, Lost, NotCarried, Outcome, Outgoing, Page, Progress, Question,
    ServerAbout,
};
