//! The record of a request, from its arrival to its end; nothing if records are switched off.
//!
//! Law: each request is recorded once, when it first ends: by its answer, a cancellation, or its time-out.

use super::dispatch::{DispatchStep, Raw};
use super::inflight::Ticket;
use super::terms::Claim;
use super::{Connection, RequestOutcome, RequestToken};
use crate::guard::{self, RequestRecord, Verdict};
use crate::jsonrpc::{Json, RawParams};
use crate::now::Now;
use crate::principal::Principal;
use crate::trace::TraceContext;
use crate::version::{ProtocolMethod, Revision};
use mcp_resources_template::uri;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

/// A request that will be recorded when it ends.
#[derive(Debug)]
pub(super) struct PendingRecord {
    began: Now,
    is_modern: bool,
    method: Option<ProtocolMethod>,
    /// The audit log's description of the request.
    subject: Option<Box<RecordSubject>>,
}

#[derive(Debug)]
struct RecordSubject {
    principal: Arc<Principal>,
    address: Option<IpAddr>,
    method: Box<str>,
    uri: Option<Box<str>>,
    /// The name of a tool or prompt.
    name: Option<Box<str>>,
    trace: Option<Box<str>>,
}

impl PendingRecord {
    /// Adds the URI that a tool reads.
    pub(super) fn name_uri(&mut self, text: &str, max: usize) {
        if let Some(subject) = &mut self.subject {
            let normal = uri::normalize(text, max).unwrap_or(Cow::Borrowed(text));
            subject.uri = Some(guard::recorded_uri(&normal));
        }
    }
}

impl Connection {
    /// Serves a request, and records it if it has ended.
    pub(super) fn observed<'m>(
        &mut self,
        raw: &Raw<'m>,
        step: DispatchStep<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let before = out.len();
        self.opening = Some(self.opening_of(raw, step));
        let outcome = self.request(raw, step, out);
        if let Some(opening) = self.opening.take() {
            // A listen continues; its record says that it began.
            self.record(&opening, outcome.verdict, out.len() - before, step.now);
        }
        outcome
    }

    /// Records the end of the request with this token, unless it has already ended.
    pub(super) fn record_token(&mut self, token: RequestToken, verdict: Verdict, bytes: usize, now: Now) {
        if self.engine.observes()
            && let Some(ticket) = self.inflight.wanted(token).cloned()
        {
            self.record_ended(&ticket, verdict, bytes, now);
        }
    }

    /// Records a pending request that has ended, unless it was recorded before.
    pub(super) fn record_ended(&self, ticket: &Ticket, verdict: Verdict, bytes: usize, now: Now) {
        if let Some(opening) = &ticket.opening {
            self.record(opening, verdict, bytes, now);
        }
    }

    fn record(&self, opening: &PendingRecord, verdict: Verdict, bytes: usize, now: Now) {
        let PendingRecord { began, is_modern, method, subject } = opening;
        let duration = now.tick.saturating_sub(began.tick);
        let bytes = bytes as u64;
        self.engine.count(*method, *is_modern, verdict, bytes, duration);
        let Some(subject) = subject else { return };
        self.engine.record(RequestRecord {
            time: began.unix,
            principal: subject.principal.clone(),
            address: subject.address,
            connection: self.id.number(),
            revision: self.revision_of(*is_modern).filter(|_| verdict != Verdict::UnsupportedVersion),
            method: subject.method.clone(),
            uri: subject.uri.clone(),
            name: subject.name.clone(),
            outcome: verdict,
            bytes,
            duration,
            trace: subject.trace.clone(),
        });
    }

    fn revision_of(&self, is_modern: bool) -> Option<Revision> {
        if is_modern {
            Some(Revision::V2026_07_28)
        } else {
            self.session.as_ref().map(|session| session.revision)
        }
    }

    fn opening_of(&self, raw: &Raw<'_>, step: DispatchStep<'_>) -> PendingRecord {
        let subject = self.engine.audits().then(|| {
            Box::new(RecordSubject {
                principal: step.arrival.principal.clone(),
                address: self.address,
                method: guard::recorded_method(&raw.method),
                uri: self.uri_of(&raw.params),
                name: name_of(&raw.method, &raw.params),
                trace: trace_of(&raw.params),
            })
        });
        let is_modern = Claim::from_params(&raw.params).is_modern();
        let method = ProtocolMethod::parse(&raw.method);
        PendingRecord { began: step.now, is_modern, method, subject }
    }

    /// The URI of the request, or the reference of a completion.
    fn uri_of(&self, params: &RawParams<'_>) -> Option<Box<str>> {
        let named = params.get("uri").and_then(Json::as_str);
        let text =
            named.or_else(|| params.get("ref").and_then(Json::object)?.get("uri").and_then(Json::as_str))?;
        let normal = uri::normalize(&text, self.engine.limits().uri).unwrap_or(Cow::Borrowed(&text));
        Some(guard::recorded_uri(&normal))
    }
}

