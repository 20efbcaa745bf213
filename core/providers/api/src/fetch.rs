//! Sends one request to an API and interprets its answer.
//!
//! Law: the URL comes from the operator, but for an id that is one segment of it. Headers of the operator's go to its
//! origin alone. Nothing of a client's is sent, and no proxy of the environment is used. No message has a URL, a header
//! or a part of an answer.

use super::address::{PrivateAddress, PublicOnly};
use super::body;
use super::cache::ApiAnswer;
use super::fresh::{Freshness, retry_after};
use super::options::{ApiOptions, CheckedService};
use super::url;
use mcp_resources_provider_kit::http_transport::{NobodyWaits, Watching};
use mcp_resources_runtime::sync::Mutex;
use std::io;

use std::time::{Duration, Instant};
use ureq::http::header::{
    ACCEPT_ENCODING, ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use ureq::http::{Response, StatusCode, Uri};
use ureq::unversioned::resolver::{DefaultResolver, Resolver};
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, Body as HttpBody};

/// The longest validator that is kept, in bytes.
const VALIDATOR: usize = 1_024;

/// The result of a request.
#[derive(Debug)]
pub(super) enum FetchedAnswer {
    /// An answer, for how long it is fresh, and whether it may be kept.
    New(ApiAnswer, Freshness),
    /// The copy is still right.
    NotModified(Freshness),
    /// There is no such resource.
    Absent,
    /// The answer is larger than allowed.
    TooLarge,
    /// The server is down, or wants fewer requests; for how long, if it says so. Why, for the log.
    Down(String, Option<Duration>),
    /// The answer is of no use. Why, for the log.
    Failed(String),
    /// The answer is no longer wanted.
    Unwanted,
}

/// Sends requests.
#[derive(Debug)]
pub(super) struct Fetcher {
    private_networks: bool,
    redirects: usize,
    timeout: Duration,
    bytes: u64,
    /// The client of one process: a fork must not share its connections.
    agent: Mutex<Option<(u32, Agent)>>,
}

impl Fetcher {
    pub(super) fn new(options: &ApiOptions) -> Self {
        Self {
            private_networks: options.private_networks,
            redirects: options.redirects,
            timeout: options.timeout,
            bytes: options.bytes,
            agent: Mutex::default(),
        }
    }

    /// Requests a resource. `copy` is the kept answer, if there is one.
    pub(super) fn fetch(
        &self,
        endpoint: &CheckedService,
        id: &str,
        copy: Option<&ApiAnswer>,
    ) -> FetchedAnswer {
        let Ok(first) = endpoint.target(id).parse::<Uri>() else {
            return FetchedAnswer::Failed("the URL is too long".into());
        };
        let agent = self.agent();
        let end = Instant::now() + self.timeout;
        let mut uri = first.clone();
        for _ in 0..=self.redirects {
            let is_own = url::is_same_origin(&first, &uri);
            let response = match self.send(&agent, &uri, endpoint, copy, is_own, end) {
                Ok(response) => response,
                Err(error) => return self.failed(&error),
            };
            if !is_redirect(response.status()) {
                return self.answer(response, endpoint);
            }
            let location = response.headers().get(LOCATION);
            match location.and_then(|location| url::redirected(&uri, location.as_bytes())) {
                Some(next) => uri = next,
                None => {
                    return FetchedAnswer::Failed("a redirect leads to no URL that may be followed".into());
                }
            }
        }
        let limit = self.redirects;
        FetchedAnswer::Failed(format!(
            "it redirects more than {limit} times; set `redirects` if that is meant"
        ))
    }

    fn send(
        &self,
        agent: &Agent,
        uri: &Uri,
        endpoint: &CheckedService,
        copy: Option<&ApiAnswer>,
        is_own: bool,
        end: Instant,
    ) -> Result<Response<HttpBody>, ureq::Error> {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut request = agent.get(uri).header(ACCEPT_ENCODING, "identity");
        if is_own {
            for (name, value) in &endpoint.headers {
                request = request.header(name, value);
            }
            if let Some(etag) = copy.and_then(|copy| copy.etag.as_ref()) {
                request = request.header(IF_NONE_MATCH, etag);
            }
            if let Some(date) = copy.and_then(|copy| copy.last_modified.as_ref()) {
                request = request.header(IF_MODIFIED_SINCE, date);
            }
        }
        request.config().timeout_global(Some(left)).build().call()
    }

