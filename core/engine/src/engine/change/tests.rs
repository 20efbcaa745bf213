//! Changes that reach a sink, and those that do not; two engines as two processes.

use super::*;
use crate::catalog::{Edit, ItemSource};
use crate::connection::{Arrival, Connection, ConnectionKind};
use crate::engine::{EngineOptions, ServerInfo};
use crate::principal::Principal;
use crate::resource::{Resource, Template};
use std::sync::Mutex;

#[derive(Default)]
struct Taken(Mutex<Vec<SharedChange>>);

impl ChangeSink for Taken {
    fn changed(&self, change: SharedChange) {
        self.0.lock().unwrap().push(change);
    }

    fn counts(&self) -> BusCounts {
        BusCounts { sent: self.0.lock().unwrap().len() as u64, lag: 1_500, ..BusCounts::default() }
    }
}

fn updated(uri: &str, principal: Option<&str>) -> SharedChange {
    SharedChange::Updated { uri: uri.into(), principal: principal.map(Into::into) }
}

fn engine() -> (Arc<Engine>, Arc<Taken>) {
    let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
    let options = EngineOptions { metrics: true, ..EngineOptions::default() };
    let engine = Engine::new(info, options).unwrap();
    let handler = engine.new_handler();
    let template = Template::new("note://{id}");
    engine
        .publish(
            vec![Edit::AddTemplate { template: Box::new(template), handler, mount: None }],
            Now::default(),
        )
        .unwrap();
    let sink = Arc::new(Taken::default());
    assert!(engine.share_changes(sink.clone()));
    assert!(!engine.share_changes(Arc::new(Taken::default())), "only the first sink is used");
    (engine, sink)
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A session that watches these URIs.
fn session(engine: &Arc<Engine>, uris: &[&str]) -> Connection {
    let mut connection = engine.connect(ConnectionKind::Stdio);
    let subscribe = |uri: &&str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#)
    };
    let messages = [HELLO.to_owned(), READY.to_owned()].into_iter().chain(uris.iter().map(subscribe));
    let principal = Principal::local();
    for message in messages {
        let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
        drop(connection.message(arrival, Now::default(), &mut Vec::new()));
    }
    connection
}

/// The URIs and lists that a session is notified of.
fn told(connection: &mut Connection) -> Vec<String> {
    let mut out = Vec::new();
    let _ = connection.deliver(1 << 20, &mut out);
    let text = String::from_utf8(out).unwrap();
    let mut told: Vec<String> = text
        .lines()
        .map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            let uri = message["params"]["uri"].as_str().or(message["method"].as_str());
            uri.unwrap_or_default().to_owned()
        })
        .collect();
    told.sort();
    told
}

fn at(tick: u64) -> Now {
    Now { tick, unix: tick }
}

/// What the server's code announces reaches the sink in canonical form; the reports of providers, and what came from
/// another process, do not.
#[test]
fn the_sink_hears_of_the_servers_own_changes_alone() {
    let (engine, sink) = engine();
    let now = Now::default();
    engine.updated("NOTE://a", now).unwrap();
    engine.updated_for("ada", "note://b", now).unwrap();
    engine.list_changed(ListKinds::RESOURCES, now);
    engine.list_changed_for("ada", ListKinds::TOOLS, now);
    engine.revoke("eve");
    engine.revoke("");
    engine.regrant("eve");
    let lists =
        |kinds, principal: Option<&str>| SharedChange::Lists { kinds, principal: principal.map(Into::into) };
    let eve = || "eve".into();
    let expected = vec![
        updated("note://a", None),
        updated("note://b", Some("ada")),
        lists(ListKinds::RESOURCES, None),
        lists(ListKinds::TOOLS, Some("ada")),
        SharedChange::Revoked { principal: eve() },
        SharedChange::Regranted { principal: eve() },
    ];
    assert_eq!(std::mem::take(&mut *sink.0.lock().unwrap()), expected);
    assert!(engine.updated("no uri", now).is_err());
    engine.updated_here("note://a", None, now).unwrap();
    engine.list_changed_here(ListKinds::RESOURCES, None, now);
    for change in &expected {
        engine.apply_change(change, now).unwrap();
    }
    engine.mark_every(now);
    assert_eq!(*sink.0.lock().unwrap(), []);
}

