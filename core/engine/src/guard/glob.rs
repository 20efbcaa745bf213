//! One glob over canonical URIs.
//!
//! Law: matching takes time linear in the length of the URI, whatever the glob. The part after the first wildcard runs
//! as a set of positions that each byte advances, without backtracking.

use mcp_resources_template::uri;
use std::fmt;

/// A glob over the text of a canonical URI.
///
/// `*` matches any run without `/`, `?` one character other than `/`, and `**` any run; `/**/` also matches a single `/`. `\`
/// takes the next character literally. Case matters. `*` alone matches everything. The rest of the glob is brought into the
/// canonical form of a URI, with which it is compared: `HTTPS://Example.com/**` is `https://example.com/**`.
///
/// A glob without a literal `?` (written `\?`) and without `#` ignores the query and the fragment of a URI; one with `?` and
/// without `#` ignores the fragment.
#[derive(Clone)]
pub struct Glob {
    text: Box<str>,
    /// The literal beginning of every match.
    pub(super) prefix: Box<[u8]>,
    pub(super) tail: Tail,
    /// The tokens after the prefix.
    pub(super) tokens: Box<[GlobToken]>,
    pub(super) reach: GlobReach,
}

/// The components of a URI that a glob covers; it ignores the components after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GlobReach {
    /// Neither a query nor a fragment.
    Path,
    /// A query, but no fragment.
    Query,
    /// A fragment.
    Fragment,
}

/// The kinds of rest after the prefix, by the cost of matching them.
#[derive(Clone)]
pub(super) enum Tail {
    /// Nothing.
    End,
    /// Anything.
    Any,
    /// Anything without a slash.
    Segment,
    /// A program. The suffix, which every match ends with, is compared first.
    Program { program: Box<GlobProgram>, suffix: Box<[u8]> },
}

/// One token of a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GlobToken {
    /// This byte.
    Byte(u8),
    /// One byte that is not a slash.
    One,
    /// A run without slashes.
    Run,
    /// Any run, slashes included.
    Deep,
    /// Nothing, or any run with a slash after it. Matches no byte itself: [`GlobToken::Within`] follows it.
    Directories,
    /// The rest of that run.
    Within,
}

/// The reason for which a text is not a valid glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidGlob {
    /// The problem, as half a sentence.
    pub reason: &'static str,
    /// Its position, in bytes from the beginning.
    pub offset: usize,
}

impl Glob {
    /// Longest glob, in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Parses a glob.
    ///
    /// # Errors
    /// [`InvalidGlob`] if no URI could match it: it is too long, or has a character that no URI has, a `%` without two
    /// hexadecimal digits, a `\` at its end, or a dot segment.
    pub fn parse(text: &str) -> Result<Self, InvalidGlob> {
        let mut tokens = if text == "*" { vec![GlobToken::Deep] } else { tokens(text)? };
        fold_case(&mut tokens);
        check_dots(&tokens)?;
        let names = |byte: u8| tokens.contains(&GlobToken::Byte(byte));
        let reach = match (names(b'?'), names(b'#')) {
            (_, true) => GlobReach::Fragment,
            (true, false) => GlobReach::Query,
            (false, false) => GlobReach::Path,
        };
        let glob = Self::compiled(text, tokens, reach);
        if glob.tokens.len() > GlobProgram::MOST {
            return Err(InvalidGlob { reason: "the part after its first wildcard is too long", offset: 0 });
        }
        Ok(glob)
    }

    fn compiled(text: &str, mut tokens: Vec<GlobToken>, reach: GlobReach) -> Self {
        let literal = tokens.iter().take_while(|token| matches!(token, GlobToken::Byte(_))).count();
        let rest: Box<[GlobToken]> = tokens.split_off(literal).into();
        Self { text: text.into(), prefix: bytes(&tokens), tail: Tail::new(&rest), tokens: rest, reach }
    }

    /// The glob over URIs whose optional encodings are decoded ([`decoded`]); `None` if it has none itself.
    pub(super) fn decoded(&self) -> Option<Self> {
        let tokens: Vec<GlobToken> = self
            .prefix
            .iter()
            .map(|byte| GlobToken::Byte(*byte))
            .chain(self.tokens.iter().copied())
            .collect();
        let byte = |token: &GlobToken| if let GlobToken::Byte(byte) = token { Some(*byte) } else { None };
        let decoded = decoded(&tokens, &byte, &GlobToken::Byte)?;
        Some(Self::compiled(&self.text, decoded, self.reach))
    }

