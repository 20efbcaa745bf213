//! Git repositories, served to a client. They are made with the `git` program, which must be installed.

mod commits;
mod damage;
mod histories;
mod refusals;
mod statuses;
mod watches;

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::git::{Git, GitOptions};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use mcp_resources_template::Values;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mcp-git-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Runs git in a directory of this one.
    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        String::from_utf8(git(&self.at(directory), arguments, b"")).unwrap()
    }

    /// A repository with a first commit.
    fn repository(&self, name: &str) {
        fs::create_dir_all(self.at(name)).unwrap();
        self.git(name, &["init", "-q", "-b", "main"]);
        self.write(format!("{name}/README.md"), "# Project\n");
        self.commit(name, "Begin");
    }

    /// Commits all that is there. Returns the id.
    fn commit(&self, name: &str, message: &str) -> String {
        self.git(name, &["add", "-A"]);
        self.git(name, &["commit", "-q", "--allow-empty", "-m", message]);
        self.git(name, &["rev-parse", "HEAD"]).trim().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs git without the configuration of this machine, each commit a minute after the one before.
fn git(directory: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    static MINUTES: AtomicUsize = AtomicUsize::new(0);
    let date = format!("{} +0100", 1_700_000_000 + 60 * MINUTES.fetch_add(1, Ordering::Relaxed));
    let mut child = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Bob"), ("GIT_COMMITTER_EMAIL", "bob@example.org")])
        .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("these tests make repositories with the git program; install git");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    output.stdout
}

fn options(folder: &Folder) -> GitOptions {
    GitOptions::new().repo("project", folder.at("project"))
}

fn served(options: GitOptions, policy: &str) -> ResourceServer {
    let builder = ResourceServer::builder("git", "1").mount(Git::new(options).unwrap());
    builder.guard(Policy::from_json(policy).unwrap()).build().unwrap()
}

fn client(options: GitOptions) -> Client {
    Client::modern(&served(options, "{}")).unwrap()
}

async fn json_at(client: &mut Client, uri: &str) -> Value {
    serde_json::from_str(&client.read_text(uri).await.unwrap()).unwrap()
}

async fn listed(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

/// The URIs of the children of a directory.
async fn children(client: &mut Client, uri: &str) -> Vec<String> {
    let read = client.read(uri).await.unwrap();
    let contents = read["contents"].as_array().unwrap();
    contents.iter().map(|child| child["uri"].as_str().unwrap().to_owned()).collect()
}

/// Values of a list of objects.
fn each<'v>(value: &'v Value, list: &str, name: &str) -> Vec<&'v str> {
    value[list].as_array().unwrap().iter().map(|item| item[name].as_str().unwrap()).collect()
}

/// A repository with a few of everything.
fn project() -> (Folder, Vec<String>) {
    let folder = Folder::new();
    folder.repository("project");
    let mut ids = vec![folder.git("project", &["rev-parse", "HEAD"]).trim().to_owned()];
    folder.write("project/src/main.rs", "fn main() {}\n");
    folder.write("project/src/a b%.txt", "spaced\n");
    folder.write("project/.env", "CANARY\n");
    ids.push(folder.commit("project", "Add sources\n\nAnd say why."));
    folder.git("project", &["tag", "v1"]);
    folder.git("project", &["tag", "-a", "v2", "-m", "The second"]);
    folder.git("project", &["branch", "feature/x"]);
    folder.write("project/src/main.rs", "fn main() { run() }\n");
    ids.push(folder.commit("project", "Run"));
    (folder, ids)
}

