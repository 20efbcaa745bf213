//! What providers offer besides their resources: tools of their own, and the children of their directories.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::Tool;
use mcp_resources_providers::db::{Database, Db, DbOptions};
use mcp_resources_providers::docs::{Docs, DocsOptions};
use mcp_resources_providers::files::{FileOptions, Files};
use mcp_resources_providers::git::{Git, GitOptions};
use mcp_resources_providers::rag::{Rag, RagOptions};
use mcp_resources_providers::skills::{SkillOptions, Skills};
use mcp_resources_runtime::server::{Builder, NamedCall, ResourceServer};
use mcp_resources_runtime::testing::Client;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory with a repository, documentation, a database and a skill, gone with it.
struct World(PathBuf);

impl World {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let world = Self(std::env::temp_dir().join(format!("mcp-offered-{}-{number}", std::process::id())));
        for (path, text) in [
            ("code/README.md", "# Project\n"),
            ("code/src/main.rs", "fn main() {}\n"),
            ("other/README.md", "# Other\n"),
            ("docs/index.md", "# Start\n\nWelcome.\n"),
            ("docs/guide/install.md", "# Install\n\nUse the installer.\n"),
            ("docs/guide/deep/more.md", "# More\n\nMuch more.\n"),
            ("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Fill forms\n---\n\n# pdf\n"),
            ("skills/pdf/logo.png", "png"),
        ] {
            let path = world.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for name in ["code", "other"] {
            for arguments in
                [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "Begin"]]
            {
                git(&world.0.join(name), arguments);
            }
        }
        let sql = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
            INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Bea', 'Oslo');
            CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT); INSERT INTO orders VALUES (7, 'tea');";
        Connection::open(world.0.join("shop.db")).unwrap().execute_batch(sql).unwrap();
        world
    }

    fn git(&self) -> GitOptions {
        GitOptions::new().repo("code", self.0.join("code")).repo("other", self.0.join("other"))
    }

    fn docs(&self) -> DocsOptions {
        DocsOptions::new().site("book", self.0.join("docs"))
    }

    fn db(&self) -> DbOptions {
        let database = Database::new(format!("sqlite:{}", self.0.join("shop.db").display()))
            .tables(["customers", "orders"])
            .view("by_city", "SELECT name FROM customers WHERE city = :city")
            .view("all", "SELECT name FROM customers ORDER BY id");
        DbOptions::new().database("shop", database)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(arguments);
    assert!(command.current_dir(directory).status().unwrap().success(), "{arguments:?}");
}

fn builder(policy: &str) -> Builder {
    let policy = Policy::from_json(policy).unwrap();
    ResourceServer::builder("offered", "1").expose_as_tools(true).guard(policy)
}

fn client(builder: Builder) -> Client {
    Client::modern(&builder.build().unwrap()).unwrap()
}

/// The tools besides those for all resources.
async fn tools(client: &mut Client) -> Vec<Value> {
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let is_own = |tool: &&Value| !matches!(tool["name"].as_str(), Some("list_resources" | "read_resource"));
    listed["tools"].as_array().unwrap().iter().filter(is_own).cloned().collect()
}

