//! Converts a request of the engine into the arguments of a user's function.

use crate::calls::function::Arguments;
use mcp_resources_runtime::transport::{RequestParams, WorkRequest};
use mcp_resources_template::{MatchedParams, Value};
use napi::Env;
use napi::bindgen_prelude::{Result, ToNapiValue};

/// Sets the arguments of the function, besides its numbers.
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
        RequestParams::Access { questions } => {
            arguments.push_text(env, request.who.principal())?;
            for question in questions.iter() {
                for variable in question.params.iter().flat_map(MatchedParams::variables) {
                    match question.params.as_ref().and_then(|params| params.get(&variable.name)) {
                        Some(value) => push_value(env, arguments, value)?,
                        None => arguments.push_undefined(env)?,
                    }
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

/// The value of a variable as an argument: pairs are an array of arrays, so that any text is a safe key.
fn push_value(env: &Env, arguments: &mut Arguments, value: &Value<'_>) -> Result<()> {
    match value {
        Value::Scalar(text) => arguments.push_text(env, text)?,
        Value::List(items) => {
            let items: Vec<&str> = items.iter().map(|item| &**item).collect();
            arguments.push(&items.into_unknown(env)?);
        }
        Value::Map(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| vec![&**key, &**value]).collect();
            arguments.push(&pairs.into_unknown(env)?);
        }
    }
    Ok(())
}
