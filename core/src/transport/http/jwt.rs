//! Bearer tokens that are signed JWTs (RFC 9068), verified against the keys of their issuer (a JWKS, RFC 7517).
//!
//! Law: the key decides the algorithm, never the token; only signatures by public keys count.
#![expect(clippy::disallowed_methods, reason = "a host module: keys come from files too")]

use super::jwks::{Fetch, Keys, Source};
use super::options::{TokenCheck, Verified, Verifier, Verifying};
use crate::http::Denied;
use crate::principal::Principal;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Verifies signed JWTs: signature, `exp`, `nbf`, `iss` and `aud`. The principal is the token's `sub`, the scopes are
/// those of `scope` (or `scp`).
pub struct JwtVerifier {
    source: Source,
    issuer: String,
    audiences: Vec<String>,
    leeway: u64,
}

/// What is wrong with a set of keys.
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
    /// Tokens of `issuer` for `audience` (this server's canonical URL, as a rule), signed by one of the keys in `jwks`,
    /// a JSON text.
    ///
    /// # Errors
    /// [`JwksError`] if it is no JWKS, or has no key to verify signatures with.
    pub fn from_jwks(
        jwks: &str,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, JwksError> {
        let keys = Keys::parse(jwks)?;
        Ok(Self::new(Source::Fixed(Arc::new(keys)), issuer.into(), audience.into()))
    }

    /// The same with the keys from a file.
    ///
    /// # Errors
    /// As [`JwtVerifier::from_jwks`]; or the file cannot be read.
    pub fn from_jwks_file(
        path: impl AsRef<Path>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, JwksError> {
        let text = std::fs::read_to_string(path).map_err(|error| JwksError(error.into()))?;
        Self::from_jwks(&text, issuer, audience)
    }

    /// The same with keys that `fetch` gets: from the issuer's `jwks_uri`, with the author's own client. It is called for the
    /// first token, then every ten minutes, and for a token of an unknown key, but at most twice a minute. While it fails,
    /// the keys that there are go on being used; without any, tokens are answered with 503, and it is called again after
    /// two seconds.
    pub fn from_source<F, Fut>(fetch: F, issuer: impl Into<String>, audience: impl Into<String>) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<String>> + Send + 'static,
    {
        let fetch: Fetch = Box::new(move || Box::pin(fetch()));
        Self::new(Source::fetched(fetch), issuer.into(), audience.into())
    }

    /// The same with keys from a URL: `https`, or `http` on this machine. A redirect is not followed; an answer has ten seconds
    /// and at most 1 MiB. Only an answer with status 200 counts. See [`JwtVerifier::from_source`] for how often it is asked.
    ///
    /// # Errors
    /// Another sort of URL.
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
        Ok(Self::from_source(
            move || super::fetch::get(url.clone(), super::fetch::PATIENCE),
            issuer,
            audience,
        ))
    }

    fn new(source: Source, issuer: String, audience: String) -> Self {
        Self { source, issuer, audiences: vec![audience], leeway: 60 }
    }

    /// Another audience that is this server.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// How far the clocks of issuer and server may be apart, in seconds. Default 60.
    pub fn leeway(mut self, seconds: u64) -> Self {
        self.leeway = seconds;
        self
    }

    async fn check(&self, token: &str) -> Result<TokenCheck, Denied> {
        let header = decode_header(token).map_err(|_| Denied::Invalid)?;
        let keys = self.source.keys(header.kid.as_deref()).await?;
        let fitting = keys.find(header.kid.as_deref(), header.alg);
        let claims = fitting.filter_map(|key| {
            let mut validation = Validation::new(header.alg);
            validation.leeway = self.leeway;
            validation.validate_nbf = true;
            validation.set_audience(&self.audiences);
            validation.set_issuer(&[&self.issuer]);
            validation.set_required_spec_claims(&["exp", "aud", "iss"]);
            decode::<Claims>(token, &key.key, &validation).ok()
        });
        let claims = { claims }.next().ok_or(Denied::Invalid)?.claims;
        claims.verified(self.leeway)
    }
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

#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    client_id: Option<String>,
    exp: u64,
    #[serde(default)]
    scope: Scope,
    /// What some issuers write instead.
    #[serde(default)]
    scp: Scope,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Scope {
    #[default]
    None,
    Text(String),
    List(Vec<String>),
}

impl Scope {
    fn words(self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Text(text) => text.split_ascii_whitespace().map(String::from).collect(),
            Self::List(list) => list,
        }
    }
}

impl Claims {
    /// A token without a subject stands for the client itself.
    fn verified(self, leeway: u64) -> Result<TokenCheck, Denied> {
        let subject = self.sub.or(self.client_id).filter(|subject| !subject.is_empty());
        let principal = Principal::new(subject.ok_or(Denied::Invalid)?);
        let scopes = self.scope.words().into_iter().chain(self.scp.words()).collect();
        let expires = self.exp.saturating_add(leeway).saturating_mul(1_000);
        Ok(TokenCheck { verified: Verified { principal, scopes }, expires: Some(expires) })
    }
}
