//! Limits on the values and bytes of a document, counted while it is read.

use super::ValueLimits;
use std::cell::Cell;

pub(super) const DEEP: &str = "it is nested too deeply";
pub const TOO_MANY: &str = "it has too many values";
const LONG: &str = "its texts are too long";

/// The values and bytes that the limits still allow.
pub(super) struct Counters {
    values: Cell<usize>,
    bytes: Cell<usize>,
}

impl Counters {
    pub(super) fn new(limits: ValueLimits) -> Self {
        Self { values: Cell::new(limits.values), bytes: Cell::new(limits.bytes) }
    }

    pub(super) fn count_value(&self) -> Result<(), &'static str> {
        self.values.set(self.values.get().checked_sub(1).ok_or(TOO_MANY)?);
        Ok(())
    }

    pub(super) fn count_text(&self, text: &str) -> Result<(), &'static str> {
        self.bytes.set(self.bytes.get().checked_sub(text.len()).ok_or(LONG)?);
        Ok(())
    }
}
