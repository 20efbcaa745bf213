//! Misbehaving providers, and requests that end in every way, over a pipe with a stopped clock.

mod asking;
mod calling;
mod mounting;
mod work;

use super::*;
use crate::transport::{EngineClock, EventHandler, Peer, Pipe};
use mcp_resources_engine::catalog::{Edit, ItemSource, MountId};
use mcp_resources_engine::connection::{Answer, Body, Contents, Events, Item};
use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::jsonrpc::Line;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::now::Now;
use mcp_resources_engine::resource::{ListSource, Resource, Template};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const ONE: Route = Route(1);
const ANY: &str = "held:///{id}";

/// Leaves the answer of each read to the test.
struct Holds {
    mount: Mutex<Option<Mount>>,
    held: Mutex<Sender<Held>>,
    interest: Mutex<Vec<String>>,
}

type Held = (Read, Responder<ReadResult<'static>>);

impl Holds {
    fn new(mount: Mount) -> (Arc<Self>, Receiver<Held>) {
        let (held, receiver) = channel();
        let mount = Mutex::new(Some(mount));
        let held = Mutex::new(held);
        let interest = Mutex::default();
        (Arc::new(Self { mount, held, interest }), receiver)
    }

    fn any() -> (Arc<Self>, Receiver<Held>) {
        Self::new(Mount::new("holds").template(ONE, Template::new(ANY)).workers(0, 0))
    }
}

impl Provider for Holds {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        Ok(lock(&self.mount).take().expect("mounted once"))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let _ = lock(&self.held).send((request, reply));
    }

    fn interest(&self, change: InterestChange<'_>) {
        lock(&self.interest).push(format!("{change:?}"));
    }
}

/// A provider whose functions are closures.
struct Does<F> {
    mount: Mutex<Option<Mount>>,
    read: F,
}

impl<F> Does<F>
where
    F: Fn(Read, Responder<ReadResult<'static>>) + Send + Sync + 'static,
{
    fn new(mount: Mount, read: F) -> Arc<Self> {
        Arc::new(Self { mount: Mutex::new(Some(mount)), read })
    }
}

impl<F> Provider for Does<F>
where
    F: Fn(Read, Responder<ReadResult<'static>>) + Send + Sync + 'static,
{
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        Ok(lock(&self.mount).take().expect("mounted once"))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        (self.read)(request, reply);
    }
}

/// Collects log messages.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

/// A server with one client on a pipe.
struct TestServer {
    engine: Arc<Engine>,
    clock: Arc<EngineClock>,
    mounts: Arc<Mounts>,
    pipe: Arc<Pipe>,
    event_handler: Arc<Everything>,
}

struct Everything {
    mounts: Arc<Mounts>,
    log: Log,
    /// The number of pending requests that are not settled.
    pending: AtomicUsize,
}

impl EventHandler for Everything {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        // Events that belong to no provider get no answer here.
        drop(self.mounts.take(peer, events));
    }

    fn pends(&self, _peer: &Peer) {
        self.pending.fetch_add(1, Ordering::SeqCst);
    }

    fn settled(&self, _peer: &Peer) {
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    fn misuse(&self, what: &str) {
        lock(&self.log.0).push(what.to_owned());
    }
}

impl TestServer {
    fn new(limits: Limits) -> Self {
        Self::with(|options| options.limits = limits)
    }

    fn with(change: impl FnOnce(&mut EngineOptions)) -> Self {
        let mut options = EngineOptions::default();
        change(&mut options);
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, options).unwrap();
        let clock = Arc::new(EngineClock::new());
        clock.set(Some(Now { tick: 0, unix: 0 }));
        let mounts = Mounts::new(clock.clone());
        mounts.serve(&engine);
        let pipe = Arc::new(Pipe::new(&engine, clock.clone()));
        let event_handler = Arc::new(Everything {
            mounts: mounts.clone(),
            log: Log::default(),
            pending: AtomicUsize::new(0),
        });
        Self { engine, clock, mounts, pipe, event_handler }
    }

    fn mount(&self, provider: Arc<dyn Provider>) -> MountId {
        self.mounts.mount(provider).unwrap()
    }

    fn peer(&self) -> Peer {
        Peer::pipe(self.pipe.clone(), self.clock.clone(), self.event_handler.clone())
    }

    fn send(&self, message: &Value) {
        let text = message.to_string();
        let outcome = self.pipe.line(Line::Message(text.as_bytes()));
        self.event_handler.handle(&self.peer(), outcome.events);
    }

    fn ask(&self, id: u64, method: &str, params: Value) {
        self.send(&modern(id, method, params));
    }

    fn read(&self, id: u64, uri: &str) {
        self.ask(id, "resources/read", json!({ "uri": uri }));
    }

    fn cancel(&self, id: u64) {
        let params = json!({ "requestId": id });
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }

    fn pass(&self, millis: u64) {
        let now = self.clock.now();
        self.clock.set(Some(Now { tick: now.tick + millis, unix: now.unix + millis }));
        let outcome = self.pipe.tick();
        self.event_handler.handle(&self.peer(), outcome.events);
    }

    /// The client's messages since the last call.
    fn got(&self) -> Vec<Value> {
        let bytes = self.pipe.take();
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Waits for `count` answers, and returns them.
    fn wait(&self, count: usize) -> Vec<Value> {
        let mut got = Vec::new();
        let until = Instant::now() + Duration::from_secs(20);
        while got.len() < count {
            got.append(&mut self.got());
            assert!(Instant::now() < until, "{count} answers were expected: {got:?}");
            thread::yield_now();
        }
        got
    }

    fn said(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.event_handler.log.0))
    }
}

