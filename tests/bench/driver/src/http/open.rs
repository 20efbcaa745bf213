//! W7, open: requests at a fixed rate, whether or not those before are answered. A latency counts from when its request
//! was due, so that a server that falls behind shows it.

use super::Listening;
use super::load::pump;
use super::peer::Peers;
use crate::figures::{Figures, micros, per};
use crate::measure::{Setting, WARM};
use crate::process::Launch;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::collections::VecDeque;
use std::error::Error;
use std::time::{Duration, Instant};

/// The most that a request may wait for a free connection before the server counts as overrun.
const BEHIND: Duration = Duration::from_secs(1);

/// Starts the server, warms it up and sends it `rate` requests in a second.
pub(crate) fn measure(launch: &Launch, rate: u32, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let listening = Listening::start(launch)?;
    let mut peers = Peers::new(&listening, setting)?;
    pump(&mut peers, setting.warm, WARM, &mut Vec::new())?;
    let mut run = Run { free: (0..peers.len()).collect(), peers, latencies: Vec::new() };
    let cpu = listening.server.cpu_ns()?;
    let done = run.send_all(rate, setting.time)?;
    let cpu = listening.server.cpu_ns()? - cpu;
    Ok(Figures::default().with_latencies(run.latencies).with("cpu_us", per(micros(cpu), done)))
}

struct Run<'a> {
    peers: Peers<'a>,
    free: Vec<usize>,
    latencies: Vec<u64>,
}

impl Run<'_> {
    /// Sends what is due during `time` and waits for the answers; returns how many there were.
    fn send_all(&mut self, rate: u32, time: Duration) -> Result<u64, Box<dyn Error>> {
        let step = Duration::from_secs(1) / rate;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        let step_spec = TimeSpec::from(step);
        timer.set(Expiration::Interval(step_spec), TimerSetTimeFlags::empty())?;
        self.peers.watch(&timer)?;
        let start = Instant::now();
        let mut count = 0_u32;
        let mut waiting = VecDeque::new();
        loop {
            let sends = step * count < time;
            while step * count <= start.elapsed() && step * count < time {
                waiting.push_back(start + step * count);
                count += 1;
            }
            while let Some(due) = waiting.front().copied() {
                let Some(peer) = self.free.pop() else { break };
                waiting.pop_front();
                self.peers.send(peer, due)?;
            }
            if waiting.front().is_some_and(|due| due.elapsed() > BEHIND) {
                return Err(format!("cannot keep up with {rate} requests in a second").into());
            }
            if !sends && waiting.is_empty() && self.free.len() == self.peers.len() {
                return Ok(count.into());
            }
            for (peer, due) in self.peers.answers()? {
                self.latencies.push(u64::try_from(due.elapsed().as_nanos())?);
                self.free.push(peer);
            }
            let _ = timer.wait();
        }
    }
}
