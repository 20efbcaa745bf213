//! Decodes messages in one pass that validates the whole JSON grammar and borrows from the input.
//!
//! Input that is not JSON in UTF-8 has no trustworthy id: [`Malformed::Parse`]. Other input is classified by its
//! members: `method` makes a request or, without `id`, a notification; `result` or `error` without `method` makes a
//! response. Members that JSON-RPC defines, and members of `params` or `params._meta`, must not occur twice: two
//! parsers could see two different requests.

use std::borrow::Cow;

use super::id::Id;
use super::json::Json;
use super::members::JsonMembers;
use super::scan::{JsonSpan, MemberName, Scan, Scanner};

/// The limits of [`decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum nesting of objects and arrays within one member of `params` or of `params._meta`; the containers around
    /// the member do not count. Default 128.
    pub nesting: usize,
    /// Maximum number of messages in one batch. Default 1,024.
    pub batch: usize,
    /// Maximum number of members of a message, of its `params`, and of `params._meta`. Default 1,024.
    pub members: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { nesting: 128, batch: 1024, members: 1024 }
    }
}

impl DecodeLimits {
    /// The maximum nesting of a whole message, which contains `params`, which contains the member.
    fn deepest(&self) -> usize {
        self.nesting.saturating_add(2)
    }
}

/// The content of one line or body.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the hot one: a box would cost an allocation per message"
)]
pub enum Decoded<'m> {
    /// One message.
    Message(Message<'m>),
    /// Anything else, or a message that breaks a rule.
    Malformed(Malformed<'m>),
    /// A JSON array, possibly empty. The caller decides whether arrays are allowed.
    Batch(Vec<Result<Message<'m>, Malformed<'m>>>),
}

/// A JSON-RPC message.
#[derive(Clone, Debug)]
pub enum Message<'m> {
    /// Has `method` and `id`.
    Request {
        /// The id that the answer must repeat.
        id: Id<'m>,
        /// The decoded method name.
        method: Cow<'m, str>,
        /// Its params.
        params: RawParams<'m>,
    },
    /// Has `method` and no `id`: never answered.
    Notification {
        /// The decoded method name.
        method: Cow<'m, str>,
        /// Its params.
        params: RawParams<'m>,
    },
    /// Has no `method`, but `result` or `error`.
    Response {
        /// `None` if it is missing, null, or of a type that no request id can have.
        id: Option<Id<'m>>,
        /// The member `result` or the member `error`, of any type.
        result: Result<Json<'m>, Json<'m>>,
    },
}

/// The member `params` of a request or notification.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the hot one: a box would cost an allocation per message"
)]
pub enum RawParams<'m> {
    /// There is none.
    Absent,
    /// An object, as MCP requires.
    Object {
        /// Its members, `_meta` among them.
        members: JsonMembers<'m>,
        /// The members of `_meta` if that is an object. A `_meta` of another type is only found in `members`.
        meta: Option<JsonMembers<'m>>,
        /// The object as it was written.
        raw: Json<'m>,
    },
    /// Anything else, including `null`: possibly valid JSON-RPC, but not valid MCP: -32602.
    Other(Json<'m>),
}

/// The reason for which input is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed<'m> {
    /// Not JSON in UTF-8: -32700 without an id.
    Parse,
    /// JSON, but not a message, or one that breaks a rule of [`decode`]: -32600.
    Invalid {
        /// The id to repeat. `None` if none could be read, and always for a response.
        id: Option<Id<'m>>,
    },
    /// A notification or a response that breaks a rule of [`decode`]: it is not answered.
    Unanswerable,
}

