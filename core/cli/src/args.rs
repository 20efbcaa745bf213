//! The words and options of the command line. Each help fits a terminal of 24 lines and 80 columns.

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use mcp_resources_engine::version::Revision;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().bold());

/// Serve resources; list, read, watch and check those of any MCP server
#[derive(Debug, Parser)]
#[command(name = "mcp-resources", version, styles = STYLES, disable_help_subcommand = true)]
#[command(disable_version_flag = true)]
// As the usual template, but without an empty line below the first: with that, the help has a line too many.
#[command(help_template = "{about}\n{usage-heading} {usage}\n\n{all-args}{after-help}")]
#[command(after_help = "Example: mcp-resources ls -- mcp-resources serve .   (-V: the version)")]
pub(crate) struct Cli {
    /// Print version
    #[arg(short = 'V', long, action = ArgAction::Version, hide = true)]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Dev(Dev),
    Gateway(Gateway),
    Token(Token),
    Triggers(Triggers),
    Ls(Ls),
    Read(ReadArgs),
    Complete(CompleteArgs),
    Watch(WatchArgs),
    Notify(NotifyArgs),
    Browse(Browse),
    Lint(LintArgs),
    Install(Install),
    Uninstall(Uninstall),
    Completions(Completions),
    #[command(name = "__complete", hide = true)]
    Candidates(CompletionCandidates),
    /// The options of every kind of provider, and the limits, as JSON: `make options` writes types and documents from them.
    #[command(name = "__options", hide = true)]
    Options,
    /// Write the manual pages into a directory, for packages.
    #[command(name = "__manual", hide = true)]
    Manual {
        /// The directory, which exists.
        directory: PathBuf,
    },
}

/// The options that choose a server and how to connect to it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServerArgs {
    /// A 'command', a URL, or a name of a configured server
    #[arg(short, long)]
    pub(crate) server: Option<String>,
    /// The file that has this name [default: .mcp.json, …]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Apply the allow-list of this agent of the file
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// A header 'Name: value' for a URL; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) header: Vec<HeaderPair>,
    /// A variable NAME=VALUE for a command; may be repeated
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    pub(crate) env: Vec<HeaderPair>,
    /// The longest time for one request [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<u64>,
    /// Use only this protocol revision, such as 2025-06-18
    #[arg(long, value_name = "DATE", value_parser = revision)]
    pub(crate) revision: Option<Revision>,
    /// Report on stderr what the client skips or retries
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The command that starts the server
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandName)]
    pub(crate) command: Vec<String>,
}

/// Serve files and other sources, over stdio or HTTP
#[derive(Args, Debug)]
#[command(after_help = "Providers:
  DIR files:DIR git:DIR docs:DIR skills:DIR metrics: clock: results:SCHEME
  rag:NAME=DIR gdrive:FILE config:FILE,GLOB env:NAME db:NAME=URL,TABLE api:FILE
Example: mcp-resources serve files:app=src files:docs")]
pub(crate) struct Serve {
    /// Sources to serve: KIND:ARGUMENT, or a directory
    pub(crate) provider: Vec<String>,
    /// Serve the providers of a YAML or JSON file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "provider")]
    pub(crate) config: Option<PathBuf>,
    /// Serve over HTTP: [HOST:]PORT, unix:PATH, or systemd
    #[arg(long, value_name = "ADDRESS", value_parser = HttpAddress::parse)]
    pub(crate) http: Option<HttpAddress>,
    /// Serve /health and /metrics at an address of their own
    #[arg(long, value_name = "ADDRESS", value_parser = HttpAddress::parse, requires = "http")]
    pub(crate) status: Option<HttpAddress>,
    /// Changes reach all processes: redis://, nats://, unix:
    #[arg(long, value_name = "URL")]
    pub(crate) bus: Option<String>,
    /// Serve other machines without asking who they are
    #[arg(long, requires = "http")]
    pub(crate) public: bool,
    /// Do not offer the resources as tools too
    #[arg(long)]
    pub(crate) no_tools: bool,
    /// Check the file and serve nothing
    #[arg(long, requires = "config")]
    pub(crate) check: bool,
    /// With --check: what a person sees (--scope, --group)
    #[arg(long = "as", value_name = "NAME", requires = "check")]
    pub(crate) principal: Option<String>,
    /// With --as: a scope of the person; may be repeated
    #[arg(long, value_name = "SCOPE", requires = "principal", hide = true)]
    pub(crate) scope: Vec<String>,
    /// With --as: a group of the person; may be repeated
    #[arg(long, value_name = "GROUP", requires = "principal", hide = true)]
    pub(crate) group: Vec<String>,
    /// Read the file again when it changes, as on SIGHUP
    #[arg(long, requires = "config", conflicts_with = "check")]
    pub(crate) watch_config: bool,
    /// Serve beside this server, which gets what is not ours
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandName, conflicts_with = "http")]
    pub(crate) command: Vec<String>,
    /// Not an option: explains where the command listens.
    #[arg(long, hide = true, value_parser = no_host)]
    host: Option<String>,
    /// Not an option: the port is the value of --http.
    #[arg(long, hide = true, value_parser = no_port)]
    port: Option<String>,
}

