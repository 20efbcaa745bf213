//! Several engines over one log in memory, with cuts, losses and repetitions: each change reaches every engine in the end.

use super::*;
use crate::transport::{EngineClock, read_policy};
use mcp_resources_engine::connection::{Arrival, Connection, ConnectionKind};
use mcp_resources_engine::engine::{BusCounts, Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::seal::SealKey;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SECRET: &str = "a secret of sixteen";
/// Maximum time that a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process of the server: an engine, its bus, and a client that watches everything.
struct Process {
    engine: Arc<Engine>,
    clock: Arc<EngineClock>,
    bus: Option<BusThread>,
    client: Connection,
    /// The URIs that the client was notified of and has not read since.
    told: BTreeSet<String>,
    lines: Arc<Mutex<Vec<String>>>,
}

fn uri(number: usize) -> String {
    format!("note://{number}")
}

fn engine(name: &str, secret: Option<&str>) -> Arc<Engine> {
    with_policy(name, secret, r#"{"deny": ["note://hidden"]}"#)
}

fn with_policy(name: &str, secret: Option<&str>, policy: &str) -> Arc<Engine> {
    let info = ServerInfo { name: name.into(), version: "1".into(), ..ServerInfo::default() };
    let mut options = EngineOptions::default();
    options.keys =
        secret.map(|secret| SealKey::from_secret(secret.as_bytes()).unwrap()).into_iter().collect();
    options.metrics = true;
    options.guard = read_policy(policy).unwrap();
    options.shares_rates = true;
    let engine = Engine::new(info, options).unwrap();
    let handler = engine.new_handler();
    let template = mcp_resources_engine::resource::Template::new("note://{id}");
    let edit = mcp_resources_engine::catalog::Edit::AddTemplate {
        template: Box::new(template),
        handler,
        mount: None,
    };
    engine.publish(vec![edit], EngineClock::new().now()).unwrap();
    engine
}

impl Process {
    fn start(bus: &MemoryBus, uris: usize) -> Self {
        Self::with(engine("notes", Some(SECRET)), bus, uris)
    }

    fn with(engine: Arc<Engine>, bus: &MemoryBus, uris: usize) -> Self {
        let clock = Arc::new(EngineClock::new());
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = lines.clone();
        let write = move |line| log.lock().unwrap().push(line);
        let started = BusThread::start(Arc::new(bus.clone()), &engine, clock.clone(), write).unwrap();
        let client = engine.connect(ConnectionKind::Stdio);
        let mut process = Self { engine, clock, bus: Some(started), client, told: BTreeSet::new(), lines };
        process.send(HELLO);
        process.send(READY);
        for uri in (0..uris).map(uri).chain(["note://hidden".into()]) {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            process.send(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{params}}}"#
            ));
        }
        process
    }

    fn send(&mut self, message: &str) {
        self.ask(message, &Principal::local());
    }

    /// The answer to a message of a principal, if the engine knows it.
    fn ask(&mut self, message: &str, principal: &Arc<Principal>) -> String {
        let arrival = Arrival { message: message.as_bytes(), principal, header_check: None };
        let mut out = Vec::new();
        drop(self.client.message(arrival, self.clock.now(), &mut out));
        String::from_utf8(out).unwrap()
    }

    /// Takes what the client is notified of by now.
    fn listen(&mut self) {
        let now = self.clock.now();
        self.engine.tick(now);
        let mut out = Vec::new();
        let _ = self.client.deliver(1 << 20, &mut out);
        for line in String::from_utf8(out).unwrap().lines() {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            let told = message["params"]["uri"].as_str().or(message["method"].as_str()).unwrap_or_default();
            self.told.insert(told.to_owned());
        }
    }

    fn counts(&self) -> BusCounts {
        let text = self.engine.metrics_text().unwrap();
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("mcp_resources_bus_{name} ")));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap() as u64
        };
        BusCounts {
            sent: value("sent_total"),
            received: value("received_total"),
            lost: value("lost_total"),
            ignored: value("ignored_total"),
            lag: 0,
            is_connected: value("connected") == 1,
        }
    }

    fn updated(&self, number: usize) {
        self.engine.updated(&uri(number), self.clock.now()).unwrap();
    }
}

/// Waits until `is_so`, and says so if it never is.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn connected(processes: &mut [Process]) {
    for process in processes {
        wait("connected", || process.counts().is_connected);
        // What is announced at the start.
        std::thread::sleep(Duration::from_millis(1));
        process.listen();
        process.told.clear();
    }
}

