//! One request after the dispatch, and the steps that all methods share: asking the guard, refusing, waiting for the
//! runtime.

use super::batch::BatchId;
use super::event::{Caller, Event, RequestToken};
use super::inflight::Ticket;
use super::inputs::{self, InputClient, Retry, StateBinding};
use super::reply::{Reply, ReplyContext, ReplyReports, ReplyTask};
use super::response::ResponseWriter;
use super::terms::Terms;
use super::{Connection, OutcomeStatus, RequestOutcome, RequestRefusal};
use crate::engine::ReadFlight;
use crate::error::ReadError;
use crate::guard::{Decision, Permit, RateClass, Verdict};
use crate::headers::Headers;
use crate::jsonrpc::{Id, Json, OwnedId, RawParams};
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::{self, INTERNAL_ERROR};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A request with known terms.
#[derive(Debug)]
pub(super) struct Request<'r, 'm> {
    pub(super) id: Id<'m>,
    pub(super) params: &'r RawParams<'m>,
    pub(super) terms: Terms<'m>,
    pub(super) principal: &'m Arc<Principal>,
    pub(super) headers: Option<&'m Arc<Headers>>,
    pub(super) now: Now,
    pub(super) batch: Option<BatchId>,
    /// Whether it may be answered with a challenge for a better token.
    pub(super) challenges: bool,
}

/// A request that waits for the runtime.
pub(super) struct PendingRequest {
    pub(super) task: ReplyTask,
    pub(super) timeout: Millis,
    /// The URI as the client spelled it, for a read.
    pub(super) uri: Option<String>,
    /// The flight that its answer ends, if other requests may wait for the same resource.
    pub(super) flight: Option<Arc<ReadFlight>>,
}

/// Permission to put one request in flight: [`Connection::room`].
pub(super) struct Room(Option<Permit>);

/// The reason for which a request is not served.
pub(super) enum RefusedRequest {
    /// The principal may not use the URI. The client gets this error.
    No(ReadError),
    /// The token lacks these scopes.
    Lacking(Vec<String>),
}

