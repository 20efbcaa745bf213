//! Requests and notifications that wait until the handler of a resource has decided who may use it.
//!
//! ```text
//!   request ──a question without an answer──▶ held ──Event::Access, answered──▶ Event::Again ──▶ served from its start
//!   change  ──a question without an answer──▶ withheld ──Event::Access, answered yes──▶ marked again, and sent
//! ```
//!
//! Law: a request is held before it has any effect, so it can be served again from its start. It keeps its slot, its
//! time-out and its rate meanwhile, and is recorded once. A notification without an answer is not sent.

use super::answer::Answer;
use super::dispatch::{DispatchStep, Raw};
use super::event::{Event, Events, ListCaller, OwnedCaller, RequestToken};
use super::inflight::Ticket;
use super::list::ListQuestion;
use super::reply::{Reply, ReplyContext, ReplyReports, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request};
use super::{Arrival, Connection, ConnectionKind, OutcomeStatus, RequestOutcome};
use crate::catalog::HandlerId;
use crate::engine::{AccessAnswers, AccessBatch, AccessQuestion, AccessRound, AccessView, Engine};
use crate::headers::Headers;
use crate::hub::{Delivered, HubDelivery};
use crate::jsonrpc::{DecodeLimits, Decoded, Envelope, Message, OwnedId, decode, object};
use crate::now::Now;
use crate::principal::Principal;
use crate::version::{INTERNAL_ERROR, ProtocolMethod, Revision};
use mcp_resources_template::MatchedParams;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Most rounds of questions of one request: each may uncover further ones, as items of a list do.
const MOST_ROUNDS: usize = 1_000;

/// A request for the handler that decides who may use its resources.
#[derive(Clone, Debug)]
pub struct AccessRequest {
    /// The request to answer, with [`Answer::Access`].
    pub token: RequestToken,
    /// The handler to call, and the questions.
    pub batch: AccessBatch,
    /// The principal to decide about, and the terms of its request. Without headers if a notification waits.
    pub caller: Arc<OwnedCaller>,
}

/// A request whose questions are answered, to be served from its start.
#[derive(Debug)]
pub struct HeldRequest {
    pub(super) token: RequestToken,
    message: Vec<u8>,
    principal: Arc<Principal>,
    headers: Option<Arc<Headers>>,
    answers: Arc<AccessAnswers>,
    rounds: usize,
    listens: Option<u64>,
}

/// The held request that a connection is serving again.
#[derive(Debug)]
pub(super) struct ResumedRequest {
    pub(super) token: RequestToken,
    pub(super) ticket: Arc<Ticket>,
    /// Whether it waits again, in the same slot.
    pub(super) is_waiting: bool,
    rounds: usize,
}

/// A held request that waits for answers.
#[derive(Debug)]
pub(super) struct HeldTask {
    round: AccessRound,
    message: Vec<u8>,
    caller: Arc<OwnedCaller>,
    rounds: usize,
    /// For a listen, the number of regrants before it.
    listens: Option<u64>,
}

/// Notifications to one principal that wait for answers.
#[derive(Debug)]
pub(super) struct NoticeTask {
    round: AccessRound,
    caller: Arc<OwnedCaller>,
    withheld: Vec<(Arc<str>, WithheldNotice)>,
}

/// The reason of a question about a watched URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithheldNotice {
    /// It has changed.
    Changed,
    /// The principal was regranted: the watch ends unless it is still allowed.
    Regranted,
}

/// The next step of a request that has an answer, but is not answered.
#[derive(Debug)]
pub(super) enum NextQuestion {
    List(ListQuestion),
    Access(AccessBatch),
    Again(Box<HeldRequest>),
    /// The answers about watched URIs.
    Settled(SettledNotices),
}

/// The answers about the watched URIs of a principal.
#[derive(Debug)]
pub(super) struct SettledNotices {
    principal: Arc<Principal>,
    changed: Vec<Arc<str>>,
    ended: Vec<Arc<str>>,
}

