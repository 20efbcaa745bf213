//! The guard outside of a server: applies a policy to URIs.

use crate::values::error::{invalid_template, raise, registration};
use crate::values::json::to_json;
use mcp_resources_engine::guard::{Guard as Core, Policy};
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::transport::{load_policy, read_policy};
use mcp_resources_template::UriTemplate;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::path::PathBuf;

/// The compiled part of `mcp_resources.Guard`.
#[pyclass(frozen, module = "mcp_resources")]
pub struct Guard(Core);

#[pymethods]
impl Guard {
    #[new]
    fn new(policy: &Bound<'_, PyAny>, explicit_denials: bool) -> PyResult<Self> {
        let py = policy.py();
        let guard = Core::new(&read(policy)?, explicit_denials);
        guard.map(Self).map_err(|error| registration(py, &error.into(), None))
    }

    /// The decision about a URI, and the missing scopes if they are the only reason.
    fn decide(
        &self,
        py: Python<'_>,
        uri: &str,
        principal: &str,
        scopes: Vec<String>,
        groups: Vec<String>,
    ) -> PyResult<(&'static str, Vec<String>)> {
        let who = Principal::new(principal).with_scopes(scopes).with_groups(groups);
        let decision = self.0.decide_uri(&who, uri);
        let decision = decision.map_err(|error| raise(py, "InvalidUri", (error.to_string(),)))?;
        Ok((decision.as_str(), decision.missing_scopes()))
    }

    /// Whether a template is listed.
    fn knows_template(
        &self,
        py: Python<'_>,
        template: &str,
        principal: &str,
        scopes: Vec<String>,
        groups: Vec<String>,
    ) -> PyResult<bool> {
        let template = UriTemplate::parse(template).map_err(|error| invalid_template(py, &error))?;
        let who = Principal::new(principal).with_scopes(scopes).with_groups(groups);
        Ok(self.0.knows_template(&who, &template))
    }
}

/// A policy: a mapping, or the path of a file.
pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<Policy> {
    let is_path = value.is_instance_of::<PyString>() || value.hasattr("__fspath__")?;
    let text = || to_json(value, "guard");
    let policy = if is_path { load_policy(value.extract::<PathBuf>()?) } else { read_policy(&text()?) };
    policy.map_err(|error| registration(value.py(), &error.into(), None))
}
