//! One entry of `mcpServers`: its permitted keys, and its values after variables are replaced.

use super::ServerConfig;
use super::expand::ExpandScope;
use crate::target::{ClientCredentials, Target};
use mcp_resources_engine::client::{Access, AllowList};
use mcp_resources_engine::guard::Glob;
use mcp_resources_engine::suggest::unexpected;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An entry as it is written in the file.
pub(super) type JsonEntry = Map<String, Value>;

/// The keys with a meaning here.
const KNOWN: [&str; 17] = [
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "url",
    "headers",
    "client_credentials",
    "resources",
    "tools",
    "timeout",
    "idle",
    "per_client",
    "prefix",
    "type",
    "disabled",
    "enabled",
];

/// Keys of other clients, about tools, sign-in and appearance.
const IGNORED: [&str; 26] = [
    "allowedTools",
    "alwaysAllow",
    "alwaysLoad",
    "auth",
    "autoApprove",
    "description",
    "dev",
    "disabledTools",
    "enabledTools",
    "excludeTools",
    "gallery",
    "icon",
    "icons",
    "includeTools",
    "instructions",
    "metadata",
    "name",
    "note",
    "notes",
    "oauth",
    "requiresConfirmation",
    "sandbox",
    "sandboxEnabled",
    "title",
    "trust",
    "version",
];

/// Whether a key is a comment: it begins with `_` or `x-`, or names a schema.
pub(super) fn is_comment(key: &str) -> bool {
    key.starts_with('_') || key.starts_with("x-") || key == "$schema"
}

/// Whether a checked entry disables its server.
pub(super) fn is_disabled(entry: &JsonEntry) -> bool {
    entry.get("disabled") == Some(&Value::Bool(true)) || entry.get("enabled") == Some(&Value::Bool(false))
}

/// Checks that each key is known and has a value of the right type.
///
/// # Errors
/// A sentence that begins with `at`, the path of the entry.
pub(super) fn check_keys(at: &str, entry: &JsonEntry) -> Result<(), String> {
    for (key, value) in entry {
        let path = join(at, key);
        match key.as_str() {
            "command" | "url" if string(&path, value)?.is_empty() => return Err(format!("{path} is empty")),
            "command" | "url" | "cwd" | "envFile" => drop(string(&path, value)?),
            "args" => drop(strings(&path, value)?),
            "env" | "headers" => {
                for (name, value) in object(&path, value)? {
                    string(&join(&path, name), value)?;
                    if !is_field(key, name) {
                        let what = if key == "env" { "a variable" } else { "a header" };
                        return Err(format!("{}: this is not a valid name of {what}", join(&path, name)));
                    }
                }
            }
            "client_credentials" => check_credentials(&path, value)?,
            "resources" => drop(allowed(&path, value)?),
            "timeout" if value.as_u64().is_none_or(|ms| ms == 0) => {
                let given = if value.is_number() { value.to_string() } else { kind(value).into() };
                return Err(format!("{path} must be a whole number of milliseconds above 0, not {given}"));
            }
            "tools" => drop(tools(&path, value)?),
            "idle" => drop(idle(&path, value)?),
            "prefix" if !is_prefix(string(&path, value)?) => {
                return Err(format!(
                    "{path} must be letters, digits, \"-\", \"_\" and \".\", and no more than 64"
                ));
            }
            "type" => drop(transport(&path, value)?),
            "disabled" | "enabled" | "per_client" if !value.is_boolean() => {
                return Err(format!("{path} must be true or false, not {}", kind(value)));
            }
            key if KNOWN.contains(&key) || IGNORED.contains(&key) || is_comment(key) => {}
            key => return Err(format!("{at}: {}", unexpected("key", key, &KNOWN))),
        }
    }
    Ok(())
}

