//! Completion in shells: the scripts, and the command that they call for candidates.
//!
//! Law: candidates come from a server. A candidate contains no control character, and text that a shell would interpret
//! is quoted. A server that does not answer in time completes nothing.

use crate::args::{Cli, Command, CompletionCandidates, Completions, ServerArgs, Shell};
use crate::{Outcome, connect, files, select};
use clap::{CommandFactory, Parser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use mcp_resources_client::Client;
use mcp_resources_engine::client::Listed;
use mcp_resources_engine::safe_text::is_unsafe;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::time::Duration;

/// The longest time for which a shell waits for candidates.
const PATIENCE: Duration = Duration::from_millis(300);
/// The most candidates that are printed.
const MOST: usize = 1000;

const BASH: &str = r#"_mcp_resources() {
    COMPREPLY=()
    local found
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(command mcp-resources __complete bash "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _mcp_resources mcp-resources
"#;

const ZSH: &str = r#"#compdef mcp-resources
_mcp_resources() {
    local -a found
    found=("${(@f)$(command mcp-resources __complete zsh "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    found=(${found:#})
    (( $#found )) && compadd -a found
}
if [ "$funcstack[1]" = "_mcp_resources" ]; then
    _mcp_resources "$@"
else
    compdef _mcp_resources mcp-resources
fi
"#;

const FISH: &str = r#"function __mcp_resources
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    command mcp-resources __complete fish $words "$word" 2>/dev/null
end
complete --command mcp-resources --no-files --arguments '(__mcp_resources)'
"#;

/// Prints the script for a shell.
pub(crate) fn script(args: &Completions) -> Outcome {
    let mut script = Vec::new();
    let mut generated =
        |shell| clap_complete::generate(shell, &mut Cli::command(), "mcp-resources", &mut script);
    match args.shell {
        Shell::Bash => script.extend(BASH.bytes()),
        Shell::Zsh => script.extend(ZSH.bytes()),
        Shell::Fish => script.extend(FISH.bytes()),
        Shell::Elvish => generated(clap_complete::Shell::Elvish),
        Shell::Powershell => generated(clap_complete::Shell::PowerShell),
    }
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(0)
}

/// Prints the candidates for the last of the words, one a line.
pub(crate) fn candidates(args: &CompletionCandidates) -> Outcome {
    let (words, current) = match (args.shell, &args.words[..]) {
        (Shell::Bash, [line, current]) => (split(line), current.as_str()),
        (Shell::Fish, [words @ .., last]) => (words.iter().cloned().chain(split(last).pop()).collect(), ""),
        (_, words) => (split(&words.join(" ")), ""),
    };
    let word = words.last().cloned().unwrap_or_default();
    let mut out = io::stdout().lock();
    for value in found(words) {
        let text = match args.shell {
            Shell::Bash => for_bash(&value, &word, current),
            _ => Some(value),
        };
        if let Some(text) = text {
            writeln!(out, "{text}")?;
        }
    }
    out.flush()?;
    Ok(0)
}

/// The words of a line that ends at the cursor; the last one may be empty or in an open quote.
fn split(line: &str) -> Vec<String> {
    // The added letter makes sure that there is a last word. An open quote is closed by trial.
    let closed = ["", "'", "\""].into_iter().find_map(|quote| shlex::split(&format!("{line}x{quote}")));
    let mut words = closed.unwrap_or_default();
    if let Some(last) = words.last_mut() {
        last.pop();
    }
    let own = |word: &String| word.rsplit('/').next() == Some("mcp-resources");
    // Words before the program, such as variables, are not its arguments.
    let before = words.iter().position(own).unwrap_or_default();
    words.split_off(before)
}

/// The text that bash inserts in place of `current`, the part of `word` after its last `:` or `=`. Bash does not quote it.
fn for_bash(value: &str, word: &str, current: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_~".contains(c);
    if current.starts_with(['\'', '"']) {
        // Within quotes, a backslash does not escape.
        let inside = value.strip_prefix(word)?;
        return inside.chars().all(|c| is_plain(c) || c == ' ').then(|| format!("{current}{inside}"));
    }
    let kept = word.len().checked_sub(current.len()).filter(|kept| word.get(*kept..) == Some(current));
    let mut text = String::new();
    for c in value.get(kept.unwrap_or_default()..)?.chars() {
        if !is_plain(c) {
            text.push('\\');
        }
        text.push(c);
    }
    Some(text)
}

/// The candidates for the last word.
fn found(words: Vec<String>) -> Vec<String> {
    let index = words.len().saturating_sub(1);
    let server = server_of(&words);
    let mut command = Cli::command();
    for (verb, positionals, templates) in [
        ("read", &["uri", "command"][..], false),
        ("watch", &["uri", "command"], false),
        ("complete", &["template", "variable", "prefix", "command"], true),
    ] {
        let server = server.clone();
        let completer = ArgValueCompleter::new(move |word: &OsStr| of_server(&server, word, templates));
        command = command.mut_subcommand(verb, |verb| {
            let verb = verb.mut_arg(positionals[0], |arg| arg.add(completer));
            // A removed entry is replaced by the last one, so the order of the rest is kept.
            positionals[1..].iter().fold(verb, |verb, name| verb.mut_arg(name, |arg| arg))
        });
    }
    for verb in ["ls", "read", "complete", "watch", "browse", "lint"] {
        let completer = ArgValueCompleter::new(names);
        command = command.mut_subcommand(verb, |verb| verb.mut_arg("server", |arg| arg.add(completer)));
    }
    let here = std::env::current_dir().ok();
    let words = words.into_iter().map(OsString::from).collect();
    let candidates =
        clap_complete::engine::complete(&mut command, words, index, here.as_deref()).unwrap_or_default();
    let values = candidates.iter().filter(|candidate| !candidate.is_hide_set());
    let values = values.filter_map(|candidate| candidate.get_value().to_str());
    values
        .filter(|value| !value.contains(|c| is_unsafe(c) || matches!(c, '\n' | '\t')))
        .map(str::to_owned)
        .collect()
}

/// The options of the server among words that may be incomplete.
fn server_of(words: &[String]) -> ServerArgs {
    let end = words.iter().position(|word| word == "--");
    let mut server = ServerArgs::default();
    let mut rest = words[..end.unwrap_or(words.len())].iter();
    while let Some(word) = rest.next() {
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        if matches!(name, "--server" | "-s" | "--config" | "-c" | "--agent" | "--env" | "--header")
            && let Some(value) = value.or_else(|| rest.next().map(String::as_str))
        {
            // Each option is parsed separately, as an invalid one must not affect the others.
            let one = Cli::try_parse_from(["mcp-resources", "ls", &format!("{name}={value}")]);
            if let Ok(Cli { command: Command::Ls(ls), .. }) = one {
                server.server = ls.server.server.or(server.server);
                server.config = ls.server.config.or(server.config);
                server.agent = ls.server.agent.or(server.agent);
                server.env.extend(ls.server.env.into_iter().filter(|pair| pair.0.is_ok()));
                server.header.extend(ls.server.header.into_iter().filter(|pair| pair.0.is_ok()));
            }
        }
    }
    server.command = end.map(|end| words[end + 1..].to_vec()).unwrap_or_default();
    server
}

/// The names of configured servers.
fn names(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_str().unwrap_or_default();
    let entries = files::known().into_iter().filter_map(|path| files::entries(&path).ok()).flatten();
    entries
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(word))
        .map(CompletionCandidate::new)
        .collect()
}

/// The URIs or templates of the server that begin with `word`.
fn of_server(args: &ServerArgs, word: &OsStr, templates: bool) -> Vec<CompletionCandidate> {
    let Some((word, selected)) = word.to_str().zip(select::select(args).ok()) else { return Vec::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    runtime.block_on(async {
        let Ok(client) = connect::connect(&selected, args) else { return };
        // Offers the entries that arrived in time. Servers that were started end with the client.
        let _ = tokio::time::timeout(PATIENCE, gather(&client, word, templates, &mut found)).await;
    });
    runtime.shutdown_background();
    found.into_iter().map(CompletionCandidate::new).collect()
}

async fn gather(client: &Client, word: &str, templates: bool, found: &mut Vec<String>) {
    let mut listing = if templates { client.list_templates() } else { client.list() };
    while let Some(Ok(Listed { uri, .. })) = listing.next().await {
        if uri.starts_with(word) {
            found.push(uri);
        }
        if found.len() == MOST {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_as_the_shell_does() {
        for (line, words) in [
            ("mcp-resources ", &["mcp-resources", ""][..]),
            ("A=1 ./bin/mcp-resources re", &["./bin/mcp-resources", "re"]),
            (
                "mcp-resources read -s 'python x.py' not",
                &["mcp-resources", "read", "-s", "python x.py", "not"],
            ),
            ("mcp-resources read 'a b", &["mcp-resources", "read", "a b"]),
            ("mcp-resources read \"a b", &["mcp-resources", "read", "a b"]),
            ("mcp-resources read a\\ b", &["mcp-resources", "read", "a b"]),
        ] {
            assert_eq!(split(line), words, "{line}");
        }
    }

    #[test]
    fn bash_gets_what_it_replaces_and_nothing_that_it_would_run() {
        for (value, word, current, text) in [
            ("notes://monday", "notes://m", "//m", Some("//monday")),
            ("notes://monday", "not", "not", Some("notes://monday")),
            ("a:$(touch x);b c", "a:", "", Some(r"\$\(touch\ x\)\;b\ c")),
            ("a b", "a", "'a", Some("'a b")),
            ("a$(x)", "a", "\"a", None),
        ] {
            assert_eq!(for_bash(value, word, current).as_deref(), text, "{value}");
        }
    }

    #[test]
    fn words_options_and_values_are_completed() {
        let of = |words: &[&str]| found(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(of(&["mcp-resources", "re"]), ["read"]);
        assert!(of(&["mcp-resources", ""]).iter().all(|word| !word.starts_with("__")));
        assert!(of(&["mcp-resources", "ls", "--te"]).contains(&"--templates".to_owned()));
        assert!(of(&["mcp-resources", "install", "v"]).contains(&"vscode".to_owned()));
        // Without the name of a server, none is started.
        assert!(of(&["mcp-resources", "read", "a"]).is_empty());
    }

    #[test]
    fn the_server_is_found_among_unfinished_words() {
        let words = ["mcp-resources", "read", "--server=http://a", "-c", "f.json", "--header", "A: b", "no"];
        let server = server_of(&words.map(str::to_owned));
        assert_eq!((server.server.as_deref(), server.header.len()), (Some("http://a"), 1));
        assert_eq!(server.config.as_deref(), Some("f.json".as_ref()));
        assert_eq!(
            server_of(&["x", "--", "cmd", "--server", "y"].map(str::to_owned)).command,
            ["cmd", "--server", "y"]
        );
    }
}
