//! A document of YAML as values that JSON can represent.
//!
//! ```text
//!   text ──granit-parser──▶ events ──compose──▶ nodes, shared by their aliases ──expand──▶ YamlValue, each alias counted
//! ```
//!
//! Law: the text is hostile. Values, bytes and depth are limited, aliases and merged keys counted each time they are used. A
//! sentence in an error quotes nothing of the text, which may hold a secret; only `detail` may name a key.

mod compose;
mod scalar;

use serde_json::Number;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::rc::Rc;

/// The rules by which a plain scalar, one without quotes, has a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlSchema {
    /// YAML 1.1 as PyYAML reads it: `yes` is a boolean, `0644` is 420, `1:30` is 90, `1e3` is a text.
    Yaml11,
    /// The core schema of YAML 1.2: `yes`, `1:30` and `1_000` are texts, `0644` is 644, `0o644` is 420, `1e3` is 1000.0.
    Core,
}

/// The limits of a document.
#[derive(Clone, Copy, Debug)]
pub struct YamlLimits {
    /// Values, those that an alias repeats counted each time.
    pub values: usize,
    /// Bytes in keys and texts, those that an alias repeats counted each time.
    pub bytes: usize,
    /// Nested lists and objects.
    pub depth: usize,
}

/// A value. What JSON has no number for, such as `.inf` or one beyond 64 bits, is the text as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlValue {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A finite number.
    Number {
        /// Its value.
        number: Number,
        /// Its notation in the text, if that differs: `007`, `1.10`.
        written: Option<Box<str>>,
    },
    /// A text; also a value with a tag that is not YAML's own, and a date.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object, in the order of the text. No key occurs twice. Keys are as written, but that of a null is `null`.
    Object(Vec<(String, Self)>),
}

/// Why a text has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlFault {
    /// Half a sentence, such as `it is not YAML`, that quotes nothing of the text.
    pub what: &'static str,
    /// The parser's reason, or the key that stands twice. Not for values that are served: a key may be a secret.
    pub detail: Option<String>,
    /// The line, from 1, and the column, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

/// The text is not in the syntax.
pub(super) const NOT_YAML: &str = "it is not YAML";
// It is nested deeper than [`YamlLimits::depth`].
pub(super) const TOO_DEEP: &str = "it is nested too deeply";
/// It has more values than [`YamlLimits::values`].
pub(super) const TOO_MANY: &str = "it has too many values";
/// Its texts have more bytes than [`YamlLimits::bytes`].
pub(super) const TOO_LONG: &str = "its texts are too long";
/// A key stands twice in an object.
pub(super) const TWICE: &str = "a key stands twice";
const DOCUMENTS: &str = "it has more than one document; only one can be read";
const NO_KEY: &str = "a key is a list or an object";
const TAG: &str = "a value does not fit its tag";
const MERGE: &str = "what is merged is no object";
const OWN_ALIAS: &str = "an alias stands within what it names";

/// The value of a text with one document; null if it is empty.
///
/// # Errors
/// It is not YAML, has more than one document, a key twice or one that is no text, or exceeds a limit.
pub fn read_yaml(text: &str, schema: YamlSchema, limits: YamlLimits) -> Result<YamlValue, YamlFault> {
    let root = compose::document(text, schema, limits)?;
    let mut expansion = Expansion { values: limits.values, bytes: limits.bytes, depth: limits.depth };
    expansion.value(root, limits.depth)
}

