//! The names of tools and prompts that a principal may see.
//!
//! Law: a name is a text without structure: `*` matches any run of characters, `?` one character, and everything else
//! itself. A name that is not permitted gets the same answer as one that does not exist.

use super::policy::{NamePolicy, PolicyError};

/// The permitted names.
#[derive(Debug, Default)]
pub(super) struct NameRules {
    /// `None` allows everything.
    allow: Option<Box<[NameGlob]>>,
    deny: Box<[NameGlob]>,
}

/// One glob over names.
#[derive(Debug)]
struct NameGlob(Box<str>);

impl NameRules {
    /// Compiles a policy; `path` names it in errors.
    ///
    /// # Errors
    /// [`PolicyError`] for a glob that matches no name.
    pub(super) fn new(path: &str, policy: &NamePolicy) -> Result<Self, PolicyError> {
        let compiled = |member: &str, globs: &[String]| {
            let globs = globs.iter().enumerate();
            let glob = |(at, text): (usize, &String)| NameGlob::new(&format!("{path}.{member}[{at}]"), text);
            globs.map(glob).collect::<Result<Box<[NameGlob]>, _>>()
        };
        let allow = policy.allow.as_ref().map(|globs| compiled("allow", &globs.0)).transpose()?;
        Ok(Self { allow, deny: compiled("deny", &policy.deny.0)? })
    }

    /// Whether the name is allowed and not denied.
    pub(super) fn permit(&self, name: &str) -> bool {
        let among = |globs: &[NameGlob]| globs.iter().any(|glob| glob.matches(name));
        self.allow.as_deref().is_none_or(among) && !among(&self.deny)
    }
}

impl NameGlob {
    /// Longest glob, in bytes: longer than every name.
    const MAX_BYTES: usize = 2048;

    fn new(path: &str, text: &str) -> Result<Self, PolicyError> {
        if text.is_empty() || text.len() > Self::MAX_BYTES || text.contains(char::is_control) {
            let reason =
                format!("{text:?} matches no name: it is empty, too long, or has a control character");
            return Err(PolicyError::new(path, reason));
        }
        Ok(Self(text.into()))
    }

    /// Takes at most as many steps as the product of both lengths, which are limited.
    fn matches(&self, name: &str) -> bool {
        let glob = self.0.as_bytes();
        let name = name.as_bytes();
        let mut at = 0;
        let mut from = 0;
        // The last `*`, and the beginning of the part of the name that follows its run.
        let mut star: Option<(usize, usize)> = None;
        while from < name.len() {
            match glob.get(at) {
                Some(b'*') => {
                    star = Some((at, from));
                    at += 1;
                }
                Some(b'?') => {
                    at += 1;
                    from += char_len(name, from);
                }
                Some(byte) if name.get(from) == Some(byte) => {
                    at += 1;
                    from += 1;
                }
                _ => {
                    let Some((after, begun)) = star else { return false };
                    let begun = begun + 1;
                    star = Some((after, begun));
                    at = after + 1;
                    from = begun;
                }
            }
        }
        glob.iter().skip(at).all(|byte| *byte == b'*')
    }
}

/// The length in bytes of the character that begins at `at`.
fn char_len(text: &[u8], at: usize) -> usize {
    1 + text.iter().skip(at + 1).take_while(|byte| **byte & 0xC0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Globs;

    #[test]
    fn globs_over_names() {
        for (glob, matched, not) in [
            ("*", &["a", "a.b", "ä/b"][..], &[][..]),
            ("read_*", &["read_", "read_file"], &["read", "xread_"]),
            ("*_file", &["a_file", "_file", "_file_file"], &["file", "a_files"]),
            ("a*b*c", &["abc", "axbxc", "abbc", "abcbc"], &["ab", "abcb"]),
            ("a?c", &["abc", "aäc"], &["ac", "abbc"]),
            ("plain", &["plain"], &["Plain", "plain "]),
        ] {
            let glob = NameGlob::new("", glob).unwrap();
            for name in matched {
                assert!(glob.matches(name), "{glob:?} {name}");
            }
            for name in not {
                assert!(!glob.matches(name), "{glob:?} {name}");
            }
        }
    }

    #[test]
    fn a_glob_that_matches_no_name_is_refused_with_its_place() {
        let policy = NamePolicy { allow: None, deny: Globs(vec!["a".into(), String::new()]) };
        let error = NameRules::new("tools", &policy).unwrap_err();
        assert_eq!(error.field, "tools.deny[1]");
    }
}
