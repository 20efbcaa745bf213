//! A client of servers, for `js/client.ts`. It works on a thread of its own; what it has for the event loop waits on a desk.
//!
//! Law: what is decided about servers is decided by the core. Here calls get numbers, and news of them cross.

mod arrival;
mod desk;
mod options;
mod streams;

use crate::error::raise;
use crate::quick::function;
use crate::woken::Woken;
use arrival::{Arrival, News};
use desk::{Desk, Ending};
use mcp_resources_engine::client::ClientError;
use mcp_resources_host::client as core;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use options::ClientFields;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use streams::Source;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// See the module.
#[napi]
pub struct NativeClient {
    calls: Rc<Calls>,
    socket: RefCell<Option<OwnedFd>>,
}

/// How one call is made.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ScopeFields {
    /// The only server to ask.
    pub server: Option<String>,
    /// How long a request may take, in milliseconds.
    pub timeout: Option<f64>,
    /// Whether its progress is reported.
    pub progress: Option<bool>,
}

/// What crosses with each read.
#[napi(object, object_from_js = false)]
pub struct QuickClient<'env> {
    /// Reads a resource; `whole` is whether all that contents have is wanted.
    #[napi(ts_type = "(call: number, uri: string, whole: boolean, scope?: ScopeFields) => void")]
    pub read: Function<'env, (), ()>,
    /// What has arrived.
    #[napi(ts_type = "() => Arrival[]")]
    pub take: Function<'env, (), Vec<Arrival>>,
}

/// The client, and the calls that are under way.
pub(crate) struct Calls {
    client: core::Client,
    runtime: Handle,
    desk: Arc<Desk>,
    tasks: RefCell<HashMap<u64, AbortHandle>>,
}

#[napi]
impl NativeClient {
    /// Starts nothing yet. `look` is called on the loop when something has arrived; that does not keep the process alive.
    #[napi(catch_unwind, constructor)]
    pub fn new(env: &Env, fields: ClientFields, look: Function<'_, (), ()>) -> Result<Self> {
        let runtime = core::runtime().map_err(|error| Error::from_reason(error.to_string()))?;
        let desk = Desk::new(Woken::new(&look)?);
        let wrong = |error: core::ConfigError| raise(env, "ConfigError", error.message, &[]);
        let (builder, socket) = options::builder(fields, &desk, wrong)?;
        let client = builder.runtime(runtime.clone()).connect().map_err(wrong)?;
        let calls = Rc::new(Calls { client, runtime, desk, tasks: RefCell::default() });
        Ok(Self { calls, socket: RefCell::new(socket) })
    }

    /// The functions that are called most.
    #[napi]
    pub fn quick<'env>(&self, env: &'env Env) -> Result<QuickClient<'env>> {
        Ok(QuickClient {
            read: function(env, &self.calls, "read", |calls, given| {
                let (call, uri): (f64, String) = (given.get(0)?, given.get(1)?);
                let whole: bool = given.get(2)?;
                let scope = if given.length() > 3 { given.get(3)? } else { None };
                calls.read(call, uri, whole, scope);
                Ok(())
            })?,
            take: function(env, &self.calls, "take", |calls, _| Ok(calls.take()))?,
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
        self.calls.client.servers().iter().map(|name| name.as_ref().into()).collect()
    }

    /// The servers that could not be asked for their last list, each with its error.
    #[napi(catch_unwind, getter)]
    pub fn failures(&self) -> Vec<Arrival> {
        let failed = |(name, error): (Arc<str>, ClientError)| {
            let mut arrival = News::Failed(error).arrive(0.0);
            arrival.server = Some(name.as_ref().into());
            arrival
        };
        self.calls.client.failures().into_iter().map(failed).collect()
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
        let client = self.calls.scoped(call, scope);
        self.calls.start(call, async move {
            let chosen: Vec<_> = context.iter().map(|(name, value)| (&**name, &**value)).collect();
            client.complete(&template, &variable, &value, &chosen).await.map(News::Completion)
        });
    }

    /// Makes a request with any method; `params` is JSON text.
    #[napi(catch_unwind)]
    pub fn request(&self, call: f64, method: String, params: String, scope: Option<ScopeFields>) {
        let client = self.calls.scoped(call, scope);
        self.calls.start(call, async move { client.request(&method, &params).await.map(News::Json) });
    }

    /// What a server says of itself.
    #[napi(catch_unwind)]
    pub fn about(&self, call: f64, scope: Option<ScopeFields>) {
        let client = self.calls.scoped(call, scope);
        self.calls.start(call, async move { client.about().await.map(News::About) });
    }

    /// A list: of templates, or of resources.
    #[napi(catch_unwind)]
    pub fn list(&self, call: f64, templates: bool, scope: Option<ScopeFields>) -> NativeStream {
        let client = self.calls.scoped(call, scope);
        self.stream(Source::Listing(Box::new(if templates {
            client.list_templates()
        } else {
            client.list()
        })))
    }

    /// A watched resource.
    #[napi(catch_unwind)]
    pub fn watch(&self, uri: String, scope: Option<ScopeFields>) -> NativeStream {
        let client = self.calls.scoped(0.0, scope);
        // To find the server of several, the core starts a task.
        let _inside = self.calls.runtime.enter();
        self.stream(Source::Watch(client.watch(&uri)))
    }

    /// The changes of lists.
    #[napi(catch_unwind)]
    pub fn list_changes(&self) -> NativeStream {
        self.stream(Source::ListChanges(self.calls.client.list_changes()))
    }

    /// Takes a call back.
    #[napi(catch_unwind)]
    pub fn cancel(&self, call: f64) {
        if let Some(task) = self.calls.tasks.borrow_mut().remove(&call.to_bits()) {
            task.abort();
        }
    }

    /// Answers a question with JSON text, or says why there is no answer.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: u32, result: Option<String>, why: String) {
        if let Some(reply) = self.calls.desk.reply(question) {
            // The server may have taken the question back.
            let _ = reply.send(result.ok_or(why));
        }
    }

    /// Ends the client, and the servers that it has started.
    #[napi(catch_unwind)]
    pub fn close(&self, call: f64) {
        let client = self.calls.client.clone();
        self.calls.start(call, async move {
            client.close().await;
            Ok(News::Done)
        });
    }

    fn stream(&self, source: Source) -> NativeStream {
        NativeStream { calls: self.calls.clone(), source: Arc::new(tokio::sync::Mutex::new(Some(source))) }
    }
}

