//! Paths of files as the end of URIs.

use mcp_resources_engine::guard;
use mcp_resources_provider_kit::uri_path::{decode, encode};
use mcp_resources_template::uri::normalize;
use mcp_resources_template::{Lookup, UriTemplate};

const MAX: usize = 1 << 20;

/// As the bytes of a path: it is encoded by a URI in canonical form that no policy must hide, and that leads back to it. As the
/// value of a URI: whatever it names is a relative path without dots, which has that spelling alone.
pub fn files_path(data: &[u8]) {
    if is_path(data) {
        let encoded = encode(data);
        let uri = format!("file:///project/{encoded}");
        assert_eq!(normalize(&uri, MAX).as_deref(), Ok(&*uri));
        assert!(guard::is_harmless(&uri), "{uri}");
        let value = value(&uri);
        assert_eq!(value.as_deref().and_then(decode).as_deref(), Some(data), "{uri}");
    }
    let text = String::from_utf8_lossy(data);
    if let Some(path) = decode(&text) {
        assert!(is_path(&path), "{text}");
        assert_eq!(value(&format!("file:///project/{}", encode(&path))).as_deref(), Some(&*text));
    }
}

/// Whether a file can have the path: it is relative, and no component is empty, `.` or `..`.
fn is_path(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    path.split(|byte| *byte == b'/').all(is_name)
}

/// The path that the router gives a provider.
fn value(uri: &str) -> Option<String> {
    let template = UriTemplate::parse("file:///{root}/{+path}").ok()?;
    match template.match_uri(uri).ok()? {
        Lookup::Match { params, .. } => params.get("path")?.as_str().map(str::to_owned),
        _ => None,
    }
}
