//! Files that clients watch: what they hear, and that nothing is left when they have gone.

use mcp_resources_engine::version::Revision;
use mcp_resources_providers::files::{FileOptions, Files};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::{Client, Listen, MessageKind, Notification};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long something that must come may take.
const LONG: Duration = Duration::from_secs(60);
const A: &str = "file:///r/d/a";

/// A directory of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mcp-watched-{}-{number}", std::process::id()));
        fs::create_dir_all(path.join("d")).unwrap();
        let folder = Self(path);
        folder.write("d/a", "1");
        folder
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.0.join(path), text).unwrap();
    }

    fn serve(&self, change: impl FnOnce(FileOptions) -> FileOptions) -> ResourceServer {
        let files = Files::new(change(FileOptions::new().root("r", &self.0))).unwrap();
        ResourceServer::builder("files", "1").mount(files).build().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// S-01, R-083, R-077: a legacy client is notified of the file that it has subscribed to, and of new files.
#[tokio::test]
async fn a_legacy_client_hears() {
    let folder = Folder::new();
    let server = folder.serve(|options| options);
    let mut client = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    assert_eq!(client.read_text(A).await.unwrap(), "1");
    client.subscribe(A).await.unwrap();
    folder.write("d/a", "2");
    while client.read_text(A).await.unwrap() != "2" {
        next_of(&mut client, "notifications/resources/updated").await;
    }
    folder.write("d/b", "");
    while client.list_resources().await.unwrap().iter().all(|item| item["uri"] != "file:///r/d/b") {
        next_of(&mut client, "notifications/resources/list_changed").await;
    }
}

async fn next(client: &mut Client, listen: &Listen) -> Notification {
    tokio::time::timeout(LONG, client.next(listen)).await.expect("a change was expected").unwrap()
}

async fn next_of(client: &mut Client, method: &str) {
    let next = async { while client.notification().await.unwrap()["method"] != method {} };
    tokio::time::timeout(LONG, next).await.unwrap_or_else(|_| panic!("{method} was expected"));
}

/// S-01, R-092: a client of 2026-07-28 is notified of files, of lines of them, and of directories.
#[tokio::test]
async fn a_modern_client_hears() {
    let folder = Folder::new();
    let server = folder.serve(|options| options);
    let mut client = Client::modern(&server).unwrap();
    let uris = [A, "file:///r/d/a?lines=1", "file:///r/d/"];
    for uri in uris {
        client.read(uri).await.unwrap();
        let listen = client.listen(&[uri], false).await.unwrap();
        if uri == uris[2] {
            folder.write("d/b", "");
        } else {
            folder.write("d/a", uri);
        }
        let heard = tokio::time::timeout(LONG, client.next(&listen)).await;
        let heard = heard.unwrap_or_else(|_| panic!("a change of {uri} was expected")).unwrap();
        assert_eq!((heard.kind, heard.params["uri"].as_str()), (MessageKind::Updated, Some(uri)));
    }
}

/// S-01: polling is logged once, with the name of the mount.
#[tokio::test]
async fn the_author_is_told_of_polling() {
    let folder = Folder::new();
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = said.clone();
    let files = Files::new(FileOptions::new().root("r", &folder.0).watch_dirs(1)).unwrap();
    let server = ResourceServer::builder("files", "1")
        .mount(files)
        .diagnostics(move |diagnostic| log.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    let mut client = Client::modern(&server).unwrap();
    client.read(A).await.unwrap();
    let listen = client.listen(&[A], true).await.unwrap();
    for text in ["2", "3"] {
        folder.write("d/a", text);
        while next(&mut client, &listen).await.kind != MessageKind::Updated {}
    }
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("files: there is more to watch than watch_dirs=1 allows"), "{said:?}");
}

/// S-01: a thousand clients watch and leave, in every way; threads, descriptors and watches are as many as before. In a
/// process of its own, because all of these are the process's.
#[test]
fn nothing_is_left_of_a_thousand_clients() {
    const ALONE: &str = "MCP_RESOURCES_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "watching::nothing_is_left_of_a_thousand_clients"]).env(ALONE, "1");
        let output = own.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(come_and_go());
}

async fn come_and_go() {
    let folder = Folder::new();
    let server = folder.serve(|options| options);
    let before = held();
    for round in 0..10 {
        let mut clients = Vec::new();
        for number in 0..100 {
            let mut client = Client::modern(&server).unwrap();
            let own = format!("file:///r/d/{number}");
            let listen = client.listen(&[A, &own], number % 2 == 0).await.unwrap();
            clients.push((client, listen));
        }
        folder.write("d/a", &"x".repeat(round + 2));
        for (client, listen) in &mut clients {
            while next(client, listen).await.params["uri"] != A {}
        }
        assert!(held().2 > 0);
        // Half of them say so, the others are gone.
        for (client, listen) in clients.iter_mut().step_by(2) {
            client.cancel(listen.id).unwrap();
        }
        drop(clients);
        let until = Instant::now() + LONG;
        while held() != before {
            assert!(Instant::now() < until, "{:?} were held before, and {:?} are", before, held());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// How many threads, descriptors and watches this process has.
fn held() -> (usize, usize, usize) {
    let count = |dir: &str| fs::read_dir(dir).unwrap().count();
    let infos = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let texts = infos.map(|info| fs::read_to_string(info.path()).unwrap_or_default());
    let watches = texts.map(|text| text.lines().filter(|line| line.starts_with("inotify ")).count()).sum();
    (count("/proc/self/task"), count("/proc/self/fd"), watches)
}
