//! The jobs of a server's worker threads, for an interpreter that runs one thread at a time.
//!
//! At most one woken thread at a time is waiting for the interpreter. It gets in when a job blocks, or after a switch
//! interval. So short jobs run one after another on one thread without a wake-up for each, and a slow job delays no
//! other. A thread leaves its answers unwritten only if there is a waiting thread, which writes them first.
//!
//! Law: no method takes the interpreter's lock, and only [`Jobs::rest`] and [`Jobs::stop`] block.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum time to wait for threads to leave when the interpreter ends.
const LEAVING: Duration = Duration::from_secs(1);
/// Maximum number of attempts of a forked process to take the lock of its parent's jobs.
const FORK_TRIES: usize = 10_000;

/// A job for a client.
pub(crate) trait Job {
    /// The type of clients. A clone is the same client.
    type Client: Clone;

    /// The client that waits for the job.
    fn client(&self) -> &Self::Client;

    /// Whether a client is so far behind with reading that no job should start for it.
    fn is_full(client: &Self::Client) -> bool;

    /// Whether two are the same client.
    fn is_same(one: &Self::Client, other: &Self::Client) -> bool;

    /// Writes as much as a client accepts, without holding the interpreter.
    fn write(client: &Self::Client);
}

/// A thread of the interpreter that runs jobs.
pub(crate) trait JobWorker<J: Job> {
    /// The error of a call into the interpreter.
    type Error;

    /// Starts one more thread, because of `job`. If the system has none left, this calls [`Jobs::failed`].
    ///
    /// # Errors
    /// The interpreter's error.
    fn start(&self, job: &J) -> Result<(), Self::Error>;

    /// Whether this thread should run `job`. A job that no client waits for is abandoned instead.
    ///
    /// # Errors
    /// The interpreter's error.
    fn begins(&self, job: &J) -> Result<bool, Self::Error>;

    /// Runs `work` without holding the interpreter.
    fn detached<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R;
}

/// The jobs and threads of a server.
pub(crate) struct Jobs<J: Job> {
    max: usize,
    state: Mutex<JobsState<J>>,
    wake_up: Condvar,
    /// Signalled when a thread has left, or entered a handler.
    gone: Condvar,
}

/// The clients with unwritten output.
type Unwritten<J> = Vec<<J as Job>::Client>;

struct JobsState<J: Job> {
    jobs: VecDeque<J>,
    /// Jobs of clients that do not read. They start when the client reads again, and do not delay other clients' jobs.
    stalled: VecDeque<J>,
    threads: usize,
    idle: usize,
    /// The number of idle threads that are called and have not woken yet.
    called: usize,
    /// The number of threads that were called or started and are not in the interpreter yet.
    arriving: usize,
    unwritten: Unwritten<J>,
    /// The number of threads inside a handler.
    handling: usize,
    stopped: bool,
}

/// The action needed for waiting jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum ThreadNeed {
    /// Nothing.
    Nothing,
    /// Start a thread; if the system has none left, call [`Jobs::failed`].
    Thread,
}

