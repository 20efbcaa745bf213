//! The entry of a server in the form of each client, with that client's syntax for variables.
//!
//! Law: `${NAME}` in a header or a variable of the command line is a variable that the client replaces when it starts the
//! server. A client that cannot do that refuses it, so that no server gets the text `${NAME}` as its secret.

use crate::error::Failed;
use crate::files::KnownClient;
use crate::select::Selected;
use jsonc_parser::cst::CstInputValue;
use mcp_resources_client::Target;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

type Members = Vec<(String, CstInputValue)>;

/// The entry of a server, in the form of the client.
///
/// # Errors
/// The client cannot have such a server, or does not replace variables there.
pub(super) fn entry(client: KnownClient, name: &str, selected: &Selected) -> Result<CstInputValue, Failed> {
    let members = match &selected.target {
        Target::Command { program, args, env, .. } => {
            // Such clients start servers in a directory of their own, and some not from a shell.
            let is_elsewhere = client.is_for_user();
            let program = if is_elsewhere { found(program) } else { program.clone() };
            let place = |word: &String| if is_elsewhere { absolute(word) } else { word.clone() };
            command(client, name, program, args.iter().map(place).collect(), env)?
        }
        Target::Url { url, headers } => address(client, name, url, headers)?,
        _ => return Err(Failed::usage("this server is neither a command nor a URL")),
    };
    Ok(CstInputValue::Object(members))
}

fn command(
    client: KnownClient,
    name: &str,
    program: String,
    args: Vec<String>,
    env: &BTreeMap<String, String>,
) -> Result<Members, Failed> {
    let arguments = texts(args.iter().cloned());
    let mut members: Members = match client {
        KnownClient::ClaudeCode | KnownClient::Vscode => vec![("type".into(), text("stdio"))],
        KnownClient::Goose => goose("stdio", name),
        KnownClient::Opencode => vec![
            ("type".into(), text("local")),
            ("command".into(), texts([program.clone()].into_iter().chain(args))),
            ("enabled".into(), CstInputValue::Bool(true)),
        ],
        _ => Vec::new(),
    };
    match client {
        KnownClient::Opencode => {}
        KnownClient::Goose => members.extend([("cmd".into(), text(program)), ("args".into(), arguments)]),
        _ => members.extend([("command".into(), text(program)), ("args".into(), arguments)]),
    }
    match client {
        KnownClient::Codex => inherited(client, env, "env", "env_vars", &mut members)?,
        KnownClient::Goose => inherited(client, env, "envs", "env_keys", &mut members)?,
        KnownClient::Opencode => optional(&mut members, "environment", values(client, env)?),
        _ => optional(&mut members, "env", values(client, env)?),
    }
    Ok(members)
}

fn address(
    client: KnownClient,
    name: &str,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<Members, Failed> {
    let (mut members, key): (Members, &str) = match client {
        KnownClient::ClaudeDesktop => {
            return Err(Failed::new(
                "Claude Desktop's file takes commands alone; add the URL in its settings, under Connectors",
            ));
        }
        KnownClient::ClaudeCode | KnownClient::Vscode => (vec![("type".into(), text("http"))], "url"),
        KnownClient::Cursor | KnownClient::Codex | KnownClient::Zed => (Vec::new(), "url"),
        KnownClient::Gemini => (Vec::new(), "httpUrl"),
        KnownClient::Windsurf => (Vec::new(), "serverUrl"),
        KnownClient::Goose => (goose("streamable_http", name), "uri"),
        KnownClient::Opencode => {
            (vec![("type".into(), text("remote")), ("enabled".into(), CstInputValue::Bool(true))], "url")
        }
    };
    members.push((key.into(), text(url)));
    match client {
        KnownClient::Codex => codex_headers(headers, &mut members)?,
        KnownClient::Goose => {
            let used = headers.values().flat_map(|value| variables(value)).map(str::to_owned);
            let used: std::collections::BTreeSet<String> = used.collect();
            optional(&mut members, "headers", values(client, headers)?);
            if !used.is_empty() {
                members.push(("env_keys".into(), texts(used)));
            }
        }
        _ => optional(&mut members, "headers", values(client, headers)?),
    }
    Ok(members)
}

/// The first members of an extension of Goose.
fn goose(kind: &str, name: &str) -> Members {
    vec![
        ("enabled".into(), CstInputValue::Bool(true)),
        ("type".into(), text(kind)),
        ("name".into(), text(name)),
        ("description".into(), text("Resources")),
        ("timeout".into(), CstInputValue::Number("300".into())),
    ]
}

/// Variables of a client that passes those of its own environment on by their names.
fn inherited(
    client: KnownClient,
    env: &BTreeMap<String, String>,
    key: &str,
    names_key: &str,
    members: &mut Members,
) -> Result<(), Failed> {
    let mut own = Vec::new();
    let mut names = Vec::new();
    for (name, value) in env {
        match variables(value)[..] {
            [] => own.push((name.clone(), text(value))),
            [variable] if variable == name && *value == format!("${{{variable}}}") => {
                names.push(name.clone());
            }
            _ => {
                let wrong = format!(
                    "{} passes a variable on under its own name only: --env '{name}=${{{name}}}'",
                    client.title()
                );
                return Err(Failed::usage(wrong));
            }
        }
    }
    optional(members, key, own);
    if !names.is_empty() {
        members.push((names_key.into(), texts(names)));
    }
    Ok(())
}

/// Codex has a key for each origin of a header.
fn codex_headers(headers: &BTreeMap<String, String>, members: &mut Members) -> Result<(), Failed> {
    let mut own = Vec::new();
    let mut from_variables = Vec::new();
    for (name, value) in headers {
        let is_bearer = name.eq_ignore_ascii_case("authorization");
        let rest = value.strip_prefix("Bearer ").filter(|_| is_bearer);
        match (variables(value)[..].first(), rest) {
            (None, _) => own.push((name.clone(), text(value))),
            (Some(variable), Some(rest)) if rest == format!("${{{variable}}}") => {
                members.push(("bearer_token_env_var".into(), text(*variable)));
            }
            (Some(variable), _) if *value == format!("${{{variable}}}") => {
                from_variables.push((name.clone(), text(*variable)));
            }
            _ => {
                return Err(Failed::usage(format!(
                    "Codex takes a header from one variable only, whole: --header '{name}: ${{NAME}}', or \
                     --header 'Authorization: Bearer ${{NAME}}'"
                )));
            }
        }
    }
    optional(members, "http_headers", own);
    optional(members, "env_http_headers", from_variables);
    Ok(())
}

/// Values with the client's syntax for variables.
fn values(client: KnownClient, pairs: &BTreeMap<String, String>) -> Result<Members, Failed> {
    let value = |(name, value): (&String, &String)| Ok((name.clone(), text(in_syntax(client, name, value)?)));
    pairs.iter().map(value).collect()
}

/// `${NAME}` in the client's syntax.
fn in_syntax(client: KnownClient, name: &str, value: &str) -> Result<String, Failed> {
    let mut text = value.to_owned();
    for variable in variables(value) {
        let new = match client {
            KnownClient::Vscode | KnownClient::Cursor | KnownClient::Windsurf => {
                format!("${{env:{variable}}}")
            }
            KnownClient::Opencode => format!("{{env:{variable}}}"),
            KnownClient::ClaudeCode | KnownClient::Gemini | KnownClient::Goose => continue,
            KnownClient::ClaudeDesktop | KnownClient::Zed | KnownClient::Codex => {
                return Err(Failed::usage(format!(
                    "{} does not replace ${{{variable}}} in the value of {name}: give the value itself, or start a program \
                     that reads the variable",
                    client.title()
                )));
            }
        };
        text = text.replace(&format!("${{{variable}}}"), &new);
    }
    Ok(text)
}

/// The names in `${NAME}`, in order. Other text in braces belongs to the client's own syntax, and stays.
fn variables(value: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let starts = value.match_indices("${").map(|(at, _)| &value[at + 2..]);
    starts.filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).filter(is_name).collect()
}

