//! A command's client and runtime, and the signals that end it.

use crate::args::ServerArgs;
use crate::error::Failed;
use crate::select::{Selected, select};
use crate::{Outcome, output};
use mcp_resources_client::Client;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `work` with a client of the server that `args` name. Ends it at SIGINT and SIGTERM, and closes the client in any case.
pub(crate) fn with(args: ServerArgs, work: impl AsyncFnOnce(&Client) -> Outcome) -> Outcome {
    let selected = select(&args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let status = runtime.block_on(async {
        let client = connect(&selected, &args)?;
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
    let mut builder = Client::builder()
        .server(&selected.name, selected.target.clone())
        .allow(&selected.name, &selected.allowed)
        .timeout(selected.timeout)
        .on_left_out(|server, what| output::say("warning", &format!("{server}: {what}")))
        .info("mcp-resources", env!("CARGO_PKG_VERSION"));
    if let Some(revision) = args.revision {
        builder = builder.revision(revision);
    }
    if args.verbose {
        builder = builder.on_note(|server, note| output::say("note", &format!("{server}: {note}")));
    }
    Ok(builder.connect()?)
}

fn signals() -> io::Result<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)> {
    Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
}

fn system(error: io::Error) -> Failed {
    Failed::new(format!("the system refuses what is needed: {error}"))
}
