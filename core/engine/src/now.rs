//! Time as the engine sees it: handed in by the host, never read from a clock.

/// A span of time, or a point on a clock, in milliseconds.
pub type Millis = u64;

/// The time of one call into the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a clock that never goes back, from an origin of the host's choice: time-outs, coalescing.
    pub tick: Millis,
    /// Milliseconds since 1970-01-01T00:00:00Z: the expiry of sealed states, audit records.
    pub unix: Millis,
}
