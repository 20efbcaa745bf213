//! What an author sets about HTTP: where the endpoint is, who may ask, how it answers.

use super::auth::{Auth, AuthHeaders, RulesError};
use crate::now::Millis;
use crate::option::{FromOption, Named, OptionError, OptionValue, by_name};

/// What an author sets about HTTP. The defaults are those of a server on this machine alone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// The path of the endpoint. Default `/mcp`.
    pub path: String,
    /// A path that answers 200 to whether the server lives. Default none.
    pub health: Option<String>,
    /// A path that shows what is counted, in the text format of Prometheus. It asks for `Host`, `Origin` and the token as the
    /// endpoint does. Default none.
    pub metrics: Option<String>,
    /// Which `Host` headers are accepted (R-157). Default [`Hosts::Loopback`].
    pub hosts: Hosts,
    /// Which `Origin` headers are accepted (R-156); a request without one is. Default [`Origins::Loopback`].
    pub origins: Origins,
    /// Whether browsers are told that pages of the accepted origins may ask (DEC-30). Default `false`.
    pub cors: bool,
    /// What bearer tokens must be, if they are asked for (requirements, section 13). Default none.
    pub auth: Option<Auth>,
    /// Whether legacy clients get sessions. Without them every legacy request stands alone, nothing can be subscribed to,
    /// and there is no stream of notifications (DEC-25). Default `true`.
    pub sessions: bool,
    /// Where the transport of 2024-11-05 is, which was replaced in 2025-03-26 (R-056, R-191). Default none: it is not served.
    pub sse24: Option<Sse24>,
    /// In which form requests are answered. Default [`Answers::Either`].
    pub answers: Answers,
    /// Whether an answer that is a stream of events may be broken off after so long, for the client to come back for the
    /// rest (2025-11-25, R-176). Default never.
    pub polling: Option<Polling>,
}

/// The paths of HTTP with server-sent events, the transport of 2024-11-05.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sse24 {
    /// Where a client connects. Default `/sse`.
    pub events: String,
    /// Where it sends its messages. Default `/messages`.
    pub messages: String,
}

impl Default for Sse24 {
    fn default() -> Self {
        Self { events: "/sse".into(), messages: "/messages".into() }
    }
}

/// When a stream is broken off, and when the client is to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// How long the stream stays open, in milliseconds.
    pub after: Millis,
    /// After how long the client is to come back, in milliseconds.
    pub retry: Millis,
}

/// Which `Host` headers are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// `localhost`, `127.0.0.1` and `[::1]`, on any port: a page that has a name of its own resolved to this machine
    /// is refused.
    Loopback,
    /// These, as `name` (any port) or `name:port`.
    These(Vec<String>),
    /// Any: behind a proxy that checks.
    Any,
}

/// Which `Origin` headers are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// Pages of this machine: `http` or `https`, `localhost`, `127.0.0.1` or `[::1]`, on any port.
    Loopback,
    /// These, as `scheme://host` or `scheme://host:port`, exactly.
    These(Vec<String>),
    /// Any.
    Any,
}

/// In which form a request is answered (R-162).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// As JSON, or as a stream of events if something is to be told before the answer, or the answer is slow.
    #[default]
    Either,
    /// As JSON. What handlers report on the way is lost. A listen is a stream of events all the same (R-100).
    Json,
    /// As a stream of events, if the client takes it.
    Events,
}

impl Rules {
    /// Where metrics are shown, if nothing else is said.
    pub const METRICS: &str = "/metrics";

