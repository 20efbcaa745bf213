//! Why a command did not do its work, and what is said about it.

use crate::output;
use mcp_resources_engine::client::ClientError;
use mcp_resources_host::client::ConfigError;
use std::io;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failed {
    /// A sentence for stderr, and the exit status.
    Message { text: String, status: u8 },
    /// The reader has closed stdout: not an error, and no message.
    StdoutClosed,
    /// A signal: its number.
    Signal(u8),
}

impl Failed {
    /// The work could not be done.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Message { text: text.into(), status: 1 }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Message { text: text.into(), status: 2 }
    }

    /// Says what is wrong, and returns the exit status.
    pub(crate) fn report(self) -> u8 {
        match self {
            Self::Message { text, status } => {
                output::say("error", &text);
                status
            }
            Self::StdoutClosed => 0,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<io::Error> for Failed {
    /// Of writing to stdout.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::StdoutClosed,
            _ => Self::new(format!("stdout cannot be written: {error}")),
        }
    }
}

impl From<ClientError> for Failed {
    /// Of anything but a read: those say what could not be read (S-14).
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Failed(failure) => Self::new(failure.to_string()),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<ConfigError> for Failed {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.message)
    }
}
