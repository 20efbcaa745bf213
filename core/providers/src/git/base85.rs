//! Binary files in a patch, as git writes them: deflated, in base 85.
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

/// Appends `bytes` as one `literal`, with the empty line that ends it.
pub(super) fn literal(out: &mut String, bytes: &[u8]) -> io::Result<()> {
    let mut deflated = deflate::Write::new(Vec::new(), Compression::DEFAULT);
    deflated.write_all(bytes)?;
    deflated.flush()?;
    out.push_str(&format!("literal {}\n", bytes.len()));
    for line in deflated.into_inner().chunks(LINE) {
        // At most 52.
        let length = line.len() as u8;
        out.push(char::from(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }));
        line.chunks(4).for_each(|group| push_group(out, group));
        out.push('\n');
    }
    out.push('\n');
    Ok(())
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

    /// S-02: the empty file has eight bytes when it is deflated. The tests of diffs show that git reads it.
    #[test]
    fn the_empty_file() {
        let mut out = String::new();
        literal(&mut out, b"").unwrap();
        assert_eq!(out, "literal 0\nHc$@<O00001\n\n");
    }
}
