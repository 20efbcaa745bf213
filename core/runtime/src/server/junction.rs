//! Serves beside another server: this program owns the pipes of the client, and passes on what is not ours.
//!
//! ```text
//!   client ──lines──▶ Junction ──what is theirs──▶ the other server
//!      ◀──────────────── │ ◀───────────answers──────┘
//!                        └─▶ our handlers and providers
//! ```
//!
//! Law: what is not ours passes byte for byte, in order. Both directions are bounded: a side that does not read stops the
//! side that writes. The engine reads the lines; no word of the protocol is here.

use super::ResourceServer;
use super::calls;
use super::client::CallerHandle;
use super::shared::{Diagnostic, ServerState};
use crate::sync::Mutex;
use crate::transport::{EmbeddedClient, EventHandler, Peer};
use mcp_resources_engine::connection::{Events, RequestOutcome};
use mcp_resources_engine::embedded::{
    ClientLine, EmbeddedMessage, EmbeddedNotice, EmbeddedRequest, EmbeddedServer, EmbeddedStep, LineRequest,
    OwnedAnswer, ServerLine, write_error, write_notice, write_question, write_question_cancelled,
    write_result, write_too_large,
};
use mcp_resources_engine::jsonrpc::{Line, Lines, OversizedLine};
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::RegistrationError;
use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::io;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

/// The size of one read in bytes.
const CHUNK: usize = 64 * 1024;
/// Longest line of the client and of the other server, in bytes.
const MOST_LINE: usize = 64 * 1024 * 1024;
/// Most lines that wait for a reader.
const MOST_LINES: usize = 64;
/// Most requests that both servers answer, and most questions to the other server, at a time.
const MOST_PENDING: usize = 1_024;
/// Most requests that are answered here at a time.
const MOST_IN_FLIGHT: u32 = 1_024;
/// Notifications of a session are taken up to about this many bytes at once.
const ROOM: usize = 16 * 1024;

/// A place between the client of a server and another server: see [`ResourceServer::beside`].
pub struct Junction {
    between: Arc<Between>,
    to_client: mpsc::Receiver<Vec<u8>>,
    to_server: mpsc::Receiver<Vec<u8>>,
}

/// The two streams of one side of a [`Junction`].
#[derive(Debug)]
pub struct StreamPair<R, W> {
    /// The side's messages.
    pub from: R,
    /// The messages for it.
    pub to: W,
}

/// The side that ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JunctionEnd {
    /// The client has closed its end.
    Client,
    /// The other server has.
    Server,
}

struct Between {
    shared: Arc<ServerState>,
    core: Arc<EmbeddedServer>,
    sender: Arc<Principal>,
    handler: Arc<JunctionHandler>,
    state: Mutex<JunctionState>,
    in_flight: Arc<Semaphore>,
}

#[derive(Default)]
struct JunctionState {
    /// `None` when nothing more may be written.
    to_client: Option<mpsc::Sender<Vec<u8>>>,
    to_server: Option<mpsc::Sender<Vec<u8>>>,
    session: Option<Arc<EmbeddedClient>>,
    /// Requests that wait for the other server's answer, by their ids.
    both: HashMap<String, LineRequest>,
    questions: HashMap<u64, oneshot::Sender<OwnedAnswer>>,
    last_question: u64,
    /// Requests that are answered here, by their ids: how to cancel them.
    running: HashMap<String, Arc<Notify>>,
    /// The number of open listens among them.
    listens: usize,
}

/// A request that is answered here.
struct JunctionCall {
    between: Arc<Between>,
    client: Arc<EmbeddedClient>,
    request: LineRequest,
    number: u64,
    /// Whether the client lasts longer than the request.
    is_session: bool,
    cancelled: Arc<Notify>,
    /// The other server's latest answer.
    latest: Option<OwnedAnswer>,
}

/// Wakes a task.
struct NotifyWaker(Arc<Notify>);

