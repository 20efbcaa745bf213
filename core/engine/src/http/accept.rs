//! Content types: those the client accepts, and the type of its body.

use super::head::{EVENT_STREAM, JSON, RequestHead};
use crate::connection::HeaderField;

/// The content types that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accept {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accept {
    /// Parses `Accept`. Without the header everything is accepted; an invalid header accepts nothing. `field` is used
    /// if the header occurs once, `head` if it occurs several times.
    pub(super) fn from_field(field: HeaderField<'_>, head: &RequestHead<'_>) -> Self {
        let everything = Self { json: true, events: true };
        match field {
            HeaderField::Absent => return everything,
            // The value that most clients of the protocol send.
            HeaderField::Once(b"application/json, text/event-stream") => return everything,
            _ => {}
        }
        let values = head.all("accept");
        let ranges: Vec<_> = values
            .filter_map(|value| std::str::from_utf8(value).ok())
            .flat_map(|value| value.split(','))
            .filter_map(MediaRange::parse)
            .collect();
        let takes = |media: &str| {
            // The most specific range decides.
            let fitting = ranges.iter().filter_map(|range| Some((range.fit(media)?, range.taken)));
            fitting.max_by_key(|(fit, _)| *fit).is_some_and(|(_, taken)| taken)
        };
        Self { json: takes(JSON), events: takes(EVENT_STREAM) }
    }
}

/// One entry of `Accept`.
struct MediaRange<'v> {
    media: &'v str,
    /// Whether its weight is more than 0.
    taken: bool,
}

impl<'v> MediaRange<'v> {
    fn parse(text: &'v str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().filter(|media| media.contains('/'))?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let taken = weight.is_none_or(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0));
        Some(Self { media, taken })
    }

    /// The specificity of its match with `media`, from 0 to 2; `None` if it does not match.
    fn fit(&self, media: &str) -> Option<u8> {
        if self.media == "*/*" {
            return Some(0);
        }
        if self.media.eq_ignore_ascii_case(media) {
            return Some(2);
        }
        let group = self.media.strip_suffix("/*")?;
        media.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(group)).then_some(1)
    }
}

/// Whether the body is declared to be JSON.
pub(super) fn is_json(content_type: HeaderField<'_>) -> bool {
    let HeaderField::Once(value) = content_type else { return false };
    if value == JSON.as_bytes() {
        return true;
    }
    let media = std::str::from_utf8(value).unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().eq_ignore_ascii_case(JSON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::lines::{HeaderLines, HeaderName};

    fn accept(values: &[&str]) -> (bool, bool) {
        let headers: Vec<(&str, &[u8])> = values.iter().map(|value| ("Accept", value.as_bytes())).collect();
        let head = RequestHead { verb: "POST", target: "/", headers: &headers, ..RequestHead::default() };
        let Accept { json, events } =
            Accept::from_field(HeaderLines::from_head(&head, 0).field(HeaderName::Accept), &head);
        (json, events)
    }

    //
    #[test]
    fn ranges_weights_and_their_order() {
        for (values, expected) in [
            (&[][..], (true, true)),
            (&["*/*"], (true, true)),
            (&["application/json"], (true, false)),
            (&["application/json, text/event-stream"], (true, true)),
            (&["application/json", "text/event-stream"], (true, true)),
            (&["Application/JSON;q=0.5 , TEXT/*;q=0.1"], (true, true)),
            (&["text/event-stream"], (false, true)),
            (&["text/html"], (false, false)),
            (&["*/*, text/event-stream;q=0"], (true, false)),
            (&["application/json;q=0, */*;q=1"], (false, true)),
            (&["text/*;q=0, text/event-stream"], (false, true)),
            (&["", ","], (false, false)),
            (&["nonsense"], (false, false)),
            (&["application/json;q=x"], (false, false)),
        ] {
            assert_eq!(accept(values), expected, "{values:?}");
        }
    }

    #[test]
    fn the_content_type_has_parameters() {
        let sends = |value: &str| is_json(HeaderField::Once(value.as_bytes()));
        assert!(sends("application/json") && sends("Application/Json ; charset=utf-8"));
        assert!(!sends("text/plain") && !sends("application/json-patch+json") && !sends(""));
        assert!(!is_json(HeaderField::Absent) && !is_json(HeaderField::Repeated));
    }
}
