//! Built-in detectors of secrets in texts: matches are replaced by `[redacted:NAME]`.
//!
//! Law: linear in the length of the text, whatever it contains. No pattern can start a long search again and again: its
//! repetitions are limited, or end where the next search starts. Detectors recognize formats only; a secret without a
//! format is not found.

use regex::Regex;
use std::borrow::Cow;
use std::fmt;

/// The configured detectors.
pub struct Redactor {
    detectors: Vec<(&'static str, Find)>,
}

/// The method for finding one kind of secret.
enum Find {
    /// The whole match is the secret.
    Whole(Regex),
    /// The first group of the match is the secret.
    Group(Regex),
    /// The value assigned after the match is the secret.
    Assigned(Regex),
    /// A key between its PEM markers.
    Pem,
}

/// The kinds of detectors: whole match, first group, or assigned value.
#[derive(Clone, Copy)]
enum SecretForm {
    Whole,
    Group,
    Assigned,
    Pem,
}

/// The detectors in the order in which they run; the most general one is last.
const DETECTORS: [(&str, SecretForm, &str); 13] = [
    ("private-key", SecretForm::Pem, ""),
    ("aws-access-key", SecretForm::Whole, r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)"),
    (
        "aws-secret-key",
        SecretForm::Group,
        r#"(?i)secret[_ -]?(?:access[_ -]?)?key["'\\]{0,2}[ \t]{0,8}[:=][ \t]{0,8}["'\\]{0,2}([A-Za-z0-9/+]{40})"#,
    ),
    ("jwt", SecretForm::Whole, r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    (
        "github-token",
        SecretForm::Whole,
        r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    ("gitlab-token", SecretForm::Whole, r"(?-u:\b)gl(?:pat|dt|rt|cbt|ptt|ft)-[A-Za-z0-9_-]{20,255}"),
    (
        "slack-token",
        SecretForm::Whole,
        r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,255}|(?-u:\b)xapp-[A-Za-z0-9-]{10,255}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,255}",
    ),
    ("google-api-key", SecretForm::Whole, r"(?-u:\b)AIza[A-Za-z0-9_-]{35}"),
    ("stripe-key", SecretForm::Whole, r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    ("npm-token", SecretForm::Whole, r"(?-u:\b)npm_[A-Za-z0-9]{36}"),
    ("bearer-token", SecretForm::Group, r"(?i)(?-u:\b)bearer[ \t]{1,8}([A-Za-z0-9._~+/-]{16,}=*)"),
    ("url-password", SecretForm::Group, r"://[^\s/?#:@]{0,255}:([^\s/?#]{1,255})@"),
    (
        "generic-assignment",
        SecretForm::Assigned,
        r#"(?i)(?:password|passwd|pwd|passphrase|secret|token|(?:api|access|account|private)[_-]?key|credentials?)(?:[_.-][a-z0-9_.-]{0,32})?\\?["']?[ \t]{0,8}(?::=|=>|=|:)[ \t]{0,8}"#,
    ),
];

impl Redactor {
    /// Makes a redactor with the detectors of these names.
    ///
    /// # Errors
    /// The first name that no detector has.
    pub fn new<N: AsRef<str>>(names: &[N]) -> Result<Self, &str> {
        let known = |name: &str| DETECTORS.iter().any(|(own, ..)| *own == name);
        if let Some(unknown) = names.iter().map(AsRef::as_ref).find(|name| !known(name)) {
            return Err(unknown);
        }
        Ok(Self::from_names(|own| names.iter().any(|name| name.as_ref() == own)))
    }

    /// All detectors.
    pub fn all() -> Self {
        Self::from_names(|_| true)
    }

    fn from_names(is_asked: impl Fn(&str) -> bool) -> Self {
        let asked = DETECTORS.iter().filter(|(name, ..)| is_asked(name));
        let detectors = asked.filter_map(|(name, form, pattern)| Some((*name, Find::new(*form, pattern)?)));
        Self { detectors: detectors.collect() }
    }

    /// The names of all detectors.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DETECTORS.iter().map(|(name, ..)| *name)
    }

    /// Replaces the matches in `text`; borrowed if there are none. O(length) for each detector.
    pub fn redact<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        self.detectors.iter().fold(text, |text, (name, find)| match find.replaced(name, &text) {
            Some(without) => Cow::Owned(without),
            None => text,
        })
    }
}

