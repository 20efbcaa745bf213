//! What belongs to the threads of one process.
//!
//! Law: a process that was forked has no such threads, and its locks may be held for ever: there it is left alone.

/// See the module.
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

    /// The value; `None` in a process that was forked since.
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.process == std::process::id())
    }
}

/// In a process that was forked nothing of it is dropped.
impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
