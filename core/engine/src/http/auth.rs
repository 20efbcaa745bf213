//! The HTTP parts of a resource server: challenges, metadata documents, scopes.
//!
//! Law: a token is read from the head and passed to the runtime, and stored nowhere. The runtime decides whether it is valid;
//! this module decides how the client is answered.

use super::head::{RequestHead, Response};
use super::paths::is_same_path;
use crate::error::Shown;
use crate::guard::granted_uris;
use crate::jsonrpc::object;
use crate::now::Millis;
use crate::principal::{ANONYMOUS, Principal};
use crate::resource::is_scope;
use crate::version::INVALID_REQUEST;
use std::fmt;
use std::sync::Arc;

/// Requirements for bearer tokens, and their description for clients.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Auth {
    /// The endpoint's public URL, without a fragment: the audience of tokens.
    pub resource: String,
    /// The authorization servers that issue tokens for it; at least one.
    pub authorization_servers: Vec<String>,
    /// Whether no authorization server issues the tokens: see [`Auth::handed_out`].
    is_handed_out: bool,
    /// Scopes that clients may request: `scopes_supported`.
    pub scopes_supported: Vec<String>,
    /// Scopes that every request requires. Each challenge lists all of them.
    pub required_scopes: Vec<String>,
    /// Scopes that include others, as (broader, narrower).
    pub implied_scopes: Vec<(String, String)>,
    /// The authorization server's metadata, a JSON object, for clients of 2025-03-26, which expect it on this server
    ///.
    pub authorization_server_document: Option<String>,
}

/// A token that the runtime has verified: its signature, expiry, issuer and audience.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// The principal that the token represents.
    pub principal: Arc<Principal>,
    /// Its scopes. Texts that are not valid scopes (RFC 6749, section 3.3) are ignored.
    pub scopes: Vec<String>,
    /// Its expiry, in milliseconds since 1970 (UTC). The verification is cached until then, but no longer than
    /// [`Limits::token_ttl`](crate::limits::Limits::token_ttl). `None`, the default: each request verifies the token.
    pub expires: Option<Millis>,
    /// Its claims for handlers: a JSON object.
    pub claims: Option<Arc<str>>,
    /// Globs over canonical URIs: in addition to the policy, the client sees only what matches one of them. Default
    /// `None`: everything that the policy allows.
    pub allow: Option<Vec<String>>,
    /// Globs over canonical URIs that the client does not see, even if they are allowed. Default: none.
    pub deny: Vec<String>,
}

/// The reason for refusing a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedToken {
    /// It is invalid or expired, or has another audience.
    Invalid,
    /// It could not be verified now.
    Unavailable,
}

impl DeniedToken {
    /// Builds the argument of [`Admitted::identify`](super::Admitted::identify) from a runtime's result. `is_unavailable`
    /// is set if the token was refused, and says whether verification was impossible. Without both, no token is
    /// required.
    ///
    /// # Errors
    /// [`DeniedToken`] if the token was refused.
    pub fn unless(verified: Option<Verified>, is_unavailable: Option<bool>) -> Result<Verified, Self> {
        match is_unavailable {
            Some(true) => Err(Self::Unavailable),
            Some(false) => Err(Self::Invalid),
            None => Ok(verified.unwrap_or_else(Verified::anyone)),
        }
    }
}

/// An invalid option of the [`Rules`](super::Rules).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesError {
    field: &'static str,
    /// The value that was set; omitted if it is secret or unset.
    value: Option<String>,
    expected: &'static str,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} is {}, expected {}", self.field, Shown(value), self.expected),
            None => write!(f, "{}: expected {}", self.field, self.expected),
        }
    }
}

impl std::error::Error for RulesError {}

impl RulesError {
    /// An error that says that the option `field` is not `expected`.
    pub fn new(field: &'static str, expected: &'static str) -> Self {
        Self { field, value: None, expected }
    }

    /// Adds the value that was set.
    pub(crate) fn with(self, value: impl Into<String>) -> Self {
        Self { value: Some(value.into()), ..self }
    }
}

impl Auth {
    /// Requires tokens issued by `authorization_servers` for the endpoint at `resource`.
    pub fn new(resource: impl Into<String>, authorization_servers: impl IntoIterator<Item = String>) -> Self {
        let authorization_servers = authorization_servers.into_iter().collect();
        Self { resource: resource.into(), authorization_servers, ..Self::default() }
    }

