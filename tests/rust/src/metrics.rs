//! Metrics, served to a client: what is pushed is read in each form, nothing grows, and subscribers are not flooded.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::metrics::{Metrics, MetricsOptions, PushError};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const RANGES: &str = "metrics:///{name}{?from,to,step,format}";

type Log = Arc<Mutex<Vec<String>>>;

fn served(metrics: &Metrics, policy: &str) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let server = ResourceServer::builder("metrics", "1")
        .mount(metrics.clone())
        .guard(Policy::from_json(policy).unwrap())
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

fn client(metrics: &Metrics) -> Client {
    Client::modern(&served(metrics, "{}").0).unwrap()
}

fn made(options: MetricsOptions) -> Metrics {
    Metrics::new(options).unwrap()
}

fn quick() -> Metrics {
    made(MetricsOptions::new().interval(Duration::from_millis(50)))
}

/// So long ago.
fn ago(seconds: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(seconds)
}

async fn json_at(client: &mut Client, uri: &str) -> Value {
    serde_json::from_str(&client.read_text(uri).await.unwrap()).unwrap()
}

/// A member of all points.
fn all(series: &Value, member: &str) -> Vec<Value> {
    series["points"].as_array().unwrap().iter().map(|point| point[member].clone()).collect()
}

async fn listed(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

/// S-05: what is pushed before and after the mount is listed, read, in the index and completed, in both eras.
#[tokio::test]
async fn what_is_pushed_is_served() {
    let metrics = made(MetricsOptions::new());
    metrics.push_at("queue_length", 1.5, ago(10)).unwrap();
    let (server, _) = served(&metrics, "{}");
    metrics.push("queue_length", f64::NAN).unwrap();
    metrics.push_at("queue_length", 9.0, ago(7_200)).unwrap();
    metrics.push("a/b %?# 検索", 2.0).unwrap();
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let odd = "metrics:///a~2Fb%20%25%3F%23%20%E6%A4%9C%E7%B4%A2";
        assert_eq!(listed(&mut client).await, ["metrics:///", odd, "metrics:///queue_length"]);
        let series = json_at(&mut client, "metrics:///queue_length").await;
        assert_eq!(all(&series, "value"), [json!(1.5), Value::Null]);
        assert_eq!((&series["name"], &series["step"]), (&json!("queue_length"), &Value::Null));
        assert_eq!(json_at(&mut client, odd).await["name"], "a/b %?# 検索");
        let index = json_at(&mut client, "metrics:///").await;
        assert_eq!((&index["series"][0]["uri"], &index["series"][0]["value"]), (&json!(odd), &json!(2.0)));
        let whole = json_at(&mut client, "metrics:///queue_length?from=-1d&step=1h").await;
        assert_eq!((&whole["points"][0]["value"], &whole["step"]), (&json!(9.0), &json!("3600s")));
        let csv = client.read("metrics:///queue_length?from=-1m&format=csv").await.unwrap();
        assert_eq!(csv["contents"][0]["mimeType"], "text/csv");
        let text = csv["contents"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("time,value,min,max,count\n20") && text.lines().count() == 3, "{text}");
        let text = client.read_text("metrics:///queue_length?format=openmetrics").await.unwrap();
        assert!(text.contains("# TYPE queue_length gauge\nqueue_length 1.5 1"), "{text}");
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        for (variable, typed, values) in [
            ("name", "Queue", vec!["queue_length"]),
            ("name", "a", vec!["a~2Fb %?# 検索"]),
            ("format", "", vec!["json", "csv", "openmetrics"]),
            ("from", "-1", vec!["-15m", "-1h"]),
            ("to", "-3", vec!["-30m"]),
            ("step", "10", vec!["10s"]),
        ] {
            let found = client.complete(RANGES, variable, typed, &[]).await.unwrap();
            assert_eq!(found.values, values, "{variable} {typed}");
        }
    }
}

