//! The servers that have the URIs of an agent, as far as lists and reads have shown.

use crate::recent::RecentTable;
use mcp_resources_template::uri::{MAX_URI, normalize};
use std::borrow::Cow;

/// Most URIs that are known.
const MOST_OWNERS: usize = 100_000;

/// The owners of URIs, by their canonical form.
#[derive(Debug)]
pub(crate) struct UriOwners {
    owners: RecentTable<String, UriOwner>,
    /// A digest of what was last read, by server and URI: to see whether it changed before a subscription was active.
    digests: RecentTable<(usize, String), u64>,
}

/// The first server that has a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriOwner {
    pub(crate) server: usize,
    /// Its spelling there.
    pub(crate) spelling: String,
}

impl UriOwners {
    pub(crate) fn new() -> Self {
        Self { owners: RecentTable::new(MOST_OWNERS), digests: RecentTable::new(MOST_OWNERS) }
    }

    /// Notes that `server` has a URI. Returns whether an earlier server has it too, so that it needs a prefix here.
    pub(crate) fn claim(&mut self, server: usize, uri: &str) -> bool {
        let key = canonical(uri);
        if let Some(owner) = self.owners.get(&*key)
            && owner.server <= server
        {
            return owner.server < server;
        }
        self.owners.insert(key.into_owned(), UriOwner { server, spelling: uri.to_owned() });
        false
    }

    /// The first server that has a URI.
    pub(crate) fn owner(&mut self, uri: &str) -> Option<UriOwner> {
        self.owners.get(&*canonical(uri)).map(|owner| owner.clone())
    }

    /// Forgets what a server has, because its list has changed.
    pub(crate) fn forget(&mut self, server: usize) {
        self.owners.retain(|_, owner| owner.server != server);
    }

    pub(crate) fn was_read(&mut self, server: usize, uri: &str, digest: u64) {
        self.digests.insert((server, canonical(uri).into_owned()), digest);
    }

    pub(crate) fn last_read(&mut self, server: usize, uri: &str) -> Option<u64> {
        self.digests.get(&(server, canonical(uri).into_owned())).copied()
    }
}

/// The canonical form of a URI; of another text the text itself.
pub(crate) fn canonical(uri: &str) -> Cow<'_, str> {
    normalize(uri, MAX_URI).unwrap_or(Cow::Borrowed(uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_server_has_the_plain_uri_whatever_comes_first() {
        let mut owners = UriOwners::new();
        assert!(!owners.claim(1, "NOTE://a"));
        assert!(!owners.claim(1, "note://a"), "its own");
        assert!(owners.claim(2, "note://a"));
        assert!(!owners.claim(0, "note://a"), "an earlier one takes it");
        assert!(owners.claim(1, "note://a"));
        assert_eq!(owners.owner("note://a"), Some(UriOwner { server: 0, spelling: "note://a".into() }));
        owners.forget(0);
        assert_eq!(owners.owner("note://a"), None);
    }
}
