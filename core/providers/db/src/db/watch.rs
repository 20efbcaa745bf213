//! Notifies clients of changes.
//!
//! ```text
//!   a commit ──▶ Session::changed: data_version | LISTEN ──▶ what is watched is read again ──▶ updated, where it differs
//! ```
//!
//! Law: the first comparison of a resource is with what a client last read of it, so a change between the read and the
//! subscription is reported. Each database has a thread and a session of its own, so one that does not answer delays no other.

use super::contents::{self, RowReader, RowsState};
use super::session::{self, DbChange, DbSession, SessionFault};
use super::sessions;
use super::source::DbSource;
use super::target::{DbTarget, DbTemplates};
use mcp_resources_provider_kit::tracker::{LISTS, TrackedSource, Tracker, TrackerWork};
use mcp_resources_runtime::provider::Feed;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The rows and tables of one database, to be tracked.
#[derive(Debug)]
pub(super) struct RowSource {
    number: usize,
    source: Arc<DbSource>,
    sources: Vec<Arc<DbSource>>,
}

/// The last state of each watched URI.
#[derive(Clone, Debug, Default)]
pub(super) struct RowStates {
    states: HashMap<Arc<str>, RowsState>,
    /// Whether changes were missed: any value may have changed, and changed back.
    is_lost: bool,
}

/// The state of the thread of one database.
#[derive(Default)]
pub(super) struct RowWorker {
    templates: Option<DbTemplates>,
    /// The targets of the watched URIs; `None` for those that name nothing.
    targets: HashMap<Arc<str>, Option<DbTarget>>,
    session: Option<Box<dyn DbSession>>,
    /// When to check the database again.
    next: Option<Instant>,
    /// Whether a change has not been compared yet.
    is_behind: bool,
    /// The fault that was logged last.
    said: Option<String>,
}

impl RowSource {
    pub(super) fn new(sources: &[Arc<DbSource>], number: usize, source: &Arc<DbSource>) -> Self {
        Self { number, source: source.clone(), sources: sources.to_vec() }
    }

    /// Finds the targets of what is watched.
    fn resolve(&self, worker: &mut RowWorker, work: &TrackerWork<'_, Self>) {
        worker.targets.retain(|uri, _| work.watched().iter().any(|name| name.uri == *uri));
        for name in work.watched().iter().filter(|name| &*name.uri != LISTS) {
            if !worker.targets.contains_key(&name.uri) {
                let templates = worker.templates.get_or_insert_with(|| DbTemplates::new(&self.sources));
                let found = templates.target(&self.sources, &name.uri);
                let target = found.filter(|(number, _)| *number == self.number).map(|(_, target)| target);
                worker.targets.insert(name.uri.clone(), target);
            }
        }
    }

    /// Reads what is watched, if the database may have changed.
    fn compare(
        &self,
        worker: &mut RowWorker,
        work: &TrackerWork<'_, Self>,
        now: &mut RowStates,
    ) -> Result<(), SessionFault> {
        let session = worker.session.get_or_insert_with(|| sessions::open(&self.source));
        let change = session.changed()?;
        now.is_lost = change == DbChange::Lost;
        let is_behind = std::mem::take(&mut worker.is_behind) || change != DbChange::Nothing;
        let reader = RowReader {
            permits: &|_| true,
            fits: &|size| {
                if size > session::LARGEST { Err(SessionFault::Size(session::LARGEST)) } else { Ok(()) }
            },
            log: &|what| work.feed.log(what),
        };
        for (uri, target) in &worker.targets {
            let Some(target) = target.as_ref().filter(|_| is_behind || !now.states.contains_key(uri)) else {
                continue;
            };
            let rows = work.last_read(uri).map(|read| read.rows);
            let state = match contents::state(&self.source, session.as_mut(), target, rows, &reader) {
                Ok(state) => {
                    worker.said = None;
                    state
                }
                // An absent row has a state too: it may appear.
                Err(SessionFault::NotFound | SessionFault::Parameter { .. } | SessionFault::Data(_)) => {
                    RowsState { digest: 0, rows: 0 }
                }
                Err(fault) => return Err(fault),
            };
            now.states.insert(uri.clone(), state);
        }
        Ok(())
    }
}

impl TrackedSource for RowSource {
    const THREAD: &'static str = "mcp-db";

    type Snapshot = RowStates;
    type Digest = RowsState;
    type Worker = RowWorker;

    fn empty(&self) -> RowStates {
        RowStates::default()
    }

    fn begin(&self, tracker: &Arc<Tracker<Self>>, _feed: &Feed) -> RowWorker {
        // Nothing was compared since the last thread has ended.
        tracker.publish(RowStates::default());
        RowWorker::default()
    }

    fn refresh(&self, worker: &mut RowWorker, work: &TrackerWork<'_, Self>) -> Option<Duration> {
        let poll = self.source.poll;
        self.resolve(worker, work);
        let mut now = RowStates { is_lost: false, ..RowStates::clone(&work.current()) };
        now.states.retain(|uri, _| worker.targets.contains_key(uri));
        let mut named = worker.targets.iter().filter(|(_, target)| target.is_some()).peekable();
        if named.peek().is_none() {
            worker.session = None;
            return Some(poll);
        }
        let is_new = named.any(|(uri, _)| !now.states.contains_key(uri));
        if is_new || worker.next.is_none_or(|next| next <= Instant::now()) {
            if let Err(fault) = self.compare(worker, work, &mut now) {
                worker.is_behind = true;
                self.say(worker, fault, work.feed);
            }
            worker.next = Some(Instant::now() + poll);
        }
        work.publish(now);
        Some(worker.next.map_or(poll, |next| next.saturating_duration_since(Instant::now())))
    }

    fn digest(&self, now: &RowStates, uri: &str) -> Option<RowsState> {
        now.states.get(uri).copied()
    }

    fn differs(&self, snapshot: &RowStates, before: RowsState, now: RowsState) -> bool {
        snapshot.is_lost || before.digest != now.digest
    }
}

impl RowSource {
    /// Logs a fault, if it is another than before.
    fn say(&self, worker: &mut RowWorker, fault: SessionFault, feed: &Feed) {
        let what = match fault {
            SessionFault::Data(what)
            | SessionFault::Down(what)
            | SessionFault::Refused(what)
            | SessionFault::Stale(what) => what,
            SessionFault::Time => "what is watched takes too long to read".into(),
            SessionFault::Size(_) => "what is watched is too large".into(),
            SessionFault::NotFound | SessionFault::Parameter { .. } => return,
        };
        if worker.said.as_ref() != Some(&what) {
            feed.log(&format!(
                "{}: {what}; changes are reported when it can be read again",
                self.source.name
            ));
            worker.said = Some(what);
        }
    }
}
