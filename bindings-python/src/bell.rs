//! How what the engine wakes reaches an event loop: from any thread, and without the interpreter.
//!
//! ```text
//!   waker ─▶ Bell::say ──▶ a byte in a pipe that the loop watches ──▶ Ear::hear, which does the work
//!                  └─────▶ inside `delivering`, on the thread that changes something: a list, which is worked off
//!                          before the call returns. Nothing goes through the kernel
//! ```
//!
//! Law: saying a word takes no lock, waits for nothing and never enters the interpreter.

use crate::channel::Link;
use crate::client::calls::Calls;
use crate::web::{Ring, Web};
use mcp_resources_host::transport::http::Inbox;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Wake, Waker};
use std::thread::ThreadId;

/// There is something to deliver.
pub(crate) const DELIVER: u8 = 1;
/// Something is due earlier than before.
pub(crate) const TIME: u8 = 2;
/// The loop is to look at events, output, and jobs that were put off.
pub(crate) const WORK: u8 = 4;

/// What other threads hold of an event loop. Words are bits: one that was said twice before it was heard is one word.
pub(crate) struct Bell {
    words: AtomicU8,
    /// Somebody is to look already.
    is_rung: AtomicBool,
    is_closed: AtomicBool,
    writer: PipeWriter,
    thread: ThreadId,
    owner: OnceLock<Owner>,
}

/// What is served. A waker does not keep it.
pub(crate) enum Owner {
    Link(Weak<Link>),
    Web(Weak<Web>),
    Calls(Weak<Calls>),
}

/// What the loop watches.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Ear {
    reader: PipeReader,
    bell: Arc<Bell>,
}

/// A word that the engine says.
struct Says(Arc<Bell>, u8);

thread_local! {
    /// Those that were woken inside [`delivering`].
    static DUE: RefCell<Option<Vec<Arc<Bell>>>> = const { RefCell::new(None) };
}

impl Bell {
    /// For the loop of this thread.
    pub(crate) fn new() -> io::Result<(Arc<Self>, Ear)> {
        let (reader, writer) = io::pipe()?;
        let (words, is_rung, is_closed, owner) = Default::default();
        let thread = std::thread::current().id();
        let bell = Arc::new(Self { words, is_rung, is_closed, writer, thread, owner });
        Ok((bell.clone(), Ear { reader, bell }))
    }

    /// Says what it rings for, once.
    pub(crate) fn belongs_to(&self, owner: Owner) {
        let _ = self.owner.set(owner);
    }

    /// What the engine says `word` with.
    pub(crate) fn waker(self: &Arc<Self>, word: u8) -> Waker {
        Waker::from(Arc::new(Says(self.clone(), word)))
    }

    /// What other threads leave for the loop.
    pub(crate) fn inbox(self: &Arc<Self>) -> Arc<Inbox<Ring>> {
        let bell = self.clone();
        Inbox::new(Some(Arc::new(move || bell.say(WORK))))
    }

    /// Says a word, and sees to it that it is heard.
    pub(crate) fn say(self: &Arc<Self>, word: u8) {
        self.words.fetch_or(word, Ordering::SeqCst);
        if self.is_rung.swap(true, Ordering::SeqCst) || self.is_collected() {
            return;
        }
        self.ring();
    }

    /// Takes the words.
    pub(crate) fn heard(&self) -> u8 {
        self.is_rung.store(false, Ordering::SeqCst);
        self.words.swap(0, Ordering::SeqCst)
    }

    /// The loop watches it no longer.
    pub(crate) fn close(&self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Whether [`delivering`] will see to it: an endpoint is worked on by its own thread alone.
    fn is_collected(self: &Arc<Self>) -> bool {
        let is_web = matches!(self.owner.get(), Some(Owner::Web(_)));
        if is_web && std::thread::current().id() != self.thread {
            return false;
        }
        let collect = |due: &RefCell<Option<Vec<Arc<Self>>>>| match &mut *due.borrow_mut() {
            Some(due) => {
                due.push(self.clone());
                true
            }
            None => false,
        };
        // When the thread ends, no one reads the words any more.
        DUE.try_with(collect).unwrap_or(false)
    }

    /// Never waits: there are two bytes in the pipe at most.
    fn ring(&self) {
        // Fails only when the reader has gone.
        let _ = (&self.writer).write_all(&[0]);
    }

    /// Does what was said, on the thread that has caused it.
    fn deliver(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        match self.owner.get() {
            Some(Owner::Link(link)) => link.upgrade().map_or(Ok(()), |link| {
                let words = self.heard();
                if words & WORK != 0 {
                    self.say(WORK);
                }
                link.woken(py, words)
            }),
            Some(Owner::Web(web)) => web.upgrade().map_or(Ok(()), |web| web.work(py)),
            Some(Owner::Calls(calls)) => calls.upgrade().map_or(Ok(()), |calls| calls.work(py)),
            None => Ok(()),
        }
    }
}

/// Makes a change, and delivers to the clients that it has woken before it returns.
pub(crate) fn delivering<R>(py: Python<'_>, change: impl FnOnce() -> R) -> PyResult<R> {
    let collecting = Collecting(DUE.replace(Some(Vec::new())));
    let result = change();
    let due = collecting.end();
    due.into_iter().try_for_each(|bell| bell.deliver(py))?;
    Ok(result)
}

/// Restores what was collected around it.
struct Collecting(Option<Vec<Arc<Bell>>>);

impl Collecting {
    fn end(mut self) -> Vec<Arc<Bell>> {
        let due = DUE.replace(self.0.take());
        std::mem::forget(self);
        due.unwrap_or_default()
    }
}

/// The change has panicked: what it woke is left to the loops.
impl Drop for Collecting {
    fn drop(&mut self) {
        let due = DUE.replace(self.0.take());
        due.iter().flatten().for_each(|bell| bell.ring());
    }
}

impl Wake for Says {
    fn wake(self: Arc<Self>) {
        self.0.say(self.1);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.say(self.1);
    }
}

#[pymethods]
impl Ear {
    /// The descriptor that is readable when `hear` is to be called.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Takes a ring, and does what it was for. Whether to watch on.
    fn hear(&self, py: Python<'_>) -> PyResult<bool> {
        // Returns at once: the loop has seen that there is something.
        let _ = (&self.reader).read(&mut [0; 2])?;
        if self.bell.is_closed.load(Ordering::SeqCst) {
            return Ok(false);
        }
        match self.bell.owner.get() {
            Some(Owner::Link(link)) => link.upgrade().map_or(Ok(false), |link| link.wake(py).map(|()| true)),
            Some(Owner::Web(web)) => web.upgrade().map_or(Ok(false), |web| web.work(py).map(|()| true)),
            Some(Owner::Calls(calls)) => {
                calls.upgrade().map_or(Ok(false), |calls| calls.work(py).map(|()| true))
            }
            None => Ok(true),
        }
    }
}
