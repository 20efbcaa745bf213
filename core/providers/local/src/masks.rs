//! Masks values that may be secrets.
//!
//! Law: a value is masked unless its name is revealed; hidden text is not kept anywhere. A false alarm costs a line
//! `reveal`, a miss costs a secret, so names are judged by the words in them, except for a few usual words with another
//! meaning.

mod connection;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use mcp_resources_engine::guard::Redactor;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep};
use mcp_resources_engine::suggest::unexpected;
use std::borrow::Cow;

/// In the place of a value whose name says that it is secret. In the form of the detectors' marks, which they leave alone.
pub(crate) const MASK: &str = "[redacted:key-name]";

/// A name is secret with one of these in it.
const PARTS: [&str; 16] = [
    "password",
    "passwd",
    "passwort",
    "パスワード",
    "pwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "private",
    "apikey",
    "authorization",
    "cookie",
    "signature",
    "mnemonic",
];
/// A name is secret if one of its words is one of these.
const WORDS: [&str; 10] = ["pass", "pw", "dsn", "cred", "creds", "salt", "jwt", "bearer", "otp", "hmac"];
/// Words that end with `pass` and do not name a password.
const PASSAGES: [&str; 9] =
    ["compass", "bypass", "overpass", "underpass", "surpass", "trespass", "lowpass", "highpass", "bandpass"];
/// Words that end with `key` and are no key, also behind other letters: `chaosmonkey`.
const NO_KEYS: [&str; 9] =
    ["monkey", "donkey", "turkey", "hockey", "whiskey", "jockey", "malarkey", "turnkey", "hotkey"];
/// Words of these that other letters may turn into a key: `cryptokey`.
const NO_KEYS_ALONE: [&str; 8] =
    ["okey", "pokey", "smokey", "mickey", "hickey", "dickey", "lackey", "flunkey"];
/// Keys that are names and not secrets, if this word stands before them: `primary_key`, `sortKey`.
const NAMED_KEYS: [&str; 22] = [
    "primary",
    "foreign",
    "sort",
    "partition",
    "routing",
    "row",
    "join",
    "group",
    "lookup",
    "cache",
    "composite",
    "surrogate",
    "candidate",
    "unique",
    "range",
    "shard",
    "index",
    "hot",
    "low",
    "natural",
    "order",
    "grouping",
];
/// Counted tokens, which are not secrets, if one of these words is in the name: `max_tokens`, `tokenLimit`.
const COUNTED: [&str; 26] = [
    "max",
    "maximum",
    "min",
    "minimum",
    "limit",
    "limits",
    "count",
    "counts",
    "counter",
    "total",
    "num",
    "number",
    "budget",
    "usage",
    "used",
    "per",
    "length",
    "size",
    "window",
    "prompt",
    "completion",
    "input",
    "output",
    "context",
    "remaining",
    "reasoning",
];

/// Decides which values are masked, and which are always shown.
#[derive(Debug)]
pub(crate) struct Masks {
    redactor: Redactor,
    reveal: GlobSet,
}

/// The detectors that look at values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Detectors {
    /// All that the engine has.
    #[default]
    All,
    /// These.
    Named(Vec<String>),
}

impl Masks {
    /// # Errors
    /// There is no such detector, or a glob cannot be read.
    pub(crate) fn new(detectors: &Detectors, reveal: &[String]) -> Result<Self, OptionError> {
        let redactor = match detectors {
            Detectors::All => Redactor::all(),
            Detectors::Named(names) => Redactor::new(names).map_err(|name| {
                let all: Vec<&str> = Redactor::names().collect();
                OptionError::sentence(format!("redact: {}", unexpected("detector", name, &all)))
            })?,
        };
        Ok(Self { redactor, reveal: globs("reveal", reveal)? })
    }

    /// Whether the value at `path` is shown as it is.
    pub(crate) fn reveals(&self, path: &str) -> bool {
        self.reveal.is_match(path)
    }

    /// A text without the matches of the detectors, and without the passwords of connection strings.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redactor.redact(Cow::Borrowed(text)) {
            Cow::Borrowed(text) => connection::covered(text),
            Cow::Owned(text) => Cow::Owned(connection::covered(&text).into_owned()),
        }
    }

    /// Whether a name holds a secret itself.
    pub(crate) fn finds_in(&self, name: &str) -> bool {
        matches!(self.redactor.redact(Cow::Borrowed(name)), Cow::Owned(_))
    }
}

/// Whether the name of a value says that it is secret: `db_password`, `apiKey`, `PGPASSWORD`, `DSN`.
pub(crate) fn is_secret(name: &str) -> bool {
    let words = words(name);
    // `secretary` is a person.
    let lower = name.to_lowercase().replace("secretar", "");
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&&**word));
    let is_counted = has(&COUNTED) || lower.contains("tokeniz") || lower.contains("tokenis");
    let is_part = |part: &&str| lower.contains(*part) && !(*part == "token" && is_counted);
    PARTS.iter().any(is_part) || is_pass(&lower) || is_key(&words, &lower) || has(&WORDS)
}

