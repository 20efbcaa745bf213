//! Framing, text, base64 and seals, each against the plainest way to do the same.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mcp_resources_engine::base64::{Encoder, decode, decode_url, encode_into, encode_url};
use mcp_resources_engine::json_text;
use mcp_resources_engine::jsonrpc::{Line, Lines};
use mcp_resources_engine::seal::{Seal, SealKey};

/// However a stream is cut into chunks, its lines are the same. The first two bytes are the limit and the chunk size.
pub fn lines(data: &[u8]) {
    let [limit, size, stream @ ..] = data else { return };
    let limit = usize::from(*limit);
    let size = usize::from(*size) + 1;
    let split = stream.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let kept = split.filter(|line| line.len() > limit || !line.trim_ascii().is_empty());
    let want: Vec<_> = kept.map(|line| (line.len() <= limit).then(|| line.to_vec())).collect();
    for chunk in [size, 1, stream.len().max(1)] {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        for chunk in stream.chunks(chunk) {
            lines.push(chunk);
            take(&mut lines, &mut seen);
        }
        lines.finish();
        take(&mut lines, &mut seen);
        assert_eq!(seen, want);
    }
}

fn take(lines: &mut Lines, seen: &mut Vec<Option<Vec<u8>>>) {
    while let Some(line) = lines.next() {
        seen.push(match line {
            Line::Message(bytes) => Some(bytes.to_vec()),
            Line::TooLong(_) => None,
        });
    }
}

/// JSON strings are those of `serde_json`, base64 is that of the `base64` crate, in one piece or in chunks.
pub fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for text in [text.clone(), text.repeat(20_000 / text.len().max(1)).into()] {
        let mut out = Vec::new();
        json_text::escape_into(&text, &mut out);
        assert!(serde_json::to_vec(&text).is_ok_and(|want| want == out));
    }

    let mut out = Vec::new();
    let mut chunked = Vec::new();
    let mut encoder = Encoder::default();
    encode_into(data, &mut out);
    assert_eq!(out, STANDARD.encode(data).as_bytes());
    let size = data.first().map_or(1, |&byte| usize::from(byte % 7) + 1);
    data.chunks(size).for_each(|chunk| encoder.push(chunk, &mut chunked));
    encoder.finish(&mut chunked);
    assert_eq!(chunked, out);
    assert_eq!(encode_url(data), URL_SAFE_NO_PAD.encode(data));
    assert_eq!(decode(&text), STANDARD.decode(&*text).ok());
    assert_eq!(decode_url(&text), URL_SAFE_NO_PAD.decode(&*text).ok());
}

/// A sealed text opens, and no other. The first two bytes of the input choose a change of the sealed text.
pub fn seal(data: &[u8]) {
    let [at, with, plain @ ..] = data else { return };
    let seal = Seal::new(&SealKey::derived("fuzz"), &[SealKey::derived("older")]);
    let aad: &[&[u8]] = &[b"context", &[*at]];
    assert_eq!(seal.open("fuzz", aad, &String::from_utf8_lossy(plain)), None);
    let Ok(text) = seal.seal("fuzz", aad, plain) else { return assert!(plain.len() > Seal::MAX_PLAIN) };
    assert_eq!(seal.open("fuzz", aad, &text).as_deref(), Some(plain));
    let mut changed = text.clone().into_bytes();
    let at = usize::from(*at) * changed.len() / 256;
    changed[at] ^= with & 0x7f;
    let changed = String::from_utf8_lossy(&changed);
    assert_eq!(seal.open("fuzz", aad, &changed).is_some(), changed == text);
    assert_eq!(seal.open("other", aad, &text), None);
}
