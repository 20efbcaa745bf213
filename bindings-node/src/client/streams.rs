//! What is iterated: a list, the changes of a resource, the changes of lists.

use super::arrival::News;
use mcp_resources_engine::client::ClientError;
use mcp_resources_host::client::{ListChanges, Listing, Watch};

/// See the module. Dropped, it ends, and what is watched for it is watched no longer.
pub(super) enum Source {
    Listing(Box<Listing>),
    Watch(Watch),
    ListChanges(ListChanges),
}

impl Source {
    /// What comes next; [`News::Done`] at the end.
    pub(super) async fn next(&mut self) -> Result<News, ClientError> {
        let news = match self {
            Self::Listing(listing) => listing.next().await.transpose()?.map(|first| {
                // The rest of the page crosses with its first entry.
                News::Listed(std::iter::once(first).chain(listing.ready()).collect())
            }),
            Self::Watch(watch) => watch.next().await.transpose()?.map(News::Change),
            Self::ListChanges(changes) => changes.next().await.map(News::ListChanged),
        };
        Ok(news.unwrap_or(News::Done))
    }
}