impl<'m> RawParams<'m> {
    /// The member `name`; `None` if absent or if params are not an object.
    pub fn get(&self, name: &str) -> Option<Json<'m>> {
        match self {
            Self::Object { members, .. } => members.get(name),
            Self::Absent | Self::Other(_) => None,
        }
    }

    /// The members of `_meta`, if that is an object.
    pub fn meta_members(&self) -> Option<&JsonMembers<'m>> {
        match self {
            Self::Object { meta, .. } => meta.as_ref(),
            Self::Absent | Self::Other(_) => None,
        }
    }

    /// The member `name` of `_meta`; `None` if absent or if `_meta` is not an object.
    pub fn meta(&self, name: &str) -> Option<Json<'m>> {
        self.meta_members()?.get(name)
    }

    /// Parses params without a message around them. `None` if an object or its `_meta` repeats a name or has more than
    /// `most_members` members.
    pub fn from_json(json: Json<'m>, most_members: usize) -> Option<Self> {
        let mut root = MessageRoot::new(json.raw(), most_members);
        root.spans[RequestMember::Params as usize] = root.read_params(&mut Scanner::new(json.raw())?, 0).ok();
        (!root.broken).then(|| root.into_params())
    }
}

/// Decodes one line or body.
///
/// Accepts the same JSON as `serde_json`. Exceeding one of the `limits`, a repeated member, and input of 4 GiB or more
/// break a rule. Unpaired surrogate escapes are accepted in unused texts; [`Json::as_str`] refuses them, and so does
/// the method's name here.
pub fn decode<'m>(bytes: &'m [u8], limits: &DecodeLimits) -> Decoded<'m> {
    let Ok(text) = simdutf8::basic::from_utf8(bytes) else { return Decoded::Malformed(Malformed::Parse) };
    let Some(mut scanner) = Scanner::new(text) else {
        return Decoded::Malformed(Malformed::Invalid { id: None });
    };
    if scanner.peek() == Some(b'[') {
        let decoded = batch(&mut scanner, limits);
        return decoded.unwrap_or(Decoded::Malformed(Malformed::Parse));
    }
    let mut root = MessageRoot::new(text, limits.members);
    if root.read(&mut scanner, 1).is_err() || scanner.end().is_err() {
        return Decoded::Malformed(Malformed::Parse);
    }
    match root.into_message(scanner.deepest() > limits.deepest()) {
        Ok(message) => Decoded::Message(message),
        Err(malformed) => Decoded::Malformed(malformed),
    }
}

fn batch<'m>(scanner: &mut Scanner<'m>, limits: &DecodeLimits) -> Scan<Decoded<'m>> {
    let mut list = Vec::new();
    let mut more = scanner.open(b'[', b']', 1)?;
    while more {
        scanner.forget_depth();
        let mut root = MessageRoot::new(scanner.text(), limits.members);
        // The array around it does not count.
        root.read(scanner, 1)?;
        // One message above the limit is enough to refuse the batch; the rest is only validated.
        if list.len() <= limits.batch {
            list.push(root.into_message(scanner.deepest() > limits.deepest()));
        }
        more = scanner.more(b']')?;
    }
    scanner.end()?;
    if list.len() > limits.batch {
        return Ok(Decoded::Malformed(Malformed::Invalid { id: None }));
    }
    Ok(Decoded::Batch(list))
}

/// A member that JSON-RPC defines.
#[derive(Clone, Copy)]
enum RequestMember {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl RequestMember {
    #[inline(always)]
    fn from_name(name: MemberName, text: &str) -> Option<Self> {
        if name.escaped { Self::named(&name.decoded(text)?) } else { Self::named(name.span.bytes_of(text)) }
    }

    #[inline(always)]
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"jsonrpc" => Some(Self::Jsonrpc),
            b"id" => Some(Self::Id),
            b"method" => Some(Self::Method),
            b"params" => Some(Self::Params),
            b"result" => Some(Self::Result),
            b"error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// The members of a message that JSON-RPC defines. Built in place, because it is too large to be moved cheaply.
struct MessageRoot<'m> {
    text: &'m str,
    /// The position of the value of each [`RequestMember`].
    spans: [Option<JsonSpan>; 6],
    /// The members of `params` and of its `_meta`, if they are objects.
    members: Option<JsonMembers<'m>>,
    meta: Option<JsonMembers<'m>>,
    /// Maximum number of members of each object.
    max: usize,
    /// Whether a name is repeated, or there are too many members.
    broken: bool,
}

impl<'m> MessageRoot<'m> {
    #[inline(always)]
    fn new(text: &'m str, max: usize) -> Self {
        Self { text, spans: [None; 6], members: None, meta: None, max, broken: false }
    }

