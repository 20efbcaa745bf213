//! Messages of a hostile server: none stops the machine, affects valid entries, or makes it keep data without limit.

use super::World;
use crate::client::{Allowed, Call, CallOptions};
use crate::now::Now;
use crate::version::Revision;
use proptest::prelude::*;

/// Sends a list call and answers it with `result`.
fn listed(result: &str, templates: bool) -> Vec<String> {
    let mut world = World::open(Revision::V2026_07_28);
    world.read(1, "n://none");
    world.logged();
    world.is_deaf = true;
    let call = if templates { Call::ListTemplates { cursor: None } } else { Call::List { cursor: None } };
    world.act(|machine, now, out| machine.call(2, call, CallOptions::default(), now, out));
    let id = world.sent.last().unwrap().id.unwrap();
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
    world.logged()
}

/// S-12: an invalid entry is left out and counted; the others are kept.
#[test]
fn odd_entries_leave_the_others() {
    let long = format!(r#"{{"uri":"a://long","name":"{}"}}"#, "x".repeat(70_000));
    let entries = [
        r#"{"uri":"a://1","name":"one"}"#,
        r#"{"uri":"a://2","name":7,"size":"big","icons":{},"_meta":null}"#,
        r#"{"name":"no uri"}"#,
        r#"{"uri":7}"#,
        r#"{"uri":"not a uri"}"#,
        r#"{"uri":"a://\ud800"}"#,
        r#"["a://3"]"#,
        "null",
        &long,
    ];
    let result = format!(r#"{{"resources":[{}],"nextCursor":"c"}}"#, entries.join(","));
    let log = listed(&result, false);
    assert_eq!(log[1], r#"2: 2 items, 7 odd, Some("c")"#);
    assert_eq!(
        listed(r#"{"resourceTemplates":[{"uriTemplate":"a://{x","name":"t"},{}]}"#, true)[1],
        "2: 1 items, 1 odd, None"
    );
    for (result, reason) in [
        ("{}", "the result has no array \"resources\""),
        ("[]", "the result is no object"),
        (r#"{"resources":{}}"#, "the result has no array \"resources\""),
        ("null", "the result is no object"),
    ] {
        let expected = format!("2: Failed to read resource: the server's answer cannot be used: {reason}");
        assert_eq!(listed(result, false), [expected]);
    }
}

/// S-12: contents under another URI are checked too, and invalid base64 is left out.
#[test]
fn contents_are_checked() {
    let allowed = Allowed::Globs(vec!["n://a*".into()]);
    let read = |contents: &str| {
        let mut world = World::new(Some(Revision::V2026_07_28), &allowed);
        world.read(1, "n://abc");
        world.logged();
        world.is_deaf = true;
        world.read(2, "n://a");
        let id = world.sent.last().unwrap().id.unwrap();
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"contents":[{contents}]}}}}"#);
        world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
        world.logged().pop().unwrap()
    };
    assert_eq!(read(r#"{"uri":"n://b","text":"secret"},{"uri":"n://a","text":"mine"}"#), "2: mine");
    assert_eq!(read(r#"{"uri":"n://b","text":"secret"}"#), "2: Access denied: n://a");
    assert_eq!(
        read(r#"{"uri":"n://a","blob":"AAE="},{"uri":"n://a","blob":"!"},{"uri":"n://a"}"#),
        "2: [0, 1]"
    );
    assert_eq!(read(r#"{"uri":"n://a","blob":"_-8="}"#), "2: [255, 239]");
    assert_eq!(read(""), "2: ");
    assert!(read("7").contains("no entry of the contents makes sense"));
}

/// R-216: a result without a type counts as complete; an unknown type is an error.
#[test]
fn unknown_types_of_results_are_errors() {
    for (kind, expected) in [
        ("", "2: here"),
        (r#""resultType":"complete","#, "2: here"),
        (
            r#""resultType":"later","#,
            r#"2: Failed to read resource: the server's answer cannot be used: its resultType is "later""#,
        ),
    ] {
        let mut world = World::open(Revision::V2026_07_28);
        world.read(1, "n://x");
        world.is_deaf = true;
        world.read(2, "n://x");
        let id = world.sent.last().unwrap().id.unwrap();
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{kind}"contents":[{{"uri":"n://x","text":"here"}}]}}}}"#
        );
        world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
        assert_eq!(world.logged().pop().unwrap(), expected);
    }
}

/// An error message of a server is shown shortened and without control characters.
#[test]
fn messages_are_shortened() {
    let mut world = World::open(Revision::V2026_07_28);
    world.read(1, "n://x");
    world.logged();
    world.is_deaf = true;
    world.read(2, "n://x");
    let id = world.sent.last().unwrap().id.unwrap();
    let text = format!("\\u001b[2J{}", "y".repeat(10_000));
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"{text}"}}}}"#);
    world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
    let line = world.logged().pop().unwrap();
    assert!(line.len() < 700 && !line.contains('\u{1b}'), "{line}");
}

