//! Many connections at once: the short form of `make soak`.

use super::Served;
use serde_json::json;

/// How many listeners wait, and how many connections are busy.
fn counts() -> (u64, u64, u64) {
    let is_soak = std::env::var_os("MCP_RESOURCES_SOAK").is_some();
    if is_soak { (10_000, 1_000, 200) } else { (300, 100, 5) }
}

/// every listener hears every update, every request is answered, and nothing is left afterwards.
#[test]
fn many_listeners_and_busy_connections() {
    let (listeners, busy, rounds) = counts();
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
