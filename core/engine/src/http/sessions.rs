//! The legacy sessions of an endpoint: a table by id, limited in size.

use super::admission::Identified;
use super::channel::{Channel, ChannelOwner};
use super::head::Response;
use super::sse::EventId;
use super::state::{ChannelState, Taken};
use super::turn::Turn;
use super::{Endpoint, OpenedRequest};
use crate::base64;
use crate::connection::{ConnectionKind, HeaderField, Standing};
use crate::hub::ConnectionId;
use crate::limits::Limits;
use crate::now::Now;
use crate::version::{INTERNAL_ERROR, INVALID_REQUEST};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The size of a session id in bytes, before encoding.
pub const SESSION_ID_BYTES: usize = 24;
/// The header that names the session of a legacy request.
pub const SESSION_HEADER: &str = "mcp-session-id";

/// The sessions by id, and their number by owner.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: HashMap<Box<str>, Arc<Channel>>,
    /// The number of sessions of each known owner.
    by_owner: HashMap<ChannelOwner, usize>,
}

impl Sessions {
    /// The session with this id, if it belongs to `principal`: an id alone does not authenticate.
    pub(super) fn find(&self, id: &str, principal: &str) -> Option<&Arc<Channel>> {
        self.by_id.get(id).filter(|channel| channel.belongs_to(principal))
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Adds a session under a new id, which begins with `instance` if there is one.
    ///
    /// # Errors
    /// The response to send instead, if there are too many sessions or no randomness.
    pub(super) fn insert(
        &mut self,
        random: Option<[u8; SESSION_ID_BYTES]>,
        instance: Option<&str>,
        channel: &Arc<Channel>,
        limits: &Limits,
    ) -> Result<String, Response> {
        let own = self.by_owner.get(channel.owner()).copied().unwrap_or_default();
        if own >= limits.sessions_per_client {
            let max = limits.sessions_per_client;
            let message =
                format!("Too many sessions: this client has {max}; end one of them with DELETE first");
            return Err(Response::error(429, INTERNAL_ERROR, &message));
        }
        let id = random.map(|random| match instance {
            None => base64::encode_url(&random),
            Some(instance) => format!("{instance}.{}", base64::encode_url(&random)),
        });
        // Refuses an id that is already used; with random bytes this does not happen.
        let id = id.filter(|id| self.len() < limits.sessions && !self.by_id.contains_key(id.as_str()));
        let Some(id) = id else {
            return Err(Response::error(503, INTERNAL_ERROR, "No session can be begun: try again later"));
        };
        self.by_id.insert(id.as_str().into(), Arc::clone(channel));
        if channel.owner().is_known() {
            *self.by_owner.entry(channel.owner().clone()).or_default() += 1;
        }
        Ok(id)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Channel>> {
        let channel = self.by_id.remove(id)?;
        if let Entry::Occupied(mut own) = self.by_owner.entry(channel.owner().clone()) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
        Some(channel)
    }

    /// Removes the session ids of a channel.
    pub(super) fn remove_channel(&mut self, channel: &Channel) {
        let named = self.by_id.iter().find(|(_, own)| own.id() == channel.id());
        if let Some(id) = named.map(|(id, _)| id.clone()) {
            self.remove(&id);
        }
    }

    pub(super) fn all(&self) -> Vec<(Box<str>, Arc<Channel>)> {
        self.by_id.iter().map(|(id, channel)| (id.clone(), Arc::clone(channel))).collect()
    }
}

impl Endpoint {
    /// Handles the time-outs of all sessions: answers requests that have timed out, and ends idle sessions. Returns a
    /// turn for each session that has events; turns have nothing to write.
    pub fn tick(&self, now: Now) -> Vec<Turn<'static>> {
        if self.due.load(Ordering::Acquire) > now.tick {
            return Vec::new();
        }
        self.due.store(u64::MAX, Ordering::Release);
        // Removes channels that a runtime dropped without closing.
        self.channels().retain(|_, channel| channel.strong_count() > 0);
        let limits = self.engine.limits();
        let mut turns = Vec::new();
        let all = self.sessions().all();
        for (id, channel) in all {
            let (turn, expires) = channel.with(|state| (state.tick(now), state.expires(limits)));
            turns.push(turn);
            if expires.is_some_and(|expires| expires <= now.tick) {
                turns.extend(self.end_session(&id, now));
            } else {
                self.note_session(&channel);
            }
        }
        turns.retain(|turn| !turn.events.is_empty());
        turns
    }

    /// Ends every session, at the end of a shutdown: after [`Endpoint::shutdown`] and the grace period for requests in
    /// flight. Remaining modern requests end with [`closed`](super::Exchange::closed).
    pub fn close(&self, now: Now) -> Vec<Turn<'static>> {
        let ids: Vec<_> = self.sessions().all().into_iter().map(|(id, _)| id).collect();
        let turns = ids.iter().filter_map(|id| self.end_session(id, now));
        turns.filter(|turn| !turn.events.is_empty()).collect()
    }

    /// Whether there is a session.
    pub fn has_sessions(&self) -> bool {
        self.sessions().len() > 0
    }

    #[cfg(test)]
    pub(super) fn sessions_open(&self) -> usize {
        self.sessions().len()
    }

