//! Calls on the thread of an event loop, and answers that this thread reads itself.
//!
//! ```text
//!   the loop: ServerHandle::direct ──▶ DirectLink::call ──▶ the pipe         no other thread wakes
//!   the pipe is readable ──▶ ServerHandle::pump ──▶ the result of the call
//! ```
//!
//! Calls that are alone are made directly: with several at once, the task writes and reads for all of them in fewer steps.
//! After some of them in a row the loop is lent the output of the server, until it does not use it. A loop that reads by itself
//! passes the bytes to [`ServerHandle::received`]. As it cannot return the loan at once, all its calls are made directly then.
//!
//! Law: the loop does not wait for the task, and the task never for the loop. What a loop does not read, the task reads soon;
//! what a loop reads by itself, it reads until it has returned the loan.

use super::{
    CallWaiter, LinkCommand, LinkTask, Loan, LoopInbox, OutcomeFn, OutcomeReceiver, ServerHandle, locked,
};
use crate::hooks::ProgressFn;
use crate::transport::{LentOutput, LoopReader};
use mcp_resources_engine::client::{CallOptions, ClientCall, Effect};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

/// The number of direct calls in a row after which the output is lent.
const LEND_AFTER: u32 = 4;
/// The time between two checks whether the loop still uses what it was lent. Messages that a loop does not read, because it is
/// blocked or closed, wait for at most twice this time.
const LOAN_CHECK: Duration = Duration::from_millis(50);

/// Maximum number of bytes that the loop leaves in the inbox. With more, it waits for the task.
const UNREAD: usize = 1 << 20;

/// A server that takes a call on this thread.
pub(crate) struct DirectLink<'a> {
    link: &'a ServerHandle,
    task: MutexGuard<'a, LinkTask>,
}

impl ServerHandle {
    /// For a call on this thread; `None` if the task must make it.
    pub(crate) fn direct(&self) -> Option<DirectLink<'_>> {
        if self.queued.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let task = self.task.try_lock().ok()?;
        task.takes_direct_calls().then_some(DirectLink { link: self, task })
    }

    /// Reads what the server has sent, if its output is lent; returns whether that was anything.
    pub(crate) fn pump(&self) -> bool {
        // The task holds the lock for long only while nothing is lent.
        let Ok(mut task) = self.task.try_lock() else { return false };
        if task.loan.output.as_ref().is_none_or(LentOutput::is_read_elsewhere) {
            return false;
        }
        task.loan.uses += 1;
        task.on_this_thread(LinkTask::read_lent)
    }

    /// Takes what a loop has read that reads by itself. `false` if the loan is not of this server, or over.
    pub(crate) fn received(&self, loan: u64, bytes: &[u8]) -> bool {
        let mut inbox = locked(&self.inbox);
        if inbox.loan != Some(loan) {
            return false;
        }
        let free = self.task.try_lock();
        if free.is_err() && inbox.unread.len() <= UNREAD {
            inbox.unread.extend_from_slice(bytes);
            drop(inbox);
            self.send(LinkCommand::Unread);
            return true;
        }
        drop(inbox);
        let mut task = free.unwrap_or_else(|_| locked(&self.task));
        task.loan.uses += 1;
        task.on_this_thread(|task, out| {
            task.read_lent(out);
            task.take_lent(loan, bytes, out);
        });
        true
    }

    /// Takes a loan back from a loop that reads by itself, and has stopped. `false` as above.
    pub(crate) fn returned(&self, loan: u64) -> bool {
        let has_lent = self.has_lent(loan);
        if has_lent {
            self.send(LinkCommand::Returned(loan));
        }
        has_lent
    }

    fn has_lent(&self, loan: u64) -> bool {
        locked(&self.inbox).loan == Some(loan)
    }

    /// Takes a call back.
    pub(crate) fn cancel(&self, id: u64) {
        self.send(LinkCommand::Cancel(id));
    }
}

impl DirectLink<'_> {
    /// Makes a call, and returns its number, for [`ServerHandle::cancel`]. `outcome` is called with its result, or dropped. With
    /// a `reader`, the loop gets answers itself.
    pub(crate) fn call(
        mut self,
        call: ClientCall,
        options: CallOptions,
        progress: Option<ProgressFn>,
        outcome: OutcomeFn,
        reader: Option<&LoopReader>,
    ) -> u64 {
        let id = self.link.next.fetch_add(1, Ordering::Relaxed);
        let waiter = CallWaiter { outcome: OutcomeReceiver::Called(outcome), progress };
        self.task.waiters.insert(id, waiter);
        self.task.want_loan(reader);
        self.task.on_this_thread(|task, effects| {
            let now = task.clock.now();
            task.machine.call(id, call, options, now, effects);
        });
        id
    }
}