    /// Sets one of them by the name of its field.
    ///
    /// # Errors
    /// There is no such option, or the value is wrong.
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
        Named::set(self, name, value.into())
    }

    /// Checks what [`Endpoint::new`](super::Endpoint::new) would refuse.
    ///
    /// # Errors
    /// The first option that no endpoint can have.
    pub fn check(&self) -> Result<(), RulesError> {
        self.check_paths()?;
        self.check_names()?;
        self.auth.clone().map(AuthHeaders::new).transpose().map(drop)
    }

    /// Whether an endpoint can be served at these paths.
    fn check_paths(&self) -> Result<(), RulesError> {
        let is_path = |path: &str| path.starts_with('/') && !path.contains(['?', '#', ' ', '\r', '\n']);
        let older =
            self.sse24.iter().flat_map(|paths| [("sse24", &paths.events), ("sse24", &paths.messages)]);
        let health = self.health.iter().map(|path| ("health", path));
        let metrics = self.metrics.iter().map(|path| ("metrics", path));
        let mut paths = [("path", &self.path)].into_iter().chain(health).chain(metrics).chain(older);
        if let Some((field, wrong)) = paths.find(|(_, path)| !is_path(path)) {
            let expected = "a text that begins with a slash, without ?, # and white space";
            return Err(RulesError::new(field, expected).with(&**wrong));
        }
        let is_taken = |own: &&String| **own == self.path || self.health.as_ref() == Some(*own);
        if let Some(own) = self.metrics.as_ref().filter(is_taken) {
            return Err(RulesError::new("metrics", "a path of its own").with(&**own));
        }
        Ok(())
    }

    /// Whether each of the hosts and origins can be that of a request: any other would refuse everyone without a word.
    fn check_names(&self) -> Result<(), RulesError> {
        if let Hosts::These(hosts) = &self.hosts
            && let Some(wrong) = hosts.iter().find(|host| !names_host(host))
        {
            let expected = "names such as example.com or example.com:8000, without scheme, path and wildcard";
            return Err(RulesError::new("hosts", expected).with(&**wrong));
        }
        if let Origins::These(origins) = &self.origins
            && let Some(wrong) = origins.iter().find(|origin| !is_origin(origin))
        {
            let expected = "origins such as https://example.com, with scheme, without path and wildcard";
            return Err(RulesError::new("origins", expected).with(&**wrong));
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
    "answers" => answers with answers,
    "polling" => polling with polling,
    "sessions" => sessions,
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

/// A path, `true` for the usual one, or none.
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

/// One of two words, or a list of texts.
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

/// Its two paths, `true` for the usual ones, or none.
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
            auth: None,
            sessions: true,
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
            }
        }
    }
}

impl Origins {
    /// Whether an `Origin` header is accepted.
    pub(super) fn accept(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::These(list) => list.iter().any(|own| own.eq_ignore_ascii_case(value)),
            Self::Loopback => {
                value.split_once("://").is_some_and(|(scheme, host)| is_web(scheme) && is_loopback(host))
            }
        }
    }
}

/// Whether a text can be a `Host` header.
fn names_host(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|c: char| matches!(c, '/' | '*' | '@' | '?' | '#') || c.is_whitespace())
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn is_loopback(authority: &str) -> bool {
    let host = without_port(authority);
    host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost") || host == "[::1]"
}

/// The host of an authority; the whole of it if what follows the colon is no port.
fn without_port(authority: &str) -> &str {
    let digits = authority.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (host, port) = authority.split_at_checked(authority.len() - digits).unwrap_or((authority, ""));
    match host.strip_suffix(':') {
        Some(host) if !host.is_empty() && (1..=5).contains(&port.len()) => host,
        _ => authority,
    }
}

/// Whether an origin can be repeated in a header: a scheme, a host, a port, `null`.
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

    /// R-157.
    #[test]
    fn hosts() {
        for good in ["localhost", "LOCALHOST:3000", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535"] {
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
        assert!(Hosts::Any.accept("whatever"));
    }

    /// A host with a scheme, and an origin without one or with a path, match no request.
    #[test]
    fn names_that_match_nothing_are_refused() {
        let hosts = |host: &str| Rules { hosts: Hosts::These(vec![host.into()]), ..Rules::default() };
        let origins =
            |origin: &str| Rules { origins: Origins::These(vec![origin.into()]), ..Rules::default() };
        for good in ["example.com", "example.com:8000", "[::1]:80", "localhost"] {
            assert!(hosts(good).check_names().is_ok(), "{good}");
        }
        for bad in ["", "*", "*.example.com", "https://example.com", "example.com/", "a b"] {
            assert!(hosts(bad).check_names().is_err(), "{bad}");
        }
        for good in ["https://example.com", "http://localhost:5173", "vscode-webview://x", "null"] {
            assert!(origins(good).check_names().is_ok(), "{good}");
        }
        for bad in
            ["", "*", "example.com", "https://example.com/", "https://*.example.com", "://x", "https://"]
        {
            assert!(origins(bad).check_names().is_err(), "{bad}");
        }
        let error = hosts("https://example.com").check_names().unwrap_err().to_string();
        assert!(error.starts_with("hosts is \"https://example.com\", expected names such as"), "{error}");
    }

    /// R-156.
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
        let these = Origins::These(vec!["https://app.example.com".into()]);
        assert!(these.accept("https://APP.example.com"));
        assert!(!these.accept("http://app.example.com") && !these.accept("https://app.example.com:444"));
    }

    /// R-215.
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
