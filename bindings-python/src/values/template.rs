//! URI templates outside of a server: expansion, matching, and sets of templates.

use crate::values::error::{Import, invalid_template, raise};
use mcp_resources_template as core;
use mcp_resources_template::{ExpandError, Lookup, TemplateOptions, Value, Values, VariableOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};
use std::str::FromStr;

static MATCH: Import = Import::new("mcp_resources.matches", "Match");
static NO_MATCH: Import = Import::new("mcp_resources.matches", "NoMatch");
static TO_TEXT: Import = Import::new("mcp_resources.spelling", "to_text");
static REJECTED: Import = Import::new("mcp_resources.matches", "Rejected");

/// A URI template (RFC 6570).
#[pyclass(frozen, module = "mcp_resources")]
pub struct UriTemplate {
    pub(crate) template: core::UriTemplate,
    pub(crate) options: TemplateOptions,
}

/// The rules by which one variable of a template matches.
#[pyclass(frozen, get_all, module = "mcp_resources")]
pub struct Variable {
    kind: Option<String>,
    policy: Option<String>,
    empty: bool,
    chars: String,
    required: Option<bool>,
}

/// A set of templates. The most specific template that matches a URI wins, independent of their order.
#[pyclass(frozen, module = "mcp_resources")]
pub struct TemplateSet(core::TemplateSet);

#[pymethods]
impl UriTemplate {
    #[new]
    #[pyo3(signature = (template, vars = None, *, extra_query = "ignore"))]
    fn new(
        py: Python<'_>,
        template: &str,
        vars: Option<&Bound<'_, PyDict>>,
        extra_query: &str,
    ) -> PyResult<Self> {
        let mut options =
            TemplateOptions { extra_query: parse("extra_query", extra_query)?, ..TemplateOptions::default() };
        for (name, variable) in vars.into_iter().flat_map(|vars| vars.iter()) {
            options.variables.insert(name.extract()?, variable.cast::<Variable>()?.get().options()?);
        }
        let template = core::UriTemplate::with_options(template, &options);
        let template = template.map_err(|error| invalid_template(py, &error))?;
        Ok(Self { template, options })
    }

    /// The variables by name, in the order of the template.
    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let variables = PyDict::new(py);
        for variable in self.template.variables() {
            let options = self.options.variables.get(&*variable.name).copied().unwrap_or_default();
            variables.set_item(
                &*variable.name,
                Variable {
                    kind: Some(variable.kind.to_string()),
                    policy: Some(variable.policy.to_string()),
                    empty: options.empty,
                    chars: options.chars.to_string(),
                    required: Some(variable.required),
                },
            )?;
        }
        Ok(variables)
    }

    /// Expands the template. Values are those of Python types that have a text, lists or dicts. `None` is left out.
    #[pyo3(signature = (values = None, /, **named))]
    fn expand(
        &self,
        py: Python<'_>,
        values: Option<&Bound<'_, PyDict>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let mut given = Values::new();
        for (name, value) in [values, named].into_iter().flatten().flat_map(|values| values.iter()) {
            if let Some(value) = value_from_py(&value)? {
                given.insert(name.extract::<String>()?, value);
            }
        }
        self.template.expand(&given).map_err(|error| match error {
            ExpandError::Template(error) => invalid_template(py, &error),
            other => PyValueError::new_err(other.to_string()),
        })
    }

    /// Matches a URI, in any spelling.
    fn r#match<'py>(&self, py: Python<'py>, uri: &str) -> PyResult<Bound<'py, PyAny>> {
        let found =
            self.template.match_uri(uri).map_err(|error| raise(py, "InvalidUri", (error.to_string(),)))?;
        lookup(py, &found, std::slice::from_ref(&self.template))
    }

    fn __str__(&self) -> &str {
        self.template.as_str()
    }

    fn __repr__(&self) -> String {
        format!("UriTemplate({:?})", self.template.as_str())
    }
}

#[pymethods]
impl Variable {
    #[new]
    #[pyo3(signature = (kind = None, policy = None, *, empty = false, chars = "operator"))]
    fn new(kind: Option<String>, policy: Option<String>, empty: bool, chars: &str) -> PyResult<Self> {
        let variable = Self { kind, policy, empty, chars: chars.to_owned(), required: None };
        variable.options().map(|_| variable)
    }

