//! An in-memory host: connections without sockets, a clock that is moved by hand, handlers that answer when told to.

use super::answer::answer;
use super::case::Case;
use super::catalog::{self, Handlers};
use super::compare::{Bound, compare};
use super::events::{drop_unasked, is_quiet, seen};
use super::expand::{Terms, outgoing, resolve};
use super::{START, write};
use crate::schema::{Schemas, Witness};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_resources_engine::connection::{
    AccessRequest, Arrival, Connection, ConnectionKind, Event, HeldRequest, LogLevel, Reply, RequestOutcome,
    RequestToken,
};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::hub::Delivered;
use mcp_resources_engine::jsonrpc::{Line, Lines, OversizedLine};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// How a host works: what it does must not show in what is sent.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// The input comes in single bytes.
    pub(crate) in_pieces: bool,
    /// Replies are taken out and worded away from the connection.
    pub(crate) off_loop: bool,
}

pub(crate) struct Host<'c> {
    case: &'c Case,
    mode: Mode,
    terms: Terms,
    engine: Arc<Engine>,
    handlers: Handlers,
    connections: BTreeMap<String, Wire<'c>>,
    open: Vec<Open>,
    now: Now,
    bound: Bound,
    schemas: Option<&'c Schemas>,
    step: Happened,
    record: String,
    /// Whether the case speaks of events that not every language sees.
    is_quiet: bool,
}

/// One connection and what is between it and its stream.
struct Wire<'c> {
    connection: Connection,
    woken: Arc<Flag>,
    lines: Lines,
    peer: ConnectionKind,
    witness: Option<Witness<'c>>,
}

/// Whether the engine has woken a connection since it had nothing to deliver.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A request to a handler, answered or not.
struct Open {
    on: String,
    token: RequestToken,
    reply: Option<Reply>,
    is_cancelled: bool,
    is_answered: bool,
}

/// The effects of one step.
#[derive(Default)]
struct Happened {
    events: Vec<Value>,
    out: Vec<u8>,
    delivered: Option<&'static str>,
    refused: Option<&'static str>,
}

impl<'c> Host<'c> {
    pub(crate) fn new(case: &'c Case, mode: Mode, schemas: Option<&'c Schemas>) -> Result<Self, String> {
        let catalog = case.catalog();
        let (engine, handlers) = catalog::engine(&catalog).map_err(|error| error.to_string())?;
        let steps = Value::from(case.steps());
        Ok(Self {
            terms: Terms::new(case, &catalog),
            is_quiet: !["watched", "unwatched", "notified"].iter().any(|kind| mentions(&steps, kind)),
            connections: BTreeMap::new(),
            open: Vec::new(),
            now: START,
            bound: Bound::new(),
            step: Happened::default(),
            record: String::new(),
            case,
            mode,
            engine,
            handlers,
            schemas,
        })
    }

    /// Runs the case. Returns everything that was sent, as text.
    pub(crate) fn run(mut self) -> Result<String, String> {
        self.connect("", &json!({ "peer": self.case.peer(), "handshake": self.case.handshake() }))?;
        for (index, step) in self.case.steps().iter().enumerate() {
            self.take(step).map_err(|error| format!("step {index}: {error}\n    {}", write(step)))?;
        }
        Ok(self.record)
    }

    fn take(&mut self, step: &Value) -> Result<(), String> {
        let on = step["on"].as_str().unwrap_or_default().to_owned();
        self.act(&on, step)?;
        let happened = std::mem::take(&mut self.step);
        self.record
            .push_str(&String::from_utf8(happened.out.clone()).map_err(|_| "what is sent is not UTF-8")?);
        self.check_events(step, happened.events)?;
        self.check_sent(&on, step, &happened.out)?;
        for (member, happened) in [("delivered", happened.delivered), ("refused", happened.refused)] {
            compare(&step[member], &json!(happened), &mut self.bound)
                .map_err(|error| format!("{member}{error}"))?;
        }
        Ok(())
    }