    /// Requires tokens that a person hands out. No authorization server issues them, so no metadata is served, and
    /// challenges name none.
    pub fn handed_out() -> Self {
        Self { is_handed_out: true, ..Self::default() }
    }
}

impl Verified {
    /// A token of `subject`, without scopes.
    pub fn new(subject: impl Into<Arc<str>>) -> Self {
        Self::from_principal(Principal::new(subject))
    }

    /// Any client, where no tokens are required.
    pub fn anyone() -> Self {
        Self::from_principal(Principal::anonymous(None))
    }

    /// A client without a token, where none is required: `anonymous`, made once for its connection.
    pub fn client(anonymous: Arc<Principal>) -> Self {
        Self::from_principal(anonymous)
    }

    /// Sets [`Verified::scopes`].
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets [`Verified::expires`].
    #[must_use]
    pub fn expires(mut self, expires: impl Into<Option<Millis>>) -> Self {
        self.expires = expires.into();
        self
    }

    /// Sets [`Verified::claims`].
    #[must_use]
    pub fn claims(mut self, claims: impl Into<Option<Arc<str>>>) -> Self {
        self.claims = claims.into();
        self
    }

    /// Sets [`Verified::allow`].
    #[must_use]
    pub fn allow<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.allow = Some(globs.into_iter().map(Into::into).collect());
        self
    }

    /// Sets [`Verified::deny`].
    #[must_use]
    pub fn deny<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.deny = globs.into_iter().map(Into::into).collect();
        self
    }

    fn from_principal(principal: Arc<Principal>) -> Self {
        Self { principal, scopes: Vec::new(), expires: None, claims: None, allow: None, deny: Vec::new() }
    }
}

/// A verified token, evaluated under the rules of one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// Has the token's scopes and those they include, its claims and its expiry.
    principal: Arc<Principal>,
    /// Whether it has the scopes that every request requires.
    suffices: bool,
}

impl Judged {
    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }
}

/// Never part of a challenge: clients decide on their own whether to ask for it.
const OFFLINE: &str = "offline_access";
const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// The headers and documents of one endpoint, prepared once.
#[derive(Debug)]
pub(super) struct AuthHeaders {
    rules: Auth,
    /// `None` if no authorization server issues the tokens.
    metadata: Option<ResourceMetadata>,
}

/// The metadata of the protected resource (RFC 9728), and the place where clients find it.
#[derive(Debug)]
struct ResourceMetadata {
    /// Scheme and authority of the resource URL.
    origin: String,
    /// The endpoint's path in the resource URL.
    path: String,
    document: Vec<u8>,
}

