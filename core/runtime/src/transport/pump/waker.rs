//! Carries wake-ups of the engine to an event loop: from any thread, and without running code of the loop's language.
//!
//! ```text
//!   Waker ─▶ LoopWaker::wake ──▶ `wake_loop`: a byte in a pipe, a function that libuv calls ──▶ the loop takes the reasons
//!                        └─────▶ inside `collect`, on the thread that changes something: a list, which is worked off
//!                                before the call returns. Nothing goes through the kernel
//! ```
//!
//! Law: waking takes no lock, never blocks, and never runs code of the loop's language.

use crate::transport::http::RequestInbox;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::{LocalKey, ThreadId};

/// There are notifications to deliver.
pub const DELIVER: u8 = 1;
/// The next deadline is earlier than before.
pub const TIME: u8 = 2;
/// Check events, output, and postponed jobs.
pub const WORK: u8 = 4;

/// The handle that other threads have of an event loop. Reasons are bits: a reason that is set twice is seen once.
pub struct LoopWaker<O> {
    reasons: AtomicU8,
    /// Whether the loop, or the end of a change, will take the reasons soon.
    is_woken: AtomicBool,
    is_closed: AtomicBool,
    wake_loop: Box<dyn Fn() + Send + Sync>,
    thread: ThreadId,
    owner: OnceLock<O>,
}

/// The wakers called by a change on this thread; `None` outside of a change.
pub type Woken<O> = RefCell<Option<Vec<Arc<LoopWaker<O>>>>>;

/// The owner of a loop: the object it serves. Holds the waker; the waker has only a weak reference to it.
pub trait WakerOwner: Send + Sync + Sized + 'static {
    /// The thread's storage for [`collect`]: a `thread_local!` of the binding.
    fn woken() -> &'static LocalKey<Woken<Self>>;

    /// Whether only the loop's thread works for it.
    fn is_bound(&self) -> bool;
}

/// A waker with one reason.
struct WakeReason<O>(Arc<LoopWaker<O>>, u8);

impl<O: WakerOwner> LoopWaker<O> {
    /// Makes the waker of this thread's loop. `wake_loop` wakes the loop, from any thread and without blocking.
    pub fn new(wake_loop: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let reasons = Default::default();
        let is_woken = Default::default();
        let is_closed = Default::default();
        let owner = Default::default();
        let wake_loop = Box::new(wake_loop);
        let thread = std::thread::current().id();
        Arc::new(Self { reasons, is_woken, is_closed, wake_loop, thread, owner })
    }

    /// Sets the owner. Call it once.
    pub fn belongs_to(&self, owner: O) {
        let _ = self.owner.set(owner);
    }

    /// The owner, once set.
    pub fn owner(&self) -> Option<&O> {
        self.owner.get()
    }

    /// A waker for the engine, with this reason.
    pub fn waker(self: &Arc<Self>, reason: u8) -> Waker {
        Waker::from(Arc::new(WakeReason(self.clone(), reason)))
    }

    /// Makes a queue of items for the loop.
    pub fn inbox<X>(self: &Arc<Self>) -> Arc<RequestInbox<X>> {
        let waker = self.clone();
        RequestInbox::new(Some(Arc::new(move || waker.wake(WORK))))
    }

    /// Adds a reason, and makes sure that the loop takes it.
    pub fn wake(self: &Arc<Self>, reason: u8) {
        self.reasons.fetch_or(reason, Ordering::SeqCst);
        if !self.is_woken.swap(true, Ordering::SeqCst) && !self.is_collected() {
            self.wake_now();
        }
    }

    /// Whether there may be reasons: for a loop that checks often.
    pub fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed)
    }

    /// Takes the reasons.
    pub fn take(&self) -> u8 {
        self.is_woken.store(false, Ordering::SeqCst);
        self.reasons.swap(0, Ordering::SeqCst)
    }

    /// Takes the reasons that the thread of a change can handle; reasons for the loop stay.
    pub fn take_collected(self: &Arc<Self>) -> u8 {
        let reasons = self.take();
        if reasons & WORK != 0 {
            self.wake(WORK);
        }
        reasons
    }

    /// Wakes the loop now.
    pub fn wake_now(&self) {
        (self.wake_loop)();
    }

    /// Closes the waker: the loop is not woken any more.
    pub fn close(&self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            self.wake_now();
        }
    }

    /// Whether the waker is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Whether this is the loop's thread.
    pub fn is_on_loop(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Whether a change on this thread will handle the reasons at its end.
    fn is_collected(self: &Arc<Self>) -> bool {
        if self.owner().is_some_and(WakerOwner::is_bound) && !self.is_on_loop() {
            return false;
        }
        let collect = |woken: &Woken<O>| match &mut *woken.borrow_mut() {
            Some(woken) => {
                woken.push(self.clone());
                true
            }
            None => false,
        };
        // While the thread ends, the list is no longer handled.
        O::woken().try_with(collect).unwrap_or(false)
    }
}