/// An iteration under way.
#[napi]
pub struct NativeStream {
    calls: Rc<Calls>,
    source: Arc<tokio::sync::Mutex<Option<Source>>>,
}

#[napi]
impl NativeStream {
    /// Asks for what comes next.
    #[napi(catch_unwind)]
    pub fn next(&self, call: f64) {
        let source = self.source.clone();
        self.calls.start(call, async move {
            match source.lock().await.as_mut() {
                Some(source) => source.next().await,
                None => Ok(News::Done),
            }
        });
    }

    /// Ends it, once no call asks for what comes next: nothing is watched for it any more.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        let source = self.source.clone();
        self.calls.runtime.spawn(async move { source.lock().await.take() });
    }
}

/// The event loop has ended, perhaps only that of a worker: all open calls are cancelled.
impl Drop for Calls {
    fn drop(&mut self) {
        self.tasks.borrow().values().for_each(AbortHandle::abort);
    }
}

impl Calls {
    fn read(&self, call: f64, uri: String, whole: bool, scope: Option<ScopeFields>) {
        let client = self.scoped(call, scope);
        self.start(call, async move {
            let contents = client.read(&uri).await?;
            Ok(if whole { News::Entries(contents) } else { News::Contents(contents) })
        });
    }

    fn scoped(&self, call: f64, scope: Option<ScopeFields>) -> core::Client {
        let Some(ScopeFields { server, timeout, progress }) = scope else { return self.client.clone() };
        let desk = self.desk.clone();
        let report = move |progress| desk.leave(call, News::Progress(progress));
        let progress = (progress == Some(true)).then(|| Arc::new(report) as core::ProgressFn);
        self.client.with(core::Scope { server, timeout: timeout.map(crate::peer::whole), progress })
    }

    /// Does something on the client's thread; how it ends arrives under the number of the call.
    fn start(
        &self,
        call: f64,
        work: impl Future<Output = std::result::Result<News, ClientError>> + Send + 'static,
    ) {
        let ending = Ending { desk: self.desk.clone(), call, news: None };
        let task = self.runtime.spawn(async move {
            let mut ending = ending;
            ending.news = Some(work.await.unwrap_or_else(News::Failed));
        });
        self.tasks.borrow_mut().insert(call.to_bits(), task.abort_handle());
    }

    fn take(&self) -> Vec<Arrival> {
        let left = self.desk.take();
        let mut tasks = self.tasks.borrow_mut();
        for (call, _) in left.iter().filter(|(_, news)| news.is_end()) {
            tasks.remove(&call.to_bits());
        }
        left.into_iter().map(|(number, news)| news.arrive(number)).collect()
    }
}
