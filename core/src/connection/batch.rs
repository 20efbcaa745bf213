//! Batches of 2025-03-26: the answers of one array leave as one array, when the last of them is there.

use std::collections::HashMap;

/// Names a batch of one connection; never reused.
pub(super) type BatchId = u64;

/// The batches whose answers are not complete.
#[derive(Debug, Default)]
pub(super) struct Batches {
    next: BatchId,
    open: HashMap<BatchId, Batch>,
}

#[derive(Debug)]
struct Batch {
    /// How many of its requests wait for the host.
    waiting: usize,
    /// The answers so far, one on a line.
    lines: Vec<u8>,
}

impl Batches {
    pub(super) fn name(&mut self) -> BatchId {
        self.next += 1;
        self.next
    }

    /// All its messages have been looked at: `lines` are the answers so far, `waiting` is how many are to come.
    pub(super) fn open(&mut self, id: BatchId, (lines, waiting): (Vec<u8>, usize), out: &mut Vec<u8>) {
        if waiting == 0 {
            write(&lines, out);
        } else {
            self.open.insert(id, Batch { waiting, lines });
        }
    }

    /// One that waited is answered with `line`, or with nothing if it was cancelled.
    pub(super) fn settle(&mut self, id: BatchId, line: &[u8], out: &mut Vec<u8>) {
        let Some(batch) = self.open.get_mut(&id) else { return };
        batch.lines.extend_from_slice(line);
        batch.waiting -= 1;
        if batch.waiting == 0
            && let Some(batch) = self.open.remove(&id)
        {
            write(&batch.lines, out);
        }
    }
}

/// Nothing for a batch without requests.
fn write(lines: &[u8], out: &mut Vec<u8>) {
    let Some(answers) = lines.strip_suffix(b"\n") else { return };
    out.push(b'[');
    // A line break never stands inside a message.
    out.extend(answers.iter().map(|byte| if *byte == b'\n' { b',' } else { *byte }));
    out.extend_from_slice(b"]\n");
}
