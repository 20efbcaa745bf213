//! Checks the head of a request, in this order: limits, `Host`, `Origin`, path, verb,
//! authorization, size, content type, `Accept`. The path of health checks is answered before all of them but the limits.
//!
//! Law: the first failing check determines the answer. Checks after the authorization run together with the others, but
//! their result is sent only if the token is valid.

use super::accept::{Accept, is_json};
use super::auth::{AuthHeaders, DeniedToken, Judged, RulesError, Verified};
use super::cors;
use super::head::{RequestHead, Response};
use super::lines::{Framing, HeaderLines, HeaderName};
use super::paths::{both_spellings, is_same_path, trimmed};
use super::proxies::TrustedProxies;
use super::receiving::Total;
use super::refused::Refused;
use super::rules::{Rules, Sse24, is_origin};
use super::tokens::{Digest, TokenCache, digest};
use crate::connection::{HeaderCheck, HeaderField, OutcomeStatus, RequestOutcome, RequestRefusal, Standing};
use crate::engine::PrincipalCache;
use crate::limits::Limits;
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::{INVALID_REQUEST, ProtocolMethod, Revision};
use std::net::IpAddr;
use std::sync::Arc;

/// The compiled rules of one endpoint.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) rules: Rules,
    auth: Option<AuthHeaders>,
    pub(super) tokens: TokenCache,
    proxies: TrustedProxies,
    sse24: Option<Sse24>,
    /// Whether legacy clients get sessions.
    sessions: bool,
    max_body: usize,
    max_head: usize,
    max_headers: usize,
    pub(super) body_timeout: Millis,
    pub(super) receiving: Arc<Total>,
}

/// A request that passed the checks before authorization. Owns its data, so it outlives the head.
#[derive(Debug)]
pub struct Admitted {
    gate: Arc<Admission>,
    token: Option<TokenState>,
    client: Option<IpAddr>,
    call: HttpCall,
    /// [`TokenCache::revocations`] before its token was checked.
    revocations: u64,
    /// The error of a check after the authorization.
    refused: Option<Response>,
}

/// The token of a request.
#[derive(Debug)]
enum TokenState {
    /// The runtime must verify it.
    New(Bearer),
    /// It was verified with an earlier request.
    Known(Judged),
}

/// A token, with the key under which [`TokenCache::keep`] caches it once it is verified.
struct Bearer {
    token: String,
    digest: Digest,
}

impl std::fmt::Debug for Bearer {
    /// Tokens are never shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bearer")
    }
}

/// A request whose head passed all checks; its body comes next. Owns its data, so it outlives the head.
#[derive(Debug)]
pub struct Identified {
    pub(super) principal: Arc<Principal>,
    /// The address of the client, if known.
    pub(super) address: Option<IpAddr>,
    pub(super) call: HttpCall,
    pub(super) gate: Arc<Admission>,
    /// [`TokenCache::revocations`] before its token was checked.
    revocations: u64,
}

/// The parts of the head that later steps need.
#[derive(Debug)]
pub(super) struct HttpCall {
    pub(super) verb: Verb,
    pub(super) accept: Accept,
    /// The token that identifies the stream of a message under 2024-11-05.
    pub(super) token: Option<String>,
    /// The origin whose pages may read the response.
    pub(super) origin: Option<String>,
    /// The path below which the endpoint is mounted.
    mount: Box<str>,
    lines: HeaderLines,
    /// The revision in the version header.
    revision: Option<Revision>,
}

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Post,
    Get,
    Delete,
    /// `GET` that opens a stream of 2024-11-05.
    Connect,
    /// `POST` to a stream of 2024-11-05.
    Send,
    /// `GET` of the metrics.
    Metrics,
}

impl Admission {
    pub(super) fn new(rules: Rules, limits: &Limits, revisions: &[Revision]) -> Result<Self, RulesError> {
        rules.check()?;
        let legacy = revisions.iter().any(|revision| !revision.is_modern());
        Ok(Self {
            sse24: rules.sse24.clone().filter(|_| legacy),
            auth: rules.auth.clone().map(AuthHeaders::new).transpose()?,
            tokens: TokenCache::new(limits),
            proxies: TrustedProxies::parse(&rules.trusted_proxies)?,
            sessions: rules.sessions && legacy,
            max_body: limits.message,
            max_head: limits.head,
            max_headers: limits.headers,
            body_timeout: limits.body_timeout,
            receiving: Total::new(limits.bodies_total),
            rules,
        })
    }

