//! What moves bytes and time between the world and the engine. Nothing here knows the protocol.

mod audit;
#[cfg(feature = "tracing")]
mod audit_events;
mod clock;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "pipe")]
mod pipe;
mod policy;
#[cfg(feature = "pipe")]
mod registry;
#[cfg(all(feature = "pipe", unix))]
mod stdio;
#[cfg(all(feature = "pipe", unix))]
mod wait;
#[cfg(feature = "pipe")]
mod work;

pub use audit::{AuditFile, AuditLog, AuditSink};
#[cfg(feature = "tracing")]
pub use audit_events::AuditEvents;
pub use clock::Clock;
#[cfg(feature = "pipe")]
pub use pipe::{Flushed, Pipe};
pub use policy::{load_policy, read_policy};
#[cfg(feature = "pipe")]
pub use registry::{Change, Foreign, Number, Registry};
#[cfg(all(feature = "pipe", unix))]
pub use stdio::{Received, Stdio};
#[cfg(all(feature = "pipe", unix))]
pub use wait::{Interest, Ready, Waiter, Wake};
#[cfg(feature = "pipe")]
pub use work::{Asked, Functions, Request, Who, Work};
