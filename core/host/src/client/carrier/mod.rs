//! What carries messages to one server and back, once it is open: the pipes of a child, HTTP, or a pair of sockets.

mod child;
mod endpoint;
mod events;
mod http;
mod pipe;
mod sse;
mod stderr;
#[cfg(test)]
mod tests;
mod wire;

use super::Target;
use child::Program;
use http::Http;
use mcp_resources_engine::client::{NotCarried, Outgoing};
use pipe::{Far, Pipe};
use std::os::unix::net::UnixStream;
use std::sync::PoisonError;
use tokio::sync::mpsc::Sender;

/// What comes from a server, or from its transport.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A message: a line without its end, a body of HTTP, or the data of an event.
    Message(Vec<u8>),
    /// The request with this id cannot be carried to its answer.
    NotCarried(u64, NotCarried),
    /// The stream of a session of HTTP that carries notifications (GET) is open: at first, and again after it broke without
    /// being resumed. What the server sent before is lost.
    StreamOpened,
    /// A session of HTTP has ended: the server does not know its id any more.
    SessionEnded,
    /// The server has ended and had read nothing; nothing comes after this.
    NotHeard(String),
    /// The transport is broken, or the server has ended it; nothing comes after this.
    Lost(String),
}

/// An open transport. Dropped, it ends at once: a child is killed with its group, exchanges are broken off.
#[derive(Debug)]
pub(super) struct Carrier(CarrierKind);

#[derive(Debug)]
enum CarrierKind {
    Pipe(Pipe),
    Http(Http),
}

impl Carrier {
    /// Opens the transport. `longest` is the longest message that is accepted, in bytes. Needs a tokio runtime.
    ///
    /// # Errors
    /// Why it cannot be opened, as a sentence for a person.
    pub(super) async fn open(
        target: &Target,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Result<Self, String> {
        match target {
            Target::Command { program, args, env, directory } => {
                let program = Program { program, args, env, directory: directory.as_deref() };
                let (child, input, output) = program.start()?;
                let writer = (input, Some(child::unread as pipe::Unread<_>));
                let pipe = Pipe::open(output, writer, Far::Child(child), inbound, longest);
                Ok(Self(CarrierKind::Pipe(pipe)))
            }
            Target::Url { url, headers } => {
                Ok(Self(CarrierKind::Http(Http::open(url, headers, inbound, longest)?)))
            }
            #[cfg(feature = "server")]
            Target::Memory(server) => {
                let (ours, theirs) = UnixStream::pair().map_err(|error| no_socket(&error))?;
                let again = theirs.try_clone().map_err(|error| no_socket(&error))?;
                let server = server.clone();
                let serve = async move {
                    // What ends it ends its socket too.
                    let _ = server.run_on(again, theirs).await;
                };
                let far = Far::Server(pipe::Task(tokio::spawn(serve)));
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
        Ok(Self(CarrierKind::Pipe(Pipe::open(input, (output, None), far, inbound, longest))))
    }

    /// Sends a message. Never waits: what cannot be sent is reported as [`Inbound`].
    pub(super) fn send(&mut self, message: Outgoing) {
        match &mut self.0 {
            CarrierKind::Pipe(pipe) => pipe.send(message.body),
            CarrierKind::Http(http) => http.send(message),
        }
    }

    /// Closes the HTTP exchange of a request whose answer is no longer needed. Does nothing on pipes.
    pub(super) fn abort(&mut self, id: u64) {
        match &mut self.0 {
            CarrierKind::Pipe(_) => {}
            CarrierKind::Http(http) => http.abort(id),
        }
    }

    /// Ends it as the protocol wants: stdin is closed, and a child that does not end within 2 s is asked with SIGTERM, and
    /// killed 2 s later; a session of HTTP is deleted.
    pub(super) async fn close(self) {
        match self.0 {
            CarrierKind::Pipe(pipe) => pipe.close().await,
            CarrierKind::Http(http) => http.close().await,
        }
    }
}

fn no_socket(error: &std::io::Error) -> String {
    format!("no socket can be made: {error}")
}
