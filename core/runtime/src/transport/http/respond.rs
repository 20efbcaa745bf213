//! Responds to one request.

use super::HttpServer;
use super::body::{BodyWriter, ResponseBody};
use super::collect::{NoBody, collect};
use super::phase::ServerPhase;
use bytes::Bytes;
use http_body::Body;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use mcp_resources_engine::http::{
    Admitted, DeniedToken, Exchange, Identified, OpenedRequest, RequestHead, Response, ResponseHead, Turn,
    Verified,
};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The client disconnected, or its request was cut off, so there is nothing to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected;

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request breaks off")
    }
}

impl Error for Disconnected {}

type Answer = hyper::Response<ResponseBody>;

impl HttpServer {
    /// Answers one request, of any HTTP library that uses the types of the crate `http`. Needs a tokio runtime. A
    /// [`SocketAddr`] among the request's extensions is taken as the client's address, by which clients without a token
    /// are limited.
    ///
    /// # Errors
    /// [`Disconnected`]: close the connection.
    pub async fn respond<B>(self: Arc<Self>, request: Request<B>) -> Result<Answer, Disconnected>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let client = request.extensions().get::<SocketAddr>().map(SocketAddr::ip);
        self.respond_to(client, Principal::anonymous(client), request).await
    }

    /// Answers one request. `anyone` is its principal if nothing is required of clients; `client` is the address of its
    /// connection, `None` on a Unix socket.
    pub(super) async fn respond_to<B>(
        self: Arc<Self>,
        client: Option<IpAddr>,
        anyone: Arc<Principal>,
        request: Request<B>,
    ) -> Result<Answer, Disconnected>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if self.phases.now() != ServerPhase::Serving {
            return Ok(ResponseBody::none(StatusCode::SERVICE_UNAVAILABLE));
        }
        self.timer_task.start(&self);
        let (parts, body) = request.into_parts();
        let now = self.now();
        let anyone = match self.identity.as_ref().map(|proxy| proxy.identify(client, &parts.headers)) {
            None => Verified::client(anyone),
            Some(Ok(known)) => known,
            Some(Err(_)) if self.is_health(&parts) => Verified::client(anyone),
            Some(Err(refused)) => return Ok(ResponseBody::none(refused.status())),
        };
        let admitted = match self.admit(client, &parts, now) {
            Ok(admitted) => admitted,
            Err(response) => return Ok(self.refuse(response, now)),
        };
        drop(parts);
        let (who, now) = match admitted.token() {
            Some(token) => (self.verify(token).await, self.now()),
            None => (Ok(anyone), now),
        };
        let identified = match admitted.identify(who, now) {
            Ok(identified) => identified,
            Err(response) => return Ok(self.refuse(response, now)),
        };
        let routed = self.route.as_ref().and_then(|route| route(identified.principal()));
        let server = routed.unwrap_or_else(|| self.clone());
        if !Arc::ptr_eq(&server, &self) {
            server.timer_task.start(&server);
        }
        match collect(body, &identified).await {
            Ok((body, has_waited)) => {
                let now = if has_waited { self.now() } else { now };
                server.open(&identified, &body, now).await
            }
            // A body that is not allowed is not read.
            Err(NoBody::Refused(_)) if identified.body_limit() == 0 => {
                let now = self.now();
                server.open(&identified, &[], now).await
            }
            Err(NoBody::Refused(response)) => Ok(self.refuse(*response, self.now())),
            Err(NoBody::Broken) => Err(Disconnected),
        }
    }

    /// A refusal, which the log explains if an option can change it.
    fn refuse(&self, response: Response, now: Now) -> Answer {
        if let Some(advice) = self.endpoint.advice(&response, now) {
            self.event_handler.warn(&advice);
        }
        answer(response)
    }

    /// Handles everything in a turn except writing.
    pub(super) fn after(&self, turn: Turn<'_>, exchange: Option<&Exchange>) {
        if let Some(misuse) = &turn.misuse {
            self.event_handler.misuse(misuse);
        }
        if !turn.events.is_empty() {
            self.event_handler.handle(&self.peer(turn.connection, exchange), turn.events);
        }
        if turn.end || exchange.is_none() {
            self.look();
        }
    }

    fn admit(
        &self,
        client: Option<IpAddr>,
        parts: &hyper::http::request::Parts,
        now: Now,
    ) -> Result<Admitted, Response> {
        let lines = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let mut headers: SmallVec<[(&str, &[u8]); 24]> = lines.collect();
        if !parts.headers.contains_key(HOST)
            && let Some(authority) = parts.uri.authority()
        {
            headers.push(("host", authority.as_str().as_bytes()));
        }
        let target = match parts.uri.authority() {
            Some(_) => Cow::Owned(parts.uri.to_string()),
            None => Cow::Borrowed(parts.uri.path_and_query().map_or("", |target| target.as_str())),
        };
        let verb = parts.method.as_str();
        let head = RequestHead { verb, target: &target, headers: &headers, client, ..RequestHead::default() };
        self.endpoint.admit(&head, now)
    }

    /// Whether a request is for the path of health checks, which is answered to everybody.
    fn is_health(&self, parts: &hyper::http::request::Parts) -> bool {
        let own = self.endpoint.rules().health.as_deref();
        own.is_some_and(|own| own.trim_end_matches('/') == parts.uri.path().trim_end_matches('/'))
    }

    async fn verify(&self, token: &str) -> Result<Verified, DeniedToken> {
        match &self.verifier {
            Some(verifier) => verifier.verify(token).await,
            None => Err(DeniedToken::Unavailable),
        }
    }

    async fn open(
        self: Arc<Self>,
        identified: &Identified,
        body: &[u8],
        now: Now,
    ) -> Result<Answer, Disconnected> {
        let mut out = Vec::new();
        let OpenedRequest { mut turn, exchange } = self.endpoint.open(identified, body, now, &mut out);
        let head = turn.head.take();
        // Made first, so that its drop ends the response if a handler panics.
        let writer = exchange.map(|exchange| (BodyWriter::new(self.clone(), exchange.clone()), exchange));
        self.after(turn, writer.as_ref().map(|(_, exchange)| exchange));
        let Some((mut writer, _)) = writer else { return whole(head, out) };
        self.look();
        let head = match head {
            Some(head) => Some(head),
            None => poll_fn(|context| writer.poll(context, &mut out)).await,
        };
        if writer.has_ended() { whole(head, out) } else { stream(head, out, writer) }
    }
}

fn whole(head: Option<ResponseHead>, body: Vec<u8>) -> Result<Answer, Disconnected> {
    head.map(|head| to_hyper(head, ResponseBody::whole(body))).ok_or(Disconnected)
}

fn stream(head: Option<ResponseHead>, first: Vec<u8>, writer: BodyWriter) -> Result<Answer, Disconnected> {
    head.map(|head| to_hyper(head, ResponseBody::stream(first, writer))).ok_or(Disconnected)
}

fn answer(response: Response) -> Answer {
    to_hyper(response.head, ResponseBody::whole(response.body))
}

fn to_hyper(head: ResponseHead, body: ResponseBody) -> Answer {
    let mut answer = hyper::Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().reserve(head.headers.len());
    for (name, value) in head.headers {
        let value = match value {
            Cow::Borrowed(text) => Ok(HeaderValue::from_static(text)),
            Cow::Owned(text) => HeaderValue::try_from(text),
        };
        // The rules write visible ASCII; any other value cannot be sent.
        if let Ok(value) = value {
            answer.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    answer
}
