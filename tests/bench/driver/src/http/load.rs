//! W7: some connections that are kept alive, each with one read outstanding.

use super::Listening;
use super::peer::Peers;
use crate::figures::Figures;
use crate::measure::{Setting, WARM};
use crate::process::Launch;
use std::error::Error;
use std::time::{Duration, Instant};

/// Starts the server, warms it up and measures it.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let listening = Listening::start(launch)?;
    let mut peers = Peers::new(&listening, setting)?;
    let mut latencies = Vec::new();
    pump(&mut peers, setting.warm, WARM, &mut latencies)?;
    latencies.clear();
    let cpu = listening.server.cpu_ns()?;
    let start = Instant::now();
    let done = pump(&mut peers, setting.requests, setting.time, &mut latencies)?;
    let cpu = listening.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    Ok(Figures::of_requests(latencies, done, wall, cpu))
}

/// Keeps every connection busy until `count` requests are sent or `time` has passed, and all are answered; returns
/// how many were.
pub(super) fn pump(
    peers: &mut Peers<'_>,
    count: u64,
    time: Duration,
    latencies: &mut Vec<u64>,
) -> Result<u64, Box<dyn Error>> {
    let mut sent = 0;
    let mut answered = 0;
    let start = Instant::now();
    for peer in 0..peers.len() {
        if sent < count {
            peers.send(peer, Instant::now())?;
            sent += 1;
        }
    }
    while answered < sent {
        for (peer, since) in peers.answers()? {
            latencies.push(u64::try_from(since.elapsed().as_nanos())?);
            answered += 1;
            if sent < count && start.elapsed() < time {
                peers.send(peer, Instant::now())?;
                sent += 1;
            }
        }
    }
    Ok(answered)
}
