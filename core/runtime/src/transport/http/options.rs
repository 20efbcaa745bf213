//! The options of the HTTP server.

use super::HttpServer;
use mcp_resources_engine::http::{DeniedToken, Rules};
use mcp_resources_engine::principal::Principal;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use mcp_resources_engine::http::Verified;

/// The options of the HTTP server. Its limits are in [`Limits`](mcp_resources_engine::limits::Limits).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The endpoint's paths, the clients that may use it, and the form of answers.
    pub rules: Rules,
    /// The verifier of bearer tokens; required if [`Rules::auth`] is set.
    pub verifier: Option<Arc<dyn Verifier>>,
    /// The proxy that says who a client is. Not together with [`Rules::auth`]. Default none.
    pub identity: Option<super::ProxyIdentity>,
    /// Chooses another endpoint by the principal of a request, for a program whose clients see different servers: paths,
    /// tokens and limits of HTTP stay those of this one. `None` is this endpoint itself. Default none.
    pub route: Option<RouteByPrincipal>,
    /// The certificate to serve with. Default none: plain HTTP.
    #[cfg(feature = "tls")]
    pub tls: Option<super::Tls>,
}

/// Chooses an endpoint by the principal of a request: see [`HttpOptions::route`].
pub type RouteByPrincipal = Arc<dyn Fn(&Principal) -> Option<Arc<HttpServer>> + Send + Sync>;

/// The future of a verification: see [`Verifier::verify`].
pub type Verifying<'v> = Pin<Box<dyn Future<Output = Result<Verified, DeniedToken>> + Send + 'v>>;

/// Verifies bearer tokens: signature, expiry, issuer, and this server as the audience. Never log a token
///; only its digest is stored.
pub trait Verifier: Send + Sync + 'static {
    /// Verifies one token. May wait for another server.
    ///
    /// # Errors
    /// [`DeniedToken`] if the token is invalid, or cannot be verified now.
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v>;
}

impl HttpOptions {
    /// Options with these rules, without tokens and TLS.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions").field("rules", &self.rules).finish_non_exhaustive()
    }
}
