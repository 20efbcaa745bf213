//! A span for each call of a handler, named as OpenTelemetry names requests of the protocol (feature `tracing`). Empty
//! without the feature.
//!
//! Law: a span has the same fields as the audit log, and never contents. It does not contain the session id, which
//! readers could use to take over the session.

use mcp_resources_engine::connection::Event;
#[cfg(feature = "tracing")]
use mcp_resources_engine::connection::{Caller, ListCaller};
use mcp_resources_engine::error::ReadError;
#[cfg(feature = "tracing")]
use mcp_resources_engine::trace::TraceContext;
#[cfg(feature = "tracing")]
use mcp_resources_engine::version::{ProtocolMethod, Revision};
#[cfg(feature = "tracing")]
use tracing::field::Empty;

/// An empty span: the feature `tracing` is off.
#[cfg(not(feature = "tracing"))]
#[derive(Debug)]
pub(super) struct Span;

#[cfg(not(feature = "tracing"))]
impl Span {
    pub(super) fn from_event(_event: &Event<'_>) -> Self {
        Self
    }

    pub(super) fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        work()
    }

    pub(super) fn failed(&self, _error: &ReadError) {}
}

/// The sender of a request, as a span shows it.
#[cfg(feature = "tracing")]
struct SpanCaller<'e> {
    principal: &'e str,
    revision: Revision,
    trace: TraceContext<'e>,
}

#[cfg(feature = "tracing")]
impl<'e> From<&'e Caller<'_>> for SpanCaller<'e> {
    fn from(caller: &'e Caller<'_>) -> Self {
        let trace = caller.meta.map(TraceContext::of_meta).unwrap_or_default();
        Self { principal: caller.principal.id(), revision: caller.revision, trace }
    }
}

#[cfg(feature = "tracing")]
impl<'e> From<&'e ListCaller<'_>> for SpanCaller<'e> {
    fn from(caller: &'e ListCaller<'_>) -> Self {
        match caller {
            ListCaller::Message(caller) => caller.into(),
            ListCaller::Kept(caller) => {
                // The text was part of a message, so its nesting is limited.
                let meta = caller.meta.as_deref();
                let trace = meta.map(|meta| TraceContext::of_text(meta, usize::MAX)).unwrap_or_default();
                Self { principal: caller.principal.id(), revision: caller.revision, trace }
            }
        }
    }
}

/// The span of a handler call.
#[cfg(feature = "tracing")]
#[derive(Debug)]
pub(super) struct Span {
    span: tracing::Span,
    revision: Option<Revision>,
}

#[cfg(feature = "tracing")]
impl Span {
    /// Makes a span with the request's fields and its trace context.
    pub(super) fn from_event(event: &Event<'_>) -> Self {
        let (method, uri, caller): (&str, Option<&str>, SpanCaller<'_>) = match event {
            Event::Read(request) => {
                (ProtocolMethod::Read.as_str(), Some(&request.uri), (&request.caller).into())
            }
            Event::Complete(request) => (ProtocolMethod::Complete.as_str(), None, (&request.caller).into()),
            Event::List(request) => (ProtocolMethod::List.as_str(), None, (&request.caller).into()),
            Event::Tool(request) => (ProtocolMethod::CallTool.as_str(), None, (&request.caller).into()),
            Event::Prompt(request) => (ProtocolMethod::GetPrompt.as_str(), None, (&request.caller).into()),
            Event::Call(request) => (&request.method, None, (&request.caller).into()),
            _ => return Self { span: tracing::Span::none(), revision: None },
        };
        let span = tracing::info_span!(
            target: "mcp_resources",
            "request",
            otel.name = method,
            otel.kind = "server",
            otel.status_code = Empty,
            mcp.method.name = method,
            mcp.resource.uri = uri,
            mcp.protocol.version = caller.revision.as_str(),
            enduser.id = caller.principal,
            "error.type" = Empty,
            rpc.response.status_code = Empty,
            traceparent = Empty,
            tracestate = Empty,
            trace_id = Empty,
        );
        let trace = caller.trace;
        for name in ["traceparent", "tracestate"] {
            if let Some(value) = trace.get(name) {
                span.record(name, value);
            }
        }
        if let Some(id) = trace.trace_id() {
            span.record("trace_id", id);
        }
        Self { span, revision: Some(caller.revision) }
    }

