//! The file of bearer tokens: one line for each, with its SHA-256 in the place of the token.
//!
//! ```yaml
//! - {name: "alice", sha256: "9f86d081…", scopes: ["notes:read"], groups: ["docs"], expires: "2027-02-24T00:00:00Z"}
//! ```
//!
//! Law: a token is shown once, when it is made, and stored nowhere. Lines that this module did not write stay as they are.

use crate::atomic_file::replace;
use jiff::{SignedDuration, Timestamp, Unit};
use mcp_resources_engine::principal::ANONYMOUS;
use mcp_resources_engine::resource::is_scope;
use mcp_resources_engine::suggest::unexpected;
use mcp_resources_runtime::transport::{document_text, document_value};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

const KEYS: [&str; 5] = ["name", "sha256", "scopes", "groups", "expires"];
/// Maximum number of tokens in a file.
const MOST: usize = 10_000;
/// Maximum length of a name in bytes.
const MOST_NAME: usize = 256;
/// The random bytes of a token.
const RANDOM: usize = 32;
/// The beginning of every token, by which scanners find one that has leaked.
const PREFIX: &str = "mcpr_";
const HEAD: &str = "# Bearer tokens, as their SHA-256. Made by `mcp-resources token new`; one line each.\n";

/// A token, without the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenEntry {
    /// The principal that it represents.
    pub(crate) name: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) scopes: Vec<String>,
    pub(crate) groups: Vec<String>,
    /// `None`: never.
    pub(crate) expires: Option<Timestamp>,
}

impl TokenEntry {
    /// Makes a token, and returns it with its entry.
    ///
    /// # Errors
    /// The name, a scope or a group that no token can have, or that there is no randomness.
    pub(crate) fn generate(
        name: &str,
        scopes: &[String],
        groups: &[String],
        expires: Option<Timestamp>,
    ) -> Result<(String, Self), String> {
        use base64::Engine as _;
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).map_err(|error| format!("the system has no randomness: {error}"))?;
        let token = format!("{PREFIX}{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random));
        let sha256 = Sha256::digest(&token).into();
        let (scopes, groups) = (scopes.to_vec(), groups.to_vec());
        let entry = Self { name: name.into(), sha256, scopes, groups, expires };
        entry.check().map(|()| (token, entry))
    }

