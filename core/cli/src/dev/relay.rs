//! One client of the server under development, whose connection outlasts the server's processes.
//!
//! ```text
//!   client ──requests──▶ DevRelay ──▶ process 1 … a source changes … process 2
//!      ◀──answers─────────  └── the handshake, subscriptions and open requests are repeated
//! ```
//!
//! Law: every request is answered once: by a process, or with an error after a limited time. Calls of tools are not repeated,
//! because they may have effects.

use super::child::DevChild;
use super::lists::ListsChange;
use super::messages::{self, RelayedKind, RelayedMessage, RequestKind};
use super::report;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

/// Most requests that wait for an answer.
const MOST_PENDING: usize = 1_024;
/// Most subscriptions that are repeated.
const MOST_SUBSCRIPTIONS: usize = 10_000;
/// The time that a request waits for a server that is not running.
const WAIT: Duration = Duration::from_secs(30);
/// The time that a client has to take a message.
const TAKE: Duration = Duration::from_secs(10);
/// The interval of checks for requests that have waited too long, and whose client has left.
const LOOK: Duration = Duration::from_millis(250);
/// A process that ends earlier has not worked: it is not started again before a source changes.
const SOUND: Duration = Duration::from_secs(2);
/// The prefix of the ids of repeated requests.
const OWN: &str = "mcp-resources-dev-";

/// The place for messages to a client.
pub(super) type LineSink = mpsc::Sender<Vec<u8>>;

/// The version of the sources that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct DevState {
    /// 0 until the server has started for the first time.
    pub(super) version: u64,
    /// The difference from the version before.
    pub(super) change: Arc<ListsChange>,
    /// Why no newer version runs.
    pub(super) reason: Option<String>,
    /// Whether this program ends.
    pub(super) is_over: bool,
}

/// The handle of a relay. The relay ends with its last handle.
#[derive(Clone, Debug)]
pub(super) struct RelayHandle {
    inputs: mpsc::Sender<RelayInput>,
    open: Arc<Mutex<HashSet<String>>>,
}

enum RelayInput {
    Message(Vec<u8>, LineSink),
    /// The place of messages that belong to no request.
    Listener(LineSink),
}

struct DevRelay {
    command: Arc<[String]>,
    state: watch::Receiver<DevState>,
    /// The version that its process has.
    version: u64,
    child: Option<DevChild>,
    /// Whether requests may be sent: the handshake was repeated.
    is_ready: bool,
    handshake: Option<Vec<u8>>,
    is_initialized: bool,
    initialized: Option<Vec<u8>>,
    level: Option<Vec<u8>>,
    subscriptions: BTreeMap<String, Vec<u8>>,
    pending: BTreeMap<u64, RelayedRequest>,
    listener: Option<LineSink>,
    open: Arc<Mutex<HashSet<String>>>,
    last: u64,
    /// The id of the repeated handshake.
    repeated: Option<String>,
}

struct RelayedRequest {
    id: String,
    line: Vec<u8>,
    message: RelayedMessage,
    kind: RequestKind,
    sink: LineSink,
    began: Instant,
    is_sent: bool,
    is_acknowledged: bool,
}

/// Starts a relay. Its process starts when the sources have a version that works.
pub(super) fn start(
    command: Arc<[String]>,
    state: watch::Receiver<DevState>,
) -> (RelayHandle, tokio::task::JoinHandle<()>) {
    let (inputs, receiver) = mpsc::channel(64);
    let open: Arc<Mutex<HashSet<String>>> = Arc::default();
    let relay = DevRelay {
        command,
        state,
        version: 0,
        child: None,
        is_ready: false,
        handshake: None,
        is_initialized: false,
        initialized: None,
        level: None,
        subscriptions: BTreeMap::new(),
        pending: BTreeMap::new(),
        listener: None,
        open: open.clone(),
        last: 0,
        repeated: None,
    };
    (RelayHandle { inputs, open }, tokio::spawn(relay.run(receiver)))
}

impl RelayHandle {
    /// Passes a message on. What is answered goes to `sink`.
    pub(super) async fn send(&self, line: Vec<u8>, sink: LineSink) {
        // It fails only if the relay has ended.
        let _ = self.inputs.send(RelayInput::Message(line, sink)).await;
    }

    /// Sets the place of messages that belong to no request.
    pub(super) async fn listen(&self, sink: LineSink) {
        let _ = self.inputs.send(RelayInput::Listener(sink)).await;
    }

    /// Whether no open request has this id; then it is taken.
    pub(super) fn reserve(&self, id: &str) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }
}

impl DevRelay {
    async fn run(mut self, mut inputs: mpsc::Receiver<RelayInput>) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.follow().await;
        loop {
            let output = async {
                match &mut self.child {
                    Some(child) => child.output.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                input = inputs.recv() => match input {
                    Some(RelayInput::Message(line, sink)) => self.take(line, sink).await,
                    Some(RelayInput::Listener(sink)) => self.listener = Some(sink),
                    None => break,
                },
                line = output => match line {
                    Some(line) => self.pass_back(line).await,
                    None => self.lost().await,
                },
                changed = self.state.changed() => match changed {
                    Ok(()) if !self.state.borrow().is_over => self.follow().await,
                    _ => break,
                },
                _ = look.tick() => self.look().await,
            }
        }
        if let Some(child) = self.child.take() {
            self.finish(child).await;
        }
    }

