//! Cost of the catalogue: adding one resource, listing one page, routing one URI. None may depend on the catalogue's
//! size.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use mcp_resources_engine::catalog::{
    Catalog, CatalogPage, CatalogRoute, Cursor, CursorPosition, CursorScope, Edit, ItemSource, ListKind,
};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::{Resource, Template};
use mcp_resources_engine::seal::Seal;
use mcp_resources_engine::version::FieldSet;
use std::hint::black_box;

const SIZES: [usize; 2] = [1_000, 100_000];

fn uri(number: usize) -> String {
    format!("file:///srv/project/src/module-{:03}/file-{number:06}.rs", number % 500)
}

fn resource(number: usize) -> Edit {
    let resource = Resource::new(uri(number))
        .name(format!("file-{number:06}.rs"))
        .title(format!("Source file {number}"))
        .description("A file of the project that this server serves")
        .mime_type("text/x-rust")
        .size(4_096);
    Edit::AddResource { resource, source: ItemSource::Handler(0) }
}

fn catalog(size: usize) -> Catalog {
    let template = Template::new("db://{table}/{id}");
    let edits = (0..size)
        .map(resource)
        .chain([Edit::AddTemplate { template: Box::new(template), handler: 1, mount: None }])
        .collect();
    let catalog = Catalog::new(&Limits::default()).apply(edits).map(|(catalog, _)| catalog);
    catalog.unwrap_or_else(|error| unreachable!("{error}"))
}

fn edits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("catalog/edit");
    for size in SIZES {
        let catalog = catalog(size);
        group.bench_function(BenchmarkId::new("add", size), |bencher| {
            bencher.iter(|| black_box(catalog.apply(vec![resource(size)])));
        });
        group.bench_function(BenchmarkId::new("remove", size), |bencher| {
            bencher.iter(|| black_box(catalog.apply(vec![Edit::RemoveResource { uri: uri(size / 2) }])));
        });
    }
}

/// Templates registered one at a time, as decorators do, followed by the first lookup, which builds the index.
fn templates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("catalog/templates one by one");
    group.sample_size(10);
    for size in [1_000, 10_000] {
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let mut catalog = Catalog::new(&Limits::default());
                for number in 0..size {
                    let template = Template::new(format!("svc{number}://{{tenant}}/users/{{id}}"));
                    let added = catalog.apply(vec![Edit::AddTemplate {
                        template: Box::new(template),
                        handler: 1,
                        mount: None,
                    }]);
                    catalog = added.map_or_else(|error| unreachable!("{error}"), |(catalog, _)| catalog);
                }
                matches!(black_box(catalog.route("svc77://acme/users/1")), CatalogRoute::Template(..))
            });
        });
    }
}

fn pages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("catalog/page");
    for size in SIZES {
        let catalog = catalog(size);
        let page = CatalogPage::new(&Limits::default(), FieldSet::Full);
        let after = uri(size / 2);
        let mut out = Vec::with_capacity(1 << 20);
        group.bench_function(BenchmarkId::new("100 items", size), |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(catalog.list_resources(Some(&after), page, &mut |_| true, &mut out))
            });
        });
    }
}

fn cursors(criterion: &mut Criterion) {
    let seal = Seal::new(&Cursor::derived_key("bench"), &[]);
    let scope = CursorScope { server: "bench", principal: "" };
    let cursor =
        Cursor { list: ListKind::Resources, position: CursorPosition::Catalog, after: uri(7), shared: false };
    let text = cursor.seal(&seal, scope).unwrap_or_default();
    criterion.bench_function("catalog/cursor/seal", |bencher| {
        bencher.iter(|| black_box(cursor.seal(&seal, scope)));
    });
    criterion.bench_function("catalog/cursor/open", |bencher| {
        bencher.iter(|| black_box(Cursor::open(&text, ListKind::Resources, &seal, scope)));
    });
}

fn routes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("catalog/route");
    for size in SIZES {
        let catalog = catalog(size);
        let uris: Vec<String> = (0..200).map(|number| uri(number * size / 200)).collect();
        let mut turn = uris.iter().cycle();
        group.bench_function(BenchmarkId::new("resource", size), |bencher| {
            bencher.iter(|| {
                let is_found =
                    turn.next().is_some_and(|uri| matches!(catalog.route(uri), CatalogRoute::Resource(_)));
                assert!(is_found);
            });
        });
        group.bench_function(BenchmarkId::new("template", size), |bencher| {
            bencher.iter(|| {
                assert!(matches!(catalog.route(black_box("db://users/42")), CatalogRoute::Template(..)))
            });
        });
    }
}

criterion_group!(benches, edits, templates, pages, cursors, routes);
criterion_main!(benches);
