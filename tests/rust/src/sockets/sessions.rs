//! Legacy sessions.

use super::Served;
use super::client::LEGACY;
use serde_json::json;
use std::time::Duration;

/// After how many ms without a request a session ends: long enough for a handshake on a busy machine.
const IDLE: u64 = 1_000;

///
#[test]
fn a_session_from_its_beginning_to_its_end() {
    let served = Served::new();
    let mut client = served.client();
    let mut stream = served.client();
    let session = client.initialize();
    stream.listen_to(&session, None);
    client.call(&session, 1, "resources/read", json!({"uri": "demo://hello"}));
    assert_eq!(client.text(), "hello");
    client.call(&session, 2, "resources/subscribe", json!({"uri": "demo://hello"}));
    assert_eq!(client.answer().1["result"], json!({}));
    served.server.notify_updated("demo://hello").unwrap();
    assert_eq!(stream.message().json()["method"], "notifications/resources/updated");
    let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LEGACY)];
    client.send("DELETE", &headers, "");
    assert_eq!(client.answer().0, 204);
    assert_eq!(stream.event(), None, "its streams end with it");
    client.send("DELETE", &headers, "");
    assert_eq!(client.answer().0, 404);
}

/// a handler may notify the session that it answers: the lock of the session is free.
#[test]
fn a_handler_notifies_its_own_session() {
    let served = Served::with(|limits| limits.coalesce = 0, |http| http);
    let mut client = served.client();
    let mut stream = served.client();
    let session = client.initialize();
    stream.listen_to(&session, None);
    client.call(&session, 1, "resources/subscribe", json!({"uri": "demo://hello"}));
    client.answer();
    for id in 2..20 {
        client.call(&session, id, "resources/read", json!({"uri": "demo://touch"}));
        assert_eq!(client.text(), "touched");
        assert_eq!(stream.message().json()["params"]["uri"], "demo://hello");
    }
}

/// messages that were sent while the client did not read are repeated once.
#[test]
fn a_stream_is_resumed_where_it_broke_off() {
    let served = Served::with(|limits| limits.coalesce = 0, |http| http);
    let mut client = served.client();
    let mut stream = served.client();
    let session = client.initialize();
    stream.listen_to(&session, None);
    for (id, uri) in [(1, "demo://item/1"), (2, "demo://item/2")] {
        client.call(&session, id, "resources/subscribe", json!({"uri": uri}));
        client.answer();
    }
    served.server.notify_updated("demo://item/1").unwrap();
    let first = stream.message();
    assert_eq!(first.json()["params"]["uri"], "demo://item/1");
    drop(stream);
    served.server.notify_updated("demo://item/2").unwrap();
    let mut stream = served.client();
    stream.listen_to(&session, first.id.as_deref());
    assert_eq!(stream.message().json()["params"]["uri"], "demo://item/2");
}

/// a call does not die with its connection, and its answer can be fetched.
#[test]
fn a_call_outlives_its_connection() {
    let served = Served::with(|limits| limits.sse_after = 20, |http| http);
    let mut client = served.client();
    let session = client.initialize();
    client.call(&session, 9, "resources/read", json!({"uri": "demo://slow"}));
    assert_eq!(client.head().header("content-type"), Some("text/event-stream"));
    let priming = client.event().unwrap();
    drop(client);
    std::thread::sleep(Duration::from_millis(100));
    served.wait_for(1);
    served.gate.add_permits(1);
    served.wait_for(0);
    let mut stream = served.client();
    stream.listen_to(&session, priming.id.as_deref());
    let answer = stream.message().json();
    assert_eq!((&answer["id"], &answer["result"]["contents"][0]["text"]), (&json!(9), &json!("slow")));
}

/// an unused session ends.
#[test]
fn an_idle_session_ends() {
    let served = Served::with(|limits| limits.session_idle = IDLE, |http| http);
    let mut client = served.client();
    let session = client.initialize();
    let has_ended = (0..10).any(|id| {
        // Each call begins the time anew.
        std::thread::sleep(Duration::from_millis(IDLE + IDLE / 4));
        client.call(&session, id, "ping", json!({}));
        client.answer().0 == 404
    });
    assert!(has_ended);
}

/// an open stream keeps its session.
#[test]
fn an_open_stream_keeps_its_session() {
    let served = Served::with(|limits| limits.session_idle = IDLE, |http| http);
    let mut client = served.client();
    let mut stream = served.client();
    let session = client.initialize();
    stream.listen_to(&session, None);
    std::thread::sleep(Duration::from_millis(IDLE + IDLE / 2));
    client.call(&session, 1, "ping", json!({}));
    assert_eq!(client.answer(), (200, json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
}
