//! The two threads of one peer. The reader reads, dispatches and writes; the keeper sleeps until time passes, the hub has
//! something to tell, or output that did not fit can go on.
//!
//! Law: the reader waits for nothing but input and room, so a request costs one read and one write. Above
//! `Limits::output` it stops reading (design 3.2); at the end of input what is in flight has `Limits::grace`.

use super::calls;
use super::client::Client;
use super::pipe::{PipeHost, word};
use crate::transport::{Flushed, Interest, Received, Waiter, Wake};
use mcp_resources_engine::jsonrpc::Lines;
use mcp_resources_engine::now::Millis;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;

/// The thread that reads.
pub(super) struct Reader {
    pub(super) host: Arc<PipeHost>,
    pub(super) client: Arc<Client>,
    pub(super) waiter: Waiter,
    /// Whether a read waits by itself: nothing can end it then but the peer.
    pub(super) blocks: bool,
}

impl Reader {
    /// Reads until the end of input, or until told to stop.
    pub(super) fn run(self) {
        let _entered = self.host.runtime().enter();
        // Whatever ends it, the keeper has to know.
        let _ended = SayOnDrop(self.host.wake(), word::ENDED);
        let mut lines = Lines::new(self.host.shared().engine.limits().message);
        let mut chunk = vec![0; CHUNK];
        loop {
            let received = match self.blocks {
                true => self.host.stdio().read(&mut chunk),
                false => Received::Nothing,
            };
            let received = match received {
                Received::Nothing if self.wait(false).is_ok_and(|stops| !stops) => {
                    self.host.stdio().read(&mut chunk)
                }
                Received::Nothing => return,
                received => received,
            };
            match received {
                Received::Bytes(count) => lines.push(&chunk[..count]),
                Received::Nothing => continue,
                Received::End => lines.finish(),
            }
            if !self.take(&mut lines) || received == Received::End {
                return;
            }
        }
    }

    /// Takes all lines and writes the answers; `false` if that came to an end.
    fn take(&self, lines: &mut Lines) -> bool {
        loop {
            while !self.host.pipe().is_full() {
                match lines.next() {
                    Some(line) => calls::after(&self.client, self.host.pipe().line(line)),
                    None => return self.host.flush() != Flushed::Broken && !self.host.is_over(),
                }
            }
            match self.host.flush() {
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

    /// Waits for room, or else for input; whether to stop instead.
    fn wait(&self, room: bool) -> io::Result<bool> {
        let stdio = self.host.stdio();
        self.waiter.wait(Interest {
            input: (!room).then(|| stdio.input_fd()),
            output: room.then(|| stdio.output_fd()),
            timeout: None,
        })?;
        Ok(self.waiter.wake().hear() & word::STOP != 0)
    }
}

/// The thread that keeps time.
pub(super) struct TimeThread {
    pub(super) host: Arc<PipeHost>,
    pub(super) client: Arc<Client>,
    pub(super) waiter: Waiter,
    /// Set by a signal that asks the process to end.
    pub(super) terminate: Arc<AtomicBool>,
    /// To stop the reader.
    pub(super) reader: Arc<Wake>,
}

/// What one look around gave.
struct LoopPass {
    /// To stop, by the end of input or because the author said so.
    stops: bool,
    flushed: Flushed,
    /// In how many milliseconds something is due.
    due: Option<Millis>,
}

impl TimeThread {
    /// Until the peer leaves or the server is told to stop, and everything is written or given up.
    pub(super) fn run(self) -> io::Result<()> {
        let _entered = self.host.runtime().enter();
        let _timekeeper = self.host.shared().engine.keep_time(self.waiter.wake().waker(word::LOOK));
        let ended = self.keep().and_then(|()| self.drain());
        self.host.close();
        // The answers that the grace left: nobody waits longer for a client that does not read.
        let _ = self.host.flush();
        self.reader.say(word::STOP);
        self.host.stdio().hang_up();
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

    /// Waits for what is in flight and for the output, but not for ever.
    fn drain(&self) -> io::Result<()> {
        self.host.drains();
        self.host.pipe().shutdown();
        self.host.pipe().deliver();
        let until = self.now() + self.host.shared().engine.limits().grace;
        loop {
            let turn = self.turn();
            let done = turn.flushed == Flushed::All && self.host.pipe().in_flight() == 0;
            let left = until.saturating_sub(self.now());
            if done || turn.flushed == Flushed::Broken || left == 0 {
                return Ok(());
            }
            self.sleep(&turn, Some(left))?;
        }
    }

    /// Does what is due.
    fn turn(&self) -> LoopPass {
        let (shared, pipe) = (self.host.shared(), self.host.pipe());
        // Before anything is looked at: what changes from here on keeps the thread from sleeping.
        self.waiter.wake().arm(Millis::MAX);
        let words = self.waiter.wake().hear();
        if self.terminate.swap(false, Ordering::Relaxed) {
            shared.shutdown();
        }
        if words & word::DELIVER != 0 {
            pipe.deliver();
        }
        let now = self.host.now();
        let engine = shared.tick(now);
        let mut own = pipe.deadline();
        if own.is_some_and(|own| own <= now.tick) {
            calls::after(&self.client, pipe.tick());
            own = pipe.deadline();
        }
        let flushed = pipe.flush(|bytes| self.host.stdio().write(bytes));
        let next = [engine, own].into_iter().flatten().min();
        self.waiter.wake().arm(next.unwrap_or(Millis::MAX));
        let stops = words & (word::STOP | word::ENDED) != 0;
        LoopPass { stops, flushed, due: next.map(|next| next.saturating_sub(now.tick)) }
    }

    fn sleep(&self, turn: &LoopPass, at_most: Option<Millis>) -> io::Result<()> {
        let timeout = [turn.due, at_most].into_iter().flatten().min();
        let blocked = turn.flushed == Flushed::Blocked;
        self.waiter.wait(Interest {
            input: None,
            output: blocked.then(|| self.host.stdio().output_fd()),
            timeout: timeout.map(|timeout| Duration::from_millis(timeout.max(1))),
        })?;
        Ok(())
    }

    fn now(&self) -> Millis {
        self.host.now().tick
    }
}

struct SayOnDrop<'w>(&'w Wake, u32);

impl Drop for SayOnDrop<'_> {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}
