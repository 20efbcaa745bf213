//! The description of a server: from the words of a command line, or from a file.
//!
//! Law: every file gives either a document, or an error of one sentence that names the key.

use crate::auth::{AuthSection, FileState, TlsSection};
use crate::bus;
use crate::secrets;
use crate::tokens::is_group;
use mcp_resources_engine::engine::ServerInfo;
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::http::Rules;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::option::{NamedOptions, OptionError, OptionValue};
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::suggest::unexpected;
use mcp_resources_providers::registry;
use mcp_resources_runtime::transport::{AuditFile, AuditRotation, document_value, read_policy};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const KEYS: [&str; 12] = [
    "name",
    "version",
    "title",
    "description",
    "instructions",
    "tools",
    "providers",
    "guard",
    "auth",
    "tls",
    "bus",
    "keys",
];
/// The keys of `guard`: those of a policy, and behind them three more.
const GUARD_KEYS: [&str; 14] = [
    "allow",
    "deny",
    "scopes",
    "groups",
    "principals",
    "tools",
    "prompts",
    "rate",
    "concurrency",
    "max_size",
    "redact",
    "limits",
    "http",
    "audit",
];

/// The providers and the rules of a server, before anything is opened.
#[derive(Debug)]
pub struct ServeDocument {
    pub(crate) about: ServerSection,
    /// The providers by their kinds, in the order of their first entries.
    pub(crate) providers: Vec<DeclaredSources>,
    pub(crate) guard: GuardSection,
    pub(crate) auth: Option<AuthSection>,
    pub(crate) tls: Option<TlsSection>,
    /// The URL of the bus to the other processes of the server.
    pub(crate) bus: Option<String>,
    /// The keys that they share.
    pub(crate) keys: Vec<SealKey>,
    /// By kind, in the order of its entries: the scopes and groups of those that may know the source; `None` for everybody.
    audiences: Vec<(String, Option<Vec<String>>)>,
    /// The path of the file.
    file: Option<PathBuf>,
    /// The file's state before it was read, so that no later change is taken for this one.
    pub(crate) seen: Option<FileState>,
    /// The kinds of all entries, in their order in the file.
    order: Vec<String>,
}

/// The members of a file that describe the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerSection {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) instructions: Option<String>,
    /// Whether the resources are offered as tools too. Default `true`.
    pub(crate) tools: bool,
}

/// All entries of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredSources {
    pub(crate) kind: String,
    pub(crate) entries: Vec<OptionValue>,
}

/// The access policy, with the limits and options beside it.
#[derive(Debug, Default)]
pub(crate) struct GuardSection {
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) audit: Option<AuditSection>,
    /// The text of the file, to detect changes.
    pub(crate) source: Value,
}

/// The file of the audit log.
#[derive(Clone, Debug)]
pub(crate) struct AuditSection {
    pub(crate) file: PathBuf,
    pub(crate) rotation: Option<AuditRotation>,
}

impl ServeDocument {
    /// The document for words: `KIND:ARGUMENT`, or a directory.
    ///
    /// # Errors
    /// One sentence that names the word.
    pub fn of_words(words: &[String]) -> Result<Self, String> {
        let mut document = Self::empty("mcp-resources".into());
        for word in words {
            let (kind, options) = registry::parse_shorthand(word).map_err(|error| error.to_string())?;
            document.declare(&kind, options, None);
        }
        Ok(document)
    }

    /// The document of a file. Its relative paths begin at its folder.
    ///
    /// # Errors
    /// One sentence that names the file, and the key in it.
    pub fn of_file(path: &Path) -> Result<Self, String> {
        let named = |reason: String| format!("{}: {reason}", path.display());
        let seen = FileState::at(path);
        let folder = folder_of(path);
        let value = document_value(path).and_then(|value| secrets::resolved(value, folder)).map_err(named)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let document = Self::parse(value, stem.as_deref().unwrap_or("mcp-resources")).map_err(named)?;
        Ok(Self { file: Some(path.into()), seen, ..document })
    }

