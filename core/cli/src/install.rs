//! `install`: prints the entry for a client's configuration, and writes it if the user agrees.
//!
//! Law: a file is replaced atomically, and keeps everything else in it, comments too, and its mode and owner. A new file is
//! readable by its owner only, since headers and variables are often secrets.

use crate::Outcome;
use crate::args::Install;
use crate::atomic_file::replace;
use crate::error::Failed;
use crate::files::{self, Editor};
use crate::output::{self, plain};
use crate::select::{self, Selected};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use mcp_resources_client::Target;
use mcp_resources_runtime::transport::document_text;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Prints the entry. On a terminal, asks whether it should be written.
pub(crate) fn run(args: &Install) -> Outcome {
    let selected = select::select_unnamed(&args.server)?;
    let name = args.name.as_deref().unwrap_or(&selected.name);
    let entry = entry(args.client, &selected)?;
    let path = args.client.file().ok_or_else(|| Failed::new("the home directory is not known; set HOME"))?;
    let mut out = io::stdout().lock();
    if args.json {
        let root = root("")?;
        root.set_value(entry);
        writeln!(out, "{}", output::json(root.to_string().trim_end()))?;
        return Ok(0);
    }
    let text = merged("", args.client.key(), name, entry.clone())?;
    write!(out, "{}", output::json(&text))?;
    out.flush()?;
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        output::say("note", &format!("add this to {}; then {}", path.display(), args.client.next_step()));
        return Ok(0);
    }
    write_if_wanted(args, &path, name, entry)
}

fn write_if_wanted(args: &Install, path: &Path, name: &str, entry: CstInputValue) -> Outcome {
    let client = args.client;
    let has_secrets = !args.server.header.is_empty() || !args.server.env.is_empty();
    // Writes to the target of a link, so that the link is kept.
    let path = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) if fs::symlink_metadata(path).is_ok() => return Err(by_hand(path, "it is a link to nothing")),
        Err(_) => path.into(),
    };
    let before = match path.exists() {
        true => document_text(&path).map_err(|reason| by_hand(&path, &reason))?,
        false => String::new(),
    };
    let after = merged(&before, client.key(), name, entry).map_err(|failed| match failed {
        Failed::Message { text, .. } => by_hand(&path, &text),
        other => other,
    })?;
    let is_there = files::entries(&path).is_ok_and(|entries| entries.contains_key(name));
    let what = if is_there { format!("Replace {name:?} in") } else { "Write this to".into() };
    output::hint(&format!("{} {}? [y/N] ", plain(&what), plain(&path.display().to_string())));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failed::new(format!("stdin cannot be read: {error}")))?;
    if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        output::say("note", "nothing is written");
        return Ok(0);
    }
    replace(&path, &after).map_err(|error| by_hand(&path, &error.to_string()))?;
    output::say("note", &format!("written to {}; now {}", path.display(), client.next_step()));
    let mode = fs::metadata(&path).map(|file| file.mode()).unwrap_or_default();
    if has_secrets && mode & 0o077 != 0 {
        let text =
            format!("others can read {0}, which has a header or a variable: chmod 600 {0}", path.display());
        output::say("warning", &text);
    }
    Ok(0)
}

fn by_hand(path: &Path, reason: &str) -> Failed {
    Failed::new(format!("{}: {reason}; nothing is written, add the entry by hand", path.display()))
}

/// The entry of a server, in the form of the client.
fn entry(client: Editor, selected: &Selected) -> Result<CstInputValue, Failed> {
    let text = |text: &str| CstInputValue::String(text.into());
    let map = |pairs: &std::collections::BTreeMap<String, String>| {
        CstInputValue::Object(pairs.iter().map(|(name, value)| (name.clone(), text(value))).collect())
    };
    let mut members: Vec<(String, CstInputValue)> = Vec::new();
    match &selected.target {
        Target::Command { program, args, env, .. } => {
            // Claude Desktop starts servers in a directory of its own, and not from a shell.
            let is_elsewhere = client == Editor::ClaudeDesktop;
            let place = |word: &String| if is_elsewhere { absolute(word) } else { word.clone() };
            let program = if is_elsewhere { found(program) } else { program.clone() };
            if matches!(client, Editor::ClaudeCode | Editor::Vscode) {
                members.push(("type".into(), text("stdio")));
            }
            members.push(("command".into(), text(&program)));
            members.push((
                "args".into(),
                CstInputValue::Array(args.iter().map(|arg| text(&place(arg))).collect()),
            ));
            if !env.is_empty() {
                members.push(("env".into(), map(env)));
            }
        }
        Target::Url { .. } if client == Editor::ClaudeDesktop => {
            return Err(Failed::new(
                "Claude Desktop's file takes commands alone; add the URL in its settings, under Connectors",
            ));
        }
        Target::Url { url, headers } => {
            if client != Editor::Cursor {
                members.push(("type".into(), text("http")));
            }
            members.push(("url".into(), text(url)));
            if !headers.is_empty() {
                members.push(("headers".into(), map(headers)));
            }
        }
        _ => return Err(Failed::usage("this server is neither a command nor a URL")),
    }
    Ok(CstInputValue::Object(members))
}

