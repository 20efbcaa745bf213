//! What the head of a request decides (requirements §2, steps 1 to 5), in this order: bounds, `Host`, `Origin`, path,
//! verb, authorization, size, content type, `Accept`.
//!
//! Law: the first step that fails answers. The steps after the authorization are decided with the others, and told
//! only when the token was good.

use super::accept::{Accept, is_json};
use super::auth::{AuthHeaders, Denied, Judged, RulesError, Verified};
use super::cors;
use super::head::{Head, Response};
use super::lines::{Lines, Name};
use super::receiving::Total;
use super::refused::Refused;
use super::rules::{Rules, Sse24, is_origin};
use super::tokens::{Digest, Tokens, digest};
use crate::connection::{Field, Mirror, Outcome, Refusal, Standing, Status};
use crate::engine::PrincipalCache;
use crate::limits::Limits;
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::{INVALID_REQUEST, Method, Revision};
use std::net::IpAddr;
use std::sync::Arc;

/// The rules of one endpoint, ready to be applied.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) rules: Rules,
    words: Option<AuthHeaders>,
    pub(super) tokens: Tokens,
    sse24: Option<Sse24>,
    /// Whether there are legacy sessions.
    sessions: bool,
    max_body: usize,
    max_head: usize,
    max_headers: usize,
    pub(super) body_timeout: Millis,
    pub(super) receiving: Arc<Total>,
}

/// A request that may come in once it is known whose it is. Owned: it outlives the head.
#[derive(Debug)]
pub struct Admitted {
    gate: Arc<Gate>,
    token: Option<Token>,
    client: Option<IpAddr>,
    call: Call,
    /// [`Tokens::revocations`] before its token was looked at.
    revocations: u64,
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

/// A token, and what [`Tokens::keep`] needs once it is verified.
struct Bearer {
    token: String,
    digest: Digest,
}

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
    pub(super) gate: Arc<Gate>,
    /// [`Tokens::revocations`] before its token was looked at.
    revocations: u64,
}

/// What is needed of the head later on.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) accept: Accept,
    /// What names the stream of a message of 2024-11-05.
    pub(super) token: Option<String>,
    /// The origin whose page may see the answer.
    pub(super) origin: Option<String>,
    /// What the endpoint is mounted below.
    mount: Box<str>,
    lines: Lines,
    /// What the version header names.
    revision: Option<Revision>,
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

impl Gate {
    pub(super) fn new(rules: Rules, limits: &Limits, revisions: &[Revision]) -> Result<Self, RulesError> {
        rules.check()?;
        let legacy = revisions.iter().any(|revision| !revision.is_modern());
        Ok(Self {
            sse24: rules.sse24.clone().filter(|_| legacy),
            words: rules.auth.clone().map(AuthHeaders::new).transpose()?,
            tokens: Tokens::new(limits),
            sessions: rules.sessions && legacy,
            max_body: limits.message,
            max_head: limits.head,
            max_headers: limits.headers,
            body_timeout: limits.body_timeout,
            receiving: Total::new(limits.bodies_total),
            rules,
        })
    }

    pub(super) fn admit(self: &Arc<Self>, head: &Head<'_>, now: Now) -> Result<Admitted, Response> {
        let size = self.check_bounds(head)?;
        let lines = Lines::of(head, size);
        check_framing(&lines)?;
        let origin = self.check_origin(&lines)?;
        let mount = if is_plain(head.mount) { head.mount } else { "" };
        let head = &Head { mount, ..*head };
        self.beyond_origin(head, lines, origin.clone(), now)
            .map_err(|response| response.shared_with(origin.as_deref()))
    }

    fn beyond_origin(
        self: &Arc<Self>,
        head: &Head<'_>,
        lines: Lines,
        origin: Option<String>,
        now: Now,
    ) -> Result<Admitted, Response> {
        let revision = lines.text(Name::Version).and_then(Revision::parse);
        let verb = match self.check_path(head)? {
            Some(verb) => verb,
            None => self.check_verb(head, revision)?,
        };
        let revocations = self.tokens.revocations();
        let token = self.words.as_ref().map(|words| words.token(head)).transpose()?;
        let token = token.map(|token| self.known(token, now));
        let accept = Accept::of(lines.field(Name::Accept), head);
        let refused = self.check_media(&lines, verb, accept).err();
        let stream = if verb == Verb::Send { head.query("session_id").map(str::to_owned) } else { None };
        let call = Call { verb, accept, token: stream, origin, mount: head.mount.into(), lines, revision };
        Ok(Admitted { gate: Arc::clone(self), token, client: head.client, call, revocations, refused })
    }

    fn known(&self, token: String, now: Now) -> Token {
        let digest = digest(&token);
        match self.tokens.find(&digest, now.unix) {
            Some(judged) => Token::Known(judged),
            None => Token::New(Bearer { token, digest }),
        }
    }

