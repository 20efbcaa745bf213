//! Calls: those of the runtime, and the reads that watches need.
//!
//! Law: each call ends exactly once. A call that only reads is repeated once if its connection is lost.

use super::super::cache::ClientCacheKey;
use super::super::decode::{self, DecodedRead, LeftOut, TEMPLATE, URI, is_unsupported, refused};
use super::super::speak::{OutgoingRequest, Speaker};
use super::questions::Round;
use super::{Effects, Machine, MachinePhase, MachineTimer, RequestPurpose};
use crate::client::{
    CallOptions, ClientCall, ClientError, ClientOutcome, Effect, Failure, Lost, NotCarried, Outgoing, Page,
};
use crate::json_text;
use crate::jsonrpc::Json;
use crate::now::{Millis, Now};
use crate::version::{self, ProtocolMethod, Revision};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Maximum nesting of the params of a custom method.
const NESTING: usize = 128;

/// The machine's internal id of a call.
pub(super) type CallId = u64;

/// The owner of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallOwner {
    Runtime(u64),
    /// The watch of a canonical URI.
    Watch(Arc<str>),
}

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) caller: CallOwner,
    pub(super) call: ClientCall,
    /// The key under which its result will be cached.
    key: Option<ClientCacheKey>,
    options: CallOptions,
    /// The id of its request, while one is in flight.
    wire: Option<u64>,
    /// The time-out while it waits for a connection or for an answer of the runtime.
    pub(super) waits_until: Option<Millis>,
    /// Whether it has been made a second time.
    repeated: bool,
    /// The input that the server has asked for.
    pub(super) round: Round,
}

/// All calls that have not ended.
#[derive(Debug, Default)]
pub(super) struct ClientCalls {
    next: CallId,
    pub(super) pending: BTreeMap<CallId, PendingCall>,
    by_host: HashMap<u64, CallId>,
    /// The calls that wait for a connection.
    waiting: VecDeque<CallId>,
}

impl ClientCalls {
    /// The id of the next call.
    pub(super) fn next_slot(&self) -> CallId {
        self.next + 1
    }

    /// Whether a call waits for a connection.
    pub(super) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The runtime's number of a call that reports progress.
    pub(super) fn reports_progress(&self, slot: CallId) -> Option<u64> {
        let pending = self.pending.get(&slot).filter(|pending| pending.options.progress)?;
        match pending.caller {
            CallOwner::Runtime(id) => Some(id),
            CallOwner::Watch(_) => None,
        }
    }
}

/// Calls, as the runtime makes them.
impl Machine {
    /// Makes a call. `id` is chosen by the runtime and must not be in use; [`Effect::Finished`] reports it.
    pub fn call(&mut self, id: u64, call: ClientCall, options: CallOptions, now: Now, out: &mut Effects) {
        let outcome = match self.begin(&call) {
            Err(error) => Err(error),
            Ok(key) => match key.as_ref().and_then(|key| self.cache.get(key, now.tick)) {
                Some(kept) => Ok(kept),
                None => return self.start(CallOwner::Runtime(id), call, key, options, now, out),
            },
        };
        out.push(Effect::Finished { call: id, outcome });
    }

    /// Cancels a call. Does nothing if it has ended.
    pub fn cancel(&mut self, id: u64, now: Now, out: &mut Effects) {
        let Some(slot) = self.calls.by_host.get(&id).copied() else { return };
        self.abandon(slot, now, out);
        self.reconcile(now, out);
    }

    /// Ends a call whose answer is no longer wanted.
    pub(super) fn abandon(&mut self, slot: CallId, now: Now, out: &mut Effects) {
        if let Some(id) = self.calls.pending.get(&slot).and_then(|pending| pending.wire)
            && self.take_flight(id).is_some()
        {
            self.take_back(id, out);
        }
        self.finish(slot, Err(Failure::Cancelled.into()), now, out);
    }

    /// Refuses a call that is not allowed, before anything is sent. Returns the cache key of an allowed call's result.
    fn begin(&self, call: &ClientCall) -> Result<Option<ClientCacheKey>, ClientError> {
        let access = &self.reader.access;
        let key = match call {
            ClientCall::Read { uri } => Some(ClientCacheKey::Read(access.check(uri)?)),
            ClientCall::List { cursor } => Some(ClientCacheKey::List(cursor.clone())),
            ClientCall::ListTemplates { cursor } => Some(ClientCacheKey::Templates(cursor.clone())),
            ClientCall::Complete { template, .. } if !access.reaches(template) => {
                return Err(ClientError::AccessDenied { uri: template.clone() });
            }
            ClientCall::Custom { method, .. } if !access.is_open() && version::is_about_resources(method) => {
                return Err(ClientError::AccessDenied { uri: method.clone() });
            }
            ClientCall::Complete { .. } | ClientCall::Custom { .. } => None,
        };
        if matches!(self.phase, MachinePhase::Closed) {
            return Err(Failure::Cancelled.into());
        }
        if self.calls.pending.len() >= self.reader.limits.calls {
            return Err(Failure::LimitReached { what: "calls" }.into());
        }
        Ok(key)
    }
}

