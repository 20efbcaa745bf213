//! The errors of commands, with their messages and exit statuses.

use crate::output;
use mcp_resources_client::ConfigError;
use mcp_resources_engine::client::{ClientError, Failure};
use std::fmt::Display;
use std::io;

/// The reason why a command ended early.
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
    /// The command failed.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Message { text: text.into(), status: 1 }
    }

    /// The command line is wrong.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Message { text: text.into(), status: 2 }
    }

    /// A read failed.
    pub(crate) fn reading(error: &ClientError) -> Self {
        Self::from_client(error, error)
    }

    /// An error of the client, with the option that helps.
    fn from_client(error: &ClientError, words: &dyn Display) -> Self {
        match error {
            ClientError::Failed(Failure::Unauthorized { .. }) => {
                Self::new(format!("{words} (--header 'Authorization: Bearer TOKEN')"))
            }
            _ => Self::new(words.to_string()),
        }
    }

    /// Prints the message, and returns the exit status.
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
    /// An error while writing to stdout.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::StdoutClosed,
            _ => Self::new(format!("stdout cannot be written: {error}")),
        }
    }
}

impl From<ClientError> for Failed {
    /// An error of anything except a read, whose message names the resource.
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Failed(failure) => Self::from_client(&error, failure),
            error => Self::from_client(error, error),
        }
    }
}

impl From<ConfigError> for Failed {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.message)
    }
}
