//! Files, served to a client: what is listed is read, and what is not served is one and the same.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::files::{FileOptions, Files, Symlinks};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mcp-served-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn project() -> Folder {
    let folder = Folder::new();
    for (path, text) in [
        ("project/README.md", "# Read me\n"),
        ("project/src/main.rs", "one\ntwo\nthree\n"),
        ("project/src/a b%.txt", "spaced"),
        ("project/.env", "CANARY"),
        ("project/secret/key", "CANARY"),
        ("project/build/x", "CANARY"),
        ("project/.gitignore", "build/\n"),
        ("etc/passwd", "CANARY"),
        ("secret/key", "CANARY"),
    ] {
        folder.write(path, text);
    }
    folder.write("project/picture.png", b"\x89PNG\r\n\x1a\n");
    folder
}

fn served(folder: &Folder, change: impl FnOnce(FileOptions) -> FileOptions) -> ResourceServer {
    let files = Files::new(change(FileOptions::new().root("project", folder.0.join("project")))).unwrap();
    let policy =
        Policy::from_json(r#"{"deny": ["file:///project/secret/**", "file:///project/secret"]}"#).unwrap();
    ResourceServer::builder("files", "1").mount(files).guard(policy).build().unwrap()
}

fn uris(result: &Value) -> Vec<&str> {
    result["contents"].as_array().unwrap().iter().map(|contents| contents["uri"].as_str().unwrap()).collect()
}

/// S-01, R-058, R-060: the index and the roots first, then the files, each with what is known of it, in both eras.
#[tokio::test]
async fn what_is_listed_is_read() {
    let folder = project();
    let server = served(&folder, |options| options);
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let listed = client.list_resources().await.unwrap();
        let listed: Vec<&str> = listed.iter().map(|item| item["uri"].as_str().unwrap()).collect();
        let files = ["README.md", "picture.png", "src/a%20b%25.txt", "src/main.rs"]
            .map(|path| format!("file:///project/{path}"));
        assert_eq!(listed[..2], ["file:///", "file:///project/"]);
        assert_eq!(listed[2..], files);
        for uri in &listed {
            assert!(client.read(uri).await.is_ok(), "{uri}");
        }
        let templates = client.list_templates().await.unwrap();
        let templates: Vec<&str> =
            templates.iter().map(|item| item["uriTemplate"].as_str().unwrap()).collect();
        assert!(
            templates.contains(&"file:///{root}/{+path}")
                && templates.contains(&"file:///{root}/{+path}{?lines}")
        );
    }
    let mut client = Client::modern(&server).unwrap();
    let listed = client.list_resources().await.unwrap();
    let readme = &listed[2];
    assert_eq!(
        (&readme["mimeType"], &readme["size"], &readme["annotations"]["priority"]),
        (&json!("text/markdown"), &json!(10), &json!(0.9))
    );
    assert!(readme["annotations"]["lastModified"].as_str().unwrap().ends_with('Z'));
    let picture = client.read("file:///project/picture.png").await.unwrap();
    assert_eq!(
        (&picture["contents"][0]["mimeType"], &picture["contents"][0]["blob"]),
        (&json!("image/png"), &json!("iVBORw0KGgo="))
    );
}

/// S-01: a directory is its children, with and without its slash.
#[tokio::test]
async fn a_directory_is_its_children() {
    let folder = project();
    let server = served(&folder, |options| options);
    let mut client = Client::modern(&server).unwrap();
    let index = client.read("file:///").await.unwrap();
    assert_eq!(
        (uris(&index), &index["contents"][0]["mimeType"]),
        (vec!["file:///project/"], &json!("inode/directory"))
    );
    let children = ["README.md", "picture.png", "src/"].map(|name| format!("file:///project/{name}"));
    for uri in ["file:///project/", "file:///project", "FILE:///project/"] {
        let root = client.read(uri).await.unwrap();
        assert_eq!(uris(&root), children, "{uri}");
        assert_eq!(root["contents"][2]["mimeType"], "inode/directory");
    }
    for uri in ["file:///project/src", "file:///project/src/"] {
        let src = client.read(uri).await.unwrap();
        assert_eq!(uris(&src), ["file:///project/src/a%20b%25.txt", "file:///project/src/main.rs"]);
    }
}

