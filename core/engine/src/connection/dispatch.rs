//! Dispatches one message: determines its era, its terms, and the method that serves it.

use super::batch::BatchId;
use super::cached;
use super::header_check::{NamedHeader, Standing, printable};
use super::request::{Request, unknown_method};
use super::response::{self, ResponseWriter};
use super::terms::{self, Claim, Terms};
use super::{
    Arrival, Connection, ConnectionKind, Event, Events, OutcomeStatus, RequestOutcome, RequestRefusal,
};
use crate::catalog::ListKind;
use crate::guard::Verdict;
use crate::headers::Headers;
use crate::jsonrpc::{
    Decoded, Envelope, ErrorHead, ErrorId, Id, Json, Malformed, Message, ObjectWriter, OwnedId, RawParams,
    decode, end,
};
use crate::now::Now;
use crate::version::{
    self, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ProtocolMethod, Revision,
};
use std::borrow::Cow;
use std::sync::Arc;

const UNSUPPORTED: &str = "Unsupported protocol version";

/// A request before its terms are known.
pub(super) struct Raw<'m> {
    pub(super) id: Id<'m>,
    pub(super) method: Cow<'m, str>,
    pub(super) params: RawParams<'m>,
}

/// The context shared by all messages of one call.
#[derive(Clone, Copy)]
pub(super) struct DispatchStep<'m> {
    pub(super) arrival: Arrival<'m>,
    pub(super) now: Now,
    /// The batch that the message is part of; `initialize` and modern requests are refused there.
    pub(super) batch: Option<BatchId>,
    /// Headers that no rule reads: of a request that is served again, or of a test.
    pub(super) headers: Option<&'m Arc<Headers>>,
}

/// A message that gets no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unasked {
    Notification,
    Response,
    Batch,
}

