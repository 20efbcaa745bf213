//! The server from the view of its clients and handlers.

use super::*;
use crate::testing::Client;
use mcp_resources_engine::connection::{Answer, Contents, InputAsk, InputRequest, InputRequired, LogLevel};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::{Resource, Template};
use mcp_resources_engine::version::Revision;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

mod contents;
mod ends;
mod replicas;
mod signals;
#[cfg(feature = "http")]
mod tokens;
#[cfg(feature = "tools")]
mod tools;

fn quiet() -> Builder {
    ResourceServer::builder("test", "1").diagnostics(|_| ())
}

/// The answers to a modern client that sends these requests, each with its params, and then ends its input.
async fn conversation(server: &ResourceServer, requests: &[(u64, &str, Value)]) -> Vec<Value> {
    let (mut socket, theirs) = UnixStream::pair().unwrap();
    for (id, method, params) in requests {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(socket, "{request}").unwrap();
    }
    socket.shutdown(Shutdown::Write).unwrap();
    server.run_on(theirs.try_clone().unwrap(), theirs).await.unwrap();
    let mut output = String::new();
    socket.read_to_string(&mut output).unwrap();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn handlers_return_what_suits_them() {
    let server = quiet()
        .resource(Resource::new("a://text"), |_| async { "text" })
        .resource(Resource::new("a://owned"), |_| async { String::from("owned") })
        .resource(Resource::new("a://bytes"), |_| async { vec![0_u8, 255] })
        .resource(Resource::new("a://json"), |_| async { Contents::json(&json!({"a": 1})) })
        .resource(Resource::new("a://two"), |request| async move {
            assert_eq!(request.uri, "a://two");
            vec![Contents::text("one"), Contents::blob(vec![1_u8]).with_uri("a://two/2")]
        })
        .resource(Resource::new("a://blocking"), blocking(|_| "from a pool"))
        .text(Resource::new("a://constant"), "constant")
        .build()
        .unwrap();
    for modern in [true, false] {
        let mut client = match modern {
            true => Client::modern(&server).unwrap(),
            false => Client::legacy(&server, Revision::V2024_11_05).await.unwrap(),
        };
        assert_eq!(client.read_text("a://text").await.unwrap(), "text");
        assert_eq!(client.read_text("a://owned").await.unwrap(), "owned");
        assert_eq!(client.read_text("a://blocking").await.unwrap(), "from a pool");
        assert_eq!(client.read_text("a://constant").await.unwrap(), "constant");
        assert_eq!(client.read("a://bytes").await.unwrap()["contents"][0]["blob"], "AP8=");
        let json = client.read("a://json").await.unwrap();
        assert_eq!(json["contents"][0]["text"], "{\"a\":1}");
        assert_eq!(json["contents"][0]["mimeType"], "application/json");
        let two = client.read("a://two").await.unwrap();
        assert_eq!(two["contents"][1]["uri"], "a://two/2");
    }
}

#[tokio::test]
async fn parameters_are_typed_and_a_wrong_one_is_named() {
    #[derive(serde::Deserialize)]
    struct Forecast {
        city: String,
        days: Option<u8>,
    }
    let server = quiet()
        .template(Template::new("weather://{city}/forecast{?days}"), |request: ReadRequest| async move {
            let Forecast { city, days } = request.params()?;
            Ok::<_, ReadError>(format!("{city} {days:?}"))
        })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(client.read_text("weather://tokyo/forecast").await.unwrap(), "tokyo None");
    assert_eq!(client.read_text("weather://tokyo/forecast?days=7").await.unwrap(), "tokyo Some(7)");
    let error = client.read("weather://tokyo/forecast?days=700").await.unwrap_err();
    assert_eq!((error.code, &error.data["parameter"]), (-32602, &json!("days")));
}

#[tokio::test]
async fn completion_and_lists_come_from_the_template() {
    let cities = ["osaka", "tokyo", "toyama"];
    let server = quiet()
        .template(Template::new("weather://{city}"), |_| async { "sun" })
        .complete("city", move |request: CompletionRequest| async move {
            cities.into_iter().filter(|city| city.starts_with(&request.value)).collect::<Vec<_>>()
        })
        .list(move |_| async move {
            cities.iter().map(|city| Resource::new(format!("weather://{city}"))).collect::<Vec<_>>()
        })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    let params = json!({
        "ref": {"type": "ref/resource", "uri": "weather://{city}"},
        "argument": {"name": "city", "value": "to"},
    });
    let completion = client.request("completion/complete", params).await.unwrap();
    assert_eq!(completion["completion"]["values"], json!(["tokyo", "toyama"]));
    let list = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(list["resources"].as_array().unwrap().len(), 3);
}

// R-149: a slow read does not delay others, and finishes out of order.
#[tokio::test]
async fn a_slow_handler_blocks_no_other_request() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let server = quiet()
        .resource(Resource::new("a://slow"), move |_| {
            let held = held.clone();
            async move {
                drop(held.acquire_owned().await);
                "slow"
            }
        })
        .resource(Resource::new("a://fast"), |_| async { "fast" })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    let slow = client.send("resources/read", json!({"uri": "a://slow"})).unwrap();
    assert_eq!(client.read_text("a://fast").await.unwrap(), "fast");
    gate.add_permits(1);
    assert_eq!(client.answer(slow).await.unwrap()["contents"][0]["text"], "slow");
}

