//! Reads that the cache answers, and reads that wait for another one of the same.
//!
//! Law: the guard was asked before. A request that carries input responses or a state is never here. A call that others
//! wait for goes on when its own client cancels it: a cancellation is a wish.

use super::answer::{Answer, InputAsk, InputRequest, InputRequired};
use super::event::{Event, RequestToken};
use super::inflight::Ticket;
use super::kept::Kept;
use super::reply::{Reply, Task, Worded};
use super::request::Request;
use super::{Connection, Events, Outcome, Status};
use crate::engine::{Engine, Flight, Landed, Landing, Lead};
use crate::error::ReadError;
use crate::guard::Verdict;
use crate::hub::ConnectionId;
use crate::now::Now;
use std::borrow::Cow;
use std::sync::Arc;

/// The reads of one connection that wait for another one of the same.
pub(super) type Waiting = Vec<(RequestToken, Arc<Flight>)>;

impl Connection {
    /// Answers from what is kept; `None` if that is nothing.
    pub(super) fn answer_kept<'m>(
        &self,
        request: &Request<'_, '_>,
        (uri, normal): (&str, &str),
        out: &mut Vec<u8>,
    ) -> Option<Outcome<'m>> {
        let cache = self.engine.cache()?;
        let (kept, hint) = cache.look(normal, &request.principal.authority(), request.now)?;
        kept.write(&self.wording(request), out, uri, hint);
        Some(Outcome::answered())
    }

    /// Makes a request in flight the one that reads `normal` for all, or lets it wait for the one that does. `None` if it
    /// is to be answered by its handler.
    pub(super) fn fly<'m>(
        &mut self,
        token: RequestToken,
        (request, normal): (&Request<'_, '_>, &str),
        epoch: u64,
    ) -> Option<Outcome<'m>> {
        let cache = self.engine.cache()?;
        let Task::Read(task) = &mut self.inflight.get(token)?.task else { return None };
        let is_open = task.served.cache().ttl_ms > 0;
        let flight = match cache.fly(normal, &request.principal.authority(), is_open, (self.id, epoch)) {
            Ok(lead) => {
                let flight = lead.flight().clone();
                task.lead = Some(lead);
                // A request flies once.
                let _ = self.inflight.get(token)?.ticket.flight.set(flight);
                return None;
            }
            Err(flight) => flight,
        };
        self.waiting.push((token, flight));
        Some(Outcome::with_one(Status::Pending, Event::Shared(token)))
    }

    /// Answers the reads that waited for another one, as far as that has its answer. `write` takes each line with the
    /// request that it answers. For a host that writes the answers of different requests to different streams;
    /// [`Connection::deliver`] does the same for all others.
    pub fn landed(&mut self, write: &mut dyn FnMut(RequestToken, &mut Vec<u8>)) {
        if self.waiting.is_empty() {
            return;
        }
        let is_over = |(_, flight): &mut (RequestToken, Arc<Flight>)| flight.landing().is_some();
        let over: Waiting = self.waiting.extract_if(.., is_over).collect();
        for (token, flight) in over {
            // One that was cancelled has its place freed here.
            let (Some(reply), Some(landing)) = (self.inflight.take(token), flight.landing()) else {
                continue;
            };
            let (ticket, mut line) = (reply.ticket.clone(), Vec::new());
            let worded = reply.landed(landing, &mut line);
            self.record_token(token, (worded.verdict, line.len()), landing.now);
            if ticket.batch.is_some() {
                let (answer, most) = (std::mem::take(&mut line), self.engine.limits().batch_bytes);
                self.batches.answer(&ticket, &answer, most, &mut line);
            }
            self.inflight.settle(token);
            write(token, &mut line);
        }
    }

    /// Whom a landing wakes, for the host.
    pub(super) fn woken(&self) -> Option<Event<'static>> {
        let woken = self.engine.cache()?.take_woken();
        (!woken.is_empty()).then_some(Event::Woken(woken))
    }

    /// Cancels what is in flight, but for calls that clients of other connections wait for.
    pub(super) fn drop_all(&mut self, now: Now) -> Events<'static> {
        let (engine, inflight, own) = (&self.engine, &mut self.inflight, Some(self.id));
        let dropped = inflight.cancel_all(|ticket| goes_on(engine, ticket, own));
        for (_, ticket) in &dropped {
            self.record_ended(ticket, (Verdict::Cancelled, 0), now);
        }
        dropped.into_iter().map(|(token, _)| Event::Cancelled(token)).chain(self.woken()).collect()
    }
}

