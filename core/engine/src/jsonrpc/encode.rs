//! Writes messages into the caller's buffer: the envelope of a result, an error or a notification, and objects member
//! by member. Keeps no state. Only [`end`] writes a line break.

use crate::{base64, json_text};

use super::id::Id;
use super::json::Json;

/// The form of the JSON around a result or an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Envelope {
    /// A whole JSON-RPC message.
    #[default]
    JsonRpc,
    /// Only the value of `result` or of `error`: another server writes the message around it.
    Bare,
}

/// The id of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorId<'a> {
    /// The id of the request.
    Of(Id<'a>),
    /// `"id":null`: the id could not be read, and the revision requires the member.
    Null,
    /// No member: the id could not be read.
    Absent,
}

/// An error response without its `data`.
#[derive(Clone, Copy, Debug)]
pub struct ErrorHead<'a> {
    /// The request's id.
    pub id: ErrorId<'a>,
    /// The error code, from the table in `version`.
    pub code: i32,
    /// One short sentence.
    pub message: &'a str,
}

impl Envelope {
    /// Appends a result whose members `body` writes.
    pub fn result(self, out: &mut Vec<u8>, id: Id<'_>, body: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.open_result(out, id);
        object(out, body);
        self.close_result(out);
    }

    /// Appends the text before the result object; call [`Envelope::close_result`] after it.
    fn open_result(self, out: &mut Vec<u8>, id: Id<'_>) {
        if self == Self::JsonRpc {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id.raw().as_bytes());
            out.extend_from_slice(br#","result":"#);
        }
    }

    /// Appends the text after the result object.
    fn close_result(self, out: &mut Vec<u8>) {
        if self == Self::JsonRpc {
            out.push(b'}');
        }
    }

