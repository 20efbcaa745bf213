//! Each example does what its first lines say, as a process over stdio. `tests/python/test_examples.py` asks the same of
//! all languages through the official client.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it did not expect")]

use mcp_resources_examples::data;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};

struct Example {
    child: Child,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let this = std::env::current_exe().unwrap();
        let program = this.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, next: 0 }
    }

    fn send(&mut self, method: &str, mut params: Value) {
        self.next += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        self.receive()
    }

    fn text(&mut self, uri: &str) -> String {
        let answer = self.ask("resources/read", json!({"uri": uri}));
        answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn json(&mut self, uri: &str) -> Value {
        serde_json::from_str(&self.text(uri)).unwrap()
    }

    fn kind_of_error(&mut self, uri: &str) -> String {
        let answer = self.ask("resources/read", json!({"uri": uri}));
        answer["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn complete(&mut self, template: &str, variable: &str, value: &str) -> Value {
        let reference = json!({"type": "ref/resource", "uri": template});
        let params = json!({"ref": reference, "argument": {"name": variable, "value": value}});
        self.ask("completion/complete", params)["result"]["completion"]["values"].take()
    }

    // The end of input ends it, with status 0 (R-150).
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn config_file() {
    let mut example = Example::start("config_file", &[]);
    let file: Value = serde_json::from_slice(&std::fs::read(data("app.json")).unwrap()).unwrap();
    assert_eq!(example.json("config://app"), file);
    assert_eq!(example.json("config://app/theme"), file["theme"]);
    assert_eq!(example.complete("config://app/{section}", "section", "s"), json!(["server"]));
    assert_eq!(example.kind_of_error("config://app/none"), "not_found");
    example.end();
}

/// Waits for a notification of this method.
fn wait_for(example: &mut Example, method: &str) -> Value {
    loop {
        let message = example.receive();
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

// S-01: a provider from outside of the project: rows, a list, completion, and updates of what is watched alone.
#[test]
fn csv_folder() {
    let folder = std::env::temp_dir().join(format!("mcp-csv-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["people.csv", "parts.csv"] {
        std::fs::copy(data("tables").join(name), folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("notes.txt"), "not a table").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.join("link.csv")).unwrap();
    let mut example = Example::start("csv_folder", &[folder.to_str().unwrap()]);
    let list = example.ask("resources/list", json!({}));
    let names =
        list["result"]["resources"].as_array().unwrap().iter().map(|resource| resource["name"].clone());
    assert_eq!(names.collect::<Value>(), json!(["parts.csv", "people.csv"]));
    assert_eq!(example.text("csv:///parts.csv"), "name;price\nbolt;0.10\n");
    let ada = json!({"name": "Ada", "city": "London", "note": "likes \"quotes\", and commas"});
    assert_eq!(example.json("csv:///people.csv?row=1"), ada);
    assert_eq!(example.json("csv:///people.csv?row=3")["city"], "東京");
    for (uri, kind) in [
        ("csv:///people.csv?row=4", "not_found"),
        ("csv:///people.csv?row=0", "not_found"),
        ("csv:///people.csv?row=x", "invalid_parameter"),
        ("csv:///link.csv", "not_found"),
        ("csv:///notes.txt", "not_found"),
        ("csv:///..%2Fpeople.csv", "not_found"),
    ] {
        assert_eq!(example.kind_of_error(uri), kind, "{uri}");
    }
    assert_eq!(example.complete("csv:///{file}{?row}", "file", "pe"), json!(["people.csv"]));
    let filter = json!({"resourceSubscriptions": ["csv:///people.csv?row=1"], "resourcesListChanged": true});
    let acknowledged = example.ask("subscriptions/listen", json!({"notifications": filter}));
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    std::fs::write(folder.join("parts.csv"), "name;price\nbolt;0.25\n").unwrap();
    std::fs::write(folder.join("people.csv"), "name,city\nAda,Paris\n").unwrap();
    let updated = wait_for(&mut example, "notifications/resources/updated");
    assert_eq!(updated["uri"], "csv:///people.csv?row=1");
    std::fs::write(folder.join("new.csv"), "name\n").unwrap();
    wait_for(&mut example, "notifications/resources/list_changed");
    assert_eq!(example.json("csv:///people.csv?row=1"), json!({"name": "Ada", "city": "Paris"}));
    example.end();
    std::fs::remove_dir_all(folder).unwrap();
}

// S-20: the provider of databases serves what is declared, and no denied column.
#[test]
fn database_tables() {
    let mut example = Example::start("database_tables", &[]);
    assert_eq!(example.json("db:///shop/customers/2"), json!({"id": 2, "name": "Bo", "city": "Oslo"}));
    assert_eq!(example.json("db:///shop/query/by_city?city=Oslo")["rows"][1]["name"], "Cy");
    example.end();
}

#[test]
fn settings() {
    let mut example = Example::start("settings", &[]);
    let file: Value = serde_json::from_slice(&std::fs::read(data("app.json")).unwrap()).unwrap();
    assert_eq!(example.json("config:///app"), json!({"server": file["server"], "theme": file["theme"]}));
    let keys = example.complete("config:///{app}/{+key}", "key", "s");
    assert_eq!(keys, json!(["server", "server/host", "server/port"]));
    assert_eq!(example.kind_of_error("config:///app/features"), "not_found");
    assert_eq!(example.kind_of_error("env:///PATH"), "not_found");
    example.end();
}

#[test]
fn access_rules() {
    let mut example = Example::start("access_rules", &[]);
    assert_eq!(example.kind_of_error("team://blue/notes/salaries"), "not_found");
    assert_eq!(example.kind_of_error("team://board/plan"), "not_found");
    let names = example.complete("team://{team}/notes/{name}", "name", "");
    assert_eq!(names, json!(["launch", "retrospective"]));
    example.end();
}

#[test]
fn live_feed() {
    let mut example = Example::start("live_feed", &[]);
    let filter = json!({"resourceSubscriptions": ["metrics://cpu/usage"]});
    let acknowledged = example.ask("subscriptions/listen", json!({"notifications": filter}));
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..2 {
        assert_eq!(example.receive()["method"], "notifications/resources/updated");
    }
    assert!(example.json("metrics://cpu/usage")["sampled_at"].as_f64().unwrap() > 0.0);
    example.end();
}

#[test]
fn database_view() {
    let uri = "db://analytics/daily_summary";
    let mut example = Example::start("database_view", &[]);
    assert_eq!(example.json(uri).as_array().unwrap().len(), 3);
    let day = json!({"day": "2026-07-02", "orders": 2, "revenue": 1195.75});
    assert_eq!(example.json(&format!("{uri}/2026-07-02")), day);
    assert_eq!(example.kind_of_error(&format!("{uri}/1999-01-01")), "not_found");
    assert_eq!(example.complete(&format!("{uri}/{{day}}"), "day", "2026-07-01"), json!(["2026-07-01"]));
    let list = example.ask("resources/list", json!({}));
    assert_eq!(list["result"]["resources"].as_array().unwrap().len(), 4);
    example.end();
}

#[test]
fn http_api() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", upstream.local_addr().unwrap());
    std::thread::spawn(move || upstream.incoming().flatten().for_each(answer_user));
    let mut example = Example::start("http_api", &[&base]);
    assert_eq!(example.json("api://users/2")["name"], "花子");
    assert_eq!(example.kind_of_error("api://users/3"), "not_found");
    assert_eq!(example.kind_of_error("api://users/ada"), "invalid_parameter");
    let fault = example.ask("resources/read", json!({"uri": "api://users/500"}));
    assert_eq!(fault["error"]["data"]["kind"], "read_error");
    assert!(!fault.to_string().contains("secret"));
    example.end();
}

/// The API behind the example: one user, and a fault.
fn answer_user(mut stream: std::net::TcpStream) {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).unwrap();
    let (status, body) = match String::from_utf8_lossy(&request[..read]).split(' ').nth(1) {
        Some("/users/2") => ("200 OK", r#"{"id":2,"name":"花子"}"#),
        Some("/users/500") => ("500 Internal Server Error", "secret-detail"),
        _ => ("404 Not Found", "secret-detail"),
    };
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

#[test]
fn documents() {
    let mut example = Example::start("documents", &[]);
    let list = example.ask("resources/list", json!({}));
    let resources = list["result"]["resources"].as_array().unwrap();
    let files = std::fs::read_dir(data("docs")).unwrap();
    assert_eq!(resources.len(), files.count());
    let design = resources.iter().find(|resource| resource["name"] == "設計.md").unwrap();
    assert_eq!(
        (&design["uri"], &design["title"]),
        (&json!("docs:///%E8%A8%AD%E8%A8%88.md"), &json!("設計の要点"))
    );
    let text = std::fs::read_to_string(data("docs/設計.md")).unwrap();
    assert_eq!(example.text("docs:///%E8%A8%AD%E8%A8%88.md"), text);
    assert!(example.text("docs:///用語集.md").starts_with("# 用語集"), "DEC-29: an IRI is accepted");
    assert_eq!(example.complete("docs:///{name}", "name", "は"), json!(["はじめに.md"]));
    assert_eq!(example.kind_of_error("docs:///..%2Fapp.json"), "not_found", "R-074");
    example.end();
}
