//! The compiled part of the client of `mcp-resources/testing`.

use crate::values::error::unusable;
use crate::values::options::read;
use crate::values::spelling::number;
use mcp_resources_engine::client::{self, ServerMessage};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;

/// A client for tests.
#[napi]
pub struct TestClient(RefCell<client::TestClient>);

/// A message of the server.
#[napi(object, object_from_js = false)]
pub struct MessageFields {
    /// Its kind.
    pub kind: &'static str,
    /// The request that it belongs to.
    pub id: Option<f64>,
    /// Its content as JSON text.
    pub body: String,
}

#[napi]
impl TestClient {
    /// A client of one revision with its capabilities as JSON text.
    #[napi(catch_unwind, constructor)]
    pub fn new(date: String, capabilities: String) -> Result<Self> {
        Ok(Self(RefCell::new(client::TestClient::new(read(date)?, &capabilities))))
    }

    /// The id of the handshake, if the revision has one.
    #[napi(catch_unwind, getter)]
    pub fn handshake(&self) -> Option<f64> {
        self.0.borrow().handshake().map(number)
    }

    /// Sends a request: its id.
    #[napi(catch_unwind)]
    pub fn send(&self, ask: String, params: String, meta: String) -> Result<f64> {
        let method = client::TestClient::method(&ask);
        let method = method.ok_or_else(|| unusable(format!("{ask:?} is no method")))?;
        let sent = self.0.borrow_mut().send(method, &params, &meta);
        sent.map(number).map_err(|error| unusable(error.to_string()))
    }

    /// Takes a request back.
    #[napi(catch_unwind)]
    pub fn cancel(&self, id: i64) {
        self.0.borrow_mut().cancel(u64::try_from(id).unwrap_or_default());
    }

    /// The bytes to be given to the server.
    #[napi(catch_unwind)]
    pub fn output(&self) -> Buffer {
        self.0.borrow_mut().output().into()
    }

    /// Takes bytes from the server, and returns the messages in them.
    #[napi(catch_unwind)]
    pub fn received(&self, bytes: &[u8]) -> Vec<MessageFields> {
        let mut client = self.0.borrow_mut();
        client.received(bytes);
        let fields = |message: ServerMessage| MessageFields {
            kind: message.kind.as_str(),
            id: message.id.map(number),
            body: message.body,
        };
        client.take_messages().into_iter().map(fields).collect()
    }
}
