//! The connections of one measurement: which waits for what since when, and whether its answer is right.

use super::Listening;
use super::wire::{Terms, Wire, post};
use crate::client::{Answer, shown};
use crate::measure::Setting;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::error::Error;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Instant;

/// What `epoll` says of what is no connection.
const OTHER: u64 = u64::MAX;

/// The connections.
pub(super) struct Peers<'a> {
    setting: &'a Setting,
    epoll: Epoll,
    peers: Vec<Peer>,
    next: u64,
    outgoing: Vec<u8>,
    body: Vec<u8>,
    chunk: Vec<u8>,
}

struct Peer {
    wire: Wire,
    session: Option<String>,
    /// The request that is outstanding, and since when.
    waits: Option<(u64, Instant)>,
}

impl<'a> Peers<'a> {
    /// Opens the connections, and in the legacy era their sessions.
    pub(super) fn new(listening: &Listening, setting: &'a Setting) -> Result<Self, Box<dyn Error>> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut peers = Vec::new();
        let is_floor = setting.read == crate::workload::Read::Anything;
        for index in 0..setting.in_flight {
            let mut wire = Wire::connect(listening.address)?;
            let session = if setting.modern || is_floor { None } else { wire.handshake()? };
            wire.socket.set_nonblocking(true)?;
            epoll.add(&wire.socket, EpollEvent::new(EpollFlags::EPOLLIN, index))?;
            peers.push(Peer { wire, session, waits: None });
        }
        let outgoing = Vec::new();
        let body = Vec::new();
        let chunk = vec![0; 1 << 16];
        Ok(Self { setting, epoll, peers, next: 1, outgoing, body, chunk })
    }

    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Wakes [`Self::answers`] besides answers.
    pub(super) fn watch(&self, other: impl AsFd) -> nix::Result<()> {
        self.epoll.add(other, EpollEvent::new(EpollFlags::EPOLLIN, OTHER))
    }

    /// Sends a request that was due at `since`.
    pub(super) fn send(&mut self, peer: usize, since: Instant) -> Result<(), Box<dyn Error>> {
        let id = self.next;
        let peer = &mut self.peers[peer];
        self.next += 1;
        let read = self.setting.read;
        let uri = read.uri(id);
        self.body.clear();
        read.write(&mut self.body, id, self.setting.modern)?;
        let terms = if self.setting.modern {
            Terms::Modern(read.method(), Some(&uri))
        } else {
            Terms::Legacy(peer.session.as_deref())
        };
        self.outgoing.clear();
        post(&mut self.outgoing, peer.wire.host, terms, &self.body)?;
        peer.waits = Some((id, since));
        Ok(peer.wire.socket.write_all(&self.outgoing)?)
    }

    /// Waits until something comes; which connections have their answer, and since when it was due.
    pub(super) fn answers(&mut self) -> Result<Vec<(usize, Instant)>, Box<dyn Error>> {
        let mut events = [EpollEvent::empty(); 64];
        let ready = self.epoll.wait(&mut events, EpollTimeout::from(10_000_u16))?;
        if ready == 0 {
            return Err("the server does not answer".into());
        }
        let mut answered = Vec::new();
        for event in events[..ready].iter().filter(|event| event.data() != OTHER) {
            let peer = usize::try_from(event.data())?;
            if let Some(since) = self.receive(peer)? {
                answered.push((peer, since));
            }
        }
        Ok(answered)
    }

    /// Reads once; since when the answer was due, if it is there.
    fn receive(&mut self, peer: usize) -> Result<Option<Instant>, Box<dyn Error>> {
        let peer = &mut self.peers[peer];
        if !peer.wire.receive(&mut self.chunk)? {
            return Err("the server closed a connection".into());
        }
        let Some(response) = peer.wire.next()? else { return Ok(None) };
        let (id, since) = peer.waits.take().ok_or("an answer to nothing")?;
        let message = response.message()?;
        let answer = Answer::parse(&message)?;
        if answer.id == Some(id) && self.setting.read.accepts_answer(id, &answer)? {
            return Ok(Some(since));
        }
        Err(format!("wrong answer to request {id}: {}", shown(&message)).into())
    }
}
