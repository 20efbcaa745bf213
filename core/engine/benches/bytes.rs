//! The byte path: reading a request, cutting lines, writing text and blobs. `cargo bench --bench bytes`

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcp_resources_engine::jsonrpc::{self, DecodeLimits, Envelope, Id, Json, Lines};
use mcp_resources_engine::seal::{Seal, SealKey};
use mcp_resources_engine::{base64, json_text};

const MIB: usize = 1 << 20;

const LEGACY: &[u8] = br#"{"jsonrpc":"2.0","id":123456,"method":"resources/read","params":{"uri":"test://greeting/with/a/longer/path","_meta":{"progressToken":"0d4f4f3e-6f0b-4e6f-9d58-3a8c1b7f2a11","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7"}}}"#;

const MODERN: &[u8] = br#"{"jsonrpc":"2.0","id":123456,"method":"resources/read","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"example-client","version":"1.4.2"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}},"uri":"test://greeting/with/a/longer/path"}}"#;

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    let limits = DecodeLimits::default();
    for (name, message) in [("legacy", LEGACY), ("modern", MODERN)] {
        group.throughput(Throughput::Bytes(message.len() as u64));
        group.bench_function(name, |b| b.iter(|| jsonrpc::decode(black_box(message), &limits)));
        group.bench_function(format!("{name}, serde_json::Value"), |b| {
            b.iter(|| serde_json::from_slice::<serde_json::Value>(black_box(message)));
        });
    }
    let big = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"x":[{}1]}}}}"#,
        JSON.repeat(MIB / JSON.len())
    );
    group.throughput(Throughput::Bytes(big.len() as u64));
    group.bench_function("1 MiB of arguments", |b| {
        b.iter(|| jsonrpc::decode(black_box(big.as_bytes()), &limits))
    });
}

fn lines(c: &mut Criterion) {
    let mut group = c.benchmark_group("lines");
    let chunk = [MODERN, b"\n"].concat().repeat(64);
    group.throughput(Throughput::Elements(64));
    for size in [64 * 1024, 1000] {
        let mut lines = Lines::new(4 * MIB);
        group.bench_function(format!("64 requests in chunks of {size}"), |b| {
            b.iter(|| {
                for chunk in black_box(&chunk).chunks(size) {
                    lines.push(chunk);
                    while let Some(line) = lines.next() {
                        black_box(line);
                    }
                }
            });
        });
    }
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode");
    let mut out = Vec::new();
    let id = Json::parse(b"123456", 1).and_then(Id::from_json);
    group.bench_function("a short text result", |b| {
        b.iter(|| {
            out.clear();
            let id = black_box(id)?;
            Envelope::JsonRpc.result(&mut out, id, |result| {
                result.array("contents", |contents| {
                    contents.object(|content| {
                        content.str("uri", black_box("test://greeting/with/a/longer/path"));
                        content.str("mimeType", "text/plain");
                        content.str("text", black_box("Hello, world!"));
                    });
                });
            });
            Some(out.len())
        });
    });
}

const JSON: &str =
    r#"{"id":1234,"name":"Widget \"A\"","tags":["x","y"],"price":12.5,"nested":{"k":"v","list":[1,2,3]}},"#;

fn text(c: &mut Criterion) {
    let mut group = c.benchmark_group("json_text 1 MiB");
    let mut out = Vec::with_capacity(4 * MIB);
    let kinds = [
        ("clean", "The quick brown fox jumps over the lazy dog and runs away 0123456789 "),
        ("code", include_str!("bytes.rs")),
        ("JSON", JSON),
        ("CJK", "资源模板匹配与订阅管理，高性能核心。"),
    ];
    for (name, piece) in kinds {
        let text = piece.repeat(MIB / piece.len() + 1);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                json_text::escape_into(black_box(&text), &mut out);
                out.len()
            });
        });
    }
}

fn blob(c: &mut Criterion) {
    let mut group = c.benchmark_group("base64");
    let source: Vec<u8> = (0..MIB as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut out = Vec::with_capacity(2 * MIB);
    for len in [64, 1024, MIB] {
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(format!("{len} bytes"), |b| {
            b.iter(|| {
                out.clear();
                base64::encode_into(black_box(&source[..len]), &mut out);
                out.len()
            });
        });
    }
}

fn seal(c: &mut Criterion) {
    let seal = Seal::new(&SealKey::derived("bench"), &[]);
    let plain = [7; 100];
    let Ok(text) = seal.seal("bench", &[b"context"], &plain) else { return };
    c.bench_function("seal 100 bytes", |b| b.iter(|| seal.seal("bench", &[b"context"], black_box(&plain))));
    c.bench_function("open 100 bytes", |b| b.iter(|| seal.open("bench", &[b"context"], black_box(&text))));
}

criterion_group!(benches, decode, lines, encode, text, blob, seal);
criterion_main!(benches);
