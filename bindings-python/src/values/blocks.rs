//! Results of tools and prompts, from the plain tuples that Python makes of them.

use crate::values::contents::{Data, HandlerResult};
use crate::values::options::set;
use crate::values::resource::Resource;
use mcp_resources_engine::connection::{
    Answer, BlockKind, Body, ContentBlock, PromptMessage, PromptResult, ToolResult,
};
use mcp_resources_engine::resource as core;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// One block: a link has a resource as its body, the other kinds have text or bytes.
#[derive(FromPyObject)]
struct BlockParts<'py> {
    #[pyo3(item(0))]
    kind: String,
    #[pyo3(item(1))]
    body: Bound<'py, PyAny>,
    #[pyo3(item(2))]
    mime_type: Option<String>,
    #[pyo3(item(3))]
    uri: Option<String>,
    /// `_meta` of the contents of a resource, as JSON text.
    #[pyo3(item(4))]
    contents_meta: Option<String>,
    /// `_meta` of the block, as JSON text.
    #[pyo3(item(5))]
    meta: Option<String>,
    /// `audience`, `priority` and `last_modified`.
    #[pyo3(item(6))]
    hints: Option<Bound<'py, PyDict>>,
}

#[derive(FromPyObject)]
struct ToolParts<'py> {
    #[pyo3(item(0))]
    blocks: Vec<BlockParts<'py>>,
    /// The structured result, as JSON text.
    #[pyo3(item(1))]
    structured: Option<String>,
    #[pyo3(item(2))]
    is_error: bool,
    #[pyo3(item(3))]
    meta: Option<String>,
}

#[derive(FromPyObject)]
struct PromptParts<'py> {
    #[pyo3(item(0))]
    messages: Vec<(String, BlockParts<'py>)>,
    #[pyo3(item(1))]
    description: Option<String>,
    #[pyo3(item(2))]
    meta: Option<String>,
}

/// The result of a tool from its parts.
pub(crate) fn tool(parts: &Bound<'_, PyAny>) -> PyResult<HandlerResult> {
    let parts: ToolParts<'_> = parts.extract()?;
    Ok(HandlerResult::Answer(Answer::Tool(ToolResult {
        content: parts.blocks.into_iter().map(block).collect::<PyResult<_>>()?,
        structured: parts.structured.map(Into::into),
        is_error: parts.is_error,
        meta: parts.meta.map(Into::into),
    })))
}

/// The result of a prompt from its parts.
pub(crate) fn prompt(parts: &Bound<'_, PyAny>) -> PyResult<HandlerResult> {
    let parts: PromptParts<'_> = parts.extract()?;
    let message = |(role, content): (String, BlockParts<'_>)| {
        let refused =
            || PyTypeError::new_err(format!("role is {role:?}, expected \"user\" or \"assistant\""));
        let role = core::Audience::parse(&role).ok_or_else(refused)?;
        Ok(PromptMessage { role, content: block(content)? })
    };
    Ok(HandlerResult::Answer(Answer::Prompt(PromptResult {
        description: parts.description.map(Into::into),
        messages: parts.messages.into_iter().map(message).collect::<PyResult<_>>()?,
        meta: parts.meta.map(Into::into),
    })))
}

fn block(parts: BlockParts<'_>) -> PyResult<ContentBlock<'static>> {
    let mut made = match parts.body.cast::<Resource>() {
        Ok(resource) => ContentBlock::link(resource.get().resource.clone()),
        Err(_) => {
            let body = body(&parts.body)?;
            let made = ContentBlock::from_parts(
                &parts.kind,
                body,
                parts.mime_type.map(Into::into),
                parts.uri.map(Into::into),
            );
            made.ok_or_else(|| {
                PyValueError::new_err(format!("a block of the kind {:?} is incomplete", parts.kind))
            })?
        }
    };
    if let BlockKind::Embedded(contents) = &mut made.kind {
        contents.meta = parts.contents_meta.map(Into::into);
    }
    if let Some(hints) = parts.hints {
        made.annotations = annotations(&hints)?;
    }
    made.meta = parts.meta.map(Into::into);
    Ok(made)
}

fn body(given: &Bound<'_, PyAny>) -> PyResult<Body<'static>> {
    match Data::read(given)? {
        Some(Data::Text(text)) => Ok(Body::Text(text.to_string().into())),
        Some(Data::Bytes(bytes)) => Ok(Body::Blob(bytes.to_vec().into())),
        None => Err(PyTypeError::new_err("the body of a block is not text or bytes")),
    }
}

/// The hints of a block have the names and values of those of a resource.
fn annotations(hints: &Bound<'_, PyDict>) -> PyResult<core::Annotations> {
    let mut resource = core::Resource::new("");
    for (name, value) in hints {
        set(&mut resource, name.cast::<PyString>()?.to_str()?, &value)?;
    }
    Ok(resource.details.annotations)
}
