use super::*;
use std::fs;

/// One server of a table of errors.
const FS: &str = r#""fs": {"command": "server", "resources": ["file:///a/**"]}"#;

fn parse(text: &str) -> Result<ClientConfig, String> {
    ClientConfig::parse(text, "/project").map_err(|error| error.message)
}

fn one(entry: &str) -> Result<ServerConfig, String> {
    let config = parse(&format!(r#"{{"mcpServers": {{"fs": {entry}}}}}"#))?;
    let mut servers = config.servers(None).map_err(|error| error.message)?;
    servers.pop().ok_or_else(|| "none".into())
}

// S-10, S-11: the example of the issue, unchanged.
#[test]
fn the_example_of_the_issue_is_read() {
    let text = r#"mcpServers:
  filesystem:
    command: "mcp-server-filesystem"
    args: ["--root", "/project"]
    resources:
      - "file:///project/src/**/*.ts"
      - "file:///project/package.json"
    # Or allow all resources:
    # resources: "*"
"#;
    let folder = Folder::new("seed");
    let servers = ClientConfig::load(folder.file("agents.yaml", text)).unwrap().servers(None).unwrap();
    let [server] = &servers[..] else { panic!("{servers:?}") };
    assert_eq!((server.name.as_str(), server.is_restricted), ("filesystem", true));
    assert_eq!(
        server.resources,
        AllowList::Globs(vec!["file:///project/src/**/*.ts".into(), "file:///project/package.json".into()])
    );
    let Target::Command { program, args, .. } = &server.target else { panic!("{server:?}") };
    assert_eq!(
        (program.as_str(), &args[..]),
        ("mcp-server-filesystem", &["--root".to_owned(), "/project".into()][..])
    );
}

// S-10: a missing key allows nothing, `"*"` everything, also as a member of a list.
#[test]
fn resources_are_nothing_everything_or_globs() {
    for (resources, allowed) in [
        ("", AllowList::Nothing),
        (r#", "resources": []"#, AllowList::Globs(vec![])),
        (r#", "resources": "*""#, AllowList::Everything),
        (r#", "resources": ["a://b", "*"]"#, AllowList::Everything),
        (r#", "resources": "a://**""#, AllowList::Globs(vec!["a://**".into()])),
    ] {
        let server = one(&format!(r#"{{"command": "c"{resources}}}"#)).unwrap();
        assert_eq!(
            (&server.resources, server.is_restricted),
            (&allowed, !resources.is_empty()),
            "{resources}"
        );
    }
}

/// Errors in the file, its one server, or its one agent, each with the beginning of the message.
const ERRORS: &str = r#"
file []
    a configuration must be an object with the key "mcpServers", not a list
file {}
    the key "mcpServers" is missing
file {"mcpservers": {}}
    unexpected key "mcpservers"; did you mean "mcpServers"?
file {"mcpServers": []}
    mcpServers must be an object, not a list
file {"mcpServers": {}, "servers": {}}
    "servers" is another name of "mcpServers": write one of them
file {"mcpServers": {"a b": 1}}
    mcpServers["a b"] must be an object, not a number
server {}
    mcpServers.fs has neither "command" nor "url": one of them is needed
server {"command": "a", "url": "http://b"}
    mcpServers.fs has both "command" and "url": one of them is needed
server {"comand": "a"}
    mcpServers.fs: unexpected key "comand"; did you mean "command"?
server {"command": 1}
    mcpServers.fs.command must be a string, not a number
server {"command": ""}
    mcpServers.fs.command is empty
server {"command": "a", "args": "b"}
    mcpServers.fs.args must be a list of strings, not a string
server {"command": "a", "args": ["b", 1]}
    mcpServers.fs.args[1] must be a string, not a number
server {"command": "a", "env": {"A": null}}
    mcpServers.fs.env.A must be a string, not null
server {"command": "a", "env": {"A=B": ""}}
    mcpServers.fs.env["A=B"]: this is not a valid name of a variable
server {"url": "http://a", "headers": {"A B": ""}}
    mcpServers.fs.headers["A B"]: this is not a valid name of a header
server {"url": "ftp://secret@a"}
    mcpServers.fs.url must begin with http:// or https:// and have no spaces
server {"command": "a", "timeout": 0}
    mcpServers.fs.timeout must be a whole number of milliseconds above 0, not 0
server {"command": "a", "timeout": "1"}
    mcpServers.fs.timeout must be a whole number of milliseconds above 0, not a string
server {"command": "a", "prefix": "a/b"}
    mcpServers.fs.prefix must be letters, digits, "-", "_" and ".", and no more than 64
server {"command": "a", "disabled": "no"}
    mcpServers.fs.disabled must be true or false, not a string
server {"command": "a", "resources": null}
    mcpServers.fs.resources must be a list of globs or "*", not null
server {"command": "a", "resources": ["x://y", "a b"]}
    mcpServers.fs.resources[1]: "a b" is not a glob:
server {"command": "a", "type": "http"}
    mcpServers.fs has a "type" that needs "url", but has "command"
server {"url": "http://a", "type": "stdio"}
    mcpServers.fs has a "type" that needs "command", but has "url"
server {"command": "a", "type": "stido"}
    mcpServers.fs.type: unexpected transport "stido"; did you mean "stdio"?
server {"command": "a", "headers": {"A": "b"}}
    mcpServers.fs.headers does not go with "command": it would have no effect
agent {"servers": {}}
    agents.ui: unexpected key "servers"; expected one of mcpServers, token, token_env
agent {"token": "a", "token_env": "B"}
    agents.ui has both "token" and "token_env": one of them is needed
agent {"token": 1}
    agents.ui.token must be a string, not a number
agent {"mcpServers": {"fx": {}}}
    agent "ui" names the server "fx", which "mcpServers" does not have;
agent {"mcpServers": {"fs": {"resource": "*"}}}
    agents.ui.mcpServers.fs: unexpected key "resource"; did you mean "resources"?
agent {"mcpServers": {"fs": {"resources": "a b"}}}
    agents.ui.mcpServers.fs.resources: "a b" is not a glob:
agent {"mcpServers": ["fs"]}
    agents.ui.mcpServers must be an object, not a list
"#;

/// Each message names the key, the server and the agent, and the fix where there is one.
#[test]
fn each_error_names_what_is_wrong() {
    let server = |entry: &str| format!(r#"{{"mcpServers": {{"fs": {entry}}}}}"#);
    let agent = |agent: &str| format!(r#"{{"mcpServers": {{{FS}}}, "agents": {{"ui": {agent}}}}}"#);
    for case in ERRORS.trim().split("\n").collect::<Vec<_>>().chunks(2) {
        let &[given, message] = case else { panic!("{case:?}") };
        let (what, given) = given.split_once(' ').unwrap();
        let text = match what {
            "server" => server(given),
            "agent" => agent(given),
            _ => given.to_owned(),
        };
        let message = message.trim_start();
        let error = parse(&text).expect_err(&text);
        assert!(error.starts_with(message), "{text}\n  is       {error}\n  expected {message}");
    }
    let unknown = parse(&agent("{}")).unwrap().servers(Some("iu")).unwrap_err();
    assert_eq!(unknown.message, r#"agents: unexpected agent "iu"; expected one of ui"#);
    let none = parse(&server(r#"{"command": "a"}"#)).unwrap().servers(Some("ui")).unwrap_err();
    assert_eq!(none.message, r#"there is no agent "ui": the file has no key "agents""#);
}

// S-10: an agent has only the servers that it names, with its own `resources`; its other keys override those of the
// definition.
#[test]
fn an_agents_entry_is_laid_over_the_definition() {
    let config = parse(
        r#"{"mcpServers": {
                "fs": {"command": "server", "args": ["-a"], "env": {"A": "1", "B": "2"}, "resources": "*", "timeout": 5},
                "web": {"url": "http://a/mcp", "headers": {"X": "1"}, "resources": "*"},
                "other": {"command": "o", "resources": "*"}},
            "agents": {"ui": {"mcpServers": {
                "fs": {"env": {"B": "3"}, "resources": ["a://b"]}, "web": {"command": "local"}, "own": {"url": "https://o"}}}}}"#,
    )
    .unwrap();
    let servers = config.servers(Some("ui")).unwrap();
    assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["fs", "own", "web"]);
    let Target::Command { args, env, .. } = &servers[0].target else { panic!("{servers:?}") };
    assert_eq!(
        (args.len(), env["A"].as_str(), env["B"].as_str(), servers[0].timeout),
        (1, "1", "3", Some(5))
    );
    assert_eq!(servers[0].resources, AllowList::Globs(vec!["a://b".into()]));
    assert!(matches!(&servers[2].target, Target::Command { program, .. } if program == "local"));
    // The agent sets no `resources` for these.
    assert_eq!((&servers[1].resources, &servers[2].resources), (&AllowList::Nothing, &AllowList::Nothing));
    assert_eq!(config.servers(None).unwrap().len(), 3);
    assert!(config.server("other", Some("ui")).is_err() && config.server("other", None).is_ok());
}

#[test]
fn keys_of_other_clients_are_honoured_or_ignored() {
    for entry in [
        r#"{"type": "stdio", "command": "a", "alwaysAllow": [], "autoApprove": ["x"], "description": "d", "_note": 1}"#,
        r#"{"type": "http", "url": "http://a", "args": [], "env": {}, "oauth": {"clientId": "x"}}"#,
        r#"{"type": "streamable-http", "url": "HTTPS://a/mcp", "disabled": false, "tools": ["*"]}"#,
        r#"{"type": "streamableHttp", "url": "${NONE:-http://a}"}"#,
    ] {
        assert!(one(entry).is_ok(), "{entry}: {:?}", one(entry));
    }
    assert_eq!(one(r#"{"command": "a", "disabled": true}"#).unwrap_err(), "none");
    assert_eq!(one(r#"{"command": "a", "enabled": false}"#).unwrap_err(), "none");
    let sse = one(r#"{"type": "sse", "url": "http://a/sse"}"#).unwrap_err();
    assert!(sse.starts_with("mcpServers.fs.type: the transport SSE of 2024-11-05 is not supported"), "{sse}");
    // The form that VS Code writes.
    let config = parse(r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "a"}}}"#).unwrap();
    assert_eq!(config.server_names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn variables_are_replaced_where_a_server_is_used() {
    let variable = |name: &str| match name {
        "A" => Some("one".to_owned()),
        "EMPTY" => Some(String::new()),
        "HOME" => Some("/folder/me".into()),
        "NESTED" => Some("${A}".into()),
        _ => None,
    };
    let scope = ExpandScope::new(Path::new("/folder/shop/.vscode"), &variable);
    for (text, expanded) in [
        ("${A}", Some("one")),
        ("x${A}y${env:A}", Some("xoneyone")),
        ("${NONE:-two}", Some("two")),
        ("${NONE:-}", Some("")),
        ("${EMPTY:-two}", Some("")),
        ("${A:-two}", Some("one")),
        ("${NESTED}", Some("${A}")),
        ("${workspaceFolder}/x", Some("/folder/shop/x")),
        ("${workspaceFolderBasename}", Some("shop")),
        ("${userHome}${/}x", Some("/folder/me/x")),
        ("$A ${} ${1} ${a b} ${A", Some("$A ${} ${1} ${a b} ${A")),
        ("${NONE}", None),
        ("${input:key}", None),
        ("${config:key}", None),
    ] {
        assert_eq!(scope.expand(text, "key").ok().as_deref(), expanded, "{text}");
    }
    let missing = scope.expand("${NONE}", "mcpServers.fs.args[0]").unwrap_err();
    assert_eq!(
        missing,
        "mcpServers.fs.args[0]: the variable NONE is not set; set it, or write ${NONE:-default}"
    );
    // A missing variable affects only its own server.
    let config = parse(&format!(
        r#"{{"mcpServers": {{{FS}, "web": {{"url": "http://${{MCP_NONE_OF_THESE}}"}}}},
            "agents": {{"ui": {{"mcpServers": {{"fs": {{}}}}}}}}}}"#
    ))
    .unwrap();
    assert!(
        config.servers(Some("ui")).is_ok()
            && config.server("fs", None).is_ok()
            && config.servers(None).is_err()
    );
}

#[test]
fn files_of_variables_and_relative_folders_begin_at_the_file() {
    let folder = Folder::new("env");
    folder.file(".env", "# remark\n\nexport A=1\nB = \"two words\"\nC='3'\nD=a=b\nA=4\r\n");
    let text =
        r#"{"mcpServers": {"fs": {"command": "./c", "cwd": "sub", "envFile": ".env", "env": {"C": "5"}}}}"#;
    let servers = ClientConfig::load(folder.file("config.json", text)).unwrap().servers(None).unwrap();
    let Target::Command { program, env, directory, .. } = &servers[0].target else { panic!("{servers:?}") };
    let pairs: Vec<_> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(pairs, ["A=4", "B=two words", "C=5", "D=a=b"]);
    assert_eq!((program.as_str(), directory.as_ref()), ("./c", Some(&folder.0.join("sub"))));
    folder.file(".env", "A=1\nsecret\n");
    let config = ClientConfig::load(folder.0.join("config.json")).unwrap();
    let error = config.servers(None).unwrap_err().message;
    assert!(error.contains("mcpServers.fs.envFile: line 2 of") && !error.contains("secret"), "{error}");
    fs::remove_file(folder.0.join(".env")).unwrap();
    assert!(config.servers(None).unwrap_err().message.contains("cannot be read"), "{config:?}");
}

/// Messages repeat no part of a file that may be secret.
#[test]
fn errors_hold_no_secrets() {
    let folder = Folder::new("secrets");
    for (name, text) in [
        ("a.json", r#"{"mcpServers": {"fs": {"url": "https://SECRET@a b"}}}"#),
        ("b.json", r#"{"mcpServers": {"fs": {"command": "a", "env": {"A": ["SECRET"]}}}}"#),
        ("c.json", r#"{"agents": {"ui": {"token": "SECRET"#),
        ("d.yaml", "agents:\n  ui:\n    token: SECRET\n   x: 'SECRET\n"),
        ("e.yaml", "mcpServers: {fs: {command: a, env: {A: SECRET, A: SECRET}}}"),
        ("f.yaml", "agents: {ui: {token: &a [*a, SECRET]}}"),
        ("g.json", r#"{"mcpServers": {"fs": {"url": "http://a", "headers": {"A": "SECRET\n"}}}}"#),
        ("h.json", r#"{"mcpServers": {"fs": {"command": "a", "args": ["SECRET\u0000"]}}}"#),
    ] {
        let config = ClientConfig::load(folder.file(name, text));
        let error = config.and_then(|config| config.servers(None)).expect_err(text).message;
        assert!(
            !error.contains("SECRET") && error.contains(name) && !error.contains('\n'),
            "{name}: {error}"
        );
    }
    let config =
        parse(r#"{"mcpServers": {"fs": {"command": "SECRET"}}, "agents": {"ui": {"token": "SECRET"}}}"#);
    assert!(!format!("{config:?}").contains("SECRET"));
    assert_eq!(config.unwrap().token("ui").unwrap().as_deref(), Some("SECRET"));
}

#[test]
fn tokens_come_from_the_file_or_the_environment() {
    let text = r#"{"mcpServers": {}, "agents": {"a": {}, "b": {"token_env": "PATH"}, "c": {"token_env": "MCP_NONE_OF_THESE"},
        "d": {"token": "x${MCP_NONE_OF_THESE:-y}"}, "e": {"token": ""}}}"#;
    let config = parse(text).unwrap();
    assert_eq!(config.agent_names().collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    assert_eq!(config.token("a").unwrap(), None);
    assert_eq!(config.token("b").unwrap(), std::env::var("PATH").ok());
    let missing = "agents.c.token_env: the variable MCP_NONE_OF_THESE is not set";
    assert_eq!(config.token("c").unwrap_err().message, missing);
    assert_eq!(config.token("d").unwrap().as_deref(), Some("xy"));
    assert!(config.token("e").is_err() && config.token("f").is_err());
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new("files");
    for (name, text, part) in [
        ("a.json", "\u{feff}{", "it is not JSON: "),
        ("b.json", &format!("[{}", "[".repeat(100_000)), "it is not JSON: "),
        ("c.json", &" ".repeat((16 << 20) + 1), "it is larger than 16777216 bytes"),
        ("d.json", "{\"mcpServers\": {}, // remark\n}", "it is not JSON: "),
    ] {
        let error = ClientConfig::load(folder.file(name, text)).unwrap_err().message;
        assert!(error.contains(name) && error.contains(part), "{error}");
    }
    assert!(ClientConfig::load(folder.0.join("none.json")).unwrap_err().message.contains("none.json: "));
}

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mcp-resources-config-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
