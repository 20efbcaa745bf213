//! Revisions of git in URIs.

use mcp_resources_providers::git::revision::{GitRevision, encode_name};
use mcp_resources_template::uri::push_encoded;
use mcp_resources_template::{Lookup, UriTemplate};

/// The value of `{ref}` in a URI: an accepted one has a name that git allows, none of git's other syntax, and one
/// spelling without a slash that the router gives back. As a name: encoded and read, it is the same name.
pub fn git_ref(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(revision) = GitRevision::parse(&text) {
        let name = &revision.name;
        assert!(!name.is_empty() && name != "@" && !name.starts_with('-'), "{name}");
        assert!(!name.contains("..") && !name.contains("@{"), "{name}");
        assert!(!name.contains([':', '~', '^', '\\', ' ', '*', '?', '[']), "{name}");
        assert!(!name.chars().any(char::is_control), "{name}");
        assert!(!name.split('/').any(|part| part.is_empty() || part.starts_with('.')), "{name}");
        let encoded = revision.to_string();
        assert!(!encoded.contains('/'), "{encoded}");
        assert_eq!(GitRevision::parse(&encoded).as_ref(), Some(&revision), "{encoded}");
        assert_eq!(value(&encoded).as_deref(), Some(&*encoded));
    }
    if !text.contains(['~', '^'])
        && let Some(revision) = GitRevision::parse(&encode_name(&text))
    {
        assert!(revision.name == text && revision.steps.is_empty(), "{text}");
    }
}

/// The value that the router gives a provider.
fn value(encoded: &str) -> Option<String> {
    let mut uri = String::from("git:///project/log/");
    encoded.bytes().for_each(|byte| push_encoded(&mut uri, byte));
    let template = UriTemplate::parse("git:///{repo}/log/{ref}").ok()?;
    match template.match_uri(&uri).ok()? {
        Lookup::Match { params, .. } => params.get("ref")?.as_str().map(str::to_owned),
        _ => None,
    }
}
