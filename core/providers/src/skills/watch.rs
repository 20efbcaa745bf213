//! Watches skills for changes, as long as a client watches one of their files or the lists.
//!
//! Law: the digest of what is there is compared with the digest of what was there. A file that was last read here with the same
//! bytes has not changed. The lists count as changed once when they are first watched, and after that with every change of an
//! entry: the resource lists announce it, since the protocol has no notification for `skills/list`.

use super::library::SkillLibrary;
use super::skill::Digest;
use crate::watching::WatchedValue;
use mcp_resources_runtime::provider::Feed;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest and the longest time between two looks.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);
/// How much longer than a look the pause after it is: the thread takes a twentieth of a processor at most.
const REST: u32 = 19;

/// Looks again and again: what the thread of [`Watching`](crate::watching::ProviderWatching) calls.
pub(super) struct Look {
    library: Arc<SkillLibrary>,
    /// What was at each watched URI.
    marks: HashMap<Arc<str>, Option<Digest>>,
    lists: Option<Digest>,
}

impl Look {
    pub(super) fn new(library: &Arc<SkillLibrary>) -> Self {
        Self { library: library.clone(), marks: HashMap::new(), lists: None }
    }

    /// Reports what has changed since the last look. Returns how long to wait for the next.
    pub(super) fn again(&mut self, feed: &Feed, watched: &WatchedValue) -> Duration {
        let begun = Instant::now();
        let Some(now) = self.library.refresh(&|| !feed.is_alive(), &|what| feed.log(what)) else {
            return SHORTEST;
        };
        self.marks.retain(|uri, _| watched.uris.contains(uri));
        for uri in &watched.uris {
            let mark = now.mark(uri);
            let before = match self.marks.insert(uri.clone(), mark) {
                Some(before) => before,
                // Somebody may have read it before it was watched.
                None => self.library.last_read(uri),
            };
            if before != mark {
                // It is in canonical form: nothing is wrong with it.
                let _ = feed.updated(uri);
            }
        }
        let lists = watched.lists.then(|| now.fingerprint());
        if lists.is_some() && lists != self.lists {
            feed.list_changed();
        }
        self.lists = lists;
        (begun.elapsed() * REST).clamp(SHORTEST, LONGEST)
    }
}