    /// Whether both match the same URIs, because their tokens are the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.prefix == other.prefix && self.tokens == other.tokens
    }

    /// The glob as given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `uri` matches. Compares the whole text as it is.
    pub fn matches(&self, uri: &str) -> bool {
        uri.as_bytes().strip_prefix(&*self.prefix).is_some_and(|rest| self.tail.matches(rest))
    }
}

/// Decodes the triplets of characters that a value may also have as they are: `%2C` is `,` in a path. A template gives
/// its handler the same value for both. `None` if there are none. Those that separate the parts of a URI stay.
pub(super) fn decoded<T: Copy>(
    items: &[T],
    byte: &dyn Fn(&T) -> Option<u8>,
    item: &dyn Fn(u8) -> T,
) -> Option<Vec<T>> {
    let plain = |at: usize, is_path: bool| {
        let triplet = [items.get(at)?, items.get(at + 1)?, items.get(at + 2)?].map(byte);
        let [Some(b'%'), Some(high), Some(low)] = triplet else { return None };
        let decoded = uri::hex_pair(&[high, low])?;
        let is_optional = match decoded {
            b'&' | b'=' => is_path,
            b'/' | b'?' => !is_path,
            other => b"!$'()*+,;:@".contains(&other),
        };
        is_optional.then(|| item(decoded))
    };
    let mut out = Vec::with_capacity(items.len());
    let mut at = 0;
    let mut is_path = true;
    let mut is_changed = false;
    while let Some(own) = items.get(at) {
        let found = plain(at, is_path);
        is_changed |= found.is_some();
        at += if found.is_some() { 3 } else { 1 };
        is_path &= !(found.is_none() && matches!(byte(own), Some(b'?' | b'#')));
        out.push(found.unwrap_or(*own));
    }
    is_changed.then_some(out)
}

impl Tail {
    fn new(tokens: &[GlobToken]) -> Self {
        match tokens {
            [] => Self::End,
            [GlobToken::Deep] => Self::Any,
            [GlobToken::Run] => Self::Segment,
            _ => {
                let from = tokens.iter().rposition(|token| !matches!(token, GlobToken::Byte(_)));
                let suffix = bytes(&tokens[from.map_or(0, |at| at + 1)..]);
                Self::Program { program: Box::new(GlobProgram::new(tokens)), suffix }
            }
        }
    }

    /// Whether `rest`, the part after the prefix, matches.
    pub(super) fn matches(&self, rest: &[u8]) -> bool {
        match self {
            Self::End => rest.is_empty(),
            Self::Any => true,
            Self::Segment => !rest.contains(&b'/'),
            Self::Program { program, suffix } => rest.ends_with(suffix) && program.matches(rest),
        }
    }
}

/// An automaton whose states are sets of token positions, stored as bits.
#[derive(Clone)]
pub(super) struct GlobProgram {
    length: usize,
    words: usize,
    /// The class of each byte. Class 0 has all bytes that no token names.
    classes: Box<[u8; 256]>,
    /// By class: the positions from which such a byte moves on to the next one.
    steps: Box<[u64]>,
    /// The positions that any byte leaves unchanged, and those that any byte except a slash does.
    stay: Box<[u64]>,
    stay_in_segment: Box<[u64]>,
    /// The positions from which the next one, or the one after it, is reached without a byte.
    skip: Box<[u64]>,
    leap: Box<[u64]>,
}

impl GlobProgram {
    /// Maximum number of tokens.
    pub(super) const MOST: usize = 1023;

