//! Server-sent events: encoding of messages, priming events and comments, and event ids.

use crate::now::Millis;
use std::io::Write;

/// Identifies an event by the number of its stream and its number in it. Unique in a session, because stream numbers
/// are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    /// Parses an id written by [`EventId::write`].
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        let digits =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        Some(Self { stream: digits(stream)?, number: digits(number)? })
    }

    fn write(self, out: &mut Vec<u8>) {
        put(out, format_args!("id: {}-{}\n", self.stream, self.number));
    }
}

/// Appends a message as an event. Messages have no line breaks.
pub(super) fn message(id: Option<EventId>, line: &[u8], out: &mut Vec<u8>) {
    if let Some(id) = id {
        id.write(out);
    }
    out.reserve(line.len() + 8);
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(line);
    out.extend_from_slice(b"\n\n");
}

/// Appends the first event of a stream, from which the stream can be resumed.
pub(super) fn priming(id: EventId, retry: Option<Millis>, out: &mut Vec<u8>) {
    id.write(out);
    if let Some(retry) = retry {
        put(out, format_args!("retry: {retry}\n"));
    }
    out.extend_from_slice(b"data: \n\n");
}

/// Appends the prefix of a message under 2024-11-05.
pub(super) fn named_message(out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: message\n");
}

/// Appends the event that tells a client of 2024-11-05 where to post its messages.
pub(super) fn endpoint(uri: &str, out: &mut Vec<u8>) {
    put(out, format_args!("event: endpoint\ndata: {uri}\n\n"));
}

/// Appends a comment, to keep the connection open.
pub(super) fn comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_as_they_are_written() {
        let mut out = Vec::new();
        let id = EventId { stream: 3, number: 17 };
        message(None, b"{}", &mut out);
        message(Some(id), b"{\"a\":1}", &mut out);
        priming(id, Some(500), &mut out);
        priming(id, None, &mut out);
        comment(&mut out);
        let expected = "data: {}\n\nid: 3-17\ndata: {\"a\":1}\n\nid: 3-17\nretry: 500\ndata: \n\nid: 3-17\ndata: \n\n:\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn ids_are_read_back_and_nothing_else() {
        assert_eq!(EventId::parse("3-17"), Some(EventId { stream: 3, number: 17 }));
        for bad in ["", "3", "3-", "-3", "3-x", "+3-1", "3-1-1", " 3-1", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(bad), None, "{bad}");
        }
    }
}
