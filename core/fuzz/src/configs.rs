//! Configuration files of `serve` and of clients; and files whose keys are served.

use mcp_resources_client::ClientConfig;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_providers::config;
use mcp_resources_providers::files::FileOptions;
use mcp_resources_runtime::transport::document_yaml;
use mcp_resources_serve::ServeDocument;
use mcp_resources_template::uri;
use std::collections::BTreeSet;
use std::path::Path;

/// Any text is a document or an error that says something, as JSON and as YAML; so is what it says of files. Reading it
/// opens nothing and takes bounded time.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = ClientConfig::parse(&text, "folder") {
        assert!(!error.message.is_empty());
    }
    let value = match document_yaml(&text) {
        Ok(value) => value,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    match ServeDocument::parse(value, "name") {
        Err(reason) => assert!(!reason.is_empty()),
        Ok(document) => document.declared().for_each(|(_, options)| files(options)),
    }
}

fn files(options: &OptionValue) {
    if let Err(error) = FileOptions::from_option(options.clone()) {
        assert!(!error.to_string().is_empty());
    }
}

/// Any bytes are keys or an error that says something, in each of the four forms. Every key has one URI, in canonical form, and
/// is found by it; its value is no larger than the limits of a file allow.
pub fn config_file(data: &[u8]) {
    let Some((form, bytes)) = data.split_first() else { return };
    let name = ["app.yaml", "app.toml", "app.json", "app.env"][usize::from(*form) % 4];
    let served = match config::served(Path::new(name), bytes) {
        Ok(served) => served,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let mut uris = BTreeSet::new();
    for (key, value) in &served {
        assert_eq!(uri::normalize(key, usize::MAX).as_deref(), Ok(key.as_str()));
        assert!(uris.insert(key), "{key} stands twice");
        assert!(value.to_string().len() < 256 << 20);
    }
}
