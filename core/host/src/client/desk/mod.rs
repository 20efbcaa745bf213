//! A client behind an event loop of another language. Calls have numbers; what they give waits on a desk until the loop takes it.
//!
//! ```text
//!   the loop: Desk::read(call, …) ──▶ a task of the client's thread ──▶ News, in their order ──▶ ring, for the loop
//!   the loop hears ──▶ Desk::take ──▶ futures, promises, callbacks of the author's
//! ```
//!
//! Law: the client's thread waits for nothing here and never enters the other language.

mod owned;
mod settings;
#[cfg(test)]
mod tests;

pub use owned::Owned;
pub use settings::Settings;

use super::{Client, ClientError, ConfigError, ListChanges, Listing, ProgressFn, Scope, Watch};
use mcp_resources_engine::client::{Change, Failure, Listed, Progress, Question, ServerAbout};
use mcp_resources_engine::connection::{Completion, Contents};
use mcp_resources_engine::now::Millis;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Notes and progress that come while so much waits are left out: a loop that is held up must not cost memory.
const MOST_WAITING: usize = 1_000;

/// See the module. Dropped, it cancels all calls.
#[derive(Debug)]
pub struct Desk {
    client: Client,
    runtime: Handle,
    tray: Arc<Tray>,
    tasks: Mutex<HashMap<u64, AbortHandle>>,
}

/// The end of a call, or what happens before it.
#[derive(Debug)]
pub enum News {
    /// A call has ended and gave nothing, or an iteration has.
    Done,
    /// A call has failed.
    Failed(ClientError),
    /// The contents of a read: one text or blob by itself.
    Contents(Vec<Contents<'static>>),
    /// The contents of a read with what they have besides their bodies.
    Entries(Vec<Contents<'static>>),
    /// A result, as JSON text.
    Json(String),
    /// Entries of a list, of one server.
    Listed(Vec<Listed>),
    /// A watched resource has changed.
    Change(Change),
    /// Of a completion.
    Completion(Completion<'static>),
    /// What a server says of itself.
    About(Arc<ServerAbout>),
    /// The list of this server has changed.
    ListChanged(Arc<str>),
    /// How far a call is.
    Progress(Progress),
    /// A question, and the capability that it belongs to. Its number is for [`Desk::answer`].
    Question(Question, &'static str),
    /// The question with this number needs no answer any more.
    Withdrawn,
    /// A server, and a sentence about it.
    Note(String, String),
}

/// How one call is made.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The only server to ask; `None` is every one.
    pub server: Option<String>,
    /// How long a request may take, in ms; `None` is the client's default.
    pub timeout: Option<Millis>,
    /// Whether its progress is reported.
    pub progress: bool,
}

/// What is iterated: a list, the changes of a resource, the changes of lists. Dropped, it ends, and what is watched for it is
/// watched no longer.
#[derive(Clone, Debug)]
pub struct Stream(Arc<tokio::sync::Mutex<Option<Source>>>);

#[derive(Debug)]
enum Source {
    Listing(Box<Listing>),
    Watch(Watch),
    ListChanges(ListChanges),
}

type Reply = oneshot::Sender<Result<String, String>>;

/// What both threads hold.
struct Tray {
    ring: Box<dyn Fn() + Send + Sync>,
    news: Mutex<Vec<(u64, News)>>,
    /// The number of the last question, and those that are open.
    questions: Mutex<(u64, HashMap<u64, Reply>)>,
}

impl News {
    /// Whether it is the last of its call.
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::Progress(_) | Self::Question(..) | Self::Withdrawn | Self::Note(..))
    }
}

impl Desk {
    /// Makes a client; nothing is started yet. `ring` is called on the client's thread for each piece of
    /// news. For a server in the same process, the other end of the pipe comes with it.
    ///
    /// # Errors
    /// [`ConfigError`] says what is wrong with the settings, or with the configuration file.
    pub fn open(
        settings: Settings,
        runtime: Handle,
        ring: impl Fn() + Send + Sync + 'static,
    ) -> Result<(Self, Option<OwnedFd>), ConfigError> {
        let (news, questions) = Default::default();
        let tray = Arc::new(Tray { ring: Box::new(ring), news, questions });
        let (builder, far) = settings::builder(settings, &tray)?;
        let client = builder.runtime(runtime.clone()).connect()?;
        Ok((Self { client, runtime, tray, tasks: Mutex::default() }, far))
    }

