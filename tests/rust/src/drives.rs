//! Google Drive as a source of documents, against one on loopback.

use crate::drive::{FOLDER, LoopbackDrive};
use crate::rag::{Folder, Log, eventually, found, passages, served};
use mcp_resources_engine::option::OptionValue;
use mcp_resources_providers::rag::{DriveOptions, Rag, RagOptions};
use mcp_resources_providers::registry::{self, ProviderSet};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::json;
use std::time::{Duration, Instant};

const DOCUMENT: &str = "application/vnd.google-apps.document";
const CREDENTIALS: &str = r#"{"type": "authorized_user", "client_id": "canary-id", "client_secret": "canary-secret", "refresh_token": "canary-refresh"}"#;

/// A drive with two documents and a picture, and a folder with the credentials for it.
fn drive() -> (LoopbackDrive, Folder) {
    let drive = LoopbackDrive::start();
    drive.put("doc1", "Plan", DOCUMENT, "# Plan\n\nOpen the shop in Kawagoe.\n\n## Later\n\nOne in Kyoto.\n");
    drive.put("txt2", "notes.txt", "text/plain", "Espresso is in the kitchen.");
    drive.put("img3", "picture", "image/png", "PNG");
    (drive, Folder::with([("credentials.json", CREDENTIALS)]))
}

fn options(drive: &LoopbackDrive, folder: &Folder) -> DriveOptions {
    DriveOptions::new(folder.0.join("credentials.json")).base_url(&drive.url)
}

/// A server of one collection, `kb`, and a client of it.
fn serve(drive: DriveOptions) -> (ResourceServer, Client, Log) {
    let options = RagOptions::new().drive("kb", drive).poll(Duration::from_millis(50));
    let (server, log) = served(Rag::new(options).unwrap(), "{}");
    let client = Client::modern(&server).unwrap();
    (server, client, log)
}

