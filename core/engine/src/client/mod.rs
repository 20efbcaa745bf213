//! The client half of the protocol, for both eras, without I/O: building requests, decoding answers, watching resources,
//! and the allow-list.
//!
//! ```text
//!  calls, watches ──▶ Machine ──▶ Effect::Send(message) ──▶ the transport ──▶ a server
//!                       │  ids, time-outs, era, cache, allow-list
//!  results, changes ◀── Effect ◀── received(message) ◀───── the transport ◀──
//! ```
//!
//! Law: input from a server is untrusted. [`ClientLimits`] limits it, and an invalid entry is left out without affecting
//! the others.

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

pub use access::{Access, AllowList};
#[doc(hidden)]
pub use backoff::Backoff;
pub use error::{ClientError, Failure};
pub use limits::ClientLimits;
pub use machine::{ClientImplementation, Machine, MachineOptions};
pub use testing::{MessageKind, ServerMessage, TestClient};
pub use types::{
    CallOptions, Change, ClientCall, ClientOutcome, ClientQuestion, Effect, Listed, Lost, NotCarried,
    Outgoing, Page, Progress, ServerAbout,
};
