//! A cache of results, served to a client: lists, reads, the time that remains, the guard, and what two caches share in a file.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::results::{Content, PutOptions, ResultOptions, Results};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A file of the test's own.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mcp-results-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder.join("results.db"))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn serve(results: &Results, policy: &str) -> ResourceServer {
    let builder = ResourceServer::builder("results", "1").mount(results.clone());
    builder.guard(Policy::from_json(policy).unwrap()).build().unwrap()
}

fn memory() -> Results {
    Results::new(ResultOptions::new()).unwrap()
}

/// In memory, and in a file.
fn both(name: &str) -> (File, [Results; 2]) {
    let file = File::new(name);
    let disk = Results::new(ResultOptions::new().file(&file.0)).unwrap();
    (file, [memory(), disk])
}

async fn uris(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

/// S-06, R-113: results are listed, read with the time that remains, and completed, in both eras.
#[tokio::test]
async fn results_are_listed_read_and_completed() {
    let (_file, caches) = both("list");
    for results in caches {
        results.put("report", "# All is well", PutOptions::new().mime_type("text/markdown")).unwrap();
        results.put("bytes", vec![0, 1, 255], PutOptions::new().ttl(Duration::from_secs(5))).unwrap();
        results.put("a/b ?#%", "odd", PutOptions::new()).unwrap();
        results.put("large", "x".repeat(100_000), PutOptions::new()).unwrap();
        let server = serve(&results, "{}");
        let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
        for mut client in [Client::modern(&server).unwrap(), legacy] {
            assert_eq!(
                uris(&mut client).await,
                [
                    "results:///",
                    "results:///a~2Fb%20%3F%23%25",
                    "results:///bytes",
                    "results:///large",
                    "results:///report",
                ]
            );
            assert_eq!(client.read_text("results:///report").await.unwrap(), "# All is well");
            assert_eq!(client.read_text("results:///a~2Fb%20%3F%23%25").await.unwrap(), "odd");
            assert_eq!(client.read_text("results:///large").await.unwrap().len(), 100_000);
            let bytes = client.read("results:///bytes").await.unwrap();
            assert_eq!(bytes["contents"][0]["blob"], "AAH/");
            if let Some(ttl) = bytes.get("ttlMs").and_then(Value::as_u64) {
                assert!((1..=5_000).contains(&ttl), "{ttl}");
                assert_eq!(bytes["cacheScope"], "private");
            }
            let index: Value = serde_json::from_str(&client.read_text("results:///").await.unwrap()).unwrap();
            assert_eq!(index["results"][3]["uri"], "results:///report");
            assert_eq!(index["results"][3]["mimeType"], "text/markdown");
            assert_eq!((&index["results"][3]["size"], &index["more"]), (&json!(13), &json!(false)));
            let found = client.complete("results:///{analysisId}", "analysisId", "a", &[]).await.unwrap();
            assert_eq!(found.values, ["a~2Fb%20%3F%23%25"]);
        }
    }
}

/// S-06: what has expired, was removed, is another principal's, was hidden or never was has the same answer.
#[tokio::test]
async fn what_is_not_there_is_one_and_the_same() {
    let (_file, caches) = both("absent");
    for results in caches {
        results.put("old", "old", PutOptions::new().ttl(Duration::from_millis(1))).unwrap();
        results.put("removed", "removed", PutOptions::new()).unwrap();
        results.put("hidden", "hidden", PutOptions::new()).unwrap();
        results.put("alice's", "alice's", PutOptions::new().principal("alice")).unwrap();
        results.put("mine", "everybody's", PutOptions::new()).unwrap();
        results.put("mine", "mine", PutOptions::new().principal("")).unwrap();
        assert!(results.remove("removed", None).unwrap());
        std::thread::sleep(Duration::from_millis(5));
        let server = serve(&results, r#"{"deny": ["results:///hidden"]}"#);
        let mut client = Client::modern(&server).unwrap();
        let mut answers = Vec::new();
        for id in ["old", "removed", "hidden", "alice's", "never", "mine/x", "~2E~2E", "%00", ""] {
            let uri = format!("results:///{id}");
            if let Err(error) = client.read(&uri).await {
                answers.push(format!("{error:?}").replace(&uri, "URI"));
            } else {
                assert_eq!(id, "", "the index");
            }
        }
        assert_eq!(answers.len(), 8);
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:#?}");
        assert_eq!(uris(&mut client).await, ["results:///", "results:///mine"]);
        assert_eq!(client.read_text("results:///mine").await.unwrap(), "mine");
        let index = client.read_text("results:///").await.unwrap();
        assert!(!index.contains("alice") && !index.contains("hidden"), "{index}");
        let found = client.complete("results:///{analysisId}", "analysisId", "", &[]).await.unwrap();
        assert_eq!(found.values, ["mine"]);
    }
}

/// S-06, R-083: a result that is replaced is updated, and those that expire together change the lists once.
#[tokio::test]
async fn changes_are_notified() {
    let (_file, caches) = both("changes");
    for results in caches {
        results.put("a", "1", PutOptions::new()).unwrap();
        let server = serve(&results, "{}");
        let mut client = Client::modern(&server).unwrap();
        let one = client.listen(&["results:///a"], false).await.unwrap();
        results.put("a", "2", PutOptions::new()).unwrap();
        assert_eq!(client.next(&one).await.unwrap().params["uri"], "results:///a");
        assert_eq!(client.read_text("results:///a").await.unwrap(), "2");
        client.cancel(one.id).unwrap();

        for id in ["b", "c", "d"] {
            results.put(id, id, PutOptions::new().ttl(Duration::from_millis(900))).unwrap();
        }
        let lists = client.listen(&[], true).await.unwrap();
        client.next(&lists).await.unwrap();
        assert_eq!(uris(&mut client).await, ["results:///", "results:///a"]);
        results.put("e", "e", PutOptions::new()).unwrap();
        client.next(&lists).await.unwrap();
        assert_eq!(uris(&mut client).await.len(), 3);
    }
}

/// S-06: what another process puts into a file is served, and its subscribers are notified; what this one puts is notified once.
#[tokio::test]
async fn a_file_is_shared() {
    let file = File::new("shared");
    let open = || Results::new(ResultOptions::new().file(&file.0)).unwrap();
    let served = open();
    let other = open();
    let server = serve(&served, "{}");
    let mut client = Client::modern(&server).unwrap();
    other.put("a", "1", PutOptions::new()).unwrap();
    assert_eq!(client.read_text("results:///a").await.unwrap(), "1");
    let listen = client.listen(&["results:///a", "results:///b"], true).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    other.put("a", "2", PutOptions::new()).unwrap();
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "results:///a");
    assert_eq!(client.read_text("results:///a").await.unwrap(), "2");
    other.put("b", "1", PutOptions::new()).unwrap();
    let mut heard = [client.next(&listen).await.unwrap(), client.next(&listen).await.unwrap()]
        .map(|notification| notification.params["uri"].as_str().map(str::to_owned));
    heard.sort();
    assert_eq!(heard, [None, Some("results:///b".to_owned())]);
    served.put("b", "2", PutOptions::new()).unwrap();
    other.remove("a", None).unwrap();
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(client.next(&listen).await.unwrap().params["uri"].as_str().map(str::to_owned));
    }
    heard.sort();
    assert_eq!(heard, [None, Some("results:///a".to_owned()), Some("results:///b".to_owned())]);
    assert!(client.read("results:///a").await.is_err());
}

