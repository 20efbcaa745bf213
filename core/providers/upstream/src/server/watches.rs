//! The watched resources of a server: one subscription for all who hear of one.

use super::{AGAIN, MOST_WATCHES, UpstreamServer, UpstreamWatch, lock};
use mcp_resources_client::{ClientError, Failure, Heard};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl UpstreamServer {
    /// Subscribes to a resource, once for all who hear of it. `uri` is its canonical form, `spelling` the server's own.
    pub(crate) fn hear(self: &Arc<Self>, uri: &str, spelling: &str) {
        let mut watches = lock(&self.watches);
        if let Some(watch) = watches.get_mut(uri) {
            watch.count += 1;
            let is_active = watch.hearing.is_some();
            drop(watches);
            if is_active {
                self.each(|listener| listener.active(self, uri));
            }
            return;
        }
        if watches.len() >= MOST_WATCHES {
            return;
        }
        let watch = UpstreamWatch { count: 1, spelling: spelling.to_owned(), hearing: None, was_lost: false };
        watches.insert(uri.to_owned(), watch);
        drop(watches);
        self.subscribe(uri);
    }

    /// Counts every watch once more, and returns their URIs: each is ended with [`UpstreamServer::unhear`].
    pub(crate) fn hold(&self) -> Vec<String> {
        let mut watches = lock(&self.watches);
        watches.iter_mut().for_each(|(_, watch)| watch.count += 1);
        watches.keys().cloned().collect()
    }

    /// Ends what [`UpstreamServer::hear`] began.
    pub(crate) fn unhear(&self, uri: &str) {
        let mut watches = lock(&self.watches);
        let Some(watch) = watches.get_mut(uri) else { return };
        watch.count -= 1;
        let ended = if watch.count == 0 { watches.remove(uri) } else { None };
        drop(watches);
        drop(ended);
    }

    fn subscribe(self: &Arc<Self>, uri: &str) {
        let Ok(client) = self.client() else { return };
        let Some(spelling) = lock(&self.watches).get(uri).map(|watch| watch.spelling.clone()) else { return };
        let server = Arc::downgrade(self);
        let key = uri.to_owned();
        let hearing = client.hear(&spelling, move |heard| {
            if let Some(server) = server.upgrade() {
                server.heard(&key, heard);
            }
        });
        if let Some(watch) = lock(&self.watches).get_mut(uri) {
            watch.hearing = hearing.ok();
        }
    }

    /// Handles a report, on the task of the connection.
    fn heard(self: &Arc<Self>, uri: &str, heard: Heard) {
        let server = self.clone();
        let uri = uri.to_owned();
        match heard {
            Heard::Active => {
                let was_lost = lock(&self.watches)
                    .get_mut(&uri)
                    .is_some_and(|watch| std::mem::take(&mut watch.was_lost));
                match was_lost {
                    true => self.changed(&uri),
                    false => self.each(|listener| listener.active(self, &uri)),
                }
            }
            Heard::Changed => self.changed(&uri),
            Heard::Ended(ClientError::Failed(Failure::Unsupported { .. })) => {}
            Heard::Ended(_) => {
                if let Some(watch) = lock(&self.watches).get_mut(&uri) {
                    watch.was_lost = true;
                }
                self.runtime.spawn(async move {
                    tokio::time::sleep(AGAIN).await;
                    server.subscribe(&uri);
                });
            }
        }
    }

    fn changed(self: &Arc<Self>, uri: &str) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let spelling = lock(&self.watches).get(uri).map(|watch| watch.spelling.clone());
        {
            let mut shared = lock(&self.shared);
            shared.reads.remove(uri);
            spelling.iter().for_each(|own| shared.reads.remove(own.as_str()));
        }
        self.each(|listener| listener.updated(self, uri));
    }
}
