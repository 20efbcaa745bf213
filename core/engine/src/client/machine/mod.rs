//! One server as a client sees it: connecting, eras, calls, time-outs, questions, watches.
//!
//! ```text
//!            a call, a watch          Effect::Connect, opened        an answer to the handshake
//!   Offline ─────────────────▶ Opening ─────────────────▶ Greeting ───────────────────────────▶ Ready
//!      ▲  ▲  lost, after a pause  │                          │                                    │
//!      │  └───────────────────────┴──────────────────────────┴─────────────── lost ───────────────┘
//!      └── nothing is watched and nothing waits: stays, until the next call
//! ```
//!
//! Law: no I/O, no clock, no randomness except from the seed. Every call ends with one [`Effect::Finished`], whatever the
//! server does; a watch goes on until the runtime ends it, or an [`Effect::Changed`] with an error does.

mod calls;
mod greeting;
mod mended;
mod questions;
#[cfg(test)]
mod tests;
mod watches;

use super::backoff::{Backoff, SOUND};
use super::cache::ClientCache;
use super::decode::{ResultReader, one_line, shown};
use super::speak::Speaker;
use super::{
    Access, CallOptions, ClientCall, ClientError, ClientLimits, Effect, Failure, Lost, NotCarried, Outgoing,
    Progress, ServerAbout, ServerMessage,
};
use crate::jsonrpc::{DecodeLimits, Decoded, Id, Json, JsonMembers, Message, RawParams, decode};
use crate::meta;
use crate::now::{Millis, Now};
use crate::version::{self, Revision};
use calls::{CallId, ClientCalls};
use greeting::Greeting;
use mended::BrokenLines;
use questions::Questions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use watches::Watches;

/// The client's description of itself, in `clientInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientImplementation {
    /// The name of the program.
    pub name: String,
    /// Its version, in any form.
    pub version: String,
}

/// Options of a machine.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The name of the server.
    pub server: Arc<str>,
    /// The allow-list for this server.
    pub access: Access,
    /// The only revision to speak; `None` is 2026-07-28 if the server has it, else the newest older one.
    pub revision: Option<Revision>,
    /// The client, for the server's logs. Default: this crate.
    pub info: ClientImplementation,
    /// The methods of server questions that the runtime can answer.
    pub answers: Vec<String>,
    /// The declared capabilities, a JSON object. Default: those that the methods of `answers` need.
    pub capabilities: Option<String>,
    /// The answer to a question of a legacy server that is not in `answers`, which is also noted, once. Default: that there is no
    /// such method.
    pub refusal: Option<String>,
    /// Whether each request is an exchange of its own, as over HTTP, so that its era does not bind other requests.
    /// Default `false`.
    pub has_exchanges: bool,
    /// Whether notifications that the machine does not handle are reported ([`Effect::Notified`]), and changes of the lists of
    /// tools and prompts asked for. Default `false`.
    pub reports_notifications: bool,
    /// The limits.
    pub limits: ClientLimits,
    /// Seeds the jitter of pauses. Use another number for each client.
    pub seed: u64,
    /// For [`TestClient`](super::TestClient): reports every message as [`Effect::Message`], and uses a modern revision
    /// without sending `server/discover`. Default `false`.
    #[doc(hidden)]
    pub is_testing: bool,
}

