//! The next actions of a runtime. The rules communicate with a runtime through nothing else.

use super::head::ResponseHead;
use crate::connection::{Events, RequestOutcome};
use crate::hub::ConnectionId;

/// The next actions of a runtime, in this order: write `head`, write the bytes that the call appended, end the body if
/// `end` is set, and handle `events`.
#[derive(Debug)]
#[must_use = "a turn says what to write and what to do"]
pub struct Turn<'m> {
    /// Status and headers, in the first turn of a response only.
    pub head: Option<ResponseHead>,
    /// Actions for the runtime, as in [`RequestOutcome`].
    pub events: Events<'m>,
    /// The response is complete: end the body, and drop its [`Exchange`](super::Exchange).
    pub end: bool,
    /// More data is available than fitted into `room`: deliver again when the client can receive it.
    pub more: bool,
    /// The connection to which the tokens in the events belong: tokens are unique within one connection only.
    pub connection: ConnectionId,
    /// A handler's mistake, for the log.
    pub misuse: Option<String>,
}

impl<'m> Turn<'m> {
    /// Nothing to write.
    pub(super) fn new(connection: ConnectionId) -> Self {
        Self { head: None, events: Events::new(), end: false, more: false, connection, misuse: None }
    }

    pub(super) fn ended(connection: ConnectionId) -> Self {
        Self { end: true, ..Self::new(connection) }
    }

    /// Shortens the lifetime, for callers whose events may borrow for less time.
    pub(super) fn shorten<'o>(self) -> Turn<'o>
    where
        'm: 'o,
    {
        let Self { head, events, end, more, connection, misuse } = self;
        let mut shorter = Events::new();
        events.into_iter().for_each(|event| shorter.push(event));
        Turn { head, events: shorter, end, more, connection, misuse }
    }

    /// The runtime's part of an outcome.
    pub(super) fn after(connection: ConnectionId, outcome: RequestOutcome<'m>) -> Self {
        Self { events: outcome.events, misuse: outcome.misuse, ..Self::new(connection) }
    }
}