/// Waits until something has happened.
async fn until(has_happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !has_happened() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn listed(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    let uris = items.iter().map(|item| item["uri"].as_str().unwrap().to_owned());
    uris.filter(|uri| uri.starts_with("rag:///kb/doc/")).collect()
}

/// S-03: what has a text is listed, read and found; a passage has its source, score and position.
#[tokio::test]
async fn documents_are_found() {
    let (drive, folder) = drive();
    let (_server, mut client, _) = serve(options(&drive, &folder).folder(FOLDER));
    assert_eq!(listed(&mut client).await, ["rag:///kb/doc/doc1", "rag:///kb/doc/txt2"]);
    assert!(client.read_text("gdrive:///doc1").await.unwrap().contains("Kawagoe"));
    assert!(client.read_text("rag:///kb/doc/txt2").await.unwrap().contains("Espresso"));
    let passages = passages(&mut client, "rag:///kb/search/kyoto").await;
    let meta = &passages[0]["_meta"];
    assert_eq!(passages[0]["uri"], "rag:///kb/doc/doc1");
    assert_eq!((meta["source"].as_str(), meta["position"].as_u64()), (Some("gdrive:///doc1"), Some(1)));
    assert!(meta["score"].as_f64().unwrap() > 0.0);
    for uri in ["gdrive:///img3", "gdrive:///none", "gdrive:///..", "rag:///kb/doc/img3"] {
        assert!(client.read(uri).await.is_err(), "{uri}");
    }
}

/// S-03: a shared drive is served by its id; My Drive without one, and as the folder `root`.
#[tokio::test]
async fn drives_are_apart() {
    let (drive, folder) = drive();
    drive.put_in(Some("TEAM"), "team4", "Team", "text/plain", "Kawagoe, says the team.");
    drive.put_in(Some("OTHER"), "other5", "Other", "text/plain", "Kawagoe, say others.");
    for (chosen, expected) in [
        (options(&drive, &folder).drive("TEAM"), vec!["rag:///kb/doc/team4"]),
        (options(&drive, &folder), vec!["rag:///kb/doc/doc1"]),
        (options(&drive, &folder).folder("root"), vec!["rag:///kb/doc/doc1"]),
        (options(&drive, &folder).folder("elsewhere"), vec![]),
    ] {
        let (_server, mut client, log) = serve(chosen);
        assert_eq!(found(&mut client, "rag:///kb/search/kawagoe").await, expected, "{log:?}");
    }
    // Its changes are those of that drive.
    let (_server, mut client, _) = serve(options(&drive, &folder).drive("TEAM"));
    assert_eq!(listed(&mut client).await, ["rag:///kb/doc/team4"]);
    drive.put("txt2", "notes.txt", "text/plain", "Nara, of mine.");
    drive.put_in(Some("TEAM"), "team6", "More", "text/plain", "Nara, of the team.");
    eventually(&mut client, "rag:///kb/search/nara", &["rag:///kb/doc/team6"]).await;
    assert!(drive.state().heard.iter().any(|one| one.contains("changes?") && one.contains("driveId=TEAM")));
}

/// S-03: a token that has expired is replaced, and calls that are refused for a while are made again.
#[tokio::test]
async fn tokens_and_rates_are_no_errors() {
    let (drive, folder) = drive();
    let (_server, mut client, log) = serve(options(&drive, &folder));
    drive.state().statuses = vec![503, 429];
    assert_eq!(listed(&mut client).await.len(), 2);
    drive.command(&json!({"expire": true}));
    assert!(client.read_text("gdrive:///doc1").await.unwrap().contains("Kawagoe"));
    drive.state().statuses = vec![429];
    assert!(client.read_text("gdrive:///txt2").await.unwrap().contains("Espresso"));
    assert!(drive.state().tokens >= 2);
    assert!(log.lock().unwrap().is_empty(), "{log:?}");
}

/// S-03, R-083: an edit arrives through `changes` as one update; a file that is removed leaves the search.
#[tokio::test]
async fn changes_arrive_once() {
    let (drive, folder) = drive();
    let (_server, mut client, _) = serve(options(&drive, &folder));
    for uri in ["gdrive:///doc1", "gdrive:///txt2"] {
        client.read(uri).await.unwrap();
    }
    let listen = client.listen(&["gdrive:///doc1", "gdrive:///txt2"], false).await.unwrap();
    drive.state().heard.clear();
    drive.put("doc1", "Plan", DOCUMENT, "# Plan\n\nOpen the shop in Osaka.\n");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "gdrive:///doc1");
    assert_eq!(found(&mut client, "rag:///kb/search/osaka").await, ["rag:///kb/doc/doc1"]);
    let heard = std::mem::take(&mut drive.state().heard);
    assert!(heard.iter().all(|one| !one.contains("/files?")), "{heard:?}");
    drive.put("txt2", "notes.txt", "text/plain", "The kettle is in the hall.");
    // The next update is of the other file: there was one of the first.
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "gdrive:///txt2");
    drive.remove("txt2");
    eventually(&mut client, "rag:///kb/search/kettle", &[]).await;
    assert!(client.read("gdrive:///txt2").await.is_err());
    assert_eq!(listed(&mut client).await, ["rag:///kb/doc/doc1"]);
}

/// S-03: after a page token was lost everything is listed again.
#[tokio::test]
async fn a_lost_page_token_is_a_whole_list() {
    let (drive, folder) = drive();
    let (_server, mut client, _) = serve(options(&drive, &folder));
    assert_eq!(listed(&mut client).await.len(), 2);
    drive.state().lost = 1_000;
    drive.put("txt2", "notes.txt", "text/plain", "The kettle is in the hall.");
    drive.remove("doc1");
    eventually(&mut client, "rag:///kb/search/kettle", &["rag:///kb/doc/txt2"]).await;
    eventually(&mut client, "rag:///kb/search/kawagoe", &[]).await;
    // In the middle of a list nothing is taken over.
    drive.put("doc1", "Plan", DOCUMENT, "# Plan\n\nOpen the shop in Nara.\n");
    eventually(&mut client, "rag:///kb/search/nara", &["rag:///kb/doc/doc1"]).await;
    drive.state().lost = usize::MAX;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(found(&mut client, "rag:///kb/search/nara").await, ["rag:///kb/doc/doc1"]);
}