impl MachineOptions {
    /// The defaults for this server.
    pub fn new(server: impl Into<Arc<str>>, access: Access) -> Self {
        Self {
            server: server.into(),
            access,
            revision: None,
            info: ClientImplementation {
                name: env!("CARGO_PKG_NAME").into(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
            answers: Vec::new(),
            capabilities: None,
            refusal: None,
            has_exchanges: false,
            reports_notifications: false,
            limits: ClientLimits::default(),
            seed: 0,
            is_testing: false,
        }
    }
}

/// One server as a client sees it. See the module for its states.
#[derive(Debug)]
pub struct Machine {
    reader: ResultReader,
    speaker: Speaker,
    pinned: Option<Revision>,
    has_exchanges: bool,
    reports_notifications: bool,
    /// Every message is reported, and nothing is sent before the first call.
    is_testing: bool,
    answers: Vec<String>,
    refusal: Option<String>,
    phase: MachinePhase,
    backoff: Backoff,
    flights: BTreeMap<u64, SentRequest>,
    timers: BTreeSet<(Millis, MachineTimer)>,
    calls: ClientCalls,
    watches: Watches,
    questions: Questions,
    cache: ClientCache,
    /// The server closed its connection after `server/discover`: the next connection starts with the older handshake.
    shuns_discover: bool,
    /// The server was connected before: a lost connection is retried. Otherwise an unreachable server is an error.
    was_there: bool,
    /// The last thing that the server sent and that could not be used, and when.
    last_unusable: Option<(Millis, String)>,
    broken_lines: BrokenLines,
}

/// The states in the module's diagram.
#[derive(Debug)]
enum MachinePhase {
    Offline,
    Opening,
    Greeting(Greeting),
    Ready { about: Arc<ServerAbout>, since: Millis },
    Closed,
}

/// A request that has been sent.
#[derive(Debug)]
struct SentRequest {
    purpose: RequestPurpose,
    sent: Millis,
    deadline: Millis,
    /// The time-out, and the latest end, which progress does not extend.
    timeout: Millis,
    latest: Millis,
}

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestPurpose {
    Discover,
    Initialize,
    Call(CallId),
    Subscribe(Arc<str>),
    Unsubscribe,
    Listen,
}

/// The event that happens when a timer fires.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MachineTimer {
    /// A request has timed out.
    SentRequest(u64),
    /// A call has waited too long for a connection, or for answers to its questions.
    Waiting(CallId),
    /// The next attempt to connect.
    Connect,
    /// `server/discover` has not been answered yet.
    Discover,
    /// A watched URI may be read, or subscribed to, again.
    Watch(Arc<str>),
    /// The listen may be opened again.
    Listen,
}

type Effects = Vec<Effect>;

/// The functions for the runtime.
impl Machine {
    /// A disconnected machine. It connects at the first call or watch.
    pub fn new(options: MachineOptions) -> Self {
        let MachineOptions {
            server,
            access,
            revision,
            info,
            answers,
            capabilities,
            refusal,
            has_exchanges,
            reports_notifications,
            limits,
            seed,
            is_testing,
        } = options;
        let capabilities = capabilities.unwrap_or_else(|| greeting::capabilities(&answers));
        let speaker = Speaker::new(greeting::info(&info.name, &info.version), capabilities);
        Self {
            speaker,
            pinned: revision,
            has_exchanges,
            reports_notifications,
            is_testing,
            answers,
            refusal,
            phase: MachinePhase::Offline,
            backoff: Backoff::new(limits.backoff, seed),
            flights: BTreeMap::new(),
            timers: BTreeSet::new(),
            calls: ClientCalls::default(),
            watches: Watches::default(),
            questions: Questions::default(),
            cache: ClientCache::new(&limits),
            reader: ResultReader { server, access, limits },
            shuns_discover: false,
            was_there: false,
            last_unusable: None,
            broken_lines: BrokenLines::default(),
        }
    }

    /// The name of the server.
    pub fn server(&self) -> &Arc<str> {
        &self.reader.server
    }

    /// The allow-list for this server.
    pub fn access(&self) -> &Access {
        &self.reader.access
    }

    /// The server's description of itself, while connected.
    pub fn about(&self) -> Option<&Arc<ServerAbout>> {
        match &self.phase {
            MachinePhase::Ready { about, .. } => Some(about),
            _ => None,
        }
    }