/// Run a server that you write; restart it when its sources change
#[derive(Args, Debug)]
#[command(override_usage = "mcp-resources dev [OPTIONS] [FILE] [-- CMD]")]
#[command(after_help = "Clients stay connected. Requests and changed lists are printed on stderr.

Examples: mcp-resources dev server.py --http 8000
          mcp-resources dev -- python -m notes")]
pub(crate) struct Dev {
    /// A program (.py, .js, .ts) or a file for `serve --config`
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,
    /// Serve over HTTP instead of stdio: [HOST:]PORT
    #[arg(long, value_name = "ADDRESS", value_parser = HttpAddress::parse)]
    pub(crate) http: Option<HttpAddress>,
    /// The command that starts the server, over stdio
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandName)]
    pub(crate) command: Vec<String>,
}

/// Serve what other servers have, to each agent its own
#[derive(Args, Debug)]
#[command(after_help = "The file is an mcpServers file. If it has agents, each sees its own:
  agents: {web: {token_env: TOKEN, mcpServers: {files: {resources: '*'}}}}
Example: mcp-resources gateway --config team.yaml --http 8000")]
pub(crate) struct Gateway {
    /// The file with mcpServers and agents, YAML or JSON
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Serve over HTTP: [HOST:]PORT, or unix:PATH
    #[arg(long, value_name = "ADDRESS", value_parser = HttpAddress::parse)]
    pub(crate) http: Option<HttpAddress>,
    /// Serve this agent alone
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Serve /health and /metrics at an address of their own
    #[arg(long, value_name = "ADDRESS", value_parser = HttpAddress::parse, requires = "http")]
    pub(crate) status: Option<HttpAddress>,
    /// Read the file again when it changes, as on SIGHUP
    #[arg(long)]
    pub(crate) watch_config: bool,
    /// Print what each agent has, and serve nothing
    #[arg(long, conflicts_with_all = ["http", "watch_config"])]
    pub(crate) list: bool,
}

/// Make, list and revoke the bearer tokens of `serve`
#[derive(Args, Debug)]
#[command(after_help = "The file has the SHA-256 of each token; `auth: {tokens: FILE}` uses it.