impl Find {
    /// Compiles a detector. A test compiles every pattern of the table, so `None` does not occur.
    fn new(form: SecretForm, pattern: &str) -> Option<Self> {
        let regex = || Regex::new(pattern).ok();
        Some(match form {
            SecretForm::Whole => Self::Whole(regex()?),
            SecretForm::Group => Self::Group(regex()?),
            SecretForm::Assigned => Self::Assigned(regex()?),
            SecretForm::Pem => Self::Pem,
        })
    }

    /// Returns the redacted text; `None` if there is nothing to replace.
    fn replaced(&self, name: &str, text: &str) -> Option<String> {
        self.replaced_within(name, text, &mut 0)
    }

    /// Like [`Find::replaced`], counting in `steps` the bytes examined after matches.
    fn replaced_within(&self, name: &str, text: &str, steps: &mut usize) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut from = 0;
        while let Some((start, end)) = self.next(text, from, steps) {
            out.push_str(&text[copied..start]);
            out.push_str("[redacted:");
            out.push_str(name);
            out.push(']');
            copied = end;
            from = end;
        }
        (copied > 0).then(|| {
            out.push_str(&text[copied..]);
            out
        })
    }

    /// The position of the next secret, which is never empty.
    fn next(&self, text: &str, from: usize, steps: &mut usize) -> Option<(usize, usize)> {
        match self {
            Self::Whole(regex) => regex.find_at(text, from).map(|found| (found.start(), found.end())),
            Self::Group(regex) => {
                let found = regex.find_at(text, from)?;
                let group = regex.captures_at(text, found.start())?.get(1)?;
                Some((group.start(), group.end()))
            }
            Self::Assigned(regex) => {
                let mut from = from;
                loop {
                    let start = regex.find_at(text, from)?.end();
                    if let Some(found) = assigned(text, start, steps) {
                        return Some(found);
                    }
                    from = start;
                }
            }
            Self::Pem => pem(text, from, steps),
        }
    }
}

/// The value that starts at `start`, if it may be a secret: quoted, or one word.
fn assigned(text: &str, start: usize, steps: &mut usize) -> Option<(usize, usize)> {
    const QUOTED: usize = 6;
    const WORD: usize = 8;
    let rest = &text[start..];
    for quote in ["\\\"", "\"", "'", "`"] {
        if let Some(value) = rest.strip_prefix(quote).filter(|value| !is_placeholder(value)) {
            let at = start + quote.len();
            let end = closed(value, quote);
            *steps += end;
            return (end >= QUOTED).then_some((at, at + end));
        }
    }
    // Checked first, because the search after the next match, which may be inside the value, would examine the value
    // again.
    if is_placeholder(rest) {
        return None;
    }
    let ends = |c: char| c.is_whitespace() || "\"'`,;&)}]<>\\".contains(c);
    let end = rest.find(ends).unwrap_or(rest.len());
    *steps += end;
    (end >= WORD).then_some((start, start + end))
}

