//! What calls of a client give, on its way from the native thread to the event loop.
//!
//! ```text
//!   a task of the native thread ──▶ Desk: words, in their order ──▶ a byte in the bell's pipe, one for a batch
//!   the loop hears ──▶ Calls::work ──▶ futures of asyncio, callbacks of the author's
//! ```
//!
//! Law: the native thread touches no object of Python, and no callback of an author runs on it.

use super::given::Given;
use crate::bell::{Bell, WORK};
use crate::error::{self, Import};
use mcp_resources_engine::client::{ClientError, Failure, Progress, Question};
use mcp_resources_host::client::Answer;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Notes and progress that come while so many words wait are left out: a loop that is held up must not cost memory.
const MOST_WORDS: usize = 1_000;

static FAILURE: Import = Import::new("mcp_resources.client", "failure");

/// What the native thread has for the loop.
pub(crate) enum Word {
    /// A call has ended.
    Done(u64, Result<Given, ClientError>),
    Progressed(u64, Progress),
    /// A server asks; the text of a JSON object answers it.
    Asked(u64, Question, oneshot::Sender<Result<String, String>>),
    Withdrawn(u64),
    /// A server, and a sentence about it.
    Noted(String, String),
}

/// What both threads hold.
pub(crate) struct Desk {
    pub(crate) bell: Arc<Bell>,
    words: Mutex<Vec<Word>>,
    next: AtomicU64,
}

impl Desk {
    pub(crate) fn new(bell: Arc<Bell>) -> Arc<Self> {
        Arc::new(Self { bell, words: Mutex::default(), next: AtomicU64::new(1) })
    }

    /// A number that is not used twice.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn put(&self, word: Word) {
        let mut words = lock(&self.words);
        let may_be_lost = matches!(word, Word::Noted(..) | Word::Progressed(..));
        if !may_be_lost || words.len() < MOST_WORDS {
            words.push(word);
        }
        drop(words);
        self.bell.say(WORK);
    }

    /// Asks the loop, and waits for its answer.
    pub(crate) fn ask(self: &Arc<Self>, question: Question) -> Answer {
        let desk = self.clone();
        Box::pin(async move {
            let (sender, answer) = oneshot::channel();
            let mut asking = Asking { number: Some(desk.number()), desk };
            if let Some(number) = asking.number {
                asking.desk.put(Word::Asked(number, question, sender));
            }
            let answer = answer.await;
            asking.number = None;
            answer.unwrap_or_else(|_| Err("it was not answered".into()))
        })
    }
}

/// A question that is open. Dropped before it is answered, it is withdrawn.
struct Asking {
    desk: Arc<Desk>,
    number: Option<u64>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.desk.put(Word::Withdrawn(number));
        }
    }
}

/// What the loop holds.
pub(crate) struct Calls {
    pub(crate) desk: Arc<Desk>,
    /// A weak proxy of the package's client.
    host: Py<PyAny>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    questions: Mutex<HashMap<u64, oneshot::Sender<Result<String, String>>>>,
    /// The process that has the native thread.
    process: u32,
}

/// An open call: the future to resolve, and the task that makes the call.
pub(crate) struct Waiting {
    pub(crate) future: Py<PyAny>,
    pub(crate) progress: Option<Py<PyAny>>,
    /// The server that is asked, if it is only one.
    pub(crate) server: Option<Arc<str>>,
    pub(crate) task: Option<AbortHandle>,
}

impl Calls {
    pub(crate) fn new(desk: Arc<Desk>, host: Py<PyAny>) -> Arc<Self> {
        let (waiting, questions) = Default::default();
        Arc::new(Self { desk, host, waiting, questions, process: std::process::id() })
    }

    /// `begin` starts the task with the number of the call.
    pub(crate) fn wait(&self, mut waiting: Waiting, begin: impl FnOnce(u64) -> AbortHandle) -> u64 {
        let number = self.desk.number();
        waiting.task = Some(begin(number));
        lock(&self.waiting).insert(number, waiting);
        number
    }

