//! A client and a server of this library in one process, in both eras.

use super::{Client, ClientBuilder, ListScope, Target};
use mcp_resources_engine::client::{AllowList, Change, ClientError};
use mcp_resources_engine::connection::{Body, Contents};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::{CacheHint, CacheScope, Resource, Template};
use mcp_resources_engine::version::Revision;
use mcp_resources_runtime::server::{ResourceServer, ServerChanges};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ERAS: [Revision; 2] = [Revision::V2026_07_28, Revision::V2025_11_25];

/// A server whose counter returns the value of `count`.
fn server(count: &Arc<AtomicU64>) -> ResourceServer {
    server_watched(count, &Arc::default())
}

/// The same; `watched` counts the watched URIs.
fn server_watched(count: &Arc<AtomicU64>, watched: &Arc<AtomicU64>) -> ResourceServer {
    let watched = watched.clone();
    let read = count.clone();
    let mut limits = Limits::default();
    limits.page = 3;
    limits.coalesce = 0;
    let mut builder = ResourceServer::builder("shop", "1")
        .resource(Resource::new("shop://counter"), move |_| {
            let count = read.load(Ordering::SeqCst);
            async move { count.to_string() }
        })
        .template(Template::new("shop://item/{id}"), |request| async move {
            match request.param("id") {
                Some("none") => Err(ReadError::NotFound),
                Some(id) => Ok(format!("item {id}")),
                None => Err(ReadError::Failed),
            }
        })
        .complete("id", |request| async move {
            ["alpha", "beta"]
                .into_iter()
                .filter(|id| id.starts_with(&request.value))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
    for number in 0..7 {
        builder = builder.resource(Resource::new(format!("shop://secret/{number}")), |_| async { "secret" });
    }
    let hear = move |_: &str, on| {
        let _ =
            if on { watched.fetch_add(1, Ordering::SeqCst) } else { watched.fetch_sub(1, Ordering::SeqCst) };
    };
    builder.limits(limits).on_watch(hear).build().unwrap()
}

/// The server in this process.
fn target(server: &ResourceServer) -> Target {
    let server = server.clone();
    Target::connector(move || server.connect())
}

fn client(server: &ResourceServer, revision: Revision) -> ClientBuilder {
    Client::builder().revision(revision).server("shop", target(server))
}

fn text<'a>(contents: &'a [Contents<'_>]) -> &'a str {
    match &contents[0].body {
        Body::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

async fn change(watch: &mut super::Watch) -> Option<String> {
    let next = tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("no change came");
    let Change { contents, .. } = next.expect("the watch has ended").unwrap();
    contents.map(|contents| text(&contents).to_owned())
}

// S-12, R-061, R-101, R-107: lists over pages, templates, reads and completions, in either era.
#[tokio::test]
async fn lists_reads_and_completes() {
    let server = server(&Arc::default());
    for era in ERAS {
        let client = client(&server, era).connect().unwrap();
        let listed = client.list().all().await.unwrap();
        assert_eq!(listed.len(), 8);
        assert_eq!(&*listed[0].server, "shop");
        let templates = client.list_templates().all().await.unwrap();
        assert_eq!(templates[0].uri, "shop://item/{id}");
        assert_eq!(text(&client.read("shop://item/7").await.unwrap()), "item 7");
        let found = client.complete("shop://item/{id}", "id", "a", &[]).await.unwrap();
        assert_eq!(found.values, ["alpha"]);
        let missing = client.read("shop://item/none").await.unwrap_err();
        assert_eq!(missing.to_string(), "Resource not found: shop://item/none");
        assert_eq!(client.read("no uri").await.unwrap_err().kind(), "invalid_uri");
        assert_eq!(client.about().await.unwrap().revision, era);
        client.close().await;
        assert_eq!(client.read("shop://item/7").await.unwrap_err().kind(), "cancelled");
    }
}

// S-10, S-12: everything outside the allow-list is refused everywhere, before a request is sent.
#[tokio::test]
async fn the_allow_list_decides_everywhere() {
    let server = server(&Arc::default());
    let globs = AllowList::Globs(vec!["shop://counter".into(), "shop://item/a*".into()]);
    for era in ERAS {
        let client = client(&server, era).allow("shop", &globs).connect().unwrap();
        let listed = client.list().all().await.unwrap();
        assert_eq!(listed.iter().map(|item| &*item.uri).collect::<Vec<_>>(), ["shop://counter"]);
        assert_eq!(client.list_templates().all().await.unwrap().len(), 1);
        assert_eq!(text(&client.read("shop://item/abc").await.unwrap()), "item abc");
        for uri in ["shop://item/b", "shop://secret/1", "shop://item/a%2Fb", "shop://item/a/../../secret/1"] {
            let refused = client.read(uri).await.unwrap_err();
            assert_eq!(refused.to_string(), format!("Access denied: {uri}"));
            let refused = client.watch(uri).next().await.unwrap().unwrap_err();
            assert_eq!(refused, ClientError::AccessDenied { uri: uri.into() });
        }
        let refused = client.request("resources/read", r#"{"uri":"shop://secret/1"}"#).await.unwrap_err();
        assert_eq!(refused.kind(), "access_denied");
        let refused = client.complete("shop://secret/{id}", "id", "", &[]).await.unwrap_err();
        assert_eq!(refused.kind(), "access_denied");
    }
    let nothing = client(&server, ERAS[0]).allow("shop", &AllowList::Nothing).connect().unwrap();
    assert!(nothing.list().all().await.unwrap().is_empty());
    assert_eq!(nothing.read("shop://counter").await.unwrap_err().kind(), "access_denied");
}

// S-13: first the contents, then the contents after each change, including removal and return; the last watch ends the
// subscription.
#[tokio::test]
async fn watches_from_the_first_contents_on() {
    for era in ERAS {
        let count = Arc::new(AtomicU64::new(1));
        let watched = Arc::new(AtomicU64::new(0));
        let server = server_watched(&count, &watched);
        let client = client(&server, era).connect().unwrap();
        let mut watch = client.watch("shop://counter");
        assert_eq!(change(&mut watch).await.as_deref(), Some("1"));
        for number in 2..5 {
            count.store(number, Ordering::SeqCst);
            server.notify_updated("shop://counter").unwrap();
            assert_eq!(change(&mut watch).await, Some(number.to_string()));
        }
        let mut second = client.watch("shop://counter");
        assert_eq!(change(&mut second).await.as_deref(), Some("4"));
        server.apply(ServerChanges::new().remove_resource("shop://counter")).unwrap();
        assert_eq!((change(&mut watch).await, change(&mut second).await), (None, None));
        let again = Resource::new("shop://counter");
        server.apply(ServerChanges::new().resource(again, |_| async { "again" })).unwrap();
        assert_eq!(change(&mut watch).await.as_deref(), Some("again"));
        drop((watch, second));
        while watched.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

// R-221, S-13: a URI that an acknowledgement leaves out is watched until it exists.
#[tokio::test]
async fn watches_what_does_not_exist_yet() {
    for era in ERAS {
        let server = server(&Arc::default());
        let client = client(&server, era).connect().unwrap();
        let mut watch = client.watch("shop://new");
        assert_eq!(change(&mut watch).await, None);
        server
            .apply(ServerChanges::new().resource(Resource::new("shop://new"), |_| async { "here" }))
            .unwrap();
        assert_eq!(change(&mut watch).await.as_deref(), Some("here"));
    }
}

// R-113: a result is cached for its `ttlMs`, or until an update.
#[tokio::test]
async fn keeps_results_for_their_time() {
    let reads = Arc::new(AtomicU64::new(0));
    let own = reads.clone();
    let kept =
        Resource::new("shop://kept").cache(CacheHint { ttl_ms: 3_600_000, scope: CacheScope::Private });
    let server = ResourceServer::builder("shop", "1")
        .resource(kept, move |_| {
            let number = own.fetch_add(1, Ordering::SeqCst);
            async move { number.to_string() }
        })
        .build()
        .unwrap();
    let client = client(&server, ERAS[0]).connect().unwrap();
    for _ in 0..3 {
        assert_eq!(text(&client.read("shop://kept").await.unwrap()), "0");
    }
    let mut watch = client.watch("shop://kept");
    assert_eq!(change(&mut watch).await.as_deref(), Some("1"), "a watch begins with what the server has now");
    server.notify_updated("shop://kept").unwrap();
    assert_eq!(change(&mut watch).await.as_deref(), Some("2"));
    assert_eq!(text(&client.read("shop://kept").await.unwrap()), "2");
}

/// A server that cannot be reached does not affect the others; the right one of several servers is found.
#[tokio::test]
async fn one_of_many_may_fail() {
    let server = server(&Arc::default());
    let other = ResourceServer::builder("other", "1")
        .resource(Resource::new("other://x"), |_| async { "other" })
        .build()
        .unwrap();
    let builder = client(&server, ERAS[0]).server("other", target(&other));
    let client =
        builder.server("broken", Target::command("/nonexistent/program", [""; 0])).connect().unwrap();
    assert_eq!(client.list().all().await.unwrap().len(), 9);
    let failures = client.failures();
    assert_eq!((failures.len(), &*failures[0].0), (1, "broken"));
    assert_eq!(text(&client.read("other://x").await.unwrap()), "other");
    assert_eq!(text(&client.read("shop://item/7").await.unwrap()), "item 7");
    let mut watch = client.watch("other://x");
    assert_eq!(change(&mut watch).await.as_deref(), Some("other"));
    let broken = client.with(ListScope { server: Some("broken".into()), ..ListScope::default() });
    let refused = broken.read("other://x").await.unwrap_err();
    assert!(
        refused.to_string().starts_with("Failed to read resource: the server cannot be reached"),
        "{refused}"
    );
    let none = client.with(ListScope { server: Some("none".into()), ..ListScope::default() });
    assert_eq!(none.read("other://x").await.unwrap_err().kind(), "no_server");
}

/// A request that its caller drops is cancelled; one that takes too long fails.
#[tokio::test]
async fn requests_end_in_time() {
    let server = ResourceServer::builder("slow", "1")
        .resource(Resource::new("slow://x"), |_| std::future::pending::<&'static str>())
        .build()
        .unwrap();
    for era in ERAS {
        let client = client(&server, era).connect().unwrap();
        let quick = client.with(ListScope { timeout: Some(30), ..ListScope::default() });
        let late = quick.read("slow://x").await.unwrap_err();
        assert_eq!(late.to_string(), "Failed to read resource: no answer within 30 ms");
        let dropped = tokio::time::timeout(Duration::from_millis(30), client.read("slow://x")).await;
        assert!(dropped.is_err());
        client.about().await.unwrap();
    }
}

// R-173: changes while a legacy session has no stream are read when the stream is open; watching works over HTTP in
// either era.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_over_http() {
    for era in ERAS {
        let count = Arc::new(AtomicU64::new(1));
        let server = server(&count);
        let listener = server.http().bind("127.0.0.1:0").await.unwrap();
        let target = Target::url(format!("http://{}/mcp", listener.address()));
        tokio::spawn(listener.serve());
        let client = Client::builder().revision(era).server("shop", target).connect().unwrap();
        assert_eq!(client.list().all().await.unwrap().len(), 8);
        let mut watch = client.watch("shop://counter");
        assert_eq!(change(&mut watch).await.as_deref(), Some("1"));
        for number in 2..5 {
            count.store(number, Ordering::SeqCst);
            server.notify_updated("shop://counter").unwrap();
            assert_eq!(change(&mut watch).await, Some(number.to_string()));
        }
        client.close().await;
    }
}
