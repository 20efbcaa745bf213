//! Dispatch of the engine's events to user functions: on the event loop, as a task, or on a worker thread.

use crate::calls::client::Client;
use crate::calls::context::{self, Context};
use crate::calls::contextvars::{CallContext, with_function};
use crate::calls::function::{Arguments, BindError, Function, Mode, Supply};
use crate::calls::outcome::EndedCall;
use crate::calls::pending::{Pending, is_unfinished};
use crate::calls::queue::HandlerJob;
use crate::calls::request::value;
use crate::calls::waker::delivering;
use crate::values::contents::{Gather, HandlerResult};
use crate::values::error;
use mcp_resources_engine::connection::{Answer, Events, ListPage, RequestToken};
use mcp_resources_engine::error::{ErrorPurpose, ReadError};
use mcp_resources_runtime::transport::pump::PendingReply;
use mcp_resources_runtime::transport::{Work, WorkRequest};
use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A handler that held the loop for longer is named.
const HELD: Duration = Duration::from_millis(100);

/// One call to make.
struct Call<'a, 'm> {
    client: &'a Client,
    context: CallContext,
    request: &'a WorkRequest<'m>,
    function: &'a Py<Function>,
}

/// Handles events, and those that follow from them.
pub(crate) fn handle_all(py: Python<'_>, client: &Client, events: Events<'_>) -> PyResult<()> {
    delivering(py, || work_off(py, client, client.peer().work(events)))?
}

/// Does `work`, and the work that follows from it.
pub(crate) fn do_all<'m>(
    py: Python<'_>,
    client: &Client,
    work: impl IntoIterator<Item = Work<'m>>,
) -> PyResult<()> {
    delivering(py, || work_off(py, client, work))?
}

fn work_off<'m>(py: Python<'_>, client: &Client, work: impl IntoIterator<Item = Work<'m>>) -> PyResult<()> {
    let mut result = Ok(());
    let mut rest = Vec::new();
    let mut collect = |outcome, rest: &mut Vec<Work<'static>>| match outcome {
        Ok(events) => rest.extend(client.peer().work(events)),
        Err(error) => result = Err(error),
    };
    for work in work {
        collect(one(py, client, &work), &mut rest);
    }
    while let Some(work) = rest.pop() {
        collect(one(py, client, &work), &mut rest);
    }
    result
}

fn one(py: Python<'_>, client: &Client, work: &Work<'_>) -> PyResult<Events<'static>> {
    match work {
        Work::Ask(request) => ask(py, client, request),
        Work::Cancel(token) => cancel(py, client, *token),
        Work::Replied(ask, answer) => {
            let waiting = client.runtime().asks.take(client.peer().connection(), *ask);
            waiting.map_or(Ok(()), |future| context::replied(py, &future, answer.as_ref()))?;
            Ok(Events::new())
        }
        Work::Nothing => Ok(Events::new()),
    }
}

/// Calls a user function.
fn ask(py: Python<'_>, client: &Client, request: &WorkRequest<'_>) -> PyResult<Events<'static>> {
    let functions = client.runtime().state.functions(request.handler);
    let Some(function) = functions.as_deref().and_then(|functions| functions.called(&request.params)) else {
        // What was to be called has been removed in the meantime, or belongs to a server that is not there.
        let nothing = match request.params.purpose() {
            ErrorPurpose::List => Answer::Listed(ListPage::default()),
            _ => Answer::Failed(ReadError::NotFound),
        };
        return Ok(client.peer().respond(request.token, nothing).events);
    };
    Call { client, context: client.context(py)?, request, function }.run(py)
}

