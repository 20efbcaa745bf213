//! What the guard's answer makes of a request: served, refused as if there were nothing, refused openly, or sent back
//! for a better token (DEC-20, DEC-27).

use super::answer::Completion;
use super::request::Request;
use super::{Connection, Outcome, Refusal};
use crate::engine::{Engine, Suggested};
use crate::error::ReadError;
use crate::guard::{Action, Decision, Effort, Verdict};
use crate::principal::Principal;
use std::sync::Arc;

/// Why a request is not served.
pub(super) enum Refused {
    /// The principal may not; told as this.
    No(ReadError),
    /// A token with these scopes too would do.
    Lacking(Vec<String>),
}

impl Connection {
    /// Asks the guard. `lacking` are the scopes that the registration asks for and the principal does not have.
    pub(super) fn admit(
        &self,
        request: &Request<'_, '_>,
        action: Action,
        (normal, lacking): (&str, Vec<String>),
    ) -> Result<(), Refused> {
        let guard = self.engine.guard();
        if guard.is_open() && lacking.is_empty() {
            return Ok(());
        }
        let mut missing = lacking;
        match guard.decide(request.principal, action, normal) {
            Decision::Allow => {}
            Decision::MissingScope { scopes } => missing.extend(scopes.into_iter().map(str::to_owned)),
            refusal => return Err(Refused::No(told(&refusal))),
        }
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        missing.dedup();
        Err(if request.challenges { Refused::Lacking(missing) } else { Refused::No(told(&guard.refusal())) })
    }

    /// Answers a request that is not served.
    pub(super) fn turn_away<'m>(
        &self,
        request: &Request<'_, '_>,
        refused: Refused,
        uri: &str,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        match refused {
            Refused::No(error) => {
                let verdict = if error == ReadError::NotFound { Verdict::Hidden } else { Verdict::Denied };
                Outcome { verdict, ..self.fail(request, &error, Some(uri), out) }
            }
            Refused::Lacking(scopes) => {
                let code = request.terms.revision.code(&ReadError::AccessDenied);
                self.wording(request).error(out, (code, "Insufficient scope"), |data| {
                    data.str("uri", uri);
                    data.str("kind", "access_denied");
                });
                Outcome { scopes, ..Outcome::refused(Refusal::Scope) }
            }
        }
    }

    /// Notes who sends messages now: a session goes on under another token, which may have fewer scopes.
    pub(super) fn know(&mut self, principal: &Arc<Principal>) {
        if self.engine.restricts() && self.principal.as_ref().is_none_or(|own| !Arc::ptr_eq(own, principal)) {
            self.principal = Some(principal.clone());
        }
    }
}

fn told(refusal: &Decision<'_>) -> ReadError {
    if *refusal == Decision::Denied { ReadError::AccessDenied } else { ReadError::NotFound }
}

/// Drops the values that lead to nothing that the principal may see, and every number that would count them.
pub(super) fn filter(completion: &mut Completion<'_>, suggested: &Suggested, engine: &Engine) {
    let guard = engine.guard();
    let view = guard.view(&suggested.principal);
    let mut effort = Effort::of_completion();
    completion.values.retain(|value| suggested.leads_on(guard, (&view, &mut effort), value));
    completion.total = None;
    completion.has_more = None;
}