    /// What [`Gate::check_path`] knows.
    pub(super) fn paths(&self) -> Vec<String> {
        let own = [Some(self.rules.path.clone()), self.rules.health.clone(), self.rules.metrics.clone()];
        let documents = self.words.as_ref().map(AuthHeaders::paths).unwrap_or_default();
        let older = self.sse24.iter().flat_map(|paths| [paths.events.clone(), paths.messages.clone()]);
        own.into_iter().flatten().chain(documents).chain(older).collect()
    }

    /// How many bytes the header lines have.
    fn check_bounds(&self, head: &Head<'_>) -> Result<usize, Response> {
        let size = head.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        if head.headers.len() > self.max_headers || head.target.len() + size > self.max_head {
            return Err(Response::error(431, INVALID_REQUEST, "Request header fields too large"));
        }
        Ok(size)
    }

    /// Returns the origin, where its page may see the answer.
    fn check_origin(&self, lines: &Lines) -> Result<Option<String>, Response> {
        if !self.rules.hosts.accept(lines.text(Name::Host).unwrap_or_default()) {
            return Err(Refused::host(sent(lines.field(Name::Host))));
        }
        let field = lines.field(Name::Origin);
        if field == Field::Absent {
            return Ok(None);
        }
        match lines.text(Name::Origin).filter(|origin| self.rules.origins.accept(origin)) {
            None => Err(Refused::origin(sent(field))),
            Some(origin) => Ok((self.rules.cors && is_origin(origin)).then(|| origin.to_owned())),
        }
    }

    /// The verb of a path that has but one.
    fn check_path(&self, head: &Head<'_>) -> Result<Option<Verb>, Response> {
        let path = head.path();
        if let Some(sse24) = &self.sse24 {
            if path == sse24.events {
                return self.only(head, "GET", Verb::Connect).map(Some);
            }
            if path == sse24.messages {
                return self.only(head, "POST", Verb::Send).map(Some);
            }
        }
        if self.rules.metrics.as_deref().is_some_and(|own| own == path) {
            return self.only(head, "GET", Verb::Metrics).map(Some);
        }
        let document = || self.words.as_ref()?.document(path);
        let health = || self.rules.health.as_deref().is_some_and(|own| own == path);
        // A mount leaves nothing or a slash of its own path: there is the endpoint too.
        let is_mount = !head.mount.is_empty() && matches!(path, "" | "/");
        let found = if path == self.rules.path || is_mount {
            None
        } else if let Some(document) = document() {
            Some(document)
        } else if health() {
            Some(Response::text(200, "ok\n"))
        } else {
            return Err(Refused::path(head, &self.rules.path));
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
    fn only(&self, head: &Head<'_>, name: &'static str, verb: Verb) -> Result<Verb, Response> {
        if self.rules.cors && cors::is_preflight(head) {
            return Err(cors::preflight(name));
        }
        if head.verb == name { Ok(verb) } else { Err(Response::empty(405).with("allow", name)) }
    }

    ///
    fn check_verb(&self, head: &Head<'_>, revision: Option<Revision>) -> Result<Verb, Response> {
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
    fn check_media(&self, lines: &Lines, verb: Verb, accept: Accept) -> Result<(), Response> {
        let refuse = |status, message| Err(Response::error(status, INVALID_REQUEST, message));
        if matches!(verb, Verb::Post | Verb::Send) {
            if declared_length(lines).is_some_and(|length| length > self.max_body as u64) {
                return Err(too_large());
            }
            if !is_json(lines.field(Name::ContentType)) {
                return refuse(415, "Content-Type must be application/json");
            }
        }
        // What is refused here because of the header is refused in the body too: they must be equal.
        let listens = || lines.text(Name::Method).and_then(Method::parse) == Some(Method::Listen);
        let enough = match verb {
            Verb::Post => accept.json && (accept.events || !listens()),
            Verb::Get | Verb::Connect => accept.events,
            Verb::Delete | Verb::Send | Verb::Metrics => true,
        };
        if enough { Ok(()) } else { refuse(406, "Accept must allow application/json and text/event-stream") }
    }
}

impl Gate {
    /// The challenge that answers a message whose token lacks scopes (DEC-27).
    pub(super) fn challenge(&self, call: &Call, outcome: &Outcome<'_>) -> Option<String> {
        let is_scope = outcome.status == Status::Refused(Refusal::Scope);
        self.words.as_ref().filter(|_| is_scope).map(|words| words.lacking(&call.mount, &outcome.scopes))
    }
}

impl Admitted {
    /// The bearer token that the host must verify. `None` if none is asked for, or it was verified for an earlier request.
    pub fn token(&self) -> Option<&str> {
        match &self.token {
            Some(Token::New(Bearer { token, .. })) => Some(token),
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
        let Self { gate, token, call, revocations, refused, client } = self;
        let checked = match (&gate.words, token, who) {
            (Some(words), Some(token), who) => gate.judge(words, &call.mount, token, who, revocations, now),
            (Some(words), None, _) => Err(words.denied(Denied::Invalid, &call.mount)),
            (None, _, Ok(verified)) if client.is_some() && verified.principal.is_anonymous() => {
                Ok(Principal::anonymous(client))
            }
            (None, _, Ok(verified)) => Ok(verified.principal),
            (None, _, Err(_)) => Err(Response::empty(401)),
        };
        match (checked, refused) {
            (Ok(principal), None) => Ok(Identified { principal, call, gate, revocations }),
            (Err(response), _) | (Ok(_), Some(response)) => Err(response.shared_with(call.origin.as_deref())),
        }
    }
}

impl PrincipalCache for Gate {
    fn forget(&self, principal: &str) {
        self.tokens.revoke(principal);
    }
}

impl Gate {
    fn judge(
        &self,
        words: &AuthHeaders,
        mount: &str,
        token: Token,
        who: Result<Verified, Denied>,
        revocations: u64,
        now: Now,
    ) -> Result<Arc<Principal>, Response> {
        let Bearer { digest, .. } = match token {
            Token::Known(judged) => return words.check(judged, mount),
            Token::New(bearer) => bearer,
        };
        let verified = who.map_err(|why| words.denied(why, mount))?;
        let (judged, expires) = words.judge(verified, mount, now.unix)?;
        if let Some(expires) = expires {
            self.tokens.keep(digest, revocations, &judged, expires, now.unix);
        }
        words.check(judged, mount)
    }
}

impl Identified {
    /// How many bytes of body the host reads: none for `GET` and `DELETE`. More than that is [`Identified::too_large`].
    pub fn body_limit(&self) -> usize {
        if matches!(self.call.verb, Verb::Post | Verb::Send) { self.gate.max_body } else { 0 }
    }

    /// The response to a body that is longer than [`Identified::body_limit`] of a `POST` (413).
    pub fn too_large(&self) -> Response {
        too_large().shared_with(self.call.origin.as_deref())
    }

    /// Whether its principal was revoked after its token was verified: then nothing that it opens goes on.
    pub(super) fn was_revoked(&self) -> bool {
        self.gate.tokens.was_revoked(self.principal.id(), self.revocations)
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
            headers: Some(self.lines.all()),
            version: self.lines.field(Name::Version),
            method: self.lines.field(Name::Method),
            name: self.lines.field(Name::Resource),
            session,
        }
    }

    /// What names the session.
    pub(super) fn session(&self) -> Field<'_> {
        self.lines.field(Name::Session)
    }

    /// The same, where it is there once and is text.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.lines.text(Name::Session)
    }

    /// The last event that the client has of a stream.
    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.lines.text(Name::LastEventId)
    }

