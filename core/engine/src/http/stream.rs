//! One response that is not finished at once, or one stream of notifications.
//!
//! ```text
//!          the answer comes
//!   open ───────────────────▶ whole                     JSON, with its status
//!    │ a report, a notification, or time passes
//!    └──────────────────────▶ events ──▶ over           a stream of events, status 200
//! ```
//!
//! Law: what waits to be written *is* the replay log: a reader is a position in it, so that coming back is moving the
//! position (R-174). What was written, or has no reader, is kept up to a bound; what a reader still waits for is
//! not thrown away.

use super::head::{JSON, ResponseHead};
use super::sse::{self, EventId};
use crate::limits::Limits;
use crate::now::{Millis, Now};
use std::collections::VecDeque;
use std::task::Waker;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To answer the requests of a `POST`.
    Answer,
    /// To tell what the hub marks: a `GET` of a session, or a modern listen.
    Notices,
    /// Both, for a whole session of 2024-11-05 (R-193).
    Everything,
}

/// What a stream may do; fixed when it begins.
#[derive(Clone, Debug)]
pub(super) struct StreamRules {
    pub(super) number: u64,
    pub(super) purpose: Purpose,
    /// The client takes events, and the author lets it have them.
    pub(super) events: bool,
    /// Even where there is nothing to tell before the answer.
    pub(super) only_events: bool,
    /// Events have ids, and the stream can be resumed (legacy).
    pub(super) numbered: bool,
    /// It begins with an event without data (R-175).
    pub(super) primed: bool,
    /// After how long it is broken off, and when the client is to come back (R-176).
    pub(super) polling: Option<super::rules::Polling>,
    pub(super) sse_after: Millis,
    pub(super) keep_alive: Millis,
    pub(super) replay: usize,
}

