//! One measurement: one server, one workload.

use crate::client::{self, Answer};
use crate::figures::{Figures, mib};
use crate::process::{Launch, Server};
use crate::workload::Read;
use std::error::Error;
use std::time::{Duration, Instant};

/// What to measure.
pub(crate) struct Setting {
    /// What each request reads.
    pub(crate) read: Read,
    /// Requests of 2026-07-28.
    pub(crate) modern: bool,
    /// Requests that are outstanding at once.
    pub(crate) in_flight: u64,
    /// Whether what is due is written in one write, or each request by itself.
    pub(crate) in_bursts: bool,
    /// Requests before counting.
    pub(crate) warm: u64,
    /// Most requests that count.
    pub(crate) requests: u64,
    /// When to stop sending before that.
    pub(crate) time: Duration,
    /// Whether everything is small, because only the run itself is of interest.
    pub(crate) is_quick: bool,
}

/// Longest time of warming up: a server that takes long for each request gets fewer.
pub(crate) const WARM: Duration = Duration::from_secs(3);

/// Starts the server, warms it up and measures it.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut run = Run::new(Server::start(launch, None)?, setting);
    if !setting.modern {
        run.handshake()?;
    }
    run.measure()
}

/// A server over stdio, and what is outstanding.
pub(crate) struct Run<'a> {
    pub(crate) server: Server,
    setting: &'a Setting,
    next: u64,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    chunk: Vec<u8>,
    sent_at: Instant,
    latencies: Vec<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(server: Server, setting: &'a Setting) -> Self {
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

    /// Opens a legacy session.
    pub(crate) fn handshake(&mut self) -> Result<(), Box<dyn Error>> {
        self.server.write(client::INITIALIZE)?;
        while !self.receive()? {}
        let answer = Answer::parse(self.incoming.trim_ascii_end())?;
        if answer.id != Some(0) {
            return Err("no answer to initialize".into());
        }
        self.incoming.clear();
        Ok(self.server.write(client::INITIALIZED)?)
    }

    /// Waits for whatever the process says first.
    pub(crate) fn first_line(&mut self) -> Result<(), Box<dyn Error>> {
        while !self.receive()? {}
        Ok(())
    }

    /// Warms the server up, and measures it.
    pub(crate) fn measure(&mut self) -> Result<Figures, Box<dyn Error>> {
        self.pump(self.setting.warm, WARM)?;
        self.latencies.clear();
        let cpu = self.server.cpu_ns()?;
        let start = Instant::now();
        let done = self.pump(self.setting.requests, self.setting.time)?;
        let cpu = self.server.cpu_ns()? - cpu;
        let wall = start.elapsed();
        let figures = Figures::of_requests(std::mem::take(&mut self.latencies), done, wall, cpu);
        let Some(bytes) = self.setting.read.large() else { return Ok(figures) };
        // Of the waiting alone: checking what came takes the driver longer.
        let rate = mib(u64::try_from(bytes)?) * 1_000_000.0 / figures.get("p50_us");
        Ok(figures.with("mib_s", rate))
    }

    /// Keeps the window full until `count` requests are answered or `time` has passed; returns how many were.
    ///
    /// Every answer makes room for one request. Those that one read made room for are written in one write or, as the
    /// setting has it, each by itself.
    pub(crate) fn pump(&mut self, count: u64, time: Duration) -> Result<u64, Box<dyn Error>> {
        let first = self.next;
        let end = self.next + count;
        let start = Instant::now();
        let mut waiting = 0;
        while waiting < self.setting.in_flight.min(count) {
            self.word()?;
            waiting += 1;
        }
        self.flush()?;
        while waiting > 0 {
            if !self.receive()? {
                continue;
            }
            if self.setting.in_flight == 1 {
                self.latencies.push(u64::try_from(self.sent_at.elapsed().as_nanos())?);
            }
            let lines = std::mem::take(&mut self.incoming);
            for line in Lines(&lines) {
                if !self.answers(line?, first)? {
                    continue;
                }
                waiting -= 1;
                if self.next < end && start.elapsed() < time {
                    self.word()?;
                    waiting += 1;
                    if !self.setting.in_bursts {
                        self.flush()?;
                    }
                }
            }
            self.flush()?;
            self.incoming = lines;
            self.keep_rest();
        }
        Ok(self.next - first)
    }

    /// Words the next request.
    fn word(&mut self) -> std::io::Result<()> {
        self.setting.read.write(&mut self.outgoing, self.next, self.setting.modern)?;
        self.next += 1;
        Ok(())
    }

    /// Writes what was worded.
    fn flush(&mut self) -> std::io::Result<()> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        self.sent_at = Instant::now();
        self.server.write(&self.outgoing)?;
        self.outgoing.clear();
        Ok(())
    }

    /// Reads once; whether there is a whole line now.
    fn receive(&mut self) -> Result<bool, Box<dyn Error>> {
        let read = self.server.read(&mut self.chunk)?;
        self.incoming.extend_from_slice(&self.chunk[..read]);
        Ok(memchr::memchr(b'\n', &self.chunk[..read]).is_some())
    }

    /// Whether a line is an answer, which must be the right one; else it is a notification.
    fn answers(&self, line: &[u8], first: u64) -> Result<bool, Box<dyn Error>> {
        let answer = Answer::parse(line)?;
        if answer.is_notification() {
            return Ok(false);
        }
        let id = answer.id.filter(|id| (first..self.next).contains(id)).ok_or("an answer to nothing")?;
        if self.setting.read.accepts_answer(id, &answer)? {
            return Ok(true);
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
