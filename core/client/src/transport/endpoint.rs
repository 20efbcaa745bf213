//! One endpoint of Streamable HTTP: its session, and the course of an exchange with it.
//!
//! Law: an answer is limited in size before it is kept. Redirects are followed only if they keep the request as it is (307,
//! 308) and lead to the same origin, so that no header reaches another one. Errors show only scheme, host, port and path
//! of a URL, because headers and queries can be secrets.

use super::Inbound;
use super::events::StreamFault;
use super::redirect;
use super::tokens::ClientTokens;
use super::wire::{self, HttpClient};
use crate::target::ClientCredentials;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method as Verb, Request, Response, StatusCode, Uri};
use mcp_resources_engine::client::{Failure, NotCarried, Outgoing};
use mcp_resources_engine::headers::encode_header_value;
use mcp_resources_engine::http::{EVENT_STREAM, JSON};
use mcp_resources_engine::version::ProtocolMethod;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

/// Maximum time for ending a session.
const FAREWELL: Duration = Duration::from_secs(2);
/// Maximum time for reading the rest of a body after the answer, so that the connection can be reused.
const REST: Duration = Duration::from_millis(100);

/// Maximum number of redirects of one request.
const REDIRECTS: usize = 5;
/// Maximum time for a server of the older transport to reveal itself.
const PROBE: Duration = Duration::from_secs(3);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The client's side of one endpoint.
#[derive(Debug)]
pub(super) struct HttpTransport {
    client: HttpClient,
    /// The configured URL, or the one to which it was moved permanently within its origin.
    uri: Mutex<Uri>,
    /// The part of the URL that may be shown.
    place: String,
    headers: HeaderMap,
    inbound: Sender<Inbound>,
    pub(super) longest: usize,
    session: Mutex<ClientSession>,
    tokens: Option<ClientTokens>,
}

/// A legacy session; empty before the handshake, and for self-contained messages.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientSession {
    /// `None` for a server without sessions.
    id: Option<HeaderValue>,
    revision: Option<&'static str>,
    /// Whether the end of the session was reported. Its id is still sent until the next handshake, so that messages
    /// sent before the report is handled are not mistaken for messages without a session.
    has_ended: bool,
}

/// The request that a response may answer.
#[derive(Clone, Copy, Debug)]
struct ExpectedAnswer {
    /// `None` for a message other than a request.
    id: Option<u64>,
    is_modern: bool,
}

impl HttpTransport {
    pub(super) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Result<Self, String> {
        let (uri, place) = wire::parse(url)?;
        let headers = wire::configured(headers)?;
        let client = wire::client(uri.scheme_str() == Some("https"))?;
        let session = Mutex::default();
        Ok(Self { client, uri: Mutex::new(uri), place, headers, inbound, longest, session, tokens: None })
    }

    /// With tokens of an authorization server.
    ///
    /// # Errors
    /// The reason for which its URL cannot be used.
    pub(super) fn with_credentials(self, credentials: Option<&ClientCredentials>) -> Result<Self, String> {
        Ok(Self { tokens: credentials.map(ClientTokens::new).transpose()?, ..self })
    }

    /// The session of a message. A handshake starts a new one.
    pub(super) fn session_of(&self, message: &Outgoing) -> ClientSession {
        if message.is_modern {
            return ClientSession::default();
        }
        let mut session = self.session();
        if ProtocolMethod::parse(&message.method) == Some(ProtocolMethod::Initialize) {
            *session = ClientSession::default();
        }
        session.revision = message.revision;
        session.clone()
    }

    /// Posts a message and passes on the answer; returns whether the message was accepted.
    pub(super) async fn post(&self, message: Outgoing, session: &ClientSession) -> bool {
        let id = message.id;
        match self.exchange(message, session).await {
            Ok(()) => return true,
            Err(StreamFault::NotCarried(fault)) => {
                if let Some(id) = id {
                    self.report(Inbound::NotCarried(id, fault)).await;
                }
            }
            Err(StreamFault::SessionEnded(ended)) => self.end_session(&ended).await,
        }
        false
    }

    /// Opens an event stream of a session: the notification stream, or one that broke after the event `last`.
    pub(super) async fn stream(
        &self,
        session: &ClientSession,
        last: Option<&HeaderValue>,
    ) -> Result<Incoming, StreamFault> {
        let mut request = self.request(Verb::GET, String::new());
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        headers.extend(last.map(|last| (LAST_EVENT, last.clone())));
        session.put(headers);
        let response = self.fetch(request).await?;
        let status = response.status();
        if status.is_success() && wire::is_type(response.headers(), EVENT_STREAM) {
            return Ok(response.into_body());
        }
        match session.id.as_ref().filter(|_| status == StatusCode::NOT_FOUND) {
            Some(ended) => Err(StreamFault::SessionEnded(ended.clone())),
            None => Err(self.status_fault(status, response.headers())),
        }
    }

