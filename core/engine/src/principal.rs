//! The principal that sends a request, and the rights from its verified token.

use crate::now::{Millis, Now};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

/// The identity of HTTP clients without a token. No token can have it.
pub const ANONYMOUS: &str = "anonymous";

/// The sender of requests: the subject of a verified token, an HTTP client without one, or the local process on stdio.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    id: Arc<str>,
    kind: PrincipalKind,
    grant: Arc<Grant>,
    expires: Option<Millis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PrincipalKind {
    Local,
    Named,
    /// With the client's network, if the runtime knows its address.
    Anonymous(Option<Network>),
}

/// The addresses that are attributed to one client: an IPv4 address, or 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(u64);

/// The rights of a principal: the scopes of its token, including implied ones, and its claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Grant {
    scopes: Vec<String>,
    claims: Option<Arc<str>>,
    uris: Option<Arc<GrantedUris>>,
}

/// The URIs that a verifier grants a principal, compiled by the guard
/// ([`granted_uris`](crate::guard::granted_uris)). Equal texts are equal grants.
pub struct GrantedUris {
    text: Box<str>,
    compiled: Box<dyn Any + Send + Sync>,
}

impl GrantedUris {
    pub(crate) fn new(text: String, compiled: Box<dyn Any + Send + Sync>) -> Arc<Self> {
        Arc::new(Self { text: text.into(), compiled })
    }

    pub(crate) fn compiled(&self) -> &(dyn Any + Send + Sync) {
        &*self.compiled
    }
}

impl PartialEq for GrantedUris {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for GrantedUris {}

impl Hash for GrantedUris {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for GrantedUris {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GrantedUris").field(&self.text).finish()
    }
}

impl Principal {
    /// The peer at the other end of a pipe. It runs as the same user as the server.
    pub fn local() -> Arc<Self> {
        Self::new("")
    }

    /// A principal with a verified identity and no scopes; the local process if `id` is empty. Cursors and request
    /// states are bound to `id`.
    pub fn new(id: impl Into<Arc<str>>) -> Arc<Self> {
        let id = id.into();
        let kind = if id.is_empty() { PrincipalKind::Local } else { PrincipalKind::Named };
        Arc::new(Self { id, kind, grant: Arc::default(), expires: None })
    }

    /// An HTTP client without a token, where none is required. Its identity is [`ANONYMOUS`]. Its requests are counted
    /// by `address`, if known.
    pub fn anonymous(address: Option<IpAddr>) -> Arc<Self> {
        static UNKNOWN: LazyLock<Arc<Principal>> = LazyLock::new(|| {
            let id = ANONYMOUS.into();
            let grant = Arc::default();
            Arc::new(Principal { id, kind: PrincipalKind::Anonymous(None), grant, expires: None })
        });
        match address {
            None => UNKNOWN.clone(),
            Some(address) => {
                let kind = PrincipalKind::Anonymous(Some(Network::from_address(address)));
                Arc::new(Self { kind, ..Principal::clone(&UNKNOWN) })
            }
        }
    }

    /// Returns a copy with these scopes.
    #[must_use]
    pub fn with_scopes(&self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        let scopes = scopes.into_iter().map(Into::into).collect();
        let grant = Grant { scopes, ..Grant::clone(&self.grant) };
        Arc::new(Self { grant: Arc::new(grant), ..self.clone() })
    }

    /// Returns a copy with these claims, a JSON object.
    #[must_use]
    pub fn with_claims(&self, claims: Option<Arc<str>>) -> Arc<Self> {
        let grant = Grant { claims, ..Grant::clone(&self.grant) };
        Arc::new(Self { grant: Arc::new(grant), ..self.clone() })
    }

    /// Returns a copy that sees only what these globs grant, in addition to the policy.
    #[must_use]
    pub fn with_uris(&self, uris: Option<Arc<GrantedUris>>) -> Arc<Self> {
        let grant = Grant { uris, ..Grant::clone(&self.grant) };
        Arc::new(Self { grant: Arc::new(grant), ..self.clone() })
    }

    /// The URIs that its verifier grants; `None` if it leaves that to the policy.
    pub(crate) fn uris(&self) -> Option<&Arc<GrantedUris>> {
        self.grant.uris.as_ref()
    }

