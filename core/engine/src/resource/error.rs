//! Errors of registrations: mistakes in the server's code, reported at registration and never sent to a peer.

use std::fmt;

/// The reason for refusing a registration. The message names the field, the value and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationError {
    /// The text is not a URI.
    InvalidUri {
        /// The text as given.
        uri: String,
        /// The reason.
        reason: String,
    },
    /// The text is not a URI template.
    InvalidTemplate {
        /// The text as given.
        template: String,
        /// The position of the error, in bytes from the start.
        offset: usize,
        /// The reason.
        reason: String,
    },
    /// Two templates match the same URIs, so neither takes precedence.
    TemplateConflict {
        /// The template being registered.
        template: String,
        /// The one it conflicts with.
        with: String,
    },
    /// A resource with the same canonical URI is registered already.
    DuplicateResource {
        /// The URI as given.
        uri: String,
    },
    /// A tool with the same name is registered already.
    DuplicateTool {
        /// The name.
        name: String,
    },
    /// A prompt with the same name is registered already.
    DuplicatePrompt {
        /// The name.
        name: String,
    },
    /// A custom method is already declared, by the server's options or a mount.
    DuplicateMethod {
        /// Its name.
        method: String,
    },
    /// An extension is already declared, by the server's options or a mount.
    DuplicateExtension {
        /// Its identifier.
        id: String,
    },
    /// A field has a value that the protocol does not allow.
    InvalidField {
        /// The URI, template or name being registered.
        of: String,
        /// The field, by the protocol's name, with a path into it: `icons[0].src`.
        field: String,
        /// The value as given.
        value: String,
        /// The allowed values, in a short phrase.
        expected: String,
    },
    /// The guard's policy has an unknown member, or an invalid value.
    InvalidPolicy {
        /// The path of the member, such as `principals.alice.allow[2]`; empty for the whole policy.
        field: String,
        /// The reason, as one short sentence.
        reason: String,
    },
    /// A `_meta` key belongs to the protocol or to this library.
    ReservedMetaKey {
        /// The URI or template being registered.
        of: String,
        /// The key.
        key: String,
    },
    /// A provider cannot be mounted.
    Mount {
        /// The name of the mount; empty if it has none yet.
        mount: String,
        /// The reason, as one short sentence. Names the other mount if there is a conflict.
        reason: String,
    },
    /// A limit of [`Limits`](crate::limits::Limits) is reached.
    LimitReached {
        /// The name of the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUri { uri, reason } => write!(f, "invalid URI {}: {reason}", Quoted(uri)),
            Self::InvalidTemplate { template, offset, reason } => {
                write!(f, "invalid URI template {} at byte {offset}: {reason}", Quoted(template))
            }
            Self::TemplateConflict { template, with } => {
                write!(f, "the template {} matches the same URIs as {}", Quoted(template), Quoted(with))
            }
            Self::DuplicateResource { uri } => {
                write!(f, "a resource with the URI {} is registered already", Quoted(uri))
            }
            Self::DuplicateTool { name } => {
                write!(f, "a tool with the name {} is registered already", Quoted(name))
            }
            Self::DuplicatePrompt { name } => {
                write!(f, "a prompt with the name {} is registered already", Quoted(name))
            }
            Self::DuplicateMethod { method } => {
                write!(f, "the method {} is declared already", Quoted(method))
            }
            Self::DuplicateExtension { id } => write!(f, "the extension {} is declared already", Quoted(id)),
            Self::InvalidField { of, field, value, expected } => {
                write!(f, "{}: {field} is {}, expected {expected}", Quoted(of), Quoted(value))
            }
            Self::InvalidPolicy { field, reason } if field.is_empty() => write!(f, "guard: {reason}"),
            Self::InvalidPolicy { field, reason } => write!(f, "guard: {field}: {reason}"),
            Self::ReservedMetaKey { of, key } => write!(
                f,
                "{}: the _meta key {} is reserved, use a prefix of your own in reverse DNS, as com.example/{}",
                Quoted(of),
                Quoted(key),
                key.rsplit('/').next().unwrap_or("name"),
            ),
            Self::Mount { mount, reason } if mount.is_empty() => write!(f, "provider: {reason}"),
            Self::Mount { mount, reason } => write!(f, "{mount}: {reason}"),
            Self::LimitReached { what, limit } => write!(f, "the limit `{what}` of {limit} is reached"),
        }
    }
}

impl std::error::Error for RegistrationError {}

/// Shows a value in quotes, with control characters escaped, and shortened, so that an error is one readable line.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 120;
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_field_value_and_what_is_allowed() {
        let error = RegistrationError::InvalidField {
            of: "config://app".into(),
            field: "priority".into(),
            value: "1.5".into(),
            expected: "a number from 0 to 1".into(),
        };
        assert_eq!(error.to_string(), r#""config://app": priority is "1.5", expected a number from 0 to 1"#);
    }

    #[test]
    fn text_is_one_short_line_whatever_the_value() {
        let error = RegistrationError::InvalidUri { uri: "é\n".repeat(10_000), reason: "too odd".into() };
        let text = error.to_string();
        assert!(text.len() < 600 && !text.contains('\n'), "{text}");
    }
}
