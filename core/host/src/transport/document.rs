//! Configuration files: their maximum size, and YAML as JSON values.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a file in bytes.
const MOST: u64 = 16 << 20;

/// Reads the text of a file of at most 16 MiB.
///
/// # Errors
/// The reason, without the path.
pub fn text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    // Limits the bytes that are read instead of the file's size, because a pipe has no size.
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MOST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.len() as u64 > MOST {
        true => Err(format!("it is larger than {MOST} bytes")),
        false => Ok(text),
    }
}

/// Whether the file's extension is `.yaml` or `.yml`.
#[cfg(feature = "client")]
fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("yaml") || ext.eq_ignore_ascii_case("yml"))
}

/// Parses a file as a JSON value: YAML for `.yaml` and `.yml`, else JSON.
///
/// # Errors
/// The reason, without the path and without an excerpt, which may contain secrets.
#[cfg(feature = "client")]
pub fn value(path: &Path) -> Result<serde_json::Value, String> {
    let text = text(path)?;
    if is_yaml(path) { yaml(&text) } else { json(&text) }
}

/// Parses a JSON text.
///
/// # Errors
/// The reason and the position.
#[cfg(feature = "client")]
pub(crate) fn json(text: &str) -> Result<serde_json::Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

/// Parses YAML as a JSON value, so that later errors can name the member and not only the line. Aliases cannot make it
/// grow without limit.
///
/// # Errors
/// The reason and the position, without an excerpt of the text, which may contain secrets.
#[cfg(feature = "yaml")]
pub fn yaml(text: &str) -> Result<serde_json::Value, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        // The parser's own message is for developers: it names options of the parser, and each alias around the
        // position.
        let said = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
        said.split(" (defined at").next().unwrap_or_default().to_owned()
    })
}

/// The error without the feature `yaml`.
///
/// # Errors
/// Always.
#[cfg(all(feature = "client", not(feature = "yaml")))]
pub(crate) fn yaml(_: &str) -> Result<serde_json::Value, String> {
    Err("YAML needs the feature `yaml`".into())
}
