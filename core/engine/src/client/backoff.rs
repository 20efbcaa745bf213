//! Pauses between attempts to connect: they grow after each failure and are randomized, so that clients do not
//! reconnect in step.

use crate::now::Millis;

/// The shortest pause, in ms.
const FIRST: Millis = 50;
/// The longest pause, in ms, while the server still answers handshakes: a server that restarts is back within a second.
const RESTARTS: Millis = 800;
/// A connection that lasts this long, in ms, resets the pauses.
pub(super) const SOUND: Millis = 1_000;

/// The number of failures, and the state of the random generator. For our clients, and for the bus of the runtime.
#[derive(Debug)]
pub struct Backoff {
    attempts: u32,
    longest: Millis,
    state: u64,
}

impl Backoff {
    /// No failure yet. `longest`: the longest pause, in ms; `seed` makes the pauses of two processes differ.
    pub fn new(longest: Millis, seed: u64) -> Self {
        Self { attempts: 0, longest, state: seed }
    }

    /// Resets the pauses after a stable connection.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Returns the pause before the next attempt, in ms. `answered`: the last attempt got as far as a handshake.
    pub fn next(&mut self, answered: bool) -> Millis {
        let longest = if answered { RESTARTS.min(self.longest) } else { self.longest };
        let pause = FIRST.saturating_mul(1 << self.attempts.min(20)).min(longest);
        self.attempts = self.attempts.saturating_add(1);
        // Between half of the pause and all of it.
        pause / 2 + self.random() % (pause / 2 + 1)
    }

    /// Returns the next number of splitmix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-13: pauses grow up to their limit, differ between clients, and start again after a stable connection.
    #[test]
    fn pauses_grow_and_differ() {
        let pauses = |seed, answered| {
            let mut backoff = Backoff::new(30_000, seed);
            (0..12).map(|_| backoff.next(answered)).collect::<Vec<_>>()
        };
        assert!(pauses(1, false).iter().all(|pause| (25..=30_000).contains(pause)));
        assert!(pauses(1, false)[11] >= 15_000 && pauses(1, true)[11] <= 800);
        assert_ne!(pauses(1, false), pauses(2, false));
        let mut backoff = Backoff::new(30_000, 1);
        for _ in 0..12 {
            backoff.next(false);
        }
        backoff.reset();
        assert!(backoff.next(false) <= 50);
    }
}
