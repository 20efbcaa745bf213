//! W7: some connections that are kept alive, each with one read outstanding.

use super::Listening;
use super::wire::{Terms, Wire, post};
use crate::client::{self, Answer, shown};
use crate::measure::{Figures, Setting};
use crate::workload::Workload;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

/// Starts the server, warms it up and measures it.
pub(crate) fn measure(command: &str, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let listening = Listening::start(command)?;
    let mut run = Run::new(&listening, setting)?;
    run.pump(setting.warm, Duration::from_secs(60))?;
    run.latencies.clear();
    let (cpu, start) = (listening.server.cpu_ns()?, Instant::now());
    let done = run.pump(setting.requests, setting.time)?;
    let (cpu, wall) = (listening.server.cpu_ns()? - cpu, start.elapsed());
    Ok(Figures::of_requests(run.latencies, done, wall, cpu))
}

struct Run<'a> {
    setting: &'a Setting,
    epoll: Epoll,
    peers: Vec<Peer>,
    next: u64,
    outgoing: Vec<u8>,
    body: Vec<u8>,
    latencies: Vec<u64>,
}

struct Peer {
    wire: Wire,
    session: Option<String>,
    /// The request that is outstanding, and since when.
    waits: Option<(u64, Instant)>,
}

impl<'a> Run<'a> {
    fn new(listening: &Listening, setting: &'a Setting) -> Result<Self, Box<dyn Error>> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut peers = Vec::new();
        for index in 0..setting.workload.in_flight() {
            let mut wire = Wire::connect(listening.address)?;
            let session = if setting.modern || setting.constant { None } else { Some(wire.handshake()?) };
            wire.socket.set_nonblocking(true)?;
            epoll.add(&wire.socket, EpollEvent::new(EpollFlags::EPOLLIN, index))?;
            peers.push(Peer { wire, session, waits: None });
        }
        let (next, outgoing, body, latencies) = (1, Vec::new(), Vec::new(), Vec::new());
        Ok(Self { setting, epoll, peers, next, outgoing, body, latencies })
    }

    /// Keeps every connection busy until `count` requests are sent or `time` has passed, and all are answered; returns
    /// how many were.
    fn pump(&mut self, count: u64, time: Duration) -> Result<u64, Box<dyn Error>> {
        let (first, end) = (self.next, self.next + count);
        let start = Instant::now();
        let mut waiting = 0;
        for peer in 0..self.peers.len() {
            waiting += usize::from(self.next < end && self.send(peer)?);
        }
        let mut events = [EpollEvent::empty(); 64];
        let mut chunk = vec![0; 1 << 16];
        while waiting > 0 {
            let ready = self.epoll.wait(&mut events, EpollTimeout::from(10_000_u16))?;
            if ready == 0 {
                return Err("the server does not answer".into());
            }
            for event in &events[..ready] {
                let peer = usize::try_from(event.data())?;
                if self.receive(peer, &mut chunk)? {
                    let goes_on = self.next < end && start.elapsed() < time;
                    waiting -= usize::from(!(goes_on && self.send(peer)?));
                }
            }
        }
        Ok(self.next - first)
    }

    fn send(&mut self, peer: usize) -> Result<bool, Box<dyn Error>> {
        let (id, peer) = (self.next, &mut self.peers[peer]);
        self.next += 1;
        let uri = self.setting.workload.uri(id);
        self.body.clear();
        client::read(&mut self.body, id, &uri, self.setting.modern)?;
        let terms = match (&peer.session, self.setting.modern) {
            (_, true) => Terms::Modern("resources/read", Some(&uri)),
            (Some(session), false) => Terms::Session(session),
            (None, false) => Terms::Start,
        };
        self.outgoing.clear();
        post(&mut self.outgoing, terms, &self.body)?;
        peer.waits = Some((id, Instant::now()));
        peer.wire.socket.write_all(&self.outgoing)?;
        Ok(true)
    }

    /// Reads once; whether the answer is there.
    fn receive(&mut self, peer: usize, chunk: &mut [u8]) -> Result<bool, Box<dyn Error>> {
        let peer = &mut self.peers[peer];
        if !peer.wire.receive(chunk)? {
            return Err("the server closed a connection".into());
        }
        let Some(response) = peer.wire.next()? else { return Ok(false) };
        let (id, since) = peer.waits.take().ok_or("an answer to nothing")?;
        self.latencies.push(u64::try_from(since.elapsed().as_nanos())?);
        let message = response.message()?;
        let answer = Answer::parse(&message)?;
        let workload = if self.setting.constant { Workload::Static } else { self.setting.workload };
        if answer.id == Some(id) && workload.accepts(id, answer.contents()?) {
            return Ok(true);
        }
        Err(format!("wrong answer to request {id}: {}", shown(&message)).into())
    }
}