    /// Ends the session, if there is one.
    pub(super) async fn delete(&self) {
        let session = self.session().clone();
        if session.id.is_some() && !session.has_ended {
            let mut request = self.request(Verb::DELETE, String::new());
            session.put(request.headers_mut());
            // A server may refuse this; it then ends the session later by itself.
            let _ = timeout(FAREWELL, self.fetch(request)).await;
        }
    }

    /// Reports that the server no longer knows the session. Only once, although each exchange detects it.
    pub(super) async fn end_session(&self, ended: &HeaderValue) {
        let is_news = {
            let mut session = self.session();
            session.id.as_ref() == Some(ended) && !std::mem::replace(&mut session.has_ended, true)
        };
        if is_news {
            self.report(Inbound::SessionEnded).await;
        }
    }

    pub(super) async fn report(&self, inbound: Inbound) {
        // Fails if the client no longer exists.
        let _ = self.inbound.send(inbound).await;
    }

    async fn exchange(&self, message: Outgoing, session: &ClientSession) -> Result<(), StreamFault> {
        let expected = ExpectedAnswer { id: message.id, is_modern: message.is_modern };
        let begins = ProtocolMethod::parse(&message.method) == Some(ProtocolMethod::Initialize);
        let request = self.posting(message, session)?;
        let response = self.fetch(request).await?;
        if !response.status().is_success() {
            let status = response.status();
            let refused = self.refused(response, expected, session).await;
            let may_be_older = matches!(status.as_u16(), 400 | 404 | 405) && begins && refused.is_err();
            return if may_be_older && self.is_older_transport().await {
                Err(self.older_transport(status))
            } else {
                refused
            };
        }
        if begins {
            self.session().id = response.headers().get(SESSION).cloned();
        }
        let Some(id) = expected.id else { return Ok(()) };
        if wire::is_type(response.headers(), EVENT_STREAM) {
            let mut body =
                self.follow(response.into_body(), id, (!expected.is_modern).then_some(session)).await?;
            let _ = timeout(REST, async { while let Some(Ok(_)) = wire::frame(&mut body).await {} }).await;
            return Ok(());
        }
        if !wire::is_type(response.headers(), JSON) {
            let what = wire::type_of(response.headers());
            return Err(bad(response.status(), format!("it is of the type {what}, not JSON or events")));
        }
        let status = response.status();
        let body = self.whole(response.into_body(), status).await?;
        let is_answer = wire::answers(&body, id);
        self.report(Inbound::Message(body)).await;
        if is_answer { Ok(()) } else { Err(bad(status, "it does not answer the request".into())) }
    }

    /// Builds a POST with its session and the headers that repeat parts of the message.
    fn posting(&self, message: Outgoing, session: &ClientSession) -> Result<Request<String>, StreamFault> {
        let body = String::from_utf8(message.body)
            .map_err(|_| bad(StatusCode::BAD_REQUEST, "the request is not UTF-8".into()))?;
        let mut request = self.request(Verb::POST, body);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if message.is_modern {
            headers.extend(value(&message.method).map(|method| (wire::METHOD, method)));
            headers.extend(
                message
                    .name
                    .and_then(|name| value(&encode_header_value(&name)))
                    .map(|name| (wire::NAME, name)),
            );
            headers.extend(message.revision.map(|text| (VERSION, HeaderValue::from_static(text))));
        }
        session.put(headers);
        Ok(request)
    }

    /// Handles a status that is not a success.
    async fn refused(
        &self,
        response: Response<Incoming>,
        expected: ExpectedAnswer,
        session: &ClientSession,
    ) -> Result<(), StreamFault> {
        let (head, body) = response.into_parts();
        if let Some(ended) = session.id.as_ref().filter(|_| head.status == StatusCode::NOT_FOUND) {
            return Err(StreamFault::SessionEnded(ended.clone()));
        }
        let fault = self.status_fault(head.status, &head.headers);
        let Some(id) = expected.id.filter(|_| wire::is_type(&head.headers, JSON)) else { return Err(fault) };
        let Ok(body) = self.whole(body, head.status).await else { return Err(fault) };
        if wire::answers(&body, id) {
            self.report(Inbound::Message(body)).await;
            return Ok(());
        }
        match wire::error_without_id(&body).filter(|_| head.status != StatusCode::UNAUTHORIZED) {
            Some(failure) => Err(not_carried(Some(head.status), failure)),
            None => Err(fault),
        }
    }

