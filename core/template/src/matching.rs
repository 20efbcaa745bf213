//! Matches one template, either after its head or from the beginning.

use super::capture::Captured;
use super::class::ByteClass;
use super::compile::{Compiled, QueryPart, TemplateToken};
use super::program::{Exhausted, Meter, ProgramSpan};
use super::subject::MatchSubject;
use smallvec::SmallVec;

/// The captured spans, one for each slot.
pub(super) type Spans = SmallVec<[ProgramSpan; 8]>;

impl Compiled {
    /// Matches the text after the head, which ends at `low` and has captured `head`; returns all captures.
    ///
    /// A match means that the template wins, unless a value violates its policy.
    pub(super) fn finish(
        &self,
        subject: &MatchSubject<'_>,
        low: usize,
        head: &[ProgramSpan],
        meter: &mut Meter,
    ) -> Result<Option<Spans>, Exhausted> {
        if !self.admits_sections(subject) {
            return Ok(None);
        }
        let mut spans = Spans::from_slice(head);
        spans.resize(self.slots.len(), ProgramSpan::UNSET);
        let end = if self.is_whole { subject.uri.len() } else { subject.path_end };
        let matches = self.tail.matches(&subject.bytes()[..end], low, &mut spans, meter)?
            && self.query(subject, &mut spans, meter)?
            && self.fragment(subject, &mut spans, meter)?
            && self.pass_filters(subject, &spans, meter)?;
        Ok(matches.then_some(spans))
    }

    /// Matches the whole `subject` without an index; returns the captures.
    pub(super) fn matches(
        &self,
        subject: &MatchSubject<'_>,
        meter: &mut Meter,
    ) -> Result<Option<Spans>, Exhausted> {
        let mut head = Spans::new();
        let mut low = 0;
        meter.scan(subject.uri.len())?;
        for token in &self.head {
            let rest = &subject.bytes()[low..];
            let length = match token {
                TemplateToken::Literal(text) if rest.starts_with(text) => text.len(),
                TemplateToken::Capture => segment_len(rest),
                TemplateToken::Literal(_) => 0,
            };
            if length == 0 {
                return Ok(None);
            }
            if *token == TemplateToken::Capture {
                head.push(ProgramSpan::new(low, low + length));
            }
            low += length;
        }
        self.finish(subject, low, &head, meter)
    }

    /// Whether the template permits the sections that the URI has.
    fn admits_sections(&self, subject: &MatchSubject<'_>) -> bool {
        subject.is_path()
            || self.is_whole
            || (subject.query.is_none() || !matches!(self.query, QueryPart::None))
                && (subject.fragment.is_none() || self.fragment.is_some())
    }

    fn query(
        &self,
        subject: &MatchSubject<'_>,
        spans: &mut Spans,
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        match (&self.query, &subject.query) {
            (QueryPart::None, _) => Ok(true),
            (QueryPart::Pairs(pairs), _) => pairs.matches(subject, spans, meter),
            (QueryPart::Text(text), Some(query)) => {
                text.matches(&subject.bytes()[..query.end], query.start, spans, meter)
            }
            (QueryPart::Text(_), None) => Ok(false),
        }
    }

    fn fragment(
        &self,
        subject: &MatchSubject<'_>,
        spans: &mut Spans,
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        let Some(fragment) = &self.fragment else { return Ok(true) };
        let start = subject.fragment.unwrap_or(subject.uri.len());
        fragment.matches(subject.bytes(), start, spans, meter)
    }

    fn pass_filters(
        &self,
        subject: &MatchSubject<'_>,
        spans: &Spans,
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        if !self.has_filters {
            return Ok(true);
        }
        meter.scan(subject.uri.len())?;
        Ok(Captured { template: self, uri: subject.uri, spans }.pass_filters())
    }
}

/// The length of the segment text at the beginning of `bytes`.
#[inline]
pub(super) fn segment_len(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| !ByteClass::Segment.has(byte)).unwrap_or(bytes.len())
}
