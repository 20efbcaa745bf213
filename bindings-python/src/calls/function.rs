//! A function of the program and how it is called. Its signature was read in Python.

use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::registry::Number;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;

/// On which thread a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As a task of the event loop.
    Async,
    /// On the event loop's thread, at once.
    Inline,
    /// On a worker thread.
    Pool,
}

/// A function of the program.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Function {
    pub(crate) name: String,
    pub(crate) call: Py<PyAny>,
    pub(crate) mode: Mode,
    /// The media type of JSON that it returns, if the resource has none of its own.
    pub(crate) json_type: Option<String>,
    /// Passed to the conversion of its results: the encoder of a reader, or the template of a lister.
    pub(crate) shape: Py<PyAny>,
    /// The keyword arguments of its tasks: their name.
    pub(crate) task: Py<PyDict>,
    positional: Vec<Slot>,
    keywords: Vec<(Py<PyString>, Slot)>,
    /// Its number among the handlers, if it is registered on its own.
    pub(crate) number: Arc<Number>,
    pub(crate) takes_context: bool,
    pub(crate) gathers: bool,
}

/// The source of one argument.
struct Slot {
    fill: Fill,
    name: String,
    convert: Option<Py<PyAny>>,
    /// Whether `convert` takes a list or map as a whole.
    whole: bool,
    default: Option<Py<PyAny>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Value,
    List,
    Map,
    Rest,
    Context,
    Gather,
}

/// A slot, as Python describes it.
#[derive(FromPyObject)]
struct SlotParts {
    #[pyo3(item(0))]
    fill: String,
    /// The name of a keyword argument; `None` for a positional one.
    #[pyo3(item(1))]
    keyword: Option<Py<PyString>>,
    #[pyo3(item(2))]
    name: String,
    #[pyo3(item(3))]
    convert: Option<Py<PyAny>>,
    #[pyo3(item(4))]
    whole: bool,
    /// The default in a tuple, because `None` is one.
    #[pyo3(item(5))]
    default: Option<(Py<PyAny>,)>,
}

/// Why a function cannot be called.
pub(crate) enum BindError {
    /// A value of the client cannot be converted.
    Refused(ReadError),
    /// Anything else.
    Raised(PyErr),
}

/// The values for the arguments of a call.
pub(crate) struct Supply<'a, 'py> {
    /// The value of a name.
    pub(crate) value: &'a dyn Fn(&str) -> PyResult<Option<Bound<'py, PyAny>>>,
    pub(crate) context: Option<&'a Bound<'py, PyAny>>,
    pub(crate) gather: Option<&'a Bound<'py, PyAny>>,
}

/// Arguments, ready.
pub(crate) struct Arguments<'py> {
    pub(crate) positional: Bound<'py, PyTuple>,
    pub(crate) keywords: Option<Bound<'py, PyDict>>,
}

#[pymethods]
impl Function {
    /// `mode`: on which thread it runs. `json_type`: the media type of JSON that it returns. `shape`: what helps to read its
    /// results.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        call: Py<PyAny>,
        mode: &str,
        json_type: Option<String>,
        shape: Py<PyAny>,
        slots: Vec<SlotParts>,
    ) -> PyResult<Self> {
        let mode = match mode {
            "async" => Mode::Async,
            "inline" => Mode::Inline,
            _ => Mode::Pool,
        };
        let task = PyDict::new(py);
        task.set_item("name", &name)?;
        let mut positional = Vec::new();
        let mut keywords = Vec::new();
        for SlotParts { fill, keyword, name, convert, whole, default } in slots {
            let slot = Slot {
                fill: Fill::parse(&fill),
                name,
                convert,
                whole,
                default: default.map(|(value,)| value),
            };
            match keyword {
                None => positional.push(slot),
                Some(keyword) => keywords.push((keyword, slot)),
            }
        }
        let has = |fill| {
            positional.iter().chain(keywords.iter().map(|(_, slot)| slot)).any(|slot| slot.fill == fill)
        };
        let takes_context = has(Fill::Context);
        let gathers = has(Fill::Gather);
        let task = task.unbind();
        let number = Arc::default();
        Ok(Self {
            name,
            call,
            mode,
            json_type,
            shape,
            task,
            number,
            positional,
            keywords,
            takes_context,
            gathers,
        })
    }

    fn __repr__(&self) -> String {
        format!("<Function {}>", self.name)
    }

    /// The name, for messages.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.call)?;
        visit.call(&self.shape)?;
        for slot in self.positional.iter().chain(self.keywords.iter().map(|(_, slot)| slot)) {
            visit.call(&slot.convert)?;
            visit.call(&slot.default)?;
        }
        Ok(())
    }
}