impl Connection {
    pub(super) fn dispatch<'m>(
        &mut self,
        arrival: Arrival<'m>,
        headers: Option<&'m Arc<Headers>>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let step = DispatchStep { arrival, now, batch: None, headers };
        match decode(arrival.message, &self.decode) {
            Decoded::Message(message) => self.one(message, step, out),
            Decoded::Malformed(malformed) => self.malformed(malformed, out),
            Decoded::Batch(messages) => match self.refuse_unasked(Unasked::Batch, step, out) {
                None => self.batch(messages, step, out),
                Some(refused) => refused,
            },
        }
    }

    fn one<'m>(
        &mut self,
        message: Message<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        match message {
            Message::Request { id, method, params } => {
                let raw = Raw { id, method, params };
                if self.engine.observes() && !self.is_inner {
                    self.observed(&raw, step, out)
                } else {
                    self.request(&raw, step, out)
                }
            }
            Message::Notification { method, params } => {
                match self.refuse_unasked(Unasked::Notification, step, out) {
                    None => self.notification(method, &params, step.now),
                    Some(refused) => refused,
                }
            }
            Message::Response { id, result } => match self.refuse_unasked(Unasked::Response, step, out) {
                None => self.replied(id, result),
                Some(refused) => refused,
            },
        }
    }

    /// Handles the answer to a request of the server. An unexpected answer is dropped.
    fn replied<'m>(&mut self, id: Option<Id<'m>>, result: Result<Json<'m>, Json<'m>>) -> RequestOutcome<'m> {
        let outcome = RequestOutcome::new(OutcomeStatus::Accepted);
        match id.and_then(|id| self.asks.settle(id)) {
            Some(ask) => outcome.with([Event::Replied { ask, answer: Some(result) }]),
            None => outcome,
        }
    }

    /// Notifications are never answered.
    fn notification<'m>(
        &mut self,
        method: Cow<'m, str>,
        params: &RawParams<'m>,
        now: Now,
    ) -> RequestOutcome<'m> {
        let outcome = RequestOutcome::new(OutcomeStatus::Accepted);
        match &*method {
            "notifications/initialized" => {
                self.is_operating = true;
                self.engine.hub().ready(self.id);
                outcome
            }
            "notifications/cancelled" => outcome.with(self.cancelled(params, now)),
            _ => {
                let params = match params {
                    RawParams::Object { raw, .. } => Some(*raw),
                    _ => None,
                };
                outcome.with([Event::Notified { method, params }])
            }
        }
    }

    /// Handles a cancellation. Over HTTP a modern client cancels by closing its stream instead
    ///.
    fn cancelled<'m>(&mut self, params: &RawParams<'m>, now: Now) -> Vec<Event<'m>> {
        let id = params.get("requestId").and_then(Id::from_json);
        let Some(id) =
            id.filter(|_| !matches!(self.kind, ConnectionKind::Request | ConnectionKind::Stateless))
        else {
            return Vec::new();
        };
        let engine = &self.engine;
        let inflight = &mut self.inflight;
        if let Some((token, ticket)) = inflight.cancel(id, |ticket| cached::has_waiters(engine, ticket, None))
        {
            self.record_ended(&ticket, Verdict::Cancelled, 0, now);
            if let Some(batch) = ticket.batch {
                self.batches.cancel(batch, token);
            }
            return vec![Event::Cancelled(token)];
        }
        if !self.listens.remove(&OwnedId::from(id)) {
            return Vec::new();
        }
        let last = self.engine.hub().cancel(self.id, id).unwrap_or_default();
        self.engine.mark_interest(last).into_iter().collect()
    }

    /// Handles a batch.
    fn batch<'m>(
        &mut self,
        messages: Vec<Result<Message<'m>, Malformed<'m>>>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let has_batches = self.session.as_ref().is_some_and(|session| session.revision.has_batches());
        if !has_batches || self.kind == ConnectionKind::Bare {
            return self.unreadable(None, INVALID_REQUEST, "Invalid Request: batches are not supported", out);
        }
        if messages.is_empty() {
            return self.unreadable(None, INVALID_REQUEST, "Invalid Request: empty batch", out);
        }
        let id = self.batches.begin();
        let step = DispatchStep { batch: Some(id), ..step };
        let mut events = Events::new();
        let mut lines = Vec::new();
        for message in messages {
            let outcome = match message {
                Ok(message) => self.one(message, step, &mut lines),
                Err(malformed) => self.malformed(malformed, &mut lines),
            };
            events.extend(outcome.events);
            if outcome.status == OutcomeStatus::Pending {
                self.batches.wait(id);
            }
        }
        self.forget_cancelled(&mut events);
        let status = match (self.batches.read(id, &lines, out), lines.is_empty()) {
            (true, _) => OutcomeStatus::Pending,
            (false, true) => OutcomeStatus::Accepted,
            (false, false) => OutcomeStatus::Answered,
        };
        RequestOutcome { events, ..RequestOutcome::new(status) }
    }

    /// Removes the events of requests that their own batch cancelled, so that no handler starts for them.
    fn forget_cancelled(&mut self, events: &mut Events<'_>) {
        let cancelled = |event: &Event<'_>| match event {
            Event::Cancelled(token) => Some(*token),
            _ => None,
        };
        let tokens: Vec<_> = events.iter().filter_map(cancelled).collect();
        for token in tokens {
            if events.iter().any(|event| event.asks() == Some(token)) {
                events.retain(|event| event.asks() != Some(token) && cancelled(event) != Some(token));
                self.inflight.settle(token);
            }
        }
    }

    fn malformed<'m>(&self, malformed: Malformed<'m>, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        match malformed {
            Malformed::Parse => self.unreadable(None, PARSE_ERROR, "Parse error", out),
            Malformed::Invalid { id } => self.unreadable(id, INVALID_REQUEST, "Invalid Request", out),
            Malformed::Unanswerable => RequestOutcome::new(OutcomeStatus::Accepted),
        }
    }

    /// Answers a message that is not a request with an error.
    pub(super) fn unreadable<'m>(
        &self,
        id: Option<Id<'_>>,
        code: i32,
        message: &str,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let null = self.session.as_ref().is_some_and(|session| session.revision.has_null_id());
        let id = match id {
            Some(id) => ErrorId::Of(id),
            None if null => ErrorId::Null,
            None => ErrorId::Absent,
        };
        Envelope::JsonRpc.error(out, &ErrorHead { id, code, message }, |_| ());
        end(out);
        RequestOutcome::refused(RequestRefusal::Malformed)
    }

    pub(super) fn request<'m>(
        &mut self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        if step.batch.is_some() {
            return self.batched(raw, step, out);
        }
        self.identified(raw, step, out)
    }

    /// Handles a request of a batch: the responses of all its requests together have a limit.
    fn batched<'m>(
        &mut self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let before = out.len();
        let max = self.engine.limits().batch_bytes;
        if !self.batches.is_full() {
            let outcome = self.identified(raw, step, out);
            if outcome.status == OutcomeStatus::Pending || self.batches.has_room(out.len(), max) {
                return outcome;
            }
            out.truncate(before);
        }
        self.writer_for(raw).too_much(max, out);
        RequestOutcome { verdict: Verdict::SizeExceeded, ..RequestOutcome::answered() }
    }

    /// Serves a request that was held, after the checks that it has passed.
    pub(super) fn served_again<'m>(
        &mut self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        self.identified(raw, step, out)
    }

    fn identified<'m>(
        &mut self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let max = self.engine.limits().id;
        if raw.id.raw().len() > max {
            let why = format!("Invalid Request: the id is longer than {max} bytes");
            return self.reject(raw, INVALID_REQUEST, &why, RequestRefusal::Malformed, out);
        }
        if self.access.resumed.is_none() && self.is_in_flight(raw.id) {
            let why = "Invalid Request: a request with this id is in flight";
            return self.reject(raw, INVALID_REQUEST, why, RequestRefusal::Malformed, out);
        }
        let claim = Claim::from_params(&raw.params);
        let modern = claim.is_modern();
        if step.batch.is_some()
            && (modern || ProtocolMethod::parse(&raw.method) == Some(ProtocolMethod::Initialize))
        {
            let why = "Invalid Request: not allowed in a batch";
            return self.reject(raw, INVALID_REQUEST, why, RequestRefusal::Malformed, out);
        }
        if modern {
            return self.modern(raw, &claim, step, out);
        }
        if let Some(refused) = self.refuse_legacy(raw, step, out) {
            return refused;
        }
        match ProtocolMethod::parse(&raw.method) {
            Some(ProtocolMethod::Initialize) => self.initialize(raw, step, out),
            // Over HTTP the session determines the terms.
            Some(ProtocolMethod::Discover | ProtocolMethod::Listen)
                if step.arrival.header_check.is_none() =>
            {
                self.missing_claim(raw, out)
            }
            _ => self.legacy(raw, &claim, step, out),
        }
    }

    /// Serves a modern request.
    fn modern<'m>(
        &mut self,
        raw: &Raw<'m>,
        claim: &Claim<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let (version, terms) = match terms::modern(claim, self.engine.limits()) {
            Ok(read) => read,
            Err(error) => {
                return self.reject(raw, INVALID_PARAMS, &error.message, RequestRefusal::Envelope, out);
            }
        };
        if let Some(refused) = self.refuse_mirror(raw, &version, step, out) {
            return refused;
        }
        let served = Revision::parse(&version).filter(|revision| revision.is_modern());
        if served.is_none_or(|revision| !self.engine.serves(revision)) {
            return self.unsupported(raw, &version, out);
        }
        self.offered(&raw.under(terms, step), &raw.method, out)
    }

    /// Serves a legacy request.
    fn legacy<'m>(
        &mut self,
        raw: &Raw<'m>,
        claim: &Claim<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let Some(session) = &self.session else {
            if ProtocolMethod::parse(&raw.method) == Some(ProtocolMethod::Ping) {
                self.writer_for(raw).complete(out, |_| ());
                return RequestOutcome::answered();
            }
            return self.missing_claim(raw, out);
        };
        let terms = match session.terms(&raw.params, claim, self.engine.limits()) {
            Ok(terms) => terms,
            Err(error) => {
                return self.reject(raw, INVALID_PARAMS, &error.message, RequestRefusal::Envelope, out);
            }
        };
        self.offered(&raw.under(terms, step), &raw.method, out)
    }

    /// The method, if the server offers it under the request's revision.
    fn offered<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: &Cow<'m, str>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let known = ProtocolMethod::parse(method);
        let offered = match known {
            Some(ProtocolMethod::Subscribe | ProtocolMethod::Unsubscribe) if !self.can_notify() => false,
            Some(known) => self.engine.offers(known, request.terms.revision, request.principal),
            None => self.engine.offers_method(method, request.principal),
        };
        if !offered {
            return unknown_method(&self.response_writer(request), method, out);
        }
        if matches!(request.params, RawParams::Other(_)) {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: not an object", out);
        }
        match known {
            Some(known) => self.serve(request, known, out),
            None => self.call(request, method.clone(), out),
        }
    }

    fn serve<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: ProtocolMethod,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        match method {
            ProtocolMethod::Read => self.read(request, out),
            ProtocolMethod::List => self.list(request, ListKind::Resources, out),
            ProtocolMethod::ListTemplates => self.list(request, ListKind::Templates, out),
            ProtocolMethod::Complete => self.complete(request, out),
            ProtocolMethod::Subscribe => self.subscribe(request, out),
            ProtocolMethod::Unsubscribe => self.unsubscribe(request, out),
            ProtocolMethod::Listen => self.listen(request, out),
            ProtocolMethod::Discover => self.discover(request, out),
            ProtocolMethod::SetLevel => self.set_level(request, out),
            ProtocolMethod::ListTools => self.list(request, ListKind::Tools, out),
            ProtocolMethod::ListPrompts => self.list(request, ListKind::Prompts, out),
            ProtocolMethod::CallTool => self.call_tool(request, out),
            ProtocolMethod::GetPrompt => self.get_prompt(request, out),
            // `initialize` is not a method of a session; it was answered above.
            ProtocolMethod::Ping | ProtocolMethod::Initialize => {
                self.response_writer(request).complete(out, |_| ());
                RequestOutcome::answered()
            }
        }
    }

    pub(super) fn missing_claim<'m>(&self, raw: &Raw<'_>, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        let message = format!(
            "Invalid params: send initialize first, or put {} and {} into _meta",
            response::PROTOCOL_VERSION,
            response::CLIENT_CAPABILITIES
        );
        self.reject(raw, INVALID_PARAMS, &message, RequestRefusal::Envelope, out)
    }

    /// Writes the error for an unsupported revision.
    pub(super) fn unsupported<'m>(
        &self,
        raw: &Raw<'_>,
        requested: &str,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let code = version::UNSUPPORTED_VERSION;
        let message = UNSUPPORTED;
        self.writer_for(raw).error(out, code, message, |data| self.write_versions(requested, data));
        RequestOutcome::refused(RequestRefusal::Version)
    }

    pub(super) fn write_versions(&self, requested: &str, data: &mut ObjectWriter<'_>) {
        data.array("supported", |list| {
            self.engine.options().revisions.iter().for_each(|revision| list.str(revision.as_str()));
        });
        data.str("requested", requested);
    }

    pub(super) fn reject<'m>(
        &self,
        raw: &Raw<'_>,
        code: i32,
        message: &str,
        refusal: RequestRefusal,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        self.writer_for(raw).error(out, code, message, |_| ());
        RequestOutcome::refused(refusal)
    }

    /// The writer of answers that do not depend on the revision.
    pub(super) fn writer_for<'a>(&self, raw: &Raw<'a>) -> ResponseWriter<'a> {
        let revision = Revision::NEWEST_LEGACY;
        ResponseWriter { envelope: self.envelope(), id: raw.id, revision, server_info: None }
    }

    /// Whether a request with this id is in flight. Not checked over HTTP, where independent callers may use
    /// the same ids.
    fn is_in_flight(&mut self, id: Id<'_>) -> bool {
        if self.inflight.contains(id) {
            return true;
        }
        if self.listens.is_empty() {
            return false;
        }
        let owned = OwnedId::from(id);
        if !self.listens.contains(&owned) {
            return false;
        }
        let open = self.engine.hub().listening(self.id, id);
        if !open {
            self.listens.remove(&owned);
        }
        open
    }
}

