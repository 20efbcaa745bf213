//! The thread of the interpreter that takes audit records, or the changes of watches; one for each process.

use mcp_resources_runtime::transport::ConsumerSignal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The thread that takes audit records, or the changes of watches. No method runs Python code, except through the
/// function passed to `begin`.
#[derive(Debug, Default)]
pub(crate) struct ConsumerThread {
    signal: Arc<ConsumerSignal>,
    /// The process in which the thread runs; 0 is none.
    process: AtomicU32,
}

impl ConsumerThread {
    /// The signal that the thread waits for, and that new items send.
    pub(crate) fn signal(&self) -> &Arc<ConsumerSignal> {
        &self.signal
    }

    /// Starts the thread with `start`, unless this process has one.
    ///
    /// # Errors
    /// The error of `start`; the next call tries again.
    pub(crate) fn begin<E>(&self, start: impl FnOnce(Arc<ConsumerSignal>) -> Result<(), E>) -> Result<(), E> {
        let process = std::process::id();
        if self.process.swap(process, Ordering::AcqRel) == process {
            return Ok(());
        }
        start(self.signal.clone()).inspect_err(|_| self.process.store(0, Ordering::Release))
    }

    /// Waits until the thread has taken all current items, but at most one second.
    pub(crate) fn flush(&self) {
        if self.is_running() {
            self.signal.flush();
        }
    }

    /// Ends the thread after all current items; waits at most one second.
    pub(crate) fn end(&self) {
        self.flush();
        self.close();
        if self.is_running() {
            self.signal.wait_for_end();
        }
    }

    /// Ends the thread when it is idle.
    pub(crate) fn close(&self) {
        self.signal.close();
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
        let consumer = ConsumerThread::default();
        let mut started = 0;
        // Without a thread there is nothing to wait for.
        consumer.flush();
        assert_eq!(consumer.begin(|_| Err("no thread")), Err("no thread"));
        for _ in 0..2 {
            let begun = consumer.begin(|signal| {
                started += 1;
                std::thread::spawn(move || while signal.wait() {});
                Ok::<_, &str>(())
            });
            assert_eq!(begun, Ok(()));
        }
        assert_eq!(started, 1);
        consumer.end();
        assert!(!consumer.signal().wait(), "it is closed");
    }
}
