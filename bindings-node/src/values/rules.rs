//! Options of HTTP.

use crate::values::error::raise;
use mcp_resources_engine::http::RulesError;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// PEM files.
#[napi(object, object_to_js = false)]
pub struct TlsFields {
    /// The path of the certificates, the server's own first.
    pub cert: String,
    /// The path of the private key.
    pub key: String,
}

/// Converts the error about an endpoint's options.
pub(crate) fn refused(env: &Env, error: &RulesError) -> Error {
    raise(env, "RegistrationError", error.to_string(), &[])
}
