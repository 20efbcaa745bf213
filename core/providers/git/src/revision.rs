//! The values of `{ref}`, `{from}`, `{to}` and `{id}`: the small part of git's revisions that a URI may name.
//!
//! ```text
//!   feature~2Fx~3^2 ──parse──▶ Revision { name: "feature/x", steps: [Ancestor(3), Parent(2)] } ──resolve──▶ an object's id
//! ```
//!
//! Law: a value is HEAD, a name or an id, each followed by any number of `~n` and `^n`, and no other syntax of git: no
//! reflog, no search, no range, no option. Only [`encode_name`] and [`parse`](GitRevision::parse) know that a slash is
//! `~2F`.

use std::fmt;

/// The longest name, in bytes.
const LONGEST: usize = 1_024;
/// Maximum number of steps behind a name, and the maximum distance of each.
const STEPS: usize = 64;
const FARTHEST: u32 = 10_000;
/// The shortest abbreviation of an id, in hexadecimal digits.
pub(super) const SHORTEST_ID: usize = 4;

/// A value in parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GitRevision {
    /// `HEAD`, or the name of a branch or tag, or an id.
    pub name: String,
    /// The steps behind the name, in order.
    pub steps: Vec<RevisionStep>,
}

/// A step from a commit to one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RevisionStep {
    /// `~n`: the ancestor reached by following first parents this many times.
    Ancestor(u32),
    /// `^n`: its nth parent; 0 is the commit itself.
    Parent(u32),
}

/// The expected form of a revision, as clients see it in the error.
pub(super) const EXPECTED: &str =
    "HEAD, a branch, a tag or an id, with ~n or ^n behind it; a slash in a name is ~2F";

impl GitRevision {
    /// Parses the value of a URI's variable; `None` if it has none of the allowed forms.
    pub fn parse(value: &str) -> Option<Self> {
        if value.len() > 2 * LONGEST {
            return None;
        }
        let text = decode_name(value);
        let end = text.find(['~', '^']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        is_name(name).then_some(())?;
        Some(Self { name: name.to_owned(), steps: steps(rest)? })
    }

    /// Whether it is a whole id with nothing behind it, which names the same object for ever.
    pub(super) fn is_fixed(&self) -> bool {
        self.steps.is_empty() && is_id(&self.name)
    }
}

/// As in a URI, before percent-encoding.
impl fmt::Display for GitRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_name(&self.name))?;
        self.steps.iter().try_for_each(|step| match step {
            RevisionStep::Ancestor(n) => write!(f, "~{n}"),
            RevisionStep::Parent(n) => write!(f, "^{n}"),
        })
    }
}

/// A name as one segment of a URI, before percent-encoding.
pub fn encode_name(name: &str) -> String {
    // A name has no tilde of its own, so nothing else needs an escape.
    name.replace('/', "~2F")
}

/// Whether it is a whole id in hexadecimal digits.
pub(super) fn is_id(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn decode_name(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('~') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let escape = from.get(..3).unwrap_or_default();
        let is_tilde = escape == "~7E" && from.get(3..5).is_some_and(|next| matches!(next, "2F" | "7E"));
        (text, rest) = match escape {
            "~2F" => (text + "/", &from[3..]),
            _ if is_tilde => (text + "~", &from[3..]),
            _ => (text + "~", &from[1..]),
        };
    }
    text.push_str(rest);
    text
}

/// Whether git could have a reference of this name, under `refs/heads` or elsewhere. An id is one too.
fn is_name(name: &str) -> bool {
    let has_forbidden = |name: &str| {
        name.chars()
            .any(|char| char.is_control() || matches!(char, ' ' | ':' | '?' | '*' | '[' | '\\' | '~' | '^'))
    };
    !name.is_empty()
        && name.len() <= LONGEST
        && name != "@"
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !has_forbidden(name)
        && !name.contains("..")
        && !name.contains("@{")
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
}

fn steps(text: &str) -> Option<Vec<RevisionStep>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let behind = rest.strip_prefix(['~', '^'])?;
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = behind.split_at(digits);
        let number = if number.is_empty() { 1 } else { number.parse().ok().filter(|n| *n <= FARTHEST)? };
        steps.push(match sign {
            '~' => RevisionStep::Ancestor(number),
            '^' => RevisionStep::Parent(number),
            _ => return None,
        });
        rest = after;
        if steps.len() > STEPS {
            return None;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-02: names, ids, and steps behind them; a slash is `~2F`.
    #[test]
    fn values_in_parts() {
        use RevisionStep::{Ancestor, Parent};
        for (value, name, steps) in [
            ("HEAD", "HEAD", &[][..]),
            ("HEAD~10", "HEAD", &[Ancestor(10)]),
            ("HEAD~", "HEAD", &[Ancestor(1)]),
            ("main^2~3", "main", &[Parent(2), Ancestor(3)]),
            ("feature~2Fx", "feature/x", &[]),
            ("feature~2Fx~2", "feature/x", &[Ancestor(2)]),
            ("a~2Fb~2Fc^", "a/b/c", &[Parent(1)]),
            ("v1.0-rc+1", "v1.0-rc+1", &[]),
            ("検索", "検索", &[]),
            ("deadbeef", "deadbeef", &[]),
        ] {
            let expected = GitRevision { name: name.into(), steps: steps.to_vec() };
            assert_eq!(GitRevision::parse(value), Some(expected.clone()), "{value}");
            assert_eq!(GitRevision::parse(&expected.to_string()), Some(expected), "{value}");
        }
    }

    // S-02: nothing else of git's syntax.
    #[test]
    fn what_is_no_value() {
        for value in [
            "",
            "@",
            "@{-1}",
            "@{u}",
            "main@{1}",
            ":/x",
            ":0:file",
            "--output=x",
            "-x",
            "a..b",
            "a...b",
            "^main",
            "HEAD^{/x}",
            "HEAD^{tree}",
            "HEAD~x",
            "HEAD~2f",
            "HEAD~2F",
            "HEAD~7E2F",
            "HEAD~1é",
            "HEAD~99999",
            "~1",
            "a~2F~2Fb",
            "a b",
            "a~2F.b",
            "a.lock",
            "refs~2F",
            "x.",
            "HEAD:file",
            "a*",
            "a\nb",
            "HEAD~-1",
            "main^-",
        ] {
            assert_eq!(GitRevision::parse(value), None, "{value}");
        }
        assert_eq!(GitRevision::parse(&"a".repeat(5_000)), None);
        assert_eq!(GitRevision::parse(&format!("HEAD{}", "~1".repeat(100))), None);
    }
}
