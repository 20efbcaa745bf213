//! What a host does next. Nothing else passes from the rules to a host.

use super::head::ResponseHead;
use crate::connection::{Events, Outcome};
use crate::hub::ConnectionId;

/// What a host does next, in this order: write `head`, then what the call appended to its buffer, then end the body if
/// `end`; and do what `events` ask.
#[derive(Debug)]
#[must_use = "a turn says what to write and what to do"]
pub struct Turn<'m> {
    /// Status and headers, in the turn that decides them; the later ones have none.
    pub head: Option<ResponseHead>,
    /// What the host must do, as in [`Outcome`].
    pub events: Events<'m>,
    /// Nothing more follows in this response: its body ends, and its [`Exchange`](super::Exchange) is done with.
    pub end: bool,
    /// There is more to write than there was room for: deliver again when the client can take it.
    pub more: bool,
    /// Whose tokens the events speak of: tokens are unique in one connection only.
    pub connection: ConnectionId,
    /// What the author did wrong, for the host's log.
    pub misuse: Option<String>,
}

impl<'m> Turn<'m> {
    /// Nothing to write.
    pub(super) fn of(connection: ConnectionId) -> Self {
        Self { head: None, events: Events::new(), end: false, more: false, connection, misuse: None }
    }

    pub(super) fn ended(connection: ConnectionId) -> Self {
        Self { end: true, ..Self::of(connection) }
    }

    /// The same for a caller whose events may borrow more.
    pub(super) fn shorten<'o>(self) -> Turn<'o>
    where
        'm: 'o,
    {
        let Self { head, events, end, more, connection, misuse } = self;
        let mut shorter = Events::new();
        events.into_iter().for_each(|event| shorter.push(event));
        Turn { head, events: shorter, end, more, connection, misuse }
    }

    /// What an outcome leaves to the host.
    pub(super) fn after(connection: ConnectionId, outcome: Outcome<'m>) -> Self {
        Self { events: outcome.events, misuse: outcome.misuse, ..Self::of(connection) }
    }
}
