//! `notify`: tells a server of `serve` that resources or lists have changed.

use crate::Outcome;
use crate::args::NotifyArgs;
use crate::error::Failed;
use mcp_resources_client::Client;
use mcp_resources_engine::client::ClientError;
use serde_json::json;

/// The method, which `serve` offers over HTTP.
pub(crate) const METHOD: &str = "io.github.mcp-resources/notify";

/// Sends a request for each URI, and one for the lists.
pub(crate) async fn run(args: &NotifyArgs, client: &Client) -> Outcome {
    let updated = args.uri.iter().map(|uri| json!({ "uri": uri }));
    let lists = args.list_changed.then(|| json!({ "listChanged": true }));
    for params in updated.chain(lists) {
        client.request(METHOD, &params.to_string()).await.map_err(refused)?;
    }
    Ok(0)
}

fn refused(error: ClientError) -> Failed {
    const WHERE: &str = "notify works with `mcp-resources serve --http` on the same machine, or with a token that has the \
                         scope notify";
    match Failed::from(error) {
        Failed::Message { text, status } => Failed::Message { text: format!("{text}; {WHERE}"), status },
        other => other,
    }
}
