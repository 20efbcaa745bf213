//! The state of a channel: its connection, its streams, and their readers.
//!
//! Law: every byte for a client is written through a stream, or is the whole response to the message that caused it.

use super::admission::{Admission, HttpCall, Identified};
use super::head::{JSON, ResponseHead};
use super::rules::{Answers, Rules};
use super::sse::EventId;
use super::stream::{EventStream, StreamPurpose, StreamRules};
use super::turn::Turn;
use crate::connection::{
    Arrival, Connection, ConnectionKind, Event, Events, HeaderCheck, OutcomeStatus, RequestOutcome,
    RequestRefusal, RequestToken, Standing,
};
use crate::engine::Lapse;
use crate::hub::{ConnectionId, Delivered};
use crate::limits::Limits;
use crate::now::{Millis, Now};
use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

/// Initial capacity in bytes; enough for most answers.
const USUAL_ANSWER: usize = 512;

/// Identifies a stream of a channel, and one reader of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReaderId {
    pub(super) stream: u64,
    pub(super) reader: u64,
}

/// The state of a channel.
pub(super) struct ChannelState {
    pub(super) connection: Connection,
    pub(super) is_session: bool,
    /// Whether it may have notifications.
    pub(super) has_notices: bool,
    /// Boxed, because a map node has room for several values, and most channels have one stream.
    pub(super) streams: BTreeMap<u64, Box<EventStream>>,
    next_stream: u64,
    next_reader: u64,
    /// The stream to which the answer of a handler belongs.
    pub(super) routes: HashMap<RequestToken, u64>,
    /// The time of the client's last request.
    touched: Millis,
    pub(super) over: bool,
    /// Whether the token of a listen has expired.
    expired: bool,
    pub(super) wakers: Vec<Waker>,
}