    pub(super) fn admit(self: &Arc<Self>, head: &RequestHead<'_>, now: Now) -> Result<Admitted, Response> {
        let size = self.check_bounds(head)?;
        let lines = HeaderLines::from_head(head, size);
        check_framing(&lines)?;
        if let Some(response) = self.health(head, &lines) {
            return Err(response);
        }
        let origin = self.check_origin(&lines)?;
        let mount = if is_plain(head.mount) { head.mount } else { "" };
        let head = &RequestHead { mount, ..*head };
        self.beyond_origin(head, lines, origin.clone(), now)
            .map_err(|response| response.shared_with(origin.as_deref()))
    }

    fn beyond_origin(
        self: &Arc<Self>,
        head: &RequestHead<'_>,
        lines: HeaderLines,
        origin: Option<String>,
        now: Now,
    ) -> Result<Admitted, Response> {
        let revision = lines.text(HeaderName::Version).and_then(Revision::parse);
        let verb = match self.check_path(head)? {
            Some(verb) => verb,
            None => self.check_verb(head, revision)?,
        };
        let revocations = self.tokens.revocations();
        let token = self.auth.as_ref().map(|auth| auth.token(head)).transpose()?;
        let token = token.map(|token| self.known(token, now));
        let accept = Accept::from_field(lines.field(HeaderName::Accept), head);
        let refused = self.check_media(&lines, verb, accept).err();
        let stream = if verb == Verb::Send { head.query("session_id").map(str::to_owned) } else { None };
        let call =
            HttpCall { verb, accept, token: stream, origin, mount: head.mount.into(), lines, revision };
        let client = self.proxies.client(head);
        Ok(Admitted { gate: Arc::clone(self), token, client, call, revocations, refused })
    }

    fn known(&self, token: String, now: Now) -> TokenState {
        let digest = digest(&token);
        match self.tokens.find(&digest, now.unix) {
            Some(judged) => TokenState::Known(judged),
            None => TokenState::New(Bearer { token, digest }),
        }
    }

    /// The paths that [`Admission::admit`] accepts, in both spellings.
    pub(super) fn paths(&self) -> Vec<String> {
        let own = [Some(self.rules.path.clone()), self.rules.health.clone(), self.rules.metrics.clone()];
        let documents = self.auth.as_ref().map(AuthHeaders::paths).unwrap_or_default();
        let older = self.sse24.iter().flat_map(|paths| [paths.events.clone(), paths.messages.clone()]);
        both_spellings(own.into_iter().flatten().chain(documents).chain(older))
    }

    /// Checks number and size of the header lines; returns their total size in bytes.
    fn check_bounds(&self, head: &RequestHead<'_>) -> Result<usize, Response> {
        let size = head.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        if head.headers.len() > self.max_headers || head.target.len() + size > self.max_head {
            return Err(Response::error(431, INVALID_REQUEST, "Request header fields too large"));
        }
        Ok(size)
    }

    /// Checks `Host` and `Origin`. Returns the origin if its pages may read the response.
    fn check_origin(&self, lines: &HeaderLines) -> Result<Option<String>, Response> {
        if !self.rules.hosts.accept(lines.text(HeaderName::Host).unwrap_or_default()) {
            return Err(Refused::host(sent(lines.field(HeaderName::Host))));
        }
        let field = lines.field(HeaderName::Origin);
        if field == HeaderField::Absent {
            return Ok(None);
        }
        match lines.text(HeaderName::Origin).filter(|origin| self.rules.origins.accept(origin)) {
            None => Err(Refused::origin(sent(field))),
            Some(origin) => Ok((self.rules.cors && is_origin(origin)).then(|| origin.to_owned())),
        }
    }

    /// The answer of the path of health checks. It is constant, so it needs no `Host`, `Origin` or token: a load balancer
    /// sends the address of its target, and no token.
    fn health(&self, head: &RequestHead<'_>, lines: &HeaderLines) -> Option<Response> {
        let own = self.rules.health.as_deref()?;
        let path = head.path();
        if !is_same_path(path, own) || self.is_endpoint(head, path) {
            return None;
        }
        let origin = self.check_origin(lines).ok().flatten();
        if origin.is_some() && cors::is_preflight(head) {
            return Some(cors::preflight("GET", &[]).shared_with(origin.as_deref()));
        }
        Some(fetched(head, Response::text(200, "ok\n")).shared_with(origin.as_deref()))
    }

    /// Whether a path is that of the endpoint. Below a mount, an empty path or `/` is the endpoint itself.
    fn is_endpoint(&self, head: &RequestHead<'_>, path: &str) -> bool {
        is_same_path(path, &self.rules.path) || (!head.mount.is_empty() && trimmed(path).is_empty())
    }