impl StreamRules {
    /// One that has no ids and need not be events.
    pub(super) fn new(purpose: Purpose, limits: &Limits) -> Self {
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

/// See the module.
#[derive(Debug)]
pub(super) struct Stream {
    policy: StreamRules,
    form: Form,
    /// The head that waits to be written.
    head: Option<ResponseHead>,
    log: VecDeque<Vec<u8>>,
    /// The number of the first event in `log`.
    first: u64,
    /// The number of the first event that was not written to the reader.
    at: u64,
    /// The bytes in `log`, and those of them that were not written to the reader.
    kept: usize,
    behind: usize,
    /// Requests of the author's that are to be answered here.
    pub(super) waiting: usize,
    /// Nothing will be added.
    over: bool,
    reader: Option<Reader>,
    opened: Millis,
    /// When something was last written to the reader.
    written: Millis,
}

#[derive(Debug)]
enum Form {
    Open,
    Whole(Vec<u8>),
    Events,
}

/// Who writes the stream to a client.
#[derive(Debug)]
struct Reader {
    number: u64,
    waker: Option<Waker>,
    origin: Option<String>,
    /// When its token expires, and the stream with it.
    until: Option<Millis>,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) head: Option<ResponseHead>,
    pub(super) end: bool,
    pub(super) more: bool,
}

impl Stream {
    pub(super) fn new(policy: StreamRules, now: Now) -> Self {
        Self {
            policy,
            form: Form::Open,
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

    /// Whether it carries what the hub marks.
    pub(super) fn tells(&self) -> bool {
        self.policy.purpose != Purpose::Answer
    }

    /// A reader begins, or takes the place of the one before.
    pub(super) fn attach(
        &mut self,
        number: u64,
        origin: Option<String>,
        until: Option<Millis>,
        now: Now,
    ) -> Option<Waker> {
        self.opened = now.tick;
        self.written = now.tick;
        let before = self.reader.replace(Reader { number, waker: None, origin, until });
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

    /// The number of its reader: the later it came, the greater.
    pub(super) fn reader(&self) -> Option<u64> {
        self.reader.as_ref().map(|reader| reader.number)
    }

    /// The reader has left. Whether it can come back for the rest.
    pub(super) fn detach(&mut self) -> bool {
        self.reader = None;
        let resumable = self.policy.numbered && matches!(self.form, Form::Events) && self.at > 0;
        if resumable {
            self.trim();
        }
        resumable
    }

    /// Who is to be woken when something was added. Each waker is woken once.
    pub(super) fn waker(&mut self) -> Option<Waker> {
        self.reader.as_mut()?.waker.take()
    }

    /// Returns the waker that was registered before.
    pub(super) fn register(&mut self, waker: &Waker) -> Option<Waker> {
        self.reader.as_mut()?.waker.replace(waker.clone())
    }

    /// Whether something can be told before the answer.
    pub(super) fn takes_events(&self) -> bool {
        matches!(self.form, Form::Events) || (self.policy.events && matches!(self.form, Form::Open))
    }

    /// How many bytes wait to be written.
    pub(super) fn backlog(&self) -> usize {
        self.behind
    }

    /// Whether an answer was decided on, and cannot be another any more.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.form, Form::Open)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Adds a message that is not the answer.
    pub(super) fn push(&mut self, line: Vec<u8>) {
        self.begin_events();
        self.add(line);
    }

    /// Adds the answer; nothing follows. `status` counts if nothing was sent yet.
    pub(super) fn answer(&mut self, line: Vec<u8>, status: u16) {
        if self.policy.purpose == Purpose::Everything {
            return self.push(line);
        }
        self.over = true;
        let events = self.policy.events && self.policy.only_events && status == 200;
        if matches!(self.form, Form::Open) && !events {
            self.head = Some(ResponseHead::new(status).complete(JSON, line.len()));
            self.form = Form::Whole(line);
        } else {
            self.push(line);
        }
    }

    /// All its requests are done with, and nothing was answered to the last.
    pub(super) fn end_answers(&mut self) {
        if self.policy.purpose != Purpose::Everything {
            self.end();
        }
    }

    /// Nothing follows, and there is no answer.
    pub(super) fn end(&mut self) {
        self.over = true;
        if matches!(self.form, Form::Open) {
            self.head = Some(ResponseHead::new(202).complete(JSON, 0));
            self.form = Form::Whole(Vec::new());
        }
    }

    /// It is a stream of events from now on.
    pub(super) fn begin_events(&mut self) {
        if !matches!(self.form, Form::Open) {
            return;
        }
        self.form = Form::Events;
        self.head = Some(ResponseHead::events());
        if self.policy.primed {
            self.add(Vec::new());
        }
    }

    /// Moves the reader behind the event with this number. Whether everything after it is still there.
    pub(super) fn resume(&mut self, after: u64) -> bool {
        let next = self.first.saturating_add(self.log.len() as u64);
        let wanted = after.saturating_add(1).min(next);
        self.at = wanted.max(self.first);
        let written = usize::try_from(self.at - self.first).unwrap_or(usize::MAX);
        self.behind = self.log.iter().skip(written).map(Vec::len).sum();
        self.head = Some(ResponseHead::events());
        wanted >= self.first
    }

    /// When something is to be written at the latest, though nothing happens.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.reader.as_ref()?;
        let own = match self.form {
            Form::Open => self.policy.events.then(|| self.opened.saturating_add(self.policy.sse_after)),
            Form::Whole(_) => None,
            Form::Events => {
                let comment = self.written.saturating_add(self.policy.keep_alive);
                Some(self.breaks_off().map_or(comment, |at| at.min(comment)))
            }
        };
        [own, self.until()].into_iter().flatten().min()
    }

    /// When the stream is broken off (R-176).
    fn breaks_off(&self) -> Option<Millis> {
        let polling = self.policy.polling.filter(|_| self.policy.primed)?;
        (self.policy.purpose == Purpose::Answer).then(|| self.opened.saturating_add(polling.after))
    }

    /// Writes what the reader has not seen, up to about `room` bytes.
    pub(super) fn write(&mut self, room: usize, now: Now, out: &mut Vec<u8>) -> Written {
        if self.policy.events
            && self.is_open()
            && now.tick >= self.opened.saturating_add(self.policy.sse_after)
        {
            self.begin_events();
        }
        let start = out.len();
        let mut written = Written::default();
        let origin = self.reader.as_ref().and_then(|reader| reader.origin.as_deref());
        written.head = self.head.take().map(|head| head.shared_with(origin));
        match &mut self.form {
            Form::Open => return written,
            Form::Whole(body) => {
                if out.is_empty() {
                    std::mem::swap(out, body)
                } else {
                    out.append(body)
                }
                written.end = true;
                return written;
            }
            Form::Events => {}
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
                if self.policy.purpose == Purpose::Everything {
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

    /// Drops the oldest events: all that were written if none can be resumed, otherwise those above
    /// the limit; without a reader also events that were never written.
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
