//! The address of a server.

use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// A server of this library in the same process.
    #[cfg(feature = "server")]
    Memory(crate::server::ResourceServer),
    /// One end of a pair of sockets; a server reads and writes the other end. It cannot be opened a second time.
    #[cfg(unix)]
    Socket(std::sync::Arc<std::sync::Mutex<Option<std::os::unix::net::UnixStream>>>),
}

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
}
