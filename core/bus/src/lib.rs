//! The bus between the processes of an `mcp-resources` server: changes that one process announces reach the listeners of all.
//!
//! ```text
//!   process A ── notify_updated ──▶ its listeners
//!       └──▶ mcp-resources-runtime ──▶ this crate ──▶ a stream of Redis ──▶ this crate ──▶ process B ──▶ its listeners
//!                                                     JetStream of NATS
//!                                                     a Unix socket
//! ```
//!
//! Most programs name a URL: `bus` of Python, Node and `serve`, or the feature `bus-unix`, `bus-redis` or `bus-nats` of the
//! crate `mcp-resources`. [`from_url`] makes the bus of a URL; its messages are sealed with the server's keys before they get
//! here.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg_attr(
    not(any(test, feature = "redis", feature = "nats")),
    expect(dead_code, reason = "without a broker, a URL of one is parsed and refused")
)]
mod address;
#[cfg(unix)]
mod local;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_rates;

pub use address::BusUrlError;
#[cfg(unix)]
pub use local::LocalBus;
#[cfg(feature = "nats")]
pub use nats::NatsBus;
#[cfg(feature = "redis")]
pub use redis::RedisBus;

use address::BusAddress;
use mcp_resources_runtime::bus::Bus;
use std::sync::Arc;

/// Maximum number of messages that a log keeps: a process that was away for longer announces everything as changed.
pub const KEPT: usize = 10_000;

/// The bus at a URL: `redis://HOST:PORT/DB`, `rediss://…` with TLS, `nats://HOST:PORT`, `tls://…` for NATS with TLS, or
/// `unix:PATH` for the processes of one machine. Credentials are `USER:PASSWORD@` before the host; `${NAME}` there is a
/// variable of the environment. Connects to nothing yet.
///
/// # Errors
/// [`BusUrlError`] for a URL of another form, a variable that is not set, or a bus that this build does not have. Its message
/// has no credentials.
pub fn from_url(url: &str) -> Result<Arc<dyn Bus>, BusUrlError> {
    if let Some(path) = url.strip_prefix("unix:") {
        return local(path);
    }
    let address = BusAddress::parse(url, |name| std::env::var(name).ok())?;
    match &*address.scheme {
        "redis" | "rediss" | "valkey" | "valkeys" => redis_at(&address),
        "nats" | "tls" => nats_at(&address),
        _ => Err(BusUrlError::form(&address.scheme)),
    }
}

#[cfg(unix)]
fn local(path: &str) -> Result<Arc<dyn Bus>, BusUrlError> {
    match path.trim_start_matches("//") {
        "" => Err(BusUrlError::new("bus is \"unix:\", expected the path of a socket behind it")),
        path => Ok(Arc::new(LocalBus::new(path))),
    }
}

#[cfg(not(unix))]
fn local(_path: &str) -> Result<Arc<dyn Bus>, BusUrlError> {
    Err(BusUrlError::new("a bus at unix: needs Linux or macOS"))
}

#[cfg(feature = "redis")]
fn redis_at(address: &BusAddress) -> Result<Arc<dyn Bus>, BusUrlError> {
    Ok(Arc::new(RedisBus::new(address)?))
}

#[cfg(not(feature = "redis"))]
fn redis_at(_address: &BusAddress) -> Result<Arc<dyn Bus>, BusUrlError> {
    Err(BusUrlError::new("this build has no Redis: it needs the feature bus-redis"))
}

#[cfg(feature = "nats")]
fn nats_at(address: &BusAddress) -> Result<Arc<dyn Bus>, BusUrlError> {
    Ok(Arc::new(NatsBus::new(address)?))
}

#[cfg(not(feature = "nats"))]
fn nats_at(_address: &BusAddress) -> Result<Arc<dyn Bus>, BusUrlError> {
    Err(BusUrlError::new("this build has no NATS: it needs the feature bus-nats"))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The reason of a library, as a short phrase of one line.
#[cfg(any(feature = "redis", feature = "nats"))]
fn phrase(error: &dyn std::fmt::Display) -> mcp_resources_runtime::bus::BusError {
    const SHOWN: usize = 160;
    let text = error.to_string();
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
    mcp_resources_runtime::bus::BusError::new(format!("it says {:?}", line.trim()))
}