/// The known access of the principals of a connection.
#[derive(Debug, Default)]
pub(super) struct AccessState {
    /// The answers that the current request has got.
    pub(super) answers: Option<Arc<AccessAnswers>>,
    pub(super) resumed: Option<ResumedRequest>,
    /// The questions of a request inside a call of a tool, which asks them itself.
    pub(super) inner: Vec<AccessQuestion>,
    /// Notifications without an answer, not yet asked about. Limited by the watches.
    withheld: Vec<(Arc<Principal>, AccessQuestion, WithheldNotice)>,
    /// Changes that are asked about, by the question.
    asked: HashMap<RequestToken, (Arc<Principal>, HashSet<Arc<str>>)>,
    /// Changes to send without a further question, once each.
    passes: Vec<(Arc<Principal>, Arc<str>)>,
    /// Whether the last watch of a URI has ended, and an observer must know.
    has_left: bool,
}

impl NextQuestion {
    pub(super) fn event<'m>(self, token: RequestToken, caller: Arc<OwnedCaller>) -> Option<Event<'m>> {
        match self {
            Self::List(question) => Some(question.event(token, ListCaller::Kept(caller))),
            Self::Access(batch) => Some(Event::Access(AccessRequest { token, batch, caller })),
            Self::Again(held) => Some(Event::Again(held)),
            Self::Settled(_) => None,
        }
    }
}

/// Requests that are held.
impl Connection {
    /// A look at what the sender of a request may use.
    pub(super) fn access_view<'a>(&'a self, request: &'a Request<'_, '_>) -> AccessView<'a> {
        self.engine.access_view(request.principal, self.access.answers.as_deref(), request.now)
    }

    /// Whether the sender of a request may use the URI `normal`, which the guard permits and whose `handler` decides.
    ///
    /// # Errors
    /// The question, if there is no answer.
    pub(super) fn decided(
        &self,
        request: &Request<'_, '_>,
        handler: Option<HandlerId>,
        normal: &str,
        params: impl FnOnce() -> Option<MatchedParams<'static>>,
    ) -> Result<bool, Vec<AccessQuestion>> {
        if handler.is_none() {
            return Ok(true);
        }
        let mut view = self.access_view(request);
        let is_allowed = view.decide(handler, normal, params);
        if view.unknown() == 0 { Ok(is_allowed) } else { Err(view.into_questions()) }
    }

