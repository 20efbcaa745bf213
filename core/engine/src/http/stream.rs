//! One response that is not finished at once, or one stream of notifications.
//!
//! ```text
//!          the answer comes
//!   open ───────────────────▶ whole                     JSON, with its status
//!    │ a report, a notification, or time passes
//!    └──────────────────────▶ events ──▶ over           a stream of events, status 200
//! ```
//!
//! Law: the queue of unwritten events *is* the replay log. A reader is a position in it, so resuming only moves the
//! position. Events that were written, or have no reader, are kept up to a limit; unwritten events of a reader are
//! never dropped.

use super::head::{JSON, ResponseHead};
use super::sse::{self, EventId};
use crate::limits::Limits;
use crate::now::{Millis, Now};
use std::collections::VecDeque;
use std::task::Waker;

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamPurpose {
    /// Answers the requests of a `POST`.
    Answer,
    /// Sends notifications: for a `GET` of a session, or a modern listen.
    Notices,
    /// Both, for a session of 2024-11-05.
    Everything,
}

/// The rules of a stream; fixed when it begins.
#[derive(Clone, Debug)]
pub(super) struct StreamRules {
    pub(super) number: u64,
    pub(super) purpose: StreamPurpose,
    /// Whether events may be used: the client accepts them, and the server's rules allow them.
    pub(super) events: bool,
    /// Whether events are used even if nothing is sent before the answer.
    pub(super) only_events: bool,
    /// Whether events have ids, and the stream can be resumed (legacy).
    pub(super) numbered: bool,
    /// Whether it begins with an event without data.
    pub(super) primed: bool,
    /// When it is interrupted, and when the client reconnects.
    pub(super) polling: Option<super::rules::Polling>,
    pub(super) sse_after: Millis,
    pub(super) keep_alive: Millis,
    pub(super) replay: usize,
}

impl StreamRules {
    /// The rules of a stream without ids that may be answered as JSON.
    pub(super) fn new(purpose: StreamPurpose, limits: &Limits) -> Self {
        Self {
            number: 0,
            purpose,
            events: true,
            only_events: false,
            numbered: false,
            primed: false,
            polling: None,
            sse_after: limits.sse_after,
            keep_alive: limits.keep_alive,
            replay: limits.replay,
        }
    }
}

/// One response or notification stream. See the module.
#[derive(Debug)]
pub(super) struct EventStream {
    policy: StreamRules,
    form: StreamForm,
    /// The head, until it is written.
    head: Option<ResponseHead>,
    log: VecDeque<Vec<u8>>,
    /// The number of the first event in `log`.
    first: u64,
    /// The number of the first event that the reader has not received.
    at: u64,
    /// The bytes in `log`, and those that the reader has not received.
    kept: usize,
    behind: usize,
    /// The number of requests whose answers belong to this stream.
    pub(super) waiting: usize,
    /// Whether nothing more will be added.
    over: bool,
    reader: Option<StreamReader>,
    opened: Millis,
    /// The time of the last write to the reader.
    written: Millis,
}

#[derive(Debug)]
enum StreamForm {
    Open,
    Whole(Vec<u8>),
    Events,
}

/// The writer that sends the stream to a client.
#[derive(Debug)]
struct StreamReader {
    number: u64,
    waker: Option<Waker>,
    origin: Option<String>,
    /// The expiry of its token, at which the stream ends.
    until: Option<Millis>,
}

/// The result of a write.
#[derive(Debug, Default)]
pub(super) struct WrittenEvents {
    pub(super) head: Option<ResponseHead>,
    pub(super) end: bool,
    pub(super) more: bool,
}

impl EventStream {
    pub(super) fn new(policy: StreamRules, now: Now) -> Self {
        Self {
            policy,
            form: StreamForm::Open,
            head: None,
            log: VecDeque::new(),
            first: 0,
            at: 0,
            kept: 0,
            behind: 0,
            waiting: 0,
            over: false,
            reader: None,
            opened: now.tick,
            written: now.tick,
        }
    }

