//! What the head of a request decides (requirements §2, steps 1 to 5), in this order: bounds, `Host`, `Origin`, path,
//! verb, authorization, size, content type, `Accept`.
//!
//! Law: the first step that fails answers. The steps after the authorization are decided with the others, and told
//! only when the token was good.

use super::accept::{Accept, sends_json};
use super::auth::{Denied, Judged, RulesError, Verified, Words};
use super::cors;
use super::head::{Head, Response};
use super::rules::{Rules, Sse24, is_origin};
use super::tokens::{Digest, Tokens, digest};
use crate::connection::{Field, Mirror, Outcome, Refusal, Standing, Status};
use crate::limits::Limits;
use crate::now::Now;
use crate::principal::Principal;
use crate::version::{INVALID_REQUEST, Method, Revision};
use std::sync::Arc;

/// The rules of one endpoint, ready to be applied.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) rules: Rules,
    words: Option<Words>,
    pub(super) tokens: Tokens,
    sse24: Option<Sse24>,
    /// Whether there are legacy sessions.
    sessions: bool,
    max_body: usize,
    max_head: usize,
    max_headers: usize,
}

/// A request that may come in once it is known whose it is. Owned: it outlives the head.
#[derive(Debug)]
pub struct Admitted {
    gate: Arc<Gate>,
    token: Option<Token>,
    call: Call,
    /// What a later step has against it.
    refused: Option<Response>,
}

/// The token of a request.
#[derive(Debug)]
enum Token {
    /// The host must verify it.
    New(Bearer),
    /// It was verified for an earlier request.
    Known(Judged),
}

/// A token, and what it is kept by.
struct Bearer(String, Digest);

impl std::fmt::Debug for Bearer {
    /// A token is never shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bearer")
    }
}

/// A request whose head has passed every step: what remains is its body. Owned: it outlives the head.
#[derive(Debug)]
pub struct Identified {
    pub(super) principal: Arc<Principal>,
    pub(super) call: Call,
    max_body: usize,
}

/// What is needed of the head later on.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) accept: Accept,
    pub(super) session: Header,
    /// What names the stream of a message of 2024-11-05.
    pub(super) token: Option<String>,
    pub(super) last_event_id: Option<String>,
    /// The origin whose page may see the answer.
    pub(super) origin: Option<String>,
    version: Header,
    method: Header,
    name: Header,
}

/// What is asked of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Post,
    Get,
    Delete,
    /// `GET` of the stream of 2024-11-05.
    Connect,
    /// `POST` to a stream of 2024-11-05.
    Send,
    /// `GET` of what is counted.
    Metrics,
}

/// A [`Field`] that outlives its head.
#[derive(Clone, Debug)]
pub(super) enum Header {
    Absent,
    Once(Box<[u8]>),
    Repeated,
}

impl Gate {
    pub(super) fn new(rules: Rules, limits: &Limits, revisions: &[Revision]) -> Result<Self, RulesError> {
        let is_path = |path: &str| path.starts_with('/') && !path.contains(['?', '#', ' ', '\r', '\n']);
        let are_paths = {
            let older = rules.sse24.iter().flat_map(|paths| [&paths.events, &paths.messages]);
            let own = [&rules.path].into_iter().chain(&rules.health).chain(&rules.metrics);
            own.chain(older).all(|path| is_path(path))
        };
        if !are_paths {
            return Err(RulesError::new(
                "path",
                "a text that begins with a slash, without ?, # and white space",
            ));
        }
        if rules.metrics.as_ref().is_some_and(|own| *own == rules.path || rules.health.as_ref() == Some(own))
        {
            return Err(RulesError::new("metrics", "a path of its own"));
        }
        let legacy = revisions.iter().any(|revision| !revision.is_modern());
        Ok(Self {
            sse24: rules.sse24.clone().filter(|_| legacy),
            words: rules.auth.clone().map(Words::new).transpose()?,
            tokens: Tokens::new(limits),
            sessions: rules.sessions && legacy,
            max_body: limits.message,
            max_head: limits.head,
            max_headers: limits.headers,
            rules,
        })
    }

