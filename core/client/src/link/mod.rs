//! One server of a client: the task that owns its machine and its transport.
//!
//! Law: the task contains no protocol logic. It carries out the machine's effects in order, and waits only for its own
//! event sources. Whatever changes its state holds its lock, and waits for nothing.

mod direct;

use crate::hooks::{Answers, HearFn, Heard, Hooks, ProgressFn};
use crate::target::{ClientCredentials, Target};
use crate::transport::{ClientTransport, Inbound, LentOutput, LoopReader};
use crate::watching::ClientWatching;
use mcp_resources_engine::client::{
    Access, CallOptions, ClientCall, ClientError, ClientOutcome, ClientQuestion, Effect, Failure, Lost,
    Machine, MachineOptions, ServerAbout,
};
use mcp_resources_engine::now::{Millis, Now};
use mcp_resources_runtime::transport::EngineClock;
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{
    Receiver, UnboundedReceiver, UnboundedSender, WeakUnboundedSender, channel, unbounded_channel,
};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Sleep;

/// Maximum number of queued messages of a server; beyond it the transport waits.
const INBOUND: usize = 256;
/// Maximum number of events handled before effects are carried out.
const TURN: usize = 64;

/// A handle of the task. When the last handle is dropped, the task ends, and the server with it.
#[derive(Debug)]
pub(super) struct ServerHandle {
    pub(super) name: Arc<str>,
    pub(super) access: Access,
    commands: UnboundedSender<LinkCommand>,
    /// The number of commands that the task has not begun to carry out.
    queued: Arc<AtomicUsize>,
    task: Arc<Mutex<LinkTask>>,
    inbox: Arc<Mutex<LoopInbox>>,
    next: AtomicU64,
}

/// A command of a handle to the task.
enum LinkCommand {
    Call {
        id: u64,
        call: ClientCall,
        options: CallOptions,
        waiter: CallWaiter,
    },
    Cancel(u64),
    Watch {
        id: u64,
        uri: String,
        watching: Arc<ClientWatching>,
    },
    Hear {
        id: u64,
        uri: String,
        hearer: HearFn,
    },
    Unwatch(u64),
    WatchLists,
    About(AboutSender),
    Answer {
        question: u64,
        answer: Result<String, String>,
    },
    /// The loop has left something in the inbox.
    Unread,
    /// The loop returns the loan with this number.
    Returned(u64),
    Close(oneshot::Sender<()>),
}

/// Receives a [`ServerAbout`] once there is a connection.
type AboutSender = oneshot::Sender<Result<Arc<ServerAbout>, ClientError>>;

/// Receives the result and the progress of a call.
struct CallWaiter {
    outcome: OutcomeReceiver,
    progress: Option<ProgressFn>,
}

/// Receives the result of a call. Dropped if there is none.
enum OutcomeReceiver {
    Awaited(oneshot::Sender<Result<ClientOutcome, ClientError>>),
    /// Called while the task is locked.
    Called(OutcomeFn),
}

/// A function for the result of a call. It must not block.
pub(super) type OutcomeFn = Box<dyn FnOnce(Result<ClientOutcome, ClientError>) + Send>;

impl ServerHandle {
    /// Starts the task, which does nothing until the first command.
    pub(super) fn start(
        target: Target,
        credentials: Option<ClientCredentials>,
        options: MachineOptions,
        hooks: Arc<Hooks>,
        runtime: &Handle,
    ) -> Self {
        let (commands, receiver) = unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let inbox = Arc::<Mutex<LoopInbox>>::default();
        let (name, access) = (options.server.clone(), options.access.clone());
        let task = Arc::new(Mutex::new(LinkTask {
            runtime: runtime.clone(),
            queued: queued.clone(),
            waker: None,
            effects: Vec::new(),
            loan: Loan::default(),
            inbox: inbox.clone(),
            takes_inbound_first: false,
            has_ended: false,
            longest: options.limits.message,
            machine: Machine::new(options),
            target: Some(Arc::new(target)),
            credentials: credentials.map(Arc::new),
            hooks,
            clock: EngineClock::new(),
            back: LinkBack { commands: commands.downgrade(), queued: queued.clone() },
            transport: None,
            opening: None,
            inbound: None,
            alarm: None,
            waiters: HashMap::new(),
            watchings: HashMap::new(),
            hearers: HashMap::new(),
            questions: HashMap::new(),
            about_senders: Vec::new(),
            is_connected: false,
            closing: Vec::new(),
        }));
        runtime.spawn(LinkTask::run(task.clone(), receiver));
        Self { name, access, commands, queued, task, inbox, next: AtomicU64::new(1) }
    }