    /// The next time at which [`Machine::tick`] must be called, in ms of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Handles timers: ends calls that have timed out and resumes delayed ones.
    pub fn tick(&mut self, now: Now, out: &mut Effects) {
        while let Some((at, timer)) = self.timers.first().cloned().filter(|(at, _)| *at <= now.tick) {
            self.timers.remove(&(at, timer.clone()));
            match timer {
                MachineTimer::SentRequest(id) => self.expired(id, now, out),
                MachineTimer::Waiting(slot) => self.waited_too_long(slot, now, out),
                MachineTimer::Connect if self.wants_connection() => self.connect(out),
                MachineTimer::Connect => {}
                MachineTimer::Discover => self.greet_in_both_eras(now, out),
                MachineTimer::Watch(uri) => self.watch_is_due(&uri),
                MachineTimer::Listen => self.watches.must_listen = true,
            }
        }
        self.reconcile(now, out);
    }

    /// Connects without a call or watch, to learn about the server.
    pub fn connect_now(&mut self, out: &mut Effects) {
        self.connect(out);
    }

    /// Connects and stays connected, to report changes of the server's lists: [`Effect::ListChanged`].
    pub fn watch_lists(&mut self, now: Now, out: &mut Effects) {
        if !std::mem::replace(&mut self.watches.watches_lists, true) {
            self.watches.must_listen = true;
            self.connect(out);
            self.reconcile(now, out);
        }
    }

    /// Replaces the declared capabilities, a JSON object. For [`TestClient`](super::TestClient).
    pub(super) fn declare(&mut self, capabilities: String) {
        self.speaker.capabilities = capabilities;
    }

    /// Makes a call whose number is the id of its request, and returns it. For [`TestClient`](super::TestClient), once
    /// connected.
    pub(super) fn call_by_id(&mut self, call: ClientCall, now: Now, out: &mut Effects) -> u64 {
        let id = self.speaker.next_id();
        self.call(id, call, CallOptions::default(), now, out);
        id
    }

    /// Sends a notification with these params, a JSON object. For [`TestClient`](super::TestClient).
    pub(super) fn notify(&self, method: &str, params: Json<'_>, out: &mut Effects) {
        let members = params.object();
        out.push(Effect::Send(self.speaker.notification(method, |writer| {
            for (name, value) in members.iter().flat_map(JsonMembers::iter) {
                writer.named(&name).extend_from_slice(one_line(value).as_bytes());
            }
        })));
    }

    /// Call this when the transport is open.
    pub fn opened(&mut self, now: Now, out: &mut Effects) {
        if matches!(self.phase, MachinePhase::Opening) {
            self.greet(now, out);
        }
    }

    /// Call this when the transport could not be opened, or was closed. Watches are restored on the next connection,
    /// and calls that only read are repeated once.
    pub fn lost(&mut self, lost: &Lost, now: Now, out: &mut Effects) {
        let mut greets_otherwise = false;
        let (was_sound, answered) = match &self.phase {
            MachinePhase::Closed | MachinePhase::Offline => return,
            MachinePhase::Ready { since, .. } => (now.tick.saturating_sub(*since) >= SOUND, true),
            MachinePhase::Greeting(greeting) => {
                let at_discover = greeting.has_only_discovered() && matches!(lost, Lost::Broken(_));
                greets_otherwise = at_discover && self.pinned.is_none() && !self.shuns_discover;
                self.shuns_discover |= greets_otherwise;
                (false, false)
            }
            MachinePhase::Opening => (false, false),
        };
        if was_sound {
            self.backoff.reset();
        }
        self.phase = MachinePhase::Offline;
        self.speaker.revision = None;
        self.cache.clear();
        self.forget_flights();
        self.broken_lines.clear();
        self.last_unusable = None;
        self.withdraw_questions(out);
        if greets_otherwise {
            return self.connect(out);
        }
        self.settle_calls(lost, answered, out);
        if !self.was_there {
            self.watches.fail_all(&lost.failure().into(), out);
        }
        self.watches.disconnected();
        self.timers.remove_connection();
        if !self.wants_connection() {
            return;
        }
        if *lost == Lost::Session {
            return self.connect(out);
        }
        let pause = self.backoff.next(answered);
        self.timers.insert((now.tick.saturating_add(pause), MachineTimer::Connect));
    }

