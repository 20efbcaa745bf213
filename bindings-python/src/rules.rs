//! What an author sets about HTTP, from keyword arguments.

use crate::error::{self, in_field, unexpected};
use mcp_resources_engine::http::{Answers, Auth, Hosts, Origins, Polling, Rules, RulesError, Sse24};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The options of an endpoint and of its HTTP server.
const OPTIONS: &[&str] = &[
    "host", "port", "auth", "path", "health", "metrics", "hosts", "origins", "cors", "answers", "polling",
    "sessions", "sse24",
];

/// Reads the options of an endpoint.
pub(crate) fn read(fields: &Bound<'_, PyDict>) -> PyResult<Rules> {
    let mut rules = Rules::default();
    for (field, value) in fields {
        let name = field.cast::<PyString>()?.to_str()?;
        let mut set = || -> PyResult<()> {
            match name {
                "path" => rules.path = value.extract()?,
                "health" => rules.health = value.extract()?,
                "metrics" => rules.metrics = shown(&value)?,
                "hosts" => rules.hosts = listed(name, &value, Hosts::Any, Hosts::Loopback, Hosts::These)?,
                "origins" => {
                    rules.origins = listed(name, &value, Origins::Any, Origins::Loopback, Origins::These)?
                }
                "cors" => rules.cors = value.extract()?,
                "answers" => rules.answers = answers(value.extract()?)?,
                "polling" => {
                    let given: Option<(u64, u64)> = value.extract()?;
                    rules.polling = given.map(|(after, retry)| Polling { after, retry });
                }
                "sessions" => rules.sessions = value.extract()?,
                "sse24" => rules.sse24 = sse24(&value)?,
                "auth" => rules.auth = Some(auth(value.cast()?)?),
                other => return Err(unexpected("option", other, OPTIONS)),
            }
            Ok(())
        };
        set().map_err(|error| in_field(name, &value, error))?;
    }
    Ok(rules)
}

/// What is wrong with them.
pub(crate) fn refused(py: Python<'_>, error: &RulesError) -> PyErr {
    error::raise(py, "RegistrationError", (error.to_string(),))
}

/// A path, `True` for the usual one, or nothing.
fn shown(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    match value.extract::<Option<bool>>() {
        Ok(shown) => Ok(shown.filter(|shown| *shown).map(|_| Rules::METRICS.to_owned())),
        Err(_) => value.extract().map(Some),
    }
}

/// `"*"`, `"loopback"`, or a list of texts.
fn listed<T>(
    name: &str,
    value: &Bound<'_, PyAny>,
    any: T,
    loopback: T,
    these: impl FnOnce(Vec<String>) -> T,
) -> PyResult<T> {
    match value.extract::<&str>() {
        Ok("*") => Ok(any),
        Ok("loopback") => Ok(loopback),
        Ok(other) => Err(PyValueError::new_err(format!(
            "{name} is {other:?}, expected \"*\", \"loopback\" or a list, such as [{other:?}]"
        ))),
        Err(_) => value.extract().map(these),
    }
}

fn answers(word: &str) -> PyResult<Answers> {
    match word {
        "either" => Ok(Answers::Either),
        "json" => Ok(Answers::Json),
        "events" => Ok(Answers::Events),
        other => Err(PyValueError::new_err(format!("answers is {other:?}, expected either, json or events"))),
    }
}

/// Whether it is served, or its two paths.
fn sse24(value: &Bound<'_, PyAny>) -> PyResult<Option<Sse24>> {
    if let Ok(is_served) = value.extract::<bool>() {
        return Ok(is_served.then(Sse24::default));
    }
    let paths: Option<(String, String)> = value.extract()?;
    Ok(paths.map(|(events, messages)| Sse24 { events, messages }))
}

fn auth(given: &Bound<'_, PyDict>) -> PyResult<Auth> {
    let mut auth = Auth::default();
    for (field, value) in given {
        match field.cast::<PyString>()?.to_str()? {
            "resource" => auth.resource = value.extract()?,
            "authorization_servers" => auth.authorization_servers = value.extract()?,
            "scopes_supported" => auth.scopes_supported = value.extract()?,
            "required_scopes" => auth.required_scopes = value.extract()?,
            "implied_scopes" => auth.implied_scopes = value.extract()?,
            "authorization_server_document" => auth.authorization_server_document = value.extract()?,
            other => return Err(PyTypeError::new_err(format!("unexpected keyword argument {other:?}"))),
        }
    }
    Ok(auth)
}
