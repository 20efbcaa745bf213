//! Reads the guard's policy from a file or a text: the only place where a policy touches the file system.

use super::document;
use mcp_resources_engine::guard::{Amounts, Guard, Policy, PolicyError};
use std::path::Path;

/// Parses a policy from the text of a JSON object, and checks every glob, limit and detector in it.
///
/// # Errors
/// [`PolicyError`] naming the member that is unknown or has an invalid value.
pub fn read_policy(json: &str) -> Result<Policy, PolicyError> {
    checked(Policy::from_json(json)?)
}

/// Reads a policy from a file: JSON, or YAML with the feature `yaml`, by its extension (`.json`, `.yaml`, `.yml`).
///
/// # Errors
/// [`PolicyError`] if the file cannot be read or is larger than 16 MiB, and as [`read_policy`].
pub fn load_policy(path: impl AsRef<Path>) -> Result<Policy, PolicyError> {
    let path = path.as_ref();
    let unreadable = |reason: String| whole(format!("{}: {reason}", path.display()));
    let text = document::text(path).map_err(unreadable)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" => read_policy(&text),
        "yaml" | "yml" => read_yaml(&text).and_then(checked),
        _ => Err(unreadable("a policy file ends with .json, .yaml or .yml".into())),
    }
}

#[cfg(feature = "yaml")]
fn read_yaml(text: &str) -> Result<Policy, PolicyError> {
    Policy::from_value(document::yaml(text).map_err(whole)?)
}

#[cfg(not(feature = "yaml"))]
fn read_yaml(_: &str) -> Result<Policy, PolicyError> {
    Err(whole("YAML needs the feature `yaml`"))
}

/// An error about the whole document.
fn whole(reason: impl Into<String>) -> PolicyError {
    PolicyError { field: String::new(), reason: reason.into() }
}

fn checked(policy: Policy) -> Result<Policy, PolicyError> {
    Amounts::check(&policy)?;
    Guard::new(&policy, false).map(|_| policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_say_the_same_in_json_and_yaml() {
        let folder = std::env::temp_dir().join(format!("mcp-resources-policy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let json = r#"{"allow": ["a://**"], "deny": "**/.env", "scopes": {"a://b/**": "x"},
            "principals": {"alice": {"allow": []}}}"#;
        let json = load_policy(write("guard.json", json)).unwrap();
        assert!(
            load_policy(write("guard.toml", "")).is_err() && load_policy(folder.join("none.json")).is_err()
        );
        let broken = load_policy(write("broken.json", r#"{"principals": {"alice": {"deny": ["a", 1]}}}"#));
        assert_eq!(broken.unwrap_err().field, "principals.alice.deny[1]");
        #[cfg(feature = "yaml")]
        {
            let yaml = "allow:\n  - a://**\ndeny: '**/.env'\nscopes:\n  a://b/**: x\nprincipals:\n  alice: {allow: []}\n";
            assert_eq!(load_policy(write("guard.yaml", yaml)).unwrap(), json);
            let broken = load_policy(write("broken.yml", "principals:\n  alice:\n    denny: a\n"));
            assert_eq!(broken.unwrap_err().field, "principals.alice.denny");
        }
        assert!(json.allow.is_some());
        let unknown = read_policy(r#"{"redact": ["jtw"]}"#).unwrap_err();
        assert_eq!(unknown.to_string(), "guard: redact: unexpected detector \"jtw\"; did you mean \"jwt\"?");
        fs::remove_dir_all(&folder).unwrap();
    }
}
