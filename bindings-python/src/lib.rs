//! The Python binding: a list of exports. Every protocol word, code and rule is the core's.

mod audit;
mod auth;
mod bell;
mod calls;
mod channel;
mod client;
mod command;
mod context;
mod convert;
mod error;
mod function;
mod guard;
mod http;
mod options;
mod peer;
mod pending;
mod providers;
mod queue;
mod redact;
mod request;
mod resource;
mod rules;
mod serve;
mod server;
mod template;
mod testing;
mod web;

/// The compiled part of the package `mcp_resources`.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::audit::Records;
    #[pymodule_export]
    use super::auth::{TokenCheck, TokenVerifier};
    #[pymodule_export]
    use super::bell::Ear;
    #[pymodule_export]
    use super::channel::Channel;
    #[pymodule_export]
    use super::client::{Caller, Stream};
    #[pymodule_export]
    use super::command::main;
    #[pymodule_export]
    use super::context::Context;
    #[pymodule_export]
    use super::convert::Gather;
    #[pymodule_export]
    use super::error::{closest, suggested_template, unexpected_name};
    #[pymodule_export]
    use super::function::Function;
    #[pymodule_export]
    use super::guard::Guard;
    #[pymodule_export]
    use super::http::{Admitted, Endpoint, Exchange, Identified, Receiving};
    #[pymodule_export]
    use super::pending::Pending;
    #[pymodule_export]
    use super::providers::{Memory, Metrics, Provider, ResultCache, declared, memory, metrics};
    #[pymodule_export]
    use super::queue::Queue;
    #[pymodule_export]
    use super::resource::{Icon, Resource};
    #[pymodule_export]
    use super::serve::{HttpServer, Verification};
    #[pymodule_export]
    use super::server::{Edit, Server};
    #[pymodule_export]
    use super::template::{Match, NoMatch, Rejected, TemplateSet, UriTemplate, Variable};
    #[pymodule_export]
    use super::testing::TestClient;
}
