//! The *Resources* feature of the Model Context Protocol without I/O: bytes and the time go in; bytes, events and
//! deadlines come out.
//!
//! ```text
//!  bytes, Now ──▶ connection: decode ▸ revision ▸ method ──▶ Event::Read { uri, params, … } ──▶ the host
//!                     │                 catalog: which resource or template is it?
//!                     │                 guard: may this principal have it?
//!                     ◀── respond(…) ◀─ hub: which connections watch it?
//!  Outcome: bytes to send, a deadline
//! ```
//!
//! The engine uses no file, socket, clock, thread, environment or randomness; `mcp-resources-host` provides them. Most
//! servers need only the crate `mcp-resources`. Use this one to serve over a transport of your own.
//!
//! # Examples
//! ```
//! use mcp_resources_engine::catalog::Edit;
//! use mcp_resources_engine::connection::{Answer, Arrival, Contents, Event, Peer};
//! use mcp_resources_engine::engine::{Engine, Options, ServerInfo};
//! use mcp_resources_engine::now::Now;
//! use mcp_resources_engine::principal::Principal;
//! use mcp_resources_engine::resource::Template;
//!
//! let info = ServerInfo { name: "notes".into(), version: "1".into(), ..ServerInfo::default() };
//! let engine = Engine::new(info, Options::default())?;
//! let template = Template::new("notes://{day}");
//! let edit = Edit::AddTemplate { template, handler: engine.new_handler(), mount: None };
//! engine.publish(vec![edit], Now::default())?;
//!
//! let (mut connection, principal, mut out) = (engine.connect(Peer::Stdio), Principal::local(), Vec::new());
//! for message in [
//!     r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!         "capabilities":{},"clientInfo":{"name":"me","version":"1"}}}"#,
//!     r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"notes://monday"}}"#,
//! ] {
//!     out.clear();
//!     let arrival = Arrival { message: message.as_bytes(), principal: &principal, mirror: None };
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

pub mod base64;
pub mod catalog;
pub mod client;
pub mod connection;
pub mod engine;
pub mod error;
pub mod guard;
pub mod headers;
pub mod http;
pub mod hub;
pub mod json_text;
pub mod jsonrpc;
pub mod limits;
pub mod meta;
pub mod now;
pub mod option;
pub mod principal;
pub mod rank;
pub mod resource;
pub mod seal;
pub mod suggest;
pub mod trace;
pub mod version;
