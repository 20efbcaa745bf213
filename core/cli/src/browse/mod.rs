//! `browse`: a page on this machine that shows the resources of servers.
//!
//! ```text
//!   browser ── GET /TOKEN/ ─────────▶ page: files that are compiled into the command
//!           ── POST /TOKEN/api/… ───▶ api ──▶ Client: lists, contents, completions
//!           ◀─ /TOKEN/api/events ──── events ◀── Client: changes, lost servers
//! ```
//!
//! Law: only the client's results are served, so the allow-lists hold. Nothing that a server sends is served as a page: it is
//! JSON, or a download.

mod api;
mod contents;
mod events;
mod http;
mod listings;
mod page;

use crate::args::Browse;
use crate::connect;
use crate::error::Failed;
use crate::select::{Selected, select_all};
use crate::{Outcome, output};
use events::EventStreams;
use listings::OpenListings;
use mcp_resources_client::{Client, ClientLimits};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The longest message of a server, in bytes: that of a resource of 100 MB in base64, with some room.
const MOST_MESSAGE: usize = 256 << 20;
/// Most connections of browsers.
const MOST_CONNECTIONS: usize = 128;
/// Most reads at a time, because each holds its contents.
const MOST_READS: usize = 4;
/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// The state that all connections share.
struct BrowsedServers {
    client: Client,
    /// The names of the servers whose allow-list is not everything.
    restricted: Vec<String>,
    listings: OpenListings,
    streams: Arc<EventStreams>,
    reads: Semaphore,
}

/// Serves the page until a signal ends it.
pub(crate) fn run(args: &Browse) -> Outcome {
    let selected = select_all(&args.server)?;
    let streams = Arc::new(EventStreams::new(selected.iter().map(|server| server.name.as_str())));
    let make = || {
        let reported = streams.clone();
        let mut limits = ClientLimits::default();
        limits.message = MOST_MESSAGE;
        let builder = selected.iter().fold(connect::builder(&args.server), connect::with_server);
        let builder =
            builder.limits(limits).on_connection(move |server, lost| reported.connection(server, lost));
        Ok(builder.connect()?)
    };
    connect::with_client(make, async |client| serve(args, client, &selected, streams.clone()).await)
}

async fn serve(args: &Browse, client: &Client, selected: &[Selected], streams: Arc<EventStreams>) -> Outcome {
    let wanted = args.port.unwrap_or(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).await.map_err(|error| {
        Failed::new(format!(
            "--port {wanted}: it cannot be used: {error}; name another port, or 0 for a free one"
        ))
    })?;
    let port = listener.local_addr()?.port();
    let token = random_token()?;
    let url = format!("http://127.0.0.1:{port}/{token}/");
    let mut out = io::stdout().lock();
    writeln!(out, "{url}").and_then(|()| out.flush())?;
    drop(out);
    if !args.no_open {
        open(&url);
    }
    let restricted = selected.iter().filter(|server| !server.is_whole()).map(|server| server.name.clone());
    let state = Arc::new(BrowsedServers {
        client: client.clone(),
        restricted: restricted.collect(),
        listings: OpenListings::default(),
        streams,
        reads: Semaphore::new(MOST_READS),
    });
    let site = Arc::new(http::BrowseSite::new(state, token, port));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(0) };
        match listener.accept().await {
            Ok((socket, _)) => {
                let site = site.clone();
                tokio::spawn(async move {
                    site.connection(socket).await;
                    drop(place);
                });
            }
            // Too many open files, for example: another one may be closed soon.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// 128 random bits in hexadecimal digits.
fn random_token() -> Result<String, Failed> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failed::new(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Opens the page in the user's browser. Without one, the user has the URL.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = tokio::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    tokio::spawn(async move {
        let failed = match command.status().await {
            Ok(status) if status.success() => return,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        output::say("note", &format!("{program} could not open a browser ({failed}); open the URL yourself"));
    });
}
