//! Who may see what, and how much of it: the one place that is asked by lists, reads, completion, subscriptions and
//! every notification (R-075, S-12, S-19).
//!
//! Law: a [`Policy`] is plain data, a [`Guard`] is what is compiled from it: immutable, without a lock, and never
//! waiting. What needs a clock gets it as an argument. A hidden URI gets the same answer as an absent one.

mod amounts;
mod audit;
mod decide;
mod glob;
mod policy;
mod rate;
mod reach;
mod redact;
mod set;
mod subject;
#[cfg(test)]
mod tests;

pub use amounts::Amounts;
pub use audit::{AuditEntry, AuditRecord, Verdict};
pub(crate) use audit::{method as recorded_method, uri as recorded_uri};
pub use decide::{Decision, Guard, View};
pub use glob::{Glob, InvalidGlob};
pub use policy::{Globs, Policy, PolicyError, PrincipalPolicy, ScopeList};
pub use rate::{Limiter, Permit, Rate, RateClass, Rates};
pub(crate) use reach::Effort;
pub use redact::Redactor;

/// Whether a policy can allow the URI `normal` at all, however it is read: see S-11. For the providers, whose URIs are made so
/// that it is.
#[doc(hidden)]
pub fn is_harmless(normal: &str) -> bool {
    subject::subject(normal).is_some()
}
