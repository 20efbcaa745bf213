//! The Python binding: a list of exports. Every protocol word, code and rule is in the core.

mod audit;
mod auth;
mod calls;
mod channel;
mod client;
mod command;
mod context;
mod contextvars;
mod convert;
mod embed;
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
mod waker;
mod web;

/// The compiled part of the package `mcp_resources`.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::{
        audit::Records,
        audit::Watches,
        auth::{TokenCheck, TokenVerifier},
        channel::Channel,
        client::{Caller, Stream},
        command::main,
        context::Context,
        convert::Gather,
        error::{closest, suggested_template, unexpected_name},
        function::Function,
        guard::Guard,
        http::{Admitted, Endpoint, Exchange, Identified, Receiving},
        pending::Pending,
        providers::{Memory, Metrics, Provider, ResultCache, declared, embedded, memory, metrics},
        queue::Queue,
        resource::{Icon, Resource},
        serve::{HttpServer, Verification},
        server::{Edit, Server},
        template::{TemplateSet, UriTemplate, Variable},
        testing::TestClient,
        waker::Wakeup,
    };
}
