//! The canonical form of URIs, by which the engine routes, subscribes, caches and compares.
//!
//! Law: URIs are only compared in normal form; the spelling of a peer is only ever echoed. Normalizing resolves no dot
//! segments, drops no default port and lower-cases no host of an unknown scheme: that would hide a traversal from the
//! policy of a template, or merge two different resources of a server.

mod reference;

pub use reference::resolve;

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::ops::Range;

/// Maximum length of a URI in bytes, where no other limit is given.
pub const MAX_URI: usize = 64 * 1024;

/// A text that is not a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidUri {
    /// The reason, as half a sentence.
    pub reason: &'static str,
    /// Its position, in bytes from the beginning.
    pub offset: usize,
}

impl fmt::Display for InvalidUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid URI at offset {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for InvalidUri {}

/// Checks `uri` and returns its normal form, borrowed if it is already in normal form.
///
/// `max_len` is the maximum length of `uri` in bytes, usually [`MAX_URI`]. The normal form has: the scheme in lower case;
/// for http, https, ws, wss and ftp the authority too; percent-triplets in upper case, and decoded where they stand for
/// an unreserved character (`%2F` is not `/`); characters outside ASCII, `|`, `^`, and `[` `]` outside the authority
/// percent-encoded. Its length is between a third of that of `uri` and three times as much. Normalizing is idempotent.
///
/// # Errors
/// [`InvalidUri`] if `uri` is too long, has no scheme, a byte that no URI has, a `%` without two hexadecimal digits,
/// a second `#`, or an invalid authority.
///
/// # Examples
/// ```
/// use mcp_resources_template::uri::normalize;
/// assert_eq!(normalize("NOTE://caf\u{e9}/%41%2fb", 1024)?, "note://caf%C3%A9/A%2Fb");
/// assert!(normalize("note://a b", 1024).is_err());
/// # Ok::<(), mcp_resources_template::uri::InvalidUri>(())
/// ```
pub fn normalize(uri: &str, max_len: usize) -> Result<Cow<'_, str>, InvalidUri> {
    normal_form(uri, max_len, Dialect::Tolerant)
}

/// Like [`normalize`], but accepts only the characters of RFC 3986: no non-ASCII characters, no `|` or `^`, no `[` or
/// `]` outside the authority.
///
/// # Errors
/// [`InvalidUri`], as for [`normalize`].
pub fn normalize_strict(uri: &str, max_len: usize) -> Result<Cow<'_, str>, InvalidUri> {
    normal_form(uri, max_len, Dialect::Strict)
}

/// The scheme of a URI in normal form, without its colon; empty if `normal` has no colon.
pub fn scheme(normal: &str) -> &str {
    normal.split_once(':').map_or("", |(scheme, _)| scheme)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// RFC 3986, and the characters that browsers and IRIs leave unencoded.
    Tolerant,
    /// RFC 3986.
    Strict,
}

/// The positions of the parts of a URI that have their own rules.
struct UriParts {
    /// Length of the scheme, without its colon.
    scheme: usize,
    /// The authority, without its slashes; empty if there is none.
    authority: Range<usize>,
    /// Whether case has no meaning in the authority.
    folds_authority: bool,
    /// The classes of the scheme's bytes, as a sum.
    in_scheme: u8,
    /// The classes of the authority's bytes, as a sum.
    in_authority: u8,
}

fn normal_form(uri: &str, max_len: usize, dialect: Dialect) -> Result<Cow<'_, str>, InvalidUri> {
    if uri.len() > max_len {
        return Err(InvalidUri { reason: "it is longer than allowed", offset: max_len });
    }
    let bytes = uri.as_bytes();
    let layout = layout(bytes)?;
    // Most authorities are a plain name and need no checks.
    let is_name = layout.in_authority & (GEN_DELIM | SPECIAL) == 0;
    if !is_name {
        check_authority(bytes, &layout.authority)?;
    }
    let folds = layout.in_scheme & UPPER != 0
        || layout.folds_authority
            && layout.in_authority & UPPER != 0
            && has_upper_case(&bytes[layout.authority.clone()]);
    let start = if is_name { layout.authority.end } else { layout.authority.start };
    let encodes = check_bytes(bytes, start, &layout, dialect)?;
    Ok(if folds || encodes { Cow::Owned(rewrite(bytes, &layout)) } else { Cow::Borrowed(uri) })
}

fn layout(bytes: &[u8]) -> Result<UriParts, InvalidUri> {
    let (scheme, in_scheme) = run(bytes, SCHEME, SCHEME);
    if bytes.get(scheme) != Some(&b':') || !bytes[0].is_ascii_alphabetic() {
        return Err(InvalidUri { reason: "it does not begin with a scheme and a colon", offset: 0 });
    }
    let rest = scheme + 1;
    let (authority, in_authority) = if bytes[rest..].starts_with(b"//") {
        let (length, classes) = run(&bytes[rest + 2..], ENDS_AUTHORITY, 0);
        (rest + 2..rest + 2 + length, classes)
    } else {
        (rest..rest, 0)
    };
    let folds_authority = folds_authority(&bytes[..scheme]);
    Ok(UriParts { scheme, authority, folds_authority, in_scheme, in_authority })
}

