//! Folders of skills, served to a client: the methods of the skills extension, and the same skills as resources.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::skills::{SkillOptions, Skills};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::{Client, ServerError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mcp-skills-{}-{number}", std::process::id()));
        fs::create_dir_all(path.join("skills")).unwrap();
        Self(path)
    }

    /// The skills of most tests.
    fn usual() -> Self {
        let folder = Self::new();
        let metadata =
            "license: Apache-2.0\nmetadata: {version: \"2.1.0\", tags: [b, a], deep: {on: yes, n: 1.50}}\n";
        folder.skill("git-workflow", "Follow the conventions", "");
        folder.skill("acme/billing/refunds", "Process refunds", metadata);
        folder.skill("pdf", "Fill forms", "");
        folder.skill("pdf/parts/ocr", "Read scans", "");
        for (path, bytes) in [
            ("acme/billing/refunds/examples/email.md", &b"Dear\r\ncustomer"[..]),
            ("acme/billing/refunds/templates/b.md", b"b"),
            ("acme/billing/refunds/templates/a file#1.md", b"\xef\xbb\xbfa"),
            ("acme/billing/refunds/templates/regional/eu.md", b""),
            ("pdf/logo.png", b"\x89PNG\r\n\x1a\n\0\xff"),
            ("pdf/parts/ocr/run.py", b"print()"),
            ("loose.md", b"not in a skill"),
            ("acme/README.md", b"not in a skill"),
        ] {
            folder.write(path, bytes);
        }
        folder
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join("skills").join(path)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn skill(&self, path: &str, description: &str, more: &str) {
        let name = path.rsplit('/').next().unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n{more}---\n\n# {name}\n");
        self.write(&format!("{path}/SKILL.md"), text);
    }

    fn options(&self) -> SkillOptions {
        SkillOptions::new().path(self.0.join("skills"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn served(options: SkillOptions, policy: &str, page: usize) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let mut limits = Limits::default();
    limits.page = page;
    let server = ResourceServer::builder("skills", "1")
        .mount(Skills::new(options).unwrap())
        .guard(Policy::from_json(policy).unwrap())
        .limits(limits)
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

fn client(folder: &Folder) -> Client {
    Client::modern(&served(folder.options(), "{}", 100).0).unwrap()
}

async fn skills(client: &mut Client) -> Vec<Value> {
    pages(client, "skills/list", json!({}), "skills").await
}

/// All pages of a list.
async fn pages(client: &mut Client, method: &str, mut params: Value, member: &str) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let mut result = client.request(method, params.clone()).await.unwrap();
        all.append(result[member].as_array_mut().unwrap());
        match result.get("nextCursor") {
            Some(next) => params["cursor"] = next.clone(),
            None => return all,
        }
    }
}

fn uris(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["uri"].as_str().unwrap()).collect()
}

async fn get(client: &mut Client, uri: &str) -> Result<Value, ServerError> {
    client.request("skills/get", json!({ "uri": uri })).await
}

async fn directory(client: &mut Client, uri: &str) -> Result<Value, ServerError> {
    client.request("resources/directory/read", json!({ "uri": uri })).await
}

/// The output of another program.
fn sha256sum(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_start_matches('\\')[..64].to_owned()
}

/// S-50, S-54, S-56: each entry has the front matter verbatim and every file with its digest, in both eras.
#[tokio::test]
async fn entries_are_complete() {
    let folder = Folder::usual();
    let (server, log) = served(folder.options(), "{}", 100);
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let skills = skills(&mut client).await;
        assert_eq!(
            uris(&skills),
            [
                "skill://acme/billing/refunds/SKILL.md",
                "skill://git-workflow/SKILL.md",
                "skill://pdf/SKILL.md",
                "skill://pdf/parts/ocr/SKILL.md"
            ]
        );
        let frontmatter = json!({
            "name": "refunds", "description": "Process refunds", "license": "Apache-2.0",
            "metadata": {"version": "2.1.0", "tags": ["b", "a"], "deep": {"on": "yes", "n": 1.5}},
        });
        assert_eq!(skills[0]["frontmatter"], frontmatter);
        for skill in &skills {
            let base = skill["uri"].as_str().unwrap().strip_suffix("/SKILL.md").unwrap().to_owned();
            assert!(base.ends_with(skill["frontmatter"]["name"].as_str().unwrap()));
            let mut read = Vec::new();
            for file in skill["resources"].as_array().unwrap() {
                let uri = file["uri"].as_str().unwrap();
                let path = uri.strip_prefix("skill://").unwrap().replace("%20", " ").replace("%23", "#");
                let path = folder.at(&path);
                assert_eq!(file["digest"], format!("sha256:{}", sha256sum(&path)), "{uri}");
                let bytes = fs::read(&path).unwrap();
                assert_eq!(file["size"], bytes.len());
                let contents = client.read(uri).await.unwrap()["contents"][0].clone();
                match std::str::from_utf8(&bytes) {
                    Ok(text) => assert_eq!(contents["text"], text),
                    Err(_) => assert!(contents["blob"].is_string()),
                }
                read.push(uri.to_owned());
            }
            assert!(read.iter().all(|uri| uri.starts_with(&format!("{base}/"))));
            let again = get(&mut client, &format!("{base}/SKILL.md")).await.unwrap();
            assert_eq!(again["skill"], *skill);
        }
        let pdf = &skills[2]["resources"];
        assert_eq!(
            uris(pdf.as_array().unwrap()),
            [
                "skill://pdf/SKILL.md",
                "skill://pdf/logo.png",
                "skill://pdf/parts/ocr/SKILL.md",
                "skill://pdf/parts/ocr/run.py"
            ],
            "the files of a nested skill are files of the one around it"
        );
    }
    assert_eq!(*log.lock().unwrap(), [""; 0]);
}