    /// Whether clients must prove who they are.
    pub fn has_auth(&self) -> bool {
        self.auth.is_some()
    }

    /// Sets the URL of the bus, in the place of the file's.
    pub fn set_bus(&mut self, url: String) {
        self.bus = Some(url);
    }

    /// Whether it has a certificate.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The path of its file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The folder at which relative paths begin: that of the file, or the current one.
    pub fn folder(&self) -> PathBuf {
        self.file.as_deref().map_or(PathBuf::from("."), |path| folder_of(path).into())
    }

    /// The error message, after the name of the file.
    pub fn named(&self, reason: String) -> String {
        match &self.file {
            Some(path) => format!("{}: {reason}", path.display()),
            None => reason,
        }
    }

    /// The error message for the entry `number` of a kind, after the name of the file and the place in it.
    pub(crate) fn named_entry(&self, kind: &str, number: usize, reason: String) -> String {
        let of_kind = self.order.iter().enumerate().filter(|(_, own)| *own == kind);
        match of_kind.map(|(at, _)| at).nth(number) {
            Some(at) if self.file.is_some() => {
                let colon = if reason.starts_with('.') { "" } else { ": " };
                self.named(format!("providers[{at}]{colon}{reason}"))
            }
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
            Some(other) => Err(format!("{key} is {}, expected a text", options_of(other))),
        };
        let mut document = Self::empty(text("name")?.unwrap_or_else(|| name.into()));
        document.about.version = text("version")?;
        document.about.title = text("title")?;
        document.about.description = text("description")?;
        document.about.instructions = text("instructions")?;
        document.about.tools = match members.get("tools") {
            None => true,
            Some(Value::Bool(tools)) => *tools,
            Some(other) => return Err(format!("tools is {}, expected true or false", options_of(other))),
        };
        let providers = members.get("providers").ok_or("the key \"providers\" is missing")?;
        let Value::Array(providers) = providers else {
            return Err("providers must be a list, such as [{files: {roots: {project: .}}}]".into());
        };
        for (at, entry) in providers.iter().enumerate() {
            let entry = ProviderEntry::parse(entry).map_err(|reason| format!("providers[{at}]{reason}"))?;
            document.declare(entry.kind, options_of(entry.options), entry.audience);
        }
        if let Some(guard) = members.get("guard") {
            document.guard = GuardSection::parse(guard)?;
        }
        document.auth = members.get("auth").map(AuthSection::parse).transpose()?;
        document.tls = members.get("tls").map(TlsSection::parse).transpose()?;
        document.bus = match members.get("bus") {
            None | Some(Value::Null) => None,
            Some(Value::String(url)) => Some(url.clone()),
            Some(_) => return Err("bus is no text, expected a URL such as redis://localhost:6379/0".into()),
        };
        document.keys = members.get("keys").map_or(Ok(Vec::new()), bus::keys)?;
        Ok(document)
    }

    /// Each entry: its kind, and its options.
    pub fn declared(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.providers.iter().flat_map(|all| all.entries.iter().map(|entry| (all.kind.as_str(), entry)))
    }

    /// The scopes and groups of each entry of a kind; `None` for everybody.
    pub(crate) fn audiences(&self, kind: &str) -> Vec<Option<&[String]>> {
        self.audiences
            .iter()
            .filter(|(own, _)| own == kind)
            .map(|(_, audience)| audience.as_deref())
            .collect()
    }

    /// Whether a source exists for some people only.
    pub fn has_audiences(&self) -> bool {
        self.audiences.iter().any(|(_, audience)| audience.is_some())
    }

    fn empty(name: String) -> Self {
        Self {
            about: ServerSection { name, tools: true, ..ServerSection::default() },
            providers: Vec::new(),
            guard: GuardSection::default(),
            auth: None,
            tls: None,
            bus: None,
            keys: Vec::new(),
            audiences: Vec::new(),
            file: None,
            seen: None,
            order: Vec::new(),
        }
    }