impl Wake for NotifyWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl ResourceServer {
    /// Makes this server part of another one that a client reaches over pipes. With `adopts`, the other server's own
    /// resources are listed and read too, under the policy of this one; otherwise clients do not see them. Needs a tokio
    /// runtime with I/O and time.
    ///
    /// # Errors
    /// [`RegistrationError`] if this server is part of another one already, or has a fallback while `adopts` is set.
    pub fn beside(&self, adopts: bool) -> Result<Junction, RegistrationError> {
        let shared = self.shared.clone();
        let core = EmbeddedServer::new(shared.engine.clone(), adopts, shared.clock.now())?;
        let (to_client, client_lines) = mpsc::channel(MOST_LINES);
        let (to_server, server_lines) = mpsc::channel(MOST_LINES);
        let handler = Arc::new(JunctionHandler { shared: shared.clone(), runtime: Handle::current() });
        let between = Between {
            shared,
            core,
            sender: Principal::local(),
            handler,
            state: Mutex::new(JunctionState {
                to_client: Some(to_client),
                to_server: Some(to_server),
                ..JunctionState::default()
            }),
            in_flight: Arc::new(Semaphore::new(MOST_IN_FLIGHT as usize)),
        };
        Ok(Junction { between: Arc::new(between), to_client: client_lines, to_server: server_lines })
    }
}

impl fmt::Debug for Junction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Junction").finish_non_exhaustive()
    }
}

impl Junction {
    /// Serves until the other server closes its end, or the client does. Then the input of the other server is closed, and
    /// what it still answers within [`Limits::grace`](mcp_resources_engine::limits::Limits::grace) is passed on.
    ///
    /// # Errors
    /// The system's error for a pipe.
    pub async fn serve(
        self,
        client: StreamPair<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
        server: StreamPair<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    ) -> io::Result<JunctionEnd> {
        let Self { between, to_client, to_server } = self;
        let grace = Duration::from_millis(between.shared.engine.limits().grace);
        let reads = between.read_client(client.from);
        let passes = between.read_server(server.from);
        let client_writes = write_lines(to_client, client.to);
        let server_writes = write_lines(to_server, server.to);
        let timers = keep_time(&between);
        tokio::pin!(reads, passes, client_writes, server_writes, timers);
        let mut end = JunctionEnd::Server;
        let mut is_input_over = false;
        let mut is_output_over = false;
        let mut is_unread = false;
        loop {
            tokio::select! {
                read = &mut reads, if !is_input_over => {
                    read?;
                    is_input_over = true;
                    end = JunctionEnd::Client;
                    between.end_input();
                }
                passed = &mut passes => {
                    passed?;
                    break;
                }
                _ = &mut client_writes => {
                    is_unread = true;
                    end = JunctionEnd::Client;
                    break;
                }
                // The other server may close its input and go on answering.
                _ = &mut server_writes, if !is_output_over => is_output_over = true,
                () = tokio::time::sleep(grace), if is_input_over => break,
                () = &mut timers => {}
            }
        }
        if !is_unread {
            let finished = async {
                let _all = between.in_flight.acquire_many(MOST_IN_FLIGHT).await;
                between.close();
            };
            let rest = async { tokio::join!(finished, &mut client_writes) };
            // What takes longer than the grace is cut off.
            let _ = tokio::time::timeout(grace, rest).await;
        }
        between.close();
        Ok(end)
    }
}

