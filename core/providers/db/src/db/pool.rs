//! The sessions of a database that requests share.
//!
//! ```text
//!   worker ──take──▶ an idle session, a new one, or a wait for one ──the request is answered──▶ idle again
//! ```
//!
//! Law: there are never more sessions than the limit, nor more idle ones than threads that use them, so the end of the
//! mount's threads closes everything. A forked process uses no session of its parent.

use super::session::{DbSession, SessionFault, TIME};
use mcp_resources_engine::connection::Cancelled;
use mcp_resources_runtime::sync::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between checks whether the client that waits for a session has left.
const LOOK: Duration = Duration::from_millis(100);

/// The sessions of one database.
pub(super) struct SessionPool {
    max: usize,
    state: Mutex<IdleSessions>,
    freed: Condvar,
}

#[derive(Default)]
struct IdleSessions {
    process: u32,
    /// The number of sessions, in use or idle.
    open: usize,
    /// The number of threads that have used one and have not ended.
    threads: usize,
    idle: Vec<Box<dyn DbSession>>,
}

/// A session in use. It is idle again when this is dropped.
pub(super) struct PooledSession<'p> {
    pool: &'p SessionPool,
    session: Option<Box<dyn DbSession>>,
}

/// A thread that uses a pool.
pub(super) struct PoolThread(Arc<SessionPool>);

impl SessionPool {
    pub(super) fn new(max: usize) -> Self {
        Self { max, state: Mutex::default(), freed: Condvar::default() }
    }

    /// The number of open sessions, of threads that use them, and of idle sessions.
    #[cfg(test)]
    pub(super) fn counts(&self) -> [usize; 3] {
        let state = self.state.lock();
        [state.open, state.threads, state.idle.len()]
    }

    /// The most sessions.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// A session for one caller. Waits for a free one while there are as many as there may be.
    ///
    /// # Errors
    /// [`SessionFault::Time`] if the request was cancelled meanwhile, or no session was free in time.
    pub(super) fn take(
        &self,
        request: Option<&Cancelled>,
        open: impl FnOnce() -> Box<dyn DbSession>,
    ) -> Result<PooledSession<'_>, SessionFault> {
        let end = Instant::now() + TIME;
        let mut state = self.state.lock();
        state.renew();
        loop {
            if let Some(session) = state.idle.pop() {
                return Ok(PooledSession { pool: self, session: Some(session) });
            }
            if state.open < self.max {
                state.open += 1;
                drop(state);
                return Ok(PooledSession { pool: self, session: Some(open()) });
            }
            if request.is_some_and(Cancelled::get) || Instant::now() >= end {
                return Err(SessionFault::Time);
            }
            state = self.freed.wait_for(state, LOOK).0;
        }
    }
}

impl IdleSessions {
    /// Forgets the sessions of the parent process. To close them would disturb the parent, which shares their files.
    fn renew(&mut self) {
        let process = std::process::id();
        if self.process != process {
            std::mem::forget(std::mem::take(&mut self.idle));
            *self = Self { process, ..Self::default() };
        }
    }
}

impl PooledSession<'_> {
    pub(super) fn get(&mut self) -> Result<&mut dyn DbSession, SessionFault> {
        match &mut self.session {
            Some(session) => Ok(session.as_mut()),
            None => Err(SessionFault::NotFound),
        }
    }
}

impl Drop for PooledSession<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        // The state of a session whose use has panicked is unknown.
        match self.session.take().filter(|_| !std::thread::panicking()) {
            Some(session) => state.idle.push(session),
            None => state.open = state.open.saturating_sub(1),
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}

impl PoolThread {
    pub(super) fn new(pool: &Arc<SessionPool>) -> Self {
        let mut state = pool.state.lock();
        state.renew();
        state.threads += 1;
        drop(state);
        Self(pool.clone())
    }

    pub(super) fn uses(&self, pool: &Arc<SessionPool>) -> bool {
        Arc::ptr_eq(&self.0, pool)
    }
}

impl Drop for PoolThread {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if state.process != std::process::id() {
            return;
        }
        state.threads = state.threads.saturating_sub(1);
        let kept = state.threads.min(state.idle.len());
        let closed = state.idle.split_off(kept);
        state.open = state.open.saturating_sub(closed.len());
        drop(state);
        drop(closed);
    }
}

impl fmt::Debug for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPool").field("max", &self.max).finish_non_exhaustive()
    }
}
