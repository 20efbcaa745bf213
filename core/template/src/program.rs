//! Programs that match text from right to left, with choices in order of preference.
//!
//! Matching from the right makes the rightmost separators win and gives the surplus to the left variable, as the choice
//! rule requires. The set of (choice, position) pairs that were tried limits any run to `instructions x (length + 1)`
//! steps, whatever the text.

use super::class::ByteClass;
use super::pattern::Pattern;
use smallvec::SmallVec;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct MatchProgram {
    code: Box<[Instruction]>,
    choices: usize,
}

/// A range of bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramSpan {
    pub start: u32,
    pub end: u32,
}

impl ProgramSpan {
    /// The span of an undefined variable.
    pub(super) const UNSET: Self = Self { start: u32::MAX, end: 0 };

    pub(super) fn new(start: usize, end: usize) -> Self {
        let offset = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: offset(start), end: offset(end) }
    }

    pub(super) fn is_set(self) -> bool {
        self.start != u32::MAX
    }
}

/// The remaining steps of a lookup's budget.
#[derive(Debug)]
pub(super) struct Meter(u64);

impl Meter {
    pub(super) fn new(budget: u64) -> Self {
        Self(budget)
    }

    pub(super) fn left(&self) -> u64 {
        self.0
    }

    /// Takes `steps` from the budget. Fails if it is used up.
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        match self.0.checked_sub(steps as u64) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(Exhausted)
            }
        }
    }

    /// Takes the steps for examining `bytes` once, which is much cheaper than an instruction.
    #[inline]
    pub(super) fn scan(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.spend(1 + bytes / 8)
    }
}

/// The budget of a lookup is used up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

#[derive(Clone, Debug)]
enum Instruction {
    /// Matches this text to the left.
    Literal(Box<[u8]>),
    /// Matches one character of the class. A percent-triplet is one character.
    Step(ByteClass),
    /// Matches as few characters of the class as possible; the next instruction is tried wherever `guard` permits.
    /// `number` identifies the choice.
    Run {
        number: u32,
        class: ByteClass,
        guard: SpanGuard,
    },
    /// The slot's capture ends here.
    End(u16),
    /// The slot's capture starts here.
    Start(u16),
    Jump(u32),
    /// Tries `first` if `guard` permits, then `second`.
    Split {
        number: u32,
        first: u32,
        second: u32,
        guard: SpanGuard,
    },
    /// Succeeds at the beginning of the text.
    Match,
}

/// The text that must be to the left for an alternative to succeed.
#[derive(Clone, Copy, Debug)]
enum SpanGuard {
    Anything,
    Byte(u8),
    Nothing,
}

impl MatchProgram {
    /// Compiles a sequence of patterns.
    pub(super) fn new(patterns: &[Pattern]) -> Self {
        let mut compiler = Compiler { code: Vec::new(), choices: 0 };
        patterns.iter().rev().for_each(|pattern| compiler.pattern(pattern));
        compiler.code.push(Instruction::Match);
        compiler.set_guards();
        Self { code: compiler.code.into(), choices: compiler.choices }
    }

