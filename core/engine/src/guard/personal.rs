//! Globs with `{principal}` and `{group}`, which are different for each principal.
//!
//! Law: a value stands for itself alone, percent-encoded: it contains no separator, no wildcard and no dot segment, and two
//! values never give the same URI. Where that cannot be so, an allowing glob matches nothing, and a narrowing one hides
//! everything. Without a proven identity there is no value, so such globs match nothing.

use super::glob::Glob;
use super::policy::{Globs, PolicyError};
use super::set::GlobSet;
use super::subject::Subjects;
use crate::principal::Principal;
use mcp_resources_template::uri;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum number of globs that a policy makes for one principal. One with more groups sees nothing.
const MOST_GLOBS: usize = 4096;

/// A glob with placeholders.
#[derive(Clone, Debug)]
pub(super) struct PersonalGlob {
    /// The text before, between and after the placeholders.
    texts: Box<[Box<str>]>,
    holes: Box<[Hole]>,
}

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Principal,
    Group,
}

/// A placeholder at its place.
#[derive(Clone, Copy, Debug)]
struct Hole {
    placeholder: Placeholder,
    /// Whether it is a part of a path, where more characters may stand as they are.
    is_in_path: bool,
}

/// The globs with placeholders of a list that allows, and of one that denies.
#[derive(Clone, Debug, Default)]
pub(super) struct PersonalLists {
    pub(super) allow: Vec<PersonalGlob>,
    pub(super) deny: Vec<PersonalGlob>,
}

/// The globs with placeholders of the tables of scopes and groups, each with the number of its row.
pub(super) type PersonalRows = Vec<(PersonalGlob, usize)>;

/// The globs of a policy that depend on the principal.
#[derive(Debug, Default)]
pub(super) struct PersonalPolicy {
    pub(super) common: PersonalLists,
    pub(super) scopes: PersonalRows,
    pub(super) groups: PersonalRows,
}

/// These globs for one principal.
#[derive(Debug)]
pub(super) struct PersonalRules {
    policy: Arc<PersonalPolicy>,
    id: Box<str>,
    groups: Box<[String]>,
    pub(super) common: PersonalSets,
    pub(super) own: PersonalSets,
    pub(super) scopes: PersonalTable,
    pub(super) memberships: PersonalTable,
    /// Whether everything is hidden, because a glob that narrows cannot be made.
    pub(super) is_closed: bool,
}

/// Both lists for one principal.
#[derive(Debug, Default)]
pub(super) struct PersonalSets {
    pub(super) allow: GlobSet,
    pub(super) deny: GlobSet,
}

/// A table for one principal.
#[derive(Debug, Default)]
pub(super) struct PersonalTable {
    pub(super) globs: GlobSet,
    /// By glob: its row.
    pub(super) rows: Box<[usize]>,
}

/// Equal for principals for which the globs are the same.
#[derive(Clone, Debug)]
pub(super) struct PersonalKey(pub(super) Arc<PersonalRules>);

/// The globs of a list: those for everybody, and those with placeholders.
pub(super) struct SplitGlobs {
    pub(super) common: Vec<Glob>,
    pub(super) personal: Vec<PersonalGlob>,
}