    /// Reads a message whose object is at nesting level `depth`; any other value is only validated.
    #[inline(always)]
    fn read(&mut self, scanner: &mut Scanner<'m>, depth: usize) -> Scan<()> {
        if scanner.peek() != Some(b'{') {
            return scanner.value(depth - 1).map(drop);
        }
        let mut left = self.max;
        let mut more = scanner.open(b'{', b'}', depth)?;
        while more {
            let name = scanner.name()?;
            // After too many members, the rest is only validated.
            let slot = if left > 0 { RequestMember::from_name(name, self.text) } else { None };
            self.broken |= left == 0;
            left = left.saturating_sub(1);
            let is_params = matches!(slot, Some(RequestMember::Params));
            let value = if is_params { self.read_params(scanner, depth)? } else { scanner.value(depth)? };
            if let Some(slot) = slot {
                self.broken |= self.spans[slot as usize].replace(value).is_some();
            }
            more = scanner.more(b'}')?;
        }
        Ok(())
    }

    /// Reads the value of `params`, at nesting level `depth`.
    #[inline(always)]
    fn read_params(&mut self, scanner: &mut Scanner<'m>, depth: usize) -> Scan<JsonSpan> {
        let start = scanner.mark();
        if scanner.peek() != Some(b'{') {
            return scanner.value(depth);
        }
        let members = self.members.insert(JsonMembers::new(self.text));
        let mut more = scanner.open(b'{', b'}', depth + 1)?;
        while more {
            let name = scanner.name()?;
            let is_meta = members.len() <= self.max && name.is(self.text, b"_meta");
            let value = if is_meta && scanner.peek() == Some(b'{') {
                let meta = self.meta.insert(JsonMembers::new(self.text));
                // Counted like `params`: a member may be nested equally deep in either.
                let value = meta.read(scanner, depth + 1, self.max)?;
                self.broken |= !meta.are_distinct(self.max);
                value
            } else {
                scanner.value(depth + 1)?
            };
            members.push(name, value, self.max);
            more = scanner.more(b'}')?;
        }
        self.broken |= !members.are_distinct(self.max);
        Ok(scanner.since(start))
    }

    #[inline(always)]
    fn into_message(self, too_deep: bool) -> Result<Message<'m>, Malformed<'m>> {
        let id = self.json(RequestMember::Id);
        let method = self.json(RequestMember::Method);
        let result = (self.json(RequestMember::Result), self.json(RequestMember::Error));
        let request_id = id.and_then(Id::from_json);
        let broken = self.broken || too_deep;
        let is_response = method.is_none() && result != (None, None);
        let invalid = Err(Malformed::Invalid { id: request_id.filter(|_| !is_response) });

        if self.json(RequestMember::Jsonrpc).is_none_or(|version| !version.is_str("2.0")) {
            return invalid;
        }
        if is_response {
            return match result {
                (Some(result), None) if !broken => {
                    Ok(Message::Response { id: request_id, result: Ok(result) })
                }
                (None, Some(error)) if !broken => {
                    Ok(Message::Response { id: request_id, result: Err(error) })
                }
                _ => Err(Malformed::Unanswerable),
            };
        }
        let Some(method) = method.and_then(Json::as_str) else { return invalid };
        match (id, request_id) {
            (None, _) if broken => Err(Malformed::Unanswerable),
            (None, _) => Ok(Message::Notification { method, params: self.into_params() }),
            (_, Some(id)) if !broken => Ok(Message::Request { id, method, params: self.into_params() }),
            _ => invalid,
        }
    }

    #[inline(always)]
    fn into_params(self) -> RawParams<'m> {
        match (self.json(RequestMember::Params), self.members) {
            (Some(raw), Some(members)) => RawParams::Object { members, meta: self.meta, raw },
            (Some(other), None) => RawParams::Other(other),
            (None, _) => RawParams::Absent,
        }
    }

    fn json(&self, slot: RequestMember) -> Option<Json<'m>> {
        self.spans[slot as usize].map(|span| Json::trusted(span.slice(self.text)))
    }
}
