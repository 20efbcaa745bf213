//! The servers of the comparison: who takes part in what, who cannot and why, and how each is started.

use crate::database::{self, Part};
use crate::docs::HANDBOOK;
use crate::files::{Folder, Work};
use crate::gateway::{self, GatewayWork};
use crate::options::Options;
use crate::process::Launch;
use crate::repository::REPOSITORY;
use crate::scale::ScaleWork;
use crate::settings::FOLDER;
use crate::tools::ToolWork;
use crate::workload::{AttachedPart, Read, Workload};
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::process::Command;

/// A server, and which of its handlers is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contestant {
    /// Its name, as `../serve` knows it.
    pub(crate) name: &'static str,
    /// Which handler, if not the usual one.
    pub(crate) handler: Handler,
}

/// How the handler that is read was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// As the language has it by default; in Python a `def`, in Node a function.
    Usual,
    /// Called on the loop itself.
    Inline,
    /// An `async` function.
    Async,
    /// None: the answer is a constant that the engine holds.
    Constant,
    /// The usual one, behind a policy of [`RULES`] globs.
    Guarded,
    /// A provider that answers on the thread that read the request.
    Provider,
    /// A provider that answers on a worker of its own.
    Worker,
    /// Of ours, attached to the server of an SDK.
    Attached,
    /// The same, which runs the server behind a pipe of ours.
    InFront,
    /// The server's own, behind `mcp-resources serve FOLDER -- SERVER`.
    Beside,
    /// That of a server behind it.
    Gateway,
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.handler {
            Handler::Usual => f.write_str(self.name),
            Handler::Inline => write!(f, "{}, inline", self.name),
            Handler::Async => write!(f, "{}, async", self.name),
            Handler::Constant => write!(f, "{}, constant", self.name),
            Handler::Guarded => write!(f, "{}, guarded", self.name),
            Handler::Provider => write!(f, "{}, provider", self.name),
            Handler::Worker => write!(f, "{}, provider on a worker", self.name),
            Handler::Attached => write!(f, "{}, attached", self.name),
            Handler::InFront => write!(f, "{}, in front", self.name),
            Handler::Beside => write!(f, "{}, behind serve", self.name),
            Handler::Gateway => write!(f, "{}, gateway", self.name),
        }
    }
}

impl Contestant {
    fn usual(name: &'static str) -> Self {
        Self { name, handler: Handler::Usual }
    }

    /// Requests before counting starts: Python's caches and Node's compiler need some.
    pub(crate) fn warm(&self) -> u64 {
        if matches!(self.name, "ours-node" | "ts-sdk") { 10_000 } else { 1_000 }
    }

    /// An interpreter without a server: what the language alone costs.
    pub(crate) fn is_bare(&self) -> bool {
        self.name.starts_with("bare-")
    }

    /// Answers every read with the same text.
    pub(crate) fn is_floor(&self) -> bool {
        self.name.starts_with("floor")
    }
}

/// How many globs a guarded server's policy has.
const RULES: u32 = 1_000;

const OURS: [&str; 3] = ["ours-rust", "ours-python", "ours-node"];
/// `mcp-resources serve`, built natively.
const COMMAND: &str = "ours-command";
/// The program that is started for each request.
const GIT: &str = "git";
const PEERS: [&str; 4] = ["python-sdk", "fastmcp", "ts-sdk", "rmcp"];

