//! The jobs of the worker threads.
//!
//! Threads stay attached to the interpreter for life and detach while they wait. At most one woken thread is on its way
//! at a time, waiting for the interpreter: it gets in at the moment when a handler blocks, or after a switch interval.
//! So short handlers run one after another on one thread without a wake-up each, and a slow one holds nobody back.
//! A thread leaves its answers unwritten for the next one only if there is such a thread, which writes them first.
//!
//! Before the interpreter ends, every thread leaves except those inside handlers: a thread that comes back to an
//! interpreter that is gone dies where it stands, which frames of Rust do not survive.

use crate::peer::Client;
use crate::pending::Pending;
use crate::server::Host;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One call of a handler.
pub(crate) struct Job {
    pub(crate) run: Py<PyAny>,
    pub(crate) args: Py<PyTuple>,
    pub(crate) kwargs: Option<Py<PyDict>>,
    pub(crate) pending: Py<Pending>,
    pub(crate) client: Client,
}

/// Those whose output is to be written.
type Clients = Vec<Client>;
type JobParts = (Py<PyAny>, Py<PyTuple>, Option<Py<PyDict>>, Py<Pending>);

/// How long the end of the interpreter waits for threads to leave.
const LEAVING: Duration = Duration::from_secs(1);
/// How often a forked process tries to take the lock of its parent's queue.
const FORK_TRIES: usize = 10_000;

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Queue {
    most: usize,
    state: Mutex<State>,
    bell: Condvar,
    /// A thread has left, or entered a handler.
    gone: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs of clients that do not read. They start when the client reads again, and do not delay other clients' jobs.
    stalled: VecDeque<Job>,
    threads: usize,
    idle: usize,
    /// How many idle threads are called and have not woken yet.
    called: usize,
    /// A thread was called, or started, and is not in the interpreter yet.
    arriving: usize,
    /// Those whose output is not written.
    unwritten: Clients,
    /// How many threads are inside a handler.
    handling: usize,
    stopped: bool,
}

/// What must be done about waiting jobs.
pub(crate) enum Need {
    Nothing,
    Thread,
}

#[pymethods]
impl Queue {
    #[new]
    fn new(most: usize) -> Self {
        Self { most: most.max(1), state: Mutex::default(), bell: Condvar::new(), gone: Condvar::new() }
    }

    /// A new thread is in the interpreter.
    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        self.arrived(py)
    }

    /// The next job: what to call, its arguments, and what to tell the outcome. Waits for one; `None` ends the thread.
    fn next(slf: &Bound<'_, Self>) -> PyResult<Option<JobParts>> {
        let (py, queue) = (slf.py(), slf.get());
        loop {
            if queue.leave() {
                return Ok(None);
            }
            if let Some((job, need, unwritten)) = queue.take() {
                if let Need::Thread = need {
                    Self::start_thread(slf, &job.client.runtime().host)?;
                }
                write(py, unwritten)?;
                if !job.pending.get().is_cancelled() {
                    queue.lock().handling += 1;
                    return Ok(Some((job.run, job.args, job.kwargs, job.pending)));
                }
                job.pending.get().abandon(py)?;
            } else {
                let unwritten = std::mem::take(&mut queue.lock().unwritten);
                write(py, unwritten)?;
                if py.detach(|| queue.rest()) {
                    queue.arrived(py)?;
                }
            }
        }
    }

    /// The thread that was to start cannot. Returns whether there is any other: the jobs wait for it.
    fn failed(&self) -> bool {
        let mut state = self.lock();
        state.threads -= 1;
        state.arriving -= 1;
        state.threads > 0
    }

    /// The next job for a thread that does not belong to the queue, because it has none: the same as `next`, without
    /// waiting.
    fn next_here(&self, py: Python<'_>) -> PyResult<Option<JobParts>> {
        loop {
            let mut state = self.lock();
            let job = if state.is_ready() { state.jobs.pop_front() } else { None };
            let unwritten = std::mem::take(&mut state.unwritten);
            let Some(job) = job else {
                drop(state);
                write(py, unwritten)?;
                return Ok(None);
            };
            let is_wanted = !job.pending.get().is_cancelled();
            state.handling += usize::from(is_wanted);
            drop(state);
            write(py, unwritten)?;
            if is_wanted {
                return Ok(Some((job.run, job.args, job.kwargs, job.pending)));
            }
            job.pending.get().abandon(py)?;
        }
    }

    /// How many jobs wait.
    #[getter]
    fn waiting(&self) -> usize {
        let state = self.lock();
        state.jobs.len() + state.stalled.len()
    }

    /// How many threads there are.
    #[getter]
    fn threads(&self) -> usize {
        self.lock().threads
    }
}

