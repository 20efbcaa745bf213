//! The operator's credentials for Google Drive: JSON in a file, or in a variable of the environment.
//!
//! Law: no message holds any of it. It is read again for each access token, so a file can be replaced while it is served.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};
use mcp_resources_provider_kit::options;
use serde_json::Value;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MEMBERS: [&str; 3] = ["client_id", "client_secret", "refresh_token"];
/// The permissions that a sign-in must grant: reading Drive, and those that `gcloud` asks for in addition.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/drive.readonly";
const CLOUD: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The largest file, in bytes.
const LARGEST: u64 = 64 << 10;

/// The location of the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
}

/// The contents of the credentials.
pub(crate) struct Secrets {
    /// The named values that are sent for an access token.
    pub(crate) form: [(&'static str, String); 3],
    /// The project that calls are counted for; without it, that of the client.
    pub(crate) quota_project: Option<String>,
}

impl Credentials {
    /// Makes a relative path begin at `folder`.
    pub(crate) fn at(&mut self, folder: &Path) {
        if let Self::File(file) = self {
            *file = folder.join(&*file);
        }
    }

    /// # Errors
    /// A sentence with the expected location, the problem, and the fix.
    pub(crate) fn read(&self) -> Result<Secrets, String> {
        let text = match self {
            Self::File(file) => match read_file(file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(format!("{self} does not exist; name the file, or sign in again"));
                }
                Err(_) => {
                    return Err(format!("{self} cannot be read; let this process read it, or name another"));
                }
            },
            Self::Env(name) => match std::env::var(name) {
                Ok(text) => text,
                Err(_) => return Err(format!("{self} is not set to a text; set it, and start again")),
            },
        };
        let value: Value = serde_json::from_str(&text)
            .map_err(|_| format!("{self} is no JSON; it needs {}", MEMBERS.join(", ")))?;
        if value.get("type").and_then(Value::as_str) == Some("service_account") {
            return Err(format!("{self} is the key of a service account; sign in as a user instead"));
        }
        if ["installed", "web"].iter().any(|kind| value.get(kind).is_some()) {
            return Err(format!(
                "{self} is what the console gives for a program, not what a sign-in gives; sign in with it: \
                 gcloud auth application-default login --client-id-file=FILE --scopes={SCOPE},{CLOUD}"
            ));
        }
        let mut form = MEMBERS.map(|name| (name, String::new()));
        for (name, secret) in &mut form {
            let text = value.get(*name).and_then(Value::as_str).filter(|text| !text.is_empty());
            *secret =
                text.ok_or_else(|| format!("{self} has no {name}; sign in again, and replace it"))?.into();
        }
        let quota_project = value.get("quota_project_id").and_then(Value::as_str);
        Ok(Secrets { form, quota_project: quota_project.map(str::to_owned) })
    }
}

/// Reads a file that is one: a pipe without a writer would be opened for ever, and a device has no end.
fn read_file(file: &Path) -> std::io::Result<String> {
    let wrong = |what| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    if !std::fs::metadata(file)?.is_file() {
        return wrong("it is no file");
    }
    // It may be another one by now.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !opened.metadata()?.is_file() {
        return wrong("it is no file");
    }
    let mut text = String::new();
    match opened.take(LARGEST + 1).read_to_string(&mut text)? as u64 > LARGEST {
        true => wrong("it is too large"),
        false => Ok(text),
    }
}

impl FromOption for Credentials {
    const EXPECTED: &'static str = "a file, or {env: NAME}";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::Text(file) if !file.is_empty() => Ok(Self::File(file.into())),
            OptionValue::Members(members) => match &*members {
                [(env, OptionValue::Text(name))] if env == "env" => Ok(Self::Env(name.clone())),
                // A value may be a secret in the wrong place.
                _ => Err(OptionError::sentence("rag: credentials are neither a file nor `{env: NAME}`")),
            },
            other => Err(OptionError::wrong_type(&other, Self::EXPECTED)),
        }
    }
}

/// Shows the location, for messages.
impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "the file of credentials {}", file.display()),
            Self::Env(name) => write!(f, "the variable {} for the credentials", options::variable(name)),
        }
    }
}
