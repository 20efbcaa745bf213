//! Many connections at once, and clients that misbehave among them: the short form of `make soak`.

use super::{Client, Served};
use serde_json::json;
use std::process::{Child, Command};

/// How many listeners are wanted: what `make soak` sets.
const WANTED: &str = "MCP_RESOURCES_SOAK";
const MOST_BUSY: u64 = 1_000;
const SPARE: u64 = 100;

/// What one process does: how many listeners wait, how many connections are busy, for how many rounds, and how many clients
/// misbehave meanwhile.
struct Load {
    listeners: u64,
    busy: u64,
    rounds: u64,
    hostile: u64,
}

/// What this process is to do, after others have taken what does not fit it. Both ends of every connection are in one
/// process, which the system allows only so many descriptors.
fn load() -> (Load, Vec<Child>) {
    let Some(wanted) = std::env::var(WANTED).ok().and_then(|text| text.parse::<u64>().ok()) else {
        return (Load { listeners: 300, busy: 100, rounds: 5, hostile: 20 }, Vec::new());
    };
    let room = (descriptors() / 2).saturating_sub(SPARE);
    let busy = MOST_BUSY.min(room / 4);
    let fits = room.saturating_sub(2 * busy).max(1);
    let processes = wanted.div_ceil(fits).max(1);
    println!("{} descriptors: {fits} listeners fit one process, {processes} for {wanted}", descriptors());
    let share = wanted.div_ceil(processes);
    let start = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "sockets::many::many_listeners_and_busy_connections";
        command.args([test, "--exact", "--nocapture"]).env(WANTED, share.to_string());
        command.spawn().unwrap()
    };
    let others = (1..processes).map(start).collect();
    (Load { listeners: share, busy, rounds: 200, hostile: busy / 2 }, others)
}

/// How many descriptors this process may have.
fn descriptors() -> u64 {
    let text = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(1_024)
}

/// every listener hears every update, every request is answered, and nothing is left afterwards.
#[test]
fn many_listeners_and_busy_connections() {
    let (Load { listeners, busy, rounds, hostile }, others) = load();
    println!("{listeners} listeners, {busy} busy connections, {rounds} rounds, {hostile} misbehave");
    let served = Served::with(|limits| limits.connections_per_client = limits.connections, |http| http);
    let filter = json!({"notifications": {"resourceSubscriptions": ["demo://hello"]}});
    let mut waiting: Vec<_> = (0..listeners)
        .map(|id| {
            let mut client = served.client();
            client.ask(id, "subscriptions/listen", filter.clone(), &[]);
            client.head();
            client.message();
            client
        })
        .collect();
    let mut clients: Vec<_> = (0..busy).map(|_| served.client()).collect();
    let mut bad: Vec<_> = (0..hostile).map(|number| misbehaving(&served, number)).collect();
    let mut resident = Vec::new();
    for round in 0..rounds {
        for (id, client) in (0..).zip(&mut clients) {
            client.read(id, &format!("demo://item/{id}"));
        }
        for (id, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.text(), format!("item {id}"));
        }
        if round % 20 == 0 {
            served.server.notify_updated("demo://hello").unwrap();
            for client in &mut waiting {
                assert_eq!(client.message().json()["params"]["uri"], "demo://hello");
            }
        }
        // They go on misbehaving: a byte of a head now and then, another that breaks off.
        if let Some(one) = bad.get_mut(round as usize % (hostile as usize).max(1)) {
            *one = misbehaving(&served, round);
        }
        resident.push(super::resident());
    }
    // The first rounds fill caches; after that memory stays where it is.
    let settled = resident[rounds as usize / 2];
    let last = resident[rounds as usize - 1];
    assert!(last <= settled + settled / 10 + (8 << 20), "memory grows: {resident:?}");
    drop((waiting, clients, bad));
    let engine = served.server.engine();
    let empty = format!("{:?}", Served::new().server.engine().subscriptions());
    super::eventually(|| format!("{:?}", engine.subscriptions()) == empty);
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
}

/// A client that does one of the things that clients should not, and then nothing.
fn misbehaving(served: &Served, number: u64) -> Client {
    let mut client = served.client();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    match number % 5 {
        0 => client.raw(b"POST /mcp HTT"),
        1 => client.raw(format!("{head}Content-Length: 100\r\n\r\n{{\"json").as_bytes()),
        2 => client.raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n40\r\n{{").as_bytes()),
        3 => client.read(1, "demo://hello"),
        _ => {
            client.read(1, "demo://hello");
            client.half_close();
        }
    }
    client
}
