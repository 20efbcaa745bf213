//! The use of TLS with Postgres.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};

/// The use of TLS with Postgres, as libpq names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS if the server refuses a connection without it.
    Allow,
    /// TLS if the server has it; its certificate is not verified.
    #[default]
    Prefer,
    /// TLS; the certificate is verified as with `VerifyCa` if a file of authorities is named, and otherwise not.
    Require,
    /// TLS with a certificate of an authority of the named file.
    VerifyCa,
    /// TLS with a certificate for the name of the host, of an authority of the named file or of the system.
    VerifyFull,
}

impl SslMode {
    pub(super) const WORDS: &'static [&'static str] =
        &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
    const ALL: [Self; 6] =
        [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl FromOption for SslMode {
    const EXPECTED: &'static str = "disable, allow, prefer, require, verify-ca or verify-full";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match &value {
            OptionValue::Text(word) => Self::ALL
                .into_iter()
                .find(|mode| mode.as_str() == word)
                .ok_or_else(|| OptionError::not_allowed(&value, Self::EXPECTED)),
            _ => Err(OptionError::wrong_type(&value, Self::EXPECTED)),
        }
    }
}
