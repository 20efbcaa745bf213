//! The interface of providers: native sources of resources.
//!
//! ```text
//!   engine ── Event ──▶ Mounts ── read_now ──▶ answered on the thread that read the request
//!                         │ no answer there
//!                         └─ a worker of the mount ── read, list, complete ──▶ Responder ──▶ Peer
//!   engine ◀── Feed ── the provider, from any thread: changed, added, removed
//! ```
//!
//! Law: a provider never blocks a connection, and never ends one, even if it blocks, panics, never answers, or answers twice
//! as fast as a client reads. Its resources are checked like registrations of the server, and its results are guarded like
//! those of a handler.

mod asks;
mod context;
mod directory;
mod dispatch;
mod feed;
mod interest;
mod log;
mod mount;
mod mounts;
mod request;
mod responder;
#[cfg(test)]
mod tests;
mod watches;
mod workers;

pub use asks::{AskedClient, AskedSession, ProviderQuestion, QuestionAnswer};
pub use context::RequestContext;
pub use directory::{Directory, DirectoryPage};
pub use dispatch::Providers;
pub use feed::{Feed, FeedEntry};
pub use interest::WatchFn;
pub use log::LogFn;
pub use mount::{Mount, Route};
pub use mounts::{MountPart, Mounts};
pub use request::{Call, Complete, InterestChange, List, Read, ReadRef};
pub use responder::{IntoAnswer, Redact, Responder};
pub use watches::WatchChange;
pub use workers::{Full, QueuePermit, Workers};

use mcp_resources_engine::connection::{Completion, ListPage, RawResult, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::RegistrationError;
use std::sync::Arc;

/// A native source of resources, such as files, a database or another server. It works the same over every transport and in
/// every language.
///
/// ```
/// use mcp_resources::provider::{Feed, Mount, Provider, Read, ReadRef, Responder, Route};
/// use mcp_resources::testing::Client;
/// use mcp_resources::{Contents, ReadError, ReadResult, RegistrationError, ResourceServer, Template};
/// use std::sync::Arc;
///
/// /// Greets a name.
/// struct Greeter;
///
/// impl Provider for Greeter {
///     fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
///         Ok(Mount::new("greeter").template(Route(0), Template::new("greeting:///{name}")))
///     }
///
///     fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
///         let name = request.param("name")?;
///         Some(Ok(Contents::text(format!("Hello, {name}!")).into()))
///     }
///
///     fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
///         reply.send(Err(ReadError::NotFound));
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ResourceServer::builder("greetings", "1.0.0").mount(Greeter).build()?;
/// let mut client = Client::modern(&server)?;
/// assert_eq!(client.read_text("greeting:///Ada").await?, "Hello, Ada!");
/// # Ok(()) }
/// ```
pub trait Provider: Send + Sync + 'static {
    /// Declares the resources to serve. Called once for each server. Do not start threads or open watchers, files or
    /// databases here, but at the first request or interest, because a process may fork after mounting. `feed` reports
    /// changes.
    ///
    /// # Errors
    /// [`RegistrationError`] if the options are invalid. Nothing is mounted then.
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError>;

    /// Answers a read on the thread that received it. That thread serves other clients too, so answer only from memory, without
    /// blocking. `None` leaves the read to [`Provider::read`]. Default `None`.
    fn read_now(&self, _request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        None
    }

    /// Answers a read for which [`Provider::read_now`] returned `None`. Called on a worker of this mount, where it may
    /// block.
    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>);

    /// Lists the resources of a template or source that was declared with a list. Called on a worker. Default: an empty
    /// list.
    fn list(&self, _request: List, reply: Responder<ListPage>) {
        reply.send(Ok(ListPage::default()));
    }

    /// Completes a variable that its template declares as completed. Called on a worker. Default: no values.
    fn complete(&self, _request: Complete, reply: Responder<Completion<'static>>) {
        reply.send(Ok(Completion::default()));
    }

    /// Answers a custom method declared with [`Mount::method`]. Called on a worker. Default: fails.
    fn call(&self, _request: Call, reply: Responder<RawResult<'static>>) {
        reply.send(Err(ReadError::Failed));
    }

    /// Answers `resources/directory/read` (SEP-2640) for a URI of this provider: the children of a directory, as
    /// [`Directory::page`] makes a page of them. Called on a worker if the mount declares [`Mount::directories`].
    /// Default: the URI is no directory.
    fn directory(&self, request: Directory, reply: Responder<DirectoryPage>) {
        reply.send(Err(request.absent()));
    }

    /// Reports that clients started or stopped watching a resource or the lists. For one URI, and for the lists, calls
    /// come in order, alternating between `true` and `false`; the last one is `false`, at the latest when the provider
    /// is unmounted. Must not block: it is called on a thread that serves clients. After `true`, compare the current
    /// state with the previous one, so that no change in between is missed.
    fn interest(&self, _change: InterestChange<'_>) {}
}

/// A shared provider, so that the program can keep a reference and change its resources.
impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        (*self).clone().mount(feed)
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        (**self).read_now(request)
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        (**self).read(request, reply);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        (**self).list(request, reply);
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        (**self).complete(request, reply);
    }

    fn call(&self, request: Call, reply: Responder<RawResult<'static>>) {
        (**self).call(request, reply);
    }

    fn directory(&self, request: Directory, reply: Responder<DirectoryPage>) {
        (**self).directory(request, reply);
    }

    fn interest(&self, change: InterestChange<'_>) {
        (**self).interest(change);
    }
}
