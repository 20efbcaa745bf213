//! `install` and `uninstall`: prints the entry for a client's configuration, writes it or takes it out if the user agrees,
//! and lists the clients of this machine.
//!
//! Law: a file is replaced atomically, and keeps everything else in it, comments too, and its mode and owner. A new file is
//! readable by its owner only, since headers and variables are often secrets.

mod edit;
mod entry;
mod toml_file;
mod yaml_file;

use crate::Outcome;
use crate::args::{Install, Uninstall};
use crate::atomic_file::replace;
use crate::error::Failed;
use crate::files::{FileFormat, KnownClient};
use crate::output::{self, plain};
use crate::select;
use clap::ValueEnum;
use jsonc_parser::cst::CstInputValue;
use mcp_resources_runtime::transport::document_text;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the program in commands, also in those of `uvx` and `npx`.
const PROGRAM: &str = "mcp-resources";

/// Prints the entry. On a terminal, asks whether it should be written.
pub(crate) fn run(args: &Install) -> Outcome {
    let Some(client) = args.client.filter(|_| !args.list) else { return list(args.json) };
    let selected = select::select_unnamed(&args.server.clone().into())?;
    let name = args.name.as_deref().unwrap_or(&selected.name);
    let entry = entry::entry(client, name, &selected)?;
    let path = file(client)?;
    let mut out = io::stdout().lock();
    if args.json {
        let text = edit::json_text(entry).map_err(Failed::new)?;
        writeln!(out, "{}", output::json(text.trim_end()))?;
        return Ok(0);
    }
    let text = edit::with_entry(client, "", name, entry.clone()).map_err(Failed::new)?;
    match client.format() {
        FileFormat::Json => write!(out, "{}", output::json(&text))?,
        FileFormat::Toml | FileFormat::Yaml => write!(out, "{}", output::lines(&text))?,
    }
    out.flush()?;
    if !args.yes && !is_dialogue() {
        output::say("note", &format!("add this to {}; then {}", path.display(), client.next_step()));
        return Ok(0);
    }
    write_if_wanted(args, client, &path, name, entry)
}

/// Takes an entry out, after a question.
pub(crate) fn remove(args: &Uninstall) -> Outcome {
    let client = args.client;
    let (path, before) = opened(&file(client)?)?;
    let entries = edit::entries(client, &before).map_err(|reason| by_hand(&path, &reason))?;
    let name = match &args.name {
        Some(name) if entries.contains_key(name) => name.clone(),
        Some(name) => return Err(Failed::new(format!("{} has no entry {name:?}", path.display()))),
        None => only_ours(&path, &entries)?,
    };
    let after = edit::without_entry(client, &before, &name).map_err(|reason| by_hand(&path, &reason))?;
    if !args.yes && !is_dialogue() {
        let text = format!("{name:?} is in {}; nothing is changed without --yes", path.display());
        output::say("note", &text);
        return Ok(0);
    }
    if !args.yes && !is_wanted(&format!("Remove {name:?} from"), &path)? {
        output::say("note", "nothing is changed");
        return Ok(0);
    }
    replace(&path, &after).map_err(|error| by_hand(&path, &error.to_string()))?;
    output::say("note", &format!("{name:?} is removed from {}; restart {}", path.display(), client.title()));
    Ok(0)
}

/// Prints the known clients: whether each is on this machine, and which of its entries start this command.
fn list(is_json: bool) -> Outcome {
    let mut rows = Vec::new();
    let mut out = anstream::stdout().lock();
    for client in KnownClient::value_variants() {
        let name = client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let files: Vec<PathBuf> = [client.file(), client.file_of_user()].into_iter().flatten().collect();
        let mut found = Vec::new();
        for path in files.iter().filter(|path| path.exists()) {
            match document_text(path).and_then(|text| edit::entries(*client, &text)) {
                Ok(entries) => found.push((path, ours(&entries))),
                Err(reason) => {
                    output::say("warning", &format!("{} is left out: {reason}", path.display()));
                }
            }
        }
        found.retain(|(_, names)| !names.is_empty());
        if is_json {
            let entries: Vec<Value> =
                found.iter().map(|(path, names)| json!({ "file": path, "names": names })).collect();
            writeln!(out, "{}", json!({ "client": name, "found": client.is_here(), "entries": entries }))?;
            continue;
        }
        let shown: Vec<String> =
            found.iter().map(|(path, names)| format!("{} ({})", names.join(", "), path.display())).collect();
        let here = if client.is_here() { "yes" } else { "no" };
        let entries = if shown.is_empty() { "-".into() } else { plain(&shown.join("; ")).into_owned() };
        rows.push(vec![name, here.into(), entries]);
    }
    if !is_json {
        write!(out, "{}", output::table(&["CLIENT", "FOUND", "ENTRIES"], &rows, output::columns()))?;
    }
    Ok(0)
}

