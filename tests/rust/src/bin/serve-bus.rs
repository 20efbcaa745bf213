//! A process of a server on a bus, for `tests/python/test_bus_languages.py`. Arguments: port, URL of the bus, policy as JSON.
//! It announces each URI of its input as changed.

use mcp_resources_engine::seal::SealKey;
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::transport::read_policy;
use std::error::Error;
use std::io::{BufRead as _, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("needs a port, the URL of a bus, and a policy");
    let port: u16 = next()?.parse()?;
    let bus = mcp_resources_bus::from_url(&next()?)?;
    let server = ResourceServer::builder("notes", "1.0.0")
        .key(SealKey::from_secret(b"0f1e2d3c4b5a69788796a5b4c3d2e1f0")?)
        .guard(read_policy(&next()?)?)
        .bus(bus)
        .template("note://{id}", async |request| request.uri)
        .build()?;
    let told = server.clone();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if let Err(error) = told.notify_updated(line.trim()) {
                eprintln!("{error}");
            }
        }
    });
    server.http().bind(("127.0.0.1", port)).await?.serve().await;
    Ok(())
}
