//! Conversion of errors between Rust and the classes of `mcp_resources.errors`, in both directions.

use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_engine::suggest;
use mcp_resources_template::InvalidTemplate;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

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

/// The functions for [`log`]: an exception of a handler; the text of a `ResourceNotFoundError`; an unexpected `CancelledError`;
/// a handler that blocked the event loop; a request that an option would allow; an answer that does not fit the request.
pub(crate) static FAILED: Import = Import::new("mcp_resources.log", "failed");
pub(crate) static ABSENT: Import = Import::new("mcp_resources.log", "absent");
pub(crate) static CANCELLED: Import = Import::new("mcp_resources.log", "cancelled");
pub(crate) static HELD: Import = Import::new("mcp_resources.log", "held");
pub(crate) static REFUSED: Import = Import::new("mcp_resources.log", "refused");
pub(crate) static MISUSED: Import = Import::new("mcp_resources.log", "misused");

/// An exception of the class of `mcp_resources.errors` whose name is `name` and `Error`.
pub(crate) fn raise<'py>(
    py: Python<'py>,
    name: &str,
    args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> PyErr {
    let make = || {
        let args = args.into_pyobject(py).map_err(|_| PyTypeError::new_err("arguments of an exception"))?;
        py.import("mcp_resources.errors")?.getattr(format!("{name}Error"))?.call1(args)
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// The exception for a refused registration. `first` is the function that it collides with.
pub(crate) fn registration(py: Python<'_>, error: &RegistrationError, first: Option<&str>) -> PyErr {
    let mut message = error.to_string();
    if let Some(first) = first {
        message = format!("{message}, for {first}; remove that one first, or pass replace=True");
    }
    match error {
        RegistrationError::InvalidUri { .. } => raise(py, "InvalidUri", (message,)),
        RegistrationError::InvalidTemplate { template, offset, .. } => {
            raise(py, "InvalidTemplate", (message, template, offset))
        }
        RegistrationError::TemplateConflict { template, with } => {
            raise(py, "TemplateConflict", (message, template, with))
        }
        _ => raise(py, "Registration", (message,)),
    }
}

pub(crate) fn invalid_template(py: Python<'_>, error: &InvalidTemplate) -> PyErr {
    raise(py, "InvalidTemplate", (error.to_string(), &error.template, error.offset))
}

/// The known name that is most similar to `given`.
#[pyfunction]
pub(crate) fn closest(given: &str, known: Vec<String>) -> Option<String> {
    suggest::closest(given, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The URI template for a text in the notation of a web framework.
#[pyfunction]
pub(crate) fn suggested_template(text: &str) -> Option<String> {
    suggest::template(text)
}

/// The error message for an unknown name, with the name that was probably meant.
#[pyfunction(name = "unexpected")]
pub(crate) fn unexpected_name(what: &str, given: &str, known: Vec<String>) -> String {
    suggest::unexpected(what, given, &known.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The exception for an unknown option, with the option that was probably meant.
pub(crate) fn unexpected(what: &str, given: &str, known: &[&str]) -> PyErr {
    PyTypeError::new_err(suggest::unexpected(what, given, known))
}

/// A value in an error message: its `repr`, shortened.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 120;
    let text = value.repr().map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Logs with one of the functions of `mcp_resources.log`.
pub(crate) fn log<'py>(py: Python<'py>, with: &Import, args: impl PyCallArgs<'py>) {
    if let Err(error) = with.get(py).and_then(|log| log.call1(args)) {
        error.write_unraisable(py, None);
    }
}

/// Logs an answer that does not fit its request, of the function `name`.
pub(crate) fn log_misuse(py: Python<'_>, name: &str, misuse: Option<&str>) {
    if let Some(misuse) = misuse {
        log(py, &MISUSED, (name, misuse));
    }
}
