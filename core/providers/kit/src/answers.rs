//! Pages of lists and values of completions, shared by all providers.

use mcp_resources_engine::connection::Completion;
use mcp_resources_engine::connection::ListPage;
use mcp_resources_engine::resource::Resource;
use std::borrow::Cow;

/// Maximum number of values to look for: one more than is sent, so that the answer can say that there are more.
pub const COMPLETED: usize = 101;

/// One page of items in the order of their keys. `rest` has the items after the cursor; the key of the last item is the
/// next cursor.
pub fn page<T>(
    limit: usize,
    rest: impl Iterator<Item = T>,
    key: impl Fn(&T) -> String,
    item: impl FnMut(T) -> Resource,
) -> ListPage {
    let limit = limit.max(1);
    let mut some: Vec<T> = rest.take(limit + 1).collect();
    let has_more = some.len() > limit;
    some.truncate(limit);
    let next = some.last().filter(|_| has_more).map(key);
    ListPage { next, ..ListPage::new(some.into_iter().map(item).collect::<Vec<_>>()) }
}

/// The first of `values` as a completion.
pub fn completion(values: impl IntoIterator<Item = String>) -> Completion<'static> {
    let values = values.into_iter().take(COMPLETED).map(Cow::Owned).collect();
    Completion { values, total: None, has_more: None }
}
