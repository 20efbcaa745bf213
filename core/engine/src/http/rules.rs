//! The HTTP options of a server: the endpoint's paths, the clients that may use it, and the form of answers.

use super::auth::{Auth, AuthHeaders, RulesError};
use super::authority::{Authority, HostName, WebOrigin, has_scheme, whole_scheme};
use super::paths::is_same_path;
use super::proxies::TrustedProxies;
use crate::now::Millis;
use crate::option::{FromOption, NamedOptions, OptionError, OptionValue, by_name};
use std::net::Ipv6Addr;

/// Maximum length of [`Rules::instance`].
const INSTANCE: usize = 32;

/// The HTTP options of a server. By default only local clients may use it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// The path of the endpoint. Default `/mcp`.
    pub path: String,
    /// A path that answers `GET` and `HEAD` with 200 while the server is alive, whatever their `Host`, `Origin` and token
    /// are: load balancers check targets by their addresses. Default none.
    pub health: Option<String>,
    /// A path with metrics in the text format of Prometheus. The checks of `Host`, `Origin` and the token apply to it.
    /// Default none.
    pub metrics: Option<String>,
    /// The accepted `Host` headers. Default [`Hosts::Loopback`].
    pub hosts: Hosts,
    /// The accepted `Origin` headers; requests without one are accepted. Default [`Origins::Loopback`].
    pub origins: Origins,
    /// Whether browsers may let pages of the accepted origins send requests. Default `false`.
    pub cors: bool,
    /// Further headers that such pages may send, such as `X-Team`. The headers of the protocol, `Authorization` and those
    /// of the W3C trace context are always among them. Default none.
    pub cors_headers: Vec<String>,
    /// The addresses of reverse proxies, such as `10.0.0.0/8`, or `unix` for those on a Unix socket. A request from one of
    /// them comes from the client that its header `X-Forwarded-For` names: in the audit log, and where clients without a token
    /// are counted. Default none.
    pub trusted_proxies: Vec<String>,
    /// The requirements for bearer tokens. Default none: no token is required.
    pub auth: Option<Auth>,
    /// Whether legacy clients get sessions. Without sessions every legacy request is independent, and there are no
    /// subscriptions and no notification streams. Default `true`.
    pub sessions: bool,
    /// The name of this process, which begins its session ids, as `a` in `a.Xk3…`, so that a proxy finds the process of a
    /// session. Letters, digits, `-` and `_`, at most 32. Default none.
    pub instance: Option<String>,
    /// The paths of the transport of 2024-11-05, which was replaced in 2025-03-26. Default none: not
    /// served.
    pub sse24: Option<Sse24>,
    /// The form of answers. Default [`Answers::Either`].
    pub answers: Answers,
    /// When to interrupt an answer that is an event stream, so that the client reconnects for the rest
    /// (2025-11-25). Default never.
    pub polling: Option<Polling>,
}

/// The paths of HTTP with server-sent events, the transport of 2024-11-05.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sse24 {
    /// The path of the event stream. Default `/sse`.
    pub events: String,
    /// The path to which clients post their messages. Default `/messages`.
    pub messages: String,
}

impl Default for Sse24 {
    fn default() -> Self {
        Self { events: "/sse".into(), messages: "/messages".into() }
    }
}

/// Times for interrupting a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// Time for which a stream stays open, in milliseconds.
    pub after: Millis,
    /// Time that the client waits before it reconnects, in milliseconds.
    pub retry: Millis,
}

/// The accepted `Host` headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// `localhost`, `127.0.0.0/8` and `[::1]`, on any port. Refuses a web page whose own domain resolves to this machine.
    Loopback,
    /// These hosts, as `name` (any port) or `name:port`. Letter case, a final dot and the spelling of an address do not
    /// matter.
    These(Vec<String>),
    /// Any host: for servers behind a proxy that checks it.
    Any,
}

/// The accepted `Origin` headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// Local pages: `http` or `https`, `localhost`, `127.0.0.0/8` or `[::1]`, on any port.
    Loopback,
    /// Exactly these origins, as `scheme://host` or `scheme://host:port`. For an application whose pages have random hosts,
    /// `scheme://*`, such as `vscode-webview://*`.
    These(Vec<String>),
    /// Any origin.
    Any,
}

