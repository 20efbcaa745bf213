//! The server's `redact` function, and cached reads.

use super::*;
use mcp_resources_engine::connection::{Body, ReadResult};
use mcp_resources_engine::guard::{Policy, ScopeList};
use mcp_resources_engine::resource::{CacheHint, CacheScope};
use tokio::sync::Notify;

fn kept(uri: &str) -> Resource {
    let mut resource = Resource::new(uri);
    resource.details.cache = CacheHint { ttl_ms: 60_000, scope: CacheScope::Private };
    resource
}

// S-19: `redact` gets text and blobs, constants and handlers' results, each entry with its own URI; after an error no
// contents are sent.
#[tokio::test]
async fn contents_pass_the_authors_redact_s_19() {
    let server = quiet()
        .redact(|uri, contents| {
            let body = match &contents.body {
                Body::Text(text) if text.contains("broken") => return Err(HandlerError::new("it is broken")),
                Body::Text(text) => Body::Text(format!("{uri}: {}", text.replace("secret", "*")).into()),
                Body::Blob(bytes) => Body::Blob(vec![0; bytes.len()].into()),
                other => panic!("{other:?} is neither text nor bytes"),
            };
            Ok(Contents { body, ..contents })
        })
        .text(Resource::new("a://constant"), "a secret")
        .bytes(Resource::new("a://bytes"), vec![1, 2, 3])
        .resource(Resource::new("a://live"), |_| async {
            vec![
                Contents::text("secret"),
                Contents::text("b").with_uri("a://live/b"),
                Contents::shared_text("a secret").with_uri("a://live/c"),
                Contents::base64("AQID").with_uri("a://live/d"),
            ]
        })
        .resource(Resource::new("a://odd"), |_| async { Contents::base64("secret!") })
        .resource(Resource::new("a://broken"), |_| async { "secret and broken" })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(client.read_text("a://constant").await.unwrap(), "a://constant: a *");
    assert_eq!(client.read("a://bytes").await.unwrap()["contents"][0]["blob"], "AAAA");
    let live = client.read("a://live").await.unwrap();
    assert_eq!(live["contents"][0]["text"], "a://live: *");
    assert_eq!(live["contents"][1]["text"], "a://live/b: b");
    assert_eq!(live["contents"][2]["text"], "a://live/c: a *");
    assert_eq!(live["contents"][3]["blob"], "AAAA");
    assert_eq!(client.read("a://odd").await.unwrap_err().data["kind"], "read_error");
    let error = client.read("a://broken").await.unwrap_err();
    assert_eq!(error.data["kind"], "read_error");
    assert!(!format!("{error:?}").contains("secret"));
    server.apply(ServerChanges::new().text(Resource::new("a://later"), "secret")).unwrap();
    assert_eq!(client.read_text("a://later").await.unwrap(), "a://later: *");
}

// S-18: detectors run after `redact`, on its result.
#[tokio::test]
async fn detectors_find_what_is_left_s_18() {
    let mut policy = Policy::default();
    policy.redact = ScopeList(vec!["stripe-key".into()]);
    let server = quiet()
        .guard(policy)
        .redact(|_, contents| match contents.body {
            Body::Text(text) => Ok(Contents::text(text.replace("pk_", "sk_"))),
            _ => Ok(contents),
        })
        .resource(Resource::new("a://live"), |_| async { "pk_live_aaaaaaaaaaaaaaaa" })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(client.read_text("a://live").await.unwrap(), "[redacted:stripe-key]");
}

/// Concurrent reads of two clients cause one call and two answers. A later read causes none, until an update.
#[tokio::test]
async fn concurrent_reads_make_one_call_r_219() {
    let calls = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Notify::new());
    let count = calls.clone();
    let wait = gate.clone();
    let server = quiet()
        .cache(true)
        .resource(kept("a://slow"), move |_| {
            let wait = wait.clone();
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move {
                wait.notified().await;
                ReadResult::from(Contents::text(format!("call {number}")))
            }
        })
        .build()
        .unwrap();
    let mut clients = [Client::modern(&server).unwrap(), Client::modern(&server).unwrap()];
    let mut ids = Vec::new();
    for client in &mut clients {
        ids.push(client.send("resources/read", json!({"uri": "a://slow"})).unwrap());
        ids.push(client.send("resources/read", json!({"uri": "A://slow"})).unwrap());
    }
    while server.engine().cache_counts().unwrap().shared < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gate.notify_one();
    for (client, ids) in clients.iter_mut().zip(ids.chunks(2)) {
        // The read that shared the call may be answered before the one that made it.
        for id in ids.iter().rev() {
            let answer = client.answer(*id).await.unwrap();
            assert_eq!(answer["contents"][0]["text"], "call 0");
        }
    }
    assert_eq!(clients[1].read_text("a://slow").await.unwrap(), "call 0");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    server.notify_updated("a://slow").unwrap();
    gate.notify_one();
    assert_eq!(clients[0].read_text("a://slow").await.unwrap(), "call 1");
}