/// A request of 2026-07-28.
fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn text(answer: &Value) -> &str {
    answer["result"]["contents"][0]["text"].as_str().unwrap_or_default()
}

fn kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_default()
}

fn contents(text: &'static str) -> Result<ReadResult<'static>, ReadError> {
    Ok(Contents::text(text).into())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A way to end a responder, with its name.
type End = (&'static str, fn(Responder<ReadResult<'static>>));

const ENDS: [End; 3] = [
    ("sent", |reply| reply.send(contents("late"))),
    ("refused", |reply| reply.send(Err(ReadError::AccessDenied))),
    ("dropped", drop),
];

// whatever happens first, the client gets one answer or none, and the slot is free at the end.
#[test]
fn a_responder_answers_once_in_every_order() {
    type Before = fn(&TestServer);
    let befores: [(&str, Before, usize); 4] = [
        ("nothing", |_| {}, 1),
        ("cancelled", |served| served.cancel(7), 0),
        ("too late", |served| served.pass(60_000), 1),
        ("closed", |served| drop(served.pipe.close()), 0),
    ];
    for elsewhere in [false, true] {
        for (before, happen, expected) in befores {
            for (end, act) in ENDS {
                let served = TestServer::new(Limits::default());
                let (provider, held) = Holds::any();
                served.mount(provider);
                served.read(7, "held:///a");
                let (request, reply) = held.recv().unwrap();
                assert_eq!((request.uri(), request.param("id")), ("held:///a", Some("a")));
                assert!(!reply.is_cancelled());
                assert_eq!(served.event_handler.pending.load(Ordering::SeqCst), 1);
                happen(&served);
                assert_eq!(reply.is_cancelled(), before != "nothing", "{before}");
                match elsewhere {
                    true => thread::spawn(move || act(reply)).join().unwrap(),
                    false => act(reply),
                }
                let got = served.got();
                let case = format!("{before}, {end}, {elsewhere}");
                assert_eq!(got.len(), expected, "{case}: {got:?}");
                assert_eq!(served.pipe.in_flight(), 0, "{case}");
                assert_eq!(served.event_handler.pending.load(Ordering::SeqCst), 0, "{case}");
                assert_eq!(
                    served.said().len(),
                    usize::from(before == "nothing" && end == "dropped"),
                    "{case}"
                );
            }
        }
    }
}

/// An answer and a cancellation at the same time, many times.
#[test]
fn an_answer_and_a_cancellation_race_and_leave_nothing() {
    let served = Arc::new(TestServer::new(Limits::default()));
    let (provider, held) = Holds::any();
    served.mount(provider);
    for id in 0..2_000 {
        served.read(id, "held:///a");
        let (_, reply) = held.recv().unwrap();
        let (_, act) = ENDS[usize::try_from(id).unwrap() % ENDS.len()];
        let answers = thread::spawn(move || act(reply));
        served.cancel(id);
        answers.join().unwrap();
        assert!(served.got().len() <= 1);
        assert_eq!(served.pipe.in_flight(), 0);
    }
}

/// A provider that panics fails its request, on any thread, and serves the next one.
#[test]
fn a_panic_fails_one_request() {
    for threads in [0, 2] {
        let served = TestServer::new(Limits::default());
        let mount = Mount::new("panics").template(ONE, Template::new(ANY)).workers(threads, 8);
        served.mount(Does::new(mount, |request, reply| {
            assert_ne!(request.param("id"), Some("bad"), "as the test wants it");
            reply.send(contents("fine"));
        }));
        for id in 0..5 {
            served.read(id, "held:///bad");
            assert_eq!(kind(&served.wait(1)[0]), "read_error");
            served.read(id, "held:///good");
            assert_eq!(text(&served.wait(1)[0]), "fine");
        }
        assert_eq!(served.pipe.in_flight(), 0);
    }
}

/// A provider that blocks occupies only its own threads and queue; requests beyond those are refused at once.
#[test]
fn a_provider_that_blocks_fills_its_own_queue() {
    let served = TestServer::new(Limits::default());
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let waits = gate.clone();
    let running = Arc::new(AtomicUsize::new(0));
    let runs = running.clone();
    let mount = Mount::new("blocks").template(ONE, Template::new(ANY)).workers(2, 3);
    let id = served.mount(Does::new(mount, move |_, reply| {
        runs.fetch_add(1, Ordering::SeqCst);
        let opened = waits.1.wait_while(lock(&waits.0), |open| !*open);
        drop(opened);
        reply.send(contents("at last"));
    }));
    let other = Mount::new("other").template(ONE, Template::new("other:///{id}")).workers(1, 1);
    served.mount(Does::new(other, |_, reply| reply.send(contents("at once"))));
    for id in 0..2 {
        served.read(id, "held:///a");
    }
    while running.load(Ordering::SeqCst) < 2 {
        thread::yield_now();
    }
    for id in 2..10 {
        served.read(id, "held:///a");
    }
    let refused = served.wait(5);
    assert!(refused.iter().all(|answer| kind(answer) == "rate_limited"), "{refused:?}");
    let said = served.said();
    assert!(said.len() == 1 && said[0].starts_with("blocks: "), "logged once: {said:?}");
    served.read(10, "other:///a");
    assert_eq!(text(&served.wait(1)[0]), "at once", "others go on");
    *lock(&gate.0) = true;
    gate.1.notify_all();
    assert!(served.wait(5).iter().all(|answer| text(answer) == "at last"));
    assert!(served.mounts.unmount(id));
}

// a provider that never answers causes a time-out, and its resources are freed when it drops the responder.
#[test]
fn a_provider_that_never_answers_times_out() {
    let limits = Limits::default();
    let timeout = limits.read_timeout;
    let served = TestServer::new(limits);
    let (provider, held) = Holds::any();
    served.mount(provider);
    (0..3).for_each(|id| served.read(id, "held:///a"));
    served.pass(timeout);
    assert!(served.got().iter().all(|answer| kind(answer) == "timeout"));
    assert_eq!(served.pipe.in_flight(), 3, "a client cannot pile up work behind them");
    drop(held.try_iter().collect::<Vec<_>>());
    assert_eq!((served.pipe.in_flight(), served.got().len()), (0, 0));
}

/// 10,000 items of another server, some invalid: the valid ones are listed in pages, and the log names some of the
/// others.
#[test]
fn odd_items_of_another_server_leave_the_others() {
    struct Upstream;
    impl Provider for Upstream {
        fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
            Ok(Mount::new("upstream").lists(ONE, "upstream", false).fallback(ONE).workers(0, 0))
        }
        fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
            reply.send(contents("theirs"));
        }
        fn list(&self, _request: List, reply: Responder<ListPage>) {
            let item = |at: usize| {
                let uri = format!("up:///{at:05}");
                let json = match at % 100 {
                    0 => "not json".to_owned(),
                    1 => json!({ "uri": "up:///else", "name": "x" }).to_string(),
                    _ => json!({ "uri": uri, "name": at.to_string(), "theirs": [1] }).to_string(),
                };
                Item::Foreign { uri, json }
            };
            reply.send(Ok(ListPage {
                missing: vec!["shard 3".into()],
                ..ListPage::new((0..10_000).map(item))
            }));
        }
    }
    let served = TestServer::new(limits(|limits| limits.list_ttl = 60_000));
    served.mount(Arc::new(Upstream));
    let mut cursor = Value::Null;
    let mut count = 0;
    let mut pages = 0;
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        served.ask(1, "resources/list", params);
        let page = served.wait(1).remove(0);
        let items = page["result"]["resources"].as_array().unwrap();
        assert!(items.iter().all(|item| item["theirs"] == json!([1])));
        count += items.len();
        pages += 1;
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(count, 9_800);
    assert!(pages > 1 && served.said().iter().any(|line| line.contains("200 of 10000")));
    served.read(1, "up:///00002");
    assert_eq!(text(&served.wait(1)[0]), "theirs");
}