    fn act(&mut self, on: &str, step: &Value) -> Result<(), String> {
        let verb = VERBS.iter().find(|verb| step.get(verb).is_some()).ok_or("a step without a verb")?;
        let given = resolve(&step[verb], &self.bound);
        match *verb {
            "receive" => self.receive(on, &line(&given), step),
            "stream" => self.push(on, given.as_str().ok_or("stream is a text")?.as_bytes(), step),
            "request" | "notify" => {
                let capabilities =
                    step.get("capabilities").cloned().unwrap_or_else(|| self.case.capabilities());
                let message = outgoing(&given, self.case.revision, &capabilities);
                self.receive(on, write(&message).as_bytes(), step);
            }
            "initialize" => self.initialize(on)?,
            "respond" => self.respond(&given, step)?,
            "progress" | "log" => self.report(verb, &given)?,
            "tick" => self.tick(given.as_u64().ok_or("tick is a number")?),
            "updated" => {
                let uri = given.as_str().ok_or("updated is a URI")?;
                self.engine.updated(uri, self.now).map_err(|error| error.to_string())?;
            }
            "list_changed" => self.engine.list_changed(catalog::list_kinds(&given), self.now),
            "edit" => self.edit(&given),
            "deliver" => self.deliver(on, &given)?,
            "connect" => self.connect(given.as_str().ok_or("connect is a name")?, step)?,
            "close" => self.close(given.as_str().ok_or("close is a name")?)?,
            _ => {
                for wire in self.connections.values_mut() {
                    wire.connection.shutdown();
                }
            }
        }
        Ok(())
    }

    fn connect(&mut self, name: &str, step: &Value) -> Result<(), String> {
        let peer = match step["peer"].as_str().unwrap_or(self.case.peer()) {
            "stdio" => ConnectionKind::Stdio,
            "session" => ConnectionKind::Session,
            "request" => ConnectionKind::Request,
            other => return Err(format!("{other}: no peer")),
        };
        let mut connection = self.engine.connect(peer);
        let woken = Arc::new(Flag::default());
        connection.wake_with(Waker::from(woken.clone()));
        let lines = Lines::new(self.engine.limits().message);
        let witness = self.schemas.map(Witness::new);
        self.connections.insert(name.to_owned(), Wire { connection, woken, lines, peer, witness });
        if self.case.is_legacy() && step["handshake"] != Value::Bool(false) {
            self.initialize(name)?;
            let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            self.receive(name, write(&initialized).as_bytes(), step);
        }
        let sent = std::mem::take(&mut self.step);
        self.record.push_str(&String::from_utf8_lossy(&sent.out));
        Ok(())
    }

    /// The first half of the handshake: the answer names the revision.
    fn initialize(&mut self, name: &str) -> Result<(), String> {
        let date = self.case.revision.ok_or("no revision to shake hands under")?.as_str();
        let params = json!({ "protocolVersion": date, "capabilities": self.case.capabilities(),
            "clientInfo": { "name": "client", "version": "1" } });
        let message =
            json!({ "jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": params });
        self.receive(name, write(&message).as_bytes(), &Value::Null);
        let out = std::mem::take(&mut self.step.out);
        self.record.push_str(&String::from_utf8_lossy(&out));
        let sent = self.parse(name, &out)?;
        let expected = json!([{ "jsonrpc": "2.0", "id": "handshake", "result": { "$open": { "protocolVersion": date } } }]);
        compare(&expected, &sent.into(), &mut self.bound)
    }

    fn receive(&mut self, on: &str, message: &[u8], step: &Value) {
        match self.wire(on).peer {
            ConnectionKind::Stdio => self.push(on, &[message, b"\n"].concat(), step),
            _ => self.message(on, message, step),
        }
    }

