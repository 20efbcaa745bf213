//! The bus for servers of other libraries.

use crate::serve::audit;
use crate::values::error::raise;
use crate::values::options::{self, PlainValue};
use mcp_resources_bus::from_url;
use mcp_resources_engine::seal::SealKey;
use mcp_resources_runtime::bus::{BusClient, ServerEvent, ServerEventKind};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// The changes of all processes of a server.
#[napi]
pub struct SharedEvents {
    /// `None` after the end.
    client: Option<BusClient>,
}

/// An event of the SDK.
#[napi(object)]
pub struct SharedEvent {
    /// The kind of the change.
    pub kind: String,
    /// Of a resource.
    pub uri: Option<String>,
}

/// Messages of other processes.
#[napi(object)]
pub struct HeardEvents {
    /// Each once.
    pub events: Vec<SharedEvent>,
    /// For the log.
    pub lines: Vec<String>,
}

#[napi]
impl SharedEvents {
    /// Calls `bell` on the event loop when `take` has something.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        env: Env,
        url: String,
        name: String,
        keys: PlainValue,
        bell: Function<'_, (), ()>,
    ) -> Result<Self> {
        let registration = |text: String| raise(&env, "RegistrationError", text, &[]);
        let secrets = options::read::<Vec<SealKey>>(keys)?;
        let bus = from_url(&url).map_err(|error| registration(error.to_string()))?;
        let client = BusClient::start(bus, &name, secrets, audit::watcher(&bell)?);
        Ok(Self { client: Some(client.map_err(|error| registration(error.to_string()))?) })
    }

    /// Tells the other processes of an event. `false` for an unknown kind.
    #[napi(catch_unwind)]
    pub fn announce(&self, kind: String, uri: Option<String>) -> bool {
        let Some(kind) = ServerEventKind::parse(&kind) else { return false };
        if let Some(client) = &self.client {
            client.announce(ServerEvent { kind, uri });
        }
        true
    }

    /// Takes what other processes have told.
    #[napi(catch_unwind)]
    pub fn take(&self) -> HeardEvents {
        let heard = self.client.as_ref().map(BusClient::take).unwrap_or_default();
        let event = |one: ServerEvent| SharedEvent { kind: one.kind.word().to_owned(), uri: one.uri };
        HeardEvents { events: heard.events.into_iter().map(event).collect(), lines: heard.lines }
    }

    /// Leaves the bus, after all events were sent.
    #[napi(catch_unwind)]
    pub fn stop(&mut self) {
        drop(self.client.take());
    }
}
