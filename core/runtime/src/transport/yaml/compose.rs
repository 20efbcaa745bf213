//! From the parser's events to nodes.
//!
//! Law: the number of nodes and their depth are limited while they are built, and an alias is only a reference to its
//! node.

use super::scalar::{self, Kind};
use super::{
    DOCUMENTS, MERGE, Member, NO_KEY, NOT_YAML, Node, OWN_ALIAS, Position, TAG, TOO_DEEP, TOO_MANY, TWICE,
    YamlBody, YamlFault, YamlLimits, YamlSchema, YamlValue,
};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// The namespace of YAML's own tags.
const NAMESPACE: &str = "tag:yaml.org,2002:";

/// The node of the one document; that of a null if there is none.
pub(super) fn document(text: &str, schema: YamlSchema, limits: YamlLimits) -> Result<Rc<Node>, YamlFault> {
    let options = granit_parser::options! {
        emit_comments: false,
        // One more than is allowed, so that the fault is ours and has the place of the level that is too much.
        flow_nesting_limit: limits.depth.saturating_add(1),
        block_nesting_limit: limits.depth.saturating_add(1),
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut composer = Composer { parser, schema, values: limits.values, anchors: HashMap::new() };
    let mut root = None;
    loop {
        let (event, at) = composer.next()?;
        match event {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) if root.is_some() => return Err(at.fault(DOCUMENTS)),
            Event::DocumentStart(..) => {
                let (event, at) = composer.next()?;
                root = Some(composer.node(event, at, limits.depth)?);
            }
            Event::StreamEnd => break,
            _ => return Err(at.fault(NOT_YAML)),
        }
    }
    let empty = Node { at: Position { line: 1, column: 1 }, body: YamlBody::Scalar(YamlValue::Null) };
    Ok(root.unwrap_or_else(|| Rc::new(empty)))
}

struct Composer<'t> {
    parser: Parser<'t, StrInput<'t>>,
    schema: YamlSchema,
    /// The number of nodes that are still allowed.
    values: usize,
    /// The completed nodes with an anchor.
    anchors: HashMap<usize, Rc<Node>>,
}

/// An event and where it begins.
type Placed<'t> = (Event<'t>, Position);

impl<'t> Composer<'t> {
    fn next(&mut self) -> Result<Placed<'t>, YamlFault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, begin(&span))),
            Some(Err(error)) => Err(scan_fault(&error)),
            None => Ok((Event::StreamEnd, Position::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, at: Position, depth: usize) -> Result<Rc<Node>, YamlFault> {
        if let Event::Alias(anchor) = event {
            return self.anchors.get(&anchor).cloned().ok_or_else(|| at.fault(OWN_ALIAS));
        }
        self.values = self.values.checked_sub(1).ok_or_else(|| at.fault(TOO_MANY))?;
        let (anchor, body) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = kind(tag.as_deref());
                let value = scalar::value(text, style == ScalarStyle::Plain, &kind, self.schema);
                (anchor, YamlBody::Scalar(value.ok_or_else(|| at.fault(TAG))?))
            }
            Event::SequenceStart(_, anchor, tag) => {
                let within = depth.checked_sub(1).ok_or_else(|| at.fault(TOO_DEEP))?;
                fits(tag.as_deref(), &["seq", "omap", "pairs"], at)?;
                (anchor, YamlBody::List(self.items(within)?))
            }
            Event::MappingStart(_, anchor, tag) => {
                let within = depth.checked_sub(1).ok_or_else(|| at.fault(TOO_DEEP))?;
                fits(tag.as_deref(), &["map", "set"], at)?;
                (anchor, YamlBody::Object(self.members(within)?))
            }
            _ => return Err(at.fault(NOT_YAML)),
        };
        let node = Rc::new(Node { at, body });
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Rc<Node>>, YamlFault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, at) => items.push(self.node(event, at, depth)?),
            }
        }
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, YamlFault> {
        let mut members = Vec::new();
        let mut places = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key = self.key(event, at)?;
            let (event, value_at) = self.next()?;
            let value = self.node(event, value_at, depth)?;
            let is_merged = matches!(value.body, YamlBody::Object(_) | YamlBody::List(_));
            if key.is_none() && !is_merged {
                return Err(value_at.fault(MERGE));
            }
            members.push(Member { key, value });
            places.push(at);
        }
        match repeated(&members) {
            Some((place, key)) => {
                let at = places.get(place).copied().unwrap_or_default();
                Err(YamlFault { detail: Some(key), ..at.fault(TWICE) })
            }
            None => Ok(members),
        }
    }

    /// A key as text; `None` is the key that merges.
    fn key(&mut self, event: Event<'t>, at: Position) -> Result<Option<String>, YamlFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = kind(tag.as_deref());
                let is_plain = style == ScalarStyle::Plain;
                let value = scalar::value(text.clone(), is_plain, &kind, self.schema);
                let value = value.ok_or_else(|| at.fault(TAG))?;
                if anchor != 0 {
                    let body = YamlBody::Scalar(value.clone());
                    self.anchors.insert(anchor, Rc::new(Node { at, body }));
                }
                Ok(match value {
                    YamlValue::Text(text) if is_plain && kind == Kind::Plain && text == "<<" => None,
                    YamlValue::Null => Some("null".into()),
                    _ => Some(text.into_owned()),
                })
            }
            Event::Alias(anchor) => {
                let named = self.anchors.get(&anchor).ok_or_else(|| at.fault(OWN_ALIAS))?;
                match &named.body {
                    YamlBody::Scalar(value) => Ok(Some(scalar::key(value))),
                    _ => Err(at.fault(NO_KEY)),
                }
            }
            _ => Err(at.fault(NO_KEY)),
        }
    }
}

