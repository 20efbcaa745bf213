//! The served keys of an application, with masked values.
//!
//! ```text
//!   members of the file ──allow──▶ ──masks──▶ Tree      what is not allowed and what is masked is not in it
//! ```
//!
//! Law: what clients see is decided once, when a file was read: lists, reads and completion look at the same tree, and a
//! value that is masked cannot leave it. A list is one value: it is allowed as a whole.

use crate::masks::{MASK, Masks, is_secret};
use globset::GlobSet;
use mcp_resources_provider_kit::path;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum length of a key's path in bytes; keys with a longer one are not served.
const LONGEST: usize = 1_024;

/// The settings shared by the applications of one declaration.
#[derive(Debug)]
pub(super) struct TreeSettings {
    pub(super) allow: GlobSet,
    pub(super) masks: Masks,
}

/// A key, or the root of all.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ConfigNode {
    /// The key as the file has it.
    name: String,
    /// Whether it has a URI of its own. Without one, it only leads to others.
    is_allowed: bool,
    body: ValueBody,
}

#[derive(Debug, PartialEq)]
enum ValueBody {
    Leaf(Value),
    /// By the text of their keys in a URI.
    Members(BTreeMap<String, ConfigNode>),
}

/// Asks whether a URI may be seen.
pub(super) type Permits<'a> = dyn Fn(&str) -> bool + 'a;

/// One key on a walk.
pub(super) struct TreeVisit<'v> {
    /// Its path, as in a URI before percent-encoding.
    pub(super) path: &'v str,
    pub(super) uri: &'v str,
    pub(super) node: &'v ConfigNode,
}

/// Makes a tree.
struct Maker<'s> {
    settings: &'s TreeSettings,
    /// An object that is allowed where nothing in it is.
    hollow: Option<String>,
}

impl ConfigNode {
    /// The root of all that is allowed of `members`, and the path of an object that is allowed where nothing in it is.
    pub(super) fn root(members: Map<String, Value>, settings: &TreeSettings) -> (Self, Option<String>) {
        let mut maker = Maker { settings, hollow: None };
        let body = ValueBody::Members(maker.members(members, "", false));
        (Self { name: String::new(), is_allowed: true, body }, maker.hollow)
    }

    /// Whether it is an object without any served key.
    pub(super) fn is_hollow(&self) -> bool {
        matches!(&self.body, ValueBody::Members(members) if members.is_empty())
    }

    /// The key at `path`, if it has a URI; the root at an empty one.
    pub(super) fn find(&self, path: &str) -> Option<&Self> {
        if path.is_empty() {
            return Some(self);
        }
        let mut node = self;
        for text in path.split('/') {
            let ValueBody::Members(members) = &node.body else { return None };
            node = members.get(text)?;
        }
        Some(node).filter(|node| node.is_allowed)
    }

