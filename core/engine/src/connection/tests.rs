//! Behaviour that fixtures cannot show: slots, late answers, limits. The conversations themselves are in
//! `tests/fixtures/wire`.

use super::*;
use crate::catalog::{Edit, ItemSource};
use crate::engine::{EngineOptions, Extension, ServerInfo};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::resource::{Resource, Template};
use serde_json::{Value, json};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(super) struct TestRuntime {
    pub(super) connection: Connection,
    pub(super) out: Vec<u8>,
    pub(super) now: Now,
}

impl TestRuntime {
    fn new(limits: Limits) -> Self {
        Self::with(EngineOptions { limits, ..EngineOptions::default() })
    }

    pub(super) fn with(options: EngineOptions) -> Self {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, options).unwrap();
        let handler = engine.new_handler();
        let edits = vec![
            Edit::AddResource {
                resource: Resource::new("test://constant"),
                source: ItemSource::Text("one".into()),
            },
            Edit::AddResource {
                resource: Resource::new("test://handled"),
                source: ItemSource::Handler(handler),
            },
            Edit::AddTemplate { template: Box::new(Template::new("test://item/{id}")), handler, mount: None },
        ];
        engine.publish(edits, Now::default()).unwrap();
        Self { connection: engine.connect(ConnectionKind::Stdio), out: Vec::new(), now: Now::default() }
    }

    /// Sends one message; returns the tokens of requests that the runtime must answer.
    pub(super) fn send(&mut self, message: &str) -> Vec<RequestToken> {
        let principal = Principal::local();
        let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
        let outcome = self.connection.message(arrival, self.now, &mut self.out);
        let token = |event| match event {
            Event::Read(read) => Some(read.token),
            _ => None,
        };
        outcome.events.into_iter().filter_map(token).collect()
    }

    pub(super) fn read(&mut self, id: u32, uri: &str) -> Vec<RequestToken> {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}",{META}}}}}"#
        ))
    }

    /// Sends a modern request.
    pub(super) fn ask(&mut self, id: u32, method: &str, mut params: Value) -> Vec<RequestToken> {
        params["_meta"] = serde_json::from_str::<Value>(&format!("{{{META}}}")).unwrap()["_meta"].take();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
    }

    pub(super) fn sent(&mut self) -> Vec<Value> {
        let out = std::mem::take(&mut self.out);
        out.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|l| serde_json::from_slice(l).unwrap())
            .collect()
    }
}

#[test]
fn a_constant_and_a_handler_answer_alike() {
    let mut runtime = TestRuntime::new(Limits::default());
    assert_eq!(runtime.read(1, "test://constant"), []);
    let token = runtime.read(2, "test://item/7")[0];
    let answer = Answer::Contents(Contents::text("one").into());
    runtime.connection.respond(token, answer, runtime.now, &mut runtime.out);
    let sent = runtime.sent();
    assert_eq!(sent[0]["result"]["contents"][0]["text"], "one");
    assert_eq!(sent[0]["result"]["contents"][0]["uri"], "test://constant");
    assert_eq!(sent[1]["result"]["contents"][0]["text"], "one");
    assert_eq!(sent[1]["id"], 2);
    assert_eq!(runtime.connection.in_flight(), 0);
}

// R-127, R-128: a cancelled request gets no answer, and its slot is held until the handler returns.
#[test]
fn a_cancelled_slot_is_free_only_after_its_answer() {
    let mut runtime = TestRuntime::new(Limits::default());
    for detach in [false, true] {
        let token = runtime.read(5, "test://handled")[0];
        let reply = detach.then(|| runtime.connection.detach(token).unwrap());
        runtime.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
        assert_eq!(runtime.connection.in_flight(), 1);
        let answer = Answer::Contents(Contents::text("late").into());
        match reply {
            None => runtime.connection.respond(token, answer, runtime.now, &mut runtime.out),
            Some(reply) => {
                runtime.connection.finish(reply.encode(answer, runtime.now), runtime.now, &mut runtime.out)
            }
        };
        assert_eq!(runtime.connection.in_flight(), 0);
        assert_eq!(runtime.sent(), Vec::<Value>::new());
    }
}

// R-214: a request that times out is answered, and the handler's late answer is dropped.
#[test]
fn a_request_that_ran_out_of_time_is_answered_once() {
    let mut runtime = TestRuntime::new(Limits::default());
    let token = runtime.read(1, "test://handled")[0];
    let reply = runtime.connection.detach(token).unwrap();
    assert_eq!(runtime.connection.deadline(), Some(30_000));
    runtime.now = Now { tick: 30_000, unix: 0 };
    let outcome = runtime.connection.tick(runtime.now, &mut runtime.out);
    assert!(matches!(outcome.events[..], [Event::Cancelled(cancelled)] if cancelled == token));
    let encoded = reply.encode(Answer::Failed(ReadError::Failed), runtime.now);
    runtime.connection.finish(encoded, runtime.now, &mut runtime.out);
    let sent = runtime.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        sent[0]["error"]["data"],
        json!({"uri": "test://handled", "kind": "timeout", "timeoutMs": 30_000})
    );
    assert_eq!(runtime.connection.deadline(), None);
}

