//! The identity of clients behind a reverse proxy that does the login, and says in a header who they are.
//!
//! Law: a header counts only if the connection comes from the proxy; every other connection is refused.

use hyper::HeaderMap;
use hyper::StatusCode;
use hyper::header::HeaderName;
use ipnet::IpNet;
use mcp_resources_engine::http::{RulesError, Verified};
use mcp_resources_engine::principal::{ANONYMOUS, Principal};
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum length of a name or of a list of groups in a header, in bytes.
const MOST: usize = 4_096;

/// A reverse proxy that does the login.
///
/// Requests of other addresses get 403, and those without a name 401, except for the path of health checks. The proxy must
/// remove the headers from what clients send, and set them itself.
///
/// ```
/// use mcp_resources::ProxyIdentity;
///
/// let proxy = ProxyIdentity::new("X-User", ["10.0.0.0/8"])?.groups("X-Groups")?;
/// # Ok::<(), mcp_resources::RulesError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProxyIdentity {
    header: HeaderName,
    groups: Option<HeaderName>,
    from: Vec<IpNet>,
    takes_local_sockets: bool,
}

/// A refused request: its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedIdentity {
    /// It does not come from the proxy.
    OtherAddress,
    /// The proxy says no name, or more than one.
    NoName,
}

impl RefusedIdentity {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::OtherAddress => StatusCode::FORBIDDEN,
            Self::NoName => StatusCode::UNAUTHORIZED,
        }
    }
}

impl ProxyIdentity {
    /// The name `unix` among the addresses: connections over a Unix socket.
    pub const UNIX: &str = "unix";

    /// Takes the name of a principal from `header`, in requests from the addresses `from`: `10.0.0.1`, `10.0.0.0/8`,
    /// `fd00::/8`, or [`ProxyIdentity::UNIX`].
    ///
    /// # Errors
    /// [`RulesError`] if the header is no name of one, an address is none, or there is no address.
    pub fn new<A: AsRef<str>>(header: &str, from: impl IntoIterator<Item = A>) -> Result<Self, RulesError> {
        let mut all = Vec::new();
        let mut takes_local_sockets = false;
        for text in from {
            match text.as_ref() {
                Self::UNIX => takes_local_sockets = true,
                text => all.push(network(text)?),
            }
        }
        if all.is_empty() && !takes_local_sockets {
            return Err(RulesError::new("identity.from", "the proxy's addresses, such as [\"10.0.0.0/8\"]"));
        }
        Ok(Self { header: name("identity.header", header)?, groups: None, from: all, takes_local_sockets })
    }

    /// Takes the groups of the principal from `header`: names, separated by commas or spaces. They are its scopes too.
    ///
    /// # Errors
    /// [`RulesError`] if it is no name of a header.
    pub fn groups(mut self, header: &str) -> Result<Self, RulesError> {
        self.groups = Some(name("identity.groups", header)?);
        Ok(self)
    }

    /// The principal of a request. `client` is the address of the connection, `None` on a Unix socket.
    pub(super) fn identify(
        &self,
        client: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<Verified, RefusedIdentity> {
        let is_proxy = match client.map(|address| address.to_canonical()) {
            Some(address) => self.from.iter().any(|network| network.contains(&address)),
            None => self.takes_local_sockets,
        };
        if !is_proxy {
            return Err(RefusedIdentity::OtherAddress);
        }
        let name = only(headers, &self.header).filter(|name| !name.is_empty() && *name != ANONYMOUS);
        let name = name.ok_or(RefusedIdentity::NoName)?;
        let groups = match &self.groups {
            None => "",
            Some(header) if !headers.contains_key(header) => "",
            // Two lists could be one of the proxy and one of the client.
            Some(header) => only(headers, header).ok_or(RefusedIdentity::NoName)?,
        };
        let groups: Vec<&str> = groups.split([',', ' ']).filter(|group| !group.is_empty()).collect();
        Ok(Verified::client(Principal::new(name).with_scopes(groups.iter().copied()).with_groups(groups)))
    }
}

/// The only value of a header, if it is a text without controls.
fn only<'h>(headers: &'h HeaderMap, header: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(header).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    // Names of other scripts are UTF-8 in such headers.
    let text = std::str::from_utf8(value.as_bytes()).ok()?.trim();
    (text.len() <= MOST && !text.chars().any(char::is_control)).then_some(text)
}

fn name(field: &'static str, header: &str) -> Result<HeaderName, RulesError> {
    HeaderName::from_str(header).map_err(|_| RulesError::new(field, "the name of a header, such as X-User"))
}

fn network(text: &str) -> Result<IpNet, RulesError> {
    let parsed = match text.parse::<IpAddr>() {
        Ok(address) => Ok(IpNet::from(address)),
        Err(_) => text.parse::<IpNet>(),
    };
    parsed.map_err(|_| {
        RulesError::new("identity.from", "addresses such as 10.0.0.1 or 10.0.0.0/8, or \"unix\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
        all.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    fn ask(from: &str, all: &[(&'static str, &str)]) -> Result<(String, Vec<String>), u16> {
        let proxy = ProxyIdentity::new("X-User", ["10.0.0.0/8", "::1", "unix"]).unwrap();
        let client = (from != "unix").then(|| from.parse().unwrap());
        let found = proxy.groups("X-Groups").unwrap().identify(client, &headers(all));
        found
            .map(|found| (found.principal.id().to_owned(), found.principal.scopes().to_vec()))
            .map_err(|refused| refused.status().as_u16())
    }

    // S-20: who somebody is, is said by the proxy alone, and once.
    #[test]
    fn the_proxy_says_who_a_client_is() {
        let known = |name: &str, groups: &[&str]| {
            Ok((name.to_owned(), groups.iter().map(|&group| group.to_owned()).collect()))
        };
        for from in ["10.1.2.3", "::ffff:10.0.0.1", "::1", "unix"] {
            assert_eq!(ask(from, &[("x-user", "alice")]), known("alice", &[]), "{from}");
        }
        for from in ["11.0.0.1", "127.0.0.1", "::2"] {
            assert_eq!(ask(from, &[("x-user", "alice")]), Err(403), "{from}");
        }
        let groups = [("x-user", " 山田 "), ("x-groups", "engineering, docs  ops,")];
        assert_eq!(ask("unix", &groups), known("山田", &["engineering", "docs", "ops"]));
        for wrong in [
            &[][..],
            &[("x-user", "")],
            &[("x-user", "anonymous")],
            &[("x-user", "a\tb")],
            &[("x-user", "alice"), ("x-user", "root")],
            &[("x-user", "alice"), ("x-groups", "a"), ("x-groups", "b")],
        ] {
            assert_eq!(ask("unix", wrong), Err(401), "{wrong:?}");
        }
    }

    #[test]
    fn a_wrong_option_says_what_is_expected() {
        let wrong = |header: &str, from: &[&str]| ProxyIdentity::new(header, from).unwrap_err().to_string();
        assert!(wrong("X User", &["unix"]).starts_with("identity.header: expected the name of a header"));
        assert!(wrong("X-User", &[]).starts_with("identity.from: expected the proxy's addresses"));
        assert!(wrong("X-User", &["10.0.0.0/33"]).starts_with("identity.from: expected addresses such as"));
    }
}
