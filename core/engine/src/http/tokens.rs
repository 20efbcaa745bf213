//! A cache of verified tokens, by their digests.
//!
//! Law: only the digest of a token is stored. The table is limited in size, and each entry expires. A stream
//! ends when the token that opened it is revoked.

use super::auth::Judged;
use crate::limits::Limits;
use crate::now::Millis;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The digest of a token.
pub(super) type Digest = [u8; 32];

/// Maximum number of revoked identities remembered for requests that began earlier. If more are revoked during one
/// request, that request counts as revoked too.
const REMEMBERED: usize = 256;

/// The cache of verified tokens, and the latest revocations.
pub(super) struct TokenCache {
    max: usize,
    /// Maximum time to cache a token.
    ttl: Millis,
    /// The number of revocations. Changed only while the table is locked.
    revocations: AtomicU64,
    table: Mutex<TokenTable>,
}

#[derive(Default)]
struct TokenTable {
    entries: HashMap<Digest, CachedToken>,
    /// The identities revoked last, newest at the end.
    revoked: VecDeque<Box<str>>,
}

struct CachedToken {
    judged: Judged,
    /// In milliseconds since 1970.
    expires: Millis,
}

pub(super) fn digest(token: &str) -> Digest {
    Sha256::digest(token).into()
}