/// S-50, S-51, S-52, S-57: the results are complete, may not be kept, and the extension is declared with its setting.
#[tokio::test]
async fn results_have_what_the_protocol_requires() {
    let folder = Folder::usual();
    let mut client = client(&folder);
    let discovered = client.request("server/discover", json!({})).await.unwrap();
    let capabilities = &discovered["capabilities"];
    assert_eq!(
        capabilities["extensions"],
        json!({"io.modelcontextprotocol/skills": {"directoryRead": true}})
    );
    assert!(capabilities["resources"].is_object());
    let list = client.request("skills/list", json!({})).await.unwrap();
    let got = get(&mut client, "skill://pdf/SKILL.md").await.unwrap();
    let children = directory(&mut client, "skill://pdf").await.unwrap();
    for result in [&list, &got, &children] {
        assert_eq!(result["resultType"], "complete");
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
    }
    assert!(got.get("nextCursor").is_none() && list.get("nextCursor").is_none());
}

/// S-51: only the URI of a `SKILL.md` of a skill is one, and all else is the same error.
#[tokio::test]
async fn what_is_no_skill_is_invalid_params() {
    let folder = Folder::usual();
    let mut client = client(&folder);
    for uri in [
        "skill://none/SKILL.md",
        "skill://pdf",
        "skill://pdf/",
        "skill://pdf/logo.png",
        "skill://pdf/parts/SKILL.md",
        "skill://acme/SKILL.md",
        "skill:///SKILL.md",
        "skill:///",
        "file:///pdf/SKILL.md",
        "skill://pdf/SKILL.md?x",
        "skill://pdf/SKILL.md#x",
        "skill://pdf%2FSKILL.md",
        "skill://PDF/SKILL.md",
        "skill://pdf/parts/../../git-workflow/../x/SKILL.md",
    ] {
        let error = get(&mut client, uri).await.unwrap_err();
        assert_eq!(error.code, -32602, "{uri}");
        assert!(error.message.starts_with("No skill is served at "), "{uri}: {}", error.message);
    }
    for params in [json!({}), json!({"uri": 7}), json!({"uri": "no uri"}), json!({"uri": null})] {
        for method in ["skills/get", "resources/directory/read"] {
            let error = client.request(method, params.clone()).await.unwrap_err();
            assert_eq!(error.code, -32602);
            assert!(error.message.contains("uri"), "{}", error.message);
        }
    }
    assert!(get(&mut client, "SKILL://pdf/%53KILL.md").await.is_ok(), "another spelling of the same URI");
}