fn optional(members: &mut Members, key: &str, pairs: Members) {
    if !pairs.is_empty() {
        members.push((key.into(), CstInputValue::Object(pairs)));
    }
}

fn text(text: impl Into<String>) -> CstInputValue {
    CstInputValue::String(text.into())
}

fn texts(all: impl IntoIterator<Item = String>) -> CstInputValue {
    CstInputValue::Array(all.into_iter().map(text).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn variables_are_written_as_each_client_reads_them() {
        let value = "Bearer ${TOKEN} ${input:x} ${} ${1a} $HOME ${open";
        assert_eq!(variables(value), ["TOKEN"]);
        for (client, right) in [
            (KnownClient::ClaudeCode, "${TOKEN}"),
            (KnownClient::Gemini, "${TOKEN}"),
            (KnownClient::Goose, "${TOKEN}"),
            (KnownClient::Vscode, "${env:TOKEN}"),
            (KnownClient::Cursor, "${env:TOKEN}"),
            (KnownClient::Windsurf, "${env:TOKEN}"),
            (KnownClient::Opencode, "{env:TOKEN}"),
        ] {
            assert_eq!(in_syntax(client, "A", value).unwrap(), value.replace("${TOKEN}", right));
        }
        for client in [KnownClient::ClaudeDesktop, KnownClient::Zed] {
            let failed = in_syntax(client, "A", value).unwrap_err();
            assert!(format!("{failed:?}").contains(client.title()), "{failed:?}");
            assert_eq!(in_syntax(client, "A", "plain").unwrap(), "plain");
        }
    }

    #[test]
    fn codex_and_goose_name_the_variables_that_they_pass_on() {
        let pairs = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let shown = |members: Members| format!("{members:?}");
        let env = pairs(&[("KEY", "${KEY}"), ("MODE", "a")]);
        let codex = command(KnownClient::Codex, "x", "p".into(), Vec::new(), &env).unwrap();
        assert!(shown(codex).contains(r#"("env_vars", Array([String("KEY")]))"#));
        let goose = command(KnownClient::Goose, "x", "p".into(), Vec::new(), &env).unwrap();
        assert!(shown(goose).contains(r#"("env_keys", Array([String("KEY")]))"#));
        let other = pairs(&[("KEY", "${OTHER}")]);
        for client in [KnownClient::Codex, KnownClient::Goose] {
            assert!(command(client, "x", "p".into(), Vec::new(), &other).is_err());
        }
        let headers = pairs(&[("Authorization", "Bearer ${TOKEN}"), ("X-A", "${A}"), ("X-B", "b")]);
        let codex = shown(address(KnownClient::Codex, "x", "http://a", &headers).unwrap());
        for part in [
            r#"("bearer_token_env_var", String("TOKEN"))"#,
            r#"("http_headers", Object([("X-B", String("b"))]))"#,
            r#"("env_http_headers", Object([("X-A", String("A"))]))"#,
        ] {
            assert!(codex.contains(part), "{codex}");
        }
        assert!(
            address(KnownClient::Codex, "x", "http://a", &pairs(&[("X", "a ${B}")])).is_err(),
            "a part of a header"
        );
        let goose = shown(address(KnownClient::Goose, "x", "http://a", &headers).unwrap());
        assert!(goose.contains(r#"("env_keys", Array([String("A"), String("TOKEN")]))"#), "{goose}");
    }
}
