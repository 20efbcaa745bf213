//! The address of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};

/// The address of a server, and the transport to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A process to start, connected through its stdin and stdout. Its stderr is passed on to that of this process.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Additional environment variables.
        env: BTreeMap<String, String>,
        /// Its working directory. Default: that of this process.
        directory: Option<PathBuf>,
    },
    /// An endpoint of Streamable HTTP.
    Url {
        /// Its URL: `http://…` or `https://…`.
        url: String,
        /// Headers of every request, such as `Authorization`.
        headers: BTreeMap<String, String>,
    },
    /// A stream whose other end a server reads and writes, with the framing of stdio: see [`Target::stream`] and
    /// [`Target::connector`].
    Stream(StreamConnector),
}

/// The credentials that a client shows an authorization server for a token of its own: the grant `client_credentials` of OAuth
/// 2.0 (RFC 6749, section 4.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The token endpoint.
    pub token_url: String,
    /// The client's id there.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// The scopes to ask for, with spaces between; `None` for those that the server gives.
    pub scope: Option<String>,
}

/// The secret is not shown.
impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials")
            .field("token_url", &self.token_url)
            .field("client_id", &self.client_id)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// A function that opens a stream to a server: see [`Target::connector`].
#[derive(Clone)]
pub struct StreamConnector(Arc<dyn Fn() -> io::Result<BoxedStream> + Send + Sync>);

/// A stream of bytes in both directions.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

pub(super) type BoxedStream = Box<dyn ByteStream>;

impl Target {
    /// A program with its arguments, in the directory and environment of this process.
    pub fn command(program: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Command {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            directory: None,
        }
    }

    /// An endpoint without additional headers.
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url { url: url.into(), headers: BTreeMap::new() }
    }

    /// One end of an open stream, such as a Unix socket or [`tokio::io::duplex`]. A connection that is lost is not opened
    /// again; with [`Target::connector`] it is.
    pub fn stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let stream = Mutex::new(Some(stream));
        Self::connector(move || {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
            stream.ok_or_else(|| io::Error::other("it was opened before; give each client a new one"))
        })
    }

    /// A stream that `connect` opens: when the client first needs the server, and again after a loss. Called within the
    /// tokio runtime of the client, which it should not block.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources_client::{Client, Target};
    /// use mcp_resources_engine::resource::Resource;
    /// use mcp_resources_runtime::server::ResourceServer;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server =
    ///     ResourceServer::builder("notes", "1.0.0").text(Resource::new("notes://monday"), "Buy milk").build()?;
    /// let client = Client::builder().server("notes", Target::connector(move || server.connect())).connect()?;
    /// assert_eq!(client.list().all().await?[0].uri, "notes://monday");
    /// # Ok(()) }
    /// ```
    pub fn connector<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        connect: impl Fn() -> io::Result<S> + Send + Sync + 'static,
    ) -> Self {
        Self::Stream(StreamConnector(Arc::new(move || {
            connect().map(|stream| Box::new(stream) as BoxedStream)
        })))
    }
}

impl StreamConnector {
    /// Opens the stream.
    ///
    /// # Errors
    /// The reason, as a sentence for people.
    pub(super) fn open(&self) -> Result<BoxedStream, String> {
        (self.0)().map_err(|error| format!("its stream cannot be opened: {error}"))
    }
}

impl fmt::Debug for StreamConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamConnector").finish_non_exhaustive()
    }
}
