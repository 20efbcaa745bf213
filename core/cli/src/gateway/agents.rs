//! The agents of a gateway over HTTP: their tokens, and their endpoints.
//!
//! Law: an agent that is not known here has no endpoint, whatever its token was.

use super::world::World;
use crate::error::Failed;
use mcp_resources_engine::http::DeniedToken;
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::transport::http::{HttpServer, StaticTokens, Verified, Verifier, Verifying};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The agents that may be; another file may change them.
#[derive(Clone)]
pub(super) struct GatewayAgents(Arc<RwLock<KnownAgents>>);

struct KnownAgents {
    tokens: StaticTokens,
    endpoints: HashMap<String, Arc<HttpServer>>,
}

impl GatewayAgents {
    pub(super) fn new(worlds: &[World]) -> Result<Self, Failed> {
        let known = KnownAgents { tokens: tokens(worlds)?, endpoints: HashMap::new() };
        let agents = Self(Arc::new(RwLock::new(known)));
        agents.replace(worlds)?;
        Ok(agents)
    }

    /// Takes other agents. Those that are gone lose their streams.
    pub(super) fn replace(&self, worlds: &[World]) -> Result<(), Failed> {
        let tokens = tokens(worlds)?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut known.endpoints);
        for world in worlds {
            let Some(agent) = &world.agent else { continue };
            let endpoint = match before.remove(agent) {
                Some(endpoint) => endpoint,
                None => world.server.http().build().map_err(|error| Failed::new(error.to_string()))?,
            };
            known.endpoints.insert(agent.clone(), endpoint);
        }
        known.tokens = tokens;
        before.values().for_each(|endpoint| endpoint.shutdown());
        Ok(())
    }

    /// The endpoint of the agent that a token represents.
    pub(super) fn endpoint(&self, principal: &Principal) -> Option<Arc<HttpServer>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.endpoints.get(principal.id()).cloned()
    }

    pub(super) fn shutdown(&self) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.endpoints.values().for_each(|endpoint| endpoint.shutdown());
    }

    fn find(&self, token: &str) -> Result<Verified, DeniedToken> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).tokens.find(token)
    }
}

impl Verifier for GatewayAgents {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(std::future::ready(self.find(token)))
    }
}

fn tokens(worlds: &[World]) -> Result<StaticTokens, Failed> {
    let known = worlds.iter().filter_map(|world| world.agent.as_deref().zip(world.token.as_deref()));
    let tokens: Vec<_> = known.map(|(agent, token)| (token, Verified::new(agent))).collect();
    StaticTokens::new(tokens).map_err(|_| {
        Failed::usage(
            "a token of an agent has characters that no bearer token has: use letters, digits and -._~+/",
        )
    })
}
