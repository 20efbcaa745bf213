//! Servers of other libraries on the bus: they announce their changes, and hear of those of the other processes.
//!
//! Law: an event that waits is not added again, and changes for one principal are dropped here, because such a server cannot
//! tell its clients apart.

use super::task::ChangeReceiver;
use super::thread::BusGroup;
use super::{Bus, BusThread};
use crate::sync::Mutex;
use crate::transport::EngineClock;
use mcp_resources_engine::engine::SharedChange;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::Now;
use mcp_resources_engine::seal::SealKey;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Waker;

/// Maximum number of URIs that wait, and of those that are remembered.
const URIS: usize = 16_384;
/// Maximum size of one of them in bytes.
const URI_BYTES: usize = 8_192;
/// Maximum number of lines for the log that wait.
const LINES: usize = 16;

/// A process on the bus whose server belongs to another library.
#[derive(Debug)]
pub struct BusClient {
    thread: BusThread,
    heard: Arc<HeardChanges>,
}

/// A change that the clients of a server hear about, without those for one principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// The kind of the change.
    pub kind: ServerEventKind,
    /// The URI of a resource; `None` for a list.
    pub uri: Option<String>,
}

/// The kinds of [`ServerEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEventKind {
    /// A resource has other contents.
    ResourceUpdated,
    /// The list of resources or of templates has changed.
    ResourcesListChanged,
    /// The list of tools has changed.
    ToolsListChanged,
    /// The list of prompts has changed.
    PromptsListChanged,
}

#[derive(Debug)]
struct HeardChanges {
    state: Mutex<HeardState>,
    waker: Waker,
}

/// Events that the program has not taken yet, and the URIs that it may have clients for.
#[derive(Debug, Default)]
struct HeardState {
    uris: HashSet<Box<str>>,
    lists: ListKinds,
    /// Whether anything may have changed.
    is_everything: bool,
    /// The URIs of all events so far, in either direction, up to the limit.
    known: HashSet<Box<str>>,
    /// For the log.
    lines: Vec<String>,
}

/// The result of [`BusClient::take`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeardEvents {
    /// Each once.
    pub events: Vec<ServerEvent>,
    /// Lines for the log: that the bus is lost, or that it is back.
    pub lines: Vec<String>,
}

impl ServerEventKind {
    const ALL: [Self; 4] =
        [Self::ResourceUpdated, Self::ResourcesListChanged, Self::ToolsListChanged, Self::PromptsListChanged];

    /// Its name in the SDK for TypeScript.
    pub fn word(self) -> &'static str {
        match self {
            Self::ResourceUpdated => "resource_updated",
            Self::ResourcesListChanged => "resources_list_changed",
            Self::ToolsListChanged => "tools_list_changed",
            Self::PromptsListChanged => "prompts_list_changed",
        }
    }

    /// The name of its class in the SDK for Python.
    pub fn class_name(self) -> &'static str {
        match self {
            Self::ResourceUpdated => "ResourceUpdated",
            Self::ResourcesListChanged => "ResourcesListChanged",
            Self::ToolsListChanged => "ToolsListChanged",
            Self::PromptsListChanged => "PromptsListChanged",
        }
    }

    /// The kind with this name in either SDK.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| [kind.word(), kind.class_name()].contains(&name))
    }

    fn list(self) -> ListKinds {
        match self {
            Self::ResourceUpdated => ListKinds::NONE,
            Self::ResourcesListChanged => ListKinds::RESOURCES,
            Self::ToolsListChanged => ListKinds::TOOLS,
            Self::PromptsListChanged => ListKinds::PROMPTS,
        }
    }
}

impl BusClient {
    /// Joins the processes of `server`, which share `keys`. `waker` is called when [`BusClient::take`] has something. Never
    /// waits for the bus.
    ///
    /// # Errors
    /// Without keys, because messages are sealed with them; of the system, if it gives no thread or no randomness.
    pub fn start(bus: Arc<dyn Bus>, server: &str, keys: Vec<SealKey>, waker: Waker) -> io::Result<Self> {
        let heard = Arc::new(HeardChanges { state: Mutex::default(), waker });
        let receiver = Arc::downgrade(&heard);
        let clock = Arc::new(EngineClock::new());
        let log = heard.clone();
        let write = move |line| log.write(line);
        let thread =
            BusThread::begin(bus, receiver, BusGroup { server: server.to_owned(), keys }, clock, write)?;
        Ok(Self { thread, heard })
    }

    /// Announces a change to the other processes. Never waits for the bus. A resource needs a URI, and a list has none:
    /// other events are ignored, and so are URIs of more than 8 KiB.
    pub fn announce(&self, event: ServerEvent) {
        let lists = event.kind.list();
        let change = match event.uri {
            Some(uri) if lists == ListKinds::NONE && uri.len() <= URI_BYTES => {
                self.heard.state.lock().remember(&uri);
                SharedChange::Updated { uri: uri.into(), principal: None }
            }
            None if lists != ListKinds::NONE => SharedChange::Lists { kinds: lists, principal: None },
            _ => return,
        };
        self.thread.announce(change);
    }

