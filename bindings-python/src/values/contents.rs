//! Converts results of handlers to those of the core: read once while holding the interpreter, serialized without it.

use crate::values::blocks;
use crate::values::error::{self, Import};
use crate::values::lock::lock;
use crate::values::resource::Resource;
use mcp_resources_engine::connection as core;
use mcp_resources_engine::connection::Cancelled;
use mcp_resources_engine::connection::{Answer, Body, Contents, InputAsk, InputRequest, ReadResult};
use mcp_resources_engine::error::{ErrorPurpose, ReadError};
use mcp_resources_engine::option::NamedOptions;
use mcp_resources_engine::resource::CacheHint;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::borrow::Cow;
use std::sync::Mutex;

static BYTES_OF: Import = Import::new("mcp_resources.encoding", "bytes_of");
static READ: Import = Import::new("mcp_resources.results", "read");
static INPUT_REQUIRED: Import = Import::new("mcp_resources.results", "InputRequired");
static TOOL_ERROR: Import = Import::new("mcp_resources.errors", "ToolError");
static INPUT_PARTS: Import = Import::new("mcp_resources.results", "input_parts");
static COMPLETION: Import = Import::new("mcp_resources.results", "completion");
static PAGE: Import = Import::new("mcp_resources.results", "page");
static METHOD: Import = Import::new("mcp_resources.results", "method");
static NAMED: Import = Import::new("mcp_resources.blocks", "result_parts");

/// The result of a handler.
pub(crate) enum HandlerResult {
    /// Contents in Python objects.
    Contents {
        entries: Vec<Entry>,
        cache: Option<CacheHint>,
    },
    Answer(Answer<'static>),
}

/// One of the contents.
pub(crate) struct Entry {
    pub(crate) uri: Option<PyBackedStr>,
    pub(crate) mime_type: Option<PyBackedStr>,
    pub(crate) data: Data,
    pub(crate) meta: Option<String>,
}

/// `str` and `bytes` are read in place. Other buffers are copied, because they may change in the meantime.
pub(crate) enum Data {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

type EntryParts<'py> = (Option<PyBackedStr>, Option<PyBackedStr>, Bound<'py, PyAny>, Option<String>);
type HintParts = (u64, String);

impl HandlerResult {
    /// Reads the result of a handler. `json_type` is the media type of JSON that it returns; `shape` is passed to the
    /// conversion: the encoder of a reader, or the template of a lister.
    pub(crate) fn read(
        purpose: ErrorPurpose,
        value: &Bound<'_, PyAny>,
        json_type: Option<&str>,
        shape: &Py<PyAny>,
    ) -> PyResult<Self> {
        match purpose {
            ErrorPurpose::Read => read(value, json_type, shape),
            ErrorPurpose::Complete => completion(value),
            ErrorPurpose::List => page(value, shape),
            ErrorPurpose::Call => method(value, shape),
            ErrorPurpose::Access => Ok(Self::Answer(Answer::Access(value.extract()?))),
            ErrorPurpose::Tool | ErrorPurpose::Prompt => named(purpose, value, shape),
        }
    }

    /// The questions of a raised `InputRequired`, or the sentence of a `ToolError`; `None` for any other exception.
    pub(crate) fn raised_result(purpose: ErrorPurpose, raised: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = raised.py();
        if raised.is_instance(&INPUT_REQUIRED.get(py)?)? {
            input(raised).map(Some)
        } else if purpose == ErrorPurpose::Tool && raised.is_instance(&TOOL_ERROR.get(py)?)? {
            let sentence: String = raised.str()?.extract()?;
            Ok(Some(Self::Answer(Answer::Tool(core::ToolResult::error(sentence)))))
        } else {
            Ok(None)
        }
    }

    pub(crate) fn failed(error: ReadError) -> Self {
        Self::Answer(Answer::Failed(error))
    }

    /// Roughly the number of bytes to serialize.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Contents { entries, .. } => entries.iter().map(|entry| entry.data.len()).sum(),
            Self::Answer(Answer::Listed(page)) => page.items.len() * 256,
            Self::Answer(Answer::Raw(result)) => result.members.len(),
            Self::Answer(Answer::Gathered(_)) => usize::MAX,
            Self::Answer(Answer::Tool(result)) => result.size(),
            Self::Answer(_) => 0,
        }
    }

    /// Lends the answer to `word`.
    pub(crate) fn answer<R>(self, word: impl FnOnce(Answer<'_>) -> R) -> R {
        match self {
            Self::Contents { entries, cache } => {
                let contents = entries.iter().map(Entry::contents).collect();
                word(Answer::Contents(ReadResult { contents, cache }))
            }
            Self::Answer(answer) => word(answer),
        }
    }
}