/// The form in which requests are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// JSON, or an event stream if something is sent before the answer, or the answer takes long.
    #[default]
    Either,
    /// JSON. Handlers' progress and log messages are dropped. A listen still gets an event stream.
    Json,
    /// An event stream, if the client accepts it.
    Events,
}

impl Rules {
    /// The default path of metrics.
    pub const METRICS: &str = "/metrics";

    /// Sets an option by the name of its field.
    ///
    /// # Errors
    /// [`OptionError`] if there is no such option, or its value is invalid.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources_engine::http::{Answers, Rules};
    /// let mut rules = Rules::default();
    /// rules.set("answers", "json")?;
    /// assert_eq!(rules.answers, Answers::Json);
    /// let error = rules.set("hosts", "example.com").unwrap_err().to_string();
    /// assert_eq!(error, r#"hosts is "example.com", expected "*", "loopback" or a list, such as ["example.com"]"#);
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    pub fn set(&mut self, name: &str, value: impl Into<OptionValue>) -> Result<(), OptionError> {
        NamedOptions::set(self, name, value.into())
    }

    /// Checks what [`Endpoint::new`](super::Endpoint::new) would refuse.
    ///
    /// # Errors
    /// The first option that no endpoint can have.
    pub fn check(&self) -> Result<(), RulesError> {
        self.check_paths()?;
        self.check_names()?;
        TrustedProxies::parse(&self.trusted_proxies)?;
        self.auth.clone().map(AuthHeaders::new).transpose().map(drop)
    }

    /// Checks that an endpoint can be served at these paths.
    fn check_paths(&self) -> Result<(), RulesError> {
        let is_path = |path: &str| path.starts_with('/') && !path.contains(['?', '#', ' ', '\r', '\n']);
        let older =
            self.sse24.iter().flat_map(|paths| [("sse24", &paths.events), ("sse24", &paths.messages)]);
        let health = self.health.iter().map(|path| ("health", path));
        let metrics = self.metrics.iter().map(|path| ("metrics", path));
        let paths = [("path", &self.path)].into_iter().chain(health).chain(metrics).chain(older);
        let mut before: Vec<&str> = Vec::new();
        for (field, path) in paths {
            if !is_path(path) {
                let expected = "a text that begins with a slash, without ?, # and white space";
                return Err(RulesError::new(field, expected).with(&**path));
            }
            if before.iter().any(|other| is_same_path(other, path)) {
                return Err(RulesError::new(field, "a path of its own").with(&**path));
            }
            before.push(path);
        }
        Ok(())
    }

