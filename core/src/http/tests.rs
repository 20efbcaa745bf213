//! What fixtures cannot see: threads, wakers, bounds, and random histories against a naive model. The conversations
//! themselves are in `tests/fixtures/http`.

use super::*;
use crate::catalog::{Edit, Source};
use crate::connection::{Answer, Contents};
use crate::engine::{Options, ServerInfo};
use crate::limits::Limits;
use crate::resource::{Resource, Template};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn endpoint(limits: Limits, rules: Rules) -> Arc<Endpoint> {
    let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, Options { limits, ..Options::default() }).unwrap();
    let handler = engine.new_handler();
    let edits = vec![
        Edit::AddResource { resource: Resource::new("test://one"), source: Source::Text("one".into()) },
        Edit::AddTemplate { template: Template::new("test://item/{id}"), handler },
    ];
    engine.publish(edits, Now::default(), &mut Vec::new()).unwrap();
    let next = AtomicU64::new(0);
    let ids = move || {
        let mut id = [0; SESSION_ID_BYTES];
        id[..8].copy_from_slice(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        id
    };
    Endpoint::new(engine, rules, Box::new(ids)).unwrap()
}

/// A response as far as it was written.
struct Got {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    tokens: Vec<crate::connection::RequestToken>,
    exchange: Option<Exchange>,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn send(endpoint: &Arc<Endpoint>, verb: &str, headers: &[(&str, &str)], body: &str, now: Now) -> Got {
    let mut all: Vec<(&str, &[u8])> = vec![("host", b"localhost"), ("content-type", b"application/json")];
    all.extend(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
    let admitted = endpoint.admit(&Head { verb, target: "/mcp", headers: &all });
    let identified = admitted.and_then(|admitted| admitted.identify(Ok(Verified::anyone())));
    let written = |head: ResponseHead| {
        (head.status, head.headers.into_iter().map(|(name, value)| (name, value.into_owned())).collect())
    };
    let request = match identified {
        Ok(request) => request,
        Err(Response { head, body }) => {
            let (status, headers) = written(head);
            return Got { status, headers, body, tokens: Vec::new(), exchange: None };
        }
    };
    let mut out = Vec::new();
    let Opened { turn, exchange } = endpoint.open(&request, body.as_bytes(), now, &mut out);
    let (status, headers) = turn.head.map(written).unwrap_or_default();
    let tokens = turn.events.iter().filter_map(crate::connection::Event::asks).collect();
    Got { status, headers, body: out, tokens, exchange }
}

fn initialize(endpoint: &Arc<Endpoint>, date: &str, now: Now) -> Got {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{date}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    );
    send(endpoint, "POST", &[], &body, now)
}

#[test]
fn both_eras_answer_in_json() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let now = Now::default();
    let read = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"test://item/7"{meta}}}}}"#
        )
    };
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "resources/read"),
        ("mcp-name", "test://item/7"),
    ];
    let hello = initialize(&endpoint, "2025-11-25", now);
    assert_eq!(hello.status, 200, "{}", hello.text());
    let session = hello.header("mcp-session-id").unwrap();
    for (headers, body) in
        [(&modern[..], read(&format!(",{META}"))), (&[("mcp-session-id", session)], read(""))]
    {
        let got = send(&endpoint, "POST", headers, &body, now);
        let exchange = got.exchange.unwrap();
        assert_eq!((got.status, got.tokens.len(), got.body.len()), (0, 1, 0));
        let turn = exchange.respond(got.tokens[0], Answer::Contents(Contents::text("seven").into()), now);
        assert!(turn.events.is_empty());
        let mut out = Vec::new();
        let turn = exchange.deliver(1000, now, &mut out);
        assert!(turn.end);
        assert_eq!(turn.head.unwrap().status, 200);
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["result"]["contents"][0]["text"], "seven");
    }
    assert_eq!(endpoint.sessions_open(), 1);
}
