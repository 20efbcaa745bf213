//! The keys of an issuer (a JWKS, RFC 7517), fixed or fetched.
//!
//! Law: an issuer is asked at a bounded rate whatever tokens come, by one request at a time, and nobody waits for it
//! whose key is known.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a host module: keys grow old")]

use super::jwt::JwksError;
use crate::http::Denied;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Gets the text of a JWKS.
pub(super) type Fetch =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<String>> + Send>> + Send + Sync>;

/// How often keys are asked for.
#[derive(Clone, Copy)]
struct Pace {
    /// Keys are asked for again after so long.
    stale: Duration,
    /// A token with an unknown key makes them be asked for again, but not more often than this.
    pause: Duration,
    /// The same while there are no keys at all.
    retry: Duration,
}

const PACE: Pace =
    Pace { stale: Duration::from_secs(600), pause: Duration::from_secs(30), retry: Duration::from_secs(2) };

/// Where keys come from.
pub(super) enum Source {
    Fixed(Arc<Keys>),
    Fetched(Box<Fetched>),
}

/// Keys that are asked for.
pub(super) struct Fetched {
    fetch: Fetch,
    pace: Pace,
    kept: Mutex<Kept>,
    /// Held by whoever asks.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Kept {
    keys: Option<Arc<Keys>>,
    /// When they were fetched.
    fetched: Option<Instant>,
    /// When they were last asked for, with success or without.
    asked: Option<Instant>,
}

impl Source {
    pub(super) fn fetched(fetch: Fetch) -> Self {
        Self::paced(fetch, PACE)
    }

