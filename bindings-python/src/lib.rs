//! The Python binding: a list of exports. Every protocol word, code and rule is in the core.

mod calls;
mod client;
mod command;
mod serve;
mod testing;
mod values;

/// The compiled part of the package `mcp_resources`.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::{
        calls::{context::Context, function::Function, pending::Pending, queue::Queue, waker::Wakeup},
        client::{Caller, Stream},
        command::main,
        serve::{
            audit::{Records, Watches},
            auth::{TokenCheck, TokenVerifier},
            bus::SharedEvents,
            channel::Channel,
            config::Config,
            embedded::{EmbeddedLoop, EmbeddedSession, Embedding, Sender},
            http::{Admitted, Endpoint, Exchange, Identified, Receiving},
            inbox::Verification,
            native::HttpServer,
            providers::{Memory, Metrics, Provider, ResultCache, declared, embedded, memory, metrics},
            server::{Edit, Server},
        },
        testing::TestClient,
        values::{
            contents::Gather,
            error::{closest, suggested_template, unexpected_name},
            guard::Guard,
            options::Icon,
            resource::Resource,
            template::{TemplateSet, UriTemplate, Variable},
        },
    };
}
