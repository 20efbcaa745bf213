//! Access control: which principal may see which URIs, how fast, and how much. Lists, reads, completion, subscriptions
//! and every notification ask here.
//!
//! Law: a [`Policy`] is plain data. A [`Guard`] is its compiled form: immutable, without a lock, and never blocking.
//! Time is passed as an argument. A hidden URI gets the same answer as a missing one.

mod amounts;
mod audit;
mod decide;
mod glob;
mod names;
mod personal;
mod policy;
mod rate;
mod reach;
mod redact;
mod set;
mod shared_rate;
mod subject;
#[cfg(test)]
mod tests;

pub use amounts::Amounts;
pub use audit::{AuditRecord, RequestRecord, Verdict};
pub(crate) use audit::{method as recorded_method, uri as recorded_uri};
pub use decide::{Decision, Guard, PolicyView, granted_uris};
pub use glob::{Glob, InvalidGlob};
pub use policy::{Globs, NamePolicy, Policy, PolicyError, PrincipalPolicy, ScopeList};
pub use rate::{Limiter, Permit, Rate, RateClass, Rates};
pub(crate) use reach::Effort;
pub use redact::Redactor;
pub(crate) use shared_rate::SharedRates;
pub use shared_rate::{RateNames, RateSink, UsedRate};

/// Whether some policy can allow the URI `normal` at all, on every reading of it. For providers, which build
/// their URIs so that this holds.
#[doc(hidden)]
pub fn is_harmless(normal: &str) -> bool {
    subject::subject(normal).is_some()
}
