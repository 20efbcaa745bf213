//! Where the clients of a program without a runtime of its own run: one thread for all of them.

use std::io;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime, with the process that it belongs to: a forked process has no thread of its parent's.
static SHARED: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// The runtime of this process for clients in programs that have none, such as interpreters of other languages: one thread,
/// started with the first call, for as long as the process lives. After a fork the child gets a new one.
///
/// # Errors
/// What the system says if no thread can be started.
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
        // Its threads do not exist here: to wait for them would be for ever.
        std::mem::forget(parents);
    }
    Ok(handle)
}
