//! The limits of a policy: rates, sizes, and the redaction of contents.

use super::decide::parsed;
use super::policy::{Policy, PolicyError};
use super::rate::Limiter;
use super::redact::Redactor;
use super::set::GlobSet;
use super::shared_rate::SharedRates;
use super::subject::subjects;
use crate::suggest::unexpected;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The compiled limits of a [`Policy`]. Usable from any thread; unset limits cost nothing.
#[derive(Debug)]
pub struct Amounts {
    limiter: Limiter,
    redactor: Option<Redactor>,
    sizes: GlobSet,
    /// By glob.
    max: Box<[u64]>,
}

impl Amounts {
    /// Compiles the limits of a policy. Requests of up to `principals` principals are counted separately. If the policy has
    /// shared rates, what is accepted is counted in `shared` too.
    ///
    /// # Errors
    /// [`PolicyError`] naming the member with an invalid rate, glob or detector.
    pub(crate) fn new(
        policy: &Policy,
        principals: usize,
        shared: &Arc<SharedRates>,
    ) -> Result<Self, PolicyError> {
        let sizes = Self::checked(policy)?;
        let redactor = Redactor::new(&policy.redact.0).map_err(unknown_detector)?;
        let limiter = Limiter::new(&policy.rate, policy.concurrency, principals);
        Ok(Self {
            limiter: if policy.rate.shared { limiter.shared_by(shared.clone()) } else { limiter },
            redactor: Some(redactor).filter(|_| !policy.redact.0.is_empty()),
            sizes,
            max: policy.max_size.values().copied().collect(),
        })
    }

    /// Whether nothing is limited or redacted.
    pub fn is_empty(&self) -> bool {
        self.limiter.is_empty() && self.redactor.is_none() && self.max.is_empty()
    }

    /// Checks that the limits of a policy can be compiled.
    ///
    /// # Errors
    /// [`PolicyError`] for a rate or a concurrency of 0, an unknown detector, or a pattern that cannot be parsed.
    pub fn check(policy: &Policy) -> Result<(), PolicyError> {
        Self::checked(policy).map(drop)
    }

    fn checked(policy: &Policy) -> Result<GlobSet, PolicyError> {
        if let Some(field) = policy.rate.unsound() {
            return Err(PolicyError::new(field, "per_second must be more than 0, and burst not 0"));
        }
        if policy.concurrency == Some(0) {
            return Err(PolicyError::new("concurrency", "must not be 0"));
        }
        if let Some(name) = policy.redact.0.iter().find(|name| Redactor::names().all(|known| known != *name))
        {
            return Err(unknown_detector(name));
        }
        let glob = |text: &String| parsed(&format!("max_size.{text}"), text);
        policy.max_size.keys().map(glob).collect::<Result<_, _>>().map(GlobSet::narrowing)
    }

    /// The limiter of rates and concurrency.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// The redactor; `None` if the policy redacts nothing.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// Maximum size in bytes of a read of `normal`, a URI in normal form; `None` if no glob limits it. A URI that no
    /// glob may match gets the smallest limit of all.
    pub fn max_size(&self, normal: &str) -> Option<u64> {
        if self.sizes.is_empty() {
            return None;
        }
        let Some(subjects) = subjects(normal) else { return self.max.iter().copied().min() };
        let mut least = None;
        // Visits all matches, because the smallest limit applies.
        let _ = self.sizes.narrows(&subjects, &mut |at| {
            let own = self.max[at];
            least = Some(least.map_or(own, |least: u64| least.min(own)));
            ControlFlow::Continue(())
        });
        least
    }
}

fn unknown_detector(name: &str) -> PolicyError {
    let known: Vec<&str> = Redactor::names().collect();
    PolicyError::new("redact", unexpected("detector", name, &known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(policy: &str) -> (String, String) {
        let policy = Policy::from_json(policy).unwrap();
        let error = Amounts::new(&policy, 1, &Arc::default()).unwrap_err();
        (error.field, error.reason)
    }

    #[test]
    fn the_least_size_counts() {
        let policy = r#"{"max_size": {"a://**": 9, "a://b/*": 5, "c://*": 1}}"#;
        let amounts = Amounts::new(&Policy::from_json(policy).unwrap(), 1, &Arc::default()).unwrap();
        let sizes = ["a://b/c", "a://b", "c://d", "e://f"].map(|uri| amounts.max_size(uri));
        assert_eq!(sizes, [Some(5), Some(9), Some(1), None]);
        assert_eq!(amounts.max_size("a://b/%00"), Some(1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(refused(r#"{"rate": {"list": {"per_second": 0}}}"#).0, "rate.list");
        assert_eq!(refused(r#"{"concurrency": 0}"#).0, "concurrency");
        assert!(
            refused(r#"{"redact": ["jwt", "passport"]}"#)
                .1
                .contains("\"passport\"; expected one of private-key")
        );
        let (field, reason) = refused(r#"{"redact": "jtw"}"#);
        assert_eq!((&*field, &*reason), ("redact", r#"unexpected detector "jtw"; did you mean "jwt"?"#));
        assert_eq!(refused(r#"{"max_size": {"a://%": 1}}"#).0, "max_size.a://%");
        let unknown = Policy::from_json(r#"{"rate": {"reads": {"per_second": 1}}}"#).unwrap_err();
        assert_eq!(unknown.field, "rate.reads");
        assert!(unknown.reason.ends_with("`call`, `shared`"), "{unknown}");
    }
}