    /// Visits each key that has a URI, one that others are in before those, until `visit` says no.
    pub(super) fn walk(&self, uri: &str, visit: &mut dyn FnMut(TreeVisit<'_>) -> bool) -> bool {
        self.walk_within(&mut String::new(), &mut uri.to_owned(), visit)
    }

    fn walk_within(
        &self,
        path: &mut String,
        uri: &mut String,
        visit: &mut dyn FnMut(TreeVisit<'_>) -> bool,
    ) -> bool {
        let ValueBody::Members(members) = &self.body else { return true };
        for (text, node) in members {
            let path_end = path.len();
            let uri_end = uri.len();
            extend(path, uri, text);
            let goes_on = (!node.is_allowed || visit(TreeVisit { path, uri, node }))
                && node.walk_within(path, uri, visit);
            path.truncate(path_end);
            uri.truncate(uri_end);
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Its value as far as it may be seen; `uri` is its own.
    pub(super) fn value(&self, uri: &str, permits: &Permits<'_>) -> Value {
        match &self.body {
            ValueBody::Leaf(value) => value.clone(),
            ValueBody::Members(members) => {
                let mut shown = Map::new();
                for (text, node) in members {
                    let mut own = uri.to_owned();
                    own.push('/');
                    path::append(&mut own, text);
                    if !permits(&own) {
                        continue;
                    }
                    let value = node.value(&own, permits);
                    let is_empty = value.as_object().is_some_and(Map::is_empty);
                    if node.is_allowed || !is_empty {
                        shown.insert(node.name.clone(), value);
                    }
                }
                Value::Object(shown)
            }
        }
    }

    /// The one value that it is, if it is no object.
    pub(super) fn leaf(&self) -> Option<&Value> {
        match &self.body {
            ValueBody::Leaf(value) => Some(value),
            ValueBody::Members(_) => None,
        }
    }

    /// Whether the same keys are listed, with the same media types.
    pub(super) fn lists_as(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            (ValueBody::Leaf(own), ValueBody::Leaf(other)) => is_plain(own) == is_plain(other),
            (ValueBody::Members(own), ValueBody::Members(other)) => {
                own.len() == other.len()
                    && own.iter().zip(other).all(|((text, own), (other_text, other))| {
                        text == other_text && own.is_allowed == other.is_allowed && own.lists_as(other)
                    })
            }
            _ => false,
        }
    }
}

impl Default for ValueBody {
    fn default() -> Self {
        Self::Members(BTreeMap::new())
    }
}

/// Whether a value is read as plain text, and not as JSON.
pub(super) fn is_plain(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// The text that a value is read as.
pub(super) fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn extend(path: &mut String, uri: &mut String, text: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(text);
    uri.push('/');
    path::append(uri, text);
}

impl Maker<'_> {
    fn members(
        &mut self,
        members: Map<String, Value>,
        above: &str,
        is_masked: bool,
    ) -> BTreeMap<String, ConfigNode> {
        let mut made = BTreeMap::new();
        let is_pair = is_secret_pair(&members);
        for (name, value) in members {
            // A key without a character has no segment; one that holds a secret must not become one.
            if name.is_empty() || name.len() > LONGEST {
                continue;
            }
            let text = path::text(name.as_bytes());
            let path = if above.is_empty() { text.clone() } else { format!("{above}/{text}") };
            let is_masked = is_masked || is_secret(&name) || is_pair && is_value(&name);
            if path.len() <= LONGEST
                && let Some(node) = self.node(name, value, &path, is_masked)
            {
                made.insert(text, node);
            }
        }
        made
    }

    fn node(&mut self, name: String, value: Value, path: &str, is_masked: bool) -> Option<ConfigNode> {
        let is_allowed = self.settings.allow.is_match(path);
        let body = match value {
            Value::Object(members) => {
                let was_empty = members.is_empty();
                let members = self.members(members, path, is_masked);
                if members.is_empty() && !is_allowed {
                    return None;
                }
                if members.is_empty() && !was_empty && self.hollow.is_none() {
                    self.hollow = Some(path.to_owned());
                }
                ValueBody::Members(members)
            }
            _ if !is_allowed => return None,
            value if self.settings.masks.reveals(path) => ValueBody::Leaf(value),
            _ if is_masked => ValueBody::Leaf(MASK.into()),
            value => ValueBody::Leaf(covered(value, &self.settings.masks)),
        };
        // Only what is served is looked at.
        if self.settings.masks.finds_in(&name) {
            return None;
        }
        Some(ConfigNode { name, is_allowed, body })
    }
}

/// A value that is not masked as a whole, without the secrets in it.
fn covered(value: Value, masks: &Masks) -> Value {
    match value {
        Value::String(text) => match masks.text(&text) {
            Cow::Borrowed(_) => Value::String(text),
            Cow::Owned(covered) => Value::String(covered),
        },
        Value::Array(items) => {
            // Arguments of a command: the one behind `--password` is the password.
            let mut is_argument = false;
            let shown = items.into_iter().map(|item| {
                let is_masked = std::mem::replace(&mut is_argument, is_secret_flag(&item));
                if is_masked && item.is_string() { MASK.into() } else { covered(item, masks) }
            });
            shown.collect()
        }
        Value::Object(members) => {
            let is_pair = is_secret_pair(&members);
            let shown = members.into_iter().filter(|(name, _)| !masks.finds_in(name)).map(|(name, value)| {
                let is_masked = is_secret(&name) || is_pair && is_value(&name);
                let value = if is_masked { MASK.into() } else { covered(value, masks) };
                (name, value)
            });
            Value::Object(shown.collect())
        }
        other => other,
    }
}

/// Whether an object is a name that says secret, with its value: `{name: DB_PASSWORD, value: …}`.
fn is_secret_pair(members: &Map<String, Value>) -> bool {
    members.iter().any(|(key, name)| {
        let is_name = key.eq_ignore_ascii_case("name") || key.eq_ignore_ascii_case("key");
        is_name && name.as_str().is_some_and(is_secret)
    })
}

fn is_value(key: &str) -> bool {
    key.eq_ignore_ascii_case("value")
}

/// Whether an argument of a command is an option that the next one is the secret value of: `--db-password`.
fn is_secret_flag(item: &Value) -> bool {
    item.as_str().is_some_and(|text| text.starts_with('-') && !text.contains(['=', ' ']) && is_secret(text))
}
