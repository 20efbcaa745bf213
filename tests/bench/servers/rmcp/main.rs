//! The fixture of the benchmark on the official Rust SDK (`rmcp`). It has no router for resources: URIs are matched by
//! hand, and who watches what is kept by hand.

use axum::Router;
use axum::serve::ListenerExt;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::handler::server::common::schema_for_type;
use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::{Peer, RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, schemars};
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

const TEXT: &str = include_str!("../static.txt");
const LARGE: usize = 1 << 20;
const PAGE: usize = 1_000;

static LARGE_TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = "resource contents 1\n".repeat(LARGE / 20 + 1);
    text.truncate(LARGE);
    text
});
static LARGE_BLOB: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..LARGE).map(|at| (at.wrapping_mul(167) + 13).to_le_bytes()[0]).collect());

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listed = std::env::var("STATIC").map_or(Ok(1_000), |text| text.parse())?;
    let tools = std::env::var("TOOLS").ok().map(|text| text.parse()).transpose()?;
    let fixture = Fixture { listed, tools: tools.map(router), watchers: Arc::default() };
    let Some(port) = std::env::args().nth(2) else {
        fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    // Without it each answer waits for the client's delayed acknowledgement, 40 ms.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

/// The arguments of the tools.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Parameters(Echo { text }): Parameters<Echo>) -> String {
    text
}

fn router(count: u32) -> ToolRouter<Fixture> {
    let names = (0..count).map(|number| format!("t{number}"));
    let mut tools = ToolRouter::new();
    for name in names.chain(["echo".to_owned()]) {
        let tool = Tool::new(name, "Returns a text.", schema_for_type::<Parameters<Echo>>());
        tools.add_route(ToolRoute::new(tool, echo));
    }
    tools
}

/// Who is told of a change: a legacy session, or a listen.
#[derive(Clone)]
enum Watcher {
    Session(Peer<RoleServer>),
    Listen(SubscriptionSink),
}

#[derive(Clone)]
struct Fixture {
    listed: usize,
    tools: Option<ToolRouter<Self>>,
    watchers: Arc<Mutex<HashMap<String, Vec<Watcher>>>>,
}

impl Fixture {
    fn watch(&self, uri: String, watcher: Watcher) {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).entry(uri).or_default().push(watcher);
    }

    async fn updated(&self, uri: &str) {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner).get(uri).cloned();
        for watcher in watchers.unwrap_or_default() {
            let params = ResourceUpdatedNotificationParam::new(uri);
            let _ = match watcher {
                Watcher::Session(peer) => peer.notify_resource_updated(params).await.is_ok(),
                Watcher::Listen(sink) => sink.notify_resource_updated(uri).await.is_ok(),
            };
        }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_resources().enable_resources_subscribe().build();
        capabilities.tools = self.tools.as_ref().map(|_| ToolsCapability::default());
        ServerConfig::new(capabilities).with_server_info(Implementation::new("bench", "1.0.0"))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let path = uri.strip_prefix("bench://").unwrap_or_default();
        let contents = match path.split_once('/') {
            None if path == "static" => ResourceContents::text(TEXT, &uri),
            None if path == "text1m" => ResourceContents::text(LARGE_TEXT.as_str(), &uri),
            None if path == "blob1m" => ResourceContents::blob(STANDARD.encode(&*LARGE_BLOB), &uri)
                .with_mime_type("application/octet-stream"),
            Some(("item" | "aitem", id)) => ResourceContents::text(format!("item {id}"), &uri),
            Some(("r", number)) => ResourceContents::text(format!("resource {number}"), &uri),
            Some(("sub", _)) => ResourceContents::text(&uri, &uri),
            Some(("touch", number)) => {
                self.updated(&format!("bench://sub/{number}")).await;
                ResourceContents::text("ok", &uri)
            }
            _ => return Err(ErrorData::resource_not_found(uri, None)),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let start: usize = cursor
            .map_or(Ok(0), |cursor| cursor.parse())
            .map_err(|_| ErrorData::invalid_params("cursor", None))?;
        let end = (start + PAGE).min(self.listed);
        let resources = (start..end).map(|number| {
            Resource::new(format!("bench://r/{number}"), format!("r-{number}")).with_mime_type("text/plain")
        });
        let mut page = ListResourcesResult::with_all_items(resources.collect());
        page.next_cursor = (end < self.listed).then(|| end.to_string());
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = self.tools.as_ref().ok_or(ErrorData::invalid_params("tool not found", None))?;
        tools.call(ToolCallContext::new(self, request, context)).await
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.as_ref().map(ToolRouter::list_all);
        Ok(ListToolsResult::with_all_items(tools.unwrap_or_default()))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watch(request.uri, Watcher::Session(context.peer));
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            self.watch(uri.clone(), Watcher::Listen(context.sink().clone()));
        }
        context.cancelled().await;
        Ok(())
    }
}
