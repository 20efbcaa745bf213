//! One connection of one engine, driven by JSON.

use mcp_resources_engine::catalog::{Edit, ItemSource};
use mcp_resources_engine::connection::{
    Answer, Arrival, Connection, ConnectionKind, Event, OutcomeStatus, RequestOutcome, RequestToken,
};
use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{Resource, Template};
use mcp_resources_engine::seal::SealKey;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// A connection, and its time.
pub(crate) struct Talk {
    pub(crate) connection: Connection,
    pub(crate) now: Now,
    woken: Arc<Count>,
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The effects of a message.
pub(crate) struct Heard {
    pub(crate) sent: Vec<Value>,
    pub(crate) tokens: Vec<RequestToken>,
    pub(crate) states: Vec<Option<Vec<u8>>>,
    pub(crate) status: OutcomeStatus,
}

impl Talk {
    pub(crate) fn new(engine: &Arc<Engine>, peer: ConnectionKind) -> Self {
        let mut connection = engine.connect(peer);
        let woken = Arc::new(Count::default());
        connection.wake_with(Waker::from(woken.clone()));
        Self { connection, now: Now::default(), woken }
    }

    /// How often the engine has woken it since the last call.
    pub(crate) fn take_woken(&self) -> usize {
        self.woken.0.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn send(&mut self, message: &Value) -> Heard {
        let message = message.to_string();
        let mut out = Vec::new();
        let principal = Principal::local();
        let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
        let RequestOutcome { events, status, .. } = self.connection.message(arrival, self.now, &mut out);
        let mut heard = Heard { sent: parse(&out), tokens: Vec::new(), states: Vec::new(), status };
        for event in events {
            match event {
                Event::Read(read) => {
                    heard.tokens.push(read.token);
                    heard.states.push(read.state);
                }
                Event::Complete(complete) => heard.tokens.push(complete.token),
                Event::List(list) => heard.tokens.push(list.token),
                _ => {}
            }
        }
        heard
    }

    pub(crate) fn modern(&mut self, id: u32, method: &str, mut params: Value) -> Heard {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    pub(crate) fn shake_hands(&mut self, capabilities: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": { "name": "c", "version": "1" } } }));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    pub(crate) fn respond(&mut self, token: RequestToken, answer: Answer<'_>) -> Value {
        let mut out = Vec::new();
        self.connection.respond(token, answer, self.now, &mut out);
        parse(&out).remove(0)
    }

    pub(crate) fn deliver(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        self.connection.deliver(usize::MAX, &mut out);
        parse(&out)
    }
}

pub(crate) fn parse(out: &[u8]) -> Vec<Value> {
    serde_json::Deserializer::from_slice(out).into_iter().map(Result::unwrap).collect()
}

pub(crate) fn info() -> ServerInfo {
    ServerInfo { name: "flows".into(), version: "1".into(), ..ServerInfo::default() }
}

/// A handler at `live://status`, `resources` constants and a page of two.
pub(crate) fn engine(key: &str, resources: usize) -> Arc<Engine> {
    let mut options = EngineOptions::default();
    options.limits.page = 2;
    options.keys = vec![SealKey::from_secret(key.as_bytes()).unwrap()];
    let engine = Engine::new(info(), options).unwrap();
    let handler = engine.new_handler();
    let constant = |n| Edit::AddResource {
        resource: Resource::new(format!("c://{n:04}")),
        source: ItemSource::Text("".into()),
    };
    let mut edits: Vec<_> = (0..resources).map(constant).collect();
    edits.push(Edit::AddResource {
        resource: Resource::new("live://status"),
        source: ItemSource::Handler(handler),
    });
    edits.push(Edit::AddTemplate { template: Box::new(Template::new("note://{id}")), handler, mount: None });
    engine.publish(edits, Now::default()).unwrap();
    engine
}