/// Decrements a counter when it is dropped.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn until(what: impl Fn() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came true");
}

// R-127: a cancelled request drops its future and gets no answer; its slot is freed.
#[tokio::test]
async fn cancelling_drops_the_future_and_frees_its_place() {
    let mut limits = Limits::default();
    limits.in_flight = 1;
    let alive = Arc::new(AtomicUsize::new(0));
    let handlers = alive.clone();
    let server = quiet()
        .limits(limits)
        .resource(Resource::new("a://never"), move |_| {
            handlers.fetch_add(1, Ordering::SeqCst);
            let guard = Alive(handlers.clone());
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                "never"
            }
        })
        .resource(Resource::new("a://fast"), |_| async { "fast" })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    let never = client.send("resources/read", json!({"uri": "a://never"})).unwrap();
    until(|| alive.load(Ordering::SeqCst) == 1).await;
    assert_eq!(client.read("a://fast").await.unwrap_err().code, -32603, "the table is full");
    client.notify("notifications/cancelled", json!({"requestId": never})).unwrap();
    until(|| alive.load(Ordering::SeqCst) == 0).await;
    until_served(&mut client, "a://fast").await;
}

async fn until_served(client: &mut Client, uri: &str) {
    for _ in 0..500 {
        if client.read(uri).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{uri} is never served");
}

/// A blocking function keeps its slot until it returns, even if it is cancelled.
#[tokio::test]
async fn a_cancelled_function_that_blocks_keeps_its_place_until_it_returns() {
    let mut limits = Limits::default();
    limits.in_flight = 1;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let seen = Arc::new(AtomicUsize::new(0));
    let sees = seen.clone();
    let server = quiet()
        .limits(limits)
        .resource(
            Resource::new("a://blocks"),
            blocking(move |request: ReadRequest| {
                sees.store(1, Ordering::SeqCst);
                let _ = released.lock().unwrap().recv();
                sees.store(2 + usize::from(request.context.is_cancelled()), Ordering::SeqCst);
                "done"
            }),
        )
        .resource(Resource::new("a://fast"), |_| async { "fast" })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    let blocks = client.send("resources/read", json!({"uri": "a://blocks"})).unwrap();
    until(|| seen.load(Ordering::SeqCst) == 1).await;
    client.notify("notifications/cancelled", json!({"requestId": blocks})).unwrap();
    for _ in 0..3 {
        assert_eq!(client.read("a://fast").await.unwrap_err().code, -32603);
    }
    release.send(()).unwrap();
    until_served(&mut client, "a://fast").await;
    assert_eq!(seen.load(Ordering::SeqCst), 3, "it saw that it was cancelled");
}

// R-214: a read that never ends is answered at the time-out, and its future is dropped.
#[tokio::test]
async fn a_handler_that_never_ends_times_out() {
    let mut limits = Limits::default();
    limits.read_timeout = 20;
    let server = quiet()
        .limits(limits)
        .resource(Resource::new("a://never"), |_| std::future::pending::<String>())
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    let error = client.read("a://never").await.unwrap_err();
    assert_eq!(error.data["kind"], "timeout");
}

// R-014, R-068: the text of a handler's error is not sent to clients.
#[tokio::test]
async fn errors_and_panics_are_not_sent() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let server = ResourceServer::builder("test", "1")
        .diagnostics(move |diagnostic| hears.lock().unwrap().push(diagnostic.to_string()))
        .resource(Resource::new("a://error"), |_| async {
            Err::<String, _>(std::io::Error::other("secret-detail-4711"))
        })
        .resource(Resource::new("a://panic"), |request: ReadRequest| async move {
            assert!(request.values.is_some(), "secret");
            ""
        })
        .resource(Resource::new("a://late"), |request: ReadRequest| async move {
            tokio::task::yield_now().await;
            assert!(request.values.is_some(), "secret");
            ""
        })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    for uri in ["a://error", "a://panic", "a://late"] {
        let error = client.read(uri).await.unwrap_err();
        assert_eq!((error.code, &error.data["kind"]), (-32603, &json!("read_error")));
        assert!(!error.message.contains("secret"));
    }
    let heard = heard.lock().unwrap().join("\n");
    assert!(heard.contains("secret-detail-4711"), "{heard}");
    assert_eq!(heard.matches("panicked").count(), 2);
}

