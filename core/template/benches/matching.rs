//! Cost of matching: by number of templates, by kind of template, and with hostile URIs.
#![expect(clippy::unwrap_used, reason = "a benchmark may stop when its set-up fails")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_resources_template::uri::normalize;
use mcp_resources_template::{Lookup, TemplateIndex, TemplateSet, UriTemplate};
use std::hint::black_box;
use std::time::Duration;

const MAX_URI: usize = 65_536;
const WORDS: [&str; 10] =
    ["users", "orders", "invoices", "logs", "metrics", "files", "issues", "builds", "tables", "notes"];

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = normal_forms, lookups, ambiguous, hostile, builds
}
criterion_main!(benches);

fn normal_forms(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("normalize");
    for uri in [
        "svc1://acme-corp/users/4f9a1c22",
        "file:///home/user/project/src/deep/er/main.rs",
        "x://h/caf%C3%A9%20au%20lait/%41",
        "https://Example.COM/a/b?x=1&y=2#z",
    ] {
        group.bench_with_input(uri, uri, |bencher, uri| {
            bencher.iter(|| normalize(black_box(uri), MAX_URI).is_ok())
        });
    }
}

/// A kind of template: for a number, the text of a template and a URI that it matches.
type Kind = fn(usize) -> (String, String);

const KINDS: [(&str, Kind); 3] =
    [("prefix first", prefix_first), ("variable first", variable_first), ("mixed", mixed)];

fn prefix_first(number: usize) -> (String, String) {
    let word = WORDS[number % 10];
    (format!("svc{number}://{{tenant}}/{word}/{{id}}"), format!("svc{number}://acme-corp/{word}/4f9a1c22"))
}

fn variable_first(number: usize) -> (String, String) {
    let word = WORDS[number % 10];
    (format!("db://{{tenant}}/{word}{number}/{{row}}"), format!("db://acme-corp/{word}{number}/4f9a1c22"))
}

fn mixed(number: usize) -> (String, String) {
    let name = format!("{}{number}", WORDS[number % 10]);
    match number % 6 {
        0 => (format!("api://h/{name}/{{id}}"), format!("api://h/{name}/4f9a1c22")),
        1 => (format!("file:///{name}/{{+path}}"), format!("file:///{name}/src/deep/er/main.rs")),
        2 => (
            format!("logs://{name}/{{s}}{{?since,level}}"),
            format!("logs://{name}/api?level=error&since=5m"),
        ),
        3 => (format!("doc://{name}/{{stem}}.{{ext}}"), format!("doc://{name}/archive.tar.gz")),
        4 => (format!("tree://{name}{{/path*}}"), format!("tree://{name}/a/b/c/d")),
        _ => variable_first(number),
    }
}

/// Normalizing, lookup and decoding over 200 URIs in turn: matches and near misses.
fn lookups(criterion: &mut Criterion) {
    for (kind, case) in KINDS {
        let mut group = criterion.benchmark_group(format!("lookup, {kind}"));
        for count in [1, 100, 1_000, 10_000] {
            let templates: Vec<_> = (0..count).map(|number| parse(&case(number).0)).collect();
            let index = TemplateIndex::build(&templates).unwrap();
            let hits: Vec<_> = (0..200).map(|number| case(number * 7_919 % count).1).collect();
            let misses: Vec<_> = hits.iter().map(|uri| format!("{uri}%7C/no/such#x")).collect();
            for (name, uris, found) in [("hit", &hits, true), ("miss", &misses, false)] {
                let mut turn = uris.iter().cycle();
                group.bench_function(BenchmarkId::new(name, count), |bencher| {
                    bencher.iter(|| assert_eq!(is_match(&index, turn.next().unwrap()), found));
                });
            }
        }
    }
}

/// Many templates at one node, which only their programs distinguish.
fn ambiguous(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ambiguous");
    for count in [8, 100, 1_000, 10_000] {
        let templates: Vec<_> =
            (0..count).map(|number| parse(&format!("x://{{a}}-k{number}-{{b}}"))).collect();
        let index = TemplateIndex::build(&templates).unwrap();
        let uri = format!("x://some-k{}-thing", count / 2);
        group.bench_function(BenchmarkId::new("short", count), |bencher| {
            bencher.iter(|| assert!(is_match(&index, black_box(&uri))));
        });
        let uri = format!("x:///{}", "-".repeat(48_000));
        group.bench_function(BenchmarkId::new("48 KB", count), |bencher| {
            bencher.iter(|| assert!(!is_match(&index, black_box(&uri))));
        });
    }
}

/// The templates and URIs that take the most steps. The time for each byte must not depend on the length.
fn hostile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hostile");
    for (template, before, text) in [
        ("x://{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}", "x:///", "-"),
        ("{+s}!{+a}x{+b}x{+c}x{+d}x{+e}x{+f}x{+g}", "x:", "x"),
        ("{+s}!{a,b,c,d,e,f,g,h}-{i,j,k,l,m,n,o,p}", "x:", "-"),
        ("{+s}!{;a*,b*,c*}", "x:", ";c"),
        ("x://s{?a,b,c,d,e,f,g,h}", "x:?", "zz&"),
    ] {
        let set = TemplateSet::new([parse(template)]).unwrap();
        for bytes in [1_000, 8_000, 64_000] {
            let uri = format!("{before}{}", text.repeat(bytes / text.len()));
            group.throughput(Throughput::Bytes(uri.len() as u64));
            group.bench_function(BenchmarkId::new(template, bytes), |bencher| {
                bencher.iter(|| {
                    assert!(matches!(set.match_uri(black_box(&uri)), Ok(Lookup::None { exhausted: false })))
                });
            });
        }
    }
}

fn builds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build");
    group.bench_function("one template", |bencher| {
        bencher.iter(|| UriTemplate::parse(black_box("logs://{svc}/{+path}{?since,level}")));
    });
    for count in [100, 10_000] {
        let templates: Vec<_> = (0..count).map(|number| parse(&mixed(number).0)).collect();
        group.bench_function(BenchmarkId::new("index", count), |bencher| {
            bencher.iter(|| TemplateIndex::build(black_box(&templates)).is_ok());
        });
    }
}

fn parse(text: &str) -> UriTemplate {
    UriTemplate::parse(text).unwrap()
}

fn is_match(index: &TemplateIndex, uri: &str) -> bool {
    let normal = normalize(uri, MAX_URI).unwrap();
    matches!(index.lookup(&normal), Lookup::Match { .. })
}
