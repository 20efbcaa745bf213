//! An in-memory HTTP host: no socket, a clock that is moved by hand, handlers that answer when told to.
//!
//! It writes a response only when its waker was woken or its deadline has come, so that a lost wake-up is a failure.

use super::request::Request;
use super::response::Reading;
use super::rules::{rules, verify};
use crate::schema::{Schemas, Witness};
use crate::wire::answer::answer;
use crate::wire::case::Case;
use crate::wire::catalog::{self, Handlers, list};
use crate::wire::compare::{Bound, compare};
use crate::wire::events::{drop_unasked, is_quiet, seen};
use crate::wire::expand::{Terms, resolve};
use crate::wire::{START, write};
use mcp_resources_engine::connection::{Event, LogLevel, Reply, RequestToken};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::http::{
    Endpoint, Exchange, OpenedRequest, RequestHead, Response, SESSION_ID_BYTES, Turn, Verified,
};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

/// How a host works: what it does must not show in what is sent.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// How much a response takes at once.
    pub(crate) room: usize,
    /// Replies are taken out and worded away from the exchange.
    pub(crate) off_loop: bool,
}

pub(crate) struct Host<'c> {
    case: &'c Case,
    mode: Mode,
    terms: Terms,
    engine: Arc<Engine>,
    endpoint: Arc<Endpoint>,
    handlers: Handlers,
    responses: BTreeMap<String, Reading>,
    open: Vec<Open>,
    now: Now,
    bound: Bound,
    witness: Option<Witness<'c>>,
    events: Vec<Value>,
    record: String,
    is_quiet: bool,
}

/// A request to a handler, answered or not.
struct Open {
    exchange: Exchange,
    token: RequestToken,
    reply: Option<Reply>,
    is_cancelled: bool,
    is_answered: bool,
}

const REQUESTS: [&str; 6] = ["http", "post", "request", "notify", "get", "delete"];
const VERBS: [&str; 12] = [
    "read",
    "leave",
    "respond",
    "progress",
    "log",
    "ask",
    "tick",
    "updated",
    "list_changed",
    "edit",
    "shutdown",
    "close",
];

impl<'c> Host<'c> {
    pub(crate) fn new(case: &'c Case, mode: Mode, schemas: Option<&'c Schemas>) -> Result<Self, String> {
        let catalog = case.catalog();
        let (engine, handlers) = catalog::engine(&catalog).map_err(|error| error.to_string())?;
        let next = AtomicU8::new(0);
        let ids = move || Some([next.fetch_add(1, Ordering::Relaxed); SESSION_ID_BYTES]);
        let endpoint = Endpoint::new(Arc::clone(&engine), rules(case.member("rules")), Box::new(ids))
            .map_err(|error| error.to_string())?;
        let steps = write(&Value::from(case.steps()));
        Ok(Self {
            terms: Terms::new(case, &catalog),
            is_quiet: !["\"watched\"", "\"unwatched\"", "\"notified\""]
                .iter()
                .any(|kind| steps.contains(kind)),
            responses: BTreeMap::new(),
            open: Vec::new(),
            now: START,
            bound: Bound::new(),
            witness: schemas.map(Witness::new),
            events: Vec::new(),
            record: String::new(),
            case,
            mode,
            engine,
            endpoint,
            handlers,
        })
    }

    /// Runs the case. Returns everything that was sent, as text.
    pub(crate) fn run(mut self) -> Result<String, String> {
        if self.case.handshake() {
            self.shake_hands()?;
        }
        for (index, step) in self.case.steps().iter().enumerate() {
            self.take(step).map_err(|error| format!("step {index}: {error}\n    {}", write(step)))?;
        }
        for (name, reading) in &self.responses {
            self.record.push_str(&format!("## {name}\n{}\n", String::from_utf8_lossy(&reading.all)));
        }
        Ok(self.record)
    }

