//! An agent and what it may read: the servers and the allow-lists stand in `examples/data/agents.yaml`.
//!
//! It lists, reads what is allowed and what is not, reads everything as another agent, and follows a file that changes.

use mcp_resources::client::{Client, ClientError};
use mcp_resources::{Body, Contents};
use mcp_resources_examples::data;
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const MAIN: &str = "file:///project/src/main.ts";
const SECRET: &str = "file:///project/config.json";

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::var_os("PROJECT") {
        None => start(),
        Some(project) => run(Path::new(&project)),
    }
}

/// Runs this program again with the variables that the configuration names.
fn start() -> Result<(), Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let server = own.with_file_name("project_files");
    if !server.is_file() {
        return Err("the server is missing: cargo build -p mcp-resources-examples --examples".into());
    }
    let project = std::env::temp_dir().join(format!("project-{}", std::process::id()));
    copy(&data("project"), &project)?;
    let mut again = Command::new(own);
    again.env("RUNTIME", "env").env("PROJECT_FILES", server).env("PROJECT", &project);
    let status = again.status();
    fs::remove_dir_all(project)?;
    if status?.success() { Ok(()) } else { Err("it failed".into()) }
}

#[tokio::main(flavor = "current_thread")]
async fn run(project: &Path) -> Result<(), Box<dyn Error>> {
    let frontend = Client::from_config(data("agents.yaml"), Some("frontend"))?.connect()?;
    print!("listed:");
    let mut resources = frontend.list();
    while let Some(resource) = resources.next().await {
        print!(" {}", resource?.uri);
    }
    println!("\nallowed: {}", text(&frontend.read(MAIN).await?));
    match frontend.read(SECRET).await {
        Err(error @ ClientError::AccessDenied { .. }) => println!("refused: {error}"),
        other => return Err(format!("{other:?}").into()),
    }
    let mut changes = frontend.watch(MAIN);
    while let Some(change) = changes.next().await {
        let contents = change?.contents.ok_or("the file is gone")?;
        println!("watched: {}", text(&contents));
        if text(&contents).contains("43") {
            break;
        }
        // Renamed, so that nobody reads half of it.
        fs::write(project.join("main.new"), "export const answer = 43;\n")?;
        fs::rename(project.join("main.new"), project.join("src/main.ts"))?;
    }
    frontend.close().await;

    let admin = Client::from_config(data("agents.yaml"), Some("admin"))?.connect()?;
    println!("wildcard: {}", text(&admin.read(SECRET).await?));
    admin.close().await;
    Ok(())
}

fn text<'a>(contents: &'a [Contents<'_>]) -> &'a str {
    match contents {
        [Contents { body: Body::Text(text), .. }] => text,
        _ => "",
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
