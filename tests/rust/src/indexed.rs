//! A server of a directory whose search index may be in a file, for tests that kill it.

use mcp_resources_providers::{docs, rag};
use mcp_resources_runtime::server::{Builder, ResourceServer};
use mcp_resources_runtime::testing::Client;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A server of `dir`, as pages (`docs`) or documents (`rag`), with the index in `file` or in memory.
pub fn server(
    kind: &str,
    dir: &Path,
    file: Option<&Path>,
    log: impl Fn(String) + Send + Sync + 'static,
) -> ResourceServer {
    let builder: Builder = ResourceServer::builder("indexed", "1");
    let builder = match kind {
        "docs" => {
            let options = docs::DocsOptions::new().site("kb", dir);
            let options = file.into_iter().fold(options, docs::DocsOptions::index);
            builder.mount(docs::Docs::new(options).expect("pages"))
        }
        _ => {
            let options = rag::RagOptions::new().folder("kb", dir).hits(100);
            let options = file.into_iter().fold(options, rag::RagOptions::index);
            builder.mount(rag::Rag::new(options).expect("documents"))
        }
    };
    builder.diagnostics(move |diagnostic| log(diagnostic.to_string())).build().expect("a server")
}

/// The URIs of what has a word.
pub async fn found(server: &ResourceServer, kind: &str, word: &str) -> BTreeSet<String> {
    let mut client = Client::modern(server).expect("a client");
    let uri = match kind {
        "docs" => format!("docs:///kb/search?q={word}&k=100"),
        _ => format!("rag:///kb/search/{word}"),
    };
    let answer = client.read(&uri).await.expect("an answer");
    let contents = answer["contents"].as_array().cloned().unwrap_or_default();
    let hits = match kind {
        "docs" => {
            let text = contents.first().and_then(|one| one["text"].as_str()).unwrap_or_default();
            let answer: Value = serde_json::from_str(text).expect("JSON");
            answer["hits"].as_array().cloned().unwrap_or_default()
        }
        _ => contents.into_iter().filter(|one| one["_meta"].get("score").is_some()).collect(),
    };
    let path = |hit: &Value| hit["uri"].as_str().and_then(|uri| uri.split('#').next()).map(str::to_owned);
    hits.iter().filter_map(path).collect()
}
