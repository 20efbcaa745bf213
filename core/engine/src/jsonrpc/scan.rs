//! Scans JSON (RFC 8259) in one pass over valid UTF-8. Accepts the same text as `serde_json` when it skips a value.
//! Never recurses, so no input can exhaust the stack. Surrogate escapes are checked where a string is decoded, not
//! here: JavaScript writes a lone surrogate as an escape, which is harmless in a member that is not used.

use crate::json_text::plain_end;

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JsonSyntaxError;

pub(super) type Scan<T> = Result<T, JsonSyntaxError>;

/// A range of bytes in the scanned text. Messages are shorter than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JsonSpan {
    start: u32,
    end: u32,
}

impl JsonSpan {
    #[expect(clippy::cast_possible_truncation, reason = "Scanner::new refuses text of 4 GiB and more")]
    fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// The part of `text` in this span. `text` must be the text that was scanned.
    #[inline]
    pub(super) fn slice(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The same part as bytes, which are cheaper to compare.
    #[inline]
    pub(super) fn bytes_of(self, text: &str) -> &[u8] {
        text.as_bytes().get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn len(self) -> u32 {
        self.end - self.start
    }

    /// Extends the span of a string's content by its quotes.
    pub(super) fn with_quotes(self) -> Self {
        Self { start: self.start.saturating_sub(1), end: self.end.saturating_add(1) }
    }
}

/// A member's name in source form, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberName {
    pub(super) span: JsonSpan,
    /// Whether it contains a backslash, so that it must be decoded before it is compared.
    pub(super) escaped: bool,
}

impl MemberName {
    /// Whether the name is `word`, which needs no escapes.
    #[inline(always)]
    pub(super) fn is(self, text: &str, word: &[u8]) -> bool {
        self.span.bytes_of(text) == word || self.escaped && self.decoded(text).as_deref() == Some(word)
    }

    /// The name without escapes; `None` if it is not Unicode text.
    #[cold]
    pub(super) fn decoded(self, text: &str) -> Option<Vec<u8>> {
        serde_json::from_str(self.span.with_quotes().slice(text)).ok().map(String::into_bytes)
    }
}

/// A position in a text that is being scanned.
///
/// The hot methods are force-inlined, so that the position stays in a register while a container is scanned.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'m> {
    text: &'m str,
    at: usize,
    /// The greatest nesting so far.
    deepest: usize,
}

impl<'m> Scanner<'m> {
    /// Starts at the first byte other than white space. `None` if `text` has 4 GiB or more.
    #[inline(always)]
    pub(super) fn new(text: &'m str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let mut scanner = Self { text, at: 0, deepest: 0 };
        scanner.space();
        Some(scanner)
    }

