//! A command's client and runtime, and the signals that end it.

use crate::args::ServerArgs;
use crate::error::Failed;
use crate::select::{Selected, select};
use crate::{Outcome, output};
use mcp_resources_client::{Client, ClientBuilder, ServerConfig};
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `work` with a client of the server that `args` name. Ends it at SIGINT and SIGTERM, and closes the client in any case.
pub(crate) fn with(args: ServerArgs, work: impl AsyncFnOnce(&Client) -> Outcome) -> Outcome {
    let selected = select(&args)?;
    with_client(|| connect(&selected, &args), work)
}

/// As [`with`], with the client that `make` builds.
pub(crate) fn with_client(
    make: impl FnOnce() -> Result<Client, Failed>,
    work: impl AsyncFnOnce(&Client) -> Outcome,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let status = runtime.block_on(async {
        let client = make()?;
        let (mut interrupted, mut ended) = signals().map_err(system)?;
        let status = tokio::select! {
            status = work(&client) => status,
            _ = interrupted.recv() => Err(Failed::Signal(2)),
            _ = ended.recv() => Err(Failed::Signal(15)),
        };
        tokio::select! {
            () = client.close() => {}
            // A second signal ends at once: dropping the client kills the servers that it started.
            _ = interrupted.recv() => {}
        }
        status
    });
    // A thread that still writes or resolves a name must not keep the program alive.
    runtime.shutdown_background();
    status
}

/// A client of one server. Requires a runtime; connects with the first call.
pub(crate) fn connect(selected: &Selected, args: &ServerArgs) -> Result<Client, Failed> {
    Ok(with_server(builder(args), selected).connect()?)
}

/// Adds a server to a builder.
pub(crate) fn with_server(builder: ClientBuilder, selected: &Selected) -> ClientBuilder {
    let mut config = ServerConfig::new(&selected.name, selected.target.clone(), selected.allowed.clone());
    config.timeout = Some(selected.timeout);
    builder.server_with(config)
}

/// A client without servers, with the options of the command line.
pub(crate) fn builder(args: &ServerArgs) -> ClientBuilder {
    let mut builder = Client::builder()
        .on_left_out(|server, what| output::say("warning", &format!("{server}: {what}")))
        .info("mcp-resources", env!("CARGO_PKG_VERSION"));
    if let Some(revision) = args.revision {
        builder = builder.revision(revision);
    }
    if args.verbose {
        builder = builder.on_note(|server, note| output::say("note", &format!("{server}: {note}")));
    }
    builder
}

fn signals() -> io::Result<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)> {
    Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
}

fn system(error: io::Error) -> Failed {
    Failed::new(format!("the system refuses what is needed: {error}"))
}
