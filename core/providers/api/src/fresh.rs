//! The lifetime of an answer (RFC 9111), and the time at which a server wants to be asked again.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::time::{Duration, SystemTime};
use ureq::http::HeaderMap;
use ureq::http::header::{AGE, CACHE_CONTROL, RETRY_AFTER};

/// The longest time that an answer is kept, or that a server can have us wait.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// The caching headers of an answer: `Cache-Control` and `Age`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freshness {
    /// For how long it is kept without asking again.
    pub(super) lifetime: Duration,
    /// Whether it may be kept at all.
    pub(super) is_kept: bool,
    /// Whether it may be given when the server cannot be reached.
    pub(super) may_be_stale: bool,
}

impl Freshness {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let mut freshness = Self { lifetime: Duration::ZERO, is_kept: true, may_be_stale: true };
        let mut must_ask = false;
        let values = headers.get_all(CACHE_CONTROL).into_iter().filter_map(|value| value.to_str().ok());
        for directive in values.flat_map(|value| value.split(',')) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "max-age" => freshness.lifetime = seconds(value.trim().trim_matches('"')).unwrap_or_default(),
                "no-cache" => must_ask = true,
                "no-store" => freshness.is_kept = false,
                "must-revalidate" => freshness.may_be_stale = false,
                _ => {}
            }
        }
        let age = headers.get(AGE).and_then(|age| seconds(age.to_str().ok()?.trim())).unwrap_or_default();
        freshness.lifetime = match must_ask || !freshness.is_kept {
            true => Duration::ZERO,
            false => freshness.lifetime.saturating_sub(age),
        };
        freshness
    }
}

/// For how long a server wants no request.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Some(seconds) = seconds(text) {
        return Some(seconds);
    }
    let date: Timestamp = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait = SystemTime::from(date).duration_since(SystemTime::now()).unwrap_or_default();
    Some(wait.min(LONGEST))
}

/// A number of seconds. One that no number holds is very large.
fn seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = text.parse().unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    // S-20: `ttlMs` is what remains of `max-age`; `no-store` and `no-cache` leave none.
    #[test]
    fn what_remains_of_max_age() {
        for (all, lifetime, is_kept) in [
            (&[][..], 0, true),
            (&[("cache-control", "max-age=60")], 60, true),
            (&[("cache-control", "public, MAX-AGE = \"60\" , x=y")], 60, true),
            (&[("cache-control", "max-age=60"), ("age", "20")], 40, true),
            (&[("cache-control", "max-age=60"), ("age", "90")], 0, true),
            (&[("cache-control", "max-age=60"), ("age", "-1")], 60, true),
            (&[("cache-control", "max-age=60"), ("cache-control", "no-store")], 0, false),
            (&[("cache-control", "no-cache, max-age=60")], 0, true),
            (&[("cache-control", "max-age=99999999999999999999999")], 86_400, true),
            (&[("cache-control", "max-age=-5")], 0, true),
            (&[("cache-control", "s-maxage=60")], 0, true),
        ] {
            let found = Freshness::from_headers(&headers(all));
            assert_eq!((found.lifetime.as_secs(), found.is_kept), (lifetime, is_kept), "{all:?}");
        }
        assert!(!Freshness::from_headers(&headers(&[("cache-control", "must-revalidate")])).may_be_stale);
    }

    // S-20: a server may say when to come back, in seconds or with a date.
    #[test]
    fn when_to_come_back() {
        let found = |value: &str| retry_after(&headers(&[("retry-after", value)]));
        assert_eq!(found("120"), Some(Duration::from_secs(120)));
        assert_eq!(found("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(found("Thu, 01 Jan 2099 00:00:00 GMT"), Some(LONGEST));
        assert_eq!(found("soon"), None);
    }
}
