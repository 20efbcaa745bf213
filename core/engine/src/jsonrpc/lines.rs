//! Splits a byte stream into lines. The lines do not depend on how the stream is cut into chunks. An oversized
//! line uses no more memory than any other, and every byte is examined once.

use super::oversized::OversizedLine;
use std::collections::VecDeque;

/// Capacity kept while the buffer is empty: enough for ordinary requests, not for the last large one.
const KEPT: usize = 64 * 1024;
/// The number of bytes kept of each end of an oversized line: longer than any usual id with the members beside it.
const END: usize = 256;

/// One line of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'l> {
    /// A line that is not blank, without `\n` or `\r\n`.
    Message(&'l [u8]),
    /// Stands for a line longer than the limit; only its two ends were kept.
    TooLong(OversizedLine<'l>),
}

/// Splits a stream into lines and drops blank ones.
///
/// # Examples
/// ```
/// use mcp_resources_engine::jsonrpc::{Line, Lines};
///
/// let mut lines = Lines::new(1024);
/// lines.push(b"{\"a\":1}\r\n\n{\"b\"");
/// assert_eq!(lines.next(), Some(Line::Message(br#"{"a":1}"#)));
/// assert_eq!(lines.next(), None);
/// lines.push(b":2}\n");
/// assert_eq!(lines.next(), Some(Line::Message(br#"{"b":2}"#)));
/// ```
#[derive(Clone, Debug)]
pub struct Lines {
    max_line: usize,
    /// Consumed lines, then the lines in `ready` (without their ends), then the beginning of the next line.
    buffer: Vec<u8>,
    /// The length of the consumed part of `buffer`.
    taken: usize,
    /// The position of the unfinished line in `buffer`.
    partial: usize,
    /// The complete lines that are not consumed yet, in order.
    ready: VecDeque<ReadyLine>,
    /// Whether the unfinished line is too long: `buffer` has its first bytes, `tail` its last.
    skipping: bool,
    /// The last bytes of an oversized line: as many as it keeps, and those of the latest chunk.
    tail: Vec<u8>,
}

/// A complete line in the buffer.
#[derive(Clone, Copy, Debug)]
enum ReadyLine {
    Message {
        len: usize,
    },
    /// Its beginning, then its end.
    TooLong {
        head: usize,
        tail: usize,
    },
}

impl Lines {
    /// `max_line` is the maximum length of a line in bytes, without its end.
    pub fn new(max_line: usize) -> Self {
        Self {
            max_line,
            buffer: Vec::new(),
            taken: 0,
            partial: 0,
            ready: VecDeque::new(),
            skipping: false,
            tail: Vec::new(),
        }
    }

    /// Adds the next bytes of the stream. If [`Lines::next`] is called until it returns `None` before each push, at
    /// most the lines in `chunk` and one unfinished line of `max_line` bytes are held.
    pub fn push(&mut self, chunk: &[u8]) {
        self.compact();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            self.extend(chunk.get(start..end).unwrap_or_default());
            self.finish_line();
            start = end + 1;
        }
        self.extend(chunk.get(start..).unwrap_or_default());
    }

    /// Returns the next complete line.
    #[expect(
        clippy::should_implement_trait,
        reason = "the line borrows from the buffer, as an Iterator's item cannot"
    )]
    pub fn next(&mut self) -> Option<Line<'_>> {
        let start = self.taken;
        match self.ready.pop_front()? {
            ReadyLine::Message { len } => {
                self.taken += len;
                self.buffer.get(start..self.taken).map(Line::Message)
            }
            ReadyLine::TooLong { head, tail } => {
                self.taken += head + tail;
                let (head, tail) = self.buffer.get(start..self.taken)?.split_at(head);
                Some(Line::TooLong(OversizedLine::new(head, tail)))
            }
        }
    }

    /// Whether the unfinished line is too long already: its end may never come.
    pub fn is_overlong(&self) -> bool {
        self.skipping
    }

    /// Ends the stream: the bytes after the last `\n` become a line, for [`Lines::next`].
    pub fn finish(&mut self) {
        self.finish_line();
    }

    /// Appends to the unfinished line; of one that is too long only the ends are kept.
    fn extend(&mut self, bytes: &[u8]) {
        if self.skipping {
            self.keep_tail(bytes);
            return;
        }
        // One more byte may be the `\r` of the line end.
        let room = self.max_line.saturating_add(1).saturating_sub(self.buffer.len() - self.partial);
        let (kept, rest) = bytes.split_at(room.min(bytes.len()));
        self.buffer.extend_from_slice(kept);
        let len = self.buffer.len() - self.partial;
        if !rest.is_empty() || (len > self.max_line && self.buffer.last() != Some(&b'\r')) {
            self.skipping = true;
            let line = self.buffer.get(self.partial..).unwrap_or_default();
            let tail = line.get(END.min(line.len())..).unwrap_or_default();
            self.tail.extend_from_slice(last(tail, END));
            self.buffer.truncate(self.partial + END.min(len));
            self.keep_tail(rest);
        }
    }

    fn keep_tail(&mut self, bytes: &[u8]) {
        let bytes = last(bytes, END);
        let excess = (self.tail.len() + bytes.len()).saturating_sub(END);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend_from_slice(bytes);
    }

    fn finish_line(&mut self) {
        if std::mem::take(&mut self.skipping) {
            let head = self.buffer.len() - self.partial;
            self.ready.push_back(ReadyLine::TooLong { head, tail: self.tail.len() });
            self.buffer.append(&mut self.tail);
            self.partial = self.buffer.len();
            return;
        }
        if self.buffer.len() > self.partial && self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        let line = self.buffer.get(self.partial..).unwrap_or_default();
        if line.trim_ascii_start().is_empty() {
            self.buffer.truncate(self.partial);
            return;
        }
        self.ready.push_back(ReadyLine::Message { len: line.len() });
        self.partial = self.buffer.len();
    }

    /// Makes room for new bytes. Moves at most as many bytes as were consumed since the last time.
    fn compact(&mut self) {
        let held = self.buffer.len() - self.taken;
        if held > self.taken {
            return;
        }
        self.buffer.drain(..self.taken);
        self.partial -= self.taken;
        self.taken = 0;
        if held == 0 {
            self.buffer.shrink_to(KEPT);
        }
    }
}

