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
use super::source::DbSource;
use super::target::{DbTarget, DbTemplates};
use crate::watching::WatchedValue;
use mcp_resources_runtime::provider::{Feed, InterestChange};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most reads that are remembered in each of two generations.
const REMEMBERED: usize = 2_048;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct DbWatch {
    reads: Arc<ReadStates>,
}

/// The states that clients have last read.
#[derive(Debug, Default)]
struct ReadStates {
    /// The newer generation and the older one.
    states: Mutex<[HashMap<(usize, DbTarget), RowsState>; 2]>,
}

impl ReadStates {
    fn insert(&self, number: usize, target: &DbTarget, state: RowsState) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let [newer, older] = &mut *states;
        if newer.len() >= REMEMBERED {
            *older = std::mem::take(newer);
        }
        newer.insert((number, target.clone()), state);
    }

    fn get(&self, key: &(usize, DbTarget)) -> Option<RowsState> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().find_map(|states| states.get(key)).copied()
    }
}

impl DbWatch {
    /// Records the state that a client has read.
    pub(super) fn remember(&self, number: usize, target: &DbTarget, state: RowsState) {
        self.reads.insert(number, target, state);
    }

    /// Records a change of interest. The lists and the index never change, because tables are declared.
    pub(super) fn interest(&self, change: InterestChange<'_>, feed: Option<Feed>, sources: &[Arc<DbSource>]) {
        let InterestChange::Uri { uri, .. } = change else { return };
        let is_under =
            |source: &DbSource| uri.strip_prefix(&*source.uri).is_some_and(|rest| rest.starts_with('/'));
        let Some(number) = sources.iter().position(|source| is_under(source)) else { return };
        let Some(source) = sources.get(number) else { return };
        source.watching.interest(change, feed, "mcp-db", || {
            let mut watcher = DbWatcher {
                number,
                source: source.clone(),
                sources: sources.to_vec(),
                templates: None,
                reads: self.reads.clone(),
                targets: HashMap::new(),
                session: None,
                states: HashMap::new(),
                next: None,
                is_behind: false,
                said: None,
            };
            move |feed, watched| watcher.look(feed, watched)
        });
    }
}

/// The state of the thread of one database.
struct DbWatcher {
    number: usize,
    source: Arc<DbSource>,
    sources: Vec<Arc<DbSource>>,
    templates: Option<DbTemplates>,
    reads: Arc<ReadStates>,
    /// The targets of the watched URIs; `None` for those that name nothing.
    targets: HashMap<Arc<str>, Option<DbTarget>>,
    session: Option<Box<dyn DbSession>>,
    /// The last state of each URI.
    states: HashMap<Arc<str>, RowsState>,
    /// When to check the database again.
    next: Option<Instant>,
    /// Whether a change has not been compared yet.
    is_behind: bool,
    /// The fault that was logged last.
    said: Option<String>,
}

impl DbWatcher {
    fn look(&mut self, feed: &Feed, watched: &WatchedValue) -> Duration {
        self.targets.retain(|uri, _| watched.uris.contains(uri));
        self.states.retain(|uri, _| watched.uris.contains(uri));
        for uri in &watched.uris {
            if !self.targets.contains_key(uri) {
                let templates = self.templates.get_or_insert_with(|| DbTemplates::new(&self.sources));
                let found = templates.target(&self.sources, uri).filter(|(number, _)| *number == self.number);
                self.targets.insert(uri.clone(), found.map(|(_, target)| target));
            }
        }
        let mut named = self.targets.iter().filter(|(_, target)| target.is_some()).peekable();
        if named.peek().is_none() {
            self.session = None;
            return self.source.poll;
        }
        let is_new = named.any(|(uri, _)| !self.states.contains_key(uri));
        if is_new || self.next.is_none_or(|next| next <= Instant::now()) {
            if let Err(fault) = self.compare(feed) {
                self.is_behind = true;
                self.say(fault, feed);
            }
            self.next = Some(Instant::now() + self.source.poll);
        }
        self.next.map_or(self.source.poll, |next| next.saturating_duration_since(Instant::now()))
    }

    /// Reports what has changed, if the database may have.
    fn compare(&mut self, feed: &Feed) -> Result<(), SessionFault> {
        let source = &self.source;
        let session = self.session.get_or_insert_with(|| session::open(source));
        let change = session.changed()?;
        let targets = || self.targets.iter().filter_map(|(uri, target)| Some((uri, target.as_ref()?)));
        if change == DbChange::Lost {
            // A value may have changed and changed back.
            targets().for_each(|(uri, _)| drop(feed.updated(uri)));
        }
        let is_behind = std::mem::take(&mut self.is_behind) || change != DbChange::Nothing;
        let reader = RowReader {
            permits: &|_| true,
            fits: &|size| {
                if size > session::LARGEST { Err(SessionFault::Size(session::LARGEST)) } else { Ok(()) }
            },
            log: &|what| feed.log(what),
        };
        for (uri, target) in targets() {
            let before = self.states.get(uri).copied();
            if before.is_some() && !is_behind {
                continue;
            }
            let read = self.reads.get(&(self.number, target.clone()));
            let rows = read.map(|read| read.rows);
            let state = match contents::state(source, session.as_mut(), target, rows, &reader) {
                Ok(state) => {
                    self.said = None;
                    state
                }
                // An absent row has a state too: it may appear.
                Err(SessionFault::NotFound | SessionFault::Parameter { .. } | SessionFault::Data(_)) => {
                    RowsState { digest: 0, rows: 0 }
                }
                Err(fault) => return Err(fault),
            };
            let is_changed = before.or(read).is_some_and(|shown| shown.digest != state.digest);
            if is_changed && change != DbChange::Lost {
                // It is in canonical form: nothing is wrong with it.
                let _ = feed.updated(uri);
            }
            self.states.insert(uri.clone(), state);
        }
        Ok(())
    }

    /// Logs a fault, if it is another than before.
    fn say(&mut self, fault: SessionFault, feed: &Feed) {
        let what = match fault {
            SessionFault::Data(what)
            | SessionFault::Down(what)
            | SessionFault::Refused(what)
            | SessionFault::Stale(what) => what,
            SessionFault::Time => "what is watched takes too long to read".into(),
            SessionFault::Size(_) => "what is watched is too large".into(),
            SessionFault::NotFound | SessionFault::Parameter { .. } => return,
        };
        if self.said.as_ref() != Some(&what) {
            feed.log(&format!(
                "{}: {what}; changes are reported when it can be read again",
                self.source.name
            ));
            self.said = Some(what);
        }
    }
}
