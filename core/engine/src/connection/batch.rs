//! Batches of 2025-03-26: the answers of one array leave as one array, when the last of them is there.

use super::event::RequestToken;
use super::inflight::Ticket;
use std::collections::HashMap;

/// Names a batch of one connection; never reused.
pub(super) type BatchId = u64;

/// The batches whose answers are not complete.
#[derive(Debug, Default)]
pub(super) struct Batches {
    next: BatchId,
    open: HashMap<BatchId, Batch>,
    /// Bytes of the answers in `open`.
    held: usize,
    /// The batch that is being read has no room for further answers.
    full: bool,
    /// Answers of batches that a cancellation completed, with the request that was cancelled.
    completed: Vec<(RequestToken, Vec<u8>)>,
}

#[derive(Debug)]
struct Batch {
    /// How many of its requests wait for the host, and one while it is being read.
    waiting: usize,
    /// The answers so far, one on a line.
    lines: Vec<u8>,
}

impl Batches {
    /// Begins a batch, before any of its messages is looked at: one of them may cancel another.
    pub(super) fn begin(&mut self) -> BatchId {
        self.next += 1;
        self.full = false;
        self.open.insert(self.next, Batch { waiting: 1, lines: Vec::new() });
        self.next
    }

    /// One of its requests waits for the host.
    pub(super) fn wait(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.waiting += 1;
        }
    }

    /// All its messages have been looked at; `lines` are the answers to those that do not wait. Whether some still do.
    pub(super) fn read(&mut self, id: BatchId, lines: &[u8], out: &mut Vec<u8>) -> bool {
        self.close(id, lines, out);
        self.open.contains_key(&id)
    }

    /// Whether the batch that is being read has no room for further answers.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether its answers of `bytes` have room beside those of other batches. If not, none that follows has.
    pub(super) fn has_room(&mut self, bytes: usize, max: usize) -> bool {
        self.full |= self.held.saturating_add(bytes) > max;
        !self.full
    }

    /// A request that waited is answered with `line`, or with an error if there is no room for that.
    pub(super) fn answer(&mut self, ticket: &Ticket, line: &[u8], max: usize, out: &mut Vec<u8>) {
        let Some(id) = ticket.batch else { return };
        let mut refusal = Vec::new();
        if self.held.saturating_add(line.len()) > max {
            ticket.say_too_much(max, &mut refusal);
        }
        let shorter = !refusal.is_empty() && refusal.len() < line.len();
        self.close(id, if shorter { &refusal } else { line }, out);
    }

    /// A request that waited has no answer.
    pub(super) fn drop_one(&mut self, id: BatchId, out: &mut Vec<u8>) {
        self.close(id, b"", out);
    }

    /// The same for one that was cancelled: what that completes is kept for [`Batches::take_completed`].
    pub(super) fn cancel(&mut self, id: BatchId, token: RequestToken) {
        let mut line = Vec::new();
        self.close(id, b"", &mut line);
        if !line.is_empty() {
            self.completed.push((token, line));
        }
    }

    /// The answers of batches that a cancellation completed, with the request that was cancelled.
    pub(super) fn take_completed(&mut self) -> Vec<(RequestToken, Vec<u8>)> {
        std::mem::take(&mut self.completed)
    }

    fn close(&mut self, id: BatchId, lines: &[u8], out: &mut Vec<u8>) {
        let Some(batch) = self.open.get_mut(&id) else { return };
        batch.waiting -= 1;
        if batch.waiting > 0 {
            batch.lines.extend_from_slice(lines);
            self.held += lines.len();
        } else if let Some(batch) = self.open.remove(&id) {
            self.held -= batch.lines.len();
            write(&batch.lines, lines, out);
        }
    }
}

/// Nothing for a batch without requests.
fn write(lines: &[u8], last: &[u8], out: &mut Vec<u8>) {
    if lines.is_empty() && last.is_empty() {
        return;
    }
    out.push(b'[');
    let start = out.len();
    for part in [lines, last] {
        // A line break never stands inside a message.
        out.extend(part.iter().map(|byte| if *byte == b'\n' { b',' } else { *byte }));
    }
    if out.len() > start {
        out.pop();
    }
    out.extend_from_slice(b"]\n");
}
