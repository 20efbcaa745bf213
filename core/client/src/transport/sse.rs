//! A parser for server-sent events (the HTML standard, section 9.2.6).
//!
//! Law: the events do not depend on how the stream is cut into chunks. Lines and data beyond the limit are never kept.

use hyper::header::HeaderValue;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum length of an event id in bytes: ids are sent back in a header.
const LONGEST_ID: usize = 1024;
/// Room in a line for the name of the field, in bytes.
const FIELD: usize = 64;

/// Parses streams into messages. If a stream is resumed, its continuation follows.
#[derive(Debug, Default)]
pub(super) struct Events {
    longest: usize,
    line: Vec<u8>,
    /// Whether the previous line ended with `\r`, so that a `\n` is part of its end.
    after_return: bool,
    /// Whether a byte-order mark may follow.
    begins: bool,
    event: SseEvent,
    /// The id of the last complete event that had one.
    id: Option<HeaderValue>,
    retry: Option<Duration>,
    ready: VecDeque<Vec<u8>>,
    has_progress: bool,
}

/// The event being parsed.
#[derive(Debug, Default)]
struct SseEvent {
    data: Option<Vec<u8>>,
    /// Whether its name is not `message`.
    is_other: bool,
    id: Option<Option<HeaderValue>>,
}

/// A message exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Events {
    /// `longest` is the maximum length of a message in bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, begins: true, ..Self::default() }
    }

    /// Parses the next bytes of the stream.
    ///
    /// # Errors
    /// [`TooLong`]; the stream cannot be parsed any further.
    pub(super) fn push(&mut self, mut chunk: &[u8]) -> Result<(), TooLong> {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                chunk = chunk.get(1..).unwrap_or_default();
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (part, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            if self.line.len() + part.len() > self.longest.saturating_add(FIELD) {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some((end, rest)) = rest.split_first() else { return Ok(()) };
            self.after_return = *end == b'\r';
            chunk = rest;
            let line = std::mem::take(&mut self.line);
            self.take(&line)?;
        }
        Ok(())
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    /// Drops the unfinished event of a broken stream, so that another stream can follow. Returns whether there was a
    /// complete event.
    pub(super) fn restart(&mut self) -> bool {
        self.event = SseEvent::default();
        self.after_return = false;
        self.begins = true;
        self.line.clear();
        std::mem::take(&mut self.has_progress)
    }

    /// The id after which to resume.
    pub(super) fn id(&self) -> Option<&HeaderValue> {
        self.id.as_ref()
    }

    /// Clears the id after which to resume.
    pub(super) fn forget(&mut self) {
        self.id = None;
    }

    /// The time that the server asks clients to wait before they reconnect.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn take(&mut self, line: &[u8]) -> Result<(), TooLong> {
        let begins = std::mem::take(&mut self.begins);
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| begins).unwrap_or(line);
        if line.is_empty() {
            self.finish();
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => return self.event.add(value, self.longest),
            b"event" => self.event.is_other = !matches!(value, b"" | b"message"),
            b"id" if value.len() <= LONGEST_ID && !value.contains(&0) => {
                let id = HeaderValue::from_bytes(value).ok();
                self.event.id = Some(id.filter(|id| !id.is_empty()));
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(value).unwrap_or_default();
                self.retry = text.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            // A comment or an unknown field.
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) {
        let event = std::mem::take(&mut self.event);
        self.has_progress |= event.data.is_some() || event.id.is_some();
        if let Some(id) = event.id {
            self.id = id;
        }
        // An event without data only sets its id.
        let data = event.data.filter(|data| !event.is_other && !data.trim_ascii().is_empty());
        self.ready.extend(data);
    }
}

impl SseEvent {
    fn add(&mut self, value: &[u8], longest: usize) -> Result<(), TooLong> {
        if self.data.as_ref().map_or(0, |data| data.len() + 1) + value.len() > longest {
            return Err(TooLong);
        }
        match &mut self.data {
            None => self.data = Some(value.to_vec()),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &[u8], size: usize) -> (Vec<String>, Events) {
        let mut events = Events::new(32);
        let mut messages = Vec::new();
        for chunk in stream.chunks(size) {
            events.push(chunk).unwrap();
            messages
                .extend(std::iter::from_fn(|| events.next()).map(|data| String::from_utf8(data).unwrap()));
        }
        (messages, events)
    }

    // R-164: line ends, comments, other events, several lines of data, in any chunks.
    #[test]
    fn any_cutting_gives_the_same_messages() {
        let stream = b"\xef\xbb\xbfdata: 1\r\n\r\n:c\rdata:2\rdata: 3\r\rid: a-1\nretry: 70\nevent: message\ndata:  4\n\n\
            event: other\ndata: no\n\nevent: message\n\ndata\n\nid: b\ndata: \n\nretry: x\nwhat: 1\ndata: 5\n\nid: c\ndata: lost";
        for size in [1, 2, 3, 7, stream.len()] {
            let (messages, mut events) = read(stream, size);
            assert_eq!(messages, ["1", "2\n3", " 4", "5"], "{size}");
            // the id of an incomplete event is not one to resume after.
            assert_eq!(events.id().unwrap(), "b");
            assert_eq!(events.retry(), Some(Duration::from_millis(70)));
            assert!(events.restart() && !events.restart());
            events.push(b"\ndata: 6\n\n").unwrap();
            assert_eq!(events.next().unwrap(), b"6");
        }
    }

    #[test]
    fn nothing_grows_without_end() {
        let endless = |chunk: &[u8]| {
            let mut events = Events::new(1000);
            (0..100).any(|_| events.push(chunk) == Err(TooLong))
        };
        assert!(endless(&[b'x'; 100]) && endless(b"data: 0123456789012345678901234567890123456789\n"));
        assert!(!endless(b"data: 0123456789\n\n") && !endless(b": comment that is not kept at all\n"));
    }

    #[test]
    fn odd_ids_are_not_sent_back() {
        for odd in [&b"id: a\0b\n\n"[..], b"id: a\x01\n\n", &[b"id: ", &[b'x'; 2000][..], b"\n\n"].concat()] {
            let mut events = Events::new(4000);
            events.push(odd).unwrap();
            assert_eq!(events.id(), None);
        }
    }
}
