//! `resources/list` and `resources/templates/list` (R-058 … … R-105).

use super::event::Event;
use super::listwalk::ListWalk;
use super::reply::Task;
use super::request::Request;
use super::{Connection, Outcome, Status};
use crate::catalog::{Cursor, ListKind, Position};
use crate::guard::RateClass;
use crate::version::INVALID_PARAMS;

impl Connection {
    pub(super) fn list<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        kind: ListKind,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let Ok(cursor) = request.optional_text("cursor") else {
            return self.refuse(request, (INVALID_PARAMS, "Invalid params: cursor must be a string"), out);
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::List, None, out) {
            return refused;
        }
        let rest = match cursor {
            None => {
                let shared = self.engine.shares_lists();
                Cursor { list: kind, position: Position::Catalog, after: String::new(), shared }
            }
            Some(text) => match self.engine.open_cursor(kind, &text, request.principal) {
                Some(cursor) => cursor,
                None => {
                    return self.refuse(request, (INVALID_PARAMS, "Invalid params: unknown cursor"), out);
                }
            },
        };
        let fields = request.terms.revision.field_set();
        let walk = ListWalk::new(rest, fields, request.principal.clone());
        let timeout = self.engine.limits().read_timeout;
        let entered = self.enter(request, (Task::List(Box::new(walk)), timeout, None), out);
        let (token, caller) = match entered {
            Ok(entered) => entered,
            Err(refused) => return *refused,
        };
        let Some(reply) = self.inflight.take(token) else { return Outcome::new(Status::Accepted) };
        let before = out.len();
        let worded = reply.walk(request.now, out);
        let bytes = out.len() - before;
        let mut outcome = self.go_on(token, (worded, bytes), request.now);
        if let Some(Event::List(list)) = outcome.events.first_mut() {
            list.caller = Some(caller);
        }
        outcome
    }
}