/// S-52: a directory gives its direct children; a subdirectory is one of them, without a slash at its end.
#[tokio::test]
async fn directories_give_their_children() {
    let folder = Folder::usual();
    fs::create_dir(folder.at("pdf/empty")).unwrap();
    let mut client = client(&folder);
    let base = "skill://acme/billing/refunds";
    let templates = directory(&mut client, &format!("{base}/templates")).await.unwrap();
    let children = templates["resources"].as_array().unwrap();
    assert_eq!(
        uris(children),
        [
            format!("{base}/templates/a%20file%231.md"),
            format!("{base}/templates/b.md"),
            format!("{base}/templates/regional")
        ]
    );
    assert_eq!(children[1]["name"], "b.md");
    assert_eq!((&children[1]["mimeType"], &children[1]["size"]), (&json!("text/markdown"), &json!(1)));
    assert_eq!(children[2]["mimeType"], "inode/directory");
    assert_eq!(children[2]["name"], "regional");
    let root = directory(&mut client, base).await.unwrap();
    let root = root["resources"].as_array().unwrap();
    assert_eq!(uris(root), ["SKILL.md", "examples", "templates"].map(|name| format!("{base}/{name}")));
    assert_eq!(root[0]["name"], "refunds");
    assert_eq!(root[0]["description"], "Process refunds");
    assert_eq!(directory(&mut client, "skill://pdf/empty").await.unwrap()["resources"], json!([]));
    assert!(directory(&mut client, "skill://pdf/parts/").await.is_ok());
    let nested = directory(&mut client, "skill://pdf/parts/ocr").await.unwrap();
    assert_eq!(nested["resources"].as_array().unwrap().len(), 2);
    for uri in
        ["skill://pdf/SKILL.md", "skill://pdf/none", "skill://none", "skill://acme", "skill:///", "x:y"]
    {
        let error = directory(&mut client, uri).await.unwrap_err();
        assert_eq!(error.code, -32602, "{uri}");
        assert!(error.message.starts_with("No directory resource is served at "), "{}", error.message);
    }
}

/// S-50, S-52: pages together are the whole, in the same order; a wrong cursor is refused.
#[tokio::test]
async fn lists_have_pages() {
    let folder = Folder::usual();
    let whole = skills(&mut client(&folder)).await;
    for page in 1..5 {
        let (server, _) = served(folder.options(), "{}", page);
        let mut client = Client::modern(&server).unwrap();
        assert_eq!(skills(&mut client).await, whole, "{page}");
        let params = json!({"uri": "skill://acme/billing/refunds"});
        let children = pages(&mut client, "resources/directory/read", params, "resources").await;
        assert_eq!(children.len(), 3);
        let listed = client.list_resources().await.unwrap();
        assert_eq!(listed.len(), 1 + 10);
        for (method, cursor) in [("skills/list", json!("x")), ("skills/list", json!(7))] {
            let error = client.request(method, json!({ "cursor": cursor })).await.unwrap_err();
            assert_eq!(error.code, -32602);
            assert!(error.message.contains("cursor"), "{}", error.message);
        }
        let params = json!({"uri": "skill://pdf", "cursor": "x"});
        assert_eq!(client.request("resources/directory/read", params).await.unwrap_err().code, -32602);
    }
}

