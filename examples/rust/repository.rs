//! A git repository, read-only, without a function of one's own: `repository DIR`.
//!
//! git:///project/status            what is staged, changed and untracked
//! git:///project/log{?n,path}      the newest commits; `/branches`, `/tags` and `/commit/{id}` beside it
//! git:///project/diff/{from}/{to}  a patch; `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}` are the files of any revision

use mcp_resources::ResourceServer;
use mcp_resources::providers::git::{Git, GitOptions};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: repository DIR")?;
    let git = Git::new(GitOptions::new().repo("project", directory).exclude(["secret"]))?;
    let server = ResourceServer::builder("repository", "1.0.0").mount(git).build()?;
    Ok(server.run_stdio().await?)
}
