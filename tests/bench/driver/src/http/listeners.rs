//! W9: many listeners that wait, then one update that all of them are told.

use super::Listening;
use super::wire::{Terms, Wire, get, post};
use crate::client;
use crate::figures::{Figures, micros, per};
use crate::measure::Setting;
use crate::process::Launch;
use memchr::memmem;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

const URI: &str = "bench://sub/1";
const TOUCH: &str = "bench://touch/1";
const ACKNOWLEDGED: &[u8] = b"notifications/subscriptions/acknowledged";
const UPDATED: &[u8] = b"notifications/resources/updated";
/// How long all listeners together may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many listeners are opened before the server is waited for: fewer than the connections that a system keeps for it.
const AT_ONCE: u64 = 256;

/// What a server gets after the last acknowledgement.
const SETTLE: Duration = Duration::from_millis(100);

/// Starts the server, opens the listeners, and updates the resource that they watch.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    allow_descriptors()?;
    let listening = Listening::start(launch)?;
    let mut control = Wire::connect(listening.address)?;
    let session = if setting.modern { None } else { control.handshake()? };
    // The first use of everything, so that only listeners are weighed.
    let mut warm = Listeners::new()?;
    warm.open(&listening, setting, 8, &mut control)?;
    let before = listening.server.resident()?;
    let mut listeners = Listeners::new()?;
    listeners.open(&listening, setting, setting.requests, &mut control)?;
    // A server may acknowledge before it has written down who listens.
    std::thread::sleep(SETTLE);
    let grown = listening.server.resident()?.saturating_sub(before);
    // Of its own: a server may have closed one that was idle for so long.
    let mut caller = Wire::connect(listening.address)?;
    let cpu = listening.server.cpu_ns()?;
    let start = Instant::now();
    touch(&mut caller, setting.modern, session.as_deref())?;
    listeners.wait(UPDATED, setting.requests)?;
    let wall = start.elapsed();
    let cpu = listening.server.cpu_ns()? - cpu;
    Ok(Figures::default()
        .with("told_us", per(micros(cpu), setting.requests))
        .with("listener_kib", per(micros(grown), setting.requests) * 1_000.0 / 1_024.0)
        .with("fan_out_ms", wall.as_secs_f64() * 1_000.0))
}

/// Lets this process, and the server that it starts, hold as many connections as the system allows.
fn allow_descriptors() -> Result<(), Box<dyn Error>> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

fn touch(caller: &mut Wire, modern: bool, session: Option<&str>) -> Result<(), Box<dyn Error>> {
    let mut body = Vec::new();
    client::read(&mut body, 1_000_000, TOUCH, modern)?;
    let terms = if modern { Terms::Modern("resources/read", Some(TOUCH)) } else { Terms::Legacy(session) };
    caller.ask(terms, &body)?.message().map(drop)
}

struct Listeners {
    epoll: Epoll,
    wires: Vec<Wire>,
}

impl Listeners {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, wires: Vec::new() })
    }

    /// Opens `count` listeners and waits until the server has said so to each.
    fn open(
        &mut self,
        listening: &Listening,
        setting: &Setting,
        count: u64,
        control: &mut Wire,
    ) -> Result<(), Box<dyn Error>> {
        let said = if setting.modern { ACKNOWLEDGED } else { b"text/event-stream" };
        let mut request = Vec::new();
        let mut body = Vec::new();
        let mut waited = 0;
        for index in 0..count {
            if index == waited + AT_ONCE {
                self.wait(said, AT_ONCE)?;
                waited = index;
            }
            let mut wire = Wire::connect(listening.address)?;
            request.clear();
            body.clear();
            if setting.modern {
                client::listen(&mut body, index, URI)?;
                post(&mut request, listening.address, Terms::Modern("subscriptions/listen", None), &body)?;
            } else {
                let session = control.handshake()?.ok_or("the server keeps no session")?;
                client::subscribe(&mut body, 1, URI)?;
                control.ask(Terms::Legacy(Some(&session)), &body)?.message()?;
                get(&mut request, listening.address, &session)?;
            }
            wire.socket.write_all(&request)?;
            wire.socket.set_nonblocking(true)?;
            self.epoll.add(&wire.socket, EpollEvent::new(EpollFlags::EPOLLIN, index))?;
            self.wires.push(wire);
        }
        self.wait(said, count - waited)
    }

    /// Waits until so many listeners have heard `what`, of the resource that they watch.
    fn wait(&mut self, what: &[u8], mut missing: u64) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let mut events = vec![EpollEvent::empty(); 1_024];
        let mut chunk = vec![0; 1 << 14];
        while missing > 0 {
            let ready = self.epoll.wait(&mut events, EpollTimeout::from(1_000_u16))?;
            for event in &events[..ready] {
                let wire = &mut self.wires[usize::try_from(event.data())?];
                if !wire.receive(&mut chunk)? {
                    return Err("the server closed a listener".into());
                }
                let has_come = memmem::find(wire.waiting(), what).is_some();
                if has_come && (what != UPDATED || memmem::find(wire.waiting(), URI.as_bytes()).is_some()) {
                    *wire.waiting() = Vec::new();
                    missing -= 1;
                }
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{missing} listeners have not heard").into());
            }
        }
        Ok(())
    }
}