impl Machine {
    /// Sends a call, or queues it until there is a connection.
    pub(super) fn start(
        &mut self,
        caller: CallOwner,
        call: ClientCall,
        key: Option<ClientCacheKey>,
        options: CallOptions,
        now: Now,
        out: &mut Effects,
    ) {
        self.calls.next += 1;
        let slot = self.calls.next;
        if let CallOwner::Runtime(id) = caller {
            self.calls.by_host.insert(id, slot);
        }
        let round = Round::default();
        let pending =
            PendingCall { caller, call, key, options, wire: None, waits_until: None, repeated: false, round };
        self.calls.pending.insert(slot, pending);
        match self.phase {
            MachinePhase::Ready { .. } => self.send_call(slot, now, out),
            _ => {
                self.wait_for_connection(slot, now);
                self.connect(out);
            }
        }
    }

    fn wait_for_connection(&mut self, slot: CallId, now: Now) {
        let until = now.tick.saturating_add(self.timeout_of(slot));
        self.calls.waiting.push_back(slot);
        self.wait_until(slot, until);
    }

    /// Sets the time-out for waiting on anything but the server's answer.
    pub(super) fn wait_until(&mut self, slot: CallId, until: Millis) {
        self.stop_waiting(slot);
        if let Some(pending) = self.calls.pending.get_mut(&slot) {
            pending.waits_until = Some(until);
            self.timers.insert((until, MachineTimer::Waiting(slot)));
        }
    }

    fn stop_waiting(&mut self, slot: CallId) {
        let waited = self.calls.pending.get_mut(&slot).and_then(|pending| pending.waits_until.take());
        if let Some(until) = waited {
            self.timers.remove(&(until, MachineTimer::Waiting(slot)));
        }
    }

    fn timeout_of(&self, slot: CallId) -> Millis {
        let own = self.calls.pending.get(&slot).and_then(|pending| pending.options.timeout);
        own.unwrap_or(self.reader.limits.timeout)
    }

    /// Sends the calls that waited for a connection.
    pub(super) fn send_waiting(&mut self, now: Now, out: &mut Effects) {
        for slot in std::mem::take(&mut self.calls.waiting) {
            self.send_call(slot, now, out);
        }
    }

    pub(super) fn waited_too_long(&mut self, slot: CallId, now: Now, out: &mut Effects) {
        self.calls.waiting.retain(|waiting| *waiting != slot);
        let questions = self.calls.pending.get(&slot).map(|pending| pending.round.methods());
        let error = match questions.filter(|methods| !methods.is_empty()) {
            Some(methods) => Failure::InputRequired { methods },
            None if self.may_ask_again(slot) => return self.send_call(slot, now, out),
            // Only a call that waits for the handshake gets here: it may have been answered in a form that is unclear.
            None => {
                let instead = self.last_unusable.as_ref().map(|(_, what)| what.clone());
                Failure::Timeout { after: self.timeout_of(slot), instead }
            }
        };
        self.finish(slot, Err(error.into()), now, out);
    }

    /// Whether a call only waits for its pause to end, to be sent again with the state that the server gave.
    fn may_ask_again(&self, slot: CallId) -> bool {
        let pending = self.calls.pending.get(&slot);
        matches!(self.phase, MachinePhase::Ready { .. })
            && pending.is_some_and(|pending| pending.round.has_state())
    }

    pub(super) fn send_call(&mut self, slot: CallId, now: Now, out: &mut Effects) {
        self.stop_waiting(slot);
        let timeout = self.timeout_of(slot);
        let Self { speaker, calls, .. } = self;
        let Some(pending) = calls.pending.get(&slot) else { return };
        match request(speaker, pending) {
            Ok(message) => {
                let id = self.send(message, RequestPurpose::Call(slot), timeout, now, out);
                if let Some(pending) = self.calls.pending.get_mut(&slot) {
                    pending.wire = Some(id);
                }
            }
            Err(failure) => self.finish(slot, Err(failure.into()), now, out),
        }
    }

    /// Handles the server's answer to a call.
    pub(super) fn answered(
        &mut self,
        slot: CallId,
        result: Result<Json<'_>, Json<'_>>,
        now: Now,
        out: &mut Effects,
    ) {
        let Some(pending) = self.calls.pending.get_mut(&slot) else { return };
        pending.wire = None;
        let outcome = match result {
            Err(error) => self.failed(slot, error),
            Ok(result) => match self.outcome(slot, result, now, out) {
                Some(outcome) => outcome,
                // The server asks for input first.
                None => return,
            },
        };
        if let (Ok(outcome), Ok(result)) = (&outcome, result) {
            self.keep(slot, outcome, result, now);
        }
        self.finish(slot, outcome, now, out);
    }

