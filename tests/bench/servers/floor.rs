//! The floor: a blocking loop that finds the id of each message and answers a constant. What a pipe alone costs.
//!
//! It reads nothing else of a request: every read is answered with the text of `bench://static` or, as `ANSWER` says,
//! with that of `bench://text1m` or `bench://blob1m`, worded beforehand.

use base64::Engine as _;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const TEXT: &str = include_str!("static.txt");
const LARGE: usize = 1 << 20;

fn main() -> io::Result<()> {
    let mut input = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let constant = constant();
    let mut buffer = vec![0; 1 << 16];
    let mut start = 0;
    let mut out = Vec::new();
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

/// What stands behind the id in every answer.
fn constant() -> String {
    let contents = match std::env::var("ANSWER").as_deref() {
        Ok("text1m") => {
            let mut text = "resource contents 1\n".repeat(LARGE / 20 + 1);
            text.truncate(LARGE);
            format!(r#""mimeType":"text/plain","text":"{}""#, text.replace('\n', "\\n"))
        }
        Ok("blob1m") => {
            let bytes: Vec<u8> = (0..LARGE).map(|at| (at.wrapping_mul(167) + 13).to_le_bytes()[0]).collect();
            let blob = base64::engine::general_purpose::STANDARD.encode(bytes);
            format!(r#""mimeType":"application/octet-stream","blob":"{blob}""#)
        }
        _ => format!(r#""mimeType":"text/plain","text":"{TEXT}""#),
    };
    format!(r#","result":{{"contents":[{{"uri":"bench://static",{contents}}}]}}}}"#) + "\n"
}

/// The number after `"id":`.
fn id(line: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(line, b"\"id\":")? + 5;
    let digits = line[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(&line[start..start + digits])
}
