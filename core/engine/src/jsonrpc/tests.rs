//! Decoding: a table of messages, and `serde_json` as the oracle for everything else.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;

/// A short name for the result of decoding.
fn shown(decoded: &Decoded<'_>) -> String {
    let malformed = |malformed: &Malformed<'_>| match malformed {
        Malformed::Parse => "parse".to_owned(),
        Malformed::Invalid { id: Some(id) } => format!("invalid {}", id.raw()),
        Malformed::Invalid { id: None } => "invalid".to_owned(),
        Malformed::Unanswerable => "unanswerable".to_owned(),
    };
    let params = |params: &RawParams<'_>| match params {
        RawParams::Absent => String::new(),
        RawParams::Object { members, meta: None, .. } => format!(" {}", members.len()),
        RawParams::Object { members, meta: Some(meta), .. } => format!(" {}/{}", members.len(), meta.len()),
        RawParams::Other(json) => format!(" {:?}", json.kind()),
    };
    let message = |message: &Message<'_>| match message {
        Message::Request { id, method, params: p } => format!("request {} {method}{}", id.raw(), params(p)),
        Message::Notification { method, params: p } => format!("notification {method}{}", params(p)),
        Message::Response { id, result } => {
            let (Ok(json) | Err(json)) = result;
            let kind = if result.is_ok() { "result" } else { "error" };
            format!("{kind} {} {}", id.map_or("-", Id::raw), json.raw())
        }
    };
    match decoded {
        Decoded::Message(one) => message(one),
        Decoded::Malformed(one) => malformed(one),
        Decoded::Batch(list) => {
            let one = |one: &Result<_, _>| one.as_ref().map_or_else(malformed, message);
            format!("[{}]", list.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, want) in cases {
        assert_eq!(shown(&decode(text.as_bytes(), &DecodeLimits::default())), *want, "{text}");
    }
}

#[test]
fn messages_are_classified_by_their_members() {
    check(&[
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
        (r#" { "method" : "ping" , "id" : "1" , "jsonrpc" : "2.0" } "#, r#"request "1" ping"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a\u0062","params":{}}"#, "request 1 ab 0"),
        (
            r#"{"json\u0072pc":"2.0","\u0069d":1,"m\u0065thod":"m","p\u0061rams":{"_m\u0065ta":{"a":1}}}"#,
            "request 1 m 1/1",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":[]}}"#, r#"result 1 {"a":[]}"#),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, r#"error 1 {"code":1}"#),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "error - {}"),
        (r#"{"jsonrpc":"2.0","error":{}}"#, "error - {}"),
        (r#"{"jsonrpc":"2.0","id":[],"result":null}"#, "result - null"),
        // R-020: undefined members.
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","x":{"_meta":{}},"y":1,"y":2}"#, "request 1 m"),
    ]);
}

// R-002, R-003
#[test]
fn ids_are_strings_or_integers_and_come_back_as_written() {
    for id in [
        r#""1""#,
        r#""""#,
        r#""\u0061""#,
        "1",
        "0",
        "-1",
        "9007199254740993",
        "123456789012345678901234567890",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        check(&[(&text, &format!("request {id} m"))]);
    }
    for id in ["null", "1.5", "1.0", "1e3", "true", "[]", "{}"] {
        check(&[(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), "invalid")]);
    }
}

// R-008, R-009
#[test]
fn a_method_without_an_id_is_a_notification_whatever_its_params() {
    check(&[
        (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification m"),
        (r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#, "notification m Array"),
        (r#"{"jsonrpc":"2.0","method":"m","params":{"a":1,"a":2}}"#, "unanswerable"),
        (r#"{"jsonrpc":"2.0","method":"m","method":"n"}"#, "unanswerable"),
    ]);
}

// R-009, R-020
#[test]
fn params_that_are_not_an_object_are_kept_apart() {
    check(&[
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"_meta":{"b":{},"c":2}}}"#,
            "request 1 m 2/2",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":7}}"#, "request 1 m 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, "request 1 m Array"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#, "request 1 m String"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, "request 1 m Null"),
    ]);
}

// R-010
#[test]
fn what_is_not_json_has_no_id() {
    check(&[
        ("", "parse"),
        ("{bad", "parse"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}}"#, "parse"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m",}"#, "parse"),
        (r#"{"jsonrpc":"2.0","id":01,"method":"m"}"#, "parse"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}"#, "parse"),
    ]);
    let not_utf8 = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
    assert_eq!(shown(&decode(not_utf8, &DecodeLimits::default())), "parse");
}

// R-011, R-001
#[test]
fn what_is_not_a_message_keeps_a_readable_id() {
    check(&[
        ("{}", "invalid"),
        ("7", "invalid"),
        ("\"x\"", "invalid"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "invalid 1"),
        (r#"{"id":"a","method":"m"}"#, r#"invalid "a""#),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "invalid 1"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "invalid 1"),
        (r#"{"jsonrpc":"1.0","method":"m"}"#, "invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","method":null}"#, "invalid"),
        // An error with the id of a response could be taken for the answer to one of the peer's own requests.
        (r#"{"id":1,"result":{}}"#, "invalid"),
    ]);
}

// R-005, R-019
#[test]
fn a_response_that_breaks_a_rule_is_not_answered() {
    check(&[(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "unanswerable")]);
    check(&[(r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#, "unanswerable")]);
}

#[test]
fn members_that_come_twice_are_refused() {
    check(&[
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"uri":"a","uri":"b"}}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"uri":"a","\u0075ri":"b"}}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"v":1,"v":1}}}"#, "invalid 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":{"a":1,"a":2},"y":"a"}}"#, "request 1 m 2"),
    ]);
    let many = |last: &str| {
        let names: Vec<_> =
            (0..100).map(|i| format!(r#""n{i}":{i}"#)).chain([format!(r#""{last}":0"#)]).collect();
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{}}}}}"#, names.join(","))
    };
    check(&[
        (&many("n100"), "request 1 m 101"),
        (&many("n99"), "invalid 1"),
        (&many("\\u006e7"), "invalid 1"),
    ]);
}

// R-015, R-016, R-018
#[test]
fn an_array_is_a_batch() {
    check(&[
        ("[]", "[]"),
        ("[1,{}]", "[invalid, invalid]"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#,
            "[request 1 a, notification b]",
        ),
        (r#"[[{"jsonrpc":"2.0","id":1,"method":"a"}]]"#, "[invalid]"),
        ("[1,]", "parse"),
    ]);
    let limits = DecodeLimits { nesting: 0, batch: 2, ..DecodeLimits::default() };
    assert_eq!(shown(&decode(b"[1,1]", &limits)), "[invalid, invalid]");
    assert_eq!(shown(&decode(b"[1,1,1,1]", &limits)), "invalid");
    // The nesting of one message does not count for the next.
    let text =
        br#"[{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":{}}},{"jsonrpc":"2.0","id":2,"method":"a"}]"#;
    assert_eq!(shown(&decode(text, &limits)), "[invalid 1, request 2 a]");
}

#[test]
fn nesting_is_bounded_and_the_id_still_known() {
    let deep = |levels: usize, tail: &str| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"x":{value}}}{tail}}}"#)
    };
    let deep_meta = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":1,"_meta":{{"y":{value}}}}}}}"#)
    };
    check(&[
        (&deep(128, r#","id":1"#), "request 1 m 1"),
        (&deep(129, r#","id":1"#), "invalid 1"),
        (&deep(129, ""), "unanswerable"),
        (&deep(200_000, r#","id":1"#), "invalid 1"),
        (&deep(200_000, r#","id":1,"#), "parse"),
        (&"[".repeat(200_000), "parse"),
        (&deep_meta(128), "request 1 m 2/1"),
        (&deep_meta(129), "invalid 1"),
    ]);
    // The containers beyond one word of bits are tracked too: each must be closed by its own kind of bracket.
    for levels in [31, 32, 33, 64, 65, 100] {
        let open = r#"[{"a":"#.repeat(levels);
        for (close, valid) in [("}]", true), ("]}", false), ("}", false), ("}}", false)] {
            let text = format!("{open}1{}{close}", "}]".repeat(levels - 1));
            assert_eq!(Json::parse(text.as_bytes(), 1000).is_some(), valid, "{levels} {close}");
        }
    }
}

#[test]
fn nested_objects_answer_with_the_last_of_equal_names() {
    let json = Json::parse(br#" {"a":1,"b":[true, {"c":null}],"\u0061":2,"\ud800":3} "#, 3).unwrap();
    let members = json.object().unwrap();
    assert_eq!(members.get("a").and_then(Json::as_u64), Some(2));
    assert_eq!((members.len(), members.iter().count()), (4, 3));
    let elements: Vec<_> = members.get("b").and_then(Json::array).unwrap().map(Json::raw).collect();
    assert_eq!(elements, ["true", r#"{"c":null}"#]);
    assert!(Json::parse(br#"{"a":[{"b":[]}]}"#, 3).is_none());
}

#[test]
fn numbers_keep_to_their_type() {
    let json = |text: &'static str| Json::parse(text.as_bytes(), 1).unwrap();
    assert_eq!((json("5").as_u64(), json("-5").as_u64(), json("5.0").as_u64()), (Some(5), None, None));
    assert_eq!((json("-5").as_i64(), json("1e2").as_i64(), json("\"5\"").as_i64()), (Some(-5), None, None));
    assert_eq!(
        (json("1e2").as_f64(), json("1e999").as_f64(), json("true").as_f64()),
        (Some(100.0), None, None)
    );
    assert_eq!(json("18446744073709551616").as_u64(), None);
}

/// Params without a message, for an engine inside another server.
#[test]
fn params_can_be_read_alone() {
    let params =
        |text: &'static str| Json::parse(text.as_bytes(), 9).and_then(|json| RawParams::from_json(json, 2));
    let object = params(r#"{"uri":"a://b","_meta":{"progressToken":5}}"#).unwrap();
    assert_eq!(object.get("uri").and_then(Json::as_str).as_deref(), Some("a://b"));
    assert_eq!(object.meta("progressToken").and_then(Json::as_u64), Some(5));
    assert!(matches!(params("[]"), Some(RawParams::Other(_))));
    assert!(params(r#"{"uri":"a","uri":"b"}"#).is_none());
    assert!(params(r#"{"a":1,"b":2,"c":3}"#).is_none());
    assert!(params(r#"{"_meta":{"a":1,"b":2,"c":3}}"#).is_none());
}

/// Rebuilds a value through the functions of [`Json`].
fn rebuilt(json: Json<'_>) -> Value {
    match json.kind() {
        JsonKind::Null => Value::Null,
        JsonKind::Bool => json.as_bool().unwrap().into(),
        JsonKind::Number => {
            let integer = json.as_u64().map(Value::from).or_else(|| json.as_i64().map(Value::from));
            integer.unwrap_or_else(|| json.as_f64().unwrap().into())
        }
        JsonKind::String => json.as_str().unwrap().into(),
        JsonKind::Array => json.array().unwrap().map(rebuilt).collect(),
        JsonKind::Object => {
            let members = json.object().unwrap();
            Value::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.into_owned(), rebuilt(value)))
                    .collect::<Map<_, _>>(),
            )
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text = || "[a-c\"\\\\/\u{0}-\u{1f}é資😀]{0,20}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text(), inner, 0..9)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

/// Whether `serde_json` accepts `bytes` as JSON without decoding its strings.
fn is_json(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes);
    text.is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

proptest! {
    #[test]
    fn values_read_as_serde_json_reads_them(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let json = Json::parse(text.as_bytes(), 64);
        prop_assert_eq!(json.map(rebuilt), Some(value), "{}", text);
    }

    /// One byte of valid JSON is changed, dropped or doubled.
    #[test]
    fn accepts_what_serde_json_accepts(value in value(), at in any::<prop::sample::Index>(), with in "[\\x00-\\x7f]", how in 0..3) {
        let mut bytes = serde_json::to_vec(&value).unwrap();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = with.as_bytes()[0],
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, bytes[at]),
        }
        prop_assert_eq!(Json::parse(&bytes, 64).is_some(), is_json(&bytes), "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn accepts_the_tokens_that_serde_json_accepts(tokens in proptest::collection::vec(prop::sample::select(TOKENS), 0..9)) {
        let text = tokens.concat();
        prop_assert_eq!(Json::parse(text.as_bytes(), 64).is_some(), is_json(text.as_bytes()), "{:?}", text);
        for around in [format!("[{text}]"), format!("{{\"a\":{text}}}")] {
            prop_assert_eq!(Json::parse(around.as_bytes(), 64).is_some(), is_json(around.as_bytes()), "{:?}", around);
        }
    }
}

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "[",
    "]",
    "{}",
    "[]",
    ",",
    ",",
    ":",
    ":",
    " ",
    "\t\r\n",
    "\u{b}",
    "\u{feff}",
    "\"a\"",
    "\"a\":",
    "\"\"",
    "\"",
    "\\",
    "\"\\u00e9\"",
    "\"\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\"\\uD8x0\"",
    "\"\\x\"",
    "\"\\/\"",
    "\"\u{7f}é\"",
    "\"\n\"",
    "0",
    "-0",
    "-",
    "+1",
    "01",
    "1",
    "1.",
    ".5",
    "1.5",
    "1e5",
    "1E+5",
    "1e-",
    "1e999",
    "true",
    "false",
    "null",
    "nul",
    "True",
    "NaN",
    "'a'",
    "//",
];