    fn check(&self) -> Result<(), String> {
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

    /// The line of the file, without its end.
    fn line(&self) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let mut line =
            format!("- {{name: {}, sha256: {}", text(&self.name), text(&hexadecimal(&self.sha256)));
        if !self.scopes.is_empty() {
            let _ = write!(line, ", scopes: {}", json!(self.scopes));
        }
        if !self.groups.is_empty() {
            let _ = write!(line, ", groups: {}", json!(self.groups));
        }
        if let Some(expires) = self.expires {
            let _ = write!(line, ", expires: {}", text(&expires.to_string()));
        }
        line.push('}');
        line
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
pub(crate) fn read(path: &Path) -> Result<Vec<TokenEntry>, String> {
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

/// Adds an entry. The file is made if there is none.
///
/// # Errors
/// The reason, without the path. The file is then as it was.
pub(crate) fn add(path: &Path, entry: &TokenEntry) -> Result<(), String> {
    let _only = alone(path)?;
    let mut text = match path.exists() {
        true => {
            read(path)?;
            document_text(path)?
        }
        false => HEAD.into(),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&entry.line());
    text.push('\n');
    replace(path, &text).map_err(|error| error.to_string())?;
    // What somebody else has written may not go with one more line, such as a list in brackets.
    match read(path)?.last() == Some(entry) {
        true => Ok(()),
        false => Err("the new line is not its last entry; write one entry a line".into()),
    }
}

/// Removes all entries of a name, and returns their number.
///
/// # Errors
/// The reason, without the path. The file is then as it was.
pub(crate) fn revoke(path: &Path, name: &str) -> Result<usize, String> {
    let _only = alone(path)?;
    let entries = read(path)?;
    let gone: Vec<String> =
        entries.iter().filter(|entry| entry.name == name).map(|entry| hexadecimal(&entry.sha256)).collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let is_gone = |line: &str| gone.iter().any(|digest| line.to_ascii_lowercase().contains(digest.as_str()));
    let before = document_text(path)?;
    let kept: String = before.split_inclusive('\n').filter(|line| !is_gone(line)).collect();
    let removed = before.lines().filter(|line| is_gone(line)).count();
    if removed != gone.len() {
        return Err(format!("the entries of {name:?} are not on lines of their own; remove them by hand"));
    }
    replace(path, &kept).map_err(|error| error.to_string())?;
    Ok(removed)
}

/// Keeps others from changing files of the same folder meanwhile, until it is dropped.
fn alone(path: &Path) -> Result<File, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = File::open(folder).map_err(|error| format!("its folder cannot be opened: {error}"))?;
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| error.to_string())?;
    Ok(folder)
}

/// The time after a duration such as `90d`, `12h`, `30m` or `4w`.
///
/// # Errors
/// The expected form.
pub(crate) fn after(now: Timestamp, text: &str) -> Result<Timestamp, String> {
    let wrong = || "it must be a time such as 90d, 12h, 30m or 4w".to_owned();
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let count: i64 = digits.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    let span = count.checked_mul(seconds).map(SignedDuration::from_secs).ok_or_else(wrong)?;
    now.checked_add(span).and_then(|time| time.round(Unit::Second)).map_err(|_| wrong())
}

/// Whether others than the owner may read the file.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
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

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("mcp-tokens-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    // S-20: the file has no token, and what others wrote stays.
    #[test]
    fn tokens_come_and_go_line_by_line() {
        let folder = folder("lines");
        let path = folder.join("tokens.yaml");
        let expires = Some("2027-02-24T00:00:00Z".parse().unwrap());
        let scopes = ["notes:read".to_owned()];
        let (token, alice) = TokenEntry::generate("alice", &scopes, &["a b".to_owned()], expires).unwrap();
        assert!(token.starts_with(PREFIX) && token.len() > 40);
        add(&path, &alice).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && text.starts_with(HEAD), "{text}");
        fs::write(&path, format!("{text}# bob is on leave")).unwrap();
        let (_, bob) = TokenEntry::generate("bob \"the builder\"", &[], &[], None).unwrap();
        add(&path, &bob).unwrap();
        assert_eq!(read(&path).unwrap(), [alice.clone(), bob.clone()]);
        assert_eq!(revoke(&path, "carol"), Ok(0));
        assert_eq!(revoke(&path, "alice"), Ok(1));
        assert_eq!(read(&path).unwrap(), [bob]);
        assert!(fs::read_to_string(&path).unwrap().contains("# bob is on leave"));
        assert!(!is_open_to_others(&path));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_wrong_entry_says_what_is_expected() {
        let folder = folder("wrong");
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
            let reason = read(&path).unwrap_err();
            assert!(reason.contains(said), "{text}: {reason}");
        }
        // A list in brackets cannot be continued by a line, and stays as it was.
        fs::write(&path, format!("[{{name: a, sha256: '{digest}'}}]")).unwrap();
        assert!(revoke(&path, "b") == Ok(0));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn durations() {
        let now: Timestamp = "2026-11-28T00:00:00Z".parse().unwrap();
        let later = |text: &str| after(now, text).map(|time| time.to_string());
        assert_eq!(later("90d"), Ok("2027-02-26T00:00:00Z".into()));
        assert_eq!(later("30m"), Ok("2026-11-28T00:30:00Z".into()));
        for wrong in ["", "d", "0d", "-1d", "1y", "1.5d", "999999999999999w", "90"] {
            assert!(later(wrong).is_err(), "{wrong}");
        }
    }
}
