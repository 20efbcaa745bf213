//! The command `mcp-resources`: one [`main`] for a binary, the wheel's console script and npm's `bin`.
//!
//! ```text
//!  argv ──▶ args ──▶ select: a command, a URL, or a name of an mcpServers file ──▶ client (mcp-resources-runtime)
//!                └─▶ ls, read, complete, watch, lint: a file each ──▶ output: data to stdout, messages to stderr
//!                ├─▶ browse: a page that shows the resources of servers
//!                ├─▶ serve: the server of a file or of words (mcp-resources-serve), at an address
//!                ├─▶ gateway: other servers, each agent its own
//!                ├─▶ dev: another server, started again when its sources change
//!                └─▶ token, install, uninstall, completions: no server
//! ```
//!
//! Law: stdout has only data. Texts of a server reach a terminal only through `output::plain` or `output::lines`.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage; `lint` has its own. 130 and 143 after SIGINT and SIGTERM, which are the
//! usual end of `serve` and `gateway`: 0.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod args;
mod atomic_file;
mod body;
mod browse;
mod complete;
mod completions;
mod connect;
mod dev;
mod error;
mod files;
mod gateway;
mod install;
mod lint;
mod ls;
mod manual;
mod notify;
mod output;
mod read;
mod select;
mod serve;
mod status;
mod token;
mod tokens;
mod watch;

use args::{Cli, Command};
use clap::Parser;
use error::Failed;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command. `argv` begins with the name of the program. Nothing is left running when it returns.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(run(argv))
}

/// As [`main`], for other languages: the exit status as a number.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> u8 {
    let argv: Vec<OsString> = argv.into_iter().collect();
    let cli = match Cli::try_parse_from(&argv) {
        Ok(cli) => cli,
        Err(error) if args::may_repeat_secret(&error, &argv) => {
            let text = "an argument is not expected; quote the whole of a header: --header 'Name: value'";
            return Failed::usage(text).report();
        }
        Err(error) => {
            // An error while printing the help is ignored.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let outcome = match cli.command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Dev(dev) => {
            dev::run(&dev, argv.first().map_or("mcp-resources".as_ref(), OsString::as_os_str))
        }
        Command::Gateway(gateway) => gateway::run(&gateway),
        Command::Token(token) => token::run(&token),
        Command::Triggers(triggers) => serve::triggers(&triggers),
        Command::Ls(ls) => connect::with(ls.server.clone(), async |client| ls::run(&ls, client).await),
        Command::Read(read) => {
            connect::with(read.server.clone(), async |client| read::run(&read, client).await)
        }
        Command::Complete(complete) => {
            connect::with(complete.server.clone(), async |client| complete::run(&complete, client).await)
        }
        Command::Watch(watch) => {
            connect::with(watch.server.clone(), async |client| watch::run(&watch, client).await)
        }
        Command::Notify(notify) => {
            connect::with(notify.server.clone(), async |client| notify::run(&notify, client).await)
        }
        Command::Browse(browse) => browse::run(&browse),
        Command::Lint(lint) => lint::lint(&lint),
        Command::Install(install) => install::run(&install),
        Command::Uninstall(uninstall) => install::remove(&uninstall),
        Command::Completions(completions) => completions::script(&completions),
        Command::Candidates(candidates) => completions::candidates(&candidates),
        Command::Options => serve::options(),
        Command::Manual { directory } => manual::write(&directory),
    };
    match outcome {
        Ok(status) => status,
        Err(failed) => failed.report(),
    }
}

/// The result of a command: an exit status, or the reason why it failed.
type Outcome = Result<u8, Failed>;
