//! `ResourceServer::from_config`: a server from the file of `mcp-resources serve`, and further registrations in code.

use crate::vectors;
use mcp_resources_engine::http::DeniedToken;
use mcp_resources_engine::resource::Template;
use mcp_resources_runtime::server::{ReadRequest, ResourceServer, ServerChanges};
use mcp_resources_runtime::testing::Client;
use mcp_resources_serve::{FromConfig, FromConfigOptions};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-from-config-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// A folder with a copy of the shared file.
    fn of_team(name: &str) -> (Self, PathBuf) {
        let folder = Self::new(name);
        copy(&fixtures().join("team"), &folder.0);
        let path = folder.0.join("team.yaml");
        (folder, path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fixtures() -> PathBuf {
    vectors::project().join("tests/fixtures/serve")
}

fn fixture(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(fixtures().join(name)).unwrap()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn person(server: &ResourceServer, name: &str) -> Client {
    let groups: &[&str] = if name == "alice" { &["operations"] } else { &[] };
    Client::builder(server).principal(name).claims(json!({ "groups": groups })).modern().unwrap()
}

async fn uris(client: &mut Client) -> Vec<Value> {
    let listed = client.list_resources().await.unwrap();
    let mut uris: Vec<Value> = listed.into_iter().map(|item| item["uri"].clone()).collect();
    uris.sort_by_key(Value::to_string);
    uris
}

fn sorted(uris: &Value) -> Vec<Value> {
    let mut uris = uris.as_array().unwrap().clone();
    uris.sort_by_key(Value::to_string);
    uris
}

// S-20: sources, `for` and guard are those of the file; resources in code stand beside them, and under its guard.
#[tokio::test]
async fn everybody_sees_what_the_file_says() {
    let (_folder, path) = Folder::of_team("sees");
    let team = fixture("team.json");
    let server = ResourceServer::from_config(&path).unwrap();
    let note =
        |request: ReadRequest| async move { request.param("id").map(str::to_owned).unwrap_or_default() };
    server.apply(ServerChanges::new().template(Template::new("note://drafts/{id}"), note)).unwrap();
    let (mut alice, mut bob) = (person(&server, "alice"), person(&server, "bob"));
    assert_eq!(uris(&mut alice).await, sorted(&team["sees"]["alice"]));
    assert_eq!(uris(&mut bob).await, sorted(&team["sees"]["bob"]));
    assert_eq!(alice.read_text("note://drafts/7").await.unwrap(), "7");
    assert!(bob.read("note://drafts/7").await.is_err());
}

// S-20: an endpoint begins with the paths and the tokens of the file.
#[tokio::test]
async fn an_endpoint_begins_with_the_file() {
    let (_folder, path) = Folder::of_team("http");
    let team = fixture("team.json");
    let server = ResourceServer::from_config(&path).unwrap();
    let options = server.http().options().clone();
    assert_eq!(options.rules.path, "/team");
    let verifier = options.verifier.unwrap();
    let verified = verifier.verify(team["tokens"]["bob"].as_str().unwrap()).await.unwrap();
    assert_eq!(verified.principal.id(), "bob");
    assert_eq!(verifier.verify("another").await.unwrap_err(), DeniedToken::Invalid);
}

// S-20: the file is looked at; open clients go on, and a mistake changes nothing.
#[tokio::test]
async fn a_change_counts_at_once() {
    let (_folder, path) = Folder::of_team("change");
    let team = fixture("team.json");
    let server = ResourceServer::from_config(&path).unwrap();
    let still = ResourceServer::from_config_with(&path, unwatched()).unwrap();
    let (mut alice, mut bob) = (person(&server, "alice"), person(&server, "bob"));
    let mut unmoved = person(&still, "bob");
    let text = fs::read_to_string(&path).unwrap();
    let changed =
        text.replace(team["change"]["from"].as_str().unwrap(), team["change"]["to"].as_str().unwrap());
    assert_ne!(changed, text);
    fs::write(&path, &changed).unwrap();
    for (client, name) in [(&mut alice, "alice"), (&mut bob, "bob")] {
        let wanted = sorted(&team["sees_then"][name]);
        let start = Instant::now();
        while uris(client).await != wanted {
            assert!(start.elapsed() < PATIENCE, "{:?}", uris(client).await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    fs::write(&path, changed.replace("guard:", "gard:")).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(uris(&mut bob).await, sorted(&team["sees_then"]["bob"]));
    assert_eq!(uris(&mut unmoved).await, sorted(&team["sees"]["bob"]));
}

fn unwatched() -> FromConfigOptions {
    let mut options = FromConfigOptions::default();
    options.watch = false;
    options
}

// S-20: a wrong file is the sentence that `serve --check` prints.
#[test]
fn a_wrong_file() {
    let folder = Folder::new("wrong");
    fs::create_dir_all(folder.0.join("project")).unwrap();
    fs::write(folder.0.join("tokens.yaml"), "- {name: alice, token: secret}\n").unwrap();
    let path = folder.0.join("serve.json");
    let wrong = fixture("wrong.json");
    for case in wrong["files"].as_array().unwrap() {
        let mut file = json!({ "providers": wrong["providers"] });
        for (key, value) in case["file"].as_object().unwrap() {
            file[key] = value.clone();
        }
        fs::write(&path, file.to_string()).unwrap();
        let said = case["message"].as_str().unwrap().replace("FOLDER", folder.0.to_str().unwrap());
        let refused = ResourceServer::from_config(&path).unwrap_err().to_string();
        assert_eq!(refused, format!("{}: {said}", path.display()));
    }
}
