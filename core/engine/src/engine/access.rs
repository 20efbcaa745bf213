//! Access to a resource whose handler decides about it: the answers that are known, and the questions without an answer.
//!
//! ```text
//!   AccessView::sees ──known──▶ yes or no
//!        └──unknown──▶ AccessRound: Event::Access, one handler at a time ──▶ kept, and used by the request itself
//! ```
//!
//! Law: the guard is asked first, so a handler is never asked about what the guard hides. An answer is valid for one
//! principal with the same rights and one canonical URI, until it is [`Limits::access_ttl`] old or the principal is
//! regranted. A request uses the answers that it got itself, whatever their age, so it asks each question once.

use super::Engine;
use crate::catalog::{Catalog, CatalogRoute, HandlerId};
use crate::connection::Answer;
use crate::guard::Decision;
use crate::limits::Limits;
use crate::now::{Millis, Now};
use crate::principal::Principal;
use mcp_resources_template::{MatchedParams, Value, uri};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The principals of one identity, with different scopes or claims, whose answers are kept. The oldest goes first.
const MOST_GRANTS: usize = 16;

/// One question: may the principal use this URI?
#[derive(Clone, Debug)]
pub struct AccessQuestion {
    /// The canonical URI.
    pub uri: Arc<str>,
    /// The values of the template's variables; `None` for a resource.
    pub params: Option<MatchedParams<'static>>,
    pub(super) handler: HandlerId,
}

impl AccessQuestion {
    /// The text of one variable; `None` if the URI leaves it undefined, or it is a list or a map.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.as_ref()?.get(name).and_then(Value::as_str)
    }
}

/// Questions for one handler.
#[derive(Clone, Debug)]
pub struct AccessBatch {
    /// The handler to ask.
    pub handler: HandlerId,
    /// The questions; the answer has one `bool` for each, in their order.
    pub questions: Arc<[AccessQuestion]>,
    /// The number of regrants before the questions: later ones make the answers obsolete.
    regrants: u64,
}

/// The answers that one request has got.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessAnswers(HashMap<Arc<str>, bool>);

/// A look at what one principal may use. Collects the questions without an answer.
#[derive(Debug)]
pub(crate) struct AccessView<'a> {
    engine: &'a Engine,
    principal: &'a Principal,
    own: Option<&'a AccessAnswers>,
    now: Now,
    unknown: Vec<AccessQuestion>,
}

/// Questions that are put to their handlers, one handler at a time.
#[derive(Debug, Default)]
pub(crate) struct AccessRound {
    waiting: VecDeque<AccessBatch>,
    answers: AccessAnswers,
}

/// The known answers of all principals. Limited by [`Limits::access_answers`].
pub(super) struct AccessTable {
    most: usize,
    ttl: Millis,
    /// Whether a handler has ever decided who may use a resource.
    is_used: AtomicBool,
    has_grants: AtomicBool,
    has_advised: AtomicBool,
    /// The latest time that is known, for deliveries.
    latest: AtomicU64,
    /// Changed with the table's lock held.
    regrants: AtomicU64,
    known: Mutex<KnownAnswers>,
}

#[derive(Default)]
struct KnownAnswers {
    by_id: HashMap<Arc<str>, VecDeque<GrantAnswers>>,
    count: usize,
}

/// The answers for principals of one identity and with the same rights.
struct GrantAnswers {
    principal: Arc<Principal>,
    answers: HashMap<Arc<str>, KnownAnswer>,
}

#[derive(Clone, Copy)]
struct KnownAnswer {
    is_allowed: bool,
    /// On the clock of [`Now::tick`].
    at: Millis,
}

