//! Converts errors for JavaScript. Each is thrown as an `Error` with the name of its class in `mcpError`;
//! `js/errors.ts` creates the class from it.

use crate::values::spelling::camel_case;
use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_template::InvalidTemplate;
use mcp_resources_template::uri::InvalidUri;
use napi::bindgen_prelude::*;
use napi::{Env, JsValue};

/// The members of one class of `js/errors.ts` besides its message.
type Fields<'a> = &'a [(&'a str, &'a str)];

/// An error of the class `class` of `js/errors.ts`.
pub(crate) fn raise(env: &Env, class: &str, message: String, fields: Fields<'_>) -> Error {
    let make = |message: String| {
        let mut error = env.create_error(Error::from_reason(message))?;
        error.set("mcpError", class)?;
        for (name, value) in fields {
            error.set(name, *value)?;
        }
        Ok(error)
    };
    make(message).map_or_else(|error: Error| error, |error| Error::from(error.to_unknown()))
}

/// A value that no option, field or argument can have: a `TypeError`.
pub(crate) fn unusable(message: String) -> Error {
    Error::new(Status::InvalidArg, message)
}

pub(crate) fn invalid_template(env: &Env, error: &InvalidTemplate) -> Error {
    let offset = error.offset.to_string();
    let fields = [("template", &*error.template), ("offset", &*offset)];
    raise(env, "InvalidTemplateError", error.to_string(), &fields)
}

pub(crate) fn invalid_uri(env: &Env, error: &InvalidUri) -> Error {
    raise(env, "InvalidUriError", error.to_string(), &[])
}

/// Converts a refused registration. `first` is the name of the function that is already registered.
pub(crate) fn registration(env: &Env, error: &RegistrationError, first: Option<&str>) -> Error {
    let message = match error {
        RegistrationError::InvalidField { of, field, value, expected } if field.starts_with("limits.") => {
            let of = of.clone();
            let value = value.clone();
            let expected = expected.clone();
            RegistrationError::InvalidField { of, field: camel_case(field), value, expected }.to_string()
        }
        _ => format!("{error}{}", taken(error, first)),
    };
    match error {
        RegistrationError::InvalidUri { .. } => raise(env, "InvalidUriError", message, &[]),
        RegistrationError::InvalidTemplate { template, offset, .. } => {
            let offset = offset.to_string();
            raise(env, "InvalidTemplateError", message, &[("template", template), ("offset", &offset)])
        }
        RegistrationError::TemplateConflict { template, with } => {
            raise(env, "TemplateConflictError", message, &[("template", template), ("other", with)])
        }
        _ => raise(env, "RegistrationError", message, &[]),
    }
}

/// The hint for a URI, template or name that is already registered: the name of its function, and how to replace it.
fn taken(error: &RegistrationError, first: Option<&str>) -> String {
    let (uri, is_same) = match error {
        RegistrationError::DuplicateResource { uri } => (uri, true),
        RegistrationError::DuplicateTool { name } | RegistrationError::DuplicatePrompt { name } => {
            (name, true)
        }
        RegistrationError::TemplateConflict { template, with } => (with, template == with),
        _ => return String::new(),
    };
    // A function without a name is called by its URI.
    let by = first.filter(|name| name != uri).map(|name| format!(", by the function {name:?}"));
    let fix = if is_same { "; pass replace: true to replace it" } else { "" };
    by.unwrap_or_default() + fix
}
