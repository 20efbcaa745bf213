//! The decision about one URI.

use super::glob::Glob;
use super::names::NameRules;
use super::personal::{
    self, PersonalGlob, PersonalKey, PersonalLists, PersonalPolicy, PersonalRows, PersonalRules,
    PersonalSets, PersonalTable,
};
use super::policy::{Globs, Policy, PolicyError, PrincipalPolicy, ScopeList};
use super::reach::{Effort, ReachQuestion};
use super::set::GlobSet;
use super::subject::{Subjects, subjects};
use crate::principal::{GrantedUris, Principal};
use mcp_resources_template::uri::{InvalidUri, MAX_URI, normalize};
use mcp_resources_template::{Outline, UriTemplate};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// The serial number of the next guard.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A compiled [`Policy`]. Immutable; every method may be called from any thread. None takes a lock, unless the policy has
/// globs with placeholders: what they are for a principal is kept with the principal.
#[derive(Debug, Default)]
pub struct Guard {
    rules: GuardRules,
    scopes: ScopeRules,
    groups: ScopeRules,
    /// The globs with placeholders; `None` if there are none.
    personal: Option<Arc<PersonalPolicy>>,
    tools: NameRules,
    prompts: NameRules,
    /// The keys come from the configuration, not from a peer, so the hash needs no secret.
    principals: HashMap<Box<str>, Narrowed, BuildHasherDefault<DefaultHasher>>,
    is_explicit: bool,
    is_open: bool,
    /// Whether a rule that narrows depends on the query of a URI.
    reads_queries: bool,
    /// Different for every guard of this process, so that what is known under one is not taken for known under another.
    serial: u64,
}

/// The decision of the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'g> {
    /// Allowed.
    Allow,
    /// Refused; the client gets the same answer as for a missing resource.
    Hidden,
    /// Refused; the client gets an error that says so (`explicit_denials`).
    Denied,
    /// Refused for this token; a token that also has these scopes would be accepted.
    MissingScope {
        /// All scopes that are missing.
        scopes: Vec<&'g str>,
    },
}

