//! Pages of a list: encoded items in key order, after a key.
//!
//! Law: a page costs what it examines, whatever the size of the catalogue; its position is a key, never a count, so
//! that what is added or removed elsewhere moves nothing.

use crate::catalog::items::Item;
use crate::limits::Limits;
use crate::version::FieldSet;
use std::sync::Arc;

/// What is asked of one page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The most items to append.
    pub items: usize,
    /// The most items to examine, hidden ones included.
    pub scan: usize,
    /// The fields of the revision.
    pub fields: FieldSet,
}

impl Page {
    /// A page with the bounds `page` and `list_scan` of `limits`, each taken as 1 at least: a walk must advance.
    pub fn new(limits: &Limits, fields: FieldSet) -> Self {
        Self { items: limits.page.max(1), scan: limits.list_scan.max(1), fields }
    }
}

/// What became of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPage {
    /// How many items were appended.
    pub count: usize,
    /// The key of the last item that was examined, hidden or not: where the next page begins after. `None` if none was.
    pub last: Option<Arc<str>>,
    /// Whether items follow that were not examined. They may all turn out to be hidden.
    pub more: bool,
}

/// Appends the items of `entries` that are visible, separated by commas, up to the bounds of `page`.
pub(super) fn append<'a, I: Item + 'a>(
    entries: impl Iterator<Item = &'a Arc<I>>,
    page: Page,
    visible: &mut dyn FnMut(&I) -> bool,
    out: &mut Vec<u8>,
) -> ListedPage {
    let mut entries = entries.peekable();
    let (mut count, mut last) = (0, None);
    for _ in 0..page.scan {
        if count == page.items {
            break;
        }
        let Some(entry) = entries.next() else { break };
        last = Some(entry);
        if visible(entry) {
            if count > 0 {
                out.push(b',');
            }
            out.extend_from_slice(entry.encoded(page.fields));
            count += 1;
        }
    }
    ListedPage { count, last: last.map(|entry| Arc::from(entry.key())), more: entries.peek().is_some() }
}
