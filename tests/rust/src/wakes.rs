//! Who waits is woken, whatever other threads do meanwhile: the engine with threads of its hosts.
//!
//! A waiter sleeps until its waker is called, so that a wake-up that is lost is a test that fails.

use crate::talk::{Talk, info};
use mcp_resources_engine::catalog::{Edit, HandlerId, ItemSource};
use mcp_resources_engine::connection::{
    Answer, Arrival, Connection, ConnectionKind, Contents, Event, RequestOutcome,
};
use mcp_resources_engine::engine::{Engine, EngineOptions};
use mcp_resources_engine::hub::Delivered;
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::Resource;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

const URI: &str = "test://kept";
/// Nothing here takes so long unless it is not woken.
const LOST: Duration = Duration::from_secs(20);

/// A thread that sleeps until it is woken.
#[derive(Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    bell: Condvar,
}

impl Sleeper {
    fn sleep(&self) {
        let waits = |is_woken: &mut bool| !*is_woken;
        let mut woken = self.bell.wait_timeout_while(self.is_woken.lock().unwrap(), LOST, waits).unwrap();
        assert!(!woken.1.timed_out(), "it waits, and nobody has woken it");
        *woken.0 = false;
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.bell.notify_one();
    }
}

/// One client with a thread of its own.
struct Client {
    connection: Connection,
    sleeper: Arc<Sleeper>,
    last: u32,
}

impl Client {
    fn new(engine: &Arc<Engine>) -> Self {
        let mut connection = engine.connect(ConnectionKind::Stdio);
        let sleeper = Arc::new(Sleeper::default());
        connection.wake_with(Waker::from(sleeper.clone()));
        Self { connection, sleeper, last: 0 }
    }

    fn message(&mut self, message: &Value, out: &mut Vec<u8>) -> Vec<Asked> {
        let text = message.to_string();
        let principal = Principal::local();
        let arrival = Arrival { message: text.as_bytes(), principal: &principal, header_check: None };
        let RequestOutcome { events, .. } = self.connection.message(arrival, Now::default(), out);
        let asked = |event| match event {
            Event::Read(read) => Some(Asked::Call(read.token, read.handler)),
            Event::Shared(_) => Some(Asked::Wait),
            _ => None,
        };
        events.into_iter().filter_map(asked).collect()
    }

    /// Reads the resource, which gives the number of its handler. Every third call is cancelled by its own client first:
    /// `None` if no other request waited for it.
    fn read(&mut self) -> Option<HandlerId> {
        self.last += 1;
        let mut out = Vec::new();
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        let asked = self.message(
            &json!({ "jsonrpc": "2.0", "id": self.last, "method": "resources/read", "params": { "uri": URI, "_meta": meta } }),
            &mut out,
        );
        match asked.first() {
            Some(Asked::Call(token, handler)) => {
                if self.last.is_multiple_of(3) {
                    let params = json!({ "requestId": self.last });
                    self.message(
                        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
                        &mut out,
                    );
                }
                thread::yield_now();
                let answer = Answer::Contents(Contents::text(handler.to_string()).into());
                self.connection.respond(*token, answer, Now::default(), &mut out);
            }
            Some(Asked::Wait) => {
                while out.is_empty() {
                    self.sleeper.sleep();
                    assert_ne!(self.connection.deliver(usize::MAX, &mut out), Delivered::More);
                }
            }
            None => {}
        }
        if out.is_empty() {
            assert!(self.last.is_multiple_of(3), "only a call that was cancelled has no answer");
            return None;
        }
        let answer: Value = serde_json::from_slice(&out).unwrap();
        let text = answer["result"]["contents"][0]["text"].as_str();
        Some(text.unwrap_or_else(|| panic!("{answer}")).parse().unwrap())
    }
}

enum Asked {
    Call(mcp_resources_engine::connection::RequestToken, HandlerId),
    Wait,
}

fn replace(engine: &Engine, handler: HandlerId, is_first: bool) {
    let mut resource = Resource::new(URI);
    resource.details.cache.ttl_ms = 60_000;
    let add = Edit::AddResource { resource, source: ItemSource::Handler(handler) };
    let remove = Edit::RemoveResource { uri: URI.into() };
    let edits = if is_first { vec![add] } else { vec![remove, add] };
    engine.publish(edits, Now::default()).unwrap();
}

/// readers share calls while the resource is replaced, and leaders cancel theirs. A read that begins
/// after a change gives what is after it; nobody fails because another one cancels; and all who wait are woken.
#[test]
fn readers_that_share_calls_see_what_is_there_and_are_woken() {
    let mut options = EngineOptions::default();
    options.cache = true;
    let engine = Engine::new(info(), options).unwrap();
    let first = engine.new_handler();
    replace(&engine, first, true);
    let current = AtomicU32::new(first);
    let stop = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Client::new(&engine);
                    while !stop.load(Ordering::SeqCst) {
                        let before = current.load(Ordering::SeqCst);
                        if let Some(seen) = client.read() {
                            assert!(seen >= before, "{seen} was replaced by {before} before the read began");
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    client.connection.close(Now::default());
                })
            })
            .collect();
        let deadline = Instant::now() + Duration::from_secs(60);
        // Until somebody has waited too, which on a busy machine takes longer.
        for round in 0.. {
            let is_over = readers.iter().any(|reader| reader.is_finished()) || Instant::now() > deadline;
            if is_over || round >= 2_000 && engine.cache_counts().unwrap().shared > 0 {
                break;
            }
            let handler = engine.new_handler();
            replace(&engine, handler, false);
            current.store(handler, Ordering::SeqCst);
        }
        // Each of them reads on, so that the last change is seen too.
        let enough = answered.load(Ordering::SeqCst) + 1_000;
        while answered.load(Ordering::SeqCst) < enough && !readers.iter().any(|reader| reader.is_finished()) {
            thread::yield_now();
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(engine.cache_counts().unwrap().shared > 0, "nobody waited");
}

/// R-092, DEC-17: no change during a delivery is lost, and every listener is woken for it.
#[test]
fn changes_during_deliveries_wake_again() {
    const ROUNDS: usize = 3_000;
    let mut options = EngineOptions::default();
    options.limits.coalesce = 0;
    let engine = Engine::new(info(), options).unwrap();
    replace(&engine, engine.new_handler(), true);
    thread::scope(|scope| {
        let listen = || {
            let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
            let sleeper = Arc::new(Sleeper::default());
            talk.connection.wake_with(Waker::from(sleeper.clone()));
            let filter = json!({ "notifications": { "resourceSubscriptions": [URI] } });
            assert_eq!(talk.modern(1, "subscriptions/listen", filter).sent.len(), 1);
            let mut heard = 0;
            while heard < ROUNDS {
                sleeper.sleep();
                heard += talk.deliver().len();
            }
        };
        let listeners: Vec<_> = (0..3).map(|_| scope.spawn(listen)).collect();
        // A listener that has slept through a wake-up is not woken again: it has not taken what it was woken for.
        while !listeners.iter().all(|listener| listener.is_finished()) {
            engine.updated(URI, Now::default()).unwrap();
            thread::yield_now();
        }
    });
}
