//! What is shown of a value that may be a secret.
//!
//! Law: a value is masked unless it is revealed by name; what a mask hides is not kept anywhere. A false alarm costs a line
//! `reveal`, a miss costs a secret, so names are judged by what they contain.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use mcp_resources_engine::guard::Redactor;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, Step};
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
/// A name is secret with one of these as a word of it.
const WORDS: [&str; 12] =
    ["key", "keys", "pass", "pw", "dsn", "cred", "creds", "salt", "jwt", "bearer", "otp", "hmac"];
/// What ends with `pass` and is not a password.
const PASSAGES: [&str; 4] = ["compass", "bypass", "overpass", "underpass"];

/// Which values are masked, and which are shown whatever they are.
#[derive(Debug)]
pub(crate) struct Masks {
    redactor: Redactor,
    reveal: GlobSet,
}

/// Which detectors look at values.
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

    /// Whether what is at `path` is shown as it is.
    pub(crate) fn reveals(&self, path: &str) -> bool {
        self.reveal.is_match(path)
    }

    /// A text without what the detectors find.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact(Cow::Borrowed(text))
    }

    /// Whether a name holds a secret itself.
    pub(crate) fn finds_in(&self, name: &str) -> bool {
        matches!(self.text(name), Cow::Owned(_))
    }
}

/// Whether the name of a value says that it is secret: `db_password`, `apiKey`, `PGPASSWORD`, `DSN`.
pub(crate) fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_pass = lower.ends_with("pass") && !PASSAGES.iter().any(|word| lower.ends_with(word));
    if is_pass || lower.ends_with("key") || PARTS.iter().any(|part| lower.contains(part)) {
        return true;
    }
    let mut word = String::new();
    let mut was_lower = false;
    for char in name.chars().chain(['_']) {
        let is_upper = char.is_uppercase();
        if !char.is_alphanumeric() || is_upper && was_lower {
            if WORDS.contains(&&*word) {
                return true;
            }
            word.clear();
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase() || char.is_ascii_digit();
    }
    false
}

/// Globs over the paths of keys: `*` is within a segment, `**` over segments.
///
/// # Errors
/// One cannot be read; it stands in the error.
pub(crate) fn globs(option: &'static str, globs: &[String]) -> Result<GlobSet, OptionError> {
    let mut set = GlobSetBuilder::new();
    for (at, glob) in globs.iter().enumerate() {
        let made = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
        set.add(made.map_err(|error| {
            let value = OptionValue::Text(glob.clone());
            OptionError::not_allowed(&value, format!("a glob, but {}", error.kind()))
                .under(Step::Item(at))
                .under(Step::Name(option.into()))
        })?);
    }
    set.build().map_err(|_| OptionError::sentence(format!("{option}: the globs are too many, or too long")))
}

impl FromOption for Detectors {
    const EXPECTED: &'static str = "all or a list of detectors";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::Text(word) if word == "all" => Ok(Self::All),
            OptionValue::Text(_) => Err(OptionError::not_allowed(&value, "all or a list of detectors")),
            other => Vec::from_option(other).map(Self::Named),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-04: names that say secret, however they are written.
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
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    /// S-04: `*` is within a segment.
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