impl AccessView<'_> {
    /// Whether the principal may use the URI `normal`, which is in normal form. Without an answer the result is `true`,
    /// and the view has a question.
    pub(crate) fn sees(&mut self, normal: &str) -> bool {
        if !self.engine.sees(self.principal, normal) {
            return false;
        }
        let catalog = self.engine.catalog();
        !self.engine.has_access() || self.allows(&catalog.route(normal), normal)
    }

    /// Like [`AccessView::sees`] for a URI in any spelling that the guard permits.
    pub(super) fn knows(&mut self, uri: &str) -> bool {
        let engine = self.engine;
        !engine.has_access()
            || uri::normalize(uri, engine.limits().uri)
                .is_ok_and(|normal| self.allows(&engine.catalog().route(&normal), &normal))
    }

    /// Like [`AccessView::sees`] for a URI that the guard permits, with its route.
    pub(crate) fn allows(&mut self, route: &CatalogRoute<'_, '_>, normal: &str) -> bool {
        self.decide(route.access(), normal, || match route {
            CatalogRoute::Template(_, params) => Some(params.clone().into_owned()),
            _ => None,
        })
    }

    /// Like [`AccessView::sees`], with the route of the URI.
    pub(crate) fn sees_routed(&mut self, route: &CatalogRoute<'_, '_>, normal: &str) -> bool {
        let guard = self.engine.guard();
        self.engine.decide(&guard, self.principal, normal) == Decision::Allow
            && guard.missing(self.principal, route.scopes()).is_empty()
            && self.allows(route, normal)
    }

    /// The same for a URI whose handler decides; `params` are the values of its template.
    pub(crate) fn decide(
        &mut self,
        handler: Option<HandlerId>,
        normal: &str,
        params: impl FnOnce() -> Option<MatchedParams<'static>>,
    ) -> bool {
        let Some(handler) = handler else { return true };
        let key = self.engine.key_of(normal);
        let known = self.own.and_then(|own| own.0.get(&*key).copied());
        let known = known.or_else(|| self.engine.access.get(self.principal, &key, self.now.tick));
        known.unwrap_or_else(|| {
            self.unknown.push(AccessQuestion { uri: key.into(), params: params(), handler });
            true
        })
    }

    /// The number of questions so far.
    pub(crate) fn unknown(&self) -> usize {
        self.unknown.len()
    }

    /// Takes the questions without an answer.
    pub(crate) fn into_questions(self) -> Vec<AccessQuestion> {
        self.unknown
    }
}

impl AccessRound {
    /// Puts questions to their handlers. `answers` are those that the request has already.
    pub(crate) fn new(engine: &Engine, answers: AccessAnswers, questions: Vec<AccessQuestion>) -> Self {
        let mut round = Self { waiting: VecDeque::new(), answers };
        round.add(engine, questions);
        round
    }

    /// Adds questions, each URI once.
    pub(crate) fn add(&mut self, engine: &Engine, questions: Vec<AccessQuestion>) {
        let mut seen = std::collections::HashSet::with_capacity(questions.len());
        let mut by_handler: Vec<(HandlerId, Vec<AccessQuestion>)> = Vec::new();
        for question in questions {
            if !seen.insert(question.uri.clone()) {
                continue;
            }
            match by_handler.iter_mut().find(|(handler, _)| *handler == question.handler) {
                Some((_, questions)) => questions.push(question),
                None => by_handler.push((question.handler, vec![question])),
            }
        }
        let regrants = engine.access.regrants();
        for (handler, questions) in by_handler {
            for part in questions.chunks(engine.limits().access_batch.max(1)) {
                self.waiting.push_back(AccessBatch { handler, questions: part.into(), regrants });
            }
        }
    }

    /// The questions to ask next; `None` once all are answered.
    pub(crate) fn next(&self) -> Option<AccessBatch> {
        self.waiting.front().cloned()
    }