/// The length of the run of bytes whose `mask` classes are `expected`, and the sum of their classes.
#[inline(always)]
fn run(bytes: &[u8], mask: u8, expected: u8) -> (usize, u8) {
    let mut seen = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let class = BYTES[usize::from(byte)];
        if class & mask != expected {
            return (at, seen);
        }
        seen |= class;
    }
    (bytes.len(), seen)
}

/// Checks the structure of the authority; [`check_bytes`] checks its bytes.
fn check_authority(bytes: &[u8], authority: &Range<usize>) -> Result<(), InvalidUri> {
    let text = &bytes[authority.clone()];
    let invalid = |reason, offset| Err(InvalidUri { reason, offset: authority.start + offset });
    let host = text.iter().rposition(|&byte| byte == b'@').map_or(0, |at| at + 1);
    if let Some(offset) =
        text[..host.saturating_sub(1)].iter().position(|byte| matches!(byte, b'@' | b'[' | b']'))
    {
        return invalid("this character may not stand in the user part of an authority", offset);
    }
    let port = if text[host..].starts_with(b"[") {
        let Some(length) = text[host..].iter().position(|&byte| byte == b']') else {
            return invalid("an IP literal is not closed", host);
        };
        if !is_ip_literal(&text[host + 1..host + length]) {
            return invalid("an IP literal is no IPv6 address", host);
        }
        host + length + 1
    } else {
        let port = text[host..].iter().position(|&byte| byte == b':').map_or(text.len(), |at| host + at);
        if let Some(at) = text[host..port].iter().position(|byte| matches!(byte, b'[' | b']')) {
            return invalid("a bracket may only enclose the whole host", host + at);
        }
        port
    };
    match &text[port..] {
        [] => Ok(()),
        [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => invalid("the port is not a number", port),
    }
}

fn is_ip_literal(inner: &[u8]) -> bool {
    if let [b'v' | b'V', future @ ..] = inner {
        let digits = future.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let [b'.', address @ ..] = &future[digits..] else { return false };
        let legal = |&byte: &u8| byte == b':' || is_in(byte, UNRESERVED | SUB_DELIM);
        return digits > 0 && !address.is_empty() && address.iter().all(legal);
    }
    std::str::from_utf8(inner).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Checks each byte from `at` on; returns whether any must be decoded, encoded or upper-cased.
fn check_bytes(bytes: &[u8], mut at: usize, layout: &UriParts, dialect: Dialect) -> Result<bool, InvalidUri> {
    let mut encodes = false;
    let mut fragment = false;
    loop {
        at += run(&bytes[at..], SPECIAL, 0).0;
        let Some(&byte) = bytes.get(at) else { return Ok(encodes) };
        let class = BYTES[usize::from(byte)];
        at += 1;
        let offset = at - 1;
        match byte {
            b'#' if !fragment => fragment = true,
            b'#' => return Err(InvalidUri { reason: "it has a second #", offset }),
            b'%' => {
                let Some(value) = hex_pair(&bytes[at..]) else {
                    return Err(InvalidUri {
                        reason: "a % is not followed by two hexadecimal digits",
                        offset,
                    });
                };
                encodes |= is_in(value, UNRESERVED) || bytes[at..at + 2].iter().any(u8::is_ascii_lowercase);
                at += 2;
            }
            b'[' | b']' if layout.authority.contains(&offset) => {}
            _ if class & TOLERATED != 0 && dialect == Dialect::Tolerant => encodes = true,
            _ => return Err(InvalidUri { reason: "this character may not stand in a URI", offset }),
        }
    }
}

/// Whether a letter outside percent-triplets is upper-case.
fn has_upper_case(text: &[u8]) -> bool {
    let in_triplet = |at: usize| text[at.saturating_sub(2)..at].contains(&b'%');
    text.iter().enumerate().any(|(at, byte)| byte.is_ascii_uppercase() && !in_triplet(at))
}

fn rewrite(bytes: &[u8], layout: &UriParts) -> String {
    let mut out = String::with_capacity(bytes.len() + 16);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let in_authority = layout.authority.contains(&at);
        let folds = at < layout.scheme || in_authority && layout.folds_authority;
        let triplet = if byte == b'%' { hex_pair(&bytes[at + 1..]) } else { None };
        at += if triplet.is_some() { 3 } else { 1 };
        match triplet {
            Some(value) if is_in(value, UNRESERVED) => push(&mut out, value, folds),
            Some(value) => push_encoded(&mut out, value),
            None if is_in(byte, TOLERATED) && !(in_authority && is_in(byte, GEN_DELIM)) => {
                push_encoded(&mut out, byte)
            }
            None => push(&mut out, byte, folds),
        }
    }
    out
}

fn push(out: &mut String, byte: u8, folds: bool) {
    out.push(char::from(if folds { byte.to_ascii_lowercase() } else { byte }));
}

/// Letters, digits, `-`, `.`, `_`, `~`.
pub(crate) const UNRESERVED: u8 = 1;
/// The sub-delimiters of RFC 3986.
pub(crate) const SUB_DELIM: u8 = 2;
/// The general delimiters of RFC 3986.
pub(crate) const GEN_DELIM: u8 = 4;
/// Bytes that are percent-encoded if they occur unencoded: those of non-ASCII characters, `|`, `^`, and brackets
/// outside the authority.
const TOLERATED: u8 = 8;
/// Bytes that are not valid everywhere, or need a change: they are examined one by one.
const SPECIAL: u8 = 16;
/// The characters of a scheme after the first one.
const SCHEME: u8 = 32;
/// Upper-case letters.
const UPPER: u8 = 64;
/// The bytes that end an authority.
const ENDS_AUTHORITY: u8 = 128;

const BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        table[at] = match byte {
            b'A'..=b'Z' => UNRESERVED | SCHEME | UPPER,
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => UNRESERVED | SCHEME,
            b'_' | b'~' => UNRESERVED,
            b'+' => SUB_DELIM | SCHEME,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b',' | b';' | b'=' => SUB_DELIM,
            b':' | b'@' => GEN_DELIM,
            b'/' | b'?' => GEN_DELIM | ENDS_AUTHORITY,
            b'#' => GEN_DELIM | ENDS_AUTHORITY | SPECIAL,
            b'[' | b']' => GEN_DELIM | TOLERATED | SPECIAL,
            b'|' | b'^' | 0x80..=0xff => TOLERATED | SPECIAL,
            _ => SPECIAL,
        };
        at += 1;
    }
    table
};

