//! Whether anybody still waits for the work of this thread.
//!
//! ```text
//!   while_wanted(is_wanted, work) ──▶ work: a walk, a pause, a wait for a socket ──is_wanted()?──▶ goes on, or ends early
//! ```
//!
//! Law: work without a known end asks at each step, at least four times a second. Without `while_wanted`, work is wanted.

use mcp_resources_runtime::provider::Responder;
use std::cell::RefCell;
use std::time::Duration;
use std::time::Instant;

/// The longest wait between two looks.
pub const STEP: Duration = Duration::from_millis(250);

type IsWanted = Option<Box<dyn Fn() -> bool>>;

thread_local! {
    static IS_WANTED: RefCell<IsWanted> = const { RefCell::new(None) };
}

/// Runs `work`, which ends early once `is_wanted` denies it.
pub fn while_wanted<T>(is_wanted: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    let _before = BeforeWork(IS_WANTED.replace(Some(Box::new(is_wanted))));
    work()
}

/// Runs `work`, which ends early once the answer of `reply` is no longer needed.
pub fn while_awaited<A, T>(reply: &Responder<A>, work: impl FnOnce() -> T) -> T {
    let cancelled = reply.cancelled();
    while_wanted(move || cancelled.as_ref().is_none_or(|cancelled| !cancelled.get()), work)
}

/// Puts back what was there, also after a panic.
struct BeforeWork(IsWanted);

impl Drop for BeforeWork {
    fn drop(&mut self) {
        IS_WANTED.set(self.0.take());
    }
}

/// Whether anybody waits for the work of this thread.
pub fn is_wanted() -> bool {
    IS_WANTED.with_borrow(|is_wanted| is_wanted.as_ref().is_none_or(|is_wanted| is_wanted()))
}

/// Waits for `time`; `false` as soon as the work of this thread is no longer wanted.
pub fn pause(time: Duration) -> bool {
    let begun = Instant::now();
    loop {
        if !is_wanted() {
            return false;
        }
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(STEP));
    }
}
