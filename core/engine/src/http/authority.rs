//! Hosts and origins, compared whatever their spelling is: letter case, a final dot, the digits of an address, the port that
//! a scheme has by default.
//!
//! Law: no lookup of names. Two texts are equal here only if every client reaches the same host with both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host with an optional port, as in the `Host` header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authority<'a> {
    pub(super) host: HostName<'a>,
    pub(super) port: Option<u16>,
}

/// The host of an [`Authority`].
#[derive(Clone, Copy, Debug)]
pub(super) enum HostName<'a> {
    Address(IpAddr),
    /// Without the final dot.
    Name(&'a str),
}

/// The origin of a page: scheme, host and port.
#[derive(Clone, Copy, Debug)]
pub(super) struct WebOrigin<'a> {
    scheme: &'a str,
    authority: Authority<'a>,
}

impl<'a> Authority<'a> {
    /// Parses `name`, `name:port`, an IPv4 address, or an IPv6 address in brackets. `None` for anything else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let host = HostName::Address(ipv6(address)?);
            return Some(Self {
                host,
                port: if port.is_empty() { None } else { Some(digits(port.strip_prefix(':')?)?) },
            });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(digits(port)?)),
            None => (text, None),
        };
        Some(Self { host: HostName::parse(name)?, port })
    }

    pub(super) fn is_loopback(&self) -> bool {
        match self.host {
            HostName::Address(address) => address.is_loopback(),
            HostName::Name(name) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Whether a request with this `Host` may be for `own`, a host of the rules. A client leaves out the port that its
    /// scheme has by default.
    pub(super) fn is_at(&self, own: &Self) -> bool {
        self.host == own.host
            && match (own.port, self.port) {
                (None, _) | (Some(80 | 443), None) => true,
                (port, given) => port == given,
            }
    }
}

impl<'a> HostName<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        name.split('.').all(is_label).then_some(Self::Name(name))
    }
}

impl PartialEq for HostName<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(own), Self::Address(other)) => own == other,
            (Self::Name(own), Self::Name(other)) => own.eq_ignore_ascii_case(other),
            _ => false,
        }
    }
}

impl<'a> WebOrigin<'a> {
    /// Parses `scheme://host` or `scheme://host:port`. `None` for anything else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))?;
        Some(Self { scheme, authority: Authority::parse(authority)? })
    }

    /// Whether it is a web page of this machine.
    pub(super) fn is_loopback(&self) -> bool {
        default_port(self.scheme).is_some() && self.authority.is_loopback()
    }

    fn port(&self) -> Option<u16> {
        self.authority.port.or_else(|| default_port(self.scheme))
    }
}

impl PartialEq for WebOrigin<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.scheme.eq_ignore_ascii_case(other.scheme)
            && self.authority.host == other.authority.host
            && self.port() == other.port()
    }
}

/// The scheme of a pattern `scheme://*`, which stands for every origin of the scheme. Only for schemes of applications, whose
/// hosts are random, such as `vscode-webview`: every web site has an origin of `http` or `https`.
pub(super) fn whole_scheme(pattern: &str) -> Option<&str> {
    let scheme = pattern.strip_suffix("://*")?;
    (is_scheme(scheme) && default_port(scheme).is_none()).then_some(scheme)
}

/// Whether an origin has this scheme and a host.
pub(super) fn has_scheme(origin: &str, scheme: &str) -> bool {
    let parts = origin.split_once("://");
    parts.is_some_and(|(own, host)| own.eq_ignore_ascii_case(scheme) && !host.is_empty())
}

/// The port of a scheme of the web.
fn default_port(scheme: &str) -> Option<u16> {
    let is = |own: &str| scheme.eq_ignore_ascii_case(own);
    if is("http") {
        Some(80)
    } else if is("https") {
        Some(443)
    } else {
        None
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// An IPv6 address, without its zone: the zone says through which interface of the client's own machine it is reached. An
/// IPv4 address in the form of an IPv6 address is the IPv4 address.
fn ipv6(text: &str) -> Option<IpAddr> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let is_zone = |zone: &str| {
        !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
    };
    let address = address.parse::<Ipv6Addr>().ok().filter(|_| zone.is_none_or(is_zone))?;
    Some(address.to_canonical())
}

/// A port.
fn digits(text: &str) -> Option<u16> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
        .filter(|_| text.len() <= 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn every_spelling_of_a_host_is_the_same_host() {
        let is_at =
            |given: &str, own: &str| Authority::parse(given).unwrap().is_at(&Authority::parse(own).unwrap());
        for (given, own) in [
            ("api.example.com.", "API.example.com"),
            ("api.example.com.:8000", "api.example.com:8000"),
            ("api.example.com", "api.example.com:443"),
            ("api.example.com", "api.example.com:80"),
            ("[fd00:0:0::1]:9", "[FD00::1]"),
            ("[fe80::1%25eth0]", "[fe80::1]"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("my_service:8000", "my_service"),
        ] {
            assert!(is_at(given, own), "{given} {own}");
        }
        for (given, own) in [
            ("api.example.com", "api.example.com:8000"),
            ("api.example.com:8443", "api.example.com:443"),
            ("example.com", "api.example.com"),
            ("10.0.0.2", "10.0.0.1"),
        ] {
            assert!(!is_at(given, own), "{given} {own}");
        }
    }

    #[test]
    fn what_is_no_host() {
        for text in [
            "",
            ".",
            "a..b",
            ".a",
            "a:",
            "a:x",
            "a:65536",
            "a:000080",
            "a:+8",
            "::1",
            "[::1",
            "[::1]8",
            "[::1]:",
            "[a]",
            "[1.2.3.4]",
            "[::1%]",
            "[::1%a b]",
            "a b",
            "a/b",
            "a@b",
            "ä",
            "*",
            "a,b",
            "[::1]]",
        ] {
            assert!(Authority::parse(text).is_none(), "{text}");
        }
    }

    //
    #[test]
    fn every_spelling_of_an_origin_is_the_same_origin() {
        let is_same =
            |one: &str, other: &str| WebOrigin::parse(one).unwrap() == WebOrigin::parse(other).unwrap();
        assert!(is_same("https://a.example", "HTTPS://A.example:443") && is_same("http://a:80", "http://a"));
        assert!(is_same("app://a:80", "APP://a:80") && is_same("http://[::1]:3", "http://[0::1]:3"));
        assert!(
            !is_same("https://a", "http://a")
                && !is_same("https://a", "https://a:80")
                && !is_same("app://a", "app://a:80")
        );
        for text in ["", "null", "a", "://a", "http://", "http://a/", "1a://b", "http://a b", "http://*"] {
            assert!(WebOrigin::parse(text).is_none(), "{text}");
        }
        assert_eq!(whole_scheme("vscode-webview://*"), Some("vscode-webview"));
        for text in ["https://*", "HTTP://*", "://*", "*", "a://*.b", "a b://*"] {
            assert_eq!(whole_scheme(text), None, "{text}");
        }
        assert!(
            has_scheme("VSCODE-webview://1a2", "vscode-webview")
                && !has_scheme("vscode-webview://", "vscode-webview")
        );
    }
}