    /// Returns a copy that is valid until `expires`, in milliseconds since 1970-01-01T00:00:00Z; `None` is without an
    /// end. Runtimes set this from the token, so that a stream ends when the token that opened it expires.
    #[must_use]
    pub fn with_expiry(&self, expires: Option<Millis>) -> Arc<Self> {
        Arc::new(Self { expires, ..self.clone() })
    }

    /// The expiry on the clock of [`Now::tick`], for timers.
    pub(crate) fn expires_at(&self, now: Now) -> Option<Millis> {
        self.expires.map(|expires| now.tick.saturating_add(expires.saturating_sub(now.unix)))
    }

    /// The expiry of its token, in milliseconds since 1970-01-01T00:00:00Z. Default `None`: never.
    pub fn expires(&self) -> Option<Millis> {
        self.expires
    }

    /// Identity, scopes and granted URIs as one text. Principals for which it differs may get different contents, so cached
    /// results are not shared between them.
    pub(crate) fn authority(&self) -> Cow<'_, str> {
        // Does not occur at the beginning of the short form.
        const LONG: char = '\0';
        let scopes = &self.grant.scopes;
        if scopes.is_empty() && !self.id.starts_with(LONG) && self.grant.uris.is_none() {
            return Cow::Borrowed(&self.id);
        }
        let mut scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        scopes.sort_unstable();
        let uris = self.grant.uris.as_ref().map_or("", |uris| &uris.text);
        Cow::Owned(format!("{LONG}{}:{}{}{LONG}{uris}", self.id.len(), self.id, scopes.join(" ")))
    }

    /// Whether it is the same principal as `other` with the same scopes and claims. The end of its token and its address
    /// do not matter.
    pub(crate) fn has_rights_of(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.id == other.id && (Arc::ptr_eq(&self.grant, &other.grant) || self.grant == other.grant))
    }

    /// Whether its token came with rights of its own, such as scopes.
    pub(crate) fn has_grant(&self) -> bool {
        *self.grant != Grant::default()
    }

    /// Whether it is the local process.
    pub fn is_local(&self) -> bool {
        self.kind == PrincipalKind::Local
    }

    /// Whether it is an HTTP client without a token.
    pub fn is_anonymous(&self) -> bool {
        matches!(self.kind, PrincipalKind::Anonymous(_))
    }

    /// The network of an anonymous client; `None` for other principals, and if the address is unknown.
    pub fn network(&self) -> Option<Network> {
        match self.kind {
            PrincipalKind::Anonymous(network) => network,
            PrincipalKind::Local | PrincipalKind::Named => None,
        }
    }

    /// The identity; empty for the local process, [`ANONYMOUS`] for an HTTP client without a token.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The scopes of its token.
    pub fn scopes(&self) -> &[String] {
        &self.grant.scopes
    }

    /// The claims of its token, a JSON object; `None` without a token, or if its verifier returned none. Tokens of one
    /// principal share cached reads, whatever their claims.
    pub fn claims(&self) -> Option<&str> {
        self.grant.claims.as_deref()
    }
}

impl Network {
    /// The network of an address. An IPv4 address has the same network in IPv6 notation.
    pub fn from_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            // No client has an IPv6 address in this range, so the two kinds do not collide.
            IpAddr::V4(address) => Self(u64::from(address.to_bits()) | 1 << 32),
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str) -> Network {
        Network::from_address(address.parse().unwrap())
    }

    #[test]
    fn one_client_owns_64_bits_of_ipv6() {
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_ne!(network("::1"), network("127.0.0.1"));
    }

    // rights that a policy grants the local process are not granted to HTTP clients.
    #[test]
    fn an_anonymous_client_is_not_the_local_process() {
        let local = Principal::local();
        let client = Principal::anonymous(None);
        assert!(local.is_local() && !local.is_anonymous());
        assert!(client.is_anonymous() && !client.is_local());
        assert_ne!(local.authority(), client.authority());
        let known = Principal::anonymous(Some("192.0.2.1".parse().unwrap()));
        assert_eq!((known.id(), known.authority()), (client.id(), client.authority()));
        assert!(known.network().is_some() && client.network().is_none());
    }
}
