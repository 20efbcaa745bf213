//! One client of another server that our engine is part of: the connection, and one lock around it.
//!
//! Law: the lock is a leaf, as that of a pipe. It is never held while a handler runs, or while waiting for the lock of
//! another language.

use crate::sync::Mutex;
use crate::transport::EngineClock;
use mcp_resources_engine::connection::{
    Answer, Cancelled, EncodedReply, Events, HeldRequest, Reply, RequestOutcome, RequestToken,
};
use mcp_resources_engine::embedded::{
    EmbeddedConnection, EmbeddedMessage, EmbeddedNotice, EmbeddedRequest, EmbeddedServer, EmbeddedStep,
    TheirAnswer,
};
use mcp_resources_engine::hub::{ConnectionId, ListKinds};
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::principal::Principal;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// One client of another server. `Send + Sync`; any thread may call. See [`EmbeddedConnection`].
pub struct EmbeddedClient {
    id: ConnectionId,
    clock: Arc<EngineClock>,
    state: Mutex<EmbeddedConnection>,
}

impl EmbeddedClient {
    /// Makes the state of a client: see [`EmbeddedServer::connect`].
    pub fn new(
        server: &Arc<EmbeddedServer>,
        clock: Arc<EngineClock>,
        version: &str,
        lasts: bool,
    ) -> Arc<Self> {
        let connection = server.connect(version, lasts);
        Arc::new(Self { id: connection.id(), clock, state: Mutex::new(connection) })
    }

    /// Its number, for the tables of runtimes.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Sets the waker for notifications of a session. It must not call this client.
    pub fn wake_with(&self, waker: Waker) {
        self.state.lock().wake_with(waker);
    }

    /// The lists whose changes this engine tells a legacy session.
    pub fn told(&self) -> Option<ListKinds> {
        self.state.lock().told()
    }

    /// Makes the message of a request.
    pub fn prepare(&self, request: EmbeddedRequest<'_>) -> EmbeddedMessage {
        self.state.lock().prepare(request)
    }

    /// Begins a request.
    pub fn start<'m>(
        &self,
        message: &'m EmbeddedMessage,
        principal: &'m Arc<Principal>,
    ) -> RequestOutcome<'m> {
        let now = self.clock.now();
        self.state.lock().start(message, principal, now)
    }

    /// Passes on a message whose answer this engine does not give. `message` is a buffer for the events to borrow from.
    pub fn tell<'m>(
        &self,
        message: &'m mut Vec<u8>,
        method: &str,
        params: &str,
        principal: &'m Arc<Principal>,
    ) -> RequestOutcome<'m> {
        let now = self.clock.now();
        self.state.lock().tell(message, method, params, principal, now)
    }

    /// The next step of a request.
    pub fn next_step(&self, number: u64) -> Option<EmbeddedStep> {
        self.state.lock().next_step(number)
    }

    /// Has `waker` called once when the request has a step. It must not call this client.
    pub fn register(&self, number: u64, waker: Waker) {
        self.state.lock().register(number, waker);
    }

    /// Passes on the other server's answer to a question.
    pub fn answer(&self, number: u64, given: TheirAnswer<'_>) -> RequestOutcome<'static> {
        let now = self.clock.now();
        self.state.lock().answer(number, given, now)
    }

    /// Ends a request.
    pub fn end(&self, number: u64) -> Events<'static> {
        let now = self.clock.now();
        self.state.lock().end(number, now)
    }

    /// Takes pending notifications of a session, up to about `room` bytes.
    pub fn deliver(&self, room: usize) -> Vec<EmbeddedNotice> {
        self.state.lock().deliver(room)
    }

    /// Answers the reads that waited for the same read of another client.
    pub fn answer_shared(&self) {
        self.state.lock().answer_shared();
    }

    /// Ends the connection.
    pub fn close(&self) -> Events<'static> {
        let now = self.clock.now();
        self.state.lock().close(now)
    }

    /// The number of requests without their answer.
    pub fn in_flight(&self) -> usize {
        self.state.lock().in_flight()
    }

    /// The latest time at which [`EmbeddedClient::tick`] must be called.
    pub fn deadline(&self) -> Option<Millis> {
        self.state.lock().deadline()
    }

    /// Handles time-outs.
    pub fn tick(&self) -> RequestOutcome<'static> {
        let now = self.clock.now();
        self.state.lock().tick(now)
    }

    pub(super) fn respond(&self, token: RequestToken, answer: Answer<'_>) -> RequestOutcome<'static> {
        let now = self.clock.now();
        self.state.lock().respond(token, answer, now)
    }

    pub(super) fn again<'h>(&self, held: &'h HeldRequest) -> RequestOutcome<'h> {
        let now = self.clock.now();
        self.state.lock().again(held, now)
    }

    pub(super) fn detach(&self, token: RequestToken) -> Option<Reply> {
        self.state.lock().detach(token)
    }

    pub(super) fn finish(&self, encoded: EncodedReply) -> RequestOutcome<'static> {
        let now = self.clock.now();
        self.state.lock().finish(encoded, now)
    }

    pub(super) fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        self.state.lock().report(token, cancelled, message);
    }

    pub(super) fn abandon(&self, token: RequestToken) {
        let now = self.clock.now();
        self.state.lock().abandon(token, now);
    }

    pub(super) fn with_reply<R>(&self, token: RequestToken, work: impl FnOnce(&mut Reply) -> R) -> Option<R> {
        self.state.lock().reply(token).map(work)
    }
}

impl fmt::Debug for EmbeddedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedClient").field("id", &self.id).finish_non_exhaustive()
    }
}