    /// Checks that each host and origin can occur in a request: any other would silently refuse every client.
    fn check_names(&self) -> Result<(), RulesError> {
        const ANY: &str = "\"*\" in the place of the list, to accept all of them";
        if let Hosts::These(hosts) = &self.hosts {
            for host in hosts {
                if host == "*" {
                    return Err(RulesError::new("hosts", ANY).with("*"));
                }
                if !names_host(host) {
                    return Err(RulesError::new("hosts", expected_host(host)).with(&**host));
                }
            }
        }
        if let Origins::These(origins) = &self.origins {
            for origin in origins {
                if origin == "*" {
                    return Err(RulesError::new("origins", ANY).with("*"));
                }
                if !names_origin(origin) {
                    return Err(RulesError::new("origins", expected_origin(origin)).with(&**origin));
                }
            }
        }
        if let Some(wrong) = self.cors_headers.iter().find(|name| !is_header_name(name)) {
            let expected = "names of headers, such as X-Team";
            return Err(RulesError::new("cors_headers", expected).with(&**wrong));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if let Some(name) = &self.instance
            && (name.is_empty() || name.len() > INSTANCE || !name.bytes().all(is_plain))
        {
            let expected = "1 to 32 letters, digits, \"-\" and \"_\", such as a";
            return Err(RulesError::new("instance", expected).with(&**name));
        }
        Ok(())
    }
}

by_name!(Rules, "options of an endpoint" {
    "auth" => auth,
    "path" => path,
    "health" => health,
    "metrics" => metrics with metrics,
    "hosts" => hosts with hosts,
    "origins" => origins with origins,
    "cors" => cors,
    "cors_headers" => cors_headers,
    "trusted_proxies" => trusted_proxies,
    "answers" => answers with answers,
    "polling" => polling with polling,
    "sessions" => sessions,
    "instance" => instance,
    "sse24" => sse24 with sse24,
});

by_name!(Auth, "options of auth" {
    "resource" => resource,
    "authorization_servers" => authorization_servers,
    "scopes_supported" => scopes_supported,
    "required_scopes" => required_scopes,
    "implied_scopes" => implied_scopes,
    "authorization_server_document" => authorization_server_document,
});

/// Parses a path, `true` for the default one, or none.
fn metrics(value: OptionValue) -> Result<Option<String>, OptionError> {
    match value {
        OptionValue::Bool(is_shown) => Ok(is_shown.then(|| Rules::METRICS.into())),
        path => Option::from_option(path),
    }
}

fn hosts(value: OptionValue) -> Result<Hosts, OptionError> {
    listed(value, [("*", Hosts::Any), ("loopback", Hosts::Loopback)], Hosts::These)
}

fn origins(value: OptionValue) -> Result<Origins, OptionError> {
    listed(value, [("*", Origins::Any), ("loopback", Origins::Loopback)], Origins::These)
}

/// Parses one of two words, or a list of texts.
fn listed<T>(
    value: OptionValue,
    words: [(&str, T); 2],
    these: fn(Vec<String>) -> T,
) -> Result<T, OptionError> {
    let OptionValue::Text(given) = &value else { return Vec::from_option(value).map(these) };
    let found = words.into_iter().find(|(word, _)| word == given).map(|(_, found)| found);
    found.ok_or_else(|| {
        OptionError::not_allowed(&value, format!("\"*\", \"loopback\" or a list, such as [{given:?}]"))
    })
}

fn answers(value: OptionValue) -> Result<Answers, OptionError> {
    let word = String::from_option(value)?;
    match &*word {
        "either" => Ok(Answers::Either),
        "json" => Ok(Answers::Json),
        "events" => Ok(Answers::Events),
        _ => Err(OptionError::not_allowed(&word.as_str().into(), "either, json or events")),
    }
}

fn polling(value: OptionValue) -> Result<Option<Polling>, OptionError> {
    Ok(Option::from_option(value)?.map(|(after, retry)| Polling { after, retry }))
}

/// Parses the two paths, `true` for the defaults, or none.
fn sse24(value: OptionValue) -> Result<Option<Sse24>, OptionError> {
    match value {
        OptionValue::Bool(is_served) => Ok(is_served.then(Sse24::default)),
        paths => Ok(Option::from_option(paths)?.map(|(events, messages)| Sse24 { events, messages })),
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            health: None,
            metrics: None,
            hosts: Hosts::Loopback,
            origins: Origins::Loopback,
            cors: false,
            cors_headers: Vec::new(),
            trusted_proxies: Vec::new(),
            auth: None,
            sessions: true,
            instance: None,
            sse24: None,
            answers: Answers::default(),
            polling: None,
        }
    }
}

impl Hosts {
    /// Whether a `Host` header is accepted.
    pub(super) fn accept(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback => is_loopback(value),
            Self::These(list) => {
                let name = without_port(value);
                list.iter().any(|own| own.eq_ignore_ascii_case(value) || own.eq_ignore_ascii_case(name))
                    || Authority::parse(value).is_some_and(|given| list.iter().any(|own| is_at(given, own)))
            }
        }
    }
}

impl Origins {
    /// Whether an `Origin` header is accepted.
    pub(super) fn accept(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::These(list) => {
                list.iter().any(|own| own.eq_ignore_ascii_case(value))
                    || list.iter().any(|own| is_from(value, own))
            }
            Self::Loopback => WebOrigin::parse(value).is_some_and(|origin| origin.is_loopback()),
        }
    }
}

/// Whether a text can be the value of a `Host` header, or is an IPv6 address without brackets.
fn names_host(text: &str) -> bool {
    Authority::parse(text).is_some() || text.parse::<Ipv6Addr>().is_ok()
}

/// Whether a text can be the value of an `Origin` header, or stands for the origins of a scheme.
fn names_origin(text: &str) -> bool {
    let is_web = || text.split_once("://").is_some_and(|(scheme, _)| is_web(scheme));
    whole_scheme(text).is_some() || if is_web() { WebOrigin::parse(text).is_some() } else { is_origin(text) }
}