    /// Takes the events of other processes, each once. After a loss, and at the start, they are all lists, and the resources
    /// that this process has sent or heard of before.
    pub fn take(&self) -> HeardEvents {
        let mut state = self.heard.state.lock();
        HeardEvents { events: state.take(), lines: std::mem::take(&mut state.lines) }
    }

    /// Waits until all events so far are sent, but at most one second.
    pub fn flush(&self) {
        self.thread.flush();
    }

    /// Call this in a forked process: it joins the bus by itself.
    pub fn forked(&self) {
        self.thread.forked();
    }
}

impl HeardChanges {
    fn write(&self, line: String) {
        {
            let mut state = self.state.lock();
            if state.lines.len() >= LINES {
                return;
            }
            state.lines.push(line);
        }
        self.waker.wake_by_ref();
    }
}

impl ChangeReceiver for HeardChanges {
    fn apply(&self, change: &SharedChange, _now: Now) {
        let is_new = self.state.lock().add(change);
        if is_new {
            self.waker.wake_by_ref();
        }
    }

    fn apply_all(&self, _now: Now) {
        self.state.lock().is_everything = true;
        self.waker.wake_by_ref();
    }
}

impl HeardState {
    /// Whether it has something that it had not before.
    fn add(&mut self, change: &SharedChange) -> bool {
        match change {
            SharedChange::Updated { uri, principal: None } if uri.len() <= URI_BYTES => {
                self.remember(uri);
                if self.is_everything && self.known.contains(uri) || self.uris.contains(uri) {
                    return false;
                }
                if self.uris.len() >= URIS {
                    // The program takes nothing: it hears of everything that is remembered instead.
                    self.uris.clear();
                    self.is_everything = true;
                    return true;
                }
                self.uris.insert(uri.clone())
            }
            SharedChange::Lists { kinds, principal: None } => {
                let before = self.lists;
                self.lists = before | *kinds;
                self.lists != before
            }
            _ => false,
        }
    }

    fn remember(&mut self, uri: &str) {
        if self.known.len() < URIS && !self.known.contains(uri) {
            self.known.insert(uri.into());
        }
    }

    fn take(&mut self) -> Vec<ServerEvent> {
        let mut uris = std::mem::take(&mut self.uris);
        let is_everything = std::mem::take(&mut self.is_everything);
        let lists = std::mem::take(&mut self.lists);
        if is_everything {
            uris.extend(self.known.iter().cloned());
        }
        let is_changed = |kind: &ServerEventKind| {
            let list = kind.list();
            list != ListKinds::NONE && (is_everything || lists.contains(list))
        };
        let lists = ServerEventKind::ALL.into_iter().filter(is_changed);
        let mut events: Vec<_> = lists.map(|kind| ServerEvent { kind, uri: None }).collect();
        let updated =
            |uri: Box<str>| ServerEvent { kind: ServerEventKind::ResourceUpdated, uri: Some(uri.into()) };
        events.extend(uris.into_iter().map(updated));
        events
    }
}

impl fmt::Display for ServerEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(uri: &str) -> SharedChange {
        SharedChange::Updated { uri: uri.into(), principal: None }
    }

    fn taken(state: &mut HeardState) -> Vec<String> {
        let mut events: Vec<String> = state
            .take()
            .into_iter()
            .map(|event| event.uri.unwrap_or_else(|| event.kind.to_string()))
            .collect();
        events.sort();
        events
    }

    #[test]
    fn events_are_joined_and_those_for_one_principal_are_dropped() {
        let mut state = HeardState::default();
        assert!(state.add(&updated("note://1")) && !state.add(&updated("note://1")));
        let kinds = ListKinds::TOOLS | ListKinds::RESOURCES;
        assert!(state.add(&SharedChange::Lists { kinds, principal: None }));
        for change in [
            SharedChange::Updated { uri: "note://ada".into(), principal: Some("ada".into()) },
            SharedChange::Lists { kinds: ListKinds::PROMPTS, principal: Some("ada".into()) },
            SharedChange::Revoked { principal: "ada".into() },
            updated(&"x".repeat(URI_BYTES + 1)),
        ] {
            assert!(!state.add(&change), "{change:?}");
        }
        assert_eq!(taken(&mut state), ["note://1", "resources_list_changed", "tools_list_changed"]);
        assert!(taken(&mut state).is_empty());
    }

    #[test]
    fn after_a_loss_everything_known_is_told() {
        let mut state = HeardState::default();
        state.remember("note://mine");
        state.add(&updated("note://1"));
        taken(&mut state);
        state.is_everything = true;
        let lists = ["prompts_list_changed", "resources_list_changed", "tools_list_changed"];
        assert_eq!(taken(&mut state), [["note://1", "note://mine"].as_slice(), &lists].concat());
        for number in 0..URIS + 5 {
            state.add(&updated(&format!("x://{number}")));
        }
        assert!(state.is_everything && state.uris.len() < URIS && state.known.len() == URIS);
    }

    #[test]
    fn both_sdks_name_the_same_kinds() {
        for kind in ServerEventKind::ALL {
            assert_eq!(ServerEventKind::parse(kind.word()), Some(kind));
            assert_eq!(ServerEventKind::parse(kind.class_name()), Some(kind));
        }
        assert_eq!(ServerEventKind::parse("roots_list_changed"), None);
    }
}
