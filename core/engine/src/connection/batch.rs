//! Batches of 2025-03-26: the responses to one array are sent as one array, when all of them are known.

use super::event::RequestToken;
use super::inflight::Ticket;
use std::collections::HashMap;

/// Identifies a batch of one connection. Never reused.
pub(super) type BatchId = u64;

/// The batches whose answers are not complete.
#[derive(Debug, Default)]
pub(super) struct Batches {
    next: BatchId,
    open: HashMap<BatchId, MessageBatch>,
    /// Total size, in bytes, of the responses in `open`.
    held: usize,
    /// Whether the batch that is being read has reached the limit for its responses.
    full: bool,
    /// Responses of batches that became complete through a cancellation, with the cancelled request.
    completed: Vec<(RequestToken, Vec<u8>)>,
}

#[derive(Debug)]
struct MessageBatch {
    /// The number of its requests that wait for the runtime, plus one while its messages are being read.
    waiting: usize,
    /// The responses so far, one on each line.
    lines: Vec<u8>,
}

impl Batches {
    /// Begins a batch before any of its messages is handled, because one of them may cancel another.
    pub(super) fn begin(&mut self) -> BatchId {
        self.next += 1;
        self.full = false;
        self.open.insert(self.next, MessageBatch { waiting: 1, lines: Vec::new() });
        self.next
    }

    /// Counts a request that waits for the runtime.
    pub(super) fn wait(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.waiting += 1;
        }
    }

    /// Ends the reading of a batch; `lines` are the responses that are already known. Returns whether some are still
    /// pending.
    pub(super) fn read(&mut self, id: BatchId, lines: &[u8], out: &mut Vec<u8>) -> bool {
        self.close(id, lines, out);
        self.open.contains_key(&id)
    }

    /// Whether the batch that is being read has reached the limit for its responses.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether responses of `bytes` fit beside those of other batches. If not, the rest of this batch is refused too.
    pub(super) fn has_room(&mut self, bytes: usize, max: usize) -> bool {
        self.full |= self.held.saturating_add(bytes) > max;
        !self.full
    }

    /// Adds the response to a pending request, or an error if it exceeds the limit.
    pub(super) fn answer(&mut self, ticket: &Ticket, line: &[u8], max: usize, out: &mut Vec<u8>) {
        let Some(id) = ticket.batch else { return };
        let mut refusal = Vec::new();
        if self.held.saturating_add(line.len()) > max {
            ticket.say_too_much(max, &mut refusal);
        }
        let shorter = !refusal.is_empty() && refusal.len() < line.len();
        self.close(id, if shorter { &refusal } else { line }, out);
    }

    /// Removes a pending request that gets no response.
    pub(super) fn drop_one(&mut self, id: BatchId, out: &mut Vec<u8>) {
        self.close(id, b"", out);
    }

    /// Like [`Batches::drop_one`] for a cancelled request. If this completes the batch, [`Batches::take_completed`]
    /// returns it.
    pub(super) fn cancel(&mut self, id: BatchId, token: RequestToken) {
        let mut line = Vec::new();
        self.close(id, b"", &mut line);
        if !line.is_empty() {
            self.completed.push((token, line));
        }
    }

    /// Takes the responses of batches that a cancellation completed, with the cancelled request.
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

/// Writes the responses as an array; nothing for a batch without requests.
fn write(lines: &[u8], last: &[u8], out: &mut Vec<u8>) {
    if lines.is_empty() && last.is_empty() {
        return;
    }
    out.push(b'[');
    let start = out.len();
    for part in [lines, last] {
        // Messages contain no line breaks, so each one here separates two messages.
        out.extend(part.iter().map(|byte| if *byte == b'\n' { b',' } else { *byte }));
    }
    if out.len() > start {
        out.pop();
    }
    out.extend_from_slice(b"]\n");
}
