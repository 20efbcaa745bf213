//! Messages of a hostile server: none stops the machine, affects valid entries, or makes it keep data without limit.

use super::World;
use crate::client::{AllowList, CallOptions, ClientCall};
use crate::now::Now;
use crate::version::Revision;
use proptest::prelude::*;

/// Sends a list call and answers it with `result`.
fn listed(result: &str, templates: bool) -> Vec<String> {
    let mut world = World::open(Revision::V2026_07_28);
    world.read(1, "n://none");
    world.logged();
    world.is_deaf = true;
    let call = if templates {
        ClientCall::ListTemplates { cursor: None }
    } else {
        ClientCall::List { cursor: None }
    };
    world.act(|machine, now, out| machine.call(2, call, CallOptions::default(), now, out));
    let id = world.sent.last().unwrap().id.unwrap();
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    world.act(|machine, now, out| machine.received(message.as_bytes(), now, out));
    world.logged()
}

// S-12: an invalid entry is left out and named; the others are kept.
#[test]
fn odd_entries_leave_the_others() {
    let long = format!(r#"{{"uri":"a://long","name":"{}"}}"#, "x".repeat(70_000));
    let entries = [
        r#"{"uri":"a://1","name":"one"}"#,
        r#"{"uri":"a://2","name":7,"size":"big","icons":{},"_meta":null}"#,
        r#"{"name":"no uri"}"#,
        r#"{"uri":7}"#,
        r#"{"uri":"not a uri"}"#,
        r#"{"uri":"a b://\\\ud800%"}"#,
        r#"{"uri":""}"#,
        r#"["a://3"]"#,
        "null",
        &long,
    ];
    let result = format!(r#"{{"resources":[{}],"nextCursor":"c"}}"#, entries.join(","));
    let log = listed(&result, false);
    let named = [
        r#"left out: entry 3 of "resources", {"name":"no uri"}: it has no "uri""#.to_owned(),
        r#"left out: entry 4 of "resources", {"uri":7}: its "uri" is not a string"#.into(),
        r#"left out: entry 8 of "resources", ["a://3"]: it is not an object"#.into(),
        r#"left out: entry 9 of "resources", null: it is not an object"#.into(),
        format!(
            r#"left out: entry 10 of "resources", {{"uri":"a://long","name":"{}…: it has 70028 bytes, more than 65536"#,
            "x".repeat(74)
        ),
    ];
    assert_eq!(log[..5], named);
    assert_eq!(log[5], r#"2: 5 items, 5 odd, Some("c")"#);
    assert_eq!(
        listed(r#"{"resourceTemplates":[{"uriTemplate":"a://{x","name":"t"},{},{"uriTemplate":""}]}"#, true)
            [2],
        "2: 1 items, 2 odd, None"
    );
    let many = format!(r#"{{"resources":[{}]}}"#, vec!["7"; 1_000].join(","));
    let log = listed(&many, false);
    assert_eq!((log.len(), log[20].as_str()), (22, "980 more entries are left out"));
    assert_eq!(listed(r#"{"resources":null,"nextCursor":null}"#, false), ["2: 0 items, 0 odd, None"]);
    let log = listed(r#"{"resources":[],"nextCursor":5}"#, false);
    assert_eq!(log[0], r#"left out: the rest of "resources": nextCursor is not a string"#);
    for (result, reason) in [
        ("{}", "the result has no array \"resources\""),
        ("[]", "the result is no object"),
        (r#"{"resources":{}}"#, "the result has no array \"resources\", but another value there"),
        ("null", "the result is no object"),
    ] {
        let expected = format!("2: Failed to read resource: the server's answer cannot be used: {reason}");
        assert_eq!(listed(result, false), [expected]);
    }
}

// S-12: contents under another URI are checked too, and invalid base64 is left out.
#[test]
fn contents_are_checked() {
    let allowed = AllowList::Globs(vec!["n://a*".into()]);
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
    assert_eq!(read(r#"{"uri":"n://a","blob":"AA\r\n E=\n"}"#), "2: [0, 1]");
    assert_eq!(read(r#"{"uri":"n://a","text":null,"blob":"AAE="}"#), "2: [0, 1]");
    assert_eq!(read(r#"{"uri":null,"text":"a\ud800b","_meta":{"x":"\ud800"}}"#), "2: a\u{fffd}b");
    assert_eq!(read(r#"{"uri":"n://a","text":"\ud83d\ude00\ude00\\ud800"}"#), "2: 😀\u{fffd}\\ud800");
    assert_eq!(read(""), "2: ");
    for (entry, why) in [
        ("7", "it is not an object"),
        ("{}", r#"it has neither "text" nor "blob""#),
        (r#"{"text":7}"#, r#"its "text" is not a string"#),
        (r#"{"blob":"a!"}"#, r#"its "blob" is not base64: '!' is no character of base64"#),
    ] {
        let expected = format!("the server's answer cannot be used: none of its contents can be used: {why}");
        assert_eq!(read(entry), format!("2: Failed to read resource: {expected}"));
    }
}

/// The results of one call that the server answers with `lines`; `ID` stands for the id of its request.
fn answered(call: ClientCall, lines: &[&str]) -> Vec<String> {
    let mut world = World::open(Revision::V2025_11_25);
    world.read(1, "n://x");
    world.logged();
    world.is_deaf = true;
    world.act(|machine, now, out| machine.call(2, call, CallOptions::default(), now, out));
    let id = world.sent.last().unwrap().id.unwrap().to_string();
    for line in lines {
        let line = line.replace("ID", &id);
        world.act(|machine, now, out| machine.received(line.as_bytes(), now, out));
    }
    world.now = Now { tick: world.now.tick + 60_000, unix: 0 };
    world.act(super::Machine::tick);
    world.logged()
}

fn read() -> ClientCall {
    ClientCall::Read { uri: "n://x".into() }
}

// R-001, R-002, R-005: an answer that breaks a rule and is clear all the same is the answer.
#[test]
fn clear_answers_are_used() {
    let result = r#""result":{"contents":[{"uri":"n://x","text":"here"}]}"#;
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":ID,{result},"error":null}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"ID",{result}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":ID.0,{result}}}"#),
        format!(r#"{{"id":ID,{result}}}"#),
        format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":ID,{result}}}"),
        format!(r#"{{"jsonrpc":"2.0","id":ID,{result},"x":[NaN,-Infinity]}}"#),
    ] {
        assert_eq!(answered(read(), &[&line]).last().unwrap(), "2: here", "{line}");
    }
    let lines = [
        "{",
        r#"  "jsonrpc": "2.0","#,
        r#"  "id": ID,"#,
        "  \"result\": {",
        r#"    "contents": ["#,
        "      {",
    ];
    let rest = [r#"        "uri": "n://x","#, r#"        "text": "here""#, "      }", "    ]", "  }", "}"];
    assert_eq!(answered(read(), &[&lines[..], &rest].concat()).last().unwrap(), "2: here");
    // Lines of another program do not spoil a message after them, nor a whole message between them.
    let whole = format!(r#"{{"jsonrpc":"2.0","id":ID,{result}}}"#);
    assert_eq!(answered(read(), &["{", "  starting", &whole, "}"])[2..3], ["2: here"]);
}

/// A time-out names what came in the place of the answer.
#[test]
fn a_timeout_says_what_came_instead() {
    for (line, what) in [
        ("Content-Length: 90", "a message that is not JSON-RPC: Content-Length: 90"),
        (
            r#"{"jsonrpc":"2.0","id":[],"result":{}}"#,
            r#"a message that is not JSON-RPC: {"jsonrpc":"2.0","id":[],"result":{}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad\u001b"}}"#,
            r#"a response that matches no request: {"code":-32600,"message":"bad\u001b"}"#,
        ),
    ] {
        let expected =
            format!("2: Failed to read resource: no answer within 30000 ms; but the server sent {what}");
        assert_eq!(*answered(read(), &[line]).last().unwrap(), expected);
    }
    let plain = "2: Failed to read resource: no answer within 30000 ms";
    assert_eq!(answered(read(), &[]), [plain]);
    // A late answer to an earlier request is no clue.
    assert_eq!(answered(read(), &[r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]).last().unwrap(), plain);
}

// R-012: a server that does not know a method has none of what it is for.
#[test]
fn unknown_methods_mean_that_there_is_nothing() {
    let line = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}"#;
    let complete = ClientCall::Complete {
        template: "n://{id}".into(),
        variable: "id".into(),
        value: String::new(),
        context: Vec::new(),
    };
    for (call, expected) in [
        (ClientCall::List { cursor: None }, "2: 0 items, 0 odd, None"),
        (ClientCall::ListTemplates { cursor: None }, "2: 0 items, 0 odd, None"),
        (read(), "2: Failed to read resource: the server has no method \"resources/read\""),
        (complete, "2: Failed to read resource: the server has no completions"),
        (
            ClientCall::Custom { method: "a/b".into(), params: "{}".into() },
            "2: Failed to read resource: Method not found (-32601)",
        ),
    ] {
        assert_eq!(answered(call, &[line]), [expected]);
    }
}

// R-216: a result without a type counts as complete; an unknown type is an error.
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

// R-217, S-14: the "not found" errors of other libraries' servers are recognized.
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