impl Entry {
    fn alone(data: Data) -> HandlerResult {
        HandlerResult::Contents {
            entries: vec![Self { uri: None, mime_type: None, data, meta: None }],
            cache: None,
        }
    }

    pub(crate) fn contents(&self) -> Contents<'_> {
        let lend = |text: &'_ Option<PyBackedStr>| text.as_ref().map(|text| Cow::Owned(text.to_string()));
        let body = match &self.data {
            Data::Text(text) => Body::Text(Cow::Borrowed(&**text)),
            Data::Bytes(bytes) => Body::Blob(Cow::Borrowed(&**bytes)),
        };
        Contents {
            uri: lend(&self.uri),
            mime_type: lend(&self.mime_type),
            body,
            meta: self.meta.as_deref().map(Cow::Borrowed),
        }
    }
}

impl Data {
    /// Text or bytes; `None` for anything else.
    pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(text) = value.cast::<PyString>() {
            return PyBackedStr::try_from(text.clone()).map(|text| Some(Self::Text(text)));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Some(Self::Bytes(bytes.clone().into())));
        }
        if value.is_exact_instance_of::<PyDict>() || value.is_exact_instance_of::<PyList>() {
            return Ok(None);
        }
        let bytes: Option<PyBackedBytes> = BYTES_OF.get(value.py())?.call1((value,))?.extract()?;
        Ok(bytes.map(Self::Bytes))
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Whether reading it runs no user code.
pub(crate) fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyBytes>()
}

fn read(value: &Bound<'_, PyAny>, json_type: Option<&str>, encoder: &Py<PyAny>) -> PyResult<HandlerResult> {
    let py = value.py();
    if let Ok(gather) = value.cast::<Gather>() {
        return gather.get().finish();
    }
    if let Some(data) = Data::read(value)? {
        return Ok(Entry::alone(data));
    }
    if value.is_instance(&INPUT_REQUIRED.get(py)?)? {
        return input(value);
    }
    let (entries, cache) = parts(value, json_type, Some(encoder))?;
    Ok(HandlerResult::Contents { entries, cache })
}

/// The contents of a result that is not a single text or bytes object.
pub(crate) fn parts(
    value: &Bound<'_, PyAny>,
    json_type: Option<&str>,
    encoder: Option<&Py<PyAny>>,
) -> PyResult<(Vec<Entry>, Option<CacheHint>)> {
    let (parts, hint): (Vec<EntryParts<'_>>, Option<HintParts>) =
        READ.get(value.py())?.call1((value, json_type, encoder))?.extract()?;
    let entry = |(uri, mime_type, body, meta): EntryParts<'_>| {
        let data = Data::read(&body)?
            .ok_or_else(|| PyTypeError::new_err("the body of Contents is not text or bytes"))?;
        Ok(Entry { uri, mime_type, data, meta })
    };
    let entries = parts.into_iter().map(entry).collect::<PyResult<_>>()?;
    Ok((entries, hint.map(|(ttl_ms, scope)| cache_hint(ttl_ms, &scope)).transpose()?))
}

fn input(value: &Bound<'_, PyAny>) -> PyResult<HandlerResult> {
    type Parts = (Vec<(String, String, String, String)>, Option<Vec<u8>>);
    let (asks, state): Parts = INPUT_PARTS.get(value.py())?.call1((value,))?.extract()?;
    let ask = |(key, kind, text, more): (String, String, String, String)| InputRequest {
        key: key.into(),
        ask: InputAsk::from_parts(&kind, text, more),
    };
    let requests = asks.into_iter().map(ask).collect();
    Ok(HandlerResult::Answer(Answer::InputRequired(core::InputRequired {
        requests,
        state: state.map(Cow::Owned),
    })))
}

fn completion(value: &Bound<'_, PyAny>) -> PyResult<HandlerResult> {
    let (values, total, has_more): (Vec<String>, _, _) =
        COMPLETION.get(value.py())?.call1((value,))?.extract()?;
    let values = values.into_iter().map(Cow::Owned).collect();
    Ok(HandlerResult::Answer(Answer::Completion(core::Completion { values, total, has_more })))
}

