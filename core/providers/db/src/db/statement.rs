//! Parses the operator's statements: finds their parameters `:name`, and checks that each text is one statement.
//!
//! Law: quoted text, comments and the text behind `::` have no parameters. The database checks whether the statement is
//! a SELECT: see `sqlite` and `postgres`.

use super::options::DbEngine;

/// A statement, cut at its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The text before each parameter, and behind the last one.
    texts: Vec<String>,
    /// The parameter behind each of these texts but the last, by its index in `names`.
    uses: Vec<usize>,
    /// The parameters in the order of their first uses.
    pub(super) names: Vec<String>,
}

impl Statement {
    /// Reads the text of one statement; a `;` may end it.
    ///
    /// # Errors
    /// It is empty, several, or has a quote or a comment without an end: as half a sentence.
    pub(super) fn parse(sql: &str, engine: DbEngine) -> Result<Self, &'static str> {
        let mut statement = Self { texts: Vec::new(), uses: Vec::new(), names: Vec::new() };
        let mut text = String::new();
        let mut rest = sql;
        let mut is_empty = true;
        while let Some(token) = SqlToken::next(rest, engine)? {
            rest = rest.get(token.text().len()..).unwrap_or_default();
            match token {
                SqlToken::Parameter(name) => {
                    let name = name.get(1..).unwrap_or_default();
                    let known = statement.names.iter().position(|known| known == name);
                    let index = known.unwrap_or(statement.names.len());
                    if known.is_none() {
                        statement.names.push(name.to_owned());
                    }
                    statement.texts.push(std::mem::take(&mut text));
                    statement.uses.push(index);
                }
                SqlToken::End(_) => break,
                // A comment separates words.
                SqlToken::Comment(_) => text.push(' '),
                SqlToken::Other(other) => {
                    is_empty &= other.trim().is_empty();
                    text.push_str(other);
                }
            }
        }
        while let Some(token) = SqlToken::next(rest, engine)? {
            match token {
                SqlToken::Comment(_) | SqlToken::End(_) => {}
                SqlToken::Other(other) if other.trim().is_empty() => {}
                _ => return Err("has more than one statement; write one SELECT"),
            }
            rest = rest.get(token.text().len()..).unwrap_or_default();
        }
        if is_empty {
            return Err("is empty; write a SELECT");
        }
        statement.texts.push(text.trim_end().to_owned());
        Ok(statement)
    }

    /// Whether a name in the text is `name`, quoted or not; the case of letters does not matter.
    pub(super) fn mentions(&self, name: &str, engine: DbEngine) -> bool {
        self.texts.iter().any(|text| {
            let mut rest = text.as_str();
            while let Ok(Some(token)) = SqlToken::next(rest, engine) {
                let token = token.text();
                let plain = token.strip_prefix('"').and_then(|token| token.strip_suffix('"'));
                if plain.unwrap_or(token).eq_ignore_ascii_case(name) {
                    return true;
                }
                rest = rest.get(token.len()..).unwrap_or_default();
            }
            false
        })
    }

    /// The text with `parameter(index)` instead of each parameter.
    pub(super) fn render(&self, parameter: impl Fn(usize) -> String) -> String {
        let mut sql = String::new();
        for (at, text) in self.texts.iter().enumerate() {
            sql.push_str(text);
            if let Some(index) = self.uses.get(at) {
                sql.push_str(&parameter(*index));
            }
        }
        sql
    }
}