/// S-03: an answer that is no JSON leaves what is known; the log says so once.
#[tokio::test]
async fn an_answer_that_is_no_json_is_no_empty_list() {
    let (drive, folder) = drive();
    let (_server, mut client, log) = serve(options(&drive, &folder));
    assert_eq!(listed(&mut client).await.len(), 2);
    {
        let mut state = drive.state();
        state.lost = 1_000;
        state.heard = Vec::new();
        state.refusals = vec![("/files?".into(), 200, "<html>".into())];
    }
    drive.put("doc1", "Plan", DOCUMENT, "# Plan\n\nOpen the shop in Nara.\n");
    until(|| drive.state().heard.iter().filter(|one| one.contains("/files?")).count() > 1).await;
    assert_eq!(listed(&mut client).await.len(), 2);
    let said = log.lock().unwrap().join("\n");
    assert_eq!(said.matches("Drive's answer is no JSON").count(), 1, "{said}");
    drive.state().refusals.clear();
    eventually(&mut client, "rag:///kb/search/nara", &["rag:///kb/doc/doc1"]).await;
}

/// S-03: a file that cannot be exported or is too large is logged with the reason, asked for once until it changes, and holds up
/// no other.
#[tokio::test]
async fn what_cannot_be_read_is_asked_for_once() {
    let (drive, folder) = drive();
    drive.put("large4", "large.txt", "text/plain", &"word ".repeat(1 << 20));
    drive.put("sheet5", "sheet", "application/vnd.google-apps.spreadsheet", "Nara");
    drive.refuse("files/sheet5/export", 403, "exportSizeLimitExceeded");
    let (_server, mut client, log) = serve(options(&drive, &folder));
    assert_eq!(listed(&mut client).await, ["rag:///kb/doc/doc1", "rag:///kb/doc/txt2"]);
    drive.state().heard.clear();
    until(|| drive.state().heard.len() > 3).await;
    let heard = drive.state().heard.join("\n");
    assert!(!heard.contains("files/"), "{heard}");
    let said = log.lock().unwrap().join("\n");
    for message in [
        "kb/large4 cannot be read: it is larger than 4 MiB",
        "kb/sheet5 cannot be read: Drive answers with 403 (exportSizeLimitExceeded)",
    ] {
        assert_eq!(said.matches(message).count(), 1, "{said}");
    }
    drive.state().refusals.clear();
    drive.put("sheet5", "sheet", "application/vnd.google-apps.spreadsheet", "Nara, and less");
    eventually(&mut client, "rag:///kb/search/nara", &["rag:///kb/doc/sheet5"]).await;
    // What has become too large is no longer found: it could not be read.
    drive.put("txt2", "notes.txt", "text/plain", &"Espresso ".repeat(1 << 20));
    eventually(&mut client, "rag:///kb/search/espresso", &[]).await;
}

/// S-03: the log says what Drive refuses a call for, and what helps, but none of its texts.
#[tokio::test]
async fn what_is_refused_is_said_with_the_reason() {
    for (part, status, reason, message) in [
        ("changes/start", 403, "insufficientPermissions", "sign in again with the scope"),
        ("changes/start", 403, "accessNotConfigured", "enable the Google Drive API"),
        ("changes/start", 404, "notFound", "check `drive` and `folder`"),
        ("/files?", 404, "notFound", "check `drive` and `folder`"),
        ("/files?", 403, "domainPolicy", "403 (domainPolicy)"),
    ] {
        let (drive, folder) = drive();
        drive.refuse(part, status, reason);
        let (_server, mut client, log) = serve(options(&drive, &folder));
        assert!(listed(&mut client).await.is_empty());
        let said = log.lock().unwrap().join("\n");
        assert!(said.contains(message) && !said.contains("canary"), "{said}");
    }
}