    /// Takes the answer to [`AccessRound::next`]: a failure means no, for this request only. Returns a description of
    /// an answer that does not fit.
    pub(crate) fn take(
        &mut self,
        engine: &Engine,
        principal: &Arc<Principal>,
        answer: &Answer<'_>,
        now: Now,
    ) -> Option<String> {
        let AccessBatch { questions, regrants, .. } = self.waiting.pop_front()?;
        let allowed = match answer {
            Answer::Access(allowed) if allowed.len() == questions.len() => Some(allowed),
            _ => None,
        };
        for (at, question) in questions.iter().enumerate() {
            let answer = allowed.and_then(|allowed| allowed.get(at).copied().flatten());
            self.answers.0.insert(question.uri.clone(), answer.unwrap_or_default());
        }
        match (answer, allowed) {
            (_, Some(allowed)) => {
                engine.access.keep(principal, &questions, allowed, regrants, now.tick);
                let refuses_all = allowed.iter().all(|allowed| *allowed == Some(false));
                engine.access.advice(principal).filter(|_| refuses_all)
            }
            (Answer::Failed(_), None) => None,
            (Answer::Access(given), None) => Some(format!(
                "access: {} answers to {} questions; return one for each, in their order",
                given.len(),
                questions.len()
            )),
            _ => Some("access: the answer is neither true nor false".to_owned()),
        }
    }

    /// The answers so far.
    pub(crate) fn answers(&self) -> &AccessAnswers {
        &self.answers
    }
}

impl AccessAnswers {
    /// The answer about a canonical URI; `None` without any.
    pub(crate) fn get(&self, uri: &str) -> Option<bool> {
        self.0.get(uri).copied()
    }
}