impl Decision<'_> {
    /// Its name: `allow`, `hidden`, `denied` or `missing_scope`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Hidden => "hidden",
            Self::Denied => "denied",
            Self::MissingScope { .. } => "missing_scope",
        }
    }

    /// The missing scopes; empty unless missing scopes are the only reason for the refusal.
    pub fn missing_scopes(&self) -> Vec<String> {
        match self {
            Self::MissingScope { scopes } => scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

/// The part of the policy specific to a principal: principals with equal views see the same URIs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyView {
    /// The guard that it is a view of.
    serial: u64,
    /// The identity, if the policy has rules for it.
    own: Option<Box<str>>,
    /// The globs whose scopes are missing.
    unmet: Box<[usize]>,
    /// The globs of whose groups the principal has none.
    outside: Box<[usize]>,
    /// The globs with placeholders, if there are any.
    personal: Option<PersonalKey>,
    /// The URIs that the verifier grants.
    granted: Option<Arc<GrantedUris>>,
}

/// The allowed URIs, except those that are denied.
#[derive(Debug, Default)]
pub(super) struct GuardRules {
    /// `None` allows everything.
    pub(super) allow: Option<GlobSet>,
    pub(super) deny: GlobSet,
}

/// The rules for one principal that apply in addition to the common ones.
#[derive(Debug, Default)]
struct Narrowed {
    rules: GuardRules,
    personal: PersonalLists,
    tools: NameRules,
    prompts: NameRules,
    scopes: Box<[String]>,
}

/// The requirements of URIs, by glob: scopes (a principal needs all) or groups (one is enough).
#[derive(Debug, Default)]
struct ScopeRules {
    globs: GlobSet,
    /// By glob: its row.
    rows: Box<[usize]>,
    /// By row.
    needed: Box<[Box<[String]>]>,
}

impl Guard {
    /// Compiles a policy. With `explicit` a principal learns that it may not see a resource; otherwise the resource
    /// seems not to exist.
    ///
    /// # Errors
    /// [`PolicyError`] naming the member with an invalid glob.
    pub fn new(policy: &Policy, explicit: bool) -> Result<Self, PolicyError> {
        let principals = policy
            .principals
            .iter()
            .map(|(id, own)| Ok((id.as_str().into(), Narrowed::new(id, own)?)))
            .collect::<Result<HashMap<Box<str>, Narrowed, _>, PolicyError>>()?;
        let mut personal = PersonalPolicy::default();
        let (rules, common) = GuardRules::new("", policy.allow.as_ref(), &policy.deny)?;
        personal.common = common;
        let scopes = ScopeRules::new("scopes", &policy.scopes, &mut personal.scopes)?;
        let groups = ScopeRules::new("groups", &policy.groups, &mut personal.groups)?;
        let is_personal = !personal.is_empty() || principals.values().any(|own| !own.personal.is_empty());
        let is_open = rules.is_open()
            && scopes.globs.is_empty()
            && groups.globs.is_empty()
            && policy.principals.is_empty()
            && !is_personal;
        let reads_queries = rules.deny.reads_queries()
            || scopes.globs.reads_queries()
            || groups.globs.reads_queries()
            || personal.reads_queries()
            || principals.values().any(|own| own.rules.deny.reads_queries() || own.personal.reads_queries());
        let personal = is_personal.then(|| Arc::new(personal));
        let tools = NameRules::new("tools", &policy.tools)?;
        let prompts = NameRules::new("prompts", &policy.prompts)?;
        Ok(Self {
            rules,
            scopes,
            groups,
            personal,
            tools,
            prompts,
            principals,
            is_explicit: explicit,
            is_open,
            reads_queries,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// A guard that allows nothing.
    pub(crate) fn closed() -> Self {
        let rules = GuardRules { allow: Some(GlobSet::default()), deny: GlobSet::default() };
        Self { rules, is_explicit: true, ..Self::default() }
    }

    /// Whether it has no rules about URIs: every principal may see everything that requires no scope.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether it has no rules about URIs for `principal`.
    pub(crate) fn is_open_to(&self, principal: &Principal) -> bool {
        self.is_open && principal.uris().is_none()
    }

    /// Whether two principals may see different things, so that results must not be shared between them.
    pub fn differs(&self) -> bool {
        !self.principals.is_empty()
            || !self.scopes.globs.is_empty()
            || !self.groups.globs.is_empty()
            || self.personal.is_some()
    }

    /// Decides whether `principal` may read, subscribe to and list the URI `normal`, which is in normal form
    /// ([`normalize`](mcp_resources_template::uri::normalize)). Takes time linear in the length of the URI.
    pub fn decide(&self, principal: &Principal, normal: &str) -> Decision<'_> {
        if self.is_open_to(principal) {
            return Decision::Allow;
        }
        let who = self.viewer(principal);
        let subjects = subjects(normal).filter(|subjects| {
            let own = who.own.map(|own| &own.rules);
            self.rules.admit(who.common(), subjects)
                && own.is_none_or(|own| own.admit(who.personal.as_deref().map(|rules| &rules.own), subjects))
                && who.granted.is_none_or(|granted| granted.admit(None, subjects))
        });
        self.judged(&who, subjects)
    }

    /// The rules of the policy for a principal.
    fn viewer<'p>(&self, principal: &'p Principal) -> Viewer<'_, 'p> {
        let own = self.principals.get(principal.id());
        let rules = |policy: &Arc<PersonalPolicy>| policy.rules(principal, own.map(|own| &own.personal));
        let granted = principal.uris().map(granted_rules);
        Viewer { principal, own, personal: self.personal.as_ref().map(rules), granted }
    }

    /// The decision about a URI that the lists admit; `None` if they do not.
    fn judged(&self, who: &Viewer<'_, '_>, subjects: Option<Subjects<'_>>) -> Decision<'_> {
        let is_closed = who.personal.as_ref().is_some_and(|rules| rules.is_closed);
        let subjects = subjects.filter(|subjects| {
            !is_closed
                && self.groups.admit(who, who.personal.as_ref().map(|rules| &rules.memberships), subjects)
        });
        let Some(subjects) = subjects else { return self.refusal() };
        let personal = who.personal.as_ref().map(|rules| &rules.scopes);
        let missing = self.scopes.missing(who, personal, &subjects);
        if missing.is_empty() { Decision::Allow } else { Decision::MissingScope { scopes: missing } }
    }

    /// Whether a rule that narrows depends on the query of a URI.
    pub(crate) fn reads_queries(&self) -> bool {
        self.reads_queries
    }

    /// The decision of the rules that narrow alone: for another spelling of a URI that [`Guard::decide`] allows.
    pub(crate) fn narrows(&self, principal: &Principal, spelling: &str) -> Decision<'_> {
        let who = self.viewer(principal);
        let subjects = subjects(spelling).filter(|subjects| {
            let own = who.own.map(|own| &own.rules);
            !self.rules.denies(who.common(), subjects)
                && own
                    .is_none_or(|own| !own.denies(who.personal.as_deref().map(|rules| &rules.own), subjects))
                && who.granted.is_none_or(|granted| !granted.denies(None, subjects))
        });
        self.judged(&who, subjects)
    }

    /// Like [`Guard::decide`] for a URI in any spelling.
    ///
    /// # Errors
    /// [`InvalidUri`] if the text is not a URI.
    pub fn decide_uri(&self, principal: &Principal, uri: &str) -> Result<Decision<'_>, InvalidUri> {
        Ok(self.decide(principal, &normalize(uri, MAX_URI)?))
    }

    /// Whether `principal` may use the URI `normal` without further scopes.
    pub fn permits(&self, principal: &Principal, normal: &str) -> bool {
        self.is_open_to(principal) || self.decide(principal, normal) == Decision::Allow
    }

    /// Whether `principal` may know about the tool of this name, apart from the scopes that it requires.
    pub fn permits_tool(&self, principal: &Principal, name: &str) -> bool {
        let own = self.principals.get(principal.id());
        self.tools.permit(name) && own.is_none_or(|own| own.tools.permit(name))
    }

    /// Whether `principal` may know about the prompt of this name, apart from the scopes that it requires.
    pub fn permits_prompt(&self, principal: &Principal, name: &str) -> bool {
        let own = self.principals.get(principal.id());
        self.prompts.permit(name) && own.is_none_or(|own| own.prompts.permit(name))
    }

    /// The part of the policy specific to `principal`; equal views see the same URIs.
    pub fn view(&self, principal: &Principal) -> PolicyView {
        let own = self.principals.get_key_value(principal.id());
        let narrowed = own.filter(|(_, own)| !own.rules.is_open()).map(|(id, _)| id.clone());
        let who = self.viewer(principal);
        let unmet = |rules: &ScopeRules, is_met: &dyn Fn(&[String]) -> bool| -> Box<[usize]> {
            rules.needed.iter().enumerate().filter(|(_, needed)| !is_met(needed)).map(|(at, _)| at).collect()
        };
        PolicyView {
            serial: self.serial,
            own: narrowed,
            unmet: unmet(&self.scopes, &|needed| who.has_all(needed)),
            outside: unmet(&self.groups, &|groups| who.is_in(groups)),
            personal: who.personal.map(PersonalKey),
            granted: principal.uris().cloned(),
        }
    }

    /// Whether `principal` may see some URI of the template, so that lists show the template.
    pub fn knows_template(&self, principal: &Principal, template: &UriTemplate) -> bool {
        self.reaches(&self.view(principal), &template.outline(&|_| None))
    }

    /// Whether a principal with this view may see some URI of `outline`. If the search exceeds its limit, the
    /// answer is `false`: what cannot be shown to be visible is hidden.
    pub(crate) fn reaches(&self, view: &PolicyView, outline: &Outline) -> bool {
        self.reaches_within(view, outline, &mut Effort::default())
    }

    /// Like [`Guard::reaches`], with a limit that several questions share.
    pub(crate) fn reaches_within(&self, view: &PolicyView, outline: &Outline, effort: &mut Effort) -> bool {
        let granted = view.granted.as_ref().map(granted_rules);
        if self.is_open && granted.is_none() {
            return true;
        }
        let own = view.own.as_ref().and_then(|id| self.principals.get(id)).map(|own| &own.rules);
        let personal = view.personal.as_ref().map(|key| &*key.0);
        if personal.is_some_and(|rules| rules.is_closed) {
            return false;
        }
        let mut question = ReachQuestion::default();
        let common = (Some(&self.rules), personal.map(|rules| &rules.common));
        for (rules, personal) in [common, (own, personal.map(|rules| &rules.own)), (granted, None)] {
            if let Some(allow) = rules.and_then(|rules| rules.allow.as_ref()) {
                question.allow(
                    allow.globs().iter().chain(personal.into_iter().flat_map(|own| own.allow.globs())),
                );
            }
            question.deny(rules.into_iter().flat_map(|rules| rules.deny.globs()));
            question.deny(personal.into_iter().flat_map(|own| own.deny.globs()));
        }
        for (rules, unmet, table) in [
            (&self.scopes, &view.unmet, personal.map(|rules| &rules.scopes)),
            (&self.groups, &view.outside, personal.map(|rules| &rules.memberships)),
        ] {
            question.deny(
                rules
                    .globs
                    .globs()
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| unmet.contains(&rules.rows[*at]))
                    .map(|(_, glob)| glob),
            );
            let own = table.into_iter().flat_map(|table| table.globs.globs().iter().zip(&table.rows));
            question.deny(own.filter(|(_, row)| unmet.contains(row)).map(|(glob, _)| glob));
        }
        question.ask(outline, effort)
    }

    /// The scopes out of `scopes`, which a registration requires, that `principal` does not have.
    pub fn missing<'s>(&self, principal: &Principal, scopes: &'s [String]) -> Vec<&'s str> {
        let own = self.principals.get(principal.id());
        let who = Viewer { principal, own, personal: None, granted: None };
        scopes.iter().filter(|scope| !who.holds(scope)).map(String::as_str).collect()
    }

    /// The decision for a URI that no principal may see.
    pub fn refusal(&self) -> Decision<'_> {
        if self.is_explicit { Decision::Denied } else { Decision::Hidden }
    }
}