/// S-01, R-060: some lines of a file; what is no range names its variable.
#[tokio::test]
async fn lines_are_a_variable() {
    let folder = project();
    let server = served(&folder, |options| options.max_bytes(12));
    let mut client = Client::modern(&server).unwrap();
    let uri = |lines: &str| format!("file:///project/src/main.rs?lines={lines}");
    assert_eq!(client.read_text(&uri("2-3")).await.unwrap(), "two\nthree\n");
    assert_eq!(client.read_text(&uri("1")).await.unwrap(), "one\n");
    for lines in ["", "x", "0-1", "3-2", "-3", "9-12"] {
        let error = client.read(&uri(lines)).await.unwrap_err();
        assert_eq!(
            (error.code, &error.data["kind"], &error.data["parameter"]),
            (-32602, &json!("invalid_parameter"), &json!("lines")),
            "{lines}"
        );
    }
    let error = client.read("file:///project/src/main.rs").await.unwrap_err();
    assert_eq!((&error.data["kind"], &error.data["limit"]), (&json!("size_exceeded"), &json!(12)));
    assert_eq!(client.read("file:///project/src?lines=1-2").await.unwrap_err().data["parameter"], "lines");
}

/// S-01, R-107: roots by name, whole paths percent-encoded, nothing that is not served.
#[tokio::test]
async fn variables_are_completed() {
    let folder = project();
    let server = served(&folder, |options| options);
    let mut client = Client::modern(&server).unwrap();
    for template in ["file:///{root}/{+path}", "file:///{root}/{+path}{?lines}"] {
        assert_eq!(client.complete(template, "root", "pro", &[]).await.unwrap().values, ["project"]);
        for (typed, values) in [
            ("", &["README.md", "picture.png", "src/"][..]),
            ("src/", &["src/a%20b%25.txt", "src/main.rs"]),
            ("secret/", &[]),
            (".", &[]),
            ("build", &[]),
            ("../", &[]),
            ("..%2F", &[]),
        ] {
            let found = client.complete(template, "path", typed, &[("root", "project")]).await.unwrap();
            let mut found = found.values;
            found.sort();
            assert_eq!(found, values, "{typed}");
        }
        assert!(client.complete(template, "path", "", &[("root", "other")]).await.unwrap().values.is_empty());
    }
}

/// An error without the URI that it repeats.
fn bare(error: &mcp_resources_runtime::testing::ServerError, uri: &str) -> String {
    format!("{} {} {}", error.code, error.message, error.data).replace(&json!(uri).to_string(), "URI")
}

/// Ways to spell what may not be read.
fn hostile() -> Vec<String> {
    let text = include_str!("../../fixtures/guard/hostile.json");
    let fixture: Value = serde_json::from_str(text).unwrap();
    let hostile =
        fixture["cases"][0]["never"].as_array().unwrap().iter().map(|uri| uri.as_str().unwrap().to_owned());
    let own = [
        ".env",
        "%2Eenv",
        "~2Eenv",
        "secret",
        "secret/",
        "secret/key",
        "%73ecret/key",
        "secret%2Fkey",
        "build/x",
        "build",
        ".gitignore",
        "src/../.env",
        "src/main.rs/",
        "README.md/..",
        "SRC/main.rs",
        "src//main.rs",
        "~73rc/main.rs",
    ];
    // Files that the policy there denies, and that are served here.
    let hostile = hostile.filter(|uri| !["file:///", "file:///project"].contains(&&**uri));
    hostile.chain(own.iter().map(|path| format!("file:///project/{path}"))).collect()
}

/// S-01, S-11, S-18, R-075: whatever way a URI spells what is hidden, ignored, denied or outside, it is what an absent one
/// is, and no notification names it.
#[tokio::test]
async fn hostile_spellings_lead_nowhere() {
    let folder = project();
    let uris = hostile();
    for symlinks in [Symlinks::Never, Symlinks::Inside] {
        let server = served(&folder, |options| options.symlinks(symlinks));
        let mut client = Client::modern(&server).unwrap();
        let mut legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
        let absent = client.read("file:///project/absent").await.unwrap_err();
        let absent = bare(&absent, "file:///project/absent");
        for uri in &uris {
            let error = match client.read(uri).await {
                Ok(result) => panic!("{uri} is {result}"),
                Err(error) => error,
            };
            assert!(bare(&error, uri) == absent || error.data["kind"] == "invalid_uri", "{uri}: {error:?}");
            let again = legacy.read(uri).await.unwrap_err();
            assert!(!format!("{again:?}").contains("CANARY"), "{uri}");
            let typed = uri.strip_prefix("file:///project/").unwrap_or(uri);
            let arguments = [("root", "project")];
            // Characters that a URI cannot contain are refused.
            let found = client
                .complete("file:///{root}/{+path}", "path", typed, &arguments)
                .await
                .unwrap_or_default();
            let is_own = |value: &String| {
                ["README.md", "picture.png", "src/"].iter().any(|own| value.starts_with(own))
            };
            assert!(found.values.iter().all(is_own), "{uri}: {found:?}");
        }
        let listed = format!("{:?}", client.list_resources().await.unwrap());
        assert!(!["secret", ".env", "build", "etc"].iter().any(|hidden| listed.contains(hidden)), "{listed}");
        let watched =
            ["file:///project/secret/key", "file:///project/../etc/passwd", "file:///project/README.md"];
        let listen = client.listen(&watched, false).await.unwrap();
        assert_eq!(listen.honoured["resourceSubscriptions"], json!(["file:///project/README.md"]));
        for uri in watched {
            let _ = server.notify_updated(uri);
        }
        assert_eq!(client.next(&listen).await.unwrap().params["uri"], "file:///project/README.md");
    }
}