impl Connection {
    pub(super) fn response_writer<'a>(&'a self, request: &Request<'_, 'a>) -> ResponseWriter<'a> {
        self.writer_naming(self.engine.server_info_member(), request)
    }

    /// The same with the member that names the server.
    pub(super) fn writer_naming<'a>(
        &'a self,
        server_info: Option<Arc<str>>,
        request: &Request<'_, 'a>,
    ) -> ResponseWriter<'a> {
        ResponseWriter {
            envelope: self.envelope(),
            id: request.id,
            revision: request.terms.revision,
            server_info,
        }
    }

    /// Answers with an error in the JSON-RPC response, not as an HTTP status.
    pub(super) fn refuse<'m>(
        &self,
        request: &Request<'_, '_>,
        code: i32,
        message: &str,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        self.response_writer(request).error(out, code, message, |_| ());
        RequestOutcome { verdict: Verdict::of_code(code), ..RequestOutcome::answered() }
    }

    /// Answers with an error about a URI.
    pub(super) fn fail<'m>(
        &self,
        request: &Request<'_, '_>,
        error: &ReadError,
        uri: Option<&str>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        self.response_writer(request).failure(out, error, uri);
        RequestOutcome { verdict: Verdict::from(error), ..RequestOutcome::answered() }
    }

    /// Answers that there is no such resource, and records that the search for a template used up its budget.
    pub(super) fn exhausted<'m>(
        &self,
        request: &Request<'_, '_>,
        uri: &str,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let outcome = self.fail(request, &ReadError::NotFound, Some(uri), out);
        RequestOutcome { verdict: Verdict::Exhausted, ..outcome }
    }

    /// Opens the input responses and the state of a retry of `method` for `what`; none before 2026-07-28.
    pub(super) fn retry<'m>(
        &self,
        request: &Request<'_, 'm>,
        method: &str,
        what: &str,
    ) -> Result<Retry<'m>, String> {
        let responses = request.params.get("inputResponses");
        let state = request.params.get("requestState");
        if !request.terms.revision.is_modern() || (responses.is_none() && state.is_none()) {
            return Ok(Retry::default());
        }
        let binding = StateBinding { method, what, principal: request.principal };
        inputs::open(&self.engine, binding, responses, state, request.now)
    }

    /// A malformed URI, for the error message; omitted if it is longer than a valid one may be.
    pub(super) fn echo<'a>(&self, uri: &'a str) -> Option<&'a str> {
        (uri.len() <= self.engine.limits().uri).then_some(uri)
    }

    /// Leaves the request in flight and returns an event to the runtime. The event gets its token and its caller.
    pub(super) fn wait<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        pending: PendingRequest,
        out: &mut Vec<u8>,
        event: impl FnOnce(RequestToken, Caller<'m>) -> Event<'m>,
    ) -> RequestOutcome<'m> {
        match self.room(request, pending.uri.as_deref(), out) {
            Ok(room) => {
                let token = self.insert(request, room, pending);
                RequestOutcome::with_one(OutcomeStatus::Pending, event(token, request.caller()))
            }
            Err(refused) => *refused,
        }
    }

    /// Reserves room for one more request in flight. `Err` if the table is full, or the principal has too many requests
    /// in flight.
    pub(super) fn room<'m>(
        &self,
        request: &Request<'_, 'm>,
        uri: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<Room, Box<RequestOutcome<'m>>> {
        if self.access.resumed.is_some() {
            return Ok(Room(None));
        }
        if self.inflight.len() >= self.engine.limits().in_flight {
            let refused = self.refuse(request, INTERNAL_ERROR, "Too many requests in flight", out);
            return Err(Box::new(refused));
        }
        let Some(amounts) = self.engine.amounts() else { return Ok(Room(None)) };
        match amounts.limiter().enter(request.principal, request.now) {
            Ok(permit) => Ok(Room(permit)),
            Err(error) => Err(Box::new(self.fail(request, &error, uri, out))),
        }
    }

    /// Inserts the request into the table of requests in flight.
    pub(super) fn insert(
        &mut self,
        request: &Request<'_, '_>,
        room: Room,
        pending: PendingRequest,
    ) -> RequestToken {
        let PendingRequest { task, timeout, uri, flight } = pending;
        let terms = &request.terms;
        let opening = match &self.access.resumed {
            Some(resumed) => resumed.ticket.opening.clone(),
            None => self.opening.take().map(Arc::new),
        };
        let ticket = Arc::new(Ticket { uri, flight, opening, ..self.ticket(request, timeout) });
        let reports = ReplyReports {
            token: terms.progress_token.map(|token| token.raw().to_owned()),
            level: terms.log_level.filter(|_| self.engine.options().logging),
            ..ReplyReports::default()
        };
        let context = ReplyContext { ticket, engine: self.engine.clone(), purpose: task.purpose() };
        if let Some(resumed) = &mut self.access.resumed {
            let token = resumed.token;
            resumed.is_waiting = true;
            self.inflight.reuse(token, Reply { token, context, task, reports });
            return token;
        }
        self.inflight.insert(room.0, |token| Reply { token, context, task, reports })
    }

    /// The ticket of a request without a URI, a flight and a record.
    pub(super) fn ticket(&self, request: &Request<'_, '_>, timeout: Millis) -> Ticket {
        Ticket {
            id: OwnedId::from(request.id),
            envelope: self.envelope(),
            revision: request.terms.revision,
            uri: None,
            timeout,
            deadline: request.now.tick.saturating_add(timeout),
            batch: request.batch,
            flight: None,
            opening: None,
            is_dropped: AtomicBool::new(false),
            is_own: false,
        }
    }

    /// Counts the request against the rate limit of its principal. Returns the refusal if the limit is
    /// exceeded.
    pub(super) fn refuse_rate<'m>(
        &self,
        request: &Request<'_, '_>,
        class: RateClass,
        uri: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Option<RequestOutcome<'m>> {
        if self.access.is_repeated() {
            return None;
        }
        let taken = self.engine.amounts()?.limiter().take(class, request.principal, request.now);
        taken.err().map(|error| self.fail(request, &error, uri, out))
    }
}

