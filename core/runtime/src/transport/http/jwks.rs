//! The keys of an issuer (a JWKS, RFC 7517), fixed or fetched.
//!
//! Law: a request for the keys belongs to no client, and continues when the client that caused it disconnects. There is
//! at most one at a time, and their rate is limited, whatever tokens arrive. A token with a known key never waits for
//! one, unless no request was made in the last hour.

use super::jwt::JwksError;
use crate::sync::Mutex;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use mcp_resources_engine::http::DeniedToken;
use std::io;
use std::pin::pin;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Starts fetching the text of a JWKS and returns. The text is delivered later, from any thread.
pub(super) type Fetch = Box<dyn Fn(KeyDelivery) + Send + Sync>;

/// Returns the current time.
type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// The times between requests for keys.
#[derive(Clone, Copy)]
struct Pace {
    /// Keys are requested again after this time, while the known ones are still used.
    stale: Duration,
    /// If the last request is older than this, tokens wait for the answer, so that a withdrawn key is not used again.
    old: Duration,
    /// A token with an unknown key causes a request, but no more often than this.
    pause: Duration,
    /// Like `pause`, while there are no keys at all.
    retry: Duration,
    /// A request without an answer is given up after this time.
    patience: Duration,
}

const PACE: Pace = Pace {
    stale: Duration::from_secs(600),
    old: Duration::from_secs(3_600),
    pause: Duration::from_secs(30),
    retry: Duration::from_secs(2),
    patience: Duration::from_secs(30),
};

/// The algorithms that sign with a private key and verify with a public one.
pub(super) const PUBLIC: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The source of keys.
pub(super) enum KeySource {
    Fixed(Arc<Keys>),
    Fetched(Arc<FetchedKeys>),
}

/// Fetched keys.
pub(super) struct FetchedKeys {
    fetch: Fetch,
    pace: Pace,
    clock: Clock,
    cache: Mutex<KeyCache>,
    arrived: Notify,
}

#[derive(Default)]
struct KeyCache {
    keys: Option<Arc<Keys>>,
    /// The time at which they were fetched.
    fetched: Option<Instant>,
    /// The time of the last request, successful or not.
    requested: Option<Instant>,
    /// The time at which the last request ended, successfully or not.
    answered: Option<Instant>,
    /// Whether a request is in progress.
    is_asking: bool,
}

/// Takes the text of a JWKS, once. Dropping it without one fails the request.
pub(super) struct KeyDelivery {
    of: Arc<FetchedKeys>,
    keys: Option<Keys>,
}

/// The next step of a token.
struct Plan {
    starts: bool,
    /// The keys to use; `None` if it waits.
    found: Option<Result<Arc<Keys>, DeniedToken>>,
}

impl KeySource {
    pub(super) fn fetched(fetch: Fetch) -> Self {
        Self::paced(fetch, PACE, Box::new(Instant::now))
    }

    /// Fetches keys with `fetch`, on the caller's runtime.
    pub(super) fn from_future<F, Fut>(fetch: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<String>> + Send + 'static,
    {
        Self::fetched(on_runtime(fetch, PACE.patience))
    }

    fn paced(fetch: Fetch, pace: Pace, clock: Clock) -> Self {
        let cache = Default::default();
        let arrived = Default::default();
        Self::Fetched(Arc::new(FetchedKeys { fetch, pace, clock, cache, arrived }))
    }

    /// The keys, including the one named `kid` if the issuer has it.
    pub(super) async fn keys(&self, kid: Option<&str>) -> Result<Arc<Keys>, DeniedToken> {
        match self {
            Self::Fixed(keys) => Ok(keys.clone()),
            Self::Fetched(fetched) => fetched.keys(kid).await,
        }
    }
}

/// Runs the future of a fetch as a task of its own.
fn on_runtime<F, Fut>(fetch: F, patience: Duration) -> Fetch
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = io::Result<String>> + Send + 'static,
{
    Box::new(move |delivery| {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let text = fetch();
            runtime.spawn(async move {
                if let Ok(Ok(text)) = tokio::time::timeout(patience, text).await {
                    delivery.take(&text);
                }
            });
        }
    })
}

