use super::*;
use crate::catalog::Edit;
use crate::connection::{Arrival, ConnectionKind};
use crate::engine::{EngineOptions, ServerInfo};
use crate::now::Now;
use crate::principal::Principal;
use crate::resource::{Resource, Template};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Records reports, and panics if one is out of order.
#[derive(Default)]
struct Record {
    reported: Mutex<HashMap<String, ResourceInterest>>,
    lists: Mutex<bool>,
    wrong: Mutex<Vec<String>>,
    calls: AtomicU64,
}

impl Observer for Record {
    fn interest(&self, change: Interest<'_>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match change {
            Interest::Uri { uri, before, now } => {
                let mut reported = self.reported.lock().unwrap();
                let known = reported.remove(&**uri).unwrap_or_default();
                if known != before || before == now {
                    self.wrong.lock().unwrap().push(format!("{change:?}, but it knew {known:?}"));
                }
                if now.is_watched {
                    reported.insert(uri.to_string(), now);
                }
            }
            Interest::Lists { on } => {
                let before = std::mem::replace(&mut *self.lists.lock().unwrap(), on);
                if before == on {
                    self.wrong.lock().unwrap().push(format!("lists {on} twice"));
                }
            }
        }
    }
}

fn engine() -> (Arc<Engine>, Arc<Record>) {
    let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, EngineOptions::default()).unwrap();
    let record = Arc::new(Record::default());
    engine.observe(record.clone());
    (engine, record)
}

fn template(engine: &Engine) -> HandlerId {
    let handler = engine.new_handler();
    let template = Template::new("x://{id}");
    engine
        .publish(
            vec![Edit::AddTemplate { template: Box::new(template), handler, mount: None }],
            Now::default(),
        )
        .unwrap();
    engine.settle_interest();
    handler
}

fn send(engine: &Engine, connection: &mut crate::connection::Connection, message: &str) {
    let principal = Principal::local();
    let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
    drop(connection.message(arrival, Now::default(), &mut Vec::new()));
    engine.settle_interest();
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn subscribes(method: &str, uri: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/{method}","params":{{"uri":"{uri}"}}}}"#)
}

/// A watched URI is reported with its new handler as soon as that is registered, and without one when it is removed.
#[test]
fn a_change_of_routes_reroutes_what_is_watched() {
    let (engine, record) = engine();
    let first = template(&engine);
    let mut connection = engine.connect(ConnectionKind::Stdio);
    send(&engine, &mut connection, HELLO);
    assert!(*record.lists.lock().unwrap(), "a session hears of the lists");
    send(&engine, &mut connection, &subscribes("subscribe", "x://a"));
    let now = || record.reported.lock().unwrap().get("x://a").copied().unwrap_or_default();
    assert_eq!(now(), ResourceInterest { is_watched: true, handler: Some(first) });
    let second = engine.new_handler();
    let resource = Resource::new("x://a");
    let source = ItemSource::Handler(second);
    engine.publish(vec![Edit::AddResource { resource, source }], Now::default()).unwrap();
    engine.settle_interest();
    assert_eq!(now().handler, Some(second));
    let gone = vec![
        Edit::RemoveResource { uri: "x://a".into() },
        Edit::RemoveTemplate { uri_template: "x://{id}".into() },
    ];
    engine.publish(gone, Now::default()).unwrap();
    engine.settle_interest();
    assert_eq!(now(), ResourceInterest { is_watched: true, handler: None });
    drop(connection.close(Now::default()));
    engine.settle_interest();
    assert_eq!((now(), *record.lists.lock().unwrap()), (ResourceInterest::default(), false));
    assert!(record.wrong.lock().unwrap().is_empty(), "{:?}", record.wrong);
}

/// 32 threads watch, unwatch, register and remove: the reports about one URI are in order, and the last agrees with the
/// table.
#[test]
fn reports_agree_with_the_table_whatever_the_threads_do() {
    let (engine, record) = engine();
    template(&engine);
    thread::scope(|scope| {
        for thread in 0..32_u64 {
            let engine = engine.clone();
            scope.spawn(move || work(&engine, thread));
        }
    });
    engine.settle_interest();
    assert!(record.wrong.lock().unwrap().is_empty(), "{:?}", record.wrong);
    assert!(record.reported.lock().unwrap().is_empty() && !*record.lists.lock().unwrap());
    assert!(record.calls.load(Ordering::Relaxed) > 100);
    assert_eq!(engine.subscriptions().uris, 0);
    let state = engine.interests.lock();
    assert!(state.reported.is_empty() && state.marked.is_empty() && !state.is_reporting);
}

/// A thread of the model: performs random operations and undoes them at the end.
fn work(engine: &Arc<Engine>, thread: u64) {
    let mut random = thread.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |max: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % max
    };
    let mut connection = engine.connect(ConnectionKind::Stdio);
    send(engine, &mut connection, HELLO);
    for _ in 0..200 {
        let uri = format!("x://{}", next(8));
        match next(8) {
            0..3 => send(engine, &mut connection, &subscribes("subscribe", &uri)),
            3..6 => send(engine, &mut connection, &subscribes("unsubscribe", &uri)),
            6 => {
                drop(connection.close(Now::default()));
                engine.settle_interest();
                connection = engine.connect(ConnectionKind::Stdio);
                send(engine, &mut connection, HELLO);
            }
            _ => {
                let resource = Resource::new(&uri);
                let source = ItemSource::Handler(engine.new_handler());
                // Another thread may have registered it first.
                let _ = engine.publish(vec![Edit::AddResource { resource, source }], Now::default());
                engine.settle_interest();
                let _ = engine.publish(vec![Edit::RemoveResource { uri }], Now::default());
                engine.settle_interest();
            }
        }
    }
    drop(connection.close(Now::default()));
    engine.settle_interest();
}