    fn paced(fetch: Fetch, pace: Pace) -> Self {
        Self::Fetched(Box::new(Fetched {
            fetch,
            pace,
            kept: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    /// The keys, among them the one that is named, if it can be had.
    pub(super) async fn keys(&self, kid: Option<&str>) -> Result<Arc<Keys>, Denied> {
        match self {
            Self::Fixed(keys) => Ok(keys.clone()),
            Self::Fetched(fetched) => fetched.keys(kid).await,
        }
    }
}

impl Fetched {
    async fn keys(&self, kid: Option<&str>) -> Result<Arc<Keys>, Denied> {
        if let Some(keys) = self.kept().good(kid, self.pace) {
            return Ok(keys);
        }
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => {
                if let Some(keys) = self.kept().known(kid) {
                    return Ok(keys);
                }
                self.turn.lock().await
            }
        };
        // Another may have asked meanwhile.
        if let Some(settled) = self.kept().settled(kid, self.pace) {
            return settled;
        }
        self.kept().asked = Some(Instant::now());
        let keys = (self.fetch)().await.ok().and_then(|text| Keys::parse(&text).ok());
        let mut kept = self.kept();
        if let Some(keys) = keys {
            kept.keys = Some(Arc::new(keys));
            kept.fetched = Some(Instant::now());
        }
        // Old keys are better than none while the issuer is away.
        kept.keys.clone().ok_or(Denied::Unavailable)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// What is to be used without asking, while nobody asks; `None` if it is time to ask.
    fn settled(&self, kid: Option<&str>, pace: Pace) -> Option<Result<Arc<Keys>, Denied>> {
        match &self.keys {
            None => is_within(self.asked, pace.retry).then_some(Err(Denied::Unavailable)),
            Some(keys) if is_within(self.asked, pace.pause) => Some(Ok(keys.clone())),
            Some(_) => self.good(kid, pace).map(Ok),
        }
    }

    /// The keys, if they are fresh and the one that is named is among them.
    fn good(&self, kid: Option<&str>, pace: Pace) -> Option<Arc<Keys>> {
        self.known(kid).filter(|_| is_within(self.fetched, pace.stale))
    }

    /// The keys, if the one that is named is among them.
    fn known(&self, kid: Option<&str>) -> Option<Arc<Keys>> {
        self.keys.clone().filter(|keys| kid.is_none_or(|kid| keys.has(kid)))
    }
}

fn is_within(at: Option<Instant>, span: Duration) -> bool {
    at.is_some_and(|at| at.elapsed() < span)
}

/// The keys of an issuer that are for signatures.
pub(super) struct Keys(Vec<Key>);

pub(super) struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

impl Keys {
    pub(super) fn parse(jwks: &str) -> Result<Self, JwksError> {
        let set: JwkSet = serde_json::from_str(jwks).map_err(|error| JwksError(error.into()))?;
        let keys: Vec<Key> = set.keys.iter().filter_map(Key::new).collect();
        if keys.is_empty() { Err(JwksError("there is none for signatures".into())) } else { Ok(Self(keys)) }
    }

    fn has(&self, kid: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(kid))
    }

    /// The keys that a token with this header may be signed by.
    pub(super) fn find<'k>(
        &'k self,
        kid: Option<&'k str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'k Key> {
        self.0.iter().filter(move |key| {
            key.algorithms.contains(&algorithm) && kid.is_none_or(|kid| key.id.as_deref() == Some(kid))
        })
    }
}

impl Key {
    /// `None` if it is not for signatures, or is a shared secret.
    fn new(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        let public = [
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
        let named = common.key_algorithm.map(|algorithm| algorithm.to_string());
        let fits = |algorithm: &Algorithm| {
            algorithm.family() == key.family()
                && named.as_ref().is_none_or(|named| *named == format!("{algorithm:?}"))
        };
        let algorithms: Vec<_> = public.into_iter().filter(fits).collect();
        (!algorithms.is_empty()).then(|| Self { id: common.key_id.clone(), algorithms, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Lets so much time pass for a source: what it noted was that much longer ago.
    fn pass(source: &Source, span: Duration) {
        let Source::Fetched(fetched) = source else { return };
        let mut kept = fetched.kept();
        kept.asked = kept.asked.and_then(|at| at.checked_sub(span));
        kept.fetched = kept.fetched.and_then(|at| at.checked_sub(span));
    }

    /// An issuer whose keys can be changed; `None` is away. Counts how often it was asked.
    #[derive(Clone, Default)]
    struct Issuer {
        kids: Arc<Mutex<Option<Vec<&'static str>>>>,
        asked: Arc<AtomicUsize>,
    }

    impl Issuer {
        fn has(&self, kids: Option<&[&'static str]>) {
            *self.kids.lock().unwrap() = kids.map(<[_]>::to_vec);
        }

        fn source(&self, pace: Pace) -> Source {
            let issuer = self.clone();
            let fetch = move || {
                issuer.asked.fetch_add(1, Ordering::SeqCst);
                let text = issuer.kids.lock().unwrap().as_ref().map(|kids| jwks(kids));
                async move {
                    tokio::task::yield_now().await;
                    text.ok_or_else(|| io::Error::other("away"))
                }
            };
            Source::paced(Box::new(move || Box::pin(fetch())), pace)
        }

        fn count(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
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

    async fn has(source: &Source, kid: &str) -> Result<bool, Denied> {
        source.keys(Some(kid)).await.map(|keys| keys.has(kid))
    }

    /// R-202: keys that the issuer has changed are found out by the first token that names one.
    #[tokio::test]
    async fn keys_are_rotated() {
        let issuer = Issuer::default();
        issuer.has(Some(&["old"]));
        let source = issuer.source(PACE);
        assert_eq!(has(&source, "old").await, Ok(true));
        issuer.has(Some(&["new"]));
        assert_eq!(
            has(&source, "new").await,
            Ok(false),
            "not at once: an issuer is not asked for every token"
        );
        pass(&source, PACE.pause);
        assert_eq!(has(&source, "new").await, Ok(true));
        assert_eq!(has(&source, "old").await, Ok(false), "what the issuer has withdrawn is no longer good");
        assert_eq!(issuer.count(), 2);
    }

    #[tokio::test]
    async fn unknown_keys_do_not_flood_the_issuer() {
        let issuer = Issuer::default();
        issuer.has(Some(&["one"]));
        let source = issuer.source(PACE);
        for number in 0..1_000 {
            assert_eq!(has(&source, &format!("{number}")).await, Ok(false));
        }
        assert_eq!(issuer.count(), 1);
    }

    #[tokio::test]
    async fn an_issuer_that_is_away_is_asked_now_and_then() {
        let issuer = Issuer::default();
        let source = issuer.source(PACE);
        for _ in 0..100 {
            assert_eq!(has(&source, "one").await, Err(Denied::Unavailable));
        }
        assert_eq!(issuer.count(), 1);
        issuer.has(Some(&["one"]));
        pass(&source, PACE.retry);
        assert_eq!(has(&source, "one").await, Ok(true));
        // Away again: what is known goes on being used.
        issuer.has(None);
        pass(&source, PACE.pause);
        assert_eq!(has(&source, "two").await, Ok(false));
        assert_eq!(has(&source, "one").await, Ok(true));
    }

    #[tokio::test]
    async fn one_asks_and_the_others_wait_or_go_on() {
        let issuer = Issuer::default();
        issuer.has(Some(&["one"]));
        let source = Arc::new(issuer.source(PACE));
        let many: Vec<_> = (0..50)
            .map(|_| {
                let source = source.clone();
                tokio::spawn(async move { has(&source, "one").await })
            })
            .collect();
        for one in many {
            assert_eq!(one.await.unwrap(), Ok(true));
        }
        assert_eq!(issuer.count(), 1);
    }

    /// Clients that come and go do not start a request to the issuer each.
    #[tokio::test]
    async fn whoever_leaves_while_the_issuer_is_asked_does_not_make_it_be_asked_again() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let fetch = move || {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<io::Result<String>>()
        };
        let source = Source::paced(Box::new(move || Box::pin(fetch())), PACE);
        for _ in 0..20 {
            let _ = tokio::time::timeout(Duration::from_millis(1), source.keys(None)).await;
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
