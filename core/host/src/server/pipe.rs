//! The peer at the other end of a pipe: what its two threads and the functions that serve it share.
//!
//! Law: whoever appends to the output writes it, as far as the other side takes it; what is left is the keeper's.

use super::calls;
use super::peer::{Peer, Task};
use super::shared::Shared;
use crate::transport::{Flushed, Pipe, Stdio, Wake};
use mcp_resources_engine::connection::{
    Answer, AskError, AskId, Cancelled, Encoded, Outcome, Reply, RequestToken,
};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::jsonrpc::Line;
use mcp_resources_engine::now::Now;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;

/// Words for the threads of a peer.
pub(super) mod word {
    /// The hub has something to tell.
    pub(in crate::server) const DELIVER: u32 = 1;
    /// Stop: finish what is in flight, then end.
    pub(in crate::server) const STOP: u32 = 2;
    /// Look again: at deadlines, at output that waits for room, at what is in flight.
    pub(in crate::server) const LOOK: u32 = 4;
    /// The input has come to its end.
    pub(in crate::server) const ENDED: u32 = 8;
}

/// See the module.
pub(super) struct PipePeer {
    shared: Arc<Shared>,
    pipe: Pipe,
    stdio: Stdio,
    runtime: Handle,
    wake: Arc<Wake>,
    /// The peer has left: nothing more is taken from it.
    over: AtomicBool,
    draining: AtomicBool,
}

impl PipePeer {
    pub(super) fn new(shared: Arc<Shared>, stdio: Stdio, runtime: Handle, wake: Arc<Wake>) -> Arc<Self> {
        let pipe = Pipe::new(&shared.engine, shared.clock.clone());
        shared.joined(pipe.id(), wake.clone());
        let (over, draining) = Default::default();
        Arc::new(Self { shared, pipe, stdio, runtime, wake, over, draining })
    }

    pub(super) fn pipe(&self) -> &Pipe {
        &self.pipe
    }

    pub(super) fn stdio(&self) -> &Stdio {
        &self.stdio
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    pub(super) fn now(&self) -> Now {
        self.shared.clock.now()
    }

    /// Takes one line; the answers that are ready are in the output.
    pub(super) fn line(self: &Arc<Self>, line: Line<'_>) {
        let outcome = self.pipe.line(line);
        self.after(outcome);
    }

    /// Does what a call of the engine's asks for.
    pub(super) fn after(self: &Arc<Self>, outcome: Outcome<'_>) {
        if !outcome.events.is_empty() || outcome.wakes || outcome.misuse.is_some() {
            let peer: Arc<dyn Peer> = self.clone();
            calls::after(&peer, outcome);
        }
    }

    /// Writes what waits, as far as the other side takes it.
    pub(super) fn flush(&self) -> Flushed {
        let flushed = self.pipe.flush(|bytes| self.stdio.write(bytes));
        if flushed != Flushed::All {
            self.wake.say(word::LOOK);
        }
        flushed
    }

    /// From now on the keeper waits for what is in flight.
    pub(super) fn drains(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The peer has left.
    pub(super) fn close(&self) {
        self.over.store(true, Ordering::Release);
        self.shared.left(self.pipe.id());
        for event in self.pipe.close() {
            calls::tell(&self.shared, self.pipe.id(), &event);
        }
    }
}

impl Peer for PipePeer {
    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn connection(&self) -> ConnectionId {
        self.pipe.id()
    }

    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Outcome<'static> {
        self.pipe.respond(token, answer)
    }

    fn detach(&self, token: RequestToken) -> Option<Reply> {
        self.pipe.detach(token)
    }

    fn finish(&self, encoded: Encoded) -> Outcome<'static> {
        self.pipe.finish(encoded)
    }

    fn report(&self, _token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        self.pipe.report(cancelled, message);
        self.flush();
    }

    fn ask(&self, method: &str, params: &str) -> Result<AskId, AskError> {
        let ask = self.pipe.ask(method, params)?;
        self.pends();
        self.flush();
        Ok(ask)
    }

    fn abandon(&self, token: RequestToken) {
        self.pipe.abandon(token);
    }

    fn deliver(&self) {
        self.pipe.deliver();
    }

    fn pends(&self) {
        if let Some(deadline) = self.pipe.deadline() {
            self.wake.due(deadline, word::LOOK);
        }
    }

    fn settled(&self) {
        self.flush();
        if self.draining.load(Ordering::SeqCst) {
            self.wake.say(word::LOOK);
        }
    }

    fn spawn(&self, task: Task) {
        self.runtime.spawn(task);
    }
}
