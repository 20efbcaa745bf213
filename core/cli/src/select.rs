//! Chooses the server: a command, a URL, or a name of an `mcpServers` file.

use crate::args::{HeaderPair, ServerArgs};
use crate::error::Failed;
use crate::{files, output};
use mcp_resources_client::{ClientConfig, ServerConfig, Target};
use mcp_resources_engine::client::AllowList;
use mcp_resources_engine::suggest::{closest, unexpected};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The server that a command line names.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    /// Its name in the file, or the name of the program or host.
    pub(crate) name: String,
    /// The command or URL.
    pub(crate) target: Target,
    /// The allow-list. Without a key `resources`, a user sees everything.
    pub(crate) allowed: AllowList,
    /// The longest time for one request, in milliseconds.
    pub(crate) timeout: u64,
}

impl Selected {
    /// Whether all resources are allowed.
    pub(crate) fn is_whole(&self) -> bool {
        self.allowed == AllowList::Everything
    }
}

/// Finds the server without starting it.
///
/// `--server TEXT` is, in this order: a URL if it begins with `http://` or `https://`; with `--config` or `--agent` a name of
/// that file; a name of one of [`files::known`]; else a command, split into words as a shell does.
pub(crate) fn select(args: &ServerArgs) -> Result<Selected, Failed> {
    let mut selected = match (&args.server, &args.command[..]) {
        (Some(_), [_, ..]) => {
            return Err(Failed::usage("--server and a command after -- name two servers; give one"));
        }
        (None, []) if args.config.is_none() => {
            return Err(Failed::usage(
                "no server is named; add --server 'CMD', --server URL, --server NAME or -- CMD",
            ));
        }
        (None, []) => named(args, None)?,
        // Otherwise the output could be mistaken for that of the agent's allow-list.
        (None, [_, ..]) if args.config.is_some() || args.agent.is_some() => {
            return Err(of_a_file("a command"));
        }
        (None, [program, words @ ..]) => command(program, words),
        (Some(text), []) if is_url(text) && (args.config.is_some() || args.agent.is_some()) => {
            return Err(of_a_file("a URL"));
        }
        (Some(text), []) if is_url(text) => url(text),
        (Some(name), []) if args.config.is_some() || args.agent.is_some() => named(args, Some(name))?,
        (Some(text), []) => match known(text) {
            Some(found) => found?,
            None => words(text)?,
        },
    };
    if let Some(timeout) = args.timeout {
        selected.timeout = timeout;
    }
    overlay(&mut selected.target, args)?;
    Ok(selected)
}

/// Like [`select`], but all servers of `--config` if none is named.
pub(crate) fn select_all(args: &ServerArgs) -> Result<Vec<Selected>, Failed> {
    let path = match &args.config {
        Some(path) if args.server.is_none() && args.command.is_empty() => path,
        _ => return select(args).map(|selected| vec![selected]),
    };
    let names: Vec<String> = match clients_entries(args, path)? {
        Some(entries) => entries.keys().cloned().collect(),
        None => {
            let servers = ClientConfig::load(path)?.servers(args.agent.as_deref())?;
            servers.into_iter().map(|server| server.name).collect()
        }
    };
    if names.is_empty() {
        return Err(Failed::usage(format!("{} has no server", path.display())));
    }
    // Otherwise every server would get what is meant for one.
    if names.len() > 1 && !(args.header.is_empty() && args.env.is_empty()) {
        return Err(Failed::usage(format!(
            "--header and --env are for one server; add --server with one of {}",
            names.join(", ")
        )));
    }
    names.into_iter().map(|name| select(&ServerArgs { server: Some(name), ..args.clone() })).collect()
}

/// Like [`select`], but only for a command or a URL: an entry of a file may hold secrets, which must not be copied.
pub(crate) fn select_unnamed(args: &ServerArgs) -> Result<Selected, Failed> {
    let is_name = args.server.as_ref().is_some_and(|text| !is_url(text) && known(text).is_some());
    match args.config.is_some() || args.agent.is_some() || is_name {
        true => Err(Failed::usage(
            "this needs a command or a URL, not the name of a server that is configured already",
        )),
        false => select(args),
    }
}

/// Headers and variables of the command line override those of a file.
fn overlay(target: &mut Target, args: &ServerArgs) -> Result<(), Failed> {
    let pairs = |given: &[HeaderPair]| -> Result<Vec<(String, String)>, Failed> {
        given.iter().map(|pair| pair.0.clone().map_err(Failed::usage)).collect()
    };
    let variables = pairs(&args.env)?;
    let headers_given = pairs(&args.header)?;
    match target {
        Target::Command { env, .. } if args.header.is_empty() => env.extend(variables),
        Target::Url { headers, .. } if args.env.is_empty() => headers.extend(headers_given),
        Target::Command { .. } => {
            return Err(Failed::usage("--header is for a URL; this server is a command"));
        }
        Target::Url { .. } => return Err(Failed::usage("--env is for a command; this server is a URL")),
        _ => {}
    }
    Ok(())
}

