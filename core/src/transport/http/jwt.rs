//! Bearer tokens that are signed JWTs (RFC 9068), verified against the keys of their issuer (a JWKS, RFC 7517).
//!
//! Law: the key decides the algorithm, never the token; only signatures by public keys count.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a host module: keys grow old")]

use super::options::{TokenCheck, Verified, Verifier, Verifying};
use crate::http::Denied;
use crate::principal::Principal;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Fetched keys are asked for again after so long.
const STALE: Duration = Duration::from_secs(600);
/// A token with an unknown key makes them be asked for again, but not more often.
const PAUSE: Duration = Duration::from_secs(30);

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
pub struct JwksError(Box<dyn Error + Send + Sync>);

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

    /// The same with keys that `fetch` gets, now and then: from the issuer's `jwks_uri`, with the author's own client.
    pub fn from_source<F, Fut>(fetch: F, issuer: impl Into<String>, audience: impl Into<String>) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<String>> + Send + 'static,
    {
        let fetch: Fetch = Box::new(move || Box::pin(fetch()));
        Self::new(Source::Fetched(fetch, Mutex::new(None)), issuer.into(), audience.into())
    }

    /// The same with keys from a URL: `https`, or `http` on this machine.
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
        let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
        if !url.starts_with("https://") && !local.iter().any(|start| url.starts_with(start)) {
            return Err(JwksError("the URL must begin with https://".into()));
        }
        Ok(Self::from_source(move || super::fetch::get(url.clone()), issuer, audience))
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

type Fetch = Box<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<String>> + Send>> + Send + Sync>;

enum Source {
    Fixed(Arc<Keys>),
    Fetched(Fetch, Mutex<Option<(Instant, Arc<Keys>)>>),
}

impl Source {
    /// The keys, among them the one that is named, if it can be had.
    async fn keys(&self, kid: Option<&str>) -> Result<Arc<Keys>, Denied> {
        let (fetch, kept) = match self {
            Self::Fixed(keys) => return Ok(keys.clone()),
            Self::Fetched(fetch, kept) => (fetch, kept),
        };
        // Whoever comes while keys are fetched waits for them here.
        let mut kept = kept.lock().await;
        if let Some((at, keys)) = &*kept {
            let age = at.elapsed();
            if age < PAUSE || (age < STALE && kid.is_none_or(|kid| keys.has(kid))) {
                return Ok(keys.clone());
            }
        }
        let fetched = fetch().await.ok().and_then(|text| Keys::parse(&text).ok()).map(Arc::new);
        // Old keys are better than none while the issuer is away.
        let keys = fetched.or_else(|| kept.as_ref().map(|(_, keys)| keys.clone()));
        let keys = keys.ok_or(Denied::Unavailable)?;
        *kept = Some((Instant::now(), keys.clone()));
        Ok(keys)
    }
}

struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl Keys {
    fn parse(jwks: &str) -> Result<Self, JwksError> {
        let set: JwkSet = serde_json::from_str(jwks).map_err(|error| JwksError(error.into()))?;
        let keys: Vec<Key> = set.keys.iter().filter_map(Key::new).collect();
        if keys.is_empty() { Err(JwksError("there is none for signatures".into())) } else { Ok(Self(keys)) }
    }

    fn has(&self, kid: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(kid))
    }

    /// The keys that a token with this header may be signed by.
    fn find<'k>(&'k self, kid: Option<&'k str>, algorithm: Algorithm) -> impl Iterator<Item = &'k Key> {
        self.0.iter().filter(move |key| {
            key.algorithms.contains(&algorithm) && kid.is_none_or(|kid| key.id.as_deref() == Some(kid))
        })
    }
}

impl Key {
    /// `None` if it is not for signatures, or is a shared secret.
    fn new(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        let public = [
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
            Algorithm::ES256,
            Algorithm::ES384,
            Algorithm::EdDSA,
        ];
        let named = common.key_algorithm.map(|algorithm| algorithm.to_string());
        let fits = |algorithm: &Algorithm| {
            algorithm.family() == key.family()
                && named.as_ref().is_none_or(|named| *named == format!("{algorithm:?}"))
        };
        let algorithms: Vec<_> = public.into_iter().filter(fits).collect();
        (!algorithms.is_empty()).then(|| Self { id: common.key_id.clone(), algorithms, key })
    }
}