/// S-05: a spike of one sample survives, whatever is asked for.
#[tokio::test]
async fn a_spike_is_in_every_answer() {
    let metrics = made(MetricsOptions::new().points(20));
    let begun = ago(3_500);
    for at in 0..3_400_u64 {
        let value = if at == 1_234 { 1e6 } else { 1.0 };
        metrics.push_at("a", value, begun + Duration::from_secs(at)).unwrap();
    }
    let mut client = client(&metrics);
    for query in ["", "?step=10s", "?step=1m", "?step=1d", "?from=-58m", "?step=1ms"] {
        let series = json_at(&mut client, &format!("metrics:///a{query}")).await;
        let greatest = all(&series, "max").iter().filter_map(Value::as_f64).fold(0.0, f64::max);
        assert_eq!(greatest, 1e6, "{query}");
    }
    let series = json_at(&mut client, "metrics:///a").await;
    let counts: u64 = all(&series, "count").iter().filter_map(Value::as_u64).sum();
    assert_eq!((all(&series, "count").len() <= 20, counts), (true, 3_400), "{series}");
    let text = client.read_text("metrics:///a?format=openmetrics").await.unwrap();
    assert!(text.contains("\na_max 1000000.0 ") && text.contains("# TYPE a_min gauge\n"), "{text}");
}

