//! The key `guard` for a server that is made of no document: the rules, the limits and the audit log of a gateway.
//!
//! Law: it is read as `serve` reads it, with the same errors.

use crate::document::GuardSection;
use mcp_resources_engine::guard::{Guard, Policy};
use mcp_resources_engine::limits::Limits;
use mcp_resources_runtime::transport::AuditFile;
use serde_json::Value;
use std::path::Path;

/// The section `guard`, checked and opened.
#[derive(Debug, Default)]
pub struct OpenedGuard {
    /// The rules.
    pub policy: Policy,
    /// The limits.
    pub limits: Limits,
    /// The sink of the audit log, if there is one.
    pub audit: Option<AuditFile>,
}

impl OpenedGuard {
    /// Checks the value of `guard`. Relative paths begin at `folder`. `opens`: whether the audit log is opened too.
    ///
    /// # Errors
    /// One sentence that names the key.
    pub fn open(value: &Value, folder: &Path, opens: bool) -> Result<Self, String> {
        if value.get("http").is_some_and(|http| !http.is_null()) {
            return Err("guard.http: a gateway has no options of HTTP; leave it out".into());
        }
        let section = GuardSection::parse(value)?;
        Guard::new(&section.policy, false).map_err(|error| format!("guard: {error}"))?;
        let audit = section.audit.filter(|_| opens).map(|audit| audit.open(folder)).transpose()?;
        Ok(Self { policy: section.policy, limits: section.limits, audit })
    }
}
