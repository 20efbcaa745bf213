//! How what the engine wakes reaches an event loop: from any thread, and without its language.
//!
//! ```text
//!   Waker ─▶ LoopWaker::wake ──▶ `ring`: a byte in a pipe, a function that libuv calls ──▶ the loop takes the reasons
//!                        └─────▶ inside `collect`, on the thread that changes something: a list, which is worked off
//!                                before the call returns. Nothing goes through the kernel
//! ```
//!
//! Law: waking takes no lock, waits for nothing and never enters the language.

use crate::transport::http::Inbox;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::{LocalKey, ThreadId};

/// There is something to deliver.
pub const DELIVER: u8 = 1;
/// Something is due earlier than before.
pub const TIME: u8 = 2;
/// The loop is to look at events, output, and jobs that were put off.
pub const WORK: u8 = 4;

/// What other threads hold of an event loop. Reasons are bits: the loop sees one that was given twice once.
pub struct LoopWaker<O> {
    reasons: AtomicU8,
    /// The loop, or the end of a change, takes the reasons soon.
    is_rung: AtomicBool,
    is_closed: AtomicBool,
    ring: Box<dyn Fn() + Send + Sync>,
    thread: ThreadId,
    owner: OnceLock<O>,
}

/// The wakers that a change on this thread has woken; `None` outside of one.
pub type Woken<O> = RefCell<Option<Vec<Arc<LoopWaker<O>>>>>;

/// What an event loop serves. A waker does not keep it alive: it holds a weak reference.
pub trait Owner: Send + Sync + Sized + 'static {
    /// Where [`collect`] keeps the wakers of this thread: a `thread_local!` of the binding's.
    fn woken() -> &'static LocalKey<Woken<Self>>;

    /// Whether only the thread of the loop works for it.
    fn is_bound(&self) -> bool;
}

/// Wakes a loop for one reason.
struct Reason<O>(Arc<LoopWaker<O>>, u8);