Example: mcp-resources token new alice --expires 90d --file tokens.yaml")]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// Print a new token, and add its SHA-256 to the file
    #[command(after_help = "Example: mcp-resources token new alice --scope notes:read --file tokens.yaml")]
    New {
        /// The person or program that it represents
        name: String,
        /// A scope of the token; may be repeated
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// A group of the person; may be repeated
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// How long it is good, such as 90d or 12h [default: for ever]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// The file of the tokens
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// List names, scopes, groups and expiry
    #[command(after_help = "Example: mcp-resources token list --file tokens.yaml")]
    List {
        /// The file of the tokens
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Remove every token of a name
    #[command(after_help = "Example: mcp-resources token revoke alice --file tokens.yaml")]
    Revoke {
        /// The name
        name: String,
        /// The file of the tokens
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// Print SQL that makes Postgres report changes; nothing is run
#[derive(Args, Debug)]
#[command(after_help = "Run the SQL once, as the owner of the tables:
  mcp-resources triggers db:shop=postgres://HOST/shop,orders | psql shop

Example: mcp-resources triggers --config resources.yaml")]
pub(crate) struct Triggers {
    /// The database and its tables: db:NAME=URL,TABLE
    pub(crate) provider: Vec<String>,
    /// Take the databases of a YAML or JSON file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "provider")]
    pub(crate) config: Option<PathBuf>,
}

/// List resources and templates
#[derive(Args, Debug)]
#[command(after_help = "Example: mcp-resources ls --json -- python server.py")]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// List only templates
    #[arg(long)]
    pub(crate) templates: bool,
    /// Print one JSON object per line, as the server sent it
    #[arg(long)]
    pub(crate) json: bool,
    /// List at most N entries
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Write the contents of a resource to stdout
#[derive(Args, Debug)]
#[command(after_help = "Example: mcp-resources read notes://monday --server 'python server.py'")]
pub(crate) struct ReadArgs {
    /// The URI of the resource
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Write the contents as JSON, with URI and media type
    #[arg(long)]
    pub(crate) json: bool,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// List values for a variable of a template
#[derive(Args, Debug)]
#[command(override_usage = "mcp-resources complete [OPTIONS] <TEMPLATE> <VARIABLE> [PREFIX] [-- CMD]")]
#[command(after_help = "Example: mcp-resources complete notes://{day} day mo -- python server.py")]
pub(crate) struct CompleteArgs {
    /// The text of the template
    pub(crate) template: String,
    /// The name of the variable
    pub(crate) variable: String,
    /// The beginning of the values
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Write the values and their total as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the contents of resources now and after each change
#[derive(Args, Debug)]
#[command(after_help = "Example: mcp-resources watch --json metrics://cpu -- python server.py")]
pub(crate) struct WatchArgs {
    /// The URIs of the resources
    #[arg(required = true, num_args = 1..)]
    pub(crate) uri: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// {"uri":…,"contents":[…]} per line; null if removed
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell a server of `serve` over HTTP that resources have changed
#[derive(Args, Debug)]
#[command(after_help = "Allowed on the server's machine; with auth, for tokens with the scope notify.
Example: mcp-resources notify notes://monday --server http://localhost:8000/mcp")]
pub(crate) struct NotifyArgs {
    /// The URIs of the resources
    #[arg(required_unless_present = "list_changed")]
    pub(crate) uri: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// The lists have changed
    #[arg(long)]
    pub(crate) list_changed: bool,
}

/// Look at resources in a browser, on this machine
#[derive(Args, Debug)]
#[command(after_help = "With --config alone, the page shows all servers of the file.
Example: mcp-resources browse -- mcp-resources serve .")]
pub(crate) struct Browse {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Serve the page at this port [default: a free one]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Only print the URL of the page
    #[arg(long)]
    pub(crate) no_open: bool,
}

/// Check a server for mistakes, or the servers of a gateway
#[derive(Args, Debug)]
#[command(after_help = "With a file of several servers or agents and no name: what a gateway cannot
merge. Exit status: 0 no mistakes, 1 mistakes found, 2 check failed
Example: mcp-resources lint -- python server.py")]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON object per finding
    #[arg(long)]
    pub(crate) json: bool,
    /// Read at most N resources
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) limit: usize,
}

/// Print the entry for a client's file, and offer to write it
#[derive(Args, Debug)]
#[command(after_help = "Clients: claude-code, claude-desktop, vscode, cursor, codex, gemini, goose,
zed, opencode, windsurf. In --env and --header, '${NAME}' is a variable that
the client replaces when it starts the server.
Example: mcp-resources install claude-code --name shop -- python server.py")]
pub(crate) struct Install {
    /// The client that should start the server
    #[arg(value_enum, hide_possible_values = true, required_unless_present = "list")]
    pub(crate) client: Option<crate::files::KnownClient>,
    /// The name of the entry [default: the program's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Write only the entry, as JSON, and never ask
    #[arg(long)]
    pub(crate) json: bool,
    /// Write to the client's file without a question
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) yes: bool,
    /// List the clients of this machine, with our entries
    #[arg(long, conflicts_with_all = ["client", "yes", "name"])]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) server: InstalledServer,
}

/// The server of an entry: a command or a URL, which no file names yet.
#[derive(Args, Clone, Debug)]
pub(crate) struct InstalledServer {
    /// A 'command', or a URL
    #[arg(short, long)]
    pub(crate) server: Option<String>,
    /// A header 'Name: value' for a URL; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) header: Vec<HeaderPair>,
    /// A variable NAME=VALUE for a command; may be repeated
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    pub(crate) env: Vec<HeaderPair>,
    /// The command that starts the server
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandName)]
    pub(crate) command: Vec<String>,
}

impl From<InstalledServer> for ServerArgs {
    fn from(InstalledServer { server, header, env, command }: InstalledServer) -> Self {
        Self { server, header, env, command, ..Self::default() }
    }
}

/// Remove the entry from a client's file
#[derive(Args, Debug)]
#[command(after_help = "Example: mcp-resources uninstall claude-code")]
pub(crate) struct Uninstall {
    /// A client, as for install
    #[arg(value_enum, hide_possible_values = true)]
    pub(crate) client: crate::files::KnownClient,
    /// The name of the entry [default: our only one]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Change the file without a question
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Print a shell script that completes options and URIs
#[derive(Args, Debug)]
#[command(after_help = "Example: eval \"$(mcp-resources completions bash)\"   (in ~/.bashrc)")]
pub(crate) struct Completions {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_enum, hide_possible_values = true)]
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// The arguments with which the scripts call the program.
#[derive(Args, Debug)]
pub(crate) struct CompletionCandidates {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
    /// For bash, the line up to the cursor and the current word of readline; for others, the words up to the cursor.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) words: Vec<String>,
}

/// The place where `serve` listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpAddress {
    /// A host, 127.0.0.1 unless it is named, and a port. Port 0 is any free one.
    Tcp { host: String, port: u16 },
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// The socket that the service manager has passed.
    Systemd,
}

