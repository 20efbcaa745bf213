//! Tokens for the file that `mcp-resources-serve` reads: makes them, and adds and removes their lines.
//!
//! Law: a token is shown once, when it is made, and stored nowhere. Lines that this module did not write stay as they are.

use crate::atomic_file::replace;
use jiff::{SignedDuration, Timestamp, Unit};
use mcp_resources_runtime::transport::document_text;
use mcp_resources_serve::{TokenEntry, read_tokens};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

/// The random bytes of a token.
const RANDOM: usize = 32;
/// The beginning of every token, by which scanners find one that has leaked.
const PREFIX: &str = "mcpr_";
const HEAD: &str = "# Bearer tokens, as their SHA-256. Made by `mcp-resources token new`; one line each.\n";

/// Makes a token, and returns it with its entry.
///
/// # Errors
/// The name, a scope or a group that no token can have, or that there is no randomness.
pub(crate) fn generate(
    name: &str,
    scopes: &[String],
    groups: &[String],
    expires: Option<Timestamp>,
) -> Result<(String, TokenEntry), String> {
    use base64::Engine as _;
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random).map_err(|error| format!("the system has no randomness: {error}"))?;
    let token = format!("{PREFIX}{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random));
    let sha256 = Sha256::digest(&token).into();
    let (scopes, groups) = (scopes.to_vec(), groups.to_vec());
    let entry = TokenEntry { name: name.into(), sha256, scopes, groups, expires };
    entry.check().map(|()| (token, entry))
}

/// The line of an entry, without its end.
fn line(entry: &TokenEntry) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let mut line = format!("- {{name: {}, sha256: {}", text(&entry.name), text(&hexadecimal(&entry.sha256)));
    if !entry.scopes.is_empty() {
        let _ = write!(line, ", scopes: {}", json!(entry.scopes));
    }
    if !entry.groups.is_empty() {
        let _ = write!(line, ", groups: {}", json!(entry.groups));
    }
    if let Some(expires) = entry.expires {
        let _ = write!(line, ", expires: {}", text(&expires.to_string()));
    }
    line.push('}');
    line
}

/// Adds an entry. The file is made if there is none.
///
/// # Errors
/// The reason, without the path. The file is then as it was.
pub(crate) fn add(path: &Path, entry: &TokenEntry) -> Result<(), String> {
    let _only = alone(path)?;
    let mut text = match path.exists() {
        true => {
            read_tokens(path)?;
            document_text(path)?
        }
        false => HEAD.into(),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&line(entry));
    text.push('\n');
    replace(path, &text).map_err(|error| error.to_string())?;
    // What somebody else has written may not go with one more line, such as a list in brackets.
    match read_tokens(path)?.last() == Some(entry) {
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
    let entries = read_tokens(path)?;
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

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
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
        let (token, alice) = generate("alice", &scopes, &["a b".to_owned()], expires).unwrap();
        assert!(token.starts_with(PREFIX) && token.len() > 40);
        add(&path, &alice).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && text.starts_with(HEAD), "{text}");
        fs::write(&path, format!("{text}# bob is on leave")).unwrap();
        let (_, bob) = generate("bob \"the builder\"", &[], &[], None).unwrap();
        add(&path, &bob).unwrap();
        assert_eq!(read_tokens(&path).unwrap(), [alice.clone(), bob.clone()]);
        assert_eq!(revoke(&path, "carol"), Ok(0));
        assert_eq!(revoke(&path, "alice"), Ok(1));
        assert_eq!(read_tokens(&path).unwrap(), [bob]);
        assert!(fs::read_to_string(&path).unwrap().contains("# bob is on leave"));
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o077, 0);
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
