//! Measures what a program pays for a sample and what a read costs. `cargo bench -p mcp-resources-providers --features
//! metrics --bench metrics`
#![expect(clippy::unwrap_used, reason = "a measuring program stops at its own mistakes")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use mcp_resources_provider_local::metrics::{Metrics, MetricsOptions};
use std::hint::black_box;
use std::time::{Duration, SystemTime};

/// One of as many series as there may be, all full.
fn push(c: &mut Criterion) {
    let mut group = c.benchmark_group("metrics/push");
    let metrics = Metrics::new(MetricsOptions::new()).unwrap();
    let names: Vec<String> = (0..256).map(|at| format!("http_requests_of_route_{at}")).collect();
    let begun = SystemTime::now() - Duration::from_secs(3_600);
    for name in &names {
        for at in 0..3_600 {
            metrics.push_at(name, 1.0, begun + Duration::from_secs(at)).unwrap();
        }
    }
    group.bench_function("one series", |b| {
        b.iter(|| metrics.push(black_box("http_requests_of_route_7"), 1.0))
    });
    let mut at = 0;
    group.bench_function("256 series in turn", |b| {
        b.iter(|| {
            at = (at + 1) % names.len();
            metrics.push(black_box(&names[at]), 1.0)
        });
    });
    group.bench_function("a new series", |b| {
        b.iter_batched(
            || Metrics::new(MetricsOptions::new()).unwrap(),
            |metrics| metrics.push(black_box("a"), 1.0).map(|()| metrics),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, push);
criterion_main!(benches);
