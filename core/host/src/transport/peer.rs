//! One client, as the code that answers it sees it: the other end of a pipe, or one exchange over HTTP.

use crate::transport::{Clock, Host, Pipe};
use mcp_resources_engine::connection::{
    Answer, AskError, AskId, Cancelled, Encoded, Events, Outcome, Reply, RequestToken,
};
use mcp_resources_engine::http::{Exchange, Turn};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use std::fmt;
use std::sync::Arc;

/// See the module. Cheap to clone; any thread may call. No method blocks.
#[derive(Clone)]
pub struct Peer {
    reply_path: ReplyPath,
    clock: Arc<Clock>,
    host: Arc<dyn Host>,
}

/// How its answers reach it.
#[derive(Clone)]
enum ReplyPath {
    Pipe(Arc<Pipe>),
    Exchange(Exchange),
    /// The response is complete: no event of it waits for an answer.
    Over(ConnectionId),
}

impl Peer {
    /// The other end of a pipe.
    pub fn pipe(pipe: Arc<Pipe>, clock: Arc<Clock>, host: Arc<dyn Host>) -> Self {
        Self { reply_path: ReplyPath::Pipe(pipe), clock, host }
    }

    /// One request over HTTP on `connection`. Without an exchange its response is complete.
    pub fn exchange(
        connection: ConnectionId,
        exchange: Option<Exchange>,
        clock: Arc<Clock>,
        host: Arc<dyn Host>,
    ) -> Self {
        Self { reply_path: exchange.map_or(ReplyPath::Over(connection), ReplyPath::Exchange), clock, host }
    }

    /// Whose tokens its requests have.
    pub fn connection(&self) -> ConnectionId {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.id(),
            ReplyPath::Exchange(exchange) => exchange.connection(),
            ReplyPath::Over(connection) => *connection,
        }
    }

    /// The time.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Answers an event at once, on the thread that read it.
    pub fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Outcome<'static> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.respond(token, answer),
            ReplyPath::Exchange(exchange) => following(exchange.respond(token, answer, self.now())),
            ReplyPath::Over(_) => Outcome::nothing(),
        }
    }

    /// Takes a reply out, to be worded elsewhere; `None` if it was taken already, or nobody waits for it.
    pub fn detach(&self, token: RequestToken) -> Option<Reply> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.detach(token),
            ReplyPath::Exchange(exchange) => exchange.detach(token),
            ReplyPath::Over(_) => None,
        }
    }

    /// Gives an answer that was worded elsewhere.
    pub fn finish(&self, encoded: Encoded) -> Outcome<'static> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.finish(encoded),
            ReplyPath::Exchange(exchange) => following(exchange.finish(encoded, self.now())),
            ReplyPath::Over(_) => Outcome::nothing(),
        }
    }

    /// Frees the place of a request that gets no answer.
    pub fn abandon(&self, token: RequestToken) {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.abandon(token),
            ReplyPath::Exchange(exchange) => exchange.abandon(token, self.now()),
            ReplyPath::Over(_) => {}
        }
    }

    /// Sends what a handler reports before its answer, unless nobody waits for it.
    pub fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.report(cancelled, message),
            ReplyPath::Exchange(exchange) if !cancelled.get() => exchange.report(token, message),
            ReplyPath::Exchange(_) | ReplyPath::Over(_) => {}
        }
    }

    /// Has `work` done to the reply of a request that was not detached; `None` if nobody waits for it.
    pub fn with_reply<R>(&self, token: RequestToken, work: impl FnOnce(&mut Reply) -> R) -> Option<R> {
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.with_reply(token, work),
            ReplyPath::Exchange(exchange) => exchange.with_reply(token, work),
            ReplyPath::Over(_) => None,
        }
    }

    /// Sends what `word` makes of the reply of a request that was not detached, unless nobody waits for it: for a host that
    /// answers on one thread.
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
        match &self.reply_path {
            ReplyPath::Pipe(pipe) => pipe.ask(method, params),
            ReplyPath::Exchange(exchange) => exchange.ask(method, params, self.now()),
            ReplyPath::Over(_) => Err(AskError::NotSupported),
        }
    }

    /// The exchange, while its response is not complete.
    pub fn http(&self) -> Option<&Exchange> {
        match &self.reply_path {
            ReplyPath::Exchange(exchange) => Some(exchange),
            ReplyPath::Pipe(_) | ReplyPath::Over(_) => None,
        }
    }

    /// Has the host see to it that what was appended is written.
    pub fn appended(&self) {
        self.host.appended(self);
    }

    /// Has the host look at deadlines: a request is answered later.
    pub fn pends(&self) {
        self.host.pends(self);
    }

    /// Tells the host that a worker is done with a request that pended.
    pub fn settled(&self) {
        self.host.settled(self);
    }

    /// Has the host do what follows from an answer that another thread gave.
    pub fn follow(&self, outcome: Outcome<'static>) {
        let Outcome { events, misuse, .. } = outcome;
        if let Some(misuse) = misuse {
            self.host.misuse(&misuse);
        }
        if !events.is_empty() {
            self.host.handle(self, events);
        }
        self.appended();
    }

    /// Has the host do what `events` ask.
    pub fn handle(&self, events: Events<'_>) {
        self.host.handle(self, events);
    }

    /// The host that answers its requests.
    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// For the author's log: an answer that its event cannot have.
    pub fn misuse(&self, what: &str) {
        self.host.misuse(what);
    }
}

fn following(turn: Turn<'static>) -> Outcome<'static> {
    Outcome { events: turn.events, misuse: turn.misuse, ..Outcome::nothing() }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("connection", &self.connection()).finish_non_exhaustive()
    }
}