/// After a panic of the observer, the next change is still reported.
#[test]
fn an_observer_that_panics_gets_the_next_change() {
    struct Panics(AtomicU64);
    impl Observer for Panics {
        fn interest(&self, _change: Interest<'_>) {
            assert_ne!(self.0.fetch_add(1, Ordering::SeqCst), 0, "as the test wants it");
        }
    }
    let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, EngineOptions::default()).unwrap();
    let observer = Arc::new(Panics(AtomicU64::new(0)));
    engine.observe(observer.clone());
    let mut connection = engine.connect(ConnectionKind::Stdio);
    let hello = std::panic::AssertUnwindSafe(|| send(&engine, &mut connection, HELLO));
    assert!(std::panic::catch_unwind(hello).is_err());
    drop(connection.close(Now::default()));
    engine.settle_interest();
    assert_eq!(observer.0.load(Ordering::SeqCst), 2);
}

/// An observer that is set late gets what is already watched, and nothing that no longer is.
#[test]
fn a_late_observer_gets_the_existing_watches() {
    let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, EngineOptions::default()).unwrap();
    let handler = template(&engine);
    let mut connection = engine.connect(ConnectionKind::Stdio);
    send(&engine, &mut connection, HELLO);
    for uri in ["x://1", "x://2"] {
        send(&engine, &mut connection, &subscribes("subscribe", uri));
    }
    send(&engine, &mut connection, &subscribes("unsubscribe", "x://2"));

    let record = Arc::new(Record::default());
    engine.observe(record.clone());
    assert_eq!(record.calls.load(Ordering::Relaxed), 0);
    engine.settle_interest();
    let waits = ResourceInterest { is_watched: true, handler: Some(handler) };
    assert_eq!(*record.reported.lock().unwrap(), HashMap::from([("x://1".into(), waits)]));
    assert!(*record.lists.lock().unwrap());

    drop(connection.close(Now::default()));
    engine.settle_interest();
    assert_eq!(*record.reported.lock().unwrap(), HashMap::new());
    assert_eq!(*record.wrong.lock().unwrap(), Vec::<String>::new());
}
