//! Serve the *Resources* feature of the Model Context Protocol (MCP): five protocol revisions, 2024-11-05 to 2026-07-28, over
//! stdio and Streamable HTTP.
//!
//! ```text
//!  client ──▶ stdio, or HTTP (feature `http`) ──▶ engine ──▶ your function
//!                    mcp-resources-runtime           │  finds the resource or template of a URI (mcp-resources-template),
//!                                                 │  checks the Guard, encodes the answer for the revision of the client
//!                                                 └─▶ hub: which clients watch a resource that changes
//! ```
//!
//! A [`ResourceServer`] has [`Resource`]s at fixed URIs and [`Template`]s of URIs. A handler is an async function: it takes
//! a [`ReadRequest`] and returns a text, bytes or [`Contents`], or a [`ReadError`].
//!
#![cfg_attr(all(feature = "server", unix), doc = "```")]
#![cfg_attr(not(all(feature = "server", unix)), doc = "```ignore")]
//! use mcp_resources::testing::Client;
//! use mcp_resources::{ReadError, ReadRequest, Resource, ResourceServer, Template};
//!
//! async fn note(request: ReadRequest) -> Result<&'static str, ReadError> {
//!     match request.param("day") {
//!         Some("monday") => Ok("Buy milk"),
//!         _ => Err(ReadError::NotFound),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ResourceServer::builder("notes", "1.0.0")
//!     .resource(Resource::new("notes://help"), |_| async { "One note a day" })
//!     .template(Template::new("notes://day/{day}"), note)
//!     .build()?;
//! // `server.run_stdio().await?` serves it. A test uses a client in the same process:
//! let mut client = Client::modern(&server)?;
//! assert_eq!(client.read_text("notes://day/monday").await?, "Buy milk");
//! # Ok(()) }
//! ```
//!
//! This crate re-exports the names that servers need, and has no code of its own: `mcp-resources-template` matches URIs,
//! `mcp-resources-engine` is the protocol without I/O, clock or runtime, `mcp-resources-runtime` provides those, and
//! `mcp-resources-client` is the client. A program with an event loop of its own can drive the engine itself.
#![cfg_attr(docsrs, feature(doc_cfg))]

// Resources, templates, and what handlers return.
pub use mcp_resources_engine::catalog::MountId;
pub use mcp_resources_engine::connection::{
    Answer, AskError, BlockKind, Body, Completion, ContentBlock, Contents, ContentsGatherer, InputAsk,
    InputRequest, InputRequired, Item, ListPage, LogLevel, PlainContents, PromptMessage, PromptResult,
    RawResult, ReadResult, ToolResult,
};
pub use mcp_resources_engine::engine::{AccessQuestion, LinkError};
pub use mcp_resources_engine::error::ReadError;
pub use mcp_resources_engine::resource::{
    Annotations, Audience, CacheHint, CacheScope, Details, Icon, ListSource, Parameter, ParameterCheck,
    ParameterKind, Prompt, PromptArgument, ReadTool, RegistrationError, Resource, Template, Theme, Tool,
    ToolAnnotations, ToolVisibility, UiCsp, UiPage, UiPermission,
};
pub use mcp_resources_template::{self as template, MatchedParams, TemplateOptions, UriTemplate, uri};

// Clients, access control and limits.
pub use mcp_resources_engine::guard::{self, Policy};
pub use mcp_resources_engine::headers::Headers;
pub use mcp_resources_engine::hub::ListKinds;
pub use mcp_resources_engine::limits::Limits;
pub use mcp_resources_engine::option::{OptionError, OptionValue, PathStep};
pub use mcp_resources_engine::principal::{Network, Principal};
pub use mcp_resources_engine::seal::{SealError, SealKey};
pub use mcp_resources_engine::trace::TraceContext;
pub use mcp_resources_engine::version::{FieldSet, Revision};

// The server.
#[cfg(any(feature = "http", feature = "pipe"))]
pub use mcp_resources_runtime::provider::{self, Provider};
#[cfg(all(feature = "server", unix))]
pub use mcp_resources_runtime::server::{
    self, AccessDecision, AskFailed, Builder, Call, CallRequest, CompletionRequest, Context, Diagnostic,
    Handled, HandlerError, IntoAnswer, ListRequest, Method, NamedCall, PromptOutput, Read, ReadRequest,
    ResourceServer, ServerChanges, ToolError, ToolOutput, blocking,
};
#[cfg(all(feature = "server", feature = "http", unix))]
pub use mcp_resources_runtime::server::{HttpBuilder, HttpListener, UnixHttpListener};
#[cfg(all(feature = "junction", unix))]
pub use mcp_resources_runtime::server::{Junction, JunctionEnd, StreamPair};
#[cfg(all(feature = "tools", unix))]
pub use mcp_resources_runtime::server::{Structured, ToolReturn};
#[cfg(all(feature = "server", unix))]
pub use mcp_resources_runtime::testing;
#[cfg(any(feature = "http", feature = "pipe"))]
pub use mcp_resources_runtime::transport::{
    self, AuditFile, AuditLog, AuditRotation, AuditSink, load_policy,
};

// Providers that are ready-made.
#[cfg(feature = "providers")]
pub use mcp_resources_providers as providers;