impl FetchedKeys {
    async fn keys(self: &Arc<Self>, kid: Option<&str>) -> Result<Arc<Keys>, DeniedToken> {
        // Created before the plan, so that an answer in between is not missed.
        let mut arrived = pin!(self.arrived.notified());
        arrived.as_mut().enable();
        let plan = self.cache().plan(kid, self.pace, (self.clock)());
        if plan.starts {
            (self.fetch)(KeyDelivery { of: self.clone(), keys: None });
        }
        if let Some(found) = plan.found {
            return found;
        }
        arrived.await;
        // While the issuer is unavailable, outdated keys are better than none.
        self.cache().keys.clone().ok_or(DeniedToken::Unavailable)
    }

    fn cache(&self) -> MutexGuard<'_, KeyCache> {
        self.cache.lock()
    }
}

impl KeyDelivery {
    pub(super) fn take(mut self, text: &str) {
        self.keys = Keys::parse(text).ok();
    }
}

impl Drop for KeyDelivery {
    fn drop(&mut self) {
        let mut cache = self.of.cache();
        let now = (self.of.clock)();
        cache.is_asking = false;
        cache.answered = Some(now);
        if let Some(keys) = self.keys.take() {
            cache.keys = Some(Arc::new(keys));
            cache.fetched = Some(now);
        }
        drop(cache);
        self.of.arrived.notify_waiters();
    }
}

impl KeyCache {
    fn plan(&mut self, kid: Option<&str>, pace: Pace, now: Instant) -> Plan {
        let within = |at: Option<Instant>, span| at.is_some_and(|at| now.duration_since(at) < span);
        let known = self.keys.clone().filter(|keys| kid.is_none_or(|kid| keys.has(kid)));
        let is_asking = self.is_asking && within(self.requested, pace.patience);
        let is_due = match (&self.keys, &known) {
            (None, _) => !within(self.requested, pace.retry),
            (Some(_), Some(_)) => !within(self.fetched, pace.stale) && !within(self.requested, pace.pause),
            (Some(_), None) => !within(self.requested, pace.pause),
        };
        let starts = is_due && !is_asking;
        if starts {
            self.is_asking = true;
            self.requested = Some(now);
        }
        let found = match known {
            Some(keys) if within(self.answered, pace.old) => Some(Ok(keys)),
            _ if is_asking || starts => None,
            _ => Some(self.keys.clone().ok_or(DeniedToken::Unavailable)),
        };
        Plan { starts, found }
    }
}

/// The signature keys of an issuer.
pub(super) struct Keys(Vec<SigningKey>);

pub(super) struct SigningKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

impl Keys {
    pub(super) fn parse(jwks: &str) -> Result<Self, JwksError> {
        let set: JwkSet = serde_json::from_str(jwks).map_err(|error| JwksError(error.into()))?;
        let keys: Vec<SigningKey> = set.keys.iter().filter_map(SigningKey::new).collect();
        if keys.is_empty() { Err(JwksError("there is none for signatures".into())) } else { Ok(Self(keys)) }
    }

    fn has(&self, kid: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(kid))
    }

    /// The keys that may have signed a token with this header.
    pub(super) fn find<'k>(
        &'k self,
        kid: Option<&'k str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'k SigningKey> {
        self.0.iter().filter(move |key| {
            key.algorithms.contains(&algorithm) && kid.is_none_or(|kid| key.id.as_deref() == Some(kid))
        })
    }
}

