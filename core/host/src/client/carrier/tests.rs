//! The transports against real processes and sockets.

mod children;
mod hostile;
#[cfg(feature = "http")]
mod http;

use super::{Carrier, Inbound, Target};
use mcp_resources_engine::client::{Ask, NotCarried, Outgoing, Words};
use mcp_resources_engine::resource::Resource;
use mcp_resources_engine::version::Revision;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

/// Generous: nothing is measured, a test that fails must only end.
const DEADLINE: Duration = Duration::from_secs(60);
const LONGEST: usize = 1 << 20;

/// A carrier, and what has come from it.
struct Talk {
    carrier: Carrier,
    inbound: Receiver<Inbound>,
    /// How often a stream of notifications was opened.
    opened: usize,
}

impl Talk {
    async fn open(target: &Target) -> Result<Self, String> {
        let (sender, inbound) = channel(16);
        Ok(Self { carrier: Carrier::open(target, sender, LONGEST).await?, inbound, opened: 0 })
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
            Inbound::Lost(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a request of this revision: its id.
    fn ask(&mut self, words: &mut Words, revision: Revision, ask: Ask<'_>, params: &Value) -> u64 {
        let (id, mut body) = words.request(ask, &params.to_string(), "{}");
        body.pop();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let method = message["method"].as_str().unwrap().to_owned();
        let name = (method == "resources/read").then(|| params["uri"].as_str().unwrap().to_owned());
        let revision_sent = (method != "initialize").then(|| revision.as_str());
        let is_modern = revision.is_modern();
        self.carrier.send(Outgoing { id: Some(id), method, revision: revision_sent, is_modern, name, body });
        id
    }
}

/// An endpoint without headers of its own.
fn endpoint(url: &str) -> Target {
    Target::Url { url: url.into(), headers: BTreeMap::new() }
}

/// A message that is not a request, or a request whose body does not matter.
fn outgoing(id: Option<u64>, method: &str, body: &str) -> Outgoing {
    let (method, body) = (method.to_owned(), body.into());
    Outgoing { id, method, revision: None, is_modern: false, name: None, body }
}

#[cfg(feature = "server")]
fn server() -> crate::server::ResourceServer {
    crate::server::ResourceServer::builder("carried", "1.0.0")
        .resource(Resource::new("note://a"), |_| async { "A" })
        .build()
        .unwrap()
}

/// the same framing in the same process, and its end.
#[cfg(feature = "server")]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_memory_answers() {
    let mut talk = Talk::open(&Target::Memory(server())).await.unwrap();
    let (revision, mut words) = (Revision::V2026_07_28, Words::new(Revision::V2026_07_28, "{}"));
    let id = talk.ask(&mut words, revision, Ask::Read, &json!({ "uri": "note://a" }));
    let answer = talk.message().await;
    assert_eq!((&answer["id"], &answer["result"]["contents"][0]["text"]), (&json!(id), &json!("A")));
    timeout(DEADLINE, talk.carrier.close()).await.unwrap();
    assert!(timeout(DEADLINE, talk.inbound.recv()).await.unwrap().is_none());
}

/// a pair of sockets serves once, and its end is told.
#[tokio::test]
async fn a_socket_is_opened_once() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let target = Target::Socket(Arc::new(Mutex::new(Some(ours))));
    let mut talk = Talk::open(&target).await.unwrap();
    assert!(Talk::open(&target).await.err().unwrap().contains("second time"));
    talk.carrier.send(outgoing(None, "x", "{}"));
    theirs.set_nonblocking(true).unwrap();
    let mut theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
    let mut line = [0; 3];
    tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut line).await.unwrap();
    assert_eq!(&line, b"{}\n");
    drop(theirs);
    assert_eq!(talk.lost().await, "the server has closed the connection");
}
