//! Verified tokens, and the core's own verifiers of tokens.

use crate::values::error::unusable;
use crate::values::spelling::number;
use mcp_resources_engine::http::{DeniedToken, Verified};
use mcp_resources_runtime::transport::http as core;
use mcp_resources_runtime::transport::http::{JwtVerifier, StaticTokens, Verifier};
use napi::bindgen_prelude::*;
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A verified token.
#[napi(object)]
pub struct VerifiedFields {
    /// The subject of the token.
    pub subject: String,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: Option<f64>,
    /// Its claims as JSON text.
    pub claims: Option<String>,
    /// Globs over URIs: it sees only what matches one of them.
    pub allow: Option<Vec<String>>,
    /// Globs over URIs that it does not see.
    pub deny: Vec<String>,
}

/// A listed token.
#[napi(object, object_to_js = false)]
pub struct TokenFields {
    /// The token.
    pub token: String,
    /// The verified token.
    pub verified: VerifiedFields,
}

/// The requirements for JWTs, and the source of their keys.
#[napi(object, object_to_js = false)]
pub struct JwtFields {
    /// Their `iss`.
    pub issuer: String,
    /// One of these is their `aud`.
    pub audiences: Vec<String>,
    /// The keys, a JWKS as JSON text.
    pub keys: Option<String>,
    /// The URL of the keys.
    pub jwks_url: Option<String>,
    /// The accepted algorithms.
    pub algorithms: Option<Vec<String>>,
    /// Maximum difference of the clocks, in seconds.
    pub leeway: u32,
}

/// The result of a verification.
#[napi(object, object_from_js = false)]
pub struct TokenResult {
    /// Whether to ask again when the waker is called.
    pub pending: bool,
    /// The verified token, if it is valid.
    pub verified: Option<VerifiedFields>,
    /// Whether it could not be found out.
    pub unavailable: bool,
}

/// A token verifier of the core.
#[napi]
pub struct TokenVerifier(Arc<dyn Verifier>);

/// One token that is being verified.
#[napi]
pub struct TokenCheck(core::TokenCheck);

#[napi]
impl TokenVerifier {
    /// Knows these tokens.
    #[napi(catch_unwind, factory)]
    pub fn listed(tokens: Vec<TokenFields>) -> Result<Self> {
        let known = tokens.into_iter().map(|entry| (entry.token, Verified::from(entry.verified)));
        Ok(Self(Arc::new(StaticTokens::new(known).map_err(refused)?)))
    }

    /// Verifies JWTs.
    #[napi(catch_unwind, factory)]
    pub fn jwt(fields: JwtFields) -> Result<Self> {
        let JwtFields { issuer, audiences, keys, jwks_url, algorithms, leeway } = fields;
        let mut audiences = audiences.into_iter();
        let first = audiences.next().ok_or_else(|| unusable("there is no audience".into()))?;
        let made = match (keys, jwks_url) {
            (Some(jwks), None) => JwtVerifier::from_jwks(&jwks, issuer, first),
            (None, Some(url)) => JwtVerifier::from_jwks_url(url, issuer, first),
            _ => return Err(unusable("expected either keys or jwksUrl".into())),
        };
        let made = audiences.fold(made.map_err(refused)?.leeway(leeway.into()), JwtVerifier::audience);
        let made = match algorithms {
            Some(names) => made.algorithms(names).map_err(refused)?,
            None => made,
        };
        Ok(Self(Arc::new(made)))
    }

    /// Begins to verify a token.
    #[napi(catch_unwind)]
    pub fn check(&self, token: String) -> TokenCheck {
        TokenCheck(core::TokenCheck::new(self.0.clone(), token))
    }
}

impl From<Arc<dyn Verifier>> for TokenVerifier {
    fn from(verifier: Arc<dyn Verifier>) -> Self {
        Self(verifier)
    }
}

impl TokenVerifier {
    pub(crate) fn shared(&self) -> Arc<dyn Verifier> {
        self.0.clone()
    }
}

#[napi]
impl TokenCheck {
    /// Returns the result, or registers `waker`, which is called when this should be called again.
    #[napi(catch_unwind)]
    pub fn poll(&self, waker: Function<'_, (), ()>) -> Result<TokenResult> {
        // Most tokens are verified at once: no function is made then that other threads could call.
        let mut found = self.0.poll(&mut Context::from_waker(Waker::noop()));
        if found.is_pending() {
            found = self.0.poll(&mut Context::from_waker(&calling(&waker)?));
        }
        let Poll::Ready(found) = found else {
            return Ok(TokenResult { pending: true, verified: None, unavailable: false });
        };
        let unavailable = found.as_ref().is_err_and(|why| *why == DeniedToken::Unavailable);
        Ok(TokenResult { pending: false, verified: found.ok().map(VerifiedFields::from), unavailable })
    }
}

/// A waker that calls `function`, from any thread.
fn calling(function: &Function<'_, (), ()>) -> Result<Waker> {
    let function = function.build_threadsafe_function::<()>().build()?;
    Ok(Waker::from(Arc::new(Calls(Box::new(move || {
        let _ = function.call((), ThreadsafeFunctionCallMode::NonBlocking);
    })))))
}

/// See [`calling`].
struct Calls(Box<dyn Fn() + Send + Sync>);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

impl From<VerifiedFields> for Verified {
    fn from(fields: VerifiedFields) -> Self {
        let VerifiedFields { subject, scopes, expires_ms, claims, allow, deny } = fields;
        // A cast saturates: what is negative has expired.
        let expires = expires_ms.map(|expires| expires as u64);
        let mut verified = Self::new(subject).scopes(scopes).expires(expires).claims(claims.map(Arc::from));
        verified.allow = allow;
        verified.deny = deny;
        verified
    }
}

impl From<Verified> for VerifiedFields {
    fn from(verified: Verified) -> Self {
        let Verified { principal, scopes, expires, claims, allow, deny, .. } = verified;
        Self {
            subject: principal.id().to_owned(),
            scopes,
            expires_ms: expires.map(number),
            claims: claims.map(|claims| (*claims).to_owned()),
            allow,
            deny,
        }
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    unusable(error.to_string())
}
