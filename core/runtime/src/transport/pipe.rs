//! One peer at the other end of a pipe, for runtimes whose event loop belongs to another language: the connection, its
//! output buffer, and one lock around both.
//!
//! Law: the lock is a leaf. It is never held while a handler runs, while waiting for the language's own lock, or
//! while a detached answer is encoded; writes under it never block.

use crate::sync::Mutex;
use crate::transport::EngineClock;
use mcp_resources_engine::connection::{
    Answer, Arrival, AskError, AskId, AskLasts, Cancelled, Connection, ConnectionKind, EncodedReply, Events,
    HeldRequest, Reply, RequestOutcome, RequestToken,
};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::headers::Headers;
use mcp_resources_engine::hub::{ConnectionId, Delivered};
use mcp_resources_engine::jsonrpc::Line;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::principal::{ANONYMOUS, Principal};
use std::io;
use std::sync::Arc;
use std::task::Waker;

/// The capacity of an empty output buffer that is always kept. Up to twice the size of the last output is kept too, so
/// that successive large answers reuse their memory; the next small one releases it.
const KEPT: usize = 256 * 1024;

/// One peer at the other end of a pipe. `Send + Sync`; any thread may call.
pub struct Pipe {
    id: ConnectionId,
    clock: Arc<EngineClock>,
    sender: PipeSender,
    high_water: usize,
    state: Mutex<PipeState>,
}

/// The sender of all messages of a pipe: the local process, unless a test says otherwise.
#[derive(Clone, Debug)]
pub struct PipeSender {
    principal: Arc<Principal>,
    headers: Option<Arc<Headers>>,
}

struct PipeState {
    connection: Connection,
    out: Vec<u8>,
    /// The number of bytes of `out` that have been written.
    sent: usize,
    /// The largest length that `out` had before its written part was dropped, since it was last empty.
    largest: usize,
    /// Whether the hub has more notifications than there was room for.
    undelivered: bool,
    /// Whether the other side is gone; output is then discarded.
    broken: bool,
    /// Called when there is room again.
    room: Option<Waker>,
}

/// The result of writing the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Everything is written.
    All,
    /// The other side accepts no more now.
    Blocked,
    /// The other side is gone.
    Broken,
}

impl Default for PipeSender {
    fn default() -> Self {
        Self { principal: Principal::local(), headers: None }
    }
}

impl PipeSender {
    /// A sender as a verified token and HTTP would describe it: its identity (empty for the local process), scopes,
    /// claims (a JSON object), and the headers of its requests.
    pub fn new(
        principal: &str,
        scopes: Vec<String>,
        claims: Option<Arc<str>>,
        headers: &[(String, String)],
    ) -> Self {
        let principal = match principal {
            ANONYMOUS => Principal::anonymous(None),
            id => Principal::new(id),
        };
        let headers = (!headers.is_empty()).then(|| Arc::new(headers.iter().cloned().collect()));
        Self { principal: principal.with_scopes(scopes).with_claims(claims), headers }
    }
}

impl Pipe {
    /// Makes the state of a new peer, which is the local process.
    pub fn new(engine: &Arc<Engine>, clock: Arc<EngineClock>) -> Self {
        Self::with_sender(engine, clock, PipeSender::default())
    }

    /// Makes the state of a new peer that sends as `sender`: for tests of a server.
    pub fn with_sender(engine: &Arc<Engine>, clock: Arc<EngineClock>, sender: PipeSender) -> Self {
        Self::with_connection(engine, clock, sender, engine.connect(ConnectionKind::Stdio))
    }

    /// Makes the state of a peer whose messages `connection` answers.
    pub(super) fn with_connection(
        engine: &Arc<Engine>,
        clock: Arc<EngineClock>,
        sender: PipeSender,
        connection: Connection,
    ) -> Self {
        let id = connection.id();
        let state = PipeState {
            connection,
            out: Vec::new(),
            sent: 0,
            largest: 0,
            undelivered: false,
            broken: false,
            room: None,
        };
        let high_water = engine.limits().output;
        Self { id, clock, sender, high_water, state: Mutex::new(state) }
    }