/// S-05, R-061: what is malformed is named, what is not there, hidden or spelled otherwise is the same not-found.
#[tokio::test]
async fn hostile_requests() {
    let metrics = made(MetricsOptions::new());
    metrics.push("a", 1.0).unwrap();
    metrics.push("secret", 1.0).unwrap();
    let (server, log) = served(&metrics, r#"{"deny": ["metrics:///secret", "metrics:///secret?*"]}"#);
    let mut client = Client::modern(&server).unwrap();
    for (variable, value) in [
        ("from", "yesterday"),
        ("from", ""),
        ("from", "-1e99s"),
        ("from", "-99999999999999999999h"),
        ("to", "9999-99-99"),
        ("step", "0s"),
        ("step", "-1s"),
        ("step", "1%00"),
        ("format", "exe"),
        ("from", "2999-01-01T00:00:00Z"),
    ] {
        let error = client.read(&format!("metrics:///a?{variable}={value}")).await.unwrap_err();
        assert_eq!(error.code, -32602, "{value}: {error:?}");
        if value != "1%00" {
            assert!(error.message.contains(variable), "{error:?}");
        }
    }
    let long = "x".repeat(300);
    let mut answers = Vec::new();
    for path in ["secret", "none", "%73ecret", "a~2Fb", "..", "A", &long, "a%2F..%2Fsecret"] {
        let uri = format!("metrics:///{path}");
        let error = client.read(&uri).await.unwrap_err();
        answers.push(format!("{error:?}").replace(&uri, "URI"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
    assert_eq!(listed(&mut client).await, ["metrics:///", "metrics:///a"]);
    let index = client.read_text("metrics:///").await.unwrap();
    assert!(!index.contains("secret"), "{index}");
    assert_eq!(client.complete(RANGES, "name", "", &[]).await.unwrap().values, ["a"]);
    // Names that a query does not have are ignored.
    assert!(client.read("metrics:///a?form=csv").await.is_ok());
    assert!(log.lock().unwrap().is_empty(), "{log:?}");
}

/// S-05, R-083: however many samples come, a series is updated once in an interval; others are not, and no sample is missed.
#[tokio::test]
async fn updates_are_bounded() {
    let metrics = made(MetricsOptions::new().interval(Duration::from_millis(200)));
    metrics.push("a", 0.0).unwrap();
    metrics.push("b", 0.0).unwrap();
    let mut client = client(&metrics);
    let listen =
        client.listen(&["metrics:///a", "metrics:///a?from=-5m", "metrics:///b"], false).await.unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        metrics.push("a", 1.0).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let intervals = begun.elapsed().as_millis() / 200 + 2;
    let mut heard = Vec::new();
    while let Ok(Some(next)) = tokio::time::timeout(Duration::from_millis(600), client.next(&listen)).await {
        heard.push(next.params["uri"].as_str().unwrap().to_owned());
    }
    let of = |uri: &str| heard.iter().filter(|heard| *heard == uri).count();
    assert!((2..=intervals as usize).contains(&of("metrics:///a")), "{heard:?} in {intervals}");
    // The thread may have looked first when one of the two was watched.
    assert!(of("metrics:///a").abs_diff(of("metrics:///a?from=-5m")) <= 1, "{heard:?}");
    assert_eq!(of("metrics:///b"), 0, "{heard:?}");
}

/// S-05, R-083, R-092: a sample right after the subscription is reported, and a new series changes the lists.
#[tokio::test]
async fn nothing_is_missed() {
    let metrics = quick();
    let mut client = client(&metrics);
    for round in 0..20 {
        metrics.push("a", 0.0).unwrap();
        let listen = client.listen(&["metrics:///a"], false).await.unwrap();
        metrics.push("a", f64::from(round)).unwrap();
        assert_eq!(client.next(&listen).await.unwrap().params["uri"], "metrics:///a");
    }
    let listen = client.listen(&["metrics:///"], true).await.unwrap();
    metrics.push("new", 0.0).unwrap();
    let one = client.next(&listen).await.unwrap();
    let other = client.next(&listen).await.unwrap();
    let uris = [one.params.get("uri").cloned(), other.params.get("uri").cloned()];
    assert!(uris.contains(&None) && uris.contains(&Some(json!("metrics:///"))), "{uris:?}");
    assert!(listed(&mut client).await.contains(&"metrics:///new".to_owned()));
}

/// S-05, R-076: a legacy session is notified of a series that begins after the subscription.
#[tokio::test]
async fn a_legacy_session_is_told() {
    let metrics = quick();
    metrics.push("a", 0.0).unwrap();
    let (server, _) = served(&metrics, "{}");
    let mut client = Client::legacy(&server, Revision::V2025_06_18).await.unwrap();
    client.subscribe("metrics:///a").await.unwrap();
    metrics.push("a", 1.0).unwrap();
    assert_eq!(client.notification().await.unwrap()["params"]["uri"], "metrics:///a");
    client.unsubscribe("metrics:///a").await.unwrap();
}

/// S-05: series that are too many are refused, and the log says so once, with the fix.
#[tokio::test]
async fn refusals_are_logged_once() {
    let metrics = made(MetricsOptions::new().series(1));
    let (server, log) = served(&metrics, "{}");
    metrics.push("a", 0.0).unwrap();
    let mut client = Client::modern(&server).unwrap();
    for round in 1..=3 {
        assert_eq!(metrics.push("b", 0.0), Err(PushError::TooManySeries { limit: 1 }));
        assert_eq!(metrics.refused(), round);
        assert!(client.read("metrics:///a").await.is_ok());
        assert!(client.read("metrics:///b").await.is_err());
    }
    let said = log.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("pushes to others are refused; raise the option `series`"), "{said:?}");
}

/// S-05: contents that are larger than an answer may be are not made.
#[tokio::test]
async fn a_large_answer_is_refused() {
    let metrics = made(MetricsOptions::new().samples(1_000_000));
    let begun = ago(3_000);
    for at in 0..1_000_000_u64 {
        metrics.push_at("a", 1.0, begun + Duration::from_millis(at)).unwrap();
    }
    let mut client = client(&metrics);
    let error = client.read("metrics:///a?step=1ms").await.unwrap_err();
    assert_eq!(error.data["kind"], "size_exceeded", "{}", error.message);
    assert_eq!(json_at(&mut client, "metrics:///a").await["step"], "5s");
}

/// S-05: a push to a series that exists allocates nothing; a million samples take the memory that the first one took.
#[test]
fn a_push_allocates_nothing() {
    let metrics = made(MetricsOptions::new());
    let first = allocation_counter::measure(|| metrics.push("a", 0.0).unwrap());
    assert!((3_600 * 16..3_600 * 16 + 2_048).contains(&first.bytes_current), "{first:?}");
    let later = allocation_counter::measure(|| {
        for at in 0..1_000_000_u32 {
            metrics.push("a", f64::from(at)).unwrap();
        }
        for at in 0..10_000 {
            metrics.push_at("a", 1.0, ago(at)).unwrap();
        }
    });
    assert_eq!((later.count_total, later.bytes_total), (0, 0), "{later:?}");
    // All series that may be, each full: memory is bounded by their product.
    let bounded = allocation_counter::measure(|| {
        let metrics = made(MetricsOptions::new().series(8).samples(100));
        for at in 0..1_000_000_u32 {
            let _ = metrics.push(["a", "b", "c", "d", "e", "f", "g", "h", "i"][at as usize % 9], 1.0);
        }
        assert_eq!(metrics.refused(), 111_111);
    });
    assert!(bounded.bytes_max < 8 * (100 * 16 + 1_024), "{bounded:?}");
}

/// S-05: samples from many threads at once, while clients read: none is lost.
#[tokio::test]
async fn many_threads_push() {
    let metrics = made(MetricsOptions::new().samples(100_000));
    let mut client = client(&metrics);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let metrics = metrics.clone();
            std::thread::spawn(move || {
                for at in 0..10_000_u32 {
                    metrics.push("shared", f64::from(at)).unwrap();
                    metrics.push(&format!("own-{thread}"), f64::from(at)).unwrap();
                }
            })
        })
        .collect();
    while threads.iter().any(|thread| !thread.is_finished()) {
        let _ = client.read("metrics:///shared").await;
    }
    let counts = all(&json_at(&mut client, "metrics:///shared").await, "count");
    assert_eq!(counts.iter().filter_map(Value::as_u64).sum::<u64>(), 40_000);
}

/// How many threads of this process measure the machine.
#[cfg(target_os = "linux")]
fn measuring() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "mcp-host").count()
}

