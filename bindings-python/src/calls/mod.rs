//! Calls of the functions of a program: their arguments, threads, contexts and results.
//!
//! Law: nothing here knows a pipe, a socket or an endpoint; a client is what [`client::Client`] says.

pub(crate) mod client;
pub(crate) mod consumer;
pub(crate) mod context;
pub(crate) mod contextvars;
pub(crate) mod embed;
pub(crate) mod function;
pub(crate) mod jobs;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod redact;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod server_state;
pub(crate) mod tracker;
pub(crate) mod waker;