    /// Adds an entry to its kind.
    pub(crate) fn declare(&mut self, kind: &str, options: OptionValue, audience: Option<Vec<String>>) {
        self.order.push(kind.into());
        self.audiences.push((kind.into(), audience));
        match self.providers.iter_mut().find(|declared| declared.kind == kind) {
            Some(declared) => declared.entries.push(options),
            None => self.providers.push(DeclaredSources { kind: kind.into(), entries: vec![options] }),
        }
    }
}

impl ServerSection {
    /// Writes these texts into the description of a server.
    pub(crate) fn describe(&self, info: &mut ServerInfo) {
        info.name.clone_from(&self.name);
        info.version = self.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").into());
        info.title.clone_from(&self.title);
        info.description.clone_from(&self.description);
        info.instructions.clone_from(&self.instructions);
    }
}

impl GuardSection {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let source = value.clone();
        if let Some(wrong) = value.get("principals").filter(|given| !given.is_object() && !given.is_null()) {
            let form = "an object with the rules of each name, such as {bob: {deny: [\"**/drafts/**\"]}}";
            return Err(format!("guard.principals is {}, expected {form}", options_of(wrong)));
        }
        let mut members = match value {
            Value::Null => Map::new(),
            Value::Object(members) => members.clone(),
            other => {
                let given = options_of(other);
                return Err(format!("guard is {given}, expected an object with the keys of a policy"));
            }
        };
        if let Some(key) = members.keys().find(|key| !GUARD_KEYS.contains(&key.as_str())) {
            return Err(format!("guard: {}", unexpected("key", key, &GUARD_KEYS)));
        }
        let mut taken = |key: &str| members.remove(key).unwrap_or(Value::Null);
        let limits = taken("limits");
        let http = taken("http");
        let audit = taken("audit");
        let mut guard = Self { source, ..Self::default() };
        set("guard.limits", &mut guard.limits, limits)?;
        if let Some(reason) = no_option_of_http(&http) {
            return Err(format!("guard.http: {reason}"));
        }
        set("guard.http", &mut guard.rules, http)?;
        // Not only when it is served over HTTP: a file is right or wrong, whatever the words of the command are.
        guard.rules.check().map_err(|error| format!("guard.http: {error}"))?;
        guard.audit = match audit {
            Value::Null => None,
            other => Some(AuditSection::parse(other)?),
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

impl AuditSection {
    /// Opens the file. A relative path begins at `folder`.
    pub(crate) fn open(&self, folder: &Path) -> Result<AuditFile, String> {
        let file = AuditFile::open(folder.join(&self.file)).map_err(|error| format!("guard.{error}"))?;
        Ok(match self.rotation {
            Some(rotation) => file.rotated(rotation),
            None => file,
        })
    }

    /// A path, or an object.
    fn parse(value: Value) -> Result<Self, String> {
        const KEYS: [&str; 3] = ["file", "max_bytes", "keep"];
        const KEPT: u32 = 5;
        let wrong = |at: &str, value: &Value, expected: &str| {
            Err(format!("guard.audit{at} is {}, expected {expected}", options_of(value)))
        };
        let members = match value {
            Value::String(path) if !path.is_empty() => return Ok(Self { file: path.into(), rotation: None }),
            Value::Object(members) => members,
            other => return wrong("", &other, "the path of a file"),
        };
        if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("guard.audit: {}", unexpected("key", key, &KEYS)));
        }
        let file = match members.get("file") {
            Some(Value::String(path)) if !path.is_empty() => path.into(),
            other => return wrong(".file", other.unwrap_or(&Value::Null), "the path of a file"),
        };
        let max_bytes = match members.get("max_bytes") {
            None | Some(Value::Null) if members.contains_key("keep") => {
                return Err("guard.audit.keep needs max_bytes, the size at which a new file begins".into());
            }
            None | Some(Value::Null) => return Ok(Self { file, rotation: None }),
            Some(value) => value.as_u64().filter(|bytes| *bytes > 0),
        };
        let keep = members.get("keep").map_or(Some(KEPT), |value| {
            value.as_u64().filter(|keep| *keep <= 1_000).and_then(|keep| u32::try_from(keep).ok())
        });
        let given = |key: &str| members.get(key).unwrap_or(&Value::Null);
        match (max_bytes, keep) {
            (None, _) => wrong(".max_bytes", given("max_bytes"), "a number of bytes, such as 10000000"),
            (_, None) => wrong(".keep", given("keep"), "how many older files stay, at most 1000"),
            (Some(max_bytes), Some(keep)) => {
                Ok(Self { file, rotation: Some(AuditRotation { max_bytes, keep }) })
            }
        }
    }
}

