//! A client of the benchmark on `mcp-resources` in Rust. What it is told and what it prints: `../README.md`.

use mcp_resources::{Body, Contents, Revision};
use mcp_resources_client::{Client, Target};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

type Failure = Box<dyn Error>;

/// Longest time of warming up.
const WARM: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let told = |name| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let revision = Revision::parse(&told("REVISION")?).ok_or("REVISION: there is no such revision")?;
    let window = told("WINDOW")?.parse()?;
    let warm = told("WARM")?.parse()?;
    let requests = told("REQUESTS")?.parse()?;
    let time = Duration::from_secs_f64(told("SECONDS")?.parse()?);
    let mut server = std::env::args().skip(1);
    let target = Target::command(server.next().ok_or("usage: bench-client-rust SERVER…")?, server);
    let client = Client::builder().server("bench", target).revision(revision).connect()?;
    let next = Rc::new(Cell::new(1));
    LocalSet::new()
        .run_until(async {
            pump(&client, &next, window, warm, WARM).await?;
            let cpu = processor();
            let start = Instant::now();
            let done = pump(&client, &next, window, requests, time).await?;
            let cpu = processor().saturating_sub(cpu);
            let wall = start.elapsed();
            println!(r#"{{"done": {done}, "cpu_ns": {}, "wall_ns": {}}}"#, cpu.as_nanos(), wall.as_nanos());
            Ok::<(), Failure>(())
        })
        .await?;
    client.close().await;
    Ok(())
}

/// Reads `count` items, or as many as there is time for: how many.
async fn pump(
    client: &Client,
    next: &Rc<Cell<u64>>,
    window: u64,
    count: u64,
    time: Duration,
) -> Result<u64, Failure> {
    let first = next.get();
    let end = next.get() + count;
    let start = Instant::now();
    let readers: Vec<_> = (0..window)
        .map(|_| {
            let client = client.clone();
            let next = next.clone();
            tokio::task::spawn_local(async move {
                while next.get() < end && start.elapsed() < time {
                    let id = next.replace(next.get() + 1);
                    let contents = client.read(&format!("bench://item/{id}")).await?;
                    if text(&contents) != format!("item {id}") {
                        return Err(format!("wrong contents of item {id}").into());
                    }
                }
                Ok::<(), Failure>(())
            })
        })
        .collect();
    for reader in readers {
        reader.await??;
    }
    Ok(next.get() - first)
}

fn text<'a>(contents: &'a [Contents<'_>]) -> &'a str {
    match contents {
        [Contents { body: Body::Text(text), .. }] => text,
        _ => "",
    }
}

/// The processor time of all threads of this process so far, user and system.
fn processor() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
