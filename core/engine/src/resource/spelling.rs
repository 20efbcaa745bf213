//! The one spelling of each value of a typed variable.
//!
//! Law: two different texts that a predicate accepts are two different values, in every language. So a rule about a
//! URI, a subscription and a cached result hold for every request for the same value. The grammars are the canonical
//! forms of XML Schema and, for numbers, of JSON (RFC 8785).

use super::syntax::{is_date, is_date_time, is_uuid};
use std::fmt::Write as _;

/// The most digits of a fraction of a second: Python drops further ones.
const MICROSECONDS: usize = 6;

/// A whole number in decimal, of at most 128 bits: no leading zeros, no `+`, no `-0`.
pub(super) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = match digits.as_bytes() {
        b"0" => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_plain && text.parse::<i128>().is_ok()
}

/// A finite number of 64 bits in its shortest form, as JavaScript writes it: `1`, `1.5`, `1e+21`.
pub(super) fn is_number(text: &str) -> bool {
    number(text).is_some_and(|canonical| canonical == text)
}

/// A day that exists, from year 1 on.
pub(super) fn is_day(text: &str) -> bool {
    is_date(text) && !text.starts_with("0000")
}

/// A time in UTC: `YYYY-MM-DDTHH:MM:SSZ`, with a fraction only if it is not zero, of at most six digits, the last of
/// which is not zero. No leap second, which Python does not have.
pub(super) fn is_instant(text: &str) -> bool {
    let Some(local) = text.strip_suffix('Z') else { return false };
    let Some((day, time)) = local.split_once('T') else { return false };
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, digits)| (time, Some(digits)));
    is_day(day)
        && is_date_time(text)
        && !time.ends_with(":60")
        && fraction.is_none_or(|digits| digits.len() <= MICROSECONDS && !digits.ends_with('0'))
}

/// A UUID in lower case with hyphens.
pub(super) fn is_lower_uuid(text: &str) -> bool {
    is_uuid(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// The spelling of the whole number that `text` writes in another way; `None` if it writes none.
pub(super) fn integer(text: &str) -> Option<String> {
    text.trim().parse::<i128>().ok().map(|value| value.to_string())
}

/// The spelling of the number that `text` writes, as ECMAScript's `Number::toString`; `None` if it is not finite.
pub(super) fn number(text: &str) -> Option<String> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    if value == 0.0 {
        return Some("0".into());
    }
    let (sign, value) = if value < 0.0 { ("-", -value) } else { ("", value) };
    // The shortest digits that read back as the same number, as `d.ddde±x`.
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e')?;
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i32>().ok()? + 1;
    let count = i32::try_from(digits.len()).ok()?;
    let mut out = String::from(sign);
    match point {
        1..=21 if count <= point => {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', usize::try_from(point - count).ok()?));
        }
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).ok()?);
            write!(out, "{whole}.{fraction}").ok()?;
        }
        -5..=0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', usize::try_from(-point).ok()?));
            out.push_str(&digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            write!(out, "{first}{dot}{rest}e{:+}", point - 1).ok()?;
        }
    }
    Some(out)
}

/// The spelling of the time in UTC that `text` writes in another way; `None` if it writes none. A time with another
/// offset than zero has one too, which is left to the client.
pub(super) fn instant(text: &str) -> Option<String> {
    let local = ["Z", "z", "+00:00", "-00:00"].iter().find_map(|zone| text.strip_suffix(zone))?;
    let local = local.replacen([' ', 't'], "T", 1);
    let (time, fraction) = local.split_once('.').unwrap_or((&local, ""));
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{time}{dot}{fraction}Z")).filter(|spelled| is_instant(spelled))
}

