//! Serving on an event loop of JavaScript: the server, pipes, endpoints, and the native HTTP server.

pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod bus;
pub(crate) mod channel;
pub(crate) mod config;
pub(crate) mod embedded;
pub(crate) mod embedded_transport;
pub(crate) mod http;
pub(crate) mod link;
pub(crate) mod native;
pub(crate) mod providers;
pub(crate) mod server;
pub(crate) mod web;