    /// Begins a session after the answered handshake, and adds its id to the response.
    pub(super) fn begin_session<'m>(
        &self,
        mut state: ChannelState,
        request: &Identified,
        turn: Turn<'m>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Turn<'m> {
        state.become_session();
        let channel = Arc::new(Channel::new(state, &request.principal));
        let random = (self.session_ids)();
        let named =
            self.sessions().insert(random, self.rules().instance.as_deref(), &channel, self.engine.limits());
        let id = match named {
            Ok(id) => id,
            Err(refused) => {
                let _ = channel.with(|state| state.end(now));
                return refuse(turn.connection, refused, request, out);
            }
        };
        self.know(&channel);
        self.note_session(&channel);
        Turn { head: turn.head.map(|head| head.with(SESSION_HEADER, id)), ..turn }
    }

    /// Handles a `GET`: opens a notification stream or resumes a stream.
    pub(super) fn get<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        now: Now,
        out: &mut Vec<u8>,
    ) -> OpenedRequest<'m> {
        let channel = match self.session_or_refusal(request, now) {
            Ok(channel) => channel,
            Err(refused) => {
                return OpenedRequest::whole(refuse(
                    self.engine.connect(ConnectionKind::Session).id(),
                    refused,
                    request,
                    out,
                ));
            }
        };
        let call = &request.call;
        let reader_id = channel.with(|state| {
            // Another request may have ended the session in the meantime.
            if state.is_over() {
                return Err(session_unknown());
            }
            let last = call.last_event_id();
            if let Some(reader_id) =
                last.and_then(EventId::parse).and_then(|id| state.resume(id, request, now))
            {
                return Ok(reader_id);
            }
            if last.is_some() {
                state.connection.mark_all();
            }
            let reader_id = state.open_notices(request, self.rules(), now);
            reader_id.ok_or_else(|| Response::error(503, INTERNAL_ERROR, "Too many streams"))
        });
        let reader_id = match reader_id {
            Ok(reader_id) => reader_id,
            Err(refused) => return OpenedRequest::whole(refuse(channel.id(), refused, request, out)),
        };
        let turn =
            channel.with(|state| state.deliver(reader_id, self.engine.limits().output, now, out)).shorten();
        self.note_session(&channel);
        let taken = if turn.end { Taken::Whole(turn) } else { Taken::Stream(turn, reader_id) };
        self.opened(taken, &channel, true)
    }

    /// Handles a `DELETE`: ends the session.
    pub(super) fn delete<'m>(
        &self,
        request: &'m Identified,
        now: Now,
        out: &mut Vec<u8>,
    ) -> OpenedRequest<'m> {
        let none = || self.engine.connect(ConnectionKind::Session).id();
        let ended = self.session_or_refusal(request, now).and_then(|_| {
            let id = request.call.session_id().unwrap_or_default();
            self.end_session(id, now).map(Turn::shorten).ok_or_else(session_unknown)
        });
        OpenedRequest::whole(match ended {
            Err(refused) => refuse(none(), refused, request, out),
            Ok(turn) => {
                let head = Response::empty(204).head.shared_with(request.call.origin.as_deref());
                Turn { head: Some(head), end: true, ..turn }
            }
        })
    }

    /// The session of a request, and its status. An expired session is unknown, even if [`Endpoint::tick`] has not
    /// ended it yet.
    pub(super) fn session_of(&self, request: &Identified, now: Now) -> (Option<Arc<Channel>>, Standing) {
        let id = match request.call.session() {
            HeaderField::Absent => return (None, Standing::Missing),
            HeaderField::Repeated => return (None, Standing::Unknown),
            HeaderField::Once(_) => request.call.session_id().unwrap_or_default(),
        };
        let found = self.sessions().find(id, request.principal.id()).map(Arc::clone);
        match found.filter(|channel| !self.has_expired(channel, now)) {
            Some(channel) => (Some(channel), Standing::Known),
            None => (None, Standing::Unknown),
        }
    }

    fn has_expired(&self, channel: &Channel, now: Now) -> bool {
        self.due.load(Ordering::Acquire) <= now.tick
            && channel
                .with(|state| state.expires(self.engine.limits()))
                .is_some_and(|expires| expires <= now.tick)
    }

    fn session_or_refusal(&self, request: &Identified, now: Now) -> Result<Arc<Channel>, Response> {
        if request.call.names_unserved(|revision| self.engine.serves(revision)) {
            return Err(Response::error(400, INVALID_REQUEST, "Unsupported protocol version"));
        }
        match self.session_of(request, now) {
            (Some(channel), _) => Ok(channel),
            (None, Standing::Missing) => {
                Err(Response::error(400, INVALID_REQUEST, "Invalid Request: Mcp-Session-Id is missing"))
            }
            (None, _) => Err(session_unknown()),
        }
    }

    fn end_session(&self, id: &str, now: Now) -> Option<Turn<'static>> {
        let channel = self.sessions().remove(id)?;
        self.forget(&channel);
        Some(channel.with(|state| state.end(now)))
    }

    /// Updates the endpoint's deadline, because that of a session may have become earlier.
    pub(super) fn note_session(&self, channel: &Channel) {
        let limits = self.engine.limits();
        let (work, end) = channel.with(|state| (state.deadline(), state.expires(limits)));
        self.note(work);
        self.note(end);
    }
}

fn session_unknown() -> Response {
    Response::error(404, INVALID_REQUEST, "Session not found")
}

/// A response without a message.
pub(super) fn refuse<'m>(
    id: ConnectionId,
    refused: Response,
    request: &Identified,
    out: &mut Vec<u8>,
) -> Turn<'m> {
    let Response { head, body, .. } = refused.shared_with(request.call.origin.as_deref());
    *out = body;
    Turn { head: Some(head), ..Turn::ended(id) }
}
