//! What the host of a pipe adds to a request.

use crate::{Piece, Work};
use mcp_resources_engine::catalog::Edit;
use mcp_resources_engine::connection::{Answer, Contents, Event, Events, ReadResult};
use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::jsonrpc::{Line, Lines};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::resource::{RegistrationError, Template};
use mcp_resources_runtime::provider::{Feed, Mount, Mounts, Provider, Read, ReadRef, Responder, Route};
use mcp_resources_runtime::transport::{EngineClock, EventHandler, Peer, Pipe};
use std::sync::Arc;

pub(crate) const PIECES: &[Piece] = &[
    ("read by template, through a pipe", || read(false)),
    ("read by a provider at once, through a pipe", || read(true)),
];

const REQUEST: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"resources/read","params":{"uri":"bench://item/12345","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}"#;
const TEMPLATE: &str = "bench://item/{id}";
const TEXT: &str = "xxxxxxxxxx";

/// Answers from memory.
struct Memory;

impl Provider for Memory {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        Ok(Mount::new("memory").template(Route(0), Template::new(TEMPLATE)))
    }

    fn read_now(&self, _request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        Some(Ok(Contents::text(TEXT).into()))
    }

    fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(Err(ReadError::NotFound));
    }
}

/// Never asked: everything is answered where it was read.
struct Nobody;

impl EventHandler for Nobody {
    fn handle(&self, _peer: &Peer, _events: Events<'_>) {}

    fn misuse(&self, what: &str) {
        panic!("{what}");
    }
}

/// One request after the other on one pipe: answered by a provider, or as a function of the author's would be.
fn read(provided: bool) -> Work {
    let info = ServerInfo { name: "bench".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, EngineOptions::default()).expect("a valid engine");
    let clock = Arc::new(EngineClock::new());
    clock.set(Some(Now::default()));
    let mounts = Mounts::new(clock.clone());
    mounts.serve(&engine);
    if provided {
        mounts.mount(Arc::new(Memory)).expect("a provider");
    } else {
        let handler = engine.new_handler();
        let edit = Edit::AddTemplate { template: Box::new(Template::new(TEMPLATE)), handler, mount: None };
        engine.publish(vec![edit], Now::default()).expect("a template");
    }
    let pipe = Arc::new(Pipe::new(&engine, clock.clone()));
    let peer = Peer::pipe(pipe.clone(), clock, Arc::new(Nobody));
    let mut lines = Lines::new(engine.limits().message);
    let line = format!("{REQUEST}\n");
    Box::new(move || {
        lines.push(line.as_bytes());
        let Some(line @ Line::Message(_)) = lines.next() else { panic!("no line") };
        for event in pipe.line(line).events {
            match mounts.part(&event) {
                Some(part) => drop(mounts.answer(&part, &peer, event)),
                None => {
                    let Event::Read(read) = event else { panic!("no read") };
                    peer.respond(read.token, Answer::Contents(Contents::text(TEXT).into()));
                }
            }
        }
        let written = pipe.flush(|bytes| {
            assert!(bytes.ends_with(b"}\n"), "no answer");
            Ok(bytes.len())
        });
        assert_eq!(written, mcp_resources_runtime::transport::Flushed::All);
        // Keeps the engine alive: providers hold it weakly.
        let _ = &engine;
    })
}