/// Compares the headers of an HTTP request with its message.
impl Connection {
    /// Compares the headers with a request that claims to be modern (§2, step 8).
    fn refuse_mirror<'m>(
        &self,
        raw: &Raw<'m>,
        version: &str,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> Option<RequestOutcome<'m>> {
        let header_check = step.arrival.header_check?;
        let name =
            self.name_param(&raw.method).and_then(|param| raw.params.get(&param)).and_then(Json::as_str);
        let why = header_check.check(version, &raw.method, name.as_deref()).err()?;
        let message = format!("Header mismatch: {why}");
        Some(self.reject(raw, HEADER_MISMATCH, &message, RequestRefusal::Header, out))
    }

    /// The member of `params` that `Mcp-Name` repeats.
    fn name_param(&self, method: &str) -> Option<Cow<'static, str>> {
        match ProtocolMethod::parse(method) {
            Some(known) => known.name_param().map(Cow::Borrowed),
            None => self.engine.custom_method(method)?.name_param.map(Cow::Owned),
        }
    }

    /// Refuses HTTP requests without the modern claim that need one, or need a session (§2, steps 7 and 9).
    fn refuse_legacy<'m>(
        &self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> Option<RequestOutcome<'m>> {
        let header_check = step.arrival.header_check?;
        let is_handshake = ProtocolMethod::parse(&raw.method) == Some(ProtocolMethod::Initialize);
        let refused = match header_check.named(&self.engine) {
            NamedHeader::Modern(_) if !is_handshake => self.missing_claim(raw, out),
            NamedHeader::Repeated | NamedHeader::Modern(_) => {
                let why = "Header mismatch: MCP-Protocol-Version contradicts the body";
                self.reject(raw, HEADER_MISMATCH, why, RequestRefusal::Header, out)
            }
            NamedHeader::Unknown(value) if !is_handshake => self.unsupported(raw, &printable(value), out),
            NamedHeader::Nothing | NamedHeader::Legacy | NamedHeader::Unknown(_) => {
                let (why, refusal) = header_check.session.refusal().filter(|_| !is_handshake)?;
                self.reject(raw, INVALID_REQUEST, why, refusal, out)
            }
        };
        Some(refused)
    }

    /// Refuses other messages that HTTP does not allow here (§2, steps 7 and 9).
    fn refuse_unasked<'m>(
        &self,
        unasked: Unasked,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> Option<RequestOutcome<'m>> {
        let header_check = step.arrival.header_check?;
        let refused = match header_check.named(&self.engine) {
            NamedHeader::Repeated => {
                let why = "Header mismatch: MCP-Protocol-Version is there more than once";
                refuse_without_id(HEADER_MISMATCH, why, RequestRefusal::Header, out, |_| ())
            }
            NamedHeader::Modern(_) if unasked == Unasked::Response => {
                let why = "Invalid Request: a client sends no responses";
                refuse_without_id(INVALID_REQUEST, why, RequestRefusal::Malformed, out, |_| ())
            }
            NamedHeader::Modern(revision) if self.engine.serves(revision) => return None,
            NamedHeader::Modern(revision) => self.unsupported_without_id(revision.as_str(), out),
            NamedHeader::Unknown(value) => self.unsupported_without_id(&printable(value), out),
            NamedHeader::Nothing
                if unasked == Unasked::Notification && header_check.session == Standing::Missing =>
            {
                RequestOutcome::new(OutcomeStatus::Accepted)
            }
            NamedHeader::Nothing | NamedHeader::Legacy => {
                let (why, refusal) = header_check.session.refusal()?;
                refuse_without_id(INVALID_REQUEST, why, refusal, out, |_| ())
            }
        };
        Some(refused)
    }

    fn unsupported_without_id<'m>(&self, requested: &str, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        let code = version::UNSUPPORTED_VERSION;
        let message = UNSUPPORTED;
        refuse_without_id(code, message, RequestRefusal::Version, out, |data| {
            self.write_versions(requested, data)
        })
    }
}

impl<'m> Raw<'m> {
    fn under<'r>(&'r self, terms: Terms<'m>, step: DispatchStep<'m>) -> Request<'r, 'm> {
        let DispatchStep { arrival, now, batch, headers } = step;
        let challenges = arrival.header_check.is_some_and(|header_check| header_check.challenges)
            && batch.is_none()
            && !(arrival.principal.is_local() || arrival.principal.is_anonymous());
        let headers = arrival.header_check.and_then(|header_check| header_check.headers).or(headers);
        let id = self.id;
        let params = &self.params;
        let principal = arrival.principal;
        Request { id, params, terms, principal, headers, now, batch, challenges }
    }
}

/// Writes an error for a message without an id.
fn refuse_without_id<'m>(
    code: i32,
    message: &str,
    refusal: RequestRefusal,
    out: &mut Vec<u8>,
    data: impl FnOnce(&mut ObjectWriter<'_>),
) -> RequestOutcome<'m> {
    Envelope::JsonRpc.error(out, &ErrorHead { id: ErrorId::Absent, code, message }, data);
    end(out);
    RequestOutcome::refused(refusal)
}
