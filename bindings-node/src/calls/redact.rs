//! The user's `redact` function for contents of providers. Providers answer on threads of their own, and the function
//! runs on the event loop: a provider's thread queues its contents here and waits for the result, for a limited time.
//!
//! Law: the thread of the loop never waits. Contents that were not redacted are never sent.

use crate::calls::origin::HttpOrigin;
use crate::calls::woken::Woken;
use crate::values::contents::Entry;
use mcp_resources_engine::connection::{Answer, Contents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::provider::Redact;
use napi::Env;
use napi::bindgen_prelude::*;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The user's function, as wrapped by `js/redact.ts`: `null` if it has failed.
pub(crate) type Look = FunctionRef<LookArgs, Option<Vec<Entry>>>;

/// The URI and its contents; the numbers of the driver and the response that the request belongs to.
type LookArgs = FnArgs<(String, Vec<Entry>, Option<u32>, Option<f64>)>;

/// The queue of contents for the user's function. `None` once the loop has ended.
pub(crate) struct Redactions(Mutex<Option<Vec<Redaction>>>);

/// Contents that a provider has read at `uri`, and where its thread waits for the result.
struct Redaction {
    uri: String,
    contents: Vec<Contents<'static>>,
    origin: Option<HttpOrigin>,
    done: SyncSender<Option<Vec<Contents<'static>>>>,
}

impl Default for Redactions {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Redactions {
    /// The function for providers. A read fails if there is no result after `patience`.
    pub(crate) fn reached(self: &Arc<Self>, woken: Arc<Woken>, patience: Duration) -> Redact {
        let own = self.clone();
        Arc::new(move |peer, uri, answer| {
            let Answer::Contents(ReadResult { contents, cache }) = answer else { return answer };
            // The loop would wait for itself.
            if woken.is_loop() {
                return Answer::Failed(ReadError::Failed);
            }
            let (done, looked) = sync_channel(1);
            if let Some(left) = &mut *own.left() {
                left.push(Redaction {
                    uri: uri.to_owned(),
                    contents,
                    origin: HttpOrigin::from_peer(peer),
                    done,
                });
            }
            woken.wake(None);
            match looked.recv_timeout(patience) {
                Ok(Some(contents)) => Answer::Contents(ReadResult { contents, cache }),
                _ => Answer::Failed(ReadError::Failed),
            }
        })
    }

    /// Calls the function for all that is queued. If it fails, the read fails.
    pub(crate) fn look(&self, env: &Env, look: &Look) -> Result<()> {
        let left = self.left().as_mut().map(std::mem::take).unwrap_or_default();
        for Redaction { uri, contents, origin, done } in left {
            let entries = contents.into_iter().map(Entry::from_contents).collect::<Option<Vec<_>>>();
            let looked = match entries {
                Some(entries) => {
                    let (driver, response) = origin.map(|own| (own.driver, own.response)).unzip();
                    env.run_in_scope(|| look.borrow_back(env)?.call((uri, entries, driver, response).into()))?
                }
                None => None,
            };
            // The provider's thread may have given up.
            let _ = done.send(looked.map(|entries| entries.into_iter().map(Entry::into_contents).collect()));
        }
        Ok(())
    }

    /// The loop has ended: reads that wait fail, and so does every later one.
    pub(crate) fn close(&self) {
        let left = self.left().take();
        drop(left);
    }

    fn left(&self) -> MutexGuard<'_, Option<Vec<Redaction>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
