//! HTTP with server-sent events, the transport of 2024-11-05: one stream for all messages of the
//! server, and a path for messages of the client. It was replaced in 2025-03-26, and is off unless the rules enable it.
//!
//! Law: the stream is the session. Closing it ends the session, so nothing is kept for resuming.

use super::admission::Identified;
use super::channel::Channel;
use super::exchange::Exchange;
use super::head::Response;
use super::sessions::refuse;
use super::sse;
use super::state::{ChannelState, ReaderId};
use super::turn::Turn;
use super::{Endpoint, OpenedRequest};
use crate::connection::{ConnectionKind, Event, Standing};
use crate::now::Now;
use crate::version::INVALID_REQUEST;
use std::sync::Arc;

/// The id of no stream: the response to a posted message is complete.
const NOWHERE: ReaderId = ReaderId { stream: u64::MAX, reader: 0 };

impl Endpoint {
    /// Begins a session: the first event tells the client where to post its messages.
    pub(super) fn connect_sse24<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        now: Now,
        out: &mut Vec<u8>,
    ) -> OpenedRequest<'m> {
        let mut state = ChannelState::new(self.engine.connect(ConnectionKind::Session), false, now);
        let reader_id = state.open_everything(request, self.rules(), now);
        let channel = Arc::new(Channel::new(state, &request.principal));
        let random = (self.session_ids)();
        let id =
            self.older().insert(random, self.rules().instance.as_deref(), &channel, self.engine.limits());
        let (id, paths) = match (id, &self.rules().sse24) {
            (Ok(id), Some(paths)) => (id, paths),
            (Ok(_), None) => return OpenedRequest::whole(Turn::ended(channel.id())),
            (Err(refused), _) => return OpenedRequest::whole(refuse(channel.id(), refused, request, out)),
        };
        self.know(&channel);
        let turn = channel.with(|state| state.deliver(reader_id, 0, now, out)).shorten();
        sse::endpoint(&format!("{}?session_id={id}", paths.messages), out);
        let exchange = Exchange::new(self, channel, reader_id, false);
        OpenedRequest { turn, exchange: Some(exchange) }
    }

    /// Handles a posted message; its answer is sent on the stream.
    pub(super) fn send_sse24<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        body: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> OpenedRequest<'m> {
        let none = || self.engine.connect(ConnectionKind::Session).id();
        let Some(id) = &request.call.token else {
            let refused = Response::error(400, INVALID_REQUEST, "Invalid Request: session_id is missing");
            return OpenedRequest::whole(refuse(none(), refused, request, out));
        };
        let found = self.older().find(id, request.principal.id()).map(Arc::clone);
        let Some(channel) = found else {
            let refused = Response::error(404, INVALID_REQUEST, "Session not found");
            return OpenedRequest::whole(refuse(none(), refused, request, out));
        };
        let header_check = request.call.header_check(Standing::Known);
        let mut turn = channel.with(|state| state.send(request, header_check, body, now));
        turn.head = Some(Response::empty(202).head.shared_with(request.call.origin.as_deref()));
        if turn.events.iter().any(|event| Event::asks(event).is_some()) {
            // Handlers need the exchange; it has nothing for the writer.
            let exchange = Exchange::new(self, channel, NOWHERE, true);
            return OpenedRequest { turn, exchange: Some(exchange) };
        }
        turn.end = true;
        OpenedRequest::whole(turn)
    }
}
