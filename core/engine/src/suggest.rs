//! Suggestions for misspelled names, for error messages.

use strsim::osa_distance;

/// Longer names are only compared for equality, and are shortened in messages.
const LONGEST: usize = 64;

/// Finds the known name that `given` most likely means: equal except for case, `_` and `-`, or a few letters away.
///
/// # Examples
/// ```
/// use mcp_resources_engine::suggest::closest;
/// assert_eq!(closest("mimeType", ["name", "mime_type"]), Some("mime_type"));
/// assert_eq!(closest("tags", ["name", "mime_type"]), None);
/// ```
pub fn closest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain = plain(given);
    let length = plain.chars().count();
    if length > LONGEST {
        return None;
    }
    let max = (length / 3).min(2);
    let distances = known.into_iter().map(|name| (osa_distance(&plain, &self::plain(name)), name));
    distances
        .filter(|(distance, _)| *distance <= max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The message about an unknown name: `unexpected option "mimeType"; did you mean "mime_type"?`, or with the list of
/// known names. `what` is the singular noun, such as `option`.
pub fn unexpected(what: &str, given: &str, known: &[&str]) -> String {
    let shown: String = given.chars().take(LONGEST).collect();
    match closest(given, known.iter().copied()) {
        Some(name) => format!("unexpected {what} {shown:?}; did you mean {name:?}?"),
        None => format!("unexpected {what} {shown:?}; expected one of {}", known.join(", ")),
    }
}

/// Converts a text in the notation of a web framework to the URI template that was probably meant: `notes://:day` and
/// `notes://<day>` become `notes://{day}`, `files://<path:name>` becomes `files://{+name}`. `None` without such a notation.
///
/// # Examples
/// ```
/// use mcp_resources_engine::suggest::template;
/// assert_eq!(template("notes://:day/<id>").as_deref(), Some("notes://{day}/{id}"));
/// assert_eq!(template("notes://host:80/a:b"), None);
/// ```
pub fn template(text: &str) -> Option<String> {
    // Asked of each URI that is registered, and hardly any has this notation.
    let mut before = 0;
    let marks = |byte: u8| std::mem::replace(&mut before, byte) == b'/' && byte == b':' || byte == b'<';
    if !text.bytes().any(marks) {
        return None;
    }
    let mut meant = String::new();
    let mut rest = text;
    while let Some(at) = rest.find([':', '<']) {
        let (before, found) = rest.split_at(at);
        meant.push_str(before);
        let (variable, length) =
            colon(&meant, found).or_else(|| angle(found)).unwrap_or_else(|| (found[..1].into(), 1));
        meant.push_str(&variable);
        rest = &found[length..];
    }
    meant.push_str(rest);
    (meant != text).then_some(meant)
}

/// The expression for `:name`, which matches one segment, and the length of the text it replaces.
fn colon(before: &str, found: &str) -> Option<(String, usize)> {
    let name = found.strip_prefix(':').filter(|_| before.ends_with('/'))?;
    let name = &name[..name.find(['/', '?', '#']).unwrap_or(name.len())];
    is_name(name).then(|| (format!("{{{name}}}"), 1 + name.len()))
}

/// The expression for `<name>` or `<type:name>`, and the length of the text it replaces.
fn angle(found: &str) -> Option<(String, usize)> {
    let (body, _) = found.strip_prefix('<')?.split_once('>')?;
    let (operator, name) = match body.rsplit_once(':') {
        Some(("path", name)) => ("+", name),
        Some((_, name)) => ("", name),
        None => ("", body),
    };
    is_name(name).then(|| (format!("{{{operator}{name}}}"), body.len() + 2))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn plain(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_recognised() {
        let known = ["mime_type", "description", "audience", "ttl_ms"];
        for (given, meant) in [
            ("mimeType", Some("mime_type")),
            ("mimetype", Some("mime_type")),
            ("desciption", Some("description")),
            ("audeince", Some("audience")),
            ("TTL-MS", Some("ttl_ms")),
            ("ttl", None),
            ("tags", None),
            ("", None),
        ] {
            assert_eq!(closest(given, known), meant, "{given}");
        }
    }

    #[test]
    fn variables_in_the_notation_of_frameworks_are_recognised() {
        for (given, meant) in [
            ("notes://:day", Some("notes://{day}")),
            ("notes://a/:day/:id?x=1", Some("notes://a/{day}/{id}?x=1")),
            ("notes://<day>", Some("notes://{day}")),
            ("notes://<int:day>/x", Some("notes://{day}/x")),
            ("files://<path:name>", Some("files://{+name}")),
            ("notes://:80/a", None),
            ("notes://user:secret@host/a:b", None),
            ("urn:isbn:12", None),
            ("notes://<>/<a b", None),
            ("notes://{day}", None),
            (":", None),
            ("é/:é", None),
        ] {
            assert_eq!(template(given).as_deref(), meant, "{given}");
        }
    }

    #[test]
    fn the_message_names_the_value_and_the_fix() {
        assert_eq!(
            unexpected("option", "mimeType", &["name", "mime_type"]),
            r#"unexpected option "mimeType"; did you mean "mime_type"?"#
        );
        assert_eq!(
            unexpected("option", "tags", &["name", "mime_type"]),
            r#"unexpected option "tags"; expected one of name, mime_type"#
        );
        assert!(unexpected("option", &"x".repeat(100_000), &["name"]).len() < 200);
    }
}
