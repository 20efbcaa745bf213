//! Finds secrets that an answer repeats, in any encoding.
//!
//! ```text
//!   secret ──▶ its words, and what they decode to ──▶ one automaton
//!   answer ──▶ as it is ─ unescaped ─ unescaped again … ──▶ searched
//! ```
//!
//! Law: an API that echoes its request encodes it in the notation of its format. So an answer is searched as it is, and
//! as readers of JSON, XML, HTML, forms, mail and base64 decode it, also with one encoding inside another. This finds
//! secrets that a server repeats by accident. It does not protect against a server that hides them on purpose, which
//! has the secret anyway.

use aho_corasick::{AhoCorasick, BuildError};
use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Shortest word that is looked for: shorter ones may be in an answer by chance.
const SHORTEST: usize = 8;
/// Maximum number of encodings inside one another that are undone.
const DEEPEST: usize = 3;
/// Maximum amount of decoded text to search: bytes for each byte of an answer, and the minimum in bytes.
const EFFORT: (usize, usize) = (64, 1 << 20);
/// The shortest runs that are taken for base64 and hexadecimal digits: those of a shortest word.
const BASE64: usize = 11;
const HEX: usize = 16;

/// The words of one secret value.
#[derive(Debug)]
pub(super) struct SecretWords(AhoCorasick);

/// Rewrites a text the way a reader of one format sees it.
type Decoder = fn(&[u8]) -> Vec<u8>;
/// Each with the bytes without which it changes nothing; none are those of any text.
const DECODERS: [(&[u8], Decoder); 9] = [
    (b"\\", unescaped),
    (b"%", percent_decoded),
    (b"&", without_entities),
    (b"=", without_quoted_printable),
    (b"\0", without_nuls),
    (b"\r\n", without_folds),
    (b"<", without_markup),
    (b"", base64_decoded),
    (b"", hex_decoded),
];

impl SecretWords {
    /// The words of a header's value; `None` if all of them are too short.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn new(value: &str) -> Result<Option<Self>, BuildError> {
        let mut words = HashSet::new();
        collect(value.as_bytes(), &mut words);
        for word in value.split_ascii_whitespace() {
            // `Basic` has a password in base64, and other values are percent-encoded.
            collect(&base64_decoded(word.as_bytes()), &mut words);
            let decoded = percent_decoded(word.as_bytes());
            if decoded != word.as_bytes() {
                collect(&decoded, &mut words);
            }
        }
        if words.is_empty() {
            return Ok(None);
        }
        AhoCorasick::builder().ascii_case_insensitive(true).build(words).map(|words| Some(Self(words)))
    }

    /// Whether an answer has one of the words.
    pub(super) fn are_in(&self, answer: &[u8]) -> bool {
        let mut effort = answer.len().saturating_mul(EFFORT.0).max(EFFORT.1);
        let mut seen = HashSet::new();
        let mut texts = vec![Cow::Borrowed(answer)];
        for depth in 0..=DEEPEST {
            let mut decoded = Vec::new();
            for text in &texts {
                if self.0.is_match(text.as_ref()) {
                    return true;
                }
                if depth == DEEPEST {
                    continue;
                }
                for (needed, decode) in DECODERS {
                    if !needed.is_empty() && !text.iter().any(|byte| needed.contains(byte)) {
                        continue;
                    }
                    let other = decode(text);
                    effort = effort.saturating_sub(text.len());
                    if effort == 0 {
                        return self.is_in_any(&decoded);
                    }
                    if other.len() >= SHORTEST && seen.insert(digest(&other)) {
                        decoded.push(Cow::Owned(other));
                    }
                }
            }
            texts = decoded;
        }
        false
    }

    fn is_in_any(&self, texts: &[Cow<'_, [u8]>]) -> bool {
        texts.iter().any(|text| self.0.is_match(text.as_ref()))
    }
}