    /// Whether it carries notifications.
    pub(super) fn carries_notices(&self) -> bool {
        self.policy.purpose != StreamPurpose::Answer
    }

    /// Attaches a reader, replacing the previous one.
    pub(super) fn attach(
        &mut self,
        number: u64,
        origin: Option<String>,
        until: Option<Millis>,
        now: Now,
    ) -> Option<Waker> {
        self.opened = now.tick;
        self.written = now.tick;
        let before = self.reader.replace(StreamReader { number, waker: None, origin, until });
        before.and_then(|reader| reader.waker)
    }

    /// Whether the token of its reader has expired.
    pub(super) fn has_expired(&self, now: Now) -> bool {
        self.until().is_some_and(|until| until <= now.tick)
    }

    fn until(&self) -> Option<Millis> {
        self.reader.as_ref()?.until
    }

    pub(super) fn is_read_by(&self, reader: u64) -> bool {
        self.reader.as_ref().is_some_and(|own| own.number == reader)
    }

    /// The number of its reader; later readers have greater numbers.
    pub(super) fn reader(&self) -> Option<u64> {
        self.reader.as_ref().map(|reader| reader.number)
    }

    /// Detaches the reader; returns whether the stream can be resumed.
    pub(super) fn detach(&mut self) -> bool {
        self.reader = None;
        let resumable = self.policy.numbered && matches!(self.form, StreamForm::Events) && self.at > 0;
        if resumable {
            self.trim();
        }
        resumable
    }

    /// The waker to call after data was added. Each waker is returned once.
    pub(super) fn waker(&mut self) -> Option<Waker> {
        self.reader.as_mut()?.waker.take()
    }

    /// Registers a waker and returns the previous one.
    pub(super) fn register(&mut self, waker: &Waker) -> Option<Waker> {
        self.reader.as_mut()?.waker.replace(waker.clone())
    }

    /// Whether messages can be sent before the answer.
    pub(super) fn takes_events(&self) -> bool {
        matches!(self.form, StreamForm::Events)
            || (self.policy.events && matches!(self.form, StreamForm::Open))
    }

    /// The number of bytes that are not written yet.
    pub(super) fn backlog(&self) -> usize {
        self.behind
    }

    /// Whether the form of the answer is still open.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.form, StreamForm::Open)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Adds a message other than the answer.
    pub(super) fn push(&mut self, line: Vec<u8>) {
        self.begin_events();
        self.add(line);
    }

    /// Adds the answer and ends the stream. `status` is used if nothing was sent yet.
    pub(super) fn answer(&mut self, line: Vec<u8>, status: u16) {
        if self.policy.purpose == StreamPurpose::Everything {
            return self.push(line);
        }
        self.over = true;
        let events = self.policy.events && self.policy.only_events && status == 200;
        if matches!(self.form, StreamForm::Open) && !events {
            self.head = Some(ResponseHead::new(status).complete(JSON, line.len()));
            self.form = StreamForm::Whole(line);
        } else {
            self.push(line);
        }
    }

    /// Ends the stream after its last request ended without an answer.
    pub(super) fn end_answers(&mut self) {
        if self.policy.purpose != StreamPurpose::Everything {
            self.end();
        }
    }

    /// Ends the stream without an answer.
    pub(super) fn end(&mut self) {
        self.over = true;
        if matches!(self.form, StreamForm::Open) {
            self.head = Some(ResponseHead::new(202).complete(JSON, 0));
            self.form = StreamForm::Whole(Vec::new());
        }
    }

    /// Turns the response into an event stream.
    pub(super) fn begin_events(&mut self) {
        if !matches!(self.form, StreamForm::Open) {
            return;
        }
        self.form = StreamForm::Events;
        self.head = Some(ResponseHead::events());
        if self.policy.primed {
            self.add(Vec::new());
        }
    }

