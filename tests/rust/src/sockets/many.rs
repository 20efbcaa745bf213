//! Many connections at once: the short form of `make soak`.

use super::Served;
use serde_json::json;

/// How many listeners wait, how many connections are busy, and for how many rounds. Both ends of every connection are
/// in this process, so that the system may not allow as many as are wanted.
fn counts() -> (u64, u64, u64) {
    if std::env::var_os("MCP_RESOURCES_SOAK").is_none() {
        return (300, 100, 5);
    }
    let (busy, spare) = (1_000, 100);
    (10_000.min((descriptors() / 2).saturating_sub(busy + spare)), busy, 200)
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
    let (listeners, busy, rounds) = counts();
    println!("{listeners} listeners, {busy} busy connections, {rounds} rounds");
    let served = Served::new();
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
        resident.push(super::resident());
    }
    // The first rounds fill caches; after that memory stays where it is.
    let (settled, last) = (resident[rounds as usize / 2], resident[rounds as usize - 1]);
    assert!(last <= settled + settled / 10 + (8 << 20), "memory grows: {resident:?}");
    drop((waiting, clients));
    let engine = served.server.engine();
    let empty = format!("{:?}", Served::new().server.engine().subscriptions());
    super::eventually(|| format!("{:?}", engine.subscriptions()) == empty);
}
