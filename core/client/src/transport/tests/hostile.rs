//! HTTP servers that break, lie, or never finish.

use super::*;
use mcp_resources_engine::client::Failure;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

type Requests = Arc<Mutex<Vec<String>>>;

/// A server that sends the result of `answer` unchanged for each request, and closes the connection. Returns its URL,
/// and the requests.
fn serving(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?token=secret", listener.local_addr().unwrap());
    let requests = Requests::default();
    let answer = Arc::new(answer);
    let seen = requests.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(mut socket), seen, answer) = (socket, seen.clone(), answer.clone()) else { return };
            std::thread::spawn(move || {
                let request = request(&socket);
                seen.lock().unwrap().push(request.clone());
                answer(&request, &mut socket);
            });
        }
    });
    (url, requests)
}

/// Reads a request: its head in lower case, and its body.
fn request(socket: &TcpStream) -> String {
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn whole(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}")
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const TYPE: &str = "Content-Type: application/json\r\n";
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;

fn modern() -> Outgoing {
    let revision = Some("2026-07-28");
    Outgoing { is_modern: true, revision, ..outgoing(Some(7), "resources/read", r#"{"id":7}"#) }
}

fn legacy() -> Outgoing {
    Outgoing { revision: Some("2025-11-25"), ..outgoing(Some(7), "resources/read", r#"{"id":7}"#) }
}

/// The fault of one request that gets this answer.
async fn fault(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> NotCarried {
    let (url, _) = serving(answer);
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(modern());
    let fault = talk.not_carried(7).await;
    assert!(!fault.failure.to_string().contains("secret"), "{fault:?}");
    fault
}

async fn answered(text: String) -> (Option<u16>, String) {
    let fault = fault(move |_, socket| drop(socket.write_all(text.as_bytes()))).await;
    (fault.status, fault.failure.to_string())
}

/// Each invalid answer causes an error with the reason, without secrets.
#[tokio::test]
async fn invalid_answers_are_errors_with_the_reason() {
    let html = "Content-Type: text/html\r\n";
    let location = |to: &str| format!("Location: {to}\r\n");
    let no_id = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no\u0007 way"}}"#;
    for (text, status, expected) in [
        (whole("200 OK", html, "<p>hello"), Some(200), "of the type \"text/html\""),
        (whole("200 OK", "", "hello"), Some(200), "of the type nothing"),
        (whole("202 Accepted", "", ""), Some(202), "of the type nothing"),
        (whole("500 Oh", html, "<p>oh"), Some(500), "answers with status 500"),
        (whole("418 Oh", html, ""), Some(418), "answers with status 418"),
        (whole("404 Not Found", html, ""), Some(404), "answers with status 404"),
        (
            whole("401 Who", TYPE, no_id),
            Some(401),
            "give a valid token in the header `Authorization: Bearer TOKEN`",
        ),
        (whole("403 No", html, ""), Some(403), "refuses this client (status 403): check the token"),
        (whole("400 Bad", TYPE, no_id), Some(400), "no way (-32600)"),
        (whole("400 Bad", TYPE, "{"), Some(400), "answers with status 400"),
        (
            whole("307 There", &location("https://elsewhere.example/a?secret"), ""),
            Some(307),
            "to https://elsewhere.example/a, which",
        ),
        (
            whole("302 There", &location("/there?secret"), ""),
            Some(302),
            "/there, which is not followed with status 302, which drops the request: use the URL",
        ),
        (whole("301 There", "", ""), Some(301), "to another URL, which is not followed"),
        (whole("303 There", &location("/mcp"), ""), Some(303), "/mcp, which is not followed"),
        (whole("307 There", "", ""), Some(307), "to another URL, which is another origin"),
        (whole("308 There", &location("/mcp?secret"), ""), Some(508), "redirects more than 5 times"),
        (whole("405 No", "", ""), Some(405), "check that this is the URL of an MCP endpoint"),
        ("garbage\r\n\r\n".into(), None, "/mcp: "),
        (String::new(), None, "connection closed before message completed"),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{".into(),
            None,
            "/mcp: ",
        ),
        (format!("{EVENTS}data: {{}}\n"), None, "the stream ended before the answer"),
    ] {
        let (own, reason) = answered(text.clone()).await;
        assert_eq!(own, status, "{text}");
        assert!(reason.contains(expected), "{text}: {reason}");
    }
}

/// A redirect within the origin keeps the request with its headers; a permanent one is remembered. No other origin gets
/// anything.
#[tokio::test]
async fn redirects_within_the_origin_are_followed() {
    for (status, paths) in [
        ("307 There", ["/mcp?token=secret", "/mcp/", "/mcp?token=secret", "/mcp/"].as_slice()),
        ("308 There", &["/mcp?token=secret", "/mcp/", "/mcp/"]),
    ] {
        let (url, requests) = serving(move |request, socket| {
            let text = match request.starts_with("POST /mcp/ ") {
                true => whole("200 OK", TYPE, ANSWER),
                false => whole(status, "Location: /mcp/\r\n", ""),
            };
            let _ = socket.write_all(text.as_bytes());
        });
        let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer t".to_owned())]);
        let mut talk = Talk::open(&Target::Url { url, headers }).await.unwrap();
        for _ in 0..2 {
            talk.transport.send(modern());
            assert_eq!(talk.message().await["id"], 7);
        }
        let requests = requests.lock().unwrap().clone();
        let own: Vec<&str> = requests.iter().filter_map(|request| request.split(' ').nth(1)).collect();
        assert_eq!(own, paths);
        for request in requests {
            assert!(
                request.contains("authorization: Bearer t") && request.ends_with(r#"{"id":7}"#),
                "{request}"
            );
        }
    }
    let (other, heard) =
        serving(|_, socket| drop(socket.write_all(whole("200 OK", TYPE, ANSWER).as_bytes())));
    for status in ["301 There", "302 There", "303 There", "307 There", "308 There"] {
        let redirect = whole(status, &format!("Location: {other}\r\n"), "");
        let (_, reason) = answered(redirect).await;
        assert!(reason.contains("/mcp, which is"), "{reason}");
    }
    assert!(heard.lock().unwrap().is_empty());
}

/// A server of the older transport is named, after its handshake has failed.
#[tokio::test]
async fn a_server_of_the_older_transport_is_named() {
    for (first, expected) in [
        ("event: endpoint\ndata: /messages\n\n", "speaks only the transport HTTP+SSE of revision 2024-11-05"),
        (": hello\n\n", "check that this is the URL of an MCP endpoint"),
    ] {
        let (url, _) = serving(move |request, socket| {
            let text = match request.starts_with("GET") {
                true => format!("{EVENTS}{first}"),
                false => whole("405 Method Not Allowed", "", ""),
            };
            let _ = socket.write_all(text.as_bytes());
        });
        let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
        talk.transport.send(outgoing(Some(7), "initialize", "{}"));
        let fault = talk.not_carried(7).await;
        assert!(fault.failure.to_string().contains(expected), "{fault:?}");
    }
}

// An error with the id of the request is its answer, whatever its status (R-161).
#[tokio::test]
async fn an_error_with_the_id_is_the_answer() {
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#;
    let (url, _) = serving(move |_, socket| drop(socket.write_all(whole("404 No", TYPE, error).as_bytes())));
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(modern());
    assert_eq!(talk.message().await["error"]["code"], -32601);
}

/// An endless body, line or event is aborted at the limit.
#[tokio::test]
async fn what_never_ends_is_given_up() {
    for (head, chunk) in [
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", "x".repeat(1 << 16)),
        (EVENTS, "x".repeat(1 << 16)),
        (EVENTS, format!("data: {}\n", "x".repeat(1 << 16))),
    ] {
        let endless = move |_: &str, socket: &mut TcpStream| {
            let _ = socket.write_all(head.as_bytes());
            while socket.write_all(chunk.as_bytes()).is_ok() {}
        };
        let fault = fault(endless).await;
        assert_eq!(fault.failure, Failure::TooLarge { limit: LONGEST as u64 });
    }
}

/// A JSON body with another message is passed on, and is not taken for the answer.
#[tokio::test]
async fn another_message_is_not_the_answer() {
    let other = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
    let (url, _) = serving(move |_, socket| drop(socket.write_all(whole("200 OK", TYPE, other).as_bytes())));
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(modern());
    assert_eq!(talk.message().await["id"], 8);
    assert!(talk.not_carried(7).await.failure.to_string().contains("does not answer"));
}

// R-179, R-181, R-225: the head of a modern request has the repeated parts and the configured headers, and no session.
#[tokio::test]
async fn the_head_repeats_the_message() {
    let (url, requests) =
        serving(|_, socket| drop(socket.write_all(whole("200 OK", TYPE, ANSWER).as_bytes())));
    let headers = BTreeMap::from([("X-Tenant".to_owned(), "a b".to_owned())]);
    let mut talk = Talk::open(&Target::Url { url, headers }).await.unwrap();
    talk.transport.send(Outgoing { name: Some("note://é".into()), ..modern() });
    talk.message().await;
    let request = requests.lock().unwrap().remove(0);
    for line in [
        "POST /mcp?token=secret HTTP/1.1",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "mcp-method: resources/read",
        "mcp-name: =?base64?bm90ZTovL8Op?=",
        "mcp-protocol-version: 2026-07-28",
        "x-tenant: a b",
    ] {
        assert!(request.lines().any(|own| own == line), "{line}: {request}");
    }
    assert!(!request.contains("mcp-session-id"), "{request}");
}

// R-174, R-176: a broken answer is resumed after its last complete event; if the session has ended, that is reported.
#[tokio::test]
async fn a_broken_answer_is_resumed() {
    let (url, requests) = serving(|request, socket| {
        let text = match request.contains("last-event-id: 1-1") {
            false => "id: 1-1\nretry: 100\ndata: \n\ndata: {}\n\nid: 1-2\ndata: {\"lost".to_owned(),
            true => format!("id: 1-2\ndata: {ANSWER}\n\n"),
        };
        let _ = socket.write_all(format!("{EVENTS}{text}").as_bytes());
    });
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(legacy());
    assert_eq!(talk.message().await, json!({}));
    assert_eq!(talk.message().await["id"], 7);
    let requests = requests.lock().unwrap().clone();
    assert!(requests[1].starts_with("GET /mcp") && requests.len() == 2, "{requests:?}");
    assert!(requests[1].contains("accept: text/event-stream"), "{requests:?}");
    assert!(requests[1].contains("mcp-protocol-version: 2025-11-25"), "{requests:?}");
}

/// An answer that always breaks is resumed a limited number of times.
#[tokio::test]
async fn a_stream_that_always_breaks_is_given_up() {
    let (url, requests) = serving(|request, socket| {
        let text = if request.starts_with("POST") { "id: 1\nretry: 1\ndata: \n\n" } else { ": nothing\n\n" };
        let _ = socket.write_all(format!("{EVENTS}{text}").as_bytes());
    });
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(legacy());
    assert_eq!(talk.not_carried(7).await.status, None);
    assert_eq!(requests.lock().unwrap().len(), 6);
}

// R-169, R-171 … R-173: the session id is sent back, a server may lack a notification stream, and the end of the
// session is reported once.
#[tokio::test]
async fn a_session_lives_and_ends() {
    let (url, requests) = serving(|request, socket| {
        let text = match request {
            _ if request.contains("initialize\"") => {
                whole("200 OK", &format!("{TYPE}Mcp-Session-Id: abc\r\n"), ANSWER)
            }
            _ if request.contains("initialized\"") => whole("202 Accepted", "", ""),
            _ if request.starts_with("GET") => whole("405 No", "", ""),
            _ => whole("404 Gone", TYPE, r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"gone"}}"#),
        };
        let _ = socket.write_all(text.as_bytes());
    });
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(outgoing(Some(7), "initialize", r#"{"method":"initialize"}"#));
    talk.message().await;
    let initialized =
        outgoing(None, "notifications/initialized", r#"{"method":"notifications/initialized"}"#);
    talk.transport.send(Outgoing { revision: Some("2025-11-25"), ..initialized });
    talk.transport.send(legacy());
    talk.transport.send(Outgoing { id: Some(8), ..legacy() });
    assert!(matches!(talk.next().await, Inbound::SessionEnded));
    timeout(DEADLINE, talk.transport.close()).await.unwrap();
    assert!(talk.inbound.recv().await.is_none());
    let requests = requests.lock().unwrap().clone();
    assert!(!requests[0].contains("mcp-session-id") && !requests[0].contains("mcp-protocol-version"));
    assert!(requests[1].contains("notifications/initialized"), "{requests:?}");
    assert!(requests[1..].iter().all(|request| request.contains("mcp-session-id: abc")), "{requests:?}");
    assert!(requests.iter().all(|request| !request.starts_with("DELETE")), "{requests:?}");
}

// R-172, R-173: the notification stream is reopened where it broke, and the session is deleted at the end.
#[tokio::test]
async fn a_standing_stream_is_opened_again() {
    let (url, requests) = serving(|request, socket| {
        let text = match request {
            _ if request.contains("initialize\"") => {
                whole("200 OK", &format!("{TYPE}Mcp-Session-Id: abc\r\n"), ANSWER)
            }
            _ if request.contains("last-event-id: 2") => {
                format!("{EVENTS}id: 3\nretry: 100\ndata: {{\"n\":2}}\n\n")
            }
            _ if request.contains("last-event-id: 3") => whole("400 Too old", "", ""),
            _ if request.starts_with("GET") => format!("{EVENTS}id: 2\nretry: 100\ndata: {{\"n\":1}}\n\n"),
            _ => whole("202 Accepted", "", ""),
        };
        let _ = socket.write_all(text.as_bytes());
    });
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(outgoing(Some(7), "initialize", r#"{"method":"initialize"}"#));
    talk.message().await;
    talk.transport.send(outgoing(None, "notifications/initialized", "{}"));
    for (number, opened) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
        assert_eq!(talk.message().await, json!({ "n": number }));
        // A resumed stream has lost nothing.
        assert_eq!(talk.opened, opened);
    }
    timeout(DEADLINE, talk.transport.close()).await.unwrap();
    let last = requests.lock().unwrap().pop().unwrap();
    assert!(last.starts_with("DELETE /mcp") && last.contains("mcp-session-id: abc"), "{last}");
}

/// If the notification stream cannot be reopened, the transport is lost, because changes would go unnoticed.
#[tokio::test]
async fn a_standing_stream_that_stays_away_is_a_loss() {
    let (url, _) = serving(|request, socket| {
        let is_first = request.starts_with("GET") && !request.contains("last-event-id");
        let text = match is_first {
            true => format!("{EVENTS}id: 2\nretry: 1\ndata: {{}}\n\n"),
            false if request.starts_with("GET") => whole("503 Oh", "", ""),
            false => whole("202 Accepted", "", ""),
        };
        let _ = socket.write_all(text.as_bytes());
    });
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    talk.transport.send(outgoing(None, "notifications/initialized", "{}"));
    assert_eq!(talk.message().await, json!({}));
    let reason = talk.lost().await;
    assert!(reason.starts_with("the stream of notifications broke") && reason.contains("503"), "{reason}");
}

// R-094: aborting an exchange closes its connection; dropping the transport closes all.
#[tokio::test]
async fn what_is_broken_off_is_closed() {
    let (tell, told) = std::sync::mpsc::channel();
    let (url, _) = serving(move |_, socket| {
        let _ = socket.write_all(format!("{EVENTS}data: {{}}\n\n").as_bytes());
        tell.send(socket.read(&mut [0]).unwrap_or_default()).unwrap();
    });
    let mut talk = Talk::open(&endpoint(&url)).await.unwrap();
    let listen = |id| Outgoing { id: Some(id), method: "subscriptions/listen".into(), ..modern() };
    talk.transport.send(listen(1));
    talk.transport.send(listen(2));
    talk.message().await;
    talk.message().await;
    talk.transport.abort(1);
    let told = tokio::task::spawn_blocking(move || (told.recv_timeout(DEADLINE), told)).await.unwrap();
    assert_eq!(told.0, Ok(0));
    drop(talk);
    let told = tokio::task::spawn_blocking(move || told.1.recv_timeout(DEADLINE)).await.unwrap();
    assert_eq!(told, Ok(0));
}

/// A refused connection, an unknown host name, and a server without TLS each cause an error with the host and the
/// reason.
#[tokio::test]
async fn unreachable_servers_are_errors_with_the_reason() {
    // Bound, not listened on: no other process is given the port.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let free = bound.local_addr().unwrap();
    let (plain, _) = serving(|_, socket| drop(socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n")));
    for (url, expected) in [
        (format!("http://{free}/mcp?secret"), "Connection refused"),
        ("http://mcp-no-such-host.invalid/mcp?secret".to_owned(), "lookup"),
        (plain.replace("http://", "https://"), "/mcp: "),
    ] {
        let mut talk = match Talk::open(&endpoint(&url)).await {
            Ok(talk) => talk,
            // On a machine without certificates.
            Err(error) => {
                assert!(url.starts_with("https://") && error.starts_with("TLS cannot be used"), "{error}");
                continue;
            }
        };
        talk.transport.send(modern());
        let NotCarried { status: None, failure: Failure::Unreachable { reason } } = talk.not_carried(7).await
        else {
            panic!("{url}");
        };
        let place = url.split('?').next().unwrap();
        assert!(reason.starts_with(place) && reason.contains(expected), "{reason}");
        assert!(!reason.contains("secret"), "{reason}");
    }
}

/// An invalid endpoint is refused before anything is sent, without secrets in the error.
#[tokio::test]
async fn a_target_that_makes_no_sense_is_refused() {
    for (url, name, value, expected) in [
        ("ftp://secret", "x", "y", "http:// or https://"),
        ("secret", "x", "y", "http:// or https://"),
        ("/secret", "x", "y", "http:// or https://"),
        ("http://user:secret@host/", "x", "y", "has a user in it"),
        ("http://ho st/secret", "x", "y", "the URL cannot be used"),
        ("http://host/", "x y", "secret", "\"x y\" is not the name of a header"),
        ("http://host/", "X-Token", "secret\n", "the header \"X-Token\""),
        ("http://host/", "Content-Length", "secret", "cannot be set"),
    ] {
        let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let error = Talk::open(&Target::Url { url: url.into(), headers }).await.err().unwrap();
        assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
    }
}
