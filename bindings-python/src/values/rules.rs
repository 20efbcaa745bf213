//! Options of HTTP, from keyword arguments.

use crate::values::error::{self, unexpected};
use crate::values::options::set;
use mcp_resources_engine::http::{Rules, RulesError};
use mcp_resources_engine::option::NamedOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The options of the HTTP server that are set in Python.
const IN_PYTHON: &[&str] = &["host", "port"];

/// Reads the options of an endpoint into what it has so far.
pub(crate) fn read(mut rules: Rules, fields: &Bound<'_, PyDict>) -> PyResult<Rules> {
    for (name, value) in fields {
        let name = name.cast::<PyString>()?.to_str()?;
        if !Rules::NAMES.contains(&name) {
            return Err(unexpected("option", name, &[IN_PYTHON, Rules::NAMES].concat()));
        }
        set(&mut rules, name, &value)?;
    }
    Ok(rules)
}

/// Converts the error about the options.
pub(crate) fn refused(py: Python<'_>, error: &RulesError) -> PyErr {
    error::raise(py, "Registration", (error.to_string(),))
}
