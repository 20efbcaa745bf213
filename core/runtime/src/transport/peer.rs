//! One client, as its handlers see it: the other end of a pipe, or one exchange over HTTP.

use crate::transport::{EmbeddedClient, EngineClock, EventHandler, Pipe, Work};
use mcp_resources_engine::connection::{
    Answer, AskError, AskId, AskLasts, Cancelled, EncodedReply, Event, Events, HeldRequest, Reply,
    RequestOutcome, RequestToken,
};
use mcp_resources_engine::http::{Exchange, Turn};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// One client. Cheap to clone; any thread may call. No method blocks.
#[derive(Clone)]
pub struct Peer {
    reply_path: ReplyPath,
    clock: Arc<EngineClock>,
    event_handler: Arc<dyn EventHandler>,
    peer_data: Option<PeerData>,
}

/// A value that a runtime keeps with the requests of a peer, such as the context in which their functions run.
pub type PeerData = Arc<dyn Any + Send + Sync>;

/// The path of its answers.
#[derive(Clone)]
enum ReplyPath {
    Pipe(Arc<Pipe>),
    Exchange(Exchange),
    Embedded(Arc<EmbeddedClient>),
    /// The response is complete: none of its events needs an answer.
    Over(ConnectionId),
}

impl Peer {
    /// The other end of a pipe.
    pub fn pipe(pipe: Arc<Pipe>, clock: Arc<EngineClock>, event_handler: Arc<dyn EventHandler>) -> Self {
        Self { reply_path: ReplyPath::Pipe(pipe), clock, event_handler, peer_data: None }
    }

    /// One request over HTTP on `connection`. Without an exchange its response is complete.
    pub fn exchange(
        connection: ConnectionId,
        exchange: Option<Exchange>,
        clock: Arc<EngineClock>,
        event_handler: Arc<dyn EventHandler>,
    ) -> Self {
        let reply_path = exchange.map_or(ReplyPath::Over(connection), ReplyPath::Exchange);
        Self { reply_path, clock, event_handler, peer_data: None }
    }

    /// A client of another server, which this engine is part of.
    pub fn embedded(
        client: Arc<EmbeddedClient>,
        clock: Arc<EngineClock>,
        event_handler: Arc<dyn EventHandler>,
    ) -> Self {
        Self { reply_path: ReplyPath::Embedded(client), clock, event_handler, peer_data: None }
    }

    /// Keeps `data` with the requests of this peer: it follows them to every thread, to the next source of a list, and
    /// into `redact`.
    #[must_use]
    pub fn with_peer_data(self, data: PeerData) -> Self {
        Self { peer_data: Some(data), ..self }
    }

    /// The value that the runtime keeps with its requests.
    pub fn peer_data(&self) -> Option<&PeerData> {
        self.peer_data.as_ref()
    }