/// Whether `byte` is in one of the `classes` (a sum of the constants above).
pub(crate) const fn is_in(byte: u8, classes: u8) -> bool {
    BYTES[byte as usize] & classes != 0
}

// Hidden, for `mcp-resources-engine`: its guard normalizes globs as URIs are normalized.

/// Whether `byte` is a letter, a digit, `-`, `.`, `_` or `~`.
#[doc(hidden)]
pub const fn is_unreserved(byte: u8) -> bool {
    is_in(byte, UNRESERVED)
}

/// The length of the scheme at the beginning of `bytes`, without its colon.
#[doc(hidden)]
pub fn scheme_len(bytes: &[u8]) -> Option<usize> {
    let (length, _) = run(bytes, SCHEME, SCHEME);
    (bytes.get(length) == Some(&b':') && bytes[0].is_ascii_alphabetic()).then_some(length)
}

/// Whether the authority of this scheme (in any case) is a host name, in which case has no meaning.
#[doc(hidden)]
pub fn folds_authority(scheme: &[u8]) -> bool {
    matches!(scheme.first(), Some(b'h' | b'H' | b'w' | b'W' | b'f' | b'F'))
        && [&b"http"[..], b"https", b"ws", b"wss", b"ftp"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
}

/// The byte for two hexadecimal digits at the beginning of `digits`.
#[doc(hidden)]
pub fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

/// Appends the percent-triplet of `byte`.
#[doc(hidden)]
pub fn push_encoded(out: &mut String, byte: u8) {
    let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
    out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}

/// Appends `bytes`, each as its percent-triplet unless `is_plain` accepts it, which it may for ASCII alone.
///
/// ```
/// let mut uri = String::from("note:///");
/// mcp_resources_template::uri::encode(&mut uri, b"a b", |byte| byte.is_ascii_alphanumeric());
/// assert_eq!(uri, "note:///a%20b");
/// ```
pub fn encode(out: &mut String, bytes: &[u8], is_plain: impl Fn(u8) -> bool) {
    for &byte in bytes {
        if byte.is_ascii() && is_plain(byte) {
            out.push(char::from(byte));
        } else {
            push_encoded(out, byte);
        }
    }
}

/// Decodes percent-triplets once. A `%` without two hexadecimal digits stays as it is. `None` if the result is not UTF-8.
///
/// ```
/// use mcp_resources_template::uri::decode;
/// assert_eq!(decode("100%25%").as_deref(), Some("100%%"));
/// assert_eq!(decode("%ff"), None);
/// ```
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    decoded(text, false)
}

/// The same, but `None` for a `%` without two hexadecimal digits.
pub(crate) fn decode_strict(text: &str) -> Option<Cow<'_, str>> {
    decoded(text, true)
}

fn decoded(text: &str, is_strict: bool) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let Some(first) = memchr::memchr(b'%', bytes) else { return Some(Cow::Borrowed(text)) };
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..first]);
    let mut at = first;
    while let Some(&byte) = bytes.get(at) {
        let triplet = if byte == b'%' { hex_pair(&bytes[at + 1..]) } else { None };
        if is_strict && byte == b'%' && triplet.is_none() {
            return None;
        }
        out.push(triplet.unwrap_or(byte));
        at += if triplet.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests;