    pub(super) fn admit(self: &Arc<Self>, head: &Head<'_>, now: Now) -> Result<Admitted, Response> {
        self.check_bounds(head)?;
        let origin = self.check_origin(head)?;
        self.beyond_origin(head, origin.clone(), now)
            .map_err(|response| response.shared_with(origin.as_deref()))
    }

    fn beyond_origin(
        self: &Arc<Self>,
        head: &Head<'_>,
        origin: Option<String>,
        now: Now,
    ) -> Result<Admitted, Response> {
        let verb = match self.check_path(head)? {
            Some(verb) => verb,
            None => self.check_verb(head)?,
        };
        let token = self.words.as_ref().map(|words| words.token(head)).transpose()?;
        let token = token.map(|token| self.known(token, now));
        let accept = Accept::of(head);
        let refused = self.check_media(head, verb, accept).err();
        let last_event_id = text(head.field("last-event-id")).map(str::to_owned);
        let call = Call {
            verb,
            accept,
            session: head.field("mcp-session-id").into(),
            token: head.query("session_id").map(str::to_owned).filter(|_| verb == Verb::Send),
            last_event_id,
            origin,
            version: head.field("mcp-protocol-version").into(),
            method: head.field("mcp-method").into(),
            name: head.field("mcp-name").into(),
        };
        Ok(Admitted { gate: Arc::clone(self), token, call, refused })
    }

    fn known(&self, token: String, now: Now) -> Token {
        let digest = digest(&token);
        self.tokens.find(&digest, now.unix).map_or_else(|| Token::New(Bearer(token, digest)), Token::Known)
    }

    /// What [`Gate::check_path`] knows.
    pub(super) fn paths(&self) -> Vec<String> {
        let own = [Some(self.rules.path.clone()), self.rules.health.clone(), self.rules.metrics.clone()];
        let documents = self.words.as_ref().map(Words::paths).unwrap_or_default();
        let older = self.sse24.iter().flat_map(|paths| [paths.events.clone(), paths.messages.clone()]);
        own.into_iter().flatten().chain(documents).chain(older).collect()
    }

    fn check_bounds(&self, head: &Head<'_>) -> Result<(), Response> {
        let lines = head.headers.iter().map(|(name, value)| name.len() + value.len());
        let size = head.target.len() + lines.sum::<usize>();
        if head.headers.len() > self.max_headers || size > self.max_head {
            return Err(Response::error(431, INVALID_REQUEST, "Request header fields too large"));
        }
        Ok(())
    }

    /// Returns the origin, where its page may see the answer.
    fn check_origin(&self, head: &Head<'_>) -> Result<Option<String>, Response> {
        let refuse = |message| Err(Response::error(403, INVALID_REQUEST, message));
        let host = text(head.field("host")).unwrap_or_default();
        if !self.rules.hosts.accept(host) {
            return refuse("Host not allowed");
        }
        let field = head.field("origin");
        if field == Field::Absent {
            return Ok(None);
        }
        match text(field).filter(|origin| self.rules.origins.accept(origin)) {
            None => refuse("Origin not allowed"),
            Some(origin) => Ok((self.rules.cors && is_origin(origin)).then(|| origin.to_owned())),
        }
    }