/// Compiles the globs that a verifier grants one principal, in addition to the policy: it sees only what both allow and
/// neither denies. `allow` `None` allows everything.
///
/// # Errors
/// [`PolicyError`] naming the glob that is invalid, or has a placeholder: the verifier knows for whom it is.
pub fn granted_uris(allow: Option<&[String]>, deny: &[String]) -> Result<Arc<GrantedUris>, PolicyError> {
    let globs = |texts: &[String]| Globs(texts.to_vec());
    let (rules, personal) = GuardRules::new("", allow.map(globs).as_ref(), &globs(deny))?;
    if !personal.is_empty() {
        let reason = "a placeholder has no meaning here: write the value in its place".to_owned();
        return Err(PolicyError { field: "allow, deny".to_owned(), reason });
    }
    Ok(GrantedUris::new(format!("{allow:?}{deny:?}"), Box::new(rules)))
}

/// The compiled form. Only [`granted_uris`] makes grants; any other would grant nothing.
fn granted_rules(uris: &Arc<GrantedUris>) -> &GuardRules {
    static NOTHING: LazyLock<GuardRules> =
        LazyLock::new(|| GuardRules { allow: Some(GlobSet::default()), deny: GlobSet::default() });
    uris.compiled().downcast_ref().unwrap_or(&NOTHING)
}

