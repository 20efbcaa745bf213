//! The guard outside of a server: applies a policy to URIs.

use crate::values::error::{invalid_template, invalid_uri, registration};
use mcp_resources_engine::guard::{Decision, Guard as Core, Policy};
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::transport::{load_policy, read_policy};
use mcp_resources_template::UriTemplate;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::sync::Arc;

/// A parsed policy.
#[napi]
pub struct Guard(Core);

/// A policy: one of the two.
#[napi(object, object_to_js = false)]
pub struct PolicySource {
    /// The text of a JSON object.
    pub json: Option<String>,
    /// The path of a file.
    pub file: Option<String>,
}

/// The sender of a request.
#[napi(object, object_to_js = false)]
pub struct Requester {
    /// The identity. Default: the local process.
    pub principal: Option<String>,
    /// The scopes of its token.
    pub scopes: Option<Vec<String>>,
    /// Its groups.
    pub groups: Option<Vec<String>>,
}

#[napi]
impl Guard {
    /// Compiles a policy.
    #[napi(catch_unwind, constructor)]
    pub fn new(env: &Env, policy: PolicySource, explicit_denials: bool) -> Result<Self> {
        let guard = Core::new(&policy.read(env)?, explicit_denials);
        guard.map(Self).map_err(|error| registration(env, &error.into(), None))
    }

    /// The decision about a URI, in any spelling.
    #[napi(catch_unwind, ts_return_type = "'allow' | 'hidden' | 'denied' | 'missing_scope'")]
    pub fn decide(&self, env: &Env, uri: String, requester: Requester) -> Result<&'static str> {
        Ok(self.decision(env, &uri, requester)?.as_str())
    }

    /// The scopes that are missing where nothing else is.
    #[napi(catch_unwind)]
    pub fn missing_scopes(&self, env: &Env, uri: String, requester: Requester) -> Result<Vec<String>> {
        Ok(self.decision(env, &uri, requester)?.missing_scopes())
    }

    /// Whether a template is listed.
    #[napi(catch_unwind)]
    pub fn knows_template(&self, env: &Env, template: String, requester: Requester) -> Result<bool> {
        let template = UriTemplate::parse(&template).map_err(|error| invalid_template(env, &error))?;
        Ok(self.0.knows_template(&requester.principal(), &template))
    }
}

impl Guard {
    fn decision(&self, env: &Env, uri: &str, requester: Requester) -> Result<Decision<'_>> {
        self.0.decide_uri(&requester.principal(), uri).map_err(|error| invalid_uri(env, &error))
    }
}

impl PolicySource {
    /// The core's policy.
    pub(crate) fn read(self, env: &Env) -> Result<Policy> {
        let policy = match &self.file {
            Some(path) => load_policy(path),
            None => read_policy(self.json.as_deref().unwrap_or("{}")),
        };
        policy.map_err(|error| registration(env, &error.into(), None))
    }
}

impl Requester {
    fn principal(self) -> Arc<Principal> {
        Principal::new(self.principal.unwrap_or_default())
            .with_scopes(self.scopes.unwrap_or_default())
            .with_groups(self.groups.unwrap_or_default())
    }
}