    fn status_fault(&self, status: StatusCode, headers: &HeaderMap) -> StreamFault {
        let place = &self.place;
        let unreachable = |reason| not_carried(Some(status), Failure::Unreachable { reason });
        let unauthorized = |reason| not_carried(Some(status), Failure::Unauthorized { reason });
        match status {
            StatusCode::UNAUTHORIZED => unauthorized(format!(
                "{place} asks for authorization (status 401): give a valid token in the header `Authorization: Bearer TOKEN`"
            )),
            StatusCode::FORBIDDEN => unauthorized(format!(
                "{place} refuses this client (status 403): check the token in the header `Authorization: Bearer TOKEN`"
            )),
            _ if status.is_redirection() => {
                let to = redirect::shown_target(headers, &self.uri());
                // Other statuses turn a POST into a GET, which is no request of this protocol.
                let why = match redirect::keeps_request(status) {
                    true => "is another origin and not followed, because it would get this client's headers"
                        .into(),
                    false => {
                        format!("is not followed with status {}, which drops the request", status.as_u16())
                    }
                };
                bad(status, format!("{place} redirects to {to}, which {why}: use the URL that it leads to"))
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => bad(
                status,
                format!(
                    "{place} answers with status {status}: check that this is the URL of an MCP endpoint, which often ends in /mcp"
                ),
            ),
            _ if status.is_server_error() => unreachable(format!("{place} answers with status {status}")),
            _ => bad(status, format!("{place} answers with status {status}")),
        }
    }

    /// Reads a whole body, up to the limit.
    async fn whole(&self, mut body: Incoming, status: StatusCode) -> Result<Vec<u8>, StreamFault> {
        let mut whole = Vec::new();
        while let Some(frame) = wire::frame(&mut body).await {
            let data = frame.map_err(|error| self.broken(&error))?;
            if whole.len() + data.len() > self.longest {
                return Err(not_carried(Some(status), Failure::TooLarge { limit: self.longest as u64 }));
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole)
    }

    /// Sends a request, and follows the redirects of its origin.
    async fn fetch(&self, mut request: Request<String>) -> Result<Response<Incoming>, StreamFault> {
        let mut is_permanent = true;
        if let Some(tokens) = &self.tokens {
            let token =
                tokens.token().await.map_err(|reason| not_carried(None, Failure::Unauthorized { reason }))?;
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        for _ in 0..REDIRECTS {
            let sent = request.clone();
            let response = self.client.request(sent).await.map_err(|error| self.broken(&error))?;
            let status = response.status();
            if let Some(tokens) = self.tokens.as_ref().filter(|_| status == StatusCode::UNAUTHORIZED) {
                // It may have been revoked: the next request gets a new one.
                tokens.forget().await;
            }
            let target = redirect::within_origin(status, response.headers(), request.uri());
            let Some(target) = target else { return Ok(response) };
            is_permanent &= status == StatusCode::PERMANENT_REDIRECT;
            if is_permanent {
                *self.uri.lock().unwrap_or_else(PoisonError::into_inner) = target.clone();
            }
            *request.uri_mut() = target;
        }
        let reason = format!("{} redirects more than {REDIRECTS} times: check its configuration", self.place);
        Err(bad(StatusCode::LOOP_DETECTED, reason))
    }

    /// Whether a GET begins the event stream of HTTP+SSE, the transport of 2024-11-05.
    async fn is_older_transport(&self) -> bool {
        let mut request = self.request(Verb::GET, String::new());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        let begins = async {
            let response = self.fetch(request).await.ok()?;
            let is_stream = response.status().is_success() && wire::is_type(response.headers(), EVENT_STREAM);
            let mut body = is_stream.then(|| response.into_body())?;
            let first = wire::frame(&mut body).await?.ok()?;
            first.starts_with(b"event: endpoint").then_some(())
        };
        matches!(timeout(PROBE, begins).await, Ok(Some(())))
    }

    fn older_transport(&self, status: StatusCode) -> StreamFault {
        let reason = format!(
            "{} speaks only the transport HTTP+SSE of revision 2024-11-05, which this client does not: \
             use the server's Streamable HTTP endpoint, which often ends in /mcp",
            self.place
        );
        not_carried(Some(status), Failure::Unreachable { reason })
    }

    /// A fault for a connection that failed with `error`.
    pub(super) fn broken(&self, error: &dyn std::error::Error) -> StreamFault {
        self.ended(&wire::reason(error))
    }

    /// A fault for a connection that failed or ended too early.
    pub(super) fn ended(&self, reason: &str) -> StreamFault {
        not_carried(None, Failure::Unreachable { reason: format!("{}: {reason}", self.place) })
    }

    fn request(&self, verb: Verb, body: String) -> Request<String> {
        let mut request = Request::new(body);
        *request.method_mut() = verb;
        *request.uri_mut() = self.uri();
        *request.headers_mut() = self.headers.clone();
        request
    }

    fn uri(&self) -> Uri {
        self.uri.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn session(&self) -> std::sync::MutexGuard<'_, ClientSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSession {
    fn put(&self, headers: &mut HeaderMap) {
        headers.extend(self.id.clone().map(|id| (SESSION, id)));
        headers.extend(self.revision.map(|text| (VERSION, HeaderValue::from_static(text))));
    }
}

/// A text that is not a valid header value is omitted; the server's error then says what is missing.
fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

fn bad(status: StatusCode, reason: String) -> StreamFault {
    not_carried(Some(status), Failure::BadAnswer { reason })
}

pub(super) fn not_carried(status: Option<StatusCode>, failure: Failure) -> StreamFault {
    StreamFault::NotCarried(NotCarried { status: status.map(|status| status.as_u16()), failure })
}