    /// The handshake of a legacy client. Binds the session as `session`.
    fn shake_hands(&mut self) -> Result<(), String> {
        let date = self.case.revision.ok_or("no revision to shake hands under")?.as_str();
        let params = json!({ "protocolVersion": date, "capabilities": self.case.capabilities(),
            "clientInfo": { "name": "client", "version": "1" } });
        let has_session = self.case.member("rules")["sessions"] != false;
        let headers =
            if has_session { json!({ "mcp-session-id": { "$bind": "session" } }) } else { json!({}) };
        self.take(&json!({ "post": { "jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": params },
            "headers": headers, "token": self.case.member("token"),
            "sends": [{ "id": "handshake", "result": { "$open": { "protocolVersion": date } } }] }))?;
        self.take(&json!({ "notify": { "method": "notifications/initialized" }, "status": 202,
            "token": self.case.member("token") }))
    }

    fn take(&mut self, step: &Value) -> Result<(), String> {
        let on = step["on"].as_str().unwrap_or_default().to_owned();
        let verb = REQUESTS.iter().chain(&VERBS).find(|verb| step.get(**verb).is_some());
        let verb = *verb.ok_or("a step without a verb")?;
        let given = resolve(&step[verb], &self.bound);
        let mut looked = None;
        if REQUESTS.contains(&verb) {
            self.send(&on, verb, &given, step)?;
            looked = Some(on);
        } else {
            self.act(verb, &given, step)?;
            if verb == "read" {
                looked = given.as_str().map(str::to_owned);
            }
        }
        self.settle()?;
        let events = std::mem::take(&mut self.events);
        self.check_events(step, events)?;
        looked.map_or(Ok(()), |name| self.check_response(&name, step, verb == "read"))
    }

    fn send(&mut self, on: &str, verb: &str, given: &Value, step: &Value) -> Result<(), String> {
        if self.responses.get(on).is_some_and(|reading| !reading.ended) {
            return Err(format!("the response {on:?} goes on: name this one"));
        }
        if let Some(before) = self.responses.remove(on) {
            self.record.push_str(&format!("# {on}\n{}\n", String::from_utf8_lossy(&before.all)));
        }
        let session = self.bound.get(step["session"].as_str().unwrap_or("session")).cloned();
        let mut step = step.clone();
        step["headers_sent"] = resolve(&step["headers_sent"], &self.bound);
        let request = Request::parse(verb, given, &step, self.case, session.as_deref());
        if let Some(witness) = &mut self.witness {
            witness.received(&request.body);
        }
        let headers: Vec<(&str, &[u8])> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let head = RequestHead {
            verb: &request.verb,
            target: &request.target,
            headers: &headers,
            ..RequestHead::default()
        };
        let tokens = self.case.member("tokens");
        let identified = self.endpoint.admit(&head, self.now).and_then(|admitted| {
            let who = admitted.token().map_or(Ok(Verified::anyone()), |token| verify(tokens, token));
            admitted.identify(who, self.now)
        });
        let mut reading = Reading::new(None);
        reading.is_head = request.verb == "HEAD";
        match identified {
            Err(response) => whole(&mut reading, response)?,
            Ok(identified) if request.verb == "POST" && request.body.len() > identified.body_limit() => {
                whole(&mut reading, identified.too_large())?;
            }
            Ok(identified) => {
                let mut out = Vec::new();
                let endpoint = Arc::clone(&self.endpoint);
                let OpenedRequest { turn, exchange } =
                    endpoint.open(&identified, &request.body, self.now, &mut out);
                let Turn { head, events, end, more: _, connection, misuse: _ } = turn;
                if end != exchange.is_none() {
                    return Err("an exchange after the end, or none before it".into());
                }
                reading.write(head, &out, end)?;
                if let Some(exchange) = &exchange {
                    // As a host does: it asks for what came meanwhile, and waits then.
                    exchange.register(&Waker::from(Arc::clone(&reading.woken)));
                    reading.woken.set();
                }
                self.happen(connection, exchange.as_ref(), events);
                reading.exchange = exchange;
            }
        }
        self.responses.insert(on.to_owned(), reading);
        Ok(())
    }

