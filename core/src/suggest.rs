//! Names that were misspelled: the closest known one, for error messages.

/// Names longer than this are compared by equality alone.
const LONGEST: usize = 64;

/// The known name that `given` most likely stands for: the same but for case, `_` and `-`, or a few letters away.
///
/// # Examples
/// ```
/// use mcp_resources::suggest::closest;
/// assert_eq!(closest("mimeType", ["name", "mime_type"]), Some("mime_type"));
/// assert_eq!(closest("tags", ["name", "mime_type"]), None);
/// ```
pub fn closest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain = plain(given);
    if plain.len() > LONGEST {
        return None;
    }
    let most = (plain.len() / 3).min(2);
    let distances = known.into_iter().map(|name| (distance(&plain, &self::plain(name)), name));
    distances
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The message about an unknown name: `unexpected option "mimeType"; did you mean "mime_type"?`, or the list of what
/// there is. `what` is the singular noun, such as `option`.
pub fn unexpected(what: &str, given: &str, known: &[&str]) -> String {
    let shown: String = given.chars().take(LONGEST).collect();
    match closest(given, known.iter().copied()) {
        Some(name) => format!("unexpected {what} {shown:?}; did you mean {name:?}?"),
        None => format!("unexpected {what} {shown:?}; expected one of {}", known.join(", ")),
    }
}

fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// How many letters must be inserted, removed, replaced or swapped with their neighbour.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut older: Vec<usize> = Vec::new();
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut now = vec![row + 1];
        for (column, against) in other.iter().enumerate() {
            let mut least = (before[column] + usize::from(letter != against)).min(before[column + 1] + 1);
            least = least.min(now[column] + 1);
            if row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *against {
                least = least.min(older[column - 1] + 1);
            }
            now.push(least);
        }
        older = std::mem::replace(&mut before, now);
    }
    before.last().copied().unwrap_or_default()
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
