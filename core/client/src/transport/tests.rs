//! The transports against real processes and sockets.

mod children;
mod hostile;
mod http;

use super::{ClientTransport, Inbound, Target};
use mcp_resources_engine::client::{NotCarried, Outgoing};
use mcp_resources_engine::resource::Resource;
use mcp_resources_engine::version::Revision;
use mcp_resources_runtime::server::ResourceServer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

/// Generous, because it only limits how long a failing test hangs.
const DEADLINE: Duration = Duration::from_secs(60);
const LONGEST: usize = 1 << 20;

/// A transport, with its inbound events.
struct Talk {
    transport: ClientTransport,
    inbound: Receiver<Inbound>,
    /// The number of times that a notification stream was opened.
    opened: usize,
    /// The id of the last request.
    sent: u64,
}

impl Talk {
    async fn open(target: &Target) -> Result<Self, String> {
        let (sender, inbound) = channel(16);
        Ok(Self {
            transport: ClientTransport::open(target, None, sender, LONGEST).await?,
            inbound,
            opened: 0,
            sent: 0,
        })
    }

    async fn next(&mut self) -> Inbound {
        loop {
            match timeout(DEADLINE, self.inbound.recv()).await.unwrap().unwrap() {
                Inbound::StreamOpened => self.opened += 1,
                other => return other,
            }
        }
    }

    async fn message(&mut self) -> Value {
        match self.next().await {
            Inbound::Message(message) => serde_json::from_slice(&message).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn not_carried(&mut self, id: u64) -> NotCarried {
        match self.next().await {
            Inbound::NotCarried(own, fault) if own == id => fault,
            other => panic!("{other:?}"),
        }
    }

    async fn lost(&mut self) -> String {
        match self.next().await {
            Inbound::Lost(reason) | Inbound::NotHeard(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a request of this revision; returns its id.
    fn ask(&mut self, revision: Revision, method: &str, mut params: Value) -> u64 {
        self.sent += 1;
        let id = self.sent;
        let is_modern = revision.is_modern();
        let is_handshake = method == "initialize";
        let client = json!({ "name": "transport", "version": "1" });
        if is_handshake {
            params =
                json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
        } else if is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": revision.as_str(),
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client,
            });
        }
        let name = (method == "resources/read").then(|| params["uri"].as_str().unwrap().to_owned());
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let sent = (!is_handshake).then(|| revision.as_str());
        let method = method.to_owned();
        let body = body.to_string().into_bytes();
        self.transport.send(Outgoing { id: Some(id), method, revision: sent, is_modern, name, body });
        self.transport.flush();
        id
    }
}

/// An endpoint without headers of its own.
fn endpoint(url: &str) -> Target {
    Target::Url { url: url.into(), headers: BTreeMap::new() }
}

/// A message that is not a request, or a request whose body does not matter.
fn outgoing(id: Option<u64>, method: &str, body: &str) -> Outgoing {
    let method = method.to_owned();
    let body = body.into();
    Outgoing { id, method, revision: None, is_modern: false, name: None, body }
}

fn server() -> ResourceServer {
    ResourceServer::builder("carried", "1.0.0")
        .resource(Resource::new("note://a"), |_| async { "A" })
        .build()
        .unwrap()
}

// R-145: line framing within one process, and the end of the transport.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_this_process_answers() {
    let server = server();
    let target = Target::connector(move || server.connect());
    for _ in 0..2 {
        let mut talk = Talk::open(&target).await.unwrap();
        let id = talk.ask(Revision::V2026_07_28, "resources/read", json!({ "uri": "note://a" }));
        let answer = talk.message().await;
        assert_eq!((&answer["id"], &answer["result"]["contents"][0]["text"]), (&json!(id), &json!("A")));
        timeout(DEADLINE, talk.transport.close()).await.unwrap();
        assert!(timeout(DEADLINE, talk.inbound.recv()).await.unwrap().is_none());
    }
}

// a stream, whatever its kind, is opened once, and its end is reported.
#[tokio::test]
async fn a_stream_is_opened_once() {
    let (ours, mut theirs) = tokio::io::duplex(16);
    let target = Target::stream(ours);
    let mut talk = Talk::open(&target).await.unwrap();
    let error = Talk::open(&target).await.err().unwrap();
    assert_eq!(error, "its stream cannot be opened: it was opened before; give each client a new one");
    talk.transport.send(outgoing(None, "x", "{}"));
    talk.transport.flush();
    let mut line = [0; 3];
    tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut line).await.unwrap();
    assert_eq!(&line, b"{}\n");
    drop(theirs);
    assert_eq!(talk.lost().await, "the server has closed the connection");
}