    /// Holds a request until its questions are answered. It must not have had an effect.
    pub(super) fn hold<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: ProtocolMethod,
        questions: Vec<AccessQuestion>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        if self.is_inner {
            self.access.inner = questions;
            return RequestOutcome::nothing();
        }
        let rounds = self.access.resumed.as_ref().map_or(0, |resumed| resumed.rounds) + 1;
        if rounds > MOST_ROUNDS {
            return self.refuse(request, INTERNAL_ERROR, "Too many resources to decide about", out);
        }
        let room = match self.room(request, None, out) {
            Ok(room) => room,
            Err(refused) => return *refused,
        };
        let answers = self.access.answers.take().map_or_else(AccessAnswers::default, Arc::unwrap_or_clone);
        let caller: Arc<OwnedCaller> = Arc::new(request.caller().into());
        let round = AccessRound::new(&self.engine, answers, questions);
        let Some(batch) = round.next() else {
            return self.refuse(request, INTERNAL_ERROR, "Internal error", out);
        };
        let mut message = Vec::new();
        object(&mut message, |members| {
            members.str("jsonrpc", "2.0");
            members.raw("id", request.id.into());
            members.str("method", method.as_str());
            if let Some(params) = request.object() {
                members.raw("params", params);
            }
        });
        let listens = (method == ProtocolMethod::Listen).then(|| self.engine.regrants());
        let task = HeldTask { round, message, caller: caller.clone(), rounds, listens };
        let pending = PendingRequest {
            task: ReplyTask::Held(Box::new(task)),
            timeout: self.engine.limits().read_timeout,
            uri: request.optional_text("uri").ok().flatten().map(std::borrow::Cow::into_owned),
            flight: None,
        };
        let token = self.insert(request, room, pending);
        RequestOutcome::with_one(
            OutcomeStatus::Pending,
            Event::Access(AccessRequest { token, batch, caller }),
        )
    }

    /// Whether the request with this token is a held `subscriptions/listen`, whose answer begins a stream.
    pub(crate) fn holds_listen(&mut self, token: RequestToken) -> bool {
        self.engine.has_access()
            && self
                .inflight
                .get(token)
                .is_some_and(|reply| matches!(&reply.task, ReplyTask::Held(held) if held.listens.is_some()))
    }

    /// Serves a held request from its start: for [`Event::Again`]. Appends what [`Connection::message`] would have
    /// appended. `OutcomeStatus::Accepted` if the answer is no longer wanted.
    pub fn again<'h>(&mut self, held: &'h HeldRequest, now: Now, out: &mut Vec<u8>) -> RequestOutcome<'h> {
        let token = held.token;
        let Some(ticket) = self.inflight.wanted(token).cloned() else {
            self.inflight.settle(token);
            return RequestOutcome::nothing();
        };
        let limits = self.engine.limits();
        let decode_limits = DecodeLimits { nesting: limits.nesting, batch: 1, ..DecodeLimits::default() };
        let Decoded::Message(Message::Request { id, method, params }) = decode(&held.message, &decode_limits)
        else {
            self.inflight.settle(token);
            return RequestOutcome::nothing();
        };
        self.access.answers = Some(held.answers.clone());
        self.access.resumed =
            Some(ResumedRequest { token, ticket: ticket.clone(), is_waiting: false, rounds: held.rounds });
        let arrival = Arrival { message: &held.message, principal: &held.principal, header_check: None };
        let step = DispatchStep { arrival, now, batch: ticket.batch, headers: held.headers.as_ref() };
        let mut line = Vec::new();
        let mut outcome = self.served_again(&Raw { id, method, params }, step, &mut line);
        self.access.answers = None;
        let waits = self.access.resumed.take().is_some_and(|resumed| resumed.is_waiting);
        if waits {
            return outcome;
        }
        // The token of a stream may have been revoked in the meantime.
        let is_late = held.listens.is_some_and(|before| before != self.engine.regrants());
        if is_late && self.kind == ConnectionKind::Request {
            self.end_listens().into_iter().for_each(|event| outcome.events.push(event));
        }
        self.record_ended(&ticket, outcome.verdict, line.len(), now);
        let max = self.engine.limits().batch_bytes;
        match ticket.batch {
            Some(_) => self.batches.answer(&ticket, &line, max, out),
            None => out.append(&mut line),
        }
        self.inflight.settle(token);
        outcome
    }
}

/// Notifications that are withheld.
impl Connection {
    /// Delivers where handlers decide, or a principal was regranted.
    pub(super) fn deliver_asking(
        &mut self,
        engine: &Engine,
        delivery: HubDelivery<'_>,
        out: &mut Vec<u8>,
    ) -> Delivered {
        let hub = engine.hub();
        if hub.has_regranted() {
            self.recheck(hub.take_regranted(self.id));
        }
        let id = self.id;
        let latest = self.principal.clone();
        let mut may_see =
            |principal: &Arc<Principal>, uri: &str| self.may_tell(latest.as_ref().unwrap_or(principal), uri);
        hub.deliver(id, delivery, out, &mut may_see)
    }

    /// Whether `principal` may be told that `uri` has changed. Without an answer it is withheld, and a question waits.
    pub(super) fn may_tell(&mut self, principal: &Arc<Principal>, uri: &str) -> bool {
        let is_passed =
            |(own, passed): &(Arc<Principal>, Arc<str>)| own.has_rights_of(principal) && **passed == *uri;
        if let Some(at) = self.access.passes.iter().position(is_passed) {
            self.access.passes.swap_remove(at);
            return self.engine.sees(principal, uri);
        }
        let is_asked = |(own, uris): &(Arc<Principal>, HashSet<Arc<str>>)| {
            own.has_rights_of(principal) && uris.contains(uri)
        };
        !self.access.asked.values().any(is_asked)
            && self.ask_to_tell(principal, uri, WithheldNotice::Changed) == Some(true)
    }