/// Whether the call behind a request goes on without its own client, because others wait for it too.
pub(super) fn goes_on(engine: &Engine, ticket: &Ticket, but: Option<ConnectionId>) -> bool {
    let flight = ticket.flight.get();
    flight.is_some_and(|flight| engine.cache().is_some_and(|cache| cache.goes_on(flight, but)))
}

/// The call behind a request has run out of time: for those who wait for it, too.
pub(super) fn time_out(engine: &Engine, ticket: &Ticket, now: Now) {
    if let (Some(flight), Some(cache)) = (ticket.flight.get(), engine.cache()) {
        cache.land(flight, Landed::Failed(ReadError::Timeout { after: ticket.timeout }), now);
    }
}

impl Reply {
    /// Words the answer to a read that others may wait for, and lets them have it.
    pub(super) fn lead(self, lead: Lead, answer: Answer<'_>, now: Now, out: &mut Vec<u8>) -> Worded {
        let landed = self.landing(&answer);
        let worded = match &landed {
            Landed::Contents(kept) => {
                kept.write(&self.wording(), out, self.ticket.uri.as_deref().unwrap_or_default(), kept.hint());
                Worded::default()
            }
            _ => self.word(answer, now, out),
        };
        lead.land(landed, now);
        worded
    }

    fn landing(&self, answer: &Answer<'_>) -> Landed {
        let Task::Read(task) = &self.task else { return Landed::Failed(ReadError::Failed) };
        let mime_type = task.served.mime_type();
        let kept = |kept: Kept| Landed::Contents(Arc::new(kept));
        match answer {
            Answer::Contents(result) => match self.checked(result) {
                Ok(()) => kept(Kept::of(result, mime_type, self.engine.shared(task.cache(result.cache)))),
                Err(error) => Landed::Failed(error),
            },
            Answer::Gathered(gather) => {
                kept(Kept::gathered(gather, mime_type, self.engine.shared(task.cache(gather.cache))))
            }
            Answer::InputRequired(ask) => Landed::Input(Box::new(ask.to_owned())),
            Answer::Failed(error) => Landed::Failed(error.clone()),
            _ => Landed::Failed(ReadError::Failed),
        }
    }

    /// Words what the flight came to that this request waited for.
    fn landed(self, Landing { landed, now }: &Landing, out: &mut Vec<u8>) -> Worded {
        match landed {
            Landed::Contents(kept) => {
                let uri = self.ticket.uri.as_deref().unwrap_or_default();
                kept.write(&self.wording(), out, uri, kept.hint());
                Worded::default()
            }
            Landed::Input(ask) => self.input(ask, *now, out),
            Landed::Failed(error) => self.fail(error.clone(), out),
        }
    }
}

impl InputRequired<'_> {
    fn to_owned(&self) -> InputRequired<'static> {
        fn own(text: &str) -> Cow<'static, str> {
            Cow::Owned(text.to_owned())
        }
        let request = |request: &InputRequest<'_>| {
            let ask = match &request.ask {
                InputAsk::Form { message, schema } => {
                    InputAsk::Form { message: own(message), schema: own(schema) }
                }
                InputAsk::Url { message, url } => InputAsk::Url { message: own(message), url: own(url) },
                InputAsk::Sampling(params) => InputAsk::Sampling(own(params)),
                InputAsk::Roots => InputAsk::Roots,
            };
            InputRequest { key: own(&request.key), ask }
        };
        let state = self.state.as_ref().map(|state| Cow::Owned(state.to_vec()));
        InputRequired { requests: self.requests.iter().map(request).collect(), state }
    }
}

#[cfg(test)]
mod tests;