impl PersonalGlob {
    /// The glob with placeholders that `text` is; `None` if it has none.
    ///
    /// # Errors
    /// [`PolicyError`] if a placeholder is unknown, or stands where a value could be taken for another one.
    pub(super) fn parse(path: &str, text: &str) -> Result<Option<Self>, PolicyError> {
        if !text.contains('{') {
            return Ok(None);
        }
        let wrong = |reason: &str| PolicyError::new(path, format!("{text:?} is no glob, {reason}"));
        let mut texts = Vec::new();
        let mut holes = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| wrong("a { has no }"))?;
            let placeholder = match name {
                "principal" => Placeholder::Principal,
                "group" => Placeholder::Group,
                _ => {
                    return Err(wrong(&format!(
                        "there is no placeholder {{{name}}}; write {{principal}} or {{group}}"
                    )));
                }
            };
            texts.push(before.into());
            let head = &text[..text.len() - rest.len() + before.len()];
            if !head.contains([':', '/']) {
                return Err(wrong(
                    "a placeholder must stand behind the scheme, such as docs:///{principal}/**",
                ));
            }
            holes.push(Hole { placeholder, is_in_path: is_in_path(head) });
            rest = after;
        }
        texts.push(rest.into());
        let glob = Self { texts: texts.into(), holes: holes.into() };
        if text.split('/').filter(|segment| segment.contains('{')).any(|segment| {
            segment.matches('{').count() > 1 || segment.replace("\\?", "").contains(['*', '?'])
        }) {
            return Err(wrong(
                "a part between slashes with a placeholder may have no other placeholder and no wildcard: one name could be taken \
                 for another",
            ));
        }
        // With a name that every URI may have.
        glob.with(&|hole| match hole.placeholder {
            Placeholder::Principal => "principalxx".into(),
            Placeholder::Group => "groupxx".into(),
        })
        .map_err(|error| wrong(&error.to_string()))
        .map(|_| Some(glob))
    }

    /// Whether it depends on the query of a URI.
    pub(super) fn reads_queries(&self) -> bool {
        self.texts.iter().any(|text| text.contains("\\?") || text.contains('#'))
    }

    fn with(&self, value: &dyn Fn(&Hole) -> String) -> Result<Glob, super::glob::InvalidGlob> {
        let mut text = String::new();
        for (before, hole) in self.texts.iter().zip(&self.holes) {
            text.push_str(before);
            text.push_str(&value(hole));
        }
        text.push_str(self.texts.last().map_or("", |last| last));
        Glob::parse(&text)
    }

    /// The pairs of principal and group for which there is a glob.
    fn choices<'p>(&self, who: &'p Principal) -> Vec<(&'p str, &'p str)> {
        if !who.is_named() {
            return Vec::new();
        }
        match self.holes.iter().any(|hole| hole.placeholder == Placeholder::Group) {
            true => who.groups().iter().map(|group| (who.id(), group.as_str())).collect(),
            false => vec![(who.id(), "")],
        }
    }

    /// Adds the globs that allow. A value that another one could be taken for allows nothing.
    fn allowing(&self, who: &Principal, out: &mut Vec<Glob>) {
        for (id, group) in self.choices(who) {
            let value = |hole: &Hole| match hole.placeholder {
                Placeholder::Principal => id,
                Placeholder::Group => group,
            };
            let Ok(strict) = self.with(&|hole| encoded(value(hole), false)) else { continue };
            // Where case has no meaning, a name with capitals would be that of somebody else.
            let is_ambiguous = |own: &Hole| {
                let lower = self.with(&|hole| match std::ptr::eq(own, hole) {
                    true => encoded(&value(hole).to_ascii_lowercase(), false),
                    false => encoded(value(hole), false),
                });
                let has_capitals = value(own).contains(|letter: char| letter.is_ascii_uppercase());
                has_capitals && lower.is_ok_and(|lower| lower.is_same(&strict))
            };
            if self.holes.iter().any(is_ambiguous) {
                continue;
            }
            if let Ok(plain) = self.with(&|hole| encoded(value(hole), hole.is_in_path))
                && !plain.is_same(&strict)
            {
                out.push(plain);
            }
            out.push(strict);
        }
    }

    /// Adds the globs that narrow; `false` if one of them cannot be made.
    fn narrowing(&self, who: &Principal, out: &mut Vec<Glob>) -> bool {
        self.choices(who).into_iter().all(|(id, group)| {
            let value = |hole: &Hole| match hole.placeholder {
                Placeholder::Principal => id,
                Placeholder::Group => group,
            };
            // Decisions see every encoding. The question whether a template reaches something sees the given ones.
            let plain = self.with(&|hole| encoded(value(hole), hole.is_in_path));
            let strict = self.with(&|hole| encoded(value(hole), false));
            let (Ok(plain), Ok(strict)) = (plain, strict) else { return false };
            if !plain.is_same(&strict) {
                out.push(plain);
            }
            out.push(strict);
            out.len() <= MOST_GLOBS
        })
    }
}

impl PersonalLists {
    pub(super) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    pub(super) fn reads_queries(&self) -> bool {
        self.deny.iter().any(PersonalGlob::reads_queries)
    }