/// A piece of a statement.
#[derive(Clone, Copy, Debug)]
enum SqlToken<'s> {
    /// With its colon.
    Parameter(&'s str),
    Comment(&'s str),
    /// A `;`.
    End(&'s str),
    Other(&'s str),
}

impl<'s> SqlToken<'s> {
    fn text(&self) -> &'s str {
        match self {
            Self::Parameter(text) | Self::Comment(text) | Self::End(text) | Self::Other(text) => text,
        }
    }

    /// The first piece of `sql`.
    fn next(sql: &'s str, engine: DbEngine) -> Result<Option<Self>, &'static str> {
        const OPEN: &str = "has a quote without its end";
        let Some(first) = sql.chars().next() else { return Ok(None) };
        let upto = |length: Option<usize>, reason| length.and_then(|length| sql.get(..length)).ok_or(reason);
        let token = match first {
            ';' => Self::End(upto(Some(1), OPEN)?),
            ':' if sql.starts_with("::") => Self::Other(upto(Some(2), OPEN)?),
            ':' => match word(sql.get(1..).unwrap_or_default()) {
                0 => Self::Other(upto(Some(1), OPEN)?),
                length => Self::Parameter(upto(Some(1 + length), OPEN)?),
            },
            '\'' | '"' => Self::Other(upto(quoted(sql, first, false), OPEN)?),
            '`' if engine == DbEngine::Sqlite => Self::Other(upto(quoted(sql, '`', false), OPEN)?),
            '[' if engine == DbEngine::Sqlite => Self::Other(upto(sql.find(']').map(|at| at + 1), OPEN)?),
            '$' if engine == DbEngine::Postgres => Self::Other(upto(dollars(sql), OPEN)?),
            '-' if sql.starts_with("--") => {
                Self::Comment(upto(Some(sql.find('\n').unwrap_or(sql.len())), OPEN)?)
            }
            '/' if sql.starts_with("/*") => {
                Self::Comment(upto(block(sql, engine), "has a comment without its end")?)
            }
            'E' | 'e' if engine == DbEngine::Postgres && sql[1..].starts_with('\'') => {
                Self::Other(upto(quoted(&sql[1..], '\'', true).map(|length| 1 + length), OPEN)?)
            }
            _ => match word(sql) {
                0 => Self::Other(upto(Some(first.len_utf8()), OPEN)?),
                length => Self::Other(upto(Some(length), OPEN)?),
            },
        };
        Ok(Some(token))
    }
}

/// The length of the name at the beginning of `text`.
fn word(text: &str) -> usize {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    match text.starts_with(is_first) {
        true => text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len()),
        false => 0,
    }
}

/// The length of the quoted text at the beginning of `sql`. A doubled quote reads as the end of one text and the
/// beginning of another.
fn quoted(sql: &str, quote: char, has_escapes: bool) -> Option<usize> {
    let mut is_escaped = false;
    sql.char_indices().skip(1).find_map(|(at, c)| {
        if is_escaped {
            is_escaped = false;
            return None;
        }
        is_escaped = has_escapes && c == '\\';
        (c == quote).then(|| at + c.len_utf8())
    })
}

/// The length of a text `$tag$ … $tag$`; 1 if the `$` begins none.
fn dollars(sql: &str) -> Option<usize> {
    let tag = 1 + word(&sql[1..]);
    if !sql[tag..].starts_with('$') {
        return Some(1);
    }
    let tag = &sql[..=tag];
    sql[tag.len()..].find(tag).map(|at| at + 2 * tag.len())
}

/// The length of a comment. Comments of Postgres can be nested.
fn block(sql: &str, engine: DbEngine) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        let rest = sql.get(at..)?;
        if rest.starts_with("/*") && (depth == 0 || engine == DbEngine::Postgres) {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str, engine: DbEngine) -> Result<(String, String), &'static str> {
        let statement = Statement::parse(sql, engine)?;
        Ok((statement.render(|index| format!("${}", index + 1)), statement.names.join(" ")))
    }

    // S-20: a parameter is found where the database would read one, and nowhere else.
    #[test]
    fn parameters_are_found() {
        for (sql, text, names) in [
            ("SELECT :a, :b, :a;", "SELECT $1, $2, $1", "a b"),
            ("SELECT ':a' || \":b\" || 'it''s :c', :d -- :e", "SELECT ':a' || \":b\" || 'it''s :c', $1", "d"),
            ("SELECT /* :a ' */ 1 ; -- end", "SELECT   1", ""),
            ("SELECT x::text, :y::int", "SELECT x::text, $1::int", "y"),
            ("SELECT 検索 FROM t WHERE a=:a_1", "SELECT 検索 FROM t WHERE a=$1", "a_1"),
        ] {
            for engine in [DbEngine::Sqlite, DbEngine::Postgres] {
                assert_eq!(read(sql, engine), Ok((text.into(), names.into())), "{sql}");
            }
        }
        let postgres = "SELECT E'\\' :a', $x$ :b ; $x$, $$;$$, a[1:2], /* /* :c */ */ :d";
        let text = "SELECT E'\\' :a', $x$ :b ; $x$, $$;$$, a[1:2],   $1";
        assert_eq!(read(postgres, DbEngine::Postgres), Ok((text.into(), "d".into())));
        assert_eq!(
            read("SELECT [a:b], `c:d`, :e", DbEngine::Sqlite),
            Ok(("SELECT [a:b], `c:d`, $1".into(), "e".into()))
        );
    }

    // S-20: a denied column is found where a statement names it, and not in a text.
    #[test]
    fn names_are_found() {
        for (sql, is_named) in [
            ("SELECT upper(password) FROM customers", true),
            ("SELECT id FROM customers WHERE c.PassWord = :p", true),
            ("SELECT id FROM customers ORDER BY \"password\" DESC", true),
            ("SELECT 'password', :password, my_password, passwords FROM customers -- password", false),
        ] {
            let statement = Statement::parse(sql, DbEngine::Postgres).unwrap();
            assert_eq!(statement.mentions("password", DbEngine::Postgres), is_named, "{sql}");
        }
    }

    // S-20: several statements, none, or one that has no end are refused.
    #[test]
    fn a_text_is_one_statement() {
        for sql in
            ["", " ; ", "-- x", "SELECT 1; SELECT 2", "SELECT 'a", "SELECT \"a", "SELECT /* a", "SELECT 1;;x"]
        {
            for engine in [DbEngine::Sqlite, DbEngine::Postgres] {
                assert!(read(sql, engine).is_err(), "{sql}");
            }
        }
        assert!(read("SELECT $a$ b", DbEngine::Postgres).is_err());
        assert!(read("SELECT 1;;", DbEngine::Postgres).is_ok());
    }
}
