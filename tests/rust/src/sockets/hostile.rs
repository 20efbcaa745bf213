//! Clients that are slow, gone, or want too much.

use super::Served;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

/// A client that dribbles its head is cut off, and one that sends nothing at all.
#[test]
fn a_slow_head_is_cut_off() {
    let served = Served::with(|limits| limits.head_timeout = 150, |http| http);
    let (mut slow, mut silent) = (served.client(), served.client());
    let start = Instant::now();
    for byte in b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n".iter().cycle() {
        if slow.socket.write_all(&[*byte]).is_err() || start.elapsed() > Duration::from_secs(5) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(start.elapsed() < Duration::from_secs(5), "it could go on");
    assert!(silent.is_closed());
    let mut client = served.client();
    client.read(1, "demo://hello");
    assert_eq!(client.text(), "hello");
}

/// A body that does not come is not waited for.
#[test]
fn a_slow_body_is_cut_off() {
    let served = Served::with(|limits| limits.body_timeout = 100, |http| http);
    let mut client = served.client();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    client.raw(format!("{head}Content-Length: 100\r\n\r\n{{\"jsonrpc\"").as_bytes());
    assert_eq!(client.head().status, 408);
    assert!(client.is_closed());
}

/// A body that breaks off is no message, whatever said how long it is.
#[test]
fn a_body_that_breaks_off_is_not_answered() {
    let served = Served::new();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    for rest in ["Content-Length: 100\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n40\r\n{}"] {
        let mut client = served.client();
        client.raw(format!("{head}{rest}").as_bytes());
        client.half_close();
        assert!(client.is_closed(), "{rest}");
    }
}

/// A listener that closes its half is gone: nothing of it is kept.
#[test]
fn a_half_closed_listener_is_gone() {
    let served = Served::new();
    let engine = served.server.engine();
    let before = format!("{:?}", engine.subscriptions());
    let mut client = served.client();
    let filter = json!({"notifications": {"resourceSubscriptions": ["demo://hello"]}});
    client.ask(1, "subscriptions/listen", filter, &[]);
    client.head();
    client.message();
    client.half_close();
    super::eventually(|| format!("{:?}", engine.subscriptions()) == before);
}

/// a body that is too large is refused, whether its length was said before or not.
#[test]
fn a_large_body_is_refused() {
    let served = Served::with(|limits| limits.message = 1_000, |http| http);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut client = served.client();
    client.raw(format!("{head}Content-Length: 1000000\r\n\r\n").as_bytes());
    assert_eq!(client.head().status, 413);
    let mut client = served.client();
    client
        .raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n7d0\r\n{}\r\n", "x".repeat(2_000)).as_bytes());
    assert_eq!(client.head().status, 413);
}

/// A client that does not read holds up nobody, and still gets everything when it does.
#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let served = Served::new();
    let mut lazy = served.client();
    lazy.read(1, "demo://large");
    let mut client = served.client();
    for id in 0..100 {
        client.read(id, "demo://hello");
        assert_eq!(client.text(), "hello");
    }
    assert_eq!(lazy.text().len(), 12 << 20);
}

/// A listener that does not read costs marks, not memory: however often a resource changes, it hears of it a few times.
#[test]
fn a_listener_that_does_not_read_is_told_the_latest() {
    let served = Served::with(|limits| limits.coalesce = 0, |http| http);
    let (mut lazy, mut client) = (served.client(), served.client());
    lazy.ask(
        1,
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": ["demo://hello"]}}),
        &[],
    );
    lazy.head();
    lazy.message();
    for id in 0..2_000 {
        served.server.notify_updated("demo://hello").unwrap();
        if id % 500 == 0 {
            client.read(id, "demo://hello");
            assert_eq!(client.text(), "hello");
        }
    }
    assert_eq!(lazy.message().json()["params"]["uri"], "demo://hello");
}

/// Above the limit connections wait; they are served when others leave.
#[test]
fn connections_have_a_bound() {
    let served = Served::with(|limits| limits.connections = 2, |http| http);
    let (mut one, two, mut three) = (served.client(), served.client(), served.client());
    one.read(1, "demo://hello");
    assert_eq!(one.text(), "hello");
    three.read(1, "demo://hello");
    three.socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(std::io::Read::read(&mut three.socket, &mut [0]).is_err(), "it is served already");
    three.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    drop(two);
    assert_eq!(three.text(), "hello");
}

/// What is no HTTP is refused by the library, and the server goes on.
#[test]
fn nonsense_is_refused() {
    let served = Served::new();
    for bytes in [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"{}\n"] {
        let mut client = served.client();
        client.raw(bytes);
        client.half_close();
        // A 400 at most.
        while !client.is_closed() {
            assert_eq!(client.head().status, 400);
        }
    }
    let mut client = served.client();
    client.read(1, "demo://hello");
    assert_eq!(client.text(), "hello");
}

///
#[test]
fn other_hosts_and_origins_are_refused() {
    let served = Served::new();
    let mut client = served.client();
    client.raw(b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n");
    let head = client.head();
    assert_eq!(head.status, 403);
    client.body(&head);
    client.ask(1, "resources/list", json!({}), &[("Origin", "https://evil.example")]);
    assert_eq!(client.answer().0, 403);
    client.ask(1, "resources/list", json!({}), &[("Origin", "http://localhost:6274")]);
    assert_eq!(client.answer().0, 200);
}