/// The names of the entries that start this command, directly or through a package runner.
fn ours(entries: &Map<String, Value>) -> Vec<String> {
    fn words(value: &Value) -> Vec<&str> {
        value.as_array().map_or_else(
            || value.as_str().into_iter().collect(),
            |all| all.iter().filter_map(Value::as_str).collect(),
        )
    }
    let is_ours = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        name.split('@').next() == Some(PROGRAM)
    };
    let starts = |entry: &Value| {
        let parts = ["command", "cmd", "args"].into_iter().filter_map(|key| entry.get(key));
        parts.flat_map(words).any(|word| is_ours(&word))
    };
    entries.iter().filter(|(_, entry)| starts(entry)).map(|(name, _)| name.clone()).collect()
}

fn only_ours(path: &Path, entries: &Map<String, Value>) -> Result<String, Failed> {
    match &ours(entries)[..] {
        [name] => Ok(name.clone()),
        [] => {
            let text = format!("no entry of {} starts {PROGRAM}; name one with --name", path.display());
            Err(Failed::new(text))
        }
        names => Err(Failed::usage(format!(
            "{} has several entries; add --name with one of {}",
            path.display(),
            names.join(", ")
        ))),
    }
}

fn file(client: KnownClient) -> Result<PathBuf, Failed> {
    client.file().ok_or_else(|| Failed::new("the home directory is not known; set HOME"))
}

fn is_dialogue() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The path and the text of a file that is going to be edited. A file that does not exist is empty.
fn opened(path: &Path) -> Result<(PathBuf, String), Failed> {
    // Writes to the target of a link, so that the link is kept.
    let path = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) if fs::symlink_metadata(path).is_ok() => return Err(by_hand(path, "it is a link to nothing")),
        Err(_) => path.into(),
    };
    let text = match path.exists() {
        true => document_text(&path).map_err(|reason| by_hand(&path, &reason))?,
        false => String::new(),
    };
    Ok((path, text))
}

fn is_wanted(what: &str, path: &Path) -> Result<bool, Failed> {
    output::hint(&format!("{} {}? [y/N] ", plain(what), plain(&path.display().to_string())));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failed::new(format!("stdin cannot be read: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn write_if_wanted(
    args: &Install,
    client: KnownClient,
    path: &Path,
    name: &str,
    entry: CstInputValue,
) -> Outcome {
    let has_secrets = !args.server.header.is_empty() || !args.server.env.is_empty();
    let (path, before) = opened(path)?;
    let after = edit::with_entry(client, &before, name, entry).map_err(|reason| by_hand(&path, &reason))?;
    let is_there = edit::entries(client, &before).is_ok_and(|entries| entries.contains_key(name));
    let what = if is_there { format!("Replace {name:?} in") } else { "Write this to".into() };
    if !args.yes && !is_wanted(&what, &path)? {
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
    Failed::new(format!("{}: {reason}; nothing is written, edit the file by hand", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_this_command_are_recognised() {
        let entries = json!({
            "a": {"command": "mcp-resources", "args": ["serve"]},
            "b": {"command": "/usr/bin/mcp-resources"},
            "c": {"command": "uvx", "args": ["mcp-resources@0.1.0", "serve", "."]},
            "d": {"type": "local", "command": ["npx", "-y", "mcp-resources"]},
            "e": {"cmd": "mcp-resources"},
            "f": {"command": "other", "args": ["--mcp-resources"]},
            "g": {"url": "http://mcp-resources/mcp"},
            "h": 1,
        });
        assert_eq!(ours(entries.as_object().unwrap()), ["a", "b", "c", "d", "e"]);
    }
}