impl Between {
    /// Reads the client's lines until it closes its end.
    async fn read_client(self: &Arc<Self>, mut input: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut lines = Lines::new(MOST_LINE);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = input.read(&mut chunk).await?;
            match count {
                0 => lines.finish(),
                count => lines.push(chunk.get(..count).unwrap_or_default()),
            }
            while let Some(line) = lines.next() {
                match line {
                    // Larger than what we take: it may be for the other server.
                    Line::Message(line) if line.len() > self.shared.engine.limits().message => {
                        self.pass_on(line).await;
                    }
                    Line::Message(line) => self.take_client_line(line).await,
                    Line::TooLong(line) => self.refuse(line).await,
                }
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Answers a message that neither server takes.
    async fn refuse(&self, line: OversizedLine<'_>) {
        self.warn("a message of the client is larger than 64 MiB, and was dropped");
        let mut out = Vec::new();
        write_too_large(line, &mut out);
        if !out.is_empty() {
            self.send(out).await;
        }
    }

    async fn take_client_line(self: &Arc<Self>, line: &[u8]) {
        match self.core.client_line(line, &self.sender) {
            ClientLine::Theirs => self.pass_on(line).await,
            ClientLine::Told { method, params } => {
                let session = self.session(None);
                let mut buffer = Vec::new();
                let outcome = session.tell(&mut buffer, &method, &params, &self.sender);
                self.handle(&session, outcome);
                self.pass_on(line).await;
            }
            ClientLine::Cancels(key) => {
                let running = self.state.lock().running.get(&key).cloned();
                if let Some(running) = running {
                    running.notify_one();
                }
                self.pass_on(line).await;
            }
            ClientLine::Both(request) => {
                self.remember(request);
                self.pass_on(line).await;
            }
            ClientLine::Ours(request) => self.answer(request, None).await,
        }
    }

    /// Keeps a request until the other server has answered it. One too many is answered by that server alone.
    fn remember(&self, request: LineRequest) {
        let mut state = self.state.lock();
        if state.both.len() < MOST_PENDING {
            state.both.insert(request.key(), request);
        }
    }

    /// Reads the other server's lines until it closes its end.
    async fn read_server(self: &Arc<Self>, mut input: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut lines = Lines::new(MOST_LINE);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = input.read(&mut chunk).await?;
            match count {
                0 => lines.finish(),
                count => lines.push(chunk.get(..count).unwrap_or_default()),
            }
            while let Some(line) = lines.next() {
                match line {
                    Line::Message(line) => self.take_server_line(line).await,
                    Line::TooLong(_) => {
                        self.warn("a message of the other server is larger than 64 MiB, and was dropped")
                    }
                }
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    async fn take_server_line(self: &Arc<Self>, line: &[u8]) {
        match self.core.server_line(line) {
            ServerLine::Other => self.send(with_end(line)).await,
            ServerLine::Unasked => {}
            ServerLine::Change(notice) => {
                let told = self.state.lock().session.as_ref().and_then(|session| session.told());
                let params = notice.params.as_deref().unwrap_or("{}");
                let now = self.shared.clock.now();
                if !self.core.changed(told, &notice.method, params, now) {
                    self.send(with_end(line)).await;
                }
            }
            ServerLine::Asked { question, answer } => {
                let waits = self.state.lock().questions.remove(&question);
                // The request is gone if the client has cancelled it.
                drop(waits.map(|waits| waits.send(answer)));
            }
            ServerLine::Answer { key, answer } => {
                let request = self.state.lock().both.remove(&key);
                match request {
                    Some(request) => self.answer(request, Some(answer)).await,
                    None => self.send(with_end(line)).await,
                }
            }
        }
    }

    /// Answers a request here. Goes on in a task if it is not answered at once.
    async fn answer(self: &Arc<Self>, request: LineRequest, theirs: Option<OwnedAnswer>) {
        let is_listen = request.is_listen;
        let permit = match is_listen {
            true => None,
            false => self.in_flight.clone().acquire_owned().await.ok(),
        };
        let Some(mut call) = JunctionCall::begin(self, request, theirs) else { return };
        if call.take_steps().await {
            call.end();
            return;
        }
        tokio::spawn(async move {
            let _permit = permit;
            let question = if is_listen { call.listen_there().await } else { None };
            call.run().await;
            if let Some(question) = question {
                call.between.forget(question).await;
            }
            call.end();
        });
    }

    /// The client of requests of a session. `version` is that of a session that begins.
    fn session(self: &Arc<Self>, version: Option<&str>) -> Arc<EmbeddedClient> {
        let mut state = self.state.lock();
        if let Some(session) = state.session.clone().filter(|_| version.is_none()) {
            return session;
        }
        let clock = self.shared.clock.clone();
        let session = EmbeddedClient::new(&self.core, clock, version.unwrap_or_default(), true);
        let woken = Arc::new(Notify::new());
        session.wake_with(Waker::from(Arc::new(NotifyWaker(woken.clone()))));
        let before = state.session.replace(session.clone());
        drop(state);
        if let Some(before) = before {
            let events = before.close();
            self.handle(&before, RequestOutcome { events, ..RequestOutcome::nothing() });
        }
        tokio::spawn(deliver(Arc::downgrade(self), Arc::downgrade(&session), woken));
        session
    }

    /// Handles the events of a client's request, and logs what there is to say.
    fn handle(self: &Arc<Self>, client: &Arc<EmbeddedClient>, outcome: RequestOutcome<'_>) {
        let peer = Peer::embedded(client.clone(), self.shared.clock.clone(), self.handler.clone());
        let caller = CallerHandle::new(self.shared.clone(), peer, self.handler.runtime.clone());
        calls::after(&caller, outcome);
        for warning in self.core.take_warnings() {
            self.warn(&warning);
        }
    }

    /// Asks the other server. `None` if it can no longer answer.
    async fn ask(&self, method: &str, params: &str) -> Option<OwnedAnswer> {
        let (question, answer) = self.question()?;
        let mut line = Vec::new();
        write_question(question, method, params, &mut line);
        self.send_to_server(line).await;
        let _asked = AskedQuestion { between: self, question };
        answer.await.ok()
    }

    /// A place for the answer to a question.
    fn question(&self) -> Option<(u64, oneshot::Receiver<OwnedAnswer>)> {
        let mut state = self.state.lock();
        if state.questions.len() >= MOST_PENDING || state.to_server.is_none() {
            return None;
        }
        state.last_question += 1;
        let question = state.last_question;
        let (sender, answer) = oneshot::channel();
        state.questions.insert(question, sender);
        Some((question, answer))
    }

    /// Cancels a question that the other server has not answered.
    async fn forget(&self, question: u64) {
        if self.state.lock().questions.remove(&question).is_some() {
            let mut line = Vec::new();
            write_question_cancelled(question, &mut line);
            self.send_to_server(line).await;
        }
    }

    async fn pass_on(&self, line: &[u8]) {
        self.send_to_server(with_end(line)).await;
    }

    /// Sends lines to the client. Waits while it does not read.
    async fn send(&self, lines: Vec<u8>) {
        let queue = self.state.lock().to_client.clone();
        if let Some(queue) = queue {
            // It fails if the client has left.
            let _ = queue.send(lines).await;
        }
    }

    async fn send_to_server(&self, lines: Vec<u8>) {
        let queue = self.state.lock().to_server.clone();
        if let Some(queue) = queue {
            let _ = queue.send(lines).await;
        }
    }

    /// Closes the input of the other server when what was written is sent.
    fn end_input(&self) {
        self.state.lock().to_server = None;
    }

    /// Ends everything that has not ended.
    fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.to_client = None;
        state.to_server = None;
        state.questions.clear();
        let running: Vec<_> = state.running.values().cloned().collect();
        let session = state.session.take();
        drop(state);
        running.iter().for_each(|running| running.notify_one());
        if let Some(session) = session {
            let events = session.close();
            self.handle(&session, RequestOutcome { events, ..RequestOutcome::nothing() });
        }
    }

    fn warn(&self, text: &str) {
        self.shared.diagnose(&Diagnostic::Warning(text));
    }
}

/// A question that is forgotten if nobody waits for its answer any more.
struct AskedQuestion<'b> {
    between: &'b Between,
    question: u64,
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        let mut state = self.between.state.lock();
        if state.questions.remove(&self.question).is_some()
            && let Some(queue) = &state.to_server
        {
            let mut line = Vec::new();
            write_question_cancelled(self.question, &mut line);
            // A full queue only means that the other server answers in vain.
            let _ = queue.try_send(line);
        }
    }
}

impl JunctionCall {
    /// Starts a request. `None` if it cannot be started.
    fn begin(between: &Arc<Between>, request: LineRequest, theirs: Option<OwnedAnswer>) -> Option<Self> {
        let negotiated = theirs.as_ref().filter(|_| request.is_handshake).and_then(OwnedAnswer::negotiated);
        let is_session = request.version.is_none();
        let client = match (&request.version, &negotiated) {
            (Some(version), _) => {
                EmbeddedClient::new(&between.core, between.shared.clock.clone(), version, false)
            }
            (None, negotiated) => between.session(negotiated.as_deref()),
        };
        let cancelled = Arc::new(Notify::new());
        let mut state = between.state.lock();
        if request.is_listen && state.listens >= MOST_PENDING {
            drop(state);
            between.warn("the client has too many open listens; another one was not opened");
            return None;
        }
        state.listens += usize::from(request.is_listen);
        state.running.insert(request.key(), cancelled.clone());
        drop(state);
        let message: EmbeddedMessage = client.prepare(EmbeddedRequest {
            method: &request.method,
            params: &request.params,
            id: &request.id,
            theirs: theirs.as_ref().map(OwnedAnswer::as_theirs),
        });
        let outcome = client.start(&message, &between.sender);
        between.handle(&client, outcome);
        let number = message.number();
        Some(Self {
            between: between.clone(),
            client,
            request,
            number,
            is_session,
            cancelled,
            latest: theirs,
        })
    }

