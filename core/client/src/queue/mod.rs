//! A client for an event loop of another language. Calls have numbers; their results are queued until the loop takes them.
//!
//! ```text
//!   the loop: ClientQueue::read(call, …) ──▶ a task of the client's thread ──▶ ClientEvent, in their order ──▶ `notify`
//!   the loop wakes ──▶ ClientQueue::take ──▶ futures, promises, user callbacks
//! ```
//!
//! A read that is alone is written on the loop's thread. A loop that waits for [`LoopPipes`] also reads its answer there, with
//! [`ClientQueue::pump`], and no other thread wakes. A loop that waits for nothing but what it reads passes on the bytes, with
//! [`ClientQueue::received`].
//!
//! Law: the client's thread never blocks here, and never runs code of the other language.

mod owned;
mod settings;
#[cfg(test)]
mod tests;

pub use crate::transport::LoopPipes;
pub use owned::Owned;
pub use settings::ClientSettings;

use crate::config::ConfigError;
use crate::handle::{Client, ListChanges, ListScope};
use crate::hooks::ProgressFn;
use crate::link::ServerHandle;
use crate::listing::Listing;
use crate::transport::{LoanEvent, LoopReader};
use crate::watch::Watch;
use mcp_resources_engine::client::{
    Change, ClientError, ClientQuestion, Failure, Listed, Progress, ServerAbout,
};
use mcp_resources_engine::connection::{Completion, Contents};
use mcp_resources_engine::now::Millis;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Notes and progress are dropped while this many results are queued: a blocked loop must not use unlimited memory.
const MOST_WAITING: usize = 1_000;

/// A client with a queue for an event loop. Dropping it cancels all calls.
#[derive(Debug)]
pub struct ClientQueue {
    client: Client,
    runtime: Handle,
    table: Arc<EventTable>,
    calls: Mutex<HashMap<u64, QueuedCall>>,
    /// Set for a loop that reads from servers.
    reader: OnceLock<LoopReader>,
}

/// An open call: a task of its own, or a call that the loop's thread has made.
#[derive(Debug)]
enum QueuedCall {
    Task(AbortHandle),
    Direct(Arc<ServerHandle>, u64),
}

