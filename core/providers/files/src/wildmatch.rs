//! One pattern of git's ignore rules, interpreted like git's own matcher.
//!
//! ```text
//!   src/**/[a-z]?.c  ──▶  Literal("src/") Directories Set([a-z]) Any Literal(".c")
//!   Pattern::matches(text): after each part, which positions of the text can have been reached
//! ```
//!
//! Law: no backtracking. A match costs at most the length of the pattern times that of the text, and needs two flags for each
//! byte of the text. Braces mean nothing, as in git. A class that git refuses makes a pattern that matches nothing.

/// A compiled pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WildPattern {
    parts: Vec<Part>,
    /// The fewest bytes that a text must have to match.
    least: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    /// One byte that is no slash.
    Any,
    /// One of these bytes.
    Set(Box<[u64; 4]>),
    /// Any run of bytes without a slash.
    Star,
    /// Any run of bytes.
    Everything,
    /// Nothing, or any run of bytes that ends with a slash.
    Directories,
}

/// The bytes that the special meaning of a pattern begins with.
pub(super) const SPECIAL: &[u8] = b"*?[\\";

impl WildPattern {
    /// Reads the part of a pattern that begins with its first special byte. With `folds`, upper and lower case of ASCII letters
    /// are the same, and the text must be in lower case. `None`: it matches nothing.
    pub(super) fn parse(pattern: &[u8], folds: bool) -> Option<Self> {
        let mut reader = Reader { pattern, at: 0, folds, parts: Vec::new() };
        while let Some(byte) = reader.next() {
            match byte {
                b'*' => reader.star(),
                b'?' => reader.parts.push(Part::Any),
                b'[' => reader.set()?,
                // What is escaped is compared as it is, also where case is ignored.
                b'\\' => {
                    let byte = reader.next()?;
                    reader.literal(byte);
                }
                byte if folds => reader.literal(byte.to_ascii_lowercase()),
                byte => reader.literal(byte),
            }
        }
        let parts = reader.parts;
        let least = parts.iter().map(Part::least).fold(0, usize::saturating_add);
        Some(Self { parts, least })
    }

    /// Whether all of `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        if text.len() < self.least || !self.may_match(text) {
            return false;
        }
        let mut reached = vec![false; text.len() + 1];
        let mut next = reached.clone();
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for part in &self.parts {
            part.step(text, &reached, &mut next);
            if !next.contains(&true) {
                return false;
            }
            std::mem::swap(&mut reached, &mut next);
        }
        reached.last() == Some(&true)
    }

    /// Whether a text begins and ends as the pattern does: most fail here.
    fn may_match(&self, text: &[u8]) -> bool {
        let is_other = |part: Option<&Part>, has: fn(&[u8], &[u8]) -> bool| match part {
            Some(Part::Literal(bytes)) => !has(text, bytes),
            _ => false,
        };
        !is_other(self.parts.first(), <[u8]>::starts_with) && !is_other(self.parts.last(), <[u8]>::ends_with)
    }
}

impl Part {
    fn least(&self) -> usize {
        match self {
            Self::Literal(bytes) => bytes.len(),
            Self::Any | Self::Set(_) => 1,
            Self::Star | Self::Everything | Self::Directories => 0,
        }
    }

    /// The positions reached behind this part, from the positions before it.
    fn step(&self, text: &[u8], from: &[bool], to: &mut [bool]) {
        to.fill(false);
        let starts = || from.iter().enumerate().filter(|(_, is_reached)| **is_reached).map(|(at, _)| at);
        let mut reach = |at: usize| {
            if let Some(flag) = to.get_mut(at) {
                *flag = true;
            }
        };
        match self {
            Self::Literal(bytes) => starts()
                .filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(bytes)))
                .for_each(|at| reach(at + bytes.len())),
            Self::Any => starts()
                .filter(|at| text.get(*at).is_some_and(|byte| *byte != b'/'))
                .for_each(|at| reach(at + 1)),
            Self::Set(set) => starts()
                .filter(|at| text.get(*at).is_some_and(|byte| has(set, *byte)))
                .for_each(|at| reach(at + 1)),
            Self::Star => {
                let mut is_open = false;
                for (at, is_reached) in from.iter().enumerate() {
                    is_open = *is_reached || is_open && before(text, at) != Some(b'/');
                    if is_open {
                        reach(at);
                    }
                }
            }
            Self::Everything => {
                if let Some(first) = starts().next() {
                    (first..from.len()).for_each(reach);
                }
            }
            Self::Directories => {
                let first = starts().next().unwrap_or(from.len());
                let behind_slash = |at: &usize| *at > first && before(text, *at) == Some(b'/');
                starts().for_each(&mut reach);
                (first..from.len()).filter(behind_slash).for_each(reach);
            }
        }
    }
}