    /// Whether the version header names a modern revision: then there is no session.
    pub(super) fn names_modern(&self) -> bool {
        self.revision.is_some_and(Revision::is_modern)
    }

    /// The legacy revision that the version header names.
    pub(super) fn legacy_revision(&self) -> Option<Revision> {
        self.revision.filter(|revision| !revision.is_modern())
    }

    /// Whether the version header names a revision that is not `served`, or none.
    pub(super) fn names_unserved(&self, served: impl Fn(Revision) -> bool) -> bool {
        self.lines.field(Name::Version) != Field::Absent && !self.revision.is_some_and(served)
    }
}

/// The value of a header, to be repeated.
fn sent(field: Field<'_>) -> &[u8] {
    match field {
        Field::Once(value) => value,
        Field::Absent => b"",
        Field::Repeated => b"(several)",
    }
}

/// Whether it can stand in a quoted string of a header. A mount may be a part of what the client asked for.
fn is_plain(mount: &str) -> bool {
    mount.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

fn check_framing(lines: &Lines) -> Result<(), Response> {
    if lines.are_sound() {
        return Ok(());
    }
    let message = "Malformed request: Content-Length or Transfer-Encoding must say once how long the body is, and \
                   headers have no control characters";
    Err(Response::error(400, INVALID_REQUEST, message).with("connection", "close"))
}

pub(super) fn too_large() -> Response {
    Response::error(413, INVALID_REQUEST, "Message too large")
}

/// `None` if the length is not declared; a declaration that cannot be read is too much.
fn declared_length(lines: &Lines) -> Option<u64> {
    match lines.field(Name::ContentLength) {
        Field::Absent => None,
        _ => Some(lines.text(Name::ContentLength).and_then(|value| value.parse().ok()).unwrap_or(u64::MAX)),
    }
}