    /// Makes a call. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        call: ClientCall,
        options: CallOptions,
        progress: Option<ProgressFn>,
    ) -> Result<ClientOutcome, ClientError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (outcome, answer) = oneshot::channel();
        let outcome = OutcomeReceiver::Awaited(outcome);
        self.send(LinkCommand::Call { id, call, options, waiter: CallWaiter { outcome, progress } });
        let mut taken_back = TakenBack { link: self, id: Some(id) };
        let answer = answer.await;
        taken_back.id = None;
        answer.unwrap_or_else(|_| Err(Failure::Cancelled.into()))
    }

    /// Starts a watch that reports to `watching`. Returns its number, for [`ServerHandle::unwatch`].
    pub(super) fn watch(&self, uri: &str, watching: Arc<ClientWatching>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(LinkCommand::Watch { id, uri: uri.into(), watching });
        id
    }

    /// Starts a watch that reads nothing and reports to `hearer`. Returns its number, for [`ServerHandle::unwatch`].
    pub(super) fn hear(&self, uri: &str, hearer: HearFn) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(LinkCommand::Hear { id, uri: uri.into(), hearer });
        id
    }

    pub(super) fn unwatch(&self, id: u64) {
        self.send(LinkCommand::Unwatch(id));
    }

    /// Starts listening for changes of the server's lists.
    pub(super) fn watch_lists(&self) {
        self.send(LinkCommand::WatchLists);
    }

    /// The server's description of itself, once there is a connection.
    pub(super) async fn about(&self) -> Result<Arc<ServerAbout>, ClientError> {
        let (sender, receiver) = oneshot::channel();
        self.send(LinkCommand::About(sender));
        receiver.await.unwrap_or_else(|_| Err(Failure::Cancelled.into()))
    }

    /// Shuts the server down gracefully.
    pub(super) async fn close(&self) {
        let (sender, receiver) = oneshot::channel();
        self.send(LinkCommand::Close(sender));
        let _ = receiver.await;
    }

    fn send(&self, command: LinkCommand) {
        self.queued.fetch_add(1, Ordering::SeqCst);
        // Fails if the task has ended, which has then dropped the sender of the answer.
        let _ = self.commands.send(command);
    }
}

impl OutcomeReceiver {
    fn finish(self, outcome: Result<ClientOutcome, ClientError>) {
        match self {
            // Fails if the caller no longer waits.
            Self::Awaited(sender) => drop(sender.send(outcome)),
            Self::Called(call) => call(outcome),
        }
    }
}

/// Cancels a call when its future is dropped.
struct TakenBack<'a> {
    link: &'a ServerHandle,
    id: Option<u64>,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.link.send(LinkCommand::Cancel(id));
        }
    }
}

type OpeningTransport = Pin<Box<dyn Future<Output = Result<ClientTransport, String>> + Send>>;

/// The output of the server, while an event loop reads it: see [`direct`].
#[derive(Debug, Default)]
struct Loan {
    output: Option<LentOutput>,
    /// The loop that is to have it, once it was asked for.
    wanted: Option<LoopReader>,
    /// The number of calls in a row that were alone, and made directly.
    in_a_row: u32,
    /// The number of times that the loop has called or read.
    uses: u64,
    /// When to check whether it is used, and how often it was at the check before.
    check: Option<(u64, Pin<Box<Sleep>>)>,
}

