//! Exceptions of handlers as errors for the client.

use crate::values::error::Import;
use crate::values::json::to_json;
use crate::values::options;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

static BASE: Import = Import::new("mcp_resources.errors", "McpError");
static READ_FAILED: Import = Import::new("mcp_resources.errors", "ReadFailedError");

/// The error for the client that a handler raised; `None` for any other exception, which is only logged.
pub(crate) fn read_error(error: &Bound<'_, PyAny>) -> PyResult<Option<ReadError>> {
    let py = error.py();
    if !error.is_instance(&BASE.get(py)?)? {
        return Ok(None);
    }
    // An error of another server is logged, and not passed on to the client.
    if error.is_instance(&READ_FAILED.get(py)?)? {
        return Ok(None);
    }
    let kind: Option<String> = error.getattr(intern!(py, "kind"))?.extract()?;
    let mut raised = None;
    let member = |name: &str| -> PyResult<OptionValue> {
        match error.getattr_opt(PyString::intern(py, name))?.filter(|member| !member.is_none()) {
            Some(member) if name == "data" => to_json(&member, name).map(OptionValue::Text),
            Some(member) => options::convert(&member),
            None => Ok(OptionValue::None),
        }
    };
    let found = ReadError::from_parts(kind.as_deref(), |name| {
        member(name).unwrap_or_else(|error| {
            raised = Some(error);
            OptionValue::Other
        })
    });
    let refused = |error: OptionError| PyTypeError::new_err(error.to_string());
    raised.map_or_else(|| found.map_err(refused), Err)
}
