//! `read`: the contents of a resource, byte for byte.

use crate::Outcome;
use crate::args::Read;
use crate::error::Failed;
use crate::output;
use mcp_resources_engine::connection::{Contents, Plain};
use mcp_resources_host::client::Client;
use std::io::{self, Write};
use std::path::Path;

/// Reads one resource.
pub(crate) async fn run(args: &Read, client: &Client) -> Outcome {
    let contents = client.read(&args.uri).await.map_err(|error| Failed::new(error.to_string()))?;
    let is_terminal = args.output.is_none() && output::is_terminal();
    let bytes = match args.json {
        true => {
            let json = format!("{}\n", output::contents_json(&args.uri, &contents));
            // JSON escapes C0, but neither C1 nor what changes the direction of text.
            if is_terminal { output::lines(&json).into_owned() } else { json }.into_bytes()
        }
        false => whole(&contents, is_terminal)?,
    };
    match &args.output {
        Some(path) => save(path, &bytes)?,
        None => {
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
    }
    Ok(0)
}

/// All contents, one after another. A terminal gets text alone, and nothing in it that moves the terminal.
fn whole(contents: &[Contents<'_>], is_terminal: bool) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    for one in contents {
        match one.body.clone().into_plain() {
            Some(Plain::Text(text)) if is_terminal => bytes.extend(output::lines(&text).as_bytes()),
            Some(Plain::Text(text)) => bytes.extend(text.as_bytes()),
            Some(Plain::Blob(_)) if is_terminal => {
                let kind = one.mime_type.as_deref().unwrap_or("application/octet-stream");
                return Err(Failed::new(format!(
                    "the contents are binary ({kind}); write them with --output FILE, or pipe them to a program"
                )));
            }
            Some(Plain::Blob(blob)) => bytes.extend(&*blob),
            None => return Err(Failed::new("Failed to read resource: a blob of the server's is not base64")),
        }
    }
    if is_terminal && bytes.last().is_some_and(|last| *last != b'\n') {
        bytes.push(b'\n');
    }
    Ok(bytes)
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    std::fs::write(path, bytes)
        .map_err(|error| Failed::new(format!("{} cannot be written: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_the_bytes_and_a_terminal_gets_text() {
        let text = [Contents::text("a\u{1b}[2J"), Contents::text("b\n")];
        assert_eq!(whole(&text, false).unwrap(), b"a\x1b[2Jb\n");
        assert_eq!(whole(&text, true).unwrap(), b"a\\x1b[2Jb\n");
        assert_eq!(whole(&text[..1], true).unwrap().last(), Some(&b'\n'));
        let blob = [Contents::blob(&b"\0\xff"[..])];
        assert_eq!(whole(&blob, false).unwrap(), b"\0\xff");
        assert!(whole(&blob, true).is_err() && whole(&[Contents::base64("%")], false).is_err());
    }
}