    /// The client, for what is known without asking.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads a resource; `whole` is whether all that contents have is wanted. What comes of it arrives under the number `call`,
    /// which is the caller's, and not in use.
    pub fn read(&self, call: u64, uri: String, whole: bool, options: CallOptions) {
        let client = self.scoped(call, options);
        self.start(call, async move {
            let contents = client.read(&uri).await?;
            Ok(if whole { News::Entries(contents) } else { News::Contents(contents) })
        });
    }

    /// Completes a variable of a template: `what` is the template, the variable, and what is typed so far.
    pub fn complete(
        &self,
        call: u64,
        what: (String, String, String),
        context: Vec<(String, String)>,
        options: CallOptions,
    ) {
        let client = self.scoped(call, options);
        self.start(call, async move {
            let (template, variable, value) = what;
            let chosen: Vec<_> = context.iter().map(|(name, value)| (&**name, &**value)).collect();
            client.complete(&template, &variable, &value, &chosen).await.map(News::Completion)
        });
    }

    /// Makes a request with any method; `params` is the text of a JSON object.
    pub fn request(&self, call: u64, method: String, params: String, options: CallOptions) {
        let client = self.scoped(call, options);
        self.start(call, async move { client.request(&method, &params).await.map(News::Json) });
    }

    /// Asks what a server says of itself.
    pub fn about(&self, call: u64, options: CallOptions) {
        let client = self.scoped(call, options);
        self.start(call, async move { client.about().await.map(News::About) });
    }

    /// Ends the client, and the servers that it has started.
    pub fn close(&self, call: u64) {
        let client = self.client.clone();
        self.start(call, async move {
            client.close().await;
            Ok(News::Done)
        });
    }

    /// A list: of templates, or of resources. Its progress arrives under the number `call`.
    pub fn list(&self, call: u64, templates: bool, options: CallOptions) -> Stream {
        let client = self.scoped(call, options);
        let list = if templates { client.list_templates() } else { client.list() };
        Stream::new(Source::Listing(Box::new(list)))
    }

    /// A watched resource.
    pub fn watch(&self, uri: &str, options: CallOptions) -> Stream {
        // To find the server of several, the client starts a task.
        let _inside = self.runtime.enter();
        Stream::new(Source::Watch(self.scoped(0, options).watch(uri)))
    }

    /// The changes of lists.
    pub fn list_changes(&self) -> Stream {
        Stream::new(Source::ListChanges(self.client.list_changes()))
    }

    /// Asks for what comes next of a stream; [`News::Done`] at its end.
    pub fn next(&self, call: u64, stream: &Stream) {
        let source = stream.0.clone();
        self.start(call, async move {
            match source.lock().await.as_mut() {
                Some(source) => source.next().await,
                None => Ok(News::Done),
            }
        });
    }

    /// Ends a stream, once no call asks for what comes next.
    pub fn end(&self, stream: &Stream) {
        if let Ok(mut source) = stream.0.try_lock() {
            return drop(source.take());
        }
        let source = stream.0.clone();
        self.runtime.spawn(async move { source.lock().await.take() });
    }

    /// Takes a call back.
    pub fn cancel(&self, call: u64) {
        if let Some(task) = locked(&self.tasks).remove(&call) {
            task.abort();
        }
    }

