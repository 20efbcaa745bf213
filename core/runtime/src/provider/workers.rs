//! Threads for blocking jobs, limited in number, with a queue of limited length.
//!
//! Law: a thread starts with the first job that finds none idle, and ends after being idle for a while. The lock is a
//! leaf: no job runs or is dropped while it is held.

use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A thread ends after being idle for this time.
const IDLE: Duration = Duration::from_secs(10);

/// A job.
type Job = Box<dyn FnOnce() + Send>;

/// A pool of worker threads. Dropping it lets running jobs finish, and drops queued ones.
pub struct Workers {
    name: String,
    max: usize,
    queue: usize,
    pool: Mutex<Arc<Pool>>,
}

struct Pool {
    /// The process to which the threads belong.
    process: u32,
    state: Mutex<PoolState>,
    ready: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    /// Queue slots that are reserved for jobs to come.
    entering: usize,
    closed: bool,
}

/// A reserved slot in the queue of [`Workers`]; dropping it frees the slot.
#[derive(Debug)]
#[must_use = "a place does nothing until it is given a job"]
pub struct QueuePermit<'w> {
    workers: &'w Workers,
    pool: Arc<Pool>,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Workers {
    /// A pool of at most `threads` threads with at most `queue` waiting jobs. `name` is the name of the threads. Starts
    /// no thread yet.
    pub fn new(name: impl Into<String>, threads: usize, queue: usize) -> Self {
        Self { name: name.into(), max: threads.max(1), queue: queue.max(1), pool: Mutex::new(Pool::new()) }
    }

    /// Reserves a slot in the queue.
    ///
    /// # Errors
    /// [`Full`] if all slots are taken.
    pub fn enter(&self) -> Result<QueuePermit<'_>, Full> {
        let pool = self.pool();
        let mut state = pool.state.lock();
        if state.jobs.len() + state.entering >= self.queue {
            return Err(Full);
        }
        state.entering += 1;
        drop(state);
        Ok(QueuePermit { workers: self, pool })
    }

    /// The number of threads: for tests.
    pub fn threads(&self) -> usize {
        self.pool().state.lock().threads
    }

    /// The pool of this process: a forked process has none of its parent's threads.
    fn pool(&self) -> Arc<Pool> {
        let mut pool = self.pool.lock();
        if pool.process != std::process::id() {
            // Its lock may be held for ever by a thread of the parent.
            std::mem::forget(std::mem::replace(&mut *pool, Pool::new()));
        }
        pool.clone()
    }

    fn begin(&self, pool: &Arc<Pool>) {
        let own = pool.clone();
        let began = std::thread::Builder::new().name(self.name.clone()).spawn(move || own.work());
        if began.is_err() {
            let mut state = pool.state.lock();
            state.threads -= 1;
            // Without any thread the queue would never be emptied.
            let left = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            drop(state);
            drop(left);
        }
    }
}

impl QueuePermit<'_> {
    /// Runs `job` on a thread, after the jobs before it have started.
    pub fn run(self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.pool.state.lock();
        if state.closed {
            return;
        }
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() {
            self.pool.ready.notify_one();
        } else if state.threads < self.workers.max {
            state.threads += 1;
            drop(state);
            self.workers.begin(&self.pool);
        }
    }
}

impl Drop for QueuePermit<'_> {
    fn drop(&mut self) {
        self.pool.state.lock().entering -= 1;
    }
}

impl Pool {
    fn new() -> Arc<Self> {
        let state = Default::default();
        let ready = Default::default();
        Arc::new(Self { process: std::process::id(), state, ready })
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // Dropping the job fails its request; the panic hook has already printed the location.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                state.threads -= 1;
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            let (guard, has_timed_out) = self.ready.wait_for(state, IDLE);
            state = guard;
            state.idle -= 1;
            if has_timed_out && state.jobs.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let pool = self.pool();
        let mut state = pool.state.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        pool.ready.notify_all();
        drop(left);
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("name", &self.name).field("max", &self.max).finish_non_exhaustive()
    }
}
