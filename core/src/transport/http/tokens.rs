//! Answers of the verifier, kept by the digest of their token.
//!
//! Law: a token is kept nowhere. What is kept has a bound, and an end.

use super::options::{TokenCheck, Verified, Verifier};
use crate::http::Denied;
use crate::limits::Limits;
use crate::now::{Millis, Now};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Key = [u8; 32];

/// See the module.
pub(super) struct Tokens {
    verifier: Arc<dyn Verifier>,
    most: usize,
    longest: Millis,
    kept: Mutex<HashMap<Key, Kept>>,
}

struct Kept {
    verified: Verified,
    /// On the clock of [`Now::unix`].
    expires: Millis,
}

impl Tokens {
    pub(super) fn new(verifier: Arc<dyn Verifier>, limits: &Limits) -> Self {
        Self { verifier, most: limits.token_cache, longest: limits.token_ttl, kept: Mutex::default() }
    }

    /// Who the token stands for.
    pub(super) async fn verify(&self, token: &str, now: impl Fn() -> Now) -> Result<Verified, Denied> {
        let key: Key = Sha256::digest(token).into();
        if let Some(verified) = self.find(&key, now().unix) {
            return Ok(verified);
        }
        let TokenCheck { verified, expires } = self.verifier.verify(token).await?;
        if let Some(expires) = expires {
            self.keep(key, &verified, expires, now().unix)?;
        }
        Ok(verified)
    }

    fn find(&self, key: &Key, unix: Millis) -> Option<Verified> {
        self.lock().get(key).filter(|kept| kept.expires > unix).map(|kept| kept.verified.clone())
    }

    /// A token that has expired while it was verified is not good, whatever the verifier says.
    fn keep(&self, key: Key, verified: &Verified, expires: Millis, unix: Millis) -> Result<(), Denied> {
        if expires <= unix {
            return Err(Denied::Invalid);
        }
        let expires = expires.min(unix.saturating_add(self.longest));
        let mut kept = self.lock();
        if kept.len() >= self.most {
            kept.retain(|_, kept| kept.expires > unix);
        }
        if kept.len() >= self.most {
            kept.clear();
        }
        // One principal for all requests with the token.
        let principal = verified.principal.with_scopes(&verified.scopes);
        kept.insert(key, Kept { verified: Verified { principal, ..verified.clone() }, expires });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Verifying;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Waker};

    /// Every token is good until 10,000; counts how often it was asked.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Verifier for Counting {
        fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                match token {
                    "bad" => Err(Denied::Invalid),
                    "once" => Ok(TokenCheck { verified: Verified::anyone(), expires: None }),
                    _ => Ok(TokenCheck { verified: Verified::anyone(), expires: Some(10_000) }),
                }
            })
        }
    }

    fn ask(tokens: &Tokens, token: &str, unix: Millis) -> Result<Verified, Denied> {
        let asked = tokens.verify(token, || Now { tick: 0, unix });
        match std::pin::pin!(asked).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found,
            Poll::Pending => Err(Denied::Unavailable),
        }
    }

    fn tokens(most: usize) -> (Arc<Counting>, Tokens) {
        let mut limits = Limits::default();
        (limits.token_cache, limits.token_ttl) = (most, 1_000);
        let counting = Arc::new(Counting::default());
        (counting.clone(), Tokens::new(counting, &limits))
    }

    #[test]
    fn a_good_token_is_asked_for_once_until_it_is_too_old() {
        let (counting, tokens) = tokens(8);
        for (unix, asked) in [(0, 1), (999, 1), (1_000, 2), (1_999, 2), (9_999, 3)] {
            assert!(ask(&tokens, "good", unix).is_ok());
            assert_eq!(counting.0.load(Ordering::SeqCst), asked, "at {unix}");
        }
        assert_eq!(ask(&tokens, "good", 10_000).err(), Some(Denied::Invalid), "it has expired");
    }

    #[test]
    fn bad_tokens_and_those_without_an_end_are_not_kept() {
        let (counting, tokens) = tokens(8);
        for token in ["bad", "bad", "once", "once"] {
            assert_eq!(ask(&tokens, token, 0).is_ok(), token == "once");
        }
        assert_eq!(counting.0.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let (_, tokens) = tokens(8);
        for number in 0..100 {
            assert!(ask(&tokens, &format!("t{number}"), 0).is_ok());
            assert!(tokens.lock().len() <= 8);
        }
    }
}