/// The end of a call, or an event before it.
#[derive(Debug)]
pub enum ClientEvent {
    /// A call has ended without a result, or an iteration has ended.
    Done,
    /// A call has failed.
    Failed(ClientError),
    /// The contents of a read: a single text or blob without further members.
    Contents(Vec<Contents<'static>>),
    /// The contents of a read, with all their members.
    Entries(Vec<Contents<'static>>),
    /// A result, as JSON text.
    Json(String),
    /// Entries of one server's list.
    Listed(Vec<Listed>),
    /// A watched resource has changed.
    Change(Change),
    /// The result of a completion.
    Completion(Completion<'static>),
    /// A server's description of itself.
    About(Arc<ServerAbout>),
    /// The list of this server has changed.
    ListChanged(Arc<str>),
    /// The progress of a call.
    Progress(Progress),
    /// A question, with the capability that it belongs to. Its number is for [`ClientQueue::answer`].
    Question(ClientQuestion, &'static str),
    /// The question with this number no longer needs an answer.
    Withdrawn,
    /// A server, and a note about it.
    Note(String, String),
    /// The loop is to read from this descriptor, until it is asked to return the loan with this number: see
    /// [`ClientQueue::read_on_loop`].
    Lent(OwnedFd),
    /// The loan with this number is to be returned, if it was not.
    Recalled,
}

/// Options of one call.
#[derive(Clone, Debug, Default)]
pub struct QueuedCallOptions {
    /// The only server to use; `None` for all.
    pub server: Option<String>,
    /// The time-out of a request in ms; `None` for the client's default.
    pub timeout: Option<Millis>,
    /// Whether to report progress.
    pub progress: bool,
}

/// The variable of a template to complete.
#[derive(Clone, Debug)]
pub struct QueuedCompletion {
    /// The template.
    pub template: String,
    /// The name of the variable.
    pub variable: String,
    /// The text typed so far.
    pub value: String,
}

/// An iteration: a list, the changes of a resource, or the changes of lists. Dropping it ends the iteration and its
/// watch.
#[derive(Clone, Debug)]
pub struct ClientStream(Arc<tokio::sync::Mutex<Option<ClientSource>>>);

#[derive(Debug)]
enum ClientSource {
    Listing(Box<Listing>),
    Watch(Watch),
    ListChanges(ListChanges),
}

type Reply = oneshot::Sender<Result<String, String>>;

/// The state shared by both threads.
struct EventTable {
    notify: Box<dyn Fn() + Send + Sync>,
    events: Mutex<WaitingEvents>,
    /// The number of the last question, and the open questions.
    questions: Mutex<(u64, HashMap<u64, Reply>)>,
}

/// Events that are not taken yet.
#[derive(Default)]
struct WaitingEvents {
    list: Vec<(u64, ClientEvent)>,
    /// The thread that takes them when it has read: it needs no notice.
    reader: Option<ThreadId>,
}

impl ClientEvent {
    /// Whether it is the last event of its call.
    pub fn is_end(&self) -> bool {
        let is_before =
            matches!(self, Self::Progress(_) | Self::Question(..) | Self::Withdrawn | Self::Note(..));
        !is_before && !matches!(self, Self::Lent(_) | Self::Recalled)
    }
}

impl ClientQueue {
    /// Makes a client; nothing is started yet. `notify` is called on the client's thread for each event. For a
    /// server in the same process, also returns the other end of the pipe.
    ///
    /// # Errors
    /// [`ConfigError`] for invalid settings, or an invalid configuration file.
    pub fn open(
        settings: ClientSettings,
        runtime: Handle,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Result<(Self, Option<OwnedFd>), ConfigError> {
        let table = Arc::new(EventTable {
            notify: Box::new(notify),
            events: Mutex::default(),
            questions: Mutex::default(),
        });
        let (builder, far) = settings::builder(settings, &runtime, &table)?;
        let client = builder.runtime(runtime.clone()).connect()?;
        Ok((Self { client, runtime, table, calls: Mutex::default(), reader: OnceLock::new() }, far))
    }

    /// The client, for information that needs no request.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads a resource; `whole` asks for all members of the contents. The result arrives under the number `call`,
    /// which the caller chooses and which must not be in use.
    pub fn read(&self, call: u64, uri: String, whole: bool, options: QueuedCallOptions) {
        let client = self.scoped(call, options);
        let event = if whole { ClientEvent::Entries } else { ClientEvent::Contents };
        let ending = || {
            let ending = self.ending(call);
            move |read: Result<_, _>| ending.end(read.map_or_else(ClientEvent::Failed, event))
        };
        if let Some((link, id)) = client.read_directly(&uri, self.reader.get(), ending) {
            locked(&self.calls).insert(call, QueuedCall::Direct(link, id));
            return;
        }
        self.start(call, async move { client.read(&uri).await.map(event) });
    }

    /// For a loop that waits for servers itself: returns the descriptor that it waits for instead of `wake`, the one that wakes
    /// it. It then calls [`ClientQueue::pump`]. `None` where the system cannot do this. Reads of `wake` no longer block.
    pub fn pipes(&self, wake: impl AsFd) -> Option<Arc<LoopPipes>> {
        let pipes = Arc::new(LoopPipes::new()?);
        pipes.add(wake).ok()?;
        self.reader.set(LoopReader::Waits(pipes.clone())).ok()?;
        Some(pipes)
    }

    /// For a loop that can wait for a descriptor only by reading from it: while reads are alone, it gets [`ClientEvent::Lent`],
    /// reads, and passes the bytes to [`ClientQueue::received`]. At the end of the descriptor, after an error, and at
    /// [`ClientEvent::Recalled`], it stops reading, closes the descriptor, and calls [`ClientQueue::returned`].
    pub fn read_on_loop(&self) {
        let table = self.table.clone();
        let tell = move |loan, event| {
            let event = match event {
                LoanEvent::Begun(output) => ClientEvent::Lent(output),
                LoanEvent::Recalled => ClientEvent::Recalled,
            };
            table.put(loan, event);
        };
        // It has one already if this was called before.
        let _ = self.reader.set(LoopReader::Reads(Arc::new(tell)));
    }

    /// Takes bytes of a loan. Call [`ClientQueue::take`] afterwards: `notify` is not called for what they bring.
    pub fn received(&self, loan: u64, bytes: &[u8]) {
        self.table.reading(|| self.client.received(loan, bytes));
    }

    /// Takes a loan back. Does nothing for one that is over.
    pub fn returned(&self, loan: u64) {
        self.client.returned(loan);
    }

    /// Reads what servers have sent, without waiting; returns whether that was anything. Call [`ClientQueue::take`] afterwards:
    /// `notify` is not called for what this has read.
    pub fn pump(&self) -> bool {
        self.table.reading(|| self.client.pump())
    }

    /// Completes a variable. `context` has the values chosen for other variables.
    pub fn complete(
        &self,
        call: u64,
        what: QueuedCompletion,
        context: Vec<(String, String)>,
        options: QueuedCallOptions,
    ) {
        let client = self.scoped(call, options);
        self.start(call, async move {
            let QueuedCompletion { template, variable, value } = what;
            let chosen: Vec<_> = context.iter().map(|(name, value)| (&**name, &**value)).collect();
            client.complete(&template, &variable, &value, &chosen).await.map(ClientEvent::Completion)
        });
    }

    /// Makes a request with any method; `params` is the text of a JSON object.
    pub fn request(&self, call: u64, method: String, params: String, options: QueuedCallOptions) {
        let client = self.scoped(call, options);
        self.start(call, async move { client.request(&method, &params).await.map(ClientEvent::Json) });
    }

    /// Gets a server's description of itself.
    pub fn about(&self, call: u64, options: QueuedCallOptions) {
        let client = self.scoped(call, options);
        self.start(call, async move { client.about().await.map(ClientEvent::About) });
    }

    /// Closes the client, and the servers that it has started.
    pub fn close(&self, call: u64) {
        let client = self.client.clone();
        self.start(call, async move {
            client.close().await;
            Ok(ClientEvent::Done)
        });
    }

    /// Starts a list of templates or of resources. Its progress arrives under the number `call`.
    pub fn list(&self, call: u64, templates: bool, options: QueuedCallOptions) -> ClientStream {
        let client = self.scoped(call, options);
        let list = if templates { client.list_templates() } else { client.list() };
        ClientStream::new(ClientSource::Listing(Box::new(list)))
    }

    /// Starts watching a resource.
    pub fn watch(&self, uri: &str, options: QueuedCallOptions) -> ClientStream {
        // The client may start a task to find the right one of several servers.
        let _inside = self.runtime.enter();
        ClientStream::new(ClientSource::Watch(self.scoped(0, options).watch(uri)))
    }

    /// Starts listening for changes of lists.
    pub fn list_changes(&self) -> ClientStream {
        ClientStream::new(ClientSource::ListChanges(self.client.list_changes()))
    }

    /// Asks for the next item of a stream; [`ClientEvent::Done`] at its end.
    pub fn next(&self, call: u64, stream: &ClientStream) {
        let source = stream.0.clone();
        self.start(call, async move {
            match source.lock().await.as_mut() {
                Some(source) => source.next().await,
                None => Ok(ClientEvent::Done),
            }
        });
    }

    /// Ends a stream as soon as no call is waiting for its next item.
    pub fn end(&self, stream: &ClientStream) {
        if let Ok(mut source) = stream.0.try_lock() {
            return drop(source.take());
        }
        let source = stream.0.clone();
        self.runtime.spawn(async move { source.lock().await.take() });
    }

    /// Cancels a call.
    pub fn cancel(&self, call: u64) {
        // The link sends a command, which needs no lock.
        let call = locked(&self.calls).remove(&call);
        call.into_iter().for_each(|call| call.cancel());
    }

    /// Answers a question with the text of a JSON object, or with the reason for which there is no answer.
    pub fn answer(&self, question: u64, answer: Result<String, String>) {
        if let Some(reply) = self.table.reply(question) {
            // Fails if the server has withdrawn the question.
            let _ = reply.send(answer);
        }
    }

    /// Takes all events in order, each with the number of its call or question.
    pub fn take(&self) -> Vec<(u64, ClientEvent)> {
        let events = std::mem::take(&mut locked(&self.table.events).list);
        let mut calls = locked(&self.calls);
        for (call, _) in events.iter().filter(|(_, event)| event.is_end()) {
            calls.remove(call);
        }
        events
    }

    fn scoped(
        &self,
        call: u64,
        QueuedCallOptions { server, timeout, progress }: QueuedCallOptions,
    ) -> Client {
        let table = self.table.clone();
        let report = move |progress| table.put(call, ClientEvent::Progress(progress));
        let progress = progress.then(|| Arc::new(report) as ProgressFn);
        self.client.with(ListScope { server, timeout, progress })
    }

    /// Runs `work` on the client's thread; its end is reported under the number of the call.
    fn start(
        &self,
        call: u64,
        work: impl Future<Output = Result<ClientEvent, ClientError>> + Send + 'static,
    ) {
        let ending = self.ending(call);
        let task = self.runtime.spawn(async move {
            ending.end(work.await.unwrap_or_else(ClientEvent::Failed));
        });
        locked(&self.calls).insert(call, QueuedCall::Task(task.abort_handle()));
    }

    fn ending(&self, call: u64) -> CallEnding {
        CallEnding { table: self.table.clone(), call, event: None }
    }
}

impl Drop for ClientQueue {
    fn drop(&mut self) {
        locked(&self.calls).values().for_each(QueuedCall::cancel);
    }
}

impl QueuedCall {
    fn cancel(&self) {
        match self {
            Self::Task(task) => task.abort(),
            Self::Direct(link, id) => link.cancel(*id),
        }
    }
}

impl ClientStream {
    fn new(source: ClientSource) -> Self {
        Self(Arc::new(tokio::sync::Mutex::new(Some(source))))
    }
}

impl ClientSource {
    async fn next(&mut self) -> Result<ClientEvent, ClientError> {
        let event = match self {
            Self::Listing(listing) => listing.next().await.transpose()?.map(|first| {
                // The rest of the page is passed on together with its first entry.
                ClientEvent::Listed(std::iter::once(first).chain(listing.ready()).collect())
            }),
            Self::Watch(watch) => watch.next().await.transpose()?.map(ClientEvent::Change),
            Self::ListChanges(changes) => changes.next().await.map(ClientEvent::ListChanged),
        };
        Ok(event.unwrap_or(ClientEvent::Done))
    }
}

impl EventTable {
    /// Does something whose events this thread takes afterwards.
    fn reading<R>(&self, read: impl FnOnce() -> R) -> R {
        locked(&self.events).reader = Some(thread::current().id());
        let result = read();
        locked(&self.events).reader = None;
        result
    }

    fn put(&self, number: u64, event: ClientEvent) {
        let may_be_lost = matches!(event, ClientEvent::Note(..) | ClientEvent::Progress(_));
        let mut waiting = locked(&self.events);
        if !may_be_lost || waiting.list.len() < MOST_WAITING {
            waiting.list.push((number, event));
        }
        let is_taken = waiting.reader.is_some_and(|reader| reader == thread::current().id());
        drop(waiting);
        if !is_taken {
            (self.notify)();
        }
    }

    /// Lets the loop's function for this capability answer a question.
    async fn ask(
        self: Arc<Self>,
        question: ClientQuestion,
        capability: &'static str,
    ) -> Result<String, String> {
        let (reply, answer) = oneshot::channel();
        let number = {
            let mut questions = locked(&self.questions);
            questions.0 += 1;
            let number = questions.0;
            questions.1.insert(number, reply);
            number
        };
        let open = OpenQuestion { table: self, number };
        open.table.put(number, ClientEvent::Question(question, capability));
        answer.await.unwrap_or_else(|_| Err("the client was closed before it answered".into()))
    }

    fn reply(&self, question: u64) -> Option<Reply> {
        locked(&self.questions).1.remove(&question)
    }
}

/// Reports the end of a call, even if its task was aborted.
struct CallEnding {
    table: Arc<EventTable>,
    call: u64,
    event: Option<ClientEvent>,
}

impl CallEnding {
    fn end(mut self, event: ClientEvent) {
        self.event = Some(event);
    }
}

impl Drop for CallEnding {
    fn drop(&mut self) {
        let event = self.event.take().unwrap_or_else(|| ClientEvent::Failed(Failure::Cancelled.into()));
        self.table.put(self.call, event);
    }
}

/// An open question. It is withdrawn if this is dropped before the answer.
struct OpenQuestion {
    table: Arc<EventTable>,
    number: u64,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if self.table.reply(self.number).is_some() {
            self.table.put(self.number, ClientEvent::Withdrawn);
        }
    }
}

impl fmt::Debug for EventTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventTable").finish_non_exhaustive()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
