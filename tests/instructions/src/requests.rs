//! Requests through the engine, from the line that came to the line that goes out.

use crate::{Piece, Work};
use mcp_resources_engine::catalog::{Edit, HandlerId, ItemSource};
use mcp_resources_engine::connection::{Answer, Arrival, ConnectionKind, Contents, Event};
use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::jsonrpc::{Line, Lines};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{Resource, Template};
use std::sync::Arc;

pub(crate) const PIECES: &[Piece] = &[
    ("read constant, modern", || {
        read(modern("resources/read", r#""uri":"bench://const","#), Size::default())
    }),
    ("read constant, legacy", || read(legacy("resources/read", r#""uri":"bench://const""#), Size::default())),
    ("read by template, modern", || read(modern("resources/read", ITEM), Size::default())),
    ("read by template, 1,000 templates", || {
        read(
            modern("resources/read", r#""uri":"bench://t999/a/b","#),
            Size { templates: 1_000, ..Size::default() },
        )
    }),
    ("read by template, two templates", || {
        read(modern("resources/read", OWNED), Size { owned: Owned::ByNobody, ..Size::default() })
    }),
    ("read by template, access elsewhere", || {
        read(modern("resources/read", ITEM), Size { owned: Owned::ByAccess, ..Size::default() })
    }),
    ("read by template, access answered", || {
        read(modern("resources/read", OWNED), Size { owned: Owned::ByAccess, ..Size::default() })
    }),
    ("read by template, 1,000 globs", || {
        read(modern("resources/read", ITEM), Size { globs: 1_000, ..Size::default() })
    }),
    ("read 64 KiB of text", || {
        read(modern("resources/read", ITEM), Size { text: 65_536, ..Size::default() })
    }),
    ("list 100 of 1,000", || {
        read(modern("resources/list", ""), Size { resources: 1_000, ..Size::default() })
    }),
    ("not found", || read(modern("resources/read", r#""uri":"bench://nothing/here","#), Size::default())),
    ("discover", || read(modern("server/discover", ""), Size::default())),
];

pub(crate) const CONSTANT: &str = r#""uri":"bench://const","#;
const ITEM: &str = r#""uri":"bench://item/12345","#;
const OWNED: &str = r#""uri":"bench://owned/12345","#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;
const HELLO: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// How much the server holds, and how many bytes of text its handler answers with.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) resources: usize,
    pub(crate) templates: usize,
    pub(crate) text: usize,
    /// Globs of the guard's policy, half of them allowed and half denied.
    pub(crate) globs: usize,
    /// A second template.
    pub(crate) owned: Owned,
}

/// Whether there is a second template, and a handler that decides who may use it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owned {
    /// There is none.
    Absent,
    /// Everybody may.
    ByNobody,
    /// The handler decides.
    ByAccess,
}

impl Default for Size {
    fn default() -> Self {
        Self { resources: 0, templates: 0, text: 10, globs: 0, owned: Owned::Absent }
    }
}

pub(crate) fn modern(method: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":12345,"method":"{method}","params":{{{members}{META}}}}}"#)
}

fn legacy(method: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":12345,"method":"{method}","params":{{{members}}}}}"#)
}

pub(crate) fn engine(size: Size, options: EngineOptions) -> Arc<Engine> {
    let info = ServerInfo { name: "bench".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, options).expect("a valid engine");
    let handler = engine.new_handler();
    engine.publish(catalog(size, handler), Now::default()).expect("valid resources");
    engine
}

fn options(globs: usize) -> EngineOptions {
    let mut options = EngineOptions::default();
    if globs > 0 {
        let half = globs / 2;
        let rooms = (1..half).map(|number| format!("bench://room{number}/**"));
        options.guard.allow = Some(rooms.chain(["bench://*/**".to_owned()]).collect());
        options.guard.deny = (half..globs).map(|number| format!("bench://vault{number}/*.key")).collect();
    }
    options
}

fn catalog(size: Size, handler: HandlerId) -> Vec<Edit> {
    let text = ItemSource::Text("x".repeat(96).into());
    let listed = |n| Resource::new(format!("bench://r/{n}")).mime_type("text/plain");
    let template =
        |text: String| Edit::AddTemplate { template: Box::new(Template::new(text)), handler, mount: None };
    let mut edits = vec![Edit::AddResource { resource: Resource::new("bench://const"), source: text }];
    edits.push(template("bench://item/{id}".to_owned()));
    edits.extend((0..size.templates).map(|n| template(format!("bench://t{n}/{{a}}/{{b}}"))));
    if size.owned != Owned::Absent {
        let mut owned = Template::new("bench://owned/{id}");
        owned.details.access = size.owned == Owned::ByAccess;
        edits.push(Edit::AddTemplate { template: Box::new(owned), handler, mount: None });
    }
    let resources = (0..size.resources).map(listed);
    edits.extend(
        resources.map(|resource| Edit::AddResource { resource, source: ItemSource::Handler(handler) }),
    );
    edits
}

/// One request after the other on one pipe.
fn read(request: String, size: Size) -> Work {
    let engine = engine(size, options(size.globs));
    let principal = Principal::local();
    let arrival = |message| Arrival { message, principal: &principal, header_check: None };
    let mut connection = engine.connect(ConnectionKind::Stdio);
    if !request.contains("clientInfo") {
        let _ = connection.message(arrival(HELLO), Now::default(), &mut Vec::new());
    }
    let (line, text) = (format!("{request}\n"), "x".repeat(size.text));
    let mut lines = Lines::new(engine.limits().message);
    let (principal, mut out) = (Principal::local(), Vec::new());
    Box::new(move || {
        out.clear();
        lines.push(line.as_bytes());
        let Some(Line::Message(message)) = lines.next() else { panic!("no line") };
        let arrival = Arrival { message, principal: &principal, header_check: None };
        let mut held = Vec::new();
        for event in connection.message(arrival, Now::default(), &mut out).events {
            let read = match event {
                Event::Read(read) => read,
                // Asked once: its answer is used again by the reads after the first.
                Event::Access(asked) => {
                    let answer = Answer::Access(vec![Some(true)]);
                    held.extend(connection.respond(asked.token, answer, Now::default(), &mut out).events);
                    continue;
                }
                _ => continue,
            };
            let answer = Answer::Contents(Contents::text(&*text).into());
            let _ = connection.respond(read.token, answer, Now::default(), &mut out);
        }
        for event in held {
            let Event::Again(held) = event else { continue };
            for event in connection.again(&held, Now::default(), &mut out).events {
                let Event::Read(read) = event else { continue };
                let answer = Answer::Contents(Contents::text(&*text).into());
                let _ = connection.respond(read.token, answer, Now::default(), &mut out);
            }
        }
        assert!(out.ends_with(b"}\n"), "no answer");
    })
}