impl HttpAddress {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            "it must be a port from 0 to 65535, such as 8000, a host before it, such as 0.0.0.0:8000, unix:PATH, or \
             systemd; port 0 is any free one"
                .to_owned()
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        if text == "systemd" {
            return Ok(Self::Systemd);
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", text));
        let port = port.parse().map_err(|_| wrong())?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.contains([' ', '/', '[', ']']) {
            return Err(wrong());
        }
        Ok(Self::Tcp { host: host.into(), port })
    }
}

fn no_host(text: &str) -> Result<String, String> {
    Err(format!("there is no option --host; write --http {text}:8000"))
}

fn no_port(text: &str) -> Result<String, String> {
    Err(format!("there is no option --port; write --http {text}"))
}

/// A name and a value, or the mistake in the text.
///
/// The text is judged after it is parsed: clap repeats a wrong argument in its message, and this one can be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderPair(pub(crate) Result<(String, String), &'static str>);

fn header(text: &str) -> Result<HeaderPair, Infallible> {
    let Some((name, value)) = text.split_once(':') else {
        return Ok(HeaderPair(Err("--header must be 'Name: value'; the one given has no colon")));
    };
    let name = name.trim();
    let value = value.trim();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    Ok(HeaderPair(match () {
        () if name.is_empty() || !name.bytes().all(is_token) => {
            Err("--header must be 'Name: value'; the name of the one given is no name of a header")
        }
        () if value.is_empty() => {
            Err("--header must be 'Name: value'; the one given has no value: quote the whole of it")
        }
        () if value.chars().any(char::is_control) => {
            Err("--header must be 'Name: value'; the value of the one given has a control character")
        }
        () => Ok((name.into(), value.into())),
    }))
}

fn variable(text: &str) -> Result<HeaderPair, Infallible> {
    Ok(HeaderPair(match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok((name.into(), value.into())),
        _ => Err("--env must be NAME=VALUE; the one given has no name or no ="),
    }))
}

/// Whether clap's message about an argument would repeat a word that may belong to a header or a variable: they are easily
/// left unquoted.
pub(crate) fn may_repeat_secret(error: &clap::Error, argv: &[OsString]) -> bool {
    let is_option = |word: &str| word.starts_with("--header") || word.starts_with("--env");
    let repeated = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => !word.starts_with('-'),
        _ => false,
    };
    repeated
        && error.kind() == ErrorKind::UnknownArgument
        && argv.iter().any(|word| is_option(&word.to_string_lossy()))
}

