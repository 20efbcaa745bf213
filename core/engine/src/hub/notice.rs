//! Pending notifications of a connection: taken from the table under the lock, then checked by the guard and written
//! without it.
//!
//! Law: a notice owns everything needed to write it, and each message is one line. No other code writes change
//! notifications.

use super::table::{HubConnection, HubSubject, Spelling, SubscriberState, SubscriptionTable};
use super::{ConnectionId, Delivered, HubDelivery, ListKinds, ListenEnding};
use crate::jsonrpc::{Envelope, Id, Json, ObjectWriter, OwnedId, end};
use crate::meta::{SERVER_INFO, SUBSCRIPTION_ID};
use crate::principal::Principal;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of notices taken while holding the lock once.
const BATCH: usize = 256;

/// One notification for one subscriber.
#[derive(Debug)]
pub(super) struct Notice {
    principal: Arc<Principal>,
    /// The id of the listen; `None` for a legacy connection.
    request_id: Option<Arc<OwnedId>>,
    what: What,
}

#[derive(Debug)]
enum What {
    ListChanged(ListKinds),
    Updated { canonical: Arc<str>, spelling: Option<Spelling> },
    Ended,
}

/// Notices, and the state of the connection after them.
#[derive(Debug)]
pub(super) struct NoticeBatch {
    pub(super) notices: Vec<Notice>,
    /// Whether the connection has several subscribers, so that the same question could be put to the guard twice.
    pub(super) several: bool,
    pub(super) left: Delivered,
}

impl SubscriptionTable {
    /// Takes notices that begin within `room` bytes, one from each subscriber in turn.
    pub(super) fn take(&mut self, id: ConnectionId, room: usize) -> NoticeBatch {
        let mut batch = NoticeBatch { notices: Vec::new(), several: false, left: Delivered::Idle };
        let Some(key) = self.connection(id) else { return batch };
        // Pending notifications wait for the next stream that the client may open.
        if std::mem::take(&mut self.connections[key].revoked) {
            batch.left = Delivered::Ended;
            return batch;
        }
        let mut used = 0;
        while used < room && batch.notices.len() < BATCH {
            let Some(subscriber) = self.connections[key].queue.pop_front() else { break };
            if let Some(notice) = self.next_notice(key, subscriber) {
                used += notice.size();
                batch.notices.push(notice);
            }
        }
        let connection = &self.connections[key];
        batch.several = connection.listens.len() + usize::from(connection.legacy.is_some()) > 1;
        batch.left = match () {
            () if !connection.queue.is_empty() => Delivered::More,
            () if self.is_over(connection) => Delivered::Ended,
            () => Delivered::Idle,
        };
        batch
    }

    /// The next notice for a subscriber taken from its connection's queue; `None` if its pending topics were
    /// unsubscribed in the meantime.
    fn next_notice(&mut self, connection: usize, key: usize) -> Option<Notice> {
        let subscriber = &mut self.subscribers[key];
        let what = if let Some(topic) = subscriber.dirty.pop_front() {
            self.topics[topic].is_marked = false;
            let spelling = subscriber.watches.get_mut(&topic).and_then(|watch| {
                watch.dirty = false;
                watch.spelling.clone()
            });
            Some(match &self.topics[topic].subject {
                HubSubject::List(kind) => What::ListChanged(*kind),
                HubSubject::Uri(uri) => What::Updated { canonical: Arc::clone(uri), spelling },
            })
        } else if subscriber.state == SubscriberState::Ending {
            subscriber.state = SubscriberState::Ended;
            Some(What::Ended)
        } else {
            None
        };
        let principal = Arc::clone(&subscriber.principal);
        let request_id = subscriber.request_id.clone();
        subscriber.requeue(key, &mut self.connections[connection].queue);
        if subscriber.state == SubscriberState::Ended {
            self.ended(connection, key);
        }
        what.map(|what| Notice { principal, request_id, what })
    }

    /// Removes a listen that was answered, unless it still has watches: those are released, and reported, when the
    /// connection ends.
    fn ended(&mut self, connection: usize, key: usize) {
        let connection = &mut self.connections[connection];
        connection.ended = true;
        if self.subscribers[key].watches.is_empty() {
            let subscriber = self.subscribers.remove(key);
            subscriber.request_id.and_then(|id| connection.listens.remove(&*id.as_id().canonical()));
        }
    }

    fn is_over(&self, connection: &HubConnection) -> bool {
        let ended = connection.ended && connection.legacy.is_none();
        let mut listens = connection.listens.values();
        (connection.closing || ended)
            && listens.all(|key| self.subscribers[*key].state == SubscriberState::Ended)
    }
}

