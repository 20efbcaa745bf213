//! Files of `NAME=VALUE` lines, as `.env`.
//!
//! Law: nothing is expanded: `${NAME}` stays as it is written, so no other variable of this machine comes in. Not a crate: the
//! usual one expands from the environment. Of a name that stands twice the last value counts, as for a shell.

use serde_json::{Map, Value};

/// The variables of a file, `max` of them at most; else the line, from 1, of what is wrong.
pub(super) fn parse(text: &str, max: usize) -> Result<Map<String, Value>, Option<u64>> {
    let mut members = Map::new();
    let mut rest = Lines { text, at: 1 };
    while !rest.text.is_empty() {
        let at = rest.at;
        let line = rest.line();
        let line = line.trim_start();
        if line.trim_end().is_empty() || line.starts_with('#') {
            continue;
        }
        let assignment = match line.strip_prefix("export") {
            Some(after) if after.starts_with([' ', '\t']) => after.trim_start(),
            _ => line,
        };
        let (name, value) = assignment.split_once('=').ok_or(Some(at))?;
        let name = name.trim_end();
        let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
        if name.is_empty()
            || !name.chars().all(is_name)
            || name.starts_with(|char: char| char.is_ascii_digit())
        {
            return Err(Some(at));
        }
        let value = value.trim_start_matches([' ', '\t']);
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => rest.quoted(quote, value).ok_or(Some(at))?,
            _ => plain(value).to_owned(),
        };
        members.insert(name.to_owned(), Value::String(value));
        if members.len() > max {
            return Err(Some(at));
        }
    }
    Ok(members)
}

/// A value without quotes: up to a comment behind a space.
fn plain(value: &str) -> &str {
    let comment = [" #", "\t#"].iter().filter_map(|mark| value.find(mark)).min();
    let value = if value.starts_with('#') { "" } else { &value[..comment.unwrap_or(value.len())] };
    value.trim_end()
}

/// What is left of a file.
struct Lines<'t> {
    text: &'t str,
    at: u64,
}

impl<'t> Lines<'t> {
    /// The next line, without its end.
    fn line(&mut self) -> &'t str {
        let (line, rest) = self.text.split_once('\n').unwrap_or((self.text, ""));
        (self.text, self.at) = (rest, self.at + 1);
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// What stands in quotes, over several lines too; `None` if they do not close, or more than a comment follows.
    fn quoted(&mut self, quote: char, first: &'t str) -> Option<String> {
        let mut value = String::new();
        let mut line = &first[1..];
        loop {
            let mut chars = line.char_indices();
            while let Some((at, char)) = chars.next() {
                if char == quote {
                    let after = line[at + 1..].trim_start();
                    return (after.is_empty() || after.starts_with('#')).then_some(value);
                }
                let escaped = if char == '\\' && quote == '"' { chars.next() } else { None };
                match escaped.map(|(_, char)| char) {
                    None => value.push(char),
                    Some('n') => value.push('\n'),
                    Some('r') => value.push('\r'),
                    Some('t') => value.push('\t'),
                    Some(own @ ('"' | '\\' | '$')) => value.push(own),
                    Some(other) => value.extend(['\\', other]),
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

#[cfg(test)]
mod tests {
    use super::parse;

    /// S-04: `export`, quotes, comments, several lines, CRLF.
    #[test]
    fn lines_are_variables() {
        for (text, name, value) in [
            ("A=b", "A", "b"),
            ("export A=b", "A", "b"),
            ("  export\tA = b c  # comment\r\n", "A", "b c"),
            ("exported=1", "exported", "1"),
            ("A=", "A", ""),
            ("A=# nothing", "A", ""),
            ("A=a#b", "A", "a#b"),
            ("A=a=b", "A", "a=b"),
            ("A='a # $B \\n' # comment", "A", "a # $B \\n"),
            (r#"A="a\n\"b\" \$ \x""#, "A", "a\n\"b\" $ \\x"),
            ("A=\"one\r\ntwo\"\nB=c", "A", "one\ntwo"),
            ("A='one\ntwo'", "A", "one\ntwo"),
            ("A=${HOME}/x", "A", "${HOME}/x"),
            ("A=1\nA=2", "A", "2"),
            ("a.b-c=検索", "a.b-c", "検索"),
            ("# x\n\n   \nA=b", "A", "b"),
        ] {
            assert_eq!(parse(text, 9).unwrap()[name], value, "{text:?}");
        }
    }

    /// S-04: what is no assignment is refused with its line: the file may be half-written.
    #[test]
    fn what_is_no_variable_is_refused() {
        for (text, line) in [
            ("A=1\nB", 2),
            ("=1", 1),
            ("1A=1", 1),
            ("A B=1", 1),
            ("A=1\n\nB='x\ny", 3),
            ("A='x' y", 1),
            ("A=\"x\\\"", 1),
        ] {
            assert_eq!(parse(text, 9), Err(Some(line)), "{text:?}");
        }
        assert!(parse("A=1\nB=1", 1).is_err());
    }
}