/// Cancels a task. A function on a worker thread sees it in its context; one that has not started never does.
fn cancel(py: Python<'_>, client: &Client, token: RequestToken) -> PyResult<Events<'static>> {
    if let Some(task) = client.runtime().tasks.take(client.peer().connection(), token) {
        task.call_method0(py, intern!(py, "cancel"))?;
    }
    Ok(Events::new())
}

impl Call<'_, '_> {
    fn run(&self, py: Python<'_>) -> PyResult<Events<'static>> {
        let function = self.function.get();
        let in_pool = function.mode == Mode::Pool && self.client.runtime().threads;
        let reply = if in_pool || function.takes_context || function.gathers {
            match self.detach() {
                Some(reply) => Some(reply),
                None => return Ok(Events::new()),
            }
        } else {
            None
        };
        let context = reply.as_ref().filter(|_| function.takes_context);
        let context = context
            .map(|reply| Bound::new(py, Context::new(self.request, self.client.clone(), reply.clone())));
        let context = context.transpose()?.map(Bound::into_any);
        let gather = reply.as_ref().filter(|_| function.gathers).and_then(|reply| reply.gather());
        let gather =
            gather.map(|(gather, cancelled)| Bound::new(py, Gather::new(gather, cancelled))).transpose()?;
        let gather = gather.map(Bound::into_any);
        let values = |name: &str| value(py, self.request, name);
        let supply = Supply { value: &values, context: context.as_ref(), gather: gather.as_ref() };
        match function.bind(py, &supply) {
            Ok(arguments) if in_pool => self.queue(py, arguments, reply),
            Ok(arguments) if function.mode == Mode::Async => self.start(py, &arguments, reply),
            Ok(arguments) => {
                let result = self.call(py, &arguments);
                self.settle(py, result, reply)
            }
            Err(BindError::Raised(error)) => self.answer(py, Err(error), reply),
            Err(BindError::Refused(error)) => {
                self.give(py, HandlerResult::Answer(Answer::Failed(error)), reply)
            }
        }
    }

    /// Takes the reply out of the connection; `None` if no client waits for it any longer.
    fn detach(&self) -> Option<Arc<PendingReply>> {
        PendingReply::detach(self.client.peer(), self.request.token)
    }

    fn pending(&self, py: Python<'_>, reply: Arc<PendingReply>) -> Pending {
        let function = self.function.clone_ref(py);
        let what = self.request.what().to_owned();
        let purpose = self.request.params.purpose();
        let context = self.context.clone_ref(py);
        Pending { client: self.client.clone(), purpose, function, what, context, reply }
    }

    /// Gives the call to a worker thread.
    fn queue(
        &self,
        py: Python<'_>,
        arguments: Arguments<'_>,
        reply: Option<Arc<PendingReply>>,
    ) -> PyResult<Events<'static>> {
        let Some(reply) = reply else { return Ok(Events::new()) };
        let run = self.context.runner(py)?.unbind();
        let args = with_function(self.function.get().call.bind(py), &arguments.positional)?.unbind();
        let pending = Py::new(py, self.pending(py, reply))?;
        let kwargs = arguments.keywords.map(Bound::unbind);
        let job = HandlerJob { run, args, kwargs, pending };
        self.client.runtime().state.queue.get().jobs.push(job);
        Ok(Events::new())
    }

    /// Starts a task. With eager tasks a handler that never waits is answered here.
    fn start(
        &self,
        py: Python<'_>,
        arguments: &Arguments<'_>,
        reply: Option<Arc<PendingReply>>,
    ) -> PyResult<Events<'static>> {
        let function = self.function.get();
        let started = timed(py, &function.name, || {
            let positional = &arguments.positional;
            let keywords = arguments.keywords.as_ref();
            let coroutine = self.context.call(function.call.bind(py), positional, keywords)?;
            self.client.runtime().start(&self.context, &coroutine, function)
        });
        let task = match started {
            Ok(task) => task,
            Err(error) => return self.answer(py, Err(error), reply),
        };
        if self.client.runtime().eager && task.call_method0(intern!(py, "done"))?.is_truthy()? {
            let result = task.call_method0(intern!(py, "result"));
            return self.settle(py, result, reply);
        }
        let Some(reply) = reply.or_else(|| self.detach()) else {
            task.call_method0(intern!(py, "cancel"))?;
            return Ok(Events::new());
        };
        Pending::follow(&Bound::new(py, self.pending(py, reply))?, &task)?;
        Ok(Events::new())
    }

    /// Calls the function here and now.
    fn call<'py>(&self, py: Python<'py>, arguments: &Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.get();
        timed(py, &function.name, || {
            self.context.call(function.call.bind(py), &arguments.positional, arguments.keywords.as_ref())
        })
    }

    /// Answers on the loop's thread, or after awaiting the function's return value.
    fn settle(
        &self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        reply: Option<Arc<PendingReply>>,
    ) -> PyResult<Events<'static>> {
        let purpose = self.request.params.purpose();
        let Some(value) = result.as_ref().ok().filter(|value| is_unfinished(purpose, value)) else {
            return self.answer(py, result, reply);
        };
        if let Some(reply) = reply.or_else(|| self.detach()) {
            Pending::finish_later(&Bound::new(py, self.pending(py, reply))?, value)?;
        }
        Ok(Events::new())
    }

    /// Answers on the loop's thread.
    fn answer(
        &self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        reply: Option<Arc<PendingReply>>,
    ) -> PyResult<Events<'static>> {
        let ending =
            result.as_ref().err().filter(|error| is_ending(py, error)).map(|error| error.clone_ref(py));
        let purpose = self.request.params.purpose();
        let what = self.request.what();
        let redactor = self.client.runtime().state.redactor.as_ref();
        let ended = EndedCall { purpose, function: self.function, what, context: &self.context, redactor };
        let given = ended.read(py, result);
        let events = self.give(py, given, reply)?;
        ending.map_or(Ok(events), Err)
    }

    /// Gives an answer, to the connection or to the reply that was taken out of it.
    fn give(
        &self,
        py: Python<'_>,
        given: HandlerResult,
        reply: Option<Arc<PendingReply>>,
    ) -> PyResult<Events<'static>> {
        if let Some(reply) = reply {
            return self.pending(py, reply).give(py, given, false).map(|()| Events::new());
        }
        let outcome = given.answer(|answer| self.client.peer().respond(self.request.token, answer));
        error::log_misuse(py, &self.function.get().name, outcome.misuse.as_deref());
        Ok(outcome.events)
    }
}

/// Whether an exception is to end the whole program.
fn is_ending(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py)
}

/// Names a function that held the loop.
fn timed<R>(py: Python<'_>, name: &str, call: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = call();
    let held = start.elapsed();
    if held > HELD {
        error::log(py, &error::HELD, (name, held.as_secs_f64()));
    }
    result
}
