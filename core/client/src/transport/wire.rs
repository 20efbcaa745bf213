//! Helpers around the HTTP library: a client, URLs, headers, body frames, and the parts of an answer that are checked.

use bytes::Bytes;
use http_body::Body;
use hyper::Uri;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp_resources_engine::client::Failure;
use mcp_resources_engine::jsonrpc::{Json, JsonKind};
use mcp_resources_engine::safe_text::shortened;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Time-out for opening a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for which an idle connection is kept. Shorter than the 5 s after which common servers close it.
const IDLE: Duration = Duration::from_secs(4);
/// After this time a silent connection is probed.
const ALIVE: Duration = Duration::from_secs(30);
const NESTING: usize = 128;
/// Maximum number of characters of a server's text that are shown.
pub(super) const SHOWN: usize = 200;

pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Headers that every request sets itself, or that delimit its body.
const OURS: [&str; 13] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

pub(super) type HttpClient = Client<HttpsConnector<HttpConnector>, String>;

/// Parses a URL; also returns the part that may be shown, without query and user.
pub(super) fn parse(url: &str) -> Result<(Uri, String), String> {
    let uri: Uri = url.parse().map_err(|error| format!("the URL cannot be used: {error}"))?;
    let scheme = uri.scheme_str();
    let authority = uri.authority();
    let Some((scheme @ ("http" | "https"), authority)) = scheme.zip(authority) else {
        return Err("the URL cannot be used: it must begin with http:// or https:// and name a host".into());
    };
    if authority.as_str().contains('@') {
        return Err("the URL has a user in it: give credentials in the header `Authorization`".into());
    }
    let place = format!("{scheme}://{authority}{}", uri.path());
    Ok((uri, place))
}

/// Parses the headers that every request has. Their values are never shown.
pub(super) fn configured(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let own: HeaderName = name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
        if OURS.contains(&own.as_str()) {
            return Err(format!("the header {name:?} cannot be set: it is set for each request"));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            format!("the value of the header {name:?} has characters that a header must not have")
        })?;
        value.set_sensitive(true);
        map.append(own, value);
    }
    Ok(map)
}

/// A client that keeps connections for a while. With TLS it trusts the system's certificates.
pub(super) fn client(encrypted: bool) -> Result<HttpClient, String> {
    let failed = |error: &dyn std::error::Error| format!("TLS cannot be used: {error}");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let config = match encrypted {
        true => config.with_native_roots().map_err(|error| failed(&error))?,
        false => config.with_root_certificates(RootCertStore::empty()),
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(ALIVE));
    let tls = HttpsConnectorBuilder::new().with_tls_config(config.with_no_client_auth());
    let connector = tls.https_or_http().enable_http1().wrap_connector(tcp);
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    Ok(builder.build(connector))
}

/// The next piece of a body; `None` at its end.
pub(super) async fn frame(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await? {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Whether a body has this type, ignoring parameters.
pub(super) fn is_type(headers: &HeaderMap, expected: &str) -> bool {
    let own = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let own = own.split_once(';').map_or(own, |(own, _)| own);
    own.trim().eq_ignore_ascii_case(expected)
}

/// The type of a body, for messages.
pub(super) fn type_of(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    text.map_or_else(|| "nothing".into(), |text| format!("{:?}", shortened(text, SHOWN)))
}

/// The cause of an error: the message of the system or of the library below.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Whether a message, or one of a batch, answers the request `id`.
pub(super) fn answers(body: &[u8], id: u64) -> bool {
    let is_answer = |message: Json<'_>| {
        message.object().is_some_and(|message| {
            let [own, result, error] = message.pick(["id", "result", "error"]);
            own.and_then(Json::as_u64) == Some(id) && (result.is_some() || error.is_some())
        })
    };
    let Some(json) = Json::parse(body.trim_ascii(), NESTING) else { return false };
    is_answer(json) || json.array().is_some_and(|mut batch| batch.any(is_answer))
}

/// The error in a response without an id.
pub(super) fn error_without_id(body: &[u8]) -> Option<Failure> {
    let message = Json::parse(body.trim_ascii(), NESTING)?.object()?;
    if message.get("id").is_some_and(|id| id.kind() != JsonKind::Null) {
        return None;
    }
    let error = message.get("error")?.object()?;
    let code = error.get("code")?.as_i64()?;
    let text = error.get("message")?.as_str()?;
    let data = error.get("data").map(|data| data.raw().to_owned());
    Some(Failure::Server { code, message: shortened(&text, SHOWN), data })
}
