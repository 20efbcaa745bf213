//! Descriptions of resources, templates, tools and prompts. The core checks their values.

use crate::values::options::{PlainValue, set};
use crate::values::template::UriTemplate;
use mcp_resources_engine::resource as core;
use napi::bindgen_prelude::*;

/// A resource from its URI and fields.
pub(crate) fn resource(fields: PlainValue) -> Result<core::Resource> {
    let mut made = core::Resource::new("");
    set(&mut made, fields)?;
    Ok(made)
}

/// A template with its fields.
pub(crate) fn template(
    template: &UriTemplate,
    fields: PlainValue,
    completes: Vec<String>,
) -> Result<core::Template> {
    let mut made = core::Template::new(template.template.as_str()).options(template.options.clone());
    made.completes = completes;
    set(&mut made, fields)?;
    Ok(made)
}

/// A page from its URI and fields.
pub(crate) fn page(fields: PlainValue) -> Result<core::UiPage> {
    let mut made = core::UiPage::default();
    set(&mut made, fields)?;
    Ok(made)
}

/// A tool from its fields.
pub(crate) fn tool(fields: PlainValue) -> Result<core::Tool> {
    let mut made = core::Tool::default();
    set(&mut made, fields)?;
    Ok(made)
}

/// A prompt from its fields, and the arguments that have a completer.
pub(crate) fn prompt(fields: PlainValue, completes: Vec<String>) -> Result<core::Prompt> {
    let mut made = core::Prompt::default();
    set(&mut made, fields)?;
    made.completes = completes;
    Ok(made)
}