    /// Answers a question: the text of a JSON object, or why there is no answer.
    pub fn answer(&self, question: u64, answer: Result<String, String>) {
        if let Some(reply) = self.tray.reply(question) {
            // The server may have taken the question back.
            let _ = reply.send(answer);
        }
    }

    /// Takes what has arrived, in order, each with the number of its call or question.
    pub fn take(&self) -> Vec<(u64, News)> {
        let news = std::mem::take(&mut *locked(&self.tray.news));
        let mut tasks = locked(&self.tasks);
        for (call, _) in news.iter().filter(|(_, news)| news.is_end()) {
            tasks.remove(call);
        }
        news
    }

    fn scoped(&self, call: u64, CallOptions { server, timeout, progress }: CallOptions) -> Client {
        let tray = self.tray.clone();
        let report = move |progress| tray.put(call, News::Progress(progress));
        let progress = progress.then(|| Arc::new(report) as ProgressFn);
        self.client.with(Scope { server, timeout, progress })
    }

    /// Does something on the client's thread; how it ends arrives under the number of the call.
    fn start(&self, call: u64, work: impl Future<Output = Result<News, ClientError>> + Send + 'static) {
        let ending = Ending { tray: self.tray.clone(), call, news: None };
        let task = self.runtime.spawn(async move {
            let mut ending = ending;
            ending.news = Some(work.await.unwrap_or_else(News::Failed));
        });
        locked(&self.tasks).insert(call, task.abort_handle());
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        locked(&self.tasks).values().for_each(AbortHandle::abort);
    }
}

impl Stream {
    fn new(source: Source) -> Self {
        Self(Arc::new(tokio::sync::Mutex::new(Some(source))))
    }
}

impl Source {
    async fn next(&mut self) -> Result<News, ClientError> {
        let news = match self {
            Self::Listing(listing) => listing.next().await.transpose()?.map(|first| {
                // The rest of the page crosses with its first entry.
                News::Listed(std::iter::once(first).chain(listing.ready()).collect())
            }),
            Self::Watch(watch) => watch.next().await.transpose()?.map(News::Change),
            Self::ListChanges(changes) => changes.next().await.map(News::ListChanged),
        };
        Ok(news.unwrap_or(News::Done))
    }
}

impl Tray {
    fn put(&self, number: u64, news: News) {
        let may_be_lost = matches!(news, News::Note(..) | News::Progress(_));
        let mut waiting = locked(&self.news);
        if !may_be_lost || waiting.len() < MOST_WAITING {
            waiting.push((number, news));
        }
        drop(waiting);
        (self.ring)();
    }

    /// Has the author's function for this capability answer on the loop.
    async fn ask(self: Arc<Self>, question: Question, capability: &'static str) -> Result<String, String> {
        let (reply, answer) = oneshot::channel();
        let number = {
            let mut questions = locked(&self.questions);
            questions.0 += 1;
            let number = questions.0;
            questions.1.insert(number, reply);
            number
        };
        let open = OpenQuestion { tray: self, number };
        open.tray.put(number, News::Question(question, capability));
        answer.await.unwrap_or_else(|_| Err("the client was closed before it answered".into()))
    }

    fn reply(&self, question: u64) -> Option<Reply> {
        locked(&self.questions).1.remove(&question)
    }
}

/// Leaves the end of a call, also of one whose task was aborted.
struct Ending {
    tray: Arc<Tray>,
    call: u64,
    news: Option<News>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let news = self.news.take().unwrap_or_else(|| News::Failed(Failure::Cancelled.into()));
        self.tray.put(self.call, news);
    }
}

/// A question that is open. Dropped before it is answered, it is withdrawn.
struct OpenQuestion {
    tray: Arc<Tray>,
    number: u64,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if self.tray.reply(self.number).is_some() {
            self.tray.put(self.number, News::Withdrawn);
        }
    }
}

impl fmt::Debug for Tray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tray").finish_non_exhaustive()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