/// The error for `--config` or `--agent` with a server that is not of a file.
fn of_a_file(what: &str) -> Failed {
    Failed::usage(format!("--config and --agent need the name of a server of that file, not {what}"))
}

fn is_url(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}

fn url(text: &str) -> Selected {
    let host = text.split(['/', '?', '#']).nth(2).and_then(|authority| authority.rsplit('@').next());
    let name = host.map(|host| host.split(':').next().unwrap_or(host)).filter(|host| !host.is_empty());
    whole(name.unwrap_or("server"), Target::Url { url: text.into(), headers: BTreeMap::new() })
}

fn command<'a>(program: &'a str, args: &'a [String]) -> Selected {
    let stem = |word: &'a str| Path::new(word).file_stem().and_then(|name| name.to_str());
    let own = stem(program).unwrap_or("server");
    // The argument of an interpreter or package runner is a better name than the program.
    let is_runner =
        ["python", "node", "npx", "uvx", "uv", "bun", "deno"].iter().any(|name| own.starts_with(name));
    let given = args.iter().find(|arg| !arg.starts_with('-')).filter(|_| is_runner);
    let name = given.and_then(|arg| stem(arg)).unwrap_or(own);
    let target = Target::Command {
        program: program.into(),
        args: args.to_vec(),
        env: BTreeMap::new(),
        directory: None,
    };
    whole(name, target)
}

fn whole(name: &str, target: Target) -> Selected {
    Selected { name: name.into(), target, allowed: AllowList::Everything, timeout: 30_000 }
}

fn words(text: &str) -> Result<Selected, Failed> {
    let words = shlex::split(text).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| {
        // It may set variables, so it is not repeated.
        Failed::usage("the text of --server is not a command: a quote is open, or it is empty")
    })?;
    if let [word] = &words[..]
        && let Some((scheme, _)) = word.split_once("://")
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        let word = without_secrets(word);
        let reason = format!("{word:?} is no URL of a server: it must begin with http:// or https://");
        return Err(Failed::usage(reason));
    }
    // A single word that is not a program is probably a name.
    if let [word] = &words[..]
        && !is_program(word)
    {
        let names: Vec<String> = files::known()
            .iter()
            .filter_map(|path| files::entries(path).ok())
            .flatten()
            .map(|(name, _)| name)
            .collect();
        let hint = match closest(word, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean {name:?}?"),
            None => "give a command, a URL, or --config FILE with a name".into(),
        };
        let word = without_secrets(word);
        return Err(Failed::usage(format!("there is no program and no configured server {word:?}; {hint}")));
    }
    let (program, args) = words.split_first().ok_or_else(|| Failed::usage("--server is empty"))?;
    Ok(command(program, args))
}

/// A word that was meant as a URL or a name, without the parts of a URL that can be secrets.
fn without_secrets(word: &str) -> String {
    let (scheme, rest) =
        word.split_once("://").map_or(("", word), |(_, rest)| word.split_at(word.len() - rest.len()));
    let place = rest.split(['?', '#']).next().unwrap_or_default();
    match place.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}…@{place}"),
        None if place.len() < rest.len() => format!("{scheme}{place}?…"),
        None => format!("{scheme}{place}"),
    }
}

fn is_program(word: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    word.contains('/') || std::env::split_paths(&folders).any(|folder| folder.join(word).is_file())
}

/// The server `name` of `--config`, or its only one.
fn named(args: &ServerArgs, name: Option<&str>) -> Result<Selected, Failed> {
    let agent = args.agent.as_deref();
    let Some(path) = &args.config else {
        return Err(Failed::usage("--agent names an agent of a file; add --config FILE"));
    };
    if let Some(entries) = clients_entries(args, path)? {
        let names: Vec<&str> = entries.keys().map(String::as_str).collect();
        let name = only(name, &names, path)?;
        let entry = entries.get(name).ok_or_else(|| {
            Failed::usage(format!("{}: {}", path.display(), unexpected("server", name, &names)))
        })?;
        return Ok(selected(files::alone(path, name, entry)?.server(name, None)?, false));
    }
    let config = ClientConfig::load(path)?;
    let servers = if name.is_none() { config.servers(agent)? } else { Vec::new() };
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let name = only(name, &names, path)?;
    Ok(selected(config.server(name, agent)?, agent.is_some()))
}

/// The servers of a client's own file, which has other keys too; `None` if `path` is not one.
fn clients_entries(args: &ServerArgs, path: &Path) -> Result<Option<Map<String, Value>>, Failed> {
    if args.agent.is_some() || !files::known().iter().any(|known| path.ends_with(known)) {
        return Ok(None);
    }
    let entries = files::entries(path);
    entries.map(Some).map_err(|reason| Failed::usage(format!("{}: {reason}", path.display())))
}

