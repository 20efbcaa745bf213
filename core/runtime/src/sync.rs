//! Locks without poison: what a panicking thread has left is used as it is.
//!
//! Law: these are the locks of the standard library and nothing else. A program may fork while threads wait for them, and the
//! child goes on to use others. `parking_lot` keeps all waiting threads of a process in one table, which a fork would copy with
//! the entries of threads that the child does not have.

use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// A mutex.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

/// A lock for one writer or several readers.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(std::sync::RwLock<T>);

/// A condition that threads wait for with a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mutex, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is no reader and no writer.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condvar {
    /// A condition without waiting threads.
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until notified.
    pub fn wait<'g, T>(&self, guard: MutexGuard<'g, T>) -> MutexGuard<'g, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until notified, for at most `time`. Also returns whether that time has passed.
    pub fn wait_for<'g, T>(&self, guard: MutexGuard<'g, T>, time: Duration) -> (MutexGuard<'g, T>, bool) {
        let (guard, result) = self.0.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
        (guard, result.timed_out())
    }

    /// Waits as long as `waits` says so.
    pub fn wait_while<'g, T>(
        &self,
        guard: MutexGuard<'g, T>,
        waits: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'g, T> {
        self.0.wait_while(guard, waits).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as `waits` says so, for at most `time`.
    pub fn wait_while_for<'g, T>(
        &self,
        guard: MutexGuard<'g, T>,
        time: Duration,
        waits: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'g, T> {
        self.0.wait_timeout_while(guard, time, waits).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_panic_leaves_the_value() {
        let mutex = Mutex::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut guard = mutex.lock();
            *guard = 2;
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.try_lock().map(|value| *value), Some(2));
        let (guard, has_timed_out) = Condvar::new().wait_for(mutex.lock(), Duration::from_millis(1));
        assert!(has_timed_out && mutex.try_lock().is_none());
        drop(guard);
        assert_eq!(mutex.into_inner(), 2);
    }
}