/// S-53: to a client without the extension skills are resources, with names and descriptions.
#[tokio::test]
async fn skills_are_resources() {
    let folder = Folder::usual();
    let mut client = client(&folder);
    let listed = client.list_resources().await.unwrap();
    let listed: BTreeMap<&str, &Value> =
        listed.iter().map(|item| (item["uri"].as_str().unwrap(), item)).collect();
    let manifest = listed["skill://acme/billing/refunds/SKILL.md"];
    assert_eq!(manifest["name"], "refunds");
    assert_eq!(manifest["description"], "Process refunds");
    assert_eq!(manifest["mimeType"], "text/markdown");
    assert_eq!(listed["skill://pdf/logo.png"]["mimeType"], "image/png");
    assert_eq!(listed["skill://pdf/logo.png"]["name"], "logo.png");
    let index: Value = serde_json::from_str(&client.read_text("skill:///").await.unwrap()).unwrap();
    assert_eq!(index["skills"].as_array().unwrap().len(), 4);
    assert_eq!(
        index["skills"][1],
        json!({"uri": "skill://git-workflow/SKILL.md", "name": "git-workflow", "description": "Follow the conventions"})
    );
    let contents = client.read("skill://pdf").await.unwrap()["contents"].clone();
    assert_eq!(
        uris(contents.as_array().unwrap()),
        ["skill://pdf/SKILL.md", "skill://pdf/logo.png", "skill://pdf/parts"]
    );
    assert_eq!(contents[2]["mimeType"], "inode/directory");
    for uri in [
        "skill://loose.md",
        "skill://acme/README.md",
        "skill://acme",
        "skill://none/SKILL.md",
        "skill://pdf/x",
    ] {
        assert_eq!(client.read(uri).await.unwrap_err().code, -32602, "{uri}");
    }
    let complete = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    for (typed, expected) in [
        ("git", complete(&["git-workflow/SKILL.md"])),
        ("pdf/p", complete(&["pdf/parts/ocr/SKILL.md", "pdf/parts/ocr/run.py"])),
        ("acme/billing/refunds/templates/a f", complete(&["acme/billing/refunds/templates/a%20file%231.md"])),
        ("none", Vec::new()),
    ] {
        assert_eq!(client.complete("skill://{+path}", "path", typed, &[]).await.unwrap().values, expected);
    }
}

/// S-54: what is listed after a change is what is read then, though size and time of modification are those of before.
#[tokio::test]
async fn a_changed_file_has_another_digest_at_once() {
    let folder = Folder::usual();
    let mut client = client(&folder);
    let digest = |entry: &Value| entry["skill"]["resources"][1]["digest"].clone();
    let uri = "skill://git-workflow/SKILL.md";
    folder.write("git-workflow/run.sh", "one");
    let path = folder.at("git-workflow/run.sh");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let before = digest(&get(&mut client, uri).await.unwrap());
    for text in ["two", "six", "ten"] {
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(client.read_text("skill://git-workflow/run.sh").await.unwrap().len(), 3);
        fs::write(&path, text).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(client.read_text("skill://git-workflow/run.sh").await.unwrap(), text);
        let after = digest(&get(&mut client, uri).await.unwrap());
        assert_ne!(after, before);
        assert_eq!(after, format!("sha256:{}", sha256sum(&path)));
    }
    folder.write("git-workflow/new.md", "new");
    let entry = get(&mut client, uri).await.unwrap();
    assert_eq!(entry["skill"]["resources"].as_array().unwrap().len(), 3);
    assert_eq!(
        directory(&mut client, "skill://git-workflow").await.unwrap()["resources"].as_array().unwrap().len(),
        3
    );
    fs::remove_file(folder.at("git-workflow/SKILL.md")).unwrap();
    assert_eq!(
        client.read("skill://git-workflow/run.sh").await.unwrap_err().code,
        -32602,
        "it is no skill any longer"
    );
    assert_eq!(get(&mut client, uri).await.unwrap_err().code, -32602);
    folder.skill("git-workflow", "Again", "");
    assert_eq!(client.read_text("skill://git-workflow/run.sh").await.unwrap(), "ten");
}

