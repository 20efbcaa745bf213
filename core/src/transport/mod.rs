//! What moves bytes and time between the world and the engine. Nothing here knows the protocol.

#[cfg(feature = "pipe")]
mod clock;
#[cfg(feature = "pipe")]
mod pipe;
#[cfg(all(feature = "pipe", unix))]
mod stdio;
#[cfg(all(feature = "pipe", unix))]
mod wait;

#[cfg(feature = "pipe")]
pub use clock::Clock;
#[cfg(feature = "pipe")]
pub use pipe::{Cancelled, Detached, Flushed, Pipe};
#[cfg(all(feature = "pipe", unix))]
pub use stdio::{Received, Stdio};
#[cfg(all(feature = "pipe", unix))]
pub use wait::{Interest, Ready, Waiter, Wake};
