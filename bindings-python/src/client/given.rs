//! Converts the result of a call for Python.

use crate::values::error::{Import, raise};
use mcp_resources_client::queue::ClientEvent;
use mcp_resources_engine::client::{Change, ClientError, Failure, ServerAbout};
use mcp_resources_engine::connection::{Contents, PlainContents};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

static CONTENTS: Import = Import::new("mcp_resources.client", "contents");
static FAILURE: Import = Import::new("mcp_resources.client", "failure");

/// The result of a call. `server` is the one that was called, if there was only one.
pub(crate) fn object<'py>(
    py: Python<'py>,
    event: ClientEvent,
    server: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    match event {
        ClientEvent::Failed(error) => Err(failure(py, &error, server)),
        ClientEvent::Contents(contents) => read(py, contents),
        ClientEvent::Entries(contents) => entries(py, contents),
        ClientEvent::Json(text) => Ok(PyString::new(py, &text).into_any()),
        ClientEvent::ListChanged(server) => Ok(PyString::new(py, &server).into_any()),
        ClientEvent::Listed(items) => {
            let items = items.into_iter().map(|item| (item.server.to_string(), item.uri, item.json));
            items.collect::<Vec<_>>().into_pyobject(py)
        }
        ClientEvent::Change(Change { server, uri, contents }) => {
            let contents = contents.map(|contents| read(py, contents)).transpose()?;
            (&*server, uri, contents).into_pyobject(py).map(Bound::into_any)
        }
        ClientEvent::Completion(found) => {
            let values: Vec<_> = found.values.iter().map(|value| &**value).collect();
            (values, found.total, found.has_more).into_pyobject(py).map(Bound::into_any)
        }
        ClientEvent::About(about) => {
            let ServerAbout { revision, info, capabilities, instructions, .. } = &*about;
            (revision.as_str(), info, capabilities, instructions).into_pyobject(py).map(Bound::into_any)
        }
        _ => Ok(py.None().into_bound(py)),
    }
}

/// Contents in the form that a read gives.
fn read<'py>(py: Python<'py>, contents: Vec<Contents<'static>>) -> PyResult<Bound<'py, PyAny>> {
    match <[_; 1]>::try_from(contents) {
        Ok([one]) => body(py, one.body.into_plain()),
        Err(many) => entries(py, many),
    }
}

fn entries<'py>(py: Python<'py>, contents: Vec<Contents<'static>>) -> PyResult<Bound<'py, PyAny>> {
    let parts = contents.into_iter().map(|part| {
        let uri = part.uri;
        let mime_type = part.mime_type;
        let meta = part.meta;
        Ok((body(py, part.body.into_plain())?, uri, mime_type, meta))
    });
    CONTENTS.get(py)?.call1((parts.collect::<PyResult<Vec<_>>>()?,))
}

fn body<'py>(py: Python<'py>, plain: Option<PlainContents<'_>>) -> PyResult<Bound<'py, PyAny>> {
    match plain {
        Some(PlainContents::Text(text)) => Ok(PyString::new(py, &text).into_any()),
        Some(PlainContents::Blob(bytes)) => Ok(PyBytes::new(py, &bytes).into_any()),
        None => {
            let odd = Failure::BadAnswer { reason: "a blob is not base64".into() };
            Err(failure(py, &odd.into(), None))
        }
    }
}

/// The exception for an error of the core.
pub(crate) fn failure(py: Python<'_>, error: &ClientError, server: Option<&str>) -> PyErr {
    let (code, data) = match error {
        ClientError::Failed(Failure::Server { code, data, .. }) => (Some(*code), data.as_deref()),
        _ => (None, None),
    };
    let parts = (error.kind(), error.to_string(), error.uri(), code, data, server);
    let made = FAILURE.get(py).and_then(|make| make.call1(parts));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for a wrong configuration or option.
pub(crate) fn misconfigured(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "Config", (message,))
}

/// The exception for a client that is used in a process that was forked from its own.
pub(crate) fn forked() -> PyErr {
    let text = "this client belongs to the process that made it: make a new one after os.fork()";
    PyRuntimeError::new_err(text)
}