/// Why a member of `guard.http` is none, where the name is the right one for another program. Said before the values of others
/// are looked at.
fn no_option_of_http(http: &Value) -> Option<&'static str> {
    const REASONS: [(&str, &str); 4] = [
        ("auth", "there is no option \"auth\" here; write auth beside guard, as auth: {tokens: FILE}"),
        (
            "host",
            "there is no option \"host\"; give it with the command, as --http HOST:PORT; \"hosts\" are the Host headers that it \
             accepts",
        ),
        ("port", "there is no option \"port\"; give it with the command, as --http PORT"),
        ("tls", "there is no option \"tls\" here; write tls beside guard, as tls: {cert: FILE, key: FILE}"),
    ];
    let members = http.as_object()?;
    REASONS
        .iter()
        .find(|(name, _)| members.get(*name).is_some_and(|value| !value.is_null()))
        .map(|(_, reason)| *reason)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Sets options by their names.
fn set(key: &str, options: &mut impl NamedOptions, value: Value) -> Result<(), String> {
    let members = match value {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other => return Err(format!("{key} is {}, expected an object", options_of(&other))),
    };
    let refused = |error: OptionError| format!("{key}: {error}");
    members.iter().try_for_each(|(name, value)| options.set(name, options_of(value)).map_err(refused))
}

/// An entry of `providers`.
struct ProviderEntry<'v> {
    kind: &'v str,
    options: &'v Value,
    audience: Option<Vec<String>>,
}

impl<'v> ProviderEntry<'v> {
    /// An error has the keys of an entry without their values: one of them may be the URL of a database.
    fn parse(entry: &'v Value) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected one kind of provider with its options below it, such as {files: {roots: .}}";
        let Value::Object(members) = entry else {
            return Err(format!(": it is {}, {EXPECTED}", options_of(entry)));
        };
        let audience = members.get("for").map(audience).transpose()?;
        let mut all = members.iter().filter(|(key, _)| *key != "for");
        match (all.next(), all.next()) {
            (Some((kind, options)), None) => Ok(Self { kind, options, audience }),
            (None, _) => Err(format!(": it has no key, {EXPECTED}")),
            _ => {
                let keys: Vec<String> = members.keys().map(|key| format!("{key:?}")).collect();
                Err(format!(": it has the keys {}, {EXPECTED}", keys.join(", ")))
            }
        }
    }
}

/// The value of `for`.
fn audience(value: &Value) -> Result<Vec<String>, String> {
    let wrong = |given: &Value| {
        format!(".for is {}, expected a list of scopes or groups, such as [engineering]", options_of(given))
    };
    let items = match value {
        Value::String(_) => std::slice::from_ref(value),
        Value::Array(items) => items.as_slice(),
        other => return Err(wrong(other)),
    };
    if items.is_empty() {
        return Err(
            ".for is empty, so nobody would know the source; write its scopes or groups, or leave for out"
                .into(),
        );
    }
    let name = |item: &Value| {
        item.as_str().filter(|text| is_group(text)).map(str::to_owned).ok_or_else(|| wrong(item))
    };
    items.iter().map(name).collect()
}

