//! The numbers of the last messages of other processes, by which repeated and missing messages are noticed.

use super::message::Origin;
use std::collections::HashMap;

/// Maximum number of processes that are remembered. The one that was silent for longest is forgotten.
const ORIGINS: usize = 1_024;

/// The last message of each process.
#[derive(Debug, Default)]
pub(super) struct MessageOrigins {
    last: HashMap<Origin, LastMessage>,
    /// Counts messages, as the time of the last one of a process.
    clock: u64,
}

#[derive(Debug)]
struct LastMessage {
    sequence: u64,
    at: u64,
}

/// The meaning of the number of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageArrival {
    /// The next one.
    Next,
    /// Messages before it are missing.
    AfterGap,
    /// It was received before, or a later one was.
    Repeated,
}

impl MessageOrigins {
    pub(super) fn arrived(&mut self, origin: &str, sequence: u64) -> MessageArrival {
        self.clock += 1;
        if let Some(last) = self.last.get_mut(origin) {
            let before = last.sequence;
            if sequence <= before {
                return MessageArrival::Repeated;
            }
            *last = LastMessage { sequence, at: self.clock };
            return if sequence == before + 1 { MessageArrival::Next } else { MessageArrival::AfterGap };
        }
        if self.last.len() >= ORIGINS {
            let oldest = self.last.iter().min_by_key(|(_, last)| last.at).map(|(origin, _)| origin.clone());
            if let Some(oldest) = oldest {
                self.last.remove(&oldest);
            }
        }
        self.last.insert(origin.into(), LastMessage { sequence, at: self.clock });
        // Of a process that sent before this one followed, the number is any.
        MessageArrival::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_repeated_and_missing_messages() {
        let mut origins = MessageOrigins::default();
        let mut arrived = |origin: &str, sequence| origins.arrived(origin, sequence);
        assert_eq!(arrived("a", 5), MessageArrival::Next);
        assert_eq!(arrived("a", 6), MessageArrival::Next);
        assert_eq!(arrived("b", 1), MessageArrival::Next);
        assert_eq!(arrived("a", 6), MessageArrival::Repeated);
        assert_eq!(arrived("a", 2), MessageArrival::Repeated);
        assert_eq!(arrived("a", 9), MessageArrival::AfterGap);
        assert_eq!(arrived("a", u64::MAX), MessageArrival::AfterGap);
        assert_eq!(arrived("a", 0), MessageArrival::Repeated);
        for number in 0..5_000 {
            arrived(&number.to_string(), 1);
        }
        assert_eq!(origins.last.len(), ORIGINS);
        assert_eq!(origins.arrived("4999", 1), MessageArrival::Repeated);
    }
}