/// An edit is shared as what its clients hear of: the removed resources, and the lists. One of a mount is not.
#[test]
fn edits_are_shared_and_those_of_mounts_are_not() {
    let (engine, sink) = engine();
    let add =
        |uri: &str| Edit::AddResource { resource: Resource::new(uri), source: ItemSource::Text("x".into()) };
    engine.publish(vec![add("note://zero")], Now::default()).unwrap();
    assert_eq!(*sink.0.lock().unwrap(), [], "before the first client it is the start of the process");
    let _client = engine.connect(ConnectionKind::Stdio);
    engine.publish(vec![add("note://one")], Now::default()).unwrap();
    let lists = SharedChange::Lists { kinds: ListKinds::RESOURCES, principal: None };
    assert_eq!(std::mem::take(&mut *sink.0.lock().unwrap()), std::slice::from_ref(&lists));
    engine.publish(vec![Edit::RemoveResource { uri: "note://one".into() }], Now::default()).unwrap();
    assert_eq!(std::mem::take(&mut *sink.0.lock().unwrap()), [updated("note://one", None), lists]);
    engine.apply(vec![add("note://two")], Now::default()).unwrap();
    engine.apply_each(vec![add("note://three")], Now::default());
    assert_eq!(*sink.0.lock().unwrap(), []);
}

/// A change of another process is delivered like one of this process.
#[test]
fn an_applied_change_is_delivered() {
    let (engine, _) = engine();
    let mut watcher = session(&engine, &["note://a", "note://b"]);
    assert_eq!(told(&mut watcher), [""; 0]);
    engine.apply_change(&updated("note://a", None), at(1)).unwrap();
    engine.apply_change(&updated("note://nobody-watches", None), at(1)).unwrap();
    engine.apply_change(&updated("note://b", Some("ada")), at(1)).unwrap();
    assert_eq!(told(&mut watcher), ["note://a"]);
    let lists = SharedChange::Lists { kinds: ListKinds::RESOURCES, principal: None };
    engine.apply_change(&lists, at(2)).unwrap();
    assert_eq!(told(&mut watcher), ["notifications/resources/list_changed"]);
    assert!(engine.apply_change(&updated("no uri", None), at(3)).is_err());
}

/// After a loss everything that is watched is announced once, at most as often as the interval allows.
#[test]
fn after_a_loss_everything_is_announced_once() {
    let (engine, _) = engine();
    let mut both = session(&engine, &["note://a", "note://b"]);
    let mut one = session(&engine, &["note://b"]);
    let list = "notifications/resources/list_changed";
    engine.mark_every(at(1_000));
    engine.mark_every(at(1_000));
    assert_eq!(told(&mut both), ["note://a", "note://b", list]);
    assert_eq!(told(&mut one), ["note://b", list]);
    engine.mark_every(at(1_001));
    assert_eq!(told(&mut one), [""; 0], "not before the interval has passed");
    engine.tick(at(2_000));
    assert_eq!(told(&mut one), ["note://b", list]);
    let idle = session(&engine, &[]);
    drop(idle);
}

#[test]
fn the_counters_are_metrics() {
    let (engine, _) = engine();
    engine.revoke("eve");
    let text = engine.metrics_text().unwrap();
    for line in [
        "mcp_resources_bus_connected 0",
        "mcp_resources_bus_lag_seconds 1.500",
        "mcp_resources_bus_sent_total 1",
        "mcp_resources_bus_lost_total 0",
    ] {
        assert!(text.lines().any(|own| own == line), "{line} in {text}");
    }
}