/// A principal, as the policy knows it.
struct Viewer<'g, 'p> {
    principal: &'p Principal,
    own: Option<&'g Narrowed>,
    personal: Option<Arc<PersonalRules>>,
    /// The rights that its verifier grants.
    granted: Option<&'p GuardRules>,
}

impl Viewer<'_, '_> {
    fn common(&self) -> Option<&PersonalSets> {
        self.personal.as_deref().map(|rules| &rules.common)
    }

    fn holds(&self, scope: &String) -> bool {
        self.principal.scopes().contains(scope) || self.own.is_some_and(|own| own.scopes.contains(scope))
    }

    fn has_all(&self, scopes: &[String]) -> bool {
        scopes.iter().all(|scope| self.holds(scope))
    }

    /// Whether the principal belongs to one of the groups. A scope counts as one.
    fn is_in(&self, groups: &[String]) -> bool {
        groups.iter().any(|group| self.holds(group) || self.principal.groups().contains(group))
    }
}

impl GuardRules {
    fn new(path: &str, allow: Option<&Globs>, deny: &Globs) -> Result<(Self, PersonalLists), PolicyError> {
        let allow = allow.map(|allow| personal::split(&format!("{path}allow"), allow)).transpose()?;
        let deny = personal::split(&format!("{path}deny"), deny)?;
        let (allow, own) = match allow {
            Some(split) => (Some(GlobSet::new(split.common)), split.personal),
            None => (None, Vec::new()),
        };
        let rules = Self { allow, deny: GlobSet::narrowing(deny.common) };
        Ok((rules, PersonalLists { allow: own, deny: deny.personal }))
    }

