//! Notifies clients of changes.
//!
//! ```text
//!   a commit ──▶ Session::changed: data_version | LISTEN ──▶ what is watched is read again ──▶ updated, where it differs
//! ```
//!
//! Law: the first comparison of a resource is with what a client last read of it, so a change between the read and the
//! subscription is reported. The thread has its own sessions, which end with it.

use super::contents::{self, Reader, RowsState};
use super::session::{self, Change, Fault, Session};
use super::source::Source;
use super::target::{Target, Templates};
use crate::watching::{Watched, Watching};
use mcp_resources_host::provider::{Feed, Interest};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most reads that are remembered in each of two generations.
const REMEMBERED: usize = 2_048;
/// The longest pause of the thread.
const IDLE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watch {
    watching: Arc<Watching>,
    reads: Arc<ReadStates>,
}

/// The states that clients have last read.
#[derive(Debug, Default)]
struct ReadStates {
    /// The newer generation and the older one.
    states: Mutex<[HashMap<(usize, Target), RowsState>; 2]>,
}

impl ReadStates {
    fn insert(&self, number: usize, target: &Target, state: RowsState) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let [newer, older] = &mut *states;
        if newer.len() >= REMEMBERED {
            *older = std::mem::take(newer);
        }
        newer.insert((number, target.clone()), state);
    }

    fn get(&self, key: &(usize, Target)) -> Option<RowsState> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().find_map(|states| states.get(key)).copied()
    }
}

impl Watch {
    /// A new mount.
    pub(super) fn begin_anew(&self) {
        self.watching.begin_anew();
    }

    /// Records the state that a client has read.
    pub(super) fn remember(&self, number: usize, target: &Target, state: RowsState) {
        self.reads.insert(number, target, state);
    }

    /// Records a change of interest. The lists never change, because tables are declared.
    pub(super) fn interest(&self, change: Interest<'_>, feed: Option<Feed>, sources: &[Arc<Source>]) {
        if matches!(change, Interest::Lists { .. }) {
            return;
        }
        self.watching.interest(change, feed, "mcp-db", || {
            let mut watcher = Watcher {
                templates: None,
                reads: self.reads.clone(),
                sources: sources.to_vec(),
                each: sources.iter().map(|_| WatchedSource::default()).collect(),
                targets: HashMap::new(),
            };
            move |feed, watched| watcher.look(feed, watched)
        });
    }
}

/// The state of the thread.
struct Watcher {
    templates: Option<Templates>,
    reads: Arc<ReadStates>,
    sources: Vec<Arc<Source>>,
    each: Vec<WatchedSource>,
    /// The targets of the watched URIs; `None` for the index, which never changes.
    targets: HashMap<Arc<str>, Option<(usize, Target)>>,
}

/// A database that is watched.
#[derive(Default)]
struct WatchedSource {
    session: Option<Box<dyn Session>>,
    /// The last state of each URI.
    states: HashMap<Arc<str>, RowsState>,
    /// When to check it again.
    next: Option<Instant>,
    /// Whether a change has not been compared yet.
    is_behind: bool,
    /// The fault that was logged last.
    said: Option<String>,
}

impl Watcher {
    fn look(&mut self, feed: &Feed, watched: &Watched) -> Duration {
        self.targets.retain(|uri, _| watched.uris.contains(uri));
        let (sources, templates) = (&self.sources, &mut self.templates);
        for uri in &watched.uris {
            if !self.targets.contains_key(uri) {
                let templates = templates.get_or_insert_with(|| Templates::new(sources));
                let target = templates.target(sources, uri).filter(|(_, target)| *target != Target::Index);
                self.targets.insert(uri.clone(), target);
            }
        }
        let mut wait = IDLE;
        for (number, (source, each)) in self.sources.iter().zip(&mut self.each).enumerate() {
            let own: Vec<_> = self
                .targets
                .iter()
                .filter_map(|(uri, target)| Some((uri, target.as_ref().filter(|(own, _)| *own == number)?)))
                .collect();
            if own.is_empty() {
                *each = WatchedSource::default();
                continue;
            }
            each.states.retain(|uri, _| self.targets.contains_key(uri));
            let now = Instant::now();
            let is_new = own.iter().any(|(uri, _)| !each.states.contains_key(*uri));
            if is_new || each.next.is_none_or(|next| next <= now) {
                each.look(feed, source, &own, &self.reads);
                each.next = Some(Instant::now() + source.poll);
            }
            let left = each.next.map_or(source.poll, |next| next.saturating_duration_since(Instant::now()));
            wait = wait.min(left);
        }
        wait
    }
}

impl WatchedSource {
    fn look(
        &mut self,
        feed: &Feed,
        source: &Arc<Source>,
        own: &[(&Arc<str>, &(usize, Target))],
        reads: &ReadStates,
    ) {
        let log = |what: &str| feed.log(&format!("{}: {what}", source.name));
        let session = self.session.get_or_insert_with(|| session::open(source));
        let change = match session.changed() {
            Ok(change) => change,
            Err(fault) => {
                self.is_behind = true;
                return self.say(fault, &log);
            }
        };
        if change == Change::Lost {
            // A value may have changed and changed back.
            own.iter().for_each(|(uri, _)| drop(feed.updated(uri)));
        }
        let is_behind = std::mem::take(&mut self.is_behind) || change != Change::Nothing;
        let reader = Reader {
            permits: &|_| true,
            fits: &|size| if size > session::LARGEST { Err(Fault::Size(session::LARGEST)) } else { Ok(()) },
            log: &|what| feed.log(what),
        };
        for (uri, place) in own {
            let before = self.states.get(*uri).copied();
            if before.is_some() && !is_behind {
                continue;
            }
            let read = reads.get(place);
            let rows = read.map(|read| read.rows);
            match contents::state(source, session.as_mut(), &place.1, rows, &reader) {
                Ok(state) => {
                    let shown = before.or(read);
                    if shown.is_some_and(|shown| shown.digest != state.digest) && change != Change::Lost {
                        // It is in canonical form: nothing is wrong with it.
                        let _ = feed.updated(uri);
                    }
                    self.states.insert((*uri).clone(), state);
                    self.said = None;
                }
                // An absent row has a state too: it may appear.
                Err(Fault::NotFound | Fault::Parameter { .. }) => {
                    let state = RowsState { digest: 0, rows: 0 };
                    if before.or(read).is_some_and(|shown| shown != state) {
                        let _ = feed.updated(uri);
                    }
                    self.states.insert((*uri).clone(), state);
                }
                Err(fault) => {
                    self.is_behind = true;
                    return self.say(fault, &log);
                }
            }
        }
    }

    /// Logs a fault, if it is another than before.
    fn say(&mut self, fault: Fault, log: &dyn Fn(&str)) {
        let what = match fault {
            Fault::Down(what) | Fault::Stale(what) => what,
            Fault::Time => "what is watched takes too long to read".into(),
            Fault::Size(_) => "what is watched is too large".into(),
            Fault::NotFound | Fault::Parameter { .. } => return,
        };
        if self.said.as_ref() != Some(&what) {
            log(&format!("{what}; changes are reported when it can be read again"));
            self.said = Some(what);
        }
    }
}