    /// The verb of a path that has but one.
    fn check_path(&self, head: &Head<'_>) -> Result<Option<Verb>, Response> {
        let path = head.path();
        if let Some(sse24) = &self.sse24 {
            if path == sse24.events {
                return self.only(head, ("GET", Verb::Connect)).map(Some);
            }
            if path == sse24.messages {
                return self.only(head, ("POST", Verb::Send)).map(Some);
            }
        }
        if self.rules.metrics.as_deref().is_some_and(|own| own == path) {
            return self.only(head, ("GET", Verb::Metrics)).map(Some);
        }
        let document = || self.words.as_ref()?.document(path);
        let health = || self.rules.health.as_deref().is_some_and(|own| own == path);
        let found = if path == self.rules.path {
            None
        } else if let Some(document) = document() {
            Some(document)
        } else if health() {
            Some(Response::text(200, "ok\n"))
        } else {
            return Err(Response::empty(404));
        };
        if self.rules.cors && cors::is_preflight(head) {
            return Err(cors::preflight(if found.is_some() { "GET" } else { self.verbs() }));
        }
        match found {
            None => Ok(None),
            Some(found) if head.verb == "GET" => Err(found),
            Some(_) => Err(Response::empty(405).with("allow", "GET")),
        }
    }

    ///
    fn only(&self, head: &Head<'_>, (name, verb): (&'static str, Verb)) -> Result<Verb, Response> {
        if self.rules.cors && cors::is_preflight(head) {
            return Err(cors::preflight(name));
        }
        if head.verb == name { Ok(verb) } else { Err(Response::empty(405).with("allow", name)) }
    }

    ///
    fn check_verb(&self, head: &Head<'_>) -> Result<Verb, Response> {
        let revision = text(head.field("mcp-protocol-version")).and_then(Revision::parse);
        let names_modern = revision.is_some_and(Revision::is_modern);
        let sessions = self.sessions && !names_modern;
        match head.verb {
            "POST" => Ok(Verb::Post),
            "GET" if sessions => Ok(Verb::Get),
            "DELETE" if sessions => Ok(Verb::Delete),
            "GET" | "DELETE" => Err(Response::empty(405).with("allow", "POST")),
            _ => Err(Response::empty(405).with("allow", self.verbs())),
        }
    }

    fn verbs(&self) -> &'static str {
        if self.sessions { "POST, GET, DELETE" } else { "POST" }
    }

    /// DEC-05.
    fn check_media(&self, head: &Head<'_>, verb: Verb, accept: Accept) -> Result<(), Response> {
        let refuse = |status, message| Err(Response::error(status, INVALID_REQUEST, message));
        if matches!(verb, Verb::Post | Verb::Send) {
            if declared_length(head).is_some_and(|length| length > self.max_body as u64) {
                return Err(too_large());
            }
            if !sends_json(head) {
                return refuse(415, "Content-Type must be application/json");
            }
        }
        // What is refused here because of the header is refused in the body too: they must be equal.
        let listens = text(head.field("mcp-method")).and_then(Method::parse) == Some(Method::Listen);
        let enough = match verb {
            Verb::Post => accept.json && (accept.events || !listens),
            Verb::Get | Verb::Connect => accept.events,
            Verb::Delete | Verb::Send | Verb::Metrics => true,
        };
        if enough { Ok(()) } else { refuse(406, "Accept must allow application/json and text/event-stream") }
    }
}

impl Gate {
    /// The challenge that answers a message whose token lacks scopes (DEC-27).
    pub(super) fn challenge(&self, outcome: &Outcome<'_>) -> Option<String> {
        let is_scope = outcome.status == Status::Refused(Refusal::Scope);
        self.words.as_ref().filter(|_| is_scope).map(|words| words.lacking(&outcome.scopes))
    }
}

impl Admitted {
    /// The bearer token that the host must verify. `None` if none is asked for, or it was verified for an earlier request.
    pub fn token(&self) -> Option<&str> {
        match &self.token {
            Some(Token::New(Bearer(token, _))) => Some(token),
            Some(Token::Known(_)) | None => None,
        }
    }