/// The steps of another thread than that of the task.
impl LinkTask {
    /// Whether a call can be written at once, and is alone or has its answer read where it is made.
    fn takes_direct_calls(&self) -> bool {
        let writes_here = self.transport.as_ref().is_some_and(|transport| transport.writes_here());
        let reads_here = self.loan.output.as_ref().is_some_and(LentOutput::is_read_elsewhere);
        let is_ready = writes_here && !self.has_ended && self.machine.about().is_some();
        is_ready && (reads_here || self.waiters.is_empty())
    }

    /// Does something, carries out its effects, and wakes the task if it waits for something else now.
    fn on_this_thread<R>(&mut self, act: impl FnOnce(&mut Self, &mut Vec<Effect>) -> R) -> R {
        let runtime = self.runtime.clone();
        let _entered = runtime.enter();
        let mut effects = std::mem::take(&mut self.effects);
        let result = act(self, &mut effects);
        self.tell_about();
        self.perform(&mut effects);
        self.effects = effects;
        self.flush();
        let is_late = self.machine.deadline().is_some_and(|at| self.is_before_alarm(at));
        if (is_late || self.opening.is_some() || self.inbound.is_none())
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
        result
    }
}

/// The loan of the server's output.
impl LinkTask {
    /// A call is made directly.
    fn want_loan(&mut self, reader: Option<&LoopReader>) {
        let Some(reader) = reader else { return };
        self.loan.uses += 1;
        self.loan.in_a_row = self.loan.in_a_row.saturating_add(1);
        if self.loan.in_a_row >= LEND_AFTER
            && self.loan.wanted.is_none()
            && let Some(transport) = &self.transport
        {
            self.loan.wanted = Some(reader.clone());
            transport.lend();
        }
    }

    /// A call is made by the task.
    pub(super) fn call_loan(&mut self) {
        self.loan.in_a_row = 0;
        if self.loan.output.as_ref().is_some_and(|output| !output.is_read_elsewhere()) {
            self.end_loan();
        }
    }

    /// The output that was asked for is there.
    pub(super) fn borrow(&mut self, mut output: LentOutput) {
        let Some(reader) = self.loan.wanted.as_ref().filter(|_| self.loan.in_a_row > 0) else {
            self.loan.wanted = None;
            return;
        };
        // First: a loop that reads by itself begins at once.
        locked(&self.inbox).loan = Some(output.number());
        if output.give(reader).is_err() {
            return self.drop_loan();
        }
        self.loan.output = Some(output);
        self.loan.check = Some((self.loan.uses, Box::pin(tokio::time::sleep(LOAN_CHECK))));
    }

    /// Reads once what is lent; returns whether there was anything. The pump goes on at the end of the stream.
    pub(super) fn read_lent(&mut self, out: &mut Vec<Effect>) -> bool {
        let Some(mut output) = self.loan.output.take() else { return false };
        let now = self.clock.now();
        if output.is_read_elsewhere() {
            let unread = std::mem::take(&mut locked(&self.inbox).unread);
            output.take(&unread, |line| self.machine.received(line, now, out));
            self.loan.output = Some(output);
            return !unread.is_empty();
        }
        match output.read(|line| self.machine.received(line, now, out)) {
            Some(count) => {
                self.loan.output = Some(output);
                count > 0
            }
            None => {
                self.drop_loan();
                true
            }
        }
    }

    /// Takes what a loop has read.
    fn take_lent(&mut self, loan: u64, bytes: &[u8], out: &mut Vec<Effect>) {
        let now = self.clock.now();
        if let Some(output) = self.loan.output.as_mut().filter(|output| output.number() == loan) {
            output.take(bytes, |line| self.machine.received(line, now, out));
        }
    }

    /// A loop that reads by itself has stopped.
    pub(super) fn returned(&mut self, loan: u64, out: &mut Vec<Effect>) {
        self.read_lent(out);
        if let Some(output) = self.loan.output.take_if(|output| output.number() == loan) {
            output.returned();
            self.drop_loan();
        }
    }

    /// Ends the loan: what is left of it goes back to the pump.
    pub(super) fn drop_loan(&mut self) {
        self.loan = Loan::default();
        *locked(&self.inbox) = LoopInbox::default();
    }

    /// Ready when it is time for [`LinkTask::check_loan`].
    pub(super) fn poll_loan(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.loan.check.as_mut().map_or(Poll::Pending, |(_, sleep)| sleep.as_mut().poll(context))
    }

    /// Ends the loan if the loop has not used it since the check before.
    pub(super) fn check_loan(&mut self) {
        let Some((seen, _)) = self.loan.check.take() else { return };
        if seen == self.loan.uses {
            self.loan.in_a_row = 0;
            match &mut self.loan.output {
                Some(output) if output.is_read_elsewhere() => output.recall(),
                _ => self.end_loan(),
            }
            return;
        }
        self.loan.check = Some((self.loan.uses, Box::pin(tokio::time::sleep(LOAN_CHECK))));
    }

    fn end_loan(&mut self) {
        if self.loan.output.take().is_some() {
            self.loan.wanted = None;
            self.loan.check = None;
        }
    }
}
