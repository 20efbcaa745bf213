//! The outcome of a request decides the HTTP status (R-032, R-190, DEC-06).

use crate::talk::{Talk, engine};
use mcp_resources_engine::connection::{
    Answer, ConnectionKind, InputAsk, InputRequest, InputRequired, OutcomeStatus, RequestRefusal,
};
use serde_json::{Value, json};

const REFUSED: fn(RequestRefusal) -> OutcomeStatus = OutcomeStatus::Refused;

/// A message with the modern envelope, of which `meta` replaces members.
fn modern(method: &str, meta: &Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } });
    for (name, value) in meta.as_object().unwrap() {
        message["params"]["_meta"][name] = value.clone();
    }
    message
}

/// R-029, R-030, R-032: what is refused before it is dispatched.
#[test]
fn refusals_are_told_apart() {
    let engine = engine("a secret of ours", 1);
    let version = |date: Value| json!({ "io.modelcontextprotocol/protocolVersion": date });
    for (message, status) in [
        (json!(1), REFUSED(RequestRefusal::Malformed)),
        (json!([]), REFUSED(RequestRefusal::Malformed)),
        (json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), REFUSED(RequestRefusal::Malformed)),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" }),
            REFUSED(RequestRefusal::Envelope),
        ),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" }), REFUSED(RequestRefusal::Envelope)),
        (
            modern("resources/list", &json!({ "io.modelcontextprotocol/clientCapabilities": [] })),
            REFUSED(RequestRefusal::Envelope),
        ),
        (modern("resources/list", &version(json!(1))), REFUSED(RequestRefusal::Envelope)),
        (modern("resources/list", &version(json!("1900-01-01"))), REFUSED(RequestRefusal::Version)),
        (modern("no/such", &version(json!("1900-01-01"))), REFUSED(RequestRefusal::Version)),
        (modern("no/such", &json!({})), REFUSED(RequestRefusal::Method)),
        (modern("initialize", &json!({})), REFUSED(RequestRefusal::Method)),
        (modern("ping", &json!({})), REFUSED(RequestRefusal::Method)),
        (modern("resources/subscribe", &json!({})), REFUSED(RequestRefusal::Method)),
        (json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" }), OutcomeStatus::Accepted),
        (json!({ "jsonrpc": "2.0", "method": "no/such" }), OutcomeStatus::Accepted),
    ] {
        assert_eq!(Talk::new(&engine, ConnectionKind::Request).send(&message).status, status, "{message}");
    }
}

/// DEC-06: once it is dispatched, an error is an answer like any other.
#[test]
fn errors_after_dispatch_are_answers() {
    let engine = engine("a secret of ours", 1);
    let mut talk = Talk::new(&engine, ConnectionKind::Request);
    for (method, params, status) in [
        ("resources/list", json!({}), OutcomeStatus::Answered),
        ("resources/list", json!({ "cursor": "forged" }), OutcomeStatus::Answered),
        ("resources/read", json!({ "uri": "c://0000" }), OutcomeStatus::Answered),
        ("resources/read", json!({ "uri": "c://none" }), OutcomeStatus::Answered),
        ("resources/read", json!({ "uri": "not a uri" }), OutcomeStatus::Answered),
        ("resources/read", json!({ "uri": "live://status" }), OutcomeStatus::Pending),
    ] {
        assert_eq!(talk.modern(1, method, params.clone()).status, status, "{method} {params}");
    }
    let listen = json!({ "notifications": { "resourcesListChanged": true } });
    assert_eq!(talk.modern(2, "subscriptions/listen", listen).status, OutcomeStatus::Pending);
}

/// R-050: a missing capability has a status of its own, also when only the handler finds it missing.
#[test]
fn a_missing_capability_is_told_apart() {
    let engine = engine("a secret of ours", 0);
    let mut talk = Talk::new(&engine, ConnectionKind::Request);
    let token = talk.modern(1, "resources/read", json!({ "uri": "live://status" })).tokens[0];
    let ask = InputAsk::Form { message: "?".into(), schema: r#"{"type":"object","properties":{}}"#.into() };
    let required = InputRequired { requests: vec![InputRequest { key: "q".into(), ask }], state: None };
    let outcome = talk.connection.respond(token, Answer::InputRequired(required), talk.now, &mut Vec::new());
    assert_eq!(outcome.status, REFUSED(RequestRefusal::Capability));
}
