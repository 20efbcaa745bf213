//! The files that say what is served, and which servers a client speaks to.

use mcp_resources_cli::Document;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_host::client::Config;
use mcp_resources_host::transport::document_yaml;
use mcp_resources_providers::files::Options;

/// Any text is a document or an error that says something, as JSON and as YAML; so is what it says of files. Reading it
/// opens nothing and takes bounded time.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = Config::parse(&text, "folder") {
        assert!(!error.message.is_empty());
    }
    let value = match document_yaml(&text) {
        Ok(value) => value,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    match Document::parse(value, "name") {
        Err(reason) => assert!(!reason.is_empty()),
        Ok(document) => document.declared().for_each(|(_, options)| files(options)),
    }
}

fn files(options: &OptionValue) {
    if let Err(error) = Options::from_option(options.clone()) {
        assert!(!error.to_string().is_empty());
    }
}
