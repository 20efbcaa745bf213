//! `read`: the contents of a resource, byte for byte; the children of a directory as a table.

use crate::Outcome;
use crate::args::ReadArgs;
use crate::error::Failed;
use crate::output::{self, plain};
use anstream::adapter::strip_str;
use mcp_resources_client::Client;
use mcp_resources_engine::connection::{Contents, PlainContents};
use std::io::{self, Write};
use std::path::Path;

const DIRECTORY: &str = "inode/directory";
/// The key in `_meta` of the last child that says that there are more.
const MORE: &str = "io.github.mcp-resources/more";

/// Reads one resource.
pub(crate) async fn run(args: &ReadArgs, client: &Client) -> Outcome {
    let contents = client.read(&args.uri).await.map_err(|error| Failed::reading(&error))?;
    if !args.json && is_directory(&args.uri, &contents) {
        return show(args, &contents);
    }
    let is_terminal = args.output.is_none() && output::is_terminal();
    let bytes = match args.json {
        true => {
            let json = format!("{}\n", output::contents_json(&args.uri, &contents));
            if is_terminal { output::json(&json).into_owned() } else { json }.into_bytes()
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

/// Whether these are the children of a directory: each has a URI and an empty text.
fn is_directory(uri: &str, contents: &[Contents<'_>]) -> bool {
    let is_empty = |one: &Contents<'_>| matches!(one.body.clone().into_plain(), Some(PlainContents::Text(text)) if text.is_empty());
    let is_child = |one: &Contents<'_>| one.uri.as_deref().is_some_and(|own| own != uri);
    let is_own = |one: &Contents<'_>| one.mime_type.as_deref() == Some(DIRECTORY);
    !contents.is_empty() && contents.iter().all(|one| is_empty(one) && (is_child(one) || is_own(one)))
}

/// Prints the children of a directory as `ls` does.
fn show(args: &ReadArgs, contents: &[Contents<'_>]) -> Outcome {
    let cell = |text: Option<&str>| plain(text.unwrap_or_default()).into_owned();
    // The contents of an empty directory are one entry with its own URI.
    let own = |one: &Contents<'_>| one.uri.as_deref().is_none_or(|own| own == args.uri);
    let children = contents.iter().filter(|one| !own(one));
    let rows: Vec<Vec<String>> =
        children.map(|one| vec![cell(one.uri.as_deref()), cell(one.mime_type.as_deref())]).collect();
    let width = if args.output.is_none() { output::columns() } else { None };
    let table = if rows.is_empty() { String::new() } else { output::table(&["URI", "TYPE"], &rows, width) };
    match &args.output {
        Some(path) => save(path, strip_str(&table).to_string().as_bytes())?,
        None => {
            let mut out = anstream::stdout();
            write!(out, "{table}")?;
            out.flush()?;
        }
    }
    if contents.last().and_then(|last| last.meta.as_deref()).is_some_and(|meta| meta.contains(MORE)) {
        output::say("note", "the directory has more children than the server shows");
    }
    Ok(0)
}

/// Writes all contents one after another. A terminal gets only text, without control characters.
fn whole(contents: &[Contents<'_>], is_terminal: bool) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    for one in contents {
        match one.body.clone().into_plain() {
            Some(PlainContents::Text(text)) if is_terminal => bytes.extend(output::lines(&text).as_bytes()),
            Some(PlainContents::Text(text)) => bytes.extend(text.as_bytes()),
            Some(PlainContents::Blob(_)) if is_terminal => {
                let kind = one.mime_type.as_deref().unwrap_or("application/octet-stream");
                return Err(Failed::new(format!(
                    "the contents are binary ({kind}); write them with --output FILE, or pipe them to a program"
                )));
            }
            Some(PlainContents::Blob(blob)) => bytes.extend(&*blob),
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

    /// An empty file is not a directory.
    #[test]
    fn children_have_uris_and_nothing_in_them() {
        let empty =
            |uri: &'static str, kind: &'static str| Contents::text("").with_uri(uri).with_mime_type(kind);
        let children = [empty("a://d/x", "text/plain"), empty("a://d/y/", DIRECTORY)];
        assert!(is_directory("a://d", &children) && is_directory("a://d", &children[..1]));
        assert!(is_directory("a://d/", &[empty("a://d/", DIRECTORY)]));
        assert!(!is_directory("a://d/x", &children[..1]) && !is_directory("a://d", &[]));
        assert!(!is_directory("a://d", &[Contents::text("x").with_uri("a://d/x")]));
        assert!(!is_directory("a://d", &[Contents::text("")]));
    }

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