/// `redact` gets the contents of providers, immediate or later. It never runs on the thread that read the request.
#[test]
fn what_providers_give_is_redacted() {
    struct Now;
    impl Provider for Now {
        fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
            Ok(Mount::new("now").template(ONE, Template::new(ANY)))
        }
        fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
            (request.param("id") == Some("now")).then(|| contents("at once"))
        }
        fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
            reply.send(contents("later"));
        }
    }
    let served = TestServer::new(Limits::default());
    let reader = thread::current().id();
    served.mounts.redact_with(Arc::new(move |_, uri, answer| {
        assert_ne!(thread::current().id(), reader);
        let Answer::Contents(result) = answer else { return answer };
        let said = result.contents.into_iter().filter_map(|one| match one.body {
            Body::Text(text) => Some(format!("{uri}: {text}, redacted")),
            _ => None,
        });
        Answer::Contents(Contents::text(said.collect::<String>()).into())
    }));
    served.mount(Arc::new(Now));
    for (id, uri, said) in [(1, "held:///now", "at once"), (2, "held:///a", "later")] {
        served.read(id, uri);
        assert_eq!(text(&served.wait(1)[0]), format!("{uri}: {said}, redacted"));
    }
}

/// Contents above the limit are refused before they are produced.
#[test]
fn a_size_is_refused_before_contents_are_made() {
    let served = TestServer::new(limits(|limits| limits.contents = 100));
    let mount = Mount::new("large").template(ONE, Template::new(ANY)).workers(0, 0);
    served.mount(Does::new(mount, |_, reply| {
        let fits = reply.facts(101);
        assert!(reply.facts(100).is_ok());
        reply.send(fits.map(|()| Contents::text("never").into()));
    }));
    served.read(1, "held:///a");
    assert_eq!(kind(&served.wait(1)[0]), "size_exceeded");
}

