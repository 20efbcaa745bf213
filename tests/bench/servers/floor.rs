//! The floor: a blocking loop that finds the id of each message and answers a constant. What a pipe alone costs.
//!
//! It reads nothing else of a request, so every read is answered with the text of `bench://static`.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const MIDDLE: &str =
    ",\"result\":{\"contents\":[{\"uri\":\"bench://static\",\"mimeType\":\"text/plain\",\"text\":\"";
const TEXT: &str = include_str!("static.txt");
const TAIL: &str = "\"}]}}\n";

fn main() -> io::Result<()> {
    let mut input = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let constant = format!("{MIDDLE}{TEXT}{TAIL}");
    let (mut buffer, mut start, mut out) = (vec![0; 1 << 16], 0, Vec::new());
    loop {
        let read = input.read(&mut buffer[start..])?;
        if read == 0 {
            return Ok(());
        }
        let end = start + read;
        let mut line = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[..end]) {
            if let Some(id) = id(&buffer[line..newline]) {
                out.extend_from_slice(HEAD);
                out.extend_from_slice(id);
                out.extend_from_slice(constant.as_bytes());
            }
            line = newline + 1;
        }
        buffer.copy_within(line..end, 0);
        start = end - line;
        output.write_all(&out)?;
        out.clear();
    }
}

/// The number after `"id":`.
fn id(line: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(line, b"\"id\":")? + 5;
    let digits = line[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(&line[start..start + digits])
}