/// The end of a quoted value: its closing quote, or the end of the line.
fn closed(value: &str, quote: &str) -> usize {
    let bytes = value.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => return at,
            _ if bytes[at..].starts_with(quote.as_bytes()) => return at,
            b'\\' if quote.len() == 1 => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Whether the value is a placeholder for a secret, or an earlier redaction.
fn is_placeholder(value: &str) -> bool {
    ["${", "$(", "{{", "[redacted:"].iter().any(|mark| value.starts_with(mark))
}

const DASHES: &str = "-----";
const BEGIN: &str = "-----BEGIN ";
/// Longer than the name of any kind of key.
const LONGEST_NAME: usize = 64;

/// The next private key, with its PEM markers. Without an end marker, everything that could belong to a key.
fn pem(text: &str, from: usize, steps: &mut usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let rest = text.get(from..)?;
        let found = rest.find(BEGIN);
        *steps += found.unwrap_or(rest.len());
        let start = from + found?;
        let name_at = start + BEGIN.len();
        let window: &str = within(text, name_at, LONGEST_NAME);
        let name = window.find(DASHES).map(|end| &window[..end]);
        *steps += window.len();
        match name.filter(|name| name.contains("PRIVATE KEY")) {
            Some(name) => {
                let end = pem_end(text, name_at + name.len() + DASHES.len());
                *steps += end - start;
                return Some((start, end));
            }
            None => from = name_at,
        }
    }
}

fn pem_end(text: &str, body: usize) -> usize {
    const END: &str = "-----END ";
    let part = |c: char| c.is_ascii_alphanumeric() || "+/=\\ \t\r\n:,.".contains(c);
    let mut at = body;
    loop {
        at = text[at..].find(|c| !part(c)).map_or(text.len(), |length| at + length);
        let rest = &text[at..];
        if let Some(name) = rest.strip_prefix(END) {
            let name_at = text.len() - name.len();
            return within(text, name_at, LONGEST_NAME)
                .find(DASHES)
                .map_or(name_at, |end| name_at + end + DASHES.len());
        }
        // The headers of an encrypted key contain hyphens; a truncated key has no end marker.
        if !rest.starts_with('-') || rest.starts_with(DASHES) {
            return at;
        }
        at += 1;
    }
}

