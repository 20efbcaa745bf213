//! M1: a request message through the engine and its answer back, without a transport.
#![expect(clippy::expect_used, reason = "a benchmark stops at its own mistakes")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_resources_engine::catalog::{Edit, ItemSource};
use mcp_resources_engine::connection::{Answer, Arrival, Connection, ConnectionKind, Contents, Event};
use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{Resource, Template};
use std::hint::black_box;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

const MIB: usize = 1 << 20;

/// `owned`: with a template whose handler decides who may use it.
fn connection(items: usize, owned: bool) -> Connection {
    let info = ServerInfo { name: "bench".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, EngineOptions::default()).expect("a valid engine");
    let handler = engine.new_handler();
    let mut edits = vec![
        Edit::AddResource {
            resource: Resource::new("bench://const"),
            source: ItemSource::Text("x".repeat(96).into()),
        },
        Edit::AddTemplate { template: Box::new(Template::new("bench://item/{id}")), handler, mount: None },
    ];
    if owned {
        let mut template = Template::new("bench://owned/{id}");
        template.details.access = true;
        edits.push(Edit::AddTemplate { template: Box::new(template), handler, mount: None });
    }
    edits.extend((0..items).map(|n| Edit::AddResource {
        resource: Resource::new(format!("bench://r/{n}")).mime_type("text/plain"),
        source: ItemSource::Handler(handler),
    }));
    engine.publish(edits, Now::default()).expect("valid resources");
    let mut connection = engine.connect(ConnectionKind::Stdio);
    let principal = Principal::local();
    let arrival = Arrival { message: HELLO.as_bytes(), principal: &principal, header_check: None };
    connection.message(arrival, Now::default(), &mut Vec::new());
    connection
}

/// Answers the question about access that a first read asks, and the read: the reads that are measured use that answer.
fn answer_access(connection: &mut Connection, message: &str) {
    let principal = Principal::local();
    let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
    let mut out = Vec::new();
    let asked: Vec<_> =
        connection.message(arrival, Now::default(), &mut out).events.iter().filter_map(Event::asks).collect();
    for token in asked {
        let answered =
            connection.respond(token, Answer::Access(vec![Some(true)]), Now::default(), &mut out).events;
        for event in answered {
            let Event::Again(held) = event else { continue };
            for event in connection.again(&held, Now::default(), &mut out).events {
                let Event::Read(read) = event else { continue };
                let answer = Answer::Contents(Contents::text("item 12345").into());
                connection.respond(read.token, answer, Now::default(), &mut out);
            }
        }
    }
    assert!(out.ends_with(b"}\n"), "no answer");
}

fn measure(c: &mut Criterion, name: &str, message: &str, items: usize) {
    let owned = message.contains("owned");
    let mut connection = connection(items, owned);
    let principal = Principal::local();
    let mut out = Vec::new();
    if owned {
        answer_access(&mut connection, message);
    }
    c.bench_function(name, |b| {
        b.iter(|| {
            out.clear();
            let arrival =
                Arrival { message: black_box(message.as_bytes()), principal: &principal, header_check: None };
            let outcome = connection.message(arrival, Now::default(), &mut out);
            for event in outcome.events {
                if let Event::Read(read) = event {
                    let answer = Answer::Contents(Contents::text("item 12345").into());
                    connection.respond(read.token, answer, Now::default(), &mut out);
                }
            }
            black_box(out.len())
        });
    });
    assert!(!out.windows(7).any(|bytes| bytes == b"\"error\""), "an error is measured");
}

fn engine(c: &mut Criterion) {
    let modern = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":12345,"method":"{method}","params":{{{params}{META}}}}}"#)
    };
    let legacy = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":12345,"method":"{method}","params":{{{params}}}}}"#)
    };
    let item = r#""uri":"bench://item/12345""#;
    let constant = r#""uri":"bench://const""#;
    measure(c, "engine/legacy/read/handler", &legacy("resources/read", item), 0);
    measure(c, "engine/legacy/read/constant", &legacy("resources/read", constant), 0);
    measure(c, "engine/modern/read/handler", &modern("resources/read", &format!("{item},")), 0);
    let owned = modern("resources/read", r#""uri":"bench://owned/12345","#);
    measure(c, "engine/modern/read/handler, access answered", &owned, 0);
    measure(c, "engine/modern/read/constant", &modern("resources/read", &format!("{constant},")), 0);
    measure(c, "engine/modern/list/100 of 1000", &modern("resources/list", ""), 1_000);
    measure(c, "engine/modern/list/100 of 100000", &modern("resources/list", ""), 100_000);
    measure(c, "engine/modern/discover", &modern("server/discover", ""), 0);
}

/// M1 and W3: encoding 1 MiB of contents from the handler's answer into the output buffer.
fn large(c: &mut Criterion) {
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":12345,"method":"resources/read","params":{{"uri":"bench://item/12345",{META}}}}}"#
    );
    let text = "resource contents 1\n".repeat(MIB / 20 + 1);
    let blob: Vec<u8> = (0..MIB).map(|at| (at.wrapping_mul(167) + 13).to_le_bytes()[0]).collect();
    let kinds = [("text", Contents::text(&text[..MIB])), ("blob", Contents::blob(&blob))];
    let mut group = c.benchmark_group("engine/modern/read");
    group.throughput(Throughput::Bytes(MIB as u64));
    for (name, contents) in kinds {
        let mut connection = connection(0, false);
        let principal = Principal::local();
        let mut out = Vec::with_capacity(2 * MIB);
        group.bench_function(format!("1 MiB {name}"), |b| {
            b.iter(|| {
                out.clear();
                let arrival =
                    Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
                let outcome = connection.message(arrival, Now::default(), &mut out);
                for event in outcome.events {
                    if let Event::Read(read) = event {
                        let answer = Answer::Contents(black_box(contents.clone()).into());
                        connection.respond(read.token, answer, Now::default(), &mut out);
                    }
                }
                assert!(out.len() > MIB);
            });
        });
    }
}

criterion_group!(benches, engine, large);
criterion_main!(benches);
