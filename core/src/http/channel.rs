//! One connection over HTTP, and its streams: a legacy session with many of them, or one modern request with one.
//!
//! Law: the lock is a leaf. It is never held while a handler runs or an answer that was detached is encoded, and whoever
//! is to be woken is woken after it was released.

use super::admission::{Call, Identified};
use super::rules::{Answers, Rules};
use super::stream::{Policy, Purpose, Stream};
use super::turn::Turn;
use crate::connection::{
    Arrival, Connection, Encoded, Event, Mirror, Outcome, Refusal, RequestToken, Status,
};
use crate::hub::{ConnectionId, Delivered};
use crate::now::{Millis, Now};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Names a stream of a channel and one reader of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) stream: u64,
    pub(super) reader: u64,
}

/// See the module.
pub(super) struct Channel {
    id: ConnectionId,
    principal: Box<str>,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) connection: Connection,
    is_session: bool,
    streams: BTreeMap<u64, Stream>,
    next_stream: u64,
    next_reader: u64,
    /// Where the answer to a request of the author's belongs.
    routes: HashMap<RequestToken, u64>,
    /// When a client was last here.
    touched: Millis,
    over: bool,
    wakers: Vec<Waker>,
}

/// What became of a message.
pub(super) enum Taken<'m> {
    /// It is answered: the response is complete.
    Whole(Turn<'m>),
    /// The rest follows on a stream.
    Stream(Turn<'m>, Seat),
}

impl Channel {
    pub(super) fn new(state: State, principal: &str) -> Self {
        Self { id: state.connection.id(), principal: principal.into(), state: Mutex::new(state) }
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(super) fn belongs_to(&self, principal: &str) -> bool {
        *self.principal == *principal
    }

    /// Works on the state, then wakes whoever must be.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = work(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// The hub has something for it.
    pub(super) fn wake(&self) {
        self.with(State::wake_notices);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("id", &self.id).finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(connection: Connection, is_session: bool, now: Now) -> Self {
        let (streams, routes, wakers) = Default::default();
        let (next_stream, next_reader, touched, over) = (0, 0, now.tick, false);
        Self { connection, is_session, streams, next_stream, next_reader, routes, touched, over, wakers }
    }

    /// The handshake was answered: from now on the connection is a session.
    pub(super) fn become_session(&mut self) {
        self.is_session = true;
    }

    /// Takes the body of a `POST`.
    pub(super) fn message<'m>(
        &mut self,
        (whose, mirror, rules): (&'m Identified, Mirror<'m>, &Rules),
        message: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Taken<'m> {
        self.touched = now.tick;
        let mut lines = Vec::new();
        let arrival = Arrival { message, principal: &whose.principal, mirror: Some(mirror) };
        let outcome = self.connection.message(arrival, now, &mut lines);
        if outcome.wakes {
            self.wake_notices();
        }
        self.cancelled(
            &outcome.events,
            if outcome.status == Status::Accepted { Some(&mut lines) } else { None },
        );
        let status = self.status_of(outcome.status);
        let policy = match (outcome.status, several(&lines)) {
            (Status::Pending, _) if lines.is_empty() => self.policy(Purpose::Answer, &whose.call, rules),
            // Something is told at once: a listen has begun, or is over already (R-100, DEC-10).
            (Status::Pending, _) | (Status::Answered, true) => {
                Policy { events: true, ..self.policy(Purpose::Notices, &whose.call, rules) }
            }
            (Status::Answered, false) if rules.answers == Answers::Events => {
                self.policy(Purpose::Answer, &whose.call, rules)
            }
            _ => {
                return Taken::Whole(whole(self.connection.id(), outcome, (status, lines), &whose.call, out));
            }
        };
        let is_over = outcome.status == Status::Answered;
        let seat = self.open_stream(policy, &whose.call, now);
        self.fill(seat.stream, lines, is_over);
        for token in outcome.events.iter().filter_map(Event::asks) {
            self.routes.insert(token, seat.stream);
            if let Some(stream) = self.streams.get_mut(&seat.stream) {
                stream.waiting += 1;
            }
        }
        let mut turn = self.deliver(seat, usize::MAX, now, out).shorten();
        let asked = Turn::after(turn.connection, outcome);
        turn.events.insert_many(0, asked.events);
        turn.misuse = asked.misuse;
        if turn.end { Taken::Whole(turn) } else { Taken::Stream(turn, seat) }
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

    /// Opens the stream of a `GET`.
    pub(super) fn open_notices(&mut self, call: &Call, rules: &Rules, now: Now) -> Seat {
        self.touched = now.tick;
        let policy = Policy { events: true, ..self.policy(Purpose::Notices, call, rules) };
        let seat = self.open_stream(policy, call, now);
        if let Some(stream) = self.streams.get_mut(&seat.stream) {
            stream.begin_events();
        }
        seat
    }

    /// Gives an earlier stream a new reader. `None` if it is not kept: then what was lost on it is marked.
    pub(super) fn resume(&mut self, id: super::sse::EventId, call: &Call, now: Now) -> Option<Seat> {
        self.touched = now.tick;
        self.next_reader += 1;
        let seat = Seat { stream: id.stream, reader: self.next_reader };
        let stream =
            self.streams.get_mut(&id.stream).filter(|stream| !stream.is_open() && stream.takes_events())?;
        let is_whole = stream.resume(id.number);
        self.wakers.extend(stream.attach(seat.reader, call.origin.clone(), now));
        if !is_whole {
            self.connection.mark_all();
        }
        Some(seat)
    }

    /// How many streams are kept for later, or are open for notifications: what
    /// [`Limits::streams`](crate::limits::Limits::streams) bounds. Lets go of the oldest without a reader first.
    pub(super) fn has_room(&mut self) -> bool {
        let most = self.connection.engine().limits().streams;
        loop {
            let kept = |stream: &Stream| stream.purpose() == Purpose::Notices || stream.reader().is_none();
            if self.streams.values().filter(|stream| kept(stream)).count() < most {
                return true;
            }
            let idle =
                self.streams.iter().find(|(_, stream)| stream.reader().is_none() && stream.waiting == 0);
            let Some(number) = idle.map(|(number, _)| *number) else { return false };
            self.streams.remove(&number);
        }
    }

    fn policy(&self, purpose: Purpose, call: &Call, rules: &Rules) -> Policy {
        let revision = self.connection.revision().filter(|_| self.is_session);
        Policy {
            number: self.next_stream,
            events: call.accept.events && rules.answers != Answers::Json,
            only_events: rules.answers == Answers::Events,
            numbered: self.is_session,
            primed: revision.is_some_and(|revision| revision.has_priming_event()),
            polling: rules.polling,
            ..Policy::new(purpose, self.connection.engine().limits())
        }
    }

    fn open_stream(&mut self, policy: Policy, call: &Call, now: Now) -> Seat {
        self.next_reader += 1;
        self.next_stream += 1;
        let seat = Seat { stream: policy.number, reader: self.next_reader };
        let mut stream = Stream::new(policy, now);
        stream.attach(seat.reader, call.origin.clone(), now);
        self.streams.insert(seat.stream, stream);
        seat
    }

    /// Writes what a reader has not seen, up to about `room` bytes; first takes what the hub has for it.
    pub(super) fn deliver(&mut self, seat: Seat, room: usize, now: Now, out: &mut Vec<u8>) -> Turn<'static> {
        let id = self.connection.id();
        let is_newest = self.newest_notices() == Some(seat.stream);
        let Some(stream) = self.streams.get_mut(&seat.stream).filter(|stream| stream.is_read_by(seat.reader))
        else {
            return Turn::ended(id);
        };
        let mut turn = Turn::of(id);
        if is_newest && !stream.is_over() {
            let room = room.saturating_sub(stream.backlog());
            let mut lines = Vec::new();
            let delivered = self.connection.deliver(room, now, &mut lines);
            each(&lines).for_each(|line| stream.push(line.to_vec()));
            turn.more = delivered == Delivered::More;
            if delivered == Delivered::Ended {
                stream.end();
            }
        }
        let written = stream.write(room, now, out);
        turn.head = written.head;
        turn.more |= written.more;
        turn.end = written.end;
        if turn.end {
            let is_over = stream.is_over();
            let resumable = stream.detach();
            if !resumable || (is_over && !self.is_session) {
                self.streams.remove(&seat.stream);
            }
            self.touched = now.tick;
            self.wake_notices();
        }
        turn
    }

    /// The stream that the hub's notifications go to: of those that are read, the one that was read last (R-085, DEC-24).
    fn newest_notices(&self) -> Option<u64> {
        let read = self.streams.iter().filter(|(_, stream)| stream.purpose() == Purpose::Notices);
        let read = read.filter_map(|(number, stream)| Some((stream.reader()?, *number)));
        read.max().map(|(_, number)| number)
    }

    pub(super) fn wake_notices(&mut self) {
        if let Some(stream) = self.newest_notices().and_then(|number| self.streams.get_mut(&number)) {
            self.wakers.extend(stream.waker());
        }
    }

    pub(super) fn register(&mut self, seat: Seat, waker: &Waker) {
        if let Some(stream) =
            self.streams.get_mut(&seat.stream).filter(|stream| stream.is_read_by(seat.reader))
        {
            stream.register(waker);
        }
    }

    /// A reader has left.
    pub(super) fn leave(&mut self, seat: Seat, now: Now) {
        let Some(stream) = self.streams.get_mut(&seat.stream).filter(|stream| stream.is_read_by(seat.reader))
        else {
            return;
        };
        if !stream.detach() {
            self.streams.remove(&seat.stream);
        }
        self.touched = now.tick;
        self.wake_notices();
    }

    /// Takes an answer that was worded elsewhere.
    pub(super) fn finish(&mut self, encoded: Encoded, now: Now) -> Turn<'static> {
        let token = encoded.token();
        let mut line = Vec::new();
        let outcome = self.connection.finish(encoded, now, &mut line);
        self.settled(token, line, outcome)
    }

    /// An answer was worded, or there will be none.
    pub(super) fn settled(
        &mut self,
        token: RequestToken,
        mut line: Vec<u8>,
        outcome: Outcome<'static>,
    ) -> Turn<'static> {
        if outcome.status != Status::Pending
            && let Some(number) = self.routes.remove(&token)
        {
            line.truncate(line.trim_ascii_end().len());
            let status = self.status_of(outcome.status);
            self.close_request(number, line, status);
        }
        Turn::after(self.connection.id(), outcome)
    }

    /// One request of a stream is done with: `line` is the answer to all of them, if it is the last.
    fn close_request(&mut self, number: u64, line: Vec<u8>, status: u16) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.waiting = stream.waiting.saturating_sub(1);
        match (line.is_empty(), stream.waiting) {
            (false, _) => stream.answer(line, status),
            (true, 0) => stream.end(),
            (true, _) => {}
        }
        self.wakers.extend(stream.waker());
    }

    /// Writes what a handler reports before its answer, if its client takes events and is not too far behind.
    pub(super) fn report(&mut self, token: RequestToken, message: &[u8]) {
        let most = self.connection.engine().limits().output;
        let Some(stream) = self.routes.get(&token).and_then(|number| self.streams.get_mut(number)) else {
            return;
        };
        if stream.takes_events() && stream.backlog() < most {
            each(message).for_each(|line| stream.push(line.to_vec()));
            self.wakers.extend(stream.waker());
        }
    }

    /// Appends a request of the server's to the stream that its client reads.
    pub(super) fn ask(&mut self, seat: Seat, message: &[u8]) -> bool {
        let newest = self.newest_notices();
        let mut candidates = [Some(seat.stream), newest].into_iter().flatten();
        let fits = |number: &u64| {
            self.streams.get(number).is_some_and(|stream| stream.takes_events() && !stream.is_over())
        };
        let Some(number) = candidates.find(fits) else { return false };
        if let Some(stream) = self.streams.get_mut(&number) {
            each(message).for_each(|line| stream.push(line.to_vec()));
            self.wakers.extend(stream.waker());
        }
        true
    }

    /// Ends the answers of requests that were cancelled (DEC-21). `spilt` is the answer of a batch that the cancellation
    /// completed.
    fn cancelled(&mut self, events: &[Event<'_>], mut spilt: Option<&mut Vec<u8>>) {
        for event in events {
            let Event::Cancelled(token) = event else { continue };
            let Some(number) = self.routes.remove(token) else { continue };
            let mut line = spilt.as_deref_mut().map(std::mem::take).unwrap_or_default();
            let says = self.streams.get(&number).is_some_and(|stream| stream.is_open());
            if line.is_empty() && says {
                self.connection.say_cancelled(*token, &mut line);
            }
            line.truncate(line.trim_ascii_end().len());
            self.close_request(number, line, 200);
        }
    }

    /// Lets time pass for the connection.
    pub(super) fn tick(&mut self, now: Now) -> Turn<'static> {
        let mut lines = Vec::new();
        let outcome =
            self.connection.tick_each(now, &mut |token, line| lines.push((token, std::mem::take(line))));
        for (token, mut line) in lines {
            if let Some(number) = self.routes.remove(&token) {
                line.truncate(line.trim_ascii_end().len());
                self.close_request(number, line, 200);
            }
        }
        Turn::after(self.connection.id(), outcome)
    }

    /// When [`State::tick`] is due.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.connection.deadline()
    }

    /// When the stream of a reader has something to write, though nothing happens.
    pub(super) fn stream_deadline(&self, seat: Seat) -> Option<Millis> {
        self.streams.get(&seat.stream).filter(|stream| stream.is_read_by(seat.reader))?.deadline()
    }

    /// When the session has been idle for so long that it ends; `None` while it is used.
    pub(super) fn expires(&self, idle: Millis) -> Option<Millis> {
        let is_used =
            self.connection.in_flight() > 0 || self.streams.values().any(|stream| stream.reader().is_some());
        (!is_used).then(|| self.touched.saturating_add(idle))
    }

    /// Ends the connection and its streams.
    pub(super) fn end(&mut self, now: Now) -> Turn<'static> {
        let events = self.connection.close(now);
        self.cancelled(&events, None);
        for stream in self.streams.values_mut().filter(|stream| !stream.is_over()) {
            stream.end();
            self.wakers.extend(stream.waker());
        }
        self.over = true;
        Turn { events, ..Turn::of(self.connection.id()) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// R-190, DEC-06. In a session the client has negotiated what there is: an unknown method is told in-band.
    fn status_of(&self, status: Status) -> u16 {
        match status {
            Status::Accepted => 202,
            Status::Pending | Status::Answered => 200,
            Status::Refused(Refusal::Method) if self.is_session => 200,
            Status::Refused(Refusal::Method | Refusal::SessionUnknown) => 404,
            Status::Refused(_) => 400,
        }
    }
}

/// A response that is complete.
fn whole<'m>(
    id: ConnectionId,
    outcome: Outcome<'m>,
    (status, mut lines): (u16, Vec<u8>),
    call: &Call,
    out: &mut Vec<u8>,
) -> Turn<'m> {
    lines.truncate(lines.trim_ascii_end().len());
    let head = super::head::ResponseHead::new(status).complete(super::head::JSON, lines.len());
    let head = Some(head.shared_with(call.origin.as_deref()));
    if out.is_empty() {
        std::mem::swap(out, &mut lines)
    } else {
        out.append(&mut lines)
    }
    Turn { head, end: true, ..Turn::after(id, outcome) }
}

fn each(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn several(lines: &[u8]) -> bool {
    each(lines).nth(1).is_some()
}