/// The bytes of a loop that reads by itself, if it finds the task locked.
#[derive(Debug, Default)]
struct LoopInbox {
    /// The number of the loan, if there is one.
    loan: Option<u64>,
    unread: Vec<u8>,
}

/// Sends answers to questions. Weak, so that it does not keep the task alive.
#[derive(Clone)]
struct LinkBack {
    commands: WeakUnboundedSender<LinkCommand>,
    queued: Arc<AtomicUsize>,
}

/// The state of the task of one server.
struct LinkTask {
    runtime: Handle,
    queued: Arc<AtomicUsize>,
    /// Wakes the task, which waits.
    waker: Option<Waker>,
    /// Empty, and reused.
    effects: Vec<Effect>,
    loan: Loan,
    inbox: Arc<Mutex<LoopInbox>>,
    /// Alternates, so that neither messages nor commands wait for ever.
    takes_inbound_first: bool,
    has_ended: bool,
    machine: Machine,
    /// `None` at the end: an open stream may be in it.
    target: Option<Arc<Target>>,
    credentials: Option<Arc<ClientCredentials>>,
    hooks: Arc<Hooks>,
    clock: EngineClock,
    longest: usize,
    back: LinkBack,
    transport: Option<ClientTransport>,
    opening: Option<OpeningTransport>,
    inbound: Option<Receiver<Inbound>>,
    /// The next check of the machine, in ms of its clock. May be too early, which saves resetting the timer for each
    /// request.
    alarm: Option<(Millis, Pin<Box<Sleep>>)>,
    waiters: HashMap<u64, CallWaiter>,
    watchings: HashMap<u64, Arc<ClientWatching>>,
    hearers: HashMap<u64, HearFn>,
    questions: HashMap<u64, AbortHandle>,
    about_senders: Vec<AboutSender>,
    /// Whether the program knows that there is a connection.
    is_connected: bool,
    /// Transports that are shutting down.
    closing: Vec<JoinHandle<()>>,
}

/// An event that the task waits for.
enum LinkEvent {
    Command(Option<LinkCommand>),
    Inbound(Option<Inbound>),
    Opened(Result<ClientTransport, String>),
    Due,
    /// It is time to see whether what is lent is used.
    LoanDue,
}

/// The end of the task, and whom to tell.
struct LinkEnd(Option<oneshot::Sender<()>>);

