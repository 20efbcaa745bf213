//! The principal that sends a request, and the rights from its verified token.

use crate::now::{Millis, Now};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

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

/// The rights of a principal: the scopes of its token, including implied ones, its groups and its claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Grant {
    scopes: Vec<String>,
    groups: Vec<String>,
    claims: Option<Arc<str>>,
    /// The client that the token was made for.
    client: Option<Arc<str>>,
    derived: Derived,
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

/// A value that a policy has derived from the identity and the groups, so that it is not derived for each URI. A copy with
/// other rights starts without one.
#[derive(Default)]
struct Derived(RwLock<Option<Arc<dyn Any + Send + Sync>>>);

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

    /// Returns a copy with these claims, a JSON object. The claim `groups`, a text or a list of texts, becomes its
    /// [`groups`](Self::groups).
    #[must_use]
    pub fn with_claims(&self, claims: Option<Arc<str>>) -> Arc<Self> {
        let known = claims.as_deref().and_then(|claims| serde_json::from_str::<KnownClaims>(claims).ok());
        let KnownClaims { groups, client_id, azp } = known.unwrap_or_default();
        let groups = groups.map_or_else(|| self.grant.groups.clone(), |groups| groups.0);
        let client = client_id.or(azp).and_then(|client| client.0.into_iter().next()).map(Arc::from);
        let grant = Grant { claims, client, ..Grant::clone(&self.grant) };
        Arc::new(Self { grant: Arc::new(grant), ..self.clone() }).with_groups(groups)
    }

    /// Returns a copy that belongs to these groups. Empty names are left out.
    #[must_use]
    pub fn with_groups(&self, groups: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        groups.retain(|group| !group.is_empty());
        groups.sort_unstable();
        groups.dedup();
        let grant = Grant { groups, ..Grant::clone(&self.grant) };
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

    /// Identity, scopes, groups and granted URIs as one text. Principals for which it differs may get different contents, so
    /// cached results are not shared between them.
    pub(crate) fn authority(&self) -> Cow<'_, str> {
        // Does not occur at the beginning of the short form.
        const LONG: char = '\0';
        let Grant { scopes, groups, uris, .. } = &*self.grant;
        let is_short = scopes.is_empty() && groups.is_empty() && uris.is_none();
        if is_short && !self.id.starts_with(LONG) {
            return Cow::Borrowed(&self.id);
        }
        let mut scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        scopes.sort_unstable();
        let mut text = format!("{LONG}{}:{}{}", self.id.len(), self.id, scopes.join(" "));
        for group in groups {
            text.push_str(&format!("{LONG}{}:{group}", group.len()));
        }
        if let Some(uris) = uris {
            text.push_str(&format!("{LONG}{LONG}{}", uris.text));
        }
        Cow::Owned(text)
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

    /// The groups that it belongs to, sorted: those that its verifier, or the claim `groups` of its token, names.
    pub fn groups(&self) -> &[String] {
        &self.grant.groups
    }

    /// The identifier of the client that its token was made for: the claim `client_id`, or `azp`.
    pub fn client_id(&self) -> Option<&str> {
        self.grant.client.as_deref()
    }

    /// Whether its identity was proven: it is neither the local process nor an anonymous client.
    pub(crate) fn is_named(&self) -> bool {
        self.kind == PrincipalKind::Named
    }

    /// The value that [`Principal::derive`] has kept, if it is a `T`.
    pub(crate) fn derived<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let kept = self.grant.derived.0.read().unwrap_or_else(PoisonError::into_inner);
        kept.clone()?.downcast().ok()
    }

    /// Keeps a value that depends on identity, scopes and groups alone.
    pub(crate) fn derive(&self, value: Arc<dyn Any + Send + Sync>) {
        *self.grant.derived.0.write().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// The claims of its token, a JSON object; `None` without a token, or if its verifier returned none. Tokens of one
    /// principal share cached reads, whatever their claims.
    pub fn claims(&self) -> Option<&str> {
        self.grant.claims.as_deref()
    }
}

/// The claims of a token that mean something here.
#[derive(Default, serde::Deserialize)]
struct KnownClaims {
    groups: Option<ClaimedNames>,
    /// RFC 9068.
    client_id: Option<ClaimedNames>,
    /// OpenID Connect: the authorized party.
    azp: Option<ClaimedNames>,
}

/// One name, or a list of names. Other values are no names.
struct ClaimedNames(Vec<String>);

impl<'de> serde::Deserialize<'de> for ClaimedNames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => vec![text],
            serde_json::Value::Array(all) => {
                all.into_iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        Ok(Self(texts))
    }
}

impl Clone for Derived {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived")
    }
}

/// It is not a part of the identity.
impl PartialEq for Derived {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Derived {}

impl Hash for Derived {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
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

    /// A number that no other network has.
    pub(crate) fn bits(self) -> u64 {
        self.0
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