impl TokenCache {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            max: limits.token_cache,
            ttl: limits.token_ttl,
            revocations: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }

    /// The cached result for a token; `None` if it must be verified.
    pub(super) fn find(&self, token: &Digest, unix: Millis) -> Option<Judged> {
        let table = self.lock();
        let entry = table.entries.get(token).filter(|entry| entry.expires > unix);
        entry.map(|entry| entry.judged.clone())
    }

    /// Caches a verified token, unless any principal was revoked after [`TokenCache::revocations`] returned `since`: the
    /// token may have been verified before that.
    pub(super) fn keep(&self, token: Digest, since: u64, judged: &Judged, expires: Millis, unix: Millis) {
        let expires = expires.min(unix.saturating_add(self.ttl));
        let mut table = self.lock();
        if self.revocations() != since {
            return;
        }
        let entries = &mut table.entries;
        if entries.len() >= self.max {
            entries.retain(|_, entry| entry.expires > unix);
        }
        if entries.len() >= self.max {
            entries.clear();
        }
        if self.max > 0 {
            entries.insert(token, CachedToken { judged: judged.clone(), expires });
        }
    }

    /// Removes the tokens of this identity, so that they are verified again. [`TokenCache::was_revoked`] reports it to
    /// requests that began earlier.
    pub(super) fn revoke(&self, principal: &str) {
        let mut table = self.lock();
        table.entries.retain(|_, entry| entry.judged.principal().id() != principal);
        if table.revoked.len() >= REMEMBERED {
            table.revoked.pop_front();
        }
        table.revoked.push_back(principal.into());
        self.revocations.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes all tokens, so that they are verified again, and requests that began earlier do not keep theirs: a
    /// revocation may have been missed.
    pub(super) fn clear(&self) {
        let mut table = self.lock();
        table.entries.clear();
        // A name that no principal has.
        if table.revoked.len() >= REMEMBERED {
            table.revoked.pop_front();
        }
        table.revoked.push_back("".into());
        self.revocations.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of revocations so far. A request reads it before its token is checked.
    pub(super) fn revocations(&self) -> u64 {
        self.revocations.load(Ordering::SeqCst)
    }

    /// Whether this identity was revoked after [`TokenCache::revocations`] returned `since`. Call it after the hub knows
    /// the request's watches, so that a later revocation finds them there.
    pub(super) fn was_revoked(&self, principal: &str, since: u64) -> bool {
        if self.revocations() == since {
            return false;
        }
        let table = self.lock();
        let later = usize::try_from(self.revocations().saturating_sub(since)).unwrap_or(usize::MAX);
        later > table.revoked.len() || table.revoked.iter().rev().take(later).any(|id| **id == *principal)
    }

    fn lock(&self) -> MutexGuard<'_, TokenTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("kept", &self.lock().entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Admitted, Auth, Endpoint, RequestHead, Rules, Verified};
    use super::*;
    use crate::engine::{Engine, EngineOptions, ServerInfo};
    use crate::http::DeniedToken;
    use crate::now::Now;
    use std::sync::Arc;

    /// An endpoint that caches tokens for one second, and counts how often its runtime had to verify.
    struct TestEndpoint {
        endpoint: Arc<Endpoint>,
        asked: usize,
    }

    impl TestEndpoint {
        fn new(max: usize) -> Self {
            let mut options = EngineOptions::default();
            options.limits.token_cache = max;
            options.limits.token_ttl = 1_000;
            let engine = Engine::new(
                ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() },
                options,
            )
            .unwrap();
            let auth = Auth::new("http://localhost/mcp", ["https://id.example.com".to_owned()]);
            let rules = Rules { auth: Some(auth), ..Rules::default() };
            Self { endpoint: Endpoint::new(engine, rules, Box::new(|| None)).unwrap(), asked: 0 }
        }

        /// Returns the identity, or the status of a refusal. All tokens except `bad` are valid; `once` has no expiry.
        fn ask(&mut self, token: &str, unix: Millis) -> Result<String, u16> {
            let now = Now { tick: 0, unix };
            let admitted = self.admit(token, unix)?;
            let who = match admitted.token() {
                None => Ok(Verified::anyone()),
                Some("bad") => Err(DeniedToken::Invalid),
                Some("once") => Ok(Verified::new("once")),
                Some(token) => Ok(Verified::new(token).expires(10_000)),
            };
            self.asked += usize::from(admitted.token().is_some());
            let identified = admitted.identify(who, now).map_err(|response| response.head.status)?;
            Ok(identified.principal().id().to_owned())
        }

        fn admit(&self, token: &str, unix: Millis) -> Result<Admitted, u16> {
            let bearer = format!("Bearer {token}");
            let headers: [(&str, &[u8]); 4] = [
                ("host", b"localhost"),
                ("content-type", b"application/json"),
                ("accept", b"application/json, text/event-stream"),
                ("authorization", bearer.as_bytes()),
            ];
            let head =
                RequestHead { verb: "POST", target: "/mcp", headers: &headers, ..RequestHead::default() };
            self.endpoint.admit(&head, Now { tick: 0, unix }).map_err(|response| response.head.status)
        }

        fn cached(&self) -> usize {
            self.endpoint.tokens().lock().entries.len()
        }
    }

    //
    #[test]
    fn a_good_token_is_verified_once_until_it_is_too_old() {
        let mut served = TestEndpoint::new(8);
        for (unix, asked) in [(0, 1), (999, 1), (1_000, 2), (1_999, 2), (9_999, 3)] {
            assert_eq!(served.ask("good", unix).as_deref(), Ok("good"));
            assert_eq!(served.asked, asked, "at {unix}");
        }
        assert_eq!(served.ask("good", 10_000), Err(401), "it has expired");
        assert_eq!(served.ask("never-seen", 10_000), Err(401), "it expired while it was verified");
    }

    #[test]
    fn bad_tokens_and_those_without_an_end_are_not_kept() {
        let mut served = TestEndpoint::new(8);
        for token in ["bad", "bad", "once", "once"] {
            assert_eq!(served.ask(token, 0).is_ok(), token == "once");
        }
        assert_eq!((served.asked, served.cached()), (4, 0));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut served = TestEndpoint::new(8);
        for number in 0..100 {
            assert!(served.ask(&format!("t{number}"), 0).is_ok());
            assert!(served.cached() <= 8);
        }
        let mut none = TestEndpoint::new(0);
        assert!(none.ask("t", 0).is_ok() && none.cached() == 0);
    }

    // at every endpoint that cached the token, and however often it was used.
    #[test]
    fn a_revoked_subject_is_verified_again_at_every_endpoint() {
        let mut served = TestEndpoint::new(8);
        let engine = Arc::clone(served.endpoint.engine());
        let rules = served.endpoint.rules().clone();
        let mut other = TestEndpoint {
            endpoint: Endpoint::new(Arc::clone(&engine), rules, Box::new(|| None)).unwrap(),
            asked: 0,
        };
        for _ in 0..2 {
            for name in ["ada", "bob"] {
                assert!(served.ask(name, 0).is_ok() && other.ask(name, 0).is_ok());
            }
        }
        assert_eq!((served.asked, other.asked), (2, 2));
        engine.revoke("ada");
        for _ in 0..2 {
            for name in ["ada", "bob"] {
                assert!(served.ask(name, 0).is_ok() && other.ask(name, 0).is_ok());
            }
        }
        assert_eq!((served.asked, other.asked), (3, 3));
    }

    // the token may have been verified before it was revoked.
    #[test]
    fn a_token_that_is_revoked_while_it_is_verified_is_not_kept() {
        let mut served = TestEndpoint::new(8);
        let admitted = served.admit("ada", 0).unwrap();
        served.endpoint.engine().revoke("ada");
        let verified = Verified::new("ada").expires(10_000);
        assert!(admitted.identify(Ok(verified), Now::default()).is_ok());
        assert_eq!(served.cached(), 0);
        assert!(served.ask("ada", 0).is_ok());
        assert_eq!((served.asked, served.cached()), (1, 1));
    }
}
