//! Reads answered from the cache, reads that wait for an identical one, and cached contents, which are
//! encoded once so that later answers only copy them.
//!
//! Law: the guard has been asked before. Requests with input responses or a state never get here. A handler call that
//! other requests wait for continues when its own client cancels it, because a cancellation is only a request.

use super::answer::{Answer, Contents, InputAsk, InputRequest, InputRequired, ReadResult};
use super::contents::{self, BYTES, TEXT};
use super::event::{Event, RequestToken};
use super::gather::ContentsGatherer;
use super::inflight::Ticket;
use super::read::{ReadTask, ServedBy};
use super::reply::{Reply, ReplyContext, WrittenReply};
use super::request::Request;
use super::response::{self, ResponseWriter};
use super::{Connection, ConnectionKind, Events, RequestOutcome};
use crate::base64;
use crate::engine::{Engine, Finished, FlightOutcome, ReadFlight, ReadLeader};
use crate::error::ReadError;
use crate::guard::Verdict;
use crate::hub::ConnectionId;
use crate::json_text;
use crate::now::Now;
use crate::resource::CacheHint;
use std::borrow::Cow;
use std::sync::Arc;

/// The reads of one connection that wait for an identical read.
pub(super) type WaitingReads = Vec<(RequestToken, Arc<ReadFlight>)>;

/// Whether other requests use the result of this read's handler call.
pub(super) enum Sharing {
    /// Not shared: it calls the handler for itself.
    None,
    /// It calls the handler; other requests may wait for the result.
    Leads(ReadLeader),
    /// It waits for the handler call of another request.
    Waits(Arc<ReadFlight>),
}

impl Connection {
    /// Answers from the cache; `None` on a miss.
    pub(super) fn answer_kept<'m>(
        &self,
        request: &Request<'_, '_>,
        uri: &str,
        normal: &str,
        out: &mut Vec<u8>,
    ) -> Option<RequestOutcome<'m>> {
        let cache = self.engine.cache()?;
        let (kept, hint) =
            cache.get(&self.engine.key_of(normal), &request.principal.authority(), request.now)?;
        kept.write(&self.response_writer(request), out, uri, hint);
        Some(RequestOutcome::answered())
    }

    /// Starts a shared handler call for `normal`, or joins the one that is running.
    pub(super) fn share(
        &self,
        request: &Request<'_, '_>,
        normal: &str,
        served: &ServedBy,
        epoch: u64,
    ) -> Sharing {
        // Another server answers each of its clients on its own terms.
        let is_theirs = self.kind == ConnectionKind::Embedded && matches!(served, ServedBy::Fallback);
        let cache = self.engine.cache().filter(|_| !self.is_inner && !is_theirs);
        let Some(cache) = cache else { return Sharing::None };
        let is_open = served.cache().ttl_ms > 0;
        let key = self.engine.key_of(normal);
        match cache.begin(&key, &request.principal.authority(), is_open, self.id, &self.waker, epoch) {
            Ok(leader) => Sharing::Leads(leader),
            Err(flight) => Sharing::Waits(flight),
        }
    }

    /// Cancels all requests in flight, except handler calls that clients of other connections wait for.
    pub(super) fn drop_all(&mut self, now: Now) -> Events<'static> {
        let engine = &self.engine;
        let inflight = &mut self.inflight;
        let own = Some(self.id);
        let dropped = inflight.cancel_all(|ticket| has_waiters(engine, ticket, own));
        for (_, ticket) in &dropped {
            self.record_ended(ticket, Verdict::Cancelled, 0, now);
        }
        dropped.into_iter().map(|(token, _)| Event::Cancelled(token)).collect()
    }
}

/// Whether other requests wait for the same handler call, so that it continues without its own client.
pub(super) fn has_waiters(engine: &Engine, ticket: &Ticket, except: Option<ConnectionId>) -> bool {
    let flight = ticket.flight.as_ref();
    flight.is_some_and(|flight| engine.cache().is_some_and(|cache| cache.has_waiters(flight, except)))
}

/// Ends the shared handler call of a request that has timed out, also for the requests that wait for it.
pub(super) fn time_out(engine: &Engine, ticket: &Ticket, now: Now) {
    if let (Some(flight), Some(cache)) = (ticket.flight.as_ref(), engine.cache()) {
        cache.finish(flight, FlightOutcome::Failed(ReadError::Timeout { after: ticket.timeout }), now);
    }
}