/// Adds a value, its words, and the parts of those: the text behind a `=` or between separators.
fn collect(value: &[u8], words: &mut HashSet<Vec<u8>>) {
    let mut add = |word: &[u8]| {
        let word = word.trim_ascii();
        if word.len() >= SHORTEST {
            words.insert(word.to_vec());
        }
    };
    // A scheme such as `Negotiate` is no secret.
    let is_several = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() > 1;
    add(value);
    for (at, word) in value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).enumerate() {
        if at == 0 && is_several && word.iter().all(|byte| byte.is_ascii_alphabetic()) {
            continue;
        }
        add(word);
        for part in word.split(|byte| b",;&\"':".contains(byte)) {
            add(part);
            // The name before it is no secret.
            if let Some(at) = part.iter().position(|byte| *byte == b'=') {
                add(&part[at + 1..]);
            }
        }
    }
}

fn digest(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Escapes with a backslash: those of JSON, JavaScript, YAML, TOML, CSS and C.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        let Some(&escape) = text.get(at).filter(|_| byte == b'\\') else {
            out.push(byte);
            continue;
        };
        let braced = text.get(at + 1) == Some(&b'{');
        let digits = match escape {
            b'u' | b'x' if braced => Some((at + 2, 1..=6, 16)),
            b'u' => Some((at + 1, 4..=4, 16)),
            b'x' => Some((at + 1, 2..=2, 16)),
            b'U' => Some((at + 1, 8..=8, 16)),
            b'0'..=b'7' => Some((at, 1..=3, 8)),
            _ => None,
        };
        let number = digits.and_then(|(from, lengths, radix)| {
            let max = text.get(from..text.len().min(from + lengths.end()))?;
            let length = max.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
            let number = number(max.get(..length)?, radix).filter(|_| lengths.contains(&length))?;
            let end = from + length;
            Some((number, if text.get(end) == Some(&b'}') && braced { end + 1 } else { end }))
        });
        match (number, escape) {
            (Some((number, end)), _) => {
                push(number, &mut out);
                at = end;
            }
            (None, b'\r' | b'\n') => at += 1,
            (None, b'n' | b'r' | b't' | b'b' | b'f' | b'u' | b'x' | b'U') => {
                out.push(b'\n');
                at += 1;
            }
            (None, other) => {
                out.push(other);
                at += 1;
            }
        }
    }
    out
}

/// `%41`, and the `%u0041` of old scripts.
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    replaced(text, b'%', |rest| match rest.first() {
        Some(b'u') => number(rest.get(1..5)?, 16).map(|number| (number, 5)),
        _ => number(rest.get(..2)?, 16).map(|number| (number, 2)),
    })
}

/// `=41`, and lines that are wrapped with a `=` at their end.
fn without_quoted_printable(text: &[u8]) -> Vec<u8> {
    let unwrapped: Vec<u8> = {
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match text.get(at..).unwrap_or_default() {
                [b'=', b'\r', b'\n', ..] => at += 3,
                [b'=', b'\n', ..] => at += 2,
                _ => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
        out
    };
    replaced(&unwrapped, b'=', |rest| number(rest.get(..2)?, 16).map(|number| (number, 2)))
}

/// The references of HTML and XML to characters that a secret may have.
fn without_entities(text: &[u8]) -> Vec<u8> {
    const NAMED: [(&[u8], u8); 40] = [
        (b"amp", b'&'),
        (b"lt", b'<'),
        (b"gt", b'>'),
        (b"quot", b'"'),
        (b"apos", b'\''),
        (b"excl", b'!'),
        (b"num", b'#'),
        (b"dollar", b'$'),
        (b"percnt", b'%'),
        (b"lpar", b'('),
        (b"rpar", b')'),
        (b"ast", b'*'),
        (b"midast", b'*'),
        (b"plus", b'+'),
        (b"comma", b','),
        (b"period", b'.'),
        (b"sol", b'/'),
        (b"colon", b':'),
        (b"semi", b';'),
        (b"equals", b'='),
        (b"quest", b'?'),
        (b"commat", b'@'),
        (b"lsqb", b'['),
        (b"lbrack", b'['),
        (b"bsol", b'\\'),
        (b"rsqb", b']'),
        (b"rbrack", b']'),
        (b"hat", b'^'),
        (b"lowbar", b'_'),
        (b"underbar", b'_'),
        (b"grave", b'`'),
        (b"lcub", b'{'),
        (b"lbrace", b'{'),
        (b"verbar", b'|'),
        (b"vert", b'|'),
        (b"verticalline", b'|'),
        (b"rcub", b'}'),
        (b"rbrace", b'}'),
        (b"hyphen", b'-'),
        (b"dash", b'-'),
    ];
    replaced(text, b'&', |rest| {
        let (digits, from, radix) = match rest {
            [b'#', b'x' | b'X', digits @ ..] => (digits, 2, 16),
            [b'#', digits @ ..] => (digits, 1, 10),
            _ => {
                let end = rest.iter().take(16).position(|byte| *byte == b';')?;
                let name = rest.get(..end)?;
                let (_, byte) = NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
                return Some((u32::from(*byte), end + 1));
            }
        };
        let length = digits.iter().take(8).take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let number = number(digits.get(..length)?, radix)?;
        Some((number, from + length + usize::from(digits.get(length) == Some(&b';'))))
    })
}

/// UTF-16 and UTF-32 as bytes.
fn without_nuls(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| *byte != 0).collect()
}