    pub(super) fn text(&self) -> &'m str {
        self.text
    }

    pub(super) fn deepest(&self) -> usize {
        self.deepest
    }

    /// Resets the nesting, for the next message of a batch.
    pub(super) fn forget_depth(&mut self) {
        self.deepest = 0;
    }

    /// The next byte, without consuming it.
    #[inline(always)]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The current position, for [`Scanner::since`].
    #[inline(always)]
    pub(super) fn mark(&self) -> usize {
        self.at
    }

    /// The span from `mark` to the current position.
    #[inline(always)]
    pub(super) fn since(&self, mark: usize) -> JsonSpan {
        JsonSpan::new(mark, self.at)
    }

    /// Checks that only white space is left.
    #[inline(always)]
    pub(super) fn end(&mut self) -> Scan<()> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(JsonSyntaxError) }
    }

    /// Consumes the opening byte of an object or array at nesting level `depth`; returns whether it has content.
    #[inline(always)]
    pub(super) fn open(&mut self, open: u8, close: u8, depth: usize) -> Scan<bool> {
        self.expect(open)?;
        self.deepest = self.deepest.max(depth);
        self.space();
        Ok(!self.take(close))
    }

    /// Consumes the byte after a member or an element: a comma (`true`) or the closing byte (`false`).
    #[inline(always)]
    pub(super) fn more(&mut self, close: u8) -> Scan<bool> {
        self.space();
        if self.take(b',') {
            self.space();
            return Ok(true);
        }
        self.expect(close).map(|()| false)
    }

    /// Consumes a member's name and its colon.
    #[inline(always)]
    pub(super) fn name(&mut self) -> Scan<MemberName> {
        self.expect(b'"')?;
        let start = self.at;
        let escaped = self.string()?;
        let span = JsonSpan::new(start, self.at - 1);
        self.space();
        self.expect(b':')?;
        self.space();
        Ok(MemberName { span, escaped })
    }

    /// Consumes a value inside `depth` containers.
    #[inline(always)]
    pub(super) fn value(&mut self, depth: usize) -> Scan<JsonSpan> {
        let start = self.at;
        if let Some(b'{' | b'[') = self.peek() {
            let (end, deepest) = container(self.text, start, depth)?;
            self.at = end;
            self.deepest = self.deepest.max(deepest);
        } else {
            self.scalar()?;
        }
        Ok(self.since(start))
    }

    #[inline(always)]
    fn scalar(&mut self) -> Scan<()> {
        if self.take(b'"') {
            return self.string().map(drop);
        }
        match self.peek() {
            Some(b't') => self.literal(*b"true"),
            Some(b'f') => self.literal(*b"false"),
            Some(b'n') => self.literal(*b"null"),
            _ => self.number(),
        }
    }

    #[inline(always)]
    fn literal<const N: usize>(&mut self, word: [u8; N]) -> Scan<()> {
        let found = self.text.as_bytes().get(self.at..).and_then(<[u8]>::first_chunk);
        self.at += N;
        if found == Some(&word) { Ok(()) } else { Err(JsonSyntaxError) }
    }

    #[inline(always)]
    fn number(&mut self) -> Scan<()> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// Consumes one or more digits.
    #[inline(always)]
    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(JsonSyntaxError) }
    }

    /// Consumes a string's content and its closing quote; returns whether it has escapes.
    #[inline(always)]
    fn string(&mut self) -> Scan<bool> {
        self.at = plain_end(self.text.as_bytes(), self.at);
        if self.take(b'"') {
            return Ok(false);
        }
        self.at = string_with_escapes(self.text.as_bytes(), self.at)?;
        Ok(true)
    }

    #[inline(always)]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn take(&mut self, byte: u8) -> bool {
        if self.peek() == Some(byte) {
            self.at += 1;
            return true;
        }
        false
    }

    #[inline(always)]
    fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.take(byte) { Ok(()) } else { Err(JsonSyntaxError) }
    }
}

/// Scans an object or array that starts at `at` inside `depth` others; returns its end and the greatest nesting in it.
fn container(text: &str, at: usize, depth: usize) -> Scan<(usize, usize)> {
    let mut scanner = Scanner { text, at, deepest: 0 };
    let mut nesting = Nesting::default();
    loop {
        let mut entered = false;
        if let Some(open @ (b'{' | b'[')) = scanner.peek() {
            nesting.push(open == b'{');
            entered = scanner.open(open, nesting.closing(), depth + nesting.depth)?;
            if !entered {
                nesting.pop();
            }
        } else {
            scanner.scalar()?;
        }
        if !entered {
            while nesting.depth > 0 && !scanner.more(nesting.closing())? {
                nesting.pop();
            }
            if nesting.depth == 0 {
                return Ok((scanner.at, scanner.deepest));
            }
        }
        if nesting.in_object() {
            scanner.name()?;
        }
    }
}

/// Scans a string from its first escape on; returns the position after the closing quote.
#[cold]
fn string_with_escapes(bytes: &[u8], mut at: usize) -> Scan<usize> {
    loop {
        match bytes.get(at).ok_or(JsonSyntaxError)? {
            b'"' => return Ok(at + 1),
            b'\\' => at += escape_len(bytes.get(at + 1..).unwrap_or_default())?,
            _ => return Err(JsonSyntaxError),
        }
        at = plain_end(bytes, at);
    }
}

/// The length of an escape; `rest` starts after its backslash.
fn escape_len(rest: &[u8]) -> Scan<usize> {
    match rest.first() {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') if rest.get(1..5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) => Ok(6),
        _ => Err(JsonSyntaxError),
    }
}

/// The containers around a position, one bit each: an object (1) or an array (0).
#[derive(Default)]
struct Nesting {
    bits: u64,
    depth: usize,
    /// Full words of outer containers: allocates only for a nesting of more than 64 levels.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline(always)]
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    #[inline(always)]
    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }

    /// The byte that ends the innermost container.
    #[inline(always)]
    fn closing(&self) -> u8 {
        if self.in_object() { b'}' } else { b']' }
    }
}
