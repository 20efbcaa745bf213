//! The thread of another language that takes the records of requests, one in each process.

use crate::transport::RecordSignal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// See the module. No method enters the language, except through the function that `begin` is given.
#[derive(Debug, Default)]
pub struct RecordThread {
    bell: Arc<RecordSignal>,
    /// The process whose thread runs; 0 is none.
    process: AtomicU32,
}

impl RecordThread {
    /// What the thread waits for, and records wake.
    pub fn bell(&self) -> &Arc<RecordSignal> {
        &self.bell
    }

    /// There must be a thread in this process: `start` starts it, unless there is one.
    ///
    /// # Errors
    /// What `start` says; the next call tries again.
    pub fn begin<E>(&self, start: impl FnOnce(Arc<RecordSignal>) -> Result<(), E>) -> Result<(), E> {
        let process = std::process::id();
        if self.process.swap(process, Ordering::AcqRel) == process {
            return Ok(());
        }
        start(self.bell.clone()).inspect_err(|_| self.process.store(0, Ordering::Release))
    }

    /// Waits until the thread has taken all that is recorded now; a second at most.
    pub fn flush(&self) {
        if self.is_running() {
            self.bell.flush();
        }
    }

    /// Ends the thread, after all that is recorded now; waits for it, a second at most.
    pub fn end(&self) {
        self.flush();
        self.close();
        if self.is_running() {
            self.bell.wait_for_end();
        }
    }

    /// Ends the thread when it is idle.
    pub fn close(&self) {
        self.bell.close();
    }

    fn is_running(&self) -> bool {
        self.process.load(Ordering::Acquire) == std::process::id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_started_and_another_attempt_follows_a_failure() {
        let (records, mut started) = (RecordThread::default(), 0);
        // Nothing to wait for without a thread.
        records.flush();
        assert_eq!(records.begin(|_| Err("no thread")), Err("no thread"));
        for _ in 0..2 {
            let begun = records.begin(|bell| {
                started += 1;
                std::thread::spawn(move || while bell.wait() {});
                Ok::<_, &str>(())
            });
            assert_eq!(begun, Ok(()));
        }
        assert_eq!(started, 1);
        records.end();
        assert!(!records.bell().wait(), "it is closed");
    }
}