impl AuthHeaders {
    pub(super) fn new(rules: Auth) -> Result<Self, RulesError> {
        let metadata = if rules.is_handed_out { None } else { Some(ResourceMetadata::new(&rules)?) };
        let mut scopes = rules.scopes_supported.iter().chain(&rules.required_scopes);
        if let Some(wrong) = scopes.find(|scope| !is_scope(scope)) {
            let expected = "printable ASCII without spaces, quotes and backslashes";
            return Err(RulesError::new("a scope of auth", expected).with(&**wrong));
        }
        let served = rules.authorization_server_document.as_deref();
        if served.is_some_and(|text| {
            !serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object())
        }) {
            return Err(RulesError::new("auth.authorization_server_document", "a JSON object"));
        }
        Ok(Self { metadata, rules })
    }

    /// The paths of the metadata documents.
    pub(super) fn paths(&self) -> Vec<String> {
        let Some(metadata) = &self.metadata else { return Vec::new() };
        let served = self.rules.authorization_server_document.as_ref().map(|_| AUTHORIZATION_SERVER);
        let places = [Some(PROTECTED_RESOURCE), served].into_iter().flatten();
        let inserted = Some(&*metadata.path).filter(|path| !path.is_empty());
        places
            .flat_map(|place| [Some(place.to_owned()), inserted.map(|path| format!("{place}{path}"))])
            .flatten()
            .collect()
    }

    /// Returns a metadata document, which requires no token.
    pub(super) fn document(&self, path: &str) -> Option<Response> {
        let metadata = self.metadata.as_ref()?;
        if let Some(rest) = path.strip_prefix(PROTECTED_RESOURCE)
            && (is_same_path(rest, "") || is_same_path(rest, &metadata.path))
        {
            return Some(Response::json(200, metadata.document.clone()));
        }
        let served = self.rules.authorization_server_document.as_ref()?;
        let rest = path.strip_prefix(AUTHORIZATION_SERVER)?;
        (is_same_path(rest, "") || is_same_path(rest, &metadata.path))
            .then(|| Response::json(200, served.clone().into_bytes()))
    }

    /// Reads the token of a request from the `Authorization` header, and from nowhere else.
    pub(super) fn token(&self, head: &RequestHead<'_>) -> Result<String, Response> {
        let mut values = head.all("authorization");
        let mount = head.mount;
        let (value, None) = (values.next(), values.next()) else { return Err(self.malformed(mount)) };
        let Some(value) = value else { return Err(self.unauthorized(mount, None)) };
        let value = std::str::from_utf8(value).map_err(|_| self.malformed(mount))?;
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(self.unauthorized(mount, None));
        }
        let token = token.trim_start_matches(' ');
        if is_token(token) { Ok(token.to_owned()) } else { Err(self.malformed(mount)) }
    }

    /// Evaluates a verified token, and returns until when the result may be cached. `unix` is the time now. A token
    /// always represents a principal: it is refused if it claims to be the local process or an anonymous client.
    pub(super) fn judge(
        &self,
        verified: Verified,
        mount: &str,
        unix: Millis,
    ) -> Result<(Judged, Option<Millis>), Response> {
        let Verified { principal, mut scopes, expires, claims, allow, deny } = verified;
        // It may have expired during verification, whatever the verifier says.
        let is_nobody = principal.id().is_empty() || principal.id() == ANONYMOUS;
        if is_nobody || expires.is_some_and(|expires| expires <= unix) {
            return Err(self.denied(DeniedToken::Invalid, mount));
        }
        scopes.retain(|scope| is_scope(scope));
        let held = self.with_implied(&scopes);
        let suffices = self.rules.required_scopes.iter().all(|scope| held.contains(&scope.as_str()));
        let principal = if held.is_empty() { principal } else { principal.with_scopes(held) };
        let principal = if claims.is_some() { principal.with_claims(claims) } else { principal };
        let principal = if allow.is_some() || !deny.is_empty() {
            // A token whose globs cannot be read grants nothing.
            let uris = granted_uris(allow.as_deref(), &deny)
                .map_err(|_| self.denied(DeniedToken::Unavailable, mount))?;
            principal.with_uris(Some(uris))
        } else {
            principal
        };
        let principal = if expires.is_some() { principal.with_expiry(expires) } else { principal };
        Ok((Judged { principal, suffices }, expires))
    }

    /// Checks that the token has the required scopes, or returns the response to send.
    pub(super) fn check(&self, judged: Judged, mount: &str) -> Result<Arc<Principal>, Response> {
        if judged.suffices { Ok(judged.principal) } else { Err(self.forbidden(mount)) }
    }

    pub(super) fn denied(&self, why: DeniedToken, mount: &str) -> Response {
        match why {
            DeniedToken::Invalid => self.unauthorized(mount, Some("invalid_token")),
            DeniedToken::Unavailable => Response::empty(503),
        }
    }

    /// `granted`, and all scopes that these include.
    fn with_implied<'a>(&'a self, granted: &'a [String]) -> Vec<&'a str> {
        let mut held: Vec<&str> = granted.iter().map(String::as_str).collect();
        let mut at = 0;
        while let Some(&broader) = held.get(at) {
            for (from, to) in &self.rules.implied_scopes {
                if from == broader && !held.contains(&to.as_str()) {
                    held.push(to);
                }
            }
            at += 1;
        }
        held
    }

    fn malformed(&self, mount: &str) -> Response {
        self.challenge(mount, 400, "Malformed authorization", Some("invalid_request"))
    }

    fn unauthorized(&self, mount: &str, error: Option<&str>) -> Response {
        self.challenge(mount, 401, "Unauthorized", error)
    }

    fn forbidden(&self, mount: &str) -> Response {
        self.challenge(mount, 403, "Insufficient scope", Some("insufficient_scope"))
    }

    fn challenge(&self, mount: &str, status: u16, message: &str, error: Option<&str>) -> Response {
        let header = self.bearer(mount, error, &join(&self.rules.required_scopes));
        Response::error(status, INVALID_REQUEST, message).with("www-authenticate", header)
    }

    /// The challenge for a token that also has these scopes. It lists all scopes that the operation requires.
    pub(super) fn lacking(&self, mount: &str, scopes: &[String]) -> String {
        let mut all = self.rules.required_scopes.clone();
        all.extend(scopes.iter().filter(|scope| !self.rules.required_scopes.contains(scope)).cloned());
        self.bearer(mount, Some("insufficient_scope"), &join(&all))
    }

    fn bearer(&self, mount: &str, error: Option<&str>, scopes: &str) -> String {
        let mut parts = Vec::new();
        parts.extend(error.map(|error| format!("error=\"{error}\"")));
        parts.extend(self.metadata.as_ref().map(|own| format!("resource_metadata=\"{}\"", own.url(mount))));
        if !scopes.is_empty() {
            parts.push(format!("scope=\"{scopes}\""));
        }
        if parts.is_empty() { "Bearer".into() } else { format!("Bearer {}", parts.join(", ")) }
    }
}

