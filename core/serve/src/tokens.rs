//! The file of bearer tokens: one line for each, with its SHA-256 in the place of the token.
//!
//! ```yaml
//! - {name: "alice", sha256: "9f86d081…", scopes: ["notes:read"], groups: ["docs"], expires: "2027-02-24T00:00:00Z"}
//! ```
//!
//! Law: a file with a mistake gives no tokens at all. `mcp-resources token` writes it.

use jiff::Timestamp;
use mcp_resources_engine::principal::ANONYMOUS;
use mcp_resources_engine::resource::is_scope;
use mcp_resources_engine::suggest::unexpected;
use mcp_resources_runtime::transport::document_value;
use serde_json::{Map, Value};
use std::path::Path;

const KEYS: [&str; 5] = ["name", "sha256", "scopes", "groups", "expires"];
/// Maximum number of tokens in a file.
const MOST: usize = 10_000;
/// Maximum length of a name in bytes.
const MOST_NAME: usize = 256;

/// A token, without the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// The principal that it represents.
    pub name: String,
    /// The SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The rights of the token.
    pub scopes: Vec<String>,
    /// The groups of the principal, which are scopes too.
    pub groups: Vec<String>,
    /// The time of its end; `None`: never.
    pub expires: Option<Timestamp>,
}

impl TokenEntry {
    /// Checks what a token may say.
    ///
    /// # Errors
    /// The name, a scope or a group that no token can have.
    pub fn check(&self) -> Result<(), String> {
        let is_name = !self.name.is_empty()
            && self.name != ANONYMOUS
            && self.name.len() <= MOST_NAME
            && !self.name.contains(char::is_control);
        if !is_name {
            let reason = "expected the name of a person or a program, other than \"anonymous\"";
            return Err(format!("name is {:?}, {reason}", self.name));
        }
        if let Some(wrong) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(format!(
                "scopes has {wrong:?}, expected printable ASCII without spaces, quotes and backslashes"
            ));
        }
        match self.groups.iter().find(|group| !is_group(group)) {
            Some(wrong) => Err(format!("groups has {wrong:?}, expected the name of a group, such as docs")),
            None => Ok(()),
        }
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let Value::Object(members) = value else {
            return Err("it is no object such as {name: alice, sha256: \"…\"}".into());
        };
        if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(match key.as_str() {
                "token" => "the file has no tokens, only their SHA-256; make the entry with `mcp-resources token new`".into(),
                key => unexpected("key", key, &KEYS),
            });
        }
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let name = text("name").ok_or("name is missing, or is no text")?.to_owned();
        let sha256 = text("sha256").and_then(bytes).ok_or_else(|| {
            format!("sha256 of {name:?} is not 64 hexadecimal digits; make the entry with `mcp-resources token new`")
        })?;
        let scopes = texts(members, "scopes", "[\"notes:read\"]")?;
        let groups = texts(members, "groups", "[\"docs\"]")?;
        let entry = Self { name, sha256, scopes, groups, expires: expiry(members)? };
        entry.check().map(|()| entry)
    }
}

fn texts(members: &Map<String, Value>, key: &str, example: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{key} is no list of texts, such as {example}");
    match members.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(all)) => {
            all.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Whether a text can be the name of a group.
pub(crate) fn is_group(text: &str) -> bool {
    !text.is_empty() && text.len() <= MOST_NAME && !text.contains(char::is_control)
}

fn expiry(members: &Map<String, Value>) -> Result<Option<Timestamp>, String> {
    match members.get("expires") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_str().and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
            format!("expires is {value}, expected a time such as \"2027-02-24T00:00:00Z\", in quotes")
        }),
    }
}

/// All entries of a file.
///
/// # Errors
/// The reason, without the path.
pub fn read_tokens(path: &Path) -> Result<Vec<TokenEntry>, String> {
    let all = match document_value(path)? {
        Value::Null => Vec::new(),
        Value::Array(all) => all,
        _ => return Err("it is no list of tokens; `mcp-resources token new` makes the file".into()),
    };
    if all.len() > MOST {
        return Err(format!("it has {} tokens; at most {MOST} are possible", all.len()));
    }
    let entry = |(at, value)| TokenEntry::parse(value).map_err(|reason| format!("[{at}]: {reason}"));
    all.iter().enumerate().map(entry).collect()
}

/// Whether others than the owner may read the file.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

fn bytes(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_wrong_entry_says_what_is_expected() {
        let folder = std::env::temp_dir().join(format!("mcp-token-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tokens.yaml");
        let digest = "0".repeat(64);
        for (text, said) in [
            ("tokens: []", "it is no list of tokens"),
            ("- alice", "[0]: it is no object"),
            ("- {name: alice, token: x}", "[0]: the file has no tokens, only their SHA-256"),
            ("- {name: alice, sha265: x}", "did you mean \"sha256\"?"),
            ("- {name: alice, sha256: abc}", "sha256 of \"alice\" is not 64 hexadecimal digits"),
            (&*format!("- {{name: anonymous, sha256: '{digest}'}}"), "name is \"anonymous\""),
            (&*format!("- {{name: a, sha256: '{digest}', scopes: x}}"), "scopes is no list"),
            (&*format!("- {{name: a, sha256: '{digest}', scopes: ['a b']}}"), "scopes has \"a b\""),
            (&*format!("- {{name: a, sha256: '{digest}', groups: docs}}"), "groups is no list"),
            (&*format!("- {{name: a, sha256: '{digest}', groups: ['']}}"), "groups has \"\""),
            (&*format!("- {{name: a, sha256: '{digest}', expires: soon}}"), "expires is \"soon\""),
        ] {
            fs::write(&path, text).unwrap();
            let reason = read_tokens(&path).unwrap_err();
            assert!(reason.contains(said), "{text}: {reason}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