/// If a client disconnects while workers answer, no thread and no queue slot is lost.
#[test]
fn a_client_that_vanishes_leaves_nothing() {
    let served = TestServer::new(Limits::default());
    let mount = Mount::new("busy").template(ONE, Template::new(ANY)).workers(2, 64);
    served.mount(Does::new(mount, |_, reply| reply.send(contents("x"))));
    (0..50).for_each(|id| served.read(id, "held:///a"));
    drop(served.pipe.close());
    let until = Instant::now() + Duration::from_secs(20);
    while served.pipe.in_flight() > 0 {
        assert!(Instant::now() < until, "{} are left", served.pipe.in_flight());
        thread::yield_now();
    }
}

/// Interest begins with the first watcher and ends with the last one, or with the mount; the same for the lists. A
/// provider that is mounted while its URIs are watched gets a report at once.
#[test]
fn interest_begins_and_ends_with_the_watchers() {
    let served = TestServer::new(Limits::default());
    let mount = |name: &str, template: &str| {
        let mount = Mount::new(name).template(ONE, Template::new(template)).workers(0, 0);
        Holds::new(mount).0
    };
    let one = mount("one", "one:///{id}");
    let two = mount("two", "two:///{id}");
    let heard = |provider: &Holds| std::mem::take(&mut *lock(&provider.interest));
    let uri = |id: &str, on: bool| {
        let uri: Arc<str> = id.into();
        format!("{:?}", InterestChange::Uri { uri: &uri, route: ONE, on })
    };
    let lists = |on: bool| format!("{:?}", InterestChange::Lists { on });
    let first = served.mount(one.clone());
    assert!(heard(&one).is_empty(), "nobody waits");
    let filter = json!({ "resourceSubscriptions": ["one:///a", "two:///b"], "resourcesListChanged": true });
    served.ask(1, "subscriptions/listen", json!({ "notifications": filter }));
    assert_eq!(heard(&one), [uri("one:///a", true), lists(true)]);
    served.mount(two.clone());
    assert_eq!(heard(&two), [lists(true)], "a URI that nobody served was not granted");
    let filter = json!({ "resourceSubscriptions": ["one:///a", "two:///b"] });
    served.ask(2, "subscriptions/listen", json!({ "notifications": filter }));
    assert_eq!((heard(&one), heard(&two)), (vec![], vec![uri("two:///b", true)]));
    served.cancel(1);
    assert_eq!((heard(&one), heard(&two)), (vec![lists(false)], vec![lists(false)]));
    assert!(served.mounts.unmount(first));
    assert_eq!(heard(&one), [uri("one:///a", false)], "although somebody waits still");
    let again = mount("again", "one:///{name}");
    served.mount(again.clone());
    assert_eq!(heard(&again), [uri("one:///a", true)], "what is watched is another's now");
    served.event_handler.handle(&served.peer(), served.pipe.close());
    assert_eq!((heard(&again), heard(&two)), (vec![uri("one:///a", false)], vec![uri("two:///b", false)]));
    assert!(heard(&one).is_empty());
}

