//! The method behind the command `notify`: another program says that a resource has changed.
//!
//! Law: the answer does not depend on whether the resource exists, or who may see it.

use crate::args::Serve;
use crate::notify::METHOD;
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_runtime::server::{Builder, CallRequest, Context, Method, ResourceServer};
use mcp_resources_runtime::transport::EngineClock;
use mcp_resources_serve::ServeDocument;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock, Weak};

/// The scope of a token that may say so.
const SCOPE: &str = "notify";
/// Headers that a reverse proxy adds.
const PROXY_HEADERS: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// Passes a change that another program reports to the server, if the caller may report it.
#[derive(Clone)]
pub(super) struct Notify {
    needs_scope: bool,
    server: Arc<OnceLock<NotifiedServer>>,
}

struct NotifiedServer {
    /// Weak, because the engine has the handler.
    engine: Weak<Engine>,
    clock: Arc<EngineClock>,
}

impl Notify {
    /// `None` if no caller may report a change: over stdio, and with `--public`, where callers are not authenticated.
    pub(super) fn from_document(document: &ServeDocument, args: &Serve) -> Option<Self> {
        let needs_scope = document.has_auth();
        let is_offered = args.http.is_some() && (needs_scope || !args.public);
        is_offered.then(|| Self { needs_scope, server: Arc::default() })
    }

    /// Adds the method to a server that is being built.
    pub(super) fn offer(&self, builder: Builder) -> Builder {
        let notify = self.clone();
        builder.method(Method::new(METHOD), move |request: CallRequest| {
            let answer = notify.answer(&request);
            async move { answer }
        })
    }

    /// Sets the server, once it is built.
    pub(super) fn reaches(&self, server: &ResourceServer) {
        let parts = server.parts();
        let engine = Arc::downgrade(&parts.engine);
        // Only the first server is used.
        let _ = self.server.set(NotifiedServer { engine, clock: parts.clock });
    }

    fn may(&self, context: &Context) -> bool {
        if self.needs_scope {
            return context.scopes().iter().any(|scope| scope == SCOPE);
        }
        // What a proxy passes on comes from another machine.
        let has = |name: &str| context.headers().is_some_and(|headers| headers.get(name).is_some());
        !PROXY_HEADERS.into_iter().any(has)
    }

    fn answer(&self, request: &CallRequest) -> Result<Value, ReadError> {
        if !self.may(&request.context) {
            return Err(ReadError::AccessDenied);
        }
        let params: Value = request.params()?;
        let wrong = || ReadError::InvalidParameter {
            parameter: "uri".into(),
            expected: "the URI of a resource, or listChanged: true".into(),
        };
        let Some(server) = self.server.get() else { return Ok(json!({})) };
        let Some(engine) = server.engine.upgrade() else { return Ok(json!({})) };
        match (params.get("uri"), params.get("listChanged")) {
            (Some(Value::String(uri)), None) => {
                // An error would say whether a template has the URI.
                if mcp_resources_template::uri::normalize(uri, engine.limits().uri).is_err() {
                    return Err(wrong());
                }
                let _ = engine.updated(uri, server.clock.now());
            }
            (None, Some(Value::Bool(true))) => engine.list_changed(ListKinds::RESOURCES, server.clock.now()),
            _ => return Err(wrong()),
        }
        Ok(json!({}))
    }
}
