//! Notes of teams, of which a policy file says who may see what.
//!
//! team://{team}/plan          what a team is up to
//! team://{team}/notes/{name}  a note; completes the names that may be seen

use mcp_resources::{ReadError, ReadRequest, ResourceServer, Template, load_policy};
use mcp_resources_examples::data;
use std::error::Error;

const NOTES: [(&str, &str); 3] =
    [("launch", "On Tuesday."), ("retrospective", "More tea."), ("salaries", "Not for everybody.")];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ResourceServer::builder("team", "1.0.0")
        .guard(load_policy(data("guard.yaml"))?)
        .template(Template::new("team://{team}/plan").description("What a team is up to."), plan)
        .template(Template::new("team://{team}/notes/{name}").description("A note of a team."), note)
        .complete("name", |request| async move {
            let names = NOTES.iter().map(|(name, _)| *name);
            names.filter(|name| name.starts_with(&request.value)).collect::<Vec<_>>()
        })
        .build()?;
    Ok(server.run_stdio().await?)
}

async fn plan(request: ReadRequest) -> Result<String, ReadError> {
    Ok(format!("The plan of {}.", request.param("team").unwrap_or_default()))
}

async fn note(request: ReadRequest) -> Result<String, ReadError> {
    let team = request.param("team");
    let name = request.param("name").unwrap_or_default();
    let (_, text) = NOTES.iter().find(|(own, _)| *own == name).ok_or(ReadError::NotFound)?;
    Ok(format!("{}: {text}", team.unwrap_or_default()))
}
