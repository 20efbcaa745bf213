//! Parses files of `NAME=VALUE` lines, such as `.env`.
//!
//! Law: nothing is expanded: `${NAME}` stays as it is, so no other variable of this machine gets in. Not a crate,
//! because the usual one expands from the environment. If a name occurs twice, the last value counts, as in a shell. A
//! line that is no assignment is left out, as in python-dotenv and Node; an unclosed quote makes the file invalid,
//! because it may be incomplete.

use serde_json::{Map, Value};

/// The contents of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Variables {
    pub(super) members: Map<String, Value>,
    /// The first invalid line, counted from 1, and the number of invalid lines.
    pub(super) left_out: Option<(u64, usize)>,
}

/// A quoted value that does not end, or too many variables.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) line: u64,
    pub(super) is_too_long: bool,
}

/// The variables of a file, `max` of them at most.
pub(super) fn parse(text: &str, max: usize) -> Result<Variables, Unreadable> {
    let mut found = Variables::default();
    let mut rest = DotenvLines { text, at: 1 };
    while !rest.text.is_empty() {
        let at = rest.at;
        let line = rest.line().trim_start();
        if line.trim_end().is_empty() || line.starts_with('#') {
            continue;
        }
        let read = match assignment(line) {
            Some((name, value)) => rest.value(value, at)?.map(|value| (name, value)),
            None => None,
        };
        match read {
            Some((name, value)) => drop(found.members.insert(name.to_owned(), Value::String(value))),
            None => {
                let (_, count) = found.left_out.get_or_insert((at, 0));
                *count += 1;
            }
        }
        if found.members.len() > max {
            return Err(Unreadable { line: at, is_too_long: true });
        }
    }
    Ok(found)
}

/// The name in a line, which may be in single quotes, and the text behind its `=`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = match line.strip_prefix("export") {
        Some(after) if after.starts_with([' ', '\t']) => after.trim_start(),
        _ => line,
    };
    let (name, after) = match line.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => line
            .split_at_checked(line.find(|char: char| char == '=' || char == '#' || char.is_whitespace())?)?,
    };
    let value = after.trim_start_matches([' ', '\t']).strip_prefix('=')?;
    (!name.is_empty()).then(|| (name, value.trim_start_matches([' ', '\t'])))
}

/// A value without quotes: up to a comment behind a space.
fn plain(value: &str) -> &str {
    let comment = value
        .char_indices()
        .zip(value.chars().skip(1))
        .find(|((_, space), mark)| space.is_whitespace() && *mark == '#');
    let end = comment.map_or(value.len(), |((at, _), _)| at);
    if value.starts_with('#') { "" } else { value.get(..end).unwrap_or_default().trim_end() }
}

/// The unread rest of a file.
struct DotenvLines<'t> {
    text: &'t str,
    at: u64,
}

impl<'t> DotenvLines<'t> {
    /// The next line, without its end: LF, CRLF or CR.
    fn line(&mut self) -> &'t str {
        let end = self.text.find(['\n', '\r']).unwrap_or(self.text.len());
        let (line, rest) = self.text.split_at_checked(end).unwrap_or((self.text, ""));
        self.text = rest.strip_prefix("\r\n").or_else(|| rest.get(1..)).unwrap_or_default();
        self.at = self.at.saturating_add(1);
        line
    }

    /// A value that begins in the line `at`; `None` if more than a comment follows its quotes.
    fn value(&mut self, value: &'t str, at: u64) -> Result<Option<String>, Unreadable> {
        match value.chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => {
                self.quoted(quote, value).ok_or(Unreadable { line: at, is_too_long: false })
            }
            _ => Ok(Some(plain(value).to_owned())),
        }
    }

    /// Reads a quoted value, which may have several lines; `None` if the quotes do not close. The inner value is `None`
    /// if anything but a comment follows.
    fn quoted(&mut self, quote: char, first: &'t str) -> Option<Option<String>> {
        let mut value = String::new();
        let mut line = first.get(1..).unwrap_or_default();
        loop {
            let mut chars = line.char_indices();
            while let Some((at, char)) = chars.next() {
                if char == quote {
                    let after = line.get(at + 1..).unwrap_or_default().trim_start();
                    return Some((after.is_empty() || after.starts_with('#')).then_some(value));
                }
                let is_last = || is_last_quote(line.get(at + 1..).unwrap_or_default(), quote);
                let escaped = if char == '\\' && quote != '`' && !is_last() { chars.next() } else { None };
                match escaped.map(|(_, char)| char) {
                    None => value.push(char),
                    Some(own) => match escape(own, quote) {
                        Some(char) => value.push(char),
                        None => value.extend(['\\', own]),
                    },
                }
            }
            if self.text.is_empty() {
                return None;
            }
            value.push('\n');
            line = self.line();
        }
    }
}