impl Engine {
    /// A look at what `principal` may use. `own` are the answers that its request has got.
    pub(crate) fn access_view<'a>(
        &'a self,
        principal: &'a Principal,
        own: Option<&'a AccessAnswers>,
        now: Now,
    ) -> AccessView<'a> {
        AccessView { engine: self, principal, own, now, unknown: Vec::new() }
    }

    /// The same at the latest time that is known: for deliveries, which follow a change.
    pub(crate) fn latest_access_view<'a>(&'a self, principal: &'a Principal) -> AccessView<'a> {
        let now = Now { tick: self.access.latest.load(Ordering::Relaxed), ..Now::default() };
        self.access_view(principal, None, now)
    }

    /// Whether a handler decides, or has decided, who may use a resource.
    pub(crate) fn has_access(&self) -> bool {
        self.access.is_used.load(Ordering::Relaxed)
    }

    /// Whether a verifier has ever granted a principal URIs of its own.
    pub(crate) fn has_grants(&self) -> bool {
        self.access.has_grants.load(Ordering::Relaxed)
    }

    /// Call it before a principal with such a grant is served.
    pub(crate) fn note_grant(&self, principal: &Principal) {
        if principal.uris().is_some() {
            self.access.has_grants.store(true, Ordering::Relaxed);
        }
    }

    /// Call it before `catalog` is published.
    pub(super) fn note_access(&self, catalog: &Catalog) {
        if catalog.has_access() {
            self.access.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Notes the time, for deliveries that follow.
    pub(crate) fn note_time(&self, now: Now) {
        self.access.latest.fetch_max(now.tick, Ordering::Relaxed);
    }

    /// Whether the answers that are known let `principal` use `normal`, which the guard permits.
    pub(super) fn knows_access(&self, principal: &Principal, normal: &str) -> bool {
        let mut view = self.latest_access_view(principal);
        view.sees(normal) && view.unknown() == 0
    }

    /// The number of regrants and revocations so far.
    pub(crate) fn regrants(&self) -> u64 {
        self.access.regrants()
    }

    /// The number of answers of access functions that are kept: for leak tests.
    pub fn access_answers(&self) -> usize {
        self.access.lock().count
    }
}

impl AccessTable {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            most: limits.access_answers,
            ttl: limits.access_ttl,
            is_used: AtomicBool::new(false),
            has_grants: AtomicBool::new(false),
            has_advised: AtomicBool::new(false),
            latest: AtomicU64::new(0),
            regrants: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    fn get(&self, principal: &Principal, uri: &str, now: Millis) -> Option<bool> {
        let known = self.lock();
        let grants = known.by_id.get(principal.id())?;
        let own = grants.iter().find(|own| own.principal.has_rights_of(principal))?;
        let answer = own.answers.get(uri)?;
        (now.saturating_sub(answer.at) < self.ttl).then_some(answer.is_allowed)
    }

    /// Keeps answers, unless a principal was regranted since the questions: they may be older than the regrant.
    fn keep(
        &self,
        principal: &Arc<Principal>,
        questions: &[AccessQuestion],
        allowed: &[Option<bool>],
        regrants: u64,
        now: Millis,
    ) {
        self.latest.fetch_max(now, Ordering::Relaxed);
        let mut known = self.lock();
        if self.regrants() != regrants || self.ttl == 0 {
            return;
        }
        for (question, is_allowed) in questions.iter().zip(allowed) {
            let Some(is_allowed) = *is_allowed else { continue };
            if known.count >= self.most && !known.make_room(self.most, now.saturating_sub(self.ttl)) {
                return;
            }
            known.insert(principal, question.uri.clone(), KnownAnswer { is_allowed, at: now });
        }
    }

    pub(super) fn regrant(&self, principal: &str) {
        let mut known = self.lock();
        self.regrants.fetch_add(1, Ordering::SeqCst);
        let dropped = known.by_id.remove(principal);
        known.count -= dropped.iter().flatten().map(|own| own.answers.len()).sum::<usize>();
    }

    /// Forgets all answers, because other registrations may serve the URIs.
    pub(super) fn clear(&self) {
        let mut known = self.lock();
        if known.count > 0 {
            self.regrants.fetch_add(1, Ordering::SeqCst);
            *known = KnownAnswers::default();
        }
    }

    /// The log message, once, about a principal that cannot be told from others: a server without tokens.
    fn advice(&self, principal: &Principal) -> Option<String> {
        let who = match principal {
            local if local.is_local() => "the local process, whose identity is the empty text",
            other if other.is_anonymous() => "a client without a token, whose identity is \"anonymous\"",
            _ => return None,
        };
        (!self.has_advised.swap(true, Ordering::Relaxed)).then(|| {
            format!(
                "access refuses everything to {who}; people have identities over HTTP with auth, and in tests with the \
                 option principal of the test client"
            )
        })
    }

    fn regrants(&self) -> u64 {
        self.regrants.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, KnownAnswers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownAnswers {
    fn insert(&mut self, principal: &Arc<Principal>, uri: Arc<str>, answer: KnownAnswer) {
        let grants = self.by_id.entry(principal.id().into()).or_default();
        let at = grants.iter().position(|own| own.principal.has_rights_of(principal)).unwrap_or_else(|| {
            if grants.len() >= MOST_GRANTS {
                self.count -= grants.pop_front().map_or(0, |oldest| oldest.answers.len());
            }
            grants.push_back(GrantAnswers { principal: principal.clone(), answers: HashMap::new() });
            grants.len() - 1
        });
        let before = grants.get_mut(at).and_then(|own| own.answers.insert(uri, answer));
        self.count += usize::from(before.is_none());
    }

    /// Drops the answers from `before` or earlier; all of them if that makes too little room, so that a full table is
    /// not searched for each answer. Returns whether there is room.
    fn make_room(&mut self, most: usize, before: Millis) -> bool {
        for grants in self.by_id.values_mut() {
            for own in grants.iter_mut() {
                own.answers.retain(|_, answer| answer.at > before);
            }
            grants.retain(|own| !own.answers.is_empty());
        }
        self.by_id.retain(|_, grants| !grants.is_empty());
        self.count = self.by_id.values().flatten().map(|own| own.answers.len()).sum();
        if self.count > most / 2 {
            *self = Self::default();
        }
        self.count < most
    }
}

impl std::fmt::Debug for AccessTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessTable").field("count", &self.lock().count).finish_non_exhaustive()
    }
}