// The bus between the processes of a server.
#[cfg(feature = "bus-unix")]
pub use mcp_resources_bus::{BusUrlError, from_url as bus_from_url};
#[cfg(feature = "bus")]
pub use mcp_resources_runtime::bus;

// Servers from a configuration file.
#[cfg(all(feature = "serve", unix))]
pub use mcp_resources_serve::{ConfigFileError, FromConfig, FromConfigOptions};

// A client of servers, with access control.
#[cfg(all(feature = "client", unix))]
pub use mcp_resources_client as client;

// HTTP: the rules of an endpoint, TLS and tokens.
pub use mcp_resources_engine::http::{
    Answers, Auth, DeniedToken, Hosts, Origins, Polling, Rules, RulesError, Sse24, Verified,
};
#[cfg(feature = "auth")]
pub use mcp_resources_runtime::transport::http::JwtVerifier;
#[cfg(feature = "tls")]
pub use mcp_resources_runtime::transport::http::Tls;
#[cfg(feature = "http")]
pub use mcp_resources_runtime::transport::http::{ProxyIdentity, StaticTokens, Verifier};

// For a program with an event loop of its own: everything that the signatures above name and that is not named above.
pub use mcp_resources_engine as engine;

// Compiles what the README and the guides show.
#[cfg(all(doctest, feature = "server", unix))]
mod guides {
    #[doc = include_str!("../../README.md")]
    mod readme {}
    #[doc = include_str!("../README.md")]
    mod crate_readme {}
    #[cfg(feature = "client")]
    #[doc = include_str!("../../docs/client.md")]
    mod client {}
    #[cfg(feature = "config")]
    #[doc = include_str!("../../docs/config.md")]
    mod config {}
    #[cfg(feature = "db")]
    #[doc = include_str!("../../docs/db.md")]
    mod db {}
    #[cfg(feature = "docs")]
    #[expect(rustdoc::invalid_codeblock_attributes, reason = "the name of a file after the language")]
    #[doc = include_str!("../../docs/docs.md")]
    mod docs {}
    #[cfg(feature = "files")]
    #[doc = include_str!("../../docs/files.md")]
    mod files {}
    #[cfg(feature = "git")]
    #[doc = include_str!("../../docs/git.md")]
    mod git {}
    #[cfg(feature = "http")]
    #[doc = include_str!("../../docs/http.md")]
    mod http {}
    #[doc = include_str!("../../docs/access.md")]
    mod access {}
    #[doc = include_str!("../../docs/lists.md")]
    mod lists {}
    #[cfg(feature = "metrics")]
    #[doc = include_str!("../../docs/metrics.md")]
    mod metrics {}
    #[cfg(feature = "api")]
    #[doc = include_str!("../../docs/api.md")]
    mod api {}
    #[cfg(feature = "results")]
    #[doc = include_str!("../../docs/results.md")]
    mod results {}
    #[cfg(feature = "rag")]
    #[doc = include_str!("../../docs/rag.md")]
    mod rag {}
    #[cfg(feature = "serve")]
    #[doc = include_str!("../../docs/serve.md")]
    mod serve {}
    #[cfg(feature = "skills")]
    #[doc = include_str!("../../docs/skills.md")]
    mod skills {}
    #[doc = include_str!("../../docs/templates.md")]
    mod templates {}
    #[doc = include_str!("../../docs/testing.md")]
    mod testing {}
    #[cfg(feature = "tools")]
    #[doc = include_str!("../../docs/tools.md")]
    mod tools {}
    #[cfg(feature = "upstream")]
    #[doc = include_str!("../../docs/upstream.md")]
    mod upstream {}
}

/// Programs keep what the API returns and take what it takes, so each type of a signature has a name here.
///
/// ```
/// use mcp_resources::provider::{Call, IntoAnswer, List, Provider, Read, Responder};
/// use mcp_resources::{
///     Annotations, AskError, ContentsGatherer, DeniedToken, Details, FieldSet, ListPage, ListSource, MatchedParams,
///     MountId, Network, ParameterCheck, ParameterKind, PathStep, PlainContents, RawResult, ReadResult, SealError,
///     TemplateOptions, Theme, engine, template,
/// };
///
/// struct Mounted {
///     mount: MountId,
///     source: ListSource,
///     pages: Responder<ListPage>,
///     results: Responder<RawResult<'static>>,
/// }
///
/// fn answer<T: IntoAnswer>(_: &Responder<T>) {}
///
/// fn describe(_: Details, _: Annotations, _: Theme, _: ParameterKind, _: ParameterCheck, _: TemplateOptions) {}
///
/// fn values(_: &MatchedParams<'static>, _: &template::Values<'_>, _: &template::TemplateVariable, _: template::ExpandError) {}
///
/// fn errors(_: AskError, _: DeniedToken, _: SealError, _: &PathStep, _: Network, _: FieldSet) {}
///
/// fn contents(_: ContentsGatherer, _: PlainContents<'_>, _: ReadResult<'_>) {}
///
/// fn own_loop(_: &engine::Engine, _: engine::Event<'_>, _: engine::connection::RequestToken, _: engine::Now) {}
/// ```
#[cfg(all(doctest, feature = "server", unix))]
mod every_type_has_a_name {}