impl From<YamlValue> for serde_json::Value {
    fn from(value: YamlValue) -> Self {
        match value {
            YamlValue::Null => Self::Null,
            YamlValue::Bool(value) => Self::Bool(value),
            YamlValue::Number { number, .. } => Self::Number(number),
            YamlValue::Text(text) => Self::String(text),
            YamlValue::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            YamlValue::Object(members) => {
                Self::Object(members.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}

/// The position of a node in the text.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    line: u64,
    column: u64,
}

impl Position {
    fn fault(self, what: &'static str) -> YamlFault {
        YamlFault { what, detail: None, line: self.line, column: self.column }
    }
}

/// A node of the document. Aliases share it.
#[derive(Clone, Debug)]
struct Node {
    at: Position,
    body: YamlBody,
}

#[derive(Clone, Debug)]
enum YamlBody {
    /// No list and no object.
    Scalar(YamlValue),
    List(Vec<Rc<Node>>),
    Object(Vec<Member>),
}

#[derive(Clone, Debug)]
struct Member {
    /// `None`: the members of the value are merged into the object.
    key: Option<String>,
    value: Rc<Node>,
}

/// The remaining amounts of the limits while aliases are replaced by their nodes.
struct Expansion {
    values: usize,
    bytes: usize,
    depth: usize,
}

impl Expansion {
    /// `depth` is how many levels may be inside.
    fn value(&mut self, node: Rc<Node>, depth: usize) -> Result<YamlValue, YamlFault> {
        // What no alias shares is moved.
        let Node { at, body } = Rc::unwrap_or_clone(node);
        self.values = self.values.checked_sub(1).ok_or_else(|| at.fault(TOO_MANY))?;
        let within = || depth.checked_sub(1).ok_or_else(|| at.fault(TOO_DEEP));
        match body {
            YamlBody::Scalar(value) => {
                if let YamlValue::Text(text) = &value {
                    self.count(text, at)?;
                }
                Ok(value)
            }
            YamlBody::List(items) => {
                let within = within()?;
                let items = items.into_iter().map(|item| self.value(item, within));
                items.collect::<Result<_, _>>().map(YamlValue::List)
            }
            YamlBody::Object(members) => {
                let within = within()?;
                if members.iter().any(|member| member.key.is_none()) {
                    return self.merged(members, within);
                }
                let members = members.into_iter().filter_map(|member| Some((member.key?, member.value)));
                let members = members.map(|(key, value)| self.member(key, value, within));
                members.collect::<Result<_, _>>().map(YamlValue::Object)
            }
        }
    }

    fn member(
        &mut self,
        key: String,
        value: Rc<Node>,
        depth: usize,
    ) -> Result<(String, YamlValue), YamlFault> {
        self.count(&key, value.at)?;
        Ok((key, self.value(value, depth)?))
    }

    /// The members of an object with those that are merged into it.
    fn merged(&mut self, members: Vec<Member>, depth: usize) -> Result<YamlValue, YamlFault> {
        let mut all = Vec::new();
        self.flatten(&members, self.depth, &mut all)?;
        drop(members);
        // The last of a key counts, and stands where the first stood.
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut kept: Vec<(String, Rc<Node>)> = Vec::new();
        for (key, value) in all {
            match places.entry(key) {
                Slot::Vacant(place) => {
                    kept.push((place.key().clone(), value));
                    place.insert(kept.len() - 1);
                }
                Slot::Occupied(place) => {
                    if let Some(known) = kept.get_mut(*place.get()) {
                        known.1 = value;
                    }
                }
            }
        }
        let members = kept.into_iter().map(|(key, value)| self.member(key, value, depth));
        members.collect::<Result<_, _>>().map(YamlValue::Object)
    }

    /// Appends the members of an object, weakest first: merged objects, the first of a list last, and then its own
    /// members.
    fn flatten(
        &mut self,
        members: &[Member],
        depth: usize,
        all: &mut Vec<(String, Rc<Node>)>,
    ) -> Result<(), YamlFault> {
        for Member { value, .. } in members.iter().filter(|member| member.key.is_none()) {
            match &value.body {
                YamlBody::List(items) => {
                    for item in items.iter().rev() {
                        self.flatten_one(item, depth, all)?;
                    }
                }
                _ => self.flatten_one(value, depth, all)?,
            }
        }
        for Member { key, value } in members {
            let Some(key) = key else { continue };
            self.values = self.values.checked_sub(1).ok_or_else(|| value.at.fault(TOO_MANY))?;
            self.count(key, value.at)?;
            all.push((key.clone(), value.clone()));
        }
        Ok(())
    }

    fn flatten_one(
        &mut self,
        node: &Rc<Node>,
        depth: usize,
        all: &mut Vec<(String, Rc<Node>)>,
    ) -> Result<(), YamlFault> {
        let YamlBody::Object(members) = &node.body else { return Err(node.at.fault(MERGE)) };
        let depth = depth.checked_sub(1).ok_or_else(|| node.at.fault(TOO_DEEP))?;
        self.values = self.values.checked_sub(1).ok_or_else(|| node.at.fault(TOO_MANY))?;
        self.flatten(members, depth, all)
    }

    fn count(&mut self, text: &str, at: Position) -> Result<(), YamlFault> {
        self.bytes = self.bytes.checked_sub(text.len()).ok_or_else(|| at.fault(TOO_LONG))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
