//! Requests watched resources at intervals, and notifies subscribers if the served contents have changed.
//!
//! Law: a request that fails changes nothing, and is made less and less often, and not before the time that the server gave.

use super::service::Service;
use mcp_resources_provider_kit::watching::WatchedValue;
use mcp_resources_runtime::provider::Feed;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum factor by which the pause between requests grows while a server is down.
const SLOWEST: u32 = 16;
/// The longest pause: a later time may not exist on the clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The longest wait until new watchers are looked for.
const LOOK: Duration = Duration::from_millis(500);

/// One watched resource.
#[derive(Debug)]
struct Poll {
    digest: Option<u64>,
    due: Instant,
    failures: u32,
}

/// Returns the function that the watching thread calls repeatedly.
pub(super) fn looks(
    services: Vec<Arc<Service>>,
) -> impl FnMut(&Feed, &WatchedValue) -> Duration + Send + 'static {
    let mut states: BTreeMap<Arc<str>, Poll> = BTreeMap::new();
    move |feed, watched| {
        states.retain(|uri, _| watched.uris.contains(uri));
        for uri in &watched.uris {
            if !feed.is_alive() {
                break;
            }
            let now = Instant::now();
            let state = states.entry(uri.clone()).or_insert(Poll { digest: None, due: now, failures: 0 });
            if state.due <= now {
                look(&services, uri, state, feed);
            }
        }
        let next = states.values().map(|state| state.due).min();
        next.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()))
            .clamp(Duration::from_millis(10), LOOK)
    }
}

fn look(services: &[Arc<Service>], uri: &Arc<str>, state: &mut Poll, feed: &Feed) {
    let found = services.iter().find_map(|service| Some((service, service.key_of(uri)?)));
    let Some((service, key)) = found else {
        // The index, and what does not exist, never changes.
        state.due = Instant::now() + Duration::from_secs(3_600);
        return;
    };
    if let Some(until) = service.paused_until(&key) {
        state.due = until;
        return;
    }
    let (outcome, what) = service.poll(&key);
    let digest = service.digest(&outcome);
    state.failures = if digest.is_some() { 0 } else { state.failures.saturating_add(1) };
    if let Some(what) = what.filter(|_| state.failures == 1) {
        feed.log(&what);
    }
    let slower = 2_u32.saturating_pow(state.failures).min(SLOWEST);
    state.due = Instant::now() + service.poll.saturating_mul(slower).min(LONGEST);
    let Some(digest) = digest else { return };
    if state.digest.replace(digest).is_some_and(|before| before != digest) {
        // It is in canonical form: nothing is wrong with it.
        let _ = feed.updated(uri);
    }
}
