//! Parses commits and annotated tags: headers, people, dates, subject and message, as `git log` shows them.
//!
//! ```text
//!   tree ID, parent ID …          CommitHeader: where history goes on
//!   author NAME <EMAIL> TIME ZONE   Person: parts that cannot be read are empty
//!   (an empty line)
//!   message                       up to a NUL; its subject is the first paragraph, as one line
//! ```
//!
//! Law: many histories have commits that no program would write today. Each is shown as far as it can be read: nothing in
//! a commit makes another commit unreadable.

use encoding_rs::Encoding;
use gix::ObjectId;
use serde::Serialize;
use std::borrow::Cow;

/// The longest subject, in characters.
const SUBJECT: usize = 500;
/// The last second of the year 9999: later times have no date in RFC 3339.
const LATEST: u64 = 253_402_300_799;

/// The headers of a commit that a walk through history needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommitHeader {
    /// `None`: it cannot be read.
    pub(super) tree: Option<ObjectId>,
    pub(super) parents: Vec<ObjectId>,
    /// When it was committed, in seconds since 1970; 0 if that cannot be read.
    pub(super) time: u64,
}

/// The text of a commit.
pub(super) struct CommitText {
    pub(super) author: Person,
    pub(super) committer: Person,
    pub(super) subject: String,
    pub(super) message: String,
}

/// The text of an annotated tag.
pub(super) struct TagText {
    pub(super) target: Option<ObjectId>,
    pub(super) tagger: Option<Person>,
    /// When it was made, in seconds since 1970; 0 if that cannot be read.
    pub(super) time: u64,
    pub(super) subject: String,
}

/// An author, committer or tagger, with the date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Person {
    name: String,
    email: String,
    /// In RFC 3339, in the zone of the person.
    date: Option<String>,
}

impl CommitHeader {
    pub(super) fn parse(data: &[u8]) -> Self {
        let mut rest = data;
        let tree = take_id(&mut rest, b"tree ");
        let mut parents = Vec::new();
        while let Some(parent) = take_id(&mut rest, b"parent ") {
            parents.push(parent);
        }
        let mut next = rest.split(|byte| *byte == b'\n');
        let author = next.next().unwrap_or_default();
        let committer = next.next().unwrap_or_default();
        // The last line must be a whole one.
        let is_whole = next.next().is_some();
        let time = match author.starts_with(b"author") && committer.starts_with(b"committer") && is_whole {
            true => time_at_end(committer),
            false => 0,
        };
        Self { tree, parents, time }
    }
}

impl CommitText {
    pub(super) fn parse(data: &[u8]) -> Self {
        let text = decoded(data);
        let (headers, message) = parts(&text);
        // Of two headers of a name, git shows the last.
        let last = |name: &str| headers.lines().rev().find_map(|line| line.strip_prefix(name));
        Self {
            author: last("author ").map(Person::parse).unwrap_or_default(),
            committer: last("committer ").map(Person::parse).unwrap_or_default(),
            subject: shortened(subject(message)),
            message: message.to_owned(),
        }
    }

    /// The author and the subject, for a log.
    pub(super) fn brief(data: &[u8]) -> (Person, String) {
        let text = decoded(data);
        let (headers, message) = parts(&text);
        let author = headers.lines().rev().find_map(|line| line.strip_prefix("author "));
        (author.map(Person::parse).unwrap_or_default(), shortened(subject(message)))
    }
}

impl TagText {
    pub(super) fn parse(data: &[u8]) -> Self {
        let mut rest = data;
        let target = take_id(&mut rest, b"object ");
        let tagger = header(data, b"tagger ");
        let text = String::from_utf8_lossy(until_nul(data));
        let (headers, message) = parts(&text);
        let named = headers.lines().find_map(|line| line.strip_prefix("tagger "));
        Self {
            target,
            tagger: named.map(Person::parse),
            time: tagger.map_or(0, time_at_end),
            subject: shortened(tag_subject(message)),
        }
    }
}

impl Person {
    /// Parses the text behind `author `, such as `Ada <ada@example.org> 1700000000 +0100`.
    fn parse(line: &str) -> Self {
        let Some((name, rest)) = line.split_once('<') else { return Self::default() };
        let Some((email, _)) = rest.split_once('>') else { return Self::default() };
        // An address may contain a bracket of its own; a date does not.
        let date = line.rsplit_once('>').and_then(|(_, date)| date_of(date));
        Self { name: trim_end(name).to_owned(), email: email.to_owned(), date }
    }
}

/// A date such as `1700000000 +0100`.
fn date_of(text: &str) -> Option<String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let text = text.trim_start_matches(is_space);
    let (seconds, rest) = text.split_at_checked(digits(text))?;
    let rest = rest.trim_start_matches(is_space);
    let zone = rest.strip_prefix(['+', '-'])?;
    let (zone, _) = zone.split_at_checked(digits(zone)).filter(|(zone, _)| !zone.is_empty())?;
    let seconds: u64 = seconds.parse().ok().filter(|seconds| *seconds <= LATEST)?;
    let zone: i64 = zone.parse().unwrap_or_default();
    // A zone that is none, such as +9999, is left out.
    let (hours, minutes) = if zone < 2_400 && zone % 100 < 60 { (zone / 100, zone % 100) } else { (0, 0) };
    let offset = (hours * 60 + minutes) * if rest.starts_with('-') { -60 } else { 60 };
    let local = i64::try_from(seconds).ok()?.checked_add(offset)?;
    let (year, month, day) = civil(local.div_euclid(86_400));
    if !(0..=9_999).contains(&year) {
        return None;
    }
    let second = local.rem_euclid(86_400);
    let sign = if offset < 0 { '-' } else { '+' };
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{sign}{hours:02}:{minutes:02}",
        second / 3_600,
        second / 60 % 60,
        second % 60
    ))
}

