//! An HTTP API as declared endpoints: no function is written.
//!
//! api:///directory/user/{+id}   a user of the API; is polled while it is watched
//!
//! cargo run -p mcp-resources-examples --example api_endpoints http://127.0.0.1:8080

use mcp_resources::ResourceServer;
use mcp_resources::providers::api::{Api, ApiEndpoint, ApiOptions};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let base = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8080".into());
    let user = ApiEndpoint::new(format!("{base}/users/{{id}}"));
    // The API is on this machine; others need no `private_networks`.
    let options = ApiOptions::new().endpoint("directory", "user", user).private_networks(true);
    let server = ResourceServer::builder("api", "1.0.0").mount(Api::new(options)?).build()?;
    Ok(server.run_stdio().await?)
}
