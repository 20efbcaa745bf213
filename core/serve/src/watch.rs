//! The thread that looks at the files of a running server.
//!
//! Law: there is no thread if there is nothing to look at. It ends when the watch is dropped, and nothing waits for it.

use crate::auth::FileState;
use crate::log::{ConfigLog, ConfigMessage};
use crate::running::RunningConfig;
use mcp_resources_runtime::sync::Mutex;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The time between two looks at the document.
const LOOK: Duration = Duration::from_millis(250);
/// The number of looks at the document for each look at the other files, which is once a second.
const LOOKS: u32 = 4;

/// A running configuration whose files are looked at.
pub struct ServeWatch {
    shared: Arc<SharedWatch>,
    /// Dropping it ends the thread.
    orders: Mutex<Sender<()>>,
}

/// The parts that the thread and its owner share.
struct SharedWatch {
    path: PathBuf,
    /// Whether the document is looked at too.
    looks: bool,
    running: Mutex<RunningConfig>,
    log: ConfigLog,
    is_reading: AtomicBool,
    is_asked: AtomicBool,
}

/// A file of configuration as it was seen, to notice its changes.
#[derive(Debug)]
pub struct WatchedDocument {
    /// The state that was read last.
    read: Option<FileState>,
    /// The state at the last look.
    last: Option<FileState>,
}

/// Reports the end of the thread by a panic.
struct ReportPanic<'t>(&'t SharedWatch);

impl ServeWatch {
    /// Starts to look at the files. `looks`: also at the document; otherwise it is read again by [`ServeWatch::reload`]
    /// alone. `None` without a document.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(running: RunningConfig, looks: bool) -> io::Result<Option<Self>> {
        let Some(path) = running.path.clone() else { return Ok(None) };
        let seen = running.seen;
        let shared = Arc::new(SharedWatch {
            path,
            looks,
            log: running.log.clone(),
            running: Mutex::new(running),
            is_reading: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
        });
        let orders = Mutex::new(begin(shared.clone(), seen)?);
        Ok(Some(Self { shared, orders }))
    }

    /// Has the document read again, on the thread. A call while it is being read is followed by one more reading.
    pub fn reload(&self) {
        let was_asked = self.shared.is_asked.swap(true, Ordering::SeqCst);
        if self.shared.is_reading.load(Ordering::SeqCst) && !was_asked {
            let path = self.shared.path.display();
            let text = format!("{path}: still being read; it is read again after that");
            (self.shared.log)(ConfigMessage::Note(&text));
        }
        // It fails if the thread has ended by a panic, which it has reported.
        let _ = self.orders.lock().send(());
    }

    /// Call this in a forked process, which has no thread of its parent.
    pub fn forked(&self) {
        // If a lock is held, its owner is a thread of the parent.
        let (Some(running), Some(mut orders)) = (self.shared.running.try_lock(), self.orders.try_lock())
        else {
            return;
        };
        drop(running);
        // Without a thread, the configuration stays what it is.
        if let Ok(begun) = begin(self.shared.clone(), FileState::at(&self.shared.path)) {
            *orders = begun;
        }
    }
}

/// Starts the thread.
fn begin(shared: Arc<SharedWatch>, seen: Option<FileState>) -> io::Result<Sender<()>> {
    let (sender, orders) = channel();
    let look = move || shared.look(&orders, WatchedDocument { read: seen, last: seen });
    thread::Builder::new().name("mcp-config".into()).spawn(look)?;
    Ok(sender)
}

impl SharedWatch {
    /// Looks until the owner is gone.
    fn look(&self, orders: &Receiver<()>, mut document: WatchedDocument) {
        let _report = ReportPanic(self);
        let polls = self.looks || self.running.lock().files.are_some();
        for look in 1_u32.. {
            let order = match polls {
                true => orders.recv_timeout(LOOK),
                false => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let is_asked = match order {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => false,
                Ok(()) => {
                    while orders.try_recv().is_ok() {}
                    true
                }
            };
            if is_asked || (self.looks && document.has_changed(&self.path)) {
                self.reload();
            }
            if look % LOOKS == 0 {
                self.running.lock().renew();
            }
        }
    }

    fn reload(&self) {
        self.is_reading.store(true, Ordering::SeqCst);
        // From here on, a further call means that the file may have changed after it was read.
        self.is_asked.store(false, Ordering::SeqCst);
        self.running.lock().reload(&self.path);
        self.is_reading.store(false, Ordering::SeqCst);
    }
}

impl WatchedDocument {
    /// The time between two looks.
    pub const LOOK: Duration = LOOK;

    /// The file as it is now.
    pub fn new(path: &std::path::Path) -> Self {
        let seen = FileState::at(path);
        Self { read: seen, last: seen }
    }

    /// Whether the file is another one, and no longer being written. A file that is not there has not changed.
    pub fn has_changed(&mut self, path: &std::path::Path) -> bool {
        let now = FileState::at(path);
        let is_settled = now.is_some() && now == self.last;
        self.last = now;
        if is_settled && now != self.read {
            self.read = now;
            return true;
        }
        false
    }
}

impl Drop for ReportPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // A provider has panicked. What is mounted stays so.
            let text = "the reload failed unexpectedly; start the server again for changes of the file";
            (self.0.log)(ConfigMessage::Error(text));
        }
    }
}