/// A value of a file as the value of an option.
pub(crate) fn options_of(value: &Value) -> OptionValue {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(value: Value) -> String {
        ServeDocument::parse(value, "test").unwrap_err()
    }

    // S-01, S-20: an entry that is wrong is described without its values: a password may be one of them.
    #[test]
    fn values_of_a_wrong_entry_are_not_quoted() {
        let url = "postgres://me:hunter2@host/x";
        for (entry, said) in [
            (
                json!({"db": null, "databases": {"shop": {"url": url}}}),
                "it has the keys \"databases\", \"db\"",
            ),
            (json!({"kind": "db", "password": "hunter2"}), "it has the keys \"kind\", \"password\""),
            (json!([url]), "it is a list, expected one kind of provider with its options"),
            (json!({}), "it has no key"),
            (json!("files:."), "it is \"files:.\""),
        ] {
            let error = wrong(json!({"providers": [entry]}));
            assert!(error.starts_with(&format!("providers[0]: {said}")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(
            wrong(json!({"providers": [], "guard": [url]})),
            "guard is a list, expected an object with the keys of a policy"
        );
        assert_eq!(
            wrong(json!({"providers": [], "title": {"a": url}})),
            "title is an object, expected a text"
        );
    }

    // S-01: a misspelled key of the guard is named with the nearest one, also where it is not of a policy.
    #[test]
    fn keys_of_the_guard_are_known() {
        let guard =
            |guard: Value| ServeDocument::parse(json!({"providers": [], "guard": guard}), "test").map(drop);
        for (key, meant) in [("limit", "limits"), ("audti", "audit"), ("dney", "deny"), ("rates", "rate")] {
            let error = guard(json!({ key: {} })).unwrap_err();
            assert_eq!(error, format!("guard: unexpected key {key:?}; did you mean {meant:?}?"));
        }
        for key in GUARD_KEYS {
            let error = guard(json!({ key: false })).unwrap_err();
            assert!(error.starts_with(&format!("guard.{key}")) && !error.contains("unknown"), "{error}");
        }
        // The keys of a policy are all there: its own message lists them, and then quotes the unknown one.
        let listed = read_policy(r#"{"?": 1}"#).unwrap_err().reason;
        let known = GUARD_KEYS.iter().filter(|key| listed.contains(&format!("`{key}`"))).count();
        assert_eq!(2 * (known + 1), listed.matches('`').count(), "{listed}");
        let error = guard(json!({"rate": 5})).unwrap_err();
        assert!(
            error.ends_with("expected an object with read, completion, list, subscribe, call or shared"),
            "{error}"
        );
    }

    // S-01: rules that no endpoint can have are errors of the file, over stdio too.
    #[test]
    fn rules_of_http_are_checked() {
        let http = |http: Value| wrong(json!({"providers": [], "guard": {"http": http}}));
        assert!(
            http(json!({"path": "resources"})).starts_with("guard.http: path is \"resources\", expected")
        );
        assert!(http(json!({"metrics": "/mcp"})).starts_with("guard.http: metrics is \"/mcp\", expected"));
        let auth =
            json!({"resource": "https://a.example/mcp", "authorization_servers": ["https://b.example"]});
        assert!(http(json!({ "auth": auth })).starts_with("guard.http: there is no option \"auth\" here"));
        assert!(http(json!({ "auth": {"resorce": 1}, "pth": 1 })).contains("write auth beside guard"));
        assert!(http(json!({ "host": "0.0.0.0" })).contains("--http HOST:PORT"));
        assert!(http(json!({ "port": 8000 })).contains("--http PORT"));
        assert!(http(json!({ "tls": {} })).contains("write tls beside guard"));
    }
}
