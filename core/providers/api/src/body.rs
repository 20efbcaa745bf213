//! Converts the body of an answer into served contents: decoded text, or bytes.
//!
//! Law: a byte order mark decides the encoding, then the `charset` of the media type, then UTF-8. Text is served
//! without mark and charset. Text that cannot be decoded is served as bytes, with the charset in its media type, so
//! that a client can decode it.

use super::cache::CachedBody;
use super::pick::{Picked, Pointer};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, X_USER_DEFINED};
use std::borrow::Cow;
use ureq::http::HeaderMap;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// The longest name of a charset.
const CHARSET: usize = 64;

/// The contents to serve, with their media type.
///
/// # Errors
/// Why nothing of it can be served: half a sentence.
pub(super) fn contents(
    bytes: Vec<u8>,
    headers: &HeaderMap,
    pick: Option<&Pointer>,
) -> Result<(CachedBody, String), &'static str> {
    let media = MediaType::read(headers);
    if let Some(pointer) = pick {
        let text = media.decode(&bytes, true).ok_or("the answer is no JSON")?;
        return match pointer.pick(&text) {
            None => Err("the answer is no JSON"),
            Some(Picked::Nothing) => Err("the answer has nothing where `pick` leads"),
            Some(Picked::Text(text)) => Ok((CachedBody::Text(text.into()), "text/plain".into())),
            Some(Picked::Json(json)) => Ok((CachedBody::Text(json.into()), "application/json".into())),
        };
    }
    // Many small APIs send no media type: what is text is served as text then.
    if !media.name.is_empty() && !is_text(&media.name) {
        return Ok((CachedBody::Blob(bytes.into()), media.of_bytes(false)));
    }
    match media.decode(&bytes, is_json_type(&media.name)) {
        Some(text) if media.name.is_empty() => {
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            let mime_type = if is_json { "application/json" } else { "text/plain" };
            Ok((CachedBody::Text(text.into()), mime_type.into()))
        }
        Some(text) => Ok((CachedBody::Text(text.into()), media.name)),
        None => {
            let mime_type = media.of_bytes(true);
            Ok((CachedBody::Blob(bytes.into()), mime_type))
        }
    }
}

/// The unrequested coding of an answer: half a sentence.
pub(super) fn coding(headers: &HeaderMap) -> Option<String> {
    const KNOWN: [&str; 7] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
    let values = headers.get_all(CONTENT_ENCODING).into_iter();
    let codings: Vec<String> = values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|coding| String::from_utf8_lossy(coding.trim_ascii()).to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect();
    let first = codings.first()?;
    Some(match KNOWN.iter().find(|known| *known == first) {
        Some(known) => format!("the answer is compressed with {known}, and only plain answers are asked for"),
        None => "the answer has an unknown `Content-Encoding`, and only plain answers are asked for".into(),
    })
}

/// The media type of an answer.
struct MediaType {
    /// `type/subtype` in lower case, or the text in its place.
    name: String,
    /// As it is given, if it is a name.
    charset: Option<String>,
}

impl MediaType {
    fn read(headers: &HeaderMap) -> Self {
        let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut parts = parameters(text).into_iter();
        let name = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']).trim();
            let is_name = (1..=CHARSET).contains(&value.len()) && is_token(value);
            (key.trim().eq_ignore_ascii_case("charset") && is_name).then(|| value.to_owned())
        });
        Self { name, charset }
    }

    /// The text of `bytes`; `None` if they are none in this charset.
    fn decode<'b>(&self, bytes: &'b [u8], is_json: bool) -> Option<String> {
        let (encoding, bytes) = match Encoding::for_bom(bytes) {
            Some((encoding, mark)) => (encoding, bytes.get(mark..).unwrap_or_default()),
            None => {
                let named = self.charset.as_deref().map(|name| Encoding::for_label(name.as_bytes()));
                let guessed = || if is_json { utf_16_of_json(bytes) } else { None };
                let encoding = match named {
                    Some(named) => named.filter(|known| *known != REPLACEMENT && *known != X_USER_DEFINED)?,
                    None => guessed().unwrap_or(UTF_8),
                };
                (encoding, bytes)
            }
        };
        let text: Cow<'b, str> = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        Some(text.into_owned())
    }

    /// The media type of contents served as bytes; `is_undecoded` if they are text.
    fn of_bytes(&self, is_undecoded: bool) -> String {
        match (is_media_type(&self.name), &self.charset) {
            (true, Some(charset)) if is_undecoded => format!("{}; charset={charset}", self.name),
            (true, _) => self.name.clone(),
            (false, _) => "application/octet-stream".into(),
        }
    }
}

/// The parts of a header's value between `;`, except in quotes.
fn parameters(text: &str) -> Vec<&str> {
    let mut is_quoted = false;
    text.split(|letter| {
        is_quoted ^= letter == '"';
        letter == ';' && !is_quoted
    })
    .collect()
}

/// Old JSON without a charset may be in UTF-16: it begins with an ASCII character (RFC 4627, 3).
fn utf_16_of_json(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [0, first, ..] if *first != 0 => Some(UTF_16BE),
        // With two more zeros it is UTF-32.
        [first, 0, third, fourth, ..] if *first != 0 && (*third != 0 || *fourth != 0) => Some(UTF_16LE),
        [first, 0] if *first != 0 => Some(UTF_16LE),
        _ => None,
    }
}

