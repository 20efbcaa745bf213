//! The small grammars of resource fields and template parameters: media types, dates, icon sizes.
//!
//! Law: each is a predicate over the whole text, linear in its length.

/// `type/subtype` with optional parameters (RFC 9110, 8.3.1).
pub fn is_media_type(text: &str) -> bool {
    // By bytes, because each registration asks, and to search a short text for a `char` costs more.
    let at = |byte| text.bytes().position(|other| other == byte);
    let (essence, parameters) = match at(b';') {
        Some(end) => (text[..end].trim_end_matches(BLANK), &text[end..]),
        None => (text, ""),
    };
    let parts = at(b'/').and_then(|slash| Some((essence.get(..slash)?, essence.get(slash + 1..)?)));
    parts.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype)) && are_parameters(parameters)
}

/// An ISO 8601 date: `YYYY-MM-DD`, a day that exists.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) =
        (digits(&bytes[..4]), digits(&bytes[5..7]), digits(&bytes[8..]))
    else {
        return false;
    };
    (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day)
}

/// An ISO 8601 time of day and date with its zone, in the profile of RFC 3339: `YYYY-MM-DDTHH:MM:SS`, an optional
/// fraction, then `Z` or `±HH:MM`.
pub fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once('T') else { return false };
    let Some(zone) = rest.find(['Z', '+', '-']) else { return false };
    let (time, zone) = rest.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    is_date(date)
        && is_clock(time)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && (zone == "Z" || is_offset(&zone[1..]))
}

/// A UUID in its usual form, in either case (RFC 9562, 4).
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A scope of a token (RFC 6749, `scope-token`).
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
}

/// An icon's size: `WxH` in pixels, or `any`.
pub fn is_icon_size(text: &str) -> bool {
    let is_length = |text: &str| {
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    text == "any" || text.split_once('x').is_some_and(|(w, h)| is_length(w) && is_length(h))
}

/// White space within an HTTP header field.
const BLANK: [char; 2] = [' ', '\t'];

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| TOKEN[usize::from(byte)])
}

/// The bytes of a token (RFC 9110, 5.6.2). A table, because each registration asks.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let others = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < 256 {
        table[at] = (at as u8).is_ascii_alphanumeric();
        at += 1;
    }
    at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// A run of `;name=token` and `;name="quoted"`.
fn are_parameters(mut rest: &str) -> bool {
    while !rest.is_empty() {
        let Some(parameter) = rest.strip_prefix(';') else { return false };
        let Some((name, value)) = parameter.trim_start_matches(BLANK).split_once('=') else {
            return false;
        };
        let Some(end) = value_end(value) else { return false };
        if !is_token(name) {
            return false;
        }
        rest = value[end..].trim_start_matches(BLANK);
    }
    true
}

/// The end of a parameter's value; `None` if it is invalid.
fn value_end(text: &str) -> Option<usize> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ' ', '\t']).unwrap_or(text.len());
        return is_token(&text[..end]).then_some(end);
    };
    let mut escaped = false;
    for (at, char) in quoted.char_indices() {
        match char {
            _ if char != '\t' && (char.is_control() || !char.is_ascii()) => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 2),
            _ => {}
        }
    }
    None
}

fn is_clock(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 8 || bytes[2] != b':' || bytes[5] != b':' {
        return false;
    }
    let below = |part: &[u8], bound| digits(part).is_some_and(|value| value < bound);
    // A leap second is written as `:60`.
    below(&bytes[..2], 24) && below(&bytes[3..5], 60) && below(&bytes[6..], 61)
}

fn is_offset(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 5
        && bytes[2] == b':'
        && digits(&bytes[..2]).is_some_and(|hours| hours < 24)
        && digits(&bytes[3..]).is_some_and(|minutes| minutes < 60)
}

fn digits(bytes: &[u8]) -> Option<u32> {
    bytes.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0')))
}

fn days_in(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        for good in [
            "text/plain",
            "application/vnd.api+json",
            "text/html; charset=utf-8",
            "text/html;charset=\"a;\\\"b\" ; q=1",
            "inode/directory",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "text",
            "text/",
            "/plain",
            "text/pl ain",
            "text/plain;",
            "text/plain; charset",
            "a/b/c",
            "text/html; charset=\"a",
            "text/html\n",
            "text/html; a=\"\u{7}\"",
            "テキスト/x",
            " text/plain",
        ] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }

    #[test]
    fn dates() {
        for good in ["2024-02-29", "2000-02-29", "2025-12-31", "0001-01-01"] {
            assert!(is_date(good), "{good}");
        }
        for bad in
            ["2023-02-29", "1900-02-29", "2025-13-01", "2025-00-10", "2025-1-01", "20250101", "２025-01-1"]
        {
            assert!(!is_date(bad), "{bad}");
        }
    }

    // a time without a zone is refused.
    #[test]
    fn date_times_need_a_zone() {
        for good in ["2025-01-12T15:00:58Z", "2025-01-12T15:00:58.123+09:00", "2016-12-31T23:59:60Z"] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "2025-01-12",
            "2025-01-12T15:00:58",
            "2025-01-12 15:00:58Z",
            "2025-01-12T24:00:00Z",
            "2025-01-12T15:00Z",
            "2025-01-12T15:00:58.Z",
            "2025-01-12T15:00:58+0900",
            "2025-02-30T15:00:58Z",
            "2025-01-12T15:00:58ZZ",
            "2025-01-12T15:00:58+24:00",
            "2025-01-12T15:00:58-",
            "T",
            "",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    #[test]
    fn uuids_and_icon_sizes() {
        assert!(is_uuid("017F22E2-79b0-7cc3-98c4-dc0c0c07398f"));
        assert!(
            !is_uuid("017f22e279b07cc398c4dc0c0c07398f") && !is_uuid("017f22e2-79b0-7cc3-98c4-dc0c0c07398g")
        );
        for good in ["48x48", "any", "1x1024"] {
            assert!(is_icon_size(good), "{good}");
        }
        for bad in ["48", "48X48", "0x48", "48x", "48x48x48", "", "Any"] {
            assert!(!is_icon_size(bad), "{bad}");
        }
    }
}
