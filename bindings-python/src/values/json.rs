//! JSON text of values, and values of JSON text.

use crate::values::error::Import;
use pyo3::prelude::*;

static TO_JSON: Import = Import::new("mcp_resources.results", "to_json");
static COMPACT: Import = Import::new("mcp_resources.encoding", "compact");
/// The function `json.loads`.
pub(crate) static LOADS: Import = Import::new("json", "loads");

/// JSON text of a value. `name` is what errors call it.
pub(crate) fn to_json(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let py = value.py();
    TO_JSON.get(py)?.call1((value, py.None(), name))?.extract()
}

/// JSON text of a value that was JSON before.
pub(crate) fn dumps(value: &Bound<'_, PyAny>) -> PyResult<String> {
    COMPACT.get(value.py())?.call1((value,))?.extract()
}

/// The value of a JSON text.
pub(crate) fn loads<'py>(py: Python<'py>, text: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    match text {
        Some(text) => LOADS.get(py)?.call1((text,)),
        None => Ok(py.None().into_bound(py)),
    }
}
