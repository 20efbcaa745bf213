//! The jobs of the worker threads: calls of `def` handlers. Threads stay attached to the interpreter for life and detach while
//! they wait. Which thread takes what is decided in `Jobs`.

use crate::peer::Client;
use crate::pending::Pending;
use crate::server::Host;
use mcp_resources_host::transport::{self, Jobs, Need};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// One call of a handler.
pub(crate) struct Job {
    pub(crate) run: Py<PyAny>,
    pub(crate) args: Py<PyTuple>,
    pub(crate) kwargs: Option<Py<PyDict>>,
    pub(crate) pending: Py<Pending>,
    pub(crate) client: Client,
}

type JobParts = (Py<PyAny>, Py<PyTuple>, Option<Py<PyDict>>, Py<Pending>);

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Queue {
    pub(crate) jobs: Jobs<Job>,
}

#[pymethods]
impl Queue {
    #[new]
    fn new(most: usize) -> Self {
        Self { jobs: Jobs::new(most) }
    }

    /// A new thread is in the interpreter.
    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        write(py, self.jobs.arrived())
    }

    /// The next job: what to call, its arguments, and what to tell the outcome. Waits for one; `None` ends the thread.
    fn next(slf: &Bound<'_, Self>) -> PyResult<Option<JobParts>> {
        let (py, queue) = (slf.py(), slf.get());
        let jobs = &queue.jobs;
        loop {
            if jobs.leave() {
                return Ok(None);
            }
            if let Some((job, need, unwritten)) = jobs.take() {
                Self::meet(slf, need, &job.client.runtime().host)?;
                write(py, unwritten)?;
                if let Some(parts) = queue.begin(py, job)? {
                    return Ok(Some(parts));
                }
            } else {
                write(py, jobs.take_unwritten())?;
                if py.detach(|| jobs.rest()) {
                    write(py, jobs.arrived())?;
                }
            }
        }
    }

    /// The thread that was to start cannot. Returns whether there is any other: the jobs wait for it.
    fn failed(&self) -> bool {
        self.jobs.failed()
    }

    /// The next job for a thread that does not belong to the queue, because it has none: the same as `next`, without
    /// waiting.
    fn next_here(&self, py: Python<'_>) -> PyResult<Option<JobParts>> {
        loop {
            let (job, unwritten) = self.jobs.take_here();
            write(py, unwritten)?;
            let Some(job) = job else { return Ok(None) };
            if let Some(parts) = self.begin(py, job)? {
                return Ok(Some(parts));
            }
        }
    }

    /// How many jobs wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.jobs.waiting()
    }

    /// How many threads there are.
    #[getter]
    fn threads(&self) -> usize {
        self.jobs.threads()
    }
}

impl Queue {
    /// Sees to it that waiting jobs are taken. On the loop's thread, after the jobs of one read are pushed.
    pub(crate) fn kick(slf: &Bound<'_, Self>, host: &Host) -> PyResult<()> {
        Self::meet(slf, slf.get().jobs.kick(), host)
    }

    /// Has a thread started, if one is needed. Where the system has none, `spawn` says so to the queue.
    fn meet(slf: &Bound<'_, Self>, need: Need, host: &Host) -> PyResult<()> {
        match need {
            Need::Nothing => Ok(()),
            Need::Thread => host.spawn.bind(slf.py()).call1((slf,)).map(drop),
        }
    }

    /// The parts of a job that this thread does now; `None` if nobody waits for it any longer.
    fn begin(&self, py: Python<'_>, job: Job) -> PyResult<Option<JobParts>> {
        if job.pending.get().is_cancelled() {
            return job.pending.get().abandon(py).map(|()| None);
        }
        self.jobs.handles();
        Ok(Some((job.run, job.args, job.kwargs, job.pending)))
    }
}

impl transport::Job for Job {
    type Client = Client;

    fn client(&self) -> &Client {
        &self.client
    }

    fn is_full(client: &Client) -> bool {
        client.is_full()
    }

    fn is_same(one: &Client, other: &Client) -> bool {
        one.is(other)
    }
}

fn write(py: Python<'_>, unwritten: Vec<Client>) -> PyResult<()> {
    for client in unwritten {
        if py.detach(|| client.write_elsewhere()) {
            client.wake_loop();
        }
    }
    Ok(())
}