/// Checks that an entry is complete: as [`check_keys`], with exactly one of `command` and `url`, and only keys that
/// belong to it.
///
/// # Errors
/// A sentence that begins with `at`, the path of the entry.
pub(super) fn check(at: &str, entry: &JsonEntry) -> Result<(), String> {
    check_keys(at, entry)?;
    let transport = entry.get("type").map(|value| transport(&join(at, "type"), value)).transpose()?;
    match (entry.get("command"), entry.get("url")) {
        (Some(_), Some(_)) => {
            return Err(format!("{at} has both \"command\" and \"url\": one of them is needed"));
        }
        (None, None) => {
            return Err(format!("{at} has neither \"command\" nor \"url\": one of them is needed"));
        }
        (Some(_), None) if transport.is_some_and(|transport| transport != Transport::Stdio) => {
            return Err(format!("{at} has a \"type\" that needs \"url\", but has \"command\""));
        }
        (None, Some(_)) if transport == Some(Transport::Stdio) => {
            return Err(format!("{at} has a \"type\" that needs \"command\", but has \"url\""));
        }
        (None, Some(url)) => {
            let url = string(&join(at, "url"), url)?;
            if !url.contains("${") && !is_url(url) {
                return Err(not_http(&join(at, "url")));
            }
        }
        (Some(_), None) => {}
    }
    let (there, strange) = match entry.contains_key("command") {
        true => ("command", &["headers", "client_credentials"][..]),
        false => ("url", &["args", "env", "envFile", "cwd"][..]),
    };
    // Some clients write every key, so empty ones are ignored.
    let is_given = |key: &&&str| entry.get(**key).is_some_and(|value| !is_empty(value));
    match strange.iter().find(is_given) {
        Some(key) => Err(format!("{} does not go with \"{there}\": it would have no effect", join(at, key))),
        None => Ok(()),
    }
}

/// Merges an agent's entry into the definition of the same name. The definition's `resources` do not apply. If the
/// agent sets another way to reach the server, the keys of the previous one do not apply either.
pub(super) fn overlay(definition: Option<&JsonEntry>, laid: &JsonEntry) -> JsonEntry {
    let mut whole = definition.cloned().unwrap_or_default();
    whole.remove("resources");
    let drops: &[&str] = match (laid.contains_key("command"), laid.contains_key("url")) {
        (false, true) => &["command", "args", "env", "envFile", "cwd", "type"],
        (true, false) if whole.contains_key("url") => &["url", "headers", "type"],
        _ => &[],
    };
    whole.retain(|key, _| !drops.contains(&key.as_str()));
    for (key, value) in laid {
        match (whole.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) if key == "env" || key == "headers" => {
                under.extend(over.clone());
            }
            _ => drop(whole.insert(key.clone(), value.clone())),
        }
    }
    whole
}

/// Resolves a checked entry to a server, with its variables replaced.
///
/// # Errors
/// A sentence that begins with `at`, the path of the entry, or a key of it.
pub(super) fn resolve(
    name: &str,
    at: &str,
    entry: &JsonEntry,
    scope: &ExpandScope<'_>,
) -> Result<ServerConfig, String> {
    let text = |key: &str| {
        let value = entry.get(key).and_then(Value::as_str);
        value.map(|text| scope.expand(text, &join(at, key))).transpose()
    };
    if entry.get("type").map(|value| transport(at, value)).transpose()? == Some(Transport::Sse) {
        return Err(format!(
            "{}: the transport SSE of 2024-11-05 is not supported; use the server's endpoint of Streamable HTTP with \"http\"",
            join(at, "type")
        ));
    }
    let target = match (text("command")?, text("url")?) {
        (Some(program), _) => command(program, at, entry, scope)?,
        (None, url) => {
            let url = url.filter(|url| is_url(url)).ok_or_else(|| not_http(&join(at, "url")))?;
            Target::Url { url, headers: headers(at, entry, scope)? }
        }
    };
    let resources = entry.get("resources");
    let key = join(at, "resources");
    let globs = resources.map(|value| expanded(value, &key, scope)).transpose()?;
    let allowed = globs.map(|value| allowed(&key, &value)).transpose()?.unwrap_or_default();
    Ok(ServerConfig {
        name: name.into(),
        target,
        resources: allowed,
        is_restricted: resources.is_some(),
        timeout: entry.get("timeout").and_then(Value::as_u64),
        prefix: entry.get("prefix").and_then(Value::as_str).map(str::to_owned),
        tools: entry.get("tools").map(|value| tools(&join(at, "tools"), value)).transpose()?.flatten(),
        idle: entry.get("idle").map(|value| idle(&join(at, "idle"), value)).transpose()?,
        per_client: entry.get("per_client") == Some(&Value::Bool(true)),
        credentials: credentials(at, entry, scope)?,
    })
}

