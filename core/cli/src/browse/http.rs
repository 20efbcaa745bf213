//! The page and its questions over HTTP.
//!
//! Law: a request needs the token of the URL, a `Host` of this page and, if it has one, its `Origin`. So pages of other
//! sites, and names that point to this machine, get nothing.

use super::{BrowsedServers, api, page};
use crate::body::collected;
use http_body::{Body, Frame};
use hyper::body::{Bytes, Incoming, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp_resources_client::ClientError;
use serde_json::Value;
use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// The largest question of the page, in bytes.
const MOST_QUESTION: usize = 256 << 10;

/// Headers of every response. Scripts come from this page alone, and nothing comes from the network.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; \
         media-src blob:; frame-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The page of one run of the command.
pub(super) struct BrowseSite {
    shared: Arc<BrowsedServers>,
    token: String,
    hosts: [String; 2],
}

impl BrowseSite {
    pub(super) fn new(shared: Arc<BrowsedServers>, token: String, port: u16) -> Self {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
        Self { shared, token, hosts }
    }

    /// Serves a connection until it ends.
    pub(super) async fn connection(self: Arc<Self>, socket: TcpStream) {
        // Without it, small answers come later.
        let _ = socket.set_nodelay(true);
        let service = service_fn(move |request| {
            let site = self.clone();
            async move {
                let mut response = site.answer(request).await;
                for (name, value) in HEADERS {
                    response.headers_mut().insert(name, HeaderValue::from_static(value));
                }
                Ok::<_, Infallible>(response)
            }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new());
        // An error is the end of a connection.
        let _ = builder.serve_connection(TokioIo::new(socket), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<BrowseBody> {
        if let Err(reason) = self.admit(request.headers()) {
            return plain(StatusCode::FORBIDDEN, reason);
        }
        let Some(path) = self.below_token(request.uri().path()) else {
            return plain(
                StatusCode::NOT_FOUND,
                "there is no such page; use the URL that the command printed",
            );
        };
        let path = path.to_owned();
        match (request.method(), path.strip_prefix("api/")) {
            (&Method::GET, None) => match page::file(&path) {
                Some(file) => {
                    let mut response = whole(StatusCode::OK, file.kind, Bytes::from_static(file.bytes));
                    let gzip = HeaderValue::from_static("gzip");
                    response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
                    response
                }
                None => plain(StatusCode::NOT_FOUND, "there is no such file"),
            },
            (&Method::GET, Some("events")) => {
                let events = BrowseBody::Events(self.shared.streams.open(&self.shared));
                with_kind(StatusCode::OK, "text/event-stream", events)
            }
            (&Method::GET, Some("download")) => {
                self.download(request.uri().query().unwrap_or_default()).await
            }
            (&Method::POST, Some(name)) => self.ask(name, request).await,
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "the method does not fit the path"),
        }
    }

    /// Whether a request comes from this page, or from the address bar.
    fn admit(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let Some(host) = text(header::HOST).filter(|host| self.hosts.iter().any(|own| own == host)) else {
            return Err("the header Host is not that of this page");
        };
        if text(header::ORIGIN).is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err("the header Origin is not that of this page");
        }
        if text(SITE).is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Err("the request comes from another site; open the URL from the address bar");
        }
        Ok(())
    }

    /// The part of a path after `/TOKEN/`.
    fn below_token<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        // Takes as long for every token of this length.
        let differences =
            token.bytes().zip(self.token.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
        (token.len() == self.token.len() && differences == 0).then_some(rest)
    }

    async fn ask(&self, name: &str, request: Request<Incoming>) -> Response<BrowseBody> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        // A form of another site cannot have it.
        if kind.and_then(|kind| kind.to_str().ok()) != Some("application/json") {
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a question is application/json");
        }
        let Some(body) = collected(request.into_body(), MOST_QUESTION).await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "a question has at most 256 KiB");
        };
        let Ok(question @ Value::Object(_)) = serde_json::from_slice(&body) else {
            return plain(StatusCode::BAD_REQUEST, "the question is no JSON object");
        };
        match api::answer(&self.shared, name, &question).await {
            Some(Ok(text)) => whole(StatusCode::OK, "application/json", text.into()),
            Some(Err(reason)) => plain(StatusCode::BAD_REQUEST, reason),
            None => plain(StatusCode::NOT_FOUND, "there is no such question"),
        }
    }

    async fn download(&self, query: &str) -> Response<BrowseBody> {
        let value = |name: &str| {
            let part = query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            part.and_then(mcp_resources_template::uri::decode).map(Cow::into_owned)
        };
        let (Some(server), Some(uri)) = (value("server"), value("uri")) else {
            return plain(StatusCode::BAD_REQUEST, "a download needs server and uri");
        };
        match api::download(&self.shared, &server, &uri).await {
            Ok(bytes) => {
                let mut response = whole(StatusCode::OK, "application/octet-stream", bytes.into());
                let name = format!("attachment; filename=\"{}\"", file_name(&uri));
                if let Ok(name) = HeaderValue::from_str(&name) {
                    response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
                }
                response
            }
            Err(error) => {
                let status = match &error {
                    ClientError::NotFound { .. } => StatusCode::NOT_FOUND,
                    ClientError::AccessDenied { .. } => StatusCode::FORBIDDEN,
                    _ => StatusCode::BAD_GATEWAY,
                };
                whole(status, "text/plain; charset=utf-8", error.to_string().into())
            }
        }
    }
}

/// A file's name made of the last part of a URI: letters, digits and `.-_` alone.
fn file_name(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = last.chars().map(|c| if is_safe(c) { c } else { '_' }).take(100).collect();
    // A hidden file, or a name such as `..`, is none.
    let name = name.trim_start_matches('.');
    if name.is_empty() { "resource".into() } else { name.into() }
}

/// The body of a response: bytes, or events until their sender is dropped.
enum BrowseBody {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl Body for BrowseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Events(events) => std::task::ready!(events.poll_recv(cx)),
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

fn whole(status: StatusCode, kind: &'static str, body: Bytes) -> Response<BrowseBody> {
    with_kind(status, kind, BrowseBody::Whole(Some(body)))
}

fn with_kind(status: StatusCode, kind: &'static str, body: BrowseBody) -> Response<BrowseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<BrowseBody> {
    whole(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_are_harmless() {
        for (uri, name) in [
            ("file:///a/b.txt", "b.txt"),
            ("docs:///a/%E6%A4%9C.md#x", "_E6_A4_9C.md"),
            ("x://a/..?q=/etc", "resource"),
            ("x://a/.bashrc", "bashrc"),
            ("x:a\"b\r\nc", "x_a_b__c"),
            ("db:///shop/", "shop"),
            ("///", "resource"),
        ] {
            assert_eq!(file_name(uri), name, "{uri:?}");
        }
        assert_eq!(file_name(&format!("a:/{}", "x".repeat(500))).len(), 100);
    }
}