/// Lines that were wrapped, with their indentation.
fn without_folds(text: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut is_start = false;
    for byte in text {
        match byte {
            b'\r' | b'\n' => {
                while out.last().is_some_and(|last| matches!(last, b' ' | b'\t')) {
                    out.pop();
                }
                is_start = true;
            }
            b' ' | b'\t' if is_start => {}
            _ => {
                out.push(*byte);
                is_start = false;
            }
        }
    }
    out
}

/// Returns the text between the tags, comments and sections of XML and HTML.
fn without_markup(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        let find =
            |end: &[u8]| rest.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
        let skipped = match rest {
            [b'<', b'!', b'[', b'C', b'D', b'A', b'T', b'A', b'[', ..] => Some(9),
            [b']', b']', b'>', ..] => Some(3),
            [b'<', b'!', b'-', b'-', ..] => find(b"-->"),
            [b'<', first, ..] if first.is_ascii_alphabetic() || b"/!?".contains(first) => find(b">"),
            _ => None,
        };
        match skipped {
            Some(length) => at += length,
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Decodes each long enough run of base64, from each of its first four characters, because the encoding may begin at
/// any of them.
fn base64_decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in text.split(|byte| sextet(*byte).is_none()).filter(|run| run.len() >= BASE64) {
        for from in 0..4 {
            let mut bits = 0_u32;
            let mut count = 0;
            for byte in run.get(from..).unwrap_or_default() {
                // The bits that are not used yet are the last ones.
                bits = bits << 6 | u32::from(sextet(*byte).unwrap_or_default());
                count += 6;
                if count >= 8 {
                    count -= 8;
                    out.push((bits >> count & 0xFF) as u8);
                }
            }
            out.push(b'\n');
        }
    }
    out
}

/// The value of a character of base64, in the standard or the URL-safe alphabet.
fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// Decodes each long enough run of hexadecimal digits, from its first and from its second digit.
fn hex_decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in text.split(|byte| !byte.is_ascii_hexdigit()).filter(|run| run.len() >= HEX) {
        for from in 0..2 {
            let pairs = run.get(from..).unwrap_or_default().chunks_exact(2);
            out.extend(pairs.filter_map(mcp_resources_template::uri::hex_pair));
            out.push(b'\n');
        }
    }
    out
}

/// Replaces each sequence that begins with `sign` by the character that `read` decodes from the text behind it. `read`
/// also returns the length of the sequence.
fn replaced(text: &[u8], sign: u8, read: impl Fn(&[u8]) -> Option<(u32, usize)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        let found = if byte == sign { read(text.get(at..).unwrap_or_default()) } else { None };
        match found {
            Some((number, length)) => {
                push(number, &mut out);
                at += length;
            }
            None => out.push(byte),
        }
    }
    out
}

