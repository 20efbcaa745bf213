//! The allow-list of a client (S-10 … S-12): globs over canonical URIs.
//!
//! Law: without an entry nothing is allowed. Every URI that is requested, and every one that a server returns, is
//! checked.

use super::ClientError;
use crate::guard::{Glob, Globs, Guard, InvalidGlob, Policy};
use crate::principal::Principal;
use mcp_resources_template::UriTemplate;
use mcp_resources_template::uri::{MAX_URI, normalize};
use std::sync::Arc;

/// The allow-list as it is written in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// Nothing: the key is missing (S-10).
    #[default]
    Nothing,
    /// Everything: `"*"`.
    Everything,
    /// The URIs that one of these globs matches (S-11).
    Globs(Vec<String>),
}

/// A compiled allow-list.
#[derive(Clone, Debug)]
pub struct Access {
    guard: Arc<Guard>,
    principal: Arc<Principal>,
}

impl Access {
    /// Compiles an allow-list.
    ///
    /// # Errors
    /// [`InvalidGlob`], with the text of the first invalid glob.
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

    /// Allows everything.
    pub fn everything() -> Self {
        Self::of(None)
    }

    fn of(globs: Option<Vec<String>>) -> Self {
        let policy = Policy { allow: globs.map(Globs), ..Policy::default() };
        // Each glob was parsed above, so this cannot fail; if it did, nothing would be allowed.
        let guard = Guard::new(&policy, true).unwrap_or_else(|_| Guard::closed());
        Self { guard: Arc::new(guard), principal: Principal::local() }
    }

    /// Whether everything is allowed.
    pub fn is_open(&self) -> bool {
        self.guard.is_open()
    }

    /// Whether `uri`, in any spelling, is allowed. `false` if it is not a URI.
    pub fn allows(&self, uri: &str) -> bool {
        normalize(uri, MAX_URI).is_ok_and(|normal| self.guard.permits(&self.principal, &normal))
    }

    /// Returns the canonical form of `uri` if it is allowed.
    ///
    /// # Errors
    /// [`ClientError::InvalidUri`] if it is not a URI, [`ClientError::AccessDenied`] if it is not allowed.
    pub fn check(&self, uri: &str) -> Result<String, ClientError> {
        let normal = normalize(uri, MAX_URI).map_err(|_| ClientError::InvalidUri { uri: uri.into() })?;
        match self.guard.permits(&self.principal, &normal) {
            true => Ok(normal.into_owned()),
            false => Err(ClientError::AccessDenied { uri: uri.into() }),
        }
    }

    /// Whether some expansion of `template` is allowed (S-12). A template that cannot be parsed might expand to
    /// anything, so it is allowed only if everything is.
    pub fn reaches(&self, template: &str) -> bool {
        self.is_open()
            || UriTemplate::parse(template)
                .is_ok_and(|template| self.guard.knows_template(&self.principal, &template))
    }
}