impl<J: Job> Jobs<J> {
    /// For at most `max` threads.
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1), state: Mutex::default(), wake_up: Condvar::new(), gone: Condvar::new() }
    }

    /// Adds a job. Call [`Jobs::kick`] afterwards to have it taken.
    pub(crate) fn push(&self, job: J) {
        self.lock().jobs.push_back(job);
    }

    /// Makes sure that waiting jobs are taken. Call it after pushing the jobs of one read.
    pub(crate) fn kick(&self) -> ThreadNeed {
        let mut state = self.lock();
        state.resume();
        self.call_someone(&mut state)
    }

    /// The next job for one of the threads, the action needed for the other threads, and the clients to write to first.
    fn take(&self) -> Option<(J, ThreadNeed, Unwritten<J>)> {
        let mut state = self.lock();
        if !state.is_ready() {
            return None;
        }
        let job = state.jobs.pop_front()?;
        let need = self.call_someone(&mut state);
        let covered = state.arriving > 0 && need == ThreadNeed::Nothing;
        let unwritten = if covered { Vec::new() } else { std::mem::take(&mut state.unwritten) };
        Some((job, need, unwritten))
    }

    /// The next job for a thread outside of the pool, and the clients to write to first.
    fn take_here(&self) -> (Option<J>, Unwritten<J>) {
        let mut state = self.lock();
        let job = if state.is_ready() { state.jobs.pop_front() } else { None };
        (job, std::mem::take(&mut state.unwritten))
    }

    /// Registers a new thread that is in the interpreter.
    pub(crate) fn enter<W: JobWorker<J>>(&self, worker: &W)
    where
        J::Client: Sync,
    {
        write::<J, W>(worker, &self.arrived());
    }

    /// Waits for the next job for one of the threads. `None` ends the thread.
    ///
    /// # Errors
    /// As those of [`JobWorker`].
    pub(crate) fn next<W: JobWorker<J>>(&self, worker: &W) -> Result<Option<J>, W::Error>
    where
        J: Send,
        J::Client: Send + Sync,
    {
        loop {
            if self.leave() {
                return Ok(None);
            }
            if let Some((job, need, unwritten)) = self.take() {
                if need == ThreadNeed::Thread {
                    worker.start(&job)?;
                }
                write::<J, W>(worker, &unwritten);
                if worker.begins(&job)? {
                    self.handles();
                    return Ok(Some(job));
                }
            } else {
                write::<J, W>(worker, &self.take_unwritten());
                if worker.detached(|| self.rest()) {
                    self.enter(worker);
                }
            }
        }
    }

    /// The next job for a thread outside of the pool, without waiting.
    ///
    /// # Errors
    /// As those of [`JobWorker`].
    pub(crate) fn next_here<W: JobWorker<J>>(&self, worker: &W) -> Result<Option<J>, W::Error>
    where
        J::Client: Sync,
    {
        loop {
            let (job, unwritten) = self.take_here();
            write::<J, W>(worker, &unwritten);
            let Some(job) = job else { return Ok(None) };
            if worker.begins(&job)? {
                self.handles();
                return Ok(Some(job));
            }
        }
    }

    /// Records that a thread enters a handler.
    fn handles(&self) {
        self.lock().handling += 1;
    }

    /// Records that a handler has returned. Returns whether its result is still needed.
    pub(crate) fn handled(&self) -> bool {
        let mut state = self.lock();
        state.handling -= 1;
        !state.stopped
    }

    /// Records that a called thread is in the interpreter. Returns the clients that it must write to first.
    #[must_use]
    fn arrived(&self) -> Unwritten<J> {
        let mut state = self.lock();
        state.arriving -= 1;
        std::mem::take(&mut state.unwritten)
    }

    /// Takes the clients with unwritten output.
    #[must_use]
    fn take_unwritten(&self) -> Unwritten<J> {
        std::mem::take(&mut self.lock().unwritten)
    }

    /// Leaves writing the output of `client` to these threads.
    pub(crate) fn leave_unwritten(&self, client: J::Client) {
        let mut state = self.lock();
        if !state.unwritten.iter().any(|other| J::is_same(other, &client)) {
            state.unwritten.push(client);
        }
    }

    /// Waits to be called; `false` if there already is a job or unwritten output.
    fn rest(&self) -> bool {
        let mut state = self.lock();
        if state.is_ready() || !state.unwritten.is_empty() || state.stopped {
            return false;
        }
        state.idle += 1;
        while state.called == 0 && !state.stopped {
            state = self.wake_up.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        if state.called == 0 {
            return false;
        }
        state.called -= 1;
        true
    }

    /// Whether this thread should end.
    fn leave(&self) -> bool {
        let mut state = self.lock();
        if state.stopped {
            state.threads -= 1;
            self.gone.notify_all();
        }
        state.stopped
    }

    /// Records that a thread could not be started. Returns whether there is another one, for which the jobs wait.
    pub(crate) fn failed(&self) -> bool {
        let mut state = self.lock();
        state.threads -= 1;
        state.arriving -= 1;
        state.threads > 0
    }

    /// Called before the interpreter ends: lets every thread outside of handlers leave, and waits for them, but at most
    /// one second. A thread that returns to an interpreter that has ended is terminated, and Rust frames on its stack
    /// do not survive that.
    pub(crate) fn stop(&self) {
        self.retire();
        let inside = |state: &mut JobsState<J>| state.threads > state.handling;
        let waited = self.gone.wait_timeout_while(self.lock(), LEAVING, inside);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets every thread leave, because the server no longer exists.
    pub(crate) fn retire(&self) {
        self.lock().stopped = true;
        self.wake_up.notify_all();
    }

    /// Called in a forked process: the threads, and the clients of waiting jobs, belong to the parent.
    pub(crate) fn forked(&self) {
        // A thread of the parent may have held the lock at the fork, though only for a moment.
        for _ in 0..FORK_TRIES {
            if let Ok(mut state) = self.state.try_lock() {
                let before = std::mem::take(&mut *state);
                drop(state);
                // Dropping the jobs would write to the parent's clients.
                std::mem::forget(before);
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// The number of waiting jobs.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.lock();
        state.jobs.len() + state.stalled.len()
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.lock().threads
    }

    /// Calls one idle thread, unless no job waits or a thread is on its way.
    fn call_someone(&self, state: &mut JobsState<J>) -> ThreadNeed {
        if !state.is_ready() || state.arriving > 0 || state.stopped {
            return ThreadNeed::Nothing;
        }
        if state.idle > state.called {
            state.called += 1;
            state.arriving += 1;
            self.wake_up.notify_one();
        } else if state.threads < self.max {
            state.threads += 1;
            state.arriving += 1;
            return ThreadNeed::Thread;
        }
        ThreadNeed::Nothing
    }

    fn lock(&self) -> MutexGuard<'_, JobsState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the output that other threads have left.
fn write<J: Job, W: JobWorker<J>>(worker: &W, unwritten: &Unwritten<J>)
where
    J::Client: Sync,
{
    if !unwritten.is_empty() {
        worker.detached(|| unwritten.iter().for_each(J::write));
    }
}

impl<J: Job> fmt::Debug for Jobs<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl<J: Job> Default for JobsState<J> {
    fn default() -> Self {
        Self {
            jobs: VecDeque::new(),
            stalled: VecDeque::new(),
            threads: 0,
            idle: 0,
            called: 0,
            arriving: 0,
            unwritten: Vec::new(),
            handling: 0,
            stopped: false,
        }
    }
}

impl<J: Job> JobsState<J> {
    /// Whether there is a job whose answer has room, and moves it to the front. No handler starts for a client that
    /// does not read.
    fn is_ready(&mut self) -> bool {
        while let Some(job) = self.jobs.front() {
            if !J::is_full(job.client()) {
                return true;
            }
            self.stalled.extend(self.jobs.pop_front());
        }
        false
    }

    /// Moves the jobs of clients that read again to the front: they have waited longest.
    fn resume(&mut self) {
        if self.stalled.is_empty() {
            return;
        }
        let mut full: Vec<J::Client> = Vec::new();
        let mut stalled = VecDeque::new();
        let mut ready = VecDeque::new();
        for job in self.stalled.drain(..) {
            let is_known = full.iter().any(|client| J::is_same(client, job.client()));
            if is_known || J::is_full(job.client()) {
                if !is_known {
                    full.push(job.client().clone());
                }
                stalled.push_back(job);
            } else {
                ready.push_back(job);
            }
        }
        ready.append(&mut self.jobs);
        self.jobs = ready;
        self.stalled = stalled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[derive(Debug, Default)]
    struct Client(AtomicBool);

    impl Job for (Arc<Client>, u32) {
        type Client = Arc<Client>;

        fn client(&self) -> &Arc<Client> {
            &self.0
        }

        fn is_full(client: &Arc<Client>) -> bool {
            client.0.load(Ordering::SeqCst)
        }

        fn is_same(one: &Arc<Client>, other: &Arc<Client>) -> bool {
            Arc::ptr_eq(one, other)
        }

        fn write(_client: &Arc<Client>) {}
    }

    fn taken(jobs: &Jobs<(Arc<Client>, u32)>) -> Vec<u32> {
        std::iter::from_fn(|| jobs.take_here().0).map(|(_, number)| number).collect()
    }

    /// One thread is on its way at a time; the next is called when that one has arrived and taken a job.
    #[test]
    fn one_thread_is_called_at_a_time_and_no_more_than_there_may_be() {
        let jobs = Jobs::new(2);
        let client = Arc::new(Client::default());
        assert_eq!(jobs.kick(), ThreadNeed::Nothing);
        (0..4).for_each(|number| jobs.push((client.clone(), number)));
        assert_eq!([jobs.kick(), jobs.kick()], [ThreadNeed::Thread, ThreadNeed::Nothing]);
        assert!(jobs.arrived().is_empty());
        assert!(matches!(jobs.take(), Some(((_, 0), ThreadNeed::Thread, _))));
        assert!(matches!(jobs.take(), Some(((_, 1), ThreadNeed::Nothing, _))));
        assert!(jobs.failed(), "the first thread is there");
        assert_eq!((jobs.threads(), jobs.waiting()), (1, 2));
    }

    /// Unwritten output is written by the thread on its way, or by the one that takes a job.
    #[test]
    fn what_is_left_unwritten_is_written_once() {
        let jobs = Jobs::new(1);
        let client = Arc::new(Client::default());
        jobs.push((client.clone(), 0));
        assert_eq!(jobs.kick(), ThreadNeed::Thread);
        jobs.leave_unwritten(client.clone());
        jobs.leave_unwritten(client.clone());
        assert!(!jobs.rest(), "there is something to do");
        assert!(matches!(jobs.take(), Some((_, _, unwritten)) if unwritten.is_empty()));
        assert_eq!(jobs.arrived().len(), 1);
        assert!(jobs.take_unwritten().is_empty());
    }

    #[test]
    fn a_client_that_does_not_read_holds_nobody_back_and_comes_first_afterwards() {
        let (jobs, [slow, quick]) = (Jobs::new(1), [(); 2].map(|()| Arc::new(Client::default())));
        slow.0.store(true, Ordering::SeqCst);
        for (client, number) in [(&slow, 0), (&quick, 1), (&slow, 2)] {
            jobs.push((client.clone(), number));
        }
        assert_eq!(taken(&jobs), [1]);
        slow.0.store(false, Ordering::SeqCst);
        jobs.push((quick, 3));
        let _ = jobs.kick();
        assert_eq!(taken(&jobs), [0, 2, 3]);
    }

    #[test]
    fn the_end_waits_for_threads_that_rest_and_not_for_handlers() {
        let jobs = Arc::new(Jobs::new(2));
        let client = Arc::new(Client::default());
        jobs.push((client, 0));
        assert_eq!(jobs.kick(), ThreadNeed::Thread);
        let own = jobs.clone();
        let thread = thread::spawn(move || {
            drop(own.arrived());
            assert!(own.take().is_some());
            own.handles();
            assert!(own.handled());
            while !own.leave() {
                own.rest();
            }
        });
        while jobs.lock().idle == 0 {
            thread::yield_now();
        }
        jobs.stop();
        assert_eq!(jobs.threads(), 0);
        thread.join().unwrap();
    }
}
