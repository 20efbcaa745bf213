//! The result of a call of the connection, for its runtime.

use super::event::{Event, Events};
use crate::guard::Verdict;

/// The result of a call of the connection.
#[derive(Debug)]
pub struct RequestOutcome<'m> {
    /// The outcome of a message. HTTP derives its status code from it; stdio ignores it.
    pub status: OutcomeStatus,
    /// Actions for the runtime.
    pub events: Events<'m>,
    /// A handler's mistake, for the log: its answer did not fit the event.
    pub misuse: Option<String>,
    /// The outcome of the request, for its record.
    pub verdict: Verdict,
    /// The scopes that the token lacks, for [`RequestRefusal::Scope`].
    pub scopes: Vec<String>,
}

/// The state of a message after the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeStatus {
    /// The answer will follow: from the runtime, or when a subscription ends.
    Pending,
    /// The answer has been appended.
    Answered,
    /// A notification or a response, which gets no answer.
    Accepted,
    /// Refused; the error has been appended.
    Refused(RequestRefusal),
}

/// The reason for a refusal, as far as transports distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// Not JSON, or not a message.
    Malformed,
    /// Required `_meta` members are missing or mistyped.
    Envelope,
    /// A header is missing, malformed, or contradicts the body (2026-07-28, HTTP).
    Header,
    /// The message must name a session, and names none (legacy, HTTP).
    Session,
    /// The session has ended, or belongs to another principal (legacy, HTTP).
    SessionUnknown,
    /// The revision is not supported.
    Version,
    /// No such method.
    Method,
    /// The client did not declare a required capability.
    Capability,
    /// The token lacks scopes: [`RequestOutcome::scopes`].
    Scope,
}

impl<'m> RequestOutcome<'m> {
    pub(super) fn new(status: OutcomeStatus) -> Self {
        Self { status, events: Events::new(), misuse: None, verdict: status.verdict(), scopes: Vec::new() }
    }

    /// No action, and no answer.
    pub fn nothing() -> Self {
        Self::new(OutcomeStatus::Accepted)
    }

    pub(super) fn answered() -> Self {
        Self::new(OutcomeStatus::Answered)
    }

    pub(super) fn refused(refusal: RequestRefusal) -> Self {
        Self::new(OutcomeStatus::Refused(refusal))
    }

    /// An outcome with one event. The event is constructed in place, which avoids a move.
    pub(super) fn with_one(status: OutcomeStatus, event: Event<'m>) -> Self {
        Self { events: Events::from_buf([event]), ..Self::new(status) }
    }

    pub(super) fn with(mut self, events: impl IntoIterator<Item = Event<'m>>) -> Self {
        self.events.extend(events);
        self
    }
}

impl OutcomeStatus {
    /// The verdict for a request with this status.
    fn verdict(self) -> Verdict {
        match self {
            Self::Refused(RequestRefusal::Malformed) => Verdict::InvalidRequest,
            Self::Refused(RequestRefusal::Envelope) => Verdict::InvalidParams,
            Self::Refused(RequestRefusal::Header) => Verdict::HeaderMismatch,
            Self::Refused(RequestRefusal::Session | RequestRefusal::SessionUnknown) => {
                Verdict::SessionNotFound
            }
            Self::Refused(RequestRefusal::Version) => Verdict::UnsupportedVersion,
            Self::Refused(RequestRefusal::Method) => Verdict::MethodNotFound,
            Self::Refused(RequestRefusal::Capability) => Verdict::MissingCapability,
            Self::Refused(RequestRefusal::Scope) => Verdict::Denied,
            Self::Pending | Self::Answered | Self::Accepted => Verdict::Ok,
        }
    }
}
