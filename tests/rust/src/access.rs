//! Access that depends on data: handlers decide who may use a resource.

use mcp_resources_engine::connection::{Completion, Contents};
use mcp_resources_engine::engine::AccessQuestion;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{Resource, Template};
use mcp_resources_engine::version::Revision;
use mcp_resources_runtime::server::{CompletionRequest, ListRequest, ReadRequest, ResourceServer};
use mcp_resources_runtime::testing::{Client, ServerError, TestCompletion};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The times that the function was asked, and about how many URIs.
#[derive(Default)]
struct Asked {
    calls: AtomicUsize,
    questions: AtomicUsize,
    /// What bob may see in addition.
    granted: Mutex<Vec<String>>,
    fails: AtomicBool,
}

impl Asked {
    fn decide(&self, principal: &Principal, question: &AccessQuestion) -> bool {
        self.questions.fetch_add(1, Ordering::SeqCst);
        let is_own = question.param("owner") == Some(principal.id());
        is_own
            || (principal.id() == "bob"
                && self.granted.lock().unwrap().iter().any(|uri| **uri == *question.uri))
    }

    fn counts(&self) -> (usize, usize) {
        (self.calls.load(Ordering::SeqCst), self.questions.load(Ordering::SeqCst))
    }
}

const ROWS: [&str; 4] = ["row://alice/1", "row://alice/2", "row://bob/1", "row://carol/1"];

fn server(asked: &Arc<Asked>, limits: Limits) -> ResourceServer {
    let decides = asked.clone();
    ResourceServer::builder("rows", "1.0.0")
        .limits(limits)
        .expose_as_tools(true)
        .template(Template::new("row://{owner}/{id}").tool("row"), |request: ReadRequest| async move {
            format!("row of {}", request.param("owner").unwrap_or_default())
        })
        .list(|_: ListRequest| async { ROWS.map(Resource::new).to_vec() })
        .complete("owner", |_: CompletionRequest| async { vec!["alice", "bob", "carol"] })
        .complete("id", |_: CompletionRequest| async {
            Completion { values: vec!["1".into(), "2".into()], total: None, has_more: None }
        })
        .access_all(move |principal: Arc<Principal>, questions: Arc<[AccessQuestion]>| {
            let asked = decides.clone();
            async move {
                asked.calls.fetch_add(1, Ordering::SeqCst);
                // Not ready at once, as a query of a database.
                tokio::time::sleep(Duration::from_millis(1)).await;
                if asked.fails.load(Ordering::SeqCst) {
                    return Err(std::io::Error::other("the database is gone"));
                }
                Ok(questions.iter().map(|question| asked.decide(&principal, question)).collect::<Vec<bool>>())
            }
        })
        .resource("table://all", |_: ReadRequest| async {
            ROWS.iter().map(|uri| Contents::text("a row").with_uri(*uri)).collect::<Vec<_>>()
        })
        .text("note://public", "for everyone")
        .text("note://secret", "for alice")
        .access(|principal, _| async move { principal.id() == "alice" })
        .diagnostics(|_| {})
        .build()
        .unwrap()
}

async fn client(server: &ResourceServer, principal: &str, modern: bool) -> Client {
    let builder = Client::builder(server).principal(principal);
    match modern {
        true => builder.modern().unwrap(),
        false => builder.legacy(Revision::V2025_11_25).await.unwrap(),
    }
}