/// Whether a name ends with `pass`, as `dbpass`.
fn is_pass(lower: &str) -> bool {
    lower.ends_with("pass") && !PASSAGES.iter().any(|word| lower.ends_with(word))
}

/// Whether a word of a name is a key, or its last word ends with `key`, as in `authkey`.
fn is_key(words: &[String], lower: &str) -> bool {
    let is_named = |before: &str| NAMED_KEYS.contains(&before);
    let has_key = words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        matches!(&**word, "key" | "keys") && !before.is_some_and(|before| is_named(before))
    });
    let last = words.last().map(|word| &**word).unwrap_or_default();
    let stem = last.strip_suffix("key").filter(|stem| !stem.is_empty());
    let is_glued = lower.ends_with("key")
        && stem.is_some_and(|stem| {
            let is_other_word =
                NO_KEYS.iter().any(|word| last.ends_with(word)) || NO_KEYS_ALONE.contains(&last);
            !is_other_word && !is_named(stem)
        });
    has_key || is_glued
}

/// The words of a name in lower case, split at other characters and where a capital follows a small letter.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for char in name.chars().chain(['_']) {
        let is_upper = char.is_uppercase();
        if !char.is_alphanumeric() || is_upper && was_lower {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase() || char.is_ascii_digit();
    }
    words
}

/// Globs over the paths of keys: `*` is within a segment, `**` over segments.
///
/// # Errors
/// A glob is invalid; the message contains it.
pub(crate) fn globs(option: &'static str, globs: &[String]) -> Result<GlobSet, OptionError> {
    let mut set = GlobSetBuilder::new();
    for (at, glob) in globs.iter().enumerate() {
        let made = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
        set.add(made.map_err(|error| {
            let value = OptionValue::Text(glob.clone());
            OptionError::not_allowed(&value, format!("a glob, but {}", error.kind()))
                .under(PathStep::Item(at))
                .under(PathStep::Name(option.into()))
        })?);
    }
    set.build().map_err(|_| OptionError::sentence(format!("{option}: the globs are too many, or too long")))
}

impl FromOption for Detectors {
    const EXPECTED: &'static str = "all or a list of detectors";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::Text(word) if word == "all" => Ok(Self::All),
            OptionValue::Text(_) => Err(OptionError::not_allowed(&value, Self::EXPECTED)),
            OptionValue::List(_) => Vec::from_option(value).map(Self::Named),
            other => Err(OptionError::wrong_type(&other, Self::EXPECTED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-04: names that say secret, however they are written.
    #[test]
    fn names_of_secrets() {
        for name in [
            "password",
            "db_password",
            "dbPassword",
            "PGPASSWORD",
            "MYSQL_PWD",
            "passwd",
            "api_key",
            "apiKey",
            "APIKEY",
            "AWS_SECRET_ACCESS_KEY",
            "key",
            "keys",
            "KEY_ID",
            "github.token",
            "token2",
            "credentials",
            "DSN",
            "sentryDsn",
            "private",
            "privateKeyFile",
            "pass",
            "db-pass",
            "dbpass",
            "requirepass",
            "OLDPWD",
            "mysqlpwd",
            "データベースのパスワード",
            "webhookSignature",
            "client-secret",
            "Set-Cookie",
            "jwt",
            "authkey",
            "cryptokey",
            "publickey",
            "APIKey",
            "myAPIKEY",
            "secondaryKey",
            "key_primary",
            "access_tokens",
            "max_token_secret",
            "refreshToken",
            "tokens",
            "primary_key_password",
            "monkey_token",
            "keymonkey_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "server",
            "port",
            "host",
            "user",
            "passenger",
            "compass",
            "bypass",
            "keyboard",
            "design",
            "url",
            "name",
            "",
            "monkey",
            "chaosMonkey",
            "CHAOS_MONKEY",
            "chaosmonkey",
            "hockey",
            "turkey",
            "whiskey",
            "okey",
            "mickey",
            "max_tokens",
            "maxTokens",
            "MAX_OUTPUT_TOKENS",
            "token_limit",
            "tokensPerMinute",
            "prompt_tokens",
            "tokenizer",
            "primary_key",
            "primaryKey",
            "foreign_keys",
            "partitionkey",
            "sort-key",
            "hotkeys",
            "surpass",
            "trespass",
            "secretary",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    // S-04: `*` is within a segment.
    #[test]
    fn globs_are_of_segments() {
        let set = globs("allow", &["server".into(), "server/**".into(), "a/*/c".into()]).unwrap();
        for (path, is_allowed) in [
            ("server", true),
            ("server/port", true),
            ("server/tls/cert", true),
            ("servers", false),
            ("a/b/c", true),
            ("a/b/b/c", false),
            ("a/c", false),
        ] {
            assert_eq!(set.is_match(path), is_allowed, "{path}");
        }
    }
}
