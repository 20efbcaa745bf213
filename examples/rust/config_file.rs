//! A configuration file: the whole of it, and each section by name.
//!
//! config://app            the file, as JSON
//! config://app/{section}  one section; completes the names that exist

use mcp_resources::{
    CompletionRequest, Contents, HandlerError, ReadError, ReadRequest, Resource, ResourceServer, Template,
    blocking,
};
use mcp_resources_examples::data;
use serde_json::{Map, Value};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Resource::new("config://app");
    let section_of_it = Template::new("config://app/{section}");
    let server = ResourceServer::builder("config", "1.0.0")
        .resource(
            app.mime_type("application/json").description("The application's configuration."),
            blocking(|_| Ok::<_, HandlerError>(Contents::json(&load()?)?)),
        )
        .template(
            section_of_it.mime_type("application/json").description("One section of it."),
            blocking(section),
        )
        .complete("section", blocking(sections))
        .build()?;
    Ok(server.run_stdio().await?)
}

fn load() -> Result<Map<String, Value>, HandlerError> {
    Ok(serde_json::from_slice(&std::fs::read(data("app.json"))?)?)
}

fn section(request: ReadRequest) -> Result<Contents<'static>, HandlerError> {
    let name = request.param("section").unwrap_or_default();
    let section = load()?.remove(name).ok_or(ReadError::NotFound)?;
    Ok(Contents::json(&section)?)
}

fn sections(request: CompletionRequest) -> Result<Vec<String>, HandlerError> {
    Ok(load()?.into_iter().map(|(name, _)| name).filter(|name| name.starts_with(&request.value)).collect())
}
