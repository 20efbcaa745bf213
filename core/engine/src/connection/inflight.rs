//! The requests of one connection that wait for the runtime's answer: a bounded table of slots.
//!
//! ```text
//!            insert            detach
//!   free ────────────▶ waiting ────────▶ detached
//!    ▲                  │   │ cancel, expire │
//!    │ take, settle     │   └──────▶ dropped ◀┘
//!    └──────────────────┴──────────────┘ settle (the late answer)
//! ```
//!
//! A slot is free again only when the runtime has answered, so a client that cancels in a loop cannot pile up work.

use super::batch::BatchId;
use super::event::RequestToken;
use super::reply::Reply;
use super::request_record::PendingRecord;
use super::response::ResponseWriter;
use crate::engine::ReadFlight;
use crate::error::{ReadError, Shown};
use crate::guard::Permit;
use crate::jsonrpc::{Envelope, Id, OwnedId};
use crate::now::Millis;
use crate::version::{self, Revision};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A table of the unanswered requests of one connection. See the module for the states of a slot.
pub(super) struct InFlight {
    slots: Vec<InflightSlot>,
    /// A digest of the request id in each slot; different digests mean different ids. Stored densely, so that a search
    /// for an id is short.
    digests: Vec<u64>,
    free: Vec<u32>,
    /// Lower bound of all deadlines; may be stale.
    earliest: Millis,
}

struct InflightSlot {
    generation: u32,
    state: SlotState,
    /// Held until the runtime has answered, even if the request was cancelled.
    permit: Option<Permit>,
}

enum SlotState {
    Free,
    Waiting(Reply),
    Detached(Arc<Ticket>),
    Dropped(Arc<Ticket>),
}

/// Identifies an unanswered request to the client, with its deadline. Shared by the slot and the reply.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) id: OwnedId,
    pub(super) envelope: Envelope,
    pub(super) revision: Revision,
    /// The URI as the client spelled it, for a read.
    pub(super) uri: Option<String>,
    pub(super) timeout: Millis,
    pub(super) deadline: Millis,
    /// The batch that its answer belongs to.
    pub(super) batch: Option<BatchId>,
    /// The flight that its answer ends, if other requests may wait for the same resource.
    pub(super) flight: Option<Arc<ReadFlight>>,
    /// The record to complete when it ends, if requests are recorded.
    pub(super) opening: Option<Arc<PendingRecord>>,
    /// Whether the connection asks for itself: no client waits for an answer.
    pub(super) is_own: bool,
    /// Whether the answer is no longer wanted.
    pub(super) is_dropped: AtomicBool,
}

/// The requests that timed out in one tick, for the log.
#[derive(Debug, Default)]
pub(super) struct Late {
    first: Option<String>,
    count: usize,
}

impl Late {
    pub(super) fn add(&mut self, ticket: &Ticket) {
        self.count += 1;
        self.first.get_or_insert_with(|| {
            let what = ticket.uri.as_deref().map_or_else(String::new, |uri| format!(" for {}", Shown(uri)));
            format!("a handler gave no answer{what} within {} ms", ticket.timeout)
        });
    }

    /// The log message; `None` if no request was late.
    pub(super) fn message(self) -> Option<String> {
        let others = match self.count {
            0 | 1 => String::new(),
            count => format!(", nor {} more at the same time", count - 1),
        };
        let first = self.first?;
        Some(format!(
            "{first}{others}; the client got an error. For more time, raise the read or completion timeout in limits"
        ))
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self { slots: Vec::new(), digests: Vec::new(), free: Vec::new(), earliest: Millis::MAX }
    }
}

impl InFlight {
    /// The number of used slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether an unanswered request has this id. Cancelled requests do not count.
    pub(super) fn contains(&self, id: Id<'_>) -> bool {
        if self.len() == 0 {
            return false;
        }
        let digest = id.digest();
        let names = |ticket: &Arc<Ticket>| !ticket.is_own && ticket.id.as_id() == id;
        let mut alike = self.digests.iter().zip(&self.slots).filter(|(own, _)| **own == digest);
        alike.any(|(_, slot)| slot.state.ticket().is_some_and(names))
    }

    /// Takes a slot for the reply that `reply` makes from its token. The slot holds `permit` while it is in use.
    pub(super) fn insert(
        &mut self,
        permit: Option<Permit>,
        reply: impl FnOnce(RequestToken) -> Reply,
    ) -> RequestToken {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(InflightSlot { generation: 0, state: SlotState::Free, permit: None });
            self.digests.push(0);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        let token = RequestToken { index, generation: slot.generation };
        let reply = reply(token);
        self.digests[index as usize] = reply.context.ticket.id.as_id().digest();
        self.earliest = self.earliest.min(reply.context.ticket.deadline);
        slot.state = SlotState::Waiting(reply);
        slot.permit = permit;
        token
    }

    /// Puts the reply of a request that is served again into the slot that it has.
    pub(super) fn reuse(&mut self, token: RequestToken, reply: Reply) {
        self.earliest = self.earliest.min(reply.context.ticket.deadline);
        self.put_back(token, reply);
    }

    /// Takes the reply of a request to answer it here; call [`Self::settle`] or [`Self::put_back`] next. `None` if it
    /// was detached, or if it was dropped, in which case this call frees its slot.
    pub(super) fn take(&mut self, token: RequestToken) -> Option<Reply> {
        if matches!(self.slot(token)?.state, SlotState::Dropped(_)) {
            self.release(token);
            return None;
        }
        self.detach(token)
    }

