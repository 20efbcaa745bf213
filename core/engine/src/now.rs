//! Time in the engine: passed in by the runtime, never read from a clock.

/// A span of time, or a point on a clock, in milliseconds.
pub type Millis = u64;

/// The time of one call into the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a monotonic clock with any origin: for time-outs and coalescing.
    pub tick: Millis,
    /// Milliseconds since 1970-01-01T00:00:00Z: for the expiry of sealed states, and for audit records.
    pub unix: Millis,
}