    /// Matches all of `text` from `low` on, and sets the slots to offsets in `text`.
    pub(super) fn run(
        &self,
        text: &[u8],
        low: usize,
        slots: &mut [ProgramSpan],
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        let positions = text.len() - low + 1;
        let tried = (self.choices * positions).div_ceil(64);
        meter.scan(tried)?;
        let tried = SmallVec::from_elem(0, tried);
        let mut run = Run { code: &self.code, text, low, positions, slots, tried, stack: SmallVec::new() };
        run.stack.push(MatchFrame::Try { at: 0, position: text.len() });
        while let Some(frame) = run.stack.pop() {
            match frame {
                MatchFrame::Restore { slot, span } => run.slots[usize::from(slot)] = span,
                MatchFrame::Try { at, position } => {
                    if run.follow(at, position, meter)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

/// One run of a program.
struct Run<'r> {
    code: &'r [Instruction],
    text: &'r [u8],
    low: usize,
    positions: usize,
    slots: &'r mut [ProgramSpan],
    /// One bit for each (choice, position).
    tried: SmallVec<[u64; 32]>,
    stack: SmallVec<[MatchFrame; 32]>,
}

enum MatchFrame {
    /// An untried alternative.
    Try { at: u32, position: usize },
    /// The previous value of a slot.
    Restore { slot: u16, span: ProgramSpan },
}

impl Run<'_> {
    /// Follows one alternative to success or failure; pushes the others on the stack.
    fn follow(&mut self, mut at: u32, mut position: usize, meter: &mut Meter) -> Result<bool, Exhausted> {
        loop {
            meter.spend(1)?;
            let before = &self.text[self.low..position];
            match &self.code[at as usize] {
                Instruction::Literal(text) if before.ends_with(text) => position -= text.len(),
                Instruction::Step(class) => match step(before, *class) {
                    0 => return Ok(false),
                    length => position -= length,
                },
                Instruction::End(slot) => {
                    self.set(*slot, |_| ProgramSpan { start: u32::MAX, ..ProgramSpan::new(0, position) })
                }
                Instruction::Start(slot) => {
                    self.set(*slot, |span| ProgramSpan { end: span.end, ..ProgramSpan::new(position, 0) })
                }
                Instruction::Jump(target) => {
                    at = *target;
                    continue;
                }
                Instruction::Run { number, class, guard } => {
                    if !self.is_new(*number, before.len()) {
                        return Ok(false);
                    }
                    let length = step(before, *class);
                    let is_last = length == 0;
                    if !guard.admits(before) {
                        if is_last {
                            return Ok(false);
                        }
                        position -= length;
                        continue;
                    }
                    if !is_last {
                        self.stack.push(MatchFrame::Try { at, position: position - length });
                    }
                }
                Instruction::Split { number, first, second, guard } => {
                    if !self.is_new(*number, before.len()) {
                        return Ok(false);
                    }
                    at = if guard.admits(before) {
                        self.stack.push(MatchFrame::Try { at: *second, position });
                        *first
                    } else {
                        *second
                    };
                    continue;
                }
                Instruction::Match => return Ok(before.is_empty()),
                Instruction::Literal(_) => return Ok(false),
            }
            at += 1;
        }
    }

    /// Marks a choice at a position as tried; `false` if it was tried before.
    #[inline]
    fn is_new(&mut self, number: u32, position: usize) -> bool {
        let bit = number as usize * self.positions + position;
        let word = &mut self.tried[bit / 64];
        let mask = 1_u64 << (bit % 64);
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    fn set(&mut self, slot: u16, change: impl FnOnce(ProgramSpan) -> ProgramSpan) {
        let span = &mut self.slots[usize::from(slot)];
        self.stack.push(MatchFrame::Restore { slot, span: *span });
        *span = change(*span);
    }
}

/// The length of the character at the end of `before`, or 0 if it is not in `class`.
#[inline]
fn step(before: &[u8], class: ByteClass) -> usize {
    match before {
        [.., b'%', _, _] if class.has(b'%') => 3,
        // The last byte is part of a triplet that a literal has split.
        [.., b'%', _, _] | [.., b'%', _] | [.., b'%'] => 0,
        [.., byte] if class.has(*byte) => 1,
        _ => 0,
    }
}

impl SpanGuard {
    #[inline]
    fn admits(self, before: &[u8]) -> bool {
        match self {
            Self::Anything => true,
            Self::Byte(byte) => before.last() == Some(&byte),
            Self::Nothing => before.is_empty(),
        }
    }
}

struct Compiler {
    code: Vec<Instruction>,
    choices: usize,
}

impl Compiler {
    fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Literal(text) if text.is_empty() => {}
            Pattern::Literal(text) => self.code.push(Instruction::Literal(text.clone().into())),
            Pattern::Capture { slot, class, may_be_empty } => self.within(*slot, |compiler| {
                if !may_be_empty {
                    compiler.code.push(Instruction::Step(*class));
                }
                compiler.run(*class);
            }),
            Pattern::Empty(slot) => self.within(*slot, |_| {}),
            Pattern::Run(class) => self.run(*class),
            Pattern::Sequence(items) => items.iter().rev().for_each(|item| self.pattern(item)),
            Pattern::Optional(inner) => {
                let split = self.split();
                self.pattern(inner);
                self.aim(split, split + 1, self.code.len());
            }
            Pattern::Choice(items) => {
                let split = self.split();
                self.pattern(&items[0]);
                let jump = self.code.len();
                self.code.push(Instruction::Jump(0));
                self.pattern(&items[1]);
                self.aim(split, split + 1, jump + 1);
                self.code[jump] = Instruction::Jump(target(self.code.len()));
            }
            Pattern::Repeat(inner) => {
                let start = self.code.len();
                self.pattern(inner);
                let split = self.split();
                self.aim(split, start, split + 1);
            }
            Pattern::Span(slot, inner) => self.within(*slot, |compiler| compiler.pattern(inner)),
        }
    }

    fn within(&mut self, slot: u16, inner: impl FnOnce(&mut Self)) {
        self.code.push(Instruction::End(slot));
        inner(self);
        self.code.push(Instruction::Start(slot));
    }

    fn run(&mut self, class: ByteClass) {
        let number = self.choice();
        self.code.push(Instruction::Run { number, class, guard: SpanGuard::Anything });
    }

    fn split(&mut self) -> usize {
        let number = self.choice();
        self.code.push(Instruction::Split { number, first: 0, second: 0, guard: SpanGuard::Anything });
        self.code.len() - 1
    }

    fn choice(&mut self) -> u32 {
        self.choices += 1;
        target(self.choices - 1)
    }

    fn aim(&mut self, split: usize, to_first: usize, to_second: usize) {
        if let Instruction::Split { first, second, .. } = &mut self.code[split] {
            *first = target(to_first);
            *second = target(to_second);
        }
    }

    /// Sets the guard of each choice to the text that its first alternative requires next.
    fn set_guards(&mut self) {
        for at in 0..self.code.len() {
            let needed = match self.code[at] {
                Instruction::Split { first, .. } => self.guard(first as usize),
                Instruction::Run { .. } => self.guard(at + 1),
                _ => continue,
            };
            if let Instruction::Split { guard, .. } | Instruction::Run { guard, .. } = &mut self.code[at] {
                *guard = needed;
            }
        }
    }

    fn guard(&self, mut at: usize) -> SpanGuard {
        loop {
            at = match &self.code[at] {
                Instruction::Start(_) | Instruction::End(_) => at + 1,
                Instruction::Jump(target) => *target as usize,
                Instruction::Literal(text) => {
                    return text.last().map_or(SpanGuard::Anything, |&byte| SpanGuard::Byte(byte));
                }
                Instruction::Match => return SpanGuard::Nothing,
                Instruction::Step(_) | Instruction::Run { .. } | Instruction::Split { .. } => {
                    return SpanGuard::Anything;
                }
            }
        }
    }
}

/// A template is much shorter than 4 GiB, and so is its program.
fn target(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