    /// Closes the machine: cancels calls, ends watches without a report, closes the transport.
    pub fn close(&mut self, out: &mut Effects) {
        if matches!(self.phase, MachinePhase::Closed) {
            return;
        }
        let was_offline = matches!(self.phase, MachinePhase::Offline);
        self.phase = MachinePhase::Closed;
        self.take_all_back(out);
        self.forget_flights();
        self.withdraw_questions(out);
        self.cancel_calls(out);
        self.watches = Watches::default();
        self.timers.clear();
        if !was_offline {
            let why = Failure::Unreachable { reason: "the client is closed".into() };
            out.push(Effect::Disconnect { why });
        }
    }

    /// Handles a message of the server: a line, a body, or the data of an event.
    pub fn received(&mut self, bytes: &[u8], now: Now, out: &mut Effects) {
        if matches!(self.phase, MachinePhase::Closed | MachinePhase::Offline | MachinePhase::Opening) {
            return;
        }
        self.decoded(bytes, now, out);
        self.reconcile(now, out);
    }

    fn decoded(&mut self, bytes: &[u8], now: Now, out: &mut Effects) {
        match decode(bytes, &self.decode_limits()) {
            // The id is of a type that no request has: it may be ours in another notation.
            Decoded::Message(Message::Response { id: None, result: Ok(_) }) if !self.is_testing => {
                self.mend(bytes, now, out);
            }
            Decoded::Message(message) => {
                self.broken_lines.clear();
                self.message(message, now, out);
            }
            Decoded::Malformed(_) => self.mend(bytes, now, out),
            Decoded::Batch(messages) => {
                for message in messages.into_iter().flatten() {
                    self.message(message, now, out);
                }
            }
        }
    }

    fn decode_limits(&self) -> DecodeLimits {
        DecodeLimits { nesting: self.reader.limits.nesting, ..DecodeLimits::default() }
    }

    /// Call this when the transport could not complete a request.
    pub fn not_carried(&mut self, id: u64, why: NotCarried, now: Now, out: &mut Effects) {
        let Some(flight) = self.take_flight(id) else { return };
        match flight.purpose {
            RequestPurpose::Discover | RequestPurpose::Initialize => {
                self.greeting_failed(&flight.purpose, why, now, out)
            }
            RequestPurpose::Call(slot) => self.call_not_carried(slot, why, now, out),
            RequestPurpose::Subscribe(uri) => self.subscribe_failed(&uri, now),
            RequestPurpose::Unsubscribe => {}
            RequestPurpose::Listen => self.listen_ended(id, now),
        }
        self.reconcile(now, out);
    }

    /// Call this when a legacy server's notification stream was opened or reopened. Earlier notifications may be lost,
    /// so all watched URIs are read again.
    pub fn stream_opened(&mut self, now: Now, out: &mut Effects) {
        self.watches.all_may_have_changed(now.tick, &mut self.timers);
        self.reconcile(now, out);
    }
}

/// Dispatches messages by their kind.
impl Machine {
    fn message(&mut self, message: Message<'_>, now: Now, out: &mut Effects) {
        match message {
            Message::Response { id, result } => self.response(id, result, now, out),
            Message::Request { id, method, params } => self.asked(id, &method, &params, now, out),
            Message::Notification { method, params } => self.notified(&method, &params, now, out),
        }
    }