    /// The verb for a path that allows only one.
    fn check_path(&self, head: &RequestHead<'_>) -> Result<Option<Verb>, Response> {
        let path = head.path();
        let cors = &self.rules.cors_headers;
        if self.is_endpoint(head, path) {
            return match self.rules.cors && cors::is_preflight(head) {
                true => Err(cors::preflight(self.verbs(), cors)),
                false => Ok(None),
            };
        }
        if let Some(sse24) = &self.sse24 {
            if is_same_path(path, &sse24.events) {
                return self.only(head, "GET", Verb::Connect).map(Some);
            }
            if is_same_path(path, &sse24.messages) {
                return self.only(head, "POST", Verb::Send).map(Some);
            }
        }
        if self.rules.metrics.as_deref().is_some_and(|own| is_same_path(path, own)) {
            return self.only(head, "GET", Verb::Metrics).map(Some);
        }
        let Some(document) = self.auth.as_ref().and_then(|auth| auth.document(path)) else {
            return Err(Refused::path(head, &self.rules.path));
        };
        match self.rules.cors && cors::is_preflight(head) {
            true => Err(cors::preflight("GET", cors)),
            false => Err(fetched(head, document)),
        }
    }

    /// Allows only the verb `name`.
    fn only(&self, head: &RequestHead<'_>, name: &'static str, verb: Verb) -> Result<Verb, Response> {
        if self.rules.cors && cors::is_preflight(head) {
            return Err(cors::preflight(name, &self.rules.cors_headers));
        }
        if head.verb == name { Ok(verb) } else { Err(Response::empty(405).with("allow", name)) }
    }

    /// Checks the verb.
    fn check_verb(&self, head: &RequestHead<'_>, revision: Option<Revision>) -> Result<Verb, Response> {
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

    /// Checks content type and `Accept`.
    fn check_media(&self, lines: &HeaderLines, verb: Verb, accept: Accept) -> Result<(), Response> {
        let refuse = |status, message| Err(Response::error(status, INVALID_REQUEST, message));
        if matches!(verb, Verb::Post | Verb::Send) {
            if declared_length(lines).is_some_and(|length| length > self.max_body as u64) {
                return Err(Refused::message(self.max_body));
            }
            if lines.is_encoded() {
                let message = "Content-Encoding is not supported: send the message as it is";
                return Err(
                    Response::error(415, INVALID_REQUEST, message).with("accept-encoding", "identity")
                );
            }
            if !is_json(lines.field(HeaderName::ContentType)) {
                return refuse(415, "Content-Type must be application/json");
            }
        }
        // Deciding by the header is safe: the message is refused later if header and body differ.
        let listens =
            || lines.text(HeaderName::Method).and_then(ProtocolMethod::parse) == Some(ProtocolMethod::Listen);
        let enough = match verb {
            Verb::Post => accept.json && (accept.events || !listens()),
            Verb::Get | Verb::Connect => accept.events,
            Verb::Delete | Verb::Send | Verb::Metrics => true,
        };
        if enough { Ok(()) } else { refuse(406, "Accept must allow application/json and text/event-stream") }
    }
}

impl Admission {
    /// The challenge for a message whose token lacks scopes.
    pub(super) fn challenge(&self, call: &HttpCall, outcome: &RequestOutcome<'_>) -> Option<String> {
        let is_scope = outcome.status == OutcomeStatus::Refused(RequestRefusal::Scope);
        self.auth.as_ref().filter(|_| is_scope).map(|auth| auth.lacking(&call.mount, &outcome.scopes))
    }
}

impl Admitted {
    /// The bearer token that the runtime must verify. `None` if none is required, or it was verified with an earlier
    /// request.
    pub fn token(&self) -> Option<&str> {
        match &self.token {
            Some(TokenState::New(Bearer { token, .. })) => Some(token),
            Some(TokenState::Known(_)) | None => None,
        }
    }

    /// Continues with the result of verifying the token, or with [`Verified::anyone`] if [`Admitted::token`] is `None`.
    ///
    /// # Errors
    /// The response to send: 401 or 403 with a challenge, 503 if the token could not be verified, 413,
    /// 415 or 406.
    pub fn identify(self, who: Result<Verified, DeniedToken>, now: Now) -> Result<Identified, Response> {
        let Self { gate, token, call, revocations, refused, client } = self;
        let checked = match (&gate.auth, token, who) {
            (Some(auth), Some(token), who) => gate.judge(auth, &call.mount, token, who, revocations, now),
            (Some(auth), None, _) => Err(auth.denied(DeniedToken::Invalid, &call.mount)),
            (None, _, Ok(verified)) if client.is_some() && verified.principal.is_anonymous() => {
                Ok(Principal::anonymous(client))
            }
            (None, _, Ok(verified)) => Ok(verified.principal),
            (None, _, Err(_)) => Err(Response::empty(401)),
        };
        match (checked, refused) {
            (Ok(principal), None) => Ok(Identified { principal, address: client, call, gate, revocations }),
            (Err(response), _) | (Ok(_), Some(response)) => Err(response.shared_with(call.origin.as_deref())),
        }
    }
}

impl PrincipalCache for Admission {
    fn forget(&self, principal: &str) {
        self.tokens.revoke(principal);
    }

