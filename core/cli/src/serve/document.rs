//! The description of what `serve` serves: from the words of the command line, or from a file.
//!
//! Law: every file gives either a document, or an error of one sentence that names the key.

use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::http::Rules;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::option::{Named, OptionError, OptionValue};
use mcp_resources_engine::suggest::unexpected;
use mcp_resources_host::transport::{document_value, read_policy};
use mcp_resources_providers::declared;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const KEYS: [&str; 7] = ["name", "version", "title", "description", "instructions", "providers", "guard"];
/// The keys of `guard` that are not the policy's own.
const GUARD_KEYS: [&str; 3] = ["limits", "http", "audit"];

/// The providers and the rules of a server. Nothing is opened yet.
#[derive(Debug)]
pub struct Document {
    /// The members of a file that describe the server, but for `name` as texts.
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) instructions: Option<String>,
    /// The providers by their kinds, in the order of their first entries.
    pub(super) providers: Vec<Declared>,
    pub(super) guard: Guard,
    /// The path of the file.
    file: Option<PathBuf>,
    /// The kinds of all entries, in their order in the file.
    order: Vec<String>,
}

/// All entries of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declared {
    pub(super) kind: String,
    pub(super) entries: Vec<OptionValue>,
}

/// The access policy, with the limits and options beside it.
#[derive(Debug, Default)]
pub(super) struct Guard {
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    pub(super) rules: Rules,
    pub(super) audit: Option<PathBuf>,
    /// The text of the file, to detect changes.
    pub(super) source: Value,
}

impl Document {
    /// The document for words: `KIND:ARGUMENT`, or a directory.
    ///
    /// # Errors
    /// One sentence that names the word.
    pub(super) fn of_words(words: &[String]) -> Result<Self, String> {
        let mut document = Self::empty("mcp-resources".into());
        for word in words {
            let (kind, options) = declared::word(word).map_err(|error| error.to_string())?;
            document.declare(&kind, options);
        }
        Ok(document)
    }

    /// The document of a file. Its relative paths begin at its folder.
    ///
    /// # Errors
    /// One sentence that names the file, and the key in it.
    pub(super) fn of_file(path: &Path) -> Result<Self, String> {
        let named = |reason: String| format!("{}: {reason}", path.display());
        let value = document_value(path).map_err(named)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let document = Self::parse(value, stem.as_deref().unwrap_or("mcp-resources")).map_err(named)?;
        Ok(Self { file: Some(path.into()), ..document })
    }

    /// The error message, after the name of the file.
    pub(super) fn named(&self, reason: String) -> String {
        match &self.file {
            Some(path) => format!("{}: {reason}", path.display()),
            None => reason,
        }
    }

    /// The error message for the entry `number` of a kind, after the name of the file and the place in it.
    pub(super) fn named_entry(&self, kind: &str, number: usize, reason: String) -> String {
        let of_kind = self.order.iter().enumerate().filter(|(_, own)| *own == kind);
        match of_kind.map(|(at, _)| at).nth(number) {
            Some(at) if self.file.is_some() => self.named(format!("providers[{at}]: {reason}")),
            _ => reason,
        }
    }