/// The spelling of the UUID that `text` writes in another way; `None` if it writes none.
pub(super) fn uuid(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let bare = lower.strip_prefix("urn:uuid:").unwrap_or(&lower);
    let bare = bare.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(bare);
    let digits = bare.replace('-', "");
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Some(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers() {
        for good in [
            "0",
            "7",
            "-7",
            "10",
            "170141183460469231731687303715884105727",
            "-170141183460469231731687303715884105728",
        ] {
            assert!(is_integer(good), "{good}");
        }
        for bad in [
            "",
            "-",
            "07",
            "00",
            "-0",
            "-07",
            "+7",
            " 7",
            "7 ",
            "7.0",
            "7.",
            "0_7",
            "1_000",
            "7e0",
            "0x7",
            "٣",
            "７",
            "7\n",
            "--7",
            "\u{2212}7",
            "170141183460469231731687303715884105728",
        ] {
            assert!(!is_integer(bad), "{bad}");
        }
        assert_eq!(integer("+007").as_deref(), Some("7"));
        assert_eq!(integer("-0").as_deref(), Some("0"));
        assert_eq!(integer("seven"), None);
    }

    #[test]
    fn numbers() {
        for good in [
            "0",
            "7",
            "-7",
            "1.5",
            "-1.5",
            "0.1",
            "100",
            "1e+21",
            "1.5e-7",
            "0.000001",
            "123456789012345680000",
            "5e-324",
            "1.7976931348623157e+308",
        ] {
            assert!(is_number(good), "{good}: {:?}", number(good));
        }
        for bad in [
            "",
            "1.0",
            "1.50",
            "01",
            "+1",
            "-0",
            "-0.0",
            "0.0",
            ".5",
            "1.",
            "1e0",
            "1e21",
            "1E+21",
            "1e+021",
            "10e+20",
            "1e-6",
            "inf",
            "nan",
            "Infinity",
            "NaN",
            "1e999",
            " 1",
            "1_0",
            "0x1",
            "9007199254740993",
            "0.1000000000000000055511151231257827",
            "1e-400",
        ] {
            assert!(!is_number(bad), "{bad}");
        }
    }

    #[test]
    fn days_and_instants() {
        assert!(is_day("2024-02-29") && is_day("0001-01-01"));
        for bad in
            ["0000-01-01", "2026-W05-6", "20260131", "2026-031", "2026-1-31", "+2026-01-31", "2026-01-31 "]
        {
            assert!(!is_day(bad), "{bad}");
        }
        for good in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T00:00:00Z",
            "2026-01-31T12:00:00.5Z",
            "2026-01-31T12:00:00.000001Z",
        ] {
            assert!(is_instant(good), "{good}");
        }
        for (bad, spelled) in [
            ("2026-01-31T12:00:00+00:00", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31T12:00:00-00:00", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31 12:00:00Z", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31t12:00:00z", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31T12:00:00.000Z", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31T12:00:00.50Z", Some("2026-01-31T12:00:00.5Z")),
            ("2026-01-31T13:00:00+01:00", None),
            ("2026-01-31T12:00:00", None),
            ("2026-01-31T12:00Z", None),
            ("2026-01-31T24:00:00Z", None),
            ("2016-12-31T23:59:60Z", None),
            ("2026-01-31T12:00:00.1234567Z", None),
            ("0000-01-31T12:00:00Z", None),
            ("2026-W05-6T12:00:00Z", None),
            ("2026-01-31T12:00:00,5Z", None),
            ("2026-01-31", None),
        ] {
            assert!(!is_instant(bad), "{bad}");
            assert_eq!(instant(bad).as_deref(), spelled, "{bad}");
        }
    }

    #[test]
    fn uuids() {
        let spelled = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
        assert!(is_lower_uuid(spelled));
        let upper = spelled.to_uppercase();
        for bad in [
            &*upper,
            "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
            "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            "017f22e279b07cc398c4dc0c0c07398f",
        ] {
            assert!(!is_lower_uuid(bad), "{bad}");
            assert_eq!(uuid(bad).as_deref(), Some(spelled), "{bad}");
        }
        assert_eq!(uuid("017f22e2"), None);
        assert_eq!(uuid("７".repeat(32).as_str()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Each finite number has one accepted spelling, which reads back as the same number.
        #[test]
        fn a_number_has_one_spelling(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let spelled = number(&format!("{value:e}")).unwrap();
            prop_assert!(is_number(&spelled));
            prop_assert_eq!(spelled.parse::<f64>().unwrap(), value);
            let plain = value.to_string();
            prop_assert_eq!(number(&plain), Some(spelled));
        }

        /// Of texts that look like numbers, no two accepted ones have the same value.
        #[test]
        fn an_accepted_text_is_the_only_one(text in "[-+]?[0-9]{0,3}\\.?[0-9]{0,3}(e[-+]?[0-9]{1,2})?") {
            if is_integer(&text) {
                prop_assert_eq!(text.parse::<i128>().unwrap().to_string(), text.clone());
            }
            if is_number(&text) {
                prop_assert_eq!(number(&text), Some(text));
            }
        }
    }
}