/// S-02, R-058: each form is listed or read, in both eras.
#[tokio::test]
async fn every_form_is_served() {
    let (folder, ids) = project();
    folder.write("project/new.txt", "new");
    folder.write("project/README.md", "# Changed\n");
    let server = served(options(&folder), "{}");
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let uris = listed(&mut client).await;
        for rest in [
            "",
            "project/status",
            "project/branches",
            "project/tags",
            "project/log",
            "project/log/feature~2Fx",
        ] {
            assert!(uris.contains(&format!("git:///{rest}")), "{uris:?}");
        }
        for uri in &uris {
            assert!(client.read(uri).await.is_ok(), "{uri}");
        }
        assert_eq!(client.list_templates().await.unwrap().len(), 9);
        let index = json_at(&mut client, "git:///").await;
        assert_eq!(index["project"]["log"], "git:///project/log");

        let status = json_at(&mut client, "git:///project/status").await;
        assert_eq!((&status["branch"], &status["head"]), (&json!("main"), &json!(ids[2])));
        assert_eq!(status["unstaged"], json!([{"path": "README.md", "change": "modified"}]));
        assert_eq!((&status["untracked"], &status["clean"]), (&json!(["new.txt"]), &json!(false)));

        let branches = json_at(&mut client, "git:///project/branches").await;
        assert_eq!(branches["head"], "main");
        assert_eq!(each(&branches, "branches", "name"), ["main", "feature/x"]);
        assert_eq!(each(&branches, "branches", "id"), [&*ids[2], &*ids[1]]);
        assert_eq!(each(&branches, "branches", "uri")[1], "git:///project/log/feature~2Fx");
        let tags = json_at(&mut client, "git:///project/tags").await;
        assert_eq!(each(&tags, "tags", "name"), ["v2", "v1"]);
        assert_eq!(each(&tags, "tags", "id"), [&*ids[1], &*ids[1]]);
        assert_eq!(each(&tags, "tags", "subject"), ["The second", "Add sources"]);

        let log = json_at(&mut client, "git:///project/log").await;
        assert_eq!(each(&log, "commits", "id"), [&*ids[2], &*ids[1], &*ids[0]]);
        assert_eq!(each(&log, "commits", "subject"), ["Run", "Add sources", "Begin"]);
        assert_eq!(log["commits"][0]["parents"], json!([ids[1]]));
        let author = &log["commits"][0]["author"];
        assert_eq!((&author["name"], &author["email"]), (&json!("Ada"), &json!("ada@example.org")));
        assert!(author["date"].as_str().unwrap().ends_with("+01:00"), "{author}");
        let first = json_at(&mut client, "git:///project/log?n=1").await;
        assert_eq!((each(&first, "commits", "id").len(), &first["more"]), (1, &json!(true)));
        let of = json_at(&mut client, "git:///project/log/feature~2Fx").await;
        assert_eq!(each(&of, "commits", "id"), [&*ids[1], &*ids[0]]);
        let of = json_at(&mut client, "git:///project/log?path=src/main.rs").await;
        assert_eq!(each(&of, "commits", "subject"), ["Run", "Add sources"]);

        let commit = json_at(&mut client, &format!("git:///project/commit/{}", &ids[1][..8])).await;
        assert_eq!((&commit["id"], &commit["subject"]), (&json!(ids[1]), &json!("Add sources")));
        assert_eq!(commit["message"], "Add sources\n\nAnd say why.\n");
        assert_eq!(commit["committer"]["name"], "Bob");
        assert_eq!(each(&commit, "files", "path"), ["src/a b%.txt", "src/main.rs"]);

        let diff = client.read("git:///project/diff/v1/main").await.unwrap();
        assert_eq!(diff["contents"][0]["mimeType"], "text/x-diff");
        let text = diff["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("-fn main() {}\n+fn main() { run() }\n"), "{text}");

        let root = children(&mut client, "git:///project/tree/main/").await;
        assert_eq!(root, ["git:///project/blob/main/README.md", "git:///project/tree/main/src/"]);
        let read = client.read("git:///project/tree/main/").await.unwrap();
        assert_eq!(read["contents"][1]["mimeType"], "inode/directory");
        let src = children(&mut client, "git:///project/tree/feature~2Fx/src/").await;
        assert_eq!(src[0], "git:///project/blob/feature~2Fx/src/a%20b%25.txt");
        assert_eq!(client.read_text(&src[0]).await.unwrap(), "spaced\n");
        for (revision, expected) in [
            ("main", "fn main() { run() }\n"),
            ("HEAD~1", "fn main() {}\n"),
            ("HEAD%5E", "fn main() {}\n"),
            ("v2", "fn main() {}\n"),
            (&ids[2], "fn main() { run() }\n"),
        ] {
            let uri = format!("git:///project/blob/{revision}/src/main.rs");
            assert_eq!(client.read_text(&uri).await.unwrap(), expected, "{revision}");
        }
    }
}

