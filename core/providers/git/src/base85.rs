//! The text form of binary files in a patch, as git writes it: deflated, in base 85.
//!
//! ```text
//!   literal 5                 the size of the file
//!   Mc$|…                     a line: a letter for its number of bytes (A is 1, z is 52), five digits for every four bytes
//! ```

use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use std::io::{self, Write};

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// The bytes of one line.
const LINE: usize = 52;

/// Number of bytes deflated between two checks whether the result is still wanted.
const CHUNK: usize = 256 * 1024;

/// Appends `bytes` as one `literal`, with the empty line that ends it.
///
/// # Errors
/// The deflated data exceeds `limit` bytes, or the request was cancelled.
pub(super) fn literal(
    out: &mut String,
    bytes: &[u8],
    limit: u64,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut deflated = deflate::Write::new(Limited { bytes: Vec::new(), limit }, Compression::DEFAULT);
    for chunk in bytes.chunks(CHUNK) {
        if is_cancelled() {
            return Err(io::Error::other("nobody waits for the patch"));
        }
        deflated.write_all(chunk)?;
    }
    deflated.flush()?;
    out.push_str(&format!("literal {}\n", bytes.len()));
    for line in deflated.into_inner().bytes.chunks(LINE) {
        // At most 52.
        let length = line.len() as u8;
        out.push(char::from(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }));
        line.chunks(4).for_each(|group| push_group(out, group));
        out.push('\n');
    }
    out.push('\n');
    Ok(())
}

/// Refuses to grow above a limit.
struct Limited {
    bytes: Vec<u8>,
    limit: u64,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn push_group(out: &mut String, group: &[u8]) {
    let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
    let mut number = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
    let mut digits = ['0'; 5];
    for digit in digits.iter_mut().rev() {
        *digit = char::from(DIGITS[(number % 85) as usize]);
        number /= 85;
    }
    out.extend(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-02: the empty file has eight bytes when it is deflated. The tests of diffs show that git reads it.
    #[test]
    fn the_empty_file() {
        let mut out = String::new();
        literal(&mut out, b"", 100, &|| false).unwrap();
        assert_eq!(out, "literal 0\nHc$@<O00001\n\n");
    }

    // S-02: what is too large is refused, and so is what nobody waits for.
    #[test]
    fn it_stops() {
        let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let error = literal(&mut String::new(), &noise, 1_000, &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(literal(&mut String::new(), &noise, 1_000_000, &|| true).is_err());
    }
}
