//! Finds secrets in connection strings: in each of the usual forms, the value of a name that stands for a secret.
//!
//! ```text
//!   Server=x;Pwd=hunter2;                    ADO.NET, ODBC, storage accounts: to the `;`
//!   host=x password='a b' dbname=z           libpq: in quotes, or to the next name
//!   cache.example:6380,password=hunter2      Redis: to the next name
//!   jdbc:mysql://x/db?user=u&password=p      URLs: to the `&`
//!   (DESCRIPTION=(PASSWORD=hunter2))         Oracle: to the `)`
//!   user:hunter2@tcp(x:3306)/db              MySQL in Go; scott/hunter2@x:1521 of Oracle
//!   --db-password hunter2                    an argument of a command
//! ```
//!
//! Law: linear in the length of the text. More than the secret may be hidden, never less.

use super::{MASK, is_secret};
use regex::Regex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// A name with its `=`. A space within a name, as in `User Password`, changes nothing: its last word says secret.
static NAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([\p{L}_][\p{L}\p{N}_.\-]{0,127})[ \t]{0,8}=[ \t]{0,8}").ok());
/// The beginning of the next name of a list, behind a space or a comma.
static NEXT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[ \t,]+[\p{L}_][\p{L}\p{N}_.\-]{0,127}[ \t]{0,8}=").ok());
/// Forms whose place says which part is the password.
static PLACED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let forms = [
        r#"(?:^|[\s"'=(,])[^\s:/@"'=(),]{1,128}:([^\s"']{1,256})@(?:tcp|udp|unix)\("#,
        r#"(?:^|[\s"'=(,])[^\s:/@"'=(),]{1,128}:([^\s@/"']{1,256})@[A-Za-z0-9._-]{1,255}(?::[0-9]{2,5}(?-u:\b)|/)"#,
        r#"(?:^|[\s"':=(,])[A-Za-z][A-Za-z0-9_$#]{0,127}/([^\s@/"']{1,256})@(?://)?[A-Za-z0-9._-]{1,255}:[0-9]{2,5}(?-u:\b)"#,
        r#"(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]{0,127})[ \t]{1,8}("[^"]*"|'[^']*'|\S+)"#,
    ];
    forms.iter().filter_map(|form| Regex::new(form).ok()).collect()
});
/// Texts before a `:` that are not user names.
const NO_USERS: [&str; 9] = ["mailto", "sip", "sips", "xmpp", "acct", "npm", "jid", "im", "http"];

