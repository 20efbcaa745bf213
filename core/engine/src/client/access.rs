//! What a client may see of a server (S-10 … S-12): an allow-list of globs over canonical URIs.
//!
//! Law: without an entry nothing is allowed. Every URI that is asked for, and every one that comes back, is checked.

use super::ClientError;
use crate::guard::{Glob, Globs, Guard, InvalidGlob, Policy};
use crate::principal::Principal;
use mcp_resources_template::UriTemplate;
use mcp_resources_template::uri::{MAX_URI, normalize};
use std::sync::Arc;

/// What a configuration allows, as it is written there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// Nothing: the key is missing (S-10).
    #[default]
    Nothing,
    /// Everything: `"*"`.
    Everything,
    /// What one of these globs matches (S-11).
    Globs(Vec<String>),
}

/// An allow-list that is ready to be asked.
#[derive(Clone, Debug)]
pub struct Access {
    guard: Arc<Guard>,
    principal: Arc<Principal>,
}

impl Access {
    /// Compiles what is allowed.
    ///
    /// # Errors
    /// [`InvalidGlob`] and the text of the first glob that is none.
    pub fn new(allowed: &Allowed) -> Result<Self, (String, InvalidGlob)> {
        let globs = match allowed {
            Allowed::Everything => None,
            Allowed::Nothing => Some(Vec::new()),
            Allowed::Globs(globs) => Some(globs.clone()),
        };
        for glob in globs.iter().flatten() {
            Glob::parse(glob).map_err(|error| (glob.clone(), error))?;
        }
        Ok(Self::of(globs))
    }

    /// Everything is allowed.
    pub fn everything() -> Self {
        Self::of(None)
    }

    fn of(globs: Option<Vec<String>>) -> Self {
        let policy = Policy { allow: globs.map(Globs), ..Policy::default() };
        // Each glob was parsed before, and a policy has nothing else that can be wrong; if it had, nothing would be allowed.
        let guard = Guard::new(&policy, true).unwrap_or_else(|_| Guard::closed());
        Self { guard: Arc::new(guard), principal: Principal::local() }
    }

    /// Whether everything is allowed.
    pub fn is_open(&self) -> bool {
        self.guard.is_open()
    }

    /// Whether `uri`, in any spelling, is allowed. What is not a URI is not.
    pub fn allows(&self, uri: &str) -> bool {
        normalize(uri, MAX_URI).is_ok_and(|normal| self.guard.permits(&self.principal, &normal))
    }

    /// The canonical form of `uri`, if it is allowed.
    ///
    /// # Errors
    /// [`ClientError::InvalidUri`] for what is not a URI, [`ClientError::AccessDenied`] for what is not allowed.
    pub fn check(&self, uri: &str) -> Result<String, ClientError> {
        let normal = normalize(uri, MAX_URI).map_err(|_| ClientError::InvalidUri { uri: uri.into() })?;
        match self.guard.permits(&self.principal, &normal) {
            true => Ok(normal.into_owned()),
            false => Err(ClientError::AccessDenied { uri: uri.into() }),
        }
    }

    /// Whether some expansion of a template is allowed (S-12). A template that cannot be parsed could lead anywhere: it is
    /// allowed where everything is.
    pub fn reaches(&self, template: &str) -> bool {
        self.is_open()
            || UriTemplate::parse(template)
                .is_ok_and(|template| self.guard.knows_template(&self.principal, &template))
    }
}
