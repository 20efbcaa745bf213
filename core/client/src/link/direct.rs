//! Calls on the thread of an event loop, and answers that this thread reads itself.
//!
//! ```text
//!   the loop: ServerHandle::direct ──▶ DirectLink::call ──▶ the pipe         no other thread wakes
//!   the pipe is readable ──▶ ServerHandle::pump ──▶ the result of the call
//! ```
//!
//! Calls that are alone are made directly: with several at once, the task writes and reads for all of them in fewer steps.
//! After some of them in a row the loop is lent the output of the server, until it does not use it.
//!
//! Law: the loop never waits for the task, and the task never for the loop. What a loop does not read, the task reads soon.

use super::{CallWaiter, LinkTask, Loan, OutcomeFn, OutcomeReceiver, ServerHandle};
use crate::hooks::ProgressFn;
use crate::transport::{LentOutput, LoopPipes};
use mcp_resources_engine::client::{CallOptions, ClientCall, Effect};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

/// The number of direct calls in a row after which the output is lent.
const LEND_AFTER: u32 = 4;
/// The time between two checks whether the loop still uses what it was lent. Messages that a loop does not read, because it is
/// blocked or closed, wait for at most twice this time.
const LOAN_CHECK: Duration = Duration::from_millis(50);

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
        if task.loan.output.is_none() {
            return false;
        }
        task.loan.uses += 1;
        task.on_this_thread(LinkTask::read_lent)
    }

    /// Takes a call back.
    pub(crate) fn cancel(&self, id: u64) {
        self.send(super::LinkCommand::Cancel(id));
    }
}

impl DirectLink<'_> {
    /// Makes a call, and returns its number, for [`ServerHandle::cancel`]. `outcome` is called with its result, or dropped. With
    /// `pipes`, the loop reads answers itself, with [`ServerHandle::pump`].
    pub(crate) fn call(
        mut self,
        call: ClientCall,
        options: CallOptions,
        progress: Option<ProgressFn>,
        outcome: OutcomeFn,
        pipes: Option<&Arc<LoopPipes>>,
    ) -> u64 {
        let id = self.link.next.fetch_add(1, Ordering::Relaxed);
        let waiter = CallWaiter { outcome: OutcomeReceiver::Called(outcome), progress };
        self.task.waiters.insert(id, waiter);
        self.task.want_loan(pipes);
        self.task.on_this_thread(|task, effects| {
            let now = task.clock.now();
            task.machine.call(id, call, options, now, effects);
        });
        id
    }
}

/// The steps of another thread than that of the task.
impl LinkTask {
    /// Whether a call is alone, and can be written at once.
    fn takes_direct_calls(&self) -> bool {
        let writes_here = self.transport.as_ref().is_some_and(|transport| transport.writes_here());
        writes_here && !self.has_ended && self.waiters.is_empty() && self.machine.about().is_some()
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
    fn want_loan(&mut self, pipes: Option<&Arc<LoopPipes>>) {
        let Some(pipes) = pipes else { return };
        self.loan.uses += 1;
        self.loan.in_a_row = self.loan.in_a_row.saturating_add(1);
        if self.loan.in_a_row >= LEND_AFTER
            && self.loan.wanted.is_none()
            && let Some(transport) = &self.transport
        {
            self.loan.wanted = Some(pipes.clone());
            transport.lend();
        }
    }

    /// A call is made by the task.
    pub(super) fn call_loan(&mut self) {
        self.loan.in_a_row = 0;
        self.end_loan();
    }

    /// The output that was asked for is there.
    pub(super) fn borrow(&mut self, mut output: LentOutput) {
        if let Some(pipes) = &self.loan.wanted
            && self.loan.in_a_row > 0
            && output.watched_by(pipes).is_ok()
        {
            self.loan.output = Some(output);
            self.loan.check = Some((self.loan.uses, Box::pin(tokio::time::sleep(LOAN_CHECK))));
        } else {
            self.loan.wanted = None;
        }
    }

    /// Reads once what is lent; returns whether there was anything. The pump goes on at the end of the stream.
    pub(super) fn read_lent(&mut self, out: &mut Vec<Effect>) -> bool {
        let Some(mut output) = self.loan.output.take() else { return false };
        let now = self.clock.now();
        match output.read(|line| self.machine.received(line, now, out)) {
            Some(count) => {
                self.loan.output = Some(output);
                count > 0
            }
            None => {
                self.loan = Loan::default();
                true
            }
        }
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
            return self.end_loan();
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
