//! Options from keyword arguments: converts Python values to those of the core, and its errors to exceptions. The core
//! decides which options exist and which values they take.

use crate::values::error::{raise, shown, unexpected};
use crate::values::guard;
use mcp_resources_engine::engine::{EngineOptions, ServerInfo, Setup};
use mcp_resources_engine::option::{NamedOptions, OptionError, OptionValue, PathStep};
use mcp_resources_engine::resource;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyString};

/// The options of a server that are handled here or in Python.
const IN_PYTHON: &[&str] = &["audit", "bus", "guard", "encoder", "lifespan"];
/// The deepest nesting of lists: a list may contain itself.
const DEEPEST: usize = 8;

/// An icon of a resource or a server.
#[pyclass(frozen, eq, module = "mcp_resources")]
#[derive(PartialEq, Eq)]
pub struct Icon {
    pub(crate) icon: resource::Icon,
}

#[pymethods]
impl Icon {
    #[new]
    #[pyo3(signature = (src, *, mime_type = None, sizes = None, theme = None), text_signature = "(src, *, mime_type=None, sizes=(), theme=None)")]
    fn new(
        src: String,
        mime_type: Option<String>,
        sizes: Option<&Bound<'_, PyAny>>,
        theme: Option<&str>,
    ) -> PyResult<Self> {
        let mut icon = resource::Icon::new(src);
        icon.mime_type = mime_type;
        sizes.map_or(Ok(()), |sizes| set(&mut icon, "sizes", sizes))?;
        if let Some(theme) = theme {
            let set = icon.set("theme", theme.into());
            set.map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        Ok(Self { icon })
    }

    fn __repr__(&self) -> String {
        format!("Icon({:?})", self.icon.src)
    }
}

/// Reads the fields of a server into what it has so far.
pub(crate) fn read(mut setup: Setup, fields: &Bound<'_, PyDict>) -> PyResult<(ServerInfo, EngineOptions)> {
    for (name, value) in fields {
        let name = name.cast::<PyString>()?.to_str()?;
        let options = &mut setup.options;
        match name {
            "guard" => options.guard = guard::read(&value)?,
            // The function itself is kept in the state of the server.
            "redact" => options.transforms = !value.is_none(),
            // Connected when the registry is there.
            "bus" => {}
            _ if !Setup::NAMES.contains(&name) => {
                return Err(unexpected("option", name, &[Setup::NAMES, IN_PYTHON].concat()));
            }
            _ => set(&mut setup, name, &value)?,
        }
    }
    Ok((setup.info, setup.options))
}

/// Sets one option.
pub(crate) fn set<T: NamedOptions>(options: &mut T, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    options.set(name, convert(value)?).map_err(|error| refused(name, value, &error))
}

/// The exception for a wrong option; `value` is that of the option `name`.
pub(crate) fn refused(name: &str, value: &Bound<'_, PyAny>, error: &OptionError) -> PyErr {
    let inner = error.path().iter().skip(1).try_fold(value.clone(), |value, step| match step {
        PathStep::Name(name) => value.get_item(&**name).or_else(|_| value.getattr(&**name)),
        PathStep::Item(at) => value.get_item(*at),
    });
    let given = shown(&inner.unwrap_or_else(|_| value.clone()));
    let text = error.message(&given, str::to_owned);
    if !error.is_type() {
        return if error.unknown_name().is_some() {
            PyTypeError::new_err(text)
        } else {
            raise(value.py(), "Registration", (text,))
        };
    }
    let text = text.replace("true or false", "True or False");
    let is_named = text.contains(name);
    PyTypeError::new_err(if is_named { text } else { format!("{name} is {}: {text}", shown(value)) })
}

/// A value of Python as the core takes it.
pub(crate) fn convert(value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    within(value, DEEPEST)
}

fn within(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<OptionValue> {
    if let Some(plain) = plain(value)? {
        return Ok(plain);
    }
    let Some(depth) = depth.checked_sub(1) else { return Ok(OptionValue::Other) };
    if let Ok(members) = value.cast::<PyDict>() {
        let member = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((name.str()?.extract()?, within(&value, depth)?))
        };
        return members.iter().map(member).collect::<PyResult<_>>().map(OptionValue::Members);
    }
    if let Some(members) = value.getattr_opt(intern!(value.py(), "_asdict"))? {
        return within(&members.call0()?, depth);
    }
    match value.try_iter() {
        Ok(items) => items.map(|item| within(&item?, depth)).collect::<PyResult<_>>().map(OptionValue::List),
        Err(_) => Ok(OptionValue::Other),
    }
}

/// A value without members and items; `None` for a value that may have some.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<OptionValue>> {
    Ok(Some(if value.is_none() {
        OptionValue::None
    } else if let Ok(text) = value.cast::<PyString>() {
        OptionValue::Text(text.to_str()?.to_owned())
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        OptionValue::Bytes(bytes.as_bytes().to_vec())
    } else if let Ok(bytes) = value.cast::<PyByteArray>() {
        OptionValue::Bytes(bytes.to_vec())
    } else if let Ok(icon) = value.cast::<Icon>() {
        icon.get().icon.clone().into()
    } else if let Ok(truth) = value.extract() {
        OptionValue::Bool(truth)
    } else if value.is_instance_of::<PyInt>() {
        // A number that does not fit into 128 bits is refused like the largest one that does.
        OptionValue::Integer(value.extract().unwrap_or(i128::MAX))
    } else if let Ok(whole) = value.extract() {
        OptionValue::Integer(whole)
    } else if let Ok(number) = value.extract() {
        OptionValue::Number(number)
    } else if let Some(time) = value.getattr_opt(intern!(value.py(), "isoformat"))? {
        OptionValue::Text(time.call0()?.extract()?)
    } else {
        return Ok(None);
    }))
}
