//! Errors of registrations and handlers, in terms of resources.
//!
//! Contains no code numbers: `version` maps these errors to the wire, for each revision.

use crate::now::Millis;
use crate::option::{FromOption, OptionError, OptionValue, PathStep};
use std::fmt;

/// The reason for which a read, completion, list, tool, prompt or custom method failed. The peer gets `kind` and the fields,
/// never any text of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// No such resource.
    NotFound,
    /// A value of the URI or of the request has the wrong type or form.
    InvalidParameter {
        /// Its name.
        parameter: String,
        /// The expected value: one short phrase, sent to the peer.
        expected: String,
    },
    /// The principal may not see it. Sent as [`ReadError::NotFound`] unless `explicit_denials` is set.
    AccessDenied,
    /// The URI is malformed or its scheme is unknown.
    InvalidUri,
    /// Any other failure in the handler or below it.
    Failed,
    /// The contents exceed a limit.
    SizeExceeded {
        /// The limit, in bytes.
        limit: u64,
        /// The size, in bytes, when known.
        size: Option<u64>,
    },
    /// The handler did not answer in time.
    Timeout {
        /// The time allowed, in milliseconds.
        after: Millis,
    },
    /// A check of the handler refused a value of the URI or of the request.
    RefusedParameter {
        /// The name of the parameter.
        parameter: String,
        /// The value as the peer sent it; shortened in the message.
        value: String,
        /// The reason: one short sentence, sent to the peer.
        reason: String,
    },
    /// Too many requests.
    RateLimited {
        /// The time after which to try again, in ms.
        retry_after: Millis,
    },
    /// The handler needs input from the client, and this revision has no way to ask.
    InputRequired,
    /// The user declined to give the input.
    InputDeclined,
    /// A custom error: for custom methods, or a code documented by the server.
    Custom {
        /// A JSON-RPC code outside -32768…-32000, or one of the standard five; for a custom method any code.
        code: i32,
        /// One short sentence.
        message: String,
        /// `data`, as JSON text.
        data: Option<String>,
    },
    /// The error of another server, passed on as it came.
    Foreign {
        /// Its code.
        code: i32,
        /// Its message.
        message: String,
        /// Its `data`, as JSON text. Left out if it is not an object.
        data: Option<String>,
    },
}

impl ReadError {
    /// The value of `data.kind`, if the vocabulary has one.
    pub fn kind(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound => "not_found",
            Self::InvalidParameter { .. } | Self::RefusedParameter { .. } => "invalid_parameter",
            Self::AccessDenied => "access_denied",
            Self::InvalidUri => "invalid_uri",
            Self::Failed => "read_error",
            Self::SizeExceeded { .. } => "size_exceeded",
            Self::Timeout { .. } => "timeout",
            Self::RateLimited { .. } => "rate_limited",
            Self::InputRequired => "input_required",
            Self::InputDeclined => "input_declined",
            Self::Custom { .. } | Self::Foreign { .. } => return None,
        })
    }

    /// Converts an exception of a language, from its kind and its other members. `member` returns a member by its name
    /// here, with times in `after_ms` and `retry_after_ms`, and [`OptionValue::None`] where there is none. An exception
    /// without a kind is a custom error with a `code`. `None` if the exception is not a [`ReadError`].
    ///
    /// # Errors
    /// [`OptionError`] if a member has the wrong type.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources_engine::error::ReadError;
    /// use mcp_resources_engine::option::OptionValue;
    /// let member = |name: &str| if name == "limit" { OptionValue::Integer(10) } else { OptionValue::None };
    /// let error = ReadError::from_parts(Some("size_exceeded"), member)?;
    /// assert_eq!(error, Some(ReadError::SizeExceeded { limit: 10, size: None }));
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    pub fn from_parts(
        kind: Option<&str>,
        mut member: impl FnMut(&'static str) -> OptionValue,
    ) -> Result<Option<Self>, OptionError> {
        Ok(Some(match kind {
            Some("not_found") => Self::NotFound,
            Some("access_denied") => Self::AccessDenied,
            Some("invalid_uri") => Self::InvalidUri,
            Some("input_required") => Self::InputRequired,
            Some("input_declined") => Self::InputDeclined,
            Some("invalid_parameter") => {
                let parameter = read(&mut member, "parameter")?;
                match read(&mut member, "reason")? {
                    Some(reason) => {
                        Self::RefusedParameter { parameter, value: read(&mut member, "value")?, reason }
                    }
                    None => Self::InvalidParameter { parameter, expected: read(&mut member, "expected")? },
                }
            }
            Some("size_exceeded") => {
                Self::SizeExceeded { limit: read(&mut member, "limit")?, size: read(&mut member, "size")? }
            }
            Some("timeout") => Self::Timeout { after: read(&mut member, "after_ms")? },
            Some("rate_limited") => Self::RateLimited { retry_after: read(&mut member, "retry_after_ms")? },
            _ => match read(&mut member, "code")? {
                Some(code) => Self::Custom {
                    code,
                    message: read(&mut member, "message")?,
                    data: read(&mut member, "data")?,
                },
                None => return Ok(None),
            },
        }))
    }
}