fn page(value: &Bound<'_, PyAny>, template: &Py<PyAny>) -> PyResult<HandlerResult> {
    let (items, next): (Vec<PyRef<'_, Resource>>, _) =
        PAGE.get(value.py())?.call1((value, template))?.extract()?;
    let items = items.iter().map(|item| item.resource.clone());
    Ok(HandlerResult::Answer(Answer::Listed(core::ListPage { next, ..core::ListPage::new(items) })))
}

fn method(value: &Bound<'_, PyAny>, encoder: &Py<PyAny>) -> PyResult<HandlerResult> {
    if value.is_instance(&INPUT_REQUIRED.get(value.py())?)? {
        return input(value);
    }
    let (members, result_type, meta): (String, Option<String>, Option<String>) =
        METHOD.get(value.py())?.call1((value, encoder))?.extract()?;
    let result_type = result_type.map(Cow::Owned);
    let meta = meta.map(Cow::Owned);
    Ok(HandlerResult::Answer(Answer::Raw(core::RawResult { members: members.into(), result_type, meta })))
}

/// The result of a tool or prompt. `shape` helps to convert it; `None` if a text is sent as it is. Other results of this
/// library are passed on, so that the core says which of them do not fit.
fn named(purpose: ErrorPurpose, value: &Bound<'_, PyAny>, shape: &Py<PyAny>) -> PyResult<HandlerResult> {
    let py = value.py();
    let is_tool = purpose == ErrorPurpose::Tool;
    if is_tool && shape.is_none(py) && value.is_exact_instance_of::<PyString>() {
        let text: String = value.extract()?;
        return Ok(HandlerResult::Answer(Answer::Tool(core::ToolResult::text(text))));
    }
    let (kind, parts): (String, Bound<'_, PyAny>) =
        NAMED.get(py)?.call1((value, shape, is_tool))?.extract()?;
    match &*kind {
        "tool" => blocks::tool(&parts),
        "prompt" => blocks::prompt(&parts),
        "input" => input(value),
        "completion" => completion(value),
        "contents" => read(value, None, &py.None()),
        _ => method(value, &py.None()),
    }
}

/// A caching hint from milliseconds and the word for its scope.
fn cache_hint(ttl_ms: u64, scope: &str) -> PyResult<CacheHint> {
    let mut hint = CacheHint { ttl_ms, ..CacheHint::default() };
    hint.set("cache_scope", scope.into()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(hint)
}

/// Collects the chunks of a generator.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Gather {
    gather: Mutex<Option<core::ContentsGatherer>>,
    cancelled: Cancelled,
}

#[pymethods]
impl Gather {
    /// Takes a chunk of text or bytes. Returns whether a further one is needed.
    fn push(&self, py: Python<'_>, chunk: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.cancelled.get() {
            return Ok(false);
        }
        let wrong = || format!("the generator yields {}, expected a text or bytes", error::shown(chunk));
        let data = Data::read(chunk)?.ok_or_else(|| PyTypeError::new_err(wrong()))?;
        let pushed = {
            let mut gather = lock(&self.gather);
            match (gather.as_mut(), &data) {
                (None, _) => Ok(()),
                (Some(gather), Data::Text(text)) => gather.text(text),
                (Some(gather), Data::Bytes(bytes)) => gather.blob(bytes),
            }
        };
        match pushed {
            Ok(()) => Ok(true),
            Err(ReadError::SizeExceeded { limit, size }) => {
                Err(error::raise(py, "SizeExceeded", (limit, size)))
            }
            Err(_) => {
                Err(PyTypeError::new_err("the generator yields texts and bytes, expected only one of them"))
            }
        }
    }
}

impl Gather {
    pub(crate) fn new(gather: core::ContentsGatherer, cancelled: Cancelled) -> Self {
        Self { gather: Mutex::new(Some(gather)), cancelled }
    }

    fn finish(&self) -> PyResult<HandlerResult> {
        let gather = lock(&self.gather).take();
        gather
            .map(|gather| HandlerResult::Answer(Answer::Gathered(gather)))
            .ok_or_else(|| PyValueError::new_err("the contents were taken already"))
    }
}
