//! Endpoints of an HTTP API on this machine, served to a client.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::api::{Api, ApiEndpoint, ApiOptions};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CANARY: &str = "hunter2-canary";

/// A request to the server: the target, and the headers in lower case.
#[derive(Clone, Debug, Default)]
struct Asked {
    target: String,
    headers: Vec<String>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// An HTTP server of the test's own.
struct Upstream {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Upstream {
    /// One that answers each request with what `answer` gives: a head, and a body.
    fn new(answer: impl Fn(&Asked) -> (String, Vec<u8>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let own = asked.clone();
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (Ok(mut socket), own, answer) = (socket, own.clone(), answer.clone()) else { return };
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(socket.try_clone().unwrap());
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
                    let mut headers = Vec::new();
                    loop {
                        line.clear();
                        reader.read_line(&mut line).unwrap();
                        match line.trim_end() {
                            "" => break,
                            header => {
                                let (name, value) = header.split_once(": ").unwrap();
                                headers.push(format!("{}: {value}", name.to_ascii_lowercase()));
                            }
                        }
                    }
                    let one = Asked { target, headers };
                    own.lock().unwrap().push(one.clone());
                    let (head, body) = answer(&one);
                    let end = format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
                    let _ = socket.write_all(format!("HTTP/1.1 {head}\r\n{end}").as_bytes());
                    let _ = socket.write_all(&body);
                });
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Waits for so many requests.
    async fn reached(&self, count: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        while self.count() < count {
            assert!(Instant::now() < until, "{} of {count} requests", self.count());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn json_head(more: &str) -> String {
    format!("200 OK\r\ncontent-type: application/json; charset=utf-8\r\nset-cookie: a=b{more}")
}

fn options(endpoint: ApiEndpoint) -> ApiOptions {
    let options = ApiOptions::new().endpoint("shop", "item", endpoint).private_networks(true);
    options.poll(Duration::from_millis(100)).timeout(Duration::from_secs(5))
}

fn served(options: ApiOptions, policy: &str) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let server = ResourceServer::builder("api", "1")
        .mount(Api::new(options).unwrap())
        .guard(Policy::from_json(policy).unwrap())
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

fn client(options: ApiOptions) -> (Client, Log) {
    let (server, log) = served(options, "{}");
    (Client::modern(&server).unwrap(), log)
}

async fn uris(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

/// S-20: what is declared is listed without a request, read and completed, in both eras; an id is one segment; what is not
/// declared, not there or hidden is one and the same.
#[tokio::test]
async fn declared_endpoints_are_served() {
    let upstream = Upstream::new(|asked| match asked.target.as_str() {
        "/items/none" => ("404 Not Found".into(), b"secret".to_vec()),
        "/status" => ("200 OK\r\ncontent-type: image/png".into(), vec![0, 255]),
        target => (
            json_head(""),
            format!(r#"{{"data": {{"of": "{target}", "n": 12345678901234567890123}}}}"#).into_bytes(),
        ),
    });
    let item = ApiEndpoint::new(upstream.url("/items/{id}")).pick("/data").ids(["1", "a/b c", "hidden"]);
    let options = options(item).endpoint("shop", "status", ApiEndpoint::new(upstream.url("/status")));
    let (server, _) = served(options, r#"{"deny": ["api:///shop/item/hidden"]}"#);
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let before = upstream.count();
        assert_eq!(
            uris(&mut client).await,
            [
                "api:///",
                "api:///shop/item",
                "api:///shop/status",
                "api:///shop/item/1",
                "api:///shop/item/a/b%20c"
            ]
        );
        let index: Value = serde_json::from_str(&client.read_text("api:///").await.unwrap()).unwrap();
        assert_eq!(index["endpoints"][0]["uriTemplate"], "api:///shop/item/{+id}");
        let found = client.complete("api:///{name}/{endpoint}/{+id}", "id", "a", &[]).await.unwrap();
        assert_eq!(found.values, ["a/b%20c"]);
        let found = client.complete("api:///{name}/{endpoint}", "endpoint", "s", &[]).await.unwrap();
        assert_eq!(found.values, ["status"]);
        assert_eq!(upstream.count(), before, "nothing was requested");

        let read = client.read("api:///shop/item/a/b%20c").await.unwrap();
        let contents = &read["contents"][0];
        assert_eq!(contents["mimeType"], "application/json");
        assert_eq!(contents["text"], r#"{"of": "/items/a%2Fb%20c", "n": 12345678901234567890123}"#);
        assert_eq!(client.read("api:///shop/status").await.unwrap()["contents"][0]["blob"], "AP8=");
        for (id, target) in
            [("//host", "/items/%2F%2Fhost"), ("x?y%23z", "/items/x"), ("%3Fq=1", "/items/%3Fq%3D1")]
        {
            let text = client.read_text(&format!("api:///shop/item/{id}")).await;
            if let Ok(text) = text {
                assert!(text.contains(&format!("\"{target}")), "{id}: {text}");
            }
        }
        let mut answers = Vec::new();
        for path in [
            "shop/item/none",
            "shop/item/hidden",
            "shop/other/1",
            "other/item/1",
            "shop/status/1",
            "shop/item/..",
            "shop/item/%2E%2E",
            "shop/item/a%0D%0Ab",
        ] {
            let uri = format!("api:///{path}");
            answers.push(format!("{:?}", client.read(&uri).await.unwrap_err()).replace(&uri, "URI"));
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:#?}");
        let long = client.read(&format!("api:///shop/item/{}", "x".repeat(1_025))).await.unwrap_err();
        assert!(format!("{long:?}").contains("\"id\""), "{long:?}");
    }
    assert!(
        upstream
            .asked
            .lock()
            .unwrap()
            .iter()
            .all(|asked| asked.target.starts_with("/items/") || asked.target == "/status")
    );
}

/// S-20: 64 reads at once are one request, also of what may not be kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_reads_are_one_request() {
    let upstream = Upstream::new(|_| {
        std::thread::sleep(Duration::from_millis(300));
        (json_head("\r\ncache-control: no-store"), b"{}".to_vec())
    });
    let (server, _) = served(options(ApiEndpoint::new(upstream.url("/{id}"))), "{}");
    let mut clients: Vec<Client> = (0..64).map(|_| Client::modern(&server).unwrap()).collect();
    let ids: Vec<u64> = clients
        .iter_mut()
        .map(|client| client.send("read", json!({ "uri": "api:///shop/item/1" })).unwrap())
        .collect();
    for (client, id) in clients.iter_mut().zip(ids) {
        let read = client.answer(id).await.unwrap();
        assert_eq!((&read["contents"][0]["text"], &read["ttlMs"]), (&json!("{}"), &json!(0)));
    }
    assert_eq!(upstream.count(), 1);
}

/// S-20: a poll and reads at the same time are one request, whichever comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_poll_joins_the_reads() {
    let upstream = Upstream::new(|_| {
        std::thread::sleep(Duration::from_millis(600));
        (json_head("\r\ncache-control: no-store"), b"{}".to_vec())
    });
    let patient =
        |upstream: &Upstream| options(ApiEndpoint::new(upstream.url("/{id}"))).poll(Duration::from_secs(60));
    for polls_first in [true, false] {
        let (server, _) = served(patient(&upstream), "{}");
        let mut watcher = Client::modern(&server).unwrap();
        let mut clients: Vec<Client> = (0..64).map(|_| Client::modern(&server).unwrap()).collect();
        let before = upstream.count();
        if polls_first {
            watcher.listen(&["api:///shop/item/1"], false).await.unwrap();
            while upstream.count() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let send = |client: &mut Client| client.send("read", json!({ "uri": "api:///shop/item/1" })).unwrap();
        let ids: Vec<u64> = clients.iter_mut().map(send).collect();
        if !polls_first {
            while upstream.count() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            watcher.listen(&["api:///shop/item/1"], false).await.unwrap();
        }
        for (client, id) in clients.iter_mut().zip(ids) {
            assert_eq!(client.answer(id).await.unwrap()["contents"][0]["text"], "{}");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(upstream.count(), before + 1, "{polls_first}");
    }
}

/// S-20, R-113: `ttlMs` is what remains of `max-age`, and after it the copy is revalidated; a copy is served, marked, while the
/// server is down; without a copy the read fails.
#[tokio::test]
async fn copies_are_kept_revalidated_and_served_when_stale() {
    let mode = Arc::new(Mutex::new("fresh"));
    let own = mode.clone();
    let upstream = Upstream::new(move |asked| match *own.lock().unwrap() {
        "fresh" if asked.header("if-none-match") == Some("\"1\"") => ("304 Not Modified".into(), Vec::new()),
        "fresh" => (json_head("\r\netag: \"1\"\r\ncache-control: max-age=60\r\nage: 59"), b"[1]".to_vec()),
        "busy" => ("429 Too Many Requests\r\nretry-after: 2".into(), CANARY.into()),
        _ => ("503 Oh".into(), CANARY.into()),
    });
    let (mut client, log) = client(options(ApiEndpoint::new(upstream.url("/{id}"))));
    let first = client.read("api:///shop/item/1").await.unwrap();
    assert!(first["ttlMs"].as_u64().is_some_and(|ttl| (1..=1_000).contains(&ttl)), "{first}");
    client.read("api:///shop/item/1").await.unwrap();
    assert_eq!(upstream.count(), 1);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let again = client.read("api:///shop/item/1").await.unwrap();
    assert_eq!((again["contents"][0]["text"].as_str(), &again["ttlMs"]), (Some("[1]"), &json!(0)));
    assert_eq!(upstream.asked.lock().unwrap()[1].header("if-none-match"), Some("\"1\""));

    *mode.lock().unwrap() = "busy";
    let before = upstream.count();
    for _ in 0..3 {
        let stale = client.read("api:///shop/item/1").await.unwrap();
        assert_eq!(stale["contents"][0]["text"], "[1]");
        assert_eq!(stale["contents"][0]["_meta"]["io.github.mcp-resources/stale"], true);
        assert_eq!(stale["ttlMs"], 0);
    }
    assert_eq!(upstream.count(), before + 1, "the server said when to come back");
    *mode.lock().unwrap() = "down";
    let error = client.read("api:///shop/item/2").await.unwrap_err();
    let said = log.lock().unwrap().join("\n");
    assert!(said.contains("shop/item: status 503") && said.contains("shop/item: status 429"), "{said}");
    assert!(!format!("{error:?}{said}").contains(CANARY), "{error:?} {said}");
}

/// S-20: a value is polled while it is watched, a change of it is notified, and one beside it is not.
#[tokio::test]
async fn changes_of_the_value_are_notified() {
    let value = Arc::new(Mutex::new((1, 0)));
    let own = value.clone();
    let upstream = Upstream::new(move |_| {
        let mut value = own.lock().unwrap();
        value.1 += 1;
        (json_head(""), format!(r#"{{"data": {}, "other": {}}}"#, value.0, value.1).into_bytes())
    });
    let (mut client, _) = client(options(ApiEndpoint::new(upstream.url("/{id}")).pick("/data")));
    let before = upstream.count();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(upstream.count(), before, "nobody watches");
    let listen = client.listen(&["api:///shop/item/1"], false).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert!(upstream.count() > before + 2);
    value.lock().unwrap().0 = 2;
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "api:///shop/item/1");
    assert_eq!(client.read_text("api:///shop/item/1").await.unwrap(), "2");
    client.cancel(listen.id).unwrap();
    tokio::time::sleep(Duration::from_millis(800)).await;
    let before = upstream.count();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(upstream.count(), before, "nobody watches any longer");
}

/// S-20: an endpoint whose name begins with that of another one is polled too.
#[tokio::test]
async fn a_name_that_begins_with_another_is_watched() {
    let value = Arc::new(Mutex::new(1));
    let own = value.clone();
    let upstream = Upstream::new(move |_| (json_head(""), own.lock().unwrap().to_string().into_bytes()));
    let options = options(ApiEndpoint::new(upstream.url("/item/{id}")));
    let options = options.endpoint("shop", "items", ApiEndpoint::new(upstream.url("/items/{id}")));
    let (mut client, _) = client(options);
    let listen = client.listen(&["api:///shop/items/1"], false).await.unwrap();
    upstream.reached(1).await;
    assert_eq!(upstream.asked.lock().unwrap()[0].target, "/items/1");
    *value.lock().unwrap() = 2;
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "api:///shop/items/1");
}

/// S-20: a poll waits for as long as the server wants no request, also if a read was refused.
#[tokio::test]
async fn a_poll_obeys_retry_after() {
    let upstream = Upstream::new(|_| ("429 Too Many Requests\r\nretry-after: 60".into(), Vec::new()));
    let (mut client, _) = client(options(ApiEndpoint::new(upstream.url("/{id}"))));
    assert!(client.read("api:///shop/item/1").await.is_err());
    client.listen(&["api:///shop/item/1", "api:///shop/item/2"], false).await.unwrap();
    // Another resource is asked for once, so the thread has looked at both.
    upstream.reached(2).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let asked: Vec<String> =
        upstream.asked.lock().unwrap().iter().map(|asked| asked.target.clone()).collect();
    assert_eq!(asked, ["/1", "/2"]);
}

/// S-20: an answer may have as many bytes as `bytes` says, and not one more.
#[tokio::test]
async fn an_answer_may_be_as_large_as_its_limit() {
    let upstream = Upstream::new(|asked| {
        let size = asked.target.trim_start_matches('/').parse().unwrap();
        ("200 OK\r\ncontent-type: text/plain".into(), vec![b'x'; size])
    });
    let (mut client, _) = client(options(ApiEndpoint::new(upstream.url("/{id}"))).bytes(1_000));
    assert_eq!(client.read_text("api:///shop/item/1000").await.unwrap().len(), 1_000);
    let error = client.read("api:///shop/item/1001").await.unwrap_err();
    assert!(format!("{error:?}").contains("size_exceeded"), "{error:?}");
}

/// S-20: a server that repeats what it is sent does not give a value of the environment to clients.
#[tokio::test]
async fn a_repeated_secret_is_not_served() {
    let upstream = Upstream::new(|asked| {
        (json_head(""), json!({ "of": "a shop", "headers": asked.headers }).to_string().into())
    });
    let endpoint = ApiEndpoint::new(upstream.url("/{id}")).header("X-Plain", "no-secret");
    let (mut plain, _) = client(options(endpoint.clone()));
    assert!(plain.read_text("api:///shop/item/1").await.unwrap().contains("no-secret"));
    let secret = std::env::var("PATH").unwrap();
    let endpoint = endpoint.header_from_env("X-Key", "PATH");
    // What `pick` leaves out does not matter.
    let (mut picked, _) = client(options(endpoint.clone().pick("/of")));
    assert_eq!(picked.read_text("api:///shop/item/1").await.unwrap(), "a shop");
    let (mut client, log) = client(options(endpoint));
    let error = client.read("api:///shop/item/1").await.unwrap_err();
    assert!(upstream.asked.lock().unwrap()[2].header("x-key") == Some(&*secret));
    let said = log.lock().unwrap().join("\n");
    assert!(said.contains("repeats the value of the header x-key"), "{said}");
    assert!(!format!("{error:?}{said}").contains(&secret), "{error:?} {said}");
}

/// S-20: headers of the operator's go to the declared origin alone, redirects are not followed unless that is said, and
/// nothing of a secret or of the server is in an answer or a log line.
#[tokio::test]
async fn secrets_stay() {
    let other = Upstream::new(|_| (json_head(""), b"{}".to_vec()));
    let location = other.url("/there");
    let upstream = Upstream::new(move |asked| match asked.target.as_str() {
        "/1" => (format!("302 Found\r\nlocation: {location}"), Vec::new()),
        "/2" => ("302 Found\r\nlocation: /3".into(), Vec::new()),
        "/loop" => ("302 Found\r\nlocation: /loop".into(), Vec::new()),
        "/large" => (json_head(""), vec![b'1'; 2_000]),
        "/gzip" => (json_head("\r\ncontent-encoding: gzip"), vec![0x1f, 0x8b]),
        "/broken" => (json_head(""), CANARY.into()),
        "/denied" => ("401 Unauthorized\r\nwww-authenticate: Bearer".into(), CANARY.into()),
        _ => (json_head(""), b"{}".to_vec()),
    });
    let endpoint = |redirects: usize| {
        let endpoint = ApiEndpoint::new(upstream.url("/{id}")).header("Authorization", CANARY).pick("");
        options(endpoint).redirects(redirects).bytes(1_000)
    };
    let mut all = String::new();
    for redirects in [0, 1] {
        let (mut client, log) = client(endpoint(redirects));
        for id in ["1", "2", "loop", "large", "gzip", "broken", "denied", "3"] {
            let read = client.read(&format!("api:///shop/item/{id}")).await;
            let is_good = id == "3" || (redirects == 1 && matches!(id, "1" | "2"));
            assert_eq!(read.is_ok(), is_good, "{id}: {read:?}");
            all.push_str(&format!("{read:?}"));
        }
        all.push_str(&log.lock().unwrap().join("\n"));
    }
    assert!(!all.contains(CANARY) && !all.contains("http://"), "{all}");
    assert!(all.contains("status 401") && all.contains("redirects more than 0 times"), "{all}");
    for asked in upstream.asked.lock().unwrap().iter() {
        assert_eq!(asked.header("authorization"), Some(CANARY), "{asked:?}");
        assert_eq!(asked.header("accept-encoding"), Some("identity"), "{asked:?}");
        assert_eq!(asked.header("cookie"), None, "{asked:?}");
    }
    for asked in other.asked.lock().unwrap().iter() {
        assert_eq!(asked.header("authorization"), None, "{asked:?}");
    }
    assert_eq!(other.count(), 1);
}

/// S-20: without `private_networks` nothing on this machine is asked.
#[tokio::test]
async fn this_machine_is_not_asked() {
    let upstream = Upstream::new(|_| (json_head(""), b"{}".to_vec()));
    let options = ApiOptions::new().endpoint("shop", "item", ApiEndpoint::new(upstream.url("/{id}")));
    let (mut client, log) = client(options);
    assert!(client.read("api:///shop/item/1").await.is_err());
    assert_eq!(upstream.count(), 0);
    assert!(log.lock().unwrap().join("\n").contains("has an address that is not public"));
}