    /// Takes the steps until the request is over (`true`) or waits.
    async fn take_steps(&mut self) -> bool {
        while let Some(step) = self.client.next_step(self.number) {
            let mut out = Vec::new();
            let id = &self.request.id;
            let is_over = match step {
                EmbeddedStep::Send(notice) => {
                    write_notice(&notice, &mut out);
                    false
                }
                EmbeddedStep::Result(result) => {
                    write_result(id, &result, &mut out);
                    true
                }
                EmbeddedStep::Error { code, message, data } => {
                    write_error(id, code, &message, data.as_deref(), &mut out);
                    true
                }
                EmbeddedStep::Theirs => {
                    if let Some(latest) = &self.latest {
                        latest.write(id, &mut out);
                    }
                    true
                }
                EmbeddedStep::Ask { method, params } => {
                    self.ask(method, &params).await;
                    continue;
                }
            };
            self.between.send(out).await;
            if is_over {
                return true;
            }
        }
        false
    }

    async fn ask(&mut self, method: &str, params: &str) {
        let between = self.between.clone();
        let Some(answer) = between.ask(method, params).await else {
            // The other server has ended, and so does the request.
            self.cancelled.notify_one();
            return;
        };
        let outcome = self.client.answer(self.number, answer.as_theirs());
        between.handle(&self.client, outcome);
        self.latest = Some(answer);
    }