// R-076, R-077, R-083, R-092: changes at run time are notified, from any thread and from inside a handler.
#[tokio::test]
async fn changes_at_run_time_are_notified() {
    let server = quiet()
        .resource(Resource::new("a://counter"), |_| async { "0" })
        .resource(Resource::new("a://touch"), |request: ReadRequest| async move {
            request.context.server().notify_updated("a://counter").unwrap();
            "ok"
        })
        .build()
        .unwrap();
    let mut modern = Client::modern(&server).unwrap();
    let notifications = json!({"resourcesListChanged": true, "resourceSubscriptions": ["a://counter"]});
    modern.send("subscriptions/listen", json!({"notifications": notifications})).unwrap();
    let ack = modern.notification().await.unwrap();
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    let mut legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    legacy.request("resources/subscribe", json!({"uri": "a://counter"})).await.unwrap();

    let other = server.clone();
    std::thread::spawn(move || other.notify_updated("a://counter").unwrap()).join().unwrap();
    for client in [&mut modern, &mut legacy] {
        let notice = client.notification().await.unwrap();
        assert_eq!(notice["method"], "notifications/resources/updated");
        assert_eq!(notice["params"]["uri"], "a://counter");
    }
    // The second comes after the coalescing time, so a timer has to fire for it.
    assert_eq!(legacy.read_text("a://touch").await.unwrap(), "ok");
    for client in [&mut modern, &mut legacy] {
        assert_eq!(client.notification().await.unwrap()["method"], "notifications/resources/updated");
    }
    server.apply(ServerChanges::new().text(Resource::new("a://new"), "new")).unwrap();
    for client in [&mut modern, &mut legacy] {
        assert_eq!(client.notification().await.unwrap()["method"], "notifications/resources/list_changed");
        assert_eq!(client.read_text("a://new").await.unwrap(), "new");
    }
}

