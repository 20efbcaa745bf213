//! Checks the text between the captures of a section.
//!
//! Adjacent captures are ambiguous, and many captures that can trade characters make matching expensive. Both are
//! refused when the template is parsed.

use super::class::{ByteClass, Classes};
use super::parse::SyntaxFault;
use super::pattern::Pattern;
use super::slot::Slots;

/// Checks the patterns of one section.
pub(super) fn check(patterns: &[Pattern], slots: &Slots<'_>, limit: usize) -> Result<(), SyntaxFault> {
    let checker = GapChecker { slots, limit };
    let mut state = GapState::default();
    for pattern in patterns {
        checker.walk(pattern, &mut state, None)?;
    }
    Ok(())
}

struct GapChecker<'a> {
    slots: &'a Slots<'a>,
    limit: usize,
}

/// The context to the left of a pattern.
#[derive(Clone, Default)]
struct GapState {
    /// The characters that the nearest captures to the left may contain; empty without captures.
    left: Classes,
    /// The literal text since then, of every alternative.
    gap: Vec<u8>,
    /// The number of captures that can trade characters with the nearest one, including itself.
    run: usize,
}

impl GapState {
    /// The context after either of two alternatives.
    fn or(self, other: Self) -> Self {
        let gap = if self.gap.len() <= other.gap.len() { self.gap } else { other.gap };
        Self { left: self.left.union(other.left), gap, run: self.run.max(other.run) }
    }
}

impl GapChecker<'_> {
    fn walk(&self, pattern: &Pattern, state: &mut GapState, span: Option<u16>) -> Result<(), SyntaxFault> {
        match pattern {
            Pattern::Literal(text) => state.gap.extend(text),
            Pattern::Empty(_) => {}
            Pattern::Capture { slot, class, .. } => self.capture(*slot, *class, state)?,
            Pattern::Run(class) => self.capture(span.unwrap_or_default(), *class, state)?,
            Pattern::Sequence(items) => items.iter().try_for_each(|item| self.walk(item, state, span))?,
            Pattern::Optional(inner) => {
                let mut present = state.clone();
                self.walk(inner, &mut present, span)?;
                *state = present.or(std::mem::take(state));
            }
            Pattern::Choice(items) => {
                let mut other = state.clone();
                self.walk(&items[0], state, span)?;
                self.walk(&items[1], &mut other, span)?;
                *state = std::mem::take(state).or(other);
            }
            Pattern::Repeat(inner) => self.walk(inner, state, span)?,
            Pattern::Span(slot, inner) => self.walk(inner, state, Some(*slot))?,
        }
        Ok(())
    }

    fn capture(&self, slot: u16, class: ByteClass, state: &mut GapState) -> Result<(), SyntaxFault> {
        let offset = self.slots.slots[usize::from(slot)].offset;
        if !state.left.is_empty() && state.gap.is_empty() {
            return Err(SyntaxFault::new(
                offset,
                "nothing fixed separates this variable from the one before it",
            ));
        }
        let is_hard = |&byte: &u8| !state.left.has(byte) || !class.has(byte);
        state.run = if state.gap.iter().any(is_hard) { 1 } else { state.run + 1 };
        if state.run > self.limit {
            let limit = self.limit;
            return Err(SyntaxFault::new(offset, format!("more than {limit} variables share one segment")));
        }
        state.left = Classes::default().with(class);
        state.gap.clear();
        Ok(())
    }
}
