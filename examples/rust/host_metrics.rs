//! Series of numbers: this machine, and what the program measures itself.
//!
//! metrics:///                              all series with their last values
//! metrics:///{name}                        the last hour of one, such as metrics:///cpu_usage_percent; is watched
//! metrics:///{name}{?from,to,step,format}  another part of it, such as metrics:///jobs_done?from=-5m&format=csv

use mcp_resources::ResourceServer;
use mcp_resources::providers::metrics::{Metrics, MetricsOptions};
use std::error::Error;
use std::thread;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let metrics = Metrics::new(MetricsOptions::new().host(true).interval(Duration::from_millis(200)))?;
    let server = ResourceServer::builder("machine", "1.0.0").mount(metrics.clone()).build()?;
    metrics.push("jobs_done", 0.0)?;
    thread::spawn(move || work(&metrics));
    Ok(server.run_stdio().await?)
}

/// Does a job every tenth of a second, and counts them.
fn work(metrics: &Metrics) {
    for done in 1_u32.. {
        thread::sleep(Duration::from_millis(100));
        if let Err(error) = metrics.push("jobs_done", f64::from(done)) {
            eprintln!("{error}");
        }
    }
}