    /// Ends the watches that the principal may no longer have, after it was regranted; those without an answer get a
    /// question.
    ///
    /// A client whose token came with rights has to send it again, so that it is verified.
    fn recheck(&mut self, watches: Vec<(Arc<Principal>, Arc<str>)>) {
        if watches.iter().any(|(principal, _)| principal.has_grant()) {
            match self.kind {
                ConnectionKind::Request => self.access.has_left |= !self.end_listens().is_empty(),
                ConnectionKind::Session => self.dismiss(),
                _ => {}
            }
        }
        for (principal, uri) in watches {
            let viewer = self.principal.clone().unwrap_or_else(|| principal.clone());
            if self.ask_to_tell(&viewer, &uri, WithheldNotice::Regranted) == Some(false) {
                self.end_watch(&principal, &uri);
            }
        }
    }

    fn ask_to_tell(
        &mut self,
        principal: &Arc<Principal>,
        uri: &str,
        withheld: WithheldNotice,
    ) -> Option<bool> {
        let mut view = self.engine.latest_access_view(principal);
        let is_allowed = view.sees(uri);
        match view.into_questions().pop() {
            None => Some(is_allowed),
            Some(question) => {
                if self.access.withheld.is_empty() {
                    // Whichever call delivered, the runtime has to look at the deadline.
                    self.waker.wake_by_ref();
                }
                self.access.withheld.push((principal.clone(), question, withheld));
                None
            }
        }
    }

    fn end_watch(&mut self, principal: &Arc<Principal>, uri: &str) {
        let left = self.engine.hub().end_watch(self.id, principal.id(), uri);
        self.access.has_left |= self.engine.mark_interest(left).is_some();
    }

    /// Whether questions about watched URIs wait to be asked, or watches have ended.
    pub(crate) fn has_questions(&self) -> bool {
        !self.access.withheld.is_empty() || self.access.has_left
    }

    /// Takes the questions about watched URIs, and other effects of a delivery. [`Connection::tick`] does this too.
    pub(crate) fn take_questions(&mut self, now: Now) -> Events<'static> {
        let mut events = Events::new();
        if std::mem::take(&mut self.access.has_left) {
            events.push(Event::Interest);
        }
        let mut withheld = std::mem::take(&mut self.access.withheld);
        while let Some((principal, ..)) = withheld.first() {
            let principal = principal.clone();
            let own: Vec<_> = withheld.extract_if(.., |(other, ..)| Arc::ptr_eq(other, &principal)).collect();
            let changed = own.iter().filter(|(.., notice)| *notice == WithheldNotice::Changed);
            let changed: HashSet<_> = changed.map(|(_, question, _)| question.uri.clone()).collect();
            let notices = own.iter().map(|(_, question, notice)| (question.uri.clone(), *notice)).collect();
            let questions = own.into_iter().map(|(_, question, _)| question).collect();
            let revision = self.revision().unwrap_or(Revision::V2026_07_28);
            let caller = OwnedCaller {
                principal: principal.clone(),
                headers: None,
                revision,
                client_info: None,
                meta: None,
            };
            let caller = Arc::new(caller);
            let round = AccessRound::new(&self.engine, AccessAnswers::default(), questions);
            let Some(batch) = round.next() else { continue };
            let task = NoticeTask { round, caller: caller.clone(), withheld: notices };
            let token = self.insert_own(ReplyTask::Notice(Box::new(task)), revision, now);
            self.access.asked.insert(token, (principal, changed));
            events.push(Event::Access(AccessRequest { token, batch, caller }));
        }
        events
    }

    /// Inserts a question of the connection itself, which no request waits for.
    fn insert_own(&mut self, task: ReplyTask, revision: Revision, now: Now) -> RequestToken {
        let timeout = self.engine.limits().read_timeout;
        let ticket = Arc::new(Ticket {
            id: OwnedId::from(0),
            envelope: Envelope::Bare,
            revision,
            uri: None,
            timeout,
            deadline: now.tick.saturating_add(timeout),
            batch: None,
            flight: None,
            opening: None,
            is_dropped: AtomicBool::new(false),
            is_own: true,
        });
        let context = ReplyContext { ticket, engine: self.engine.clone(), purpose: task.purpose() };
        self.inflight.insert(None, |token| Reply { token, context, task, reports: ReplyReports::default() })
    }

    /// Sends the changes that are allowed, and ends the watches that are not.
    pub(super) fn settle_notices(&mut self, token: RequestToken, settled: SettledNotices) {
        self.access.asked.remove(&token);
        let SettledNotices { principal, changed, ended } = settled;
        for uri in ended {
            self.end_watch(&principal, &uri);
        }
        for uri in &changed {
            self.access.passes.push((principal.clone(), uri.clone()));
        }
        self.engine.hub().mark(self.id, principal.id(), &changed);
        // A watch that ended in the meantime takes its pass along.
        let hub = self.engine.hub();
        self.access.passes.retain(|(_, uri)| hub.watched(uri));
    }
}

