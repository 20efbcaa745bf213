//! A file of ignore rules, parsed and applied as git does.
//!
//! ```text
//!   lines ──▶ Rule { negated, directories only, Matcher }        names and endings are looked up, the rest is tried
//!   IgnoreRules::decide(path, is_dir) ──▶ by the last rule that matches: ignored, not ignored, or no rule
//! ```
//!
//! Law: every decision equals that of `git check-ignore --no-index` for the same file. A line ends with a line feed;
//! one carriage return before it is ignored. Of white space, only spaces are trimmed, and only at the end. A line is
//! cut at its first NUL.

use super::wildmatch::{SPECIAL, WildPattern};
use std::borrow::Cow;
use std::collections::HashMap;

/// The rules of one file.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    rules: Vec<Rule>,
    /// Of the rules that are one name: which they are, ascending.
    names: HashMap<Vec<u8>, Vec<usize>>,
    /// The rules such as `*.o`, by the text behind the star, from its only dot on.
    endings: HashMap<Vec<u8>, Vec<usize>>,
    /// All others, ascending.
    others: Vec<usize>,
    /// Whether ASCII letters match in either case.
    folds: bool,
    is_everything: bool,
}

#[derive(Debug)]
struct Rule {
    is_negated: bool,
    is_for_directories: bool,
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    /// It is in `names` or in `endings`.
    Indexed,
    /// The name ends like this.
    Ending(Vec<u8>),
    /// The name matches.
    Name(WildPattern),
    /// The path begins so, and the rest of it matches; without a rest there is nothing more.
    Path(Vec<u8>, Option<WildPattern>),
}

impl IgnoreRules {
    /// Reads the rules in the bytes of a file.
    pub(super) fn parse(bytes: &[u8], folds: bool) -> Self {
        let mut rules = Self { folds, ..Self::default() };
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        for line in bytes.split(|byte| *byte == b'\n') {
            if !line.starts_with(b"#") {
                rules.add(trimmed(line));
            }
        }
        rules
    }

    /// Rules that ignore everything: for a file whose rules are not known.
    pub(super) fn everything() -> Self {
        Self { is_everything: true, ..Self::default() }
    }

    /// Whether there is no rule.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.is_everything
    }

    /// Whether a path, beginning at the directory of the file, is ignored; `None` if no rule matches it.
    pub(super) fn decide(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        if self.is_everything {
            return Some(true);
        }
        let path = if self.folds { Cow::Owned(path.to_ascii_lowercase()) } else { Cow::Borrowed(path) };
        let name =
            path.iter().rposition(|byte| *byte == b'/').and_then(|at| path.get(at + 1..)).unwrap_or(&path);
        let applies = |at: usize| self.rules.get(at).filter(|rule| is_dir || !rule.is_for_directories);
        let last = |found: Option<&Vec<usize>>| {
            found.into_iter().flatten().rev().copied().find(|at| applies(*at).is_some())
        };
        let ending = name.iter().rposition(|byte| *byte == b'.').and_then(|at| name.get(at..));
        let indexed =
            last(self.names.get(name)).max(ending.and_then(|ending| last(self.endings.get(ending))));
        let later = self.others.iter().rev().take_while(|at| Some(**at) > indexed);
        let found = later.copied().find(|at| applies(*at).is_some_and(|rule| rule.matches(&path, name)));
        applies(found.or(indexed)?).map(|rule| !rule.is_negated)
    }

    fn add(&mut self, line: &[u8]) {
        let (is_negated, pattern) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
        let (is_for_directories, pattern) =
            pattern.strip_suffix(b"/").map_or((false, pattern), |rest| (true, rest));
        if pattern.is_empty() {
            return;
        }
        let at = self.rules.len();
        let Some(matcher) = self.matcher(pattern, at) else { return };
        if !matches!(matcher, Matcher::Indexed) {
            self.others.push(at);
        }
        self.rules.push(Rule { is_negated, is_for_directories, matcher });
    }

    /// `None`: it matches nothing.
    fn matcher(&mut self, pattern: &[u8], at: usize) -> Option<Matcher> {
        let folded = |bytes: &[u8]| if self.folds { bytes.to_ascii_lowercase() } else { bytes.to_vec() };
        let special = |bytes: &[u8]| bytes.iter().position(|byte| SPECIAL.contains(byte));
        if pattern.contains(&b'/') {
            let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
            let Some(first) = special(pattern) else { return Some(Matcher::Path(folded(pattern), None)) };
            let (start, rest) = pattern.split_at(first);
            let start = folded(start);
            return Some(Matcher::Path(start, Some(WildPattern::parse(rest, self.folds)?)));
        }
        if special(pattern).is_none() {
            let name = folded(pattern);
            self.names.entry(name).or_default().push(at);
            return Some(Matcher::Indexed);
        }
        let Some(ending) = pattern.strip_prefix(b"*").filter(|ending| special(ending).is_none()) else {
            return Some(Matcher::Name(WildPattern::parse(pattern, self.folds)?));
        };
        let ending = folded(ending);
        let has_one_dot = ending.iter().rposition(|byte| *byte == b'.') == Some(0);
        if has_one_dot {
            self.endings.entry(ending).or_default().push(at);
            return Some(Matcher::Indexed);
        }
        Some(Matcher::Ending(ending))
    }
}

impl Rule {
    fn matches(&self, path: &[u8], name: &[u8]) -> bool {
        match &self.matcher {
            Matcher::Indexed => false,
            Matcher::Ending(ending) => name.ends_with(ending),
            Matcher::Name(pattern) => pattern.matches(name),
            Matcher::Path(start, rest) => match (path.strip_prefix(&**start), rest) {
                (Some(behind), Some(pattern)) => pattern.matches(behind),
                (Some(behind), None) => behind.is_empty(),
                (None, _) => false,
            },
        }
    }
}

/// A line without its end, and without spaces at its end that no backslash protects.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut at = 0;
    let mut end = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b' ' => at += 1,
            // What follows counts, whatever it is.
            b'\\' => {
                if at + 1 >= line.len() {
                    return line;
                }
                at += 2;
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    line.get(..end).unwrap_or(line)
}

#[cfg(test)]
mod tests;
