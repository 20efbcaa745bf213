//! Providers of what a process and its machine know: the time, configuration, the environment, metrics, and values in memory.
//!
//! ```text
//!   the system ──▶ clock, env, metrics
//!   files      ──▶ config                    masked where a key or a value looks like a secret, as env is
//!   a program  ──▶ memory, metrics, config
//! ```
//!
//! Each is a module and a feature of the same name, `env` with the feature `config`. Two are small enough to be read as examples
//! of [`Provider`](mcp_resources_runtime::provider::Provider): [`clock`], which answers from memory and reports the passing
//! time, and [`memory`], whose entries come and go.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "clock")]
pub mod clock;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "config")]
pub mod env;
#[cfg(feature = "config")]
mod masks;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "metrics")]
pub mod metrics;

#[cfg(feature = "clock")]
pub use clock::Clock;
#[cfg(feature = "config")]
pub use config::Config;
#[cfg(feature = "config")]
pub use env::Env;
#[cfg(feature = "memory")]
pub use memory::Memory;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