impl ReadTask {
    /// Writes the answer to a shared read, and ends its flight, which wakes the waiting requests.
    pub(super) fn write_shared(
        &self,
        context: &ReplyContext,
        leader: ReadLeader,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> WrittenReply {
        let outcome = self.outcome(&context.engine, &answer);
        let written = match &outcome {
            FlightOutcome::Contents(kept) => {
                kept.write(&context.response_writer(), out, context.uri(), kept.hint());
                WrittenReply::default()
            }
            _ => self.answer(context, answer, now, out),
        };
        leader.finish(outcome, now);
        written
    }

    fn outcome(&self, engine: &Engine, answer: &Answer<'_>) -> FlightOutcome {
        let mime_type = self.served.mime_type();
        let kept = |kept: EncodedContents| FlightOutcome::Contents(Arc::new(kept));
        match answer {
            Answer::Contents(result) => match contents::check(result, self.max) {
                Ok(()) => kept(EncodedContents::from_result(
                    result,
                    mime_type,
                    engine.shared(self.cache(result.cache)),
                )),
                Err(error) => FlightOutcome::Failed(error),
            },
            Answer::Gathered(gather) => {
                kept(EncodedContents::gathered(gather, mime_type, engine.shared(self.cache(gather.cache))))
            }
            Answer::InputRequired(ask) => FlightOutcome::Input(Box::new(ask.to_owned())),
            Answer::Failed(error) => FlightOutcome::Failed(error.clone()),
            Answer::Completion(_)
            | Answer::Listed(_)
            | Answer::Access(_)
            | Answer::Tool(_)
            | Answer::Prompt(_)
            | Answer::Raw(_) => FlightOutcome::Failed(ReadError::Failed),
        }
    }
}

impl Reply {
    /// Writes the answer of the shared read that this request waited for.
    pub(super) fn finished(self, Finished { outcome, now }: &Finished, out: &mut Vec<u8>) -> WrittenReply {
        match outcome {
            FlightOutcome::Contents(kept) => {
                kept.write(&self.context.response_writer(), out, self.context.uri(), kept.hint());
                WrittenReply::default()
            }
            FlightOutcome::Input(ask) => self.write(Answer::InputRequired((**ask).to_owned()), *now, out).0,
            FlightOutcome::Failed(error) => self.context.fail(error.clone(), out),
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

/// The encoded contents of one read. They do not depend on the request.
#[derive(Debug)]
pub(crate) struct EncodedContents {
    entries: Vec<EncodedEntry>,
    hint: CacheHint,
}

#[derive(Debug)]
struct EncodedEntry {
    /// `None` for the requested URI, in the client's spelling.
    uri: Option<String>,
    mime_type: String,
    /// The member that carries the body.
    name: &'static str,
    /// The body with its quotes.
    body: Box<[u8]>,
    /// The members of `_meta`.
    meta: Option<String>,
}

impl EncodedContents {
    /// Encodes the result of a handler. `mime_type` is the resource's own type, `hint` the caching hint of the result.
    pub(crate) fn from_result(result: &ReadResult<'_>, mime_type: Option<&str>, hint: CacheHint) -> Self {
        let entry = |contents: &Contents<'_>| EncodedEntry::from_contents(contents, mime_type);
        Self { entries: result.contents.iter().map(entry).collect(), hint }
    }

    /// Encodes contents that were gathered from chunks.
    pub(super) fn gathered(gather: &ContentsGatherer, mime_type: Option<&str>, hint: CacheHint) -> Self {
        let (name, default) = if gather.is_text() { ("text", TEXT) } else { ("blob", BYTES) };
        let mime_type = gather.own_mime_type().or(mime_type).unwrap_or(default).to_owned();
        let body = gather.encoded().into_boxed_slice();
        Self { entries: vec![EncodedEntry { uri: None, mime_type, name, body, meta: None }], hint }
    }

    /// Writes the result with the remaining part of its caching hint.
    pub(super) fn write(&self, response: &ResponseWriter<'_>, out: &mut Vec<u8>, uri: &str, hint: CacheHint) {
        let with_meta = response.revision.has_contents_meta();
        response.complete(out, |writer| {
            writer.array("contents", |array| {
                for entry in &self.entries {
                    array.object(|writer| {
                        writer.str("uri", entry.uri.as_deref().unwrap_or(uri));
                        writer.str("mimeType", &entry.mime_type);
                        writer.value(entry.name).extend_from_slice(&entry.body);
                        if let Some(meta) = entry.meta.as_deref().filter(|_| with_meta) {
                            writer.object(response::META, |writer| writer.members(meta.as_bytes()));
                        }
                    });
                }
            });
            contents::hint(writer, response, hint);
        });
    }

    /// Its caching hint.
    pub(crate) fn hint(&self) -> CacheHint {
        self.hint
    }

    /// Its approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        const RECORD: usize = 160;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let size = |entry: &EncodedEntry| {
            RECORD + entry.body.len() + entry.mime_type.len() + text(&entry.uri) + text(&entry.meta)
        };
        self.entries.iter().map(size).sum()
    }
}

impl EncodedEntry {
    fn from_contents(contents: &Contents<'_>, mime_type: Option<&str>) -> Self {
        let own = contents.mime_type.as_deref().or(mime_type);
        let mut body = Vec::new();
        let (name, default) = match contents.body.as_text() {
            Some(text) => {
                json_text::escape_into(text, &mut body);
                ("text", TEXT)
            }
            None => {
                body.reserve_exact(base64::encoded_len(contents.body.len()) + 2);
                contents.body.write_blob(&mut body);
                ("blob", BYTES)
            }
        };
        Self {
            uri: contents.uri.as_deref().map(str::to_owned),
            mime_type: own.unwrap_or(default).to_owned(),
            name,
            body: body.into_boxed_slice(),
            meta: contents.meta.as_deref().and_then(response::members_of),
        }
    }
}

#[cfg(test)]
mod tests;