    /// Whether the native thread is there: a process that was forked does not have it.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Cancels a call.
    pub(crate) fn cancel(&self, number: u64) {
        if !self.is_here() {
            return;
        }
        let waiting = lock(&self.waiting).remove(&number);
        if let Some(task) = waiting.as_ref().and_then(|waiting| waiting.task.as_ref()) {
            task.abort();
        }
    }

    /// The numbers of the calls that somebody waits for.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        lock(&self.waiting).keys().copied().collect()
    }

    pub(crate) fn answer(&self, number: u64, answer: Result<String, String>) {
        if let Some(question) = lock(&self.questions).remove(&number) {
            // The question may have been withdrawn.
            let _ = question.send(answer);
        }
    }

    /// Works off what was put on the desk. On the loop's thread.
    pub(crate) fn work(&self, py: Python<'_>) -> PyResult<()> {
        self.desk.bell.heard();
        let words = std::mem::take(&mut *lock(&self.desk.words));
        for word in words {
            // One that fails, such as a future of a loop that is closed, does not stop the others.
            if let Err(error) = self.tell(py, word) {
                error.write_unraisable(py, None);
            }
        }
        Ok(())
    }

    fn tell(&self, py: Python<'_>, word: Word) -> PyResult<()> {
        let host = self.host.bind(py);
        match word {
            Word::Done(number, outcome) => self.finish(py, number, outcome)?,
            Word::Progressed(number, progress) => {
                let waiting = lock(&self.waiting);
                let callback = waiting.get(&number).and_then(|waiting| waiting.progress.as_ref());
                let callback = callback.map(|callback| callback.clone_ref(py));
                drop(waiting);
                if let Some(callback) = callback {
                    let Progress { progress, total, message } = progress;
                    host.call_method1(intern!(py, "_progressed"), (callback, progress, total, message))?;
                }
            }
            Word::Asked(number, Question { server, method, params, .. }, sender) => {
                lock(&self.questions).insert(number, sender);
                host.call_method1(intern!(py, "_asked"), (number, &*server, method, params))?;
            }
            Word::Withdrawn(number) => {
                lock(&self.questions).remove(&number);
                host.call_method1(intern!(py, "_withdrawn"), (number,))?;
            }
            Word::Noted(server, note) => {
                host.call_method1(intern!(py, "_noted"), (server, note))?;
            }
        }
        Ok(())
    }

    /// Gives a call's outcome to whom waits for it.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        number: u64,
        outcome: Result<Given, ClientError>,
    ) -> PyResult<()> {
        let Some(waiting) = lock(&self.waiting).remove(&number) else { return Ok(()) };
        let future = waiting.future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        let error = match outcome {
            Ok(given) => match given.object(py) {
                Ok(value) => {
                    return future.call_method1(intern!(py, "set_result"), (value,)).map(drop);
                }
                Err(error) => error,
            },
            Err(error) => failure(py, &error, waiting.server.as_deref()),
        };
        future.call_method1(intern!(py, "set_exception"), (error,)).map(drop)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.host)?;
        let Ok(waiting) = self.waiting.try_lock() else { return Ok(()) };
        waiting.values().try_for_each(|waiting| {
            visit.call(&waiting.future)?;
            visit.call(&waiting.progress)
        })
    }

    /// Cancels all calls and withdraws all questions.
    pub(crate) fn clear(self: &Arc<Self>) {
        if !self.is_here() {
            // What it holds would wake the thread of another process.
            std::mem::forget(self.clone());
            return;
        }
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for task in waiting.values().filter_map(|waiting| waiting.task.as_ref()) {
            task.abort();
        }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.desk.bell.close();
    }
}

/// The exception for an error of the core's.
pub(crate) fn failure(py: Python<'_>, error: &ClientError, server: Option<&str>) -> PyErr {
    let (code, data) = match error {
        ClientError::Failed(Failure::Server { code, data, .. }) => (Some(*code), data.as_deref()),
        _ => (None, None),
    };
    let parts = (error.kind(), error.to_string(), error.uri(), code, data, server);
    let made = FAILURE.get(py).and_then(|make| make.call1(parts));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A wrong configuration or option.
pub(crate) fn misconfigured(py: Python<'_>, message: &str) -> PyErr {
    error::raise(py, "ConfigError", (message,))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