    /// Puts back a reply whose answer needs another event.
    pub(super) fn put_back(&mut self, token: RequestToken, reply: Reply) {
        if let Some(slot) = self.slot(token) {
            slot.state = SlotState::Waiting(reply);
        }
    }

    /// The reply, left in place.
    pub(super) fn get(&mut self, token: RequestToken) -> Option<&mut Reply> {
        match &mut self.slot(token)?.state {
            SlotState::Waiting(reply) => Some(reply),
            _ => None,
        }
    }

    /// Takes the reply and leaves its ticket in the slot. `None` if it was dropped or detached before.
    pub(super) fn detach(&mut self, token: RequestToken) -> Option<Reply> {
        let state = &mut self.slot(token)?.state;
        let SlotState::Waiting(reply) = state else { return None };
        let ticket = reply.context.ticket.clone();
        match std::mem::replace(state, SlotState::Detached(ticket)) {
            SlotState::Waiting(reply) => Some(reply),
            _ => None,
        }
    }

    /// The ticket of a request whose answer the client still wants.
    pub(super) fn wanted(&mut self, token: RequestToken) -> Option<&Arc<Ticket>> {
        self.slot(token)?.state.ticket()
    }

    /// The ticket of a request whose answer the client no longer wants.
    pub(super) fn dropped(&self, token: RequestToken) -> Option<&Ticket> {
        let slot = self.slots.get(token.index as usize).filter(|slot| slot.generation == token.generation)?;
        match &slot.state {
            SlotState::Dropped(ticket) => Some(ticket),
            _ => None,
        }
    }

    /// Frees the slot after the runtime's answer.
    pub(super) fn settle(&mut self, token: RequestToken) {
        self.release(token);
    }

    /// Drops the request with this id, unless `stays` returns `true` because other requests wait for it.
    pub(super) fn cancel(
        &mut self,
        id: Id<'_>,
        stays: impl Fn(&Ticket) -> bool,
    ) -> Option<(RequestToken, Arc<Ticket>)> {
        self.drop_where(|ticket| !ticket.is_own && ticket.id.as_id() == id && !stays(ticket)).pop()
    }

    /// Drops all requests except those for which `stays` returns `true`.
    pub(super) fn cancel_all(&mut self, stays: impl Fn(&Ticket) -> bool) -> Vec<(RequestToken, Arc<Ticket>)> {
        self.drop_where(|ticket| !stays(ticket))
    }

    /// Drops requests that have timed out, after calling `expired` for each.
    pub(super) fn expire(
        &mut self,
        now: Millis,
        expired: impl Fn(&Ticket),
    ) -> Vec<(RequestToken, Arc<Ticket>)> {
        self.drop_where(|ticket| {
            let is_over = ticket.deadline <= now;
            if is_over {
                expired(ticket);
            }
            is_over
        })
    }

    /// A lower bound of the first deadline.
    pub(super) fn deadline(&self) -> Option<Millis> {
        (self.earliest != Millis::MAX).then_some(self.earliest)
    }

    fn drop_where(&mut self, condition: impl Fn(&Ticket) -> bool) -> Vec<(RequestToken, Arc<Ticket>)> {
        let mut dropped = Vec::new();
        self.earliest = Millis::MAX;
        for (index, slot) in (0_u32..).zip(&mut self.slots) {
            let Some(ticket) = slot.state.ticket() else { continue };
            if condition(ticket) {
                let ticket = ticket.clone();
                ticket.is_dropped.store(true, Ordering::Release);
                slot.state = SlotState::Dropped(ticket.clone());
                dropped.push((RequestToken { index, generation: slot.generation }, ticket));
            } else {
                self.earliest = self.earliest.min(ticket.deadline);
            }
        }
        dropped
    }

    fn slot(&mut self, token: RequestToken) -> Option<&mut InflightSlot> {
        let slot = self.slots.get_mut(token.index as usize)?;
        (slot.generation == token.generation && !matches!(slot.state, SlotState::Free)).then_some(slot)
    }

    fn release(&mut self, token: RequestToken) {
        if let Some(slot) = self.slot(token) {
            slot.generation = slot.generation.wrapping_add(1);
            slot.state = SlotState::Free;
            slot.permit = None;
            self.free.push(token.index);
        }
        if self.len() == 0 {
            self.earliest = Millis::MAX;
        }
    }
}

impl SlotState {
    /// The ticket of a request whose answer is still wanted.
    fn ticket(&self) -> Option<&Arc<Ticket>> {
        match self {
            Self::Waiting(reply) => Some(&reply.context.ticket),
            Self::Detached(ticket) => Some(ticket),
            Self::Free | Self::Dropped(_) => None,
        }
    }
}

impl Ticket {
    pub(super) fn response_writer(&self, server_info: Option<Arc<str>>) -> ResponseWriter<'_> {
        ResponseWriter { envelope: self.envelope, id: self.id.as_id(), revision: self.revision, server_info }
    }

    pub(super) fn say_cancelled(&self, out: &mut Vec<u8>) {
        self.response_writer(None).error(out, version::REQUEST_CANCELLED, "Request cancelled", |_| ());
    }

    /// Writes the error that the responses of the request's batch exceed `max` bytes.
    pub(super) fn say_too_much(&self, max: usize, out: &mut Vec<u8>) {
        self.response_writer(None).too_much(max, out);
    }

    pub(super) fn write_expired(&self, out: &mut Vec<u8>) {
        self.response_writer(None).failure(
            out,
            &ReadError::Timeout { after: self.timeout },
            self.uri.as_deref(),
        );
    }
}
