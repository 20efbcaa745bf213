//! From an event of the core to the author's function: on the loop, as a task, or on a worker thread.

use crate::bell::delivering;
use crate::context::{self, Context};
use crate::convert::Given;
use crate::error;
use crate::function::{Arguments, BindError, Function, Mode, Supply};
use crate::peer::{self, Client};
use crate::pending::{Pending, Slot};
use crate::queue::Job;
use crate::request::value;
use mcp_resources_engine::connection::{Answer, Event, Events, RequestToken};
use mcp_resources_engine::error::{Purpose, ReadError};
use mcp_resources_host::transport::{Request, Work};
use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A handler that held the loop for longer is named.
const HELD: Duration = Duration::from_millis(100);

/// One call to make.
struct Call<'a> {
    client: &'a Client,
    token: RequestToken,
    purpose: Purpose,
    function: &'a Py<Function>,
    what: &'a str,
}

/// Handles events, and those that come of them.
pub(crate) fn handle_all(py: Python<'_>, client: &Client, events: Events<'_>) -> PyResult<()> {
    delivering(py, || work_off(py, client, client.taken(events).into_iter().map(Work::of)))?
}

/// Does work, and what comes of it.
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
    let mut collect = |outcome, rest: &mut Vec<Event<'static>>| match outcome {
        Ok(events) => rest.extend(client.taken(events)),
        Err(error) => result = Err(error),
    };
    for work in work {
        collect(one(py, client, &work), &mut rest);
    }
    while let Some(event) = rest.pop() {
        collect(one(py, client, &Work::of(event)), &mut rest);
    }
    result
}

fn one(py: Python<'_>, client: &Client, work: &Work<'_>) -> PyResult<Events<'static>> {
    match work {
        Work::Ask(request) => ask(py, client, request),
        Work::Cancel(token) => cancel(py, client, *token),
        Work::Replied(ask, answer) => {
            let waiting = client.runtime().asked(client.peer().connection(), *ask);
            waiting.map_or(Ok(()), |future| context::replied(py, &future, answer.as_ref()))?;
            Ok(Events::new())
        }
        Work::Nothing => Ok(Events::new()),
    }
}

/// Calls one of the author's functions.
fn ask(py: Python<'_>, client: &Client, request: &Request<'_>) -> PyResult<Events<'static>> {
    let functions = client.runtime().host.functions(request.handler);
    let Some(function) = functions.as_deref().and_then(|functions| functions.called(&request.asked)) else {
        // What was to be called has been removed in the meantime.
        return Ok(client.peer().respond(request.token, Answer::Failed(ReadError::NotFound)).events);
    };
    let (token, purpose, what) = (request.token, request.asked.purpose(), request.what());
    Call { client, token, purpose, function, what }.run(py, request)
}

