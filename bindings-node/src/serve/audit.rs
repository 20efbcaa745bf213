//! The audit log: a file, or a user's function that takes the records on the event loop.

use crate::values::error::unusable;
use mcp_resources_runtime::transport::AuditFile;
use napi::Either;
use napi::Status;
use napi::bindgen_prelude::{Function, Result};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// A function called on the event loop, from any thread, without keeping the process alive.
struct LoopWaker(ThreadsafeFunction<(), (), (), Status, false, true>);

/// The file that is named, if one is.
pub(crate) fn file(given: Option<Either<String, bool>>) -> Result<Option<AuditFile>> {
    let Some(Either::A(path)) = given else { return Ok(None) };
    AuditFile::open(&path).map(Some).map_err(|error| unusable(format!("audit is {path:?}: {error}")))
}

/// A waker that calls `bell` when there is a record.
pub(crate) fn watcher(bell: &Function<'_, (), ()>) -> Result<Waker> {
    let bell = bell.build_threadsafe_function().weak::<true>().build()?;
    Ok(Waker::from(Arc::new(LoopWaker(bell))))
}

impl Wake for LoopWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The runtime ends: nobody listens.
        let _ = self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}
