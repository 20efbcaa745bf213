//! A machine and an engine on simulated time: every loss and burst can be replayed.

use super::*;
use crate::catalog::{Edit, ItemSource};
use crate::client::{AllowList, CallOptions, Change, ClientCall, ClientOutcome};
use crate::connection::{Answer, Arrival, Body, Connection, ConnectionKind, Contents, Event, RequestToken};
use crate::engine::{Engine, EngineOptions, ServerInfo};
use crate::error::ReadError;
use crate::hub::{Delivered, ListKinds};
use crate::limits::Limits;
use crate::principal::Principal;
use crate::resource::{Resource, Template};
use std::collections::VecDeque;

mod faults;
mod hostile;

/// A server whose resources are numbers, and its one client.
pub(super) struct World {
    pub(super) machine: Machine,
    engine: Arc<Engine>,
    connection: Option<Connection>,
    /// By URI: the contents of a read; `None` is not found.
    values: BTreeMap<String, Option<u64>>,
    /// Reads that the server has not answered.
    reads: VecDeque<(RequestToken, String)>,
    /// The number of reads of each URI, and the most that were in flight at once.
    counts: BTreeMap<String, usize>,
    most_at_once: usize,
    pub(super) now: Now,
    /// By URI: the contents that the client was given last.
    contexts: BTreeMap<String, Option<String>>,
    /// The events in the order in which the client's runtime sees them.
    pub(super) log: Vec<String>,
    /// Whether the server can be reached.
    is_up: bool,
    /// Whether messages to the server are withheld.
    pub(super) is_deaf: bool,
    /// The server's messages that the client has not received yet.
    inbox: VecDeque<Vec<u8>>,
    /// The messages that the client has sent since they were last taken.
    pub(super) sent: Vec<Outgoing>,
}

impl World {
    pub(super) fn new(revision: Option<Revision>, allowed: &AllowList) -> Self {
        let info = ServerInfo { name: "world".into(), version: "1".into(), ..ServerInfo::default() };
        let limits = Limits { coalesce: 0, ..Limits::default() };
        let engine = Engine::new(info, EngineOptions { limits, ..EngineOptions::default() }).unwrap();
        let handler = engine.new_handler();
        let template =
            Edit::AddTemplate { template: Box::new(Template::new("n://{id}")), handler, mount: None };
        let directory =
            Edit::AddResource { resource: Resource::new("dir:///a"), source: ItemSource::Handler(handler) };
        let below =
            Edit::AddTemplate { template: Box::new(Template::new("dir:///a/{name}")), handler, mount: None };
        engine.publish(vec![template, directory, below], Now::default()).unwrap();
        let mut options = MachineOptions::new("world", Access::new(allowed).unwrap());
        options.revision = revision;
        options.seed = 7;
        options.answers = vec!["elicitation/create".into()];
        Self {
            machine: Machine::new(options),
            engine,
            connection: None,
            values: BTreeMap::new(),
            reads: VecDeque::new(),
            counts: BTreeMap::new(),
            most_at_once: 0,
            now: Now::default(),
            contexts: BTreeMap::new(),
            log: Vec::new(),
            is_up: true,
            is_deaf: false,
            inbox: VecDeque::new(),
            sent: Vec::new(),
        }
    }

    pub(super) fn open(revision: Revision) -> Self {
        Self::new(Some(revision), &AllowList::Everything)
    }

    /// Runs `act` on the client's machine, then everything that follows from it.
    pub(super) fn act(&mut self, act: impl FnOnce(&mut Machine, Now, &mut Effects)) {
        let mut effects = Vec::new();
        act(&mut self.machine, self.now, &mut effects);
        self.perform(effects);
        self.settle();
    }

