//! Results and exceptions of handlers, as the core takes them: converted and redacted.

use crate::calls::contextvars::CallContext;
use crate::calls::function::Function;
use crate::calls::redact::Redactor;
use crate::values::contents::{HandlerResult, is_plain};
use crate::values::error;
use crate::values::raised::read_error;
use mcp_resources_engine::connection::Answer;
use mcp_resources_engine::error::{ErrorPurpose, ReadError};
use pyo3::exceptions::asyncio::CancelledError;
use pyo3::prelude::*;
use std::sync::Arc;

/// A call that has ended.
pub(crate) struct EndedCall<'a> {
    pub(crate) purpose: ErrorPurpose,
    pub(crate) function: &'a Py<Function>,
    /// The URI or the operation, for the log.
    pub(crate) what: &'a str,
    /// The context of the call: a conversion may run code of the program, such as an encoder, `redact`, or the generator
    /// behind a list.
    pub(crate) context: &'a CallContext,
    pub(crate) redactor: Option<&'a Arc<Redactor>>,
}

impl EndedCall<'_> {
    /// Reads its result or its exception, and redacts it. Unexpected exceptions are logged.
    pub(crate) fn read(&self, py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) -> HandlerResult {
        let purpose = self.purpose;
        let is_simple = purpose == ErrorPurpose::Read && self.redactor.is_none();
        if is_simple && result.as_ref().is_ok_and(is_plain) {
            return converted(purpose, self.function.get(), self.what, result, None, py);
        }
        let function = self.function.clone_ref(py);
        let what = self.what.to_owned();
        let redactor = self.redactor.cloned();
        let result = result.map(Bound::unbind);
        let read = self.context.within(py, move |py| {
            let result = result.map(|value| value.into_bound(py));
            converted(purpose, function.get(), &what, result, redactor.as_deref(), py)
        });
        read.unwrap_or_else(|error| raised(purpose, self.function.get(), self.what, error, py))
    }
}

fn converted(
    purpose: ErrorPurpose,
    function: &Function,
    what: &str,
    result: PyResult<Bound<'_, PyAny>>,
    redactor: Option<&Redactor>,
    py: Python<'_>,
) -> HandlerResult {
    let json_type = function.json_type.as_deref();
    let given = result.and_then(|value| HandlerResult::read(purpose, &value, json_type, &function.shape));
    let given = given.unwrap_or_else(|error| raised(purpose, function, what, error, py));
    let Some(redactor) = redactor else { return given };
    redactor.redact(given, what, py).unwrap_or_else(|error| raised(purpose, function, what, error, py))
}

/// The answer for an exception: an error for the client, or a failure that is logged.
fn raised(
    purpose: ErrorPurpose,
    function: &Function,
    what: &str,
    error: PyErr,
    py: Python<'_>,
) -> HandlerResult {
    let value = error.value(py);
    let known = HandlerResult::raised_result(purpose, value).and_then(|result| match result {
        Some(result) => Ok(Some(result)),
        None => Ok(read_error(value)?.map(HandlerResult::failed)),
    });
    let failed = |error: &PyErr| {
        error::log(py, &error::FAILED, (&function.name, what, error.value(py)));
        HandlerResult::failed(ReadError::Failed)
    };
    match known {
        Ok(Some(given)) => {
            if matches!(given, HandlerResult::Answer(Answer::Failed(ReadError::NotFound))) {
                error::log(py, &error::ABSENT, (&function.name, what, value));
            }
            given
        }
        // A cancelled call is logged where its task ends.
        Ok(None) if error.is_instance_of::<CancelledError>(py) => HandlerResult::failed(ReadError::Failed),
        Ok(None) => failed(&error),
        Err(other) => failed(&other),
    }
}
