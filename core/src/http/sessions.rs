//! The legacy sessions of an endpoint: a bounded table by id (R-169 … ).

use super::channel::Channel;
use crate::base64;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a session id before encoding.
pub const SESSION_ID_BYTES: usize = 24;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: HashMap<Box<str>, Arc<Channel>>,
}

impl Sessions {
    /// The session with this id, if it is the principal's: an id is no proof of who asks.
    pub(super) fn find(&self, id: &str, principal: &str) -> Option<&Arc<Channel>> {
        self.by_id.get(id).filter(|channel| channel.belongs_to(principal))
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Names a session and keeps it. `None` if the name is taken, which random bytes do not do.
    pub(super) fn insert(
        &mut self,
        random: [u8; SESSION_ID_BYTES],
        channel: &Arc<Channel>,
    ) -> Option<String> {
        let id = base64::encode_url(&random);
        if self.by_id.contains_key(id.as_str()) {
            return None;
        }
        self.by_id.insert(id.as_str().into(), Arc::clone(channel));
        Some(id)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Channel>> {
        self.by_id.remove(id)
    }

    pub(super) fn all(&self) -> Vec<(Box<str>, Arc<Channel>)> {
        self.by_id.iter().map(|(id, channel)| (id.clone(), Arc::clone(channel))).collect()
    }
}
