//! Timers for the engine and the sessions: one task for each server, with one timer.

use super::HttpServer;
use super::phase::{Either, ServerPhase, either, reach};
use crate::transport::EngineClock;
use mcp_resources_engine::engine::TimerRegistration;
use mcp_resources_engine::now::Millis;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum sleep if nothing is due, in ms.
const LONGEST: Millis = 60_000;

/// The task that runs the timers.
pub(super) struct TimerTask {
    started: AtomicBool,
    /// The time at which the task wakes by itself; 0 while it is checking.
    armed: AtomicU64,
    notify: Arc<Notify>,
}

/// Wakes the task when the engine's deadline becomes earlier.
struct TimerTaskWaker(Arc<Notify>);

impl Wake for TimerTaskWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl Default for TimerTask {
    fn default() -> Self {
        Self { started: AtomicBool::new(false), armed: AtomicU64::new(Millis::MAX), notify: Arc::default() }
    }
}

impl TimerTask {
    /// Starts the task, once, on the runtime of the first caller.
    pub(super) fn start(&self, server: &Arc<HttpServer>) {
        if !self.started.load(Ordering::Relaxed) && !self.started.swap(true, Ordering::AcqRel) {
            let waker = Waker::from(Arc::new(TimerTaskWaker(self.notify.clone())));
            let timer_registration = server.endpoint.engine().register_timer(waker);
            tokio::spawn(keep(Arc::downgrade(server), timer_registration));
        }
    }

    /// Wakes the task if something is due before it would wake by itself.
    pub(super) fn look(&self, server: &HttpServer) {
        if next(server).is_some_and(|next| next < self.armed.load(Ordering::SeqCst)) {
            self.notify.notify_one();
        }
    }
}

/// The next deadline.
fn next(server: &HttpServer) -> Option<Millis> {
    let endpoint = &server.endpoint;
    [endpoint.engine().deadline(), endpoint.deadline()].into_iter().flatten().min()
}

/// Runs until the server is dropped or ended. Does not keep the server alive while it sleeps.
async fn keep(server: Weak<HttpServer>, _timer: TimerRegistration) {
    loop {
        let Some(strong) = server.upgrade() else { return };
        let mut phase = strong.phases.watch();
        // From here on, each change of a deadline notifies this task.
        strong.timer_task.armed.store(Millis::MAX, Ordering::SeqCst);
        turn(&strong);
        let now = strong.now().tick;
        let due = next(&strong).unwrap_or(Millis::MAX).min(now.saturating_add(LONGEST));
        strong.timer_task.armed.store(due, Ordering::SeqCst);
        let woken = either(strong.timer_task.notify.notified(), sleep(&strong.clock, due, now));
        if let Either::Second(()) = either(woken, reach(&mut phase, ServerPhase::Over)).await {
            return;
        }
    }
}

/// Sleeps until `due`, by the machine's timer, or by the clock if a test has stopped it.
async fn sleep(clock: &EngineClock, due: Millis, now: Millis) {
    let mut timer = pin!(tokio::time::sleep(Duration::from_millis(due.saturating_sub(now).max(1))));
    poll_fn(|context| match clock.stands(context.waker()) {
        true if clock.now().tick >= due => Poll::Ready(()),
        true => Poll::Pending,
        false => timer.as_mut().poll(context),
    })
    .await;
}

/// Runs everything that is due.
fn turn(server: &HttpServer) {
    let endpoint = &server.endpoint;
    let now = server.now();
    if endpoint.engine().deadline().is_some_and(|deadline| deadline <= now.tick) {
        endpoint.engine().tick(now);
    }
    for turn in endpoint.tick(now) {
        server.after(turn, None);
    }
}