    /// The outcome of a call that the server answers with an error. A server that does not know a method has nothing of
    /// its kind: its lists are empty.
    fn failed(&self, slot: CallId, error: Json<'_>) -> Result<ClientOutcome, ClientError> {
        let call = self.calls.pending.get(&slot).map(|pending| &pending.call);
        let error = refused(error, call.and_then(ClientCall::uri));
        if !is_unsupported(&error) {
            return Err(error);
        }
        let declares = |name| self.about().is_some_and(|about| about.declares(name));
        let what = match call {
            Some(ClientCall::List { .. } | ClientCall::ListTemplates { .. }) => {
                return Ok(ClientOutcome::Page(Page::default()));
            }
            Some(ClientCall::Read { .. }) if declares("resources") => "method \"resources/read\"",
            Some(ClientCall::Read { .. }) => "resources",
            Some(ClientCall::Complete { .. }) => "completions",
            Some(ClientCall::Custom { .. }) | None => return Err(error),
        };
        Err(Failure::Unsupported { what: what.into() }.into())
    }

    /// Decodes a result; `None` if the server asks for input first.
    fn outcome(
        &mut self,
        slot: CallId,
        result: Json<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Option<Result<ClientOutcome, ClientError>> {
        let call = &self.calls.pending.get(&slot)?.call;
        let page = |page: Result<(Page, LeftOut), Failure>| {
            page.map(|(page, left_out)| (ClientOutcome::Page(page), left_out)).map_err(ClientError::from)
        };
        let whole = |outcome| (outcome, LeftOut::default());
        let outcome = match call {
            ClientCall::List { .. } => page(self.reader.page(result, "resources", URI)),
            ClientCall::ListTemplates { .. } => page(self.reader.page(result, "resourceTemplates", TEMPLATE)),
            ClientCall::Complete { .. } => {
                let found = self.reader.completion(result).map(ClientOutcome::Completion);
                found.map(whole).map_err(ClientError::from)
            }
            ClientCall::Custom { .. } => Ok(whole(ClientOutcome::Result(decode::one_line(result)))),
            ClientCall::Read { uri } => match self.reader.read(result, uri) {
                Ok(DecodedRead::Contents(contents, left_out)) => {
                    let ttl = self.revision().map_or(0, |revision| decode::ttl(result, revision));
                    Ok((ClientOutcome::Contents { contents, ttl }, left_out))
                }
                Ok(DecodedRead::InputRequired { questions, state }) => {
                    return self.ask(slot, questions, state, now, out);
                }
                Err(error) => Err(error),
            },
        };
        Some(outcome.map(|(outcome, left_out)| {
            out.extend(left_out.into_notes().map(Effect::LeftOut));
            outcome
        }))
    }

    fn keep(&mut self, slot: CallId, outcome: &ClientOutcome, result: Json<'_>, now: Now) {
        let ttl = self.revision().map_or(0, |revision| decode::ttl(result, revision));
        let Some(pending) = self.calls.pending.get_mut(&slot).filter(|_| ttl > 0) else { return };
        // The contents depend on the user's answers, so a later read must ask again.
        if pending.round.is_begun() {
            return;
        }
        if let Some(key) = pending.key.take() {
            self.cache.put(key, outcome, ttl, now.tick);
        }
    }

    /// Ends a call with `outcome`.
    pub(super) fn finish(
        &mut self,
        slot: CallId,
        outcome: Result<ClientOutcome, ClientError>,
        now: Now,
        out: &mut Effects,
    ) {
        self.stop_waiting(slot);
        self.withdraw_questions_of(slot, out);
        let Some(pending) = self.calls.pending.remove(&slot) else { return };
        self.calls.waiting.retain(|waiting| *waiting != slot);
        match pending.caller {
            CallOwner::Runtime(call) => {
                self.calls.by_host.remove(&call);
                out.push(Effect::Finished { call, outcome });
            }
            CallOwner::Watch(uri) => self.watch_was_read(&uri, outcome, now, out),
        }
    }

    /// Handles a call's request that the transport could not complete.
    pub(super) fn call_not_carried(&mut self, slot: CallId, why: NotCarried, now: Now, out: &mut Effects) {
        let Some(pending) = self.calls.pending.get_mut(&slot) else { return };
        pending.wire = None;
        let broke = why.status.is_none() && matches!(why.failure, Failure::Unreachable { .. });
        if broke && pending.call.only_reads() && !std::mem::replace(&mut pending.repeated, true) {
            return self.send_call(slot, now, out);
        }
        let error = match (why.status, pending.call.uri()) {
            (Some(401 | 403), Some(uri)) => ClientError::AccessDenied { uri: uri.into() },
            _ => why.failure.into(),
        };
        self.finish(slot, Err(error), now, out);
    }

    /// Handles the loss of the connection. Calls that may be repeated wait for the next connection; all others end. A
    /// call that waited for the first connection ends too, because the server could not be reached.
    pub(super) fn settle_calls(&mut self, lost: &Lost, was_ready: bool, out: &mut Effects) {
        let slots: Vec<CallId> = self.calls.pending.keys().copied().collect();
        for slot in slots {
            self.stop_waiting(slot);
            let Some(pending) = self.calls.pending.get_mut(&slot) else { continue };
            pending.round = Round::default();
            let was_sent = pending.wire.take().is_some() || was_ready;
            let again = was_sent && pending.call.only_reads() && !pending.repeated;
            match pending.caller {
                CallOwner::Watch(_) => self.forget_call(slot),
                CallOwner::Runtime(_) if again || (*lost == Lost::Session && !was_sent) => {
                    pending.repeated = true;
                    if !self.calls.waiting.contains(&slot) {
                        self.calls.waiting.push_back(slot);
                    }
                }
                CallOwner::Runtime(call) => {
                    self.forget_call(slot);
                    out.push(Effect::Finished { call, outcome: Err(lost.failure().into()) });
                }
            }
        }
    }

    fn forget_call(&mut self, slot: CallId) {
        self.calls.waiting.retain(|waiting| *waiting != slot);
        if let Some(PendingCall { caller: CallOwner::Runtime(call), .. }) = self.calls.pending.remove(&slot) {
            self.calls.by_host.remove(&call);
        }
    }

    /// Ends all calls when the machine is closed.
    pub(super) fn cancel_calls(&mut self, out: &mut Effects) {
        self.calls.waiting.clear();
        for pending in std::mem::take(&mut self.calls.pending).into_values() {
            if let CallOwner::Runtime(call) = pending.caller {
                out.push(Effect::Finished { call, outcome: Err(Failure::Cancelled.into()) });
            }
        }
        self.calls.by_host.clear();
    }
}

impl ClientCall {
    /// The URI that an error of this call names.
    fn uri(&self) -> Option<&str> {
        match self {
            Self::Read { uri } => Some(uri),
            _ => None,
        }
    }

