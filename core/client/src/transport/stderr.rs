//! The stderr of a child: passed on as it arrives, with its last lines kept for the error message about its exit.
//!
//! Law: a thread of its own reads and writes, so that if this process's stderr blocks, only this child is affected. At
//! most [`KEPT`] bytes are kept. A terminal gets no character of a child that it would obey; a pipe or a file gets the
//! bytes unchanged.

use mcp_resources_engine::safe_text::{escape, is_unsafe, shortened};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum number of bytes that are kept.
const KEPT: usize = 4_096;
/// Maximum number of lines in a message, and of characters in each.
const SHOWN: (usize, usize) = (3, 200);
/// Maximum time to wait for the end: descendants of the child may keep its stderr open.
const PATIENCE: Duration = Duration::from_millis(200);

/// The last lines that a child has written to stderr.
#[derive(Clone, Debug)]
pub(super) struct LastLines {
    tail: Arc<Mutex<Vec<u8>>>,
    /// Its sender is dropped at the end of stderr.
    over: watch::Receiver<()>,
}

impl LastLines {
    /// Starts the thread, which first waits for the stderr to follow.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn begin() -> io::Result<(Self, mpsc::Sender<ChildStderr>)> {
        let (sender, receiver) = mpsc::channel();
        let (open, over) = watch::channel(());
        let lines = Self { tail: Arc::default(), over };
        let tail = lines.tail.clone();
        let thread = std::thread::Builder::new().name("mcp-stderr".into());
        thread.spawn(move || {
            if let Ok(stderr) = receiver.recv() {
                let safely = io::stderr().is_terminal().then(TerminalText::default);
                pass_on(stderr, io::stderr(), safely, &tail);
            }
            drop(open);
        })?;
        Ok((lines, sender))
    }

    /// Waits a short time until all lines are passed on.
    pub(super) async fn over(&mut self) {
        // An error means that the sender was dropped, which is the expected end.
        let _ = timeout(PATIENCE, self.over.changed()).await;
    }

    /// The last lines, at the end of stderr or after a short wait; `None` if there are none.
    pub(super) async fn text(&mut self) -> Option<String> {
        self.over().await;
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<String> = text
            .lines()
            .map(|line| shortened(line.trim(), SHOWN.1))
            .filter(|line| !line.is_empty())
            .collect();
        let last = lines.len().saturating_sub(SHOWN.0);
        (!lines.is_empty()).then(|| lines.get(last..).unwrap_or_default().join(" | "))
    }
}

/// Text for a terminal, from bytes that are cut anywhere.
#[derive(Debug, Default)]
struct TerminalText {
    /// The beginning of a character, or a carriage return that may begin a line end.
    held: Vec<u8>,
}

impl TerminalText {
    /// The printable form of the next bytes: control sequences of terminals and bytes that are not UTF-8 are escaped.
    fn push(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let mut safe = String::with_capacity(bytes.len());
        let mut rest = &bytes[..];
        loop {
            let (text, wrong) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let (text, wrong) = rest.split_at(error.valid_up_to());
                    (std::str::from_utf8(text).unwrap_or_default(), Some((wrong, error.error_len())))
                }
            };
            let whole = if wrong.is_none() { text.strip_suffix('\r') } else { None };
            safe.push_str(&escape(&whole.unwrap_or(text).replace("\r\n", "\n"), is_unsafe));
            match wrong {
                Some((wrong, Some(length))) => {
                    let (wrong, after) = wrong.split_at(length);
                    wrong.iter().for_each(|byte| safe.push_str(&format!("\\x{byte:02x}")));
                    rest = after;
                }
                // The character goes on in the next piece.
                Some((begun, None)) => {
                    self.held = begun.to_vec();
                    return safe;
                }
                None => {
                    self.held = if whole.is_some() { b"\r".to_vec() } else { Vec::new() };
                    return safe;
                }
            }
        }
    }

    /// Returns the bytes of an incomplete character at the end, escaped.
    fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        held.iter().map(|byte| format!("\\x{byte:02x}")).collect()
    }
}

fn pass_on(
    mut stderr: impl Read,
    mut own: impl Write,
    mut safely: Option<TerminalText>,
    tail: &Mutex<Vec<u8>>,
) {
    let mut chunk = [0; KEPT];
    loop {
        let piece = match stderr.read(&mut chunk) {
            Ok(count) => chunk.get(..count).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let safe = safely.as_mut().map(|safely| match piece.is_empty() {
            true => safely.finish(),
            false => safely.push(piece),
        });
        // Fails if the stderr of this process is closed.
        let _ = own.write_all(safe.as_ref().map_or(piece, String::as_bytes));
        if piece.is_empty() {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(piece);
        let surplus = tail.len().saturating_sub(KEPT);
        tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output on a terminal and on a pipe for `said`, which arrives `size` bytes at a time.
    fn passed(said: &[u8], size: usize) -> (String, Vec<u8>) {
        struct Pieces<'p>(&'p [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(chunk.len());
                chunk[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut terminal = Vec::new();
        let mut pipe = Vec::new();
        let tail = Mutex::default();
        pass_on(Pieces(said, size), &mut terminal, Some(TerminalText::default()), &tail);
        pass_on(Pieces(said, size), &mut pipe, None, &tail);
        (String::from_utf8(terminal).unwrap(), pipe)
    }

    #[test]
    fn a_terminal_gets_nothing_that_it_obeys() {
        let said = "a\tb é漢🦀\r\n\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}1m\u{202e}\u{feff}\rover\n\r".as_bytes();
        let said = [said, b"\xff\x9b\xe6\xbc"].concat();
        let shown = "a\tb é漢🦀\n\\x1b]0;title\\x07\\x1b[2J\\u{9b}1m\\u{202e}\\u{feff}\\rover\n\\r\\xff\\x9b\\xe6\\xbc";
        for size in 1..=said.len() {
            let (terminal, pipe) = passed(&said, size);
            assert_eq!(terminal, shown, "{size}");
            assert_eq!(pipe, said);
        }
    }
}