/// S-55, S-56: what a conforming host may refuse is not served, and the log says why, once.
#[tokio::test]
async fn what_does_not_conform_is_logged_and_left_out() {
    let folder = Folder::new();
    folder.skill("full", "512 files", "");
    folder.skill("over", "513 files", "");
    for number in 1..513 {
        if number < 512 {
            folder.write(&format!("full/{number}"), "");
        }
        folder.write(&format!("over/{number}"), "");
    }
    folder.skill("exact", "16 MiB", "");
    folder.skill("large", "more than 16 MiB", "");
    for (name, more) in [("exact", 0), ("large", 1)] {
        let rest = (16 << 20) - fs::metadata(folder.at(&format!("{name}/SKILL.md"))).unwrap().len() + more;
        fs::File::create(folder.at(&format!("{name}/data"))).unwrap().set_len(rest).unwrap();
    }
    for (path, text) in [
        ("other/SKILL.md", "---\nname: another\ndescription: x\n---\n"),
        ("upper-Case/SKILL.md", "---\nname: upper-Case\ndescription: x\n---\n"),
        ("plain/SKILL.md", "# hunter2"),
        ("wrong/SKILL.md", "---\nname: wrong\nhunter2: [\n---\n"),
        ("no-words/SKILL.md", "---\nname: no-words\n---\n"),
        ("skill.md/skill.md", "---\nname: x\ndescription: x\n---\n"),
        ("SKILL.md", "---\nname: root\ndescription: x\n---\n"),
    ] {
        folder.write(path, text);
    }
    fs::create_dir_all(folder.at("dir/SKILL.md")).unwrap();
    fs::remove_file(folder.at("SKILL.md")).unwrap();
    let (server, log) = served(folder.options(), "{}", 100);
    let mut client = Client::modern(&server).unwrap();
    for _ in 0..3 {
        let skills = skills(&mut client).await;
        assert_eq!(uris(&skills), ["skill://exact/SKILL.md", "skill://full/SKILL.md"]);
        assert_eq!(skills[1]["resources"].as_array().unwrap().len(), 512);
    }
    let mut log = std::mem::take(&mut *log.lock().unwrap());
    log.sort();
    let expected = [
        ("large", "more than 16777216 bytes"),
        ("no-words", "has no description"),
        ("other", "name in its SKILL.md is \"another\", not the name of its directory"),
        ("over", "it has 513 files, more than 512"),
        ("plain", "does not begin with YAML front matter"),
        ("skill.md/skill.md", "a skill's file is named SKILL.md"),
        ("upper-Case", "lowercase"),
        ("wrong", "the front matter of its SKILL.md: line "),
    ];
    assert_eq!(log.len(), expected.len(), "{log:?}");
    for (line, (path, reason)) in log.iter().zip(expected) {
        assert!(line.contains(&format!("skills: {path} is not served: ")) && line.contains(reason), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    for (path, ..) in expected {
        assert!(client.read(&format!("skill://{path}/SKILL.md")).await.is_err());
        assert!(get(&mut client, &format!("skill://{path}/SKILL.md")).await.is_err());
        assert!(directory(&mut client, &format!("skill://{path}")).await.is_err());
    }
}

/// S-50: no link is followed, and nothing hidden, ignored or excluded is a file of a skill.
#[tokio::test]
async fn nothing_leads_out_of_a_skill() {
    let folder = Folder::usual();
    fs::write(folder.0.join("outside"), "secret").unwrap();
    fs::create_dir(folder.0.join("away")).unwrap();
    fs::write(folder.0.join("away/SKILL.md"), "---\nname: away\ndescription: x\n---\n").unwrap();
    symlink(folder.0.join("outside"), folder.at("pdf/link")).unwrap();
    symlink("../pdf/logo.png", folder.at("git-workflow/inside")).unwrap();
    symlink(folder.0.join("away"), folder.at("away")).unwrap();
    folder.write("pdf/.env", "secret");
    folder.write("pdf/.gitignore", "*.log\n");
    folder.write("pdf/run.log", "secret");
    folder.write("pdf/drafts/x.md", "secret");
    let (server, _) = served(folder.options().exclude(["pdf/drafts"]), "{}", 100);
    let mut client = Client::modern(&server).unwrap();
    let list = json!(skills(&mut client).await).to_string();
    let children = directory(&mut client, "skill://pdf").await.unwrap();
    assert_eq!(children["resources"].as_array().unwrap().len(), 3);
    for name in ["link", "inside", "away", ".env", ".gitignore", "run.log", "drafts"] {
        assert!(!list.contains(name), "{name}");
    }
    for uri in [
        "skill://pdf/link",
        "skill://git-workflow/inside",
        "skill://away/SKILL.md",
        "skill://pdf/.env",
        "skill://pdf/run.log",
        "skill://pdf/drafts/x.md",
        "skill://pdf/../../outside",
        "skill://pdf/..%2F..%2Foutside",
        "skill://pdf/%2E%2E/%2E%2E/outside",
        "skill://pdf/parts/..~2F..~2F..~2Foutside",
        "skill://pdf//logo.png",
        "skill://pdf/logo.png/",
        "skill://pdf/logo.png%00",
    ] {
        assert!(client.read(uri).await.is_err(), "{uri}");
        assert!(directory(&mut client, uri).await.is_err(), "{uri}");
    }
}

/// S-50, R-075: what the guard hides is in no entry and no list, and is not found.
#[tokio::test]
async fn the_guard_is_asked_first() {
    let folder = Folder::usual();
    let policy = r#"{"deny": ["skill://git-workflow/**", "skill://pdf/parts/**", "skill://pdf/logo.png"]}"#;
    let (server, _) = served(folder.options(), policy, 1);
    let mut client = Client::modern(&server).unwrap();
    let skills = skills(&mut client).await;
    assert_eq!(uris(&skills), ["skill://acme/billing/refunds/SKILL.md", "skill://pdf/SKILL.md"]);
    assert_eq!(uris(skills[1]["resources"].as_array().unwrap()), ["skill://pdf/SKILL.md"]);
    let children = directory(&mut client, "skill://pdf").await.unwrap().to_string();
    assert!(!children.contains("logo.png"));
    let absent = get(&mut client, "skill://none/SKILL.md").await.unwrap_err().message;
    let hidden = get(&mut client, "skill://git-workflow/SKILL.md").await.unwrap_err().message;
    assert_eq!(hidden, absent.replace("none", "git-workflow"));
    for uri in ["skill://git-workflow", "skill://pdf/parts/ocr"] {
        assert_eq!(directory(&mut client, uri).await.unwrap_err().code, -32602);
    }
    let index = client.read_text("skill:///").await.unwrap();
    assert!(!index.contains("git-workflow") && !index.contains("ocr"));
    assert!(client.complete("skill://{+path}", "path", "git", &[]).await.unwrap().values.is_empty());
}

/// S-50, R-075: hiding a `SKILL.md` hides the whole skill, also within another one.
#[tokio::test]
async fn a_hidden_skill_has_no_files() {
    let folder = Folder::usual();
    folder.write("git-workflow/notes.md", "notes");
    let policy = r#"{"deny": ["skill://git-workflow/SKILL.md", "skill://pdf/parts/ocr/SKILL.md"]}"#;
    let (server, _) = served(folder.options(), policy, 100);
    let mut client = Client::modern(&server).unwrap();
    let skills = skills(&mut client).await;
    assert_eq!(uris(&skills), ["skill://acme/billing/refunds/SKILL.md", "skill://pdf/SKILL.md"]);
    let resources = skills[1]["resources"].as_array().unwrap();
    assert_eq!(uris(resources), ["skill://pdf/SKILL.md", "skill://pdf/logo.png"]);
    let list = client.list_resources().await.unwrap();
    assert!(!json!(list).to_string().contains("notes.md") && !json!(list).to_string().contains("run.py"));
    let completed = client.complete("skill://{+path}", "path", "", &[]).await.unwrap().values;
    assert!(
        completed.iter().all(|path| path.starts_with("acme/") || path.starts_with("pdf/")),
        "{completed:?}"
    );
    for uri in ["skill://git-workflow/notes.md", "skill://pdf/parts/ocr/run.py", "skill://git-workflow"] {
        assert_eq!(client.read(uri).await.unwrap_err().data["kind"], "not_found", "{uri}");
    }
}

/// S-52: a directory without files is listed, so it can be read.
#[tokio::test]
async fn an_empty_directory_is_read() {
    let folder = Folder::usual();
    fs::create_dir(folder.at("pdf/empty")).unwrap();
    let (server, _) = served(folder.options(), "{}", 100);
    let mut client = Client::modern(&server).unwrap();
    let children = directory(&mut client, "skill://pdf").await.unwrap();
    assert!(children.to_string().contains("skill://pdf/empty"), "{children}");
    let read = client.read("skill://pdf/empty").await.unwrap();
    assert_eq!(
        read["contents"],
        json!([{"uri": "skill://pdf/empty", "mimeType": "inode/directory", "text": ""}])
    );
    assert_eq!(directory(&mut client, "skill://pdf/empty").await.unwrap()["resources"], json!([]));
}

/// S-58: several directories, one that is itself a skill, prefixes, and two skills at one path.
#[tokio::test]
async fn directories_and_prefixes() {
    let one = Folder::usual();
    let two = Folder::new();
    two.skill("git-workflow", "Another", "");
    two.skill("own", "Of its own", "");
    let options = SkillOptions::new()
        .path(one.at(""))
        .path(two.at(""))
        .path(two.at("own"))
        .prefixed("team/x", two.at(""))
        .prefixed("team/own", two.at("own"));
    let (server, log) = served(options, "{}", 100);
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(
        uris(&skills(&mut client).await),
        [
            "skill://acme/billing/refunds/SKILL.md",
            "skill://git-workflow/SKILL.md",
            "skill://own/SKILL.md",
            "skill://pdf/SKILL.md",
            "skill://pdf/parts/ocr/SKILL.md",
            "skill://team/own/SKILL.md",
            "skill://team/x/git-workflow/SKILL.md",
            "skill://team/x/own/SKILL.md",
        ]
    );
    assert!(client.read_text("skill://git-workflow/SKILL.md").await.unwrap().contains("Follow"), "the first");
    let log = log.lock().unwrap().join("\n");
    assert!(log.contains("git-workflow is not served: another directory has a skill at this path"), "{log}");
}

/// S-59, R-076: a watched file, directory or index is updated, and the lists change with each entry.
#[tokio::test]
async fn changes_are_reported() {
    let folder = Folder::usual();
    let mut client = client(&folder);
    let file = "skill://acme/billing/refunds/templates/b.md";
    assert_eq!(client.read_text(file).await.unwrap(), "b");
    let listen = client.listen(&[file], false).await.unwrap();
    // The first look must have been before the change.
    std::thread::sleep(std::time::Duration::from_millis(500));
    folder.write("acme/billing/refunds/templates/b.md", "c");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], file);
    assert_eq!(client.read_text(file).await.unwrap(), "c");

    let lists = client.listen(&[], true).await.unwrap();
    assert_eq!(client.next(&lists).await.unwrap().params.get("uri"), None, "what was before is not known");
    for change in [
        (&|| folder.write("pdf/logo.png", "other")) as &dyn Fn(),
        &|| folder.write("pdf/more.md", ""),
        &|| folder.skill("new", "New", ""),
        &|| folder.skill("new", "Other words", ""),
        &|| fs::remove_dir_all(folder.at("new")).unwrap(),
    ] {
        change();
        assert_eq!(client.next(&lists).await.unwrap().params.get("uri"), None);
    }
    client.subscribe("skill://pdf").await.unwrap_err();
    let two = client.listen(&["skill://pdf", "skill:///"], false).await.unwrap();
    // Nobody has read them, so the subscription alone is no update.
    folder.skill("pdf/late", "Late", "");
    let mut updated = Vec::new();
    for _ in 0..2 {
        updated.push(client.next(&two).await.unwrap().params["uri"].as_str().unwrap().to_owned());
    }
    updated.sort();
    assert_eq!(updated, ["skill:///", "skill://pdf"]);
}

/// S-50: wrong options say what is wrong.
#[test]
fn wrong_options_are_refused() {
    let refused = |value: OptionValue| {
        SkillOptions::from_option(value)
            .and_then(|options| Skills::new(options).map(drop))
            .unwrap_err()
            .to_string()
    };
    let paths = |value: OptionValue| OptionValue::Members(vec![("paths".into(), value)]);
    for (value, message) in [
        (OptionValue::Members(Vec::new()), "skills: there is no directory; name one"),
        ("no/such".into(), "skills: the directory no/such does not exist"),
        (paths(7_u64.into()), "paths is 7, expected a directory"),
        (OptionValue::Members(vec![("path".into(), ".".into())]), "did you mean \"paths\"?"),
        (paths(OptionValue::Members(vec![("a//b".into(), ".".into())])), "\"a//b\" is no prefix"),
        (paths(OptionValue::Members(vec![("..".into(), ".".into())])), "\"..\" is no prefix"),
        (
            OptionValue::Members(vec![
                ("paths".into(), ".".into()),
                ("exclude".into(), OptionValue::List(vec!["a[b".into()])),
            ]),
            "skills: exclude has the glob",
        ),
    ] {
        let said = refused(value);
        assert!(said.contains(message), "{said}");
    }
}