/// S-06: a principal's own results are notified to it alone, also when they expire, also from another process.
#[tokio::test]
async fn nobody_hears_of_the_results_of_another() {
    let file = File::new("private");
    let open = || Results::new(ResultOptions::new().file(&file.0)).unwrap();
    let shared = open();
    for (served, other) in [(memory(), None), (open(), Some(shared))] {
        let server = serve(&served, "{}");
        let mut client = Client::modern(&server).unwrap();
        let listen = client.listen(&["results:///", "results:///a", "results:///b"], true).await.unwrap();
        // The thread has seen the file once.
        tokio::time::sleep(Duration::from_millis(600)).await;
        for results in [Some(&served), other.as_ref()].into_iter().flatten() {
            let soon = PutOptions::new().ttl(Duration::from_millis(300));
            results.put("a", "alice's", soon.clone().principal("alice")).unwrap();
            results.put("b", "alice's", PutOptions::new().principal("alice")).unwrap();
            results.put("b", "alice's", PutOptions::new().principal("alice")).unwrap();
            results.remove("b", Some("alice")).unwrap();
            tokio::time::sleep(Duration::from_millis(1_000)).await;
            for end in ["put", "expired"] {
                if end == "put" {
                    results.put("a", "mine", soon.clone().principal("")).unwrap();
                }
                let mut heard = Vec::new();
                for _ in 0..3 {
                    heard.push(client.next(&listen).await.unwrap().params["uri"].as_str().map(str::to_owned));
                }
                heard.sort();
                let uris = ["results:///", "results:///a"].map(|uri| Some(uri.to_owned()));
                assert_eq!(heard, [None, uris[0].clone(), uris[1].clone()], "{end}");
            }
        }
    }
}

/// S-06: the thread that looks begins with the first watcher and ends with the last; unmounted, the cache can be served anew.
#[tokio::test]
async fn nothing_runs_without_a_watcher() {
    let results = memory();
    let server = serve(&results, "{}");
    let again = ResourceServer::builder("other", "1").mount(results.clone()).build();
    assert!(again.unwrap_err().to_string().contains("mounted already"));
    let mut client = Client::modern(&server).unwrap();
    let listen = client.listen(&["results:///a"], false).await.unwrap();
    results.put("a", "1", PutOptions::new()).unwrap();
    client.next(&listen).await.unwrap();
    drop(client);
    drop(server);
    for _ in 0..100 {
        if ResourceServer::builder("other", "1").mount(results.clone()).build().is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it is mounted still");
}

/// S-06: 64 calls at once run one computation and have its result; 64 that fail have its error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn computations_run_once() {
    let results = memory();
    for is_good in [true, false] {
        let runs = Arc::new(AtomicUsize::new(0));
        let calls: Vec<_> = (0..64)
            .map(|_| {
                let results = results.clone();
                let runs = runs.clone();
                tokio::spawn(async move {
                    let compute = || async {
                        runs.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        if is_good { Ok("computed") } else { Err("broken") }
                    };
                    let id = if is_good { "good" } else { "bad" };
                    results.get_or_compute(id, PutOptions::new(), compute).await
                })
            })
            .collect();
        for call in calls {
            match call.await.unwrap() {
                Ok(entry) => assert_eq!((entry.content, is_good), (Content::from("computed"), true)),
                Err(error) => assert_eq!((error.to_string(), is_good), ("broken".to_owned(), false)),
            }
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
    assert_eq!(results.len().unwrap(), 1);
}
