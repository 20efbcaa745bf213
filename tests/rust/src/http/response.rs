//! One response as a client sees it: what its turns wrote, read strictly.

use mcp_resources_engine::http::{Exchange, ResponseHead};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

/// Whether the writer of a response was woken.
#[derive(Default)]
pub(crate) struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Flag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// A response, and what of it was not looked at yet.
pub(crate) struct Reading {
    pub(crate) exchange: Option<Exchange>,
    pub(crate) woken: Arc<Flag>,
    pub(crate) head: Option<ResponseHead>,
    /// The head came since the last look.
    is_new: bool,
    pub(crate) unread: Vec<u8>,
    pub(crate) ended: bool,
    length: usize,
    /// It answers `HEAD`: it has the length of a body that is not sent.
    pub(crate) is_head: bool,
    /// Everything that was written.
    pub(crate) all: Vec<u8>,
}

/// One piece of a stream of events.
#[derive(Default)]
pub(crate) struct Piece {
    id: Option<String>,
    retry: Option<u64>,
    data: Option<String>,
    event: Option<String>,
    comment: bool,
}

impl Reading {
    pub(crate) fn new(exchange: Option<Exchange>) -> Self {
        let woken = Default::default();
        let head = Default::default();
        let is_new = Default::default();
        let unread = Default::default();
        let ended = Default::default();
        let length = Default::default();
        let is_head = Default::default();
        let all = Default::default();
        Self { exchange, woken, head, is_new, unread, ended, length, is_head, all }
    }

    /// Takes what a turn wrote.
    pub(crate) fn write(&mut self, head: Option<ResponseHead>, body: &[u8], end: bool) -> Result<(), String> {
        if self.ended {
            return Err("a turn after the end".into());
        }
        if let Some(head) = head {
            if self.head.is_some() {
                return Err("a second head".into());
            }
            self.all.extend_from_slice(format!("{head:?}\n").as_bytes());
            self.head = Some(head);
            self.is_new = true;
        } else if self.head.is_none() && (!body.is_empty() || end) {
            return Err("a body without a head".into());
        }
        self.unread.extend_from_slice(body);
        self.all.extend_from_slice(body);
        self.length += body.len();
        self.ended = end;
        if end { self.check_end() } else { Ok(()) }
    }

    /// what every response has.
    fn check_end(&self) -> Result<(), String> {
        match self.header("content-length") {
            Some(length) if !self.is_head && length != self.length.to_string() => {
                Err(format!("content-length is {length}, the body has {}", self.length))
            }
            None if !self.is_events() && self.head.as_ref().is_some_and(|head| head.status != 204) => {
                Err("no content-length".into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.as_ref()?.headers.iter();
        headers.clone().find(|(own, _)| *own == name).map(|(_, value)| &**value)
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The head as the format writes it, if it came since the last look.
    pub(crate) fn take_head(&mut self) -> Result<Option<(u16, Value)>, String> {
        if !std::mem::take(&mut self.is_new) {
            return Ok(None);
        }
        let Some(head) = &self.head else { return Ok(None) };
        let mut headers = Map::new();
        for (name, value) in &head.headers {
            let is_visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            if !is_visible || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return Err(format!("{name}: {value:?} is no header that can be written"));
            }
            if headers.insert((*name).to_owned(), json!(value)).is_some() {
                return Err(format!("{name} twice"));
            }
        }
        if self.is_events()
            && (headers["cache-control"] != "no-cache" || headers["x-accel-buffering"] != "no")
        {
            return Err("a stream of events that a proxy may hold back (R-166)".into());
        }
        Ok(Some((head.status, headers.into())))
    }

    /// The pieces of a stream of events that came since the last look: strict, every piece is whole.
    pub(crate) fn take_pieces(&mut self) -> Result<Vec<Piece>, String> {
        let text = String::from_utf8(std::mem::take(&mut self.unread)).map_err(|_| "not UTF-8")?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let text = text.strip_suffix("\n\n").ok_or("the last event is not ended")?;
        text.split("\n\n").map(Piece::parse).collect()
    }
}

impl Piece {
    fn parse(text: &str) -> Result<Self, String> {
        let mut piece = Self::default();
        for line in text.split('\n') {
            let (name, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is no field"))?;
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            let is_first = match name {
                "" => !std::mem::replace(&mut piece.comment, true),
                "id" => piece.id.replace(value).is_none(),
                "event" => piece.event.replace(value).is_none(),
                "data" => piece.data.replace(value).is_none(),
                "retry" => piece.retry.replace(value.parse().map_err(|_| "retry is no number")?).is_none(),
                _ => return Err(format!("{line:?}: not a field that is sent")),
            };
            if !is_first {
                return Err(format!("{text:?}: a field twice"));
            }
        }
        Ok(piece)
    }

    /// Its message; `None` for a comment and for an event without data.
    pub(crate) fn message(&self) -> Result<Option<Value>, String> {
        let is_message = self.event.as_deref().is_none_or(|event| event == "message");
        let data = self.data.as_deref().filter(|data| !data.is_empty() && is_message);
        data.map(|data| serde_json::from_str(data).map_err(|error| format!("not JSON: {error}"))).transpose()
    }

    /// As `stream` has it.
    pub(crate) fn value(&self) -> Result<Value, String> {
        let mut value = Map::new();
        if self.comment {
            value.insert("comment".into(), true.into());
        }
        value.extend(self.id.as_ref().map(|id| ("id".into(), json!(id))));
        value.extend(self.retry.map(|retry| ("retry".into(), json!(retry))));
        if let Some(event) = self.event.as_ref().filter(|event| *event != "message") {
            return Ok(json!({ "event": event, "data": self.data }));
        }
        match (self.message()?, &self.data) {
            (Some(message), _) => value.extend([("message".into(), message)]),
            (None, Some(_)) => value.extend([("empty".into(), true.into())]),
            (None, None) => {}
        };
        Ok(value.into())
    }
}
