//! Random histories of one session with a client that trusts only what it has read.
//!
//! The client subscribes to a few resources and reads streams that break at any point. It reconnects with the id of the
//! last event it has read, or without an id; then it reads all resources again. In the end every change must have been
//! reported, events must arrive in order, and a repeated event must be identical.

use super::sse::EventId;
use super::tests::{Got, endpoint, initialize, send};
use super::*;
use crate::limits::Limits;
use proptest::prelude::*;
use std::collections::HashMap;

const URIS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    /// A resource changes.
    Change(usize),
    /// Time passes, in steps of half the coalescing time.
    Wait,
    /// The client reads up to `room` bytes.
    Read { room: usize },
    /// The stream is written; the client reads the first events of it, then the stream breaks.
    Break { reads: usize },
    /// The client opens another stream, and abandons the one before.
    Open,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..URIS).prop_map(Op::Change),
        2 => Just(Op::Wait),
        2 => (1_usize..400).prop_map(|room| Op::Read { room }),
        3 => (0_usize..6).prop_map(|reads| Op::Break { reads }),
        1 => Just(Op::Open),
    ]
}

struct Client {
    endpoint: Arc<Endpoint>,
    session: String,
    now: Now,
    exchange: Option<Exchange>,
    /// The id of the last event that was read.
    last: Option<String>,
    /// For each resource, the step of its last change, and the step up to which the client knows it.
    changed: [usize; URIS],
    known: [usize; URIS],
    step: usize,
    /// Every event that was written, with the step in which it was encoded.
    worded: HashMap<String, (usize, String)>,
}

impl Client {
    fn new(replay: usize) -> Self {
        let endpoint = endpoint(Limits { replay, ..Limits::default() }, Rules::default());
        let mut client = Self {
            session: String::new(),
            now: Now::default(),
            exchange: None,
            last: None,
            changed: [0; URIS],
            known: [0; URIS],
            step: 1,
            worded: HashMap::new(),
            endpoint,
        };
        let hello = initialize(&client.endpoint, "2025-06-18", client.now);
        client.session = hello.header("mcp-session-id").unwrap().to_owned();
        client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        for uri in 0..URIS {
            client.post(&format!(
                r#"{{"jsonrpc":"2.0","id":{uri},"method":"resources/subscribe","params":{{"uri":"test://item/{uri}"}}}}"#
            ));
        }
        client
    }

    fn post(&self, body: &str) -> Got {
        send(&self.endpoint, "POST", &[("mcp-session-id", &self.session)], body, self.now)
    }

    fn run(&mut self, op: &Op) {
        self.step += 1;
        match op {
            Op::Change(uri) => {
                self.changed[*uri] = self.step;
                self.endpoint.engine().updated(&format!("test://item/{uri}"), self.now).unwrap();
            }
            Op::Wait => {
                self.now.tick += 25;
                self.endpoint.engine().tick(self.now);
            }
            Op::Read { room } => {
                let written = self.write(*room);
                self.read(&written, usize::MAX);
            }
            Op::Break { reads } => {
                let written = self.write(usize::MAX);
                self.read(&written, *reads);
                if let Some(exchange) = self.exchange.take() {
                    assert!(exchange.closed(self.now).events.is_empty());
                }
            }
            Op::Open => {
                self.last = None;
                self.exchange = None;
                let written = self.write(0);
                self.read(&written, usize::MAX);
            }
        }
    }

    /// Writes the stream; opens one if there is none.
    fn write(&mut self, room: usize) -> String {
        let mut out = Vec::new();
        let mut turn = match &self.exchange {
            Some(exchange) => exchange.deliver(room, self.now, &mut out),
            None => {
                let mut headers =
                    vec![("mcp-session-id", self.session.as_str()), ("accept", "text/event-stream")];
                headers.extend(self.last.as_deref().map(|last| ("last-event-id", last)));
                let got = send(&self.endpoint, "GET", &headers, "", self.now);
                assert_eq!(got.status, 200);
                if self.last.is_none() {
                    // Without an id nothing is repeated, so the client reads all resources again.
                    self.known = [self.step; URIS];
                }
                out = got.body;
                self.exchange = got.exchange;
                Turn::new(self.exchange.as_ref().unwrap().connection())
            }
        };
        while turn.more && room == usize::MAX {
            turn = self.exchange.as_ref().unwrap().deliver(room, self.now, &mut out);
        }
        assert!(!turn.end);
        String::from_utf8(out).unwrap()
    }

    /// The client reads the first `max` events of `written`.
    fn read(&mut self, written: &str, max: usize) {
        let mut before: Option<EventId> = None;
        for (index, event) in written.split_terminator("\n\n").filter(|event| *event != ":").enumerate() {
            let (id, data) = event.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
            let parsed = EventId::parse(id).unwrap();
            if let Some(before) = before.replace(parsed) {
                assert_eq!((parsed.stream, parsed.number), (before.stream, before.number + 1));
            }
            let step = self.step;
            let (worded, text) = self.worded.entry(id.to_owned()).or_insert_with(|| (step, data.to_owned()));
            assert_eq!(text, data, "an event that comes again is the same");
            if index < max {
                self.last = Some(id.to_owned());
                if let Some(uri) = data.split("test://item/").nth(1) {
                    let uri: usize = uri[..1].parse().unwrap();
                    self.known[uri] = self.known[uri].max(*worded);
                }
            }
        }
    }

    fn finish(&mut self) {
        for op in
            [Op::Wait, Op::Wait, Op::Wait, Op::Break { reads: usize::MAX }, Op::Read { room: usize::MAX }]
        {
            self.run(&op);
        }
        for uri in 0..URIS {
            assert!(self.changed[uri] <= self.known[uri], "a change of {uri} was never told");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_silently(ops in proptest::collection::vec(op(), 1..60), replay in prop_oneof![Just(1 << 20), 0_usize..500]) {
        let mut client = Client::new(replay);
        ops.iter().for_each(|op| client.run(op));
        client.finish();
    }
}