    fn forget_all(&self) {
        self.tokens.clear();
    }
}

impl Admission {
    fn judge(
        &self,
        auth: &AuthHeaders,
        mount: &str,
        token: TokenState,
        who: Result<Verified, DeniedToken>,
        revocations: u64,
        now: Now,
    ) -> Result<Arc<Principal>, Response> {
        let Bearer { digest, .. } = match token {
            TokenState::Known(judged) => return auth.check(judged, mount),
            TokenState::New(bearer) => bearer,
        };
        let verified = who.map_err(|why| auth.denied(why, mount))?;
        let (judged, expires) = auth.judge(verified, mount, now.unix)?;
        if let Some(expires) = expires {
            self.tokens.keep(digest, revocations, &judged, expires, now.unix);
        }
        auth.check(judged, mount)
    }
}

impl Identified {
    /// Maximum size of the body in bytes: 0 for `GET` and `DELETE`. Beyond it, send [`Identified::too_large`].
    pub fn body_limit(&self) -> usize {
        if matches!(self.call.verb, Verb::Post | Verb::Send) { self.gate.max_body } else { 0 }
    }

    /// The response to a body larger than [`Identified::body_limit`] (413).
    pub fn too_large(&self) -> Response {
        Refused::message(self.gate.max_body).shared_with(self.call.origin.as_deref())
    }

    /// Whether its principal was revoked after the token was verified; if so, streams that it opens end at once
    ///.
    pub(super) fn was_revoked(&self) -> bool {
        self.gate.tokens.was_revoked(self.principal.id(), self.revocations)
    }

    /// The principal that sent the request.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }
}

impl HttpCall {
    pub(super) fn header_check(&self, session: Standing) -> HeaderCheck<'_> {
        HeaderCheck {
            challenges: true,
            headers: Some(self.lines.all()),
            version: self.lines.field(HeaderName::Version),
            method: self.lines.field(HeaderName::Method),
            name: self.lines.field(HeaderName::Resource),
            session,
        }
    }

    /// The header with the session id.
    pub(super) fn session(&self) -> HeaderField<'_> {
        self.lines.field(HeaderName::Session)
    }

    /// The session id, if the header occurs once and is text.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.lines.text(HeaderName::Session)
    }

    /// The id of the last event that the client received.
    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.lines.text(HeaderName::LastEventId)
    }

    /// Whether the version header names a modern revision, which has no sessions.
    pub(super) fn names_modern(&self) -> bool {
        self.revision.is_some_and(Revision::is_modern)
    }

    /// The legacy revision in the version header.
    pub(super) fn legacy_revision(&self) -> Option<Revision> {
        self.revision.filter(|revision| !revision.is_modern())
    }

    /// Whether the version header names an unknown revision, or one that is not `served`.
    pub(super) fn names_unserved(&self, served: impl Fn(Revision) -> bool) -> bool {
        self.lines.field(HeaderName::Version) != HeaderField::Absent && !self.revision.is_some_and(served)
    }
}

/// The value of a header, for an error message.
fn sent(field: HeaderField<'_>) -> &[u8] {
    match field {
        HeaderField::Once(value) => value,
        HeaderField::Absent => b"",
        HeaderField::Repeated => b"(several)",
    }
}

/// Whether `mount` can stand in a quoted string of a header. It may contain parts of the requested path.
fn is_plain(mount: &str) -> bool {
    mount.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

/// The answer with a fixed response, which only `GET` and `HEAD` ask for.
fn fetched(head: &RequestHead<'_>, response: Response) -> Response {
    match head.verb {
        "GET" => response,
        "HEAD" => response.without_body(),
        _ => Response::empty(405).with("allow", "GET, HEAD"),
    }
}

fn check_framing(lines: &HeaderLines) -> Result<(), Response> {
    let (status, message) = match lines.framing() {
        Framing::Sound => return Ok(()),
        Framing::Unsupported => (501, "Transfer-Encoding must be chunked, without another coding"),
        Framing::Malformed => (
            400,
            "Malformed request: Content-Length or Transfer-Encoding must say once how long the body is, and headers have \
             no control characters",
        ),
    };
    Err(Response::error(status, INVALID_REQUEST, message).with("connection", "close"))
}

/// The declared length. `None` if none is declared; `u64::MAX` if the declaration is invalid, so that it is refused.
fn declared_length(lines: &HeaderLines) -> Option<u64> {
    match lines.field(HeaderName::ContentLength) {
        HeaderField::Absent => None,
        _ => Some(
            lines.text(HeaderName::ContentLength).and_then(|value| value.parse().ok()).unwrap_or(u64::MAX),
        ),
    }
}