/// Turns the guard's decision into an outcome: served, refused as not found, refused openly, or challenged for a better
/// token.
impl Connection {
    /// Asks the guard. `lacking` are the scopes that the registration requires and the principal does not have.
    pub(super) fn admit(
        &self,
        request: &Request<'_, '_>,
        normal: &str,
        lacking: Vec<String>,
    ) -> Result<(), RefusedRequest> {
        if lacking.is_empty() && self.engine.is_open_to(request.principal) {
            return Ok(());
        }
        let guard = self.engine.guard();
        let mut missing = lacking;
        match self.engine.decide(&guard, request.principal, normal) {
            Decision::Allow => {}
            Decision::MissingScope { scopes } => missing.extend(scopes.into_iter().map(str::to_owned)),
            refusal => return Err(RefusedRequest::No(refused_with(&refusal))),
        }
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        missing.dedup();
        Err(if request.challenges {
            RefusedRequest::Lacking(missing)
        } else {
            RefusedRequest::No(refused_with(&guard.refusal()))
        })
    }

    /// The refusal of a URI that the principal may not see.
    pub(super) fn hidden(&self) -> RefusedRequest {
        RefusedRequest::No(refused_with(&self.engine.guard().refusal()))
    }

    /// Answers a request that is refused.
    pub(super) fn turn_away<'m>(
        &self,
        request: &Request<'_, '_>,
        refused: RefusedRequest,
        uri: &str,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        match refused {
            RefusedRequest::No(error) => {
                let verdict = if error == ReadError::NotFound { Verdict::Hidden } else { Verdict::Denied };
                RequestOutcome { verdict, ..self.fail(request, &error, Some(uri), out) }
            }
            RefusedRequest::Lacking(scopes) => {
                let code = request.terms.revision.code(&ReadError::AccessDenied);
                self.response_writer(request).error(out, code, "Insufficient scope", |data| {
                    data.str("uri", uri);
                    data.str("kind", "access_denied");
                });
                RequestOutcome { scopes, ..RequestOutcome::refused(RequestRefusal::Scope) }
            }
        }
    }

    /// Stores the sender of the latest message: a session may continue with another token, which may have fewer scopes.
    pub(super) fn know(&mut self, principal: &Arc<Principal>) {
        if self.engine.restricts() && self.principal.as_ref().is_none_or(|own| !Arc::ptr_eq(own, principal)) {
            self.principal = Some(principal.clone());
        }
    }
}

fn refused_with(refusal: &Decision<'_>) -> ReadError {
    if *refusal == Decision::Denied { ReadError::AccessDenied } else { ReadError::NotFound }
}

impl<'m> Request<'_, 'm> {
    pub(super) fn caller(&self) -> Caller<'m> {
        Caller {
            principal: self.principal,
            headers: self.headers,
            revision: self.terms.revision,
            client_info: self.terms.client_info.clone(),
            meta: self.params.get("_meta"),
        }
    }

    /// The client to ask for input before the answer.
    pub(super) fn asker(&self) -> InputClient {
        InputClient { capabilities: self.terms.capabilities, principal: self.principal.clone() }
    }

    /// The member `name`; `None` if absent, `Err` if it is not a string.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<std::borrow::Cow<'m, str>>, ()> {
        match self.params.get(name) {
            None => Ok(None),
            Some(json) => json.as_str().map(Some).ok_or(()),
        }
    }

    /// The params, if there are any.
    pub(super) fn object(&self) -> Option<Json<'m>> {
        match self.params {
            RawParams::Object { raw, .. } => Some(*raw),
            _ => None,
        }
    }
}

/// The error for a method that is unknown, or not offered here.
pub(super) fn unknown_method<'m>(
    response: &ResponseWriter<'_>,
    method: &str,
    out: &mut Vec<u8>,
) -> RequestOutcome<'m> {
    let known: String = method.chars().filter(|c| !c.is_control()).take(100).collect();
    let message = format!("Method not found: {known}");
    response.error(out, version::METHOD_NOT_FOUND, &message, |_| ());
    RequestOutcome::refused(RequestRefusal::Method)
}
