//! Requests of the server to a legacy client.

use super::event::AskId;
use super::{Connection, terms::Capabilities};
use crate::jsonrpc::{Envelope, Id, OwnedId, end};
use crate::now::{Millis, Now};
use std::collections::BTreeMap;

/// Why the client could not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// 2026-07-28: answer with [`InputRequired`](super::InputRequired) instead.
    UseInputRequired,
    /// The client has not declared the capability that the method needs.
    NotSupported,
    /// Too many questions wait for an answer.
    LimitReached,
    /// The params are not a JSON object.
    InvalidParams,
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UseInputRequired => "this client is asked by answering with the input that is required",
            Self::NotSupported => "the client has not declared the capability",
            Self::LimitReached => "too many questions wait for an answer",
            Self::InvalidParams => "the params must be a JSON object",
        })
    }
}

impl std::error::Error for AskError {}

/// The questions that wait for an answer, by number; numbers are never reused.
#[derive(Debug, Default)]
pub(super) struct Asks {
    next: u64,
    open: BTreeMap<u64, Millis>,
}

impl Asks {
    /// The question with this id, which is then closed.
    pub(super) fn settle(&mut self, id: Id<'_>) -> Option<AskId> {
        let number = id.raw().parse().ok()?;
        self.open.remove(&number).map(|_| AskId(number))
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.open.values().min().copied()
    }

    /// Closes what has run out of time.
    pub(super) fn expire(&mut self, now: Millis) -> Vec<AskId> {
        let expired: Vec<_> =
            self.open.iter().filter(|(_, deadline)| **deadline <= now).map(|(n, _)| *n).collect();
        for number in &expired {
            self.open.remove(number);
        }
        expired.into_iter().map(AskId).collect()
    }
}

impl Connection {
    /// Sends a request to a legacy client (`ping`, `elicitation/create`, `sampling/createMessage`, `roots/list`, or one
    /// of the author's). `params` is a JSON object. The answer, or that there was none within
    /// [`Limits::read_timeout`](crate::limits::Limits::read_timeout), comes as [`Event::Replied`](super::Event::Replied).
    ///
    /// # Errors
    /// [`AskError`]; nothing is sent then.
    pub fn ask(
        &mut self,
        method: &str,
        params: &str,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<AskId, AskError> {
        let session = self.session.as_ref().ok_or(AskError::UseInputRequired)?;
        if !session.capabilities.allow_method(method) {
            return Err(AskError::NotSupported);
        }
        let limits = self.engine.limits();
        if self.asks.open.len() >= limits.asks {
            return Err(AskError::LimitReached);
        }
        let members = super::words::members_of(params).ok_or(AskError::InvalidParams)?;
        self.asks.next += 1;
        let number = self.asks.next;
        self.asks.open.insert(number, now.tick.saturating_add(limits.read_timeout));
        let id = OwnedId::from(number);
        Envelope::request(out, id.as_id(), method, |writer| writer.members(members.as_bytes()));
        end(out);
        Ok(AskId(number))
    }
}

impl Capabilities {
    fn allow_method(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.form || self.url,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => true,
        }
    }
}
