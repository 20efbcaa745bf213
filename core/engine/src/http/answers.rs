//! Routes handlers' answers and earlier reports to the stream of their request.

use super::state::{ChannelState, ReaderId, each};
use super::stream::EventStream;
use super::turn::Turn;
use crate::connection::{
    AskError, AskId, AskLasts, EncodedReply, Event, HeldRequest, OutcomeStatus, RequestOutcome, RequestToken,
};
use crate::now::{Millis, Now};

impl ChannelState {
    /// Adds an answer that was encoded elsewhere.
    pub(super) fn finish(&mut self, encoded: EncodedReply, now: Now) -> Turn<'static> {
        let token = encoded.token();
        let mut line = Vec::new();
        let outcome = self.connection.finish(encoded, now, &mut line);
        self.settled(token, line, outcome)
    }

    /// Handles the end of a request, with or without an answer.
    pub(super) fn settled(
        &mut self,
        token: RequestToken,
        mut line: Vec<u8>,
        outcome: RequestOutcome<'static>,
    ) -> Turn<'static> {
        if outcome.status != OutcomeStatus::Pending
            && let Some(number) = self.routes.remove(&token)
        {
            line.truncate(line.trim_ascii_end().len());
            let status = self.status_of(outcome.status);
            self.close_request(number, line, status);
        }
        Turn::after(self.connection.id(), outcome)
    }

    /// Serves a held request from its start. A listen begins with an acknowledgement, and its stream stays open.
    pub(super) fn again<'h>(&mut self, held: &'h HeldRequest, now: Now) -> Turn<'h> {
        let token = held.token();
        let mut lines = Vec::new();
        let outcome = self.connection.again(held, now, &mut lines);
        self.has_notices |= outcome.events.iter().any(|event| matches!(event, Event::Shared(_)));
        let waits = outcome.events.iter().any(|event| event.asks() == Some(token));
        if !waits && let Some(number) = self.routes.remove(&token) {
            let status = self.status_of(outcome.status);
            let begins = outcome.status == OutcomeStatus::Pending;
            let mut rest = each(&lines).peekable();
            while let Some(line) = rest.next_if(|_| begins) {
                self.push(number, line);
            }
            let mut last = Vec::new();
            while let Some(line) = rest.next() {
                match rest.peek() {
                    Some(_) => self.push(number, line),
                    None => last = line.to_vec(),
                }
            }
            match self.streams.get_mut(&number).filter(|_| begins) {
                Some(stream) => {
                    stream.waiting = stream.waiting.saturating_sub(1);
                    self.wakers.extend(stream.waker());
                }
                None => self.close_request(number, last, status),
            }
        }
        Turn::after(self.connection.id(), outcome)
    }

    fn push(&mut self, number: u64, line: &[u8]) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.push(line.to_vec());
        }
    }

    /// Ends one request of a stream. `line` is the response to all of its requests, if this was the last.
    fn close_request(&mut self, number: u64, line: Vec<u8>, status: u16) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.waiting = stream.waiting.saturating_sub(1);
        match (line.is_empty(), stream.waiting) {
            (false, _) => stream.answer(line, status),
            (true, 0) => stream.end_answers(),
            (true, _) => {}
        }
        self.wakers.extend(stream.waker());
    }

    /// Writes a handler's report before its answer, if the client accepts events and is not too far behind.
    pub(super) fn report(&mut self, token: RequestToken, message: &[u8]) {
        let max = self.connection.engine().limits().output;
        let Some(stream) = self.routes.get(&token).and_then(|number| self.streams.get_mut(number)) else {
            return;
        };
        if stream.takes_events() && stream.backlog() < max {
            each(message).for_each(|line| stream.push(line.to_vec()));
            self.wakers.extend(stream.waker());
        }
    }

    /// Sends a request of the server on this response if it can carry one, else on the notification stream.
    pub(super) fn ask(
        &mut self,
        reader_id: ReaderId,
        method: &str,
        params: &str,
        lasts: AskLasts,
        now: Now,
    ) -> Result<AskId, AskError> {
        let carries = |stream: &EventStream| stream.takes_events() && !stream.is_over();
        let mut candidates = [Some(reader_id.stream), self.newest_notices()].into_iter().flatten();
        let number = candidates.find(|number| self.streams.get(number).is_some_and(|stream| carries(stream)));
        let number = number.ok_or(AskError::NotSupported)?;
        let mut message = Vec::new();
        let ask = self.connection.ask_for(method, params, lasts, now, &mut message)?;
        if let Some(stream) = self.streams.get_mut(&number) {
            each(&message).for_each(|line| stream.push(line.to_vec()));
            self.wakers.extend(stream.waker());
        }
        Ok(ask)
    }

    /// Withdraws a request of the server, and says so on a stream that can carry it.
    pub(super) fn withdraw_ask(&mut self, reader_id: ReaderId, ask: AskId) {
        let mut message = Vec::new();
        self.connection.withdraw_ask(ask, &mut message);
        let carries = |stream: &EventStream| stream.takes_events() && !stream.is_over();
        let mut candidates = [Some(reader_id.stream), self.newest_notices()].into_iter().flatten();
        let number = candidates.find(|number| self.streams.get(number).is_some_and(|stream| carries(stream)));
        if let Some(stream) = number.and_then(|number| self.streams.get_mut(&number)) {
            each(&message).for_each(|line| stream.push(line.to_vec()));
            self.wakers.extend(stream.waker());
        }
    }

    /// Ends the responses of cancelled requests. `completed` has the responses of batches that cancellations
    /// completed, each with its request.
    pub(super) fn cancelled(&mut self, events: &[Event<'_>], mut completed: Vec<(RequestToken, Vec<u8>)>) {
        for event in events {
            let Event::Cancelled(token) = event else { continue };
            let Some(number) = self.routes.remove(token) else { continue };
            let own = completed.iter_mut().find(|(own, _)| own == token);
            let mut line = own.map(|(_, line)| std::mem::take(line)).unwrap_or_default();
            let says = self.streams.get(&number).is_some_and(|stream| stream.is_open());
            if line.is_empty() && says {
                self.connection.say_cancelled(*token, &mut line);
            }
            line.truncate(line.trim_ascii_end().len());
            self.close_request(number, line, 200);
        }
    }

    /// Handles the time-outs of the connection.
    pub(super) fn tick(&mut self, now: Now) -> Turn<'static> {
        let mut lines = Vec::new();
        let outcome =
            self.connection.tick_each(now, &mut |token, line| lines.push((token, std::mem::take(line))));
        self.answer_all(lines);
        Turn::after(self.connection.id(), outcome)
    }

    /// Answers the reads whose shared handler call has ended.
    pub(super) fn answer_waiting(&mut self) {
        let mut lines = Vec::new();
        self.connection.answer_waiting(&mut |token, line| lines.push((token, std::mem::take(line))));
        self.answer_all(lines);
    }

    fn answer_all(&mut self, lines: Vec<(RequestToken, Vec<u8>)>) {
        for (token, mut line) in lines {
            if let Some(number) = self.routes.remove(&token) {
                line.truncate(line.trim_ascii_end().len());
                self.close_request(number, line, 200);
            }
        }
    }

    /// When [`ChannelState::tick`] is due.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.connection.deadline()
    }

    /// Ends the connection and its streams.
    pub(super) fn end(&mut self, now: Now) -> Turn<'static> {
        let events =
            if self.has_notices() { self.connection.close(now) } else { self.connection.cancel_all(now) };
        self.cancelled(&events, Vec::new());
        for stream in self.streams.values_mut().filter(|stream| !stream.is_over()) {
            stream.end();
            self.wakers.extend(stream.waker());
        }
        self.over = true;
        Turn { events, ..Turn::new(self.connection.id()) }
    }
}
