//! The transport between a client and one server, once it is open: the pipes of a child, HTTP, or a pair of sockets.

mod child;
mod endpoint;
mod events;
mod http;
mod pipe;
mod redirect;
mod sse;
mod stderr;
#[cfg(test)]
mod tests;
mod wire;

use super::Target;
use child::ChildProgram;
use http::Http;
use mcp_resources_engine::client::{NotCarried, Outgoing};
use pipe::{ClientPipe, Far};
use std::os::unix::net::UnixStream;
use std::sync::PoisonError;
use tokio::sync::mpsc::Sender;

/// A message of the server, or an event of its transport.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A message: a line without its end, a body of HTTP, or the data of an event.
    Message(Vec<u8>),
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
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Result<Self, String> {
        match target {
            Target::Command { program, args, env, directory } => {
                let program = ChildProgram { program, args, env, directory: directory.as_deref() };
                let (child, input, output) = program.start()?;
                let writer = (input, Some(child::unread as pipe::Unread<_>));
                let pipe = ClientPipe::open(output, writer, Far::Child(child), inbound, longest);
                Ok(Self(TransportKind::Pipe(pipe)))
            }
            Target::Url { url, headers } => {
                Ok(Self(TransportKind::Http(Http::open(url, headers, inbound, longest)?)))
            }
            #[cfg(feature = "server")]
            Target::Memory(server) => {
                let (ours, theirs) = UnixStream::pair().map_err(|error| no_socket(&error))?;
                let again = theirs.try_clone().map_err(|error| no_socket(&error))?;
                let server = server.clone();
                let serve = async move {
                    // The reason for which it ends also ends its socket.
                    let _ = server.run_on(again, theirs).await;
                };
                let far = Far::Server(pipe::PipeTask(tokio::spawn(serve)));
                Self::over(ours, far, inbound, longest)
            }
            Target::Socket(socket) => {
                let socket = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
                let socket = socket.ok_or(
                    "its socket was opened before, and cannot be opened a second time: give each client a new pair",
                )?;
                Self::over(socket, Far::Other, inbound, longest)
            }
        }
    }

    fn over(socket: UnixStream, far: Far, inbound: Sender<Inbound>, longest: usize) -> Result<Self, String> {
        socket.set_nonblocking(true).map_err(|error| no_socket(&error))?;
        let socket = tokio::net::UnixStream::from_std(socket).map_err(|error| no_socket(&error))?;
        let (input, output) = socket.into_split();
        Ok(Self(TransportKind::Pipe(ClientPipe::open(input, (output, None), far, inbound, longest))))
    }

    /// Sends a message without waiting. A failure is reported as [`Inbound`].
    pub(super) fn send(&mut self, message: Outgoing) {
        match &mut self.0 {
            TransportKind::Pipe(pipe) => pipe.send(message.body),
            TransportKind::Http(http) => http.send(message),
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

fn no_socket(error: &std::io::Error) -> String {
    format!("no socket can be made: {error}")
}
