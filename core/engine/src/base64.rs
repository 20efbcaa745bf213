//! Base64 encoding and decoding: the standard alphabet with padding for blobs, the URL-safe alphabet without
//! padding for cursors and sealed states. No line breaks and no other variants; decoding accepts only the canonical
//! form.

use base64_simd::{STANDARD, URL_SAFE_NO_PAD};

/// Appends the base64 form of `src` to `out`: standard alphabet, padded, no line breaks.
///
/// Writes straight into `out`; grows it at most once.
pub fn encode_into(src: &[u8], out: &mut Vec<u8>) {
    // `encode_append` reserves the exact length, so many small appends would reallocate each time.
    out.reserve(encoded_len(src.len()));
    STANDARD.encode_append(src, out);
}

/// The length in bytes of the padded base64 form of `len` bytes (saturates at `usize::MAX`).
pub fn encoded_len(len: usize) -> usize {
    len.div_ceil(3).saturating_mul(4)
}

/// Whether `text` is base64 in the standard alphabet with padding, so that [`decode`] returns `Some`.
pub fn is_valid(text: &str) -> bool {
    STANDARD.check(text.as_bytes()).is_ok()
}

/// Returns the decoded length of `text`, assuming that it is valid padded base64. Looks only at the end of `text`.
pub fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// Decodes base64 in the standard alphabet with padding; `None` if `text` is anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode_to_vec(text).ok()
}

/// Decodes base64 as other encoders write it: in either alphabet, with or without padding, with white space anywhere.
///
/// # Errors
/// The text is not base64; the message says why.
pub fn decode_any(text: &str) -> Result<Vec<u8>, String> {
    if let Some(bytes) = decode(text) {
        return Ok(bytes);
    }
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    if let Some(wrong) = text.bytes().position(|byte| !is_digit(&byte) && !byte.is_ascii_whitespace()) {
        let wrong = text.get(wrong..).and_then(|rest| rest.chars().next()).unwrap_or_default();
        return Err(format!("{wrong:?} is no character of base64"));
    }
    let standard = |byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let digits = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(standard);
    let mut digits: Vec<u8> = digits.collect();
    let padded = digits.len();
    while digits.last() == Some(&b'=') {
        digits.pop();
    }
    // Some encoders pad too much, or too little; what the digits say is clear all the same.
    if padded - digits.len() > 3 || digits.contains(&b'=') {
        return Err("an = stands before its end".into());
    }
    base64_simd::forgiving_decode_to_vec(&digits)
        .map_err(|_| format!("{} digits are no whole bytes", digits.len()))
}

/// The URL-safe base64 form of `src`, without padding.
pub fn encode_url(src: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode_to_string(src)
}

/// Appends the URL-safe base64 form of `src`, without padding, to `out`.
pub fn encode_url_into(src: &[u8], out: &mut String) {
    out.reserve(encoded_len(src.len()));
    URL_SAFE_NO_PAD.encode_append(src, out);
}

/// Decodes URL-safe base64 without padding; `None` if `text` is anything else.
pub fn decode_url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode_to_vec(text).ok()
}

/// Encodes a blob that arrives in chunks of any size, as if it had come in one piece.
///
/// # Examples
/// ```
/// let mut encoder = mcp_resources_engine::base64::Encoder::default();
/// let mut out = Vec::new();
/// encoder.push(b"he", &mut out);
/// encoder.push(b"llo", &mut out);
/// encoder.finish(&mut out);
/// assert_eq!(out, b"aGVsbG8=");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// Bytes that do not make a group of three yet.
    held: [u8; 2],
    len: usize,
}

impl Encoder {
    /// Encodes all complete groups of three bytes into `out`; holds back at most two bytes for the next call.
    pub fn push(&mut self, mut chunk: &[u8], out: &mut Vec<u8>) {
        if self.len > 0 {
            let missing = 3 - self.len;
            let Some((head, rest)) = chunk.split_at_checked(missing) else { return self.hold(chunk) };
            let mut group = [self.held[0], self.held[1], 0];
            group[self.len..].copy_from_slice(head);
            encode_into(&group, out);
            self.len = 0;
            chunk = rest;
        }
        let (whole, rest) = chunk.split_at(chunk.len() - chunk.len() % 3);
        encode_into(whole, out);
        self.hold(rest);
    }