/// Whether a line has text behind a backslash and a single quote, and no other quote: a path such as 'C:\dir\' ends
/// like this.
fn is_last_quote(rest: &str, quote: char) -> bool {
    quote == '\'' && rest.strip_prefix(quote).is_some_and(|rest| !rest.contains(quote))
}

/// The character that `\` and `char` represent; `None` if they represent themselves.
fn escape(char: char, quote: char) -> Option<char> {
    match char {
        '\\' | '\'' => Some(char),
        _ if quote == '\'' => None,
        '"' | '$' => Some(char),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-04: `export`, quotes, comments, several lines, CRLF and CR.
    #[test]
    fn lines_are_variables() {
        for (text, name, value) in [
            ("A=b", "A", "b"),
            ("export A=b", "A", "b"),
            ("  export\tA = b c  # comment\r\n", "A", "b c"),
            ("exported=1", "exported", "1"),
            ("export=1", "export", "1"),
            ("A=", "A", ""),
            ("A=# nothing", "A", ""),
            ("A=a#b", "A", "a#b"),
            ("A=a=b", "A", "a=b"),
            ("A='a # $B \\n' # comment", "A", "a # $B \\n"),
            ("A='it\\'s \\\\'", "A", "it's \\"),
            (r#"A="a\n\"b\" \$ \x""#, "A", "a\n\"b\" $ \\x"),
            ("A=`a \"b\" 'c' \\n` # comment", "A", "a \"b\" 'c' \\n"),
            ("A='C:\\dir\\'", "A", "C:\\dir\\"),
            ("A='C:\\dir\\' # it", "A", "C:\\dir\\"),
            ("A=`one\ntwo`\nB=c", "A", "one\ntwo"),
            ("A=\"one\r\ntwo\"\nB=c", "A", "one\ntwo"),
            ("A='one\ntwo'", "A", "one\ntwo"),
            ("A=${HOME}/x", "A", "${HOME}/x"),
            ("A=1\nA=2", "A", "2"),
            ("A=1\rB=2\rA=3", "A", "3"),
            ("a.b-c=検索", "a.b-c", "検索"),
            ("1A=1", "1A", "1"),
            ("Ä=1", "Ä", "1"),
            ("'a b'=1", "a b", "1"),
            ("# x\n\n   \nA=b", "A", "b"),
        ] {
            assert_eq!(parse(text, 9).unwrap().members[name], value, "{text:?}");
        }
    }

    // S-04: what is no assignment is left out and said; the rest is read.
    #[test]
    fn lines_that_are_no_variables_are_left_out() {
        for (text, line, count) in [
            ("A=1\nB\nC=2", 2, 1),
            ("=1\nA=1\nC=2", 1, 1),
            ("A=1\nA B=1\nexport D\nC=2", 2, 2),
            ("X='x' y\nA=1\nC=2", 1, 1),
            ("A=1\nC=2\nkey: value", 3, 1),
        ] {
            let found = parse(text, 9).unwrap();
            assert_eq!(found.left_out, Some((line, count)), "{text:?}");
            let names: Vec<_> = found.members.keys().map(String::as_str).collect();
            assert_eq!(names, ["A", "C"], "{text:?}");
        }
    }

    // S-04: a quote that does not close is refused with its line: the file may be half-written.
    #[test]
    fn half_of_a_file_is_refused() {
        for (text, line) in [("A=1\n\nB='x\ny", 3), ("A=\"x\\\"", 1), ("A=`x", 1)] {
            assert_eq!(parse(text, 9), Err(Unreadable { line, is_too_long: false }), "{text:?}");
        }
        assert!(parse("A=1\nB=1", 1).unwrap_err().is_too_long);
    }
}