async fn names(client: &mut Client) -> Vec<String> {
    tools(client).await.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn call(client: &mut Client, name: &str, arguments: Value) -> (String, bool) {
    let params = json!({"name": name, "arguments": arguments});
    let result = client.request("tools/call", params).await.unwrap();
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (text, result["isError"] == json!(true))
}

async fn children(client: &mut Client, uri: &str) -> Vec<String> {
    let result = client.request("resources/directory/read", json!({"uri": uri})).await.unwrap();
    let resources = result["resources"].as_array().unwrap();
    resources.iter().map(|child| child["uri"].as_str().unwrap().to_owned()).collect()
}

// S-64: what a model needs of each provider is a tool with a schema of its arguments, and reads what the template serves.
#[tokio::test]
async fn providers_offer_tools() {
    let world = World::new();
    let rag = RagOptions::new().folder("kb", world.0.join("docs"));
    let mut client = client(
        builder("{}")
            .mount(Git::new(world.git()).unwrap())
            .mount(Docs::new(world.docs()).unwrap())
            .mount(Rag::new(rag).unwrap())
            .mount(Db::new(world.db()).unwrap()),
    );
    let expected = [
        "db_row",
        "db_rows",
        "db_shop_all",
        "db_shop_by_city",
        "docs_search",
        "git_diff",
        "git_log",
        "git_show",
        "rag_search",
    ];
    assert_eq!(names(&mut client).await, expected);
    let all = tools(&mut client).await;
    let schema = |name: &str| all.iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"].clone();
    assert!(all.iter().all(|tool| tool["annotations"]["readOnlyHint"] == json!(true)));
    let log = schema("git_log");
    assert_eq!(log["properties"]["repo"]["enum"], json!(["code", "other"]));
    assert_eq!(log["properties"]["n"]["type"], "integer");
    assert_eq!(log["required"], json!(["repo"]));
    // One site, one collection, one database: nobody has to name it.
    assert_eq!(schema("docs_search")["required"], json!(["q"]));
    assert_eq!(schema("rag_search")["required"], json!(["query"]));
    assert_eq!(schema("db_rows")["required"], json!(["table"]));
    assert_eq!(schema("db_rows")["properties"]["table"]["enum"], json!(["customers", "orders"]));
    assert_eq!(schema("db_shop_by_city")["required"], json!(["city"]));
    assert_eq!(
        schema("db_shop_all"),
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    );
    for (name, arguments, found) in [
        ("git_log", json!({"repo": "code", "n": 1}), "Begin"),
        ("git_diff", json!({"repo": "code", "from": "HEAD", "to": "main"}), ""),
        ("git_show", json!({"repo": "other", "id": "HEAD"}), "README.md"),
        ("docs_search", json!({"q": "installer", "k": 3}), "docs:///book/guide/install.md"),
        ("rag_search", json!({"query": "installer"}), "installer"),
        ("db_rows", json!({"table": "customers", "rows": 1}), "Ada"),
        ("db_row", json!({"table": "orders", "key": "7"}), "tea"),
        ("db_shop_by_city", json!({"city": "Oslo"}), "Bea"),
        ("db_shop_all", json!({}), "Ada"),
    ] {
        let (text, is_error) = call(&mut client, name, arguments).await;
        assert!(text.contains(found) && !is_error, "{name}: {text}");
    }
    for (name, arguments, said) in [
        ("git_log", json!({}), "Invalid arguments for git_log: repo: it is missing"),
        (
            "git_log",
            json!({"repo": "x"}),
            "Invalid arguments for git_log: repo: expected one of: code, other",
        ),
        ("db_shop_by_city", json!({}), "Invalid arguments for db_shop_by_city: city: it is missing"),
        (
            "db_shop_all",
            json!({"a": 1}),
            "Invalid arguments for db_shop_all: a: no such argument; it has none",
        ),
    ] {
        assert_eq!(call(&mut client, name, arguments).await, (said.to_owned(), true));
    }
}

// S-64: a name that the principal may not see is in no schema and in no message, and a tool that leads to nothing is unknown.
#[tokio::test]
async fn hidden_names_are_absent() {
    let world = World::new();
    let policy = r#"{"deny": ["git:///other/**", "db:///shop/orders/**", "db:///shop/orders?*", "db:///shop/orders", "db:///shop/query/all", "docs://**"]}"#;
    let mut client = client(
        builder(policy)
            .mount(Git::new(world.git()).unwrap())
            .mount(Docs::new(world.docs()).unwrap())
            .mount(Db::new(world.db()).unwrap()),
    );
    let all = tools(&mut client).await;
    let listed = serde_json::to_string(&all).unwrap();
    assert!(!listed.contains("other") && !listed.contains("orders"), "{listed}");
    let expected = ["db_row", "db_rows", "db_shop_by_city", "git_diff", "git_log", "git_show"];
    assert_eq!(names(&mut client).await, expected);
    // The only repository that is left need not be named.
    let (text, _) = call(&mut client, "git_log", json!({})).await;
    assert!(text.contains("Begin"), "{text}");
    for name in ["other", "none"] {
        let said = "Invalid arguments for git_log: repo: expected one of: code";
        assert_eq!(call(&mut client, "git_log", json!({"repo": name})).await.0, said);
    }
    for name in ["docs_search", "db_shop_all", "none"] {
        let refused = client.request("tools/call", json!({"name": name})).await.unwrap_err();
        assert_eq!(refused.message, format!("Unknown tool: {name}"));
    }
}

// S-64: tools are offered where resources are tools, and else where an option asks for them; each can be left out by name.
#[tokio::test]
async fn options_choose_the_tools() {
    let world = World::new();
    let plain = || ResourceServer::builder("offered", "1");
    let mut none = client(plain().mount(Git::new(world.git()).unwrap()));
    assert!(none.request("tools/list", json!({})).await.is_err());
    let mut asked = client(plain().mount(Git::new(world.git().tools(["git_log"])).unwrap()));
    assert_eq!(names(&mut asked).await, ["git_log"]);
    let mut silent = client(builder("{}").mount(Git::new(world.git().tools([""; 0])).unwrap()));
    assert!(names(&mut silent).await.is_empty());
    // Two declarations, each with its own choice.
    let code = GitOptions::new().repo("code", world.0.join("code")).tools(["git_log"]);
    let other = GitOptions::new().repo("other", world.0.join("other")).tools(["git_log", "git_diff"]);
    let joined = Git::new(code).unwrap().join(Git::new(other).unwrap()).unwrap();
    let mut joined = client(builder("{}").mount(joined));
    let all = tools(&mut joined).await;
    assert_eq!(all[0]["inputSchema"]["properties"]["repo"]["enum"], json!(["other"]));
    assert_eq!(all[1]["inputSchema"]["properties"]["repo"]["enum"], json!(["code", "other"]));
    let wrong = Git::new(world.git().tools(["git_lgo"])).unwrap_err().to_string();
    assert_eq!(wrong, "git: there is no tool \"git_lgo\"; did you mean \"git_log\"?");
}

// S-64: two tools of one name are an error that names both, and unmounting removes the tools.
#[tokio::test]
async fn names_collide_and_go() {
    let world = World::new();
    let own = builder("{}").tool_with(Tool::new("git_log"), |_: NamedCall| async { "mine" });
    let server = own.build().unwrap();
    let said = server.mount(Git::new(world.git()).unwrap()).unwrap_err().to_string();
    assert!(said.starts_with("git: a tool with the name \"git_log\" is registered already"), "{said}");
    assert!(said.contains("option `tools` of the provider"), "{said}");
    let server = builder("{}").build().unwrap();
    let mount = server.mount(Git::new(world.git()).unwrap()).unwrap();
    let second = server.mount(Git::new(world.git()).unwrap()).unwrap_err().to_string();
    assert!(second.contains("the mount git has it"), "{second}");
    let mut client = Client::modern(&server).unwrap();
    assert_eq!(names(&mut client).await.len(), 3);
    assert!(server.unmount(mount));
    assert!(names(&mut client).await.is_empty());
    assert!(
        client.request("resources/directory/read", json!({"uri": "git:///code/tree/HEAD/"})).await.is_err()
    );
}

// S-65: the children of every directory, in pages, whatever provider serves it.
#[tokio::test]
async fn directories_have_children() {
    let world = World::new();
    let policy = r#"{"deny": ["file:///world/other", "file:///world/other/**"]}"#;
    let mut client = client(
        builder(policy)
            .mount(Files::new(FileOptions::new().root("world", &world.0)).unwrap())
            .mount(Git::new(world.git()).unwrap())
            .mount(Docs::new(world.docs()).unwrap())
            .mount(Skills::new(SkillOptions::new().path(world.0.join("skills"))).unwrap()),
    );
    for (uri, expected) in [
        ("file:///", &["file:///world/"][..]),
        ("file:///world/code/src/", &["file:///world/code/src/main.rs"]),
        ("file:///world/code/src", &["file:///world/code/src/main.rs"]),
        ("git:///code/tree/HEAD/", &["git:///code/blob/HEAD/README.md", "git:///code/tree/HEAD/src/"]),
        ("git:///code/tree/main/src/", &["git:///code/blob/main/src/main.rs"]),
        ("docs:///book/", &["docs:///book/guide/", "docs:///book/index.md"]),
        ("docs:///book/guide/", &["docs:///book/guide/deep/", "docs:///book/guide/install.md"]),
        ("skill://pdf", &["skill://pdf/SKILL.md", "skill://pdf/logo.png"]),
    ] {
        assert_eq!(children(&mut client, uri).await, expected, "{uri}");
    }
    let all = children(&mut client, "file:///world/").await;
    let expected = ["code/", "docs/", "shop.db", "skills/"].map(|name| format!("file:///world/{name}"));
    assert_eq!(all, expected);
    let result = client.request("resources/directory/read", json!({"uri": "file:///world/"})).await.unwrap();
    assert_eq!(result["resultType"], "complete");
    let [code, _, shop, _] = result["resources"].as_array().unwrap().as_slice() else { panic!("{result}") };
    assert_eq!((&code["name"], &code["mimeType"]), (&json!("code"), &json!("inode/directory")));
    assert!(
        shop["size"].as_u64().is_some_and(|size| size > 0) && shop["annotations"]["lastModified"].is_string()
    );
    // What is no directory, hidden or not there gets the same error.
    for uri in [
        "file:///world/code/README.md",
        "file:///world/other/",
        "file:///world/none/",
        "file:///none/",
        "git:///code/log",
        "git:///code/tree/none/",
        "docs:///book/index.md",
        "docs:///book/none/",
        "skill://pdf/SKILL.md",
        "x://y",
    ] {
        let refused = client.request("resources/directory/read", json!({"uri": uri})).await.unwrap_err();
        let said = (refused.code, refused.message);
        assert_eq!(said, (-32602, format!("No directory resource is served at {uri}")), "{uri}");
    }
    for params in [json!({}), json!({"uri": 7}), json!({"uri": "file:///", "cursor": "x"})] {
        let refused = client.request("resources/directory/read", params).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{}", refused.message);
    }
}

// S-65: pages go on behind the last child that was seen.
#[tokio::test]
async fn children_come_in_pages() {
    let world = World::new();
    let folder = world.0.join("many");
    fs::create_dir_all(&folder).unwrap();
    for number in 0..23 {
        fs::write(folder.join(format!("{number:02}.txt")), "x").unwrap();
    }
    let mut limits = Limits::default();
    limits.page = 5;
    let files = Files::new(FileOptions::new().root("many", &folder)).unwrap();
    let mut client = client(builder("{}").limits(limits).mount(files));
    let mut seen = Vec::new();
    let mut params = json!({"uri": "file:///many/"});
    loop {
        let page = client.request("resources/directory/read", params.clone()).await.unwrap();
        let uris = page["resources"].as_array().unwrap().iter().map(|child| child["uri"].clone());
        seen.extend(uris);
        match page.get("nextCursor") {
            Some(next) => params["cursor"] = next.clone(),
            None => break,
        }
    }
    assert_eq!(seen, (0..23).map(|at| json!(format!("file:///many/{at:02}.txt"))).collect::<Vec<_>>());
}
