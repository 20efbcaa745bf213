//! Checks the addresses that a request may connect to, where the socket is opened.
//!
//! Law: a name is resolved once for each connection, and exactly the addresses that were judged are connected to. So a name that
//! changes its address between two looks gains nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ureq::unversioned::transport::{ConnectionDetails, Connector};

/// Stands before the connector that opens sockets, and lets public addresses pass alone.
#[derive(Debug)]
pub(super) struct PublicOnly;

/// A name has an address that no request may go to.
#[derive(Debug)]
pub(super) struct PrivateAddress;

impl Connector for PublicOnly {
    type Out = ();

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<()>, ureq::Error> {
        // One private address among public ones is how a name is rebound: none of them is tried.
        match details.addrs.iter().all(|address| is_public(address.ip())) {
            true => Ok(None),
            false => Err(ureq::Error::Io(io::Error::other(PrivateAddress))),
        }
    }
}

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host has an address that is not public; set `private_networks` if that is meant")
    }
}

impl std::error::Error for PrivateAddress {}

/// Whether an address is one of the internet's.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// By the registry of special addresses (RFC 6890 and its successors).
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match a {
        0 | 10 | 127 => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => matches!((b, c), (0, 0 | 2) | (88, 99) | (168, _)),
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        // Multicast, reserved, broadcast.
        224.. => true,
        _ => false,
    };
    !is_special
}

/// Global unicast addresses, except those that embed IPv4 addresses and those for documentation and experiments. NAT64
/// (`64:ff9b::/96`) is not among them.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let is_special = match (segments[0], segments[1]) {
        (0x2001, 0..0x200 | 0xdb8) | (0x2002, _) | (0x3fff, 0..0x1000) => true,
        (first, _) => first & 0xe000 != 0x2000,
    };
    !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: what is not of the internet is refused, in whatever form it is written.
    #[test]
    fn only_public_addresses() {
        for private in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
