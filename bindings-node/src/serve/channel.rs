//! One client of a server over a pipe, for `js/driver.ts`: the functions that the event loop calls.

use crate::calls::answers::Answers;
use crate::calls::driver::Drive;
use crate::calls::quick::function;
use crate::serve::embedded::Embedding;
use crate::serve::link::{ClientOf, Link};
use crate::serve::server::Server;
use crate::values::spelling::number;
use mcp_resources_runtime::transport::{PipeSender, Stdio};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::os::fd::IntoRawFd;
use std::rc::Rc;

/// Maximum size of output taken at once, if the loop writes it.
const TAKEN: usize = 1 << 20;

/// For the input of one channel.
#[napi(object, object_from_js = false)]
pub struct QuickInput<'env> {
    /// Handles the bytes in the buffer, of this number: answers requests, starts handlers, writes output.
    #[napi(ts_type = "(count: number) => void")]
    pub received: Function<'env, (), ()>,
    /// Writes what waits.
    #[napi(ts_type = "() => void")]
    pub flush: Function<'env, (), ()>,
}

/// One client of a server over a pipe.
#[napi]
pub struct Channel {
    pub(crate) link: Rc<Link>,
}

/// The sender of a client in the same process.
#[napi(object, object_to_js = false)]
pub struct SenderFields {
    /// Its identity; empty for the local process.
    pub principal: String,
    /// The scopes of its token.
    pub scopes: Vec<String>,
    /// The claims of its token, as JSON text.
    pub claims: Option<String>,
    /// The headers of its requests.
    pub headers: Vec<(String, String)>,
}

#[napi]
impl Channel {
    /// Connects a client. `driver` is the number that functions are called with, `drive` is told what the event loop must
    /// do, as a `LoopTask`.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        server: &Server,
        driver: u32,
        #[napi(ts_arg_type = "(task: LoopTask, value: number, text: string | null) => void")] drive: Drive,
        stdio: bool,
        delivers: bool,
        sender: Option<SenderFields>,
        before: Option<&Embedding>,
    ) -> Result<Self> {
        let stdio = if stdio { Some(Stdio::take().map_err(system)?) } else { None };
        let sender = sender.map_or_else(PipeSender::default, |sender| {
            let SenderFields { principal, scopes, claims, headers } = sender;
            PipeSender::new(&principal, scopes, claims.map(Into::into), &headers)
        });
        let from = match before {
            Some(embedding) => ClientOf::Other(embedding.0.core.clone()),
            None => ClientOf::Engine(sender),
        };
        let link = Link::new(server.state.clone(), driver, drive, stdio, delivers, from)?;
        Ok(Self { link })
    }

    /// Takes the lines that wait for the SDK's server, each with its end.
    #[napi(catch_unwind)]
    pub fn lines(&self) -> Result<String> {
        let lines = self.link.pump.take_lines(&*self.link)?;
        Ok(String::from_utf8(lines)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Sends lines of the SDK's server. `false` if the client should take what waits before the next ones: then the
    /// driver's output is over.
    #[napi(catch_unwind)]
    pub fn send(&self, lines: String) -> Result<bool> {
        self.link.pump.send(&*self.link, lines.as_bytes())?;
        Ok(!self.link.pump.pipe().is_full())
    }

    /// The SDK's server has ended, and answers nothing more.
    #[napi(catch_unwind)]
    pub fn left(&self) -> Result<()> {
        self.link.pump.left(&*self.link)
    }

    /// The object through which handlers answer.
    #[napi(catch_unwind, getter)]
    pub fn answers(&self) -> Answers {
        Answers(self.link.clone())
    }

    /// A descriptor to read from, which the caller closes.
    #[napi(catch_unwind)]
    pub fn open_input(&self) -> Result<i32> {
        let input = self.link.pump.with_stdio(|stdio| stdio.input_fd().try_clone_to_owned());
        let input = input.ok_or_else(|| Error::from_reason("no standard input"))?;
        Ok(input.map_err(system)?.into_raw_fd())
    }

    /// A descriptor to write to, which the caller closes.
    #[napi(catch_unwind)]
    pub fn open_output(&self) -> Result<i32> {
        let output = self.link.pump.with_stdio(|stdio| stdio.output_fd().try_clone_to_owned());
        let output = output.ok_or_else(|| Error::from_reason("no standard output"))?;
        Ok(output.map_err(system)?.into_raw_fd())
    }

    /// Takes input that is not in the shared buffer.
    #[napi(catch_unwind)]
    pub fn feed(&self, chunk: &[u8]) -> Result<()> {
        self.link.pump.feed(&*self.link, chunk)
    }

    /// The end of input.
    #[napi(catch_unwind)]
    pub fn end(&self) -> Result<()> {
        self.link.pump.end(&*self.link)
    }

    /// No further input is wanted.
    #[napi(catch_unwind)]
    pub fn stop(&self) -> Result<()> {
        self.link.pump.stop(&*self.link)
    }

    /// Called when the taken output has been written.
    #[napi(catch_unwind)]
    pub fn drained(&self) -> Result<()> {
        self.link.pump.writable(&*self.link)
    }

    /// It is time.
    #[napi(catch_unwind)]
    pub fn timer(&self) -> Result<()> {
        self.link.pump.timer(&*self.link)
    }

    /// Cancels the requests in flight.
    #[napi(catch_unwind)]
    pub fn cancel_all(&self) -> Result<()> {
        self.link.pump.cancel_all(&*self.link)
    }

    /// Ends the connection.
    #[napi(catch_unwind)]
    pub fn close(&self) -> Result<()> {
        self.link.close()
    }

    /// Takes output: a part if the loop writes it; all of it in the same process, and any that follows.
    #[napi(catch_unwind)]
    pub fn take(&self) -> Result<Buffer> {
        let pump = &self.link.pump;
        let is_stdio = pump.with_stdio(|_| ()).is_some();
        if is_stdio { Ok(pump.take_part(TAKEN).into()) } else { pump.take(&*self.link).map(Into::into) }
    }

    /// Appends waiting notifications, up to about `room` bytes.
    #[napi(catch_unwind)]
    pub fn deliver(&self, room: u32) {
        self.link.pump.pipe().deliver_up_to(room as usize);
    }

    /// The number of requests that wait for a handler.
    #[napi(catch_unwind, getter)]
    pub fn in_flight(&self) -> f64 {
        number(self.link.pump.pipe().in_flight() as u64)
    }

    /// The number of bytes that wait to be written.
    #[napi(catch_unwind, getter)]
    pub fn unwritten(&self) -> f64 {
        number(self.link.pump.pipe().pending() as u64)
    }

    /// The functions for this channel that are called with each message.
    #[napi]
    pub fn quick<'env>(&self, env: &'env Env, buffer: Uint8Array) -> Result<QuickInput<'env>> {
        let link = &self.link;
        Ok(QuickInput {
            received: function(env, link, "received", move |link, given| {
                let count: u32 = given.get(0)?;
                link.pump.feed(&**link, buffer.get(..count as usize).unwrap_or_default())
            })?,
            flush: function(env, link, "flush", |link, _| link.pump.flush(&**link))?,
        })
    }
}

fn system(error: std::io::Error) -> Error {
    Error::from_reason(error.to_string())
}