fn command(program: String, at: &str, entry: &JsonEntry, scope: &ExpandScope<'_>) -> Result<Target, String> {
    let string_of = |key: &str| entry.get(key).and_then(Value::as_str);
    let mut args = Vec::new();
    for (at, value) in strings(&join(at, "args"), entry.get("args").unwrap_or(&Value::Array(Vec::new())))? {
        args.push(scope.expand(value, &at)?);
    }
    let file = string_of("envFile").map(|path| scope.env_file(path, &join(at, "envFile")));
    let mut env = file.transpose()?.unwrap_or_default();
    env.extend(fields("env", at, entry, scope)?);
    let directory = string_of("cwd").map(|path| scope.path(path, &join(at, "cwd"))).transpose()?;
    match program.is_empty() {
        true => Err(format!("{} is empty", join(at, "command"))),
        false => Ok(Target::Command { program, args, env, directory }),
    }
}

/// The keys of `client_credentials`.
const CREDENTIALS: [&str; 4] = ["token_url", "client_id", "client_secret", "scope"];

fn check_credentials(at: &str, value: &Value) -> Result<(), String> {
    let members = object(at, value)?;
    if let Some(key) = members.keys().find(|key| !CREDENTIALS.contains(&key.as_str())) {
        return Err(format!("{at}: {}", unexpected("key", key, &CREDENTIALS)));
    }
    for key in CREDENTIALS {
        match members.get(key) {
            Some(value) => drop(string(&join(at, key), value)?),
            None if key == "scope" => {}
            None => return Err(format!("{at} has no {key:?}")),
        }
    }
    Ok(())
}

/// The client's credentials, with their variables replaced. The secret is sent to an https URL, or to this machine, alone.
fn credentials(
    at: &str,
    entry: &JsonEntry,
    scope: &ExpandScope<'_>,
) -> Result<Option<ClientCredentials>, String> {
    let Some(Value::Object(members)) = entry.get("client_credentials") else { return Ok(None) };
    let at = join(at, "client_credentials");
    let text = |key: &str| -> Result<String, String> {
        let text = members.get(key).and_then(Value::as_str).unwrap_or_default();
        scope.expand(text, &join(&at, key))
    };
    let token_url = text("token_url")?;
    let begins =
        |start: &str| token_url.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    let is_local = ["http://127.0.0.1", "http://localhost", "http://[::1]"]
        .into_iter()
        .any(|start| begins(start) && token_url[start.len()..].starts_with([':', '/']));
    if !begins("https://") && !is_local {
        return Err(format!(
            "{} must begin with https://, because the secret is sent to it",
            join(&at, "token_url")
        ));
    }
    let has_header = entry
        .get("headers")
        .and_then(Value::as_object)
        .is_some_and(|headers| headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")));
    if has_header {
        return Err(format!("{at} and the header Authorization exclude each other: write one of them"));
    }
    let (client_id, client_secret) = (text("client_id")?, text("client_secret")?);
    let wanted = Some(text("scope")?).filter(|scope| !scope.is_empty());
    Ok(Some(ClientCredentials { token_url, client_id, client_secret, scope: wanted }))
}

fn headers(at: &str, entry: &JsonEntry, scope: &ExpandScope<'_>) -> Result<BTreeMap<String, String>, String> {
    let headers = fields("headers", at, entry, scope)?;
    match headers.iter().find(|(_, value)| value.chars().any(|c| c.is_control() && c != '\t')) {
        Some((name, _)) => Err(format!(
            "{} contains a control character, such as a line break",
            join(&join(at, "headers"), name)
        )),
        None => Ok(headers),
    }
}

/// Resolves the map `env` or `headers`.
fn fields(
    key: &str,
    at: &str,
    entry: &JsonEntry,
    scope: &ExpandScope<'_>,
) -> Result<BTreeMap<String, String>, String> {
    let at = join(at, key);
    let Some(Value::Object(members)) = entry.get(key) else { return Ok(BTreeMap::new()) };
    let pairs = members.iter().map(|(name, value)| {
        let at = join(&at, name);
        Ok((name.clone(), scope.expand(string(&at, value)?, &at)?))
    });
    pairs.collect()
}

/// Resolves the allow-list in `resources`. Globs with variables are checked after replacing those.
fn allowed(at: &str, value: &Value) -> Result<AllowList, String> {
    let globs = match value {
        Value::String(glob) => vec![(at.to_owned(), glob.as_str())],
        Value::Array(_) => strings(at, value)?,
        other => return Err(format!("{at} must be a list of globs or \"*\", not {}", kind(other))),
    };
    for (at, glob) in globs.iter().filter(|(_, glob)| !glob.contains("${")) {
        let one = AllowList::Globs(vec![(*glob).to_owned()]);
        Access::new(&one).map_err(|(glob, error)| {
            let shown: String = glob.chars().take(100).collect();
            format!("{at}: {shown:?} is not a glob: {} at byte {}", error.reason, error.offset)
        })?;
    }
    match globs.iter().any(|(_, glob)| *glob == "*") {
        true => Ok(AllowList::Everything),
        false => Ok(AllowList::Globs(globs.into_iter().map(|(_, glob)| glob.to_owned()).collect())),
    }
}

/// The globs of names in `tools`; `None` for all tools. An object is another client's, about approval, and not read here.
fn tools(at: &str, value: &Value) -> Result<Option<Vec<String>>, String> {
    let globs = match value {
        Value::Object(_) => return Ok(None),
        Value::String(glob) => vec![(at.to_owned(), glob.as_str())],
        Value::Array(_) => strings(at, value)?,
        other => return Err(format!("{at} must be a list of globs or \"*\", not {}", kind(other))),
    };
    for (at, glob) in &globs {
        Glob::parse(glob).map_err(|error| {
            let shown: String = glob.chars().take(100).collect();
            format!("{at}: {shown:?} is not a glob: {} at byte {}", error.reason, error.offset)
        })?;
    }
    match globs.iter().any(|(_, glob)| *glob == "*") {
        true => Ok(None),
        false => Ok(Some(globs.into_iter().map(|(_, glob)| glob.to_owned()).collect())),
    }
}

/// The time in `idle`, in ms: a number, or a number with a unit.
fn idle(at: &str, value: &Value) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("min", 60_000), ("s", 1_000), ("h", 3_600_000), ("m", 60_000)];
    let time = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => UNITS
            .iter()
            .find_map(|(unit, ms)| text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*ms)),
        _ => None,
    };
    let wrong =
        || format!("{at} must be a time above 0, such as \"10min\", \"90s\" or a number of milliseconds");
    time.filter(|ms| *ms > 0).ok_or_else(wrong)
}