    /// The sets for `who`, and whether all denying globs could be made.
    fn sets(&self, who: &Principal) -> (PersonalSets, bool) {
        let mut allow = Vec::new();
        for glob in &self.allow {
            glob.allowing(who, &mut allow);
        }
        allow.truncate(MOST_GLOBS);
        let mut deny = Vec::new();
        let is_whole = self.deny.iter().all(|glob| glob.narrowing(who, &mut deny));
        (PersonalSets { allow: GlobSet::new(allow), deny: GlobSet::narrowing(deny) }, is_whole)
    }
}

impl PersonalPolicy {
    /// Whether it is the same for everybody. `own` are the lists of single principals.
    pub(super) fn is_empty(&self) -> bool {
        self.common.is_empty() && self.scopes.is_empty() && self.groups.is_empty()
    }

    pub(super) fn reads_queries(&self) -> bool {
        let rows = self.scopes.iter().chain(&self.groups);
        self.common.reads_queries() || rows.map(|(glob, _)| glob).any(PersonalGlob::reads_queries)
    }

    /// The rules for `who`, whose own lists are `own`. They are kept with the principal.
    pub(super) fn rules(
        self: &Arc<Self>,
        who: &Principal,
        own: Option<&PersonalLists>,
    ) -> Arc<PersonalRules> {
        if let Some(kept) = who.derived::<PersonalRules>()
            && Arc::ptr_eq(&kept.policy, self)
        {
            return kept;
        }
        let (common, common_is_whole) = self.common.sets(who);
        let (own, own_is_whole) = own.map_or_else(|| (PersonalSets::default(), true), |own| own.sets(who));
        let (scopes, scopes_are_whole) = PersonalTable::new(&self.scopes, who);
        let (memberships, memberships_are_whole) = PersonalTable::new(&self.groups, who);
        let rules = Arc::new(PersonalRules {
            policy: self.clone(),
            id: who.id().into(),
            groups: who.groups().into(),
            common,
            own,
            scopes,
            memberships,
            is_closed: !(common_is_whole && own_is_whole && scopes_are_whole && memberships_are_whole),
        });
        who.derive(rules.clone());
        rules
    }
}

impl PersonalTable {
    fn new(rows: &PersonalRows, who: &Principal) -> (Self, bool) {
        let mut globs = Vec::new();
        let mut numbers = Vec::new();
        let is_whole = rows.iter().all(|(glob, row)| {
            let is_whole = glob.narrowing(who, &mut globs);
            numbers.resize(globs.len(), *row);
            is_whole
        });
        (Self { globs: GlobSet::narrowing(globs), rows: numbers.into() }, is_whole)
    }

    /// Calls `found` with the row of each glob that matches, until `found` breaks.
    pub(super) fn narrows(
        &self,
        subjects: &Subjects<'_>,
        found: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.rows.is_empty() {
            true => ControlFlow::Continue(()),
            false => self.globs.narrows(subjects, &mut |at| found(self.rows[at])),
        }
    }
}

impl PartialEq for PersonalKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id && self.0.groups == other.0.groups
    }
}

impl Eq for PersonalKey {}

impl Hash for PersonalKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
        self.0.groups.hash(state);
    }
}

/// Separates the globs with placeholders from the others. `path` names the list in errors.
pub(super) fn split(path: &str, globs: &Globs) -> Result<SplitGlobs, PolicyError> {
    let mut all = SplitGlobs { common: Vec::new(), personal: Vec::new() };
    for (at, text) in globs.0.iter().enumerate() {
        let path = format!("{path}[{at}]");
        match PersonalGlob::parse(&path, text)? {
            Some(glob) => all.personal.push(glob),
            None => all.common.push(super::decide::parsed(&path, text)?),
        }
    }
    Ok(all)
}

/// Whether a placeholder after `head` is a part of a path: not of an authority, a query or a fragment.
fn is_in_path(head: &str) -> bool {
    let is_in_authority = head.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    !is_in_authority && !head.contains("\\?") && !head.contains('#')
}

/// A value as a part of a glob: percent-encoded, except for unreserved characters and, in a path, for those that a segment
/// may have as they are.
fn encoded(value: &str, is_in_path: bool) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            _ if uri::is_unreserved(byte) => text.push(char::from(byte)),
            b'*' if is_in_path => text.push_str("\\*"),
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b';' | b'=' | b':' | b'@'
                if is_in_path =>
            {
                text.push(char::from(byte));
            }
            other => uri::push_encoded(&mut text, other),
        }
    }
    text
}