/// S-02, R-113: a whole id names the same contents for ever; a name does not.
#[tokio::test]
async fn only_what_cannot_change_is_kept() {
    let (folder, ids) = project();
    let mut client = client(options(&folder));
    for (revision, ttl) in [(&*ids[0], 86_400_000), (&ids[0][..12], 0), ("main", 0), ("HEAD", 0)] {
        let read = client.read(&format!("git:///project/blob/{revision}/README.md")).await.unwrap();
        assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(ttl), &json!("private")), "{revision}");
    }
}

/// S-02, S-11: what is hidden, excluded, not included, or denied is in no tree, diff, commit, log, status or completion.
#[tokio::test]
async fn what_is_not_served_is_nowhere() {
    let folder = Folder::new();
    folder.repository("project");
    let all =
        ["src/main.rs", ".env", ".ci/run", "drafts/CANARY", "secret/CANARY", "other.txt", "src/CANARY.pem"];
    for path in all {
        folder.write(format!("project/{path}"), "CANARY\n");
    }
    folder.write("project/src/main.rs", "fn main() {}\n");
    let first = folder.commit("project", "Add");
    for path in all {
        folder.write(format!("project/{path}"), "CANARY again\n");
    }
    folder.write("project/src/main.rs", "fn main() { }\n");
    folder.write("project/drafts/new-CANARY", "");
    folder.write("project/secret/new-CANARY", "");
    let options =
        options(&folder).include(["src/**", "drafts/**", "secret/**"]).exclude(["drafts", "**/*.pem"]);
    let policy = r#"{"deny": ["git:///project/*/*/secret/**", "git:///project/*/*/secret"]}"#;
    let mut client = Client::modern(&served(options, policy)).unwrap();
    let mut seen = String::new();
    for _ in 0..2 {
        for uri in [
            "status",
            "branches",
            "tags",
            "log",
            "commit/HEAD",
            "diff/HEAD~1/HEAD",
            "tree/HEAD/",
            "tree/HEAD/src/",
            "log?path=src",
            "blob/HEAD/src/main.rs",
        ] {
            let read = client.read(&format!("git:///project/{uri}")).await.expect(uri);
            seen.push_str(&read.to_string());
        }
        folder.commit("project", "Again");
    }
    assert!(seen.contains("src/main.rs") && !seen.contains("CANARY") && !seen.contains(".env"), "{seen}");
    assert!(!seen.contains("secret") && !seen.contains("drafts") && !seen.contains("other.txt"), "{seen}");
    assert_eq!(children(&mut client, "git:///project/tree/HEAD/").await, ["git:///project/tree/HEAD/src/"]);

    let mut answers = Vec::new();
    for rest in [
        "blob/HEAD/none",
        "blob/HEAD/.env",
        "blob/HEAD/.ci/run",
        "blob/HEAD/drafts/CANARY",
        "blob/HEAD/secret/CANARY",
        "blob/HEAD/src/CANARY.pem",
        "blob/HEAD/other.txt",
        "blob/HEAD/src",
        "blob/HEAD/src/main.rs/",
        "blob/HEAD/../x",
        "blob/HEAD/src/~6Dain.rs",
        "blob/none/src/main.rs",
        "blob/HEAD~9/src/main.rs",
        "blob/ffffffff/src/main.rs",
        "tree/HEAD/src/main.rs",
        "tree/HEAD/secret/",
        "tree/HEAD/.ci/",
        "log/none",
        "commit/0000000000000000000000000000000000000000",
        "log?path=secret/CANARY",
        "log?path=.env",
        "log?path=none",
        "nothing",
    ] {
        let uri = format!("git:///project/{rest}");
        let error = client.read(&uri).await.unwrap_err();
        answers.push(format!("{error:?}").replace(&uri, "URI"));
    }
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
    for (typed, expected) in [("", &["src/"][..]), ("s", &["src/"]), ("src/", &["src/main.rs"]), (".", &[])] {
        let found = client.complete("git:///{repo}/blob/{ref}/{+path}", "path", typed, &[]).await.unwrap();
        assert_eq!(found.values, expected, "{typed}");
    }
    assert!(client.read(&format!("git:///project/blob/{first}/src/main.rs")).await.is_ok());
}