/// S-01: a server that has files twice has the roots of both; one that is gone is not found, and comes back.
#[tokio::test]
async fn roots_join_and_come_back() {
    let folder = project();
    let one = Files::new(FileOptions::new().root("one", folder.0.join("project"))).unwrap();
    let two = Files::new(FileOptions::new().root("two", folder.0.join("etc")).list_max(0)).unwrap();
    let server = ResourceServer::builder("files", "1").mount(one.join(two).unwrap()).build().unwrap();
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(uris(&client.read("file:///").await.unwrap()), ["file:///one/", "file:///two/"]);
    assert_eq!(client.read_text("file:///two/passwd").await.unwrap(), "CANARY");
    let before = client.list_resources().await.unwrap().len();
    fs::rename(folder.0.join("project"), folder.0.join("gone")).unwrap();
    let error = client.read("file:///one/README.md").await.unwrap_err();
    assert_eq!(error.data["kind"], "not_found");
    assert_eq!(client.read("file:///one/").await.unwrap_err().data["kind"], "not_found");
    assert_eq!(client.list_resources().await.unwrap().len(), 3);
    fs::rename(folder.0.join("gone"), folder.0.join("project")).unwrap();
    assert_eq!(client.list_resources().await.unwrap().len(), before);
    assert!(client.read("file:///one/README.md").await.is_ok());
}

/// S-01: a root may have any name that is one segment of a URI, and is read by the URI under which it is listed.
#[tokio::test]
async fn roots_of_any_name() {
    let folder = project();
    let names = ["my project", "100%", "~41", "\u{65e5}\u{672c}", ".config", "c:x", "...", "a\\b", "what?#"];
    let src = folder.0.join("project/src");
    let options = names.iter().fold(FileOptions::new(), |options, name| options.root(*name, &src));
    let server = ResourceServer::builder("files", "1").mount(Files::new(options).unwrap()).build().unwrap();
    let mut client = Client::modern(&server).unwrap();
    let index = client.read("file:///").await.unwrap();
    let roots: Vec<String> = uris(&index).into_iter().map(str::to_owned).collect();
    assert_eq!(roots.len(), names.len());
    for root in &roots {
        for uri in [root.clone(), root.trim_end_matches('/').to_owned(), format!("{root}main.rs")] {
            assert!(client.read(&uri).await.is_ok(), "{uri}");
        }
    }
    let listed = client.list_resources().await.unwrap();
    assert_eq!(listed.len(), 1 + 3 * names.len());
    for item in &listed {
        assert!(client.read(item["uri"].as_str().unwrap()).await.is_ok(), "{item}");
    }
    let template = "file:///{root}/{+path}";
    let completed = client.complete(template, "root", "", &[]).await.unwrap().values;
    assert_eq!(completed.len(), names.len());
    for root in completed {
        let found = client.complete(template, "path", "ma", &[("root", &root)]).await.unwrap();
        assert_eq!(found.values, ["main.rs"], "{root}");
    }
}

/// S-01, R-101: a page looks into a bounded number of directories; the walk goes on behind them.
#[tokio::test]
async fn a_walk_through_many_directories_ends() {
    let folder = Folder::new();
    for number in 0..600 {
        fs::create_dir_all(folder.0.join(format!("project/{:02}/{number:04}", number / 100))).unwrap();
    }
    folder.write("project/zz/last", "x");
    let server = served(&folder, |options| options);
    let mut client = Client::modern(&server).unwrap();
    let listed = client.list_resources().await.unwrap();
    let listed: Vec<&str> = listed.iter().map(|item| item["uri"].as_str().unwrap()).collect();
    assert_eq!(listed, ["file:///", "file:///project/", "file:///project/zz/last"]);
}
