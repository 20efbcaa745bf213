//! The client behind reverse proxies.
//!
//! Law: an address in a header counts only if the peer is a trusted proxy, and only as far as trusted proxies have written it:
//! the list is read from its end. What cannot be read leaves the address of the proxy.

use super::auth::RulesError;
use super::head::RequestHead;
use std::net::{IpAddr, Ipv6Addr};

/// The header in which a proxy adds the address of its client.
const FORWARDED: &str = "x-forwarded-for";
/// The word for proxies on a Unix socket.
const UNIX: &str = "unix";

/// The addresses of the proxies whose headers are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrustedProxies {
    networks: Vec<ProxyNetwork>,
    /// Whether a peer without an address is one.
    has_unix: bool,
}

/// The addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProxyNetwork {
    address: IpAddr,
    prefix: u8,
}

impl TrustedProxies {
    /// # Errors
    /// [`RulesError`] for a text that names no addresses.
    pub(super) fn parse(texts: &[String]) -> Result<Self, RulesError> {
        let mut all = Self::default();
        for text in texts {
            match text.as_str() {
                UNIX => all.has_unix = true,
                text => all.networks.push(ProxyNetwork::parse(text).ok_or_else(|| {
                    let expected = "addresses such as 10.0.0.1 or 10.0.0.0/8, or \"unix\"";
                    RulesError::new("trusted_proxies", expected).with(text)
                })?),
            }
        }
        Ok(all)
    }

    /// The address of the client that sent a request; `None` if it is not known.
    pub(super) fn client(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let is_trusted = match head.client {
            Some(peer) => self.has(peer),
            None => self.has_unix,
        };
        if !is_trusted {
            return head.client;
        }
        let lists: Vec<&[u8]> = head.all(FORWARDED).collect();
        let hops = lists.iter().rev().flat_map(|list| list.rsplit(|byte| *byte == b','));
        let mut client = head.client;
        for hop in hops {
            let Some(address) = std::str::from_utf8(hop).ok().and_then(address) else { return client };
            client = Some(address);
            if !self.has(address) {
                break;
            }
        }
        client
    }

    fn has(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }
}

impl ProxyNetwork {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            None => (text.parse().ok()?, None),
            Some((address, prefix)) => (address.parse().ok()?, Some(prefix.parse::<u8>().ok()?)),
        };
        let most = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
        let prefix = prefix.unwrap_or(most);
        (prefix <= most).then_some(Self { address, prefix })
    }

    fn contains(&self, other: IpAddr) -> bool {
        let same = |one: u128, other: u128, unused: u32| (one ^ other).checked_shr(unused).unwrap_or(0) == 0;
        let unused = |most: u32| most - u32::from(self.prefix);
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same(own.to_bits().into(), other.to_bits().into(), unused(32))
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), unused(128)),
            _ => false,
        }
    }
}

/// The address of an item of the list, which may have a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let plain = || text.parse().ok();
    let in_brackets = || {
        let (inside, _) = text.strip_prefix('[')?.split_once(']')?;
        inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
    };
    let with_port = || {
        let (address, _) = text.split_once(':')?;
        address.parse().ok().filter(IpAddr::is_ipv4)
    };
    plain().or_else(in_brackets).or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: Option<&str>, lists: &[&str]) -> Option<String> {
        let trusted: Vec<String> = trusted.iter().map(|&text| text.into()).collect();
        let headers: Vec<(&str, &[u8])> =
            lists.iter().map(|list| ("X-Forwarded-For", list.as_bytes())).collect();
        let client = peer.map(|peer| peer.parse().unwrap());
        let head = RequestHead { client, headers: &headers, ..RequestHead::default() };
        TrustedProxies::parse(&trusted).unwrap().client(&head).map(|address| address.to_string())
    }

    // S-20: what a client writes into the header itself is not believed.
    #[test]
    fn the_client_is_the_one_that_trusted_proxies_name() {
        let found = |trusted: &[&str], peer, lists: &[&str]| client(trusted, peer, lists).unwrap_or_default();
        let nginx = Some("10.0.0.7");
        assert_eq!(found(&[], nginx, &["192.0.2.1"]), "10.0.0.7");
        assert_eq!(found(&["10.0.0.0/8"], nginx, &["192.0.2.1"]), "192.0.2.1");
        assert_eq!(found(&["10.0.0.0/8"], Some("11.0.0.7"), &["192.0.2.1"]), "11.0.0.7");
        assert_eq!(found(&["10.0.0.0/8"], nginx, &["198.51.100.9, 192.0.2.1, 10.1.1.1"]), "192.0.2.1");
        assert_eq!(found(&["10.0.0.0/8"], nginx, &["198.51.100.9", "192.0.2.1"]), "192.0.2.1");
        assert_eq!(found(&["10.0.0.0/8"], nginx, &[]), "10.0.0.7");
        assert_eq!(found(&["10.0.0.0/8"], nginx, &["192.0.2.1, unknown"]), "10.0.0.7");
        assert_eq!(found(&["10.0.0.7"], nginx, &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(
            found(&["::ffff:0:0/96", "10.0.0.7/32"], Some("::ffff:10.0.0.7"), &["192.0.2.1:9"]),
            "192.0.2.1"
        );
        assert_eq!(found(&["unix"], None, &["192.0.2.1"]), "192.0.2.1");
        assert_eq!(client(&["10.0.0.0/8"], None, &["192.0.2.1"]), None);
        assert_eq!(found(&["0.0.0.0/0"], nginx, &["192.0.2.1, 192.0.2.2"]), "192.0.2.1");
        for wrong in ["10.0.0.0/33", "10.0/8", "", "localhost", "::/129"] {
            assert!(TrustedProxies::parse(&[wrong.into()]).is_err(), "{wrong}");
        }
    }
}
