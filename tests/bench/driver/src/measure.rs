//! One measurement: one server, one workload.

use crate::client::{self, Answer};
use crate::process::Server;
use crate::workload::Workload;
use std::error::Error;
use std::time::{Duration, Instant};

/// What to measure.
pub(crate) struct Setting {
    pub(crate) workload: Workload,
    /// Requests of 2026-07-28.
    pub(crate) modern: bool,
    /// The server answers the static text whatever is read.
    pub(crate) constant: bool,
    /// Requests before counting.
    pub(crate) warm: u64,
    /// Most requests that count.
    pub(crate) requests: u64,
    /// When to stop sending before that.
    pub(crate) time: Duration,
}

/// What came out, per request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Median time from the request to its answer, in µs; meaningful with one in flight.
    pub(crate) p50_us: f64,
    /// The time that one request in a hundred took longer than, in µs.
    pub(crate) p99_us: f64,
    /// Answers per second.
    pub(crate) rate: f64,
    /// Processor time of the server, in µs; with listeners, for each of them that was told.
    pub(crate) cpu_us: f64,
    /// Memory of the server for each listener, in KiB.
    pub(crate) listener_kib: f64,
    /// Time until the last listener was told, in ms.
    pub(crate) fan_out_ms: f64,
}

impl Figures {
    /// Of `done` requests that took `wall`, and the server `cpu` nanoseconds.
    pub(crate) fn of_requests(mut latencies: Vec<u64>, done: u64, wall: Duration, cpu: u64) -> Self {
        latencies.sort_unstable();
        let at = |part: usize| latencies.get(latencies.len() * part / 100).copied().unwrap_or_default();
        Self {
            p50_us: micros(at(50)),
            p99_us: micros(at(99)),
            rate: 1.0 / per(wall.as_secs_f64(), done),
            cpu_us: per(micros(cpu), done),
            ..Self::default()
        }
    }
}

/// Starts the server, warms it up and measures it.
pub(crate) fn measure(command: &str, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut run = Run::new(Server::start(command)?, setting);
    if !setting.modern {
        run.handshake()?;
    }
    run.pump(setting.warm, Duration::from_secs(30))?;
    run.latencies.clear();
    let (cpu, start) = (run.server.cpu_ns()?, Instant::now());
    let done = run.pump(setting.requests, setting.time)?;
    let (cpu, wall) = (run.server.cpu_ns()? - cpu, start.elapsed());
    Ok(Figures::of_requests(run.latencies, done, wall, cpu))
}

struct Run<'a> {
    server: Server,
    setting: &'a Setting,
    next: u64,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    chunk: Vec<u8>,
    sent_at: Instant,
    latencies: Vec<u64>,
}

impl<'a> Run<'a> {
    fn new(server: Server, setting: &'a Setting) -> Self {
        Self {
            server,
            setting,
            next: 1,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            chunk: vec![0; 1 << 18],
            sent_at: Instant::now(),
            latencies: Vec::new(),
        }
    }

    fn handshake(&mut self) -> Result<(), Box<dyn Error>> {
        self.server.write(client::INITIALIZE)?;
        while !self.receive()? {}
        let answer = Answer::parse(self.incoming.trim_ascii_end())?;
        if answer.id != Some(0) {
            return Err("no answer to initialize".into());
        }
        self.incoming.clear();
        Ok(self.server.write(client::INITIALIZED)?)
    }

    /// Keeps the window full until `count` requests are answered or `time` has passed; returns how many were.
    ///
    /// Every answer makes room for one request, which is written at once and by itself, as clients do.
    fn pump(&mut self, count: u64, time: Duration) -> Result<u64, Box<dyn Error>> {
        let (first, end) = (self.next, self.next + count);
        let start = Instant::now();
        let mut waiting = 0;
        while waiting < self.setting.workload.in_flight().min(count) {
            self.send()?;
            waiting += 1;
        }
        while waiting > 0 {
            if !self.receive()? {
                continue;
            }
            if self.setting.workload.in_flight() == 1 {
                self.latencies.push(u64::try_from(self.sent_at.elapsed().as_nanos())?);
            }
            let lines = std::mem::take(&mut self.incoming);
            for line in Lines(&lines) {
                self.check(line?, first)?;
                waiting -= 1;
                if self.next < end && start.elapsed() < time {
                    self.send()?;
                    waiting += 1;
                }
            }
            self.incoming = lines;
            self.keep_rest();
        }
        Ok(self.next - first)
    }

    fn send(&mut self) -> Result<(), Box<dyn Error>> {
        self.outgoing.clear();
        client::read(
            &mut self.outgoing,
            self.next,
            &self.setting.workload.uri(self.next),
            self.setting.modern,
        )?;
        self.next += 1;
        self.sent_at = Instant::now();
        Ok(self.server.write(&self.outgoing)?)
    }

    /// Reads once; whether there is a whole line now.
    fn receive(&mut self) -> Result<bool, Box<dyn Error>> {
        let read = self.server.read(&mut self.chunk)?;
        self.incoming.extend_from_slice(&self.chunk[..read]);
        Ok(memchr::memchr(b'\n', &self.chunk[..read]).is_some())
    }

    fn check(&self, line: &[u8], first: u64) -> Result<(), Box<dyn Error>> {
        let answer = Answer::parse(line)?;
        let id = answer.id.filter(|id| (first..self.next).contains(id)).ok_or("an answer to nothing")?;
        let workload = if self.setting.constant { Workload::Static } else { self.setting.workload };
        if workload.accepts(id, answer.contents()?) {
            return Ok(());
        }
        Err(format!("wrong contents for request {id}: {}", client::shown(line)).into())
    }

    /// Drops the lines that were dealt with.
    fn keep_rest(&mut self) {
        let end = memchr::memrchr(b'\n', &self.incoming).map_or(0, |at| at + 1);
        self.incoming.drain(..end);
    }
}

/// The whole lines of a buffer.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = Result<&'a [u8], Box<dyn Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr::memchr(b'\n', self.0)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(Ok(line))
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
pub(crate) fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
pub(crate) fn per(value: f64, count: u64) -> f64 {
    value / count.max(1) as f64
}
