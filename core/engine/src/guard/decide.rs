//! The decision about one URI.

use super::glob::Glob;
use super::names::NameRules;
use super::policy::{Globs, Policy, PolicyError, PrincipalPolicy};
use super::reach::{Effort, ReachQuestion};
use super::set::GlobSet;
use super::subject::{Subjects, subjects};
use crate::principal::{GrantedUris, Principal};
use mcp_resources_template::uri::{InvalidUri, MAX_URI, normalize};
use mcp_resources_template::{Outline, UriTemplate};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

/// A compiled [`Policy`]. Immutable; every method may be called from any thread and takes no lock.
#[derive(Debug, Default)]
pub struct Guard {
    rules: GuardRules,
    scopes: ScopeRules,
    tools: NameRules,
    prompts: NameRules,
    /// The keys come from the configuration, not from a peer, so the hash needs no secret.
    principals: HashMap<Box<str>, Narrowed, BuildHasherDefault<DefaultHasher>>,
    is_explicit: bool,
    is_open: bool,
    /// Whether a rule that narrows depends on the query of a URI.
    reads_queries: bool,
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
    /// The identity, if the policy has rules for it.
    own: Option<Box<str>>,
    /// The globs whose scopes are missing.
    unmet: Box<[usize]>,
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
    tools: NameRules,
    prompts: NameRules,
    scopes: Box<[String]>,
}

/// The scopes that URIs require.
#[derive(Debug, Default)]
struct ScopeRules {
    globs: GlobSet,
    /// By glob.
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
        let rules = GuardRules::new("", policy.allow.as_ref(), &policy.deny)?;
        let scopes = ScopeRules::new(policy)?;
        let is_open = rules.is_open() && scopes.globs.is_empty() && policy.principals.is_empty();
        let reads_queries = rules.deny.reads_queries()
            || scopes.globs.reads_queries()
            || principals.values().any(|own| own.rules.deny.reads_queries());
        let tools = NameRules::new("tools", &policy.tools)?;
        let prompts = NameRules::new("prompts", &policy.prompts)?;
        Ok(Self { rules, scopes, tools, prompts, principals, is_explicit: explicit, is_open, reads_queries })
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
        !self.principals.is_empty() || !self.scopes.globs.is_empty()
    }

    /// Decides whether `principal` may read, subscribe to and list the URI `normal`, which is in normal form
    /// ([`normalize`](mcp_resources_template::uri::normalize)). Takes time linear in the length of the URI.
    pub fn decide(&self, principal: &Principal, normal: &str) -> Decision<'_> {
        let granted = principal.uris().map(granted_rules);
        if self.is_open && granted.is_none() {
            return Decision::Allow;
        }
        let own = self.principals.get(principal.id());
        let may_see = |subjects: &Subjects<'_>| {
            self.rules.admit(subjects)
                && own.is_none_or(|own| own.rules.admit(subjects))
                && granted.is_none_or(|granted| granted.admit(subjects))
        };
        let Some(subjects) = subjects(normal).filter(|subjects| may_see(subjects)) else {
            return self.refusal();
        };
        let missing = self.scopes.missing(principal, own, &subjects);
        if missing.is_empty() { Decision::Allow } else { Decision::MissingScope { scopes: missing } }
    }

    /// Whether a rule that narrows depends on the query of a URI.
    pub(crate) fn reads_queries(&self) -> bool {
        self.reads_queries
    }

    /// The decision of the rules that narrow alone: for another spelling of a URI that [`Guard::decide`] allows.
    pub(crate) fn narrows(&self, principal: &Principal, spelling: &str) -> Decision<'_> {
        let own = self.principals.get(principal.id());
        let granted = principal.uris().map(granted_rules);
        let is_open = |subjects: &Subjects<'_>| {
            !self.rules.denies(subjects)
                && own.is_none_or(|own| !own.rules.denies(subjects))
                && granted.is_none_or(|granted| !granted.denies(subjects))
        };
        let Some(subjects) = subjects(spelling).filter(|subjects| is_open(subjects)) else {
            return self.refusal();
        };
        let missing = self.scopes.missing(principal, own, &subjects);
        if missing.is_empty() { Decision::Allow } else { Decision::MissingScope { scopes: missing } }
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
        let own = own.map(|(_, own)| own);
        let lacks = |needed: &[String]| needed.iter().any(|scope| !holds(principal, own, scope));
        let needed = self.scopes.needed.iter().enumerate();
        PolicyView {
            own: narrowed,
            unmet: needed.filter(|(_, needed)| lacks(needed)).map(|(at, _)| at).collect(),
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
        let mut question = ReachQuestion::default();
        for rules in [Some(&self.rules), own, granted].into_iter().flatten() {
            if let Some(allow) = &rules.allow {
                question.allow(allow.globs());
            }
            question.deny(rules.deny.globs());
        }
        question.deny(view.unmet.iter().filter_map(|at| self.scopes.globs.globs().get(*at)));
        question.ask(outline, effort)
    }

    /// The scopes out of `scopes`, which a registration requires, that `principal` does not have.
    pub fn missing<'s>(&self, principal: &Principal, scopes: &'s [String]) -> Vec<&'s str> {
        let own = self.principals.get(principal.id());
        scopes.iter().filter(|scope| !holds(principal, own, scope)).map(String::as_str).collect()
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
/// [`PolicyError`] naming the invalid glob.
pub fn granted_uris(allow: Option<&[String]>, deny: &[String]) -> Result<Arc<GrantedUris>, PolicyError> {
    let globs = |texts: &[String]| Globs(texts.to_vec());
    let rules = GuardRules::new("", allow.map(globs).as_ref(), &globs(deny))?;
    Ok(GrantedUris::new(format!("{allow:?}{deny:?}"), Box::new(rules)))
}

