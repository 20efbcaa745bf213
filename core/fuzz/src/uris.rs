//! URIs and templates.

use mcp_resources_template::uri::{normalize, normalize_strict, scheme};
use mcp_resources_template::{Lookup, TemplateSet, UriTemplate, Values};

/// The most bytes of a URI here.
const MAX: usize = 1 << 16;

/// The normal form is the normal form of itself, keeps to its bounds, and does not depend on the dialect.
pub fn uri(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let strict = normalize_strict(&text, MAX);
    let Ok(normal) = normalize(&text, MAX) else { return assert!(strict.is_err()) };
    assert_eq!(normalize(&normal, MAX).as_deref(), Ok(&*normal));
    assert_eq!(normalize_strict(&normal, MAX).as_deref(), Ok(&*normal));
    assert!(strict.is_err() || strict == Ok(normal.clone()));
    assert!(normal.is_ascii() && text.len() <= 3 * normal.len() && normal.len() <= 3 * text.len());
    let scheme = scheme(&normal);
    assert!(!scheme.is_empty() && scheme == scheme.to_ascii_lowercase());
}

/// The first line is a URI, the others are templates: a template finds alone what it finds in a set, whatever the
/// spelling of the URI, and what it found can be expanded.
pub fn template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let uri = lines.next().unwrap_or_default();
    let templates: Vec<_> = lines.take(16).filter_map(|line| UriTemplate::parse(line).ok()).collect();
    let Ok(normal) = normalize(uri, MAX) else { return };
    for template in &templates {
        let found = template.match_uri(uri);
        assert_eq!(found, template.match_uri(&normal));
        let alone = TemplateSet::new([template.clone()]);
        assert_eq!(alone.map(|set| set.match_uri(uri)), Ok(found.clone()));
        if let Ok(Lookup::Match { params, .. }) = found {
            let mut values = Values::new();
            params.iter().for_each(|(name, value)| values.insert(name, value.clone()));
            assert!(template.expand(&values).is_ok());
        }
    }
    if let Ok(set) = TemplateSet::new(templates) {
        let found = set.match_uri(uri);
        assert_eq!(found, set.match_uri(&normal));
        if let Ok(Lookup::Match { index, .. }) = found {
            assert!(matches!(set.templates()[index].match_uri(uri), Ok(Lookup::Match { .. })));
        }
    }
}
