//! The words of a client, for `mcp-resources/testing`.

use crate::error::unusable;
use crate::options::read;
use crate::server::number;
use mcp_resources_engine::client::{self, Ask, Heard};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;

/// See the module.
#[napi]
pub struct Words(RefCell<client::Words>);

/// A line of the server's.
#[napi(object, object_from_js = false)]
pub struct HeardFields {
    /// What it is.
    pub sort: &'static str,
    /// The request that it belongs to.
    pub id: Option<f64>,
    /// Its content as JSON text.
    pub body: String,
}

#[napi]
impl Words {
    /// A client of one revision with its capabilities as JSON text.
    #[napi(catch_unwind, constructor)]
    pub fn new(date: String, capabilities: String) -> Result<Self> {
        Ok(Self(RefCell::new(client::Words::new(read(date)?, &capabilities))))
    }

    /// A request: its id, and a line.
    #[napi(catch_unwind)]
    pub fn request(&self, ask: String, params: String, meta: String) -> Result<(f64, Buffer)> {
        let ask = Ask::named(&ask).ok_or_else(|| unusable(format!("{ask:?} is no method")))?;
        let (id, line) = self.0.borrow_mut().request(ask, &params, &meta);
        Ok((number(id), line.into()))
    }

    /// The end of a handshake.
    #[napi(catch_unwind)]
    pub fn initialized() -> Buffer {
        client::Words::initialized().into()
    }

    /// Takes a request back.
    #[napi(catch_unwind)]
    pub fn cancel(id: i64) -> Buffer {
        client::Words::cancel(u64::try_from(id).unwrap_or_default()).into()
    }

    /// What a line of the server's is, what it belongs to, and its content; `null` for what is no message.
    #[napi(catch_unwind)]
    pub fn sort(line: &[u8]) -> Option<HeardFields> {
        let heard = Heard::sort(line)?;
        Some(HeardFields { sort: heard.sort.as_str(), id: heard.id.map(number), body: heard.body })
    }
}
