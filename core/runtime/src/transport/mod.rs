//! Transports: pipes, sockets and clocks around the engine. Nothing here knows the protocol.

mod audit;
#[cfg(feature = "tracing")]
mod audit_events;
mod audit_file;
mod clock;
mod consumer_signal;
pub(crate) mod document;
mod embedded;
mod event_handler;
#[cfg(feature = "http")]
pub mod http;
mod peer;
mod pipe;
mod policy;
#[cfg(all(feature = "http", feature = "pipe", unix))]
#[doc(hidden)]
pub mod pump;
mod regular;
#[cfg(all(feature = "pipe", unix))]
mod stdio;
#[cfg(all(feature = "pipe", unix))]
mod wait;
mod work;
#[cfg(feature = "yaml")]
mod yaml;

pub use audit::{AuditLog, AuditSink};
#[cfg(feature = "tracing")]
pub use audit_events::AuditEvents;
pub use audit_file::{AuditFile, AuditRotation};
pub use clock::EngineClock;
pub use embedded::EmbeddedClient;
pub use event_handler::EventHandler;
pub use peer::{Peer, PeerData};
pub use pipe::{Flushed, Pipe, PipeSender};
pub use policy::{load_policy, read_policy};
// Hidden, for the client and the command: their configuration files.
#[doc(hidden)]
pub use document::{json as document_json, text as document_text, value as document_value};
// Hidden, for providers, whose options name files.
#[doc(hidden)]
pub use regular::open_to_read;
// Hidden, for the fuzz target.
#[cfg(feature = "yaml")]
#[doc(hidden)]
pub use document::yaml as document_yaml;
// Hidden, for a thread of the Python binding that takes records.
#[doc(hidden)]
pub use consumer_signal::ConsumerSignal;
#[cfg(all(feature = "pipe", unix))]
pub use stdio::{Received, Stdio};
#[cfg(all(feature = "pipe", unix))]
pub use wait::{DescriptorWaiter, PollInterest, ReadyDescriptors, Wake};
pub use work::{RequestParams, Who, Work, WorkFunctions, WorkRequest};
// Hidden, for the providers, which serve YAML.
#[cfg(feature = "yaml")]
#[doc(hidden)]
pub use yaml::{YamlFault, YamlLimits, YamlSchema, YamlValue, read_yaml};
