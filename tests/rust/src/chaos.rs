//! A client whose server is killed again and again while what it watches changes (S-13).

use mcp_resources_client::{Client, Target};
use mcp_resources_engine::version::Revision;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How many URIs change.
const URIS: usize = 1_000;
/// How often the server is killed, unless the variable `MCP_RESOURCES_KILLS` says otherwise.
const KILLS: usize = 12;
/// How long the end may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The values, one in each line of a file.
struct Values {
    file: PathBuf,
    lines: Vec<String>,
    random: u64,
}

impl Values {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mcp-resources-chaos-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let lines = (0..URIS).map(|number| number.to_string()).collect();
        let values = Self { file: folder.join("values"), lines, random: 7 };
        values.write();
        values
    }

    /// Replaces the file at once: a server that is killed reads all of the old one, or all of the new.
    fn write(&self) {
        let next = self.file.with_extension("next");
        fs::write(&next, self.lines.join("\n")).unwrap();
        fs::rename(next, &self.file).unwrap();
    }

    fn random(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap() % below
    }

    /// Changes some of them.
    fn change(&mut self) {
        for _ in 0..=self.random(30) {
            let at = self.random(URIS);
            let value = self.random(1_000_000);
            self.lines[at] = if value.is_multiple_of(20) { "gone".into() } else { value.to_string() };
        }
        self.write();
    }

    /// The server's process, once it has one that is not `before`.
    fn process(&self, before: u32) -> u32 {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = fs::read_to_string(self.file.with_extension("pid")).ok();
            match found.and_then(|text| text.parse().ok()) {
                Some(process) if process != before => return process,
                _ => assert!(Instant::now() < end, "the server was not started again"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.file.parent().unwrap());
    }
}

fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap();
    let program = folder.join("serve-values");
    assert!(program.is_file(), "{} is missing: run tests/rust/build", program.display());
    program
}

fn kills() -> usize {
    std::env::var("MCP_RESOURCES_KILLS")
        .map_or(KILLS, |text| text.parse().expect("MCP_RESOURCES_KILLS is a number"))
}

/// The last contents that the client received, by URI.
type Contexts = Arc<Mutex<BTreeMap<String, Option<String>>>>;

fn watch_all(client: &Client) -> Contexts {
    let contexts = Contexts::default();
    for number in 0..URIS {
        let mut watch = client.watch(&format!("values://{number}"));
        let contexts = contexts.clone();
        tokio::spawn(async move {
            while let Some(change) = watch.next().await {
                let change = match change {
                    Ok(change) => change,
                    Err(error) => {
                        contexts.lock().unwrap().insert(error.to_string(), None);
                        return;
                    }
                };
                let text = change.contents.map(|contents| match &contents[0].body {
                    mcp_resources_engine::connection::Body::Text(text) => text.to_string(),
                    other => panic!("{other:?}"),
                });
                contexts.lock().unwrap().insert(change.uri, text);
            }
        });
    }
    contexts
}

/// Waits until every context is what the server has.
async fn agree(contexts: &Contexts, values: &Values) {
    let wanted =
        |(at, line): (usize, &String)| (format!("values://{at}"), (line != "gone").then(|| line.clone()));
    let wanted: BTreeMap<_, _> = values.lines.iter().enumerate().map(wanted).collect();
    let end = Instant::now() + PATIENCE;
    loop {
        let differ = {
            let contexts = contexts.lock().unwrap();
            wanted.iter().filter(|(uri, text)| contexts.get(*uri) != Some(text)).count()
        };
        if differ == 0 {
            return;
        }
        let unwanted = contexts.lock().unwrap().keys().find(|uri| !wanted.contains_key(*uri)).cloned();
        assert_eq!(unwanted, None, "a watch has ended");
        assert!(Instant::now() < end, "{differ} of {URIS} contexts differ from the server");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// No URI was read twice at once.
fn assert_sound(values: &Values) {
    let wrong = values.file.with_extension("wrong");
    assert!(!wrong.exists(), "{}", fs::read_to_string(wrong).unwrap_or_default());
}

/// A server over HTTP that the test starts, and ends with it.
struct Server(Child);

impl Server {
    fn start(values: &Values, port: u16) -> Self {
        let server = Self(Command::new(program()).arg(&values.file).arg(port.to_string()).spawn().unwrap());
        let end = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "the server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kill(process: u32) {
    let status = Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap();
    assert!(status.success());
}

async fn pause(values: &mut Values) {
    tokio::time::sleep(Duration::from_millis(values.random(120) as u64)).await;
}

/// S-13: a client over stdio starts its server again, and every context ends equal to the server, in either era.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_is_started_again() {
    for era in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut values = Values::new(&format!("stdio-{era}"));
        let target = Target::command(program().to_string_lossy(), [values.file.to_string_lossy()]);
        let client = Client::builder().revision(era).server("values", target).connect().unwrap();
        let contexts = watch_all(&client);
        // A watch waits for a server that it has reached once.
        agree(&contexts, &values).await;
        let mut process = values.process(0);
        for _ in 0..kills() {
            pause(&mut values).await;
            values.change();
            pause(&mut values).await;
            values.change();
            kill(process);
            process = values.process(process);
        }
        agree(&contexts, &values).await;
        assert_sound(&values);
        client.close().await;
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "the server was left behind");
    }
}

/// The same over HTTP, where somebody else starts the server again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_that_is_killed_is_found_again() {
    for era in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut values = Values::new(&format!("http-{era}"));
        // Bound, not listened on: no other process is given the port while the server is away.
        let reserved = tokio::net::TcpSocket::new_v4().unwrap();
        reserved.set_reuseaddr(true).unwrap();
        reserved.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let port = reserved.local_addr().unwrap().port();
        let mut server = Server::start(&values, port);
        let target = Target::url(format!("http://127.0.0.1:{port}/mcp"));
        let client = Client::builder().revision(era).server("values", target).connect().unwrap();
        let contexts = watch_all(&client);
        // A watch waits for a server that it has reached once.
        agree(&contexts, &values).await;
        for _ in 0..kills().div_ceil(3) {
            pause(&mut values).await;
            values.change();
            drop(server);
            pause(&mut values).await;
            values.change();
            server = Server::start(&values, port);
            pause(&mut values).await;
        }
        agree(&contexts, &values).await;
        assert_sound(&values);
        client.close().await;
    }
}
