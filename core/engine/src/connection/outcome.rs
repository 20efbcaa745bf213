//! What a call of the connection returns to its host.

use super::event::{Event, Events};
use crate::guard::Verdict;

/// What became of a call.
#[derive(Debug)]
pub struct Outcome<'m> {
    /// For HTTP: it decides the status code. Stdio ignores it.
    pub status: Status,
    /// What the host must do.
    pub events: Events<'m>,
    /// What the author did wrong, if an answer was not one that its event can have: for the host's log.
    pub misuse: Option<String>,
    /// How a request ended, if it has: for the record.
    pub verdict: Verdict,
    /// The scopes that the token lacks, with [`Refusal::Scope`].
    pub scopes: Vec<String>,
}

/// Whether a message has been dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// An answer will follow: from the host, or when a subscription ends.
    Pending,
    /// The answer is in the buffer.
    Answered,
    /// A notification or a response: there is no answer.
    Accepted,
    /// Refused; the error is in the buffer.
    Refused(Refusal),
}

/// Why a message was refused, as far as a transport cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not JSON, or not a message.
    Malformed,
    /// Required `_meta` members are missing or mistyped.
    Envelope,
    /// A header is missing, malformed, or contradicts the body (2026-07-28, HTTP).
    Header,
    /// The message belongs to a session, and names none (legacy, HTTP).
    Session,
    /// The session it names has ended, or is not the sender's (legacy, HTTP).
    SessionUnknown,
    /// The revision is not served.
    Version,
    /// No such method.
    Method,
    /// The client did not declare a capability that is needed.
    Capability,
    /// The token lacks scopes: [`Outcome::scopes`].
    Scope,
}

impl<'m> Outcome<'m> {
    pub(super) fn new(status: Status) -> Self {
        Self { status, events: Events::new(), misuse: None, verdict: status.verdict(), scopes: Vec::new() }
    }

    /// Nothing was to be done, and nothing follows.
    pub fn nothing() -> Self {
        Self::new(Status::Accepted)
    }

    pub(super) fn answered() -> Self {
        Self::new(Status::Answered)
    }

    pub(super) fn refused(refusal: Refusal) -> Self {
        Self::new(Status::Refused(refusal))
    }

    /// With one event, which is put in its place and not moved.
    pub(super) fn with_one(status: Status, event: Event<'m>) -> Self {
        Self { events: Events::from_buf([event]), ..Self::new(status) }
    }

    pub(super) fn with(mut self, events: impl IntoIterator<Item = Event<'m>>) -> Self {
        self.events.extend(events);
        self
    }
}

impl Status {
    /// How a request with this status has ended.
    fn verdict(self) -> Verdict {
        match self {
            Self::Refused(Refusal::Malformed) => Verdict::InvalidRequest,
            Self::Refused(Refusal::Envelope) => Verdict::InvalidParams,
            Self::Refused(Refusal::Header) => Verdict::HeaderMismatch,
            Self::Refused(Refusal::Session | Refusal::SessionUnknown) => Verdict::SessionNotFound,
            Self::Refused(Refusal::Version) => Verdict::UnsupportedVersion,
            Self::Refused(Refusal::Method) => Verdict::MethodNotFound,
            Self::Refused(Refusal::Capability) => Verdict::MissingCapability,
            Self::Refused(Refusal::Scope) => Verdict::Denied,
            Self::Pending | Self::Answered | Self::Accepted => Verdict::Ok,
        }
    }
}
