//! Cases over real sockets: actions are read from standard input, events are written to standard output. See
//! `tests/fixtures/README.md`.
//!
//! Law: it compares nothing; the test that started it does.

use super::rules::{rules, verify};
use crate::wire::answer::answer;
use crate::wire::catalog::{self, Handlers};
use crate::wire::events::{is_quiet, seen};
use crate::wire::{START, write};
use mcp_resources_engine::connection::{Event, Events, LogLevel, Reply, RequestToken};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::now::Now;
use mcp_resources_runtime::transport::http::{HttpOptions, HttpServer, Running, Verifier, Verifying};
use mcp_resources_runtime::transport::{EngineClock, EventHandler, Peer};
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Does what standard input says, until it ends.
///
/// # Errors
/// A pipe broke, or a line is not of the format.
pub fn serve() -> io::Result<()> {
    let mut served: Option<Served> = None;
    for line in io::stdin().lines() {
        let told: Value = serde_json::from_str(&line?)?;
        let answer = match (told.get("serve"), &served) {
            (Some(given), _) => {
                drop(served.take());
                let new = Served::new(given)?;
                let port = new.running.address().port();
                served = Some(new);
                json!({ "port": port })
            }
            (None, Some(served)) => served.act(&told).map(|()| json!({ "done": true }))?,
            (None, None) => return Err(io::Error::other("nothing is served")),
        };
        println!("{answer}");
    }
    Ok(())
}

struct Served {
    engine: Arc<Engine>,
    server: Arc<HttpServer>,
    clock: Arc<EngineClock>,
    running: Running,
    author: Arc<Author>,
}

/// Records calls of handlers.
struct Author {
    handlers: Mutex<Handlers>,
    open: Mutex<Vec<Open>>,
    is_over: AtomicBool,
}

/// A request to a handler, answered or not.
struct Open {
    peer: Peer,
    token: RequestToken,
    reply: Option<Reply>,
    is_cancelled: bool,
    is_answered: bool,
}

/// Knows the tokens of a case.
struct Tokens(Value);

impl Verifier for Tokens {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(async move { verify(&self.0, token) })
    }
}

impl EventHandler for Author {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        for event in events {
            if matches!(event, Event::Interest) {
                continue;
            }
            if let Event::Access(request) = &event {
                let answer = lock(&self.handlers).decides(request);
                if let Some(reply) = peer.detach(request.token) {
                    let outcome = peer.finish(reply.encode(answer, START));
                    self.handle(peer, outcome.events);
                }
                continue;
            }
            let seen = seen(event, &lock(&self.handlers));
            let mut value = seen.value;
            let mut open = lock(&self.open);
            if let Some(token) = seen.token {
                let (peer, reply) = (peer.clone(), peer.detach(token));
                open.push(Open { peer, token, reply, is_cancelled: false, is_answered: false });
            }
            if let Some(token) = seen.cancelled {
                let is_it = |open: &Open| open.peer.connection() == peer.connection() && open.token == token;
                let index = open.iter().rposition(is_it);
                if let Some(open) = index.and_then(|index| open.get_mut(index)) {
                    open.is_cancelled = true;
                }
                value = json!({ "cancelled": index });
            }
            drop(open);
            if !is_quiet(&value) {
                println!("{}", json!({ "event": value }));
            }
        }
    }

    fn misuse(&self, what: &str) {
        eprintln!("{what}");
    }
}

impl Served {
    fn new(given: &Value) -> io::Result<Self> {
        let (engine, handlers) = catalog::engine(&given["catalog"]).map_err(io::Error::other)?;
        let author = Arc::new(Author {
            handlers: Mutex::new(handlers),
            open: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let clock = Arc::new(EngineClock::new());
        clock.set(Some(START));
        let mut options = HttpOptions::new(rules(&given["rules"]));
        options.verifier = Some(Arc::new(Tokens(given["tokens"].clone())));
        let server =
            HttpServer::new(&engine, clock.clone(), options, author.clone()).map_err(io::Error::other)?;
        let running = server.run(vec![TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?], 1, || {})?;
        Ok(Self { engine, server, clock, running, author })
    }

    fn act(&self, step: &Value) -> io::Result<()> {
        let now = self.clock.now();
        if let Some(given) = step.get("respond") {
            self.respond(given, &step["to"])?;
        } else if let Some(given) = step.get("progress") {
            self.report("progress", given)?;
        } else if let Some(given) = step.get("log") {
            self.report("log", given)?;
        } else if let Some(given) = step.get("ask") {
            self.ask(given)?;
        } else if let Some(uri) = step["updated"].as_str() {
            self.engine.updated(uri, now).map_err(io::Error::other)?;
        } else if let Some(kind) = step.get("list_changed") {
            self.engine.list_changed(catalog::list_kinds(kind), now);
        } else if let Some(given) = step.get("edit") {
            let edits = catalog::edits(given, &self.engine, &mut lock(&self.author.handlers));
            let edits = edits.map_err(io::Error::other)?;
            self.engine.publish(edits, now).map_err(io::Error::other)?;
        } else if let Some(passed) = step["tick"].as_u64() {
            self.clock.set(Some(Now { tick: now.tick + passed, unix: now.unix + passed }));
        } else if step.get("shutdown").is_some() {
            self.server.endpoint().shutdown();
        } else {
            return Err(io::Error::other(format!("{step}: no such step")));
        }
        self.server.look();
        Ok(())
    }

    fn respond(&self, given: &Value, to: &Value) -> io::Result<()> {
        let (peer, reply) = self.with(to, |open| {
            open.is_answered = true;
            (open.peer.clone(), open.reply.take())
        })?;
        let Some(reply) = reply else { return Ok(()) };
        let now = self.clock.now();
        let answer = answer(given, || reply.gather());
        let outcome = peer.finish(reply.encode(answer, now));
        self.author.handle(&peer, outcome.events);
        Ok(())
    }

    fn report(&self, verb: &str, given: &Value) -> io::Result<()> {
        let now = self.clock.now();
        self.with(&given["to"], |open| {
            let Some(reply) = open.reply.as_mut().filter(|_| !open.is_cancelled) else { return };
            let line = if verb == "progress" {
                let progress = given["progress"].as_f64().unwrap_or_default();
                reply.progress(progress, given["total"].as_f64(), given["message"].as_str(), now)
            } else {
                let level = given["level"].as_str().and_then(LogLevel::parse);
                let log = |level| reply.log(level, given["logger"].as_str(), &write(&given["data"]));
                level.and_then(log)
            };
            let cancelled = reply.cancelled();
            if let Some(line) = line {
                open.peer.report(open.token, &cancelled, &line);
            }
        })
    }

    fn ask(&self, given: &Value) -> io::Result<()> {
        let method = given["method"].as_str().unwrap_or_default();
        let params = write(&given["params"]);
        let peer = self.with(&given["to"], |open| open.peer.clone())?;
        peer.ask(method, &params).map(drop).map_err(io::Error::other)
    }

    fn with<R>(&self, to: &Value, work: impl FnOnce(&mut Open) -> R) -> io::Result<R> {
        let mut open = lock(&self.author.open);
        let found = match to.as_u64() {
            Some(number) => usize::try_from(number).ok().and_then(|index| open.get_mut(index)),
            None => open.iter_mut().find(|open| !open.is_answered),
        };
        found.map(work).ok_or_else(|| io::Error::other("no event is open"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.author.is_over.store(true, Ordering::Release);
        self.running.shutdown();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
