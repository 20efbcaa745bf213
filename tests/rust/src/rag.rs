//! Documents through retrieval: folders, a program's own source with vectors, and an index in a file. Drive is in `drives`.

use crate::docs::wait_for_free;
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::rag::{
    DocumentSource, Embedder, FetchedDocument, ListedDocument, Rag, RagOptions, SourceChanges, SourceError,
};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A directory of the test's own, which is gone with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn with<'p>(files: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Self(std::env::temp_dir().join(format!("mcp-rag-{}-{number}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        files.into_iter().for_each(|(path, text)| folder.write(path, text));
        folder
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
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

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn served(rag: Rag, policy: &str) -> (ResourceServer, Log) {
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
pub(crate) async fn passages(client: &mut Client, uri: &str) -> Vec<Value> {
    let result = client.read(uri).await.unwrap();
    let contents = result["contents"].as_array().unwrap().clone();
    contents.into_iter().filter(|content| content["_meta"].get("score").is_some()).collect()
}

pub(crate) async fn found(client: &mut Client, uri: &str) -> Vec<String> {
    let passages = passages(client, uri).await;
    passages.iter().map(|passage| passage["uri"].as_str().unwrap().to_owned()).collect()
}

pub(crate) async fn eventually(client: &mut Client, uri: &str, expected: &[&str]) {
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
    let (server, _) = served(Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap(), "{}");
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
    let (server, _) = served(Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap(), "{}");
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

/// S-03, R-083: a subscription to what nobody has read causes no update.
#[tokio::test]
async fn a_subscription_alone_is_no_update() {
    let folder = library();
    let (server, _) = served(Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    assert!(found(&mut client, "rag:///kb/search/kettle").await.is_empty());
    let [notes, backup] = ["rag:///kb/doc/notes.txt", "rag:///kb/doc/ops/backup.md"];
    let listen = client.listen(&[backup, "rag:///kb/doc/.hidden.md", notes], false).await.unwrap();
    folder.write(".hidden.md", "other");
    folder.write("notes.txt", "The kettle is in the hall.");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], notes);
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
        let rag = Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap();
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
    let rag = Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap().with_embedder(Arc::new(Hashing));
    let (server, _) = served(rag, "{}");
    let mut client = Client::modern(&server).unwrap();
    // No text has this word as it is.
    let passages = passages(&mut client, "rag:///kb/search/restoring").await;
    assert_eq!(passages[0]["_meta"]["heading"], "Restore");
    assert_eq!(passages[0]["_meta"]["ranking"], "bm25+vectors");
    assert!((passages[0]["_meta"]["score"].as_f64().unwrap() - 1.0 / 61.0).abs() < 1e-9);
}

/// Makes vectors of one length, and then of another.
#[derive(Debug, Default)]
struct Shrinking(AtomicUsize);

impl Embedder for Shrinking {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        let length = if self.0.fetch_add(1, Ordering::Relaxed) == 0 { 3 } else { 2 };
        Ok(vec![vec![1.0; length]; texts.len()])
    }
}

/// S-03: vectors that cannot be compared are logged, and the words alone decide.
#[tokio::test]
async fn vectors_of_another_length_are_said() {
    let folder = Folder::with([("a.md", "needle\n"), ("b.md", "hay\n")]);
    let rag = Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap();
    let (server, log) = served(rag.with_embedder(Arc::new(Shrinking::default())), "{}");
    let mut client = Client::modern(&server).unwrap();
    let passages = passages(&mut client, "rag:///kb/search/needle").await;
    assert_eq!(passages.len(), 1);
    assert_eq!(passages[0]["_meta"]["ranking"], "bm25");
    let said = log.lock().unwrap().join("\n");
    let wrong = "a vector has 2 numbers, and others have 3";
    for who in [".md has no vectors", "a question has no vector"] {
        assert!(said.contains(&format!("{who}: {wrong}")), "{said}");
    }
}

/// One document, whose reads fail as often as `faults` says, and how often it was asked for.
#[derive(Clone, Debug, Default)]
struct Faulty {
    faults: Arc<AtomicUsize>,
    lists: Arc<AtomicUsize>,
}

impl DocumentSource for Faulty {
    fn list(&self) -> Result<Vec<ListedDocument>, SourceError> {
        Ok(vec![ListedDocument { id: "one".into(), stamp: "1".into(), ..ListedDocument::default() }])
    }

    fn fetch(&self, _id: &str) -> Result<FetchedDocument, SourceError> {
        let left = self.faults.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(SourceError::Failed("it is busy".into())),
            Err(_) => Ok(FetchedDocument { text: "A kettle.".into(), mime_type: "text/plain" }),
        }
    }

    fn changes_since(&self, token: Option<&str>) -> Result<SourceChanges, SourceError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let token = Some("1".into()).filter(|_| token.is_none()).or(token.map(str::to_owned));
        Ok(match self.lists.load(Ordering::Relaxed) {
            1 => SourceChanges::All { documents: self.list()?, token },
            _ => SourceChanges::Some { changed: Vec::new(), gone: Vec::new(), token },
        })
    }
}

/// S-03: a document that cannot be read when its change is reported is asked for again, and logged once.
#[tokio::test]
async fn what_could_not_be_read_is_asked_for_again() {
    let source = Faulty { faults: Arc::new(AtomicUsize::new(2)), ..Faulty::default() };
    let folder = library();
    let rag = Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap();
    let (server, log) = served(rag.with_source("own", source).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    eventually(&mut client, "rag:///own/search/kettle", &["rag:///own/doc/one"]).await;
    let log = log.lock().unwrap();
    assert_eq!(
        log.iter().filter(|line| line.contains("own/one cannot be read: it is busy")).count(),
        1,
        "{log:?}"
    );
}

/// S-03: with a file, a later server answers the same, finds what has changed, and finds what is known while its folder is away.
#[tokio::test]
async fn an_index_outlives_its_server() {
    let folder = Folder::with([("notes/a.txt", "The espresso machine."), ("notes/b.md", BACKUP)]);
    let notes = folder.0.join("notes");
    let file = folder.0.join("kb.index");
    let options = || RagOptions::new().folder("kb", &notes).index(&file);
    let espresso = "rag:///kb/search/espresso";
    let kettle = "rag:///kb/search/kettle";
    let mut answers = Vec::new();
    for round in 0..3 {
        let (server, log) = served(Rag::new(options()).unwrap().with_embedder(Arc::new(Hashing)), "{}");
        let mut client = Client::modern(&server).unwrap();
        let uri = if round < 2 { espresso } else { kettle };
        answers.push((client.read(uri).await.unwrap(), client.list_resources().await.unwrap()));
        assert!(log.lock().unwrap().is_empty(), "{log:?}");
        drop((client, server));
        wait_for_free(&file).await;
        if round == 1 {
            folder.write("notes/a.txt", "The kettle is in the hall.");
            fs::remove_file(notes.join("b.md")).unwrap();
        }
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0["contents"][0]["_meta"]["ranking"], "bm25+vectors");
    assert_eq!((answers[0].1.len(), answers[2].1.len()), (4, 3));
    assert_eq!(answers[2].0["contents"][0]["uri"], "rag:///kb/doc/a.txt");

    let rag = Rag::new(options()).unwrap();
    fs::rename(&notes, folder.0.join("away")).unwrap();
    let (server, log) = served(rag, "{}");
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(found(&mut client, kettle).await, ["rag:///kb/doc/a.txt"]);
    assert!(client.read_text("rag:///kb/").await.unwrap().contains("The source does not answer now"));
    assert!(log.lock().unwrap().join("\n").contains("cannot be brought up to date"), "{log:?}");
}

/// S-03: a document that is too large is named in the log, and a folder without any says so.
#[tokio::test]
async fn what_is_not_served_is_said() {
    let folder = Folder::with([("a.txt", "needle"), ("large.txt", &*"needle ".repeat(1 << 20))]);
    let (server, log) = served(Rag::new(RagOptions::new().folder("kb", &folder.0)).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(found(&mut client, "rag:///kb/search/needle").await, ["rag:///kb/doc/a.txt"]);
    assert!(client.read("rag:///kb/doc/large.txt").await.is_err());
    assert!(log.lock().unwrap().join("\n").contains("kb/large.txt cannot be read: it is larger than 4 MiB"));
    let empty = Folder::with([("a.png", "x")]);
    let (server, log) = served(Rag::new(RagOptions::new().folder("kb", &empty.0)).unwrap(), "{}");
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(found(&mut client, "rag:///kb/search/needle").await, [""; 0]);
    assert_eq!(log.lock().unwrap().join("\n").matches("the collection \"kb\" has no document").count(), 1);
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
        (kb("".into()), "collections.kb is \"\", expected the path of a folder"),
        (kb(members(&[("folder", "".into())])), "folder is \"\", expected the path of a folder"),
        (
            members(&[("collections", members(&[("kb", ".".into())])), ("poll", "0s".into())]),
            "poll is \"0ms\", expected a time from 10ms to 1d",
        ),
        (
            members(&[("collections", members(&[("kb", ".".into())])), ("index", "src".into())]),
            "rag: the index src is no file; name one that may be written",
        ),
    ] {
        let said = RagOptions::from_option(value).and_then(Rag::new).map(drop).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}
