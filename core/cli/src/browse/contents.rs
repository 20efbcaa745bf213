//! Contents of resources as the page gets them: cut to a size that a browser can show.

use crate::output;
use mcp_resources_engine::connection::{Contents, PlainContents};
use serde_json::{Map, Value, json};

/// Most bytes of text in one answer. A longer text is cut, and can be downloaded.
pub(super) const MOST_TEXT: usize = 4 << 20;
/// Most bytes of blobs in one answer. A larger blob is left out, and can be downloaded.
pub(super) const MOST_BLOB: usize = 16 << 20;

/// Contents as JSON: as the protocol has them, with `size` in bytes, and `isCut` where `text` or `blob` is not whole.
pub(super) fn shown(uri: &str, contents: &[Contents<'_>]) -> Value {
    let mut text_left = MOST_TEXT;
    let mut blob_left = MOST_BLOB;
    let mut one = |contents: &Contents<'_>| {
        let mut members = Map::new();
        members.insert("uri".into(), json!(contents.uri.as_deref().unwrap_or(uri)));
        if let Some(kind) = contents.mime_type.as_deref() {
            members.insert("mimeType".into(), json!(kind));
        }
        if let Some(meta) = contents.meta.as_deref().and_then(|meta| serde_json::from_str(meta).ok()) {
            members.insert("_meta".into(), meta);
        }
        match contents.body.clone().into_plain() {
            Some(PlainContents::Text(text)) => {
                let kept = output::beginning(&text, text_left);
                text_left -= kept.len();
                members.insert("size".into(), json!(text.len()));
                members.insert("isCut".into(), json!(kept.len() < text.len()));
                members.insert("text".into(), json!(kept));
            }
            Some(PlainContents::Blob(bytes)) => {
                let is_cut = bytes.len() > blob_left;
                let kept = if is_cut { &[][..] } else { &*bytes };
                blob_left -= kept.len();
                members.insert("size".into(), json!(bytes.len()));
                members.insert("isCut".into(), json!(is_cut));
                members.insert("blob".into(), json!(output::base64(kept)));
            }
            None => drop(members.insert("error".into(), json!("the blob is not base64"))),
        }
        Value::Object(members)
    };
    contents.iter().map(&mut one).collect()
}

/// The bytes of contents, one after another. Blobs that are not base64 are left out.
pub(super) fn bytes(contents: Vec<Contents<'_>>) -> Vec<u8> {
    let mut all = Vec::new();
    for one in contents {
        match one.body.into_plain() {
            Some(PlainContents::Text(text)) if all.is_empty() => all = text.into_owned().into_bytes(),
            Some(PlainContents::Text(text)) => all.extend(text.as_bytes()),
            Some(PlainContents::Blob(blob)) if all.is_empty() => all = blob.into_owned(),
            Some(PlainContents::Blob(blob)) => all.extend(&*blob),
            None => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_are_too_big_are_cut_and_say_so() {
        let long = "é".repeat(MOST_TEXT);
        let all = shown("a:b", &[Contents::text("x"), Contents::text(long.as_str()), Contents::text("y")]);
        assert_eq!(all[0], json!({"uri": "a:b", "size": 1, "isCut": false, "text": "x"}));
        assert_eq!((&all[1]["size"], &all[1]["isCut"]), (&json!(2 * MOST_TEXT), &json!(true)));
        // The limit lies within a character.
        assert_eq!(all[1]["text"].as_str().map(str::len), Some(MOST_TEXT - 2));
        assert_eq!((&all[2]["text"], &all[2]["isCut"]), (&json!("y"), &json!(false)));
        let blob = vec![0; MOST_BLOB + 1];
        let all = shown("a:b", &[Contents::blob(blob), Contents::blob(&b"\0"[..]), Contents::base64("%")]);
        assert_eq!((&all[0]["blob"], &all[0]["isCut"]), (&json!(""), &json!(true)));
        assert_eq!((&all[1]["blob"], &all[1]["isCut"]), (&json!("AA=="), &json!(false)));
        assert!(all[2]["error"].is_string());
    }
}