impl ResourceMetadata {
    fn new(rules: &Auth) -> Result<Self, RulesError> {
        let (origin, path) = split(&rules.resource).ok_or_else(|| {
            RulesError::new("auth.resource", "an http or https URL without query, fragment or quotes")
                .with(&*rules.resource)
        })?;
        if rules.authorization_servers.is_empty() {
            return Err(RulesError::new("auth.authorization_servers", "at least one"));
        }
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { origin: origin.to_owned(), path, document: document(rules) })
    }

    /// The URL of the resource metadata. Below a mount, only requests under the mount reach the endpoint, so the
    /// document is there instead of at the root of the host. RFC 9728, section 5.1, lets the challenge name any
    /// location.
    fn url(&self, mount: &str) -> String {
        let Self { origin, path, .. } = self;
        if mount.is_empty() {
            return format!("{origin}{PROTECTED_RESOURCE}{path}");
        }
        // A proxy may have removed the path before the mount.
        let ends = path.match_indices(mount).map(|(at, _)| at + mount.len());
        let is_end =
            |end: &usize| path.get(*end..).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let below = ends.filter(is_end).last().and_then(|end| path.get(..end)).unwrap_or(mount);
        format!("{origin}{below}{PROTECTED_RESOURCE}")
    }
}

/// The resource metadata of RFC 9728.
fn document(rules: &Auth) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |document| {
        document.str("resource", &rules.resource);
        document.array("authorization_servers", |list| {
            rules.authorization_servers.iter().for_each(|server| list.str(server));
        });
        let scopes: Vec<_> = rules.scopes_supported.iter().filter(|scope| *scope != OFFLINE).collect();
        if !scopes.is_empty() {
            document.array("scopes_supported", |list| scopes.iter().for_each(|scope| list.str(scope)));
        }
        document.array("bearer_methods_supported", |list| list.str("header"));
    });
    out
}

fn join(scopes: &[String]) -> String {
    let scopes: Vec<_> = scopes.iter().map(String::as_str).filter(|scope| *scope != OFFLINE).collect();
    scopes.join(" ")
}

/// Splits a URL that can stand in a quoted string into origin and path.
fn split(url: &str) -> Option<(&str, &str)> {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\?#".contains(&byte));
    let (scheme, rest) = url.split_once("://").filter(|_| is_plain)?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let at = rest.find('/').unwrap_or(rest.len());
    (is_web && at > 0).then(|| url.split_at(scheme.len() + 3 + at))
}