/// S-02, S-11: a branch that the guard hides is in no list and no completion.
#[tokio::test]
async fn a_hidden_branch_is_nowhere() {
    let (folder, _) = project();
    folder.git("project", &["branch", "secret/plan"]);
    let policy = r#"{"deny": ["git:///project/*/secret~2F*", "git:///project/*/secret~2F*/**"]}"#;
    let mut client = Client::modern(&served(options(&folder), policy)).unwrap();
    let mut seen = format!("{:?}", listed(&mut client).await);
    seen.push_str(&client.read_text("git:///project/branches").await.unwrap());
    let found = client.complete("git:///{repo}/log/{ref}", "ref", "", &[]).await.unwrap();
    assert_eq!(found.values, ["HEAD", "feature~2Fx", "main", "v1", "v2"]);
    folder.git("project", &["checkout", "-q", "secret/plan"]);
    seen.push_str(&client.read_text("git:///project/branches").await.unwrap());
    seen.push_str(&client.read_text("git:///project/status").await.unwrap());
    assert!(!seen.contains("secret"), "{seen}");
}

/// S-02, R-105: references by name, however they are typed; paths of the revision that was chosen.
#[tokio::test]
async fn completion_follows_the_revision() {
    let (folder, ids) = project();
    folder.write("project/later/x", "");
    folder.commit("project", "Later");
    let mut client = client(options(&folder));
    let template = "git:///{repo}/blob/{ref}/{+path}";
    for (typed, expected) in [
        ("f", &["feature~2Fx"][..]),
        ("feature/", &["feature~2Fx"]),
        ("feature~2F", &["feature~2Fx"]),
        ("v", &["v1", "v2"]),
        ("H", &["HEAD"]),
        ("x", &[]),
    ] {
        let found = client.complete(template, "ref", typed, &[("repo", "project")]).await.unwrap();
        assert_eq!(found.values, expected, "{typed}");
    }
    for (revision, typed, expected) in [
        ("main", "", &["README.md", "later/", "src/"][..]),
        ("feature~2Fx", "", &["README.md", "src/"]),
        (&ids[0], "", &["README.md"]),
        ("main", "src/", &["src/a%20b%25.txt", "src/main.rs"]),
        ("main", "src/a b", &["src/a%20b%25.txt"]),
        ("main", "src/a%20", &["src/a%20b%25.txt"]),
        ("none", "", &[]),
        ("@{-1}", "", &[]),
    ] {
        let context = [("repo", "project"), ("ref", revision)];
        let found = client.complete(template, "path", typed, &context).await.unwrap();
        assert_eq!(found.values, expected, "{revision} {typed}");
    }
    let directories =
        client.complete("git:///{repo}/tree/{ref}/{+path}", "path", "", &[("ref", "main")]).await;
    assert_eq!(directories.unwrap().values, ["later/", "src/"]);
    let found = client.complete("git:///{repo}/commit/{id}", "id", &ids[0][..6], &[]).await.unwrap();
    assert_eq!(found.values, [&*ids[0]]);
    let found = client.complete("git:///{repo}/log{?n,path}", "n", "1", &[]).await.unwrap();
    assert_eq!(found.values, ["10", "100", "1000"]);
}