impl HeldTask {
    /// Takes an answer, and returns what follows.
    pub(super) fn write(
        &mut self,
        context: &ReplyContext,
        token: RequestToken,
        answer: &Answer<'_>,
        now: Now,
    ) -> (WrittenReply, NextQuestion) {
        let misuse = self.round.take(&context.engine, &self.caller.principal, answer, now);
        let next = match self.round.next() {
            Some(batch) => NextQuestion::Access(batch),
            None => NextQuestion::Again(Box::new(HeldRequest {
                token,
                message: std::mem::take(&mut self.message),
                principal: self.caller.principal.clone(),
                headers: self.caller.headers.clone(),
                answers: Arc::new(self.round.answers().clone()),
                rounds: self.rounds,
                listens: self.listens,
            })),
        };
        (WrittenReply { misuse, ..WrittenReply::default() }, next)
    }

    pub(super) fn caller(&self) -> Arc<OwnedCaller> {
        self.caller.clone()
    }
}

impl NoticeTask {
    /// Takes an answer, and returns what follows.
    pub(super) fn write(
        &mut self,
        context: &ReplyContext,
        answer: &Answer<'_>,
        now: Now,
    ) -> (WrittenReply, NextQuestion) {
        let principal = &self.caller.principal;
        let misuse = self.round.take(&context.engine, principal, answer, now);
        let next = match self.round.next() {
            Some(batch) => NextQuestion::Access(batch),
            None => {
                let mut settled =
                    SettledNotices { principal: principal.clone(), changed: Vec::new(), ended: Vec::new() };
                for (uri, notice) in std::mem::take(&mut self.withheld) {
                    match (self.round.answers().get(&uri).unwrap_or_default(), notice) {
                        (true, WithheldNotice::Changed) => settled.changed.push(uri),
                        (false, WithheldNotice::Regranted) => settled.ended.push(uri),
                        _ => {}
                    }
                }
                NextQuestion::Settled(settled)
            }
        };
        (WrittenReply { misuse, ..WrittenReply::default() }, next)
    }

    pub(super) fn caller(&self) -> Arc<OwnedCaller> {
        self.caller.clone()
    }
}

impl HeldRequest {
    /// The request to serve again.
    pub fn token(&self) -> RequestToken {
        self.token
    }
}

impl AccessState {
    /// Forgets a question that was not answered in time.
    pub(super) fn expire(&mut self, token: RequestToken) {
        self.asked.remove(&token);
    }

    /// Whether the current request was held before: its rate is counted.
    pub(super) fn is_repeated(&self) -> bool {
        self.answers.is_some()
    }
}
