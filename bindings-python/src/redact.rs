//! The author's function that looks at contents before they are encoded.

use crate::context::loads;
use crate::convert::{Data, Entry, Given, parts};
use crate::error::Import;
use crate::function::Function;
use mcp_resources_engine::connection::{Answer, Contents, Plain};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

static CONTENTS: Import = Import::new("mcp_resources.results", "Contents");

impl Given {
    /// What `redact` makes of the contents of a read of `uri`. Its error fails the read, and nothing of them is left.
    pub(crate) fn redacted(
        self,
        redact: Option<&Py<PyAny>>,
        function: &Function,
        uri: &str,
        py: Python<'_>,
    ) -> Self {
        let Some(redact) = redact else { return self };
        self.passed(redact.bind(py), uri).unwrap_or_else(|error| Self::raised(function, uri, error, py))
    }

    fn passed(self, redact: &Bound<'_, PyAny>, uri: &str) -> PyResult<Self> {
        let (entries, cache) = match self.whole() {
            Self::Contents { entries, cache } => (entries, cache),
            other => return Ok(other),
        };
        let mut all = Vec::with_capacity(entries.len());
        for entry in entries {
            let passed = redact.call1((entry.uri.as_deref().unwrap_or(uri), entry.to_py(redact.py())?))?;
            if !passed.is_instance(&CONTENTS.get(redact.py())?)? {
                return Err(PyTypeError::new_err("redact must return Contents"));
            }
            all.append(&mut parts(&passed, None, None)?.0);
        }
        Ok(Self::Contents { entries: all, cache })
    }

    /// Chunks as contents.
    fn whole(self) -> Self {
        let Self::Answer(Answer::Gathered(gather)) = self else { return self };
        match gather.into_answer() {
            Answer::Contents(result) => {
                let entries = result.contents.into_iter().filter_map(Entry::gathered).collect();
                Self::Contents { entries, cache: result.cache }
            }
            gathered @ Answer::Gathered(_) => Self::Answer(gathered),
            _ => Self::Contents { entries: Vec::new(), cache: None },
        }
    }
}

impl Entry {
    /// What chunks made: its URI and media type are the resource's.
    fn gathered(contents: Contents<'static>) -> Option<Self> {
        let data = match contents.body.into_plain()? {
            Plain::Text(text) => Data::Own(text.into_owned()),
            Plain::Blob(bytes) => Data::Copied(bytes.into_owned()),
        };
        Some(Self { uri: None, mime_type: None, data, meta: None })
    }

    /// The `Contents` that an author sees.
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let about = PyDict::new(py);
        about.set_item("uri", self.uri.as_deref())?;
        about.set_item("mime_type", self.mime_type.as_deref())?;
        about.set_item("meta", loads(py, self.meta.as_deref())?)?;
        let body = match &self.data {
            Data::Text(text) => PyString::new(py, text).into_any(),
            Data::Own(text) => PyString::new(py, text).into_any(),
            Data::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Data::Copied(bytes) => PyBytes::new(py, bytes).into_any(),
        };
        CONTENTS.get(py)?.call((body,), Some(&about))
    }
}
