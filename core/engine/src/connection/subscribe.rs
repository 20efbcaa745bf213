//! `resources/subscribe` and `resources/unsubscribe` (R-081 … R-086).

use super::event::Event;
use super::request::Request;
use super::{Connection, Outcome};
use crate::catalog::Route;
use crate::error::ReadError;
use crate::guard::{Action, RateClass};
use crate::version::{INTERNAL_ERROR, INVALID_PARAMS};
use mcp_resources_template::uri;

impl Connection {
    pub(super) fn subscribe<'m>(&mut self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> Outcome<'m> {
        let Ok(Some(uri)) = request.optional_text("uri") else {
            return self.refuse(request, (INVALID_PARAMS, "Invalid params: uri must be a string"), out);
        };
        let Ok(normal) = uri::normalize(&uri, self.engine.limits().uri) else {
            return self.fail(request, &ReadError::InvalidUri, self.echo(&uri), out);
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Subscribe, Some(&uri), out) {
            return refused;
        }
        let (exists, exhausted, lacking) = {
            let catalog = self.engine.catalog();
            let route = catalog.route(&normal);
            let lacking = self.engine.guard().missing(request.principal, route.scopes());
            let lacking: Vec<String> = lacking.into_iter().map(str::to_owned).collect();
            let exists = matches!(route, Route::Resource(_) | Route::Template(..));
            (exists, matches!(route, Route::None { exhausted: true }), lacking)
        };
        if let Err(refused) = self.admit(request, Action::Subscribe, (&normal, lacking)) {
            return self.turn_away(request, refused, &uri, out);
        }
        if exhausted {
            return self.exhausted(request, &uri, out);
        }
        if !exists {
            return self.fail(request, &ReadError::NotFound, Some(&uri), out);
        }
        match self.engine.hub().subscribe(self.id, &normal, &uri) {
            Ok(first) => {
                self.wording(request).complete(out, |_| ());
                Outcome::answered().with(first.map(|uri| Event::Watched { uri }))
            }
            Err(limit) => self.refuse(request, (INTERNAL_ERROR, &limit.to_string()), out),
        }
    }

    pub(super) fn unsubscribe<'m>(&mut self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> Outcome<'m> {
        let Ok(Some(uri)) = request.optional_text("uri") else {
            return self.refuse(request, (INVALID_PARAMS, "Invalid params: uri must be a string"), out);
        };
        let Ok(normal) = uri::normalize(&uri, self.engine.limits().uri) else {
            return self.fail(request, &ReadError::InvalidUri, self.echo(&uri), out);
        };
        let last = self.engine.hub().unsubscribe(self.id, &normal);
        self.wording(request).complete(out, |_| ());
        Outcome::answered().with(last.map(|uri| Event::Unwatched { uri }))
    }
}