    /// Sets the waker to call when there is work for [`Pipe::deliver`]: see [`Connection::wake_with`]. It must not call
    /// the pipe, whose lock may be held.
    pub fn wake_with(&self, waker: Waker) {
        self.state.lock().connection.wake_with(waker);
    }

    /// Sets the waker to call when [`Pipe::is_full`] becomes false, on the thread that has written: the runtime then
    /// continues with postponed lines. It must not call the pipe, whose lock is held.
    pub fn wake_for_room(&self, waker: Waker) {
        self.state.lock().room = Some(waker);
    }

    /// Its number, for the tables of runtimes.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Handles one line.
    pub fn line<'l>(&'l self, line: Line<'l>) -> RequestOutcome<'l> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        let outcome = match line {
            Line::Message(message) => connection.message_with(
                Arrival { message, principal: &self.sender.principal, header_check: None },
                self.sender.headers.as_ref(),
                now,
                out,
            ),
            Line::TooLong(line) => {
                let RequestOutcome { status, misuse, verdict, .. } = connection.too_long(line, out);
                RequestOutcome { status, events: Events::new(), misuse, verdict, scopes: Vec::new() }
            }
        };
        state.discard();
        outcome
    }

    /// Handles a message whose answer another server gives: what this one would send is dropped.
    pub fn tell<'l>(&'l self, message: &'l [u8]) -> RequestOutcome<'l> {
        let now = self.clock.now();
        let arrival = Arrival { message, principal: &self.sender.principal, header_check: None };
        self.state.lock().connection.message(arrival, now, &mut Vec::new())
    }

    /// Appends a line of another server.
    pub fn append(&self, line: &[u8]) {
        let mut state = self.state.lock();
        state.out.extend_from_slice(line);
        state.out.push(b'\n');
        state.discard();
    }

    /// Answers an event at once.
    pub fn respond(&self, token: RequestToken, answer: Answer<'_>) -> RequestOutcome<'static> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        let outcome = connection.respond(token, answer, now, out);
        state.discard();
        outcome
    }

    /// Serves a held request from its start: see [`Connection::again`].
    pub(super) fn again<'h>(&self, held: &'h HeldRequest) -> RequestOutcome<'h> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        let outcome = connection.again(held, now, out);
        state.discard();
        outcome
    }

    /// Takes a reply out, to be encoded without the lock. `None` if it was taken before.
    pub fn detach(&self, token: RequestToken) -> Option<Reply> {
        self.state.lock().connection.detach(token)
    }

    /// Appends an answer that was encoded without the lock.
    pub fn finish(&self, encoded: EncodedReply) -> RequestOutcome<'static> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        let outcome = connection.finish(encoded, now, out);
        state.discard();
        outcome
    }

    /// Appends a handler's report before its answer, unless the answer is no longer wanted. Dropped while the output is
    /// full, so that a handler that reports in a loop cannot fill the memory.
    pub fn report(&self, cancelled: &Cancelled, message: &[u8]) {
        let mut state = self.state.lock();
        if !cancelled.get() && !state.broken && state.pending() < self.high_water {
            state.out.extend_from_slice(message);
        }
    }

    /// Runs `work` on the reply of a request that was not detached; `None` if the answer is no longer wanted.
    pub fn with_reply<R>(&self, token: RequestToken, work: impl FnOnce(&mut Reply) -> R) -> Option<R> {
        self.state.lock().connection.reply(token).map(work)
    }

    /// Appends a request to a legacy client; see [`Connection::ask`].
    ///
    /// # Errors
    /// [`AskError`]; nothing is appended then.
    pub fn ask(&self, method: &str, params: &str, lasts: AskLasts) -> Result<AskId, AskError> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        connection.ask_for(method, params, lasts, now, out)
    }

    /// Withdraws such a request; see [`Connection::withdraw_ask`].
    pub fn withdraw_ask(&self, ask: AskId) {
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        connection.withdraw_ask(ask, out);
    }

    /// Appends notifications of the hub as far as there is room; the rest follows while the output drains.
    pub fn deliver(&self) {
        self.state.lock().deliver(self.high_water);
    }

    /// Appends notifications of the hub, up to about `room` bytes.
    pub fn deliver_up_to(&self, room: usize) -> Delivered {
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        connection.deliver(room, out)
    }

    /// Ends the open listens, at the end of input or of the server: [`Pipe::deliver`] appends their
    /// results. Requests in flight continue.
    pub fn shutdown(&self) {
        self.state.lock().connection.shutdown();
    }

    /// Handles time-outs.
    pub fn tick(&self) -> RequestOutcome<'static> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        let outcome = connection.tick(now, out);
        state.discard();
        outcome
    }

    /// Cancels requests in flight without an answer: at the end of input, after the grace period.
    pub fn cancel_all(&self) -> Events<'static> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let events = state.connection.cancel_all(now);
        state.discard();
        events
    }

    /// Closes the connection and cancels requests in flight.
    pub fn close(&self) -> Events<'static> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let events = state.connection.close(now);
        state.discard();
        events
    }

    /// Ends a request that the runtime will not answer, because its handler was cancelled. Frees its slot.
    pub fn abandon(&self, token: RequestToken) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let PipeState { connection, out, .. } = &mut *state;
        connection.abandon(token, now, out);
    }

    /// The latest time at which [`Pipe::tick`] must be called, on the clock of
    /// [`Now::tick`](mcp_resources_engine::now::Now::tick).
    pub fn deadline(&self) -> Option<Millis> {
        self.state.lock().connection.deadline()
    }

    /// The number of requests that wait for an answer of the runtime.
    pub fn in_flight(&self) -> usize {
        self.state.lock().connection.in_flight()
    }

    /// Whether so much output is unwritten that the runtime should stop reading, and start no further handler.
    pub fn is_full(&self) -> bool {
        self.state.lock().pending() >= self.high_water
    }

    /// The number of unwritten bytes.
    pub fn pending(&self) -> usize {
        self.state.lock().pending()
    }

    /// Writes unwritten output. `write` returns how many bytes it accepted; 0 means none now.
    pub fn flush(&self, write: impl FnMut(&[u8]) -> io::Result<usize>) -> Flushed {
        let mut state = self.state.lock();
        let was_full = state.pending() >= self.high_water;
        let flushed = state.flush(self.high_water, write);
        if was_full
            && state.pending() < self.high_water
            && let Some(room) = &state.room
        {
            room.wake_by_ref();
        }
        flushed
    }

    /// Takes the unwritten output: for a peer in the same process.
    pub fn take(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.flush(|some| {
            bytes.extend_from_slice(some);
            Ok(some.len())
        });
        bytes
    }
}

