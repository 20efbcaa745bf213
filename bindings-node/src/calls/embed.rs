//! The user's embedding function. It runs on the event loop; a provider's thread asks it for vectors and waits for
//! them, for a limited time.
//!
//! Law: the thread of the loop never waits. What JavaScript holds to answer holds neither the provider nor the function.

use mcp_resources_providers::rag::Embedder;
use napi::bindgen_prelude::*;
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum time for the function.
const PATIENCE: Duration = Duration::from_secs(60);

/// Vectors, or why there are none.
type Outcome = std::result::Result<Vec<Vec<f32>>, String>;
/// The function: it is called with the number of a call, and texts.
pub(crate) type Ask<'a> = Function<'a, FnArgs<(u32, Vec<String>)>, ()>;

/// The calls that are under way, each with its number.
#[napi(js_name = "NativeEmbeddings")]
#[derive(Clone, Default)]
pub struct Embeddings(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    calls: u32,
    threads: HashMap<u32, SyncSender<Outcome>>,
}

/// Questions of a provider.
pub(crate) struct Asking {
    /// `false` once the runtime is ending.
    ask: Box<dyn Fn(u32, Vec<String>) -> bool + Send + Sync>,
    calls: Embeddings,
}

#[napi]
impl Embeddings {
    /// An empty table.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The vectors of a call, or why there are none.
    #[napi(catch_unwind)]
    pub fn made(&self, number: u32, vectors: Either<Vec<Float32Array>, String>) {
        let Some(thread) = self.with(|waiting| waiting.threads.remove(&number)) else { return };
        let outcome = match vectors {
            Either::A(vectors) => Ok(vectors.iter().map(|vector| vector.to_vec()).collect()),
            Either::B(reason) => Err(reason),
        };
        // It may have given up.
        let _ = thread.send(outcome);
    }
}

impl Embeddings {
    /// For the function that answers through these calls.
    pub(crate) fn asking(&self, function: &Ask<'_>) -> Result<Arc<Asking>> {
        let call = function.build_threadsafe_function().weak::<true>().build()?;
        let ask = move |number, texts| {
            call.call((number, texts).into(), ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok
        };
        Ok(Arc::new(Asking { ask: Box::new(ask), calls: self.clone() }))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Waiting) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Embedder for Asking {
    fn embed(&self, texts: &[&str]) -> Outcome {
        let (done, made) = sync_channel(1);
        let number = self.calls.with(|waiting| {
            waiting.calls = waiting.calls.wrapping_add(1);
            waiting.threads.insert(waiting.calls, done);
            waiting.calls
        });
        let is_asked = (self.ask)(number, texts.iter().map(|text| (*text).to_owned()).collect());
        let outcome = match is_asked {
            true => made.recv_timeout(PATIENCE).map_err(|_| format!("it takes longer than {PATIENCE:?}")),
            false => Err("the program ends".to_owned()),
        };
        self.calls.with(|waiting| waiting.threads.remove(&number));
        outcome.and_then(|outcome| outcome)
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking")
    }
}
