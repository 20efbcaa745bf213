//! Clients that are slow, gone, or want too much.

use super::Served;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

/// A client that dribbles its head is cut off, and one that sends nothing at all.
#[test]
fn a_slow_head_is_cut_off() {
    let served = Served::with(|limits| limits.head_timeout = 150, |http| http);
    let mut slow = served.client();
    let mut silent = served.client();
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
    let head = client.head();
    assert_eq!(head.status, 408);
    client.body(&head);
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

/// A client that does not read delays no other client, and gets everything once it reads.
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

/// A listener that does not read needs no further memory: many changes of a resource become a few notifications.
#[test]
fn a_listener_that_does_not_read_is_told_the_latest() {
    let served = Served::with(|limits| limits.coalesce = 0, |http| http);
    let mut lazy = served.client();
    let mut client = served.client();
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
    let mut one = served.client();
    let two = served.client();
    let mut three = served.client();
    one.read(1, "demo://hello");
    assert_eq!(one.text(), "hello");
    three.read(1, "demo://hello");
    three.socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(std::io::Read::read(&mut three.socket, &mut [0]).is_err(), "it is served already");
    three.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    drop(two);
    assert_eq!(three.text(), "hello");
}

/// The library refuses input that is not HTTP, and the server continues.
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

/// A request whose end is in doubt is refused, and nothing after it is read (RFC 9112, section 11.2).
#[test]
fn smuggling_is_refused() {
    let served = Served::new();
    let json = "Host: localhost\r\nContent-Type: application/json\r\n";
    let hidden = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let start = format!("POST /mcp HTTP/1.1\r\n{json}");
    let many: String = (0..200).map(|number| format!("X-{number}: y\r\n")).collect();
    for (name, bytes) in [
        (
            "length, coding",
            format!("{start}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "coding, length",
            format!("{start}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "two codings",
            format!("{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        ("chunked twice", format!("{start}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{hidden}")),
        ("another coding", format!("{start}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{hidden}")),
        ("no end", format!("{start}Transfer-Encoding: gzip\r\n\r\n{hidden}")),
        ("a parameter", format!("{start}Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n{hidden}")),
        ("an empty coding", format!("{start}Transfer-Encoding:\r\n\r\n0\r\n\r\n{hidden}")),
        ("equal lengths", format!("{start}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}{hidden}")),
        ("two lengths", format!("{start}Content-Length: 2\r\nContent-Length: 0\r\n\r\n{{}}{hidden}")),
        ("a list of lengths", format!("{start}Content-Length: 2, 2\r\n\r\n{{}}{hidden}")),
        ("a bare line feed", format!("POST /mcp HTTP/1.1\nHost: localhost\n\n{hidden}")),
        ("one bare line feed", format!("{start}Content-Length: 2\nX: y\r\n\r\n{{}}{hidden}")),
        ("a folded line", format!("{start}X: y\r\n z\r\nContent-Length: 2\r\n\r\n{{}}{hidden}")),
        ("a space before the colon", format!("{start}Content-Length : 2\r\n\r\n{{}}{hidden}")),
        ("a control character", format!("{start}X: a\u{1}b\r\nContent-Length: 2\r\n\r\n{{}}{hidden}")),
        ("a null", format!("{start}X: a\0b\r\nContent-Length: 2\r\n\r\n{{}}{hidden}")),
        ("many headers", format!("{start}{many}\r\n{hidden}")),
    ] {
        let mut client = served.client();
        client.raw(bytes.as_bytes());
        let answer = String::from_utf8(client.everything()).unwrap();
        let expected = match name {
            "many headers" => "HTTP/1.1 431 ",
            "another coding" => "HTTP/1.1 501 ",
            _ => "HTTP/1.1 400 ",
        };
        assert!(answer.starts_with(expected), "{name}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{name}: {answer}");
    }
    let mut client = served.client();
    client.read(1, "demo://hello");
    assert_eq!(client.text(), "hello");
}

/// A client that resets the connection amid what it reads and what it sends leaves nothing behind.
#[test]
fn a_reset_amid_a_body_leaves_nothing() {
    let served = Served::with(|limits| limits.message = 16 << 20, |http| http);
    let engine = served.server.engine();
    let before = format!("{:?}", engine.subscriptions());
    for _ in 0..3 {
        let mut reading = served.client();
        reading.read(1, "demo://large");
        assert_eq!(reading.head().status, 200);
        let mut sending = served.client();
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        sending.raw(format!("{head}Content-Length: {}\r\n\r\n", 12 << 20).as_bytes());
        sending.raw(&vec![b' '; 6 << 20]);
        // The system sends a reset because of unread input.
    }
    let mut client = served.client();
    client.read(1, "demo://hello");
    assert_eq!(client.text(), "hello");
    assert_eq!(format!("{:?}", engine.subscriptions()), before);
}

/// Bodies that wait for their rest have a bound together; who waits for nothing is served.
#[test]
fn bodies_have_a_bound_together() {
    let served = Served::with(|limits| limits.bodies_total = 100_000, |http| http);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n";
    let half = |size: usize| {
        let mut client = served.client();
        client.raw(format!("{head}{}", " ".repeat(size)).as_bytes());
        client
    };
    // One of the two comes second.
    let one = half(60_000);
    let two = half(60_000);
    let (told, refused) = std::sync::mpsc::channel();
    for mut client in [one, two] {
        let told = told.clone();
        std::thread::spawn(move || told.send(client.head().status));
    }
    assert_eq!(refused.recv().unwrap(), 503);
    let mut client = served.client();
    client.read(1, "demo://hello");
    assert_eq!(client.text(), "hello");
}

/// One address does not take every connection.
#[test]
fn connections_of_one_client_have_a_bound() {
    let served = Served::with(|limits| limits.connections_per_client = 2, |http| http);
    let mut one = served.client();
    let mut two = served.client();
    for client in [&mut one, &mut two] {
        client.read(1, "demo://hello");
        assert_eq!(client.text(), "hello");
    }
    assert!(served.client().is_closed());
    drop(one);
    super::eventually(|| {
        let mut client = served.client();
        let request = b"GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        client.socket.write_all(request).is_ok() && !client.everything().is_empty()
    });
}

/// A connection is idle for longer than a head may take.
#[test]
fn an_idle_connection_outlives_the_time_of_a_head() {
    let served = Served::with(|limits| limits.head_timeout = 50, |http| http);
    let mut client = served.client();
    client.read(1, "demo://hello");
    assert_eq!(client.text(), "hello");
    // A second connection that sends nothing is the clock.
    assert!(served.client().is_closed());
    client.read(2, "demo://hello");
    assert_eq!(client.text(), "hello");
}