/// The tool or prompt of the request, or the prompt of a completion. Never its arguments.
fn name_of(method: &str, params: &RawParams<'_>) -> Option<Box<str>> {
    let name = match ProtocolMethod::parse(method)? {
        ProtocolMethod::CallTool | ProtocolMethod::GetPrompt => params.get("name")?,
        ProtocolMethod::Complete => params.get("ref")?.object()?.get("name")?,
        _ => return None,
    };
    Some(guard::recorded_method(&name.as_str()?))
}

fn trace_of(params: &RawParams<'_>) -> Option<Box<str>> {
    let meta = params.get("_meta")?;
    TraceContext::of_meta(meta).trace_id().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::super::tests::TestRuntime;
    use super::*;
    use crate::catalog::{Edit, ItemSource};
    use crate::connection::{Answer, ConnectionKind, Contents};
    use crate::engine::EngineOptions;
    use crate::error::ReadError;
    use crate::guard::Policy;
    use crate::resource::{Resource, Template};
    use serde_json::{Value, json};

    fn runtime() -> TestRuntime {
        let mut runtime =
            TestRuntime::with(EngineOptions { audit: true, metrics: true, ..EngineOptions::default() });
        runtime.now = Now { tick: 10, unix: 1_000 };
        runtime
    }

    fn taken(runtime: &TestRuntime) -> Vec<Value> {
        let mut entries = Vec::new();
        let mut lines = Vec::new();
        runtime.connection.engine().take_audit_records(&mut entries);
        entries.iter().for_each(|entry| entry.write_line(&mut lines));
        lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    fn outcomes(runtime: &TestRuntime) -> Vec<String> {
        taken(runtime).iter().map(|entry| entry["outcome"].as_str().unwrap().to_owned()).collect()
    }

    // S-19: answers of the engine and of a handler are recorded alike.
    #[test]
    fn a_constant_and_a_handler() {
        let mut runtime = runtime();
        runtime.read(1, "TEST://constant");
        let length = runtime.out.len();
        let token = runtime.read(2, "test://item/7")[0];
        assert_eq!(
            taken(&runtime),
            [json!({
                "time": 1_000, "timestamp": "1970-01-01T00:00:01.000Z", "principal": "", "connection": 0, "era": "modern", "revision": "2026-07-28",
                "method": "resources/read", "uri": "test://constant", "outcome": "ok", "bytes": length, "duration": 0
            })]
        );
        runtime.now.tick += 7;
        runtime.out.clear();
        runtime.connection.respond(
            token,
            Answer::Contents(Contents::text("x").into()),
            runtime.now,
            &mut runtime.out,
        );
        let record = &taken(&runtime)[0];
        assert_eq!(record["uri"], "test://item/7");
        assert_eq!((&record["time"], &record["duration"]), (&json!(1_000), &json!(7)));
        assert_eq!(record["bytes"], runtime.out.len());
        assert_eq!(taken(&runtime), [] as [Value; 0]);
    }

    // S-19: one record for each request, however it ends, even if an answer follows.
    #[test]
    fn one_record_however_it_ends() {
        let mut runtime = runtime();
        let tokens: Vec<_> = (1..=5).map(|id| runtime.read(id, "test://handled")[0]).collect();
        runtime.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        assert_eq!(outcomes(&runtime), ["cancelled"]);
        for token in &tokens[..2] {
            runtime.connection.respond(
                *token,
                Answer::Failed(ReadError::AccessDenied),
                runtime.now,
                &mut runtime.out,
            );
        }
        assert_eq!(outcomes(&runtime), ["hidden"]);
        runtime.connection.abandon(tokens[2], runtime.now, &mut runtime.out);
        assert_eq!(outcomes(&runtime), ["cancelled"]);
        let reply = runtime.connection.detach(tokens[3]).unwrap();
        runtime.now.tick += 30_000;
        runtime.connection.tick(runtime.now, &mut runtime.out);
        assert_eq!(outcomes(&runtime), ["timeout", "timeout"]);
        let late = reply.encode(Answer::Contents(Contents::text("x").into()), runtime.now);
        runtime.connection.finish(late, runtime.now, &mut runtime.out);
        runtime.connection.close(runtime.now);
        assert_eq!(outcomes(&runtime), [] as [&str; 0]);
        runtime.read(9, "test://handled");
        runtime.connection.close(runtime.now);
        assert_eq!(outcomes(&runtime), ["cancelled"]);
    }

    // R-069: a search that reached its limit is answered as not found and recorded as `exhausted`.
    #[test]
    fn a_search_without_an_end() {
        let mut runtime = runtime();
        let engine = runtime.connection.engine().clone();
        let template = |number| Template::new(format!("x://{{a}}-k{number}-{{b}}"));
        let handler = engine.new_handler();
        let edits = (0..4_000).map(|number| Edit::AddTemplate {
            template: Box::new(template(number)),
            handler,
            mount: None,
        });
        let completed = Edit::AddTemplate {
            template: Box::new(Template::new("y://{a}").completes("a")),
            handler,
            mount: None,
        };
        engine.publish(edits.chain([completed]).collect(), runtime.now).unwrap();
        let uri = format!("x:///{}", (0..4_000).map(|number| format!("-k{number}-")).collect::<String>());
        runtime.read(1, &uri);
        assert!(runtime.sent()[0]["error"]["message"].is_string());
        assert_eq!(outcomes(&runtime), ["exhausted"]);
        let text = engine.metrics_text().unwrap();
        assert!(text.contains("mcp_resources_errors_total{kind=\"exhausted\"} 1\n"), "{text}");
        let reference = json!({ "type": "ref/resource", "uri": uri });
        for (id, method, params) in [
            (2, "completion/complete", json!({ "ref": reference, "argument": { "name": "a", "value": "" } })),
            (3, "subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": [uri] } })),
            (
                4,
                "subscriptions/listen",
                json!({ "notifications": { "resourceSubscriptions": [uri, "test://constant"] } }),
            ),
        ] {
            runtime.ask(id, method, params);
            assert_eq!(outcomes(&runtime), ["exhausted"], "{id} {method}");
        }
        runtime.connection = engine.connect(ConnectionKind::Stdio);
        runtime.send(r#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
        runtime.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        runtime.send(
            &json!({ "jsonrpc": "2.0", "id": 6, "method": "resources/subscribe", "params": { "uri": uri } })
                .to_string(),
        );
        assert_eq!(outcomes(&runtime), ["ok", "exhausted"]);
    }

    // S-18, DEC-20: refused requests are recorded too, with the reason.
    #[test]
    fn refused_requests_are_recorded() {
        let mut runtime = runtime();
        for (id, uri) in [(1, "test://none"), (2, "no uri")] {
            runtime.read(id, uri);
        }
        for message in [
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"resources/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2199-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/x\r\ny","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"resources/list","params":{"cursor":7,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        ] {
            runtime.send(message);
        }
        let records = taken(&runtime);
        let words: Vec<_> = records.iter().map(|record| record["outcome"].as_str().unwrap()).collect();
        let expected = [
            "not_found",
            "invalid_uri",
            "invalid_params",
            "unsupported_version",
            "method_not_found",
            "invalid_params",
        ];
        assert_eq!(words, expected);
        assert_eq!(
            (&records[1]["uri"], &records[2]["revision"], &records[3]["era"]),
            (&json!("no uri"), &Value::Null, &Value::Null)
        );
        assert_eq!(records[4]["method"], "tools/x\r\ny");
    }

    // S-18, S-19: refusals of the guard are recorded by the answer that the client got.
    #[test]
    fn refusals_of_the_guard_are_recorded() {
        for (explicit_denials, word) in [(false, "hidden"), (true, "denied")] {
            let guard = Policy::from_json(r#"{"deny": "test://constant"}"#).unwrap();
            let options = EngineOptions { audit: true, guard, explicit_denials, ..EngineOptions::default() };
            let mut runtime = TestRuntime::with(options);
            runtime.read(1, "test://constant");
            assert_eq!(outcomes(&runtime), [word]);
        }
    }

    // S-19: a read that waited for an identical one has its own record.
    #[test]
    fn a_read_that_shares_an_answer() {
        let mut runtime =
            TestRuntime::with(EngineOptions { audit: true, cache: true, ..EngineOptions::default() });
        let engine = runtime.connection.engine().clone();
        let mut resource = Resource::new("test://kept");
        resource.details.cache.ttl_ms = 1_000;
        let source = ItemSource::Handler(engine.new_handler());
        engine.publish(vec![Edit::AddResource { resource, source }], runtime.now).unwrap();
        let tokens = [runtime.read(1, "test://kept"), runtime.read(2, "test://kept")].concat();
        assert_eq!(tokens.len(), 1);
        let answer = Answer::Contents(Contents::text("x").into());
        runtime.connection.respond(tokens[0], answer, runtime.now, &mut runtime.out);
        runtime.connection.deliver(1 << 20, &mut runtime.out);
        runtime.read(3, "test://kept");
        let records = taken(&runtime);
        assert_eq!((records.len(), runtime.sent().len()), (3, 3));
        assert!(records.iter().all(|record| record["bytes"] == records[0]["bytes"]), "{records:?}");
    }

    // S-19: a full queue drops the newest records and reports their number.
    #[test]
    fn a_full_queue_counts_what_it_drops() {
        let mut options = EngineOptions { audit: true, ..EngineOptions::default() };
        options.limits.audit_queue = 2;
        let mut runtime = TestRuntime::with(options);
        runtime.now.unix = 5;
        for id in 1..=5 {
            runtime.read(id, "test://constant");
        }
        let entries = taken(&runtime);
        assert_eq!(entries.len(), 3);
        let dropped = json!({"time": 5, "timestamp": "1970-01-01T00:00:00.005Z", "dropped": 3});
        assert_eq!(entries[2], dropped);
        runtime.read(6, "test://constant");
        assert_eq!(outcomes(&runtime), ["ok"]);
    }

    // S-19, S-62: a call is recorded once, with the name of its tool, never with its arguments; that of the tool which
    // reads resources also with the URI.
    #[test]
    fn calls_are_recorded_by_name() {
        let mut runtime = TestRuntime::with(EngineOptions {
            audit: true,
            expose_as_tools: true,
            ..EngineOptions::default()
        });
        for (id, name, arguments) in [
            (1, "read_resource", json!({ "uri": "TEST://constant" })),
            (2, "list_resources", json!({ "query": "a secret" })),
            (3, "read_resource", json!({ "uri": "test://none" })),
            (4, "none", json!({ "text": "a secret" })),
        ] {
            runtime.ask(id, "tools/call", json!({ "name": name, "arguments": arguments }));
        }
        let records = taken(&runtime);
        let members = |name: &str| records.iter().map(|record| record[name].clone()).collect::<Vec<_>>();
        assert_eq!(members("name"), ["read_resource", "list_resources", "read_resource", "none"]);
        assert_eq!(
            members("uri"),
            [json!("test://constant"), Value::Null, json!("test://none"), Value::Null]
        );
        assert_eq!(members("outcome"), ["ok", "ok", "not_found", "not_found"]);
        assert!(!records.iter().any(|record| record.to_string().contains("secret")), "{records:?}");
    }

    #[test]
    fn nothing_is_kept_unless_it_is_wanted() {
        let mut runtime = TestRuntime::with(EngineOptions::default());
        runtime.read(1, "test://constant");
        assert_eq!(taken(&runtime), [] as [Value; 0]);
        assert_eq!(runtime.connection.engine().metrics_text(), None);
        runtime.connection.engine().measure();
        runtime.read(2, "test://constant");
        let text = runtime.connection.engine().metrics_text().unwrap();
        assert!(
            text.contains("mcp_resources_requests_total{method=\"resources/read\",era=\"modern\"} 1\n"),
            "{text}"
        );
    }

    #[test]
    fn a_watcher_is_woken_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        struct CountingWaker(AtomicUsize);
        impl std::task::Wake for CountingWaker {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let bell = Arc::new(CountingWaker(AtomicUsize::new(0)));
        let mut runtime = runtime();
        runtime.connection.engine().watch_audit_records(&bell.clone().into());
        runtime.read(1, "test://constant");
        runtime.read(2, "test://constant");
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    }

    /// The metrics count the same requests as the records.
    #[test]
    fn metrics() {
        let mut runtime = runtime();
        let engine = runtime.connection.engine().clone();
        let other = engine.connect(ConnectionKind::Session);
        let token = runtime.read(1, "test://handled")[0];
        runtime.now.tick += 150;
        runtime.connection.respond(
            token,
            Answer::Failed(ReadError::RateLimited { retry_after: 1 }),
            runtime.now,
            &mut runtime.out,
        );
        runtime.read(2, "test://constant");
        let text = engine.metrics_text().unwrap();
        for line in [
            "mcp_resources_requests_total{method=\"resources/read\",era=\"modern\"} 2",
            "mcp_resources_errors_total{kind=\"rate_limited\"} 1",
            "mcp_resources_errors_total{kind=\"hidden\"} 0",
            "mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"resources/read\",le=\"0.001\"} 1",
            "mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"resources/read\",le=\"0.100\"} 1",
            "mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"resources/read\",le=\"0.200\"} 2",
            "mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"resources/read\",le=\"+Inf\"} 2",
            "mcp_server_operation_duration_seconds_sum{mcp_method_name=\"resources/read\"} 0.150",
            "mcp_resources_connections{kind=\"stdio\"} 1",
            "mcp_resources_connections{kind=\"session\"} 1",
            "mcp_resources_audit_waiting 2",
            "mcp_resources_audit_dropped_total 0",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is missing in\n{text}");
        }
        drop(other);
        assert!(engine.metrics_text().unwrap().contains("connections{kind=\"session\"} 0\n"));
    }
}
