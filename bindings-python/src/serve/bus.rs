//! The bus for servers of other libraries.

use crate::values::error::raise;
use crate::values::lock::lock;
use crate::values::options::{convert, refused};
use mcp_resources_bus::from_url;
use mcp_resources_engine::option::FromOption;
use mcp_resources_engine::seal::SealKey;
use mcp_resources_runtime::bus::{BusClient, HeardEvents, ServerEvent, ServerEventKind};
use mcp_resources_runtime::transport::ConsumerSignal;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// The changes of all processes of a server.
#[pyclass(frozen, weakref, module = "mcp_resources._core")]
pub struct SharedEvents {
    /// `None` after the end.
    client: Mutex<Option<Arc<BusClient>>>,
    signal: Arc<ConsumerSignal>,
}

/// The names of the classes of events with their URIs, and lines for the log.
type Heard = (Vec<(&'static str, Option<String>)>, Vec<String>);

#[pymethods]
impl SharedEvents {
    #[new]
    fn new(py: Python<'_>, url: &str, name: &str, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        let registration = |text: String| raise(py, "Registration", (text,));
        let read = Vec::<SealKey>::from_option(convert(keys)?);
        let secrets = read.map_err(|error| refused("keys", keys, &error))?;
        let bus = from_url(url).map_err(|error| registration(error.to_string()))?;
        let signal = Arc::<ConsumerSignal>::default();
        let client = BusClient::start(bus, name, secrets, signal.clone().into());
        let client = client.map_err(|error| registration(error.to_string()))?;
        Ok(Self { client: Mutex::new(Some(Arc::new(client))), signal })
    }

    /// Tells the other processes of an event: the name of its class, and its URI.
    fn announce(&self, kind: &str, uri: Option<String>) -> PyResult<()> {
        let kind = ServerEventKind::parse(kind).ok_or_else(|| {
            let text = format!("{kind} is no event of the SDK, expected one such as ResourceUpdated(uri)");
            PyTypeError::new_err(text)
        })?;
        if let Some(client) = self.client() {
            client.announce(ServerEvent { kind, uri });
        }
        Ok(())
    }

    /// Waits for the next events, and lines for the log. `None` ends the thread.
    fn next(&self, py: Python<'_>) -> Option<Heard> {
        loop {
            let HeardEvents { events, lines } = self.client().map(|client| client.take()).unwrap_or_default();
            if !(events.is_empty() && lines.is_empty()) {
                let event = |one: ServerEvent| (one.kind.class_name(), one.uri);
                return Some((events.into_iter().map(event).collect(), lines));
            }
            if !py.detach(|| self.signal.wait()) {
                return None;
            }
        }
    }

    /// Leaves the bus, after all events were sent.
    fn stop(&self, py: Python<'_>) {
        let client = lock(&self.client).take();
        self.signal.close();
        py.detach(|| drop(client));
    }

    /// Called after a fork of a process that had threads.
    fn forked(&self) {
        self.client().iter().for_each(|client| client.forked());
    }
}

impl SharedEvents {
    fn client(&self) -> Option<Arc<BusClient>> {
        lock(&self.client).clone()
    }
}