/// R-217, S-14: the "not found" errors of other libraries' servers are recognized.
#[test]
fn not_found_is_recognised() {
    let not_found = "2: Resource not found: n://x";
    let denied = "2: Access denied: n://x";
    for (error, expected) in [
        (r#"{"code":-32002,"message":"n://x"}"#, not_found),
        (r#"{"code":-32602,"message":"n://x"}"#, not_found),
        (r#"{"code":-32602,"message":"Unknown","data":{"uri":"n://x"}}"#, not_found),
        (r#"{"code":-32602,"message":"MCP error -32602: Resource n://x not found"}"#, not_found),
        (r#"{"code":0,"message":"Unknown resource: n://x"}"#, not_found),
        (r#"{"code":-32003,"message":"no"}"#, denied),
        (r#"{"code":-31003,"message":"no"}"#, denied),
        (
            r#"{"code":-32602,"message":"bad","data":{"uri":"n://x","kind":"invalid_parameter"}}"#,
            "2: Failed to read resource: bad (-32602)",
        ),
        (r#"{"code":-32602,"message":"bad"}"#, "2: Failed to read resource: bad (-32602)"),
        (
            r#""text""#,
            "2: Failed to read resource: the server's answer cannot be used: the error is no object",
        ),
    ] {
        let mut world = World::open(Revision::V2026_07_28);
        world.read(1, "n://x");
        world.is_deaf = true;
        world.read(2, "n://x");
        let id = world.sent.last().unwrap().id.unwrap();
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
        assert_eq!(world.logged().pop().unwrap(), expected, "{error}");
    }
}

/// Messages with members of the protocol in any order and any shape.
fn messages() -> impl Strategy<Value = String> {
    let id =
        prop_oneof![(0u64..12).prop_map(|id| id.to_string()), Just("null".into()), Just("\"1\"".to_owned())];
    let result = prop_oneof![
        Just(r#""result":{}"#),
        Just(r#""result":{"contents":[{"uri":"n://a","text":"x"}]}"#),
        Just(
            r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#
        ),
        Just(r#""result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}}}"#),
        Just(r#""result":{"resultType":"input_required","requestState":"s"}"#),
        Just(
            r#""result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}}}"#
        ),
        Just(r#""result":7"#),
        Just(r#""error":{"code":-32601,"message":""}"#),
        Just(r#""error":{}"#),
    ];
    let told = prop_oneof![
        Just(r#""method":"notifications/resources/updated","params":{"uri":"n://a"}"#),
        Just(r#""method":"notifications/resources/updated","params":{"uri":"n://a/b/c"}"#),
        Just(r#""method":"notifications/resources/updated","params":{"uri":7}"#),
        Just(r#""method":"notifications/resources/list_changed""#),
        Just(r#""method":"notifications/cancelled","params":{"requestId":3}"#),
        Just(r#""method":"notifications/progress","params":{"progressToken":2,"progress":1e999}"#),
        Just(
            r#""method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3},"notifications":{"resourceSubscriptions":["n://a"]}}"#
        ),
        Just(r#""id":"s","method":"elicitation/create","params":{}"#),
        Just(r#""id":"s","method":"ping""#),
    ];
    prop_oneof![
        (id, result).prop_map(|(id, result)| format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#)),
        told.prop_map(|told| format!(r#"{{"jsonrpc":"2.0",{told}}}"#)),
        Just("[]".to_owned()),
        Just("garbage".to_owned()),
    ]
}

proptest! {
    /// No sequence of messages causes a panic or unlimited memory use.
    #[test]
    fn nothing_ends_the_machine(messages in proptest::collection::vec(messages(), 1..60), modern in any::<bool>()) {
        let revision = if modern { Revision::V2026_07_28 } else { Revision::V2025_11_25 };
        let mut world = World::open(revision);
        world.is_deaf = true;
        world.watch(1, "n://a");
        world.read(2, "n://b");
        for message in &messages {
            world.now = Now { tick: world.now.tick + 20, unix: 0 };
            world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
            world.act(super::Machine::tick);
        }
        prop_assert!(world.sent.len() < 20 * (messages.len() + 5));
        world.act(|machine, _, out| machine.close(out));
        prop_assert_eq!(world.machine.deadline(), None);
    }
}