impl SigningKey {
    /// `None` if it is not for signatures, or is a shared secret.
    fn new(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        let named = common.key_algorithm.map(|algorithm| algorithm.to_string());
        let fits = |algorithm: &Algorithm| {
            algorithm.family() == key.family()
                && named.as_ref().is_none_or(|named| *named == format!("{algorithm:?}"))
        };
        let algorithms: Vec<_> = PUBLIC.into_iter().filter(fits).collect();
        (!algorithms.is_empty()).then(|| Self { id: common.key_id.clone(), algorithms, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Waker};

    /// An issuer whose keys can be changed; `None` is unavailable. Counts requests, and answers when the test says so.
    #[derive(Clone, Default)]
    struct Issuer {
        kids: Arc<Mutex<Option<Vec<&'static str>>>>,
        requested: Arc<AtomicUsize>,
        open: Arc<Mutex<Vec<KeyDelivery>>>,
        /// The simulated time.
        passed: Arc<Mutex<Duration>>,
    }

    impl Issuer {
        fn with(kids: &[&'static str]) -> Self {
            let issuer = Self::default();
            issuer.has(Some(kids));
            issuer
        }

        fn has(&self, kids: Option<&[&'static str]>) {
            *self.kids.lock() = kids.map(<[_]>::to_vec);
        }

        fn source(&self) -> KeySource {
            let issuer = self.clone();
            let passed = self.passed.clone();
            let began = Instant::now();
            let fetch = move |delivery| {
                issuer.requested.fetch_add(1, Ordering::SeqCst);
                issuer.open.lock().push(delivery);
            };
            KeySource::paced(Box::new(fetch), PACE, Box::new(move || began + *passed.lock()))
        }

        fn pass(&self, time: Duration) {
            *self.passed.lock() += time;
        }

        /// Answers the open requests.
        fn answer(&self) {
            let open = std::mem::take(&mut *self.open.lock());
            let text = self.kids.lock().as_ref().map(|kids| jwks(kids));
            for delivery in open {
                if let Some(text) = &text {
                    delivery.take(text);
                }
            }
        }

        fn count(&self) -> usize {
            self.requested.load(Ordering::SeqCst)
        }

        /// Whether the source has the key after the issuer has answered.
        fn knows(&self, source: &KeySource, kid: &str) -> Result<bool, DeniedToken> {
            let mut requested = pin!(source.keys(Some(kid)));
            let mut poll = || requested.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let found = match poll() {
                Poll::Ready(found) => found,
                Poll::Pending => {
                    self.answer();
                    let Poll::Ready(found) = poll() else { panic!("it waits for nothing") };
                    found
                }
            };
            found.map(|keys| keys.has(kid))
        }
    }

    /// The result that is available without waiting.
    fn at_once(source: &KeySource, kid: &str) -> Option<Result<bool, DeniedToken>> {
        match pin!(source.keys(Some(kid))).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => Some(found.map(|keys| keys.has(kid))),
            Poll::Pending => None,
        }
    }

    fn jwks(kids: &[&str]) -> String {
        let key = |kid| {
            format!(
                r#"{{"kty":"EC","crv":"P-256","kid":"{kid}","alg":"ES256","use":"sig",
                "x":"LImKumNM9lKLS2l2z3DM_M4dlTkgGsesOa3lHuk9pfo","y":"aHVYN27HlGn_Ji83OI6EuoKTvHyE19GYS06LmkC0EM4"}}"#
            )
        };
        format!(r#"{{"keys":[{}]}}"#, kids.iter().map(key).collect::<Vec<_>>().join(","))
    }

    // R-202: the first token with a new key causes a request to the issuer.
    #[test]
    fn keys_are_rotated() {
        let issuer = Issuer::with(&["old"]);
        let source = issuer.source();
        assert_eq!(issuer.knows(&source, "old"), Ok(true));
        issuer.has(Some(&["new"]));
        assert_eq!(issuer.knows(&source, "new"), Ok(false), "the issuer is not asked for every token");
        issuer.pass(PACE.pause);
        assert_eq!(issuer.knows(&source, "new"), Ok(true));
        assert_eq!(issuer.knows(&source, "old"), Ok(false), "the issuer has withdrawn it");
        assert_eq!(issuer.count(), 2);
    }

    #[test]
    fn unknown_keys_do_not_flood_the_issuer() {
        let issuer = Issuer::with(&["one"]);
        let source = issuer.source();
        for number in 0..1_000 {
            assert_eq!(issuer.knows(&source, &format!("{number}")), Ok(false));
        }
        assert_eq!(issuer.count(), 1);
    }

    #[test]
    fn an_issuer_that_is_away_is_asked_now_and_then() {
        let issuer = Issuer::default();
        let source = issuer.source();
        for _ in 0..100 {
            assert_eq!(issuer.knows(&source, "one"), Err(DeniedToken::Unavailable));
        }
        assert_eq!(issuer.count(), 1);
        issuer.has(Some(&["one"]));
        issuer.pass(PACE.retry);
        assert_eq!(issuer.knows(&source, "one"), Ok(true));
        // Unavailable again: the known keys are still used.
        issuer.has(None);
        issuer.pass(PACE.pause);
        assert_eq!(issuer.knows(&source, "two"), Ok(false));
        assert_eq!(at_once(&source, "one"), Some(Ok(true)));
    }

    #[test]
    fn one_request_serves_all_that_wait() {
        let issuer = Issuer::with(&["one"]);
        let source = issuer.source();
        let mut waiting: Vec<_> = (0..50).map(|_| Box::pin(source.keys(Some("one")))).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.iter_mut().all(|one| one.as_mut().poll(&mut context).is_pending()));
        issuer.answer();
        assert!(waiting.iter_mut().all(|one| matches!(one.as_mut().poll(&mut context), Poll::Ready(Ok(_)))));
        assert_eq!(issuer.count(), 1);
    }

    /// Clients that come and go neither repeat nor abort the request to the issuer.
    #[test]
    fn a_client_that_leaves_takes_nothing_along() {
        let issuer = Issuer::with(&["one"]);
        let source = issuer.source();
        for number in 0..20 {
            assert_eq!(at_once(&source, &format!("{number}")), None, "it waits, and leaves");
        }
        assert_eq!(issuer.count(), 1);
        issuer.answer();
        assert_eq!(at_once(&source, "one"), Some(Ok(true)));
        // With known keys too: an invented key makes no other token wait.
        issuer.pass(PACE.pause);
        assert_eq!(at_once(&source, "invented"), None);
        assert_eq!(at_once(&source, "one"), Some(Ok(true)));
        issuer.has(Some(&["one", "new"]));
        issuer.answer();
        assert_eq!(at_once(&source, "new"), Some(Ok(true)));
    }

    #[test]
    fn known_keys_are_renewed_in_the_background_until_they_are_old() {
        let issuer = Issuer::with(&["one"]);
        let source = issuer.source();
        assert_eq!(issuer.knows(&source, "one"), Ok(true));
        issuer.has(Some(&["two"]));
        issuer.pass(PACE.stale);
        assert_eq!(at_once(&source, "one"), Some(Ok(true)), "it does not wait");
        issuer.answer();
        assert_eq!((at_once(&source, "one"), issuer.count()), (Some(Ok(false)), 2));
        issuer.has(Some(&["three"]));
        issuer.pass(PACE.old);
        assert_eq!(issuer.knows(&source, "two"), Ok(false), "after an hour without a request it waits");
    }

    #[test]
    fn a_request_that_is_never_answered_is_given_up() {
        let issuer = Issuer::with(&["one"]);
        let source = issuer.source();
        assert_eq!(at_once(&source, "one"), None);
        issuer.pass(PACE.patience);
        assert_eq!(issuer.knows(&source, "one"), Ok(true));
        assert_eq!(issuer.count(), 2);
    }

    #[tokio::test]
    async fn a_future_that_never_ends_is_given_up() {
        let fetch = on_runtime(std::future::pending, Duration::from_millis(1));
        let source = KeySource::fetched(fetch);
        assert!(matches!(source.keys(None).await, Err(DeniedToken::Unavailable)));
        let source = KeySource::from_future(|| async { Ok(jwks(&["one"])) });
        assert!(source.keys(Some("one")).await.is_ok_and(|keys| keys.has("one")));
    }
}
