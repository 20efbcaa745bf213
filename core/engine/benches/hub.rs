//! Cost of a change in the hub: marking and waking watchers, writing notifications, adding and removing watchers (W6).
//!
//! Writing is measured through `Hub::deliver`, with a guard that allows everything.
#![expect(clippy::expect_used, reason = "a benchmark may stop when its set-up fails")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_resources_engine::hub::{ConnectionId, Filter, Hub, HubDelivery, ListKinds, ListenEnding};
use mcp_resources_engine::jsonrpc::{Id, Json, OwnedId};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::principal::Principal;
use std::hint::black_box;
use std::task::Waker;

const SHARED: &str = "weather://tokyo/forecast";

/// A hub without coalescing: every change is delivered at once.
fn hub() -> Hub {
    let mut limits = Limits::default();
    limits.coalesce = 0;
    Hub::new(&limits)
}

fn request_id() -> OwnedId {
    Json::parse(b"\"listen-1\"", 1).and_then(Id::from_json).map(OwnedId::from).expect("an id")
}

fn listener(hub: &Hub, uris: &[(&str, &str)]) -> ConnectionId {
    let connection = hub.connect();
    let filter = Filter { lists: ListKinds::RESOURCES, uris };
    hub.listen(connection, request_id().as_id(), Principal::local(), filter, Waker::noop())
        .expect("within the limits");
    connection
}

/// A hub with `listeners` listeners of one URI.
fn crowd(listeners: usize) -> (Hub, Vec<ConnectionId>) {
    let hub = hub();
    let connections = (0..listeners).map(|_| listener(&hub, &[(SHARED, SHARED)])).collect();
    (hub, connections)
}

fn uris(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("weather://city-{number}/forecast?days=3")).collect()
}

fn pairs(uris: &[String]) -> Vec<(&str, &str)> {
    uris.iter().map(|uri| (uri.as_str(), uri.as_str())).collect()
}

fn deliver(hub: &Hub, to: ConnectionId, out: &mut Vec<u8>) {
    out.clear();
    let delivery = HubDelivery { room: usize::MAX, server_info: None, ending: ListenEnding::ResultOnly };
    black_box(hub.deliver(to, delivery, out, &mut |_, _| true));
}

/// One update for many listeners: marks and wakes all of them, then writes one notification for each.
fn one_to_many(c: &mut Criterion) {
    for listeners in [1_000, 10_000] {
        let (hub, connections) = crowd(listeners);
        let update = || hub.updated(SHARED, &[], 0);
        let mut out = Vec::new();
        let mut tell = || connections.iter().for_each(|connection| deliver(&hub, *connection, &mut out));
        let mut group = c.benchmark_group("one update");
        group.throughput(Throughput::Elements(listeners as u64));
        group.bench_function(BenchmarkId::new("mark and wake", listeners), |b| {
            b.iter_batched(&mut tell, |()| update(), BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("word for each", listeners), |b| {
            tell();
            b.iter_batched(update, |()| tell(), BatchSize::PerIteration);
        });
    }
}

/// One subscriber of 10,000 URIs, each updated once.
fn many_to_one(c: &mut Criterion) {
    let uris = uris(10_000);
    let hub = hub();
    let connection = listener(&hub, &pairs(&uris));
    let mark = || uris.iter().for_each(|uri| hub.updated(uri, &[], 0));
    let mut out = Vec::with_capacity(4 << 20);
    let mut group = c.benchmark_group("one subscriber of 10,000 URIs");
    group.throughput(Throughput::Elements(uris.len() as u64));
    group.bench_function("mark each", |b| {
        b.iter_batched(|| deliver(&hub, connection, &mut out), |()| mark(), BatchSize::PerIteration);
    });
    group.bench_function("word each", |b| {
        deliver(&hub, connection, &mut out);
        b.iter_batched(mark, |()| deliver(&hub, connection, &mut out), BatchSize::PerIteration);
    });
}

/// An update of a URI without watchers, while 100,000 other URIs are watched.
fn nobody(c: &mut Criterion) {
    let uris = uris(100_000);
    let hub = hub();
    for pairs in pairs(&uris).chunks(10_000) {
        listener(&hub, pairs);
    }
    c.bench_function("update of an unwatched URI", |b| {
        b.iter(|| hub.updated(black_box("weather://nowhere/forecast?days=3"), &[], 0));
    });
}

/// A listen is opened and closed.
fn come_and_go(c: &mut Criterion) {
    let (crowd, _) = crowd(10_000);
    c.bench_function("listen and disconnect beside 10,000 of the same URI", |b| {
        b.iter(|| {
            let connection = listener(&crowd, &[(SHARED, SHARED)]);
            crowd.disconnect(connection)
        });
    });
    let uris = uris(10_000);
    let hub = hub();
    let pairs = pairs(&uris);
    let mut group = c.benchmark_group("one listen of 10,000 URIs");
    group.throughput(Throughput::Elements(uris.len() as u64));
    group.bench_function("listen and disconnect", |b| {
        b.iter(|| hub.disconnect(listener(&hub, &pairs)));
    });
}

criterion_group!(benches, one_to_many, many_to_one, nobody, come_and_go);
criterion_main!(benches);
