//! Policies that refuse decoded values (`ValuePolicy`), and the names of the refusals.

use super::options::{UnknownName, ValuePolicy, named_values};
use crate::uri;
use std::borrow::Cow;
use std::str::FromStr;

named_values! {
    /// The reason for refusing a value. Clients cannot tell this from a missing resource.
    Rejection {
        /// A `/`.
        Slash = "Slash",
        /// A `\`.
        Backslash = "Backslash",
        /// A NUL character.
        Nul = "Nul",
        /// Another control character of ASCII.
        Control = "Control",
        /// `.` or `..`, or a segment that is one.
        DotSegment = "DotSegment",
        /// A leading `/` or `\`, or a drive form (`C:`).
        Absolute = "Absolute",
        /// An empty item before the last one of a `{/x*}`.
        EmptySegment = "EmptySegment",
        /// Bytes that are not UTF-8.
        Utf8 = "Utf8",
    }
}

/// Decodes one captured text and checks the value.
pub(super) fn decode(policy: ValuePolicy, raw: &str) -> Result<Cow<'_, str>, Rejection> {
    if raw.bytes().all(|byte| HARMLESS[usize::from(byte)]) {
        return Ok(Cow::Borrowed(raw));
    }
    let value = uri::decode_strict(raw).ok_or(Rejection::Utf8)?;
    check(policy, &value)?;
    Ok(value)
}

/// Bytes that represent themselves, and that every policy permits.
const HARMLESS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b' ';
    while byte < 0x7f {
        table[byte as usize] = !matches!(byte, b'%' | b'/' | b'\\' | b'.' | b':');
        byte += 1;
    }
    table
};

/// Checks one decoded value from left to right; returns the first violation.
fn check(policy: ValuePolicy, value: &str) -> Result<(), Rejection> {
    match policy {
        ValuePolicy::Any => Ok(()),
        ValuePolicy::Segment => segment(value),
        ValuePolicy::Path => path(value),
        ValuePolicy::Text => text(value),
    }
}

fn segment(value: &str) -> Result<(), Rejection> {
    for &byte in value.as_bytes() {
        match byte {
            b'/' => return Err(Rejection::Slash),
            _ => unprintable(byte)?,
        }
    }
    if value == "." || value == ".." {
        return Err(Rejection::DotSegment);
    }
    if has_drive(value) { Err(Rejection::Absolute) } else { Ok(()) }
}

fn path(value: &str) -> Result<(), Rejection> {
    value.as_bytes().iter().try_for_each(|&byte| unprintable(byte))?;
    if value.starts_with('/') || has_drive(value) {
        return Err(Rejection::Absolute);
    }
    if value.split('/').any(|part| part == "." || part == "..") { Err(Rejection::DotSegment) } else { Ok(()) }
}

fn text(value: &str) -> Result<(), Rejection> {
    if value.contains('\0') {
        return Err(Rejection::Nul);
    }
    if value.starts_with(['/', '\\']) || has_drive(value) {
        return Err(Rejection::Absolute);
    }
    if value.split(['/', '\\']).any(|part| part == "..") { Err(Rejection::DotSegment) } else { Ok(()) }
}

fn unprintable(byte: u8) -> Result<(), Rejection> {
    match byte {
        b'\\' => Err(Rejection::Backslash),
        0 => Err(Rejection::Nul),
        1..=0x1f | 0x7f => Err(Rejection::Control),
        _ => Ok(()),
    }
}

fn has_drive(value: &str) -> bool {
    matches!(value.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}
