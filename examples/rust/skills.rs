//! A folder of Agent Skills, for hosts that load skills over MCP and for clients that only know resources.
//!
//! skill://{+path}                                     a file of a skill
//! skills/list, skills/get, resources/directory/read   the methods of the skills extension

use mcp_resources::ResourceServer;
use mcp_resources::providers::skills::{SkillOptions, Skills};
use std::error::Error;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/skills");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let skills = Skills::new(SkillOptions::new().path(FOLDER))?;
    let server = ResourceServer::builder("team-skills", "1.0.0").mount(skills).build()?;
    Ok(server.run_stdio().await?)
}
