//! A folder of documents, their names and texts in any script.
//!
//! docs:///{name}  a Markdown file of examples/data/docs; listed with its heading as title, completes the names

use mcp_resources::template::{UriTemplate, Values};
use mcp_resources::{
    CompletionRequest, HandlerError, ListRequest, ReadError, ReadRequest, Resource, ResourceServer, Template,
    blocking,
};
use mcp_resources_examples::data;
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use unicode_normalization::UnicodeNormalization;

/// `{name}` never matches a slash or `..`: a URI cannot leave the folder.
const URI: &str = "docs:///{name}";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let document = Template::new(URI).mime_type("text/markdown").description("A document.");
    let server = ResourceServer::builder("documents", "1.0.0")
        .template(document, blocking(read))
        .complete("name", blocking(names))
        .list(blocking(|_: ListRequest| listing()))
        .build()?;
    Ok(server.run_stdio().await?)
}

/// The files by name. Some file systems decompose accents and kana; URIs have the composed form.
fn documents() -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(data("docs"))? {
        let path = entry?.path();
        if let (Some("md"), Some(name)) = (path.extension().and_then(|e| e.to_str()), path.file_name()) {
            found.insert(name.to_string_lossy().nfc().collect(), path);
        }
    }
    Ok(found)
}

fn read(request: ReadRequest) -> Result<String, HandlerError> {
    let name: String = request.param("name").unwrap_or_default().nfc().collect();
    let path = documents()?.remove(&name).ok_or(ReadError::NotFound)?;
    Ok(std::fs::read_to_string(path)?)
}

fn names(request: CompletionRequest) -> io::Result<Vec<String>> {
    let start: String = request.value.nfc().collect();
    Ok(documents()?.into_keys().filter(|name| name.starts_with(&start)).collect())
}

fn listing() -> Result<Vec<Resource>, HandlerError> {
    let template = UriTemplate::parse(URI)?;
    documents()?
        .into_iter()
        .map(|(name, path)| {
            let text = std::fs::read_to_string(&path)?;
            let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
            let uri = template.expand(&Values::new().with("name", &*name))?;
            let resource = Resource::new(uri).title(title).mime_type("text/markdown");
            Ok(resource.size(text.len() as u64).name(name))
        })
        .collect()
}