fn before(text: &[u8], at: usize) -> Option<u8> {
    text.get(at.checked_sub(1)?).copied()
}

fn has(set: &[u64; 4], byte: u8) -> bool {
    set.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
}

/// Reads a pattern from its beginning.
struct Reader<'p> {
    pattern: &'p [u8],
    at: usize,
    folds: bool,
    parts: Vec<Part>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek(0)?;
        self.at += 1;
        Some(byte)
    }

    /// The byte at this distance from the next one.
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.pattern.get(self.at + ahead).copied()
    }

    fn literal(&mut self, byte: u8) {
        match self.parts.last_mut() {
            Some(Part::Literal(bytes)) => bytes.push(byte),
            _ => self.parts.push(Part::Literal(vec![byte])),
        }
    }

    /// A run of stars, the first of which was read. Two or more between slashes go over directories.
    fn star(&mut self) {
        let is_first =
            matches!(self.at.checked_sub(2).map(|at| self.pattern.get(at)), None | Some(Some(b'/')));
        let start = self.at;
        while self.peek(0) == Some(b'*') {
            self.at += 1;
        }
        let is_double = self.at > start && is_first;
        let part = match (self.peek(0), self.peek(1)) {
            (None, _) if is_double => Part::Everything,
            (Some(b'/'), _) if is_double => {
                self.at += 1;
                Part::Directories
            }
            (Some(b'\\'), Some(b'/')) if is_double => Part::Everything,
            _ => Part::Star,
        };
        // A second one in a row adds nothing but work.
        let is_again = matches!(
            (self.parts.last(), &part),
            (Some(Part::Directories), Part::Directories) | (Some(Part::Directories), Part::Everything)
        );
        if is_again && part == Part::Everything {
            self.parts.pop();
        }
        if !is_again || part == Part::Everything {
            self.parts.push(part);
        }
    }

    /// A set in brackets, the first of which was read. `None`: git does not accept it.
    fn set(&mut self) -> Option<()> {
        let is_negated = matches!(self.peek(0), Some(b'!' | b'^'));
        if is_negated {
            self.at += 1;
        }
        let mut set = [0; 4];
        // The byte that a range would begin with.
        let mut last = None;
        let mut byte = self.next()?;
        loop {
            last = match byte {
                b'\\' => {
                    let escaped = self.next()?;
                    add(&mut set, escaped);
                    Some(escaped)
                }
                b'-' if last.is_some() && !matches!(self.peek(0), None | Some(b']')) => {
                    let mut end = self.next()?;
                    if end == b'\\' {
                        end = self.next()?;
                    }
                    self.range(&mut set, last.unwrap_or(end), end);
                    None
                }
                b'[' if self.peek(0) == Some(b':') => self.class(&mut set)?,
                byte => {
                    add(&mut set, byte);
                    Some(byte)
                }
            };
            byte = self.next()?;
            if byte == b']' {
                break;
            }
        }
        if is_negated {
            set.iter_mut().for_each(|word| *word = !*word);
        }
        remove(&mut set, b'/');
        self.parts.push(Part::Set(Box::new(set)));
        Some(())
    }

    fn range(&self, set: &mut [u64; 4], first: u8, last: u8) {
        for byte in first..=last {
            add(set, byte);
            if self.folds && byte.is_ascii_uppercase() {
                add(set, byte.to_ascii_lowercase());
            }
        }
    }

    /// A class such as `[:alpha:]`, whose bracket was read; or that bracket alone, if no `:]` follows. Returns the byte that a
    /// range would begin with.
    fn class(&mut self, set: &mut [u64; 4]) -> Option<Option<u8>> {
        let rest = self.pattern.get(self.at + 1..)?;
        let end = rest.iter().position(|byte| *byte == b']')?;
        let Some(name) = rest.get(..end)?.strip_suffix(b":") else {
            add(set, b'[');
            return Some(Some(b'['));
        };
        let is_in = class_of(name)?;
        let folds_upper = self.folds && name == b"upper";
        for byte in (0..=u8::MAX).filter(|byte| is_in(*byte) || folds_upper && byte.is_ascii_lowercase()) {
            add(set, byte);
        }
        self.at += 1 + end + 1;
        Some(None)
    }
}

fn add(set: &mut [u64; 4], byte: u8) {
    if let Some(word) = set.get_mut(usize::from(byte >> 6)) {
        *word |= 1 << (byte & 63);
    }
}

fn remove(set: &mut [u64; 4], byte: u8) {
    if let Some(word) = set.get_mut(usize::from(byte >> 6)) {
        *word &= !(1 << (byte & 63));
    }
}

/// The classes that git knows, of ASCII alone, with git's own idea of white space.
fn class_of(name: &[u8]) -> Option<fn(u8) -> bool> {
    Some(match name {
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
