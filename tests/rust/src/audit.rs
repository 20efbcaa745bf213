//! The cases of `tests/fixtures/audit`: what is recorded of each request (S-19).

use crate::vectors::project;
use mcp_resources_engine::connection::Contents;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::guard::AuditRecord;
use mcp_resources_engine::resource::{Resource, Template};
use mcp_resources_engine::version::Revision;
use mcp_resources_runtime::server::{HandlerError, ReadRequest, ResourceServer};
use mcp_resources_runtime::testing::Client;
use mcp_resources_runtime::transport::AuditSink;
use serde_json::{Value, json};
use std::sync::mpsc::channel;

const VOLATILE: [&str; 7] = ["time", "timestamp", "address", "connection", "bytes", "duration", "principal"];

async fn item(request: ReadRequest) -> Result<Contents<'static>, HandlerError> {
    match request.param("id") {
        Some("missing") => Err(ReadError::NotFound.into()),
        Some("secret") => Err(ReadError::AccessDenied.into()),
        Some("broken") => Err(HandlerError::new("secret reason")),
        _ => Ok(Contents::text("secret contents")),
    }
}

fn server(sink: impl AuditSink) -> ResourceServer {
    ResourceServer::builder("test", "1")
        .audit(sink)
        .metrics(true)
        .diagnostics(|_| ())
        .text(Resource::new("audit://text"), "secret contents")
        .template(Template::new("audit://item/{id}"), item)
        .complete("id", |_| async { vec!["7"] })
        .build()
        .unwrap()
}

async fn ask(server: &ResourceServer, case: &Value) {
    let revision = case["revision"].as_str().and_then(Revision::parse);
    let mut client = match revision {
        Some(revision) => Client::legacy(server, revision).await.unwrap(),
        None => Client::modern(server).unwrap(),
    };
    let mut params = case["params"].clone();
    if let Some(meta) = case.get("meta") {
        params["_meta"] = meta.clone();
    }
    let _ = client.request(case["request"].as_str().unwrap(), params).await;
}

/// S-19, R-215: as in Python and Node.
#[tokio::test]
async fn the_same_entry_as_in_every_language() {
    let path = project().join("tests/fixtures/audit");
    let text = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text("cases.json")).unwrap();
    let schema =
        jsonschema::validator_for(&serde_json::from_str(&text("line.schema.json")).unwrap()).unwrap();
    for case in &cases {
        let (tell, told) = channel();
        let server = server(move |entry: &AuditRecord| {
            let mut line = Vec::new();
            entry.write_line(&mut line);
            let _ = tell.send(serde_json::from_slice::<Value>(&line).unwrap());
        });
        ask(&server, case).await;
        server.flush_audit();
        let entries = told.try_iter().filter(|entry| entry["method"] != "initialize");
        let stable = entries.map(|mut entry| {
            assert!(schema.is_valid(&entry), "{entry}");
            assert!(!entry.to_string().contains("secret contents"), "{entry}");
            let members = entry.as_object_mut().unwrap();
            VOLATILE.iter().for_each(|name| drop(members.remove(*name)));
            entry
        });
        assert_eq!(stable.collect::<Vec<_>>(), [case["entry"].clone()], "{}", case["name"]);
    }
}

/// S-19: the counters are those of the requests, and no label is a text of a client's.
#[tokio::test]
async fn metrics_have_no_text_of_a_client() {
    let server = server(|_: &AuditRecord| ());
    let case = json!({"request": "resources/read", "params": {"uri": "audit://item/secret"}});
    ask(&server, &case).await;
    ask(&server, &json!({"request": "vendor/x", "params": {}})).await;
    let text = server.metrics_text().unwrap();
    for line in [
        "mcp_resources_errors_total{kind=\"hidden\"} 1",
        "mcp_resources_requests_total{method=\"other\",era=\"modern\"} 1",
    ] {
        assert!(text.lines().any(|own| own == line), "{text}");
    }
    assert!(!text.contains("audit://") && !text.contains("vendor/x"), "{text}");
}
