//! The JSON grammar (RFC 8259), walked once over text that is valid UTF-8. Accepts what `serde_json` accepts when it
//! skips a value; never recurses, so no input can exhaust the stack. Surrogate escapes are checked where a string is
//! decoded, not here: JavaScript writes a lone surrogate as an escape, and one in a member nobody reads harms nobody.

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syntax;

pub(super) type Scan<T> = Result<T, Syntax>;

/// Where something stands in the scanned text, in bytes. Messages are shorter than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    #[expect(clippy::cast_possible_truncation, reason = "Scanner::new refuses text of 4 GiB and more")]
    fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// The spanned part of `text`, the text this span was made from.
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The span of a string, made from the span of its content.
    pub(super) fn with_quotes(self) -> Self {
        Self { start: self.start.saturating_sub(1), end: self.end.saturating_add(1) }
    }
}

/// A member's name as it is written, between the quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) span: Span,
    /// It holds a backslash: to be decoded before it is compared.
    pub(super) escaped: bool,
}

/// A position in a text that is being read.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'m> {
    text: &'m str,
    at: usize,
    /// How many objects and arrays stood inside each other at the deepest place so far.
    deepest: usize,
}

impl<'m> Scanner<'m> {
    /// Starts at the first byte that is not white space. `None` if `text` has 4 GiB or more.
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

    /// Counts the nesting anew, for the next message of a batch.
    pub(super) fn forget_depth(&mut self) {
        self.deepest = 0;
    }

    /// Here, to be given to [`Scanner::since`].
    pub(super) fn mark(&self) -> usize {
        self.at
    }

    /// From the mark to here.
    pub(super) fn since(&self, mark: usize) -> Span {
        Span::new(mark, self.at)
    }

    /// The next byte, not taken.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Fails unless nothing but white space is left.
    pub(super) fn end(&mut self) -> Scan<()> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(Syntax) }
    }

    /// Takes the opening byte of an object or array that is the `depth`-th inside each other; says if it has content.
    #[inline]
    pub(super) fn open(&mut self, open: u8, close: u8, depth: usize) -> Scan<bool> {
        self.expect(open)?;
        self.deepest = self.deepest.max(depth);
        self.space();
        Ok(!self.take(close))
    }

    /// Takes what follows a member or an element: a comma (true) or the closing byte (false).
    #[inline]
    pub(super) fn more(&mut self, close: u8) -> Scan<bool> {
        self.space();
        if self.take(b',') {
            self.space();
            return Ok(true);
        }
        self.expect(close).map(|()| false)
    }

    /// Takes a member's name and the colon behind it.
    #[inline]
    pub(super) fn name(&mut self) -> Scan<Name> {
        self.expect(b'"')?;
        let start = self.at;
        let escaped = self.string()?;
        let span = Span::new(start, self.at - 1);
        self.space();
        self.expect(b':')?;
        self.space();
        Ok(Name { span, escaped })
    }

    /// Takes a value that stands inside `depth` objects and arrays.
    #[inline]
    pub(super) fn value(&mut self, depth: usize) -> Scan<Span> {
        let start = self.at;
        match self.peek() {
            Some(b'{' | b'[') => self.container(depth)?,
            _ => self.scalar()?,
        }
        Ok(self.since(start))
    }

    fn container(&mut self, depth: usize) -> Scan<()> {
        let mut nesting = Nesting::default();
        loop {
            let entered = match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    nesting.push(open == b'{');
                    let entered = self.open(open, closing(open), depth + nesting.depth)?;
                    if !entered {
                        nesting.pop();
                    }
                    entered
                }
                _ => {
                    self.scalar()?;
                    false
                }
            };
            if !entered && self.close(&mut nesting)? {
                return Ok(());
            }
            if nesting.in_object() {
                self.name()?;
            }
        }
    }

    /// After a value inside `nesting`: closes what ends here. True if that was the outermost container.
    fn close(&mut self, nesting: &mut Nesting) -> Scan<bool> {
        while nesting.depth > 0 {
            if self.more(if nesting.in_object() { b'}' } else { b']' })? {
                return Ok(false);
            }
            nesting.pop();
        }
        Ok(true)
    }

    #[inline]
    fn scalar(&mut self) -> Scan<()> {
        match self.peek().ok_or(Syntax)? {
            b'"' => {
                self.at += 1;
                self.string().map(drop)
            }
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.number(),
        }
    }

    fn literal(&mut self, word: &str) -> Scan<()> {
        let end = self.at + word.len();
        if self.text.as_bytes().get(self.at..end) != Some(word.as_bytes()) {
            return Err(Syntax);
        }
        self.at = end;
        Ok(())
    }

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

    /// Takes one digit or more.
    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Syntax) }
    }

    /// Takes a string's content and its closing quote; says if it has escapes.
    #[inline]
    fn string(&mut self) -> Scan<bool> {
        let mut escaped = false;
        loop {
            self.at += plain_run(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Syntax),
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        let bytes = self.text.as_bytes();
        let len = match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = bytes.get(self.at + 2..self.at + 6).ok_or(Syntax)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Syntax);
                }
                6
            }
            _ => return Err(Syntax),
        };
        self.at += len;
        Ok(())
    }

    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.take(byte) { Ok(()) } else { Err(Syntax) }
    }
}

/// The containers around a place, one bit each: an object (1) or an array (0).
#[derive(Default)]
struct Nesting {
    bits: u64,
    depth: usize,
    /// Full words of outer containers: only a text nested beyond 64 levels allocates.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

/// The byte that closes what `open` opens.
fn closing(open: u8) -> u8 {
    if open == b'{' { b'}' } else { b']' }
}

/// How many bytes come before the first quote, backslash or control character.
#[inline]
fn plain_run(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return i * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    words.len() * 8 + tail.iter().position(special).unwrap_or(tail.len())
}

/// The high bit of each byte that is a quote, a backslash or a control character. A borrow may set bits above the
/// lowest one that is set rightly, never below it.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash) & HIGH
}
