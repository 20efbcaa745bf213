//! A client of servers, for `js/client.ts`. It works on a thread of its own and queues its events for the event loop.
//!
//! Law: the core makes all decisions about servers. This module numbers calls and passes on their events.

mod arrival;

use crate::calls::quick::function;
use crate::calls::woken::Woken;
use crate::values::error::raise;
use crate::values::options::{PlainValue, read};
use crate::values::spelling::whole;
use arrival::Arrival;
use mcp_resources_client::queue::{
    ClientEvent, ClientQueue, ClientStream, QueuedCallOptions, QueuedCompletion,
};
use mcp_resources_client::{ConfigError, runtime};
use mcp_resources_engine::client::ClientError;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

/// A client of servers.
#[napi]
pub struct NativeClient {
    calls: Rc<Calls>,
    socket: RefCell<Option<OwnedFd>>,
}

/// The options of one call.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ScopeFields {
    /// The only server to ask.
    pub server: Option<String>,
    /// Maximum time for the request, in milliseconds.
    pub timeout: Option<f64>,
    /// Whether its progress is reported.
    pub progress: Option<bool>,
}

/// The functions for each read.
#[napi(object, object_from_js = false)]
pub struct QuickClient<'env> {
    /// Reads a resource; `whole` is whether all that contents have is wanted.
    #[napi(ts_type = "(call: number, uri: string, whole: boolean, scope?: ScopeFields) => void")]
    pub read: Function<'env, (), ()>,
    /// Takes the events.
    #[napi(ts_type = "() => Arrival[]")]
    pub take: Function<'env, (), Vec<Arrival>>,
    /// Takes this number of bytes of a loan, which are in the buffer, and then the events.
    #[napi(ts_type = "(loan: number, count: number) => Arrival[]")]
    pub received: Function<'env, (), Vec<Arrival>>,
}

/// The client, and what wakes the loop for it.
pub(crate) struct Calls {
    queue: ClientQueue,
    wake_loop: Arc<Woken>,
}

#[napi]
impl NativeClient {
    /// Starts nothing yet. `look` is called on the loop when something has arrived; that does not keep the process alive.
    #[napi(catch_unwind, constructor)]
    pub fn new(env: &Env, fields: PlainValue, look: Function<'_, (), ()>) -> Result<Self> {
        let runtime = runtime().map_err(|error| Error::from_reason(error.to_string()))?;
        let wake_loop = Woken::new(&look)?;
        let woken = wake_loop.clone();
        let opened = ClientQueue::open(read(fields)?, runtime, move || woken.schedule());
        let wrong = |error: ConfigError| raise(env, "ConfigError", error.message, &[]);
        let (queue, socket) = opened.map_err(wrong)?;
        Ok(Self { calls: Rc::new(Calls { queue, wake_loop }), socket: RefCell::new(socket) })
    }