fn only<'n>(name: Option<&'n str>, names: &[&'n str], path: &Path) -> Result<&'n str, Failed> {
    match (name, names) {
        (Some(name), _) => Ok(name),
        (None, [name]) => Ok(name),
        (None, []) => Err(Failed::usage(format!("{} has no server", path.display()))),
        (None, names) => Err(Failed::usage(format!(
            "{} has several servers; add --server with one of {}",
            path.display(),
            names.join(", ")
        ))),
    }
}

/// A server of a client's file, if one has this name.
fn known(name: &str) -> Option<Result<Selected, Failed>> {
    files::known().into_iter().filter(|path| path.exists()).find_map(|path| {
        let entries = match files::entries(&path) {
            Ok(entries) => entries,
            Err(reason) => {
                output::say("warning", &format!("{} is left out: {reason}", path.display()));
                return None;
            }
        };
        let entry = entries.get(name)?;
        let server = files::alone(&path, name, entry).and_then(|config| config.server(name, None));
        Some(server.map(|server| selected(server, false)).map_err(Failed::from))
    })
}

/// A server of a file. The key `resources` is its allow-list; without it, an agent sees nothing.
fn selected(server: ServerConfig, is_agents: bool) -> Selected {
    let allowed = if server.is_restricted || is_agents { server.resources } else { AllowList::Everything };
    Selected { name: server.name, target: server.target, allowed, timeout: server.timeout.unwrap_or(30_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(server: Option<&str>, command: &[&str]) -> ServerArgs {
        ServerArgs {
            server: server.map(str::to_owned),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            ..ServerArgs::default()
        }
    }

    #[test]
    fn a_command_line_names_one_server() {
        for (server, command, name, what) in [
            (
                None,
                &["/bin/python3", "server.py", "--x"][..],
                "server",
                r#"program: "/bin/python3", args: ["server.py", "--x"]"#,
            ),
            (Some("/bin/sh -c 'exec server \"a b\"'"), &[], "sh", r#"args: ["-c", "exec server \"a b\""]"#),
            (
                Some("https://me:pw@example.com:8/mcp"),
                &[],
                "example.com",
                r#"url: "https://me:pw@example.com:8/mcp""#,
            ),
            (Some("HTTP://[::1]/mcp"), &[], "[", "url"),
        ] {
            let selected = select(&args(server, command)).unwrap();
            assert_eq!((selected.name.as_str(), &selected.allowed), (name, &AllowList::Everything));
            assert!(format!("{:?}", selected.target).contains(what), "{:?}", selected.target);
        }
        for (server, command) in [
            (None, &[][..]),
            (Some("a"), &["b"]),
            (Some("'open"), &[]),
            (Some(""), &[]),
            (Some("mcp-none-of-these"), &[]),
            (Some("ws://localhost/mcp"), &[]),
            (Some("ws://me:s3cret@localhost/mcp?s3cret"), &[]),
            (Some("me:s3cret@localhost"), &[]),
            (Some("localhost?s3cret"), &[]),
            (Some("A=s3cret python 'x"), &[]),
        ] {
            let failed = select(&args(server, command)).unwrap_err();
            assert!(!format!("{failed:?}").contains("s3cret"), "{failed:?}");
            assert!(matches!(failed, Failed::Message { status: 2, .. }), "{failed:?}");
        }
    }

    #[test]
    fn a_file_alone_names_all_its_servers_and_a_header_only_one() {
        let folder = std::env::temp_dir().join(format!("mcp-resources-select-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("servers.json");
        let text = r#"{"mcpServers": {"a": {"url": "http://a/mcp"}, "b": {"url": "http://b/mcp", "resources": ["x:*"]}}}"#;
        std::fs::write(&file, text).unwrap();
        let mut all = ServerArgs { config: Some(file), ..ServerArgs::default() };
        let selected = select_all(&all).unwrap();
        let seen: Vec<_> = selected.iter().map(|one| (one.name.as_str(), one.is_whole())).collect();
        assert_eq!(seen, [("a", true), ("b", false)]);
        all.header = vec![HeaderPair(Ok(("Authorization".into(), "Bearer s3cret".into())))];
        let failed = format!("{:?}", select_all(&all).unwrap_err());
        assert!(failed.contains("one of a, b") && !failed.contains("s3cret"), "{failed}");
        all.server = Some("a".into());
        assert_eq!(select_all(&all).unwrap().len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn options_must_fit_the_server() {
        let mut url = args(Some("http://a/mcp"), &[]);
        let pair = || vec![HeaderPair(Ok(("A".into(), "b".into())))];
        url.header = pair();
        let Target::Url { headers, .. } = select(&url).unwrap().target else { panic!("a URL") };
        assert_eq!(headers["A"], "b");
        url.env = pair();
        assert!(select(&url).is_err());
        url.env = Vec::new();
        url.header = vec![HeaderPair(Err("wrong"))];
        assert!(format!("{:?}", select(&url).unwrap_err()).contains("wrong"));
        for (server, words) in [(Some("http://a/mcp"), &[][..]), (None, &["/bin/true"])] {
            let mut agents = args(server, words);
            agents.agent = Some("frontend".into());
            assert!(format!("{:?}", select(&agents).unwrap_err()).contains("need the name of a server"));
        }
        let mut command = args(None, &["/bin/true"]);
        command.timeout = Some(5);
        assert_eq!(select(&command).unwrap().timeout, 5);
        command.header = pair();
        assert!(select(&command).is_err());
    }
}
