//! `serve --check`: judges a file without serving it, and shows what a person sees.

use super::{address, begin, open, system};
use crate::Outcome;
use crate::args::Serve;
use crate::error::Failed;
use crate::output;
use mcp_resources_client::{Client, Listing, Target};
use mcp_resources_engine::client::{AllowList, ClientError, Failure};
use mcp_resources_engine::http::Auth;
use mcp_resources_engine::principal::ANONYMOUS;
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::transport::http::{HttpOptions, StaticTokens, Verified};
use mcp_resources_serve::ServeDocument;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// The token of the person whose view is shown. The endpoint exists for this process alone, for a moment.
const TOKEN_BYTES: usize = 32;

/// Opens everything that the file names. Status 2 for the first mistake, as at a start.
pub(super) fn run(document: ServeDocument, args: &Serve) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let status = runtime.block_on(async {
        let opened = open(document)?;
        drop(address::open(opened.document(), args)?);
        let (server, _watch) = begin(opened, args)?;
        match &args.principal {
            None => {
                output::say("note", "the file has no mistake");
                Ok(0)
            }
            Some(name) => show(&server, name, args).await,
        }
    });
    runtime.shutdown_background();
    status
}

/// Prints the URIs and templates that a person sees, one on each line.
async fn show(server: &ResourceServer, name: &str, args: &Serve) -> Outcome {
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random).map_err(|error| Failed::new(error.to_string()))?;
    let token = random.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut endpoint = server.http_with(HttpOptions::default());
    let mut headers = BTreeMap::new();
    if name != ANONYMOUS {
        let groups = json!({ "groups": args.group }).to_string();
        let verified = Verified::new(name).scopes(&args.scope).claims(Some(groups.into()));
        let tokens =
            StaticTokens::new([(&token, verified)]).map_err(|error| Failed::new(error.to_string()))?;
        endpoint = endpoint.auth(Auth::handed_out(), tokens);
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
    }
    let listener = endpoint.bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(system)?;
    let url = format!("http://{}/mcp", listener.address());
    let http = listener.server().clone();
    let serving = tokio::spawn(listener.serve());
    let client = Client::builder()
        .server("serve", Target::Url { url, headers })
        .allow("serve", &AllowList::Everything)
        .on_left_out(|_, what| output::say("warning", what))
        .connect()?;
    let mut out = io::stdout().lock();
    let mut shown = Ok(0);
    for listing in [client.list(), client.list_templates()] {
        if let Err(error) = print(listing, &mut out).await {
            shown = Err(error);
            break;
        }
    }
    client.close().await;
    http.shutdown();
    // It ends at once: its only client has left.
    let _ = serving.await;
    shown
}

async fn print(mut listing: Listing, out: &mut impl Write) -> Outcome {
    while let Some(listed) = listing.next().await {
        match listed {
            Ok(listed) => writeln!(out, "{}", output::plain(&listed.uri))?,
            Err(ClientError::Failed(Failure::Unsupported { .. })) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(0)
}
