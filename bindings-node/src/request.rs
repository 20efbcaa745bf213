//! What an author's function is called with, from what the engine asks.

use crate::function::Arguments;
use crate::template::push_value;
use mcp_resources_runtime::transport::{RequestParams, WorkRequest};
use napi::Env;
use napi::bindgen_prelude::Result;

/// What the function is called with, besides its numbers.
pub(crate) fn fill(env: &Env, request: &WorkRequest<'_>, arguments: &mut Arguments) -> Result<()> {
    match &request.params {
        RequestParams::Read { params: None, .. }
        | RequestParams::List { cursor: None }
        | RequestParams::Call { params: None, .. } => {}
        RequestParams::Read { params: Some(params), .. } => {
            for variable in params.variables() {
                match params.get(&variable.name) {
                    Some(value) => push_value(env, arguments, value)?,
                    None => arguments.push_undefined(env)?,
                }
            }
        }
        RequestParams::Complete { value, arguments: chosen, .. } => {
            arguments.push_text(env, value)?;
            for (name, value) in chosen {
                arguments.push_text(env, name)?;
                arguments.push_text(env, value)?;
            }
        }
        RequestParams::List { cursor: Some(cursor) } => arguments.push_text(env, cursor)?,
        RequestParams::Tool { arguments: given, .. } | RequestParams::Prompt { arguments: given, .. } => {
            arguments.push_text(env, given)?;
        }
        RequestParams::Call { params: Some(params), .. } => arguments.push_text(env, params)?,
    }
    Ok(())
}