    fn new(tokens: &[GlobToken]) -> Self {
        let words = tokens.len() / 64 + 1;
        let mut classes = Box::new([0_u8; 256]);
        classes[usize::from(b'/')] = 1;
        let mut count = 2;
        for token in tokens {
            if let GlobToken::Byte(byte) = token
                && classes[usize::from(*byte)] == 0
            {
                classes[usize::from(*byte)] = count;
                // No overflow: a canonical URI has fewer than a hundred different bytes.
                count = count.saturating_add(1);
            }
        }
        let mut steps = vec![0; usize::from(count) * words];
        let empty: Box<[u64]> = vec![0; words].into();
        let mut stay = empty.clone();
        let mut stay_in_segment = empty.clone();
        let mut skip = empty.clone();
        let mut leap = empty;
        for (at, token) in tokens.iter().enumerate() {
            let word = at / 64;
            let bit = 1 << (at % 64);
            let mut step = |class: u8| steps[usize::from(class) * words + word] |= bit;
            match token {
                GlobToken::Byte(byte) => step(classes[usize::from(*byte)]),
                GlobToken::One => (0..count).filter(|class| *class != 1).for_each(step),
                GlobToken::Run => stay_in_segment[word] |= bit,
                GlobToken::Deep => stay[word] |= bit,
                GlobToken::Directories => leap[word] |= bit,
                GlobToken::Within => {
                    stay[word] |= bit;
                    step(1);
                }
            }
            if matches!(token, GlobToken::Run | GlobToken::Deep | GlobToken::Directories) {
                skip[word] |= bit;
            }
        }
        for (any, own) in stay_in_segment.iter_mut().zip(&stay) {
            *any |= own;
        }
        Self { length: tokens.len(), words, classes, steps: steps.into(), stay, stay_in_segment, skip, leap }
    }

    fn matches(&self, text: &[u8]) -> bool {
        match self.words {
            1 => self.run::<1>(text),
            2 => self.run::<2>(text),
            3..=4 => self.run::<4>(text),
            _ => self.run::<16>(text),
        }
    }

    fn run<const WORDS: usize>(&self, text: &[u8]) -> bool {
        let mut at = [0; WORDS];
        at[0] = 1;
        self.skip(&mut at);
        for &byte in text {
            let class = usize::from(self.classes[usize::from(byte)]);
            let steps = &self.steps[class * self.words..(class + 1) * self.words];
            let stay = if byte == b'/' { &self.stay } else { &self.stay_in_segment };
            let mut carry = 0;
            let mut alive = 0;
            for word in 0..self.words {
                let moved = at[word] & steps[word];
                at[word] = (moved << 1) | carry | (at[word] & stay[word]);
                carry = moved >> 63;
                alive |= at[word];
            }
            if alive == 0 {
                return false;
            }
            self.skip(&mut at);
        }
        at[self.length / 64] >> (self.length % 64) & 1 == 1
    }

    /// At most two wildcards are adjacent: `**/` and `*`.
    fn skip(&self, at: &mut [u64]) {
        for _ in 0..2 {
            let mut carry = 0;
            for (word, (skip, leap)) in at.iter_mut().zip(self.skip.iter().zip(&self.leap)) {
                let moved = *word & skip;
                let leapt = *word & leap;
                *word |= (moved << 1) | (leapt << 2) | carry;
                carry = (moved >> 63) | (leapt >> 62);
            }
        }
    }
}

/// Parses the tokens. Literals are put into canonical form, except for the case of scheme and authority.
fn tokens(text: &str) -> Result<Vec<GlobToken>, InvalidGlob> {
    if text.is_empty() || text.len() > Glob::MAX_BYTES {
        return Err(InvalidGlob { reason: "it is empty or too long", offset: 0 });
    }
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at + 1..];
        at += match byte {
            b'*' => wildcard(&bytes[at..], &mut tokens),
            b'?' => {
                tokens.push(GlobToken::One);
                1
            }
            b'\\' => match rest.first() {
                Some(escaped) => literal(*escaped, at, &mut tokens).map(|()| 2)?,
                None => return Err(InvalidGlob { reason: "it ends with a backslash", offset: at }),
            },
            b'%' => match uri::hex_pair(rest) {
                Some(value) => {
                    triplet(value, &mut tokens);
                    3
                }
                None => {
                    let reason = "a % is not followed by two hexadecimal digits";
                    return Err(InvalidGlob { reason, offset: at });
                }
            },
            other => literal(other, at, &mut tokens).map(|()| 1)?,
        };
    }
    Ok(tokens)
}

/// Parses the stars at the beginning of `text`, with a slash after them if together they match directories. Returns
/// their length.
fn wildcard(text: &[u8], tokens: &mut Vec<GlobToken>) -> usize {
    let stars = text.iter().take_while(|byte| **byte == b'*').count();
    let behind_slash = matches!(tokens.last(), Some(GlobToken::Byte(b'/') | GlobToken::Within));
    let (token, length) = match stars {
        1 => (GlobToken::Run, 1),
        2 if behind_slash && text.get(2) == Some(&b'/') => (GlobToken::Directories, 3),
        _ => (GlobToken::Deep, stars),
    };
    match (tokens.last(), token) {
        // Adjacent wildcards of which one matches everything that the other does are merged.
        (Some(GlobToken::Within), GlobToken::Directories) => {}
        (Some(GlobToken::Within), GlobToken::Deep) => {
            tokens.truncate(tokens.len() - 2);
            tokens.push(GlobToken::Deep);
        }
        (_, GlobToken::Directories) => tokens.extend([GlobToken::Directories, GlobToken::Within]),
        _ => tokens.push(token),
    }
    length
}