/// Replaces the variables in a string or a list of strings.
fn expanded(value: &Value, at: &str, scope: &ExpandScope<'_>) -> Result<Value, String> {
    match value {
        Value::String(text) => scope.expand(text, at).map(Value::String),
        Value::Array(items) => items.iter().map(|item| expanded(item, at, scope)).collect(),
        other => Ok(other.clone()),
    }
}

/// The way an entry's server is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
    Sse,
}

fn transport(at: &str, value: &Value) -> Result<Transport, String> {
    match string(at, value)?.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" => Ok(Transport::Stdio),
        "http" | "streamablehttp" => Ok(Transport::Http),
        "sse" => Ok(Transport::Sse),
        other => {
            Err(format!("{at}: {}", unexpected("transport", other, &["stdio", "http", "streamable-http"])))
        }
    }
}

/// The path of a member: `mcpServers.filesystem`, or `mcpServers["a b"]`.
pub(super) fn join(at: &str, key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$');
    match !key.is_empty() && key.len() <= 64 && key.chars().all(is_plain) {
        true => format!("{at}.{key}"),
        false => format!("{at}[{:?}]", key.chars().take(64).collect::<String>()),
    }
}

/// The members of an object.
pub(super) fn object<'v>(at: &str, value: &'v Value) -> Result<&'v JsonEntry, String> {
    value.as_object().ok_or_else(|| format!("{at} must be an object, not {}", kind(value)))
}

/// A string.
pub(super) fn string<'v>(at: &str, value: &'v Value) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{at} must be a string, not {}", kind(value)))
}

/// The strings of a list, with their paths.
fn strings<'v>(at: &str, value: &'v Value) -> Result<Vec<(String, &'v str)>, String> {
    let items =
        value.as_array().ok_or_else(|| format!("{at} must be a list of strings, not {}", kind(value)))?;
    let strings = items.iter().enumerate().map(|(index, item)| {
        let at = format!("{at}[{index}]");
        let text = string(&at, item)?;
        Ok((at, text))
    });
    strings.collect()
}

/// The type of a value, for messages, which must not show its text: it may be a secret.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Whether `name` is a valid name of a variable (`env`) or of a header.
fn is_field(key: &str, name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match key {
        "env" => !name.is_empty() && !name.contains(['=', '\0']),
        _ => !name.is_empty() && name.bytes().all(is_token),
    }
}

fn is_prefix(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)
}

fn is_url(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    (begins("http://") || begins("https://")) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Does not show the URL, which may contain a password.
fn not_http(at: &str) -> String {
    format!("{at} must begin with http:// or https:// and have no spaces")
}
