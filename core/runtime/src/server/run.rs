//! The two threads of one peer. The reader reads, dispatches and writes. The timer thread sleeps until a timer is due, the
//! hub has notifications, or unwritten output can be written.
//!
//! Law: the reader waits only for input and for room to write, so a request costs one read and one write. Above
//! `Limits::output` it stops reading; at the end of input, requests in flight get `Limits::grace`.

use super::calls;
use super::client::CallerHandle;
use super::pipe::{PipeHandler, signal};
use crate::transport::{DescriptorWaiter, Flushed, PollInterest, Received, Wake};
use mcp_resources_engine::jsonrpc::Lines;
use mcp_resources_engine::now::Millis;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The size of the first reads in bytes. It suffices for one request; a start need not touch more memory.
const FIRST_CHUNK: usize = 8 * 1024;
/// The size of one read in bytes, after one that filled the buffer.
const CHUNK: usize = 64 * 1024;

/// The thread that reads.
pub(super) struct InputReader {
    pub(super) handler: Arc<PipeHandler>,
    pub(super) client: Arc<CallerHandle>,
    pub(super) waiter: DescriptorWaiter,
    /// Whether a read blocks; only the peer can then end it.
    pub(super) blocks: bool,
}

impl InputReader {
    /// Reads until the end of input, or until it is stopped.
    pub(super) fn run(self) {
        let _entered = self.handler.runtime().enter();
        // Signals the timer thread, however this function ends.
        let _ended = SetOnDrop(self.handler.wake(), signal::ENDED);
        let mut lines = Lines::new(self.handler.shared().engine.limits().message);
        let mut chunk = vec![0; FIRST_CHUNK];
        loop {
            let received = match self.blocks {
                true => self.handler.stdio().read(&mut chunk),
                false => Received::Nothing,
            };
            let received = match received {
                Received::Nothing if self.wait(false).is_ok_and(|stops| !stops) => {
                    self.handler.stdio().read(&mut chunk)
                }
                Received::Nothing => return,
                received => received,
            };
            match received {
                Received::Bytes(count) => {
                    lines.push(&chunk[..count]);
                    if count == chunk.len() {
                        chunk.resize(CHUNK, 0);
                    }
                }
                Received::Nothing => continue,
                Received::End => lines.finish(),
            }
            if !self.take(&mut lines) || received == Received::End {
                return;
            }
        }
    }

    /// Handles all lines and writes the answers; `false` if the connection ended.
    fn take(&self, lines: &mut Lines) -> bool {
        loop {
            while !self.handler.pipe().is_full() {
                match lines.next() {
                    Some(line) => calls::after(&self.client, self.handler.pipe().line(line)),
                    None => return self.handler.flush() != Flushed::Broken && !self.handler.is_over(),
                }
            }
            match self.handler.flush_some() {
                Flushed::All => {}
                Flushed::Blocked => {
                    if !self.wait(true).is_ok_and(|stops| !stops) {
                        return false;
                    }
                }
                Flushed::Broken => return false,
            }
        }
    }

    /// Waits for room to write, or else for input; returns whether to stop instead.
    fn wait(&self, room: bool) -> io::Result<bool> {
        let stdio = self.handler.stdio();
        self.waiter.wait(PollInterest {
            input: (!room).then(|| stdio.input_fd()),
            output: room.then(|| stdio.output_fd()),
            timeout: None,
        })?;
        Ok(self.waiter.wake().take() & signal::STOP != 0)
    }
}

/// The thread that handles timers.
pub(super) struct TimeThread {
    pub(super) handler: Arc<PipeHandler>,
    pub(super) client: Arc<CallerHandle>,
    pub(super) waiter: DescriptorWaiter,
    /// Set by a signal that asks the process to end.
    pub(super) terminate: Arc<AtomicBool>,
    /// For stopping the reader.
    pub(super) reader: Arc<Wake>,
}

/// The result of one pass of the loop.
struct LoopPass {
    /// Whether to stop, at the end of input or on request.
    stops: bool,
    flushed: Flushed,
    /// The time until something is due, in milliseconds.
    due: Option<Millis>,
}

impl TimeThread {
    /// Runs until the peer leaves or the server is stopped, and all output is written or discarded.
    pub(super) fn run(self) -> io::Result<()> {
        let _entered = self.handler.runtime().enter();
        let _timer = self.handler.shared().engine.register_timer(self.waiter.wake().waker(signal::LOOK));
        let ended = self.keep().and_then(|()| self.drain());
        self.handler.close();
        // Writes the answers that the grace period produced, without waiting for a client that does not read.
        let _ = self.handler.flush();
        self.reader.set(signal::STOP);
        self.handler.stdio().hang_up();
        ended
    }

    fn keep(&self) -> io::Result<()> {
        loop {
            let turn = self.turn();
            if turn.stops || turn.flushed == Flushed::Broken {
                return Ok(());
            }
            self.sleep(&turn, None)?;
        }
    }

    /// Waits for requests in flight and for output, up to the grace period.
    fn drain(&self) -> io::Result<()> {
        self.handler.drains();
        self.handler.pipe().shutdown();
        self.handler.pipe().deliver();
        let until = self.now().saturating_add(self.handler.shared().engine.limits().grace);
        loop {
            let turn = self.turn();
            let done = turn.flushed == Flushed::All && self.handler.pipe().in_flight() == 0;
            let left = until.saturating_sub(self.now());
            if done || turn.flushed == Flushed::Broken || left == 0 {
                return Ok(());
            }
            self.sleep(&turn, Some(left))?;
        }
    }

    /// Handles everything that is due.
    fn turn(&self) -> LoopPass {
        let shared = self.handler.shared();
        let pipe = self.handler.pipe();
        // First of all, so that any change from here on keeps the thread from sleeping.
        self.waiter.wake().arm(Millis::MAX);
        let signals = self.waiter.wake().take();
        if self.terminate.swap(false, Ordering::Relaxed) {
            shared.shutdown();
        }
        if signals & signal::DELIVER != 0 {
            pipe.deliver();
        }
        let now = self.handler.now();
        let engine = shared.tick(now);
        let mut own = pipe.deadline();
        if own.is_some_and(|own| own <= now.tick) {
            calls::after(&self.client, pipe.tick());
            own = pipe.deadline();
        }
        let flushed = self.handler.flush_some();
        let next = [engine, own].into_iter().flatten().min();
        self.waiter.wake().arm(next.unwrap_or(Millis::MAX));
        let stops = signals & (signal::STOP | signal::ENDED) != 0;
        LoopPass { stops, flushed, due: next.map(|next| next.saturating_sub(now.tick)) }
    }

    fn sleep(&self, turn: &LoopPass, at_most: Option<Millis>) -> io::Result<()> {
        let timeout = [turn.due, at_most].into_iter().flatten().min();
        let blocked = turn.flushed == Flushed::Blocked;
        self.waiter.wait(PollInterest {
            input: None,
            output: blocked.then(|| self.handler.stdio().output_fd()),
            timeout: timeout.map(|timeout| Duration::from_millis(timeout.max(1))),
        })?;
        Ok(())
    }

    fn now(&self) -> Millis {
        self.handler.now().tick
    }
}

struct SetOnDrop<'w>(&'w Wake, u32);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}