fn triplet(value: u8, tokens: &mut Vec<GlobToken>) {
    if uri::is_unreserved(value) {
        tokens.push(GlobToken::Byte(value));
    } else {
        encoded(value, tokens);
    }
}

fn encoded(value: u8, tokens: &mut Vec<GlobToken>) {
    let mut text = String::new();
    uri::push_encoded(&mut text, value);
    tokens.extend(text.bytes().map(GlobToken::Byte));
}

/// Appends a literal character, percent-encoded if canonical URIs encode it.
fn literal(byte: u8, offset: usize, tokens: &mut Vec<GlobToken>) -> Result<(), InvalidGlob> {
    match byte {
        b'|' | b'^' | b'\\' | 0x80..=0xff => encoded(byte, tokens),
        // Canonical URIs encode brackets, except around an IP address in an authority.
        b'[' | b']' if !in_authority(tokens) => encoded(byte, tokens),
        0x21..=0x7e if !b"\"<>`{}".contains(&byte) => tokens.push(GlobToken::Byte(byte)),
        _ => return Err(InvalidGlob { reason: "a URI cannot contain this character", offset }),
    }
    Ok(())
}

/// Whether the next token after `tokens` belongs to an authority.
fn in_authority(tokens: &[GlobToken]) -> bool {
    let text = bytes(&tokens[..tokens.len().min(literal_len(tokens))]);
    let Some(scheme) = uri::scheme_len(&text) else { return false };
    text.len() == tokens.len()
        && text[scheme + 1..].strip_prefix(b"//").is_some_and(|rest| !rest.contains(&b'/'))
}

fn literal_len(tokens: &[GlobToken]) -> usize {
    tokens.iter().take_while(|token| matches!(token, GlobToken::Byte(_))).count()
}

fn bytes(tokens: &[GlobToken]) -> Box<[u8]> {
    let byte = |token: &GlobToken| match token {
        GlobToken::Byte(byte) => Some(*byte),
        _ => None,
    };
    tokens.iter().map_while(byte).collect()
}

/// Lower-cases the scheme, and the authority where case has no meaning.
fn fold_case(tokens: &mut [GlobToken]) {
    let literal = bytes(tokens);
    let Some(scheme) = uri::scheme_len(&literal) else { return };
    let rest = scheme + 1;
    let folds = literal[rest..].starts_with(b"//") && uri::folds_authority(&literal[..scheme]);
    let is_end = |token: &GlobToken| matches!(token, GlobToken::Byte(b'/' | b'?' | b'#') | GlobToken::Deep);
    let authority = tokens.get(rest + 2..).unwrap_or_default();
    let end = rest + 2 + authority.iter().position(is_end).unwrap_or(authority.len());
    let end = if folds { end } else { scheme };
    let mut in_triplet = 0;
    for token in tokens.iter_mut().take(end) {
        if let GlobToken::Byte(byte) = token {
            if *byte == b'%' {
                in_triplet = 3;
            }
            if in_triplet == 0 {
                byte.make_ascii_lowercase();
            }
        }
        in_triplet = usize::saturating_sub(in_triplet, 1);
    }
}

fn check_dots(tokens: &[GlobToken]) -> Result<(), InvalidGlob> {
    let is_dots = |segment: &[GlobToken]| {
        matches!(segment, [GlobToken::Byte(b'.')] | [GlobToken::Byte(b'.'), GlobToken::Byte(b'.')])
    };
    let end =
        tokens.iter().position(|token| matches!(token, GlobToken::Byte(b'?' | b'#'))).unwrap_or(tokens.len());
    if tokens[..end].split(|token| *token == GlobToken::Byte(b'/')).any(is_dots) {
        return Err(InvalidGlob { reason: "it has a dot segment, which no canonical path has", offset: 0 });
    }
    Ok(())
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.text).finish()
    }
}

impl fmt::Display for InvalidGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for InvalidGlob {}