/// Caches the guard's decisions during one delivery.
pub(super) struct VisibilityCache<'a> {
    may_see: &'a mut dyn FnMut(&Arc<Principal>, &str) -> bool,
    /// By address of the principal and canonical URI. The value holds the principal, so the address stays unique.
    known: HashMap<(usize, Arc<str>), (Arc<Principal>, bool)>,
}

impl<'a> VisibilityCache<'a> {
    pub(super) fn new(may_see: &'a mut dyn FnMut(&Arc<Principal>, &str) -> bool) -> Self {
        Self { may_see, known: HashMap::new() }
    }

    /// Whether a notice may be sent. Decisions are cached if there are `several` subscribers.
    pub(super) fn may_see(&mut self, notice: &Notice, several: bool) -> bool {
        let What::Updated { canonical, .. } = &notice.what else { return true };
        let principal = &notice.principal;
        if !several {
            return (self.may_see)(principal, canonical);
        }
        let key = (Arc::as_ptr(principal) as usize, Arc::clone(canonical));
        let ask = || (Arc::clone(principal), (self.may_see)(principal, canonical));
        self.known.entry(key).or_insert_with(ask).1
    }
}

impl Notice {
    /// Appends the notice's messages to `out`.
    pub(super) fn write(&self, delivery: HubDelivery<'_>, out: &mut Vec<u8>) {
        let request_id = self.request_id.as_ref().map(|id| id.as_id());
        match (&self.what, request_id) {
            (What::ListChanged(kind), _) => write_list_changed(*kind, request_id, out),
            (What::Updated { canonical, spelling }, _) => {
                write_updated(canonical, spelling.as_deref(), request_id, out);
            }
            (What::Ended, Some(id)) => write_end(id, delivery.server_info, delivery.ending, out),
            // Only listens end.
            (What::Ended, None) => {}
        }
    }

    /// The approximate size of an update in bytes; rare, short messages count as an update without a URI.
    fn size(&self) -> usize {
        const UPDATE: &str =
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":""}}"#;
        const TAG: &str = r#""_meta":{"io.modelcontextprotocol/subscriptionId":},"#;
        let tag = self.request_id.as_ref().map_or(0, |id| TAG.len() + id.as_id().raw().len());
        let uri = match &self.what {
            What::Updated { spelling: Some(spelling), .. } => spelling.len(),
            What::Updated { canonical, .. } => canonical.len(),
            What::ListChanged(_) | What::Ended => 0,
        };
        UPDATE.len() + tag + uri
    }
}

/// Writes an update, with the id of a listen.
fn write_updated(canonical: &str, spelling: Option<&[u8]>, request_id: Option<Id<'_>>, out: &mut Vec<u8>) {
    Envelope::notification(out, "notifications/resources/updated", |params| {
        put_tag(params, request_id);
        match spelling {
            Some(spelling) => params.value("uri").extend_from_slice(spelling),
            None => params.str("uri", canonical),
        }
    });
    end(out);
}

/// Writes `list_changed`, with the id of a listen.
fn write_list_changed(kind: ListKinds, request_id: Option<Id<'_>>, out: &mut Vec<u8>) {
    Envelope::notification(out, kind.method(), |params| put_tag(params, request_id));
    end(out);
}

/// Appends the answer to a listen that the server ends, also when the listen has nothing to watch and
/// ends right after its acknowledgement. `server_info` is JSON text on one line.
pub fn write_end(id: Id<'_>, server_info: Option<&str>, ending: ListenEnding, out: &mut Vec<u8>) {
    Envelope::JsonRpc.result(out, id, |result| {
        result.str("resultType", "complete");
        result.object("_meta", |meta| {
            meta.raw(SUBSCRIPTION_ID, Json::from(id));
            if let Some(server_info) = server_info {
                meta.value(SERVER_INFO).extend_from_slice(server_info.as_bytes());
            }
        });
    });
    end(out);
    if ending == ListenEnding::ResultThenCancelled {
        Envelope::notification(out, "notifications/cancelled", |params| {
            params.raw("requestId", Json::from(id));
        });
        end(out);
    }
}

/// Writes the id of the listen.
fn put_tag(params: &mut ObjectWriter<'_>, request_id: Option<Id<'_>>) {
    if let Some(id) = request_id {
        params.object("_meta", |meta| meta.raw(SUBSCRIPTION_ID, Json::from(id)));
    }
}
