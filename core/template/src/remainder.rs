//! Matches the rest of a section: directly if there are no alternatives, else with a program.

use super::class::ByteClass;
use super::pattern::Pattern;
use super::program::{Exhausted, MatchProgram, Meter, ProgramSpan};

/// The pattern of a section, or of its rest.
#[derive(Clone, Debug)]
pub(super) enum Remainder {
    /// Nothing.
    End,
    /// One capture to the end.
    Capture(Capture),
    Program(MatchProgram),
}

/// One capture to the end of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    slot: u16,
    class: ByteClass,
    may_be_empty: bool,
    /// The byte before an optional capture; `None` if the capture is required.
    prefix: Option<u8>,
}

impl Remainder {
    pub(super) fn new(patterns: &[Pattern]) -> Self {
        match patterns {
            [] => Self::End,
            [only] => capture(only).map_or_else(|| Self::Program(MatchProgram::new(patterns)), Self::Capture),
            _ => Self::Program(MatchProgram::new(patterns)),
        }
    }

    /// Matches all of `text` from `low` on, and sets the slots to offsets in `text`.
    pub(super) fn matches(
        &self,
        text: &[u8],
        low: usize,
        slots: &mut [ProgramSpan],
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        match self {
            Self::End => Ok(low == text.len()),
            Self::Capture(capture) => {
                meter.scan(text.len() - low)?;
                Ok(capture.matches(text, low, slots))
            }
            Self::Program(program) => program.run(text, low, slots, meter),
        }
    }
}

/// The pattern as one capture, if it is a single capture, or an optional one with its prefix.
fn capture(pattern: &Pattern) -> Option<Capture> {
    match pattern {
        Pattern::Capture { slot, class, may_be_empty } => {
            Some(Capture { slot: *slot, class: *class, may_be_empty: *may_be_empty, prefix: None })
        }
        Pattern::Optional(inner) => match &**inner {
            Pattern::Sequence(items) => match &items[..] {
                [Pattern::Literal(text), only] => match text[..] {
                    [byte] => capture(only).map(|inner| Capture { prefix: Some(byte), ..inner }),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

impl Capture {
    fn matches(self, text: &[u8], low: usize, slots: &mut [ProgramSpan]) -> bool {
        let start = match (self.prefix, &text[low..]) {
            (Some(_), []) => return true,
            (Some(prefix), [first, ..]) if *first == prefix => low + 1,
            (Some(_), _) => return false,
            (None, _) => low,
        };
        let value = &text[start..];
        let matches = self.class.has_all(value) && (self.may_be_empty || !value.is_empty());
        if matches {
            slots[usize::from(self.slot)] = ProgramSpan::new(start, text.len());
        }
        matches
    }
}
