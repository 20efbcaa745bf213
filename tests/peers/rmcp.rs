//! The fixture of `tests/peers` on the official Rust SDK (`rmcp`). It has no router for resources: URIs are matched by
//! hand, and who watches what is kept by hand.

use axum::Router;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::*;
use rmcp::service::{Peer, RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const COUNTER: &str = "peer://counter";
const LISTED: usize = 250;
const PAGE: usize = 100;
const WORDS: [&str; 3] = ["alpha", "beta", "gamma"];
const PLAIN: &str = "text/plain";
const FIXED: [(&str, &str); 6] = [
    ("static", PLAIN),
    ("blob", "application/octet-stream"),
    ("json", "application/json"),
    ("counter", PLAIN),
    ("touch", PLAIN),
    ("slow", PLAIN),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture { state: Arc::default() };
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("http") {
        fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let port: u16 = arguments.next().unwrap_or_default().parse()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening {}", listener.local_addr()?.port());
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

/// Who is told of a change of the counter: a legacy session, or a listen.
#[derive(Clone)]
enum Watcher {
    Session(Peer<RoleServer>),
    Listen(SubscriptionSink),
}

#[derive(Default)]
struct State {
    count: AtomicU64,
    watchers: Mutex<Vec<Watcher>>,
    /// Listens that rmcp has acknowledged, or is about to, whose handler has not run yet.
    announced: AtomicU64,
}

#[derive(Clone)]
struct Fixture {
    state: Arc<State>,
}

impl Fixture {
    fn watch(&self, watcher: Watcher) {
        self.state.watchers.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }

    async fn touch(&self) {
        // rmcp acknowledges a listen before it calls the handler. A change in between would notify nobody.
        let mut patience = 1000;
        while self.state.announced.load(Ordering::SeqCst) > 0 && patience > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            patience -= 1;
        }
        self.state.count.fetch_add(1, Ordering::Relaxed);
        let watchers = self.state.watchers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for watcher in watchers {
            let params = ResourceUpdatedNotificationParam::new(COUNTER);
            let _ = match watcher {
                Watcher::Session(peer) => peer.notify_resource_updated(params).await.is_ok(),
                Watcher::Listen(sink) => sink.notify_resource_updated(COUNTER).await.is_ok(),
            };
        }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("peer", "1.0.0"))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let start: usize = request
            .and_then(|request| request.cursor)
            .map_or(Ok(0), |cursor| cursor.parse())
            .map_err(|_| ErrorData::invalid_params("cursor", None))?;
        let fixed = FIXED.iter().map(|(name, mime_type)| (name.to_string(), *mime_type));
        let all = fixed.chain((0..LISTED).map(|number| (format!("r/{number}"), PLAIN)));
        let resources = all.skip(start).take(PAGE).map(|(name, mime_type)| {
            Resource::new(format!("peer://{name}"), name.replace('/', "-")).with_mime_type(mime_type)
        });
        let mut page = ListResourcesResult::with_all_items(resources.collect());
        let end = start + PAGE;
        page.next_cursor = (end < FIXED.len() + LISTED).then(|| end.to_string());
        Ok(page)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let item = ResourceTemplate::new("peer://item/{id}", "item").with_mime_type(PLAIN);
        Ok(ListResourceTemplatesResult::with_all_items(vec![item]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let text = |text: &str| ResourceContents::text(text, &uri).with_mime_type(PLAIN);
        let path = uri.strip_prefix("peer://").unwrap_or_default();
        let contents = match path.split_once('/') {
            None if path == "static" => text("static text"),
            None if path == "blob" => {
                let bytes: Vec<u8> = (0..=255).collect();
                ResourceContents::blob(STANDARD.encode(bytes), &uri)
                    .with_mime_type("application/octet-stream")
            }
            None if path == "json" => {
                ResourceContents::text(r#"{"a":1,"b":[true,null]}"#, &uri).with_mime_type("application/json")
            }
            None if path == "counter" => text(&self.state.count.load(Ordering::Relaxed).to_string()),
            None if path == "touch" => {
                self.touch().await;
                text("touched")
            }
            None if path == "slow" => {
                self.state.count.fetch_add(1, Ordering::Relaxed);
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(30)) => text("slow"),
                    () = context.ct.cancelled() => text("cancelled"), // nobody is sent it
                }
            }
            Some(("item", id)) => text(&format!("item {id}")),
            Some(("r", number)) if number.parse().is_ok_and(|number: usize| number < LISTED) => {
                text(&format!("resource {number}"))
            }
            _ => return Err(ErrorData::resource_not_found(uri, None)),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let words = WORDS.into_iter().filter(|word| word.starts_with(&request.argument.value));
        let found = CompletionInfo::with_all_values(words.map(str::to_owned).collect());
        found.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri == COUNTER {
            self.watch(Watcher::Session(context.peer));
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.state
            .watchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|watcher| matches!(watcher, Watcher::Listen(_)));
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        if names_counter(requested) {
            self.state.announced.fetch_add(1, Ordering::SeqCst);
        }
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        if names_counter(context.accepted()) {
            self.watch(Watcher::Listen(context.sink().clone()));
            self.state.announced.fetch_sub(1, Ordering::SeqCst);
        }
        context.cancelled().await;
        Ok(())
    }
}

fn names_counter(filter: &SubscriptionFilter) -> bool {
    filter.resource_subscriptions.iter().flatten().any(|uri| uri == COUNTER)
}
