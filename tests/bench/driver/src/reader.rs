//! W16: a client that reads from our server, and says itself what it has spent.

use crate::figures::Figures;
use crate::measure::Setting;
use crate::process::{Launch, Server};
use serde::Deserialize;
use std::error::Error;
use std::time::Duration;

/// What a client prints when it has measured.
#[derive(Deserialize)]
struct Spent {
    /// Reads that were answered.
    done: u64,
    /// Processor time of all its threads, user and system.
    cpu_ns: u64,
    wall_ns: u64,
}

/// Starts the client, which starts the server.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut launch = launch.clone();
    let told = [
        ("REVISION", if setting.modern { "2026-07-28" } else { "2025-06-18" }.to_owned()),
        ("WINDOW", setting.in_flight.to_string()),
        ("WARM", setting.warm.to_string()),
        ("REQUESTS", setting.requests.to_string()),
        ("SECONDS", setting.time.as_secs_f64().to_string()),
    ];
    launch.environment.extend(told);
    let mut client = Server::start(&launch, None)?;
    let mut line = Vec::new();
    let mut chunk = [0; 1 << 10];
    while !line.contains(&b'\n') {
        let read = client.read(&mut chunk)?;
        line.extend_from_slice(&chunk[..read]);
    }
    let Spent { done, cpu_ns, wall_ns } = serde_json::from_slice(&line)?;
    Ok(Figures::of_requests(Vec::new(), done, Duration::from_nanos(wall_ns), cpu_ns))
}
