//! Requests from the server to a legacy client.

use super::event::AskId;
use super::terms::ClientCapabilities;
use crate::jsonrpc::{Id, object};
use crate::now::Millis;
use crate::version;
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

/// The time for which a client may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskLasts {
    /// As long as a read: [`Limits::read_timeout`](crate::limits::Limits::read_timeout).
    AsRead,
    /// Until the question is withdrawn with [`Connection::withdraw_ask`](super::Connection::withdraw_ask), or the connection
    /// ends: a person may have to answer.
    UntilWithdrawn,
}

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

    /// Closes a question whose answer is not wanted any more. Returns whether it was open.
    pub(super) fn withdraw(&mut self, ask: AskId) -> bool {
        self.open.remove(&ask.0).is_some()
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.open.values().min().copied().filter(|deadline| *deadline < Millis::MAX)
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

impl ClientCapabilities {
    /// Whether the client may be asked with this method. Methods that need no capability may always be used.
    pub fn allow_method(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.form || self.url,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => true,
        }
    }

    /// The methods of the questions that the client answers.
    pub fn methods(self) -> impl Iterator<Item = &'static str> {
        version::QUESTIONS
            .into_iter()
            .map(|(method, _)| method)
            .filter(move |method| self.allow_method(method))
    }

    /// The member `capabilities` of a client that answers the same questions: JSON text, an object.
    pub fn to_json(self) -> String {
        let mut out = Vec::new();
        object(&mut out, |members| {
            if self.form || self.url {
                members.object("elicitation", |modes| {
                    // `{}` alone means a form, also for servers that do not know modes.
                    if self.url {
                        modes.object("url", |_| ());
                        if self.form {
                            modes.object("form", |_| ());
                        }
                    }
                });
            }
            if self.sampling {
                members.object("sampling", |parts| {
                    if self.sampling_tools {
                        parts.object("tools", |_| ());
                    }
                });
            }
            if self.roots {
                members.object("roots", |_| ());
            }
        });
        String::from_utf8(out).unwrap_or_else(|_| "{}".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::Json;

    #[test]
    fn capabilities_are_declared_as_they_were_read() {
        for text in [
            "{}",
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{"url":{},"form":{}},"sampling":{"tools":{}},"roots":{}}"#,
            r#"{"sampling":{}}"#,
        ] {
            let read = ClientCapabilities::parse(Json::parse(text.as_bytes(), 8).unwrap());
            assert_eq!(read.to_json(), text);
        }
        let all = ClientCapabilities { url: true, roots: true, ..ClientCapabilities::default() };
        assert_eq!(all.methods().collect::<Vec<_>>(), ["elicitation/create", "roots/list"]);
    }
}