    /// Passes on what the process still answers after the client's last message.
    async fn finish(&mut self, mut child: DevChild) {
        let end = Instant::now() + SOUND;
        while self.pending.values().any(|pending| pending.kind != RequestKind::Listen) {
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, child.output.recv()).await {
                Ok(Some(line)) => self.pass_back(line).await,
                _ => break,
            }
        }
        child.end().await;
    }

    /// Runs the version of the sources that works.
    async fn follow(&mut self) {
        let state = self.state.borrow_and_update().clone();
        if state.version == self.version {
            return;
        }
        self.version = state.version;
        let before = self.child.take();
        if let Some(before) = before {
            tokio::spawn(before.end());
        }
        self.start().await;
        self.notify(&state.change).await;
    }

    async fn start(&mut self) {
        self.is_ready = false;
        self.repeated = None;
        match DevChild::start(&self.command) {
            Ok(child) => self.child = Some(child),
            Err(error) => return report::say(&format!("the server cannot be started: {error}")),
        }
        self.interrupt().await;
        match self.handshake.clone().filter(|_| self.is_initialized) {
            Some(handshake) => {
                let id = self.own_id();
                if let Some(line) = messages::with_id(&handshake, &id) {
                    self.repeated = Some(format!("\"{id}\""));
                    self.write(line).await;
                }
            }
            None => self.go_on().await,
        }
    }

    /// Gives up requests that the process before has begun and that must not be repeated.
    async fn interrupt(&mut self) {
        let calls: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.is_sent && pending.kind == RequestKind::CallTool)
            .map(|(number, _)| *number)
            .collect();
        for number in calls {
            self.fail(number, "the server was restarted while the tool ran; call it again").await;
        }
        self.pending.values_mut().for_each(|pending| pending.is_sent = false);
    }

    /// Repeats what the process before knew, after the handshake, and sends what waits.
    async fn go_on(&mut self) {
        self.is_ready = true;
        if self.is_initialized {
            let initialized = self.initialized.clone();
            let settings: Vec<Vec<u8>> =
                self.level.iter().chain(self.subscriptions.values()).cloned().collect();
            if let Some(line) = initialized {
                self.write(line).await;
            }
            for line in settings {
                let id = self.own_id();
                if let Some(line) = messages::with_id(&line, &id) {
                    self.write(line).await;
                }
            }
        }
        let waiting: Vec<Vec<u8>> =
            self.pending.values().filter(|one| !one.is_sent).map(|one| one.line.clone()).collect();
        self.pending.values_mut().for_each(|pending| pending.is_sent = true);
        for line in waiting {
            self.write(line).await;
        }
    }

    fn own_id(&mut self) -> String {
        self.last += 1;
        format!("{OWN}{}", self.last)
    }

    async fn write(&mut self, line: Vec<u8>) {
        if let Some(child) = &self.child {
            // It fails if the process has ended, which its output tells.
            let _ = child.input.send(line).await;
        }
    }

    /// Takes a message of the client.
    async fn take(&mut self, line: Vec<u8>, sink: LineSink) {
        let Some(message) = RelayedMessage::read(&line) else {
            // The server says what is wrong with it.
            return self.write(line).await;
        };
        let (kind, id) = match (message.kind, &message.id) {
            (RelayedKind::Request(kind), Some(id)) => (kind, id.clone()),
            (RelayedKind::Initialized, _) => {
                self.is_initialized = true;
                self.initialized = Some(line.clone());
                return self.write(line).await;
            }
            (RelayedKind::Cancelled, _) => {
                let id = message.cancelled().unwrap_or_default();
                let cancelled =
                    self.pending.iter().find(|(_, pending)| pending.id == id).map(|(number, _)| *number);
                if let Some(number) = cancelled {
                    self.close(number);
                }
                return self.write(line).await;
            }
            _ => return self.write(line).await,
        };
        if self.pending.len() >= MOST_PENDING {
            let _ = sink.send(messages::failure(&id, "too many requests wait for an answer")).await;
            return;
        }
        match (kind, &message.about) {
            (RequestKind::Initialize, _) => {
                self.handshake = Some(line.clone());
                self.is_initialized = false;
            }
            (RequestKind::SetLevel, _) => self.level = Some(line.clone()),
            (RequestKind::Subscribe, Some(uri)) if self.subscriptions.len() < MOST_SUBSCRIPTIONS => {
                self.subscriptions.insert(uri.clone(), line.clone());
            }
            (RequestKind::Unsubscribe, Some(uri)) => drop(self.subscriptions.remove(uri)),
            _ => {}
        }
        self.last += 1;
        let is_sent = self.is_ready && self.child.is_some();
        let pending = RelayedRequest {
            id,
            line: line.clone(),
            message,
            kind,
            sink,
            began: Instant::now(),
            is_sent,
            is_acknowledged: false,
        };
        self.pending.insert(self.last, pending);
        if is_sent {
            self.write(line).await;
        }
    }

    /// Passes a message of the server back.
    async fn pass_back(&mut self, line: Vec<u8>) {
        let Some(message) = RelayedMessage::read(&line) else {
            // Several answers at once, as one revision has them.
            if let (true, Some(sink)) = (line.starts_with(b"["), self.listener.clone()) {
                return give(&sink, line).await;
            }
            return report::say(
                "the server wrote something to its standard output that is no message; print to stderr",
            );
        };
        if message.kind == RelayedKind::Answer {
            return self.answered(&message, line).await;
        }
        let of_listen = message.listen.as_ref().and_then(|listen| {
            self.pending
                .iter_mut()
                .find(|(_, pending)| pending.kind == RequestKind::Listen && pending.id == *listen)
        });
        if let Some((_, listen)) = of_listen {
            let is_repeated = message.kind == RelayedKind::Acknowledged
                && std::mem::replace(&mut listen.is_acknowledged, true);
            if !is_repeated {
                give(&listen.sink.clone(), line).await;
            }
            return;
        }
        let of_request = message.progress.as_ref().and_then(|token| {
            self.pending.values().find(|pending| pending.message.progress.as_ref() == Some(token))
        });
        let newest = || self.pending.values().rev().find(|pending| pending.kind != RequestKind::Listen);
        let listener = self.listener.as_ref().filter(|sink| !sink.is_closed());
        let sink = of_request.map(|pending| &pending.sink).or(listener);
        if let Some(sink) = sink.or_else(|| newest().map(|pending| &pending.sink)).cloned() {
            give(&sink, line).await;
        }
    }

    async fn answered(&mut self, message: &RelayedMessage, line: Vec<u8>) {
        let Some(id) = &message.id else {
            // An error about a message that could not be read.
            if let Some(sink) = self.listener.clone() {
                give(&sink, line).await;
            }
            return;
        };
        if self.repeated.as_ref() == Some(id) {
            self.repeated = None;
            return self.go_on().await;
        }
        let number = self
            .pending
            .iter()
            .find(|(_, pending)| pending.is_sent && pending.id == *id)
            .map(|(number, _)| *number);
        // Other answers are for what was repeated, or was cancelled.
        if let Some(pending) = number.and_then(|number| self.close(number)) {
            report::answered(&pending.message, pending.began.elapsed(), line.len(), message.error);
            give(&pending.sink, line).await;
        }
    }

    /// Handles the end of a process.
    async fn lost(&mut self) {
        let Some(child) = self.child.take() else { return };
        let is_sound = child.began.elapsed() >= SOUND;
        self.is_ready = false;
        let how = child
            .end()
            .await
            .map_or_else(|| "it is gone".to_owned(), |status| format!("it ended with {status}"));
        if is_sound {
            report::say(&format!("the server is started again: {how}"));
            self.start().await;
        } else {
            report::say(&format!("the server is not running: {how}; it starts again when a source changes"));
            self.interrupt().await;
        }
    }

    /// Ends requests that have waited too long, and those whose client has left.
    async fn look(&mut self) {
        let is_late = |pending: &RelayedRequest| !pending.is_sent && pending.began.elapsed() >= WAIT;
        let late: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| is_late(pending)).map(|(number, _)| *number).collect();
        let reason = self.state.borrow().reason.clone();
        let why = reason.unwrap_or_else(|| "it has ended".into());
        for number in late {
            self.fail(
                number,
                &format!("the server is not running: {why}; it starts again when a source changes"),
            )
            .await;
        }
        let left: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.sink.is_closed())
            .map(|(number, _)| *number)
            .collect();
        for number in left {
            if let Some(pending) = self.close(number).filter(|pending| pending.is_sent) {
                self.write(messages::cancellation(&pending.id)).await;
            }
        }
    }

    async fn fail(&mut self, number: u64, why: &str) {
        if let Some(pending) = self.close(number) {
            give(&pending.sink, messages::failure(&pending.id, why)).await;
        }
    }

    fn close(&mut self, number: u64) -> Option<RelayedRequest> {
        let pending = self.pending.remove(&number)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&pending.id);
        Some(pending)
    }

    /// Tells the client what a new version may have changed.
    async fn notify(&mut self, change: &ListsChange) {
        let lists = change.lists();
        if self.is_initialized {
            let notices = messages::session_notices(&lists, self.subscriptions.keys());
            if let Some(sink) = self.listener.clone() {
                for notice in notices {
                    give(&sink, notice).await;
                }
            }
        }
        let listens = self.pending.values().filter(|pending| pending.is_acknowledged);
        let notices: Vec<_> =
            listens.map(|listen| (listen.sink.clone(), listen.message.listen_notices(&lists))).collect();
        for (sink, notices) in notices {
            for notice in notices {
                give(&sink, notice).await;
            }
        }
    }
}

/// Gives a line to a client, unless it does not take it in time.
async fn give(sink: &LineSink, line: Vec<u8>) {
    let _ = sink.send_timeout(line, TAKE).await;
}
