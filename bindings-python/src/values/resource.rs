//! Descriptions of resources and templates from keyword arguments. The core checks their values.

use crate::values::error::{Import, unexpected};
use crate::values::options::set;
use crate::values::template::UriTemplate;
use mcp_resources_engine::option::NamedOptions;
use mcp_resources_engine::resource as core;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

static OBJECT_JSON: Import = Import::new("mcp_resources.results", "object_json");
/// The options of a registration that are read in Python, or that only templates have.
const IN_PYTHON: &[&str] = &["vars", "extra_query", "parameters", "tool", "inline", "replace"];
/// The options of a tool or prompt that are read in Python, and those that follow from its function.
const OF_NAMED: &[&str] = &["inline", "replace"];
const BY_HAND: &[&str] = &["input_schema", "output_schema", "arguments", "completes"];

/// The URI and the description of a resource.
#[pyclass(frozen, eq, module = "mcp_resources")]
#[derive(PartialEq)]
pub struct Resource {
    pub(crate) resource: core::Resource,
}

#[pymethods]
impl Resource {
    #[new]
    #[pyo3(
        signature = (uri, **fields),
        text_signature = "(uri, *, name=None, title=None, description=None, mime_type=None, icons=None, \
                          audience=None, priority=None, last_modified=None, meta=None, ttl_ms=0, \
                          cache_scope='private', scopes=(), children=False, size=None)"
    )]
    fn new(uri: String, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut resource = core::Resource::new(uri);
        if let Some(fields) = fields {
            describe(&mut resource, fields)?;
        }
        Ok(Self { resource })
    }

    #[getter]
    fn uri(&self) -> &str {
        &self.resource.uri
    }

    #[getter]
    fn name(&self) -> &str {
        self.resource.details.name.as_deref().unwrap_or(&self.resource.uri)
    }

    #[getter]
    fn title(&self) -> Option<&str> {
        self.resource.details.title.as_deref()
    }

    #[getter]
    fn description(&self) -> Option<&str> {
        self.resource.details.description.as_deref()
    }

    #[getter]
    fn mime_type(&self) -> Option<&str> {
        self.resource.details.mime_type.as_deref()
    }

    #[getter]
    fn size(&self) -> Option<u64> {
        self.resource.size
    }

    fn __repr__(&self) -> String {
        format!("Resource({:?}, name={:?})", self.resource.uri, self.name())
    }
}

/// A template with its fields.
pub(crate) fn template(template: &UriTemplate, fields: &Bound<'_, PyDict>) -> PyResult<core::Template> {
    let mut made = core::Template::new(template.template.as_str()).options(template.options.clone());
    describe(&mut made, fields)?;
    Ok(made)
}

/// A tool or prompt from its options.
pub(crate) fn named<T: NamedOptions + Default>(fields: &Bound<'_, PyDict>) -> PyResult<T> {
    let mut made = T::default();
    for (name, value) in fields {
        let name = name.cast::<PyString>()?.to_str()?;
        match name {
            _ if value.is_none() => {}
            "meta" => set(&mut made, name, &OBJECT_JSON.get(value.py())?.call1((&value, name))?)?,
            _ if T::NAMES.contains(&name) => set(&mut made, name, &value)?,
            _ => {
                let options = T::NAMES.iter().filter(|name| !BY_HAND.contains(name)).chain(OF_NAMED);
                return Err(unexpected("option", name, &options.copied().collect::<Vec<_>>()));
            }
        }
    }
    Ok(made)
}

/// A page from its URI and fields.
pub(crate) fn page(fields: &Bound<'_, PyDict>) -> PyResult<core::UiPage> {
    let mut made = core::UiPage::default();
    for (name, value) in fields {
        let name = name.cast::<PyString>()?.to_str()?;
        match name {
            _ if value.is_none() => {}
            "meta" => set(&mut made, name, &OBJECT_JSON.get(value.py())?.call1((&value, name))?)?,
            _ if core::UiPage::NAMES.contains(&name) => set(&mut made, name, &value)?,
            _ => {
                let known = core::UiPage::NAMES.iter().copied().filter(|name| *name != "uri");
                return Err(unexpected("option", name, &known.chain(["replace"]).collect::<Vec<_>>()));
            }
        }
    }
    Ok(made)
}

/// Sets the fields of a resource or template.
fn describe<T: NamedOptions>(described: &mut T, fields: &Bound<'_, PyDict>) -> PyResult<()> {
    for (name, value) in fields {
        let name = name.cast::<PyString>()?.to_str()?;
        let known = || {
            core::Resource::NAMES
                .iter()
                .copied()
                .filter(|name| *name != "uri")
                .chain(IN_PYTHON.iter().copied())
        };
        match name {
            _ if value.is_none() => {}
            "meta" => set(described, name, &OBJECT_JSON.get(value.py())?.call1((&value, name))?)?,
            _ if T::NAMES.contains(&name) => set(described, name, &value)?,
            _ if known().any(|known| known == name) => {
                let is_resource = T::NAMES.contains(&"uri");
                let place = if is_resource { "templates, or for functions" } else { "fixed URIs" };
                let text = format!("the option {name:?} is for {place}; it means nothing here");
                return Err(PyTypeError::new_err(text));
            }
            _ => return Err(unexpected("option", name, &known().collect::<Vec<_>>())),
        }
    }
    Ok(())
}
