//! The author's function that looks at contents before they are encoded.

use crate::context::loads;
use crate::convert::{Data, Entry, Given, parts};
use crate::error::{self, Import};
use crate::function::Function;
use mcp_resources_engine::connection::{Answer, Body, Contents, Plain, ReadResult};
use mcp_resources_engine::error::ReadError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static CONTENTS: Import = Import::new("mcp_resources.results", "Contents");

/// How long the end of the interpreter waits for providers' threads to leave the function.
const LEAVING: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(1);

/// The author's function, called by handlers' threads and by providers' own.
pub(crate) struct Redactor {
    pub(crate) function: Py<PyAny>,
    /// How many threads of providers are inside, or wait for the interpreter.
    inside: AtomicUsize,
    closed: AtomicBool,
}

/// A thread of a provider's is inside.
struct Inside<'r>(&'r Redactor);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Redactor {
    pub(crate) fn new(function: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self { function, inside: AtomicUsize::new(0), closed: AtomicBool::new(false) })
    }

    /// What it makes of what a provider has read, on a thread of the provider's. After the interpreter has begun to end every
    /// read fails: a thread that enters it then dies where it stands.
    pub(crate) fn provided(&self, uri: &str, answer: Answer<'static>) -> Answer<'static> {
        let Answer::Contents(result) = answer else { return answer };
        self.inside.fetch_add(1, Ordering::SeqCst);
        let _inside = Inside(self);
        if self.closed.load(Ordering::SeqCst) {
            return Answer::Failed(ReadError::Failed);
        }
        let passed = Python::try_attach(|py| self.passed(uri, result, py));
        passed.unwrap_or(Answer::Failed(ReadError::Failed))
    }

    fn passed(&self, uri: &str, result: ReadResult<'static>, py: Python<'_>) -> Answer<'static> {
        let passed = Given::provided(result, py).and_then(|given| given.passed(self.function.bind(py), uri));
        passed.map_or_else(|error| failed(uri, error, py), |given| given.answer(owned))
    }

    /// The interpreter is about to end. Without it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let until = Instant::now() + LEAVING;
        while self.inside.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    /// This process was forked: threads of the parent's are not in it.
    pub(crate) fn forked(&self) {
        self.inside.store(0, Ordering::SeqCst);
    }
}

/// Why a provider's read has failed: an error that is meant for the client, or one that the author sees in the log.
fn failed(uri: &str, error: PyErr, py: Python<'_>) -> Answer<'static> {
    if let Ok(Some(known)) = error::read_error(error.value(py)) {
        return Answer::Failed(known);
    }
    error::log_failure(py, "redact", uri, error);
    Answer::Failed(ReadError::Failed)
}

/// The same, without anything of the interpreter's.
fn owned(answer: Answer<'_>) -> Answer<'static> {
    let own = |text: Cow<'_, str>| Cow::<'static, str>::Owned(text.into_owned());
    let whole = |one: Contents<'_>| {
        let body = match one.body.into_plain()? {
            Plain::Text(text) => Body::Text(own(text)),
            Plain::Blob(bytes) => Body::Blob(Cow::Owned(bytes.into_owned())),
        };
        Some(Contents {
            uri: one.uri.map(own),
            mime_type: one.mime_type.map(own),
            body,
            meta: one.meta.map(own),
        })
    };
    match answer {
        Answer::Contents(ReadResult { contents, cache }) => {
            Answer::Contents(ReadResult { contents: contents.into_iter().filter_map(whole).collect(), cache })
        }
        _ => Answer::Failed(ReadError::Failed),
    }
}

impl Given {
    /// What a provider has read, as the author sees it.
    fn provided(result: ReadResult<'static>, py: Python<'_>) -> PyResult<Self> {
        let text = |text: Option<Cow<'_, str>>| {
            text.map(|text| PyBackedStr::try_from(PyString::new(py, &text))).transpose()
        };
        let entry = |one: Contents<'static>| {
            let unsound = || PyValueError::new_err("a provider gave what is no base64");
            let data = Data::plain(one.body.into_plain().ok_or_else(unsound)?);
            let meta = one.meta.map(Cow::into_owned);
            Ok(Entry { uri: text(one.uri)?, mime_type: text(one.mime_type)?, data, meta })
        };
        let entries = result.contents.into_iter().map(entry).collect::<PyResult<_>>()?;
        Ok(Self::Contents { entries, cache: result.cache })
    }

    /// What `redact` makes of the contents of a read of `uri`. Its error fails the read, and nothing of them is left.
    pub(crate) fn redacted(
        self,
        redactor: Option<&Redactor>,
        function: &Function,
        uri: &str,
        py: Python<'_>,
    ) -> Self {
        let Some(redactor) = redactor else { return self };
        self.passed(redactor.function.bind(py), uri)
            .unwrap_or_else(|error| Self::raised(function, uri, error, py))
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

impl Data {
    fn plain(plain: Plain<'_>) -> Self {
        match plain {
            Plain::Text(text) => Self::Own(text.into_owned()),
            Plain::Blob(bytes) => Self::Copied(bytes.into_owned()),
        }
    }
}

impl Entry {
    /// What chunks made: its URI and media type are the resource's.
    fn gathered(contents: Contents<'static>) -> Option<Self> {
        let data = Data::plain(contents.body.into_plain()?);
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
