//! Answers of an HTTP API, under a scheme of our own, so that clients ask this server and not the API.
//!
//! `api://users/{id}` is `GET <base>/users/<id>`.
//!
//!     cargo run --example http_api -- http://127.0.0.1:8080      (or API_BASE_URL in the environment)

use mcp_resources::{CacheHint, HandlerError, ReadError, ReadRequest, ResourceServer, Template, blocking};
use std::error::Error;
use std::time::Duration;

#[derive(serde::Deserialize)]
struct User {
    id: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let base = std::env::args().nth(1).or_else(|| std::env::var("API_BASE_URL").ok());
    let base = base.unwrap_or_else(|| "http://127.0.0.1:8080".into());
    let api = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(5))).build().new_agent();
    let user = Template::new("api://users/{id}").mime_type("application/json");
    let server = ResourceServer::builder("api", "1.0.0")
        .template(
            user.description("A user of the API.").cache(CacheHint { ttl_ms: 5_000, ..CacheHint::default() }),
            blocking(move |request: ReadRequest| {
                let User { id } = request.params()?;
                fetch(&api, &format!("{base}/users/{id}"))
            }),
        )
        .build()?;
    Ok(server.run_stdio().await?)
}

fn fetch(api: &ureq::Agent, url: &str) -> Result<String, HandlerError> {
    match api.get(url).call() {
        Ok(mut response) => Ok(response.body_mut().read_to_string()?),
        Err(ureq::Error::StatusCode(404)) => Err(ReadError::NotFound.into()),
        Err(error) => Err(error.into()), // logged here; the client hears that the read failed, and no more
    }
}