    /// Interprets an answer that is not a redirect.
    fn answer(&self, mut response: Response<HttpBody>, endpoint: &CheckedService) -> FetchedAnswer {
        let freshness = Freshness::from_headers(response.headers());
        match response.status() {
            StatusCode::NOT_MODIFIED => return FetchedAnswer::NotModified(freshness),
            StatusCode::NOT_FOUND | StatusCode::GONE => return FetchedAnswer::Absent,
            status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                return FetchedAnswer::Down(
                    format!("status {}", status.as_u16()),
                    retry_after(response.headers()),
                );
            }
            status if !matches!(status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION) => {
                return FetchedAnswer::Failed(format!("status {}", status.as_u16()));
            }
            _ => {}
        }
        if let Some(what) = body::coding(response.headers()) {
            return FetchedAnswer::Failed(what);
        }
        // The client refuses what reaches its limit.
        let limit = self.bytes.saturating_add(1);
        let bytes = match response.body_mut().with_config().limit(limit).read_to_vec() {
            Ok(bytes) => bytes,
            Err(error) => return self.failed(&error),
        };
        match body::contents(bytes, response.headers(), endpoint.pick.as_ref()) {
            Ok((body, mime_type)) => {
                let repeated = endpoint.repeated_secret(body.bytes());
                if let Some(name) = repeated.or_else(|| endpoint.repeated_secret(mime_type.as_bytes())) {
                    return FetchedAnswer::Failed(format!(
                        "the answer repeats the value of the header {name}, which is a secret; if it is none, write the value itself, \
                         and give the header another name than those of credentials"
                    ));
                }
                let copy = ApiAnswer {
                    body,
                    mime_type,
                    etag: validator(response.headers(), &ETAG),
                    last_modified: validator(response.headers(), &LAST_MODIFIED),
                    may_be_stale: freshness.may_be_stale,
                };
                FetchedAnswer::New(copy, freshness)
            }
            Err(what) => FetchedAnswer::Failed(what.into()),
        }
    }

    fn failed(&self, error: &ureq::Error) -> FetchedAnswer {
        let down = |what: &str| FetchedAnswer::Down(what.into(), None);
        match error {
            ureq::Error::BodyExceedsLimit(_) => FetchedAnswer::TooLarge,
            ureq::Error::Io(error) if is_by::<PrivateAddress>(error) => {
                FetchedAnswer::Failed(PrivateAddress.to_string())
            }
            ureq::Error::Io(error) if is_by::<NobodyWaits>(error) => FetchedAnswer::Unwanted,
            ureq::Error::Io(error) => down(&error.kind().to_string()),
            ureq::Error::Timeout(_) => {
                FetchedAnswer::Down(format!("there was no answer in {} ms", self.timeout.as_millis()), None)
            }
            ureq::Error::HostNotFound => down("the host has no address"),
            ureq::Error::ConnectionFailed => down("the connection failed"),
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => down("there is no encrypted connection"),
            _ => down("the answer is no HTTP"),
        }
    }

    fn agent(&self) -> Agent {
        let mut own = self.agent.lock();
        let process = std::process::id();
        if let Some((of, agent)) = &*own
            && *of == process
        {
            return agent.clone();
        }
        let agent = agent(self.private_networks, DefaultResolver::default());
        // What a parent has open stays as it is: closing it here would end its encrypted connections.
        std::mem::forget(own.replace((process, agent.clone())));
        agent
    }

    /// With another resolver.
    #[cfg(test)]
    pub(super) fn resolving(self, resolver: impl Resolver) -> Self {
        let agent = agent(self.private_networks, resolver);
        *self.agent.lock() = Some((std::process::id(), agent));
        self
    }
}

fn agent(private_networks: bool, resolver: impl Resolver) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent("mcp-resources")
        .build();
    let sockets = TcpConnector::default();
    if private_networks {
        Agent::with_parts(config, sockets.chain(RustlsConnector::default()).chain(Watching), resolver)
    } else {
        let sockets = PublicOnly.chain(sockets).chain(RustlsConnector::default());
        Agent::with_parts(config, sockets.chain(Watching), resolver)
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whether an error was made by one of ours.
fn is_by<E: std::error::Error + 'static>(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<E>())
}

fn validator(headers: &HeaderMap, name: &ureq::http::HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (value.len() <= VALIDATOR).then(|| value.to_owned())
}
