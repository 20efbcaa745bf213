//! Descriptions of resources and templates, from keyword arguments. What is wrong with a value is the core's to say.

use crate::convert::cache_scope;
use crate::error::{self, shown, to_json, unexpected};
use crate::template::UriTemplate;
use mcp_resources_engine::resource::{
    self as core, Audience, Details, ListSource, Parameter, ParameterKind, Theme,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The options of a resource or template.
const DETAILS: &[&str] = &[
    "name",
    "title",
    "description",
    "mime_type",
    "icons",
    "audience",
    "priority",
    "last_modified",
    "meta",
    "ttl_ms",
    "cache_scope",
    "scopes",
    "children",
    "size",
    "vars",
    "extra_query",
    "parameters",
    "inline",
    "replace",
];

/// One resource, at one URI.
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
        let core::Resource { details, size, children, .. } = &mut resource;
        read_fields(fields, details, &mut |field, value| {
            match field {
                "size" => *size = Some(value.extract()?),
                "children" => *children = value.extract()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
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

/// A picture of a resource or a server.
#[pyclass(frozen, eq, module = "mcp_resources")]
#[derive(PartialEq, Eq)]
pub struct Icon {
    icon: core::Icon,
}

#[pymethods]
impl Icon {
    #[new]
    #[pyo3(signature = (src, *, mime_type = None, sizes = Vec::new(), theme = None), text_signature = "(src, *, mime_type=None, sizes=(), theme=None)")]
    fn new(
        src: String,
        mime_type: Option<String>,
        sizes: Vec<String>,
        theme: Option<&str>,
    ) -> PyResult<Self> {
        let mut icon = core::Icon::new(src);
        icon.mime_type = mime_type;
        icon.sizes = sizes;
        icon.theme =
            theme.map(|theme| word("theme", theme, Theme::parse(theme), "light or dark")).transpose()?;
        Ok(Self { icon })
    }

    fn __repr__(&self) -> String {
        format!("Icon({:?})", self.icon.src)
    }
}

/// A sequence of `Icon`s.
pub(crate) fn icons(value: &Bound<'_, PyAny>) -> PyResult<Vec<core::Icon>> {
    value.try_iter()?.map(|icon| Ok(icon?.cast::<Icon>()?.get().icon.clone())).collect()
}

type ParameterParts = (String, Option<String>, Option<Vec<String>>, Option<String>, Option<String>);

/// A template with its fields.
pub(crate) fn template(template: &UriTemplate, fields: &Bound<'_, PyDict>) -> PyResult<core::Template> {
    let mut made = core::Template::new(template.template.as_str()).options(template.options.clone());
    let core::Template { details, parameters, completes, list, children, .. } = &mut made;
    read_fields(Some(fields), details, &mut |field, value| {
        match field {
            "parameters" => {
                let parts: Vec<ParameterParts> = value.extract()?;
                *parameters = parts.into_iter().map(parameter).collect::<PyResult<_>>()?;
            }
            "completes" => *completes = value.extract()?,
            "pages" => *list = Some(ListSource { pages: value.extract()? }),
            "children" => *children = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(made)
}

fn parameter((name, kind, values, pattern, description): ParameterParts) -> PyResult<Parameter> {
    let kind = kind.as_deref().map(|word| {
        let refused = || PyValueError::new_err(format!("type is {word:?}, which is no type of a variable"));
        ParameterKind::parse(word).ok_or_else(refused)
    });
    let kind = kind.transpose()?.unwrap_or_default();
    let mut parameter = Parameter::new(name).kind(kind).values(values.unwrap_or_default());
    parameter.pattern = pattern;
    parameter.description = description;
    Ok(parameter)
}

/// Reads the fields that resources and templates share; `own` takes the others.
fn read_fields(
    fields: Option<&Bound<'_, PyDict>>,
    details: &mut Details,
    own: &mut dyn FnMut(&str, &Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<()> {
    for (field, value) in fields.into_iter().flat_map(|fields| fields.iter()) {
        let field = field.cast::<PyString>()?.to_str()?;
        if value.is_none() {
            continue;
        }
        let mut set = || -> PyResult<()> {
            match field {
                "name" => details.name = Some(value.extract()?),
                "title" => details.title = Some(value.extract()?),
                "description" => details.description = Some(value.extract()?),
                "mime_type" => details.mime_type = Some(value.extract()?),
                "icons" => details.icons = icons(&value)?,
                "audience" => details.annotations.audience = audience(&value)?,
                "priority" => details.annotations.priority = Some(value.extract()?),
                "last_modified" => details.annotations.last_modified = Some(time(&value)?),
                "meta" => details.meta = Some(to_json(&value)?),
                "scopes" => details.scopes = words("scopes", &value)?,
                "ttl_ms" => details.cache.ttl_ms = value.extract()?,
                "cache_scope" => details.cache.scope = cache_scope(value.extract()?)?,
                _ if own(field, &value)? => {}
                _ if DETAILS.contains(&field) => {
                    let text = format!(
                        "the option {field:?} is for templates, or for functions; it means nothing here"
                    );
                    return Err(PyTypeError::new_err(text));
                }
                _ => return Err(unexpected("option", field, DETAILS)),
            }
            Ok(())
        };
        set().map_err(|error| error::in_field(field, &value, error))?;
    }
    Ok(())
}

/// Several texts; one alone is a slip of the pen.
pub(crate) fn words(field: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let wrong = |value: &Bound<'_, PyAny>| {
        let given = shown(value);
        PyTypeError::new_err(format!("{field} is {given}, expected a list of texts, such as [{given}]"))
    };
    if value.is_instance_of::<PyString>() {
        return Err(wrong(value));
    }
    let text = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        item.extract().map_err(|_| {
            PyTypeError::new_err(format!("{field} has the item {}, expected a text", shown(&item)))
        })
    };
    value.try_iter().map_err(|_| wrong(value))?.map(text).collect()
}

fn audience(value: &Bound<'_, PyAny>) -> PyResult<Vec<Audience>> {
    let words = words("audience", value)?;
    words.iter().map(|name| word("audience", name, Audience::parse(name), "user or assistant")).collect()
}

/// A `datetime`, or its ISO 8601 text.
fn time(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = intern!(value.py(), "isoformat");
    if value.hasattr(text)? { value.call_method0(text)?.extract() } else { value.extract() }
}

fn word<T>(field: &str, given: &str, found: Option<T>, expected: &str) -> PyResult<T> {
    found.ok_or_else(|| PyValueError::new_err(format!("{field} is {given:?}, expected {expected}")))
}