/// The compiled form. Only [`granted_uris`] makes grants; any other would grant nothing.
fn granted_rules(uris: &Arc<GrantedUris>) -> &GuardRules {
    static NOTHING: LazyLock<GuardRules> =
        LazyLock::new(|| GuardRules { allow: Some(GlobSet::default()), deny: GlobSet::default() });
    uris.compiled().downcast_ref().unwrap_or(&NOTHING)
}

fn holds(principal: &Principal, own: Option<&Narrowed>, scope: &String) -> bool {
    principal.scopes().contains(scope) || own.is_some_and(|own| own.scopes.contains(scope))
}

impl GuardRules {
    fn new(path: &str, allow: Option<&Globs>, deny: &Globs) -> Result<Self, PolicyError> {
        let allow = allow.map(|allow| compiled(&format!("{path}allow"), allow)).transpose()?;
        let deny = compiled(&format!("{path}deny"), deny)?;
        Ok(Self { allow: allow.map(GlobSet::new), deny: GlobSet::narrowing(deny) })
    }

    fn is_open(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    fn admit(&self, subjects: &Subjects<'_>) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.allows(&subjects.given)) && !self.denies(subjects)
    }

    fn denies(&self, subjects: &Subjects<'_>) -> bool {
        self.deny.narrows(subjects, &mut |_| ControlFlow::Break(())).is_break()
    }
}

impl Narrowed {
    fn new(id: &str, policy: &PrincipalPolicy) -> Result<Self, PolicyError> {
        let rules = GuardRules::new(&format!("principals.{id}."), policy.allow.as_ref(), &policy.deny)?;
        let tools = NameRules::new(&format!("principals.{id}.tools"), &policy.tools)?;
        let prompts = NameRules::new(&format!("principals.{id}.prompts"), &policy.prompts)?;
        Ok(Self { rules, tools, prompts, scopes: policy.scopes.0.clone().into() })
    }
}

impl ScopeRules {
    fn new(policy: &Policy) -> Result<Self, PolicyError> {
        let glob = |text: &String| parsed(&format!("scopes.{text}"), text);
        let globs = policy.scopes.keys().map(glob).collect::<Result<_, _>>()?;
        let needed = policy.scopes.values().map(|words| words.0.clone().into()).collect();
        Ok(Self { globs: GlobSet::narrowing(globs), needed })
    }

    fn missing(&self, principal: &Principal, own: Option<&Narrowed>, subjects: &Subjects<'_>) -> Vec<&str> {
        let mut missing: Vec<&str> = Vec::new();
        // Visits all matches: all missing scopes are reported at once.
        let _ = self.globs.narrows(subjects, &mut |at| {
            for scope in &self.needed[at] {
                if !holds(principal, own, scope) && !missing.contains(&scope.as_str()) {
                    missing.push(scope);
                }
            }
            ControlFlow::Continue(())
        });
        missing.sort_unstable();
        missing
    }
}

fn compiled(path: &str, globs: &Globs) -> Result<Vec<Glob>, PolicyError> {
    let glob = |(at, text): (usize, &String)| parsed(&format!("{path}[{at}]"), text);
    globs.0.iter().enumerate().map(glob).collect()
}

pub(super) fn parsed(path: &str, text: &str) -> Result<Glob, PolicyError> {
    Glob::parse(text).map_err(|error| PolicyError::new(path, format!("{text:?} is no glob, {error}")))
}