    /// Goes on when it is known whose request it is: the token's, or [`Verified::anyone`]'s where [`Admitted::token`] is
    /// `None`.
    ///
    /// # Errors
    /// The response to send: 401 or 403 with its challenge, 503 if the token could not be verified,
    /// 413, 415 or 406.
    pub fn identify(self, who: Result<Verified, Denied>, now: Now) -> Result<Identified, Response> {
        let Self { gate, token, call, refused } = self;
        let checked = match (&gate.words, token) {
            (Some(words), Some(token)) => gate.judge(words, token, who, now),
            (Some(words), None) => Err(words.denied(Denied::Invalid)),
            (None, _) => who.map(|verified| verified.principal).map_err(|_| Response::empty(401)),
        };
        match (checked, refused) {
            (Ok(principal), None) => Ok(Identified { principal, call, max_body: gate.max_body }),
            (Err(response), _) | (Ok(_), Some(response)) => Err(response.shared_with(call.origin.as_deref())),
        }
    }
}

impl Gate {
    fn judge(
        &self,
        words: &Words,
        token: Token,
        who: Result<Verified, Denied>,
        now: Now,
    ) -> Result<Arc<Principal>, Response> {
        let Bearer(_, digest) = match token {
            Token::Known(judged) => return words.check(judged),
            Token::New(bearer) => bearer,
        };
        let verified = who.map_err(|why| words.denied(why))?;
        let (judged, expires) = words.judge(verified, now.unix)?;
        if let Some(expires) = expires {
            self.tokens.keep(digest, &judged, expires, now.unix);
        }
        words.check(judged)
    }
}

impl Identified {
    /// How many bytes of body the host reads: none for `GET` and `DELETE`. More than that is [`Identified::too_large`].
    pub fn body_limit(&self) -> usize {
        if matches!(self.call.verb, Verb::Post | Verb::Send) { self.max_body } else { 0 }
    }

    /// The response to a body that is longer than [`Identified::body_limit`] of a `POST` (413).
    pub fn too_large(&self) -> Response {
        too_large().shared_with(self.call.origin.as_deref())
    }

    /// Whose request it is.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }
}

impl Call {
    pub(super) fn mirror(&self, session: Standing) -> Mirror<'_> {
        Mirror {
            challenges: true,
            version: self.version.as_field(),
            method: self.method.as_field(),
            name: self.name.as_field(),
            session,
        }
    }

    /// Whether the version header names a modern revision: then there is no session.
    pub(super) fn names_modern(&self) -> bool {
        self.version.text().and_then(Revision::parse).is_some_and(Revision::is_modern)
    }

    /// The legacy revision that the version header names.
    pub(super) fn legacy_revision(&self) -> Option<Revision> {
        self.version.text().and_then(Revision::parse).filter(|revision| !revision.is_modern())
    }

    /// Whether the version header names a revision that is not `served`, or none.
    pub(super) fn names_unserved(&self, served: impl Fn(Revision) -> bool) -> bool {
        match &self.version {
            Header::Absent => false,
            Header::Once(_) => !self.version.text().and_then(Revision::parse).is_some_and(served),
            Header::Repeated => true,
        }
    }
}

impl Header {
    pub(super) fn as_field(&self) -> Field<'_> {
        match self {
            Self::Absent => Field::Absent,
            Self::Once(value) => Field::Once(value),
            Self::Repeated => Field::Repeated,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Once(value) => std::str::from_utf8(value).ok(),
            Self::Absent | Self::Repeated => None,
        }
    }
}

impl From<Field<'_>> for Header {
    fn from(field: Field<'_>) -> Self {
        match field {
            Field::Absent => Self::Absent,
            Field::Once(value) => Self::Once(value.into()),
            Field::Repeated => Self::Repeated,
        }
    }
}

fn text(field: Field<'_>) -> Option<&str> {
    match field {
        Field::Once(value) => std::str::from_utf8(value).ok(),
        Field::Absent | Field::Repeated => None,
    }
}

fn too_large() -> Response {
    Response::error(413, INVALID_REQUEST, "Message too large")
}

/// `None` if the length is not declared; a declaration that cannot be read is too much.
fn declared_length(head: &Head<'_>) -> Option<u64> {
    let parse = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
    head.all("content-length").map(|value| parse(value).unwrap_or(u64::MAX)).max()
}