fn read<T: FromOption>(
    member: &mut impl FnMut(&'static str) -> OptionValue,
    name: &'static str,
) -> Result<T, OptionError> {
    T::from_option(member(name)).map_err(|error| error.under(PathStep::Name(name.into())))
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("Resource not found"),
            Self::InvalidParameter { parameter, expected } => {
                write!(f, "Invalid parameter {parameter}: expected {expected}")
            }
            Self::RefusedParameter { parameter, value, reason } => {
                write!(f, "Invalid parameter {parameter}: {} was refused: {reason}", Shown(value))
            }
            Self::AccessDenied => f.write_str("Access denied"),
            Self::InvalidUri => f.write_str("Invalid URI"),
            Self::Failed => f.write_str("Failed to read resource"),
            Self::SizeExceeded { .. } => f.write_str("Resource too large"),
            Self::Timeout { .. } => f.write_str("Timed out"),
            Self::RateLimited { .. } => f.write_str("Too many requests"),
            Self::InputRequired => f.write_str("Input from the client is required"),
            Self::InputDeclined => f.write_str("The required input was declined"),
            Self::Custom { message, .. } | Self::Foreign { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for ReadError {}

/// The failed operation, for the message of [`ReadError::Failed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPurpose {
    /// A read.
    Read,
    /// A completion.
    Complete,
    /// A list.
    List,
    /// A custom method.
    Call,
    /// A call of a tool.
    Tool,
    /// The request for a prompt.
    Prompt,
    /// The decision who may use resources.
    Access,
}

impl ErrorPurpose {
    /// The message for the peer. It names the failed operation and reveals nothing about the server.
    pub fn message(self, error: &ReadError) -> String {
        match (self, error) {
            (Self::Complete, ReadError::Failed) => "Failed to complete the argument".into(),
            (Self::List, ReadError::Failed) => "Failed to list resources".into(),
            (Self::Call, ReadError::Failed) => "Failed to answer the request".into(),
            (Self::Tool, ReadError::Failed) => "Failed to call the tool".into(),
            (Self::Prompt, ReadError::Failed) => "Failed to get the prompt".into(),
            (Self::Tool | Self::Prompt, ReadError::SizeExceeded { .. }) => "Result too large".into(),
            _ => error.to_string(),
        }
    }
}

/// Shows a peer's value in quotes, with control characters escaped, and shortened.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 80;
        match self.0.char_indices().nth(LONGEST) {
            Some((end, _)) => write!(f, "{:?}…", self.0.get(..end).unwrap_or_default()),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_value_is_shown_and_shortened() {
        let refused = |value: &str| {
            let parameter = "days".into();
            let reason = "must be at least 1".into();
            ReadError::RefusedParameter { parameter, value: value.into(), reason }.to_string()
        };
        assert_eq!(refused("0"), r#"Invalid parameter days: "0" was refused: must be at least 1"#);
        assert!(refused(&"é\n".repeat(10_000)).len() < 300);
    }

    /// Each operation has its own message where the details must stay on the server.
    #[test]
    fn what_failed_is_named() {
        let messages = [ErrorPurpose::Read, ErrorPurpose::Complete, ErrorPurpose::List, ErrorPurpose::Call]
            .map(|purpose| purpose.message(&ReadError::Failed));
        assert_eq!(
            messages,
            [
                "Failed to read resource",
                "Failed to complete the argument",
                "Failed to list resources",
                "Failed to answer the request"
            ]
        );
        assert_eq!(ErrorPurpose::List.message(&ReadError::NotFound), "Resource not found");
    }
}