/// Who is in a workload's table, in the order of its rows.
pub(crate) fn contestants(workload: Workload, modern: bool) -> Vec<Contestant> {
    if workload == Workload::Provided {
        let ours = [Handler::Usual, Handler::Provider, Handler::Worker];
        let ours = ours.map(|handler| Contestant { name: "ours-rust", handler });
        return [Contestant::usual("floor")].into_iter().chain(ours).collect();
    }
    if matches!(workload, Workload::Client(_)) {
        return OURS.iter().chain(&["python-sdk", "ts-sdk"]).map(|name| Contestant::usual(name)).collect();
    }
    if let Workload::Attached(part) = workload {
        let handlers: &[Handler] = match part {
            AttachedPart::Resource => &[Handler::Usual, Handler::Attached, Handler::InFront],
            AttachedPart::Tool => &[Handler::Usual, Handler::Attached, Handler::InFront, Handler::Beside],
        };
        let of = |name| handlers.iter().map(move |handler| Contestant { name, handler: *handler });
        return ["python-sdk", "fastmcp", "ts-sdk"].into_iter().flat_map(of).collect();
    }
    if let Workload::Gateway(work) = workload {
        let alone: &[&'static str] = if work == GatewayWork::List { &[] } else { &OURS[..1] };
        // It bridges stdio and HTTP: with a command behind it, it serves HTTP; on stdio it needs a URL behind it (and
        // `--transport streamablehttp`, or it asks for the SSE of 2024-11-05 and ends). So the rows on stdio, whose server is
        // a command, have no place for it, nor those of 2026-07-28, which it does not speak.
        let only_http: &[&'static str] = if work == GatewayWork::Http { &["mcp-proxy"] } else { &[] };
        let behind = [COMMAND, "fastmcp"].iter().chain(only_http);
        let behind = behind.map(|name| Contestant { name, handler: Handler::Gateway });
        return alone.iter().map(|name| Contestant::usual(name)).chain(behind).collect();
    }
    if workload == Workload::Settings {
        return [COMMAND, "fastmcp"].map(Contestant::usual).into();
    }
    if matches!(workload, Workload::Git(_) | Workload::History(_)) {
        return [COMMAND, GIT].map(Contestant::usual).into();
    }
    if matches!(workload, Workload::Database(_)) {
        return [COMMAND, "fastmcp"].map(Contestant::usual).into();
    }
    if workload == Workload::Tools(ToolWork::Import) {
        return vec![Contestant::usual("ours-python")];
    }
    if matches!(workload, Workload::Docs | Workload::Scale(_)) {
        return vec![Contestant::usual(COMMAND)];
    }
    if let Workload::Files(work) = workload {
        // The command from the wheel and from npm starts otherwise, and does the same then.
        let packed: &[&'static str] = if work == Work::Start { &OURS[1..] } else { &[] };
        return [COMMAND]
            .iter()
            .chain(packed)
            .chain(&["fastmcp"])
            .map(|name| Contestant::usual(name))
            .collect();
    }
    let floor: &[&'static str] = match workload {
        Workload::Start => &["floor", "bare-python", "bare-node"],
        Workload::Read(_) | Workload::Each => &["floor"],
        Workload::Http(_) | Workload::Open(_) => &["floor-http"],
        _ => &[],
    };
    let usual = floor.iter().chain(&OURS).map(|name| Contestant::usual(name));
    let handlers: &[(&'static str, Handler)] = match workload {
        Workload::Read(Read::Static) => &[
            ("ours-python", Handler::Inline),
            ("ours-rust", Handler::Constant),
            ("ours-python", Handler::Constant),
            ("ours-node", Handler::Constant),
        ],
        Workload::Read(Read::Item) => &[
            ("ours-python", Handler::Async),
            ("ours-python", Handler::Inline),
            ("python-sdk", Handler::Async),
            ("ours-rust", Handler::Guarded),
        ],
        Workload::Each => &[("ours-python", Handler::Async)],
        Workload::Http(_) => &[("ours-rust", Handler::Constant)],
        _ => &[],
    };
    let variants = handlers.iter().map(|(name, handler)| Contestant { name, handler: *handler });
    // FastMCP stands on the official SDK: it is measured where that says something more.
    let repeats = modern && !workload.is_http()
        || matches!(workload, Workload::Each | Workload::Template(1 | 100 | 10_000));
    let peers = PEERS.iter().filter(|name| !(repeats && **name == "fastmcp"));
    usual.chain(variants).chain(peers.map(|name| Contestant::usual(name))).collect()
}

/// Why a server has no row of figures.
pub(crate) fn lacks(contestant: &Contestant, workload: Workload, modern: bool) -> Option<&'static str> {
    let tells = matches!(
        workload,
        Workload::Updates
            | Workload::Subscribers
            | Workload::Listeners
            | Workload::Gateway(GatewayWork::Listeners)
    );
    match (contestant.name, workload) {
        ("rmcp", Workload::Template(_)) => Some("has no router: URIs are matched by hand"),
        ("fastmcp", _)
            if tells
                || matches!(workload, Workload::Files(Work::Change) | Workload::Database(Part::Change)) =>
        {
            Some("has no subscriptions")
        }
        ("fastmcp", Workload::Files(Work::List)) => {
            Some("registers files in a time that grows with their square; 4,000 take it 8 s of CPU")
        }
        ("python-sdk", _) if tells && !modern => Some("`MCPServer` has no `resources/subscribe`"),
        ("python-sdk", Workload::Listeners) => Some("`MCPServer` takes at most 1,024 listeners"),
        ("ts-sdk", _) if tells && workload.is_http() && !modern => {
            Some("its HTTP handler serves the legacy era without sessions, so there is no stream to tell")
        }
        ("python-sdk" | "fastmcp", Workload::Open(rate)) if rate > 500 => {
            Some("cannot keep up with the rate")
        }
        _ => None,
    }
}

/// Knows how to start each server.
pub(crate) struct Launcher {
    serve: String,
    log: Option<String>,
    known: HashMap<(&'static str, Way), Vec<String>>,
}

/// What a program is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    Stdio,
    Http,
    /// To be a client.
    Client,
    /// To serve a folder over stdio.
    Files(Folder),
    /// To serve a database over stdio.
    Database,
    /// To serve documentation over stdio.
    Docs,
    /// To serve a repository over stdio.
    Git(&'static str),
    /// To serve a folder of W24 to W26 over stdio.
    Scale(ScaleWork),
    /// To serve a configuration file over stdio.
    Settings,
    /// To serve the fixture's folder over stdio, beside the server whose command follows.
    Beside,
    /// To serve what the servers in a file have.
    Gateway(GatewayWork),
}

impl Launcher {
    pub(crate) fn new(options: &Options) -> Self {
        Self { serve: options.serve.clone(), log: options.log.clone(), known: HashMap::new() }
    }

    /// How to start a server for a workload: its command, asked of `../serve` once, and its environment.
    pub(crate) fn launch(
        &mut self,
        contestant: &Contestant,
        workload: Workload,
    ) -> Result<Launch, Box<dyn Error>> {
        let way = match workload {
            Workload::Client(_) => Way::Client,
            Workload::Files(work) => Way::Files(work.folder()),
            Workload::Database(_) => Way::Database,
            Workload::Docs => Way::Docs,
            Workload::Git(_) => Way::Git(REPOSITORY),
            Workload::History(query) => Way::Git(query.folder()),
            Workload::Scale(work) => Way::Scale(work),
            Workload::Settings => Way::Settings,
            Workload::Gateway(work) if contestant.handler == Handler::Gateway => {
                gateway::write_files(&self.command(OURS[0], Way::Stdio)?)?;
                Way::Gateway(work)
            }
            _ if workload.is_http() => Way::Http,
            _ => Way::Stdio,
        };
        let mut command = self.command(contestant.name, way)?;
        if way == Way::Client {
            command.extend(self.command(OURS[0], Way::Stdio)?);
        }
        let mut environment = workload.environment();
        // A peer lists what it has registered, which is of no use to reads.
        if matches!(workload, Workload::Files(Work::List | Work::Start)) {
            environment.push(("LIST", "1".into()));
        }
        if contestant.handler == Handler::Attached {
            environment.push(("ATTACH", "1".into()));
        }
        if contestant.handler == Handler::InFront {
            environment.push(("ATTACH", "run".into()));
        }
        if contestant.handler == Handler::Beside {
            let mut serve = self.command(COMMAND, Way::Beside)?;
            serve.append(&mut command);
            command = serve;
        }
        if contestant.handler == Handler::Guarded {
            environment.push(("RULES", RULES.to_string()));
        }
        if contestant.is_floor() {
            environment.push(("ANSWER", workload.floor_answer().into()));
        }
        Ok(Launch { command, environment, log: self.log.clone() })
    }

    fn command(&mut self, name: &'static str, way: Way) -> Result<Vec<String>, Box<dyn Error>> {
        if let Some(known) = self.known.get(&(name, way)) {
            return Ok(known.clone());
        }
        let command = ask(&self.serve, name, way)?;
        self.known.insert((name, way), command.clone());
        Ok(command)
    }
}

/// The words of the command that starts a server or a client, one on each line; `PORT` stands for the port.
fn ask(serve: &str, name: &str, way: Way) -> Result<Vec<String>, Box<dyn Error>> {
    let folder;
    let transport: &[&str] = match way {
        Way::Stdio => &["--stdio"],
        Way::Http => &["--http", "PORT"],
        Way::Client => &["--client"],
        Way::Files(which) => {
            // Its configuration decides on the command.
            which.make()?;
            folder = which.path().display().to_string();
            &["--files", &folder]
        }
        Way::Database => &["--database", database::FOLDER],
        Way::Docs => &["--docs", HANDBOOK],
        Way::Git(repository) => &["--git", repository],
        Way::Scale(work) => {
            folder = work.path().display().to_string();
            &["--scale", &folder]
        }
        Way::Settings => &["--settings", FOLDER],
        Way::Beside => &["--beside"],
        Way::Gateway(work) => {
            folder = work.path().display().to_string();
            if work.is_http() { &["--gateway", &folder, "--http", "PORT"] } else { &["--gateway", &folder] }
        }
    };
    let output = Command::new(serve).args([name, "--print"]).args(transport).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    let words: Vec<String> = String::from_utf8(output.stdout)?.lines().map(String::from).collect();
    if words.is_empty() { Err("no command".into()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_says_why() {
        let rmcp = Contestant::usual("rmcp");
        assert!(lacks(&rmcp, Workload::Template(100), false).is_some());
        assert!(lacks(&rmcp, Workload::Read(Read::Item), false).is_none());
    }

    #[test]
    fn every_workload_has_ours_and_nobody_twice() {
        for workload in Workload::all() {
            let all = contestants(workload, true);
            // A provider is the same code in every language.
            let ours: &[&str] = match workload {
                Workload::Provided => &OURS[..1],
                Workload::Tools(ToolWork::Import) => &["ours-python"],
                Workload::Attached(_) | Workload::Gateway(_) => &[],
                Workload::Files(_)
                | Workload::Database(_)
                | Workload::Docs
                | Workload::Git(_)
                | Workload::History(_)
                | Workload::Scale(_)
                | Workload::Settings => &[COMMAND],
                _ => &OURS,
            };
            assert!(ours.iter().all(|name| all.contains(&Contestant::usual(name))));
            for one in &all {
                assert_eq!(all.iter().filter(|other| *other == one).count(), 1, "{one} in {workload:?}");
            }
        }
    }
}
