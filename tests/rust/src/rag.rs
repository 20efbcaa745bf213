//! Documents through retrieval: folders, Drive on loopback, and a program's own source with vectors.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_engine::version::Revision;
use mcp_resources_host::server::ResourceServer;
use mcp_resources_host::testing::Client;
use mcp_resources_providers::rag::{DriveOptions, Embedder, Options, Rag};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A directory of the test's own, which is gone with it.
struct Folder(PathBuf);

impl Folder {
    fn with<'p>(files: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Self(std::env::temp_dir().join(format!("mcp-rag-{}-{number}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        files.into_iter().for_each(|(path, text)| folder.write(path, text));
        folder
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn served(rag: Rag, policy: &str) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let server = ResourceServer::builder("rag", "1")
        .mount(rag)
        .guard(Policy::from_json(policy).unwrap())
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

/// The passages of a search: contents with their URIs and `_meta`.
async fn passages(client: &mut Client, uri: &str) -> Vec<Value> {
    let result = client.read(uri).await.unwrap();
    let contents = result["contents"].as_array().unwrap().clone();
    contents.into_iter().filter(|content| content["_meta"].get("score").is_some()).collect()
}

async fn found(client: &mut Client, uri: &str) -> Vec<String> {
    let passages = passages(client, uri).await;
    passages.iter().map(|passage| passage["uri"].as_str().unwrap().to_owned()).collect()
}

async fn eventually(client: &mut Client, uri: &str, expected: &[&str]) {
    let begun = Instant::now();
    loop {
        let now = found(client, uri).await;
        if now == expected || begun.elapsed() > Duration::from_secs(60) {
            assert_eq!(now, expected);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const BACKUP: &str =
    "# Backups\n\nA full backup every Sunday.\n\n## Restore\n\nRestore into an empty cluster first.\n";

fn library() -> Folder {
    Folder::with([
        ("ops/backup.md", BACKUP),
        ("ja/再起動.md", "# サーバーの再起動\n\n二台ずつ再起動します。\n"),
        ("notes.txt", "The espresso machine is in the kitchen."),
        ("picture.png", "PNG"),
        (".hidden.md", "# Hidden\n\nbackup\n"),
    ])
}

/// S-03, R-058: documents are listed and read; a question finds passages, each with its document, score and position.
#[tokio::test]
async fn a_folder_is_searched() {
    let folder = library();
    let (server, _) = served(Rag::new(Options::new().folder("kb", &folder.0)).unwrap(), "{}");
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let items = client.list_resources().await.unwrap();
        let uris: Vec<_> = items.iter().map(|item| item["uri"].as_str().unwrap()).collect();
        let japanese = "rag:///kb/doc/ja/%E5%86%8D%E8%B5%B7%E5%8B%95.md";
        assert_eq!(
            uris,
            ["rag:///", "rag:///kb/", japanese, "rag:///kb/doc/notes.txt", "rag:///kb/doc/ops/backup.md"]
        );
        assert_eq!(items[4]["title"], "Backups");
        assert_eq!(client.read_text("rag:///kb/doc/ops/backup.md").await.unwrap(), BACKUP);
        let index: Value = serde_json::from_str(&client.read_text("rag:///").await.unwrap()).unwrap();
        assert_eq!(index["kb"]["ranking"], "bm25");
        assert!(
            client.read_text("rag:///kb").await.unwrap().contains("- [Backups](rag:///kb/doc/ops/backup.md)")
        );
        let passages = passages(&mut client, "rag:///kb/search/How%20do%20I%20restore%20a%20backup%3F").await;
        assert_eq!(passages[0]["uri"], "rag:///kb/doc/ops/backup.md");
        let texts: Vec<_> = passages.iter().map(|passage| passage["text"].as_str().unwrap()).collect();
        assert!(texts.contains(&"Restore into an empty cluster first."), "{texts:?}");
        let meta =
            &passages.iter().find(|passage| passage["_meta"]["heading"] == "Restore").unwrap()["_meta"];
        assert_eq!(
            (&meta["position"], &meta["chunks"], &meta["ranking"]),
            (&json!(1), &json!(2), &json!("bm25"))
        );
        assert_eq!(
            (&meta["title"], &meta["source"]),
            (&json!("Backups"), &json!("rag:///kb/doc/ops/backup.md"))
        );
        assert!(meta["score"].as_f64().unwrap() > 0.0);
        let question = "rag:///kb/search/サーバーの再起動手順は？";
        assert_eq!(found(&mut client, question).await, [japanese]);
        assert_eq!(found(&mut client, "rag:///kb/search/unicorn").await, [""; 0]);
        let nothing = client.read("rag:///kb/search/unicorn").await.unwrap();
        assert_eq!(nothing["contents"][0]["_meta"]["hits"], 0);
        for uri in
            ["kb/doc/none.md", "kb/doc/.hidden.md", "kb/doc/picture.png", "none/doc/notes.txt", "kb/doc/../x"]
        {
            assert!(client.read(&format!("rag:///{uri}")).await.is_err(), "{uri}");
        }
        assert_eq!(client.read("rag:///kb/search/%20").await.unwrap_err().code, -32602);
        let completed = client.complete("rag:///{collection}/doc/{+id}", "id", "ops", &[]).await.unwrap();
        assert_eq!(completed.values, ["ops/backup.md"]);
    }
}

/// S-03, R-083, R-092: an edit is found and reported once; a document that is gone leaves the search.
#[tokio::test]
async fn edits_arrive() {
    let folder = library();
    let (server, _) = served(Rag::new(Options::new().folder("kb", &folder.0)).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    let uris = ["rag:///kb/doc/notes.txt", "rag:///kb/search/espresso"];
    for uri in uris {
        client.read(uri).await.unwrap();
    }
    let listen = client.listen(&uris, true).await.unwrap();
    folder.write("notes.txt", "The kettle is in the hall, not the espresso.");
    let mut told = Vec::new();
    while told.len() < 2 {
        told.push(client.next(&listen).await.unwrap().params["uri"].as_str().unwrap().to_owned());
    }
    told.sort();
    assert_eq!(told, uris);
    assert_eq!(found(&mut client, "rag:///kb/search/kettle").await, [uris[0]]);
    fs::remove_file(folder.0.join("notes.txt")).unwrap();
    eventually(&mut client, "rag:///kb/search/kettle", &[]).await;
}

/// S-03, R-075: what the guard hides is neither found nor counted: a server without it answers alike.
#[tokio::test]
async fn the_guard_is_asked_first() {
    let without = Folder::with([("a.md", "# A\n\nneedle in hay\n"), ("b.md", "# B\n\nhay hay\n")]);
    let with = Folder::with([
        ("a.md", "# A\n\nneedle in hay\n"),
        ("b.md", "# B\n\nhay hay\n"),
        ("x/c.md", "# needle\n\nneedle\n"),
    ]);
    let mut answers = Vec::new();
    for folder in [&without, &with] {
        let rag = Rag::new(Options::new().folder("kb", &folder.0)).unwrap();
        let (server, _) = served(rag, r#"{"deny": ["rag:///kb/doc/x/**"]}"#);
        let mut client = Client::modern(&server).unwrap();
        let mut all = Vec::new();
        for uri in ["rag:///kb/search/needle hay", "rag:///kb/"].map(|uri| uri.replace(' ', "%20")) {
            all.push(client.read(&uri).await.unwrap().to_string());
        }
        all.push(format!("{:?}", client.read("rag:///kb/doc/x/c.md").await.unwrap_err()));
        all.push(format!("{:?}", client.list_resources().await.unwrap().len()));
        answers.push(all);
    }
    assert_eq!(answers[0], answers[1]);
}

/// Puts each word into one of a few places: texts with like words have like vectors.
#[derive(Debug)]
struct Hashing;

impl Embedder for Hashing {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        let vector = |text: &&str| {
            let mut vector = vec![0.0; 64];
            for word in text.split(|char: char| !char.is_alphanumeric()) {
                let mut hasher = DefaultHasher::new();
                // Words that begin alike are alike.
                word.to_lowercase().chars().take(4).collect::<String>().hash(&mut hasher);
                vector[(hasher.finish() % 64) as usize] += 1.0;
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// S-03: with an embedder both orders are fused, and each passage says so.
#[tokio::test]
async fn vectors_are_fused() {
    let folder = library();
    let rag = Rag::new(Options::new().folder("kb", &folder.0)).unwrap().with_embedder(Arc::new(Hashing));
    let (server, _) = served(rag, "{}");
    let mut client = Client::modern(&server).unwrap();
    // No text has this word as it is.
    let passages = passages(&mut client, "rag:///kb/search/restoring").await;
    assert_eq!(passages[0]["_meta"]["heading"], "Restore");
    assert_eq!(passages[0]["_meta"]["ranking"], "bm25+vectors");
    assert!((passages[0]["_meta"]["score"].as_f64().unwrap() - 1.0 / 61.0).abs() < 1e-9);
}

/// S-03: what is wrong at the start is named with the fix.
#[test]
fn mistakes_at_the_start() {
    let members = |members: &[(&str, OptionValue)]| {
        OptionValue::Members(
            members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        )
    };
    let kb = |value: OptionValue| members(&[("collections", members(&[("kb", value)]))]);
    for (value, message) in [
        (members(&[]), "rag: there is no collection; name one"),
        (kb(members(&[("folders", ".".into())])), "unexpected option \"folders\"; did you mean \"folder\"?"),
        (kb(members(&[("folder", "no/such".into())])), "rag: the folder no/such does not exist"),
        (kb(members(&[])), "either a folder or a drive"),
        (kb(members(&[("drive", members(&[]))])), "drive needs credentials"),
        (
            kb(members(&[("drive", members(&[("credentials", "no/such".into())]))])),
            "the credentials no/such do not exist",
        ),
        (
            kb(members(&[(
                "drive",
                members(&[("credentials", "Cargo.toml".into()), ("base_url", "http://example.com".into())]),
            )])),
            "base_url is \"http://example.com\"",
        ),
    ] {
        let said = Options::from_option(value).and_then(Rag::new).map(drop).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}

/// A Drive on loopback that behaves as the documentation of its third version says.
struct FakeDrive {
    url: String,
    state: Arc<Mutex<DriveState>>,
}

#[derive(Default)]
struct DriveState {
    /// Name, media type, text, by id.
    files: BTreeMap<String, (String, String, String)>,
    /// Ids that have changed, in order: the page token is a place in it.
    changes: Vec<String>,
    /// The token that is valid, and how many were given.
    token: String,
    tokens: usize,
    is_revoked: bool,
    /// The next answers are these statuses.
    statuses: Vec<u16>,
    /// Page tokens below this are lost.
    lost: usize,
    heard: Vec<String>,
}

impl FakeDrive {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<DriveState>>::default();
        let own = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), own) = (stream, own.clone()) else { return };
                std::thread::spawn(move || answer(stream, &own));
            }
        });
        Self { url, state }
    }

    fn put(&self, id: &str, name: &str, mime_type: &str, text: &str) {
        let mut state = self.state.lock().unwrap();
        state.files.insert(id.into(), (name.into(), mime_type.into(), text.into()));
        state.changes.push(id.into());
    }

    fn remove(&self, id: &str) {
        let mut state = self.state.lock().unwrap();
        state.files.remove(id);
        state.changes.push(id.into());
    }

    fn state<T>(&self, change: impl FnOnce(&mut DriveState) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }
}

/// Answers the requests of one connection.
fn answer(mut stream: TcpStream, state: &Mutex<DriveState>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut line, mut token, mut length) = (String::new(), String::new(), 0);
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let (name, value) = header.trim().split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "" => break,
                "authorization" => token = value.trim().replace("Bearer ", ""),
                "content-length" => length = value.trim().parse().unwrap(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let target = line.split(' ').nth(1).unwrap().to_owned();
        let (status, answer) = respond(&mut state.lock().unwrap(), &target, &token);
        let retry = if status == 429 { "Retry-After: 0\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status} X\r\n{retry}Content-Length: {}\r\n\r\n", answer.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes())).is_err() {
            return;
        }
    }
}

#[expect(clippy::too_many_lines, reason = "one conversation, from its beginning to its end")]
fn respond(state: &mut DriveState, target: &str, token: &str) -> (u16, String) {
    state.heard.push(target.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let param = |name: &str| {
        query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}="))).map(str::to_owned)
    };
    if path == "/token" {
        if state.is_revoked {
            return (
                400,
                json!({"error": "invalid_grant", "error_description": "Token has been revoked."}).to_string(),
            );
        }
        state.tokens += 1;
        state.token = format!("token-{}", state.tokens);
        return (200, json!({"access_token": state.token, "expires_in": 3_599}).to_string());
    }
    if token != state.token {
        return (401, json!({"error": {"code": 401}}).to_string());
    }
    if let Some(status) = state.statuses.pop() {
        return (status, json!({"error": {"code": status}}).to_string());
    }
    let file = |state: &DriveState, id: &str| {
        let (name, mime_type, text) = state.files.get(id)?;
        let version = state.changes.iter().filter(|other| *other == id).count().to_string();
        Some(json!({
            "id": id, "name": name, "mimeType": mime_type, "version": version, "size": text.len().to_string(),
            "modifiedTime": "2026-01-02T03:04:05.000Z", "trashed": false, "parents": ["FOLDER"]
        }))
    };
    let all = param("supportsAllDrives").as_deref() == Some("true");
    match path.strip_prefix("/drive/v3/").unwrap_or_default() {
        "changes/startPageToken" => {
            (200, json!({"startPageToken": state.changes.len().to_string()}).to_string())
        }
        "changes" => {
            let from: usize = param("pageToken").and_then(|token| token.parse().ok()).unwrap_or(0);
            if from < state.lost {
                return (410, "{}".into());
            }
            let changes: Vec<Value> = state.changes[from..]
                .iter()
                .map(|id| match file(state, id) {
                    Some(file) => json!({"fileId": id, "removed": false, "file": file}),
                    None => json!({"fileId": id, "removed": true}),
                })
                .collect();
            (
                200,
                json!({"changes": changes, "newStartPageToken": state.changes.len().to_string()}).to_string(),
            )
        }
        "files" if all && param("includeItemsFromAllDrives").as_deref() == Some("true") => {
            // A page has one file.
            let at: usize = param("pageToken").and_then(|token| token.parse().ok()).unwrap_or(0);
            let ids: Vec<String> = state.files.keys().cloned().collect();
            let files: Vec<Value> = ids.get(at).and_then(|id| file(state, id)).into_iter().collect();
            let next = (at + 1 < ids.len()).then(|| (at + 1).to_string());
            (200, json!({"files": files, "nextPageToken": next}).to_string())
        }
        rest => {
            let rest = rest.strip_prefix("files/").unwrap_or_default();
            let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
            let Some((_, mime_type, text)) = state.files.get(id).cloned() else { return (404, "{}".into()) };
            let is_native = mime_type.starts_with("application/vnd.google-apps");
            match (action, param("alt").as_deref()) {
                ("export", _) if is_native => (200, text),
                ("", Some("media")) if !is_native => (200, text),
                ("", None) if all => (200, file(state, id).unwrap().to_string()),
                _ => (403, "{}".into()),
            }
        }
    }
}

/// S-03: Drive's documents are listed, found, read and followed, through expired tokens, rates and a lost page token.
#[tokio::test]
async fn drive_is_searched_and_followed() {
    let drive = FakeDrive::start();
    drive.put(
        "doc1",
        "Plan",
        "application/vnd.google-apps.document",
        "# Plan\n\nOpen the shop in Kawagoe.\n",
    );
    drive.put("txt2", "notes.txt", "text/plain", "Espresso is in the kitchen.");
    drive.put("img3", "picture", "image/png", "PNG");
    let folder = Folder::with([(
        "credentials.json",
        r#"{"type": "authorized_user", "client_id": "c", "client_secret": "canary-secret", "refresh_token": "canary-refresh"}"#,
    )]);
    let credentials =
        DriveOptions::new(folder.0.join("credentials.json")).base_url(&drive.url).folder("FOLDER");
    let options = Options::new().drive("kb", credentials).poll(Duration::from_millis(50));
    let (server, log) = served(Rag::new(options).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    drive.state(|state| state.statuses = vec![503, 429]);
    let items = client.list_resources().await.unwrap();
    let uris: Vec<_> = items.iter().map(|item| item["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["rag:///", "rag:///kb/", "rag:///kb/doc/doc1", "rag:///kb/doc/txt2"]);
    assert_eq!(items[2]["title"], "Plan");
    assert!(client.read_text("gdrive:///doc1").await.unwrap().contains("Kawagoe"));
    let passages = passages(&mut client, "rag:///kb/search/kawagoe").await;
    assert_eq!(passages[0]["_meta"]["source"], "gdrive:///doc1");
    for uri in ["gdrive:///img3", "gdrive:///none", "gdrive:///..", "rag:///kb/doc/img3"] {
        assert!(client.read(uri).await.is_err(), "{uri}");
    }

    // The access token expires; an edit is one update.
    drive.state(|state| state.token = "expired".into());
    let listen = client.listen(&["gdrive:///doc1"], false).await.unwrap();
    drive.put("doc1", "Plan", "application/vnd.google-apps.document", "# Plan\n\nOpen the shop in Osaka.\n");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "gdrive:///doc1");
    assert_eq!(found(&mut client, "rag:///kb/search/osaka").await, ["rag:///kb/doc/doc1"]);
    assert!(drive.state(|state| state.tokens) >= 2);

    // A page token that is lost is a whole listing; a file that is removed leaves the search.
    drive.state(|state| state.lost = usize::MAX);
    drive.put("txt2", "notes.txt", "text/plain", "The kettle is in the hall.");
    eventually(&mut client, "rag:///kb/search/kettle", &["rag:///kb/doc/txt2"]).await;
    drive.state(|state| state.lost = 0);
    drive.remove("txt2");
    eventually(&mut client, "rag:///kb/search/kettle", &[]).await;
    assert!(client.read("gdrive:///txt2").await.is_err());

    // Once the grant is gone, what is known stays, reads fail, and the log says what to do.
    drive.state(|state| (state.is_revoked, state.token) = (true, "none".into()));
    let error = client.read("gdrive:///doc1").await.unwrap_err();
    assert_eq!(error.data["kind"], "read_error", "{error:?}");
    assert_eq!(found(&mut client, "rag:///kb/search/osaka").await, ["rag:///kb/doc/doc1"]);
    let said = log.lock().unwrap().join("\n");
    assert!(said.contains("invalid_grant); sign in again and replace"), "{said}");
    let heard = drive.state(|state| state.heard.join("\n"));
    assert!(
        !said.contains("canary") && !heard.contains("canary") && !format!("{error:?}").contains("canary")
    );
}