/// S-02: bare repositories, linked worktrees, a detached HEAD, an unborn branch, packed references and objects.
#[tokio::test]
async fn repositories_of_every_shape() {
    let (folder, ids) = project();
    folder.git("", &["clone", "-q", "--bare", "project", "bare.git"]);
    folder.git("project", &["worktree", "add", "-q", "../tree", "feature/x"]);
    fs::create_dir(folder.at("unborn")).unwrap();
    folder.git("unborn", &["init", "-q", "-b", "trunk"]);
    folder.git(
        "",
        &["clone", "-q", "--depth=1", &format!("file://{}", folder.at("project").display()), "shallow"],
    );
    folder.git("project", &["gc", "-q"]);
    let options = options(&folder)
        .repo("bare", folder.at("bare.git"))
        .repo("tree", folder.at("tree"))
        .repo("unborn", folder.at("unborn"))
        .repo("shallow", folder.at("shallow"));
    let mut client = client(options);
    let uris = listed(&mut client).await;
    assert!(
        !uris.contains(&"git:///bare/status".to_owned()) && uris.contains(&"git:///tree/status".to_owned())
    );
    for (repository, commits, branch) in
        [("project", 3, "main"), ("bare", 3, "main"), ("tree", 2, "feature/x"), ("shallow", 1, "main")]
    {
        let log = json_at(&mut client, &format!("git:///{repository}/log")).await;
        assert_eq!(each(&log, "commits", "id").len(), commits, "{repository}");
        let branches = json_at(&mut client, &format!("git:///{repository}/branches")).await;
        assert_eq!(branches["head"], branch, "{repository}");
        let uri = format!("git:///{repository}/blob/HEAD/README.md");
        assert_eq!(client.read_text(&uri).await.unwrap(), "# Project\n");
    }
    assert!(client.read("git:///bare/status").await.is_err());
    let status = json_at(&mut client, "git:///tree/status").await;
    assert_eq!((&status["branch"], &status["clean"]), (&json!("feature/x"), &json!(true)));

    let status = json_at(&mut client, "git:///unborn/status").await;
    assert_eq!((&status["branch"], &status["head"]), (&json!("trunk"), &Value::Null));
    for (rest, list) in [("log", "commits"), ("branches", "branches"), ("tags", "tags")] {
        assert_eq!(json_at(&mut client, &format!("git:///unborn/{rest}")).await[list], json!([]));
    }
    assert!(client.read("git:///unborn/log/HEAD").await.is_err());
    folder.git("project", &["checkout", "-q", "--detach", &ids[0]]);
    let status = json_at(&mut client, "git:///project/status").await;
    assert_eq!((&status["branch"], &status["head"]), (&Value::Null, &json!(ids[0])));
    assert_eq!(each(&json_at(&mut client, "git:///project/log/HEAD").await, "commits", "id"), [&*ids[0]]);
    // The first commit of a repository that was served before it had one.
    folder.write("unborn/a.txt", "a");
    folder.commit("unborn", "First");
    assert_eq!(client.read_text("git:///unborn/blob/trunk/a.txt").await.unwrap(), "a");
}

/// S-02: the oldest commit of a shallow clone counts as a first one, as it does for git.
#[tokio::test]
async fn the_end_of_a_shallow_clone() {
    let (folder, ids) = project();
    let url = format!("file://{}", folder.at("project").display());
    folder.git("", &["clone", "-q", "--depth=1", &url, "shallow"]);
    let mut client = client(GitOptions::new().repo("project", folder.at("shallow")));
    let commit = json_at(&mut client, "git:///project/commit/HEAD").await;
    assert_eq!(commit["id"], ids[2]);
    assert_eq!(each(&commit, "files", "path"), ["README.md", "src/a b%.txt", "src/main.rs"]);
    // A fetch of older commits leaves the newest one as it is.
    let listen = client.listen(&["git:///project/log"], false).await.unwrap();
    assert_eq!(each(&json_at(&mut client, "git:///project/log").await, "commits", "id"), [&*ids[2]]);
    folder.git("shallow", &["fetch", "-q", "--unshallow"]);
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "git:///project/log");
    assert_eq!(each(&json_at(&mut client, "git:///project/log").await, "commits", "id").len(), 3);
}

/// S-02: messages and names are in the encoding that the commit names, as `git log` shows them.
#[tokio::test]
async fn commits_in_other_encodings() {
    let folder = Folder::new();
    folder.repository("project");
    for (label, text) in
        [("ISO-8859-1", &b"caf\xe9"[..]), ("Shift_JIS", b"\x8c\x9f\x8d\xf5"), ("none", b"caf\xe9")]
    {
        folder.write("message", [text, b"\n\n", text].concat());
        let setting = format!("i18n.commitEncoding={label}");
        folder.git("project", &["-c", &setting, "commit", "-q", "--allow-empty", "-F", "../message"]);
    }
    let mut client = client(options(&folder));
    let log = json_at(&mut client, "git:///project/log?n=3").await;
    assert_eq!(each(&log, "commits", "subject"), ["caf\u{fffd}", "検索", "café"]);
    let commit = json_at(&mut client, "git:///project/commit/HEAD~1").await;
    assert_eq!(commit["message"], "検索\n\n検索\n");
}