/// Whether `token` matches `b64token` of RFC 6750.
pub fn is_token(token: &str) -> bool {
    let text = token.trim_end_matches('=');
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth_headers() -> AuthHeaders {
        let mut rules = Auth::new("https://api.example.com/mcp", ["https://id.example.com".into()]);
        rules.required_scopes = vec!["files:read".into(), OFFLINE.into()];
        rules.scopes_supported = vec!["files:read".into(), OFFLINE.into(), "files:admin".into()];
        rules.implied_scopes =
            vec![("files:admin".into(), "files:write".into()), ("files:write".into(), "files:read".into())];
        AuthHeaders::new(rules).unwrap()
    }

    fn checked(headers: &AuthHeaders, who: Verified) -> Result<Arc<Principal>, Response> {
        headers.judge(who, "", 0).and_then(|(judged, _)| headers.check(judged, ""))
    }

    fn token(values: &[&str]) -> Result<String, u16> {
        let headers: Vec<(&str, &[u8])> =
            values.iter().map(|value| ("Authorization", value.as_bytes())).collect();
        let head = RequestHead {
            verb: "POST",
            target: "/mcp?access_token=abc",
            headers: &headers,
            ..RequestHead::default()
        };
        auth_headers().token(&head).map_err(|response| response.head.status)
    }

    // R-198, R-200, R-202.
    #[test]
    fn tokens() {
        assert_eq!(token(&["Bearer a.b-c=="]), Ok("a.b-c==".into()));
        assert_eq!(token(&["bearer   x"]), Ok("x".into()));
        for (values, status) in [
            (&[][..], 401),
            (&["Basic abc"], 401),
            (&["Bearer"], 400),
            (&["Bearer "], 400),
            (&["Bearer a b"], 400),
            (&["Bearer ="], 400),
            (&["Bearer é"], 400),
            (&["Bearer a", "Bearer a"], 400),
            (&["Basic a", "Bearer a"], 400),
        ] {
            assert_eq!(token(values), Err(status), "{values:?}");
        }
    }

    // S-20: without an authorization server there is nothing to discover, and an empty resource alone is a mistake.
    #[test]
    fn tokens_that_a_person_hands_out() {
        let headers = AuthHeaders::new(Auth::handed_out()).unwrap();
        assert_eq!(headers.paths(), Vec::<String>::new());
        assert!(headers.document(PROTECTED_RESOURCE).is_none());
        assert_eq!(headers.bearer("", None, ""), "Bearer");
        assert_eq!(headers.bearer("", Some("invalid_token"), ""), "Bearer error=\"invalid_token\"");
        for (resource, servers) in
            [("", vec!["https://id.example.com".into()]), ("https://a.example/mcp", vec![])]
        {
            AuthHeaders::new(Auth::new(resource, servers)).unwrap_err();
        }
    }

    // R-204: a broader scope includes narrower ones, also transitively.
    #[test]
    fn scopes_include_others() {
        let headers =
            AuthHeaders::new(Auth { required_scopes: vec!["files:read".into()], ..auth_headers().rules });
        let suffices = |scopes: &[&str]| {
            let who = Verified::new("alice").scopes(scopes.iter().copied());
            checked(headers.as_ref().unwrap(), who).is_ok()
        };
        assert!(suffices(&["files:read"]) && suffices(&["x", "files:write"]) && suffices(&["files:admin"]));
        assert!(!suffices(&[]) && !suffices(&["files"]) && !suffices(&["files:read:x"]));
    }

    // R-204: a guard sees the included scopes too.
    #[test]
    fn a_principal_has_the_scopes_of_its_token() {
        let mut rules = auth_headers().rules;
        rules.required_scopes.clear();
        let claims: Arc<str> = r#"{"org":"x"}"#.into();
        let who =
            Verified::new("alice").scopes(["files:write", "a b", "", "\""]).claims(claims.clone()).expires(9);
        let principal = checked(&AuthHeaders::new(rules).unwrap(), who).unwrap();
        assert_eq!((principal.claims(), principal.expires()), (Some(&*claims), Some(9)));
        assert_eq!(
            (principal.id(), principal.scopes()),
            ("alice", &["files:write".into(), "files:read".into()][..])
        );
    }

    // R-199, R-205, R-206: every challenge lists the same scopes, without `offline_access`.
    #[test]
    fn challenges() {
        let header = |response: &Response| {
            let found = response.head.headers.iter().find(|(name, _)| *name == "www-authenticate");
            found.map(|(_, value)| value.to_string()).unwrap()
        };
        let refused = checked(&auth_headers(), Verified::new("alice")).unwrap_err();
        assert_eq!(refused.head.status, 403);
        assert_eq!(
            header(&refused),
            "Bearer error=\"insufficient_scope\", \
             resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource/mcp\", \
             scope=\"files:read\""
        );
        assert_eq!(checked(&auth_headers(), Verified::new("alice")).unwrap_err(), refused);
        let refused = auth_headers().denied(DeniedToken::Invalid, "");
        assert!(
            refused.head.status == 401 && header(&refused).starts_with("Bearer error=\"invalid_token\", ")
        );
        assert_eq!(auth_headers().denied(DeniedToken::Unavailable, "").head.status, 503);
    }

    // R-202: no token can represent the local process or an anonymous client.
    #[test]
    fn a_token_always_has_a_principal() {
        let headers = AuthHeaders::new(Auth { required_scopes: Vec::new(), ..auth_headers().rules }).unwrap();
        let status =
            |id: &str| checked(&headers, Verified::new(id)).map_err(|refused| refused.head.status).err();
        assert_eq!([status(""), status(ANONYMOUS), status("ada")], [Some(401), Some(401), None]);
        assert!(checked(&headers, Verified::anyone()).is_err());
    }

    // R-198: below a mount the document is served where requests reach the endpoint.
    #[test]
    fn the_document_is_below_the_mount() {
        let at = |resource: &str, mount: &str| {
            let headers =
                AuthHeaders::new(Auth { resource: resource.into(), ..auth_headers().rules }).unwrap();
            headers.metadata.as_ref().unwrap().url(mount)
        };
        let found = "https://x/a/.well-known/oauth-protected-resource";
        for (resource, mount) in [("https://x/a/mcp", "/a"), ("https://x/a", "/a"), ("https://x/b/mcp", "/a")]
        {
            assert_eq!(at(resource, mount), found, "{resource}");
        }
        assert_eq!(at("https://x/v1/a/mcp", "/a"), found.replace("/a/", "/v1/a/"));
        assert_eq!(at("https://x/ab/mcp", "/a"), found);
        assert_eq!(at("https://x/mcp", ""), "https://x/.well-known/oauth-protected-resource/mcp");
    }

    // R-196, R-197, R-205.
    #[test]
    fn documents() {
        for path in ["", "/", "/mcp"] {
            let found = auth_headers().document(&format!("{PROTECTED_RESOURCE}{path}")).unwrap();
            let document: serde_json::Value = serde_json::from_slice(&found.body).unwrap();
            assert_eq!(
                document,
                serde_json::json!({ "resource": "https://api.example.com/mcp",
                    "authorization_servers": ["https://id.example.com"],
                    "scopes_supported": ["files:read", "files:admin"],
                    "bearer_methods_supported": ["header"] })
            );
        }
        for path in ["/mcpx", "/other", "x"] {
            assert!(auth_headers().document(&format!("{PROTECTED_RESOURCE}{path}")).is_none(), "{path}");
        }
    }

    // R-207: the metadata of an authorization server is served if configured.
    #[test]
    fn an_older_document_is_served_when_it_is_given() {
        assert!(auth_headers().document(AUTHORIZATION_SERVER).is_none());
        let mut rules = auth_headers().rules;
        rules.authorization_server_document = Some("{\"issuer\":\"x\"}".into());
        let served = AuthHeaders::new(rules.clone()).unwrap().document(AUTHORIZATION_SERVER).unwrap();
        assert_eq!(served.body, b"{\"issuer\":\"x\"}");
        rules.authorization_server_document = Some("[]".into());
        assert!(AuthHeaders::new(rules).is_err());
    }

    #[test]
    fn what_cannot_be_worded_is_refused() {
        let servers = || vec!["https://id.example.com".to_owned()];
        for resource in [
            "",
            "mcp",
            "ftp://h/mcp",
            "https://",
            "https://h/a b",
            "https://h/#f",
            "https://h/\"",
            "https://h/?q",
        ] {
            assert!(AuthHeaders::new(Auth::new(resource, servers())).is_err(), "{resource}");
        }
        assert!(AuthHeaders::new(Auth::new("http://h", servers())).is_ok());
        assert!(AuthHeaders::new(Auth::new("http://h", [])).is_err());
        let scoped = Auth { required_scopes: vec!["a b".into()], ..Auth::new("http://h", servers()) };
        assert!(AuthHeaders::new(scoped).is_err());
    }
}
