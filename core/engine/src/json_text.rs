//! Writes text as a JSON string. The output never contains a raw control character, so a string never breaks a line of
//! the stdio framing. Non-ASCII text is written unescaped, in UTF-8.

mod dense;

/// Maximum number of bytes escaped at once. The kernel requires room for six bytes per input byte; with blocks, a large
/// text reserves little more than it needs.
const BLOCK: usize = 8 * 1024;
/// The first block of a large text, from which the density of its escapes is estimated.
const PROBE: usize = 1024;
/// A block with more than one escape in this many bytes is dense. The kernel is fastest where escapes are rare; each of
/// them makes it start again, which costs it as much as some 250 clean bytes.
const DENSE: usize = 64;

/// Appends `text` to `out` as a JSON string, quotes included.
///
/// # Examples
/// ```
/// let mut out = Vec::new();
/// mcp_resources_engine::json_text::escape_into("say \"hi\"\n", &mut out);
/// assert_eq!(out, br#""say \"hi\"\n""#);
/// ```
pub fn escape_into(text: &str, out: &mut Vec<u8>) {
    if text.len() <= PROBE {
        return json_escape_simd::escape_into(text, out);
    }
    out.reserve(text.len() + 6 * BLOCK);
    out.extend_from_slice(b"\"\"");
    continue_into(text, out);
}

/// Continues the JSON string at the end of `out`: `"a"` and the text `b` become `"ab"`.
pub fn continue_into(text: &str, out: &mut Vec<u8>) {
    let (mut block, mut rest) = split_block(text, PROBE);
    let mut is_dense = false;
    while !block.is_empty() {
        let before = out.len();
        if is_dense {
            // The closing quote moves behind the block.
            out.pop();
            dense::append(block.as_bytes(), out);
            out.push(b'"');
        } else {
            append_block(block, out);
        }
        let grown = (out.len() - before).saturating_sub(block.len());
        is_dense = grown > block.len() / DENSE;
        (block, rest) = split_block(rest, BLOCK);
    }
}

/// Whether `text` needs no escapes in a JSON string.
pub fn is_plain(text: &str) -> bool {
    plain_end(text.as_bytes(), 0) == text.len()
}

/// Continues the JSON string at the end of `out` with `block`.
fn append_block(block: &str, out: &mut Vec<u8>) {
    // The kernel writes an opening quote of its own. Let it overwrite the last byte before the existing closing quote,
    // and restore that byte afterwards.
    out.pop();
    let Some(last) = out.pop() else { return };
    let seam = out.len();
    json_escape_simd::escape_into(block, out);
    if let Some(byte) = out.get_mut(seam) {
        *byte = last;
    }
}

/// Splits off at most `size` bytes, at a character boundary.
fn split_block(text: &str, size: usize) -> (&str, &str) {
    if text.len() <= size {
        return (text, "");
    }
    (size - 3..=size).rev().find_map(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

/// The position of the first quote, backslash or control character from `at` on; the length of `bytes` if none.
#[inline(always)]
pub(crate) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    plain_tail(bytes, at)
}

/// Like [`plain_end`] for the last bytes, fewer than eight.
#[inline]
fn plain_tail(bytes: &[u8], at: usize) -> usize {
    let left = bytes.len().saturating_sub(at);
    let Some(word) = bytes.last_chunk().filter(|_| left > 0) else {
        let special = |&byte: &u8| special_bytes(u64::from(byte)) & 0x80 != 0;
        return bytes.iter().skip(at).position(special).map_or(bytes.len(), |run| at + run);
    };
    // Bytes before `at` are shifted out; the zeros shifted in stop the run at the end.
    let special = special_bytes(u64::from_le_bytes(*word) >> (64 - 8 * left));
    at + special.trailing_zeros() as usize / 8
}

/// Sets the high bit of each byte that is a quote, a backslash or a control character. A borrow may also set bits above
/// the lowest correct one, but never below it.
#[inline(always)]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Exchanging 0x20..=0x21 with 0x22..=0x23 moves the quote next to the control characters, so one comparison finds
    // both.
    let control_or_quote = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control_or_quote | backslash) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut out = b"before".to_vec();
        escape_into(text, &mut out);
        String::from_utf8(out.split_off(6)).unwrap()
    }

    proptest! {
        // R-145: serde_json is the oracle.
        #[test]
        fn agrees_with_serde_json(text in any::<String>(), dense in "[\"\\\\\u{0}-\u{20}a-c\u{7f}é資😀]{0,300}") {
            for text in [text, dense] {
                prop_assert_eq!(escaped(&text), serde_json::to_string(&text).unwrap());
            }
        }

        /// Block boundaries do not show in the output, wherever a character or an escape is split.
        #[test]
        fn big_texts_agree_with_serde_json(pad in 0usize..8, piece in "[\"\\\\\n\u{1}a資😀]{1,9}") {
            let text = "x".repeat(pad) + &piece.repeat(3 * BLOCK / piece.len() + 1);
            prop_assert_eq!(escaped(&text), serde_json::to_string(&text).unwrap());
        }

        /// Nor does the change between parts with many escapes and parts with few.
        #[test]
        fn parts_of_any_density_agree_with_serde_json(parts in proptest::collection::vec(("[\"\\\\\n\u{1}a-e資😀]{1,90}", 1..2 * BLOCK), 1..5)) {
            let text: String = parts.iter().map(|(piece, size)| piece.repeat(size / piece.len() + 1)).collect();
            prop_assert_eq!(escaped(&text), serde_json::to_string(&text).unwrap());
        }

        /// However a text is cut, its parts make the same string.
        #[test]
        fn a_text_in_parts_is_the_same_string(parts in proptest::collection::vec("[\"\\\\\na-c資]{0,300}", 0..40)) {
            let mut out = b"\"\"".to_vec();
            parts.iter().for_each(|part| continue_into(part, &mut out));
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&parts.concat()).unwrap());
        }
    }

    #[test]
    fn a_big_clean_text_reserves_little_more_than_it_takes() {
        let text = "a".repeat(1 << 20);
        let mut out = Vec::new();
        escape_into(&text, &mut out);
        assert!(out.capacity() < (1 << 20) + 8 * BLOCK, "{}", out.capacity());
    }
}
