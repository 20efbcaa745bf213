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

pub(super) struct TestHost {
    pub(super) connection: Connection,
    pub(super) out: Vec<u8>,
    pub(super) now: Now,
}

impl TestHost {
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
            Edit::AddTemplate { template: Template::new("test://item/{id}"), handler, mount: None },
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
    let mut host = TestHost::new(Limits::default());
    assert_eq!(host.read(1, "test://constant"), []);
    let token = host.read(2, "test://item/7")[0];
    let answer = Answer::Contents(Contents::text("one").into());
    host.connection.respond(token, answer, host.now, &mut host.out);
    let sent = host.sent();
    assert_eq!(sent[0]["result"]["contents"][0]["text"], "one");
    assert_eq!(sent[0]["result"]["contents"][0]["uri"], "test://constant");
    assert_eq!(sent[1]["result"]["contents"][0]["text"], "one");
    assert_eq!(sent[1]["id"], 2);
    assert_eq!(host.connection.in_flight(), 0);
}

// R-127, R-128: a cancelled request gets no answer, and its slot is held until the handler returns.
#[test]
fn a_cancelled_slot_is_free_only_after_its_answer() {
    let mut host = TestHost::new(Limits::default());
    for detach in [false, true] {
        let token = host.read(5, "test://handled")[0];
        let reply = detach.then(|| host.connection.detach(token).unwrap());
        host.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
        assert_eq!(host.connection.in_flight(), 1);
        let answer = Answer::Contents(Contents::text("late").into());
        match reply {
            None => host.connection.respond(token, answer, host.now, &mut host.out),
            Some(reply) => host.connection.finish(reply.encode(answer, host.now), host.now, &mut host.out),
        };
        assert_eq!(host.connection.in_flight(), 0);
        assert_eq!(host.sent(), Vec::<Value>::new());
    }
}

// R-214: a request that times out is answered, and the handler's late answer is dropped.
#[test]
fn a_request_that_ran_out_of_time_is_answered_once() {
    let mut host = TestHost::new(Limits::default());
    let token = host.read(1, "test://handled")[0];
    let reply = host.connection.detach(token).unwrap();
    assert_eq!(host.connection.deadline(), Some(30_000));
    host.now = Now { tick: 30_000, unix: 0 };
    let outcome = host.connection.tick(host.now, &mut host.out);
    assert!(matches!(outcome.events[..], [Event::Cancelled(cancelled)] if cancelled == token));
    let encoded = reply.encode(Answer::Failed(ReadError::Failed), host.now);
    host.connection.finish(encoded, host.now, &mut host.out);
    let sent = host.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        sent[0]["error"]["data"],
        json!({"uri": "test://handled", "kind": "timeout", "timeoutMs": 30_000})
    );
    assert_eq!(host.connection.deadline(), None);
}

// DEC-02, and the limit `in_flight`.
#[test]
fn ids_in_flight_are_unique_and_bounded() {
    let mut host = TestHost::new(Limits { in_flight: 2, ..Limits::default() });
    let first = host.read(1, "test://handled")[0];
    assert_eq!(host.read(1, "test://handled"), []);
    assert_eq!(host.sent()[0]["error"]["code"], -32600);
    host.read(2, "test://handled");
    assert_eq!(host.read(3, "test://handled"), []);
    assert_eq!(host.sent()[0]["error"]["code"], -32603);
    host.connection.respond(first, Answer::Failed(ReadError::NotFound), host.now, &mut host.out);
    assert_eq!(host.read(1, "test://handled").len(), 1);
}

/// A used or invented token identifies nothing.
#[test]
fn stale_tokens_are_ignored() {
    let mut host = TestHost::new(Limits::default());
    let token = host.read(1, "test://handled")[0];
    host.connection.respond(token, Answer::Failed(ReadError::NotFound), host.now, &mut host.out);
    host.sent();
    host.read(2, "test://handled");
    host.connection.respond(token, Answer::Failed(ReadError::NotFound), host.now, &mut host.out);
    assert!(host.connection.detach(RequestToken::from_u64(u64::MAX)).is_none());
    assert_eq!(host.sent(), Vec::<Value>::new());
    assert_eq!(host.connection.in_flight(), 1);
}

/// The limits `contents` and `contents_total`.
#[test]
fn gathered_contents_are_bounded() {
    let mut host = TestHost::new(Limits { contents: 10, contents_total: 12, ..Limits::default() });
    let token = host.read(1, "test://handled")[0];
    let reply = host.connection.reply(token).unwrap();
    let mut one = reply.gather();
    let mut other = reply.gather();
    assert_eq!(one.text("1234567"), Ok(()));
    assert_eq!(one.text("8901"), Err(ReadError::SizeExceeded { limit: 10, size: None }));
    assert_eq!(one.blob(b"x"), Err(ReadError::Failed));
    assert_eq!(other.blob(b"123456"), Err(ReadError::SizeExceeded { limit: 12, size: None }));
    drop(one);
    assert_eq!(other.blob(b"12"), Ok(()));
    assert_eq!(other.blob(b"3456"), Ok(()));
    host.connection.respond(token, Answer::Gathered(other), host.now, &mut host.out);
    assert_eq!(host.sent()[0]["result"]["contents"][0]["blob"], "MTIzNDU2");
}

// R-047: a handler's JSON keeps the order of its members and every digit, and loses its line breaks.
#[test]
fn a_raw_result_is_sent_as_it_was_written() {
    let extension = Extension { method: "com.example/x".into(), handler: 7, ..Extension::default() };
    let mut host = TestHost::with(EngineOptions { extensions: vec![extension], ..EngineOptions::default() });
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"com.example/x","params":{{{META}}}}}"#);
    let principal = Principal::local();
    let arrival = Arrival { message: request.as_bytes(), principal: &principal, header_check: None };
    let outcome = host.connection.message(arrival, host.now, &mut host.out);
    let token = outcome.events[0].asks().unwrap();
    let answer = RawResult {
        members: "{\"z\": 18446744073709551616123,\n\"a\": {\"c\": 1.10, \"b\": \"x y\"}}".into(),
        result_type: None,
        meta: Some(r#"{"com.example/z": 1e400, "com.example/a": 2}"#.into()),
    };
    host.connection.respond(token, Answer::Raw(answer), host.now, &mut host.out);
    let sent = String::from_utf8(host.out).unwrap();
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