    fn __repr__(&self) -> String {
        let word =
            |word: &Option<String>| word.as_ref().map_or("None".to_owned(), |word| format!("{word:?}"));
        let empty = if self.empty { "True" } else { "False" };
        format!(
            "Variable({}, {}, empty={empty}, chars={:?})",
            word(&self.kind),
            word(&self.policy),
            self.chars
        )
    }
}

impl Variable {
    fn options(&self) -> PyResult<VariableOptions> {
        Ok(VariableOptions {
            kind: self.kind.as_deref().map(|word| parse("kind", word)).transpose()?,
            policy: self.policy.as_deref().map(|word| parse("policy", word)).transpose()?,
            empty: self.empty,
            chars: parse("chars", &self.chars)?,
        })
    }
}

#[pymethods]
impl TemplateSet {
    #[new]
    fn new(templates: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = templates.py();
        let read = |template: PyResult<Bound<'_, PyAny>>| -> PyResult<core::UriTemplate> {
            let template = template?;
            if let Ok(text) = template.cast::<PyString>() {
                return core::UriTemplate::parse(text.to_str()?)
                    .map_err(|error| invalid_template(py, &error));
            }
            Ok(template.cast::<UriTemplate>()?.get().template.clone())
        };
        if templates.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("TemplateSet takes a list of templates, got a text: write […]"));
        }
        let templates = templates.try_iter()?.map(read).collect::<PyResult<Vec<_>>>()?;
        let set = core::TemplateSet::new(templates);
        set.map(Self)
            .map_err(|error| raise(py, "TemplateConflict", (error.to_string(), &error.template, &error.with)))
    }

    /// Finds the template for a URI, in any spelling.
    fn r#match<'py>(&self, py: Python<'py>, uri: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.0.match_uri(uri).map_err(|error| raise(py, "InvalidUri", (error.to_string(),)))?;
        lookup(py, &found, self.0.templates())
    }

    fn __len__(&self) -> usize {
        self.0.templates().len()
    }
}

fn lookup<'py>(
    py: Python<'py>,
    found: &Lookup<'_>,
    templates: &[core::UriTemplate],
) -> PyResult<Bound<'py, PyAny>> {
    let of =
        |index: usize| templates.get(index).map_or_else(String::new, |template| template.as_str().to_owned());
    match found {
        Lookup::Match { index, params } => {
            let values = PyDict::new(py);
            for (name, value) in params.iter() {
                values.set_item(name, value_to_py(py, value)?)?;
            }
            MATCH.get(py)?.call1((of(*index), values))
        }
        Lookup::None { .. } => NO_MATCH.get(py)?.call0(),
        Lookup::Rejected { index, variable, why } => {
            REJECTED.get(py)?.call1((of(*index), &**variable, why.to_string()))
        }
    }
}

/// A value to expand; `None` for Python's `None`.
fn value_from_py(value: &Bound<'_, PyAny>) -> PyResult<Option<Value<'static>>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(map) = value.cast::<PyDict>() {
        let pairs = map.iter().map(|(key, value)| Ok((text(&key)?, text(&value)?)));
        return pairs.collect::<PyResult<Vec<_>>>().map(|pairs| Some(pairs.into_iter().collect()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| text(&item?)).collect::<PyResult<Vec<_>>>()?;
        return Ok(Some(Value::from(items)));
    }
    text(value).map(|text| Some(Value::from(text)))
}

/// A text; other values have one text each.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return Err(PyTypeError::new_err("a value of a template is a text, a list or a dict, not bytes"));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    match value.cast_exact::<PyString>() {
        Ok(text) => text.extract(),
        Err(_) => TO_TEXT.get(value.py())?.call1((value,))?.extract(),
    }
}

fn parse<T: FromStr<Err: std::fmt::Display>>(option: &str, word: &str) -> PyResult<T> {
    word.parse().map_err(|error: T::Err| PyValueError::new_err(format!("{option} is {word:?}, {error}")))
}

/// The value of a template's variable: `str`, `list[str]` or `dict[str, str]`.
pub(crate) fn value_to_py<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Scalar(text) => PyString::new(py, text).into_any(),
        Value::List(items) => PyList::new(py, items.iter().map(|item| &**item))?.into_any(),
        Value::Map(pairs) => {
            let map = PyDict::new(py);
            for (key, value) in pairs {
                map.set_item(&**key, &**value)?;
            }
            map.into_any()
        }
    })
}
