//! URIs that cannot exist on a server: of a scheme of their own, and beside those that it lists and that templates match.

use mcp_resources_template::uri::{MAX_URI, normalize};
use mcp_resources_template::{Lookup, UriTemplate};
use std::collections::BTreeSet;

/// A URI that does not exist on any server.
pub(super) const ABSENT: &str = "mcp-resources-lint://absent/6f1c0a52";
/// The end of a name that no real resource has.
const UNLIKELY: &str = "mcp-resources-lint-6f1c0a52";
/// Maximum number of URIs of each kind.
const MOST: usize = 5;

/// A URI to ask for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Probe {
    pub uri: String,
    /// Whether a template matches it, so that the server may have it after all.
    pub is_matched: bool,
}

/// The URIs to ask for, [`ABSENT`] first.
pub(super) fn probes(uris: &[&str], templates: &[&str]) -> Vec<Probe> {
    let parsed: Vec<Option<UriTemplate>> =
        templates.iter().map(|template| UriTemplate::parse(template).ok()).collect();
    // A template that cannot be parsed might match anything.
    let matches = |uri: &str| {
        parsed.iter().any(|template| {
            template
                .as_ref()
                .is_none_or(|template| !matches!(template.match_uri(uri), Ok(Lookup::None { .. })))
        })
    };
    let probe = |uri: String| {
        let is_sound = normalize(&uri, MAX_URI).is_ok() && !uris.contains(&uri.as_str());
        is_sound.then(|| Probe { is_matched: matches(&uri), uri })
    };
    let mut probes = vec![Probe { uri: ABSENT.into(), is_matched: false }];
    let siblings = uris.iter().filter_map(|uri| probe(beside(uri)));
    let prefixes: BTreeSet<&str> = templates.iter().filter_map(|text| text.split('{').next()).collect();
    let outside = prefixes.iter().filter_map(|prefix| probe(beside(prefix)));
    let inside = prefixes.iter().filter_map(|prefix| probe(format!("{prefix}{UNLIKELY}")));
    for found in [Vec::from_iter(one_a_folder(siblings)), outside.collect(), inside.collect()] {
        let unknown: Vec<Probe> =
            found.into_iter().filter(|probe| !probes.contains(probe)).take(MOST).collect();
        probes.extend(unknown);
    }
    probes
}

/// The first probe of each folder: a server may list thousands of files in one.
fn one_a_folder(probes: impl Iterator<Item = Probe>) -> impl Iterator<Item = Probe> {
    let mut folders = BTreeSet::new();
    probes
        .filter(move |probe| folders.insert(probe.uri.rsplit_once('/').map(|(folder, _)| folder.to_owned())))
}

/// A URI with a name beside the last one of `uri`.
fn beside(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    match path.trim_end_matches('/') {
        // Nothing but a scheme, or a scheme and slashes.
        short if short.ends_with(':') => format!("{path}{UNLIKELY}/{UNLIKELY}"),
        short => format!("{short}-{UNLIKELY}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_beside_what_there_is() {
        let probe = |uri: &str, is_matched| Probe { uri: uri.into(), is_matched };
        let found = probes(
            &["a://x/one?y#z", "a://x/two", "b:three", "no uri"],
            &["a://x/{name}", "c://{+path}", "d:///{x}"],
        );
        assert_eq!(
            found,
            [
                probe(ABSENT, false),
                probe("a://x/one-mcp-resources-lint-6f1c0a52", true),
                probe("b:three-mcp-resources-lint-6f1c0a52", false),
                probe("a://x-mcp-resources-lint-6f1c0a52", false),
                probe("c://mcp-resources-lint-6f1c0a52/mcp-resources-lint-6f1c0a52", true),
                probe("d:///mcp-resources-lint-6f1c0a52/mcp-resources-lint-6f1c0a52", false),
                probe("a://x/mcp-resources-lint-6f1c0a52", true),
                probe("c://mcp-resources-lint-6f1c0a52", true),
                probe("d:///mcp-resources-lint-6f1c0a52", true),
            ]
        );
        assert!(probes(&["a://x"], &["{"]).iter().skip(1).all(|probe| probe.is_matched));
        let many: Vec<String> = (0..100).map(|number| format!("a://{number}/x")).collect();
        assert_eq!(probes(&many.iter().map(String::as_str).collect::<Vec<_>>(), &[]).len(), 1 + MOST);
    }
}
