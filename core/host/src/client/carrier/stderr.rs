//! The stderr of a child: passed on as it arrives, with its last lines kept for the error message about its exit.
//!
//! Law: a thread of its own reads and writes, so that if this process's stderr blocks, only this child is affected. At
//! most [`KEPT`] bytes are kept.

use std::io::{self, ErrorKind, Read, Write};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum number of bytes that are kept.
const KEPT: usize = 4_096;
/// Maximum number of lines in a message, and of characters in each.
const SHOWN: (usize, usize) = (3, 200);
/// How long to wait for the end: descendants of the child may keep its stderr open.
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
                pass_on(stderr, &tail);
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
        let shown =
            |line: &str| -> String { line.chars().filter(|char| !char.is_control()).take(SHOWN.1).collect() };
        let lines: Vec<String> =
            text.lines().map(|line| shown(line.trim())).filter(|line| !line.is_empty()).collect();
        let last = lines.len().saturating_sub(SHOWN.0);
        (!lines.is_empty()).then(|| lines.get(last..).unwrap_or_default().join(" | "))
    }
}

fn pass_on(mut stderr: impl Read, tail: &Mutex<Vec<u8>>) {
    let mut chunk = [0; KEPT];
    loop {
        let piece = match stderr.read(&mut chunk) {
            Ok(count) => chunk.get(..count).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if piece.is_empty() {
            return;
        }
        // Fails if the stderr of this process is closed.
        let _ = io::stderr().write_all(piece);
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(piece);
        let surplus = tail.len().saturating_sub(KEPT);
        tail.drain(..surplus);
    }
}
