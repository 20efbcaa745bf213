//! Configuration and environment, served to a client: nothing exists but what is allowed, and no secret leaves.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::option::{FromOption, OptionValue};
use mcp_resources_engine::version::Revision;
use mcp_resources_providers::config::{Config, ConfigOptions};
use mcp_resources_providers::env::{self, Env};
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::testing::Client;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CANARY: &str = "hunter2-canary";
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// A file of the test's own, in a directory that is gone with it.
struct File {
    folder: PathBuf,
    path: PathBuf,
}

impl File {
    fn new(name: &str, text: impl AsRef<[u8]>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mcp-config-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = Self { path: folder.join(name), folder };
        file.write(text);
        file
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        fs::write(&self.path, text).unwrap();
    }

    /// Puts another file in its place, as editors do.
    fn replace(&self, text: impl AsRef<[u8]>) {
        let new = self.folder.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &self.path).unwrap();
    }

    fn options<const N: usize>(&self, allow: [&str; N]) -> ConfigOptions {
        ConfigOptions::new().app("demo", &self.path).allow(allow)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn served(options: ConfigOptions, policy: &str) -> (ResourceServer, Log) {
    let log = Log::default();
    let said = log.clone();
    let server = ResourceServer::builder("config", "1")
        .mount(Config::new(options).unwrap())
        .guard(Policy::from_json(policy).unwrap())
        .diagnostics(move |diagnostic| said.lock().unwrap().push(diagnostic.to_string()))
        .build()
        .unwrap();
    (server, log)
}

fn client(options: ConfigOptions) -> (Client, Log) {
    let (server, log) = served(options, "{}");
    (Client::modern(&server).unwrap(), log)
}

async fn json_at(client: &mut Client, uri: &str) -> Value {
    serde_json::from_str(&client.read_text(uri).await.unwrap()).unwrap()
}

async fn listed(client: &mut Client) -> Vec<String> {
    let items = client.list_resources().await.unwrap();
    items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

async fn completed(client: &mut Client, variable: &str, typed: &str) -> Vec<String> {
    client.complete("config:///{app}/{+key}", variable, typed, &[]).await.unwrap().values
}

const APP: &str = "
server: {host: 127.0.0.1, port: 8080, tls: {cert: a.pem, privateKey: hunter2-canary}}
db: {url: 'postgres://me:hunter2-canary@host/x', password: hunter2-canary, pool: 5}
list: [{name: a, api_key: hunter2-canary}, ghp_0123456789abcdefghijABCDEFGHIJ012345]
'a/b': {'..': dots, 'c~2Fd': tilde, 'e f%?#': odd, '': none, ' ': space, '検索': found, '\\': back}
tokens: {one: hunter2-canary, two: [hunter2-canary]}
hidden: {x: plain}
nothing: null
";

/// S-04, R-058: what is allowed is listed, read, alone and in its object; all else is not there, in both eras.
#[tokio::test]
async fn what_is_allowed_exists() {
    let file = File::new("app.yaml", APP);
    let (server, _) = served(file.options(["server", "server/**", "db/p*", "nothing"]), "{}");
    let legacy = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
    for mut client in [Client::modern(&server).unwrap(), legacy] {
        let uris = listed(&mut client).await;
        assert_eq!(
            uris,
            [
                "config:///",
                "config:///demo",
                "config:///demo/db/password",
                "config:///demo/db/pool",
                "config:///demo/nothing",
                "config:///demo/server",
                "config:///demo/server/host",
                "config:///demo/server/port",
                "config:///demo/server/tls",
                "config:///demo/server/tls/cert",
                "config:///demo/server/tls/privateKey",
            ]
        );
        for uri in &uris {
            assert!(client.read(uri).await.is_ok(), "{uri}");
        }
        assert_eq!(client.read_text("config:///demo/server/port").await.unwrap(), "8080");
        assert_eq!(client.read_text("config:///demo/server/host").await.unwrap(), "127.0.0.1");
        assert_eq!(json_at(&mut client, "config:///").await, json!({"demo": "config:///demo"}));
        let tls = json!({"cert": "a.pem", "privateKey": "[redacted:key-name]"});
        assert_eq!(
            json_at(&mut client, "config:///demo").await,
            json!({
                "db": {"password": "[redacted:key-name]", "pool": 5},
                "nothing": null,
                "server": {"host": "127.0.0.1", "port": 8080, "tls": tls}
            })
        );
        assert_eq!(
            completed(&mut client, "key", "server/t").await,
            ["server/tls", "server/tls/cert", "server/tls/privateKey"]
        );
        assert_eq!(completed(&mut client, "app", "").await, ["demo"]);
        for typed in ["h", "db/u", "db/x", "list", "%"] {
            assert_eq!(completed(&mut client, "key", typed).await, [""; 0], "{typed}");
        }
    }
}

/// S-04: what is not allowed, what is not set and what has no such form are answered with the same bytes.
#[tokio::test]
async fn what_is_not_allowed_is_not_there() {
    let file = File::new("app.yaml", APP);
    let (mut client, _) = client(file.options(["server/*", "gone", "list/**"]));
    let mut answers = Vec::new();
    for key in [
        "demo/hidden",
        "demo/hidden/x",
        "demo/gone",
        "demo/server",
        "demo/list",
        "demo/list/0",
        "demo/server/port/x",
        "demo/server/host/",
        "demo//server",
        "demo/server/../hidden/x",
        "demo/%2E%2E/x",
        "demo/db%2Furl",
        "demo/db%00",
        "other/server/host",
        "demo/",
        "demo/~73erver/host",
        "demo/SERVER/host",
        "",
    ] {
        if key.is_empty() {
            continue;
        }
        let uri = format!("config:///{key}");
        let error = client.read(&uri).await.unwrap_err();
        answers.push(format!("{error:?}").replace(&uri, "URI"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
    // In another spelling it is the same key.
    assert_eq!(client.read_text("CONFIG:///demo/server/%70ort").await.unwrap(), "8080");
}

/// S-04: no planted secret is in any answer or log line; `reveal` shows what it names.
#[tokio::test]
async fn secrets_are_masked() {
    let file = File::new("app.yaml", APP);
    let (mut client, log) = client(file.options(["**"]));
    let mut all = String::new();
    for uri in listed(&mut client).await {
        all.push_str(&client.read(&uri).await.unwrap().to_string());
    }
    all.push_str(&json!(client.list_resources().await.unwrap()).to_string());
    all.push_str(&format!("{log:?}"));
    assert!(!all.contains(CANARY) && !all.contains(TOKEN), "{all}");
    let list = json_at(&mut client, "config:///demo/list").await;
    assert_eq!(list, json!([{"name": "a", "api_key": "[redacted:key-name]"}, "[redacted:github-token]"]));
    let tokens = json_at(&mut client, "config:///demo/tokens").await;
    assert_eq!(tokens, json!({"one": "[redacted:key-name]", "two": "[redacted:key-name]"}));
    assert_eq!(
        client.read_text("config:///demo/db/url").await.unwrap(),
        "postgres://me:[redacted:url-password]@host/x"
    );

    let options = file.options(["**"]).reveal(["tokens/*", "db/password"]).redact(["github-token"]);
    let (mut client, _) = self::client(options);
    assert_eq!(client.read_text("config:///demo/db/password").await.unwrap(), CANARY);
    assert_eq!(json_at(&mut client, "config:///demo/tokens/two").await, json!([CANARY]));
    assert!(client.read_text("config:///demo/db/url").await.unwrap().contains(CANARY));
    assert_eq!(
        client.read_text("config:///demo/server/tls/privateKey").await.unwrap(),
        "[redacted:key-name]"
    );
}

/// S-04: a name that says secret may be the value of a key, or the argument before the secret.
#[tokio::test]
async fn secrets_beside_their_names_are_masked() {
    let file = File::new(
        "pod.yaml",
        "
env: [{name: DB_PASSWORD, value: hunter2-canary}, {name: LOG_LEVEL, value: debug}]
setting: {Key: API_TOKEN, Value: hunter2-canary, note: shown}
args: [run, --level, debug, --db-password, hunter2-canary, --requirepass, hunter2-canary, end]
url: 'postgres://me:p@hunter2-canary@host/x'
",
    );
    let (mut client, _) = client(file.options(["**"]));
    let masked = "[redacted:key-name]";
    let env = json!([{"name": "DB_PASSWORD", "value": masked}, {"name": "LOG_LEVEL", "value": "debug"}]);
    let args = json!(["run", "--level", "debug", "--db-password", masked, "--requirepass", masked, "end"]);
    assert_eq!(
        json_at(&mut client, "config:///demo").await,
        json!({
            "env": env,
            "setting": {"Key": masked, "Value": masked, "note": "shown"},
            "args": args,
            "url": "postgres://me:[redacted:url-password]@host/x",
        })
    );
}

/// S-04: keys with slashes, tildes, dots and any text have one URI each, and completion spells it.
#[tokio::test]
async fn odd_keys_have_one_spelling() {
    let file = File::new("app.yaml", APP);
    let (mut client, log) = client(file.options(["a~2Fb/**"]));
    let uris = listed(&mut client).await;
    assert!(log.lock().unwrap().is_empty(), "{log:?}");
    let keys: Vec<&str> = uris.iter().filter_map(|uri| uri.strip_prefix("config:///demo/")).collect();
    assert_eq!(
        keys,
        [
            "a~2Fb/%20",
            "a~2Fb/c~7E2Fd",
            "a~2Fb/e%20f%25%3F%23",
            "a~2Fb/~2E~2E",
            "a~2Fb/~5C",
            "a~2Fb/%E6%A4%9C%E7%B4%A2"
        ]
    );
    for (uri, text) in uris[2..].iter().zip(["space", "tilde", "odd", "dots", "back", "found"]) {
        assert_eq!(client.read_text(uri).await.unwrap(), text, "{uri}");
    }
    assert_eq!(completed(&mut client, "key", "a~2Fb/検").await, ["a~2Fb/%E6%A4%9C%E7%B4%A2"]);
    assert_eq!(completed(&mut client, "key", "a~2Fb/%E6").await, ["a~2Fb/%E6%A4%9C%E7%B4%A2"]);
}

/// S-04, R-075: what the guard hides is in no text either.
#[tokio::test]
async fn the_guard_is_asked_first() {
    let file = File::new("app.yaml", APP);
    let (server, _) = served(
        file.options(["**"]),
        r#"{"deny": ["config:///demo/server/tls", "config:///demo/db/**", "config:///demo/tokens"]}"#,
    );
    let mut client = Client::modern(&server).unwrap();
    let whole = json_at(&mut client, "config:///demo").await;
    assert_eq!(whole["server"], json!({"host": "127.0.0.1", "port": 8080}));
    assert_eq!((&whole["db"], whole.get("tokens")), (&json!({}), None));
    let uris = listed(&mut client).await;
    assert!(
        !uris.iter().any(|uri| uri.ends_with("/tls") || uri.contains("/db/") || uri.ends_with("/tokens"))
    );
    assert_eq!(completed(&mut client, "key", "db/").await, [""; 0]);
}

/// S-04: a half-written file keeps the last good value, and the log says so once for each change.
#[tokio::test]
async fn a_half_written_file_keeps_its_values() {
    let file = File::new("app.json", r#"{"a": 1}"#);
    let (mut client, log) = client(file.options(["a"]));
    for bad in [r#"{"a": 2, "secret": "hunter2-canary"#, "", "[1]", "\0", r#"{"a": 2, "a": 3}"#] {
        file.write(bad);
        for _ in 0..3 {
            assert_eq!(client.read_text("config:///demo/a").await.unwrap(), "1", "{bad}");
        }
        let said = std::mem::take(&mut *log.lock().unwrap());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("warning: config: ") && said[0].contains("app.json"),
            "it is no answer that is wrong: {said:?}"
        );
        assert!(said[0].contains("what it said before is still served"), "{said:?}");
        assert!(!said[0].contains(CANARY), "{said:?}");
    }
    file.write(r#"{"a": 4}"#);
    assert_eq!(client.read_text("config:///demo/a").await.unwrap(), "4");
    assert!(log.lock().unwrap()[0].contains("makes sense again"));
    fs::File::create(&file.path).unwrap().set_len((16 << 20) + 1).unwrap();
    assert_eq!(client.read_text("config:///demo/a").await.unwrap(), "4");

    // A file that is gone has no values, and comes back.
    log.lock().unwrap().clear();
    fs::remove_file(&file.path).unwrap();
    for key in ["a", "none", ""] {
        let error = client.read(&format!("config:///demo/{key}")).await;
        assert!(key.is_empty() || error.is_err_and(|error| error.code == -32603), "{key}");
    }
    assert_eq!(listed(&mut client).await, ["config:///", "config:///demo"]);
    assert_eq!(log.lock().unwrap().len(), 1);
    file.write(r#"{"a": 5}"#);
    assert_eq!(client.read_text("config:///demo/a").await.unwrap(), "5");
}

/// S-04: a faulty file is logged while it is watched, without a request too.
#[tokio::test]
async fn the_watch_says_what_it_finds() {
    let file = File::new("app.toml", "a = 1\n");
    let (mut client, log) = client(file.options(["a"]));
    let listen = client.listen(&["config:///demo/a"], false).await.unwrap();
    file.replace("a = 'hunter2-canary");
    let begun = std::time::Instant::now();
    while log.lock().unwrap().is_empty() && begun.elapsed().as_secs() < 60 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    file.write("a = 2\n");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], "config:///demo/a");
    let said = log.lock().unwrap().join("\n");
    assert!(said.contains("line 1: it is not TOML; what it said before is still served"), "{said}");
    assert!(!said.contains(CANARY), "{said}");
}

/// S-04: an object that is allowed where nothing in it is: said, with the fix.
#[tokio::test]
async fn an_object_alone_is_not_what_is_in_it() {
    let file = File::new("app.toml", "[server]\nport = 8080");
    let (mut client, log) = client(file.options(["server"]));
    assert_eq!(json_at(&mut client, "config:///demo/server").await, json!({}));
    assert!(log.lock().unwrap()[0].contains("add \"server/**\""));
}

/// S-04: a file of which nothing is allowed is said, with the form of a path; an empty list allows nothing on purpose.
#[tokio::test]
async fn nothing_that_matches_is_said() {
    let file = File::new("app.toml", "[server]\nport = 8080");
    for (allow, lines) in [(&["server.port"][..], 1), (&[], 0)] {
        let options = ConfigOptions::new().app("demo", &file.path).allow(allow.iter().copied());
        let (mut client, log) = client(options);
        for _ in 0..2 {
            assert_eq!(json_at(&mut client, "config:///demo").await, json!({}));
        }
        let said = log.lock().unwrap();
        assert_eq!(said.len(), lines, "{said:?}");
        assert!(said.iter().all(|line| line.contains("no key of \"demo\" matches allow")), "{said:?}");
    }
}

/// S-04, R-083, R-092: only keys whose value has changed are updated; the lists change when keys are added or removed.
#[tokio::test]
async fn only_what_changed_is_told() {
    let text = |port: u16, more: &str| {
        format!("password: hunter2-canary\nserver: {{host: a, port: {port}}}\n{more}")
    };
    let file = File::new("app.yaml", text(1, ""));
    let (mut client, _) = client(file.options(["**"]));
    let uris = ["config:///demo/server/host", "config:///demo/server/port", "config:///demo/password"];
    let listen = client.listen(&uris, true).await.unwrap();
    file.replace(text(2, ""));
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], uris[1]);
    // A change behind a mask is none; a change that a read sees first is reported too.
    file.write(text(2, "").replace("hunter2", "hunter3"));
    file.write(text(3, ""));
    assert_eq!(client.read_text(uris[1]).await.unwrap(), "3");
    assert_eq!(client.next(&listen).await.unwrap().params["uri"], uris[1]);
    file.replace(text(3, "new: 1"));
    assert_eq!(client.next(&listen).await.unwrap().params.get("uri"), None);
    assert!(listed(&mut client).await.contains(&"config:///demo/new".to_owned()));
}

/// S-04, R-076: an application is updated with any of its keys, in a legacy session too, and for later subscribers too.
#[tokio::test]
async fn an_application_is_told_of() {
    let file = File::new("app.env", "export A=1\nB='2'\n");
    let (server, _) = served(file.options(["A", "B"]), "{}");
    let mut client = Client::legacy(&server, Revision::V2025_06_18).await.unwrap();
    for round in 0..2 {
        assert_eq!(json_at(&mut client, "config:///demo").await["B"], "2");
        client.subscribe("config:///demo").await.unwrap();
        file.write(format!("A=1\nB=2\nB=new{round}"));
        let notice = client.notification().await.unwrap();
        assert_eq!(notice["params"]["uri"], "config:///demo");
        client.unsubscribe("config:///demo").await.unwrap();
        file.write("A=1\nB=2\n");
    }
}

/// R-101, R-105: many keys in pages, none twice; 1,000 of an application are listed, all are read and completed.
#[tokio::test]
async fn many_keys_are_paged() {
    let keys: String = (0..1_500).map(|at| format!("key-{at:04} = {{ a = {at} }}\n")).collect();
    let file = File::new("app.toml", keys);
    let other = File::new("other.json", r#"{"z": 1}"#);
    let options =
        ConfigOptions::new().app("demo", &file.path).file(&other.path).allow(["*/a", "z"]).reveal(["*/a"]);
    let (mut client, _) = client(options);
    let uris = listed(&mut client).await;
    let distinct: std::collections::BTreeSet<_> = uris.iter().collect();
    assert_eq!((uris.len(), distinct.len()), (3 + 1_000 + 1, uris.len()));
    assert_eq!(uris.last().map(String::as_str), Some("config:///other/z"));
    assert_eq!(client.read_text("config:///demo/key-1499/a").await.unwrap(), "1499");
    let found = client.complete("config:///{app}/{+key}", "key", "key", &[]).await.unwrap();
    assert_eq!(found.values.len(), 0, "whose keys is not said");
    let asked = json!({
        "ref": {"type": "ref/resource", "uri": "config:///{app}/{+key}"},
        "argument": {"name": "key", "value": "key-1499"},
        "context": {"arguments": {"app": "demo"}}
    });
    let found = client.request("complete", asked).await.unwrap();
    assert_eq!(found["completion"]["values"], json!(["key-1499/a"]));
}

/// S-04: what is wrong at the start is named with the fix.
#[test]
fn mistakes_at_the_start() {
    let file = File::new("app.yaml", "a: 1");
    let bad = File::new("bad.yaml", "a: [hunter2-canary");
    let path = |file: &File| file.path.display().to_string();
    let members = |members: &[(&str, OptionValue)]| {
        OptionValue::Members(
            members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        )
    };
    let allow = || ("allow", OptionValue::List(vec!["**".into()]));
    for (value, message) in [
        (members(&[allow()]), "config: there is no file; name one".to_owned()),
        (path(&file).into(), format!("config: nothing of {} is allowed; say which keys", path(&file))),
        (members(&[("app", "x".into())]), "unexpected option \"app\"; did you mean \"apps\"?".into()),
        (
            members(&[("apps", path(&file).into()), ("allow", OptionValue::List(vec!["a[".into()]))]),
            "\"a[\", expected a glob".into(),
        ),
        (
            members(&[
                ("apps", path(&file).into()),
                allow(),
                ("redact", OptionValue::List(vec!["jwtt".into()])),
            ]),
            "did you mean \"jwt\"?".into(),
        ),
        (
            members(&[("apps", path(&file).into()), allow(), ("redact", "none".into())]),
            "redact is \"none\", expected all or a list".into(),
        ),
        (
            members(&[("apps", "no/such.yaml".into()), allow()]),
            "the file no/such.yaml does not exist; create it".into(),
        ),
        (members(&[("apps", "Cargo.lock".into()), allow()]), "name it .yaml, .yml".into()),
        (members(&[("apps", path(&bad).into()), allow()]), "bad.yaml cannot be served: line ".into()),
        (
            members(&[("apps", OptionValue::List(vec![path(&file).into(), path(&file).into()])), allow()]),
            "two files have the name \"app\"".into(),
        ),
        (members(&[("apps", members(&[("a/b", path(&file).into())])), allow()]), "\"a/b\" is no name".into()),
        (5_u64.into(), "5, expected a file, a list of them".into()),
    ] {
        let said = ConfigOptions::from_option(value).and_then(Config::new).unwrap_err().to_string();
        assert!(said.contains(&message) && !said.contains(CANARY), "{said}");
    }
}

/// S-04: variables that are allowed and set, masked by name and by what they hold; the others are one and the same.
#[tokio::test]
async fn the_environment() {
    // Those of the process that runs the test: cargo sets them.
    let options = env::EnvOptions::new().allow(["CARGO_PKG_N*", "CARGO_MANIFEST_DIR", "NEVER_SET"]);
    let server = ResourceServer::builder("env", "1").mount(Env::new(options).unwrap()).build().unwrap();
    let mut client = Client::modern(&server).unwrap();
    let name = std::env::var("CARGO_PKG_NAME").unwrap();
    assert_eq!(listed(&mut client).await, ["env:///", "env:///CARGO_MANIFEST_DIR", "env:///CARGO_PKG_NAME"]);
    assert_eq!(client.read_text("env:///CARGO_PKG_NAME").await.unwrap(), name);
    assert_eq!(json_at(&mut client, "env:///").await["CARGO_PKG_NAME"], name);
    let found = client.complete("env:///{name}", "name", "cargo_p", &[]).await.unwrap();
    assert_eq!(found.values, ["CARGO_PKG_NAME"]);
    let mut answers = Vec::new();
    for name in ["NEVER_SET", "PATH", "HOME", "CARGO_PKG_VERSION", "cargo_pkg_name"] {
        let uri = format!("env:///{name}");
        answers.push(format!("{:?}", client.read(&uri).await.unwrap_err()).replace(&uri, "URI"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
}
