//! A handbook in Japanese and English: pages of Markdown, their sections, and a search over all of them.
//!
//! docs:///handbook/{+page}          a page, or a section of it with `#slug`; subscribers are notified when it changes
//! docs:///handbook/search/{+query}  the pages that have all of some words, as JSON

use mcp_resources::ResourceServer;
use mcp_resources::providers::docs::{Docs, DocsOptions};
use std::error::Error;

const HANDBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/handbook");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let docs = Docs::new(DocsOptions::new().site("handbook", HANDBOOK).exclude(["drafts"]))?;
    let server = ResourceServer::builder("handbook", "1.0.0").mount(docs).build()?;
    Ok(server.run_stdio().await?)
}