/// A text without the secrets of the connection strings in it.
pub(super) fn covered(text: &str) -> Cow<'_, str> {
    if !text.contains(['=', '@']) && !text.contains('-') {
        return Cow::Borrowed(text);
    }
    let mut found = pairs(text);
    found.extend(placed(text));
    found.retain(|range| !range.is_empty() && !is_covered(text, range));
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_by_key(|range| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for range in found {
        if range.start >= done {
            out.push_str(text.get(done..range.start).unwrap_or_default());
            out.push_str(MASK);
        }
        done = done.max(range.end);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether a detector was there before.
fn is_covered(text: &str, range: &Range<usize>) -> bool {
    text.get(range.clone()).is_some_and(|own| own.starts_with("[redacted:") && own.ends_with(']'))
}

/// The values of names that say secret.
fn pairs(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let Some(names) = NAME.as_ref() else { return found };
    let mut from = 0;
    while let Some(captures) = names.captures_at(text, from) {
        let (Some(whole), Some(name)) = (captures.get(0), captures.get(1)) else { break };
        from = whole.end();
        let rest = text.get(from..).unwrap_or_default();
        // `==` and `=>` assign nothing.
        if !is_secret_name(name.as_str()) || rest.starts_with(['=', '>']) {
            continue;
        }
        let before = text.get(..name.start()).and_then(|before| before.chars().next_back());
        let (skipped, length) = value(rest, before);
        found.push(from + skipped..from + skipped + length);
        from += skipped + length;
    }
    found
}

/// Azure's signature of a URL is a secret whose name is too short to be one elsewhere.
fn is_secret_name(name: &str) -> bool {
    is_secret(name) || name.eq_ignore_ascii_case("sig")
}

/// Finds the value in `rest`: its offset and its length. `before` is the character before its name.
fn value(rest: &str, before: Option<char>) -> (usize, usize) {
    for (open, close) in [('"', '"'), ('\'', '\''), ('{', '}')] {
        if let Some(inner) = rest.strip_prefix(open) {
            return (1, inner.find(close).unwrap_or(inner.len()));
        }
    }
    let line = rest.find(['\n', '\r']).map_or(rest, |end| rest.get(..end).unwrap_or(rest));
    let to = |ends: &[char]| line.find(ends).unwrap_or(line.len());
    let length = match before {
        Some('?' | '&') => to(&['&', '#', ' ', '\t', '"', '\'', '<', '>', ';']),
        Some('-') => to(&[' ', '\t', ';']),
        Some('(') => to(&[')']),
        _ if line.contains(';') => to(&[';']),
        _ => NEXT.as_ref().and_then(|next| next.find(line)).map_or(line.len(), |next| next.start()),
    };
    (0, line.get(..length).unwrap_or_default().trim_end().len())
}

/// The passwords of forms in which the position identifies them.
fn placed(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, form) in PLACED.iter().enumerate() {
        for captures in form.captures_iter(text) {
            let Some(first) = captures.get(1) else { continue };
            match captures.get(2) {
                // An option, and its value.
                Some(value) if is_secret(first.as_str()) => found.push(value.range()),
                Some(_) => {}
                None if at == 1 && is_no_user(text, first.start()) => {}
                None => found.push(first.range()),
            }
        }
    }
    found
}

/// Whether the word before a `:` is the name of a scheme.
fn is_no_user(text: &str, password: usize) -> bool {
    let before = text.get(..password.saturating_sub(1)).unwrap_or_default();
    NO_USERS.iter().any(|scheme| {
        let start = before.len().saturating_sub(scheme.len());
        before.get(start..).is_some_and(|own| own.eq_ignore_ascii_case(scheme))
            && before.get(..start).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
    })
}

#[cfg(test)]
mod tests {
    use super::covered;

    // S-04: no password is left in a connection string of a usual form.
    #[test]
    fn passwords_of_connection_strings_are_covered() {
        for text in [
            "Server=x;Pwd=hunter2;",
            "Server=x;Database=y;User Id=sa;Password=hunter2",
            "Server=x; Password = hunter2 ;Encrypt=true",
            "Data Source=x;Jet OLEDB:Database Password=hunter2;",
            "Driver={ODBC Driver 18};Server=x;UID=sa;PWD={hunter2;x};",
            "Server=x;Password=\"hunter2;x\";",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2==;EndpointSuffix=core.windows.net",
            "Endpoint=sb://x/;SharedAccessKeyName=r;SharedAccessKey=hunter2",
            "HostName=x;DeviceId=d;SharedAccessKey=hunter2",
            "host=x user=app password=hunter2 dbname=z",
            "host=x password='hunter2 x' dbname=z",
            "host=x password=hunter2",
            "password=hunter2,x host=y",
            "cache.example:6380,password=hunter2,ssl=True,abortConnect=False",
            "jdbc:postgresql://x/db?user=u&password=hunter2&ssl=true",
            "jdbc:mysql://x/db?password=hunter2",
            "jdbc:sqlserver://x:1433;user=sa;password=hunter2;encrypt=true",
            "jdbc:oracle:thin:scott/hunter2@x:1521:XE",
            "jdbc:oracle:thin:scott/hunter2@//x:1521/service",
            "scott/hunter2@x:1521/service",
            "(DESCRIPTION=(ADDRESS=(HOST=x))(SECURITY=(PASSWORD=hunter2)))",
            "app:hunter2@tcp(x:3306)/db?parseTime=true",
            "app:hunter2@x.example:5432/db",
            "app:p/w@hunter2@unix(/run/mysqld.sock)/db",
            "https://x.blob.core.windows.net/c?sv=2020&sig=hunter2%3D&se=2030",
            "https://x.example/hook?api_key=hunter2#top",
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"hunter2\";",
            "mysqldump --password=hunter2 -h x db",
            "psql --db-password hunter2 -h x",
            "DB_PASSWORD=hunter2",
            "DB_PASSWORD=hunter2 with spaces",
            "url=x\npassword=hunter2\nuser=y",
            "Pwd=hunter2",
        ] {
            let shown = covered(text);
            assert!(!shown.contains("hunter2") && shown.contains("[redacted:key-name]"), "{text}: {shown}");
        }
        assert_eq!(
            covered("Server=x;Pwd=hunter2;Encrypt=true"),
            "Server=x;Pwd=[redacted:key-name];Encrypt=true"
        );
        assert_eq!(covered("password=a dbname=z"), "password=[redacted:key-name] dbname=z");
        assert_eq!(covered("a?password=b&c=d e"), "a?password=[redacted:key-name]&c=d e");
    }

    // S-04: what is no password stays as it is.
    #[test]
    fn other_texts_stay() {
        for text in [
            "",
            "Server=x;Database=y;Trusted_Connection=yes",
            "host=x user=app dbname=z",
            "https://example.com/a?page=2&sort=name",
            "mailto:me@example.com/x",
            "repo/app:1.2@sha256:0123abcd",
            "me@example.com",
            "a == b, token == c",
            "Password=",
            "Password=[redacted:generic-assignment]",
            "--verbose --host x",
            "2024-01-31T10:00:00Z",
            "user: someone@example.com:",
        ] {
            assert_eq!(covered(text), text);
        }
    }
}