fn is_json_type(mime_type: &str) -> bool {
    mime_type == "application/json" || mime_type.ends_with("+json")
}

fn is_text(mime_type: &str) -> bool {
    const TEXTS: [&str; 5] = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/yaml",
        "image/svg+xml",
    ];
    is_media_type(mime_type)
        && (mime_type.starts_with("text/")
            || mime_type.ends_with("+json")
            || mime_type.ends_with("+xml")
            || TEXTS.contains(&mime_type))
}

/// `type/subtype`, of characters that such names have.
fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| (1..128).contains(&name.len()) && is_token(name);
    text.split_once('/').is_some_and(|(kind, name)| is_name(kind) && is_name(name))
}

fn is_token(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(
        content_type: &str,
        bytes: &[u8],
        pick: Option<&str>,
    ) -> Result<(CachedBody, String), &'static str> {
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        }
        contents(bytes.to_vec(), &headers, pick.and_then(Pointer::parse).as_ref())
    }

    fn utf_16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    // S-20: text is decoded by its mark, its charset, or as UTF-8, and served without both.
    #[test]
    fn text_is_decoded() {
        let little = u16::to_le_bytes as fn(u16) -> [u8; 2];
        let big = u16::to_be_bytes as fn(u16) -> [u8; 2];
        for (content_type, bytes, text, mime_type) in [
            ("text/plain", "é".as_bytes().to_vec(), "é", "text/plain"),
            ("text/plain; charset=ISO-8859-1", vec![0xC3, 0xA9], "Ã©", "text/plain"),
            ("text/html;Charset=\"iso-2022-jp\"", b"\x1b$B8!:w\x1b(B".to_vec(), "検索", "text/html"),
            ("text/html; x=\";charset=utf-8\"; charset=Shift_JIS", vec![0x8C, 0x9F], "検", "text/html"),
            ("text/html; charset=GBK", vec![0xBC, 0xEC], "检", "text/html"),
            ("text/plain; charset=utf-16le", utf_16("hello", little), "hello", "text/plain"),
            ("text/plain; charset=utf-16", utf_16("\u{feff}é", big), "é", "text/plain"),
            ("application/json; charset=utf-16", utf_16("\u{feff}{}", little), "{}", "application/json"),
            ("application/json", utf_16("[1]", big), "[1]", "application/json"),
            ("application/json", utf_16("[1]", little), "[1]", "application/json"),
            ("application/json", "\u{feff}{}".as_bytes().to_vec(), "{}", "application/json"),
            ("", "\u{feff}{}".as_bytes().to_vec(), "{}", "application/json"),
            ("", "\u{feff}x".as_bytes().to_vec(), "x", "text/plain"),
            ("", utf_16("\u{feff}x", big), "x", "text/plain"),
            ("text/plain; charset=iso-8859-1", "\u{feff}é".as_bytes().to_vec(), "é", "text/plain"),
            ("text/plain; charset=", "é".as_bytes().to_vec(), "é", "text/plain"),
        ] {
            let expected = Ok((CachedBody::Text(text.into()), mime_type.to_owned()));
            assert_eq!(served(content_type, &bytes, None), expected, "{content_type}: {text}");
        }
        let json = utf_16("{\"a\": \"é\"}", little);
        for content_type in ["application/json; charset=utf-16le", "application/json", ""] {
            let expected = Ok((CachedBody::Text("é".into()), "text/plain".to_owned()));
            assert_eq!(served(content_type, &json, Some("/a")), expected, "{content_type}");
        }
    }

    // S-20: what is no text in its charset, or has one that is unknown, is served as bytes that a client can decode.
    #[test]
    fn what_cannot_be_decoded_keeps_its_charset() {
        for (content_type, bytes, mime_type) in [
            ("text/html; charset=UTF-7", &b"+AGE-"[..], "text/html; charset=UTF-7"),
            ("text/html; charset=utf-32", b"\0\0\0a", "text/html; charset=utf-32"),
            ("text/html; charset=hz-gb-2312", b"~{", "text/html; charset=hz-gb-2312"),
            ("text/html; charset=shift_jis", b"\x80\xFF", "text/html; charset=shift_jis"),
            ("text/html; charset=\"a b\"", b"\xFF", "text/html"),
            ("text/html", b"\xFF", "text/html"),
            ("", b"\xFF", "application/octet-stream"),
            ("image/png; charset=utf-8", b"abc", "image/png"),
            ("no type", b"\xFF", "application/octet-stream"),
        ] {
            let expected = Ok((CachedBody::Blob(bytes.into()), mime_type.to_owned()));
            assert_eq!(served(content_type, bytes, None), expected, "{content_type}");
        }
        assert_eq!(served("application/json; charset=utf-7", b"{}", Some("")), Err("the answer is no JSON"));
    }

    // S-20: no coding is what several headers may say; another one is named.
    #[test]
    fn codings() {
        for (values, named) in [
            (&[][..], None),
            (&["Identity"], None),
            (&[""], None),
            (&["identity, IDENTITY", ","], None),
            (&["identity, GZip"], Some("gzip")),
            (&["identity", "br"], Some("br")),
            (&["aes128gcm"], Some("unknown")),
            (&["é"], Some("unknown")),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers
                    .append(CONTENT_ENCODING, ureq::http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let found = coding(&headers);
            assert_eq!(found.is_some(), named.is_some(), "{values:?}");
            assert!(named.is_none_or(|named| found.unwrap().contains(named)), "{values:?}");
        }
    }
}