// DEC-02, and the limit `in_flight`.
#[test]
fn ids_in_flight_are_unique_and_bounded() {
    let mut runtime = TestRuntime::new(Limits { in_flight: 2, ..Limits::default() });
    let first = runtime.read(1, "test://handled")[0];
    assert_eq!(runtime.read(1, "test://handled"), []);
    assert_eq!(runtime.sent()[0]["error"]["code"], -32600);
    runtime.read(2, "test://handled");
    assert_eq!(runtime.read(3, "test://handled"), []);
    assert_eq!(runtime.sent()[0]["error"]["code"], -32603);
    runtime.connection.respond(first, Answer::Failed(ReadError::NotFound), runtime.now, &mut runtime.out);
    assert_eq!(runtime.read(1, "test://handled").len(), 1);
}

/// A used or invented token identifies nothing.
#[test]
fn stale_tokens_are_ignored() {
    let mut runtime = TestRuntime::new(Limits::default());
    let token = runtime.read(1, "test://handled")[0];
    runtime.connection.respond(token, Answer::Failed(ReadError::NotFound), runtime.now, &mut runtime.out);
    runtime.sent();
    runtime.read(2, "test://handled");
    runtime.connection.respond(token, Answer::Failed(ReadError::NotFound), runtime.now, &mut runtime.out);
    assert!(runtime.connection.detach(RequestToken::from_u64(u64::MAX)).is_none());
    assert_eq!(runtime.sent(), Vec::<Value>::new());
    assert_eq!(runtime.connection.in_flight(), 1);
}

/// The limits `contents` and `contents_total`.
#[test]
fn gathered_contents_are_bounded() {
    let mut runtime = TestRuntime::new(Limits { contents: 10, contents_total: 12, ..Limits::default() });
    let token = runtime.read(1, "test://handled")[0];
    let reply = runtime.connection.reply(token).unwrap();
    let mut one = reply.gather();
    let mut other = reply.gather();
    assert_eq!(one.text("1234567"), Ok(()));
    assert_eq!(one.text("8901"), Err(ReadError::SizeExceeded { limit: 10, size: None }));
    assert_eq!(one.blob(b"x"), Err(ReadError::Failed));
    assert_eq!(other.blob(b"123456"), Err(ReadError::SizeExceeded { limit: 12, size: None }));
    drop(one);
    assert_eq!(other.blob(b"12"), Ok(()));
    assert_eq!(other.blob(b"3456"), Ok(()));
    runtime.connection.respond(token, Answer::Gathered(other), runtime.now, &mut runtime.out);
    assert_eq!(runtime.sent()[0]["result"]["contents"][0]["blob"], "MTIzNDU2");
}

// R-047: a handler's JSON keeps the order of its members and every digit, and loses its line breaks.
#[test]
fn a_raw_result_is_sent_as_it_was_written() {
    let extension = Extension { method: "com.example/x".into(), handler: 7, ..Extension::default() };
    let mut runtime =
        TestRuntime::with(EngineOptions { extensions: vec![extension], ..EngineOptions::default() });
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"com.example/x","params":{{{META}}}}}"#);
    let principal = Principal::local();
    let arrival = Arrival { message: request.as_bytes(), principal: &principal, header_check: None };
    let outcome = runtime.connection.message(arrival, runtime.now, &mut runtime.out);
    let token = outcome.events[0].asks().unwrap();
    let answer = RawResult {
        members: "{\"z\": 18446744073709551616123,\n\"a\": {\"c\": 1.10, \"b\": \"x y\"}}".into(),
        result_type: None,
        meta: Some(r#"{"com.example/z": 1e400, "com.example/a": 2}"#.into()),
    };
    runtime.connection.respond(token, Answer::Raw(answer), runtime.now, &mut runtime.out);
    let sent = String::from_utf8(runtime.out).unwrap();
    let result = r#""z":18446744073709551616123,"a":{"c":1.10,"b":"x y"},"_meta":{"com.example/z":1e400,"com.example/a":2,"#;
    assert!(sent.contains(result), "{sent}");
}

#[test]
fn public_types_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Connection>();
    send::<Reply>();
    send::<EncodedReply>();
    send::<ContentsGatherer>();
    send::<RequestOutcome<'static>>();
    send::<Engine>();
    sync::<Engine>();
}
