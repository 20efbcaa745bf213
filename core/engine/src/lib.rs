//! The *Resources* feature of the Model Context Protocol without I/O: bytes and the time go in; bytes, events and
//! deadlines come out.
//!
//! ```text
//!  bytes, Now ──▶ connection: decode ▸ revision ▸ method ──▶ Event::Read { uri, params, … } ──▶ the runtime
//!                     │                 catalog: which resource or template is it?
//!                     │                 guard: may this principal have it?
//!                     ◀── respond(…) ◀─ hub: which connections watch it?
//!  Outcome: bytes to send, a deadline
//! ```
//!
//! The engine uses no file, socket, clock, thread, environment or randomness; `mcp-resources-runtime` provides them. Most
//! servers need only the crate `mcp-resources`. Use this one to serve over a transport of your own.
//!
//! # Examples
//! ```
//! use mcp_resources_engine::{
//!     Answer, Arrival, ConnectionKind, Contents, Edit, Engine, Event, Now, EngineOptions, Principal, ServerInfo, Template,
//! };
//!
//! let info = ServerInfo { name: "notes".into(), version: "1".into(), ..ServerInfo::default() };
//! let engine = Engine::new(info, EngineOptions::default())?;
//! let template = Template::new("notes://{day}");
//! let edit = Edit::AddTemplate { template: Box::new(template), handler: engine.new_handler(), mount: None };
//! engine.publish(vec![edit], Now::default())?;
//!
//! let (mut connection, principal, mut out) = (engine.connect(ConnectionKind::Stdio), Principal::local(), Vec::new());
//! for message in [
//!     r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!         "capabilities":{},"clientInfo":{"name":"me","version":"1"}}}"#,
//!     r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"notes://monday"}}"#,
//! ] {
//!     out.clear();
//!     let arrival = Arrival { message: message.as_bytes(), principal: &principal, header_check: None };
//!     let outcome = connection.message(arrival, Now::default(), &mut out);
//!     for event in outcome.events {
//!         if let Event::Read(read) = event {
//!             let day = read.params.as_ref().and_then(|params| params.text("day")).unwrap_or("a day");
//!             let text = format!("Milk on {day}");
//!             connection.respond(read.token, Answer::Contents(Contents::text(text).into()), Now::default(), &mut out);
//!         }
//!     }
//! }
//! assert!(String::from_utf8(out)?.contains("Milk on monday"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

// The state machines, each with its inputs and outputs. The names that every runtime needs are re-exported below.
pub mod catalog;
pub mod client;
pub mod connection;
pub mod embedded;
pub mod engine;
pub mod guard;
pub mod http;
pub mod hub;
pub mod resource;

// Shared with the other crates of this project only. May change in every version.
#[doc(hidden)]
pub mod base64;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod headers;
#[doc(hidden)]
pub mod json_text;
#[doc(hidden)]
pub mod jsonrpc;
#[doc(hidden)]
pub mod limits;
#[doc(hidden)]
pub mod meta;
#[doc(hidden)]
pub mod now;
#[doc(hidden)]
pub mod option;
#[doc(hidden)]
pub mod principal;
#[doc(hidden)]
pub mod rank;
#[doc(hidden)]
pub mod safe_text;
#[doc(hidden)]
pub mod seal;
#[doc(hidden)]
pub mod suggest;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod version;

// The engine, and the resources to serve.
pub use catalog::{Edit, HandlerId};
pub use engine::{Engine, EngineOptions, ServerInfo};
pub use limits::Limits;
pub use resource::{
    Annotations, Audience, CacheHint, CacheScope, Icon, Prompt, PromptArgument, ReadTool, RegistrationError,
    Resource, Template, Tool, ToolAnnotations, ToolVisibility, UiCsp, UiPage, UiPermission,
};

// One connection.
pub use connection::{
    Answer, Arrival, Body, Completion, Connection, ConnectionKind, ContentBlock, Contents, Event, Events,
    Item, ListPage, PromptResult, ReadResult, RequestOutcome, RequestToken, ToolResult,
};
pub use error::ReadError;
pub use hub::{ConnectionId, ListKinds};
pub use now::{Millis, Now};
pub use principal::Principal;
pub use version::Revision;

// HTTP, access control, sealed texts and traces.
pub use guard::Policy;
pub use headers::Headers;
pub use http::{Endpoint, Rules};
pub use option::{OptionError, OptionValue};
pub use seal::SealKey;
pub use trace::TraceContext;

// A client.
pub use client::{Machine, MachineOptions};