/// Makes a change. Returns the wakers that it called on this thread, for the caller to handle.
pub fn collect<O: WakerOwner, R>(change: impl FnOnce() -> R) -> (R, Vec<Arc<LoopWaker<O>>>) {
    let collecting = WakeCollector(O::woken().replace(Some(Vec::new())));
    let result = change();
    (result, collecting.end())
}

/// Restores the list of an outer change.
struct WakeCollector<O: WakerOwner>(Option<Vec<Arc<LoopWaker<O>>>>);

impl<O: WakerOwner> WakeCollector<O> {
    fn end(mut self) -> Vec<Arc<LoopWaker<O>>> {
        let woken = O::woken().replace(self.0.take());
        std::mem::forget(self);
        woken.unwrap_or_default()
    }
}

/// If the change has panicked, its wakers are passed to their loops.
impl<O: WakerOwner> Drop for WakeCollector<O> {
    fn drop(&mut self) {
        let woken = O::woken().replace(self.0.take());
        woken.iter().flatten().for_each(|waker| waker.wake_now());
    }
}

impl<O: WakerOwner> Wake for WakeReason<O> {
    fn wake(self: Arc<Self>) {
        self.0.wake(self.1);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake(self.1);
    }
}

impl<O> fmt::Debug for LoopWaker<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopWaker").field("reasons", &self.reasons).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Served {
        is_bound: bool,
    }

    thread_local! {
        static WOKEN: Woken<Served> = const { RefCell::new(None) };
    }

    impl WakerOwner for Served {
        fn woken() -> &'static LocalKey<Woken<Self>> {
            &WOKEN
        }

        fn is_bound(&self) -> bool {
            self.is_bound
        }
    }

    fn counted() -> (Arc<AtomicUsize>, Arc<LoopWaker<Served>>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counts = wakes.clone();
        let wake_loop = move || {
            counts.fetch_add(1, Ordering::SeqCst);
        };
        (wakes, LoopWaker::new(wake_loop))
    }

    #[test]
    fn reasons_are_given_once_until_they_are_taken() {
        let (wakes, waker) = counted();
        waker.waker(DELIVER).wake();
        waker.waker(DELIVER).wake_by_ref();
        waker.wake(TIME);
        assert_eq!((wakes.load(Ordering::SeqCst), waker.take()), (1, DELIVER | TIME));
        waker.wake(WORK);
        assert_eq!((wakes.load(Ordering::SeqCst), waker.take(), waker.take()), (2, WORK, 0));
        waker.close();
        waker.close();
        assert_eq!((wakes.load(Ordering::SeqCst), waker.is_closed()), (3, true));
    }

    /// A change delivers before it returns; reasons for the loop itself stay with the loop.
    #[test]
    fn a_change_collects_what_it_wakes_and_rings_for_the_rest() {
        let (wakes, waker) = counted();
        let (inner, woken) = collect::<Served, _>(|| {
            waker.wake(DELIVER | WORK);
            collect::<Served, _>(|| waker.wake(TIME)).1.len()
        });
        assert_eq!((inner, woken.len(), wakes.load(Ordering::SeqCst)), (0, 1, 0));
        assert_eq!(waker.take_collected(), DELIVER | TIME | WORK);
        assert_eq!((wakes.load(Ordering::SeqCst), waker.take()), (1, WORK));
    }

    #[test]
    fn what_works_on_its_own_thread_is_not_collected_on_another() {
        let (wakes, waker) = counted();
        waker.belongs_to(Served { is_bound: true });
        let elsewhere = waker.clone();
        let woken = std::thread::spawn(move || collect::<Served, _>(|| elsewhere.wake(WORK)).1.len());
        assert_eq!((woken.join().unwrap(), wakes.load(Ordering::SeqCst)), (0, 1));
        let _ = waker.take();
        assert_eq!(collect::<Served, _>(|| waker.wake(WORK)).1.len(), 1);
    }

    #[test]
    fn a_change_that_panics_leaves_what_it_woke_to_the_loop() {
        let (wakes, waker) = counted();
        let change = || {
            collect::<Served, _>(|| {
                waker.wake(DELIVER);
                std::panic::panic_any(());
            })
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(change)).is_err());
        assert_eq!((wakes.load(Ordering::SeqCst), waker.take()), (1, DELIVER));
    }
}
