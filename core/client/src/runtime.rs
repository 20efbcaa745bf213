//! The shared runtime for clients in programs without a tokio runtime: a single thread.

use std::io;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime, with the id of its process: a forked process does not have the parent's thread.
static SHARED: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// Returns the runtime of this process for clients in programs that have none, such as interpreters of other languages:
/// one thread, started at the first call, for the lifetime of the process. After a fork the child gets a new one.
///
/// # Errors
/// The system's error if no thread can be started.
pub fn runtime() -> io::Result<Handle> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = shared.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(4)
        .thread_name("mcp-client")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    if let Some((_, parents)) = shared.replace((process, runtime)) {
        // The parent's threads do not exist here, so waiting for them would never end.
        std::mem::forget(parents);
    }
    Ok(handle)
}
