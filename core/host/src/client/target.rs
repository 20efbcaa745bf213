//! Where a server is.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where a server is, and how it is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A process to be started, spoken to over its stdin and stdout. What it writes to stderr is passed on to that of
    /// this process.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside those of this process' environment.
        env: BTreeMap<String, String>,
        /// Its directory; this process' own by default.
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
    /// One end of a pair of sockets, whose other end a server reads and writes. It cannot be opened a second time.
    #[cfg(unix)]
    Socket(std::sync::Arc<std::sync::Mutex<Option<std::os::unix::net::UnixStream>>>),
}

impl Target {
    /// A program with its arguments, in this process' directory and environment.
    pub fn command(program: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Command {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            directory: None,
        }
    }

    /// An endpoint, without further headers.
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url { url: url.into(), headers: BTreeMap::new() }
    }
}