/// S-02: each reference that is listed is read by its URI, also if a tag, HEAD or a branch of another folder has its name.
#[tokio::test]
async fn names_that_two_references_have() {
    let (folder, ids) = project();
    let refs = [
        ("refs/remotes/origin/main", 0),
        ("refs/remotes/origin/HEAD", 0),
        ("refs/heads/v1", 2),
        (&*format!("refs/heads/{}", ids[0]), 1),
    ];
    for (name, at) in refs {
        folder.git("project", &["update-ref", name, &ids[at]]);
    }
    folder.git("project", &["tag", "tree", "HEAD^{tree}"]);
    let mut client = client(options(&folder).refs(["heads", "remotes/origin", "tags"]));
    let branches = json_at(&mut client, "git:///project/branches").await;
    let names = ["heads/v1", "main", "feature/x", &format!("heads/{}", ids[0]), "remotes/origin/HEAD"];
    assert_eq!(each(&branches, "branches", "name"), [&names[..], &["remotes/origin/main"]].concat());
    for branch in branches["branches"].as_array().unwrap() {
        let log = json_at(&mut client, branch["uri"].as_str().unwrap()).await;
        assert_eq!(log["commits"][0]["id"], branch["id"], "{branch}");
    }
    // A tag of a tree has no commits.
    let log = json_at(&mut client, "git:///project/log/tree").await;
    assert_eq!(log, json!({"commits": [], "more": false}));
}

/// S-02: what is staged in a sparse index, and a file that becomes a link.
#[tokio::test]
async fn what_is_staged_in_a_sparse_index() {
    let folder = Folder::new();
    folder.repository("project");
    for path in ["in/a", "in/b", "out/c", "out/deep/d"] {
        folder.write(format!("project/{path}"), "a\n");
    }
    folder.commit("project", "Add");
    folder.git("project", &["sparse-checkout", "init", "--cone", "--sparse-index"]);
    folder.git("project", &["sparse-checkout", "set", "in"]);
    assert!(folder.git("project", &["ls-files", "--sparse"]).contains("out/\n"));
    let mut client = client(options(&folder));
    assert_eq!(json_at(&mut client, "git:///project/status").await["clean"], true);
    folder.write("project/in/a", "b\n");
    fs::remove_file(folder.at("project/in/b")).unwrap();
    symlink("a", folder.at("project/in/b")).unwrap();
    folder.git("project", &["add", "in"]);
    let status = json_at(&mut client, "git:///project/status").await;
    let staged = json!([{"path": "in/a", "change": "modified"}, {"path": "in/b", "change": "type_changed"}]);
    assert_eq!((&status["staged"], &status["unstaged"]), (&staged, &json!([])));
}

/// S-02: the values that complete the path of a log can be put into its template, which percent-encodes them.
#[tokio::test]
async fn a_completed_path_of_a_log_is_read() {
    let (folder, _) = project();
    let mut client = client(options(&folder));
    let found = client.complete("git:///{repo}/log{?n,path}", "path", "src/a", &[]).await.unwrap();
    assert_eq!(found.values, ["src/a b%.txt"]);
    let values = Values::new().with("repo", "project").with("path", &*found.values[0]);
    let uri = mcp_resources_template::expand("git:///{repo}/log{?n,path}", &values).unwrap();
    let log = json_at(&mut client, &uri).await;
    assert_eq!(each(&log, "commits", "subject"), ["Add sources"]);
}

/// S-02: merges: the log of a path is git's own.
#[tokio::test]
async fn the_log_of_a_path_is_that_of_git() {
    let folder = Folder::new();
    folder.repository("project");
    for turn in 0..6 {
        folder.git("project", &["checkout", "-q", "-b", &format!("side{turn}"), "main"]);
        folder.write(format!("project/file{}.txt", turn % 3), format!("side {turn}\n"));
        folder.commit("project", &format!("Side {turn}"));
        folder.git("project", &["checkout", "-q", "main"]);
        folder.write("project/main.txt", format!("{turn}"));
        folder.commit("project", &format!("Main {turn}"));
        folder.git("project", &["merge", "-q", "--no-edit", &format!("side{turn}")]);
    }
    folder.git("project", &["rm", "-q", "file1.txt"]);
    folder.commit("project", "Remove");
    let mut client = client(options(&folder));
    for path in ["file0.txt", "file1.txt", "main.txt", "README.md"] {
        let expected = folder.git("project", &["log", "--format=%H", "--", path]);
        let log = json_at(&mut client, &format!("git:///project/log?path={path}")).await;
        assert_eq!(each(&log, "commits", "id"), expected.lines().collect::<Vec<_>>(), "{path}");
    }
    let expected = folder.git("project", &["log", "--format=%H"]);
    let log = json_at(&mut client, "git:///project/log").await;
    let mut ids = each(&log, "commits", "id");
    let mut expected: Vec<&str> = expected.lines().collect();
    assert_eq!(ids[0], expected[0]);
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected);
}

