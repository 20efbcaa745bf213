//! Providers, for JavaScript. All logic is in the core.

use crate::calls::embed::{Ask, Embeddings};
use crate::values::error::unusable;
use crate::values::options::{PlainValue, read, refused_option};
use crate::values::spelling::number;
use mcp_resources_providers::declared::one;
use mcp_resources_providers::memory::Memory;
use mcp_resources_providers::metrics::{Metrics, PushError};
use mcp_resources_providers::rag::Rag;
use mcp_resources_providers::registry::ProviderSet;
use mcp_resources_providers::results::{Content, Results, ResultsError};
use mcp_resources_runtime::provider as core;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::sync::Arc;

/// A provider.
#[napi(js_name = "NativeProvider")]
pub struct Provider {
    pub(crate) provider: Arc<dyn core::Provider>,
    /// The provider of entries.
    memory: Option<Memory>,
    /// The provider of samples.
    metrics: Option<Metrics>,
    /// The provider of results.
    results: Option<Results>,
}

impl Provider {
    fn new(provider: Arc<dyn core::Provider>) -> Self {
        Self { provider, memory: None, metrics: None, results: None }
    }
}

#[napi]
impl Provider {
    /// A provider of this kind, with its options.
    #[napi(catch_unwind, factory)]
    pub fn declared(env: Env, kind: String, options: PlainValue) -> Result<Self> {
        let mut set = ProviderSet::new();
        set.add(&kind, options.into()).map_err(|error| refused_option(&env, &error))?;
        let provider = set.providers().pop().ok_or_else(|| unusable(format!("there is no {kind}")))?;
        Ok(Self::new(provider))
    }

    /// A folder in memory.
    #[napi(catch_unwind, factory)]
    pub fn memory() -> Self {
        let memory = Memory::new();
        Self { memory: Some(memory.clone()), ..Self::new(Arc::new(memory)) }
    }

    /// Series of numbers, with their options.
    #[napi(catch_unwind, factory)]
    pub fn metrics(env: Env, options: PlainValue) -> Result<Self> {
        let metrics: Metrics = one(options.into()).map_err(|error| refused_option(&env, &error))?;
        Ok(Self { metrics: Some(metrics.clone()), ..Self::new(Arc::new(metrics)) })
    }

    /// Documents that are found by vectors too. `ask` is called with the number of a call and texts; `calls` takes the answer.
    #[napi(catch_unwind, factory)]
    pub fn embedded(
        env: Env,
        options: PlainValue,
        calls: &Embeddings,
        #[napi(ts_arg_type = "(number: number, texts: string[]) => void")] ask: Ask<'_>,
    ) -> Result<Self> {
        let rag: Rag = one(options.into()).map_err(|error| refused_option(&env, &error))?;
        Ok(Self::new(Arc::new(rag.with_embedder(calls.asking(&ask)?))))
    }

    /// Adds a sample to a series, at a time in milliseconds since 1970.
    #[napi(catch_unwind)]
    pub fn push(&self, name: String, value: f64, at: Option<f64>) -> Result<()> {
        let Some(metrics) = &self.metrics else { return Ok(()) };
        let pushed = match at {
            Some(at) => metrics.push_at_millis(&name, value, at),
            None => metrics.push(&name, value),
        };
        pushed.map_err(|error| match error {
            PushError::Name | PushError::Time => unusable(error.to_string()),
            _ => Error::from_reason(error.to_string()),
        })
    }

    /// The number of refused samples.
    #[napi(catch_unwind, getter)]
    pub fn refused(&self) -> f64 {
        number(self.metrics.as_ref().map_or(0, Metrics::refused))
    }

    /// Puts a text or bytes at a path of the folder.
    #[napi(catch_unwind)]
    pub fn put(&self, path: String, content: Either<String, &[u8]>, mime_type: Option<String>) {
        let Some(memory) = &self.memory else { return };
        match content {
            Either::A(text) => memory.put_text(&path, text, mime_type.as_deref()),
            Either::B(bytes) => memory.put_bytes(&path, bytes, mime_type.as_deref()),
        }
    }

    /// Removes the entry at a path; `false` if there is none.
    #[napi(catch_unwind)]
    pub fn remove(&self, path: String) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.remove(&path))
    }

    /// The number of entries.
    #[napi(catch_unwind, getter)]
    pub fn size(&self) -> f64 {
        number(self.memory.as_ref().map_or(0, Memory::len) as u64)
    }

    /// A cache of results, with its options.
    #[napi(catch_unwind, factory)]
    pub fn results(env: Env, options: PlainValue) -> Result<Self> {
        let results: Results = one(options.into()).map_err(|error| refused_option(&env, &error))?;
        Ok(Self { results: Some(results.clone()), ..Self::new(Arc::new(results)) })
    }

    /// Puts a text or bytes under an id.
    #[napi(catch_unwind)]
    pub fn put_result(&self, id: String, content: Either<String, &[u8]>, options: PlainValue) -> Result<()> {
        let content = match content {
            Either::A(text) => Content::from(text),
            Either::B(bytes) => Content::from(bytes),
        };
        self.cache()?.put(&id, content, read(options)?).map_err(failed)
    }

    /// The contents under an id that everybody sees, or that a principal sees.
    #[napi(catch_unwind)]
    pub fn get_result(
        &self,
        id: String,
        principal: Option<String>,
    ) -> Result<Option<Either<String, Uint8Array>>> {
        let found = self.cache()?.get(&id, principal.as_deref()).map_err(failed)?;
        Ok(found.map(|entry| match entry.content {
            Content::Text(text) => Either::A(text.to_string()),
            Content::Blob(bytes) => Either::B(bytes.to_vec().into()),
        }))
    }

    /// Removes the result under an id; `false` if there is none.
    #[napi(catch_unwind)]
    pub fn remove_result(&self, id: String, principal: Option<String>) -> Result<bool> {
        self.cache()?.remove(&id, principal.as_deref()).map_err(failed)
    }

    /// The number of results.
    #[napi(catch_unwind)]
    pub fn count_results(&self) -> Result<f64> {
        Ok(number(self.cache()?.len().map_err(failed)? as u64))
    }

    fn cache(&self) -> Result<&Results> {
        self.results.as_ref().ok_or_else(|| unusable("it is no cache of results".into()))
    }
}

/// The error for a result that cannot be stored or returned.
fn failed(error: ResultsError) -> Error {
    match error {
        ResultsError::File(what) => Error::from_reason(what),
        error => unusable(error.to_string()),
    }
}
