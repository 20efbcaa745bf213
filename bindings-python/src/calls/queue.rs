//! The jobs of the worker threads: calls of `def` handlers. Threads stay attached to the interpreter for life and
//! detach while they wait. `Jobs` decides which thread takes which job.

use crate::calls::client::Client;
use crate::calls::jobs::{Job, JobWorker, Jobs};
use crate::calls::pending::Pending;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// One call of a handler.
pub(crate) struct HandlerJob {
    pub(crate) run: Py<PyAny>,
    pub(crate) args: Py<PyTuple>,
    pub(crate) kwargs: Option<Py<PyDict>>,
    pub(crate) pending: Py<Pending>,
}

type JobParts = (Py<PyAny>, Py<PyTuple>, Option<Py<PyDict>>, Py<Pending>);

/// The queue of jobs.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Queue {
    pub(crate) jobs: Jobs<HandlerJob>,
}

/// A thread that is in the interpreter.
struct Attached<'py>(Python<'py>);

#[pymethods]
impl Queue {
    #[new]
    fn new(max: usize) -> Self {
        Self { jobs: Jobs::new(max) }
    }

    /// Registers a new thread that is attached to the interpreter.
    fn enter(&self, py: Python<'_>) {
        self.jobs.enter(&Attached(py));
    }

    /// Waits for the next job: a function, its arguments, and the request. `None` ends the thread.
    fn next(&self, py: Python<'_>) -> PyResult<Option<JobParts>> {
        Ok(self.jobs.next(&Attached(py))?.map(parts))
    }

    /// Called when a thread could not be started. Returns whether there are other threads, which take its jobs.
    fn failed(&self) -> bool {
        self.jobs.failed()
    }

    /// Like `next`, without waiting, for a thread that does not belong to the queue.
    fn next_here(&self, py: Python<'_>) -> PyResult<Option<JobParts>> {
        Ok(self.jobs.next_here(&Attached(py))?.map(parts))
    }

    /// The number of jobs that wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.jobs.waiting()
    }

    /// The number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.jobs.threads()
    }
}

impl JobWorker<HandlerJob> for Attached<'_> {
    type Error = PyErr;

    fn start(&self, job: &HandlerJob) -> PyResult<()> {
        job.pending.get().client.runtime().state.start_thread(self.0)
    }

    fn begins(&self, job: &HandlerJob) -> PyResult<bool> {
        let pending = job.pending.get();
        if pending.reply.is_cancelled() { pending.abandon(self.0).map(|()| false) } else { Ok(true) }
    }

    fn detached<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.detach(work)
    }
}

impl Job for HandlerJob {
    type Client = Client;

    fn client(&self) -> &Client {
        &self.pending.get().client
    }

    fn is_full(client: &Client) -> bool {
        client.is_full()
    }

    fn is_same(one: &Client, other: &Client) -> bool {
        one.is(other)
    }

    fn write(client: &Client) {
        client.write_elsewhere();
    }
}

fn parts(job: HandlerJob) -> JobParts {
    (job.run, job.args, job.kwargs, job.pending)
}