/// A suggestion to replace a host that no request can have.
fn expected_host(text: &str) -> &'static str {
    match text {
        text if !text.is_ascii() => {
            "names in ASCII, as clients send them, such as xn--mnchen-3ya.example for münchen.example"
        }
        text if text.starts_with('.') || text.contains('*') => {
            "the name of each host, such as api.example.com; there is no wildcard for a part of a name"
        }
        _ => "names such as example.com or example.com:8000, without scheme, path and wildcard",
    }
}

/// A suggestion to replace an origin that no request can have.
fn expected_origin(text: &str) -> &'static str {
    match text {
        text if !text.is_ascii() => {
            "origins in ASCII, as browsers send them, such as https://xn--mnchen-3ya.example for https://münchen.example"
        }
        _ => {
            "origins such as https://example.com, with scheme, without path and wildcard; or scheme://* for all pages of an \
             application, such as vscode-webview://*"
        }
    }
}

/// Whether a text can be the name of a header (RFC 9110, section 5.6.2).
fn is_header_name(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn is_loopback(authority: &str) -> bool {
    let host = without_port(authority);
    host == "127.0.0.1"
        || host.eq_ignore_ascii_case("localhost")
        || Authority::parse(authority).is_some_and(|authority| authority.is_loopback())
}

/// Whether a `Host` header is for a host of the rules.
fn is_at(given: Authority<'_>, own: &str) -> bool {
    let own = match own.parse::<Ipv6Addr>() {
        Ok(address) => Some(Authority { host: HostName::Address(address.to_canonical()), port: None }),
        Err(_) => Authority::parse(own),
    };
    own.is_some_and(|own| given.is_at(&own))
}

/// Whether an `Origin` header is one of the rules.
fn is_from(given: &str, own: &str) -> bool {
    if let Some(scheme) = whole_scheme(own) {
        return has_scheme(given, scheme) && is_origin(given);
    }
    WebOrigin::parse(own).is_some_and(|own| WebOrigin::parse(given).is_some_and(|given| given == own))
}

/// The host of an authority; all of it if no port follows a colon.
fn without_port(authority: &str) -> &str {
    let digits = authority.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (host, port) = authority.split_at_checked(authority.len() - digits).unwrap_or((authority, ""));
    match host.strip_suffix(':') {
        Some(host) if !host.is_empty() && (1..=5).contains(&port.len()) => host,
        _ => authority,
    }
}

/// Whether an origin can be repeated in a header: a scheme, host and port, or `null`.
pub(super) fn is_origin(value: &str) -> bool {
    value == "null"
        || value.split_once("://").is_some_and(|(scheme, authority)| {
            let is_part = |text: &str, more: &[u8]| {
                !text.is_empty()
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
            };
            is_part(scheme, b"+-.") && is_part(authority, b"-._:[]")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-157.
    #[test]
    fn hosts() {
        for good in [
            "localhost",
            "LOCALHOST:3000",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:65535",
            "localhost.",
            "LocalHost.:8",
            "127.0.0.2:80",
            "127.255.255.254",
            "[0:0::1]",
            "[::1%25lo]:1",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(Hosts::Loopback.accept(good), "{good}");
        }
        for bad in [
            "",
            "evil.example.com",
            "localhost.evil.com",
            "localhost:",
            "localhost:x",
            "localhost@evil",
            "127.0.0.1.nip.io",
            "::1",
            "0.0.0.0",
            "localhost:123456",
            "[::1",
            ":80",
            "128.0.0.1",
            "localhost..",
            ".localhost",
            "localhost,",
            "127.0.0.1.",
            "[::2]",
            "[fe80::1%lo]",
        ] {
            assert!(!Hosts::Loopback.accept(bad), "{bad}");
        }
        let these = Hosts::These(vec!["api.example.com".into(), "other:8080".into()]);
        assert!(
            these.accept("API.example.com:99")
                && these.accept("other:8080")
                && these.accept("api.example.com")
        );
        assert!(!these.accept("other") && !these.accept("other:80") && !these.accept("localhost"));
        assert!(these.accept("api.example.com.") && !these.accept("api.example.com..") && !these.accept(""));
        let these = Hosts::These(["fd00::1", "b.example:443"].map(String::from).into());
        assert!(
            these.accept("[FD00:0::1]:8000") && these.accept("b.example") && these.accept("B.example.:443")
        );
        assert!(!these.accept("b.example:80") && !these.accept("[fd00::2]"));
        assert!(Hosts::Any.accept("whatever"));
    }

    /// A host with a scheme, and an origin without one or with a path, match no request.
    #[test]
    fn names_that_match_nothing_are_refused() {
        let hosts = |host: &str| Rules { hosts: Hosts::These(vec![host.into()]), ..Rules::default() };
        let origins =
            |origin: &str| Rules { origins: Origins::These(vec![origin.into()]), ..Rules::default() };
        for good in
            ["example.com", "example.com:8000", "[::1]:80", "localhost", "fd00::1", "a_b:1", "example.com."]
        {
            assert!(hosts(good).check_names().is_ok(), "{good}");
        }
        for bad in [
            "",
            "*",
            "*.example.com",
            ".example.com",
            "https://example.com",
            "example.com/",
            "a b",
            "münchen.example",
            "a:x",
            "a:99999",
            "a..b",
        ] {
            assert!(hosts(bad).check_names().is_err(), "{bad}");
        }
        for good in [
            "https://example.com",
            "http://localhost:5173",
            "vscode-webview://x",
            "null",
            "vscode-webview://*",
            "https://example.com:443",
        ] {
            assert!(origins(good).check_names().is_ok(), "{good}");
        }
        for bad in [
            "",
            "*",
            "example.com",
            "https://example.com/",
            "https://*.example.com",
            "://x",
            "https://",
            "https://*",
            "https://münchen.example",
            "https://a:x",
            "a://*.b",
        ] {
            assert!(origins(bad).check_names().is_err(), "{bad}");
        }
        for (error, said) in [
            (hosts("*").check_names(), "hosts is \"*\", expected \"*\" in the place of the list"),
            (origins("*").check_names(), "origins is \"*\", expected \"*\" in the place of the list"),
            (
                hosts(".example.com").check_names(),
                "hosts is \".example.com\", expected the name of each host",
            ),
            (hosts("münchen.example").check_names(), "hosts is \"münchen.example\", expected names in ASCII"),
        ] {
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let headers =
            |name: &str| Rules { cors_headers: vec![name.into()], ..Rules::default() }.check_names();
        assert!(
            headers("X-Team").is_ok()
                && headers("a b").is_err()
                && headers("*").is_err()
                && headers("").is_err()
        );
        let error = hosts("https://example.com").check_names().unwrap_err().to_string();
        assert!(error.starts_with("hosts is \"https://example.com\", expected names such as"), "{error}");
    }

    // R-156.
    #[test]
    fn origins() {
        for good in ["http://localhost", "https://localhost:5173", "http://127.0.0.1:6274", "HTTP://[::1]:1"]
        {
            assert!(Origins::Loopback.accept(good), "{good}");
        }
        for bad in
            ["", "null", "http://evil.com", "file://localhost", "http://localhost/", "localhost", "http://"]
        {
            assert!(!Origins::Loopback.accept(bad), "{bad}");
        }
        let these = ["https://app.example.com", "https://b.example:443", "vscode-webview://*", "null"];
        let these = Origins::These(these.map(String::from).into());
        assert!(these.accept("https://APP.example.com") && these.accept("https://app.example.com:443"));
        assert!(these.accept("https://b.example") && these.accept("null"));
        assert!(these.accept("vscode-webview://1k2j3") && !these.accept("vscode-webview://a/b"));
        assert!(!these.accept("vscode-webview:///") && !these.accept("vscode-webviews://a"));
        assert!(!these.accept("http://app.example.com") && !these.accept("https://app.example.com:444"));
    }

    // R-215.
    #[test]
    fn only_a_well_formed_origin_is_repeated() {
        for good in
            ["http://localhost:1", "https://a-b.example", "null", "http://[::1]:2", "moz-extension://a1"]
        {
            assert!(is_origin(good), "{good}");
        }
        for bad in ["", "x", "http://", "http://a b", "http://a\r\nx: y", "http://a/b", "://a"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
