//! The sets of characters that captures may contain, by operator and section. Percent-triplets are units, represented here
//! by their `%`.

use crate::uri::{GEN_DELIM, SUB_DELIM, UNRESERVED, is_in};

/// A set of characters of a URI in normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ByteClass {
    /// The characters of one path segment (`pchar` of RFC 3986).
    Segment,
    /// `Segment` without `,`: several scalars in one `{x,y}`.
    SegmentNoComma,
    /// `Segment` without `;`: the path also has a `{;x}`.
    SegmentNoSemicolon,
    /// `Segment` without both.
    SegmentNoCommaSemicolon,
    /// `Segment` without `&`: `{&x}` outside a query.
    SegmentNoAmpersand,
    /// `Segment` with `/`: `{/x*}`.
    Segments,
    /// `Segment` with `/` and without `;`.
    SegmentsNoSemicolon,
    /// A value in a query that is matched by position.
    QueryValue,
    /// `{+x}`: all except `?` and `#`.
    Reserved,
    /// `{#x}`, and `{+x}` in a query: all except `#`.
    Fragment,
    /// `{+x}` with the option [`Chars::Any`](crate::Chars::Any): all characters.
    All,
}

impl ByteClass {
    /// Whether `byte` is in the class.
    #[inline(always)]
    pub(super) fn has(self, byte: u8) -> bool {
        Classes(1 << self as u8).has(byte)
    }

    /// Whether all of `bytes` are in the class.
    pub(super) fn has_all(self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.has(byte))
    }
}

/// A union of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes(u16);

impl Classes {
    pub(super) fn with(self, class: ByteClass) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `byte` is in one of the classes.
    #[inline(always)]
    pub(super) fn has(self, byte: u8) -> bool {
        TABLE[usize::from(byte)] & self.0 != 0
    }
}

/// The classes of each byte.
static TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = classes(at as u8);
        at += 1;
    }
    table
};

const fn classes(byte: u8) -> u16 {
    let segment = is_in(byte, UNRESERVED | SUB_DELIM) || matches!(byte, b'%' | b':' | b'@');
    let uri = segment || is_in(byte, GEN_DELIM);
    let slash = byte == b'/';
    bit(ByteClass::Segment, segment)
        | bit(ByteClass::SegmentNoComma, segment && byte != b',')
        | bit(ByteClass::SegmentNoSemicolon, segment && byte != b';')
        | bit(ByteClass::SegmentNoCommaSemicolon, segment && byte != b',' && byte != b';')
        | bit(ByteClass::SegmentNoAmpersand, segment && byte != b'&')
        | bit(ByteClass::Segments, segment || slash)
        | bit(ByteClass::SegmentsNoSemicolon, (segment || slash) && byte != b';')
        | bit(ByteClass::QueryValue, segment && byte != b'&' || slash || byte == b'?')
        | bit(ByteClass::Reserved, uri && byte != b'?' && byte != b'#')
        | bit(ByteClass::Fragment, uri && byte != b'#')
        | bit(ByteClass::All, uri)
}

const fn bit(class: ByteClass, is_member: bool) -> u16 {
    (is_member as u16) << class as u8
}