    /// The document for the value of a file. `name` is the name of the server if the file has none.
    ///
    /// # Errors
    /// One sentence that names the key.
    pub fn parse(value: Value, name: &str) -> Result<Self, String> {
        let Value::Object(members) = value else {
            return Err("it must be an object with the key \"providers\"".into());
        };
        if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(unexpected("key", key, &KEYS));
        }
        let text = |key: &str| match members.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("{key} is {other}, expected a text")),
        };
        let mut document = Self::empty(text("name")?.unwrap_or_else(|| name.into()));
        document.version = text("version")?;
        document.title = text("title")?;
        document.description = text("description")?;
        document.instructions = text("instructions")?;
        let providers = members.get("providers").ok_or("the key \"providers\" is missing")?;
        let Value::Array(providers) = providers else {
            return Err("providers must be a list, such as [{files: {roots: {project: .}}}]".into());
        };
        for (at, entry) in providers.iter().enumerate() {
            let (kind, options) = entry_of(entry).map_err(|reason| format!("providers[{at}]: {reason}"))?;
            document.declare(kind, options_of(options));
        }
        if let Some(guard) = members.get("guard") {
            document.guard = Guard::parse(guard)?;
        }
        Ok(document)
    }

    /// Each entry: its kind, and its options.
    pub fn declared(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.providers.iter().flat_map(|all| all.entries.iter().map(|entry| (all.kind.as_str(), entry)))
    }

    fn empty(name: String) -> Self {
        Self {
            name,
            version: None,
            title: None,
            description: None,
            instructions: None,
            providers: Vec::new(),
            guard: Guard::default(),
            file: None,
            order: Vec::new(),
        }
    }

    /// Adds an entry to its kind.
    pub(super) fn declare(&mut self, kind: &str, options: OptionValue) {
        self.order.push(kind.into());
        match self.providers.iter_mut().find(|declared| declared.kind == kind) {
            Some(declared) => declared.entries.push(options),
            None => self.providers.push(Declared { kind: kind.into(), entries: vec![options] }),
        }
    }
}

impl Guard {
    fn parse(value: &Value) -> Result<Self, String> {
        let source = value.clone();
        let mut members = match value {
            Value::Null => Map::new(),
            Value::Object(members) => members.clone(),
            other => return Err(format!("guard is {other}, expected an object with the keys of a policy")),
        };
        let [limits, http, audit] = GUARD_KEYS.map(|key| members.remove(key).unwrap_or(Value::Null));
        let mut guard = Self { source, ..Self::default() };
        set("guard.limits", &mut guard.limits, limits)?;
        set("guard.http", &mut guard.rules, http)?;
        guard.audit = match audit {
            Value::Null => None,
            Value::String(path) if !path.is_empty() => Some(path.into()),
            other => return Err(format!("guard.audit is {other}, expected the path of a file")),
        };
        guard.policy = read_policy(&Value::Object(members).to_string()).map_err(|error| {
            match error.field.is_empty() {
                true => format!("guard: {}", error.reason),
                false => format!("guard.{}: {}", error.field, error.reason),
            }
        })?;
        Ok(guard)
    }
}

/// Sets options by their names.
fn set(key: &str, options: &mut impl Named, value: Value) -> Result<(), String> {
    let members = match value {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other => return Err(format!("{key} is {other}, expected an object")),
    };
    let refused = |error: OptionError| format!("{key}: {error}");
    members.iter().try_for_each(|(name, value)| options.set(name, options_of(value)).map_err(refused))
}

/// The one kind of an entry, and its options.
fn entry_of(entry: &Value) -> Result<(&str, &Value), String> {
    let members = entry.as_object().filter(|members| members.len() == 1);
    let (kind, options) = members.and_then(|members| members.iter().next()).ok_or_else(|| {
        format!(
            "it is {entry}, expected one kind of provider with its options, such as {{files: {{roots: .}}}}"
        )
    })?;
    Ok((kind, options))
}

/// A value of a file as the value of an option.
fn options_of(value: &Value) -> OptionValue {
    match value {
        Value::Null => OptionValue::None,
        Value::Bool(truth) => OptionValue::Bool(*truth),
        Value::Number(number) => match number.as_i128() {
            Some(whole) => OptionValue::Integer(whole),
            None => number.as_f64().map_or(OptionValue::Other, OptionValue::Number),
        },
        Value::String(text) => OptionValue::Text(text.clone()),
        Value::Array(items) => OptionValue::List(items.iter().map(options_of).collect()),
        Value::Object(members) => OptionValue::Members(
            members.iter().map(|(name, value)| (name.clone(), options_of(value))).collect(),
        ),
    }
}
