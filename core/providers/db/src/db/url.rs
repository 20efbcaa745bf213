//! URLs of Postgres: the parameters that are understood, those of TLS apart.
//!
//! Law: no message repeats the URL or a value of it, because it may have a password.

use super::ssl_mode::SslMode;
use super::tls::TlsSettings;
use mcp_resources_engine::option::FromOption as _;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The parameters that are understood, or refused for themselves.
const KNOWN: [&str; 19] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
    "requiressl",
    "replication",
];
/// The parameters whose values are paths of files.
const FILES: [&str; 3] = ["sslrootcert", "sslcert", "sslkey"];
/// When an idle connection is probed, so that a firewall does not forget it, and how often before it is given up.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(10), 3);

/// A URL of Postgres, in parts.
#[derive(Debug, Default)]
pub(super) struct PostgresUrl {
    /// The URL without the parameters that the driver does not need.
    pub(super) driver: String,
    pub(super) tls: TlsSettings,
    pub(super) sslmode: Option<SslMode>,
    /// Whether it says when an idle connection is probed.
    has_keepalives: bool,
}

impl PostgresUrl {
    /// # Errors
    /// The URL has a parameter that is not supported: half a sentence with the name, and without the value.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let mut parsed = Self::default();
        let Some(at) = query_start(url) else {
            url.clone_into(&mut parsed.driver);
            return Ok(parsed);
        };
        let mut kept = Vec::new();
        for pair in url.get(at + 1..).unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match parsed.take(name, &decoded(value)) {
                Ok(true) => kept.push(pair),
                Ok(false) => {}
                Err(fix) => {
                    let name: String = name.chars().filter(|letter| !letter.is_control()).take(40).collect();
                    return Err(format!("has the parameter {name:?} in its URL: {fix}"));
                }
            }
        }
        let head = url.get(..at).unwrap_or_default();
        parsed.driver = if kept.is_empty() { head.to_owned() } else { format!("{head}?{}", kept.join("&")) };
        Ok(parsed)
    }

    /// Takes a parameter. Returns whether the driver needs it too.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, &'static str> {
        match (name, value.to_ascii_lowercase().as_str()) {
            ("sslmode", mode) => {
                let known = SslMode::from_option(mode.into());
                self.sslmode = Some(known.map_err(
                    |_| "write sslmode=disable, allow, prefer, require, verify-ca or verify-full",
                )?);
            }
            ("sslrootcert", "system") => self.tls.root_file = None,
            ("sslrootcert", _) => self.tls.root_file = Some(value.into()),
            ("sslcert", _) => self.tls.certificate = Some(value.into()),
            ("sslkey", _) => self.tls.key = Some(value.into()),
            ("sslnegotiation", "postgres") => self.tls.is_direct = false,
            ("sslnegotiation", "direct") => self.tls.is_direct = true,
            ("sslnegotiation", _) => return Err("write sslnegotiation=postgres or sslnegotiation=direct"),
            ("sslpassword", _) => {
                return Err(
                    "keys with a password are not supported; decrypt the key with `openssl pkey`, and leave it out",
                );
            }
            ("sslcrl" | "sslcrldir", _) => return Err("revocation lists are not supported; leave it out"),
            ("sslsni", "1") | ("gssencmode", "disable" | "prefer") => {}
            ("client_encoding", "utf8" | "utf-8" | "auto") => {}
            ("gssencmode", _) => {
                return Err("encryption by GSSAPI is not supported; write gssencmode=disable");
            }
            ("client_encoding", _) => return Err("texts come as UTF-8 always; leave it out"),
            ("schema" | "search_path" | "currentSchema", _) => {
                return Err("leave it out, and name tables with their schema, such as sales.customers");
            }
            ("requiressl", _) => return Err("it is not supported; write sslmode=require"),
            ("replication", _) => return Err("it is not supported; leave it out"),
            (name, _) if KNOWN.contains(&name) => {
                self.has_keepalives |= name.starts_with("keepalives") || name == "tcp_user_timeout";
                return Ok(true);
            }
            _ => {
                return Err(
                    "it is not supported; leave it out, and if it is a part of the password, write `?` there as %3F",
                );
            }
        }
        Ok(false)
    }

    /// Probes idle connections, unless the URL says when.
    pub(super) fn keep_alive(&self, config: &mut tokio_postgres::Config) {
        if !self.has_keepalives {
            let (idle, interval, retries) = KEEPALIVE;
            config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(retries);
        }
    }
}

