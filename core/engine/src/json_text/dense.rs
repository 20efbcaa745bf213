//! Escapes text for a JSON string where escapes are frequent, as line ends and quotes are in code and in JSON.
//!
//! Law: 64 bytes are classified at once, into the bits of one word. The loop over the set bits then depends on no earlier
//! load, so the processor works on several escapes at a time.

/// The number of bytes that are classified at once.
const CHUNK: usize = u64::BITS as usize;
/// The number of bytes that are copied at once. Copies may run past the end of a chunk, into what follows it.
const COPY: usize = 32;
/// A chunk with the bytes after it.
const WINDOW: usize = 2 * CHUNK;
/// The longest escape.
const LONGEST: usize = 6;
/// The size of the buffer on the stack. Output is collected there, because growing a vector needs a check for each piece.
const BUFFER: usize = 2048;

/// The escape of each byte, padded; the last byte is its length. Both are loaded at once.
const ESCAPES: [[u8; 8]; 256] = escapes();

const fn escapes() -> [[u8; 8]; 256] {
    let mut escapes = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 0x20 {
        let digits = b"0123456789abcdef";
        let (high, low) = (digits[byte / 16], digits[byte % 16]);
        escapes[byte] = [b'\\', b'u', b'0', b'0', high, low, 0, 6];
        byte += 1;
    }
    let short = *b"\x08b\tt\nn\x0cf\rr\"\"\\\\";
    let mut at = 0;
    while at < short.len() {
        escapes[short[at] as usize] = [b'\\', short[at + 1], 0, 0, 0, 0, 0, 2];
        at += 2;
    }
    escapes
}

/// Appends `bytes`, escaped and without quotes. They may begin and end within a character.
pub(super) fn append(bytes: &[u8], out: &mut Vec<u8>) {
    let mut buffer = [0; BUFFER];
    let mut len = 0;
    let mut rest = bytes;
    while let Some(window) = rest.first_chunk() {
        if len > BUFFER - CHUNK * LONGEST - COPY {
            out.extend_from_slice(&buffer[..len]);
            len = 0;
        }
        len = escape(window, CHUNK, &mut buffer, len);
        rest = &rest[CHUNK..];
    }
    out.extend_from_slice(&buffer[..len]);
    // Fewer than a window.
    for chunk in rest.chunks(CHUNK) {
        let mut window = [0; WINDOW];
        window[..chunk.len()].copy_from_slice(chunk);
        len = escape(&window, chunk.len(), &mut buffer, 0);
        out.extend_from_slice(&buffer[..len]);
    }
}

/// Writes the first `count` bytes of a window, at most a chunk, to `buffer[len..]`, escaped. Returns where they end.
#[inline(always)]
fn escape(window: &[u8; WINDOW], count: usize, buffer: &mut [u8; BUFFER], mut len: usize) -> usize {
    let mut special = special_bytes(window) & (u64::MAX >> (CHUNK - count));
    let mut from = 0;
    while special != 0 {
        let at = special.trailing_zeros() as usize;
        special &= special - 1;
        copy(window, from, at, buffer, len);
        len += at - from;
        // The remainder is `at`; the compiler then sees that it is inside the window.
        let escape = &ESCAPES[usize::from(window[at % WINDOW])];
        buffer[len..len + escape.len()].copy_from_slice(escape);
        len += usize::from(escape[7]);
        from = at + 1;
    }
    copy(window, from, count, buffer, len);
    len + count - from
}

/// Writes `window[from..to]`, and some bytes after it, to `buffer[at..]`.
#[inline(always)]
fn copy(window: &[u8; WINDOW], mut from: usize, to: usize, buffer: &mut [u8; BUFFER], mut at: usize) {
    loop {
        buffer[at..at + COPY].copy_from_slice(&window[from..from + COPY]);
        if from + COPY >= to {
            return;
        }
        from += COPY;
        at += COPY;
    }
}

/// A bit for each byte of the chunk that must be escaped: a quote, a backslash, or a control character.
#[inline(always)]
fn special_bytes(window: &[u8; WINDOW]) -> u64 {
    let mut flags = [0; CHUNK];
    for (flag, byte) in flags.iter_mut().zip(window) {
        *flag = u8::from(*byte < 0x20) | u8::from(*byte == b'"') | u8::from(*byte == b'\\');
    }
    // The product moves the lowest bit of each byte into the highest byte, in order.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (words, _) = flags.as_chunks::<8>();
    let mut bits = 0;
    for (at, word) in words.iter().enumerate() {
        bits |= (u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56) << (8 * at);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let mut out = b"\"".to_vec();
        append(text.as_bytes(), &mut out);
        out.push(b'"');
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
    }

    /// Each byte, in each place of a chunk, in texts around the sizes of a chunk, a window and the buffer.
    #[test]
    fn every_byte_is_escaped_in_every_place() {
        for byte in (0..0x80).map(char::from) {
            let dense: String = (0..BUFFER + CHUNK).map(|at| if at % 7 == 6 { 'a' } else { byte }).collect();
            (0..2 * WINDOW).chain([dense.len()]).for_each(|len| check(&dense[..len]));
            for at in 0..WINDOW {
                let clean = "a".repeat(WINDOW);
                check(&format!("{}{byte}{}", &clean[..at], &clean[at..]));
            }
        }
    }
}