impl PipeState {
    /// Discards the output of a peer that is gone.
    fn discard(&mut self) {
        if self.broken {
            self.out.clear();
            self.sent = 0;
        }
    }

    fn flush(&mut self, high_water: usize, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> Flushed {
        loop {
            while self.pending() > 0 {
                match write(self.out.get(self.sent..).unwrap_or_default()) {
                    Ok(0) => {
                        self.compact();
                        return Flushed::Blocked;
                    }
                    Ok(count) => self.sent += count,
                    Err(_) => self.broken = true,
                }
                if self.broken {
                    break;
                }
            }
            let used = self.out.len().max(std::mem::take(&mut self.largest));
            self.out.clear();
            self.sent = 0;
            if used > 0 {
                self.out.shrink_to((2 * used).max(KEPT));
            }
            if self.broken {
                return Flushed::Broken;
            }
            if !self.undelivered {
                return Flushed::All;
            }
            self.deliver(high_water);
        }
    }

    fn deliver(&mut self, high_water: usize) {
        let room = high_water.saturating_sub(self.pending());
        self.undelivered = self.connection.deliver(room, &mut self.out) == Delivered::More;
    }

    fn pending(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Moves unwritten output to the front, once it is shorter than the written part.
    fn compact(&mut self) {
        if self.sent > self.pending() {
            self.largest = self.largest.max(self.out.len());
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::catalog::{Edit, ItemSource};
    use mcp_resources_engine::engine::{EngineOptions, ServerInfo};
    use mcp_resources_engine::now::Now;
    use mcp_resources_engine::resource::Resource;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    fn engine(options: EngineOptions) -> Arc<Engine> {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        Engine::new(info, options).unwrap()
    }

    fn constant(uri: &str, size: usize) -> Edit {
        Edit::AddResource { resource: Resource::new(uri), source: ItemSource::Text("x".repeat(size).into()) }
    }

    fn read(pipe: &Pipe, uri: &str) {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"{uri}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        pipe.line(Line::Message(message.as_bytes()));
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    // R-149: each thread that makes room calls the waker once, whether or not it has written everything.
    #[test]
    fn room_is_reported_when_a_full_output_drains() {
        let mut options = EngineOptions::default();
        options.limits.output = 1000;
        let engine = engine(options);
        engine.publish(vec![constant("test://text", 600)], Now::default()).unwrap();
        let pipe = Pipe::new(&engine, Arc::default());
        let count = Arc::new(Count::default());
        pipe.wake_for_room(count.clone().into());
        let wakes = || count.0.swap(0, Ordering::SeqCst);
        read(&pipe, "test://text");
        assert_eq!((pipe.is_full(), pipe.take().is_empty(), wakes()), (false, false, 0));
        (0..2).for_each(|_| read(&pipe, "test://text"));
        assert!(pipe.is_full());
        assert_eq!((pipe.flush(|_| Ok(0)), wakes()), (Flushed::Blocked, 0));
        let mut room = pipe.pending() - 999;
        let flushed = pipe.flush(|_| Ok(std::mem::take(&mut room)));
        assert_eq!((flushed, pipe.is_full(), wakes()), (Flushed::Blocked, false, 1));
        assert_eq!((pipe.take().len(), wakes()), (999, 0));
        (0..2).for_each(|_| read(&pipe, "test://text"));
        assert_eq!((pipe.flush(|bytes| Ok(bytes.len())), wakes()), (Flushed::All, 1));
        (0..2).for_each(|_| read(&pipe, "test://text"));
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!((pipe.flush(|_| Err(gone())), wakes()), (Flushed::Broken, 1));
    }

    /// A buffer that held a large answer is reused for the next one, and released after a small one.
    #[test]
    fn the_buffer_is_as_big_as_the_last_output() {
        let engine = engine(EngineOptions::default());
        let edits = vec![constant("test://big", 1 << 20), constant("test://small", 1)];
        engine.publish(edits, Now::default()).unwrap();
        let pipe = Pipe::new(&engine, Arc::default());
        let after = |uri: &str| {
            read(&pipe, uri);
            assert!(pipe.take().ends_with(b"}\n"));
            pipe.state.lock().out.capacity()
        };
        let small = after("test://small");
        let big = after("test://big");
        assert!(small <= KEPT && (1 << 20..4 << 20).contains(&big), "{small} {big}");
        assert_eq!(after("test://big"), big);
        // The other side takes most of it, and the rest later.
        read(&pipe, "test://big");
        let mut room = 1 << 20;
        assert_eq!(pipe.flush(|_| Ok(std::mem::take(&mut room))), Flushed::Blocked);
        assert!(pipe.take().ends_with(b"}\n"));
        assert_eq!(pipe.state.lock().out.capacity(), big);
        assert!(after("test://small") <= KEPT);
    }
}