/// S-03: a Drive that does not answer holds up neither lists nor searches of what there is; what is missing is said, and
/// reported when it is there.
#[tokio::test]
async fn a_slow_drive_holds_up_nothing_else() {
    let (drive, folder) = drive();
    folder.write("notes/a.md", "# A\n\nKawagoe\n");
    drive.state().held = Some("files/txt2".into());
    let options =
        RagOptions::new().drive("kb", options(&drive, &folder)).folder("notes", folder.0.join("notes"));
    let (server, _) = served(Rag::new(options.patience(Duration::ZERO)).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    let listen = client.listen(&[], true).await.unwrap();
    let begun = Instant::now();
    while listed(&mut client).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(found(&mut client, "rag:///notes/search/kawagoe").await, ["rag:///notes/doc/a.md"]);
    assert_eq!(found(&mut client, "rag:///kb/search/kawagoe").await, ["rag:///kb/doc/doc1"]);
    let passage = &passages(&mut client, "rag:///kb/search/kawagoe").await[0];
    assert_eq!(passage["_meta"]["incomplete"], true);
    let contents = client.read("rag:///kb/").await.unwrap();
    assert_eq!(contents["contents"][0]["_meta"]["incomplete"], true);
    assert_eq!(listed(&mut client).await, ["rag:///kb/doc/doc1"]);
    let all = client.request("list", json!({})).await.unwrap();
    assert!(all["_meta"].to_string().contains("\"kb\""), "{all}");
    drive.state().held = None;
    client.next(&listen).await.unwrap();
    assert_eq!(found(&mut client, "rag:///kb/search/espresso").await, ["rag:///kb/doc/txt2"]);
    let passage = &passages(&mut client, "rag:///kb/search/kawagoe").await[0];
    assert!(passage["_meta"].get("incomplete").is_none(), "{passage}");
}

/// S-03: the size of a document of Google's own is not that of its text.
#[tokio::test]
async fn a_large_document_with_a_short_text_is_read() {
    let (drive, folder) = drive();
    drive.state().size = Some(1 << 30);
    let (_server, mut client, _) = serve(options(&drive, &folder));
    assert!(client.read_text("gdrive:///doc1").await.unwrap().contains("Kawagoe"));
}

/// S-03: the project that pays for the calls is sent along, if the credentials name one.
#[tokio::test]
async fn the_quota_project_is_sent() {
    let named = CREDENTIALS.replace('{', r#"{"quota_project_id": "books-1", "#);
    for (credentials, project) in [(CREDENTIALS, ""), (&*named, "books-1")] {
        let (drive, folder) = drive();
        folder.write("credentials.json", credentials);
        let (_server, mut client, _) = serve(options(&drive, &folder));
        assert_eq!(listed(&mut client).await.len(), 2);
        assert_eq!(drive.state().project, project);
    }
}

/// S-03: a file of two collections is read if the guard lets it through in one of them.
#[tokio::test]
async fn a_file_of_two_collections_needs_one() {
    let (drive, folder) = drive();
    let rag =
        RagOptions::new().drive("closed", options(&drive, &folder)).drive("open", options(&drive, &folder));
    let (server, _) = served(Rag::new(rag).unwrap(), r#"{"deny": ["rag:///closed/**"]}"#);
    let mut client = Client::modern(&server).unwrap();
    assert!(client.read_text("gdrive:///doc1").await.unwrap().contains("Kawagoe"));
}

/// S-03: once the grant is gone, what is known stays, reads fail, and the log says what to do and no secret.
#[tokio::test]
async fn a_revoked_grant_is_said() {
    let (drive, folder) = drive();
    let (_server, mut client, log) = serve(options(&drive, &folder));
    assert_eq!(listed(&mut client).await.len(), 2);
    drive.command(&json!({"revoke": true}));
    let error = client.read("gdrive:///doc1").await.unwrap_err();
    assert_eq!(error.data["kind"], "read_error", "{error:?}");
    assert_eq!(found(&mut client, "rag:///kb/search/kawagoe").await, ["rag:///kb/doc/doc1"]);
    let said = log.lock().unwrap().join("\n");
    assert!(said.contains("(invalid_grant); sign in again and replace the file of credentials"), "{said}");
    let heard = drive.state().heard.join("\n");
    assert!(!format!("{said}{heard}{error:?}").contains("canary"));
}

/// S-03: the command's word names a file of options, whose paths begin at its folder; so does a value in a file or a program.
#[tokio::test]
async fn a_file_declares_a_drive() {
    let (drive, folder) = drive();
    let config = format!("credentials: credentials.json\nfolder: root\nbase_url: {}\n", drive.url);
    folder.write("team.yaml", &config);
    let file = folder.0.join("team.yaml").to_str().unwrap().to_owned();
    for (word, name) in [(format!("gdrive:{file}"), "team"), (format!("gdrive:kb={file}"), "kb")] {
        let (kind, value) = registry::parse_shorthand(&word).unwrap();
        assert_eq!(kind, "rag");
        let mut set = ProviderSet::new();
        set.add(&kind, value).unwrap();
        let mut server = ResourceServer::builder("drive", "1");
        for provider in set.providers() {
            server = server.mount(provider);
        }
        let server = server.build().unwrap();
        let mut client = Client::modern(&server).unwrap();
        let uri = format!("rag:///{name}/search/kawagoe");
        assert_eq!(found(&mut client, &uri).await, [format!("rag:///{name}/doc/doc1")]);
        assert!(client.read_text("gdrive:///doc1").await.unwrap().contains("Kawagoe"));
    }
}

/// S-03: what is wrong is said at the start, with its value and what helps, and no secret.
#[test]
fn mistakes_at_the_start() {
    let folder = Folder::with([
        ("credentials.json", CREDENTIALS),
        ("half.json", r#"{"client_id": "canary", "client_secret": "canary"}"#),
        ("service.json", r#"{"type": "service_account", "private_key": "canary"}"#),
        ("text.json", "canary"),
        ("client.json", r#"{"installed": {"client_id": "canary", "client_secret": "canary"}}"#),
        ("client.yaml", "credentials: client.json\n"),
        ("unknown.yaml", "credentials: credentials.json\nfolders: x\n"),
        ("none.yaml", "folder: x\n"),
        ("lost.yaml", "credentials: no-such.json\n"),
        ("id.yaml", "credentials: credentials.json\ndrive: a/b\n"),
        ("url.yaml", "credentials: credentials.json\nbase_url: http://example.com\n"),
        ("secret.yaml", "credentials: {client_id: canary}\n"),
        ("env.yaml", "credentials: {env: MCP_NO_SUCH_VARIABLE}\n"),
        ("half.yaml", "credentials: half.json\n"),
        ("service.yaml", "credentials: service.json\n"),
        ("text.yaml", "credentials: text.json\n"),
        ("list.yaml", "- credentials\n"),
        ("open.yaml", "credentials: [\n"),
    ]);
    let at = |name: &str| folder.0.join(name).display().to_string();
    for (rest, message) in [
        ("", "\"gdrive:\" names no file; write gdrive:CONFIG or gdrive:NAME=CONFIG".to_owned()),
        ("kb=", "\"gdrive:kb=\" names no file".to_owned()),
        ("no-such.yaml", format!("rag: the file {} does not exist", at("no-such.yaml"))),
        ("unknown.yaml", "unexpected option \"folders\"; did you mean \"folder\"?".to_owned()),
        ("none.yaml", "drive needs credentials: FILE".to_owned()),
        ("lost.yaml", format!("the file of credentials {} does not exist", at("no-such.json"))),
        ("id.yaml", "\"a/b\" is no id of Drive's".to_owned()),
        ("url.yaml", "base_url is \"http://example.com\"".to_owned()),
        ("secret.yaml", "credentials are neither a file nor `{env: NAME}`".to_owned()),
        ("env.yaml", "the variable \"MCP_NO_SUCH_VARIABLE\" for the credentials is not set".to_owned()),
        ("half.yaml", format!("the file of credentials {} has no refresh_token", at("half.json"))),
        ("service.yaml", "is the key of a service account; sign in as a user".to_owned()),
        ("text.yaml", "is no JSON; it needs client_id, client_secret, refresh_token".to_owned()),
        (
            "client.yaml",
            "is what the console gives for a program, not what a sign-in gives; sign in with it".to_owned(),
        ),
        ("credentials.json", "has credentials in it; write another file with `credentials: FILE`".to_owned()),
        ("service.json", "has credentials in it".to_owned()),
        ("list.yaml", "has no options by their names, such as credentials: FILE".to_owned()),
        ("open.yaml", "it is not YAML; mend it".to_owned()),
    ] {
        let mut set = ProviderSet::at(&folder.0);
        let declare = |(kind, value): (String, OptionValue)| set.add(&kind, value);
        let said =
            registry::parse_shorthand(&format!("gdrive:{rest}")).and_then(declare).unwrap_err().to_string();
        assert!(said.contains(&message) && !said.contains("canary"), "{rest}: {said}");
    }
}

/// S-03: credentials may be in a variable of the environment. Cargo sets one for tests that is no JSON.
#[test]
fn credentials_are_in_the_environment() {
    let made = Rag::new(RagOptions::new().drive("kb", DriveOptions::from_env("CARGO_PKG_NAME")));
    let said = made.map(drop).unwrap_err().to_string();
    assert!(said.contains("the variable \"CARGO_PKG_NAME\" for the credentials is no JSON"), "{said}");
}