/// S-02: git takes each patch, and has the other tree then.
#[tokio::test]
async fn git_applies_every_diff() {
    let folder = Folder::new();
    folder.repository("project");
    let at = |path: &str| format!("project/{path}");
    let lines = |changed: usize| -> String {
        (0..200)
            .map(|n| if n % 40 == changed { format!("{n} changed\n") } else { format!("{n}\n") })
            .collect()
    };
    folder.write(at("long.txt"), lines(1));
    folder.write(at("no-newline"), "a\nb");
    folder.write(at("crlf"), "a\r\nb\r\n");
    folder.write(at("binary"), b"\0\x01\x02 binary");
    folder.write(at("latin1"), b"caf\xe9\n");
    folder.write(at("gone"), "gone\n");
    folder.write(at("gone-binary"), b"gone\0");
    folder.write(at("gone-empty"), "");
    folder.write(at("script"), "#!/bin/sh\n");
    folder.write(at("both"), "one\n");
    folder.write(at("becomes-directory"), "file\n");
    folder.write(at("becomes-file/x"), "x\n");
    folder.write(at("with space"), "a\n");
    folder.write(at("quote\"d"), "a\n");
    folder.write(at("検索"), "a\n");
    folder.write(at("tab\there"), "a\n");
    folder.write(at("moved"), "moved\n".repeat(20));
    symlink("README.md", folder.at(at("link"))).unwrap();
    symlink("README.md", folder.at(at("link-becomes-file"))).unwrap();
    let first = folder.commit("project", "First");
    for (path, bytes) in [
        ("long.txt", lines(3).into_bytes()),
        ("no-newline", b"a\nc".to_vec()),
        ("crlf", b"a\r\nc\r\n".to_vec()),
        ("binary", (0..=255).cycle().take(3_000).collect()),
        ("latin1", b"caf\xe8\n".to_vec()),
        ("both", b"two\n".to_vec()),
        ("with space", b"b\n".to_vec()),
        ("quote\"d", b"b\n".to_vec()),
        ("検索", b"b\n".to_vec()),
        ("tab\there", b"b\n".to_vec()),
        ("new/file", b"new\nwithout newline".to_vec()),
        ("new/empty", Vec::new()),
        ("new/binary", vec![0; 100]),
    ] {
        folder.write(at(path), bytes);
    }
    for path in ["gone", "gone-binary", "gone-empty", "becomes-directory", "link", "link-becomes-file"] {
        fs::remove_file(folder.at(at(path))).unwrap();
    }
    fs::remove_dir_all(folder.at(at("becomes-file"))).unwrap();
    folder.write(at("becomes-file"), "file now\n");
    folder.write(at("becomes-directory/x"), "x\n");
    folder.write(at("link-becomes-file"), "a file\n");
    symlink("long.txt", folder.at(at("link"))).unwrap();
    fs::rename(folder.at(at("moved")), folder.at(at("moved-here"))).unwrap();
    for path in ["script", "both"] {
        fs::set_permissions(folder.at(at(path)), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let second = folder.commit("project", "Second");
    let mut client = client(options(&folder));
    for (from, to) in [(&first, &second), (&second, &first), (&first, &first)] {
        let uri = format!("git:///project/diff/{from}/{to}");
        let patch = client.read_text(&uri).await.unwrap();
        folder.git("project", &["checkout", "-q", "--detach", from]);
        if !patch.is_empty() {
            git(&folder.at("project"), &["apply", "--index", "--whitespace=nowarn", "-"], patch.as_bytes());
        }
        let tree = folder.git("project", &["write-tree"]);
        assert_eq!(tree, folder.git("project", &["rev-parse", &format!("{to}^{{tree}}")]), "{patch}");
        folder.git("project", &["reset", "-q", "--hard"]);
        // Without the index too, as people do.
        if !patch.is_empty() {
            git(&folder.at("project"), &["apply", "--whitespace=nowarn", "-"], patch.as_bytes());
        }
        folder.git("project", &["add", "-A"]);
        assert_eq!(tree, folder.git("project", &["write-tree"]));
        folder.git("project", &["reset", "-q", "--hard"]);
    }
}