    /// Appends an error; `data` is omitted if the closure writes no member.
    pub fn error(self, out: &mut Vec<u8>, head: &ErrorHead<'_>, data: impl FnOnce(&mut ObjectWriter<'_>)) {
        if self == Self::JsonRpc {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
            match head.id {
                ErrorId::Of(id) => {
                    out.extend_from_slice(br#""id":"#);
                    out.extend_from_slice(id.raw().as_bytes());
                    out.push(b',');
                }
                ErrorId::Null => out.extend_from_slice(br#""id":null,"#),
                ErrorId::Absent => {}
            }
            out.extend_from_slice(br#""error":"#);
        }
        object(out, |error| {
            error.i64("code", head.code.into());
            error.str("message", head.message);
            error.object_unless_empty("data", data);
        });
        self.close_result(out);
    }
}

impl Envelope {
    /// Appends a notification, always in a JSON-RPC envelope; `params` is omitted if the closure writes no member.
    pub fn notification(out: &mut Vec<u8>, method: &str, params: impl FnOnce(&mut ObjectWriter<'_>)) {
        object(out, |message| {
            message.str("jsonrpc", "2.0");
            message.str("method", method);
            message.object_unless_empty("params", params);
        });
    }

    /// Appends a request of the server (legacy `ping`, elicitation).
    pub fn request(out: &mut Vec<u8>, id: Id<'_>, method: &str, params: impl FnOnce(&mut ObjectWriter<'_>)) {
        object(out, |message| {
            message.str("jsonrpc", "2.0");
            message.raw("id", Json::from(id));
            message.str("method", method);
            message.object_unless_empty("params", params);
        });
    }
}

/// Ends a message with a line break, for line framing.
pub fn end(out: &mut Vec<u8>) {
    out.push(b'\n');
}

/// Appends an object whose members `body` writes.
pub fn object(out: &mut Vec<u8>, body: impl FnOnce(&mut ObjectWriter<'_>)) {
    out.push(b'{');
    body(&mut ObjectWriter { out, is_empty: true });
    out.push(b'}');
}

/// Appends an array whose elements `body` writes.
pub fn array(out: &mut Vec<u8>, body: impl FnOnce(&mut ArrayWriter<'_>)) {
    out.push(b'[');
    body(&mut ArrayWriter { out, is_empty: true });
    out.push(b']');
}

/// Writes the members of one JSON object directly into a buffer. Write each name only once.
///
/// A `'static` name is a constant of the protocol and is written without escaping; for all other names use
/// [`ObjectWriter::named`].
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl ObjectWriter<'_> {
    /// A string member.
    #[inline]
    pub fn str(&mut self, name: &'static str, value: &str) {
        json_text::escape_into(value, self.value(name));
    }

    /// A string member that holds `value` in base64.
    pub fn base64(&mut self, name: &'static str, value: &[u8]) {
        let out = self.value(name);
        out.push(b'"');
        base64::encode_into(value, out);
        out.push(b'"');
    }

    /// A member with a JSON value. Line breaks between its tokens become spaces.
    #[inline]
    pub fn raw(&mut self, name: &'static str, value: Json<'_>) {
        put_json(self.value(name), value);
    }

    /// An integer member.
    #[inline]
    pub fn u64(&mut self, name: &'static str, value: u64) {
        put_integer(self.value(name), value);
    }

    /// An integer member.
    #[inline]
    pub fn i64(&mut self, name: &'static str, value: i64) {
        put_integer(self.value(name), value);
    }

    /// A number member; `null` for values that JSON cannot express (infinity, NaN).
    pub fn f64(&mut self, name: &'static str, value: f64) {
        put_f64(self.value(name), value);
    }

    /// A `true` or `false` member.
    #[inline]
    pub fn bool(&mut self, name: &'static str, value: bool) {
        self.value(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// An object member whose members `body` writes.
    #[inline]
    pub fn object(&mut self, name: &'static str, body: impl FnOnce(&mut ObjectWriter<'_>)) {
        object(self.value(name), body);
    }

    /// Like [`ObjectWriter::object`], but omitted if `body` writes no member.
    pub fn object_unless_empty(&mut self, name: &'static str, body: impl FnOnce(&mut ObjectWriter<'_>)) {
        let before = self.out.len();
        let was_empty = self.is_empty;
        let out = self.value(name);
        out.push(b'{');
        let mut inner = ObjectWriter { out, is_empty: true };
        body(&mut inner);
        if inner.is_empty {
            self.out.truncate(before);
            self.is_empty = was_empty;
        } else {
            self.out.push(b'}');
        }
    }

    /// An array member whose elements `body` writes.
    #[inline]
    pub fn array(&mut self, name: &'static str, body: impl FnOnce(&mut ArrayWriter<'_>)) {
        array(self.value(name), body);
    }

    /// Begins a member: the caller appends exactly one JSON value, without a line break, to the returned buffer.
    #[inline]
    pub fn value(&mut self, name: &'static str) -> &mut Vec<u8> {
        debug_assert!(json_text::is_plain(name), "{name:?} needs escapes");
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Begins a member whose name may need escapes; otherwise like [`ObjectWriter::value`].
    pub fn named(&mut self, name: &str) -> &mut Vec<u8> {
        self.comma();
        json_text::escape_into(name, self.out);
        self.out.push(b':');
        self.out
    }

    /// Inserts encoded members, such as `"a":1,"b":2`, without braces. Does nothing if `encoded` is empty.
    pub fn members(&mut self, encoded: &[u8]) {
        if !encoded.is_empty() {
            self.comma();
            self.out.extend_from_slice(encoded);
        }
    }

    #[inline]
    fn comma(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
    }
}

/// Writes the elements of one JSON array straight into a buffer.
#[derive(Debug)]
pub struct ArrayWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl ArrayWriter<'_> {
    /// A string element.
    pub fn str(&mut self, value: &str) {
        json_text::escape_into(value, self.value());
    }

    /// An element with a JSON value. Line breaks between its tokens become spaces.
    pub fn raw(&mut self, value: Json<'_>) {
        put_json(self.value(), value);
    }

    /// An object element whose members `body` writes.
    pub fn object(&mut self, body: impl FnOnce(&mut ObjectWriter<'_>)) {
        object(self.value(), body);
    }

    /// Begins an element: the caller appends exactly one JSON value, without a line break, to the returned buffer.
    pub fn value(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out
    }
}

fn put_json(out: &mut Vec<u8>, json: Json<'_>) {
    let start = out.len();
    out.extend_from_slice(json.raw().as_bytes());
    // Line breaks inside strings are escaped, so these are between tokens.
    for byte in out.get_mut(start..).unwrap_or_default() {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn put_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn put_f64(out: &mut Vec<u8>, value: f64) {
    use std::io::Write as _;
    // Up to here every integer is exact, and is written without a fraction for parsers that expect an integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        out.extend_from_slice(b"null");
    } else if value.fract() == 0.0 && value.abs() < EXACT {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{value}");
    } else {
        // The shortest form, with an exponent if that is shorter. Writing to a Vec cannot fail.
        let _ = serde_json::to_writer(out, &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn id(raw: &'static str) -> Id<'static> {
        Json::parse(raw.as_bytes(), 1).and_then(Id::from_json).unwrap()
    }

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    // R-003, R-005, R-006
    #[test]
    fn a_result_stands_in_its_envelope_or_alone() {
        let ttl = |o: &mut ObjectWriter<'_>| o.u64("ttlMs", 0);
        let whole = text(|out| Envelope::JsonRpc.result(out, id("9007199254740993"), ttl));
        assert_eq!(whole, r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{"ttlMs":0}}"#);
        assert_eq!(text(|out| Envelope::Bare.result(out, id("1"), ttl)), r#"{"ttlMs":0}"#);
        let empty = text(|out| Envelope::JsonRpc.result(out, id(r#""007""#), |_| {}));
        assert_eq!(empty, r#"{"jsonrpc":"2.0","id":"007","result":{}}"#);
    }

    // R-007, R-010
    #[test]
    fn an_error_has_the_id_it_is_given() {
        let error = |envelope: Envelope, id, data: Option<&str>| {
            let head = ErrorHead { id, code: -32602, message: "no \"uri\"" };
            text(|out| envelope.error(out, &head, |o| data.into_iter().for_each(|uri| o.str("uri", uri))))
        };
        let body = r#"{"code":-32602,"message":"no \"uri\""}"#;
        let cases =
            [(ErrorId::Of(id("1")), r#""id":1,"#), (ErrorId::Null, r#""id":null,"#), (ErrorId::Absent, "")];
        for (id, written) in cases {
            assert_eq!(
                error(Envelope::JsonRpc, id, None),
                format!(r#"{{"jsonrpc":"2.0",{written}"error":{body}}}"#)
            );
        }
        let bare = r#"{"code":-32602,"message":"no \"uri\"","data":{"uri":"a"}}"#;
        assert_eq!(error(Envelope::Bare, ErrorId::Null, Some("a")), bare);
    }

    // R-008: a notification has no id.
    #[test]
    fn notifications_and_requests() {
        let bare = text(|out| Envelope::notification(out, "notifications/x", |_| {}));
        assert_eq!(bare, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        let full = text(|out| Envelope::notification(out, "notifications/x", |p| p.str("uri", "a")));
        assert_eq!(full, r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"uri":"a"}}"#);
        let ping = text(|out| Envelope::request(out, id("7"), "ping", |_| {}));
        assert_eq!(ping, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    }

    // R-064, R-145: every kind of member, and no line break whatever the values hold.
    #[test]
    fn an_object_of_every_kind_reads_back() {
        let raw = Json::parse(b"{\r\n \"k\": [1,\n2]}", 9).unwrap();
        let written = text(|out| {
            object(out, |o| {
                o.named("s\n\"").extend_from_slice(b"0");
                o.str("t", "a\nb\u{2028}");
                o.base64("blob", b"hello");
                o.raw("raw", raw);
                o.u64("u", u64::MAX);
                o.i64("i", i64::MIN);
                o.bool("b", true);
                o.object_unless_empty("absent", |_| {});
                o.members(b"");
                o.members(br#""m":1,"n":2"#);
                o.object("o", |o| o.object_unless_empty("p", |p| p.bool("q", false)));
                o.array("a", |a| {
                    a.str("x");
                    a.raw(Json::NULL);
                    a.object(|o| o.u64("y", 1));
                    a.value().extend_from_slice(b"[]");
                });
            });
            end(out);
        });
        let (line, end) = written.split_at(written.len() - 1);
        assert!(!line.contains(['\n', '\r']) && end == "\n", "{written}");
        let want = json!({
            "s\n\"": 0, "t": "a\nb\u{2028}", "blob": "aGVsbG8=", "raw": {"k": [1, 2]}, "u": u64::MAX, "i": i64::MIN, "b": true,
            "m": 1, "n": 2, "o": {"p": {"q": false}}, "a": ["x", null, {"y": 1}, []],
        });
        assert_eq!(serde_json::from_str::<Value>(line).unwrap(), want);
    }

    #[test]
    fn numbers_are_written_short_and_always_valid() {
        let number = |value: f64| text(|out| object(out, |o| o.f64("n", value)));
        for (value, want) in [
            (0.8, "0.8"),
            (1.0, "1"),
            (-0.0, "-0"),
            (1e300, "1e300"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(number(value).replace("e+", "e"), format!(r#"{{"n":{want}}}"#));
        }
    }
}