    /// The functions that are called most. `buffer` is for what the loop reads of servers, if `reads` says that it can.
    #[napi]
    pub fn quick<'env>(&self, env: &'env Env, buffer: Uint8Array, reads: bool) -> Result<QuickClient<'env>> {
        if reads {
            self.calls.queue.read_on_loop();
        }
        Ok(QuickClient {
            read: function(env, &self.calls, "read", |calls, given| {
                let (call, uri): (f64, String) = (given.get(0)?, given.get(1)?);
                let whole: bool = given.get(2)?;
                let scope = if given.length() > 3 { given.get(3)? } else { None };
                calls.queue.read(numbered(call), uri, whole, options(scope));
                Ok(())
            })?,
            take: function(env, &self.calls, "take", |calls, _| Ok(calls.take()))?,
            received: function(env, &self.calls, "received", move |calls, given| {
                let (loan, count): (f64, u32) = (given.get(0)?, given.get(1)?);
                calls.queue.received(numbered(loan), buffer.get(..count as usize).unwrap_or_default());
                Ok(calls.take())
            })?,
        })
    }

    /// A descriptor of the end of the pipe that a server in this process speaks on; the caller closes it.
    #[napi(catch_unwind)]
    pub fn open_socket(&self) -> Option<i32> {
        self.socket.take().map(IntoRawFd::into_raw_fd)
    }

    /// The names of the servers.
    #[napi(catch_unwind, getter)]
    pub fn servers(&self) -> Vec<String> {
        self.calls.queue.client().servers().iter().map(|name| name.as_ref().into()).collect()
    }

    /// The servers that could not be asked for the last list, each with its error.
    #[napi(catch_unwind, getter)]
    pub fn failures(&self) -> Vec<Arrival> {
        let failed = |(name, error): (Arc<str>, ClientError)| {
            let mut arrival = Arrival::from_event(0, ClientEvent::Failed(error));
            arrival.server = Some(name.as_ref().into());
            arrival
        };
        self.calls.queue.client().failures().into_iter().map(failed).collect()
    }

    /// Values for a variable of a template.
    #[napi(catch_unwind)]
    pub fn complete(
        &self,
        call: f64,
        template: String,
        variable: String,
        value: String,
        context: Vec<(String, String)>,
        scope: Option<ScopeFields>,
    ) {
        let what = QueuedCompletion { template, variable, value };
        self.calls.queue.complete(numbered(call), what, context, options(scope));
    }

    /// Makes a request with any method; `params` is JSON text.
    #[napi(catch_unwind)]
    pub fn request(&self, call: f64, method: String, params: String, scope: Option<ScopeFields>) {
        self.calls.queue.request(numbered(call), method, params, options(scope));
    }

    /// Asks for a server's description of itself.
    #[napi(catch_unwind)]
    pub fn about(&self, call: f64, scope: Option<ScopeFields>) {
        self.calls.queue.about(numbered(call), options(scope));
    }

    /// A list: of templates, or of resources.
    #[napi(catch_unwind)]
    pub fn list(&self, call: f64, templates: bool, scope: Option<ScopeFields>) -> NativeStream {
        self.stream(self.calls.queue.list(numbered(call), templates, options(scope)))
    }

    /// A watched resource.
    #[napi(catch_unwind)]
    pub fn watch(&self, uri: String, scope: Option<ScopeFields>) -> NativeStream {
        self.stream(self.calls.queue.watch(&uri, options(scope)))
    }

    /// The changes of lists.
    #[napi(catch_unwind)]
    pub fn list_changes(&self) -> NativeStream {
        self.stream(self.calls.queue.list_changes())
    }

    /// The loop reads no more of this loan.
    #[napi(catch_unwind)]
    pub fn returned(&self, loan: f64) {
        self.calls.queue.returned(numbered(loan));
    }

    /// Takes a call back.
    #[napi(catch_unwind)]
    pub fn cancel(&self, call: f64) {
        self.calls.queue.cancel(numbered(call));
    }

    /// Answers a question with JSON text, or with the reason why there is no answer.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: f64, result: Option<String>, why: String) {
        self.calls.queue.answer(numbered(question), result.ok_or(why));
    }

    /// Ends the client, and the servers that it has started.
    #[napi(catch_unwind)]
    pub fn close(&self, call: f64) {
        self.calls.queue.close(numbered(call));
    }

    fn stream(&self, stream: ClientStream) -> NativeStream {
        NativeStream { calls: self.calls.clone(), stream }
    }
}

/// An iteration under way.
#[napi]
pub struct NativeStream {
    calls: Rc<Calls>,
    stream: ClientStream,
}

#[napi]
impl NativeStream {
    /// Asks for the next item.
    #[napi(catch_unwind)]
    pub fn next(&self, call: f64) {
        self.calls.queue.next(numbered(call), &self.stream);
    }

    /// Ends the stream, when no call asks for its next item: the watch then ends.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.calls.queue.end(&self.stream);
    }
}

impl Calls {
    fn take(&self) -> Vec<Arrival> {
        // First the wake_loop: what arrives from now on rings again.
        self.wake_loop.take();
        self.queue.take().into_iter().map(|(call, event)| Arrival::from_event(call, event)).collect()
    }
}

fn options(scope: Option<ScopeFields>) -> QueuedCallOptions {
    let ScopeFields { server, timeout, progress } = scope.unwrap_or_default();
    QueuedCallOptions { server, timeout: timeout.map(numbered), progress: progress == Some(true) }
}

/// Converts a number of JavaScript that counts something.
fn numbered(number: f64) -> u64 {
    whole(number)
}