/// S-05: the machine is measured from the first request on, and no longer than the provider is mounted.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_machine_is_measured() {
    let metrics = made(MetricsOptions::new().host(true).interval(Duration::from_millis(100)));
    for _ in 0..2 {
        let (server, log) = served(&metrics, "{}");
        let mut client = Client::modern(&server).unwrap();
        assert_eq!(measuring(), 0);
        let index = json_at(&mut client, "metrics:///").await;
        assert_eq!(measuring(), 1);
        let series = index["series"].as_array().unwrap();
        for part in ["cpu", "memory", "disk", "network"] {
            assert!(series.iter().any(|one| one["name"].as_str().unwrap().starts_with(part)), "{index}");
        }
        let used = series.iter().find(|one| one["name"] == "memory_used_bytes").unwrap();
        assert!(used["value"].as_f64().unwrap() > 1e6, "{used}");
        let busy = json_at(&mut client, "metrics:///cpu_usage_percent").await;
        let values = all(&busy, "value");
        assert!(!values.is_empty(), "{busy}");
        assert!(values.iter().all(|value| (0.0..=100.5).contains(&value.as_f64().unwrap())), "{busy}");
        let listen = client.listen(&["metrics:///cpu_usage_percent"], false).await.unwrap();
        assert!(client.next(&listen).await.is_some());
        let items = client.list_resources().await.unwrap();
        let cpu = items.iter().find(|item| item["name"] == "cpu_usage_percent").unwrap();
        assert!(cpu["description"].as_str().unwrap().contains("percent"), "{cpu}");
        assert!(cpu["annotations"]["lastModified"].is_string(), "{cpu}");
        assert!(log.lock().unwrap().is_empty(), "{log:?}");
        drop((client, server));
        let begun = Instant::now();
        while measuring() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "the thread goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// S-05: one server at a time.
#[test]
fn one_server_at_a_time() {
    let metrics = made(MetricsOptions::new());
    let first = served(&metrics, "{}");
    let second = ResourceServer::builder("other", "1").mount(metrics.clone()).build();
    assert!(second.unwrap_err().to_string().contains("mounted already"));
    drop(first);
    assert!(ResourceServer::builder("other", "1").mount(metrics).build().is_ok());
}
