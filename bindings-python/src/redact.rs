//! The `redact` function, which is called with contents before they are encoded.

use crate::context::loads;
use crate::contextvars::CallContext;
use crate::convert::{Entry, HandlerResult, parts};
use crate::error::{self, Import};
use crate::function::Function;
use mcp_resources_engine::connection::{Answer, Contents, PlainContents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::transport::Peer;
use mcp_resources_runtime::transport::pump::PumpGate;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::sync::{Arc, LazyLock, OnceLock};

static CONTENTS: Import = Import::new("mcp_resources.results", "Contents");

/// Admits threads of providers that call a Python function. It is closed before the interpreter exits.
pub(crate) static GATE: LazyLock<PumpGate> = LazyLock::new(PumpGate::default);

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
        let Some(_inside) = GATE.enter() else { return Answer::Failed(ReadError::Failed) };
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
    if let Ok(Some(known)) = error::read_error(error.value(py)) {
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

impl HandlerResult {
    /// Passes the contents of a read of `uri` to `redact`. An error fails the read, and none of the contents are sent.
    pub(crate) fn redacted(
        self,
        redactor: Option<&Redactor>,
        function: &Function,
        uri: &str,
        py: Python<'_>,
    ) -> Self {
        let Some(redactor) = redactor else { return self };
        let passed = match self {
            Self::Contents { entries, cache } => {
                let contents = entries.iter().map(Entry::contents).collect();
                redactor.pass(uri, ReadResult { contents, cache }, py)
            }
            Self::Answer(Answer::Gathered(gather)) => match gather.into_answer() {
                Answer::Contents(mut result) => {
                    // It is the resource's.
                    result.contents.iter_mut().for_each(|one| one.mime_type = None);
                    redactor.pass(uri, result, py)
                }
                other => return Self::Answer(other),
            },
            other => return other,
        };
        passed.unwrap_or_else(|error| Self::raised(function, uri, error, py))
    }
}
