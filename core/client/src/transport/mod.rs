//! The transport between a client and one server, once it is open: the pipes of a child, HTTP, or another stream.

mod child;
mod endpoint;
mod events;
mod guard;
mod http;
mod loan;
mod pipe;
mod redirect;
mod sse;
mod stderr;
#[cfg(test)]
mod tests;
mod tokens;
mod wire;

use crate::target::{ClientCredentials, Target};
use child::ChildProgram;
pub use guard::guard_children;
use http::Http;
pub use loan::LoopPipes;
pub(super) use loan::{LentOutput, LoanEvent, LoopReader};
use mcp_resources_engine::client::{NotCarried, Outgoing};
use pipe::ClientPipe;
use tokio::sync::mpsc::Sender;

/// A message of the server, or an event of its transport.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A message: a line without its end, a body of HTTP, or the data of an event.
    Message(Vec<u8>),
    /// The output of a child, after [`ClientTransport::lend`]. What follows is read from it, until it is dropped.
    Lent(LentOutput),
    /// The exchange of the request with this id has failed.
    NotCarried(u64, NotCarried),
    /// The notification stream (GET) of an HTTP session is open: initially, and again after a break without resuming.
    /// Earlier notifications may be lost.
    StreamOpened,
    /// The HTTP session has ended: the server no longer knows its id.
    SessionEnded,
    /// The server has exited without reading anything. The last event.
    NotHeard(String),
    /// The transport failed, or the server closed it. The last event.
    Lost(String),
}

/// An open transport. Dropping it ends it at once: a child is killed with its group, and exchanges are aborted.
#[derive(Debug)]
pub(super) struct ClientTransport(TransportKind);

#[derive(Debug)]
enum TransportKind {
    Pipe(ClientPipe),
    Http(Http),
}

impl ClientTransport {
    /// Opens the transport. `longest` is the maximum length of a message in bytes. Needs a tokio runtime.
    ///
    /// # Errors
    /// The reason, as a sentence for people.
    pub(super) async fn open(
        target: &Target,
        credentials: Option<&ClientCredentials>,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Result<Self, String> {
        match target {
            Target::Command { program, args, env, directory } => {
                let program = ChildProgram { program, args, env, directory: directory.as_deref() };
                let (child, input, output) = program.start()?;
                Ok(Self(TransportKind::Pipe(ClientPipe::from_child(child, input, output, inbound, longest))))
            }
            Target::Url { url, headers } => {
                Ok(Self(TransportKind::Http(Http::open(url, headers, credentials, inbound, longest)?)))
            }
            Target::Stream(connector) => {
                Ok(Self(TransportKind::Pipe(ClientPipe::from_stream(connector.open()?, inbound, longest))))
            }
        }
    }

    /// Sends a message without waiting; over a pipe with the next [`ClientTransport::flush`]. A failure is reported as
    /// [`Inbound`].
    pub(super) fn send(&mut self, message: Outgoing) {
        match &mut self.0 {
            TransportKind::Pipe(pipe) => pipe.send(message.body),
            TransportKind::Http(http) => http.send(message),
        }
    }

    /// Writes what was sent, as far as the other end takes it at once; the rest follows in the background.
    pub(super) fn flush(&mut self) {
        if let TransportKind::Pipe(pipe) = &mut self.0 {
            pipe.flush();
        }
    }

    /// Whether [`ClientTransport::flush`] would write to a child on this thread.
    pub(super) fn writes_here(&self) -> bool {
        matches!(&self.0, TransportKind::Pipe(pipe) if pipe.writes_here())
    }

    /// Asks for the output of a child: see [`Inbound::Lent`]. Does nothing on other transports.
    pub(super) fn lend(&self) {
        if let TransportKind::Pipe(pipe) = &self.0 {
            pipe.lend();
        }
    }

    /// Closes the HTTP exchange of a request whose answer is no longer needed. Does nothing on pipes.
    pub(super) fn abort(&mut self, id: u64) {
        match &mut self.0 {
            TransportKind::Pipe(_) => {}
            TransportKind::Http(http) => http.abort(id),
        }
    }

    /// Ends the transport gracefully: closes stdin, sends SIGTERM to a child that does not exit within 2 s, and kills
    /// it 2 s later; deletes an HTTP session.
    pub(super) async fn close(self) {
        match self.0 {
            TransportKind::Pipe(pipe) => pipe.close().await,
            TransportKind::Http(http) => http.close().await,
        }
    }
}