/// The year, month and day of a day since 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that a leap day ends a year, in eras of 400 years.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The time that a line of a person ends with, for the order of commits.
fn time_at_end(line: &[u8]) -> u64 {
    let Some(end) = line.iter().rposition(|byte| *byte == b'>') else { return 0 };
    let date = line.get(end + 1..).unwrap_or_default().trim_ascii_start();
    let (date, is_negative) = match date.strip_prefix(b"-") {
        Some(date) => (date, true),
        None => (date, false),
    };
    let digits = date.iter().take_while(|byte| byte.is_ascii_digit());
    let time = digits.fold(0_u64, |time, digit| {
        time.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
    });
    // As git does: a time before 1970 counts as one in the far future.
    if is_negative { time.wrapping_neg() } else { time }
}

/// The whole commit in the encoding that it names, as `git log` shows it. Most name none, and are UTF-8.
fn decoded(data: &[u8]) -> Cow<'_, str> {
    let data = until_nul(data);
    let plain = || String::from_utf8_lossy(data);
    let Some(label) = header(data, b"encoding ").map(<[u8]>::trim_ascii) else { return plain() };
    let label = label.to_ascii_lowercase();
    match &*label {
        b"iso-8859-1" | b"iso8859-1" | b"iso_8859-1" | b"latin1" | b"latin-1" | b"l1" => {
            return data.iter().map(|byte| char::from(*byte)).collect::<String>().into();
        }
        b"ascii" | b"us-ascii" | b"utf-16" | b"utf-16le" | b"utf-16be" => return plain(),
        _ => {}
    }
    let known: &[u8] = match &*label {
        b"cp932" | b"eucjp-ms" => b"shift_jis",
        b"eucjp" => b"euc-jp",
        b"cp936" => b"gbk",
        b"cp949" | b"euckr" => b"euc-kr",
        b"cp950" => b"big5",
        other => other,
    };
    let Some(encoding) = Encoding::for_label_no_replacement(known) else { return plain() };
    // Git shows what does not fit its encoding as it is.
    encoding.decode_without_bom_handling_and_without_replacement(data).unwrap_or_else(plain)
}

/// The texts before and behind the first empty line.
fn parts(text: &str) -> (&str, &str) {
    if let Some(message) = text.strip_prefix('\n') {
        return ("", message);
    }
    text.split_once("\n\n").unwrap_or((text, ""))
}

/// The value of the first header of this name.
fn header<'d>(data: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    let lines = data.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.strip_prefix(name)).next()
}

fn until_nul(data: &[u8]) -> &[u8] {
    data.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Takes a line such as `tree ID`.
fn take_id(data: &mut &[u8], name: &[u8]) -> Option<ObjectId> {
    let rest = data.strip_prefix(name)?;
    let (digits, rest) = rest.split_at_checked(40)?;
    let id = ObjectId::from_hex(digits).ok()?;
    *data = rest.strip_prefix(b"\n")?;
    Some(id)
}

/// The first paragraph of a message, as one line: `%s` of `git log`.
fn subject(message: &str) -> String {
    let lines = message.split('\n').map(trim_end);
    let lines = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The first paragraph of a tag's message, without a signature: `%(subject)` of `git for-each-ref`.
fn tag_subject(message: &str) -> String {
    const SIGNATURES: [&str; 4] = [
        "-----BEGIN PGP SIGNATURE-----",
        "-----BEGIN PGP MESSAGE-----",
        "-----BEGIN SIGNED MESSAGE-----",
        "-----BEGIN SSH SIGNATURE-----",
    ];
    let is_signature = |line: &&str| SIGNATURES.iter().any(|start| line.starts_with(start));
    let unsigned: Vec<&str> = message.split('\n').take_while(|line| !is_signature(line)).collect();
    let unsigned = unsigned.join("\n");
    let text = unsigned.trim_start_matches('\n');
    let end = text.find("\n\n").or_else(|| text.find("\r\n\r\n")).unwrap_or(text.len());
    let text = text.get(..end).unwrap_or_default().trim_end_matches(['\n', '\r']);
    text.replace("\r\n", " ").replace('\n', " ")
}

fn shortened(line: String) -> String {
    match line.char_indices().nth(SUBJECT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Whether git treats the character as a space.
fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r')
}

fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-02: dates in their zones; what has no date in RFC 3339 has none, and a zone that is none is left out.
    #[test]
    fn dates() {
        for (text, expected) in [
            (" 1700000000 +0100", Some("2023-11-14T23:13:20+01:00")),
            ("1112911993 -0700", Some("2005-04-07T15:13:13-07:00")),
            (" 0 +0000", Some("1970-01-01T00:00:00+00:00")),
            (" 0 -0130", Some("1969-12-31T22:30:00-01:30")),
            (" 951782400 +0000", Some("2000-02-29T00:00:00+00:00")),
            (" 4107542400 +0000", Some("2100-03-01T00:00:00+00:00")),
            (" 253402300799 +0000", Some("9999-12-31T23:59:59+00:00")),
            (" 1234567890 +9999", Some("2009-02-13T23:31:30+00:00")),
            (" 1234567890 +0075", Some("2009-02-13T23:31:30+00:00")),
            (" 253402300799 +0100", None),
            (" 253402300800 +0000", None),
            (" 18446744073709551616 +0000", None),
            (" 1234567890 UTC", None),
            (" 1234567890", None),
            (" -5 +0000", None),
            ("", None),
        ] {
            assert_eq!(date_of(text).as_deref(), expected, "{text:?}");
        }
    }
}
