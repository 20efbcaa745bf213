//! Updates: who must hear of one, and what it is told.

use crate::{Piece, Work};
use mcp_resources_engine::hub::{ConnectionId, Filter, Hub, HubDelivery, ListKinds, ListenEnding};
use mcp_resources_engine::jsonrpc::{Id, Json, OwnedId};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::principal::Principal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

pub(crate) const PIECES: &[Piece] =
    &[("update, 1 listener", || update(1)), ("update, 1,000 listeners", || update(1_000))];

const URI: &str = "bench://sub/1";

/// How many were woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn update(listeners: usize) -> Work {
    let mut limits = Limits::default();
    // Each change is told.
    limits.coalesce = 0;
    let hub = Hub::new(&limits);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let connections: Vec<_> = (0..listeners).map(|_| listener(&hub, &waker)).collect();
    let mut out = Vec::new();
    Box::new(move || {
        hub.updated(URI, &[], 0);
        assert_eq!(count.0.swap(0, Ordering::Relaxed), connections.len(), "somebody was not woken");
        for connection in &connections {
            out.clear();
            let delivery =
                HubDelivery { room: usize::MAX, server_info: None, ending: ListenEnding::ResultOnly };
            hub.deliver(*connection, delivery, &mut out, &mut |_, _| true);
            assert!(out.ends_with(b"}\n"), "nothing was told");
        }
    })
}

fn listener(hub: &Hub, waker: &Waker) -> ConnectionId {
    let connection = hub.connect();
    let id = Json::parse(b"\"listen-1\"", 1).and_then(Id::from_json).map(OwnedId::from).expect("an id");
    let filter = Filter { lists: ListKinds::RESOURCES, uris: &[(URI, URI)] };
    hub.listen(connection, id.as_id(), Principal::local(), filter, waker).expect("within the limits");
    connection
}
