//! What a child writes to stderr: passed on as it comes, and its last lines kept for the error that says how the child ended.
//!
//! Law: a thread reads and writes, so that a stderr that nobody reads holds up this child alone. At most [`KEPT`] bytes are kept.

use std::io::{self, ErrorKind, Read, Write};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How many bytes are kept.
const KEPT: usize = 4_096;
/// How many lines are shown, and how many characters of each.
const SHOWN: (usize, usize) = (3, 200);
/// How long the end is waited for: something that the child has started may hold its stderr open.
const PATIENCE: Duration = Duration::from_millis(200);

/// The end of what a child has written to stderr.
#[derive(Clone, Debug)]
pub(super) struct LastLines {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Its sender is dropped at the end.
    over: watch::Receiver<()>,
}

impl LastLines {
    /// Starts the thread, which waits for what it is to follow.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn begin() -> io::Result<(Self, mpsc::Sender<ChildStderr>)> {
        let (give, given) = mpsc::channel();
        let (open, over) = watch::channel(());
        let lines = Self { kept: Arc::default(), over };
        let kept = lines.kept.clone();
        let thread = std::thread::Builder::new().name("mcp-stderr".into());
        thread.spawn(move || {
            if let Ok(stderr) = given.recv() {
                pass_on(stderr, &kept);
            }
            drop(open);
        })?;
        Ok((lines, give))
    }

    /// Waits until all was passed on, for a while.
    pub(super) async fn over(&mut self) {
        // An error says that the sender is gone, which is what is waited for.
        let _ = timeout(PATIENCE, self.over.changed()).await;
    }

    /// The last lines, once there will be no more, or after a while; `None` if there are none.
    pub(super) async fn text(&mut self) -> Option<String> {
        self.over().await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let shown =
            |line: &str| -> String { line.chars().filter(|char| !char.is_control()).take(SHOWN.1).collect() };
        let lines: Vec<String> =
            text.lines().map(|line| shown(line.trim())).filter(|line| !line.is_empty()).collect();
        let last = lines.len().saturating_sub(SHOWN.0);
        (!lines.is_empty()).then(|| lines.get(last..).unwrap_or_default().join(" | "))
    }
}

fn pass_on(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
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
        // Nobody may read the stderr of this process.
        let _ = io::stderr().write_all(piece);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(piece);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
}
