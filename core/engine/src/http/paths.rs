//! The paths of an endpoint, with and without a final slash.
//!
//! Law: a path is compared as it was sent, not decoded. Only one final slash makes no difference: clients and connectors add
//! it, and some do not follow a redirect to the path without it.

/// Whether two paths are the same but for one final slash.
pub(super) fn is_same_path(one: &str, other: &str) -> bool {
    trimmed(one) == trimmed(other)
}

/// A path without its final slash.
pub(super) fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// Each path with and without a final slash, once, for routers that compare exactly.
pub(super) fn both_spellings(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        let bare = trimmed(&path);
        for spelling in [bare.to_owned(), format!("{bare}/")] {
            if !spelling.is_empty() && !all.contains(&spelling) {
                all.push(spelling);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn one_final_slash_makes_no_difference() {
        for (one, other) in [("/mcp", "/mcp/"), ("/mcp/", "/mcp"), ("/", ""), ("/a/b/", "/a/b")] {
            assert!(is_same_path(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("/mcp", "/mcp//"),
            ("/mcp", "//mcp"),
            ("/mcp", "/mcp%2F"),
            ("/mcp", "/mcp/."),
            ("/", "//"),
            ("/mcp", "/MCP"),
        ] {
            assert!(!is_same_path(one, other), "{one} {other}");
        }
        let paths = ["/mcp", "/", "/health/", "/mcp/"].map(String::from);
        assert_eq!(both_spellings(paths.into_iter()), ["/mcp", "/mcp/", "/", "/health", "/health/"]);
    }
}
