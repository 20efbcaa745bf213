//! Keys of a configuration file, and variables of the environment: no function is written, and secrets are masked.
//!
//! config:///app          what is allowed of the file, as JSON
//! config:///app/{+key}   one key, such as config:///app/server/port; completes the keys, is watched
//! env:///{name}          one variable

use mcp_resources::ResourceServer;
use mcp_resources::providers::{config, env};
use mcp_resources_examples::data;
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).map_or_else(|| data("app.json"), Into::into);
    let keys = config::ConfigOptions::new().app("app", file).allow(["server", "server/*", "theme/**"]);
    let server = ResourceServer::builder("settings", "1.0.0")
        .mount(config::Config::new(keys)?)
        .mount(env::Env::new(env::EnvOptions::new().allow(["TZ", "APP_*"]))?)
        .build()?;
    Ok(server.run_stdio().await?)
}
