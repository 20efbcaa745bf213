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