#[test]
fn a_change_in_one_process_reaches_the_others_once() {
    let bus = MemoryBus::default();
    let mut processes = [Process::start(&bus, 3), Process::start(&bus, 3), Process::start(&bus, 3)];
    connected(&mut processes);
    std::thread::sleep(Duration::from_millis(60));
    processes.iter_mut().for_each(|process| {
        process.listen();
        process.told.clear();
    });
    processes[0].updated(1);
    processes[0].engine.updated("note://hidden", processes[0].clock.now()).unwrap();
    // In one message or in two.
    wait("received", || [0, 1, 2].map(|at| processes[at].counts().received) == [0, 2, 2]);
    wait("sent", || processes[0].counts().sent == 2);
    for process in &mut processes {
        wait("told", || {
            process.listen();
            process.told.contains("note://1")
        });
        assert_eq!(process.told.iter().collect::<Vec<_>>(), ["note://1"]);
    }
    assert!(processes.iter().all(|process| process.counts().ignored == 0 && process.counts().lost == 0));
    // A provider's report stays here: its watcher runs in the others too.
    processes[0].engine.updated_here("note://2", None, processes[0].clock.now()).unwrap();
    processes[0].updated(0);
    wait("told", || {
        processes[1].listen();
        processes[1].told.contains("note://0")
    });
    assert!(!processes[1].told.contains("note://2"));
}

/// Entries of strangers, of another server with other keys or another name, and repeated ones change nothing.
#[test]
fn foreign_and_repeated_entries_are_ignored() {
    let bus = MemoryBus::default();
    let other = Process::with(engine("shop", Some(SECRET)), &bus, 1);
    let stranger = Process::with(engine("notes", Some("another secret of ours")), &bus, 1);
    let mut ours = [Process::start(&bus, 1), Process::start(&bus, 1)];
    connected(&mut ours);
    std::thread::sleep(Duration::from_millis(60));
    ours.iter_mut().for_each(Process::listen);
    ours.iter_mut().for_each(|process| process.told.clear());
    let [first, second] = &mut ours;
    other.updated(0);
    stranger.updated(0);
    bus.put("PING");
    bus.put([0xff, 0xfe].as_slice());
    bus.put("x".repeat(1 << 20));
    wait("ignored", || second.counts().ignored == 5);
    first.updated(0);
    wait("received", || second.counts().received == 1);
    second.listen();
    second.told.clear();
    let replayed = bus.entries().pop().unwrap();
    std::thread::sleep(Duration::from_millis(60));
    bus.put(replayed);
    wait("ignored", || second.counts().ignored == 6);
    second.listen();
    assert!(second.told.is_empty(), "{:?}", second.told);
    assert_eq!(second.counts().received, 1);
}

/// Entries that were trimmed while a process could not read: everything is announced once, and the log has two lines.
#[test]
fn after_a_gap_everything_is_announced() {
    let bus = MemoryBus::default();
    let mut ours = [Process::start(&bus, 3), Process::start(&bus, 3)];
    connected(&mut ours);
    let [first, second] = &mut ours;
    bus.set_faults(MemoryFaults { is_cut: true, ..MemoryFaults::default() });
    wait("lost", || !second.counts().is_connected && !second.lines.lock().unwrap().is_empty());
    bus.put("x");
    bus.trim(0);
    bus.set_faults(MemoryFaults::default());
    wait("back", || second.lines.lock().unwrap().len() == 2);
    let told = |process: &mut Process| {
        process.listen();
        (0..3).all(|number| process.told.contains(&uri(number)))
    };
    wait("told", || told(second));
    assert!(
        second.told.contains("notifications/resources/list_changed")
            && !second.told.contains("note://hidden")
    );
    assert_eq!(second.counts().lost, 1);
    // A cut without a loss is none.
    bus.set_faults(MemoryFaults { is_cut: true, ..MemoryFaults::default() });
    wait("lost", || second.lines.lock().unwrap().len() == 3);
    first.updated(2);
    second.told.clear();
    bus.set_faults(MemoryFaults::default());
    wait("told", || {
        second.listen();
        second.told.contains("note://2")
    });
    assert_eq!(second.counts().lost, 1);
    let lines = second.lines.lock().unwrap();
    assert!(
        lines[0].starts_with("the bus memory: cannot be used, because the test has cut it; "),
        "{lines:?}"
    );
    assert_eq!(lines[1], "the bus memory: is back");
}

/// The lists that a client gets of two processes by turns.
fn lists(processes: &mut [Process], principal: &Arc<Principal>, rounds: usize) -> usize {
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"resources/list"}"#;
    let mut accepted = 0;
    for _ in 0..rounds {
        for process in &mut *processes {
            let answer = process.ask(list, principal);
            accepted += usize::from(answer.contains("\"result\""));
        }
        // Longer than a report takes, also on a busy machine.
        std::thread::sleep(Duration::from_millis(60));
    }
    accepted
}

