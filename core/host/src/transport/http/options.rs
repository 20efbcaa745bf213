//! What an author sets about the HTTP server.

use mcp_resources_engine::http::{Denied, Rules};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use mcp_resources_engine::http::Verified;

/// What an author sets about the HTTP server. Its bounds are in [`Limits`](mcp_resources_engine::limits::Limits).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Where the endpoint is, who may ask, how it answers.
    pub rules: Rules,
    /// Who verifies bearer tokens; needed where [`Rules::auth`] is set.
    pub verifier: Option<Arc<dyn Verifier>>,
    /// The certificate to serve with. Default none: plain HTTP.
    #[cfg(feature = "tls")]
    pub tls: Option<super::Tls>,
}

/// What a verifier gives: see [`Verifier::verify`].
pub type Verifying<'v> = Pin<Box<dyn Future<Output = Result<Verified, Denied>> + Send + 'v>>;

/// Finds out whether a bearer token is good: signature, expiry, issuer, and this server as its audience. Never
/// log the token; it is kept nowhere but as a digest.
pub trait Verifier: Send + Sync + 'static {
    /// Looks at one token. It may wait for another server.
    ///
    /// # Errors
    /// [`Denied`]: it is not good, or that cannot be found out now.
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v>;
}

impl HttpOptions {
    /// With these rules, without tokens and TLS.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions").field("rules", &self.rules).finish_non_exhaustive()
    }
}