/// A word with an existing path in it made absolute: the word itself, or the path of `files:NAME=DIR`.
fn absolute(word: &str) -> String {
    let starts = [0].into_iter().chain(word.match_indices([':', '=']).map(|(at, _)| at + 1));
    for (kind, path) in starts.map(|at| word.split_at(at)) {
        if !path.is_empty()
            && Path::new(path).exists()
            && let Ok(path) = fs::canonicalize(path)
        {
            return format!("{kind}{}", path.display());
        }
    }
    word.into()
}

/// The path of a program as the shell finds it. Applications that are not started from a shell have another `PATH`.
fn found(program: &str) -> String {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let in_path =
        || std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
    let path = if program.contains('/') { Some(PathBuf::from(program)) } else { in_path() };
    // Links are not resolved: the interpreter of a virtual environment is a link, and finds its packages through it.
    let path = path.filter(|path| path.exists()).and_then(|path| std::path::absolute(path).ok());
    path.map_or_else(|| program.into(), |path| path.display().to_string())
}

fn root(text: &str) -> Result<CstRootNode, Failed> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| Failed::new(format!("it is not JSON: {}", error.kind())))
}

/// The text of a file with the entry in it.
fn merged(text: &str, key: &str, name: &str, entry: CstInputValue) -> Result<String, Failed> {
    let root = root(text)?;
    let servers = root.object_value_or_create().and_then(|object| {
        object.ensure_multiline();
        object.object_value_or_create(key)
    });
    let servers = servers.ok_or_else(|| Failed::new(format!("{key:?} is not an object in it")))?;
    servers.ensure_multiline();
    match servers.get(name) {
        Some(member) => member.set_value(entry),
        None => drop(servers.append(name, entry)),
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> CstInputValue {
        CstInputValue::Object(vec![("command".into(), CstInputValue::String("server".into()))])
    }

    #[test]
    fn everything_else_of_a_file_is_kept() {
        let before = "{\n  // mine\n  \"inputs\": [1, 2],\n  \"servers\": {\n    \"other\": {\"command\": \"x\"}, /* old */\n    \"shop\": {\"url\": \"http://a\"}\n  }\n}\n";
        let after = merged(before, "servers", "shop", example()).unwrap();
        for kept in [
            "// mine",
            "\"inputs\": [1, 2]",
            "\"other\": {\"command\": \"x\"}",
            "/* old */",
            "\"command\": \"server\"",
        ] {
            assert!(after.contains(kept), "{after}");
        }
        assert!(!after.contains("http://a"));
        assert_eq!(merged(&after, "servers", "shop", example()).unwrap(), after);
        let new = merged("", "mcpServers", "a", example()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&new).unwrap();
        assert_eq!(value["mcpServers"]["a"]["command"], "server");
        for wrong in ["[]", "{\"servers\": 1}", "{", "1"] {
            assert!(merged(wrong, "servers", "a", example()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_another_directory_would_not_find_is_made_absolute() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let here = here.display();
        assert_eq!(absolute("."), here.to_string());
        assert_eq!(absolute("files:."), format!("files:{here}"));
        assert_eq!(absolute("files:me=src"), format!("files:me={here}/src"));
        for word in ["serve", "files:none", "--limit=3", "-c", "env:HOME,USER", ""] {
            assert_eq!(absolute(word), word);
        }
        assert!(found("sh").ends_with("/sh") && found("sh").starts_with('/'));
        assert_eq!(found("no-such-program"), "no-such-program");
    }
}