/// The text from `at` on, limited to about `max` bytes.
fn within(text: &str, at: usize, max: usize) -> &str {
    let mut end = text.len().min(at + max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(at..end).unwrap_or_default()
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.detectors.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_automata::Input;
    use regex_automata::hybrid::dfa::DFA;

    fn redacted(name: &str, text: &str) -> String {
        Redactor::new(&[name]).unwrap().redact(Cow::Borrowed(text)).into_owned()
    }

    fn all() -> Redactor {
        Redactor::new(&Redactor::names().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn every_pattern_is_well_formed() {
        assert_eq!(all().detectors.len(), DETECTORS.len());
        assert_eq!(Redactor::new(&["jwt", "passport"]).err(), Some("passport"));
    }

    #[test]
    fn what_has_no_secret_is_borrowed() {
        let text = "The token of appreciation, the secret: none. max_tokens=4096, BEGIN at once.";
        assert!(matches!(all().redact(Cow::Borrowed(text)), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn keys_end_where_they_say_or_where_they_are_cut_off() {
        let key = |body: &str| redacted("private-key", &format!("a -----BEGIN RSA PRIVATE KEY-----\n{body}"));
        assert_eq!(key("MIIE+/=\n-----END RSA PRIVATE KEY-----\nb"), "a [redacted:private-key]\nb");
        assert_eq!(
            key("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIE\n-----END RSA PRIVATE KEY----- b"),
            "a [redacted:private-key] b"
        );
        assert_eq!(key("MIIE"), "a [redacted:private-key]");
        assert_eq!(
            key("MIIE\n-----BEGIN CERTIFICATE-----"),
            "a [redacted:private-key]-----BEGIN CERTIFICATE-----"
        );
        let public = "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----";
        assert_eq!(redacted("private-key", public), public);
    }

    /// Names stay, and so do placeholders; only assigned secrets are replaced.
    #[test]
    fn only_what_is_assigned_goes() {
        for (text, expected) in [
            (
                r#"{"db_password": "hunter2", "user": "me"}"#,
                r#"{"db_password": "[redacted:generic-assignment]", "user": "me"}"#,
            ),
            (
                r#"{"password": "a\"bcdef", "x": 1}"#,
                r#"{"password": "[redacted:generic-assignment]", "x": 1}"#,
            ),
            (r#"{\"api_key\": \"abcdefgh\"}"#, r#"{\"api_key\": \"[redacted:generic-assignment]\"}"#),
            ("API-KEY=abcdefgh&x=1", "API-KEY=[redacted:generic-assignment]&x=1"),
            ("Server=h;Pwd=abcdefgh;", "Server=h;Pwd=[redacted:generic-assignment];"),
            ("AccountKey=abcdefgh==;", "AccountKey=[redacted:generic-assignment];"),
            ("secret.name: 'no end\nnext", "secret.name: '[redacted:generic-assignment]\nnext"),
            ("password: ${PASSWORD_OF_IT}", "password: ${PASSWORD_OF_IT}"),
            ("token: short", "token: short"),
        ] {
            assert_eq!(redacted("generic-assignment", text), expected);
        }
    }

    /// The number of bytes that the search for `pattern` examines, from each match to the next, as an automaton that
    /// reads one byte at a time.
    fn steps_of(pattern: &DFA, text: &str) -> usize {
        let mut cache = pattern.create_cache();
        let mut from = 0;
        let mut steps = 0;
        loop {
            let input = Input::new(text).range(from..);
            let mut state = pattern.start_state_forward(&mut cache, &input).unwrap();
            let mut end = None;
            for (at, byte) in (from..).zip(text.as_bytes()[from..].iter().copied()) {
                state = pattern.next_state(&mut cache, state, byte).unwrap();
                steps += 1;
                if state.is_dead() {
                    break;
                }
                // An automaton reports a match one byte late.
                end = if state.is_match() { Some(at) } else { end };
            }
            if !state.is_dead() && pattern.next_eoi_state(&mut cache, state).unwrap().is_match() {
                end = Some(text.len());
            }
            match end {
                Some(end) => from = end.max(from + 1),
                None => return steps,
            }
        }
    }

    // S-19: every detector examines each byte a limited number of times, even if many secrets start and none ends.
    // Counts both the patterns and the text examined after matches.
    #[test]
    fn texts_that_only_begin_secrets_are_linear() {
        const UNITS: [&str; 26] = [
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----a-",
            "-----BEGIN ",
            "-",
            "AKIA",
            "secret_key: ",
            "secret_key:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "eyJaaaaaaaa",
            "eyJaaaaaaaa.",
            "eyJaaaaaaaa.eyJaaaaaaaa-",
            "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "xoxb-aaaaaaaaaa",
            "hooks.slack.com/services/",
            "token:\"",
            "token='x\\",
            "token=${",
            "token=\"${",
            "token=$(",
            "token={{",
            "token=[redacted:",
            "token='",
            "://a:b",
            "://:",
            "://a:b@",
            "secret ",
            "bearer aaaaaaaaaaaaaaaa",
        ];
        // More than the longest search without a match, that of a password in a URL.
        const MOST: usize = 600;
        for (name, form, pattern) in DETECTORS {
            let dfa =
                DFA::builder().configure(DFA::config().cache_capacity(32 << 20)).build(pattern).unwrap();
            for unit in UNITS {
                let text = unit.repeat((64 << 10) / unit.len());
                let mut steps = 0;
                let find = Find::new(form, pattern).unwrap();
                find.replaced_within(name, &text, &mut steps);
                assert!(steps <= 8 * text.len(), "{name} behind matches of {unit:?}: {steps} steps");
                if !pattern.is_empty() {
                    let steps = steps_of(&dfa, &text);
                    assert!(steps <= MOST * text.len(), "{name} {unit:?}: {steps} steps");
                    let twice = steps_of(&dfa, &text.repeat(2));
                    assert!(twice <= 2 * steps + 2 * MOST * MOST, "{name} {unit:?}: {steps}, {twice} steps");
                }
            }
        }
    }
}