/// The first provider of a server gets a report of the watches before it was mounted.
#[test]
fn the_first_mount_gets_earlier_watches() {
    let served = TestServer::new(Limits::default());
    let handler = served.engine.new_handler();
    let add = Edit::AddTemplate { template: Box::new(Template::new("one:///{id}")), handler, mount: None };
    served.engine.publish(vec![add], Now::default()).unwrap();
    let filter = json!({ "resourceSubscriptions": ["one:///a"], "resourcesListChanged": true });
    served.ask(1, "subscriptions/listen", json!({ "notifications": filter }));
    let gone = Edit::RemoveTemplate { uri_template: "one:///{id}".into() };
    served.engine.publish(vec![gone], Now::default()).unwrap();
    let mount = Mount::new("one").template(ONE, Template::new("one:///{name}")).workers(0, 0);
    let (one, _) = Holds::new(mount);
    served.mount(one.clone());
    let uri: Arc<str> = "one:///a".into();
    let told = [InterestChange::Uri { uri: &uri, route: ONE, on: true }, InterestChange::Lists { on: true }];
    assert_eq!(*lock(&one.interest), told.map(|change| format!("{change:?}")));
}

/// A change between the first check and the start of a watcher is not lost, because the provider compares.
#[test]
fn a_change_before_the_watcher_starts_is_reported() {
    /// Watches a number as other providers watch a folder: it cannot see changes before it starts.
    struct Number(Mutex<Option<Feed>>, AtomicUsize, AtomicUsize);
    impl Provider for Number {
        fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
            *lock(&self.0) = Some(feed);
            Ok(Mount::new("number").resource(ONE, Resource::new("number:///")).workers(0, 0))
        }
        fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
            let now = self.1.load(Ordering::SeqCst);
            self.2.store(now, Ordering::SeqCst);
            reply.send(Ok(Contents::text(now.to_string()).into()));
        }
        fn interest(&self, change: InterestChange<'_>) {
            let InterestChange::Uri { uri, on: true, .. } = change else { return };
            // Here it would start a watcher; then it compares with the number that a client has read.
            if self.1.load(Ordering::SeqCst) != self.2.load(Ordering::SeqCst)
                && let Some(feed) = lock(&self.0).clone()
            {
                feed.updated(uri).unwrap();
            }
        }
    }
    let served = TestServer::new(Limits::default());
    let number = Arc::new(Number(Mutex::default(), AtomicUsize::new(1), AtomicUsize::new(0)));
    served.mount(number.clone());
    served.read(1, "number:///");
    assert_eq!(text(&served.wait(1)[0]), "1");
    number.1.store(2, Ordering::SeqCst);
    served.ask(
        2,
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": ["number:///"] } }),
    );
    served.pipe.deliver();
    let methods: Vec<_> = served.wait(2).iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, ["notifications/subscriptions/acknowledged", "notifications/resources/updated"]);
}

