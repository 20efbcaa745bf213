//! Lists that the page reads part by part, as its reader scrolls.

use mcp_resources_client::{Client, ClientError, Listed, Listing};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most lists that wait for their next part; a further one ends the oldest, which the page then starts again.
const MOST_LISTINGS: usize = 64;
/// The number of entries after which a part is complete. The rest of a server's page may follow.
const ENOUGH: usize = 1_000;
/// The time after which a part ends with what it has, because the reader waits for it.
const PATIENCE: Duration = Duration::from_millis(250);
/// Most entries of one part: a page of a server may be longer.
const MOST_ENTRIES: usize = 5_000;

/// The lists that have further parts.
#[derive(Default)]
pub(super) struct OpenListings(Mutex<ListingTable>);

#[derive(Default)]
struct ListingTable {
    last: u64,
    open: VecDeque<(u64, Arc<tokio::sync::Mutex<OpenListing>>)>,
}

/// A list, and the entries that did not fit into its last part.
struct OpenListing {
    listing: Listing,
    rest: VecDeque<Listed>,
}

/// A part of a list.
pub(super) struct BrowsedPart {
    pub(super) items: Vec<Listed>,
    /// The number with which the next part is asked for; `None` at the end.
    pub(super) next: Option<u64>,
    /// The reason if the list ends early.
    pub(super) error: Option<ClientError>,
}

impl OpenListings {
    /// Begins a list of the server that `client` is for.
    pub(super) async fn begin(&self, client: &Client, is_templates: bool) -> BrowsedPart {
        let listing = if is_templates { client.list_templates() } else { client.list() };
        let open = Arc::new(tokio::sync::Mutex::new(OpenListing { listing, rest: VecDeque::new() }));
        let id = {
            let mut table = self.lock();
            table.last += 1;
            let id = table.last;
            table.open.push_back((id, open.clone()));
            if table.open.len() > MOST_LISTINGS {
                table.open.pop_front();
            }
            id
        };
        self.part(id, &open).await
    }

    /// The next part of a list; `None` if it is not open any more.
    pub(super) async fn proceed(&self, id: u64) -> Option<BrowsedPart> {
        let open = self.lock().open.iter().find(|(own, _)| *own == id).map(|(_, open)| open.clone())?;
        Some(self.part(id, &open).await)
    }

    async fn part(&self, id: u64, open: &tokio::sync::Mutex<OpenListing>) -> BrowsedPart {
        let mut open = open.lock().await;
        let begin = Instant::now();
        let mut items: Vec<Listed> = Vec::new();
        let mut error = None;
        let mut has_more = true;
        loop {
            while items.len() < MOST_ENTRIES
                && let Some(item) = open.rest.pop_front()
            {
                items.push(item);
            }
            if items.len() >= ENOUGH || (!items.is_empty() && begin.elapsed() > PATIENCE) {
                break;
            }
            match open.listing.next().await {
                Some(Ok(item)) => {
                    let ready: Vec<Listed> = open.listing.ready().collect();
                    open.rest.push_back(item);
                    open.rest.extend(ready);
                }
                Some(Err(failed)) => {
                    error = Some(failed);
                    has_more = false;
                    break;
                }
                None => {
                    has_more = false;
                    break;
                }
            }
        }
        if !has_more {
            self.lock().open.retain(|(own, _)| *own != id);
        }
        BrowsedPart { items, next: has_more.then_some(id), error }
    }

    fn lock(&self) -> MutexGuard<'_, ListingTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
