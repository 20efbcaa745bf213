//! The thread that reads one peer: read, dispatch, write, sleep.
//!
//! Law: nothing here blocks but the sleep. Above `Limits::output` it stops reading (design 3.2); at the end of input
//! what is in flight has `Limits::grace`.

use super::host::{Host, word};
use crate::jsonrpc::Lines;
use crate::now::Millis;
use crate::transport::{Flushed, Interest, Received, Waiter};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;

/// Reads the peer of `host` until it ends or the server is told to stop.
pub(super) fn run(host: &Arc<Host>, waiter: &Waiter, terminate: &AtomicBool) -> io::Result<()> {
    let _entered = host.runtime().enter();
    let mut reader = Reader { host, waiter, terminate, flushed: Flushed::All, stopping: false };
    let ended = reader.read_all().and_then(|()| reader.drain());
    host.close();
    // The answers that the grace left: nobody waits longer for a client that does not read.
    let _ = host.flush();
    host.stdio().hang_up();
    ended
}

struct Reader<'h> {
    host: &'h Arc<Host>,
    waiter: &'h Waiter,
    /// Set by a signal that asks the process to end.
    terminate: &'h AtomicBool,
    flushed: Flushed,
    /// The server is to stop.
    stopping: bool,
}

impl Reader<'_> {
    /// Until the end of input, or until told to stop.
    fn read_all(&mut self) -> io::Result<()> {
        let mut lines = Lines::new(self.host.shared().engine.limits().message);
        let mut chunk = vec![0; CHUNK];
        let mut ended = false;
        loop {
            let waiting = self.take(&mut lines);
            let timeout = self.turn();
            if self.stopping || self.flushed == Flushed::Broken || (ended && !waiting) {
                return Ok(());
            }
            if waiting && self.flushed == Flushed::All {
                continue;
            }
            if self.sleep(!waiting && !ended, timeout)? {
                match self.host.stdio().read(&mut chunk) {
                    Received::Bytes(count) => lines.push(&chunk[..count]),
                    Received::Nothing => {}
                    Received::End => {
                        lines.finish();
                        ended = true;
                    }
                }
            }
        }
    }

    /// Waits for what is in flight and for the output, but not for ever; then cancels the rest.
    fn drain(&mut self) -> io::Result<()> {
        let until = self.now() + self.host.shared().engine.limits().grace;
        loop {
            let timeout = self.turn();
            let done = self.flushed == Flushed::All && self.host.pipe().in_flight() == 0;
            let left = until.saturating_sub(self.now());
            if done || self.flushed == Flushed::Broken || left == 0 {
                return Ok(());
            }
            self.sleep(false, Some(timeout.map_or(left, |timeout| timeout.min(left))))?;
        }
    }

    /// Takes lines while there is room for answers; whether some are left.
    fn take(&self, lines: &mut Lines) -> bool {
        while !self.host.pipe().is_full() {
            match lines.next() {
                Some(line) => self.host.line(line),
                None => return false,
            }
        }
        true
    }

    /// What is due between two reads; returns in how many milliseconds something is due again.
    fn turn(&mut self) -> Option<Millis> {
        let shared = self.host.shared();
        // Heard before anything is looked at: what is said from here on keeps the thread from sleeping.
        let words = self.host.wake().hear();
        self.stopping |= words & word::STOP != 0;
        if self.terminate.swap(false, Ordering::Relaxed) {
            shared.shutdown();
        }
        let now = self.host.now();
        let due = shared.tick(now);
        if words & word::DELIVER != 0 {
            self.host.pipe().deliver();
        }
        let mut own = self.host.pipe().deadline();
        if own.is_some_and(|own| own <= now.tick) {
            let outcome = self.host.pipe().tick();
            self.host.after(outcome);
            own = self.host.pipe().deadline();
        }
        self.flushed = self.host.pipe().flush(|bytes| self.host.stdio().write(bytes));
        let next = [due, own].into_iter().flatten().min()?;
        Some(next.saturating_sub(now.tick))
    }

    /// Sleeps; whether there is something to read.
    fn sleep(&self, reads: bool, timeout: Option<Millis>) -> io::Result<bool> {
        let stdio = self.host.stdio();
        let ready = self.waiter.wait(Interest {
            input: reads.then(|| stdio.input_fd()),
            output: (self.flushed == Flushed::Blocked).then(|| stdio.output_fd()),
            timeout: timeout.map(|timeout| Duration::from_millis(timeout.max(1))),
        })?;
        Ok(ready.input)
    }

    fn now(&self) -> Millis {
        self.host.now().tick
    }
}
