//! URLs of HTTP APIs, and ids in them.

use mcp_resources_providers::api::template::UrlTemplate;

/// Any text is a URL or is refused with a reason. Of a URL, an id changes nothing but its own segment or value: the
/// line after the first is the id.
pub fn api_url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (url, id) = text.split_once('\n').unwrap_or((&text, "x"));
    let template = match UrlTemplate::parse(url) {
        Ok(template) => template,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let expanded = template.expand(id);
    let plain = template.expand("x");
    assert!(expanded.bytes().all(|byte| byte.is_ascii_graphic()), "{expanded}");
    // Nothing that separates parts of a URL is added or taken away.
    let separators = |url: &str| {
        let is_separator =
            |char: &char| matches!(char, '/' | '?' | '#' | '&' | '=' | '@' | ':' | '[' | ']' | ';');
        url.chars().filter(is_separator).collect::<String>()
    };
    assert_eq!(separators(&expanded), separators(&plain), "{expanded}");
    if template.takes_id() && !id.is_empty() {
        let before = url.split("{id}").next().unwrap_or_default();
        let encoded = &expanded[before.len()..];
        let end = encoded.find(['/', '?', '&', '=']).unwrap_or(encoded.len());
        assert!(!matches!(&encoded[..end], "." | ".."), "{expanded}");
    }
}
