//! Texts of configuration files: how large they may be, and YAML as JSON values.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file, in bytes.
const MOST: u64 = 16 << 20;

/// The text of a file of at most 16 MiB.
///
/// # Errors
/// Why it cannot be read, without its path.
pub fn text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    // What is read counts, not the size: a pipe has none.
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MOST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.len() as u64 > MOST {
        true => Err(format!("it is larger than {MOST} bytes")),
        false => Ok(text),
    }
}

/// Whether the name of a file says that it is YAML: `.yaml` or `.yml`.
#[cfg(feature = "client")]
fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("yaml") || ext.eq_ignore_ascii_case("yml"))
}

/// What a file says, as a JSON value: YAML for `.yaml` and `.yml`, else JSON.
///
/// # Errors
/// Why it cannot be read, without its path and without an excerpt: it may hold secrets.
#[cfg(feature = "client")]
pub fn value(path: &Path) -> Result<serde_json::Value, String> {
    let text = text(path)?;
    if is_yaml(path) { yaml(&text) } else { json(&text) }
}

/// The value that a JSON text is.
///
/// # Errors
/// What is wrong and where.
#[cfg(feature = "client")]
pub(crate) fn json(text: &str) -> Result<serde_json::Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

/// YAML as a JSON value, so that errors about it name the member and not only the line. Aliases cannot make it grow without
/// limit.
///
/// # Errors
/// What is wrong and where, without an excerpt of the text: it may hold secrets.
#[cfg(feature = "yaml")]
pub fn yaml(text: &str) -> Result<serde_json::Value, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        // Its own text is for those who call it: it names options of the parser, and each alias around the place.
        let said = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
        said.split(" (defined at").next().unwrap_or_default().to_owned()
    })
}

/// Without the feature `yaml`, an error that says so.
///
/// # Errors
/// Always.
#[cfg(all(feature = "client", not(feature = "yaml")))]
pub(crate) fn yaml(_: &str) -> Result<serde_json::Value, String> {
    Err("YAML needs the feature `yaml`".into())
}