impl LinkTask {
    async fn run(task: Arc<Mutex<Self>>, mut commands: UnboundedReceiver<LinkCommand>) {
        let done = loop {
            let turn = poll_fn(|context| locked(&task).turn(&mut commands, context)).await;
            if let Some(LinkEnd(done)) = turn {
                break done;
            }
        };
        let (transport, closing) = locked(&task).end();
        if let Some(transport) = transport {
            transport.close().await;
        }
        for closing in closing {
            let _ = closing.await;
        }
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// Waits for an event, and handles it and those that follow it at once.
    fn turn(
        &mut self,
        commands: &mut UnboundedReceiver<LinkCommand>,
        context: &mut Context<'_>,
    ) -> Poll<Option<LinkEnd>> {
        let Poll::Ready(mut event) = self.poll(commands, context) else { return Poll::Pending };
        let mut effects = std::mem::take(&mut self.effects);
        for turn in 1.. {
            match event {
                LinkEvent::Command(None) => return Poll::Ready(Some(LinkEnd(None))),
                LinkEvent::Command(Some(LinkCommand::Close(done))) => {
                    return Poll::Ready(Some(LinkEnd(Some(done))));
                }
                event => self.handle(event, &mut effects),
            }
            self.perform(&mut effects);
            if turn == TURN {
                break;
            }
            match commands.try_recv() {
                Ok(command) => event = self.taken(Some(command)),
                Err(_) => match self.inbound.as_mut().and_then(|inbound| inbound.try_recv().ok()) {
                    Some(inbound) => event = LinkEvent::Inbound(Some(inbound)),
                    None => break,
                },
            }
        }
        self.effects = effects;
        self.flush();
        Poll::Ready(None)
    }

    /// Waits for an event.
    fn poll(
        &mut self,
        commands: &mut UnboundedReceiver<LinkCommand>,
        context: &mut Context<'_>,
    ) -> Poll<LinkEvent> {
        if self.waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
        if let Some(at) = self.machine.deadline()
            && self.is_before_alarm(at)
        {
            let pause = Duration::from_millis(at.saturating_sub(self.clock.now().tick));
            self.alarm = Some((at, Box::pin(tokio::time::sleep(pause))));
        }
        // First what is seldom ready: a flood of messages does not delay it.
        if let Some((_, sleep)) = &mut self.alarm
            && sleep.as_mut().poll(context).is_ready()
        {
            self.alarm = None;
            return Poll::Ready(LinkEvent::Due);
        }
        if let Some(opening) = &mut self.opening
            && let Poll::Ready(opened) = opening.as_mut().poll(context)
        {
            self.opening = None;
            return Poll::Ready(LinkEvent::Opened(opened));
        }
        if self.poll_loan(context).is_ready() {
            return Poll::Ready(LinkEvent::LoanDue);
        }
        self.takes_inbound_first = !self.takes_inbound_first;
        if self.takes_inbound_first
            && let Poll::Ready(message) = poll_inbound(&mut self.inbound, context)
        {
            return Poll::Ready(LinkEvent::Inbound(message));
        }
        if let Poll::Ready(command) = commands.poll_recv(context) {
            return Poll::Ready(self.taken(command));
        }
        if self.takes_inbound_first {
            return Poll::Pending;
        }
        poll_inbound(&mut self.inbound, context).map(LinkEvent::Inbound)
    }

    /// A command is not queued any longer.
    fn taken(&self, command: Option<LinkCommand>) -> LinkEvent {
        if command.is_some() {
            self.queued.fetch_sub(1, Ordering::SeqCst);
        }
        LinkEvent::Command(command)
    }

    /// Whether the alarm would be too late for this time.
    fn is_before_alarm(&self, at: Millis) -> bool {
        self.alarm.as_ref().is_none_or(|(set, _)| at < *set)
    }

    fn flush(&mut self) {
        if let Some(transport) = &mut self.transport {
            transport.flush();
        }
    }

    fn handle(&mut self, event: LinkEvent, out: &mut Vec<Effect>) {
        let now = self.clock.now();
        match event {
            LinkEvent::Command(command) => {
                command.into_iter().for_each(|command| self.obey(command, now, out))
            }
            LinkEvent::Opened(Ok(transport)) => {
                self.transport = Some(transport);
                self.machine.opened(now, out);
            }
            LinkEvent::Opened(Err(reason)) => self.lost(&Lost::NotOpened(reason), now, out),
            LinkEvent::Inbound(Some(Inbound::Message(bytes))) => self.machine.received(&bytes, now, out),
            LinkEvent::Inbound(Some(Inbound::Lent(output))) => self.borrow(output),
            LinkEvent::Inbound(Some(Inbound::NotCarried(id, why))) => {
                self.machine.not_carried(id, why, now, out)
            }
            LinkEvent::Inbound(Some(Inbound::StreamOpened)) => self.machine.stream_opened(now, out),
            LinkEvent::Inbound(Some(Inbound::SessionEnded)) => self.lost(&Lost::Session, now, out),
            LinkEvent::Inbound(Some(Inbound::NotHeard(reason))) => {
                self.lost(&Lost::NotOpened(reason), now, out)
            }
            LinkEvent::Inbound(Some(Inbound::Lost(reason))) => self.lost(&Lost::Broken(reason), now, out),
            LinkEvent::Inbound(None) => self.lost(&Lost::Broken("the connection has ended".into()), now, out),
            LinkEvent::Due => {
                // What has arrived is not late, only not read yet.
                self.read_lent(out);
                self.machine.tick(now, out);
            }
            LinkEvent::LoanDue => self.check_loan(),
        }
        self.tell_about();
    }

    fn obey(&mut self, command: LinkCommand, now: Now, out: &mut Vec<Effect>) {
        match command {
            LinkCommand::Call { id, call, options, waiter } => {
                self.call_loan();
                self.waiters.insert(id, waiter);
                self.machine.call(id, call, options, now, out);
            }
            LinkCommand::Cancel(id) => {
                self.waiters.remove(&id);
                self.machine.cancel(id, now, out);
            }
            LinkCommand::Watch { id, uri, watching } => {
                self.watchings.insert(id, watching);
                self.machine.watch(id, &uri, now, out);
            }
            LinkCommand::Hear { id, uri, hearer } => {
                self.hearers.insert(id, hearer);
                self.machine.hear(id, &uri, now, out);
            }
            LinkCommand::Unwatch(id) => {
                self.watchings.remove(&id);
                self.hearers.remove(&id);
                self.machine.unwatch(id, now, out);
            }
            LinkCommand::WatchLists => self.machine.watch_lists(now, out),
            LinkCommand::About(about_senders) => {
                self.about_senders.push(about_senders);
                self.machine.connect_now(out);
            }
            LinkCommand::Answer { question, answer } => {
                self.questions.remove(&question);
                let answer = answer.as_deref().map_err(String::as_str);
                self.machine.answer(question, answer, now, out);
            }
            LinkCommand::Unread => drop(self.read_lent(out)),
            LinkCommand::Returned(loan) => self.returned(loan, out),
            LinkCommand::Close(_) => {}
        }
    }

    /// Handles the loss of the transport; anything it still delivers is ignored.
    fn lost(&mut self, lost: &Lost, now: Now, out: &mut Vec<Effect>) {
        self.inbound = None;
        self.drop_loan();
        if let Some(transport) = self.transport.take() {
            self.retire(transport);
        }
        self.fail_about(&lost.failure());
        self.say_lost(&lost.failure());
        self.machine.lost(lost, now, out);
    }

    /// Fails all requests for a description, because there is no connection.
    fn fail_about(&mut self, failure: &Failure) {
        for about_senders in self.about_senders.drain(..) {
            let _ = about_senders.send(Err(failure.clone().into()));
        }
    }

    fn say_lost(&mut self, why: &Failure) {
        self.is_connected = false;
        self.hooks.connection(self.machine.server(), Some(&why.to_string()));
    }

    /// Lets a transport shut down in the background.
    fn retire(&mut self, transport: ClientTransport) {
        self.closing.retain(|closing| !closing.is_finished());
        self.closing.push(self.runtime.spawn(transport.close()));
    }

    fn perform(&mut self, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Connect => {
                    let (sender, receiver) = channel(INBOUND);
                    let Some(target) = self.target.clone() else { continue };
                    let longest = self.longest;
                    self.inbound = Some(receiver);
                    let credentials = self.credentials.clone();
                    self.opening = Some(Box::pin(async move {
                        ClientTransport::open(&target, credentials.as_deref(), sender, longest).await
                    }));
                }
                Effect::Disconnect { why } => {
                    self.fail_about(&why);
                    self.say_lost(&why);
                    self.inbound = None;
                    self.opening = None;
                    self.drop_loan();
                    if let Some(transport) = self.transport.take() {
                        self.retire(transport);
                    }
                }
                Effect::Send(message) => {
                    if let Some(transport) = &mut self.transport {
                        transport.send(message);
                    }
                }
                Effect::Abort(id) => {
                    if let Some(transport) = &mut self.transport {
                        transport.abort(id);
                    }
                }
                Effect::Finished { call, outcome } => {
                    let waiter = self.waiters.remove(&call);
                    let _ = waiter.map(|waiter| waiter.outcome.finish(outcome));
                }
                Effect::Progressed { call, progress } => {
                    if let Some(report) = self.waiters.get(&call).and_then(|waiter| waiter.progress.as_ref())
                    {
                        report(progress);
                    }
                }
                Effect::Heard { watch, is_first } => {
                    let hearer = self.hearers.get(&watch);
                    hearer.inspect(|report| report(if is_first { Heard::Active } else { Heard::Changed }));
                }
                Effect::Changed { watch, change: Err(error) } if self.hearers.contains_key(&watch) => {
                    let hearer = self.hearers.remove(&watch);
                    let _ = hearer.map(|report| report(Heard::Ended(error)));
                }
                Effect::Notified { method, params } => {
                    self.hooks.notified(self.machine.server(), &method, &params);
                }
                Effect::Changed { watch, change } => {
                    let is_over = change.is_err();
                    if let Some(watching) = self.watchings.get(&watch) {
                        watching.put(change);
                    }
                    if is_over {
                        self.watchings.remove(&watch);
                    }
                }
                Effect::Asked(question) => self.ask(question),
                Effect::Withdrawn(question) => {
                    if let Some(task) = self.questions.remove(&question) {
                        task.abort();
                    }
                }
                Effect::ListChanged => self.hooks.list_changed(self.machine.server()),
                // Only a test machine reports this.
                Effect::Message(_) => {}
                Effect::LeftOut(what) => self.hooks.left_out(self.machine.server(), &what),
                Effect::Noted(note) => self.hooks.note(self.machine.server(), &note),
            }
        }
    }

    fn ask(&mut self, question: ClientQuestion) {
        let id = question.id;
        let back = self.back.clone();
        let answer = self.hooks.answers.get(&question.method).map(|answer: &Answers| answer(question));
        let task = self.runtime.spawn(async move {
            let answer = match answer {
                Some(answer) => answer.await,
                None => Err("this client does not answer such questions".into()),
            };
            back.send(LinkCommand::Answer { question: id, answer });
        });
        self.questions.insert(id, task.abort_handle());
    }

    fn tell_about(&mut self) {
        if let Some(about) = self.machine.about() {
            if !std::mem::replace(&mut self.is_connected, true) {
                self.hooks.connection(self.machine.server(), None);
            }
            for about_senders in self.about_senders.drain(..) {
                let _ = about_senders.send(Ok(about.clone()));
            }
        }
    }

    /// Ends everything; what is returned is still to be closed.
    fn end(&mut self) -> (Option<ClientTransport>, Vec<JoinHandle<()>>) {
        let mut effects = Vec::new();
        self.has_ended = true;
        self.machine.close(&mut effects);
        self.perform(&mut effects);
        self.flush();
        for watching in self.watchings.values() {
            watching.end();
        }
        for question in self.questions.values() {
            question.abort();
        }
        self.opening = None;
        self.inbound = None;
        self.drop_loan();
        // Handles of the server keep this state: nothing of the program is kept in it.
        self.waiters.clear();
        self.watchings.clear();
        self.hearers.clear();
        self.questions.clear();
        self.about_senders.clear();
        self.target = None;
        (self.transport.take(), std::mem::take(&mut self.closing))
    }
}

impl LinkBack {
    fn send(&self, command: LinkCommand) {
        if let Some(commands) = self.commands.upgrade() {
            self.queued.fetch_add(1, Ordering::SeqCst);
            let _ = commands.send(command);
        }
    }
}

fn poll_inbound(inbound: &mut Option<Receiver<Inbound>>, context: &mut Context<'_>) -> Poll<Option<Inbound>> {
    inbound.as_mut().map_or(Poll::Pending, |inbound| inbound.poll_recv(context))
}

fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for LinkTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkTask").field("loan", &self.loan).finish_non_exhaustive()
    }
}