    fn response(
        &mut self,
        id: Option<Id<'_>>,
        result: Result<Json<'_>, Json<'_>>,
        now: Now,
        out: &mut Effects,
    ) {
        let id = id.and_then(|id| match self.is_testing {
            true => id.raw().parse().ok(),
            // Some servers send each id back as a string.
            false => id.raw().trim_matches('"').parse().ok(),
        });
        if self.is_testing {
            out.push(Effect::Message(ServerMessage::answer(id, result)));
        }
        let Some((id, flight)) = id.and_then(|id| Some((id, self.take_flight(id)?))) else {
            // An error without an id is about a message that the server could not parse.
            let said = result.err().map(one_line).unwrap_or_default();
            let note = format!("a response that matches no request: {}", shown(&said));
            // A late answer to a request that has ended says nothing about the others.
            if id.is_none_or(|id| id >= self.speaker.next_id()) {
                self.last_unusable = Some((now.tick, note.clone()));
            }
            return out.push(Effect::Noted(format!("ignored: {note}")));
        };
        match flight.purpose {
            RequestPurpose::Discover => self.discovered(result, now, out),
            RequestPurpose::Initialize => self.initialized(result, now, out),
            RequestPurpose::Call(slot) => self.answered(slot, result, now, out),
            RequestPurpose::Subscribe(uri) => self.subscribed(&uri, result, now, out),
            RequestPurpose::Unsubscribe => {}
            RequestPurpose::Listen => self.listen_answered(id, result, now, out),
        }
    }

    fn notified(&mut self, method: &str, params: &RawParams<'_>, now: Now, out: &mut Effects) {
        if self.is_testing {
            out.push(Effect::Message(ServerMessage::notification(method, params)));
        }
        match version::ServerNotification::parse(method) {
            Some(version::ServerNotification::Updated) => {
                if let Some(uri) = params.get("uri").and_then(Json::as_str) {
                    self.updated(&uri, now);
                }
            }
            Some(version::ServerNotification::ListChanged) => {
                self.cache.forget_lists();
                self.watches.lists_changed(now.tick, &mut self.timers);
                out.push(Effect::ListChanged);
            }
            Some(version::ServerNotification::Acknowledged) => self.acknowledged(params, now, out),
            Some(version::ServerNotification::Cancelled) => {
                let id = params.get("requestId");
                if self.revision().is_some_and(|revision| !revision.is_modern()) {
                    // A legacy server cancels its own requests alone.
                    id.and_then(Id::from_json).into_iter().for_each(|id| self.withdraw_question(id, out));
                } else if let Some(id) = id.and_then(Json::as_u64) {
                    self.torn_down(id, now, out);
                }
            }
            Some(version::ServerNotification::Progress) => self.progressed(params, now, out),
            None if self.reports_notifications => {
                let params = match params {
                    RawParams::Object { raw, .. } => one_line(*raw),
                    _ => "{}".to_owned(),
                };
                out.push(Effect::Notified { method: shown(method), params });
            }
            None => {}
        }
    }

    fn progressed(&mut self, params: &RawParams<'_>, now: Now, out: &mut Effects) {
        let Some(id) = params.get(meta::PROGRESS_TOKEN).and_then(Json::as_u64) else { return };
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let RequestPurpose::Call(slot) = flight.purpose else { return };
        let later = now.tick.saturating_add(flight.timeout).min(flight.latest);
        self.timers.remove(&(flight.deadline, MachineTimer::SentRequest(id)));
        flight.deadline = later;
        self.timers.insert((later, MachineTimer::SentRequest(id)));
        let number = |name| params.get(name).and_then(Json::as_f64);
        let (Some(call), Some(progress)) = (self.calls.reports_progress(slot), number("progress")) else {
            return;
        };
        let message = params.get("message").and_then(Json::as_str).map(|message| shown(&message));
        out.push(Effect::Progressed {
            call,
            progress: Progress { progress, total: number("total"), message },
        });
    }
}

/// Helpers for all parts of the machine.
impl Machine {
    fn connect(&mut self, out: &mut Effects) {
        if matches!(self.phase, MachinePhase::Offline) {
            self.timers.retain(|(_, timer)| *timer != MachineTimer::Connect);
            self.phase = MachinePhase::Opening;
            out.push(Effect::Connect);
        }
    }

    fn wants_connection(&self) -> bool {
        self.calls.wait() || !self.watches.is_empty() || self.watches.watches_lists
    }

