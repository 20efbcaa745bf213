//! What a server is made with, from keyword arguments.

use crate::convert::{HintParts, cache_hint};
use crate::error::{in_field, shown, unexpected};
use crate::guard;
use crate::resource::icons;
use mcp_resources_engine::engine::{Options, ServerInfo};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::version::Revision;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

/// The options of a server.
const OPTIONS: &[&str] = &[
    "version",
    "title",
    "description",
    "website_url",
    "icons",
    "instructions",
    "limits",
    "revisions",
    "subscribe",
    "list_changed",
    "completions",
    "logging",
    "server_info_in_results",
    "explicit_denials",
    "cache",
    "redact",
    "metrics",
    "audit",
    "guard",
    "list_cache",
    "discover_cache",
    "keys",
    "extensions",
    "encoder",
    "lifespan",
];

/// Reads the fields of a server.
pub(crate) fn read(mut info: ServerInfo, fields: &Bound<'_, PyDict>) -> PyResult<(ServerInfo, Options)> {
    let mut options = Options::default();
    for (field, value) in fields {
        let name = field.cast::<PyString>()?.to_str()?;
        let mut set = || -> PyResult<()> {
            match name {
                "title" => info.title = value.extract()?,
                "description" => info.description = value.extract()?,
                "website_url" => info.website_url = value.extract()?,
                "icons" => info.icons = icons(&value)?,
                "instructions" => info.instructions = value.extract()?,
                "limits" => limits(&mut options.limits, value.cast()?)?,
                "revisions" => options.revisions = items(name, &value, revision)?,
                "subscribe" => options.subscribe = value.extract()?,
                "list_changed" => options.list_changed = value.extract()?,
                "completions" => options.completions = value.extract()?,
                "logging" => options.logging = value.extract()?,
                "server_info_in_results" => options.server_info_in_results = value.extract()?,
                "explicit_denials" => options.explicit_denials = value.extract()?,
                "cache" => options.cache = value.extract()?,
                // The function itself is the host's.
                "redact" => options.transforms = !value.is_none(),
                "metrics" => options.metrics = value.extract()?,
                "guard" => options.guard = guard::read(&value)?,
                "list_cache" => options.list_cache = cache_hint(value.extract::<HintParts>()?)?,
                "discover_cache" => options.discover_cache = cache_hint(value.extract::<HintParts>()?)?,
                "keys" => options.keys = items(name, &value, key)?,
                "process_key" => options.process_key = Some(key(&value)?),
                "extensions" => options.extension_capabilities = value.extract()?,
                other => return Err(unexpected("option", other, OPTIONS)),
            }
            Ok(())
        };
        set().map_err(|error| in_field(name, &value, error))?;
    }
    Ok((info, options))
}

fn items<T>(
    name: &str,
    value: &Bound<'_, PyAny>,
    read: fn(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    if value.is_instance_of::<PyString>() {
        let given = shown(value);
        return Err(PyTypeError::new_err(format!("{name} is {given}, expected a list, such as [{given}]")));
    }
    value.try_iter()?.map(|item| read(&item?)).collect()
}

fn revision(value: &Bound<'_, PyAny>) -> PyResult<Revision> {
    let date: String = value.extract()?;
    Revision::parse(&date).ok_or_else(|| {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        PyValueError::new_err(format!("{date:?} is no revision of the protocol; expected one of {known}"))
    })
}

fn key(value: &Bound<'_, PyAny>) -> PyResult<SealKey> {
    SealKey::from_secret(value.extract()?)
        .map_err(|_| PyValueError::new_err(format!("a key needs at least {} bytes", SealKey::MIN_SECRET)))
}

fn limits(limits: &mut Limits, given: &Bound<'_, PyDict>) -> PyResult<()> {
    macro_rules! set {
        ($name:expr, $value:expr, $($field:ident)+) => {
            match $name {
                $(stringify!($field) => limits.$field = whole(stringify!($field), $value)?,)+
                other => return Err(unexpected("limit", other, &[$(stringify!($field)),+])),
            }
        };
    }
    for (name, value) in given {
        let name = name.cast::<PyString>()?.to_str()?;
        set!(name, &value,
            message nesting id client_info batch batch_bytes uri resources templates in_flight page list_scan list_source list_item list_ttl list_cache list_cache_bytes cache_entries cache_bytes principals
            subscriptions filter_uris watched_uris watched_bytes watched_total contents contents_total output read_timeout completion_timeout arguments completion_values
            coalesce progress_interval log_messages state state_ttl asks grace head headers sessions session_idle streams replay keep_alive sse_after
            connections head_timeout body_timeout write_timeout token_cache token_ttl audit_queue
            sessions_per_client handshake_timeout connections_per_client idle_timeout bodies_total);
    }
    Ok(())
}

/// The value of a limit.
fn whole<T: TryFrom<u64>>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    let is_number = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    let read = value.extract::<u64>().ok().and_then(|value| T::try_from(value).ok());
    read.filter(|_| is_number).ok_or_else(|| {
        let shown = value.repr().map_or_else(|_| String::from("no number"), |text| text.to_string());
        let message =
            format!("the limit {name:?} is {shown}; expected a whole number from 0 to {}", u64::MAX);
        if is_number { PyValueError::new_err(message) } else { PyTypeError::new_err(message) }
    })
}
