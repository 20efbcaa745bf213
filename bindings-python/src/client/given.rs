//! What a call gave, as Python takes it: made ready without the interpreter.

use crate::error::Import;
use mcp_resources_engine::client::{Change, ClientError, Failure, Listed, ServerAbout};
use mcp_resources_engine::connection::{Completion, Contents, Plain};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::borrow::Cow;
use std::sync::Arc;

static CONTENTS: Import = Import::new("mcp_resources.client", "contents");

/// See the module.
pub(crate) enum Given {
    /// The end of an iteration, or nothing to say.
    Nothing,
    Contents(Held),
    Items(Vec<Listed>),
    Change(String, String, Option<Held>),
    Completion(Completion<'static>),
    Text(String),
    About(Arc<ServerAbout>),
}

/// Contents whose blobs are decoded.
pub(crate) enum Held {
    Text(String),
    Blob(Vec<u8>),
    Many(Vec<Part>),
}

/// One of the contents.
pub(crate) struct Part {
    uri: Option<String>,
    mime_type: Option<String>,
    body: Plain<'static>,
    meta: Option<String>,
}

impl Held {
    /// `whole`: as a list, whatever there is.
    pub(crate) fn new(contents: Vec<Contents<'static>>, whole: bool) -> Result<Self, ClientError> {
        let mut parts = contents.into_iter().map(Part::new).collect::<Result<Vec<_>, _>>()?;
        if whole || parts.len() != 1 {
            return Ok(Self::Many(parts));
        }
        Ok(match parts.pop().map(|part| part.body) {
            Some(Plain::Text(text)) => Self::Text(text.into_owned()),
            Some(Plain::Blob(bytes)) => Self::Blob(bytes.into_owned()),
            None => Self::Many(parts),
        })
    }

    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Text(text) => Ok(PyString::new(py, &text).into_any()),
            Self::Blob(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
            Self::Many(parts) => {
                let parts = parts.into_iter().map(|part| {
                    let body = match part.body {
                        Plain::Text(text) => Self::Text(text.into_owned()),
                        Plain::Blob(bytes) => Self::Blob(bytes.into_owned()),
                    };
                    Ok((body.object(py)?, part.uri, part.mime_type, part.meta))
                });
                CONTENTS.get(py)?.call1((parts.collect::<PyResult<Vec<_>>>()?,))
            }
        }
    }
}

impl Part {
    fn new(contents: Contents<'static>) -> Result<Self, ClientError> {
        let odd = || Failure::BadAnswer { reason: "a blob is not base64".into() };
        Ok(Self {
            uri: contents.uri.map(Cow::into_owned),
            mime_type: contents.mime_type.map(Cow::into_owned),
            body: contents.body.into_plain().ok_or_else(odd)?,
            meta: contents.meta.map(Cow::into_owned),
        })
    }
}

impl Given {
    /// Contents in the form that a read gives.
    pub(crate) fn contents(contents: Vec<Contents<'static>>, whole: bool) -> Result<Self, ClientError> {
        Held::new(contents, whole).map(Self::Contents)
    }

    pub(crate) fn change(change: Change) -> Result<Self, ClientError> {
        let held = change.contents.map(|contents| Held::new(contents, false)).transpose()?;
        Ok(Self::Change(change.server.to_string(), change.uri, held))
    }

    pub(crate) fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Nothing => Ok(py.None().into_bound(py)),
            Self::Contents(held) => held.object(py),
            Self::Items(items) => {
                let items = items.into_iter().map(|item| (item.server.to_string(), item.uri, item.json));
                items.collect::<Vec<_>>().into_pyobject(py)
            }
            Self::Change(server, uri, held) => {
                let contents = held.map(|held| held.object(py)).transpose()?;
                (server, uri, contents).into_pyobject(py).map(Bound::into_any)
            }
            Self::Completion(found) => {
                let values: Vec<_> = found.values.iter().map(|value| &**value).collect();
                (values, found.total, found.has_more).into_pyobject(py).map(Bound::into_any)
            }
            Self::Text(text) => Ok(PyString::new(py, &text).into_any()),
            Self::About(about) => {
                let ServerAbout { revision, info, capabilities, instructions, .. } = &*about;
                (revision.as_str(), info, capabilities, instructions).into_pyobject(py).map(Bound::into_any)
            }
        }
    }
}
