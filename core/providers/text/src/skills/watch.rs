//! The skills as a source of changes.
//!
//! Law: a file is compared by its digest, a directory by its names. The lists count as changed once when they are first watched,
//! and after that with every change of an entry: the resource lists announce it, since the protocol has no notification for
//! `skills/list`.

use super::library::{SkillLibrary, SkillSnapshot};
use super::skill::Digest;
use mcp_resources_provider_kit::tracker::{LISTS, TrackedSource, Tracker, TrackerWork};
use mcp_resources_runtime::provider::Feed;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The shortest and the longest time between two looks.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);
/// The pause after a look, in times of its duration: the thread takes a twentieth of a processor at most.
const REST: u32 = 19;

/// The skills of one declaration, to be tracked.
#[derive(Debug)]
pub(super) struct SkillSource(pub(super) Arc<SkillLibrary>);

impl TrackedSource for SkillSource {
    const THREAD: &'static str = "mcp-skills";
    const ANNOUNCES_LISTS: bool = true;

    type Snapshot = Arc<SkillSnapshot>;
    /// `None` for what is not there.
    type Digest = Option<Digest>;
    type Worker = ();

    fn empty(&self) -> Self::Snapshot {
        Arc::default()
    }

    fn begin(&self, _tracker: &Arc<Tracker<Self>>, _feed: &Feed) {}

    fn refresh(&self, _worker: &mut (), work: &TrackerWork<'_, Self>) -> Option<Duration> {
        let begun = Instant::now();
        let Some(now) = self.0.refresh(work.feed.context()) else { return Some(SHORTEST) };
        work.publish(now);
        Some((begun.elapsed() * REST).clamp(SHORTEST, LONGEST))
    }

    fn digest(&self, snapshot: &Self::Snapshot, uri: &str) -> Option<Self::Digest> {
        Some(if uri == LISTS { Some(snapshot.fingerprint()) } else { snapshot.mark(uri) })
    }

    fn changed_at(&self, snapshot: &Self::Snapshot, uri: &str) -> Option<SystemTime> {
        snapshot.changed_at(uri)
    }
}
