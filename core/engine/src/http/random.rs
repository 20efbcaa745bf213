//! Random requests: every request is answered once, with a status of the table, and no response header repeats
//! its text.

use super::tests::endpoint;
use super::*;
use crate::limits::Limits;
use proptest::prelude::*;
use proptest::sample::select;

const VERBS: &[&str] = &["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "PUT", ""];
const TARGETS: &[&str] = &[
    "/mcp",
    "/mcp",
    "/mcp",
    "/mcp?a=b",
    "/",
    "*",
    "http://localhost/mcp",
    "/.well-known/oauth-protected-resource",
];
const NAMES: &[&str] = &[
    "Host",
    "Origin",
    "Accept",
    "Content-Type",
    "Content-Length",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Session-Id",
    "Last-Event-ID",
    "Authorization",
    "Access-Control-Request-Method",
];
const VALUES: &[&[u8]] = &[
    b"localhost",
    b"http://localhost:1",
    b"application/json",
    b"text/event-stream",
    b"*/*;q=0",
    b"2026-07-28",
    b"2025-11-25",
    b"2025-03-26",
    b"resources/read",
    b"subscriptions/listen",
    b"test://one",
    b"=?base64?dGVzdDovL29uZQ==?=",
    b"=?base64?\xff?=",
    b"0-0",
    b"99999999999999999999999",
    b"Bearer x",
    b"secret\r\nInjected: yes",
    b"\xff\xfe",
    b"",
];
const BODIES: &[&str] = &[
    "",
    "{",
    "[]",
    "1",
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://one"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://one","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://item/1","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}}"#,
];

#[derive(Clone, Debug)]
struct RandomRequest {
    verb: &'static str,
    target: &'static str,
    /// Whether it starts with headers that let a request pass.
    usual: bool,
    headers: Vec<(&'static str, &'static [u8])>,
    body: &'static str,
}

fn request() -> impl Strategy<Value = RandomRequest> {
    let headers = proptest::collection::vec((select(NAMES), select(VALUES)), 0..5);
    (select(VERBS), select(TARGETS), prop::bool::weighted(0.9), headers, select(BODIES))
        .prop_map(|(verb, target, usual, headers, body)| RandomRequest { verb, target, usual, headers, body })
}

fn check(head: &ResponseHead) {
    let statuses = [200, 202, 204, 400, 401, 403, 404, 405, 406, 413, 415, 431, 503];
    assert!(statuses.contains(&head.status), "{}", head.status);
    for (name, value) in &head.headers {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
        assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{name}: {value}");
        assert!(!value.contains("secret"), "{name}: {value}");
    }
}

/// Sends one request, then disconnects its client. Returns the id of a session that it began.
fn answered(endpoint: &Arc<Endpoint>, request: &RandomRequest, session: Option<&str>) -> Option<String> {
    let mut headers: Vec<(&str, &[u8])> = Vec::new();
    if request.usual {
        let usual: [(&str, &[u8]); 2] = [("host", b"localhost"), ("content-type", b"application/json")];
        headers.extend(
            usual
                .into_iter()
                .filter(|(own, _)| !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(own))),
        );
        headers.extend(session.map(|id| ("mcp-session-id", id.as_bytes())));
    }
    headers.extend(&request.headers);
    let head = RequestHead {
        verb: request.verb,
        target: request.target,
        headers: &headers,
        ..RequestHead::default()
    };
    let now = Now::default();
    let mut out = Vec::new();
    let passed =
        endpoint.admit(&head, now).and_then(|admitted| admitted.identify(Ok(Verified::anyone()), now));
    let identified = match passed {
        Ok(identified) => identified,
        Err(response) => {
            check(&response.head);
            return None;
        }
    };
    let OpenedRequest { turn, exchange } = endpoint.open(&identified, request.body.as_bytes(), now, &mut out);
    turn.head.iter().for_each(check);
    assert_eq!(turn.end, exchange.is_none());
    assert!(turn.head.is_some() || (exchange.is_some() && out.is_empty()));
    if let Some(exchange) = exchange {
        assert!(exchange.closed(now).end);
    }
    let named = turn.head?.headers.into_iter().find(|(name, _)| *name == "mcp-session-id");
    named.map(|(_, id)| id.into_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_is_answered(requests in proptest::collection::vec(request(), 1..20), auth in prop::bool::weighted(0.2)) {
        let mut rules = Rules { cors: true, origins: Origins::Any, ..Rules::default() };
        rules.auth = auth.then(|| Auth::new("http://localhost/mcp", ["http://localhost:9".to_owned()]));
        let endpoint = endpoint(Limits::default(), rules);
        let mut session = None;
        for request in &requests {
            session = answered(&endpoint, request, session.as_deref()).or(session);
        }
        prop_assert!(endpoint.close(Now::default()).iter().all(|turn| turn.head.is_none()));
        prop_assert_eq!(endpoint.engine().subscriptions().connections, 0);
    }
}