/// The result of a message.
pub(super) enum Taken<'m> {
    /// The response is complete.
    Whole(Turn<'m>),
    /// The rest follows on a stream.
    Stream(Turn<'m>, ReaderId),
}

impl ChannelState {
    pub(super) fn new(connection: Connection, is_session: bool, now: Now) -> Self {
        let streams = Default::default();
        let routes = Default::default();
        let wakers = Default::default();
        let next_stream = 0;
        let next_reader = 0;
        let touched = now.tick;
        let has_notices = false;
        Self {
            connection,
            is_session,
            has_notices,
            streams,
            next_stream,
            next_reader,
            routes,
            touched,
            over: false,
            expired: false,
            wakers,
        }
    }

    /// Turns the connection into a session after the answered handshake.
    pub(super) fn become_session(&mut self) {
        self.is_session = true;
        self.has_notices = true;
    }

    /// Handles the body of a `POST`.
    pub(super) fn message<'m>(
        &mut self,
        client: &'m Identified,
        header_check: HeaderCheck<'m>,
        gate: &Admission,
        message: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Taken<'m> {
        self.touched = now.tick;
        let rules = &gate.rules;
        let mut lines = Vec::with_capacity(USUAL_ANSWER);
        // Another request may have ended the session in the meantime.
        let header_check =
            if self.over { HeaderCheck { session: Standing::Unknown, ..header_check } } else { header_check };
        let arrival = Arrival { message, principal: &client.principal, header_check: Some(header_check) };
        self.connection.set_address(client.address);
        let outcome = self.connection.message(arrival, now, &mut lines);
        let completed = self.connection.take_completed();
        self.cancelled(&outcome.events, completed);
        self.has_notices |= outcome.events.iter().any(|event| matches!(event, Event::Shared(_)));
        let status = self.status_of(outcome.status);
        let held = outcome.events.iter().find_map(Event::asks);
        let begins = held.is_some_and(|token| self.connection.holds_listen(token));
        let policy = match (outcome.status, several(&lines)) {
            (OutcomeStatus::Pending, _) if lines.is_empty() && !begins => {
                self.policy(StreamPurpose::Answer, &client.call, rules)
            }
            // Something is sent at once: a listen has begun, or has already ended.
            (OutcomeStatus::Pending, _) | (OutcomeStatus::Answered, true) => {
                StreamRules { events: true, ..self.policy(StreamPurpose::Notices, &client.call, rules) }
            }
            (OutcomeStatus::Answered, false) if rules.answers == Answers::Events => {
                self.policy(StreamPurpose::Answer, &client.call, rules)
            }
            _ => {
                let challenge = gate.challenge(&client.call, &outcome);
                let mut turn = whole(self.connection.id(), outcome, status, lines, &client.call, out);
                turn.head = turn.head.map(|head| match challenge {
                    Some(challenge) => head.with("www-authenticate", challenge),
                    None => head,
                });
                return Taken::Whole(turn);
            }
        };
        // Checked after the hub knows the listen, so that a later revocation finds it there.
        let is_late = policy.purpose != StreamPurpose::Answer && client.was_revoked();
        let left = if is_late { self.connection.end_listens() } else { Events::new() };
        let is_over = outcome.status == OutcomeStatus::Answered;
        let until = client.principal.expires_at(now).filter(|_| policy.purpose != StreamPurpose::Answer);
        let reader_id = self.open_stream(policy, &client.call, until, now);
        self.fill(reader_id.stream, lines, is_over);
        self.route_answers(&outcome.events, reader_id.stream);
        let mut turn = self.deliver(reader_id, usize::MAX, now, out).shorten();
        left.into_iter().for_each(|event| turn.events.push(event));
        let opened = Turn::after(turn.connection, outcome);
        turn.events.insert_many(0, opened.events);
        turn.misuse = opened.misuse;
        if turn.end { Taken::Whole(turn) } else { Taken::Stream(turn, reader_id) }
    }

    /// Routes the answers to these events to `stream`.
    fn route_answers(&mut self, events: &[Event<'_>], stream: u64) {
        for token in events.iter().filter_map(Event::asks) {
            self.routes.insert(token, stream);
            if let Some(stream) = self.streams.get_mut(&stream) {
                stream.waiting += 1;
            }
        }
    }

    fn fill(&mut self, stream: u64, lines: Vec<u8>, is_over: bool) {
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        let mut lines = each(&lines).peekable();
        while let Some(line) = lines.next() {
            match lines.peek() {
                None if is_over => stream.answer(line.to_vec(), 200),
                _ => stream.push(line.to_vec()),
            }
        }
    }

    /// Whether the message was the handshake of a session, and is answered.
    pub(super) fn begins_session(&self) -> bool {
        self.connection.kind() == ConnectionKind::Session && self.connection.revision().is_some()
    }

    pub(super) fn has_notices(&self) -> bool {
        self.has_notices
    }

    /// Opens the stream of a `GET`, which ends when its token expires. `None` if there are too many streams.
    pub(super) fn open_notices(&mut self, request: &Identified, rules: &Rules, now: Now) -> Option<ReaderId> {
        let call = &request.call;
        self.touched = now.tick;
        self.readmit(request);
        let max = self.connection.engine().limits().streams;
        self.shed(max.saturating_sub(1));
        if self.kept() >= max {
            return None;
        }
        let policy = StreamRules { events: true, ..self.policy(StreamPurpose::Notices, call, rules) };
        let reader_id = self.open_stream(policy, call, request.principal.expires_at(now), now);
        if let Some(stream) = self.streams.get_mut(&reader_id.stream) {
            stream.begin_events();
        }
        Some(reader_id)
    }

    /// Lets streams stay open again after the token of a `GET` was accepted, unless that token was revoked in the
    /// meantime.
    fn readmit(&mut self, request: &Identified) {
        self.connection.readmit();
        if request.was_revoked() {
            self.connection.dismiss();
        }
    }

    /// Connects a new reader to an earlier stream. `None` if the stream no longer exists. If events were
    /// dropped, all subscriptions are marked as changed.
    pub(super) fn resume(&mut self, id: EventId, request: &Identified, now: Now) -> Option<ReaderId> {
        self.touched = now.tick;
        self.readmit(request);
        self.next_reader += 1;
        let reader_id = ReaderId { stream: id.stream, reader: self.next_reader };
        let stream =
            self.streams.get_mut(&id.stream).filter(|stream| !stream.is_open() && stream.takes_events())?;
        let is_whole = stream.resume(id.number);
        let origin = request.call.origin.clone();
        let until = request.principal.expires_at(now);
        self.wakers.extend(stream.attach(reader_id.reader, origin, until, now));
        if !is_whole {
            self.connection.mark_all();
        }
        Some(reader_id)
    }

    /// Opens the single stream of a session of 2024-11-05.
    pub(super) fn open_everything(&mut self, request: &Identified, rules: &Rules, now: Now) -> ReaderId {
        let call = &request.call;
        let policy = StreamRules { events: true, ..self.policy(StreamPurpose::Everything, call, rules) };
        let reader_id = self.open_stream(policy, call, request.principal.expires_at(now), now);
        if let Some(stream) = self.streams.get_mut(&reader_id.stream) {
            stream.begin_events();
        }
        reader_id
    }

    /// Handles a message of such a session; answers are sent on its stream.
    pub(super) fn send<'m>(
        &mut self,
        client: &'m Identified,
        header_check: HeaderCheck<'m>,
        message: &'m [u8],
        now: Now,
    ) -> Turn<'m> {
        let mut lines = Vec::new();
        let header_check = HeaderCheck { challenges: false, ..header_check };
        let header_check =
            if self.over { HeaderCheck { session: Standing::Unknown, ..header_check } } else { header_check };
        let arrival = Arrival { message, principal: &client.principal, header_check: Some(header_check) };
        self.connection.set_address(client.address);
        let outcome = self.connection.message(arrival, now, &mut lines);
        if client.was_revoked() {
            self.connection.dismiss();
        }
        for (_, mut line) in self.connection.take_completed() {
            lines.append(&mut line);
        }
        self.cancelled(&outcome.events, Vec::new());
        if let Some((&number, stream)) = self.streams.iter_mut().next() {
            each(&lines).for_each(|line| stream.push(line.to_vec()));
            self.route_answers(&outcome.events, number);
        }
        // Even without anything to write: the deadline may be earlier now.
        self.wake_notices();
        Turn::after(self.connection.id(), outcome)
    }

    /// The number of streams that are kept for resuming or open for notifications, which
    /// [`Limits::streams`](crate::limits::Limits::streams) limits.
    fn kept(&self) -> usize {
        let is_kept = |stream: &EventStream| stream.carries_notices() || stream.reader().is_none();
        self.streams.values().filter(|stream| is_kept(stream)).count()
    }

    /// Drops idle streams without a reader, oldest first, until `max` are left.
    fn shed(&mut self, max: usize) {
        let excess = self.kept().saturating_sub(max);
        let idle = self.streams.iter().filter(|(_, stream)| stream.reader().is_none() && stream.waiting == 0);
        let idle: Vec<_> = idle.map(|(number, _)| *number).take(excess).collect();
        for number in idle {
            self.streams.remove(&number);
        }
    }

    /// Detaches the reader of a stream, and drops the stream if it cannot be resumed.
    fn detach(&mut self, number: u64, now: Now) {
        if self.streams.get_mut(&number).is_some_and(|stream| !stream.detach()) {
            self.streams.remove(&number);
        }
        self.shed(self.connection.engine().limits().streams);
        self.touched = now.tick;
        self.wake_notices();
    }

    fn policy(&self, purpose: StreamPurpose, call: &HttpCall, rules: &Rules) -> StreamRules {
        let revision = self.connection.revision().filter(|_| self.is_session);
        StreamRules {
            number: self.next_stream,
            events: call.accept.events && rules.answers != Answers::Json,
            only_events: rules.answers == Answers::Events,
            numbered: self.is_session,
            primed: revision.is_some_and(|revision| revision.has_priming_event()),
            polling: rules.polling,
            ..StreamRules::new(purpose, self.connection.engine().limits())
        }
    }

    fn open_stream(
        &mut self,
        policy: StreamRules,
        call: &HttpCall,
        until: Option<Millis>,
        now: Now,
    ) -> ReaderId {
        self.next_reader += 1;
        self.next_stream += 1;
        let reader_id = ReaderId { stream: policy.number, reader: self.next_reader };
        self.has_notices |= policy.purpose != StreamPurpose::Answer;
        let mut stream = EventStream::new(policy, now);
        stream.attach(reader_id.reader, call.origin.clone(), until, now);
        self.streams.insert(reader_id.stream, Box::new(stream));
        reader_id
    }

    /// Takes notifications from the hub, then writes data that a reader has not received, up to about `room` bytes.
    pub(super) fn deliver(
        &mut self,
        reader_id: ReaderId,
        room: usize,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Turn<'static> {
        let id = self.connection.id();
        let Some(stream) =
            self.streams.get(&reader_id.stream).filter(|stream| stream.is_read_by(reader_id.reader))
        else {
            return Turn::ended(id);
        };
        let mut turn = Turn::new(id);
        if stream.has_expired(now) {
            turn.events = self.expire(reader_id.stream);
        }
        turn.more = self.take_notices(reader_id.stream, room);
        if self.connection.has_questions() {
            turn.events.extend(self.connection.take_questions(now));
        }
        let Some(stream) = self.streams.get_mut(&reader_id.stream) else { return Turn::ended(id) };
        let written = stream.write(room, now, out);
        turn.head = written.head;
        turn.more |= written.more;
        turn.end = written.end;
        if turn.end {
            self.detach(reader_id.stream, now);
        }
        turn
    }

    /// Handles the expiry of the token of a stream: listens are answered, and the stream ends.
    fn expire(&mut self, number: u64) -> Events<'static> {
        let is_listen = self.connection.kind() == ConnectionKind::Request;
        match self.streams.get_mut(&number) {
            Some(stream) if !is_listen => {
                if !stream.is_over() {
                    self.connection.engine().count_lapse(Lapse::Expired);
                }
                stream.end();
                Events::new()
            }
            _ => {
                self.expired = true;
                self.connection.end_listens()
            }
        }
    }

    /// Takes notifications from the hub for a stream; returns whether there are more.
    fn take_notices(&mut self, number: u64, room: usize) -> bool {
        let is_newest = self.newest_notices() == Some(number);
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| is_newest && !stream.is_over())
        else {
            return false;
        };
        let room = room.saturating_sub(stream.backlog());
        let mut lines = Vec::new();
        let delivered = self.connection.deliver(room, &mut lines);
        each(&lines).for_each(|line| stream.push(line.to_vec()));
        if delivered == Delivered::Ended {
            let why = if self.expired { Lapse::Expired } else { Lapse::Revoked };
            for stream in self.streams.values_mut().filter(|stream| stream.carries_notices()) {
                if !self.connection.is_closing() && !stream.is_over() {
                    self.connection.engine().count_lapse(why);
                }
                stream.end();
                self.wakers.extend(stream.waker());
            }
        }
        delivered == Delivered::More
    }

    /// Ends listens with their results, then the notification streams.
    pub(super) fn shutdown(&mut self) {
        self.connection.shutdown();
        self.wake_notices();
    }

    /// The stream for notifications: of those with a reader, the one whose reader connected last.
    pub(super) fn newest_notices(&self) -> Option<u64> {
        let read = self.streams.iter().filter(|(_, stream)| stream.carries_notices());
        let read = read.filter_map(|(number, stream)| Some((stream.reader()?, *number)));
        read.max().map(|(_, number)| number)
    }

    /// Handles a wake-up by the engine.
    pub(super) fn woken(&mut self) {
        self.answer_waiting();
        self.wake_notices();
    }

    pub(super) fn wake_notices(&mut self) {
        if let Some(stream) = self.newest_notices().and_then(|number| self.streams.get_mut(&number)) {
            self.wakers.extend(stream.waker());
        }
    }

    /// Registers a waker and returns the previous one, to be dropped after the lock is released: dropping it may run
    /// code of the runtime.
    pub(super) fn register(&mut self, reader_id: ReaderId, waker: &Waker) -> Option<Waker> {
        let stream =
            self.streams.get_mut(&reader_id.stream).filter(|stream| stream.is_read_by(reader_id.reader))?;
        stream.register(waker)
    }

    /// Detaches a reader that has disconnected.
    pub(super) fn leave(&mut self, reader_id: ReaderId, now: Now) {
        if self.streams.get(&reader_id.stream).is_some_and(|stream| stream.is_read_by(reader_id.reader)) {
            self.detach(reader_id.stream, now);
        }
    }

    /// The time at which the stream of a reader must be written even without an event.
    pub(super) fn stream_deadline(&self, reader_id: ReaderId) -> Option<Millis> {
        self.streams.get(&reader_id.stream).filter(|stream| stream.is_read_by(reader_id.reader))?.deadline()
    }

    /// The time at which the idle session expires; `None` while it is in use. Without `notifications/initialized` it
    /// expires early.
    pub(super) fn expires(&self, limits: &Limits) -> Option<Millis> {
        let is_new = !self.connection.is_operating();
        let idle =
            if is_new { limits.session_idle.min(limits.handshake_timeout) } else { limits.session_idle };
        let is_used =
            self.connection.in_flight() > 0 || self.streams.values().any(|stream| stream.reader().is_some());
        (!is_used).then(|| self.touched.saturating_add(idle))
    }

    /// Takes the wakers to call once the lock is released.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// The HTTP status of an answer. A legacy client gets the error for an unknown method with status
    /// 200.
    pub(super) fn status_of(&self, status: OutcomeStatus) -> u16 {
        match status {
            OutcomeStatus::Accepted => 202,
            OutcomeStatus::Pending | OutcomeStatus::Answered => 200,
            OutcomeStatus::Refused(RequestRefusal::Method) if self.connection.revision().is_some() => 200,
            OutcomeStatus::Refused(RequestRefusal::Method | RequestRefusal::SessionUnknown) => 404,
            OutcomeStatus::Refused(RequestRefusal::Scope) => 403,
            OutcomeStatus::Refused(_) => 400,
        }
    }
}

/// A complete response.
fn whole<'m>(
    id: ConnectionId,
    outcome: RequestOutcome<'m>,
    status: u16,
    mut lines: Vec<u8>,
    call: &HttpCall,
    out: &mut Vec<u8>,
) -> Turn<'m> {
    lines.truncate(lines.trim_ascii_end().len());
    let head = ResponseHead::new(status).complete(JSON, lines.len());
    let head = Some(head.shared_with(call.origin.as_deref()));
    if out.is_empty() {
        std::mem::swap(out, &mut lines)
    } else {
        out.append(&mut lines)
    }
    Turn { head, end: true, ..Turn::after(id, outcome) }
}

pub(super) fn each(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Whether there is more than one line; a line contains no raw line break.
fn several(lines: &[u8]) -> bool {
    memchr::memchr(b'\n', lines).is_some_and(|end| end + 1 < lines.len())
}