impl<O: Owner> LoopWaker<O> {
    /// For the loop of this thread. `ring` makes it look, from any thread and without waiting.
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let (reasons, is_rung, is_closed, owner) = Default::default();
        let (ring, thread) = (Box::new(ring), std::thread::current().id());
        Arc::new(Self { reasons, is_rung, is_closed, ring, thread, owner })
    }

    /// Sets what the loop serves, once.
    pub fn belongs_to(&self, owner: O) {
        let _ = self.owner.set(owner);
    }

    /// What the loop serves, once that is set.
    pub fn owner(&self) -> Option<&O> {
        self.owner.get()
    }

    /// What the engine wakes the loop with, for this reason.
    pub fn waker(self: &Arc<Self>, reason: u8) -> Waker {
        Waker::from(Arc::new(Reason(self.clone(), reason)))
    }

    /// What other threads leave for the loop.
    pub fn inbox<X>(self: &Arc<Self>) -> Arc<Inbox<X>> {
        let waker = self.clone();
        Inbox::new(Some(Arc::new(move || waker.wake(WORK))))
    }

    /// Adds a reason, and sees to it that the loop takes it.
    pub fn wake(self: &Arc<Self>, reason: u8) {
        self.reasons.fetch_or(reason, Ordering::SeqCst);
        if !self.is_rung.swap(true, Ordering::SeqCst) && !self.is_collected() {
            self.ring();
        }
    }

    /// Whether there may be reasons: for a loop that looks often.
    pub fn is_woken(&self) -> bool {
        self.is_rung.load(Ordering::Relaxed)
    }

    /// Takes the reasons.
    pub fn take(&self) -> u8 {
        self.is_rung.store(false, Ordering::SeqCst);
        self.reasons.swap(0, Ordering::SeqCst)
    }

    /// Takes the reasons that the thread of a change works off; those for the loop stay.
    pub fn take_collected(self: &Arc<Self>) -> u8 {
        let reasons = self.take();
        if reasons & WORK != 0 {
            self.wake(WORK);
        }
        reasons
    }

    /// Makes the loop look now.
    pub fn ring(&self) {
        (self.ring)();
    }

    /// The loop looks no longer.
    pub fn close(&self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Whether the loop looks no longer.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Whether this is the thread of the loop.
    pub fn is_on_loop(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Whether a change on this thread works off the reasons when it is made.
    fn is_collected(self: &Arc<Self>) -> bool {
        if self.owner().is_some_and(Owner::is_bound) && !self.is_on_loop() {
            return false;
        }
        let collect = |woken: &Woken<O>| match &mut *woken.borrow_mut() {
            Some(woken) => {
                woken.push(self.clone());
                true
            }
            None => false,
        };
        // When the thread ends, nothing takes the list any more.
        O::woken().try_with(collect).unwrap_or(false)
    }
}

/// Makes a change. Returns what it has woken on this thread: the caller works that off.
pub fn collect<O: Owner, R>(change: impl FnOnce() -> R) -> (R, Vec<Arc<LoopWaker<O>>>) {
    let collecting = Collecting(O::woken().replace(Some(Vec::new())));
    let result = change();
    (result, collecting.end())
}

/// Restores what a change around this one has collected.
struct Collecting<O: Owner>(Option<Vec<Arc<LoopWaker<O>>>>);

impl<O: Owner> Collecting<O> {
    fn end(mut self) -> Vec<Arc<LoopWaker<O>>> {
        let woken = O::woken().replace(self.0.take());
        std::mem::forget(self);
        woken.unwrap_or_default()
    }
}

/// The change has panicked: what it woke is left to the loops.
impl<O: Owner> Drop for Collecting<O> {
    fn drop(&mut self) {
        let woken = O::woken().replace(self.0.take());
        woken.iter().flatten().for_each(|waker| waker.ring());
    }
}

impl<O: Owner> Wake for Reason<O> {
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

    impl Owner for Served {
        fn woken() -> &'static LocalKey<Woken<Self>> {
            &WOKEN
        }

        fn is_bound(&self) -> bool {
            self.is_bound
        }
    }

    fn counted() -> (Arc<AtomicUsize>, Arc<LoopWaker<Served>>) {
        let rung = Arc::new(AtomicUsize::new(0));
        let counts = rung.clone();
        let ring = move || {
            counts.fetch_add(1, Ordering::SeqCst);
        };
        (rung, LoopWaker::new(ring))
    }

    #[test]
    fn reasons_are_given_once_until_they_are_taken() {
        let (rung, waker) = counted();
        waker.waker(DELIVER).wake();
        waker.waker(DELIVER).wake_by_ref();
        waker.wake(TIME);
        assert_eq!((rung.load(Ordering::SeqCst), waker.take()), (1, DELIVER | TIME));
        waker.wake(WORK);
        assert_eq!((rung.load(Ordering::SeqCst), waker.take(), waker.take()), (2, WORK, 0));
        waker.close();
        waker.close();
        assert_eq!((rung.load(Ordering::SeqCst), waker.is_closed()), (3, true));
    }

    /// A change delivers before it returns; what the loop itself must do stays with the loop.
    #[test]
    fn a_change_collects_what_it_wakes_and_rings_for_the_rest() {
        let (rung, waker) = counted();
        let (inner, woken) = collect::<Served, _>(|| {
            waker.wake(DELIVER | WORK);
            collect::<Served, _>(|| waker.wake(TIME)).1.len()
        });
        assert_eq!((inner, woken.len(), rung.load(Ordering::SeqCst)), (0, 1, 0));
        assert_eq!(waker.take_collected(), DELIVER | TIME | WORK);
        assert_eq!((rung.load(Ordering::SeqCst), waker.take()), (1, WORK));
    }

    #[test]
    fn what_works_on_its_own_thread_is_not_collected_on_another() {
        let (rung, waker) = counted();
        waker.belongs_to(Served { is_bound: true });
        let elsewhere = waker.clone();
        let woken = std::thread::spawn(move || collect::<Served, _>(|| elsewhere.wake(WORK)).1.len());
        assert_eq!((woken.join().unwrap(), rung.load(Ordering::SeqCst)), (0, 1));
        let _ = waker.take();
        assert_eq!(collect::<Served, _>(|| waker.wake(WORK)).1.len(), 1);
    }

    #[test]
    fn a_change_that_panics_leaves_what_it_woke_to_the_loop() {
        let (rung, waker) = counted();
        let change = || {
            collect::<Served, _>(|| {
                waker.wake(DELIVER);
                std::panic::panic_any(());
            })
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(change)).is_err());
        assert_eq!((rung.load(Ordering::SeqCst), waker.take()), (1, DELIVER));
    }
}