/// Two processes count a client together; while the store cannot be used, each counts for itself, and says so once.
#[test]
fn processes_count_requests_together() {
    const POLICY: &str = r#"{"rate": {"list": {"per_second": 0.001, "burst": 10}, "shared": true}}"#;
    let bus = MemoryBus::default();
    let start = || Process::with(with_policy("notes", Some(SECRET), POLICY), &bus, 1);
    let mut ours = [start(), start()];
    connected(&mut ours);
    let accepted = lists(&mut ours, &Principal::new("ada"), 15);
    assert!((10..=14).contains(&accepted), "{accepted}");
    assert_eq!(lists(&mut ours[..1], &Principal::new("ada"), 3), 0);
    // The client of a process on stdio is another one in each.
    assert_eq!(lists(&mut ours, &Principal::local(), 15), 20);
    bus.set_faults(MemoryFaults { is_cut: true, ..MemoryFaults::default() });
    assert_eq!(lists(&mut ours, &Principal::new("bob"), 15), 20);
    let lines = ours[0].lines.lock().unwrap();
    let said: Vec<_> = lines.iter().filter(|line| line.starts_with("the shared rates at memory:")).collect();
    assert_eq!(said.len(), 1, "{lines:?}");
    assert!(said[0].ends_with("because the test has cut it; until they can, each process counts for itself"));
}

/// A clock that jumps changes the metric of the lag, and nothing else: rates and pauses are of the monotonic clock.
#[test]
fn a_clock_that_jumps_loses_nothing() {
    let bus = MemoryBus::default();
    let mut ours = [Process::start(&bus, 3), Process::start(&bus, 3)];
    connected(&mut ours);
    let [first, second] = &mut ours;
    let now = first.clock.now();
    for (at, unix) in [0, now.unix + 86_400_000, u64::MAX, now.unix - 86_400_000].into_iter().enumerate() {
        first.clock.set(Some(Now { tick: now.tick + at as u64, unix }));
        first.updated(at % 3);
        wait("told", || {
            second.listen();
            second.told.remove(&uri(at % 3))
        });
    }
    assert_eq!((second.counts().received, second.counts().lost, second.counts().ignored), (4, 0, 0));
    // The other side's clock, too: what it has received stays received.
    let now = second.clock.now();
    second.clock.set(Some(Now { tick: now.tick + 10, unix: 5 }));
    first.updated(1);
    wait("received", || second.counts().received == 5);
}

#[test]
fn a_bus_needs_keys_and_an_engine_has_one_bus() {
    let start = |engine: &Arc<Engine>| {
        BusThread::start(Arc::new(MemoryBus::default()), engine, Arc::new(EngineClock::new()), drop)
    };
    let error = start(&engine("notes", None)).unwrap_err();
    assert_eq!(error.to_string(), "a bus needs keys, which all processes of the server share");
    let own = engine("notes", Some(SECRET));
    let first = start(&own).unwrap();
    assert_eq!(start(&own).unwrap_err().to_string(), "the server has a bus already");
    drop(first);
}

/// The model: random histories of changes, cuts, trims, entries that are confirmed and lost, and answers that are lost. In the
/// end each client heard of each URI after its last change.
#[test]
fn nobody_misses_the_last_change() {
    const URIS: usize = 5;
    for seed in 1..=12_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |max: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % max).unwrap()
        };
        let bus = MemoryBus::default();
        let mut processes: Vec<_> = (0..3).map(|_| Process::start(&bus, URIS)).collect();
        connected(&mut processes);
        let mut changed_uris = BTreeSet::new();
        for _ in 0..60 {
            match next(16) {
                0 => bus.set_faults(MemoryFaults { is_cut: true, ..MemoryFaults::default() }),
                1 | 2 => bus.set_faults(MemoryFaults::default()),
                3 => bus.set_faults(MemoryFaults { drops: next(3), ..MemoryFaults::default() }),
                4 => bus.set_faults(MemoryFaults { doubts: true, ..MemoryFaults::default() }),
                5 => bus.trim(next(4)),
                6 => processes[next(3)].listen(),
                7 => std::thread::sleep(Duration::from_millis(next(20) as u64)),
                _ => {
                    let changed = next(URIS as u64);
                    let from = next(3);
                    for process in &mut processes {
                        // What was told before this change does not count.
                        process.listen();
                        process.told.remove(&uri(changed));
                    }
                    processes[from].updated(changed);
                    changed_uris.insert(uri(changed));
                }
            }
        }
        bus.set_faults(MemoryFaults::default());
        for process in &processes {
            process.bus.as_ref().unwrap().flush();
            wait("connected", || process.counts().is_connected);
            // By the message after it, a lost one is noticed.
            process.engine.updated("note://end", process.clock.now()).unwrap();
        }
        for (at, process) in processes.iter_mut().enumerate() {
            wait(&format!("seed {seed}, process {at}"), || {
                process.listen();
                changed_uris.is_subset(&process.told)
            });
            assert!(!process.told.contains("note://hidden"));
        }
    }
}
