//! Bearer tokens that are signed JWTs (RFC 9068), verified with the keys of their issuer (a JWKS, RFC 7517).
//!
//! Law: the key determines the algorithm, never the token; only signatures by public keys are accepted.

use super::jwks::{KeySource, Keys, PUBLIC};
use super::options::{Verified, Verifier, Verifying};
use crate::transport::document;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use mcp_resources_engine::http::DeniedToken;
use mcp_resources_engine::now::Millis;
use serde::Deserialize;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The prefix of a client's identity, in a token without a subject.
const CLIENT: &str = "client_id:";

/// Verifies signed JWTs: type (`typ`: none, `JWT` or `at+jwt`), signature, `exp`, `nbf`, `iss` and `aud`. The principal
/// is the token's `sub`; without one, `client_id:` followed by its `client_id`. A `sub` with this prefix is refused.
/// The scopes are those of `scope` (or `scp`).
pub struct JwtVerifier {
    source: KeySource,
    issuer: String,
    audiences: Vec<String>,
    leeway: u64,
    algorithms: Vec<Algorithm>,
}

/// An invalid set of keys.
#[derive(Debug)]
pub struct JwksError(pub(super) Box<dyn Error + Send + Sync>);

impl fmt::Display for JwksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys cannot be used: {}", self.0)
    }
}

impl Error for JwksError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl JwtVerifier {
    /// Verifies tokens of `issuer` for `audience` (usually this server's canonical URL), signed by one of the keys in
    /// `jwks`, a JSON text.
    ///
    /// # Errors
    /// [`JwksError`] if it is not a JWKS, or has no key to verify signatures with.
    pub fn from_jwks(
        jwks: &str,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, JwksError> {
        let keys = Keys::parse(jwks)?;
        Ok(Self::new(KeySource::Fixed(Arc::new(keys)), issuer.into(), audience.into()))
    }

    /// Like [`JwtVerifier::from_jwks`], with keys from a file.
    ///
    /// # Errors
    /// As [`JwtVerifier::from_jwks`]; also if the file cannot be read.
    pub fn from_jwks_file(
        path: impl AsRef<Path>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, JwksError> {
        let text = document::text(path.as_ref()).map_err(|reason| JwksError(reason.into()))?;
        Self::from_jwks(&text, issuer, audience)
    }

    /// Like [`JwtVerifier::from_jwks`], with keys fetched by `fetch`: from the issuer's `jwks_uri`, with an HTTP client
    /// of your own. It is called for the first token, then every ten minutes, and for a token with an unknown key, but
    /// at most twice a minute. If it fails, the known keys are still used; without any, tokens are answered with 503,
    /// and it is called again after two seconds.
    pub fn from_source<F, Fut>(fetch: F, issuer: impl Into<String>, audience: impl Into<String>) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<String>> + Send + 'static,
    {
        Self::new(KeySource::from_future(fetch), issuer.into(), audience.into())
    }

    /// Like [`JwtVerifier::from_jwks`], with keys from a URL: `https`, or `http` on this machine. Redirects are not
    /// followed; an answer may take ten seconds and have 1 MiB. Only status 200 is accepted. See
    /// [`JwtVerifier::from_source`] for the times of requests.
    ///
    /// # Errors
    /// [`JwksError`] for any other URL.
    #[cfg(feature = "auth-fetch")]
    pub fn from_jwks_url(
        url: impl Into<String>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, JwksError> {
        let url: Arc<str> = url.into().into();
        if !super::fetch::is_safe(&url) {
            return Err(JwksError("the URL must begin with https://".into()));
        }
        let source = KeySource::fetched(Box::new(move |delivery| super::fetch::start(&url, delivery)));
        Ok(Self::new(source, issuer.into(), audience.into()))
    }

    fn new(source: KeySource, issuer: String, audience: String) -> Self {
        Self { source, issuer, audiences: vec![audience], leeway: 60, algorithms: PUBLIC.to_vec() }
    }

    /// Adds another accepted audience.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the accepted signature algorithms, such as `ES256`. Default: all that fit the key.
    ///
    /// # Errors
    /// [`JwksError`] if one is unknown, is `none`, or signs with a shared secret; or if the list is empty.
    pub fn algorithms<A: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = A>,
    ) -> Result<Self, JwksError> {
        self.algorithms = names.into_iter().map(|name| algorithm(name.as_ref())).collect::<Result<_, _>>()?;
        if self.algorithms.is_empty() { Err(JwksError("no algorithm is named".into())) } else { Ok(self) }
    }

    /// Sets the tolerated difference between the clocks of issuer and server, in seconds. Default 60.
    pub fn leeway(mut self, seconds: u64) -> Self {
        self.leeway = seconds;
        self
    }

    async fn check(&self, token: &str) -> Result<Verified, DeniedToken> {
        let header = decode_header(token).map_err(|_| DeniedToken::Invalid)?;
        if !is_acceptable(&header) || !self.algorithms.contains(&header.alg) {
            return Err(DeniedToken::Invalid);
        }
        let keys = self.source.keys(header.kid.as_deref()).await?;
        let mut validation = Validation::new(header.alg);
        validation.set_audience(&self.audiences);
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["aud", "iss"]);
        // Times are compared below, with fractions.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let mut fitting = keys.find(header.kid.as_deref(), header.alg);
        let claims = fitting.find_map(|key| decode::<Claims>(token, &key.key, &validation).ok());
        let verified = claims.ok_or(DeniedToken::Invalid)?.claims.verified(self.leeway, seconds_now())?;
        Ok(verified.claims(payload(token)))
    }
}

fn algorithm(name: &str) -> Result<Algorithm, JwksError> {
    let known = PUBLIC.into_iter().find(|known| format!("{known:?}") == name);
    known.ok_or_else(|| {
        let names: Vec<_> = PUBLIC.iter().map(|known| format!("{known:?}")).collect();
        JwksError(format!("unexpected algorithm {name:?}; expected one of {}", names.join(", ")).into())
    })
}

/// Whether it is the header of an access token (RFC 9068, section 4). A header with critical extensions (`crit`, RFC
/// 7515, section 4.1.11) is refused, because none is implemented.
fn is_acceptable(header: &Header) -> bool {
    const TYPES: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];
    let fits = |typ: &String| TYPES.iter().any(|known| known.eq_ignore_ascii_case(typ));
    header.crit.is_none() && header.typ.as_ref().is_none_or(fits)
}