    /// A stream of bytes, cut into lines.
    fn push(&mut self, on: &str, bytes: &[u8], step: &Value) {
        let size = if self.mode.in_pieces { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(size) {
            let wire = self.wire(on);
            wire.lines.push(piece);
            let mut taken = Vec::new();
            while let Some(line) = wire.lines.next() {
                taken.push(match line {
                    Line::Message(message) => Ok(message.to_vec()),
                    Line::TooLong(line) => Err(line.id().map_or_else(String::new, |id| id.raw().to_owned())),
                });
            }
            for line in taken {
                match line {
                    Ok(message) => self.message(on, &message, step),
                    Err(id) => self.too_long(on, &id),
                }
            }
        }
    }

    fn message(&mut self, on: &str, message: &[u8], step: &Value) {
        let principal = step["as"].as_str().map_or_else(Principal::local, Principal::new);
        let now = self.now;
        let mut out = std::mem::take(&mut self.step.out);
        let wire = self.wire(on);
        if let Some(witness) = &mut wire.witness {
            witness.received(message);
        }
        let arrival = Arrival { message, principal: &principal, header_check: None };
        let RequestOutcome { events, .. } = wire.connection.message(arrival, now, &mut out);
        self.step.out = out;
        self.happen(on, events);
    }

    fn too_long(&mut self, on: &str, id: &str) {
        let mut out = std::mem::take(&mut self.step.out);
        let head = format!(r#"{{"id":{id},"method":"#);
        let line = OversizedLine::new(head.as_bytes(), b"");
        let events = self.wire(on).connection.too_long(line, &mut out).events;
        self.step.out = out;
        self.happen(on, events);
    }

    fn respond(&mut self, given: &Value, step: &Value) -> Result<(), String> {
        let index = self.which(&step["to"])?;
        let on = self.open[index].on.clone();
        let token = self.open[index].token;
        self.open[index].is_answered = true;
        let reply = self.open[index].reply.take();
        let now = self.now;
        let mut out = std::mem::take(&mut self.step.out);
        let connection = &mut self.connections.get_mut(&on).ok_or("no such connection")?.connection;
        let outcome = match reply {
            Some(reply) => {
                let answer = answer(given, || reply.gather());
                connection.finish(reply.encode(answer, now), now, &mut out)
            }
            None => {
                let answer = answer(given, || connection.reply(token).expect("it is open").gather());
                connection.respond(token, answer, now, &mut out)
            }
        };
        self.step.out = out;
        self.happen(&on, outcome.events);
        Ok(())
    }

    fn report(&mut self, verb: &str, given: &Value) -> Result<(), String> {
        let index = self.which(&given["to"])?;
        let open = &mut self.open[index];
        // A host tells a handler that it was cancelled, and writes nothing of it from then on.
        if open.is_cancelled {
            return Ok(());
        }
        let connection = &mut self.connections.get_mut(&open.on).ok_or("no such connection")?.connection;
        let reply = open.reply.as_mut().or_else(|| connection.reply(open.token)).ok_or("no reply")?;
        let line = if verb == "progress" {
            let progress = given["progress"].as_f64().ok_or("progress is a number")?;
            reply.progress(progress, given["total"].as_f64(), given["message"].as_str(), self.now)
        } else {
            let level = given["level"].as_str().and_then(LogLevel::parse).ok_or("no level")?;
            reply.log(level, given["logger"].as_str(), &write(&given["data"]))
        };
        self.step.out.extend(line.unwrap_or_default());
        Ok(())
    }

    fn tick(&mut self, by: u64) {
        self.now = Now { tick: self.now.tick + by, unix: self.now.unix + by };
        self.engine.tick(self.now);
        let now = self.now;
        for name in self.connections.keys().cloned().collect::<Vec<_>>() {
            let mut out = std::mem::take(&mut self.step.out);
            let events = self.wire(&name).connection.tick(now, &mut out).events;
            self.step.out = out;
            self.happen(&name, events);
        }
    }

    fn edit(&mut self, given: &Value) {
        let edits = catalog::edits(given, &self.engine, &mut self.handlers);
        if let Err(error) = edits.and_then(|edits| self.engine.publish(edits, self.now)) {
            self.step.refused = Some(catalog::word(&error));
        }
    }

    fn deliver(&mut self, on: &str, room: &Value) -> Result<(), String> {
        let room = room.as_u64().map_or(usize::MAX, |room| usize::try_from(room).unwrap_or(usize::MAX));
        let mut out = Vec::new();
        let wire = self.wire(on);
        // Before: what wakes it during the delivery calls for another one.
        let was_woken = wire.woken.0.swap(false, Ordering::SeqCst);
        let delivered = wire.connection.deliver(room, &mut out);
        if !out.is_empty() && !was_woken {
            return Err("there was something to deliver, and nobody was woken".into());
        }
        if delivered != Delivered::Idle {
            wire.woken.0.store(was_woken, Ordering::SeqCst);
        }
        self.step.out.append(&mut out);
        self.step.delivered = Some(match delivered {
            Delivered::Idle => "idle",
            Delivered::More => "more",
            Delivered::Ended => "ended",
        });
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), String> {
        let now = self.now;
        let events = self.connections.get_mut(name).ok_or("no such connection")?.connection.close(now);
        self.happen(name, events);
        Ok(())
    }

    /// Takes note of events, and of what must be answered.
    fn happen<'e>(&mut self, on: &str, events: impl IntoIterator<Item = Event<'e>>) {
        for event in events {
            let event = match event {
                Event::Interest => continue,
                Event::Access(request) => {
                    self.decide(on, &request);
                    continue;
                }
                Event::Again(held) => {
                    self.again(on, &held);
                    continue;
                }
                event => event,
            };
            let mut seen = seen(event, &self.handlers);
            if let Some(token) = seen.token {
                let off_loop = self.mode.off_loop;
                let reply = off_loop.then(|| self.wire(on).connection.detach(token)).flatten();
                self.open.push(Open {
                    on: on.to_owned(),
                    token,
                    reply,
                    is_cancelled: false,
                    is_answered: false,
                });
            }
            if let Some(token) = seen.cancelled {
                let index = self.open.iter().rposition(|open| open.on == on && open.token == token);
                if let Some(open) = index.and_then(|index| self.open.get_mut(index)) {
                    open.is_cancelled = true;
                }
                seen.value = json!({ "cancelled": index });
            }
            self.step.events.push(seen.value);
        }
    }

    /// Answers a question about access.
    fn decide(&mut self, on: &str, request: &AccessRequest) {
        let answer = self.handlers.decides(request);
        let now = self.now;
        let mut out = std::mem::take(&mut self.step.out);
        let outcome = self.wire(on).connection.respond(request.token, answer, now, &mut out);
        self.step.out = out;
        self.happen(on, outcome.events);
    }

    /// Serves a held request from its start.
    fn again(&mut self, on: &str, held: &HeldRequest) {
        let now = self.now;
        let mut out = std::mem::take(&mut self.step.out);
        let outcome = self.wire(on).connection.again(held, now, &mut out);
        self.step.out = out;
        self.happen(on, outcome.events);
    }

    fn check_events(&mut self, step: &Value, mut actual: Vec<Value>) -> Result<(), String> {
        let expected: Vec<Value> = catalog::list(&step["events"]).cloned().collect();
        let (quiet, expected): (Vec<_>, Vec<_>) = expected.into_iter().partition(is_quiet);
        let mut heard: Vec<_> = actual.extract_if(.., |event| is_quiet(event)).collect();
        heard.extend(self.handlers.take_watches(&self.engine));
        if self.is_quiet {
            heard.clear();
        }
        for (actual, expected) in actual.iter_mut().zip(&expected) {
            drop_unasked(actual, expected);
        }
        let pairs = [(json!(expected), json!(actual)), (json!({ "$set": quiet }), json!(heard))];
        pairs
            .iter()
            .try_for_each(|(expected, actual)| compare(expected, actual, &mut self.bound))
            .map_err(|error| format!("events{error}"))
    }

    fn check_sent(&mut self, on: &str, step: &Value, out: &[u8]) -> Result<(), String> {
        let sent = self.parse(on, out)?;
        if let Some(lines) = step["sends_text"].as_array() {
            let texts: String =
                lines.iter().filter_map(Value::as_str).map(|line| format!("{line}\n")).collect();
            return if texts.as_bytes() == out {
                Ok(())
            } else {
                Err(format!("sent {}", String::from_utf8_lossy(out)))
            };
        }
        let expected = match &step["sends"] {
            Value::Null => json!([]),
            short => self.terms.message(&resolve(short, &self.bound)),
        };
        compare(&expected, &sent.into(), &mut self.bound).map_err(|error| format!("sends{error}"))
    }

    /// The messages that were sent, one on each line, each valid under the schema of its revision.
    fn parse(&mut self, on: &str, out: &[u8]) -> Result<Vec<Value>, String> {
        let Some(text) = out.strip_suffix(b"\n") else {
            return if out.is_empty() { Ok(Vec::new()) } else { Err("the last line has no end".into()) };
        };
        if text.contains(&b'\r') {
            return Err("a carriage return".into());
        }
        let parse = |line: &[u8]| serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"));
        let sent: Vec<Value> = text.split(|byte| *byte == b'\n').map(parse).collect::<Result<_, _>>()?;
        if let Some(witness) = self.connections.get_mut(on).and_then(|wire| wire.witness.as_mut()) {
            sent.iter().try_for_each(|message| witness.sent(message))?;
        }
        Ok(sent)
    }

    fn which(&self, to: &Value) -> Result<usize, String> {
        let found = match to.as_u64() {
            Some(number) => usize::try_from(number).ok().filter(|index| *index < self.open.len()),
            None => self.open.iter().position(|open| !open.is_answered),
        };
        found.ok_or_else(|| "no event is open".to_owned())
    }

    fn wire(&mut self, on: &str) -> &mut Wire<'c> {
        self.connections.get_mut(on).unwrap_or_else(|| panic!("{on:?}: no such connection"))
    }
}

const VERBS: [&str; 16] = [
    "receive",
    "stream",
    "request",
    "notify",
    "initialize",
    "respond",
    "progress",
    "log",
    "tick",
    "updated",
    "list_changed",
    "edit",
    "deliver",
    "connect",
    "close",
    "shutdown",
];

/// The exact bytes of a line.
fn line(given: &Value) -> Vec<u8> {
    match (&given["raw"], &given["base64"]) {
        (Value::String(text), _) => text.clone().into_bytes(),
        (_, Value::String(encoded)) => STANDARD.decode(encoded).expect("base64"),
        _ => write(given).into_bytes(),
    }
}

fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| key == name || mentions(value, name)),
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        _ => false,
    }
}