/// Seconds as milliseconds.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = "it must be a number of seconds from 0.001 to 86400";
    let seconds: f64 = text.parse().map_err(|_| wrong)?;
    match (0.001..=86_400.0).contains(&seconds) {
        true => Ok((seconds * 1000.0).round() as u64),
        false => Err(wrong.into()),
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    Revision::parse(text)
        .ok_or_else(|| format!("it must be one of {}", Revision::ALL.map(Revision::as_str).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_help_fits_a_small_terminal_and_has_an_example() {
        let mut command = Cli::command();
        command.build();
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        for name in names.iter().map(String::as_str).filter(|name| !name.starts_with("__")).chain([""]) {
            let words = ["mcp-resources", name, "--help"].into_iter().filter(|word| !word.is_empty());
            let help = Cli::try_parse_from(words).unwrap_err().to_string();
            let wide = help.lines().find(|line| line.chars().count() > 80);
            assert!(
                help.lines().count() <= 24 && wide.is_none(),
                "{} lines, {wide:?}\n{help}",
                help.lines().count()
            );
            assert!(help.contains("Example"), "{help}");
        }
    }

    #[test]
    fn misspelled_words_are_answered_with_the_right_one() {
        for (words, right) in [
            (&["lst"][..], "'ls'"),
            (&["read", "a:b", "--sever", "x"], "'--server'"),
            (&["install", "vscod"], "'vscode'"),
            (&["install"], "<CLIENT>"),
            (&["uninstall", "curser"], "'cursor'"),
            (&["ls", "--timeout", "0"], "seconds"),
            (&["ls", "--revision", "2025-06-19"], "2025-06-18"),
            (&["complete", "a"], "VARIABLE"),
            (&["serve", "--http", "65536"], "a port from 0 to 65535"),
            (&["serve", "--http", "a:b"], "a port from 0 to 65535"),
            (&["serve", "--http", ":80"], "a host before it"),
            (&["serve", "--http", "unix:"], "unix:PATH"),
            (&["serve", "--host", "0.0.0.0"], "write --http 0.0.0.0:8000"),
            (&["serve", "--host=::", "--http", "1"], "there is no option --host"),
            (&["serve", "--check"], "--config"),
            (&["serve", "--config", "a.yaml", "--as", "bob"], "--check"),
            (&["token", "new", "alice"], "--file"),
            (&["token", "revok", "alice"], "'revoke'"),
            (&["serve", "--port", "8000"], "write --http 8000"),
        ] {
            let error = Cli::try_parse_from(["mcp-resources"].iter().chain(words)).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(right), "{error}");
        }
    }

    #[test]
    fn addresses() {
        let tcp = |host: &str, port| Ok(HttpAddress::Tcp { host: host.into(), port });
        assert_eq!(HttpAddress::parse("8000"), tcp("127.0.0.1", 8000));
        assert_eq!(HttpAddress::parse("0.0.0.0:80"), tcp("0.0.0.0", 80));
        assert_eq!(HttpAddress::parse("[::]:80"), tcp("::", 80));
        assert_eq!(HttpAddress::parse("localhost:0"), tcp("localhost", 0));
        assert_eq!(HttpAddress::parse("unix:/run/x.sock"), Ok(HttpAddress::Unix("/run/x.sock".into())));
        assert_eq!(HttpAddress::parse("systemd"), Ok(HttpAddress::Systemd));
    }

    #[test]
    fn a_wrong_header_or_variable_is_not_repeated() {
        let given = |text: &str| (header(text).unwrap().0, variable(text).unwrap().0);
        assert_eq!(given("A-b: c=d").0, Ok(("A-b".into(), "c=d".into())));
        assert_eq!(given("A= b:c").1, Ok(("A".into(), " b:c".into())));
        for wrong in [
            "Authorization Bearer t0ken",
            "Authori zation: t0ken",
            "t0ken:",
            ": t0ken",
            "A: t0k\nen",
            "=t0ken",
        ] {
            let (header, variable) = given(wrong);
            for said in [header.err(), variable.err()].into_iter().flatten() {
                assert!(said.starts_with("--") && !said.contains("t0k"), "{said}");
            }
            assert!(given(wrong).0.is_err());
        }
    }
}
