//! A live feed: a reading that changes by itself, and tells who subscribed to it.
//!
//! metrics://cpu/usage  load of the last minute per core, sampled twice a second

use mcp_resources::{Contents, Resource, ResourceServer};
use serde::Serialize;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const INTERVAL: Duration = Duration::from_millis(500);
const URI: &str = "metrics://cpu/usage";

#[derive(Clone, Copy, Default, Serialize)]
struct Sample {
    usage: f64,
    sampled_at: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let sample = Arc::new(Mutex::new(Sample::default()));
    let newest = sample.clone();
    let resource = Resource::new(URI).mime_type("application/json");
    let server = ResourceServer::builder("metrics", "1.0.0")
        .resource(resource.description("Load of the last minute per core: 1.0 is fully busy."), move |_| {
            let sample = *newest.lock().unwrap_or_else(PoisonError::into_inner);
            async move { Contents::json(&sample) }
        })
        .build()?;
    let feed = server.clone();
    std::thread::spawn(move || watch_cpu(&feed, &sample));
    Ok(server.run_stdio().await?)
}

fn watch_cpu(server: &ResourceServer, sample: &Mutex<Sample>) {
    loop {
        *sample.lock().unwrap_or_else(PoisonError::into_inner) = measure();
        if let Err(error) = server.notify_updated(URI) {
            eprintln!("{error}"); // from any thread; costs nothing while nobody is subscribed
        }
        std::thread::sleep(INTERVAL);
    }
}

fn measure() -> Sample {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|minute| minute.parse().ok()).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Sample { usage: (load / cores * 1_000.0).round() / 1_000.0, sampled_at: now.as_secs_f64() }
}
