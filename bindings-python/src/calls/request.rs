//! Converts a request of the engine into the arguments of a user's function.

use crate::values::json::loads;
use crate::values::template::value_to_py;
use mcp_resources_runtime::transport::{RequestParams, WorkRequest};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The value of the argument with this name. The arguments of a tool or prompt are JSON text, which its function converts.
pub(crate) fn value<'py>(
    py: Python<'py>,
    request: &WorkRequest<'_>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match &request.params {
        RequestParams::Read { params, .. } => {
            let value = params.as_ref().and_then(|params| params.get(name));
            value.map(|value| value_to_py(py, value)).transpose()
        }
        RequestParams::Complete { value, .. } if name == "value" => {
            Ok(Some(PyString::new(py, value).into_any()))
        }
        RequestParams::Complete { arguments, .. } => {
            let chosen = PyDict::new(py);
            for (name, value) in arguments {
                chosen.set_item(&**name, &**value)?;
            }
            Ok(Some(chosen.into_any()))
        }
        RequestParams::Access { .. } if name == "principal" => {
            Ok(Some(PyString::new(py, request.who.principal()).into_any()))
        }
        RequestParams::Access { questions } => {
            let all = PyList::empty(py);
            for question in questions.iter() {
                let values = PyDict::new(py);
                for (name, value) in question.params.iter().flat_map(|params| params.iter()) {
                    values.set_item(name, value_to_py(py, value)?)?;
                }
                all.append(values)?;
            }
            Ok(Some(all.into_any()))
        }
        RequestParams::List { cursor } => {
            Ok(cursor.as_ref().map(|cursor| PyString::new(py, cursor).into_any()))
        }
        RequestParams::Tool { arguments, .. } | RequestParams::Prompt { arguments, .. } => {
            Ok(Some(PyString::new(py, arguments).into_any()))
        }
        RequestParams::Call { params: None, .. } => Ok(Some(PyDict::new(py).into_any())),
        RequestParams::Call { params, .. } => loads(py, params.as_deref()).map(Some),
    }
}
