//! The peer at the other end of a pipe: the state shared by its two threads and its handlers.
//!
//! Law: the thread that appends output writes as much of it as the other side accepts; the time thread writes the rest.

use super::calls;
use super::client::CallerHandle;
use super::shared::{Diagnostic, ServerState};
use crate::transport::{EventHandler, Flushed, Peer, Pipe, PipeSender, Stdio, Wake};
use mcp_resources_engine::connection::{Events, RequestOutcome};
use mcp_resources_engine::now::Now;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;

/// Signals for the threads of a peer.
pub(super) mod signal {
    /// The hub has notifications.
    pub(in crate::server) const DELIVER: u32 = 1;
    /// Stop: finish requests in flight, then end.
    pub(in crate::server) const STOP: u32 = 2;
    /// Check deadlines, unwritten output, and requests in flight again.
    pub(in crate::server) const LOOK: u32 = 4;
    /// The end of input is reached.
    pub(in crate::server) const ENDED: u32 = 8;
}

/// The peer at the other end of a pipe.
pub(super) struct PipeHandler {
    shared: Arc<ServerState>,
    pipe: Arc<Pipe>,
    stdio: Stdio,
    runtime: Handle,
    wake: Arc<Wake>,
    /// Whether the peer has left: no further input is handled.
    over: AtomicBool,
    draining: AtomicBool,
}

impl PipeHandler {
    pub(super) fn new(
        shared: Arc<ServerState>,
        sender: PipeSender,
        stdio: Stdio,
        runtime: Handle,
        wake: Arc<Wake>,
    ) -> Arc<Self> {
        let pipe = Arc::new(Pipe::with_sender(&shared.engine, shared.clock.clone(), sender));
        pipe.wake_with(wake.waker(signal::DELIVER));
        shared.joined(pipe.id(), wake.clone());
        let over = Default::default();
        let draining = Default::default();
        Arc::new(Self { shared, pipe, stdio, runtime, wake, over, draining })
    }

    pub(super) fn pipe(&self) -> &Pipe {
        &self.pipe
    }

    pub(super) fn stdio(&self) -> &Stdio {
        &self.stdio
    }

    pub(super) fn shared(&self) -> &Arc<ServerState> {
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

    /// The client for handlers. It holds a reference to this.
    pub(super) fn client(self: &Arc<Self>) -> Arc<CallerHandle> {
        let peer = Peer::pipe(self.pipe.clone(), self.shared.clock.clone(), self.clone());
        CallerHandle::new(self.shared.clone(), peer, self.runtime.clone())
    }

    /// Writes pending output, as much as the other side accepts. The caller waits for room to write the rest.
    pub(super) fn flush_some(&self) -> Flushed {
        self.pipe.flush(|bytes| self.stdio.write(bytes))
    }

    /// Writes pending output, as much as the other side accepts. The timer thread writes the rest.
    pub(super) fn flush(&self) -> Flushed {
        let flushed = self.flush_some();
        if flushed != Flushed::All {
            self.wake.set(signal::LOOK);
        }
        flushed
    }

    /// From now on the timer thread waits for requests in flight.
    pub(super) fn drains(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Closes the connection, because the peer has left.
    pub(super) fn close(&self) {
        self.over.store(true, Ordering::Release);
        self.shared.left(self.pipe.id());
        for event in self.pipe.close() {
            calls::handle_notification(&self.shared, self.pipe.id(), &event);
        }
    }
}

impl EventHandler for PipeHandler {
    /// Called on a thread that gave an answer; handlers that follow from it are polled on this thread too.
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        let client = CallerHandle::new(self.shared.clone(), peer.clone(), self.runtime.clone());
        calls::after(&client, RequestOutcome { events, ..RequestOutcome::nothing() });
    }

    fn appended(&self, _peer: &Peer) {
        self.flush();
        if self.draining.load(Ordering::SeqCst) {
            self.wake.set(signal::LOOK);
        }
    }

    fn pends(&self, _peer: &Peer) {
        if let Some(deadline) = self.pipe.deadline() {
            self.wake.due(deadline, signal::LOOK);
        }
    }

    fn report(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Warning(what));
    }

    fn misuse(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Misuse(what));
    }
}