/// Cancels a task. A function on a worker thread sees it in its context; one that has not started never does.
fn cancel(py: Python<'_>, client: &Client, token: RequestToken) -> PyResult<Events<'static>> {
    if let Some(task) = client.runtime().take_task(client.peer().connection(), token) {
        task.call_method0(py, intern!(py, "cancel"))?;
    }
    Ok(Events::new())
}

impl Call<'_> {
    fn run(&self, py: Python<'_>, request: &Request<'_>) -> PyResult<Events<'static>> {
        let function = self.function.get();
        let in_pool = function.mode == Mode::Pool && self.client.runtime().threads;
        let slot = if in_pool || function.takes_context || function.gathers {
            match self.detach() {
                Some(slot) => Some(slot),
                None => return Ok(Events::new()),
            }
        } else {
            None
        };
        let context = slot.as_ref().filter(|_| function.takes_context);
        let context =
            context.map(|slot| Bound::new(py, Context::new(request, self.client.clone(), slot.clone())));
        let context = context.transpose()?;
        let gather = slot.as_ref().filter(|_| function.gathers).and_then(|slot| slot.gather());
        let gather = gather.map(|gather| Bound::new(py, gather)).transpose()?;
        let values = |name: &str| value(py, request, name);
        let supply = Supply { value: &values, context: context.as_ref(), gather: gather.as_ref() };
        match function.bind(py, &supply) {
            Ok(arguments) if in_pool => self.queue(py, arguments, slot),
            Ok(arguments) if function.mode == Mode::Async => self.start(py, arguments, slot),
            Ok(arguments) => {
                let result = self.in_context(py, &arguments);
                self.answer(py, result, slot)
            }
            Err(BindError::Raised(error)) => self.answer(py, Err(error), slot),
            Err(BindError::Refused(error)) => match slot {
                Some(slot) => self
                    .pending(py, slot)
                    .give(py, Given::Answer(Answer::Failed(error)), false)
                    .map(|()| Events::new()),
                None => Ok(self.client.peer().respond(self.token, Answer::Failed(error)).events),
            },
        }
    }

    /// Takes the reply out of the connection; `None` if nobody waits for it any longer.
    fn detach(&self) -> Option<Arc<Slot>> {
        match self.client.peer().detach(self.token) {
            Some(reply) => Some(Slot::new(reply)),
            None => {
                self.client.peer().abandon(self.token);
                None
            }
        }
    }

    fn pending(&self, py: Python<'_>, slot: Arc<Slot>) -> Pending {
        Pending {
            client: self.client.clone(),
            token: self.token,
            purpose: self.purpose,
            function: self.function.clone_ref(py),
            what: self.what.to_owned(),
            slot,
        }
    }

    /// Gives the call to a worker thread.
    fn queue(
        &self,
        py: Python<'_>,
        arguments: Arguments<'_>,
        slot: Option<Arc<Slot>>,
    ) -> PyResult<Events<'static>> {
        let Some(slot) = slot else { return Ok(Events::new()) };
        let (run, args) = self.in_copy(py, &arguments)?;
        let pending = Py::new(py, self.pending(py, slot))?;
        let kwargs = arguments.keywords.map(Bound::unbind);
        let job =
            Job { run: run.unbind(), args: args.unbind(), kwargs, pending, client: self.client.clone() };
        self.client.runtime().host.queue.get().jobs.push(job);
        Ok(Events::new())
    }

    /// Starts a task. With eager tasks a handler that never waits is answered here.
    fn start(
        &self,
        py: Python<'_>,
        arguments: Arguments<'_>,
        slot: Option<Arc<Slot>>,
    ) -> PyResult<Events<'static>> {
        let function = self.function.get();
        let started = timed(py, &function.name, || {
            let coroutine = function.call.bind(py).call(arguments.positional, arguments.keywords.as_ref())?;
            self.client.runtime().start.bind(py).call((coroutine,), Some(function.task.bind(py)))
        });
        let task = match started {
            Ok(task) => task,
            Err(error) => return self.answer(py, Err(error), slot),
        };
        if self.client.runtime().eager && task.call_method0(intern!(py, "done"))?.is_truthy()? {
            let result = task.call_method0(intern!(py, "result"));
            return self.answer(py, result, slot);
        }
        let Some(slot) = slot.or_else(|| self.detach()) else {
            task.call_method0(intern!(py, "cancel"))?;
            return Ok(Events::new());
        };
        self.client.runtime().suspend(
            py,
            self.client.peer().connection(),
            self.token,
            task.clone().unbind(),
        )?;
        let pending = Bound::new(py, self.pending(py, slot))?;
        task.call_method1(intern!(py, "add_done_callback"), (pending,))?;
        Ok(Events::new())
    }

    /// Calls the function here and now.
    fn in_context<'py>(&self, py: Python<'py>, arguments: &Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (run, args) = self.in_copy(py, arguments)?;
        timed(py, &self.function.get().name, || run.call(args, arguments.keywords.as_ref()))
    }

    /// What calls the function in a copy of the server's context, and with what.
    fn in_copy<'py>(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let copy = self.client.runtime().context.bind(py).call_method0(intern!(py, "copy"))?;
        let call = self.function.get().call.bind(py);
        let args = std::iter::once(call.clone()).chain(arguments.positional.iter()).collect::<Vec<_>>();
        Ok((copy.getattr(intern!(py, "run"))?, PyTuple::new(py, args)?))
    }

    /// Answers on the loop's thread.
    fn answer(
        &self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        slot: Option<Arc<Slot>>,
    ) -> PyResult<Events<'static>> {
        let ending =
            result.as_ref().err().filter(|error| is_ending(py, error)).map(|error| error.clone_ref(py));
        let function = self.function.get();
        let slot = match slot {
            Some(slot) => Some(slot),
            None => {
                let given = Given::new(self.purpose, function, self.what, result, py);
                let redact = self.client.runtime().host.redactor.as_deref();
                let given = given.redacted(redact, function, self.what, py);
                let outcome = given.answer(|answer| self.client.peer().respond(self.token, answer));
                let events = peer::events(py, &function.name, outcome);
                return ending.map_or(Ok(events), Err);
            }
        };
        if let Some(slot) = slot {
            self.pending(py, slot).finish(py, result, false)?;
        }
        ending.map_or_else(|| Ok(Events::new()), Err)
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
        error::log_held(py, name, held);
    }
    result
}
