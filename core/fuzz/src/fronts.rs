//! The front matter of texts.

use mcp_resources_provider_kit::front_matter::{Split, split};

/// Any text is split without loss, and its front matter is bounded JSON or an error that says something.
pub fn front_matter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Split { block, body, body_line } = split(&text);
    assert!(text.ends_with(body));
    let before = &text[..text.len() - body.len()];
    // A lone carriage return ends a line too.
    let lines = before.replace("\r\n", "\n").replace('\r', "\n").lines().count() as u64;
    let Some(block) = block else {
        return assert_eq!((body_line, before.trim_start_matches('\u{feff}')), (1, ""));
    };
    assert_eq!(body_line, lines + 1);
    assert!(before.contains(block.text) && block.text.len() < before.len());
    match block.parse() {
        Err(fault) => {
            assert!(!fault.what.is_empty());
            assert!(fault.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{fault} of {lines}");
        }
        Ok(members) => {
            let json = serde_json::to_vec(&members).unwrap_or_default();
            assert!(json.len() < 1 << 20, "{} bytes", json.len());
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&json);
            assert!(read.is_ok_and(|value| value.is_object()));
        }
    }
}
