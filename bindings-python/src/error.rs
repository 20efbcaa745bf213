//! Errors over the border, in both directions, by the classes of `mcp_resources.errors`.

use mcp_resources::error::ReadError;
use mcp_resources::resource::RegistrationError;
use mcp_resources::template::InvalidTemplate;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use std::time::Duration;

/// An attribute of one of the package's modules, looked up once.
pub(crate) struct Import {
    module: &'static str,
    name: &'static str,
    cell: PyOnceLock<Py<PyAny>>,
}

impl Import {
    pub(crate) const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, cell: PyOnceLock::new() }
    }

    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let load = || Ok::<_, PyErr>(py.import(self.module)?.getattr(self.name)?.unbind());
        Ok(self.cell.get_or_try_init(py, load)?.bind(py).clone())
    }
}

static BASE: Import = Import::new("mcp_resources.errors", "McpError");
static TO_JSON: Import = Import::new("mcp_resources.results", "to_json");
static FAILED: Import = Import::new("mcp_resources.log", "failed");
static HELD: Import = Import::new("mcp_resources.log", "held");
static REFUSED: Import = Import::new("mcp_resources.log", "refused");
static MISUSED: Import = Import::new("mcp_resources.log", "misused");

/// An exception of the class `name` of `mcp_resources.errors`.
pub(crate) fn raise<'py>(
    py: Python<'py>,
    name: &str,
    args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> PyErr {
    let make = || {
        let args = args.into_pyobject(py).map_err(|_| PyTypeError::new_err("arguments of an exception"))?;
        py.import("mcp_resources.errors")?.getattr(name)?.call1(args)
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// What a registration was refused for.
pub(crate) fn registration(py: Python<'_>, error: &RegistrationError) -> PyErr {
    let message = error.to_string();
    match error {
        RegistrationError::InvalidUri { .. } => raise(py, "InvalidUri", (message,)),
        RegistrationError::InvalidTemplate { template, offset, .. } => {
            raise(py, "InvalidTemplate", (message, template, offset))
        }
        RegistrationError::TemplateConflict { template, with } => {
            raise(py, "TemplateConflict", (message, template, with))
        }
        _ => raise(py, "RegistrationError", (message,)),
    }
}

pub(crate) fn invalid_template(py: Python<'_>, error: &InvalidTemplate) -> PyErr {
    raise(py, "InvalidTemplate", (error.to_string(), &error.template, error.offset))
}

/// The error of the domain that a handler raised; `None` for any other exception, which is the author's to see.
pub(crate) fn read_error(error: &Bound<'_, PyAny>) -> PyResult<Option<ReadError>> {
    let py = error.py();
    if !error.is_instance(&BASE.get(py)?)? {
        return Ok(None);
    }
    let attribute = |name: &str| error.getattr(PyString::intern(py, name));
    let kind: Option<String> = attribute("kind")?.extract()?;
    Ok(Some(match kind.as_deref() {
        Some("not_found") => ReadError::NotFound,
        Some("access_denied") => ReadError::AccessDenied,
        Some("invalid_uri") => ReadError::InvalidUri,
        Some("input_required") => ReadError::InputRequired,
        Some("input_declined") => ReadError::InputDeclined,
        Some("invalid_parameter") => ReadError::InvalidParameter {
            parameter: attribute("parameter")?.extract()?,
            expected: attribute("expected")?.extract()?,
        },
        Some("size_exceeded") => ReadError::SizeExceeded {
            limit: attribute("limit")?.extract()?,
            size: attribute("size")?.extract()?,
        },
        Some("timeout") => ReadError::Timeout { after: attribute("after_ms")?.extract()? },
        Some("rate_limited") => {
            ReadError::RateLimited { retry_after: attribute("retry_after_ms")?.extract()? }
        }
        _ if error.hasattr("code")? => ReadError::Custom {
            code: attribute("code")?.extract()?,
            message: attribute("message")?.extract()?,
            data: optional_json(&attribute("data")?)?,
        },
        _ => return Ok(None),
    }))
}

/// JSON text of a value.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    TO_JSON.get(value.py())?.call1((value,))?.extract()
}

pub(crate) fn optional_json(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if value.is_none() { Ok(None) } else { to_json(value).map(Some) }
}

/// Logs an exception of the author's, with its traceback.
pub(crate) fn log_failure(py: Python<'_>, name: &str, what: &str, error: PyErr) {
    log(py, FAILED.get(py).and_then(|log| log.call1((name, what, error.value(py)))));
}

/// Logs what the author did wrong without raising anything.
pub(crate) fn log_misuse(py: Python<'_>, name: &str, what: &str) {
    log(py, MISUSED.get(py).and_then(|log| log.call1((name, what))));
}

/// Logs that a request was refused that an option would let in.
pub(crate) fn log_refused(py: Python<'_>, what: &str) {
    log(py, REFUSED.get(py).and_then(|log| log.call1((what,))));
}

/// Logs that a handler held the event loop.
pub(crate) fn log_held(py: Python<'_>, name: &str, held: Duration) {
    log(py, HELD.get(py).and_then(|log| log.call1((name, held.as_secs_f64()))));
}

fn log(py: Python<'_>, logged: PyResult<Bound<'_, PyAny>>) {
    if let Err(error) = logged {
        error.write_unraisable(py, None);
    }
}