    /// Appends the last group with its padding, and resets the encoder.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        encode_into(&self.held[..self.len], out);
        self.len = 0;
    }

    /// Holds `bytes` back until the next chunk completes their group of three.
    fn hold(&mut self, bytes: &[u8]) {
        self.held[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::base64::Engine as _;
    use ::base64::engine::general_purpose;
    use proptest::prelude::*;

    proptest! {
        // R-064: the `base64` crate is the oracle, in both alphabets and directions.
        #[test]
        fn agrees_with_the_base64_crate(src in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut out = b"before".to_vec();
            encode_into(&src, &mut out);
            let text = general_purpose::STANDARD.encode(&src);
            prop_assert_eq!(&out[6..], text.as_bytes());
            prop_assert_eq!(encoded_len(src.len()), text.len());
            prop_assert_eq!(decode(&text), Some(src.clone()));
            prop_assert!(is_valid(&text));
            prop_assert_eq!(decoded_len(&text), src.len());
            let url = general_purpose::URL_SAFE_NO_PAD.encode(&src);
            prop_assert_eq!(encode_url(&src), url.clone());
            prop_assert_eq!(decode_url(&url), Some(src));
        }

        // R-064: any chunking of a blob gives the same text.
        #[test]
        fn chunks_make_the_same_text(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..40)) {
            let mut encoder = Encoder::default();
            let mut out = Vec::new();
            chunks.iter().for_each(|chunk| encoder.push(chunk, &mut out));
            encoder.finish(&mut out);
            prop_assert_eq!(out, general_purpose::STANDARD.encode(chunks.concat()).into_bytes());
        }

        #[test]
        fn decodes_what_the_base64_crate_decodes(text in "[A-Da-d0-3+/=_-]{0,12}") {
            prop_assert_eq!(decode(&text), general_purpose::STANDARD.decode(&text).ok());
            prop_assert_eq!(is_valid(&text), decode(&text).is_some());
            prop_assert!(decoded_len(&text) <= text.len());
            prop_assert_eq!(decode_url(&text), general_purpose::URL_SAFE_NO_PAD.decode(&text).ok());
        }
    }

    proptest! {
        // R-064: every form of an encoder gives the same bytes: line ends, either alphabet, any padding.
        #[test]
        fn every_form_is_decoded(src in proptest::collection::vec(any::<u8>(), 0..200), width in 1usize..80, end in "(\n|\r\n| |\t)", form in 0..4) {
            let text = match form {
                0 => general_purpose::STANDARD.encode(&src),
                1 => general_purpose::STANDARD_NO_PAD.encode(&src),
                2 => general_purpose::URL_SAFE.encode(&src),
                _ => general_purpose::URL_SAFE_NO_PAD.encode(&src),
            };
            let lines: Vec<_> = text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
            prop_assert_eq!(decode_any(&(lines.join(&end) + &end)), Ok(src));
        }
    }

    #[test]
    fn what_is_no_base64_says_why() {
        for (text, why) in [
            ("a!b=", "'!' is no character of base64"),
            ("data:text/plain;base64,aGk=", "':' is no character of base64"),
            ("aGk=aGk=", "an = stands before its end"),
            ("aGkab", "5 digits are no whole bytes"),
            ("é", "'é' is no character of base64"),
        ] {
            assert_eq!(decode_any(text), Err(why.to_owned()), "{text}");
        }
        assert_eq!(decode_any(" \n").unwrap(), b"");
    }

    #[test]
    fn an_encoder_can_be_used_again() {
        let mut encoder = Encoder::default();
        let mut out = Vec::new();
        encoder.push(b"a", &mut out);
        encoder.finish(&mut out);
        encoder.push(b"abc", &mut out);
        encoder.finish(&mut out);
        assert_eq!(out, b"YQ==YWJj");
    }
}
