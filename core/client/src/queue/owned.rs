//! Values that belong to the threads of one process.
//!
//! Law: a forked process has no such threads, and its locks may be held for ever, so there the value is never touched.

/// A value that is only accessible in the process that made it.
#[derive(Debug)]
pub struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    /// For this process.
    pub fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// The value; `None` in a process that was forked later.
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.process == std::process::id())
    }
}

/// A forked process drops nothing.
impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
