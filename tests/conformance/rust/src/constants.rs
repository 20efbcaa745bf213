//! The resources whose content never changes.

use crate::described;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_resources::Builder;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const STATIC_TEXT: &str = "This is the content of the static text resource.";
const UNICODE: &str = "Grüße, 世界! 🦀 \u{2028}\u{2029} \"quotes\" \\back\\slash\\ \ttab\r\nnewline \0 nul \u{1f} unit \u{7f} del end";

pub(crate) fn add(mut server: Builder) -> Result<Builder, base64::DecodeError> {
    let plain = "text/plain";
    let binary = "application/octet-stream";
    server = server
        .text(described("static-text", plain, "A static text"), STATIC_TEXT)
        .bytes(described("static-binary", "image/png", "A static picture"), STANDARD.decode(PNG)?)
        .text(described("unicode", plain, "Characters that need care"), UNICODE)
        .text(described("empty-text", plain, "An empty text"), "")
        .bytes(described("empty-blob", binary, "No bytes"), [])
        .bytes(described("all-bytes", binary, "Every byte"), (0..=255).collect::<Vec<u8>>())
        .text(described("large-text", plain, "A megabyte of text"), "abcdefghij".repeat(100_000));
    for number in 0..60 {
        let item =
            described(&format!("page/{number:03}"), plain, &format!("Item {number:03} of a long list"));
        server = server.text(item.name(format!("page-{number:03}")), format!("Page item {number:03}"));
    }
    Ok(server)
}