/// The claims in the issuer's own JSON.
fn payload(token: &str) -> Option<Arc<str>> {
    let bytes = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    String::from_utf8(bytes).ok().map(Into::into)
}

fn seconds_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Verifier for JwtVerifier {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(self.check(token))
    }
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtVerifier").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Times are in seconds since 1970 and may have fractions (RFC 7519, section 2).
#[derive(Deserialize)]
struct Claims {
    /// Checked before; it must be one issuer, not a list with others (RFC 7519, section 4.1.1).
    #[serde(rename = "iss")]
    _iss: String,
    sub: Option<String>,
    client_id: Option<String>,
    exp: f64,
    nbf: Option<f64>,
    /// Not used, but must be a valid time.
    #[serde(rename = "iat")]
    _iat: Option<f64>,
    #[serde(default)]
    scope: ScopeClaim,
    /// The name that some issuers use instead.
    #[serde(default)]
    scp: ScopeClaim,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum ScopeClaim {
    #[default]
    None,
    Text(String),
    List(Vec<String>),
}

impl ScopeClaim {
    fn names(self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Text(text) => text.split_ascii_whitespace().map(String::from).collect(),
            Self::List(list) => list,
        }
    }
}

impl Claims {
    fn verified(self, leeway: u64, now: f64) -> Result<Verified, DeniedToken> {
        let leeway = leeway as f64;
        if self.exp + leeway <= now || self.nbf.is_some_and(|nbf| nbf > now + leeway) {
            return Err(DeniedToken::Invalid);
        }
        let subject = identity(self.sub, self.client_id).ok_or(DeniedToken::Invalid)?;
        let scopes = self.scope.names().into_iter().chain(self.scp.names());
        // Not negative, because `now` is not; the cast saturates.
        let expires = ((self.exp + leeway) * 1_000.0) as Millis;
        Ok(Verified::new(subject).scopes(scopes).expires(expires))
    }
}

/// The subject, or the client in a token without one. A subject can never be taken for a client of the same name.
fn identity(subject: Option<String>, client: Option<String>) -> Option<String> {
    match (subject, client) {
        (Some(subject), _) => Some(subject).filter(|name| !name.is_empty() && !name.starts_with(CLIENT)),
        (None, client) => client.filter(|name| !name.is_empty()).map(|name| format!("{CLIENT}{name}")),
    }
}
