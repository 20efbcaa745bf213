//! The `redact` function, which is called with contents before they are encoded.

use crate::calls::contextvars::CallContext;
use crate::calls::tracker::CallTracker;
use crate::values::contents::{Entry, HandlerResult, parts};
use crate::values::error::{self, Import};
use crate::values::json::loads;
use crate::values::raised::read_error;
use mcp_resources_engine::connection::{Answer, Contents, PlainContents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::transport::Peer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::sync::{Arc, LazyLock, OnceLock};

static CONTENTS: Import = Import::new("mcp_resources.results", "Contents");

/// The calls of Python functions by threads of providers. It is closed before the interpreter exits.
pub(crate) static PROVIDER_CALLS: LazyLock<CallTracker> = LazyLock::new(CallTracker::default);

/// The `redact` function, called on threads of handlers and of providers.
pub(crate) struct Redactor {
    pub(crate) function: Py<PyAny>,
    /// The context for contents of providers whose request has none.
    context: OnceLock<CallContext>,
}

impl Redactor {
    pub(crate) fn new(function: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self { function, context: OnceLock::new() })
    }

    pub(crate) fn serves_in(&self, py: Python<'_>, context: &CallContext) {
        let _ = self.context.set(context.clone_ref(py));
    }

    /// Redacts contents of a provider, on a thread of the provider. Once the interpreter exits every read fails, because
    /// a thread that enters it then is stopped.
    pub(crate) fn provided(
        self: &Arc<Self>,
        peer: &Peer,
        uri: &str,
        answer: Answer<'static>,
    ) -> Answer<'static> {
        let Answer::Contents(result) = answer else { return answer };
        let Some(_tracked) = PROVIDER_CALLS.begin() else { return Answer::Failed(ReadError::Failed) };
        let passed = Python::try_attach(|py| match self.pass_for(peer, uri, result, py) {
            // Touches nothing of the interpreter.
            Ok(given) => given.answer(|answer| match answer {
                Answer::Contents(result) => Answer::Contents(result.into_owned()),
                _ => Answer::Failed(ReadError::Failed),
            }),
            Err(error) => failed(uri, error, py),
        });
        passed.unwrap_or(Answer::Failed(ReadError::Failed))
    }

    /// Redacts contents that a provider has read for `peer`, in the context of the request.
    fn pass_for(
        self: &Arc<Self>,
        peer: &Peer,
        uri: &str,
        result: ReadResult<'static>,
        py: Python<'_>,
    ) -> PyResult<HandlerResult> {
        let request = peer.peer_data().and_then(|data| data.downcast_ref::<CallContext>());
        let known = request.or(self.context.get()).map(|context| context.copy(py));
        let redactor = self.clone();
        let uri = uri.to_owned();
        let context = known.unwrap_or_else(|| CallContext::current(py))?;
        context.within(py, move |py| redactor.pass(&uri, result, py))?
    }

    /// Redacts the contents of a read of `uri` that a handler gave. After an error the read fails, and nothing of them is left.
    pub(crate) fn redact(&self, given: HandlerResult, uri: &str, py: Python<'_>) -> PyResult<HandlerResult> {
        match given {
            HandlerResult::Contents { entries, cache } => {
                let contents = entries.iter().map(Entry::contents).collect();
                self.pass(uri, ReadResult { contents, cache }, py)
            }
            HandlerResult::Answer(Answer::Gathered(gather)) => match gather.into_answer() {
                Answer::Contents(mut result) => {
                    // It is the resource's.
                    result.contents.iter_mut().for_each(|one| one.mime_type = None);
                    self.pass(uri, result, py)
                }
                other => Ok(HandlerResult::Answer(other)),
            },
            other => Ok(other),
        }
    }

    /// Redacts contents that were read at `uri`.
    fn pass(&self, uri: &str, result: ReadResult<'_>, py: Python<'_>) -> PyResult<HandlerResult> {
        let mut entries = Vec::with_capacity(result.contents.len());
        for one in result.contents {
            let of = one.uri.as_deref().unwrap_or(uri).to_owned();
            let passed = self.function.bind(py).call1((of, shown(one, py)?))?;
            if !passed.is_instance(&CONTENTS.get(py)?)? {
                return Err(PyTypeError::new_err("redact must return Contents"));
            }
            entries.append(&mut parts(&passed, None, None)?.0);
        }
        Ok(HandlerResult::Contents { entries, cache: result.cache })
    }
}

/// The reason why a read of a provider failed: an error for the client, or one that is only logged.
fn failed(uri: &str, error: PyErr, py: Python<'_>) -> Answer<'static> {
    if let Ok(Some(known)) = read_error(error.value(py)) {
        return Answer::Failed(known);
    }
    error::log(py, &error::FAILED, ("redact", uri, error.value(py)));
    Answer::Failed(ReadError::Failed)
}

/// The `Contents` that the function gets.
fn shown<'py>(one: Contents<'_>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    let about = PyDict::new(py);
    about.set_item("uri", one.uri.as_deref())?;
    about.set_item("mime_type", one.mime_type.as_deref())?;
    about.set_item("meta", loads(py, one.meta.as_deref())?)?;
    let body = match one.body.into_plain() {
        Some(PlainContents::Text(text)) => PyString::new(py, &text).into_any(),
        Some(PlainContents::Blob(bytes)) => PyBytes::new(py, &bytes).into_any(),
        None => return Err(PyValueError::new_err("what should be base64 is not")),
    };
    CONTENTS.get(py)?.call((body,), Some(&about))
}
