//! Requests from the server to a legacy client.

use super::event::AskId;
use super::terms::Capabilities;
use crate::jsonrpc::Id;
use crate::now::Millis;
use std::collections::BTreeMap;

/// The reason for which the client cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// 2026-07-28: answer with [`InputRequired`](super::InputRequired) instead.
    UseInputRequired,
    /// The client has not declared the capability that the method requires.
    NotSupported,
    /// This server is attached to another, which numbers the questions to the client.
    Attached,
    /// Too many questions are pending.
    LimitReached,
    /// The params are not a JSON object.
    InvalidParams,
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UseInputRequired => "this client is asked by answering with the input that is required",
            Self::NotSupported => "the client has not declared the capability",
            Self::Attached => {
                "this server is attached to another one, which alone may ask this client; ask in a tool of that server"
            }
            Self::LimitReached => "too many questions wait for an answer",
            Self::InvalidParams => "the params must be a JSON object",
        })
    }
}

impl std::error::Error for AskError {}

/// The pending questions by number. Numbers are never reused.
#[derive(Debug, Default)]
pub(super) struct ClientAsks {
    next: u64,
    open: BTreeMap<u64, Millis>,
}

impl ClientAsks {
    /// The number of pending questions.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Opens a question that may be answered until `deadline`. Returns its number.
    pub(super) fn begin(&mut self, deadline: Millis) -> AskId {
        self.next += 1;
        self.open.insert(self.next, deadline);
        AskId(self.next)
    }

    /// Closes the question with this id and returns its number.
    pub(super) fn settle(&mut self, id: Id<'_>) -> Option<AskId> {
        let number = id.raw().parse().ok()?;
        self.open.remove(&number).map(|_| AskId(number))
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.open.values().min().copied()
    }

    /// Closes the questions that have timed out.
    pub(super) fn expire(&mut self, now: Millis) -> Vec<AskId> {
        let expired: Vec<_> =
            self.open.iter().filter(|(_, deadline)| **deadline <= now).map(|(n, _)| *n).collect();
        for number in &expired {
            self.open.remove(number);
        }
        expired.into_iter().map(AskId).collect()
    }
}

impl Capabilities {
    pub(super) fn allow_method(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.form || self.url,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => true,
        }
    }
}