impl Function {
    /// Converts values of the client to arguments.
    pub(crate) fn bind<'py>(
        &self,
        py: Python<'py>,
        supply: &Supply<'_, 'py>,
    ) -> Result<Arguments<'py>, BindError> {
        let mut values = Vec::with_capacity(self.positional.len());
        for slot in &self.positional {
            values.push(slot.fill(py, supply)?.unwrap_or_else(|| py.None().into_bound(py)));
        }
        let positional = PyTuple::new(py, values)?;
        if self.keywords.is_empty() {
            return Ok(Arguments { positional, keywords: None });
        }
        let keywords = PyDict::new(py);
        for (name, slot) in &self.keywords {
            if let Some(value) = slot.fill(py, supply)? {
                keywords.set_item(name, value)?;
            }
        }
        Ok(Arguments { positional, keywords: Some(keywords) })
    }
}

impl Fill {
    fn parse(word: &str) -> Self {
        match word {
            "list" => Self::List,
            "map" => Self::Map,
            "rest" => Self::Rest,
            "context" => Self::Context,
            "gather" => Self::Gather,
            _ => Self::Value,
        }
    }
}

impl Slot {
    fn fill<'py>(
        &self,
        py: Python<'py>,
        supply: &Supply<'_, 'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, BindError> {
        match self.fill {
            Fill::Context => return Ok(supply.context.cloned()),
            Fill::Gather => return Ok(supply.gather.cloned()),
            _ => {}
        }
        match ((supply.value)(&self.name)?, self.fill) {
            (Some(value), _) => self.convert(value).map(Some),
            (None, Fill::List) if self.whole => self.convert(PyList::empty(py).into_any()).map(Some),
            (None, Fill::List) => Ok(Some(PyList::empty(py).into_any())),
            (None, Fill::Map) if self.whole => self.convert(PyDict::new(py).into_any()).map(Some),
            (None, Fill::Map) => Ok(Some(PyDict::new(py).into_any())),
            (None, Fill::Rest) => Ok(None),
            (None, _) => Ok(self.default.as_ref().map(|value| value.bind(py).clone())),
        }
    }

    fn convert<'py>(&self, value: Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, BindError> {
        let Some(convert) = &self.convert else { return Ok(value) };
        let py = value.py();
        let convert = convert.bind(py);
        let converted = if self.whole {
            convert.call1((&value,))
        } else if let Ok(items) = value.cast::<PyList>() {
            items
                .iter()
                .map(|item| convert.call1((item,)))
                .collect::<PyResult<Vec<_>>>()
                .and_then(|items| Ok(PyList::new(py, items)?.into_any()))
        } else if let Ok(pairs) = value.cast::<PyDict>() {
            let converted = PyDict::new(py);
            let set = |(key, value): (Bound<'py, _>, _)| converted.set_item(key, convert.call1((value,))?);
            pairs.iter().try_for_each(set).map(|()| converted.into_any())
        } else {
            convert.call1((&value,))
        };
        converted.map_err(|error| self.refusal(&value, error))
    }

    /// A `ValueError` is the client's fault. The client gets its text, so only texts of this library are passed on.
    fn refusal(&self, value: &Bound<'_, PyAny>, error: PyErr) -> BindError {
        let py = value.py();
        if !(error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyKeyError>(py)) {
            return BindError::Raised(error);
        }
        let parameter = self.name.clone();
        let reason = error.value(py).to_string();
        let value = value.str().map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
        BindError::Refused(ReadError::RefusedParameter { parameter, value, reason })
    }
}

impl From<PyErr> for BindError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}