    fn act(&mut self, verb: &str, given: &Value, step: &Value) -> Result<(), String> {
        let text = || given.as_str().ok_or_else(|| format!("{verb} is a text"));
        match verb {
            "leave" => {
                let reading = self.responses.get_mut(text()?).ok_or("no such response")?;
                reading.ended = true;
                if let Some(exchange) = reading.exchange.take() {
                    let turn = exchange.closed(self.now);
                    self.happen(turn.connection, Some(&exchange), turn.events);
                }
            }
            "respond" => self.respond(given, step)?,
            "progress" | "log" => self.report(verb, given)?,
            "ask" => self.ask(given)?,
            "tick" => self.tick(given.as_u64().ok_or("tick is a number")?)?,
            "updated" => {
                self.engine.updated(text()?, self.now).map_err(|error| error.to_string())?;
            }
            "list_changed" => self.engine.list_changed(catalog::list_kinds(given), self.now),
            "edit" => {
                let edits = catalog::edits(given, &self.engine, &mut self.handlers);
                let edits = edits.map_err(|error| error.to_string())?;
                self.engine.publish(edits, self.now).map_err(|error| error.to_string())?;
            }
            "shutdown" => self.endpoint.shutdown(),
            "close" => {
                for turn in self.endpoint.close(self.now) {
                    self.happen(turn.connection, None, turn.events);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn respond(&mut self, given: &Value, step: &Value) -> Result<(), String> {
        let index = self.which(&step["to"])?;
        let open = &mut self.open[index];
        open.is_answered = true;
        let exchange = open.exchange.clone();
        let token = open.token;
        let now = self.now;
        let turn = match open.reply.take() {
            Some(reply) => {
                let answer = answer(given, || reply.gather());
                exchange.finish(reply.encode(answer, now), now)
            }
            None => {
                let gather = exchange.with_reply(token, |reply| reply.gather());
                exchange.respond(token, answer(given, || gather.expect("it is open")), now)
            }
        };
        self.happen(turn.connection, Some(&exchange), turn.events);
        Ok(())
    }

    fn report(&mut self, verb: &str, given: &Value) -> Result<(), String> {
        let index = self.which(&given["to"])?;
        let now = self.now;
        let open = &mut self.open[index];
        let say = |reply: &mut Reply| {
            if verb == "progress" {
                let progress = given["progress"].as_f64().expect("progress is a number");
                return reply.progress(progress, given["total"].as_f64(), given["message"].as_str(), now);
            }
            let level = given["level"].as_str().and_then(LogLevel::parse).expect("a level");
            reply.log(level, given["logger"].as_str(), &write(&given["data"]))
        };
        // A host tells a handler that it was cancelled, and takes nothing of it from then on.
        let line = match (open.is_cancelled, &mut open.reply) {
            (true, _) => None,
            (_, Some(reply)) => say(reply),
            (_, None) => open.exchange.with_reply(open.token, say).ok_or("no reply")?,
        };
        if let Some(line) = line {
            open.exchange.report(open.token, &line);
        }
        Ok(())
    }

    fn ask(&mut self, given: &Value) -> Result<(), String> {
        let index = self.which(&given["to"])?;
        let method = given["method"].as_str().ok_or("ask has a method")?;
        let asked = self.open[index].exchange.ask(method, &write(&given["params"]), self.now);
        asked.map(drop).map_err(|error| error.to_string())
    }

    fn tick(&mut self, by: u64) -> Result<(), String> {
        self.now = Now { tick: self.now.tick + by, unix: self.now.unix + by };
        self.engine.tick(self.now);
        if self.endpoint.deadline().is_some_and(|deadline| deadline <= self.now.tick) {
            for turn in self.endpoint.tick(self.now) {
                self.happen(turn.connection, None, turn.events);
            }
            if self.endpoint.deadline().is_some_and(|deadline| deadline <= self.now.tick) {
                return Err("a tick that does not move the deadline of the endpoint".into());
            }
        }
        let due: Vec<_> = self.responses.iter().filter(|(_, reading)| self.is_due(reading)).collect();
        let due: Vec<_> = due.into_iter().map(|(name, _)| name.clone()).collect();
        due.iter().try_for_each(|name| self.deliver(name))?;
        match self.responses.iter().find(|(_, reading)| self.is_due(reading)) {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name:?}: a delivery that does not move the deadline")),
        }
    }

    fn is_due(&self, reading: &Reading) -> bool {
        let deadline = reading.exchange.as_ref().and_then(Exchange::deadline);
        deadline.is_some_and(|deadline| deadline <= self.now.tick)
    }

    /// Writes every response whose writer was woken, until none is.
    fn settle(&mut self) -> Result<(), String> {
        loop {
            let woken = self.responses.iter().filter(|(_, reading)| reading.woken.take());
            let woken: Vec<_> = woken.map(|(name, _)| name.clone()).collect();
            if woken.is_empty() {
                return Ok(());
            }
            woken.iter().try_for_each(|name| self.deliver(name))?;
        }
    }

    fn deliver(&mut self, name: &str) -> Result<(), String> {
        loop {
            let Some(reading) = self.responses.get_mut(name) else { return Ok(()) };
            let Some(exchange) = reading.exchange.clone() else { return Ok(()) };
            exchange.register(&Waker::from(Arc::clone(&reading.woken)));
            let mut out = Vec::new();
            let turn = exchange.deliver(self.mode.room, self.now, &mut out);
            reading.write(turn.head, &out, turn.end)?;
            if turn.end {
                reading.exchange = None;
            }
            self.happen(turn.connection, Some(&exchange), turn.events);
            if turn.end || !turn.more {
                return Ok(());
            }
        }
    }

    /// Takes note of events, and of what must be answered.
    fn happen<'e>(
        &mut self,
        connection: ConnectionId,
        exchange: Option<&Exchange>,
        events: impl IntoIterator<Item = Event<'e>>,
    ) {
        for event in events {
            let event = match event {
                Event::Interest => continue,
                Event::Access(request) => {
                    let asked = exchange.expect("a question has an exchange");
                    let turn = asked.respond(request.token, self.handlers.decides(&request), self.now);
                    self.happen(turn.connection, exchange, turn.events);
                    continue;
                }
                Event::Again(held) => {
                    let resumed = exchange.expect("a held request has an exchange");
                    let turn = resumed.again(&held, self.now);
                    self.happen(turn.connection, exchange, turn.events);
                    continue;
                }
                event => event,
            };
            let mut seen = seen(event, &self.handlers);
            if let Some(token) = seen.token {
                let exchange = exchange.expect("a request to be answered has an exchange").clone();
                let reply = self.mode.off_loop.then(|| exchange.detach(token)).flatten();
                self.open.push(Open { exchange, token, reply, is_cancelled: false, is_answered: false });
            }
            if let Some(token) = seen.cancelled {
                let is_it = |open: &Open| open.exchange.connection() == connection && open.token == token;
                let index = self.open.iter().rposition(is_it);
                if let Some(open) = index.and_then(|index| self.open.get_mut(index)) {
                    open.is_cancelled = true;
                }
                seen.value = json!({ "cancelled": index });
            }
            self.events.push(seen.value);
        }
    }

    fn check_events(&mut self, step: &Value, mut actual: Vec<Value>) -> Result<(), String> {
        let expected: Vec<Value> = list(&step["events"]).cloned().collect();
        let (quiet, expected): (Vec<_>, Vec<_>) = expected.into_iter().partition(is_quiet);
        let mut heard: Vec<_> = actual.extract_if(.., |event| is_quiet(event)).collect();
        heard.extend(self.handlers.take_watches(&self.engine));
        if self.is_quiet {
            heard.clear();
        }
        for (actual, expected) in actual.iter_mut().zip(&expected) {
            drop_unasked(actual, expected);
        }
        compare(&json!(expected), &json!(actual), &mut self.bound)
            .map_err(|error| format!("events{error}"))?;
        compare(&json!({ "$set": quiet }), &json!(heard), &mut self.bound)
            .map_err(|error| format!("events{error}"))
    }

    /// Compares what came of a response since the last look.
    fn check_response(&mut self, name: &str, step: &Value, is_read: bool) -> Result<(), String> {
        let reading = self.responses.get_mut(name).ok_or_else(|| format!("{name:?}: no such response"))?;
        let head = reading.take_head()?;
        let is_pending = step["pending"] == true;
        let expected = match (step["status"].as_u64(), is_read || is_pending) {
            (None, true) => None,
            (status, _) => Some(status.unwrap_or(200)),
        };
        let status = head.as_ref().map(|(status, _)| u64::from(*status));
        if status != expected {
            let body = String::from_utf8_lossy(&reading.unread);
            return Err(format!("status {status:?} instead of {expected:?}: {body}"));
        }
        let open = step["open"]
            .as_bool()
            .unwrap_or(is_pending || (is_read && reading.is_events() && step["status"].is_null()));
        if reading.ended == open {
            return Err(format!("the response goes on: {}", !reading.ended));
        }
        let is_events = reading.is_events();
        let mut sent = Vec::new();
        if is_events {
            let pieces = reading.take_pieces()?;
            for piece in &pieces {
                sent.extend(piece.message()?);
            }
            if let Some(stream) = step.get("stream") {
                let values = pieces.iter().map(|piece| piece.value()).collect::<Result<Vec<_>, _>>()?;
                return compare(stream, &json!(values), &mut self.bound)
                    .map_err(|error| format!("stream{error}"));
            }
        } else {
            let body = std::mem::take(&mut reading.unread);
            if let Some(text) = step["text"].as_str() {
                return if text.as_bytes() == body {
                    Ok(())
                } else {
                    Err(String::from_utf8_lossy(&body).into())
                };
            }
            if !body.is_empty() {
                sent.push(serde_json::from_slice(&body).map_err(|error| format!("not JSON: {error}"))?);
            }
        }
        if let Some((_, headers)) = head {
            self.check_headers(step, &headers, is_events)?;
        }
        self.check_sent(step, &sent)
    }

    fn check_headers(&mut self, step: &Value, actual: &Value, is_events: bool) -> Result<(), String> {
        if let Some(form) = step["form"].as_str()
            && (form == "events") != is_events
        {
            return Err(format!("content-type is {}", actual["content-type"]));
        }
        for (name, expected) in step["headers"].as_object().into_iter().flatten() {
            compare(expected, &actual[name], &mut self.bound).map_err(|error| format!("{name}{error}"))?;
        }
        Ok(())
    }

    fn check_sent(&mut self, step: &Value, sent: &[Value]) -> Result<(), String> {
        if let Some(document) = step.get("document") {
            return compare(&json!([document]), &json!(sent), &mut self.bound);
        }
        if let Some(witness) = &mut self.witness {
            // A refusal by HTTP has no id, in any revision.
            let mut answers =
                sent.iter().filter(|message| message.get("error").is_none() || message.get("id").is_some());
            answers.try_for_each(|message| witness.sent(message))?;
        }
        let expected = match &step["sends"] {
            Value::Null => json!([]),
            Value::Array(messages) => messages.iter().map(|message| self.terms.message(message)).collect(),
            set => self.terms.message(set),
        };
        let expected = resolve(&expected, &self.bound);
        compare(&expected, &json!(sent), &mut self.bound).map_err(|error| format!("sends{error}"))
    }

    fn which(&self, to: &Value) -> Result<usize, String> {
        let found = match to.as_u64() {
            Some(number) => usize::try_from(number).ok().filter(|index| *index < self.open.len()),
            None => self.open.iter().position(|open| !open.is_answered),
        };
        found.ok_or_else(|| "no event is open".to_owned())
    }
}

fn whole(reading: &mut Reading, response: Response) -> Result<(), String> {
    reading.write(Some(response.head), &response.body, true)
}
