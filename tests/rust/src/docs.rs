//! Documentation, served to a client: pages, sections and searches, in Japanese and English.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::docs::{Docs, DocsOptions};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A directory of the test's own, which is gone with it.
struct Folder(PathBuf);

impl Folder {
    fn with<'p>(files: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Self(std::env::temp_dir().join(format!("mcp-docs-{}-{number}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        files.into_iter().for_each(|(path, text)| folder.write(path, text));
        folder
    }

    /// Puts a file in its place at once: written where it is, it would be empty for a moment, which is a change of its own.
    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = self.0.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// A request waits until the index is whole, however busy the machine is.
    fn options(&self) -> DocsOptions {
        DocsOptions::new().site("book", &self.0).patience(Duration::from_secs(60))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn served(options: DocsOptions, policy: &str) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let server = ResourceServer::builder("docs", "1")
        .mount(Docs::new(options).unwrap())
        .guard(Policy::from_json(policy).unwrap())
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

fn client(options: DocsOptions) -> Client {
    Client::modern(&served(options, "{}").0).unwrap()
}

async fn listed(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

async fn search(client: &mut Client, uri: &str) -> Value {
    serde_json::from_str(&client.read_text(uri).await.unwrap()).unwrap()
}

/// The URIs that a search finds.
async fn found(client: &mut Client, uri: &str) -> Vec<String> {
    let answer = search(client, uri).await;
    answer["hits"].as_array().unwrap().iter().map(|hit| hit["uri"].as_str().unwrap().to_owned()).collect()
}

async fn eventually(client: &mut Client, uri: &str, expected: &[&str]) {
    let begun = Instant::now();
    loop {
        let now = found(client, uri).await;
        if now == expected || begun.elapsed() > Duration::from_secs(60) {
            assert_eq!(now, expected);
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const SEARCH_PAGE: &str = "---
title: 全文検索
description: How the search works
priority: 0.9
audience: [user]
lang: ja
---
# 検索

サーバーで検索します。

## 設定

`max_bytes` を設定します。issue化できます。

### 細かい設定

ｹﾝｻｸの細部です。

## API

The ＡＰＩ answers in JSON.
";

fn book() -> Folder {
    Folder::with([
        ("search.md", SEARCH_PAGE),
        (
            "guide/backup.md",
            "+++\npriority = 0.2\nlang = \"en\"\n+++\n# Backup\n\nCopy the server.\n\n# Backup\n\nTwice.\n",
        ),
        ("guide/plain.markdown", "No heading, but a server and a needle.\n"),
        ("bad.md", "---\npriority: [\n---\n# Bad\n\nStill served.\n"),
        (".hidden.md", "# Hidden\n\nneedle\n"),
        ("drafts/x.md", "# Draft\n\nneedle\n"),
        ("ignored.md", "# Ignored\n\nneedle\n"),
        (".gitignore", "ignored.md\n"),
        ("picture.png", "\u{89}PNG"),
        ("search/notes.md", "# Notes\n\nA page whose name is that of a search.\n"),
    ])
}

/// S-07, R-058: pages are listed by priority and described by their front matter, and read as they are, in both eras.
#[tokio::test]
async fn pages_are_listed_and_read() {
    let folder = book();
    let (server, log) = served(folder.options().exclude(["drafts"]), "{}");
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let items = client.list_resources().await.unwrap();
        let uris: Vec<_> = items.iter().map(|item| item["uri"].as_str().unwrap()).collect();
        assert_eq!(
            uris,
            [
                "docs:///",
                "docs:///book/",
                "docs:///book/search.md",
                "docs:///book/bad.md",
                "docs:///book/guide/plain.markdown",
                "docs:///book/search/notes.md",
                "docs:///book/guide/backup.md",
            ]
        );
        let page = &items[2];
        assert_eq!((&page["title"], &page["mimeType"]), (&json!("全文検索"), &json!("text/markdown")));
        assert_eq!((&page["name"], &page["size"]), (&json!("search.md"), &json!(SEARCH_PAGE.len())));
        assert_eq!(page["annotations"]["priority"], 0.9);
        assert_eq!(page["annotations"]["audience"], json!(["user"]));
        assert!(page["annotations"]["lastModified"].is_string());
        assert_eq!(page["_meta"]["lang"], "ja");
        assert_eq!(items[4]["title"], "plain");
        for uri in &uris {
            assert!(client.read(uri).await.is_ok(), "{uri}");
        }
        let read = client.read("docs:///book/search.md").await.unwrap();
        assert_eq!(read["contents"][0]["text"], SEARCH_PAGE);
        assert_eq!(read["contents"][0]["_meta"]["lang"], "ja");
        assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
        let index: Value = serde_json::from_str(&client.read_text("docs:///").await.unwrap()).unwrap();
        assert_eq!(index["book"]["uri"], "docs:///book/");
        let contents = client.read_text("docs:///book").await.unwrap();
        assert_eq!(contents, client.read_text("docs:///book/").await.unwrap());
        assert!(
            contents.contains("- [全文検索](docs:///book/search.md): How the search works\n"),
            "{contents}"
        );
        assert!(client.read_text("docs:///book/bad.md").await.unwrap().contains("Still served."));
    }
    let said = log.lock().unwrap().join("\n");
    assert_eq!(said.matches("book/bad.md: line ").count(), 1, "{said}");
}

/// S-07: a fragment reads exactly its section; what is not there is one and the same.
#[tokio::test]
async fn sections_are_read_exactly() {
    let folder = book();
    let mut client = client(folder.options().exclude(["drafts"]));
    for (uri, text) in [
        (
            "search.md#%E8%A8%AD%E5%AE%9A",
            &SEARCH_PAGE[SEARCH_PAGE.find("## 設定").unwrap()..SEARCH_PAGE.find("## API").unwrap()],
        ),
        ("search.md#api", "## API\n\nThe ＡＰＩ answers in JSON.\n"),
        ("guide/backup.md#backup", "# Backup\n\nCopy the server.\n\n"),
        ("guide/backup.md#backup-1", "# Backup\n\nTwice.\n"),
        ("search/notes.md#notes", "# Notes\n\nA page whose name is that of a search.\n"),
    ] {
        assert_eq!(client.read_text(&format!("docs:///book/{uri}")).await.unwrap(), text, "{uri}");
    }
    let mut answers = Vec::new();
    for page in [
        "none.md",
        "search.md#none",
        "search.md#API",
        "search.md#",
        ".hidden.md",
        "drafts/x.md",
        "ignored.md",
        "picture.png",
        "guide",
        "guide/",
        "guide/../search.md",
        "%2E%2E/x.md",
        "SEARCH.md",
        "search.md/",
        "//search.md",
    ] {
        let uri = format!("docs:///book/{page}");
        let error = client.read(&uri).await.unwrap_err();
        answers.push(format!("{error:?}").replace(&uri, "URI"));
    }
    answers.push(
        format!("{:?}", client.read("docs:///none/a.md").await.unwrap_err())
            .replace("docs:///none/a.md", "URI"),
    );
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
}

/// S-07: a search finds words of two languages in any width; each hit is a section that has them.
#[tokio::test]
async fn searches_find_sections() {
    let folder = book();
    let mut client = client(folder.options().exclude(["drafts"]));
    let heading = |slug: &str| {
        mcp_resources_template::uri::normalize(&format!("docs:///book/search.md#{slug}"), 1_000)
            .unwrap()
            .into_owned()
    };
    for (query, uris) in [
        ("検索", vec![heading("検索")]),
        ("ケンサク", vec![heading("細かい設定")]),
        ("ｹﾝｻｸ", vec![heading("細かい設定")]),
        ("API", vec![heading("api")]),
        ("ａｐｉ json", vec![heading("api")]),
        ("issue化", vec![heading("設定")]),
        ("max_bytes", vec![heading("設定")]),
        ("索", vec![heading("検索")]),
        ("サーバ", vec![heading("検索")]),
        ("サーバー 設定 json", vec![heading("設定")]),
        ("needle", vec!["docs:///book/guide/plain.markdown".into()]),
        ("needle 検索", vec![]),
        ("\" OR 検索 NEAR(", vec![]),
        ("a/b?c#d%", vec![]),
        ("!!!", vec![]),
    ] {
        let mut encoded = String::new();
        for byte in query.bytes() {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        // A slash stays as it is: encoded, it would be hidden in a path.
        let path = format!("docs:///book/search/{}", encoded.replace("%2F", "/"));
        assert_eq!(found(&mut client, &path).await, uris, "{query}");
        assert_eq!(found(&mut client, &format!("docs:///book/search?q={encoded}")).await, uris, "{query}");
    }
    let answer = search(&mut client, "docs:///book/search?q=server&k=1").await;
    assert_eq!(
        (&answer["more"], &answer["site"], &answer["query"]),
        (&json!(true), &json!("book"), &json!("server"))
    );
    let hit = &answer["hits"][0];
    assert!(hit["snippet"].as_str().unwrap().contains("**server**"), "{hit}");
    assert!(hit["score"].as_f64().unwrap() > 0.0);
    let found_in = |lang: &'static str| format!("docs:///book/search?q=server&lang={lang}");
    assert_eq!(found(&mut client, &found_in("EN")).await, ["docs:///book/guide/backup.md#backup"]);
    assert_eq!(found(&mut client, &found_in("ja")).await, [""; 0]);
    // A page of that name is read instead.
    assert!(client.read_text("docs:///book/search/notes.md").await.unwrap().starts_with("# Notes"));
    for (query, parameter) in [
        ("search?q=", "q"),
        ("search", "q"),
        ("search?q=a&k=0", "k"),
        ("search?q=a&k=101", "k"),
        ("search?q=a&k=+5", "k"),
        ("search?q=a&k=many", "k"),
        ("search?q=a&lang=ja_JP", "lang"),
        ("search/%20", "query"),
    ] {
        let error = client.read(&format!("docs:///book/{query}")).await.unwrap_err();
        assert_eq!(error.code, -32602, "{query}");
        assert!(error.data.to_string().contains(&format!("\"{parameter}\"")), "{query}: {error:?}");
    }
    let long = client.read(&format!("docs:///book/search?q={}", "x".repeat(2_000))).await.unwrap_err();
    assert_eq!(long.code, -32602);
}

/// S-07, R-108: all variables are completed, as they stand in URIs.
#[tokio::test]
async fn variables_are_completed() {
    let folder = book();
    folder.write("日本語/設定 #1.md", "# 設定\n");
    let mut client = client(folder.options().exclude(["drafts"]));
    let section = "docs:///{site}/{+page}{#section}";
    for (template, variable, typed, values) in [
        (section, "site", "b", vec!["book"]),
        (section, "page", "guide/", vec!["guide/backup.md", "guide/plain.markdown"]),
        (section, "page", "日", vec!["%E6%97%A5%E6%9C%AC%E8%AA%9E/%E8%A8%AD%E5%AE%9A%20%231.md"]),
        (section, "page", "d", vec![]),
        ("docs:///{site}/search/{+query}", "query", "back", vec!["Backup"]),
        ("docs:///{site}/search{?q,k,lang}", "lang", "", vec!["en", "ja"]),
        ("docs:///{site}/search{?q,k,lang}", "k", "1", vec!["10", "100"]),
        ("docs:///{site}/search{?q,k,lang}", "q", "全", vec!["全文検索"]),
    ] {
        let completed = client.complete(template, variable, typed, &[]).await.unwrap();
        assert_eq!(completed.values, values, "{variable} {typed}");
    }
    let asked = json!({
        "ref": {"type": "ref/resource", "uri": section},
        "argument": {"name": "section", "value": "backup"},
        "context": {"arguments": {"site": "book", "page": "guide/backup.md"}}
    });
    let completed = client.request("complete", asked).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["backup", "backup-1"]));
    let odd = "docs:///book/%E6%97%A5%E6%9C%AC%E8%AA%9E/%E8%A8%AD%E5%AE%9A%20%231.md";
    assert_eq!(client.read_text(odd).await.unwrap(), "# 設定\n");
}

/// S-07: a name that is written in NFD on disk has its URI in NFC, and no other.
#[tokio::test]
async fn names_in_nfd_answer_to_nfc() {
    let folder = Folder::with([("カ\u{3099}イト\u{3099}/u\u{308}ber.md", "# Über\n\nneedle\n")]);
    let mut client = client(folder.options());
    let uri = "docs:///book/%E3%82%AC%E3%82%A4%E3%83%89/%C3%BCber.md";
    assert!(listed(&mut client).await.contains(&uri.to_owned()));
    assert_eq!(client.read_text("docs:///book/ガイド/über.md").await.unwrap(), "# Über\n\nneedle\n");
    assert_eq!(found(&mut client, "docs:///book/search/needle").await, [format!("{uri}#%C3%BCber")]);
    assert!(client.read("docs:///book/カ\u{3099}イト\u{3099}/u\u{308}ber.md").await.is_err());
    let listen = client.listen(&[uri], false).await.unwrap();
    folder.write("カ\u{3099}イト\u{3099}/u\u{308}ber.md", "# Über\n\nother\n");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], uri);
}

/// S-07, R-075: a page that the guard hides is in no list, hit, count, score or completion; a server without it answers alike.
#[tokio::test]
async fn the_guard_is_asked_first() {
    let pages = || {
        let needles = (0..30).map(|at| {
            (format!("open/{at:02}.md"), format!("# Page {at}\n\nneedle {}\n", "word ".repeat(at)))
        });
        needles.collect::<Vec<_>>()
    };
    let without = Folder::with([("top.md", "# Top\n\n## Shown\n\nneedle\n")]);
    let with = Folder::with([
        ("top.md", "# Top\n\n## Shown\n\nneedle\n"),
        ("secret/a.md", "# needle\n\nneedle needle hidden\n"),
    ]);
    for (path, text) in pages() {
        without.write(&path, &text);
        with.write(&path, &text);
        with.write(&format!("secret/{path}"), "# needle\n");
    }
    let policy = r#"{"deny": ["docs:///book/secret/**"]}"#;
    let mut answers = Vec::new();
    for folder in [&without, &with] {
        let (server, _) = served(folder.options(), policy);
        let mut client = Client::modern(&server).unwrap();
        let mut all = Vec::new();
        for uri in
            ["search?q=needle&k=40", "search/needle", "search/hidden", "", "search?q=needle&k=5&lang=ja"]
        {
            all.push(client.read_text(&format!("docs:///book/{uri}")).await.unwrap());
        }
        all.push(format!("{:?}", listed(&mut client).await));
        let completed = client.complete("docs:///{site}/{+page}", "page", "", &[]).await.unwrap();
        all.push(format!("{:?}", completed.values));
        all.push(format!("{:?}", client.read("docs:///book/secret/a.md").await.unwrap_err()));
        answers.push(all);
    }
    assert!(!format!("{answers:?}").contains("secret/open"));
    assert_eq!(answers[0], answers[1]);

    // Hidden parts of a page are not found.
    let (server, _) = served(without.options(), r#"{"deny": ["docs:///book/top.md#shown"]}"#);
    let mut client = Client::modern(&server).unwrap();
    assert!(
        !found(&mut client, "docs:///book/search?q=needle&k=100")
            .await
            .iter()
            .any(|uri| uri.contains("top.md"))
    );
}

/// S-07, R-083, R-092: an edit marks the page, the sections that it changes and the searches; a page that comes or
/// goes, the list.
#[tokio::test]
async fn edits_are_reported() {
    let text = |one: &str, two: &str| format!("# Top\n\n## One\n\n{one}\n\n## Two\n\n{two}\n");
    let folder = Folder::with([("a.md", &*text("one", "two"))]);
    let mut client = client(folder.options());
    let page = "docs:///book/a.md";
    let uris = [page, "docs:///book/a.md#one", "docs:///book/a.md#two", "docs:///book/search/two"];
    for uri in uris {
        client.read(uri).await.unwrap();
    }
    let listen = client.listen(&uris, true).await.unwrap();
    folder.write("a.md", text("one", "changed"));
    let mut told = Vec::new();
    while told.len() < 3 {
        told.push(client.next(&listen).await.unwrap().params["uri"].as_str().unwrap().to_owned());
    }
    told.sort();
    assert_eq!(told, [page, "docs:///book/a.md#two", "docs:///book/search/two"]);
    eventually(&mut client, "docs:///book/search/changed", &["docs:///book/a.md#two"]).await;
    folder.write("b.md", "# New\n\nneedle\n");
    let mut told = Vec::new();
    while told.len() < 2 {
        told.push(client.next(&listen).await.unwrap().params.get("uri").cloned());
    }
    assert!(told.contains(&None) && told.contains(&Some(json!("docs:///book/search/two"))), "{told:?}");
    eventually(&mut client, "docs:///book/search/needle", &["docs:///book/b.md#new"]).await;
    fs::rename(folder.0.join("b.md"), folder.0.join("c.md")).unwrap();
    eventually(&mut client, "docs:///book/search/needle", &["docs:///book/c.md#new"]).await;
    fs::create_dir(folder.0.join("deep")).unwrap();
    fs::rename(folder.0.join("c.md"), folder.0.join("deep/c.md")).unwrap();
    eventually(&mut client, "docs:///book/search/needle", &["docs:///book/deep/c.md#new"]).await;
    fs::rename(folder.0.join("deep"), folder.0.join("other")).unwrap();
    eventually(&mut client, "docs:///book/search/needle", &["docs:///book/other/c.md#new"]).await;
    folder.write(".gitignore", "other\n");
    eventually(&mut client, "docs:///book/search/needle", &[]).await;
    fs::remove_file(folder.0.join(".gitignore")).unwrap();
    eventually(&mut client, "docs:///book/search/needle", &["docs:///book/other/c.md#new"]).await;
    fs::remove_dir_all(folder.0.join("other")).unwrap();
    eventually(&mut client, "docs:///book/search/needle", &[]).await;
}

/// S-07: a request does not wait for the first index to be complete. The answer says what is missing; a notification follows.
#[tokio::test]
async fn a_first_search_does_not_wait_for_all() {
    let folder = book();
    let mut client = client(folder.options().patience(Duration::ZERO));
    let uri = "docs:///book/search?q=server";
    let listen = client.listen(&[uri], true).await.unwrap();
    let begun = Instant::now();
    let mut was_partial = false;
    loop {
        let result = client.read(uri).await.unwrap();
        let contents = &result["contents"][0];
        let answer: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
        if answer.get("incomplete").is_none() {
            assert_eq!(answer["hits"].as_array().unwrap().len(), 2, "{answer}");
            assert!(contents.get("_meta").is_none_or(|meta| meta.get("incomplete").is_none()));
            break;
        }
        assert_eq!((&answer["incomplete"], &contents["_meta"]["incomplete"]), (&json!(true), &json!(true)));
        was_partial = true;
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    let mut told = HashSet::new();
    // Nobody has read before: an update is sent only for an answer that lacked something.
    while told.len() < 2 * usize::from(was_partial) {
        told.insert(client.next(&listen).await.unwrap().params.get("uri").is_some());
    }
}

/// Issue 18: the first answer of all comes at once.
#[tokio::test]
async fn a_search_that_begins_the_index_is_answered() {
    let folder = book();
    let (server, _) = served(folder.options().exclude(["drafts"]).patience(Duration::ZERO), "{}");
    let mut client = Client::modern(&server).unwrap();
    let answer = search(&mut client, "docs:///book/search?q=server").await;
    assert_eq!((&answer["incomplete"], &answer["hits"]), (&json!(true), &json!([])));
    eventually(&mut client, "docs:///book/search?q=needle", &["docs:///book/guide/plain.markdown"]).await;
    assert!(search(&mut client, "docs:///book/search?q=server").await.get("incomplete").is_none());
    assert!(!listed(&mut client).await.is_empty());
}

/// S-07: what changed between a read and its subscription is reported, and what did not is not.
#[tokio::test]
async fn nothing_falls_between_read_and_subscription() {
    let folder = Folder::with([("a.md", "# A\n\none\n"), ("b.md", "# B\n\nsame\n")]);
    let (server, _) = served(folder.options(), "{}");
    let mut client = Client::legacy(&server, Revision::V2025_06_18).await.unwrap();
    let uris = ["docs:///book/a.md#a", "docs:///book/b.md"];
    for uri in uris {
        client.read(uri).await.unwrap();
    }
    folder.write("a.md", "# A\n\ntwo\n");
    client.subscribe(uris[1]).await.unwrap();
    client.subscribe(uris[0]).await.unwrap();
    assert_eq!(client.notification().await.unwrap()["params"]["uri"], uris[0]);
    folder.write("b.md", "# B\n\nother\n");
    assert_eq!(client.notification().await.unwrap()["params"]["uri"], uris[1]);
    // A page that is not there yet can be watched.
    client.subscribe("docs:///book/later.md").await.unwrap();
    folder.write("later.md", "# Later\n");
    loop {
        let told = client.notification().await.unwrap();
        if told["params"]["uri"] == "docs:///book/later.md" {
            break;
        }
    }
}

/// The next `resources/updated` of a legacy client.
async fn updated(client: &mut Client) -> String {
    loop {
        let notification = client.notification().await.unwrap();
        if notification["method"] == "notifications/resources/updated" {
            return notification["params"]["uri"].as_str().unwrap().to_owned();
        }
    }
}

/// S-07, R-083: a subscription to what nobody has read causes no update, and what is not served never does.
#[tokio::test]
async fn a_subscription_alone_is_no_update() {
    const SILENT: [&str; 4] = ["ignored.md", ".hidden.md", "drafts/x.md", "d/.hidden/y.md"];
    let folder = Folder::with([("a.md", "# A\n"), ("b.md", "# B\n"), (".gitignore", "ignored.md\n")]);
    SILENT.iter().for_each(|path| folder.write(path, "# S\n"));
    // The clock of a file system is coarse: what is written just before counts as written later.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (server, _) = served(folder.options().exclude(["drafts"]), "{}");
    let mut client = Client::legacy(&server, Revision::V2025_06_18).await.unwrap();
    let [a, b] = ["docs:///book/a.md", "docs:///book/b.md"];
    for path in SILENT {
        client.subscribe(&format!("docs:///book/{path}")).await.unwrap();
    }
    client.subscribe(a).await.unwrap();
    client.subscribe(b).await.unwrap();
    SILENT.iter().for_each(|path| folder.write(path, "# S\n\nother\n"));
    folder.write("b.md", "# B\n\nfirst\n");
    assert_eq!(updated(&mut client).await, b);
    // One that is ignored from now on is as if it were removed, and then silent too.
    folder.write(".gitignore", "ignored.md\na.md\n");
    assert_eq!(updated(&mut client).await, a);
    folder.write("a.md", "# A\n\nother\n");
    folder.write("b.md", "# B\n\nsecond\n");
    assert_eq!(updated(&mut client).await, b);
}

/// S-07: text that is not what it should be costs itself alone.
#[tokio::test]
async fn hostile_pages_are_served_within_bounds() {
    let folder = Folder::with([("good.md", "# Good\n\nneedle\n")]);
    folder.write("bytes.md", [&b"# Bytes \xff\xfe\n\nneedle "[..], &[0, 1, 2]].concat());
    folder.write("empty.md", "");
    folder.write("deep.md", format!("{}needle\n", "> ".repeat(5_000)));
    folder.write("headings.md", "# a\n".repeat(20_000));
    folder.write("long.md", format!("# {}\n\n{}\n", "t".repeat(100_000), "x".repeat(1_000_000)));
    folder.write("fronts.md", format!("---\na: {}\n---\n# F\n", "[".repeat(50_000)));
    folder.write("title.md", "---\ntitle: \"a](docs:///x)\\n\\u0000b\"\n---\n");
    folder.write("sjis.md", b"# \x8c\x9f\x8d\xf5\n\nneedle\n");
    folder.write("large.md", vec![b'a'; 5 << 20]);
    std::os::unix::fs::symlink("/etc/passwd", folder.0.join("link.md")).unwrap();
    std::os::unix::fs::symlink("good.md", folder.0.join("inside.md")).unwrap();
    let (server, log) = served(folder.options().max_bytes(2 << 20), "{}");
    let mut client = Client::modern(&server).unwrap();
    let uris = listed(&mut client).await;
    assert_eq!(uris.len(), 2 + 10, "{uris:?}");
    for uri in uris.iter().filter(|uri| !uri.ends_with("large.md")) {
        assert!(client.read(uri).await.is_ok(), "{uri}");
    }
    let error = client.read("docs:///book/large.md").await.unwrap_err();
    assert_eq!(error.data["kind"], "size_exceeded", "{error:?}");
    let mut hits = found(&mut client, "docs:///book/search/needle").await;
    hits.sort();
    // What is not UTF-8 is found as a whole: a hit can be read.
    let pages = ["bytes.md", "deep.md", "good.md#good", "sjis.md"];
    assert_eq!(hits, pages.map(|page| format!("docs:///book/{page}")));
    for uri in hits {
        assert!(client.read(&uri).await.is_ok(), "{uri}");
    }
    assert_eq!(log.lock().unwrap().join("\n").matches("book/sjis.md: it is not UTF-8").count(), 1, "{log:?}");
    for link in ["link.md", "inside.md"] {
        assert!(client.read(&format!("docs:///book/{link}")).await.is_err());
    }
    assert!(!client.read_text("docs:///book/").await.unwrap().contains("a](docs:///x"));
}

/// S-07: a page that is cut for its size has its sections, wherever the cut falls, and a site without a page says so.
#[tokio::test]
async fn large_pages_and_empty_sites() {
    let folder = Folder::with([]);
    for (name, start) in [("0.md", "# A\n"), ("1.md", "# A\n\n"), ("2.md", "# A\n\n\n")] {
        folder.write(name, format!("{start}{}", "あ".repeat(2 << 20)));
    }
    let mut client = client(folder.options().max_bytes(16 << 20));
    for name in ["0.md", "1.md", "2.md"] {
        let text = client.read_text(&format!("docs:///book/{name}#a")).await.unwrap();
        assert!(text.ends_with('あ') && text.len() > (4 << 20) - 4, "{name}: {}", text.len());
    }
    let empty = Folder::with([("note.txt", "needle")]);
    let (server, log) = served(empty.options(), "{}");
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(found(&mut client, "docs:///book/search/needle").await, [""; 0]);
    let said = log.lock().unwrap().join("\n");
    assert!(said.contains("the site \"book\" has no page: ") && said.contains(".md"), "{said}");
}

/// S-07: an index in a file is used again, compared with what is there, and built again when it is damaged.
#[tokio::test]
async fn an_index_in_a_file_survives() {
    let folder = Folder::with([("site/a.md", "# A\n\nneedle\n"), ("site/b.md", "# B\n\nneedle\n")]);
    let file = folder.0.join("index.db");
    let options = || DocsOptions::new().site("book", folder.0.join("site")).index(&file);
    for round in 0..4 {
        let (server, log) = served(options(), "{}");
        let mut client = Client::modern(&server).unwrap();
        let uris = found(&mut client, "docs:///book/search/needle").await;
        assert_eq!(uris.len(), if round == 0 { 2 } else { 1 }, "{round} {log:?}");
        let said = log.lock().unwrap().join("\n");
        assert_eq!(said.contains("is built again"), round == 3, "{round} {said}");
        drop(client);
        drop(server);
        fs::write(folder.0.join("site/a.md"), format!("# A\n\nround {round}\n")).unwrap();
        wait_for_free(&file).await;
        if round == 2 {
            fs::write(&file, "garbage").unwrap();
        }
    }
}

/// Until no thread has the index.
pub(crate) async fn wait_for_free(file: &Path) {
    let begun = Instant::now();
    let is_open = || {
        let fds = fs::read_dir("/proc/self/fd").unwrap().flatten();
        fds.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|path| path == file)
    };
    while is_open() && begun.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!is_open());
}

/// S-07: a site that is gone fails and says so in the log, and comes back.
#[tokio::test]
async fn a_site_may_be_gone_for_a_while() {
    let folder = Folder::with([("site/a.md", "# A\n\nneedle\n")]);
    let options = DocsOptions::new().site("book", folder.0.join("site")).watch(false);
    let (server, log) = served(options, "{}");
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(found(&mut client, "docs:///book/search/needle").await.len(), 1);
    fs::rename(folder.0.join("site"), folder.0.join("away")).unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let error = client.read("docs:///book/search/needle").await.unwrap_err();
    assert_eq!(error.data["kind"], "read_error", "{error:?}");
    assert!(!format!("{error:?}").contains(&*folder.0.to_string_lossy()));
    assert_eq!(listed(&mut client).await, ["docs:///", "docs:///book/"]);
    assert!(log.lock().unwrap().join("\n").contains("the site \"book\" cannot be opened"));
    fs::rename(folder.0.join("away"), folder.0.join("site")).unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(found(&mut client, "docs:///book/search/needle").await.len(), 1);
}

/// R-101, R-105: many pages in pages of the list, none twice; `list_max` of them are listed, all are found.
#[tokio::test]
async fn many_pages_are_paged() {
    let folder = Folder::with([]);
    for at in 0..1_200 {
        folder.write(
            &format!("p/{at:04}.md"),
            format!("---\npriority: 0.{}\n---\n# Page {at}\n\nword{at}\n", at % 7),
        );
    }
    let mut client = client(folder.options().list_max(1_100));
    let uris = listed(&mut client).await;
    let distinct: std::collections::BTreeSet<_> = uris.iter().collect();
    assert_eq!((uris.len(), distinct.len()), (2 + 1_100, uris.len()));
    assert_eq!(found(&mut client, "docs:///book/search/word1199").await.len(), 1);
    assert_eq!(found(&mut client, "docs:///book/search?q=page&k=100").await.len(), 100);
}

/// S-07: what is wrong at the start is named with the fix.
#[test]
fn mistakes_at_the_start() {
    let folder = Folder::with([("a.md", "# A\n"), ("other.txt", "x")]);
    let dir = folder.0.display().to_string();
    let members = |members: &[(&str, OptionValue)]| {
        OptionValue::Members(
            members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        )
    };
    for (value, message) in [
        (members(&[]), "docs: there is no site; name a directory".to_owned()),
        (members(&[("site", ".".into())]), "unexpected option \"site\"; did you mean \"sites\"?".into()),
        ("no/such".into(), "docs: the site no/such does not exist; create it".into()),
        (
            members(&[("sites", dir.clone().into()), ("include", "a[".into())]),
            "docs: include has the glob".into(),
        ),
        (members(&[("sites", dir.clone().into()), ("index", dir.clone().into())]), "is no file".into()),
        (OptionValue::List(vec![dir.clone().into(), dir.into()]), "docs: two sites have the name".into()),
        (5_u64.into(), "5, expected a directory".into()),
    ] {
        let said = DocsOptions::from_option(value).and_then(Docs::new).map(drop).unwrap_err().to_string();
        assert!(said.contains(&message), "{said}");
    }
}

/// S-07: over a handbook in two languages, each query finds the pages that it must, and not those that it must not; each hit is a
/// section that can be read.
#[tokio::test]
async fn the_handbook_is_searched() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table: Value =
        serde_json::from_slice(&fs::read(root.join("tests/fixtures/search.json")).unwrap()).unwrap();
    let mut client = client(DocsOptions::new().site("handbook", root.join("examples/data/handbook")));
    let mut uris = std::collections::BTreeSet::new();
    for row in table["queries"].as_array().unwrap() {
        let query = row["query"].as_str().unwrap();
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let lang = row["lang"].as_str().map(|lang| format!("&lang={lang}")).unwrap_or_default();
        let hits = found(&mut client, &format!("docs:///handbook/search?q={encoded}&k=100{lang}")).await;
        let pages = |name: &str| {
            let names = row[name].as_array().unwrap().iter();
            let uri = |name: &Value| format!("docs:///handbook/{}", name.as_str().unwrap());
            let uris = names
                .map(|name| mcp_resources_template::uri::normalize(&uri(name), 1_000).unwrap().into_owned());
            uris.collect::<Vec<_>>()
        };
        let finds = |page: &String| hits.iter().any(|hit| hit.split('#').next() == Some(page));
        for page in pages("must") {
            assert!(finds(&page), "{query} must find {page}: {hits:?}");
        }
        for page in pages("must_not") {
            assert!(!finds(&page), "{query} must not find {page}: {hits:?}");
        }
        uris.extend(hits);
    }
    for uri in uris {
        let text = client.read_text(&uri).await.unwrap();
        assert_eq!(text.starts_with('#'), uri.contains('#'), "{uri}");
    }
}