impl Queue {
    /// The interpreter is about to end: lets every thread leave that is not inside a handler. Without the interpreter.
    pub(crate) fn stop(&self) {
        self.retire();
        let inside = |state: &mut State| state.threads > state.handling;
        let waited = self.gone.wait_timeout_while(self.lock(), LEAVING, inside);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The server is gone: lets every thread leave.
    pub(crate) fn retire(&self) {
        self.lock().stopped = true;
        self.bell.notify_all();
    }

    /// This process was forked: the threads stayed behind, and so did the clients of what waits.
    pub(crate) fn forked(&self) {
        // A thread that stayed behind may hold the lock for ever; it does so for no more than a moment.
        for _ in 0..FORK_TRIES {
            if let Ok(mut state) = self.state.try_lock() {
                let before = std::mem::take(&mut *state);
                drop(state);
                // Dropping the jobs would speak to the parent's clients.
                std::mem::forget(before);
                return;
            }
            std::hint::spin_loop();
        }
    }

    pub(crate) fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
    }

    /// Sees to it that waiting jobs are taken. On the loop's thread, after the jobs of one read are pushed.
    pub(crate) fn kick(slf: &Bound<'_, Self>, host: &Host) -> PyResult<()> {
        let need = {
            let mut state = slf.get().lock();
            state.resume();
            slf.get().call_someone(&mut state)
        };
        match need {
            Need::Nothing => Ok(()),
            Need::Thread => Self::start_thread(slf, host),
        }
    }

    /// A handler has returned. Returns whether its outcome is still of interest.
    pub(crate) fn handled(&self) -> bool {
        let mut state = self.lock();
        state.handling -= 1;
        !state.stopped
    }

    /// Whether this thread is to end.
    fn leave(&self) -> bool {
        let mut state = self.lock();
        if state.stopped {
            state.threads -= 1;
            self.gone.notify_all();
        }
        state.stopped
    }

    /// An answer was appended whose writing is left to this queue's threads.
    pub(crate) fn leave_unwritten(&self, client: Client) {
        let mut state = self.lock();
        if !state.unwritten.iter().any(|other| other.is(&client)) {
            state.unwritten.push(client);
        }
    }

    fn take(&self) -> Option<(Job, Need, Clients)> {
        let mut state = self.lock();
        if !state.is_ready() {
            return None;
        }
        let job = state.jobs.pop_front()?;
        let need = self.call_someone(&mut state);
        let covered = state.arriving > 0 && !matches!(need, Need::Thread);
        let unwritten = if covered { Vec::new() } else { std::mem::take(&mut state.unwritten) };
        Some((job, need, unwritten))
    }

    /// Calls one idle thread, unless nothing waits or one is on its way.
    fn call_someone(&self, state: &mut State) -> Need {
        if !state.is_ready() || state.arriving > 0 || state.stopped {
            return Need::Nothing;
        }
        if state.idle > state.called {
            state.called += 1;
            state.arriving += 1;
            self.bell.notify_one();
        } else if state.threads < self.most {
            state.threads += 1;
            state.arriving += 1;
            return Need::Thread;
        }
        Need::Nothing
    }

    /// Has a thread started. Where the system has none, `spawn` says so to the queue.
    fn start_thread(slf: &Bound<'_, Self>, host: &Host) -> PyResult<()> {
        host.spawn.bind(slf.py()).call1((slf,)).map(drop)
    }

    /// Waits for a call; `false` if there is a job, or something to write, without one.
    fn rest(&self) -> bool {
        let mut state = self.lock();
        if state.is_ready() || !state.unwritten.is_empty() || state.stopped {
            return false;
        }
        state.idle += 1;
        while state.called == 0 && !state.stopped {
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        if state.called == 0 {
            return false;
        }
        state.called -= 1;
        true
    }

    /// A called thread is in the interpreter: what others left unwritten is its first duty.
    fn arrived(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock();
        state.arriving -= 1;
        let unwritten = std::mem::take(&mut state.unwritten);
        drop(state);
        write(py, unwritten)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether there is a job whose answer has room; it is then the first. No handler starts for a client that does not
    /// read.
    fn is_ready(&mut self) -> bool {
        while let Some(job) = self.jobs.front() {
            if !job.client.is_full() {
                return true;
            }
            self.stalled.extend(self.jobs.pop_front());
        }
        false
    }

    /// Puts the jobs of clients that read again back, before all others: they have waited longest.
    fn resume(&mut self) {
        if self.stalled.is_empty() {
            return;
        }
        let mut full: Clients = Vec::new();
        let (mut stalled, mut ready) = (VecDeque::new(), VecDeque::new());
        for job in self.stalled.drain(..) {
            let is_known = full.iter().any(|client| client.is(&job.client));
            if is_known || job.client.is_full() {
                if !is_known {
                    full.push(job.client.clone());
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

fn write(py: Python<'_>, unwritten: Clients) -> PyResult<()> {
    for client in unwritten {
        if py.detach(|| client.write_elsewhere()) {
            client.wake_loop();
        }
    }
    Ok(())
}