/// Adds a character by its number. A header's value is ASCII: others need no exact form.
fn push(number: u32, out: &mut Vec<u8>) {
    out.push(u8::try_from(number).unwrap_or(b'?'));
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let text =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    u32::from_str_radix(text?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::base64;

    fn repeats(value: &str, answer: impl AsRef<[u8]>) -> bool {
        SecretWords::new(value).unwrap().unwrap().are_in(answer.as_ref())
    }

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        base64::encode_into(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    // S-20: a token is found in every form that readers of an answer undo, also in one form within the other.
    #[test]
    fn a_token_is_found_in_every_form() {
        let token = r#"tk/"s\c-a&+<9"#;
        let value = format!("Bearer {token}");
        let all =
            |form: fn(u32) -> String| token.bytes().map(|byte| form(u32::from(byte))).collect::<String>();
        let json = serde_json::to_string(&token).unwrap();
        let utf16: Vec<u8> = token.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for answer in [
            format!("x{token}y"),
            token.to_ascii_uppercase(),
            json.clone(),
            json.replace('/', "\\/"),
            serde_json::to_string(&json).unwrap(),
            serde_json::to_string(&serde_json::to_string(&json).unwrap()).unwrap(),
            format!("{{{json}: 1}}"),
            all(|byte| format!("\\u{byte:04x}")),
            all(|byte| format!("\\u{{{byte:x}}}")),
            all(|byte| format!("\\x{byte:02X}")),
            all(|byte| format!("\\U{byte:08X}")),
            all(|byte| format!("\\{byte:03o}")),
            all(|byte| format!("%{byte:02x}")),
            all(|byte| format!("%25{byte:02x}")),
            all(|byte| format!("%u{byte:04x}")),
            all(|byte| format!("&#{byte};")),
            all(|byte| format!("&#x{byte:X};")),
            all(|byte| format!("&amp;#{byte};")),
            all(|byte| format!("={byte:02X}")),
            all(|byte| format!("{byte:02x}")),
            all(|byte| format!("\\u0026#{byte};")),
            token.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('/', "&sol;"),
            format!("{}<!-- x -->{}", &token[..4], &token[4..]).replace("<9", "&lt;9"),
            format!("{}]]><![CDATA[{}", &token[..4], &token[4..]).replace("<9", "&lt;9"),
            format!("{}\r\n   {}", &token[..4], &token[4..]),
            format!("{}=\r\n{}", &token[..4], &token[4..]),
            encoded(token.as_bytes()),
            encoded(format!("{{\"a\": {json}}}").as_bytes()),
            encoded(encoded(format!("x{value}").as_bytes()).as_bytes()),
            base64::encode_url(format!("xy{token}").as_bytes()),
            format!("id/{}", encoded(token.as_bytes())),
            encoded(&utf16),
            format!("<a href=\"?t={}\">", all(|byte| format!("%{byte:02x}"))),
        ] {
            assert!(repeats(&value, &answer), "{answer}");
        }
        assert!(repeats(&value, &utf16));
        let utf32: Vec<u8> = token.chars().flat_map(|letter| u32::from(letter).to_be_bytes()).collect();
        assert!(repeats(&value, utf32));
    }

    // S-20: the parts of a value are secrets too, and so is what base64 hides in it; schemes and short words are none.
    #[test]
    fn the_words_of_a_value() {
        let basic = format!("Basic {}", encoded(b"operator:hunter2-canary"));
        for (value, answer, is_repeated) in [
            (&*basic, "hunter2-canary", true),
            (&basic, "operator", true),
            (&basic, "Basic", false),
            ("session=hunter2-canary; theme=dark", "{\"session\":\"hunter2-canary\"}", true),
            ("session=hunter2-canary; theme=dark", "session theme dark", false),
            ("hunter2%2Dcanary", "hunter2-canary", true),
            ("Signature keyId=\"hunter2-canary\"", "keyId Signature", false),
            ("Signature keyId=\"hunter2-canary\"", "hunter2-canary", true),
            ("Token abc 12", "abc 12", false),
            ("Token abc 12", "Token abc 12", true),
            ("hunter2-canary", "hunter2 canary hunter-2-canary", false),
        ] {
            assert_eq!(repeats(value, answer), is_repeated, "{value} in {answer}");
        }
        assert!(SecretWords::new("a bc").unwrap().is_none());
    }

    // S-20: an answer that is made to be decoded for long takes limited time, and a plain one is found clean.
    #[test]
    fn the_effort_is_limited() {
        let nested = r"\\%25&amp;=3D\u005c".repeat(20_000);
        assert!(!repeats("hunter2-canary", &nested));
        assert!(!repeats("hunter2-canary", "aGVsbG8".repeat(50_000)));
        assert!(repeats("hunter2-canary", nested + "hunter2\\u002dcanary"));
    }
}
