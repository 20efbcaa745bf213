//! Requests complete in themselves (2026-07-28).

use super::Served;
use serde_json::json;

/// R-155, R-160, R-162: one connection serves many requests.
#[test]
fn a_connection_is_kept() {
    let served = Served::new();
    let mut client = served.client();
    for id in 1..=3 {
        client.read(id, "demo://hello");
        assert_eq!(client.text(), "hello");
        client.read(id, "demo://constant");
        assert_eq!(client.text(), "constant");
    }
}

#[test]
fn requests_that_come_at_once_are_answered_in_order() {
    let served = Served::new();
    let mut client = served.client();
    for id in 0..50 {
        client.read(id, &format!("demo://item/{id}"));
    }
    for id in 0..50 {
        assert_eq!(client.text(), format!("item {id}"));
    }
}

/// R-032, R-190: the status is decided by the outcome.
#[test]
fn what_cannot_be_answered_has_its_status() {
    let served = Served::new();
    let mut client = served.client();
    client.ask(1, "resources/subscribe", json!({"uri": "demo://hello"}), &[]);
    let (status, answer) = client.answer();
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32601)));
    client.read(2, "demo://nothing");
    let (status, answer) = client.answer();
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)));
}

/// R-088, R-092, R-094, R-096: a listen gets notifications of changes, and ends with its result.
#[test]
fn a_listen_hears_updates_until_the_server_stops() {
    let served = Served::new();
    let mut client = served.client();
    let filter = json!({"notifications": {"resourceSubscriptions": ["demo://hello"]}});
    client.ask(7, "subscriptions/listen", filter, &[]);
    assert_eq!(client.head().header("content-type"), Some("text/event-stream"));
    let acknowledged = client.message().json();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..3 {
        served.server.notify_updated("demo://hello").unwrap();
        let updated = client.message().json();
        assert_eq!(updated["params"]["uri"], "demo://hello");
    }
    served.running.shutdown();
    assert_eq!(client.message().json()["id"], 7);
    assert_eq!(client.event(), None);
}

/// R-094, R-099: a listener that is gone leaves nothing behind.
#[test]
fn a_listener_that_leaves_is_forgotten() {
    let served = Served::new();
    let engine = served.server.engine().clone();
    let filter = json!({"notifications": {"resourceSubscriptions": ["demo://hello"]}});
    for id in 0..5 {
        let mut client = served.client();
        client.ask(id, "subscriptions/listen", filter.clone(), &[]);
        client.head();
        client.message();
    }
    let empty = format!("{:?}", Served::new().server.engine().subscriptions());
    super::eventually(|| format!("{:?}", engine.subscriptions()) == empty);
}

/// R-130: the client that leaves cancels its request.
#[test]
fn a_client_that_leaves_cancels() {
    let served = Served::new();
    let mut client = served.client();
    client.read(1, "demo://slow");
    served.wait_for(1);
    drop(client);
    served.wait_for(0);
}

/// R-162: a slow answer becomes a stream of events, a quick one is JSON.
#[test]
fn a_slow_answer_is_a_stream() {
    let served = Served::with(|limits| limits.sse_after = 30, |http| http);
    let mut client = served.client();
    client.read(1, "demo://slow");
    let head = client.head();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    served.gate.add_permits(1);
    assert_eq!(client.message().json()["result"]["contents"][0]["text"], "slow");
    assert_eq!(client.event(), None);
}

/// R-155, R-162: after its stream a connection serves the next requests: those that came with the first one, while the
/// stream waited, and afterwards.
#[test]
fn a_stream_is_followed_by_other_answers() {
    let served = Served::with(|limits| limits.sse_after = 30, |http| http);
    let item = |id: u64| format!("demo://item/{id}");
    for more in [0, 1, 5] {
        let mut client = served.client();
        for _ in 0..3 {
            client.read(100, "demo://slow");
            (0..more).for_each(|id| client.read(id, &item(id)));
            assert_eq!(client.head().header("content-type"), Some("text/event-stream"));
            (more..2 * more).for_each(|id| client.read(id, &item(id)));
            served.gate.add_permits(1);
            assert_eq!(client.message().json()["result"]["contents"][0]["text"], "slow");
            assert_eq!(client.event(), None);
            (0..2 * more).for_each(|id| assert_eq!(client.text(), format!("item {id}")));
            client.read(101, "demo://hello");
            assert_eq!(client.text(), "hello");
        }
    }
}

/// R-155: a client may close its connection after a stream.
#[test]
fn a_connection_that_is_to_be_closed_ends_with_its_stream() {
    let served = Served::with(|limits| limits.sse_after = 30, |http| http);
    let mut client = served.client();
    client.ask(1, "resources/read", json!({"uri": "demo://slow"}), &[("Connection", "close")]);
    client.head();
    served.gate.add_permits(1);
    assert_eq!(client.message().json()["result"]["contents"][0]["text"], "slow");
    assert_eq!(client.event(), None);
    assert!(client.is_closed());
}

/// R-167: streams on which nothing happens get comments, and stay open.
#[test]
fn an_idle_stream_is_kept_open() {
    let served = Served::with(|limits| limits.keep_alive = 20, |http| http);
    let mut client = served.client();
    client.ask(1, "subscriptions/listen", json!({"notifications": {"resourcesListChanged": true}}), &[]);
    client.head();
    client.message();
    client.comment();
    client.comment();
    served.server.notify_list_changed();
    assert_eq!(client.message().json()["method"], "notifications/resources/list_changed");
}

/// R-214: a request that takes too long is answered with an error.
#[test]
fn a_request_runs_out_of_time() {
    let served = Served::with(|limits| limits.read_timeout = 50, |http| http);
    let mut client = served.client();
    client.read(1, "demo://slow");
    let (status, answer) = client.answer();
    assert_eq!((status, &answer["error"]["data"]["kind"]), (200, &json!("timeout")));
    served.wait_for(0);
}

/// R-208: a handler sees the headers of its request, without credentials.
#[test]
fn handlers_see_headers_without_credentials() {
    let served = super::Served::new();
    let mut client = served.client();
    let more = [("X-Tenant", "acme"), ("Cookie", "secret"), ("Authorization", "Bearer secret")];
    client.ask(1, "resources/read", serde_json::json!({"uri": "demo://headers"}), &more);
    let text = client.text();
    assert!(text.contains(r#"("x-tenant", "acme")"#) && !text.contains("secret"), "{text}");
}