async fn uris(client: &mut Client) -> Vec<String> {
    let listed = client.list_resources().await.unwrap();
    listed.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

/// An error without the URI that it repeats.
fn shape(error: ServerError) -> String {
    let uri = error.data["uri"].as_str().unwrap_or("nothing").to_owned();
    format!("{error:?}").replace(&uri, "URI")
}

async fn text_of(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.request("tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap();
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_list_has_what_the_principal_may_see() {
    for modern in [true, false] {
        let asked = Arc::<Asked>::default();
        let server = server(&asked, Limits::default());
        let mut alice = client(&server, "alice", modern).await;
        let mut bob = client(&server, "bob", modern).await;
        assert_eq!(
            uris(&mut alice).await,
            ["note://public", "note://secret", "table://all", "row://alice/1", "row://alice/2"]
        );
        assert_eq!(uris(&mut bob).await, ["note://public", "table://all", "row://bob/1"]);
        assert_eq!(asked.counts(), (2, 8), "one call for each list, and one question for each row");
        uris(&mut bob).await;
        assert_eq!(asked.counts(), (2, 8), "the answers are known");
    }
}

#[tokio::test]
async fn a_hidden_resource_answers_as_an_absent_one() {
    for modern in [true, false] {
        let server = server(&Arc::default(), Limits::default());
        let mut bob = client(&server, "bob", modern).await;
        assert_eq!(bob.read_text("row://bob/1").await.unwrap(), "row of bob");
        assert_eq!(bob.read_text("note://public").await.unwrap(), "for everyone");
        let absent = shape(bob.read("gone://x").await.unwrap_err());
        for uri in ["row://alice/1", "ROW://alice/1", "row://alic%65/1", "note://secret"] {
            assert_eq!(shape(bob.read(uri).await.unwrap_err()), absent, "{uri}");
        }
        let values = |found: TestCompletion| found.values;
        let owner = bob.complete("row://{owner}/{id}", "owner", "", &[("id", "1")]).await.unwrap();
        assert_eq!(values(owner), ["bob"]);
        let id = bob.complete("row://{owner}/{id}", "id", "", &[("owner", "alice")]).await.unwrap();
        assert!(values(id).is_empty());
        let table = bob.read("table://all").await.unwrap();
        assert_eq!(table["contents"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_tools_hide_it_too() {
    for modern in [true, false] {
        let server = server(&Arc::default(), Limits::default());
        let mut bob = client(&server, "bob", modern).await;
        let lines = text_of(&mut bob, "list_resources", json!({})).await;
        assert!(lines.contains("row://bob/1") && !lines.contains("row://alice"), "{lines}");
        assert!(!lines.contains("note://secret"), "{lines}");
        let hidden = text_of(&mut bob, "read_resource", json!({"uri": "row://alice/1"})).await;
        let absent = text_of(&mut bob, "read_resource", json!({"uri": "gone://x"})).await;
        assert_eq!(hidden, absent.replace("gone://x", "row://alice/1"));
        assert!(text_of(&mut bob, "row", json!({"owner": "bob", "id": "1"})).await.contains("row of bob"));
        let called = text_of(&mut bob, "row", json!({"owner": "alice", "id": "1"})).await;
        assert!(called.contains("There is no resource"), "{called}");
    }
}

/// The notifications until nothing has come for a while.
async fn quiet(client: &mut Client) -> Vec<Value> {
    let mut notices = Vec::new();
    while let Ok(Some(notice)) = tokio::time::timeout(Duration::from_millis(150), client.notification()).await
    {
        notices.push(notice);
    }
    notices
}

async fn watch(client: &mut Client, modern: bool, uris: &[&str]) -> Vec<ServerError> {
    if modern {
        client.listen(uris, false).await.unwrap();
        return Vec::new();
    }
    let mut errors = Vec::new();
    for uri in uris {
        errors.extend(client.subscribe(uri).await.err());
    }
    errors
}

#[tokio::test]
async fn bob_is_not_told_of_a_row_of_alice() {
    for modern in [true, false] {
        let asked = Arc::<Asked>::default();
        let server = server(&asked, Limits::default());
        let mut alice = client(&server, "alice", modern).await;
        let mut bob = client(&server, "bob", modern).await;
        assert!(watch(&mut alice, modern, &["row://alice/1"]).await.is_empty());
        let refused = watch(&mut bob, modern, &["row://alice/1", "ROW://alice/1", "gone://x"]).await;
        assert_eq!(
            refused.into_iter().map(shape).collect::<std::collections::HashSet<_>>().len(),
            usize::from(!modern)
        );
        watch(&mut bob, modern, &["row://bob/1"]).await;
        server.notify_updated("row://alice/1").unwrap();
        assert_eq!(quiet(&mut alice).await.len(), 1);
        assert!(quiet(&mut bob).await.is_empty());
        server.notify_updated("row://bob/1").unwrap();
        assert_eq!(quiet(&mut bob).await.len(), 1);
    }
}

#[tokio::test]
async fn an_old_answer_is_asked_for_again_before_an_update() {
    for modern in [true, false] {
        let asked = Arc::<Asked>::default();
        let mut limits = Limits::default();
        limits.access_ttl = 1;
        limits.coalesce = 1;
        let server = server(&asked, limits);
        asked.granted.lock().unwrap().push("row://alice/1".into());
        let mut bob = client(&server, "bob", modern).await;
        watch(&mut bob, modern, &["row://alice/1"]).await;
        server.notify_updated("row://alice/1").unwrap();
        assert_eq!(quiet(&mut bob).await.len(), 1);
        asked.granted.lock().unwrap().clear();
        server.notify_updated("row://alice/1").unwrap();
        assert!(quiet(&mut bob).await.is_empty());
        asked.granted.lock().unwrap().push("row://alice/1".into());
        server.notify_updated("row://alice/1").unwrap();
        assert_eq!(quiet(&mut bob).await.len(), 1, "the watch was only silent");
    }
}

#[tokio::test]
async fn a_regrant_ends_what_is_no_longer_allowed() {
    for modern in [true, false] {
        let asked = Arc::<Asked>::default();
        let server = server(&asked, Limits::default());
        asked.granted.lock().unwrap().push("row://alice/1".into());
        let mut bob = client(&server, "bob", modern).await;
        watch(&mut bob, modern, &["row://alice/1"]).await;
        watch(&mut bob, modern, &["row://bob/1"]).await;
        server.notify_updated("row://alice/1").unwrap();
        assert_eq!(quiet(&mut bob).await.len(), 1);
        asked.granted.lock().unwrap().clear();
        assert!(bob.read("row://alice/1").await.is_ok(), "the answer is kept");
        server.regrant("bob");
        let ended = quiet(&mut bob).await;
        assert_eq!(ended.len(), usize::from(modern), "its listen has ended: {ended:?}");
        let watched = server.engine().subscriptions().uris;
        assert_eq!(watched, 1, "the watch of alice's row has ended");
        assert!(bob.read("row://alice/1").await.is_err());
        server.notify_updated("row://alice/1").unwrap();
        server.notify_updated("row://bob/1").unwrap();
        assert_eq!(quiet(&mut bob).await.len(), 1, "what is allowed goes on");
    }
}

#[tokio::test]
async fn a_failure_means_no_and_is_not_kept() {
    let asked = Arc::<Asked>::default();
    let server = server(&asked, Limits::default());
    let mut bob = client(&server, "bob", true).await;
    asked.fails.store(true, Ordering::SeqCst);
    let failed = shape(bob.read("row://bob/1").await.unwrap_err());
    assert_eq!(failed, shape(bob.read("gone://x").await.unwrap_err()));
    asked.fails.store(false, Ordering::SeqCst);
    assert!(bob.read("row://bob/1").await.is_ok());
}

#[tokio::test]
async fn a_function_without_an_answer_times_out_as_a_read() {
    let mut limits = Limits::default();
    limits.read_timeout = 50;
    let server = ResourceServer::builder("slow", "1")
        .limits(limits)
        .template("row://{id}", |_: ReadRequest| async { "row" })
        .access(|_, _| std::future::pending::<bool>())
        .diagnostics(|_| {})
        .build()
        .unwrap();
    let mut bob = client(&server, "bob", true).await;
    let error = bob.read("row://1").await.unwrap_err();
    assert!(error.message.to_lowercase().contains("time"), "{error}");
    assert_eq!(bob.request("server/discover", json!({})).await.map(|_| ()), Ok(()));
}

/// A page asks about its own items; hidden ones make no short page, and the answers are limited in number.
#[tokio::test]
async fn a_thousand_rows_are_asked_about_in_batches() {
    let asked = Arc::<Asked>::default();
    let mut limits = Limits::default();
    limits.access_answers = 300;
    let decides = asked.clone();
    let mut builder = ResourceServer::builder("many", "1").limits(limits);
    for number in 0..1_000 {
        let decides = decides.clone();
        builder = builder
            .resource(Resource::new(format!("row://{number:04}")), |_: ReadRequest| async { "row" })
            .access_all(move |_: Arc<Principal>, questions: Arc<[AccessQuestion]>| {
                decides.calls.fetch_add(1, Ordering::SeqCst);
                async move { questions.iter().map(|question| question.uri.ends_with('7')).collect::<Vec<_>>() }
            });
    }
    let server = builder.build().unwrap();
    let mut bob = client(&server, "bob", true).await;
    assert_eq!(uris(&mut bob).await.len(), 100);
    assert!(server.engine().access_answers() <= 300);
}

#[tokio::test]
async fn two_tokens_of_one_principal_have_their_own_answers() {
    let server = ResourceServer::builder("claims", "1")
        .template("row://{team}", |_: ReadRequest| async { "row" })
        .access(|principal, row| async move {
            principal.claims().is_some_and(|claims| claims.contains(row.param("team").unwrap_or("?")))
        })
        .build()
        .unwrap();
    let with = |team: &str| {
        Client::builder(&server).principal("ada").claims(json!({"team": team})).modern().unwrap()
    };
    let mut red = with("red");
    let mut blue = with("blue");
    for _ in 0..2 {
        assert!(red.read("row://red").await.is_ok() && blue.read("row://blue").await.is_ok());
        assert!(red.read("row://blue").await.is_err() && blue.read("row://red").await.is_err());
    }
}

#[tokio::test]
async fn an_update_for_one_principal_reaches_no_other() {
    for modern in [true, false] {
        let server = ResourceServer::builder("notes", "1")
            .template("note://{id}", |_: ReadRequest| async { "note" })
            .build()
            .unwrap();
        let mut alice = client(&server, "alice", modern).await;
        let mut bob = client(&server, "bob", modern).await;
        watch(&mut alice, modern, &["note://1"]).await;
        watch(&mut bob, modern, &["note://1"]).await;
        server.notify_updated_for("alice", "NOTE://1").unwrap();
        assert_eq!((quiet(&mut alice).await.len(), quiet(&mut bob).await.len()), (1, 0));
    }
}

/// One connection, driven without a runtime: the steps between a question and the answer to the client.
mod steps {
    use crate::talk::{info, parse};
    use mcp_resources_engine::catalog::Edit;
    use mcp_resources_engine::connection::{
        Answer, Arrival, Connection, ConnectionKind, Contents, Event, RequestToken,
    };
    use mcp_resources_engine::engine::{Engine, EngineOptions};
    use mcp_resources_engine::now::Now;
    use mcp_resources_engine::principal::Principal;
    use mcp_resources_engine::resource::Template;
    use serde_json::{Value, json};
    use std::sync::Arc;

    struct Steps {
        engine: Arc<Engine>,
        connection: Connection,
        principal: Arc<Principal>,
        now: Now,
        sent: Vec<Value>,
    }

    /// The events of one step.
    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        questions: Vec<(RequestToken, Vec<String>)>,
        reads: Vec<RequestToken>,
        others: usize,
    }

    impl Steps {
        fn new(options: EngineOptions) -> Self {
            let engine = Engine::new(info(), options).unwrap();
            let mut template = Template::new("row://{id}");
            template.details.access = true;
            let edit = Edit::AddTemplate {
                template: Box::new(template),
                handler: engine.new_handler(),
                mount: None,
            };
            engine.publish(vec![edit], Now::default()).unwrap();
            let mut connection = engine.connect(ConnectionKind::Stdio);
            connection.assume(mcp_resources_engine::version::Revision::V2025_03_26);
            let principal = Principal::new("bob");
            Self { engine, connection, principal, now: Now::default(), sent: Vec::new() }
        }

        fn send(&mut self, message: &Value) -> Seen {
            let message = message.to_string();
            let principal = self.principal.clone();
            let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
            let mut out = Vec::new();
            let mut seen = Seen::default();
            let outcome = self.connection.message(arrival, self.now, &mut out);
            let again = seen.take(outcome.events);
            self.sent.extend(parse(&out));
            assert!(again.is_empty());
            seen
        }

        fn read(&mut self, id: u32) -> Seen {
            self.send(&read(id))
        }

        fn respond(&mut self, token: RequestToken, answer: Answer<'_>) -> Seen {
            let mut out = Vec::new();
            let mut seen = Seen::default();
            let outcome = self.connection.respond(token, answer, self.now, &mut out);
            for held in seen.take(outcome.events) {
                seen.take(self.connection.again(&held, self.now, &mut out).events);
            }
            self.sent.extend(parse(&out));
            seen
        }
    }

    impl Seen {
        fn take<'m>(
            &mut self,
            events: impl IntoIterator<Item = Event<'m>>,
        ) -> Vec<mcp_resources_engine::connection::HeldRequest> {
            let mut again = Vec::new();
            for event in events {
                match event {
                    Event::Access(request) => {
                        let uris = request.batch.questions.iter().map(|question| question.uri.to_string());
                        self.questions.push((request.token, uris.collect()));
                    }
                    Event::Read(read) => self.reads.push(read.token),
                    Event::Again(held) => again.push(*held),
                    _ => self.others += 1,
                }
            }
            again
        }
    }

    fn read(id: u32) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": {"uri": "row://1"}})
    }

    fn allow(is_allowed: bool) -> Answer<'static> {
        Answer::Access(vec![Some(is_allowed)])
    }

    fn text() -> Answer<'static> {
        Answer::Contents(Contents::text("one").into())
    }

    #[test]
    fn a_read_waits_for_its_question() {
        let mut steps = Steps::new(EngineOptions::default());
        let asked = steps.read(1);
        let [(token, uris)] = &*asked.questions else { panic!("{asked:?}") };
        assert_eq!((&**uris, asked.reads.len(), steps.sent.len()), (&["row://1".to_owned()][..], 0, 0));
        let reads = steps.respond(*token, allow(true)).reads;
        assert_eq!(reads, [*token], "it keeps its slot");
        steps.respond(reads[0], text());
        assert_eq!(steps.sent[0]["result"]["contents"][0]["text"], "one");
        assert_eq!((steps.connection.in_flight(), steps.engine.access_answers()), (0, 1));
        assert_eq!(steps.read(2).questions, []);
        steps.now.tick = steps.engine.limits().access_ttl;
        assert_eq!(steps.read(3).questions.len(), 1, "the answer is too old");
    }

    #[test]
    fn a_refused_read_is_a_missing_one() {
        let mut steps = Steps::new(EngineOptions::default());
        let token = steps.read(1).questions[0].0;
        steps.respond(token, allow(false));
        steps.send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "gone://1"}}),
        );
        let mut sent = std::mem::take(&mut steps.sent);
        sent.iter_mut().for_each(|message| message["error"]["data"]["uri"] = Value::Null);
        assert_eq!(sent[0], sent[1]);
        assert_eq!(steps.connection.in_flight(), 0);
    }

    #[test]
    fn wrong_answers_mean_no() {
        let mut steps = Steps::new(EngineOptions::default());
        for (id, answer) in [(1, Answer::Access(vec![])), (2, text()), (3, Answer::Access(vec![None]))] {
            let token = steps.read(id).questions[0].0;
            assert_eq!(steps.respond(token, answer).reads, []);
        }
        assert!(
            steps.sent.iter().all(|sent| sent["error"]["data"]["kind"] == "not_found"),
            "{:?}",
            steps.sent
        );
        assert_eq!(steps.engine.access_answers(), 0, "a failure is not kept");
    }

    #[test]
    fn a_held_request_can_be_cancelled() {
        let mut steps = Steps::new(EngineOptions::default());
        let token = steps.read(1).questions[0].0;
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(steps.send(&cancel).others, 1);
        assert_eq!(steps.respond(token, allow(true)), Seen::default());
        assert_eq!((steps.connection.in_flight(), steps.sent.len()), (0, 0));
    }

    #[test]
    fn a_held_request_times_out() {
        let mut steps = Steps::new(EngineOptions::default());
        let token = steps.read(1).questions[0].0;
        steps.now.tick = steps.engine.limits().read_timeout;
        let mut out = Vec::new();
        steps.connection.tick(steps.now, &mut out);
        assert_eq!(parse(&out)[0]["error"]["data"]["kind"], "timeout");
        assert_eq!(steps.respond(token, allow(true)), Seen::default());
    }

    /// A batch of 2025-03-26 is answered as a whole.
    #[test]
    fn a_batch_waits_for_its_questions() {
        let mut steps = Steps::new(EngineOptions::default());
        let asked = steps.send(&json!([read(1), read(2)]));
        assert_eq!((asked.questions.len(), steps.sent.len()), (2, 0));
        let reads = steps.respond(asked.questions[0].0, allow(true)).reads;
        assert_eq!(steps.respond(asked.questions[1].0, allow(false)), Seen::default());
        assert_eq!(steps.sent, Vec::<Value>::new());
        steps.respond(reads[0], text());
        let answers = steps.sent[0].as_array().unwrap();
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().any(|answer| answer["id"] == 1 && answer["result"].is_object()));
        assert!(answers.iter().any(|answer| answer["id"] == 2 && answer["error"].is_object()));
        assert_eq!(steps.connection.in_flight(), 0);
    }

    /// The answer may be older than the regrant.
    #[test]
    fn an_answer_that_a_regrant_overtakes_is_not_kept() {
        let mut steps = Steps::new(EngineOptions::default());
        let token = steps.read(1).questions[0].0;
        steps.engine.regrant("bob");
        steps.respond(token, allow(true));
        assert_eq!(steps.engine.access_answers(), 0);
        assert_eq!(steps.read(2).questions.len(), 1);
    }

    #[test]
    fn kept_answers_are_limited() {
        let mut options = EngineOptions::default();
        options.limits.access_answers = 10;
        let mut steps = Steps::new(options);
        for id in 0..100 {
            steps.principal = Principal::new(format!("p{id}"));
            let token = steps.read(id).questions[0].0;
            let reads = steps.respond(token, allow(true)).reads;
            steps.respond(reads[0], text());
            assert!(steps.engine.access_answers() <= 10);
        }
        assert_eq!(steps.sent.len(), 100);
    }
}