    /// Sends a request and stores its purpose.
    fn send(
        &mut self,
        message: Outgoing,
        purpose: RequestPurpose,
        timeout: Millis,
        now: Now,
        out: &mut Effects,
    ) -> u64 {
        const LONGER: Millis = 10;
        let id = message.id.unwrap_or_default();
        let deadline = now.tick.saturating_add(timeout);
        let latest = now.tick.saturating_add(timeout.saturating_mul(LONGER));
        self.flights.insert(id, SentRequest { purpose, sent: now.tick, deadline, timeout, latest });
        self.timers.insert((deadline, MachineTimer::SentRequest(id)));
        out.push(Effect::Send(message));
        id
    }

    fn take_flight(&mut self, id: u64) -> Option<SentRequest> {
        let flight = self.flights.remove(&id)?;
        self.timers.remove(&(flight.deadline, MachineTimer::SentRequest(id)));
        Some(flight)
    }

    fn forget_flights(&mut self) {
        self.flights.clear();
        self.timers.retain(|(_, timer)| !matches!(timer, MachineTimer::SentRequest(_)));
    }

    /// Handles a request that has timed out.
    fn expired(&mut self, id: u64, now: Now, out: &mut Effects) {
        let Some(flight) = self.flights.remove(&id) else { return };
        let instead = self.last_unusable.as_ref().filter(|(at, _)| *at >= flight.sent);
        let instead = instead.map(|(_, what)| what.clone());
        match flight.purpose {
            RequestPurpose::Discover if self.pinned.is_none() => self.greet_after_silence(now, out),
            // The handshake cannot be cancelled.
            RequestPurpose::Discover | RequestPurpose::Initialize => {
                let mut reason = format!("no answer to the handshake within {} ms", flight.timeout);
                if let Some(instead) = instead {
                    reason.push_str("; but the server sent ");
                    reason.push_str(&instead);
                }
                let lost = Lost::NotOpened(reason);
                out.push(Effect::Disconnect { why: lost.failure() });
                self.lost(&lost, now, out);
            }
            RequestPurpose::Call(slot) => {
                self.take_back(id, out);
                let failure = Failure::Timeout { after: flight.timeout, instead };
                self.finish(slot, Err(ClientError::Failed(failure)), now, out);
            }
            RequestPurpose::Subscribe(uri) => {
                self.take_back(id, out);
                self.subscribe_failed(&uri, now);
            }
            RequestPurpose::Unsubscribe => {}
            RequestPurpose::Listen => {
                self.take_back(id, out);
                self.listen_ended(id, now);
            }
        }
    }

    /// Cancels a request.
    fn take_back(&mut self, id: u64, out: &mut Effects) {
        let message = self.speaker.notification(version::CANCELLED, |params| params.u64("requestId", id));
        out.push(Effect::Send(message));
        out.push(Effect::Abort(id));
    }

    /// Cancels all requests, listens included, before a connection is closed: some servers exit only when their
    /// handlers have ended. Not needed over HTTP, where the exchanges end with the connection.
    fn take_all_back(&mut self, out: &mut Effects) {
        if self.has_exchanges {
            return;
        }
        let is_lasting =
            |purpose: &RequestPurpose| matches!(purpose, RequestPurpose::Call(_) | RequestPurpose::Listen);
        let flights = self.flights.iter().filter(|(_, flight)| is_lasting(&flight.purpose));
        for id in flights.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.take_back(id, out);
        }
    }

    /// The agreed revision, while connected.
    fn revision(&self) -> Option<Revision> {
        self.about().map(|about| about.revision)
    }
}

/// Removes state that belongs to one connection.
trait RemoveConnection {
    fn remove_connection(&mut self);
}

impl RemoveConnection for BTreeSet<(Millis, MachineTimer)> {
    fn remove_connection(&mut self) {
        self.retain(|(_, timer)| matches!(timer, MachineTimer::Waiting(_)));
    }
}