    /// Runs `work` inside the span.
    pub(super) fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        self.span.in_scope(work)
    }

    /// Records the handler's failure.
    pub(super) fn failed(&self, error: &ReadError) {
        let code = self.revision.map(|revision| revision.code(error));
        self.span.record("otel.status_code", "ERROR");
        if let Some(code) = code {
            self.span.record("error.type", code.to_string().as_str());
            self.span.record("rpc.response.status_code", code);
        }
    }
}

#[cfg(feature = "tracing")]
#[cfg(test)]
mod tests {
    use crate::server::{ReadRequest, ResourceServer};
    use crate::testing::Client;
    use mcp_resources_engine::error::ReadError;
    use mcp_resources_engine::resource::Template;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    type Fields = BTreeMap<String, String>;

    /// Stores the fields of every span of the process: other tests make spans too.
    #[derive(Clone, Default)]
    struct Spans(Arc<Mutex<Vec<Fields>>>);

    struct Fill<'a>(&'a mut Fields);

    impl Visit for Fill<'_> {
        fn record_str(&mut self, field: &Field, value: &str) {
            self.0.insert(field.name().into(), value.into());
        }

        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.insert(field.name().into(), format!("{value:?}"));
        }
    }

    impl Spans {
        /// The span that belongs to this trace.
        fn of_trace(&self, trace_id: &str) -> Option<Fields> {
            let belongs = |fields: &&Fields| fields.get("trace_id").is_some_and(|id| id == trace_id);
            self.0.lock().unwrap().iter().find(belongs).cloned()
        }

        fn change(&self, span: &Id, change: impl FnOnce(&mut Fields)) {
            let at = usize::try_from(span.into_u64() - 1).unwrap();
            change(&mut self.0.lock().unwrap()[at]);
        }
    }

    impl Subscriber for Spans {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "mcp_resources" && metadata.is_span()
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut fields = Fields::new();
            span.record(&mut Fill(&mut fields));
            let mut spans = self.0.lock().unwrap();
            spans.push(fields);
            Id::from_u64(spans.len() as u64)
        }

        fn record(&self, span: &Id, values: &Record<'_>) {
            self.change(span, |fields| values.record(&mut Fill(fields)));
        }

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
        fn event(&self, _event: &Event<'_>) {}
        fn enter(&self, span: &Id) {
            self.change(span, |fields| drop(fields.insert("entered".into(), "yes".into())));
        }
        fn exit(&self, _span: &Id) {}
    }

    async fn item(request: ReadRequest) -> Result<String, ReadError> {
        assert_eq!(request.context.trace().parent_id(), Some("00f067aa0ba902b7"));
        Err(ReadError::NotFound)
    }

    // R-022, S-19.
    #[test]
    fn a_span_says_what_is_asked_and_by_which_trace() {
        let spans = Spans::default();
        // A global subscriber, because readers have their own threads.
        tracing::subscriber::set_global_default(spans.clone()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = ResourceServer::builder("test", "1").template(Template::new("a://{x}"), item);
            let mut client = Client::modern(&server.build().unwrap()).unwrap();
            let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let params = json!({"uri": "a://b", "_meta": {"traceparent": traceparent, "tracestate": "bad"}});
            client.request("resources/read", params).await.unwrap_err();
        });
        let kept = spans.of_trace("4bf92f3577b34da6a3ce929d0e0e4736").unwrap();
        for (name, value) in [
            ("otel.name", "resources/read"),
            ("otel.kind", "server"),
            ("otel.status_code", "ERROR"),
            ("mcp.method.name", "resources/read"),
            ("mcp.resource.uri", "a://b"),
            ("mcp.protocol.version", "2026-07-28"),
            ("error.type", "-32602"),
            ("rpc.response.status_code", "-32602"),
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
            ("entered", "yes"),
        ] {
            assert_eq!(kept.get(name).map(String::as_str), Some(value), "{name} in {kept:?}");
        }
        assert_eq!(kept.get("tracestate"), None);
    }
}