    fn perform(&mut self, effects: Effects) {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut more = Vec::new();
            match effect {
                Effect::Connect if self.is_up => {
                    self.connection = Some(self.engine.connect(ConnectionKind::Stdio));
                    self.machine.opened(self.now, &mut more);
                }
                Effect::Connect => {
                    self.machine.lost(&Lost::NotOpened("refused".into()), self.now, &mut more);
                }
                Effect::Disconnect { .. } => self.drop_connection(),
                Effect::Send(message) => self.serve(message),
                Effect::Abort(_) => {}
                Effect::Finished { call, outcome } => {
                    self.log.push(format!("{call}: {}", described(&outcome)))
                }
                Effect::Changed { watch, change } => self.changed(watch, change),
                Effect::Heard { watch, is_first } => {
                    let what = if is_first { "active" } else { "changed" };
                    self.log.push(format!("{watch}: {what}"));
                }
                Effect::Notified { method, .. } => self.log.push(format!("notified {method}")),
                Effect::ListChanged => self.log.push("list changed".into()),
                Effect::Asked(question) => {
                    self.log.push(format!("asked {} {}", question.id, question.method))
                }
                Effect::Withdrawn(id) => self.log.push(format!("withdrawn {id}")),
                Effect::Progressed { call, progress } => {
                    self.log.push(format!("{call} at {}", progress.progress));
                }
                Effect::LeftOut(what) => self.log.push(what),
                Effect::Noted(note) => self.log.push(format!("noted: {note}")),
                Effect::Message(message) => self.log.push(format!("message: {message:?}")),
            }
            queue.extend(more);
        }
    }

    /// Delivers the server's messages to the client.
    fn pump(&mut self) {
        while let Some(line) = self.inbox.pop_front() {
            let mut effects = Vec::new();
            self.machine.received(&line, self.now, &mut effects);
            self.perform(effects);
        }
    }

    fn changed(&mut self, watch: u64, change: Result<Change, ClientError>) {
        let line = match change {
            Ok(Change { uri, contents, .. }) => {
                let text = contents.as_deref().map(text);
                let line = format!("{uri} = {}", text.as_deref().unwrap_or("gone"));
                self.contexts.insert(uri, text);
                line
            }
            Err(error) => error.to_string(),
        };
        self.log.push(format!("#{watch} {line}"));
    }

    fn serve(&mut self, message: Outgoing) {
        if let (Some(connection), false) = (&mut self.connection, self.is_deaf) {
            let principal = Principal::local();
            let arrival = Arrival { message: &message.body, principal: &principal, header_check: None };
            let mut out = Vec::new();
            let outcome = connection.message(arrival, self.now, &mut out);
            for event in outcome.events {
                match event {
                    Event::Read(read) => {
                        self.reads.push_back((read.token, read.uri.to_string()));
                        *self.counts.entry(read.uri.to_string()).or_default() += 1;
                        let same = self.reads.iter().filter(|(_, uri)| *uri == read.uri).count();
                        self.most_at_once = self.most_at_once.max(same);
                    }
                    Event::Cancelled(_) | Event::Interest => {}
                    other => self.log.push(format!("server: {other:?}")),
                }
            }
            self.said(&out);
        }
        self.sent.push(message);
    }

    fn said(&mut self, bytes: &[u8]) {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        self.inbox.extend(lines.map(<[u8]>::to_vec));
    }

    /// Answers the oldest or the newest pending read of the server.
    fn answer(&mut self, last: bool) {
        let read = if last { self.reads.pop_back() } else { self.reads.pop_front() };
        let (Some((token, uri)), Some(connection)) = (read, &mut self.connection) else { return };
        let answer = match self.values.get(&uri).copied().flatten() {
            Some(value) => Answer::Contents(Contents::text(value.to_string()).into()),
            None => Answer::Failed(ReadError::NotFound),
        };
        let mut out = Vec::new();
        connection.respond(token, answer, self.now, &mut out);
        self.said(&out);
        self.pump();
    }

    /// Exchanges messages until nothing is left to send, while no time passes.
    fn settle(&mut self) {
        loop {
            self.pump();
            while !self.reads.is_empty() {
                self.answer(false);
            }
            if !self.deliver() && self.reads.is_empty() {
                return;
            }
        }
    }

    /// Writes the server's pending notifications; returns whether there were any.
    fn deliver(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        self.engine.tick(self.now);
        let mut out = Vec::new();
        while connection.deliver(1 << 16, &mut out) == Delivered::More {}
        self.said(&out);
        self.pump();
        !out.is_empty()
    }

    pub(super) fn set(&mut self, uri: &str, value: Option<u64>) {
        self.values.insert(uri.into(), value);
        self.engine.updated(uri, self.now).unwrap();
    }

    pub(super) fn list_changes(&mut self) {
        self.engine.list_changed(ListKinds::RESOURCES, self.now);
    }

    fn drop_connection(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            drop(connection.close(self.now));
        }
        self.reads.clear();
        self.inbox.clear();
    }

    pub(super) fn kill(&mut self) {
        self.drop_connection();
        self.act(|machine, now, out| machine.lost(&Lost::Broken("killed".into()), now, out));
    }

    /// Advances time from one deadline to the next.
    pub(super) fn pass(&mut self, milliseconds: Millis) {
        let end = self.now.tick + milliseconds;
        loop {
            let next = [self.machine.deadline(), self.engine.deadline()].into_iter().flatten().min();
            let at = next.unwrap_or(end).clamp(self.now.tick, end);
            self.now = Now { tick: at, unix: at };
            self.act(Machine::tick);
            if at == end {
                return;
            }
        }
    }

    pub(super) fn read(&mut self, call: u64, uri: &str) {
        let call_ = ClientCall::Read { uri: uri.into() };
        self.act(|machine, now, out| machine.call(call, call_, CallOptions::default(), now, out));
    }

    pub(super) fn watch(&mut self, id: u64, uri: &str) {
        self.act(|machine, now, out| machine.watch(id, uri, now, out));
    }

    pub(super) fn logged(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

pub(super) fn described(outcome: &Result<ClientOutcome, ClientError>) -> String {
    match outcome {
        Ok(ClientOutcome::Contents { contents, .. }) => text(contents),
        Ok(ClientOutcome::Page(page)) => {
            format!("{} items, {} odd, {:?}", page.items.len(), page.odd, page.next)
        }
        Ok(ClientOutcome::Completion(found)) => format!("{:?}", found.values),
        Ok(ClientOutcome::Result(result)) => result.clone(),
        Err(error) => error.to_string(),
    }
}

fn text(contents: &[Contents<'_>]) -> String {
    let texts = contents.iter().map(|entry| match &entry.body {
        Body::Text(text) => text.to_string(),
        Body::Blob(bytes) => format!("{bytes:?}"),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("+")
}

pub(super) const ERAS: [Revision; 2] = [Revision::V2026_07_28, Revision::V2025_11_25];

// S-13: the same script produces the same events in either era.
#[test]
fn the_same_script_gives_the_same_events() {
    let logs = ERAS.map(|era| {
        let mut world = World::open(era);
        world.set("n://a", Some(1));
        world.read(1, "n://a");
        world.read(2, "n://none");
        world.watch(3, "n://a");
        world.watch(4, "n://none");
        world.set("n://a", Some(2));
        world.pass(100);
        world.set("n://a", Some(2));
        world.pass(100);
        world.watch(5, "n://a");
        world.set("n://none", Some(7));
        world.pass(1_000);
        world.kill();
        world.values.insert("n://a".into(), Some(3));
        world.pass(2_000);
        world.set("n://a", None);
        world.pass(100);
        world.act(|machine, now, out| machine.unwatch(3, now, out));
        world.act(|machine, now, out| machine.unwatch(5, now, out));
        world.set("n://a", Some(4));
        world.pass(100);
        world.act(|machine, _, out| machine.close(out));
        world.logged()
    });
    assert_eq!(logs[0], logs[1]);
    let events = [
        "1: 1",
        "2: Resource not found: n://none",
        "#3 n://a = 1",
        "#4 n://none = gone",
        "#3 n://a = 2",
        "#5 n://a = 2",
        "#4 n://none = 7",
        "#3 n://a = 3",
        "#5 n://a = 3",
        "#3 n://a = gone",
        "#5 n://a = gone",
    ];
    assert_eq!(logs[0], events);
}

// S-13: a burst of changes causes at most two reads, never more than one at a time.
#[test]
fn a_burst_is_two_reads() {
    for era in ERAS {
        let mut world = World::open(era);
        world.set("n://a", Some(0));
        world.watch(1, "n://a");
        world.pass(1_000);
        let before = world.counts["n://a"];
        for value in 1..=200 {
            world.values.insert("n://a".into(), Some(value));
            world.engine.updated("n://a", world.now).unwrap();
            world.deliver();
        }
        world.settle();
        world.pass(1_000);
        assert!(world.counts["n://a"] - before <= 2, "{era}: {}", world.counts["n://a"] - before);
        assert_eq!(world.contexts["n://a"].as_deref(), Some("200"));
        assert_eq!(world.most_at_once, 1);
    }
}

// R-222, S-13: whatever is lost in between, the client ends with the server's contents for every URI, and never reads
// a URI twice at once.
#[test]
fn a_hundred_losses_among_a_thousand_uris() {
    for (era, seed) in [(ERAS[0], 1), (ERAS[1], 2), (ERAS[0], 3), (ERAS[1], 4)] {
        let mut random = seed;
        let mut next = |below: u64| {
            random = u64::wrapping_add(random, 0x9e37_79b9_7f4a_7c15);
            let mixed = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ mixed >> 32) % below
        };
        let mut world = World::open(era);
        for number in 0..1_000 {
            world.values.insert(format!("n://{number}"), Some(number));
            let uri = format!("n://{number}");
            let mut effects = Vec::new();
            world.machine.watch(number, &uri, world.now, &mut effects);
            world.perform(effects);
            world.pump();
        }
        let mut kills = 0;
        while kills < 100 {
            match next(40) {
                0 => {
                    world.is_up = next(4) > 0;
                    world.kill();
                    kills += 1;
                }
                1 => world.is_up = true,
                2..=12 => {
                    let value = (next(10) > 0).then_some(next(1_000_000));
                    let uri = format!("n://{}", next(1_000));
                    world.values.insert(uri.clone(), value);
                    world.engine.updated(&uri, world.now).unwrap();
                }
                13..=25 => world.answer(next(2) == 0),
                26..=32 => drop(world.deliver()),
                _ => {
                    let step = next(60);
                    world.now = Now { tick: world.now.tick + step, unix: world.now.unix + step };
                    let mut effects = Vec::new();
                    world.machine.tick(world.now, &mut effects);
                    world.perform(effects);
                    world.pump();
                }
            }
        }
        world.is_up = true;
        world.pass(120_000);
        let expected: BTreeMap<_, _> = world
            .values
            .iter()
            .map(|(uri, value)| (uri.clone(), value.map(|value| value.to_string())))
            .collect();
        assert!(world.contexts == expected, "{era} {seed}");
        assert_eq!(world.most_at_once, 1);
    }
}

// S-13: a changed resource under a watched one is read for its watchers, if the allow-list permits it.
// S-13: a resource is heard of without a read: once when the subscription is active, after each burst of changes, and once
// after a lost connection.
#[test]
fn a_change_is_heard_of_without_a_read() {
    for revision in ERAS {
        let mut world = World::open(revision);
        world.set("n://a", Some(1));
        world.set("n://b", Some(1));
        world.act(|machine, now, out| machine.hear(1, "n://a", now, out));
        world.pass(1_000);
        world.act(|machine, now, out| machine.hear(2, "n://a", now, out));
        world.pass(1_000);
        assert_eq!(world.logged(), ["1: active", "2: active"], "{revision}");
        for value in 2..9 {
            world.set("n://a", Some(value));
        }
        world.set("n://b", Some(2));
        world.pass(1_000);
        let heard = world.logged();
        assert!((2..=4).contains(&heard.len()), "{revision}: {heard:?}");
        assert!(heard.iter().all(|line| line == "1: changed" || line == "2: changed"), "{heard:?}");
        world.act(|machine, now, out| machine.unwatch(2, now, out));
        world.kill();
        world.pass(60_000);
        assert_eq!(world.logged(), ["1: changed"], "{revision}: the change may be lost");
        world.act(|machine, now, out| machine.unwatch(1, now, out));
        world.set("n://a", Some(10));
        world.pass(1_000);
        assert_eq!(world.logged(), [""; 0], "{revision}");
        assert_eq!(world.reads.len(), 0, "{revision}: nothing was read");
        assert!(world.counts.is_empty(), "{revision}: {:?}", world.counts);
    }
}

#[test]
fn a_changed_descendant_is_read_too() {
    for era in ERAS {
        let allowed = AllowList::Globs(vec!["dir:///a".into(), "dir:///a/*.txt".into()]);
        let mut world = World::new(Some(era), &allowed);
        world.set("dir:///a", Some(1));
        world.values.insert("dir:///a/x.txt".into(), Some(2));
        world.values.insert("dir:///a/x.key".into(), Some(3));
        world.watch(1, "dir:///a");
        for uri in ["dir:///a/x.txt", "dir:///a/x.key", "dir:///b", "dir:///ab.txt"] {
            let told = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
            );
            world.act(|machine, now, out| machine.received(told.as_bytes(), now, out));
        }
        world.pass(1_000);
        assert_eq!(world.logged(), ["#1 dir:///a = 1", "#1 dir:///a/x.txt = 2"]);
        assert!(!world.counts.contains_key("dir:///a/x.key"));
    }
}
