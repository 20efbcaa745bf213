//! A handbook that is asked questions: passages in Japanese and English, each with its document, score and position.
//!
//! rag:///handbook/search/{+query}  the passages that answer a question
//! rag:///handbook/doc/{+id}        a document; subscribers are notified when it changes
//! gdrive:///{fileId}               a file of Google Drive, if the argument is a file that says which (docs/rag.md)

use mcp_resources::ResourceServer;
use mcp_resources::providers::rag::{Rag, RagOptions};
use std::error::Error;

const HANDBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/handbook");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut options = RagOptions::new().folder("handbook", HANDBOOK).exclude(["drafts"]).hits(3);
    if let Some(config) = std::env::args().nth(1) {
        options = options.drive_file("drive", config);
    }
    let server = ResourceServer::builder("retrieval", "1.0.0").mount(Rag::new(options)?).build()?;
    Ok(server.run_stdio().await?)
}