/// Counts watches, and records reports that are out of order.
struct Counts(Mutex<i64>, Mutex<Vec<String>>, Mutex<Option<Mount>>);
impl Provider for Counts {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        Ok(lock(&self.2).take().expect("mounted once"))
    }
    fn read(&self, _request: Read, _reply: Responder<ReadResult<'static>>) {}
    fn interest(&self, change: InterestChange<'_>) {
        let (InterestChange::Uri { on, .. } | InterestChange::Lists { on }) = change;
        let mut count = lock(&self.0);
        *count += if on { 1 } else { -1 };
        if !(0..=2).contains(&*count) {
            lock(&self.1).push(format!("{change:?}: {count}"));
        }
    }
}

/// Threads mount, unmount, watch and unwatch: each provider gets the reports of each URI in order, including the end.
#[test]
fn interest_is_in_turn_while_threads_mount_and_watch() {
    let served = Arc::new(TestServer::new(Limits::default()));
    let mounting = Arc::new(Mutex::new(()));
    thread::scope(|scope| {
        for _ in 0..8 {
            let served = served.clone();
            let mounting = mounting.clone();
            scope.spawn(move || {
                for _ in 0..50 {
                    let turn = lock(&mounting);
                    let mount = Mount::new("counts").template(ONE, Template::new(ANY)).workers(0, 0);
                    let counts =
                        Arc::new(Counts(Mutex::default(), Mutex::default(), Mutex::new(Some(mount))));
                    let id = served.mount(counts.clone());
                    thread::yield_now();
                    served.mounts.unmount(id);
                    drop(turn);
                    served.engine.settle_interest();
                    // Another thread may be reporting the change at this moment.
                    let until = Instant::now() + Duration::from_secs(20);
                    while *lock(&counts.0) != 0 {
                        assert!(Instant::now() < until, "it was not told of the end");
                        thread::yield_now();
                    }
                    assert!(lock(&counts.1).is_empty(), "{:?}", counts.1);
                }
            });
        }
        for _ in 0..24 {
            let served = served.clone();
            scope.spawn(move || listen_and_cancel(&served));
        }
    });
    assert_eq!(served.engine.subscriptions().uris, 0);
}

