//! Errors over the border. One is thrown as an `Error` with the name of its class in `mcpError`; `js/errors.ts` makes
//! the class of it.

use mcp_resources::resource::RegistrationError;
use mcp_resources::template::InvalidTemplate;
use mcp_resources::uri::InvalidUri;
use napi::bindgen_prelude::*;
use napi::{Env, JsValue};

/// What one class of `js/errors.ts` needs besides its message.
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
    raise(env, "InvalidTemplate", error.to_string(), &fields)
}

pub(crate) fn invalid_uri(env: &Env, error: &InvalidUri) -> Error {
    raise(env, "InvalidUri", error.to_string(), &[])
}
/// What a registration was refused for.
pub(crate) fn registration(env: &Env, error: &RegistrationError) -> Error {
    let message = error.to_string();
    match error {
        RegistrationError::InvalidUri { .. } => raise(env, "InvalidUri", message, &[]),
        RegistrationError::InvalidTemplate { template, offset, .. } => {
            let offset = offset.to_string();
            raise(env, "InvalidTemplate", message, &[("template", template), ("offset", &offset)])
        }
        RegistrationError::TemplateConflict { template, with } => {
            raise(env, "TemplateConflict", message, &[("template", template), ("other", with)])
        }
        _ => raise(env, "RegistrationError", message, &[]),
    }
}
