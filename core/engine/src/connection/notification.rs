//! Notifications from the client: never answered.

use super::cached;
use super::event::Event;
use super::{Connection, Outcome, Peer, Status};
use crate::guard::Verdict;
use crate::jsonrpc::{Id, OwnedId, Params};
use crate::now::Now;
use std::borrow::Cow;

impl Connection {
    pub(super) fn notification<'m>(
        &mut self,
        method: Cow<'m, str>,
        params: &Params<'m>,
        now: Now,
    ) -> Outcome<'m> {
        let outcome = Outcome::new(Status::Accepted);
        match &*method {
            "notifications/initialized" => {
                self.is_operating = true;
                let mut woken = Vec::new();
                self.engine.hub().ready(self.id, &mut woken);
                Outcome { wakes: !woken.is_empty(), ..outcome }
            }
            "notifications/cancelled" => outcome.with(self.cancelled(params, now)),
            _ => {
                let params = match params {
                    Params::Object { raw, .. } => Some(*raw),
                    _ => None,
                };
                outcome.with([Event::Notified { method, params }])
            }
        }
    }

    /// Over HTTP a modern client cancels by closing its stream.
    fn cancelled<'m>(&mut self, params: &Params<'m>, now: Now) -> Vec<Event<'m>> {
        let id = params.get("requestId").and_then(Id::from_json);
        let Some(id) = id.filter(|_| !matches!(self.peer, Peer::Request | Peer::Stateless)) else {
            return Vec::new();
        };
        let (engine, inflight) = (&self.engine, &mut self.inflight);
        if let Some((token, ticket)) = inflight.cancel(id, |ticket| cached::goes_on(engine, ticket, None)) {
            self.record_ended(&ticket, (Verdict::Cancelled, 0), now);
            if let Some(batch) = ticket.batch {
                self.batches.cancel(batch, token);
            }
            return vec![Event::Cancelled(token)];
        }
        if !self.listens.remove(&OwnedId::from(id)) {
            return Vec::new();
        }
        let last = self.engine.hub().cancel(self.id, id).unwrap_or_default();
        last.into_iter().map(|uri| Event::Unwatched { uri }).collect()
    }
}