    /// The connection to which the tokens of its requests belong.
    pub fn connection(&self) -> ConnectionId {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.id(),
            ReplyPath::Embedded(client) => client.id(),
            ReplyPath::Exchange(exchange) => exchange.connection(),
            ReplyPath::Over(connection) => *connection,
        }
    }

    /// The current time.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Answers an event at once, on the thread that read it.
    pub fn respond(&self, token: RequestToken, answer: Answer<'_>) -> RequestOutcome<'static> {
        self.resumed(match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.respond(token, answer),
            ReplyPath::Embedded(client) => client.respond(token, answer),
            ReplyPath::Exchange(exchange) => following(exchange.respond(token, answer, self.now())),
            ReplyPath::Over(_) => RequestOutcome::nothing(),
        })
    }

    /// Takes a reply out, to be encoded elsewhere; `None` if it was taken before, or the answer is no longer wanted.
    pub fn detach(&self, token: RequestToken) -> Option<Reply> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.detach(token),
            ReplyPath::Embedded(client) => client.detach(token),
            ReplyPath::Exchange(exchange) => exchange.detach(token),
            ReplyPath::Over(_) => None,
        }
    }

    /// Passes on an answer that was encoded elsewhere.
    pub fn finish(&self, encoded: EncodedReply) -> RequestOutcome<'static> {
        self.resumed(match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.finish(encoded),
            ReplyPath::Embedded(client) => client.finish(encoded),
            ReplyPath::Exchange(exchange) => following(exchange.finish(encoded, self.now())),
            ReplyPath::Over(_) => RequestOutcome::nothing(),
        })
    }

    /// Serves the held requests whose questions about access are answered. Their events go to the runtime, because they
    /// borrow from the request.
    fn resumed(&self, mut outcome: RequestOutcome<'static>) -> RequestOutcome<'static> {
        if outcome.events.iter().any(|event| matches!(event, Event::Again(_))) {
            for event in std::mem::take(&mut outcome.events) {
                match event {
                    Event::Again(held) => self.again(&held),
                    event => outcome.events.push(event),
                }
            }
        }
        outcome
    }

    fn again(&self, held: &HeldRequest) {
        let RequestOutcome { events, misuse, .. } = match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.again(held),
            ReplyPath::Embedded(client) => client.again(held),
            ReplyPath::Exchange(exchange) => following(exchange.again(held, self.now())),
            ReplyPath::Over(_) => RequestOutcome::nothing(),
        };
        if let Some(misuse) = misuse {
            self.event_handler.misuse(&misuse);
        }
        if !events.is_empty() {
            self.event_handler.handle(self, events);
        }
    }

    /// Frees the slot of a request that gets no answer.
    pub fn abandon(&self, token: RequestToken) {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.abandon(token),
            ReplyPath::Embedded(client) => client.abandon(token),
            ReplyPath::Exchange(exchange) => exchange.abandon(token, self.now()),
            ReplyPath::Over(_) => {}
        }
    }

    /// Sends a handler's report before its answer, unless the answer is no longer wanted.
    pub fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.report(cancelled, message),
            ReplyPath::Embedded(client) => client.report(token, cancelled, message),
            ReplyPath::Exchange(exchange) if !cancelled.get() => exchange.report(token, message),
            ReplyPath::Exchange(_) | ReplyPath::Over(_) => {}
        }
    }

    /// Runs `work` on the reply of a request that was not detached; `None` if the answer is no longer wanted.
    pub fn with_reply<R>(&self, token: RequestToken, work: impl FnOnce(&mut Reply) -> R) -> Option<R> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.with_reply(token, work),
            ReplyPath::Embedded(client) => client.with_reply(token, work),
            ReplyPath::Exchange(exchange) => exchange.with_reply(token, work),
            ReplyPath::Over(_) => None,
        }
    }

    /// Sends the message that `word` makes with the reply of a request that was not detached, unless its answer is no
    /// longer wanted: for runtimes that answer on one thread.
    pub fn report_in_place(
        &self,
        token: RequestToken,
        word: impl FnOnce(&mut Reply, Now) -> Option<Vec<u8>>,
    ) {
        let now = self.now();
        let worded = self.with_reply(token, |reply| Some((word(reply, now)?, reply.cancelled())));
        if let Some((message, cancelled)) = worded.flatten() {
            self.report(token, &cancelled, &message);
        }
    }

    /// Sends a request to a legacy client.
    ///
    /// # Errors
    /// [`AskError`]; nothing is sent then.
    pub fn ask(&self, method: &str, params: &str) -> Result<AskId, AskError> {
        self.ask_for(method, params, AskLasts::AsRead)
    }

    /// Sends a request to a legacy client that may be answered for as long as `lasts` says.
    ///
    /// # Errors
    /// [`AskError`]; nothing is sent then.
    pub fn ask_for(&self, method: &str, params: &str, lasts: AskLasts) -> Result<AskId, AskError> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.ask(method, params, lasts),
            ReplyPath::Exchange(exchange) => exchange.ask_for(method, params, lasts, self.now()),
            ReplyPath::Embedded(_) => Err(AskError::Attached),
            ReplyPath::Over(_) => Err(AskError::NotSupported),
        }
    }

    /// Withdraws a request to the client, which is notified.
    pub fn withdraw_ask(&self, ask: AskId) {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.withdraw_ask(ask),
            ReplyPath::Exchange(exchange) => exchange.withdraw_ask(ask),
            ReplyPath::Embedded(_) | ReplyPath::Over(_) => return,
        }
        self.appended();
    }

    /// The exchange, while its response is not complete.
    pub fn http(&self) -> Option<&Exchange> {
        match &self.reply_path {
            ReplyPath::Exchange(exchange) => Some(exchange),
            ReplyPath::Pipe(_) | ReplyPath::Embedded(_) | ReplyPath::Over(_) => None,
        }
    }

    /// Lets the runtime write appended output.
    pub fn appended(&self) {
        self.event_handler.appended(self);
    }

    /// Lets the runtime check deadlines, because a request will be answered later.
    pub fn pends(&self) {
        self.event_handler.pends(self);
    }

    /// Reports to the runtime that a worker has ended a pending request.
    pub fn settled(&self) {
        self.event_handler.settled(self);
    }

    /// Lets the runtime handle the outcome of an answer given on another thread.
    pub fn follow(&self, outcome: RequestOutcome<'static>) {
        let RequestOutcome { events, misuse, .. } = outcome;
        if let Some(misuse) = misuse {
            self.event_handler.misuse(&misuse);
        }
        if !events.is_empty() {
            self.event_handler.handle(self, events);
        }
        self.appended();
    }

    /// Lets the runtime handle `events`.
    pub fn handle(&self, events: Events<'_>) {
        self.event_handler.handle(self, events);
    }

    /// The work that `events` leave for functions of another language, on the thread that runs them. Providers answer
    /// theirs before this returns.
    pub fn work<'m>(&self, events: Events<'m>) -> impl Iterator<Item = Work<'m>> + use<'m> {
        let rest = if events.is_empty() { events } else { self.event_handler.take(self, events) };
        rest.into_iter().map(Work::from_event)
    }

    /// The runtime that answers its requests.
    pub(crate) fn event_handler(&self) -> &Arc<dyn EventHandler> {
        &self.event_handler
    }

    /// Logs a handler's answer that does not fit its event.
    pub fn misuse(&self, what: &str) {
        self.event_handler.misuse(what);
    }
}

fn following(turn: Turn<'_>) -> RequestOutcome<'_> {
    RequestOutcome { events: turn.events, misuse: turn.misuse, ..RequestOutcome::nothing() }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("connection", &self.connection()).finish_non_exhaustive()
    }
}