/// The second of two members with the same key, and the key.
fn repeated(members: &[Member]) -> Option<(usize, String)> {
    let named = members.iter().enumerate().filter_map(|(at, member)| Some((member.key.as_deref()?, at)));
    let mut keys: Vec<(&str, usize)> = named.collect();
    keys.sort_unstable();
    let twice = keys.windows(2).filter_map(|pair| match pair {
        [(one, _), (other, at)] if one == other => Some((*at, *other)),
        _ => None,
    });
    twice.min().map(|(at, key)| (at, key.to_owned()))
}

/// The kind of value that the tag of a scalar requires.
fn kind(tag: Option<&Tag>) -> Kind {
    let Some(tag) = tag else { return Kind::Plain };
    match tag.suffix_in_namespace(NAMESPACE).as_deref() {
        Some("int") => Kind::Int,
        Some("float") => Kind::Float,
        Some("bool") => Kind::Bool,
        Some("null") => Kind::Null,
        Some("seq" | "map" | "set" | "omap" | "pairs") => Kind::Collection,
        // `!!str`, `!!binary` and `!!timestamp`, and tags of a program.
        _ => Kind::Text,
    }
}

/// Whether a list or an object may have its tag: one of these, or one of a program.
fn fits(tag: Option<&Tag>, allowed: &[&str], at: Position) -> Result<(), YamlFault> {
    const OWN: [&str; 13] = [
        "seq",
        "omap",
        "pairs",
        "map",
        "set",
        "str",
        "int",
        "float",
        "bool",
        "null",
        "binary",
        "timestamp",
        "merge",
    ];
    let name: Option<Cow<'_, str>> = tag.and_then(|tag| tag.suffix_in_namespace(NAMESPACE));
    match name {
        Some(name) if OWN.contains(&&*name) && !allowed.contains(&&*name) => Err(at.fault(TAG)),
        _ => Ok(()),
    }
}

fn begin(span: &Span) -> Position {
    position(span.start.line(), span.start.col())
}

fn position(line: usize, column: usize) -> Position {
    let from_one = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Position { line: from_one(line), column: from_one(column).saturating_add(1) }
}

fn scan_fault(error: &ScanError) -> YamlFault {
    let at = position(error.marker().line(), error.marker().col());
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => at.fault(TOO_DEEP),
        kind => YamlFault { detail: Some(kind.to_string()), ..at.fault(NOT_YAML) },
    }
}