    fn is_open(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    fn admit(&self, personal: Option<&PersonalSets>, subjects: &Subjects<'_>) -> bool {
        let allows = |allow: &GlobSet| {
            allow.allows(&subjects.given) || personal.is_some_and(|own| own.allow.allows(&subjects.given))
        };
        self.allow.as_ref().is_none_or(allows) && !self.denies(personal, subjects)
    }

    fn denies(&self, personal: Option<&PersonalSets>, subjects: &Subjects<'_>) -> bool {
        let denies = |deny: &GlobSet| deny.narrows(subjects, &mut |_| ControlFlow::Break(())).is_break();
        denies(&self.deny) || personal.is_some_and(|own| denies(&own.deny))
    }
}

impl Narrowed {
    fn new(id: &str, policy: &PrincipalPolicy) -> Result<Self, PolicyError> {
        let path = format!("principals.{id}.");
        let (rules, personal) = GuardRules::new(&path, policy.allow.as_ref(), &policy.deny)?;
        let tools = NameRules::new(&format!("principals.{id}.tools"), &policy.tools)?;
        let prompts = NameRules::new(&format!("principals.{id}.prompts"), &policy.prompts)?;
        Ok(Self { rules, personal, tools, prompts, scopes: policy.scopes.0.clone().into() })
    }
}

impl ScopeRules {
    /// Compiles a table; rows with placeholders go to `personal`. `path` names it in errors.
    fn new(
        path: &str,
        table: &BTreeMap<String, ScopeList>,
        personal: &mut PersonalRows,
    ) -> Result<Self, PolicyError> {
        let mut globs = Vec::new();
        let mut rows = Vec::new();
        for (row, text) in table.keys().enumerate() {
            let path = format!("{path}.{text}");
            match PersonalGlob::parse(&path, text)? {
                Some(glob) => personal.push((glob, row)),
                None => {
                    globs.push(parsed(&path, text)?);
                    rows.push(row);
                }
            }
        }
        let needed = table.values().map(|words| words.0.clone().into()).collect();
        Ok(Self { globs: GlobSet::narrowing(globs), rows: rows.into(), needed })
    }

    /// Calls `found` with the words of each glob that matches, until `found` breaks.
    fn each(
        &self,
        personal: Option<&PersonalTable>,
        subjects: &Subjects<'_>,
        found: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.globs.narrows(subjects, &mut |at| found(self.rows[at]))?;
        personal.map_or(ControlFlow::Continue(()), |table| table.narrows(subjects, found))
    }

    /// Whether `who` belongs to one of the groups of every glob that matches.
    fn admit(&self, who: &Viewer<'_, '_>, personal: Option<&PersonalTable>, subjects: &Subjects<'_>) -> bool {
        self.needed.is_empty()
            || self
                .each(personal, subjects, &mut |row| match who.is_in(&self.needed[row]) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
                .is_continue()
    }

    fn missing(
        &self,
        who: &Viewer<'_, '_>,
        personal: Option<&PersonalTable>,
        subjects: &Subjects<'_>,
    ) -> Vec<&str> {
        let mut missing: Vec<&str> = Vec::new();
        if self.needed.is_empty() {
            return missing;
        }
        // Visits all matches: all missing scopes are reported at once.
        let _ = self.each(personal, subjects, &mut |row| {
            for scope in &self.needed[row] {
                if !who.holds(scope) && !missing.contains(&scope.as_str()) {
                    missing.push(scope);
                }
            }
            ControlFlow::Continue(())
        });
        missing.sort_unstable();
        missing
    }
}

pub(super) fn parsed(path: &str, text: &str) -> Result<Glob, PolicyError> {
    Glob::parse(text).map_err(|error| PolicyError::new(path, format!("{text:?} is no glob, {error}")))
}