    /// Whether the call may be repeated if its connection is lost.
    fn only_reads(&self) -> bool {
        !matches!(self, Self::Custom { .. })
    }
}

/// Builds the request of a call.
fn request(speaker: &mut Speaker, pending: &PendingCall) -> Result<Outgoing, Failure> {
    let progress = pending.options.progress;
    let ask = |method| OutgoingRequest { progress, ..OutgoingRequest::new(method) };
    let page = |speaker: &mut Speaker, method, cursor: &Option<String>| {
        speaker.request(&ask(method), |params| {
            if let Some(cursor) = cursor {
                params.str("cursor", cursor);
            }
        })
    };
    Ok(match &pending.call {
        ClientCall::List { cursor } => page(speaker, ProtocolMethod::List, cursor),
        ClientCall::ListTemplates { cursor } => page(speaker, ProtocolMethod::ListTemplates, cursor),
        ClientCall::Read { uri } => speaker.request(&ask(ProtocolMethod::Read).named(uri), |params| {
            params.str("uri", uri);
            pending.round.write(params);
        }),
        ClientCall::Complete { template, variable, value, context } => {
            let has_context = speaker.revision.is_some_and(Revision::has_completion_context);
            speaker.request(&ask(ProtocolMethod::Complete), |params| {
                params.object("ref", |reference| {
                    reference.str("type", "ref/resource");
                    reference.str("uri", template);
                });
                params.object("argument", |argument| {
                    argument.str("name", variable);
                    argument.str("value", value);
                });
                if has_context && !context.is_empty() {
                    params.object("context", |writer| {
                        writer.object("arguments", |arguments| {
                            for (name, value) in context {
                                json_text::escape_into(value, arguments.named(name));
                            }
                        });
                    });
                }
            })
        }
        ClientCall::Custom { method, params } => {
            let parsed = Json::parse(params.as_bytes(), NESTING).and_then(Json::object);
            let members = parsed
                .ok_or_else(|| Failure::Unsupported { what: "params that are no JSON object".into() })?;
            let name = ["name", "uri"].into_iter().find_map(|name| members.get(name)?.as_str());
            let meta = members.get("_meta").and_then(Json::object);
            let ask = OutgoingRequest { method, name: name.as_deref(), progress, meta };
            speaker.request(&ask, |writer| {
                for (name, value) in members.iter().filter(|(name, _)| name != "_meta") {
                    writer.named(&name).extend_from_slice(decode::one_line(value).as_bytes());
                }
            })
        }
    })
}