    /// Goes on until the request is over or cancelled.
    async fn run(&mut self) {
        let cancelled = self.cancelled.clone();
        let woken = Arc::new(Notify::new());
        loop {
            let is_over = tokio::select! {
                () = cancelled.notified() => return,
                is_over = self.take_steps() => is_over,
            };
            if is_over {
                return;
            }
            self.client.register(self.number, Waker::from(Arc::new(NotifyWaker(woken.clone()))));
            tokio::select! {
                () = cancelled.notified() => return,
                () = woken.notified() => {}
                () = due(&self.between.shared, &self.client) => {
                    let outcome = self.client.tick();
                    self.between.handle(&self.client, outcome);
                }
            }
        }
    }

    /// Opens the same listen at the other server, whose changes this server tells the client. Returns its number.
    async fn listen_there(&self) -> Option<u64> {
        let (question, _) = self.between.question()?;
        let mut line = Vec::new();
        write_question(question, &self.request.method, &self.request.params, &mut line);
        self.between.send_to_server(line).await;
        Some(question)
    }

    fn end(&self) {
        let mut state = self.between.state.lock();
        state.running.remove(&self.request.key());
        state.listens -= usize::from(self.request.is_listen);
        drop(state);
        let mut events = self.client.end(self.number);
        if !self.is_session {
            events.extend(self.client.close());
        }
        self.between.handle(&self.client, RequestOutcome { events, ..RequestOutcome::nothing() });
    }
}

/// Sleeps until a client's deadline; for ever without one.
async fn due(shared: &ServerState, client: &EmbeddedClient) {
    match client.deadline() {
        Some(deadline) => {
            let left = deadline.saturating_sub(shared.clock.now().tick);
            tokio::time::sleep(Duration::from_millis(left.max(1))).await;
        }
        None => pending().await,
    }
}

/// Sends the notifications of a session while it lasts.
async fn deliver(between: Weak<Between>, session: Weak<EmbeddedClient>, woken: Arc<Notify>) {
    loop {
        woken.notified().await;
        let (Some(between), Some(session)) = (between.upgrade(), session.upgrade()) else { return };
        loop {
            let notices: Vec<EmbeddedNotice> = session.deliver(ROOM);
            if notices.is_empty() {
                break;
            }
            let mut out = Vec::new();
            notices.iter().for_each(|notice| write_notice(notice, &mut out));
            between.send(out).await;
        }
    }
}

/// Runs the engine's timers. Never ends.
async fn keep_time(between: &Between) {
    let woken = Arc::new(Notify::new());
    let _timer = between.shared.engine.register_timer(Waker::from(Arc::new(NotifyWaker(woken.clone()))));
    loop {
        let now = between.shared.clock.now();
        let left = between.shared.tick(now).map(|due| due.saturating_sub(now.tick).max(1));
        match left {
            Some(left) => {
                let _ = tokio::time::timeout(Duration::from_millis(left), woken.notified()).await;
            }
            None => woken.notified().await,
        }
    }
}

/// Writes what is queued, and several lines at once if they wait. Ends with the queue's last sender, or with an error if the
/// other side has closed its end.
async fn write_lines(
    mut queue: mpsc::Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, MOST_LINES).await > 0 {
        let lines = match &mut waiting[..] {
            [one] => std::mem::take(one),
            all => all.concat(),
        };
        waiting.clear();
        output.write_all(&lines).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

fn with_end(line: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(line.len() + 1);
    whole.extend_from_slice(line);
    whole.push(b'\n');
    whole
}

/// Connects the requests with handlers.
struct JunctionHandler {
    shared: Arc<ServerState>,
    runtime: Handle,
}

impl EventHandler for JunctionHandler {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        let caller = CallerHandle::new(self.shared.clone(), peer.clone(), self.runtime.clone());
        calls::after(&caller, RequestOutcome { events, ..RequestOutcome::nothing() });
    }

    fn report(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Warning(what));
    }

    fn misuse(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Misuse(what));
    }
}