/// A client that starts and stops watching repeatedly.
fn listen_and_cancel(served: &TestServer) {
    let pipe = Arc::new(Pipe::new(&served.engine, served.clock.clone()));
    let peer = Peer::pipe(pipe.clone(), served.clock.clone(), served.event_handler.clone());
    for id in 0..100_u64 {
        let lists = json!({ "resourceSubscriptions": ["held:///a"], "resourcesListChanged": true });
        let listen = modern(id, "subscriptions/listen", json!({ "notifications": lists })).to_string();
        let gone = json!({ "requestId": id });
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone });
        for message in [listen, cancel.to_string()] {
            let outcome = pipe.line(Line::Message(message.as_bytes()));
            served.event_handler.handle(&peer, outcome.events);
        }
    }
    served.event_handler.handle(&peer, pipe.close());
}

/// A provider that reports changes in a loop causes few notifications and no growing memory; after a panic in
/// `interest` the next change is still reported.
#[test]
fn a_flood_of_changes_is_a_few_notifications() {
    struct Floods(Mutex<Option<Feed>>, AtomicUsize);
    impl Provider for Floods {
        fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
            *lock(&self.0) = Some(feed);
            Ok(Mount::new("floods").resource(ONE, Resource::new("flood:///")).workers(0, 0))
        }
        fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
            reply.send(contents("x"));
        }
        fn interest(&self, _change: InterestChange<'_>) {
            self.1.fetch_add(1, Ordering::SeqCst);
            panic!("as the test wants it")
        }
    }
    let served = TestServer::new(Limits::default());
    let floods = Arc::new(Floods(Mutex::default(), AtomicUsize::new(0)));
    let id = served.mount(floods.clone());
    let filter = json!({ "resourceSubscriptions": ["flood:///"], "resourcesListChanged": true });
    served.ask(1, "subscriptions/listen", json!({ "notifications": filter }));
    let feed = lock(&floods.0).clone().unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let feed = feed.clone();
            scope.spawn(move || {
                for turn in 0..10_000 {
                    feed.updated("flood:///").unwrap();
                    feed.list_changed();
                    if turn % 100 == 0 {
                        let uri = format!("flood:///{thread}");
                        feed.publish(vec![FeedEntry::Add(ONE, Resource::new(&uri)), FeedEntry::Remove(uri)]);
                    }
                }
            });
        }
    });
    served.pipe.deliver();
    assert!(served.got().len() <= 3, "the acknowledgement, and one of each");
    served.read(2, "flood:///");
    assert_eq!(text(&served.wait(1)[0]), "x");
    served.mounts.unmount(id);
    assert_eq!(floods.1.load(Ordering::SeqCst), 4, "two begin and two end");
}

/// Queue and threads are limited, and a job that panics ends neither.
#[test]
fn workers_are_bounded() {
    let workers = Arc::new(Workers::new("test", 3, 5));
    assert_eq!(workers.threads(), 0, "none begins before there is work");
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let done = Arc::new(AtomicUsize::new(0));
    let mut accepted = 0;
    for at in 0..100 {
        let gate = gate.clone();
        let done = done.clone();
        let Ok(place) = workers.enter() else { continue };
        place.run(move || {
            drop(gate.1.wait_while(lock(&gate.0), |open| !*open));
            done.fetch_add(1, Ordering::SeqCst);
            assert_ne!(at, 0, "as the test wants it");
        });
        accepted += 1;
    }
    assert!((5..=8).contains(&accepted) && workers.threads() == 3, "{accepted}");
    *lock(&gate.0) = true;
    gate.1.notify_all();
    while done.load(Ordering::SeqCst) < accepted {
        thread::yield_now();
    }
    let (again, ran) = channel();
    workers.enter().unwrap().run(move || again.send(()).unwrap());
    ran.recv().unwrap();
    assert!(workers.threads() <= 3);
}
