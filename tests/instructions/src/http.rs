//! A request over HTTP through the rules, without a socket.

use crate::requests::{CONSTANT, Size, engine, modern};
use crate::{Piece, Work};
use mcp_resources_engine::engine::EngineOptions;
use mcp_resources_engine::http::{Endpoint, RequestHead, Rules, SESSION_ID_BYTES, Verified};
use mcp_resources_engine::now::Now;

pub(crate) const PIECES: &[Piece] = &[("read constant over HTTP, modern", post)];

fn post() -> Work {
    let ids = Box::new(|| Some([0; SESSION_ID_BYTES]));
    let endpoint = Endpoint::new(engine(Size::default(), EngineOptions::default()), Rules::default(), ids)
        .expect("rules");
    let body = modern("resources/read", CONSTANT);
    let headers: [(&str, &[u8]); 6] = [
        ("host", b"127.0.0.1:8000"),
        ("content-type", b"application/json"),
        ("accept", b"application/json, text/event-stream"),
        ("mcp-protocol-version", b"2026-07-28"),
        ("mcp-method", b"resources/read"),
        ("mcp-name", b"bench://const"),
    ];
    let mut out = Vec::new();
    Box::new(move || {
        out.clear();
        let now = Now::default();
        let head = RequestHead { verb: "POST", target: "/mcp", headers: &headers, ..RequestHead::default() };
        let admitted = endpoint.admit(&head, now);
        let request =
            admitted.and_then(|admitted| admitted.identify(Ok(Verified::anyone()), now)).expect("admitted");
        let opened = endpoint.open(&request, body.as_bytes(), now, &mut out);
        assert!(opened.turn.end && opened.turn.head.is_some_and(|head| head.status == 200), "no answer");
    })
}
