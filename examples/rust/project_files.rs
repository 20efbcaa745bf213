//! A folder of files, as the servers of agents' configurations are: `project_files --root FOLDER`.
//!
//! file:///project/{+path}  a file below the folder; subscribers are notified when it changes

use mcp_resources::ResourceServer;
use mcp_resources::providers::files::{FileOptions, Files};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let root = match &std::env::args().collect::<Vec<_>>()[..] {
        [_, option, root] if option == "--root" => root.clone(),
        _ => return Err("usage: project_files --root FOLDER".into()),
    };
    let files = Files::new(FileOptions::new().root("project", root))?;
    let server = ResourceServer::builder("filesystem", "1.0.0").mount(files).build()?;
    Ok(server.run_stdio().await?)
}