/// At most the last `count` bytes.
fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(count)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of `chunks`, with "!" for an oversized one.
    fn lines<'c>(max_line: usize, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<String> {
        let mut lines = Lines::new(max_line);
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push(chunk);
            drain(&mut lines, &mut seen);
        }
        lines.finish();
        drain(&mut lines, &mut seen);
        seen
    }

    fn text(line: Line<'_>) -> String {
        match line {
            Line::Message(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Line::TooLong(_) => "!".to_owned(),
        }
    }

    fn drain(lines: &mut Lines, seen: &mut Vec<String>) {
        while let Some(line) = lines.next() {
            seen.push(text(line));
        }
    }

    /// The expected lines, computed by the simplest means from the whole stream.
    fn expected(max_line: usize, stream: &[u8]) -> Vec<String> {
        let text = |line: &[u8]| String::from_utf8(line.to_vec()).unwrap();
        let lines = stream.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let lines = lines.filter(|line| line.len() > max_line || !line.trim_ascii().is_empty());
        lines.map(|line| if line.len() > max_line { "!".to_owned() } else { text(line) }).collect()
    }

    proptest! {
        // R-145, R-153: the lines do not depend on the chunks.
        #[test]
        fn any_chunking_gives_the_same_lines(chunks in proptest::collection::vec("[ab \\r\n]{0,12}", 0..12), max_line in 0usize..9) {
            let stream = chunks.concat().into_bytes();
            let want = expected(max_line, &stream);
            prop_assert_eq!(lines(max_line, chunks.iter().map(|chunk| chunk.as_bytes())), want.clone());
            prop_assert_eq!(lines(max_line, [&stream[..]]), want.clone());
            prop_assert_eq!(lines(max_line, stream.chunks(1)), want.clone());
            // Lines that are not consumed at once are not lost.
            let mut late = Lines::new(max_line);
            let mut seen = Vec::new();
            for (i, chunk) in chunks.iter().enumerate() {
                late.push(chunk.as_bytes());
                if i % 3 == 0 && let Some(line) = late.next() {
                    seen.push(text(line));
                }
            }
            late.finish();
            drain(&mut late, &mut seen);
            prop_assert_eq!(seen, want);
        }
    }

    // R-145
    #[test]
    fn tolerates_crlf_and_skips_blank_lines() {
        assert_eq!(lines(9, [&b"{}\r\n\n \t\r\n\r\n{ }\n7"[..]]), ["{}", "{ }", "7"]);
        assert_eq!(lines(2, [&b"{}\r\n{}\r\r\n{}\r"[..]]), ["{}", "!", "{}"]);
    }

    // R-153: a line of 200 MB causes one report and limited memory use, and the next line is served.
    #[test]
    fn a_huge_line_costs_no_memory() {
        let mut lines = Lines::new(1 << 20);
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..200 {
            lines.push(&chunk);
            assert_eq!(lines.next(), None);
            assert!(lines.is_overlong() || lines.buffer.len() == chunk.len());
        }
        lines.push(b"x\n{}\n");
        let mut seen = Vec::new();
        drain(&mut lines, &mut seen);
        assert_eq!(seen, ["!", "{}"]);
        assert!(lines.buffer.capacity() <= 3 << 20, "{}", lines.buffer.capacity());
        lines.push(b"");
        assert!(lines.buffer.capacity() <= KEPT, "{}", lines.buffer.capacity());
    }

    /// The same in one chunk: the bytes after the long line are kept, the line is not.
    #[test]
    fn a_huge_line_in_one_push_is_not_copied() {
        let mut stream = vec![b'x'; 16 << 20];
        stream.extend_from_slice(b"\n{}\n");
        let mut lines = Lines::new(1024);
        lines.push(&stream);
        assert!(lines.buffer.capacity() <= 1 << 20, "{}", lines.buffer.capacity());
        let mut seen = Vec::new();
        drain(&mut lines, &mut seen);
        assert_eq!(seen, ["!", "{}"]);
    }

    /// The request of an oversized line is known, whichever end has its id, and however the line arrives.
    #[test]
    fn an_oversized_line_keeps_its_id() {
        let text = "x".repeat(5_000);
        for (line, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"a":"{text}"}}}}"#), Some("7")),
            (
                format!(r#"{{"method":"m","params":{{"a":"{text}"}},"jsonrpc":"2.0","id":"a b"}}"#),
                Some("\"a b\""),
            ),
            (format!(r#"{{"method":"m","params":{{"id":5,"a":"{text}"}}}}"#), None),
            (text.clone(), None),
        ] {
            for size in [1, 100, 1_024, 10_000] {
                let mut lines = Lines::new(1_024);
                let stream = format!("{{}}\n{line}\r\n{{}}\n");
                let mut seen = Vec::new();
                for chunk in stream.as_bytes().chunks(size) {
                    lines.push(chunk);
                    while let Some(line) = lines.next() {
                        seen.push(match line {
                            Line::TooLong(line) => line.id().map(|id| id.raw().to_owned()),
                            Line::Message(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
                        });
                    }
                }
                assert_eq!(seen, [Some("{}".to_owned()), id.map(str::to_owned), Some("{}".to_owned())]);
            }
        }
    }
}
