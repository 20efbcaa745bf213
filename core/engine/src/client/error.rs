//! Errors of a client.

use crate::now::Millis;
use std::fmt;

const FAILED: &str = "Failed to read resource";

/// An error of a client. Its message is the reason, then the URI, then the server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// No server has the resource.
    NotFound {
        /// The requested URI.
        uri: String,
    },
    /// The allow-list does not contain the URI, or the server refuses it.
    AccessDenied {
        /// The requested URI.
        uri: String,
    },
    /// The text is not a URI, or the server rejects it as one.
    InvalidUri {
        /// The text.
        uri: String,
    },
    /// Anything else.
    Failed(Failure),
}

/// A failure between a client and a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The server answered with an error.
    Server {
        /// Its code.
        code: i64,
        /// Its message, shortened and without control characters.
        message: String,
        /// Its `data` as JSON text, if it has one.
        data: Option<String>,
    },
    /// No answer arrived in time.
    Timeout {
        /// The time allowed, in milliseconds.
        after: Millis,
        /// Text from the server that could not be used, if any: it may be the answer.
        instead: Option<String>,
    },
    /// The server cannot be reached, or its connection was lost.
    Unreachable {
        /// The message of the system or the transport.
        reason: String,
    },
    /// The server requires credentials, or rejects those that were sent.
    Unauthorized {
        /// The server, its message, and the remedy.
        reason: String,
    },
    /// The server's answer is larger than allowed.
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The server's answer is invalid.
    BadAnswer {
        /// The reason.
        reason: String,
    },
    /// The server lacks the requested feature, such as subscriptions.
    Unsupported {
        /// The missing feature.
        what: String,
    },
    /// The server asks for input, and the runtime has no handler for such questions.
    InputRequired {
        /// The methods of its questions.
        methods: Vec<String>,
    },
    /// The client has several servers, and the call names none.
    SeveralServers {
        /// Their names.
        names: Vec<String>,
    },
    /// There is no server of this name.
    NoServer {
        /// The name.
        name: String,
    },
    /// The caller cancelled the request, or the client was closed.
    Cancelled,
    /// Too many requests or watches are pending.
    LimitReached {
        /// The thing there are too many of.
        what: &'static str,
    },
}

impl ClientError {
    /// Its kind as a stable word: `not_found`, `access_denied`, `invalid_uri`, or that of [`Failure::kind`].
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::AccessDenied { .. } => "access_denied",
            Self::InvalidUri { .. } => "invalid_uri",
            Self::Failed(failure) => failure.kind(),
        }
    }

    /// The URI that the error is about, if any.
    pub fn uri(&self) -> Option<&str> {
        match self {
            Self::NotFound { uri } | Self::AccessDenied { uri } | Self::InvalidUri { uri } => Some(uri),
            Self::Failed(_) => None,
        }
    }
}

impl Failure {
    /// Its kind as a stable word: `server`, `timeout`, `unreachable`, `unauthorized`, `too_large`, `bad_answer`,
    /// `unsupported`, `input_required`, `no_server`, `several_servers`, `cancelled` or `limit_reached`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Server { .. } => "server",
            Self::Timeout { .. } => "timeout",
            Self::Unreachable { .. } => "unreachable",
            Self::Unauthorized { .. } => "unauthorized",
            Self::TooLarge { .. } => "too_large",
            Self::BadAnswer { .. } => "bad_answer",
            Self::Unsupported { .. } => "unsupported",
            Self::InputRequired { .. } => "input_required",
            Self::SeveralServers { .. } => "several_servers",
            Self::NoServer { .. } => "no_server",
            Self::Cancelled => "cancelled",
            Self::LimitReached { .. } => "limit_reached",
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { uri } => write!(f, "Resource not found: {uri}"),
            Self::AccessDenied { uri } => write!(f, "Access denied: {uri}"),
            Self::InvalidUri { uri } => write!(f, "Invalid URI: {uri}"),
            Self::Failed(failure) => write!(f, "{FAILED}: {}", ErrorReason(failure)),
        }
    }
}

/// Formats a failure as the reason after [`FAILED`], without repeating a prefix that many servers put into their own
/// message.
struct ErrorReason<'a>(&'a Failure);

impl fmt::Display for ErrorReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure::Server { message, code, .. } = self.0 else { return self.0.fmt(f) };
        match message.strip_prefix(FAILED) {
            Some("" | ".") => write!(f, "the server gives no reason ({code})"),
            Some(reason) if reason.starts_with(": ") => {
                write!(f, "{} ({code})", reason.trim_start_matches(": "))
            }
            _ => self.0.fmt(f),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { message, code, .. } => write!(f, "{message} ({code})"),
            Self::Timeout { after, instead: None } => write!(f, "no answer within {after} ms"),
            Self::Timeout { after, instead: Some(instead) } => {
                write!(f, "no answer within {after} ms; but the server sent {instead}")
            }
            Self::Unreachable { reason } => write!(f, "the server cannot be reached: {reason}"),
            Self::Unauthorized { reason } => f.write_str(reason),
            Self::TooLarge { limit } => write!(f, "the answer is larger than {limit} bytes"),
            Self::BadAnswer { reason } => write!(f, "the server's answer cannot be used: {reason}"),
            Self::Unsupported { what } => write!(f, "the server has no {what}"),
            Self::InputRequired { methods } => {
                write!(
                    f,
                    "the server asks for input, for which this client has no handler: {}",
                    methods.join(", ")
                )
            }
            Self::SeveralServers { names } => {
                write!(f, "there are several servers; choose one of {}", names.join(", "))
            }
            Self::NoServer { name } => write!(f, "there is no server {name:?}"),
            Self::Cancelled => f.write_str("the request was cancelled"),
            Self::LimitReached { what } => write!(f, "too many {what} at once; end some of them first"),
        }
    }
}

impl std::error::Error for ClientError {}
impl std::error::Error for Failure {}

impl From<Failure> for ClientError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-14: the fixed part of the message appears once, even if the server's message repeats it.
    #[test]
    fn the_form_of_the_message_appears_once() {
        for (message, expected) in [
            ("no such thing", "Failed to read resource: no such thing (-1)"),
            ("Failed to read resource", "Failed to read resource: the server gives no reason (-1)"),
            ("Failed to read resource: it is down", "Failed to read resource: it is down (-1)"),
            ("Failed to read resources", "Failed to read resource: Failed to read resources (-1)"),
        ] {
            let error =
                ClientError::Failed(Failure::Server { code: -1, message: message.into(), data: None });
            assert_eq!(error.to_string(), expected);
        }
    }
}