#[tokio::test]
async fn removed_resources_are_gone_and_their_functions_with_them() {
    let alive = Arc::new(AtomicUsize::new(1));
    let guard = Alive(alive.clone());
    let server = quiet()
        .resource(Resource::new("a://x"), move |_| {
            let _ = &guard;
            async { "x" }
        })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(client.read_text("a://x").await.unwrap(), "x");
    server.apply(ServerChanges::new().remove_resource("A://x")).unwrap();
    assert_eq!(client.read("a://x").await.unwrap_err().data["kind"], "not_found");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    let refused = ServerChanges::new()
        .text(Resource::new("a://y"), "y")
        .resource(Resource::new("not a uri"), |_| async { "" });
    assert!(server.apply(refused).is_err());
    assert!(client.read("a://y").await.is_err(), "all or nothing");
}

// R-124: progress and log messages precede the answer, whether or not the handler has left the loop.
#[tokio::test]
async fn reports_come_before_the_answer() {
    async fn report(request: ReadRequest, wait: bool) -> &'static str {
        request.context.progress(1.0, Some(2.0), Some("half"));
        if wait {
            tokio::task::yield_now().await;
        }
        request.context.log(LogLevel::Warning, Some("test"), &json!({"n": 1}));
        "done"
    }
    let server = quiet()
        .logging(true)
        .resource(Resource::new("a://now"), |request| report(request, false))
        .resource(Resource::new("a://later"), |request| report(request, true))
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    for uri in ["a://now", "a://later"] {
        let meta = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"});
        let id = client.send("resources/read", json!({"uri": uri, "_meta": meta})).unwrap();
        assert_eq!(client.answer(id).await.unwrap()["contents"][0]["text"], "done");
        let progress = client.notification().await.unwrap();
        assert_eq!(progress["params"]["progressToken"], "t");
        assert_eq!(client.notification().await.unwrap()["method"], "notifications/message");
    }
}

// R-133 … R-139: a read that asks the user first.
#[tokio::test]
async fn a_read_may_ask_for_input() {
    #[derive(serde::Deserialize)]
    struct Name {
        name: String,
    }
    async fn greet(request: ReadRequest) -> Handled {
        match request.input::<Name>("name")? {
            Some(Name { name }) => {
                assert_eq!(request.state.as_deref(), Some(&b"asked"[..]));
                IntoAnswer::<Read>::into_answer(format!("Hello, {name}"))
            }
            None => {
                let schema =
                    r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
                let ask = InputAsk::Form { message: "Who are you?".into(), schema: schema.into() };
                let requests = vec![InputRequest { key: "name".into(), ask }];
                let state = Some(b"asked".as_slice().into());
                Ok(Answer::InputRequired(InputRequired { requests, state }))
            }
        }
    }
    let server = quiet().resource(Resource::new("a://greeting"), greet).build().unwrap();
    let mut plain = Client::modern(&server).unwrap();
    assert_eq!(plain.read("a://greeting").await.unwrap_err().code, -32021);
    let mut client = Client::modern(&server).unwrap().with_capabilities(json!({"elicitation": {}}));
    let asked = client.read("a://greeting").await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    for (response, expected) in [
        (json!({"action": "accept", "content": {"name": "Ada"}}), Some("Hello, Ada")),
        (json!({"action": "decline"}), None),
    ] {
        let retry = json!({
            "uri": "a://greeting", "requestState": asked["requestState"], "inputResponses": {"name": response},
        });
        let answer = client.request("resources/read", retry).await;
        match expected {
            Some(text) => assert_eq!(answer.unwrap()["contents"][0]["text"], text),
            None => assert_eq!(answer.unwrap_err().data["kind"], "input_declined"),
        }
    }
}

#[tokio::test]
async fn foreign_methods_are_answered_by_hand() {
    let server = quiet()
        .method(Method::new("com.example/list").capability("tasks", "{}"), |_| async { json!({"tools": []}) })
        .method(Method::new("acme/echo"), |request: CallRequest| async move {
            Ok::<_, ReadError>(json!({"echo": request.params::<serde_json::Value>()?["text"]}))
        })
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(client.request("com.example/list", json!({})).await.unwrap()["tools"], json!([]));
    let echo = client.request("acme/echo", json!({"text": "hi"})).await.unwrap();
    assert_eq!((&echo["echo"], &echo["resultType"]), (&json!("hi"), &json!("complete")));
}
