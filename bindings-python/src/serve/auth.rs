//! Verified tokens, and the core's own verifiers of tokens.

use mcp_resources_engine::http::{DeniedToken, Verified};
use mcp_resources_runtime::transport::http as core;
use mcp_resources_runtime::transport::http::{JwtVerifier, StaticTokens, Verifier};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A verified token: subject, scopes, expiry in milliseconds since 1970, and claims as JSON text.
#[derive(FromPyObject, IntoPyObject)]
pub(crate) struct VerifiedParts(
    String,
    Vec<String>,
    Option<u64>,
    Option<String>,
    Option<Vec<String>>,
    Vec<String>,
);

/// A token, and what it stands for.
#[derive(FromPyObject)]
struct ListedToken {
    #[pyo3(item(0))]
    token: String,
    #[pyo3(item(1))]
    verified: VerifiedParts,
}

/// A token verifier of the core.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct TokenVerifier(Arc<dyn Verifier>);

/// One token that is being verified.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct TokenCheck(core::TokenCheck);

#[pymethods]
impl TokenVerifier {
    /// Knows these tokens.
    #[staticmethod]
    fn listed(tokens: Vec<ListedToken>) -> PyResult<Self> {
        let known = tokens.into_iter().map(|listed| (listed.token, Verified::from(listed.verified)));
        Ok(Self(Arc::new(StaticTokens::new(known).map_err(unusable)?)))
    }

    /// Verifies JWTs of `issuer` with `keys`, a JWKS as JSON text, or with those at the URL `jwks_url`.
    #[staticmethod]
    fn jwt(
        issuer: String,
        audiences: Vec<String>,
        keys: Option<String>,
        jwks_url: Option<String>,
        algorithms: Option<Vec<String>>,
        leeway: u64,
    ) -> PyResult<Self> {
        let mut audiences = audiences.into_iter();
        let first = audiences.next().ok_or_else(|| PyValueError::new_err("there is no audience"))?;
        let made = match (keys, jwks_url) {
            (Some(jwks), None) => JwtVerifier::from_jwks(&jwks, issuer, first),
            (None, Some(url)) => JwtVerifier::from_jwks_url(url, issuer, first),
            _ => return Err(PyValueError::new_err("expected either keys or jwks_url")),
        };
        let made = audiences.fold(made.map_err(unusable)?.leeway(leeway), JwtVerifier::audience);
        let made = match algorithms {
            Some(names) => made.algorithms(names).map_err(unusable)?,
            None => made,
        };
        Ok(Self(Arc::new(made)))
    }

    /// Begins to verify a token.
    fn check(&self, token: String) -> TokenCheck {
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

#[pymethods]
impl TokenCheck {
    /// Returns whether the verification has ended; if not, `waker` is called on any thread when to ask again. At the
    /// end: the token, if it is valid; else whether it could not be verified.
    fn poll(&self, waker: Py<PyAny>) -> (bool, Option<VerifiedParts>, bool) {
        let waker = Waker::from(Arc::new(Calls(waker)));
        match self.0.poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => (false, None, false),
            Poll::Ready(Ok(verified)) => (true, Some(verified.into()), false),
            Poll::Ready(Err(why)) => (true, None, why == DeniedToken::Unavailable),
        }
    }
}

impl From<VerifiedParts> for Verified {
    fn from(VerifiedParts(subject, scopes, expires, claims, allow, deny): VerifiedParts) -> Self {
        let mut verified = Self::new(subject).scopes(scopes).expires(expires).claims(claims.map(Arc::from));
        verified.allow = allow;
        verified.deny = deny;
        verified
    }
}

impl From<Verified> for VerifiedParts {
    fn from(verified: Verified) -> Self {
        let Verified { principal, scopes, expires, claims, allow, deny, .. } = verified;
        let claims = claims.map(|claims| (*claims).to_owned());
        Self(principal.id().to_owned(), scopes, expires, claims, allow, deny)
    }
}

/// A waker that calls a function.
struct Calls(Py<PyAny>);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        Python::attach(|py| {
            // The loop is closed: no answer is expected.
            let _ = self.0.call0(py);
        });
    }
}

fn unusable(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