    /// Moves the reader to the event after number `after`. Returns whether no event after it was dropped.
    pub(super) fn resume(&mut self, after: u64) -> bool {
        let next = self.first.saturating_add(self.log.len() as u64);
        let wanted = after.saturating_add(1).min(next);
        self.at = wanted.max(self.first);
        let written = usize::try_from(self.at - self.first).unwrap_or(usize::MAX);
        self.behind = self.log.iter().skip(written).map(Vec::len).sum();
        self.head = Some(ResponseHead::events());
        wanted >= self.first
    }

    /// The time at which data must be written even without an event.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.reader.as_ref()?;
        let own = match self.form {
            StreamForm::Open => self.policy.events.then(|| self.opened.saturating_add(self.policy.sse_after)),
            StreamForm::Whole(_) => None,
            StreamForm::Events => {
                let comment = self.written.saturating_add(self.policy.keep_alive);
                Some(self.breaks_off().map_or(comment, |at| at.min(comment)))
            }
        };
        [own, self.until()].into_iter().flatten().min()
    }

    /// The time at which the stream is interrupted.
    fn breaks_off(&self) -> Option<Millis> {
        let polling = self.policy.polling.filter(|_| self.policy.primed)?;
        (self.policy.purpose == StreamPurpose::Answer).then(|| self.opened.saturating_add(polling.after))
    }

    /// Writes data that the reader has not received, up to about `room` bytes.
    pub(super) fn write(&mut self, room: usize, now: Now, out: &mut Vec<u8>) -> WrittenEvents {
        if self.policy.events
            && self.is_open()
            && now.tick >= self.opened.saturating_add(self.policy.sse_after)
        {
            self.begin_events();
        }
        let start = out.len();
        let mut written = WrittenEvents::default();
        let origin = self.reader.as_ref().and_then(|reader| reader.origin.as_deref());
        written.head = self.head.take().map(|head| head.shared_with(origin));
        match &mut self.form {
            StreamForm::Open => return written,
            StreamForm::Whole(body) => {
                if out.is_empty() {
                    std::mem::swap(out, body)
                } else {
                    out.append(body)
                }
                written.end = true;
                return written;
            }
            StreamForm::Events => {}
        }
        while let Some(line) = self.unwritten() {
            if out.len() - start >= room {
                written.more = true;
                self.written = now.tick;
                return written;
            }
            let id = EventId { stream: self.policy.number, number: self.at };
            if line.is_empty() {
                sse::priming(id, self.policy.polling.map(|polling| polling.retry), out);
            } else {
                if self.policy.purpose == StreamPurpose::Everything {
                    sse::named_message(out);
                }
                sse::message(self.policy.numbered.then_some(id), line, out);
            }
            let length = line.len();
            self.at += 1;
            self.behind -= length;
            self.trim();
        }
        let broken_off = self.breaks_off().is_some_and(|at| now.tick >= at);
        written.end = self.over || broken_off;
        if out.len() == start
            && !written.end
            && now.tick >= self.written.saturating_add(self.policy.keep_alive)
        {
            sse::comment(out);
        }
        if out.len() > start || written.head.is_some() {
            self.written = now.tick;
        }
        written
    }

    fn unwritten(&self) -> Option<&Vec<u8>> {
        self.log.get(usize::try_from(self.at.checked_sub(self.first)?).ok()?)
    }

    fn add(&mut self, line: Vec<u8>) {
        self.kept += line.len();
        self.behind += line.len();
        self.log.push_back(line);
        if self.reader.is_none() {
            self.trim();
        }
    }

    /// Drops the oldest events: all written ones if the stream cannot be resumed, else those above the limit; without a
    /// reader also unwritten ones.
    fn trim(&mut self) {
        let bound = if self.policy.numbered { self.policy.replay } else { 0 };
        while self.kept > bound || (!self.policy.numbered && !self.log.is_empty()) {
            if self.first >= self.at && self.reader.is_some() {
                return;
            }
            let Some(line) = self.log.pop_front() else { return };
            self.kept -= line.len();
            if self.first == self.at {
                self.behind -= line.len();
                self.at += 1;
            }
            self.first += 1;
        }
    }
}
