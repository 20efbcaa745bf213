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

/// Maximum sleep while there are sessions, in ms: the last answer of a session whose client left does not notify the task.
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
        let at_latest = strong.endpoint.has_sessions().then(|| now.saturating_add(LONGEST));
        let due = [next(&strong), at_latest].into_iter().flatten().min();
        strong.timer_task.armed.store(due.unwrap_or(Millis::MAX), Ordering::SeqCst);
        let (clock, notify) = (strong.clock.clone(), strong.timer_task.notify.clone());
        drop(strong);
        let woken = either(notify.notified(), sleep(&clock, due, now));
        if let Either::Second(()) = either(woken, reach(&mut phase, ServerPhase::Over)).await {
            return;
        }
    }
}

/// Sleeps until `due`, by the machine's timer, or by the clock if a test has stopped it. Without `due` it sleeps for ever,
/// and the idle process is not woken.
async fn sleep(clock: &EngineClock, due: Option<Millis>, now: Millis) {
    let left = due.map(|due| Duration::from_millis(due.saturating_sub(now).max(1)));
    let mut timer = pin!(left.map(tokio::time::sleep));
    poll_fn(|context| match (clock.stands(context.waker()), timer.as_mut().as_pin_mut()) {
        (true, _) if due.is_some_and(|due| clock.now().tick >= due) => Poll::Ready(()),
        (true, _) | (false, None) => Poll::Pending,
        (false, Some(timer)) => timer.poll(context),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::HttpOptions;
    use crate::transport::{EventHandler, Peer};
    use mcp_resources_engine::connection::Events;
    use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
    use mcp_resources_engine::http::Rules;

    /// Without handlers.
    struct Silent;

    impl EventHandler for Silent {
        fn handle(&self, _: &Peer, _: Events<'_>) {}

        fn misuse(&self, _: &str) {}
    }

    /// A server without sessions has no timer, and its task does not keep it alive.
    #[tokio::test]
    async fn a_resting_server_is_not_woken() {
        let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, EngineOptions::default()).unwrap();
        let options = HttpOptions::new(Rules::default());
        let server =
            HttpServer::new(&engine, Arc::new(EngineClock::new()), options, Arc::new(Silent)).unwrap();
        server.timer_task.start(&server);
        tokio::task::yield_now().await;
        assert_eq!(server.timer_task.armed.load(Ordering::SeqCst), Millis::MAX);
        assert_eq!(Arc::strong_count(&server), 1);
    }
}