/// `url` with the relative paths of files in its parameters beginning at `folder`.
pub(super) fn rebased(url: &str, folder: &Path) -> String {
    let Some(at) = query_start(url) else { return url.to_owned() };
    let pairs = url.get(at + 1..).unwrap_or_default().split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if FILES.contains(&name) && !(value == "system" && name == "sslrootcert") => {
            let path = folder.join(PathBuf::from(decoded(value).as_ref()));
            Cow::Owned(format!("{name}={}", encoded(&path.to_string_lossy())))
        }
        _ => Cow::Borrowed(pair),
    });
    let pairs: Vec<_> = pairs.collect();
    format!("{}?{}", url.get(..at).unwrap_or_default(), pairs.join("&"))
}

/// The place of the `?` before the parameters. A password may have one too.
fn query_start(url: &str) -> Option<usize> {
    let from = url.rfind('@').unwrap_or_default();
    url.get(from..).and_then(|rest| rest.find('?')).map(|at| from + at)
}

fn decoded(value: &str) -> Cow<'_, str> {
    if !value.contains('%') {
        return value.into();
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// A path as the value of a parameter.
fn encoded(path: &str) -> String {
    path.replace('%', "%25").replace('&', "%26").replace('?', "%3F").replace('@', "%40")
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: the parameters of TLS are read, and the driver does not see them.
    #[test]
    fn parameters_of_tls_are_taken() {
        let url = "postgres://me:a?b@h/x?sslmode=verify-full&sslrootcert=c%20a.pem&options=-c%20x&sslcert=c&sslkey=k";
        let parsed = PostgresUrl::parse(url).unwrap();
        assert_eq!(parsed.driver, "postgres://me:a?b@h/x?options=-c%20x");
        assert_eq!(parsed.sslmode, Some(SslMode::VerifyFull));
        assert_eq!(parsed.tls.root_file, Some("c a.pem".into()));
        assert_eq!((parsed.tls.certificate, parsed.tls.key), (Some("c".into()), Some("k".into())));
        let plain = PostgresUrl::parse("postgres://h/x?sslrootcert=system&gssencmode=disable").unwrap();
        assert_eq!(
            (plain.driver.as_str(), plain.sslmode, plain.tls.root_file),
            ("postgres://h/x", None, None)
        );
    }

    #[test]
    fn other_parameters_are_refused_without_their_values() {
        for (query, fix) in [
            ("sslmode=canary", "write sslmode=disable, allow,"),
            ("sslpassword=canary", "decrypt the key"),
            ("sslcrl=canary", "revocation lists are not supported"),
            ("requiressl=canary", "write sslmode=require"),
            ("sslnegotiation=canary", "write sslnegotiation=postgres"),
            ("search_path=canary", "name tables with their schema"),
            ("x=canary", "it is not supported; leave it out, and if it is a part"),
        ] {
            let error = PostgresUrl::parse(&format!("postgres://h/x?{query}")).unwrap_err();
            assert!(error.contains(fix) && !error.contains("canary"), "{query}: {error}");
        }
    }

    #[test]
    fn files_begin_at_the_folder() {
        let url = "postgres://h/x?sslrootcert=ca.pem&sslkey=/k.pem&port=1";
        let expected = "postgres://h/x?sslrootcert=/a%26b/ca.pem&sslkey=/k.pem&port=1";
        assert_eq!(rebased(url, Path::new("/a&b")), expected);
        assert_eq!(
            rebased("postgres://h/x?sslrootcert=system", Path::new("/a")),
            "postgres://h/x?sslrootcert=system"
        );
        assert_eq!(rebased("postgres://h/x", Path::new("/a")), "postgres://h/x");
    }
}
