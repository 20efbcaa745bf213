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
    /// The key of the item that the next page begins after: the last one that was appended or, where the page ends
    /// because it examined enough, the last one that was examined. `None` if there is none.
    pub last: Option<Arc<str>>,
    /// Whether items follow. Where the page ends because it examined enough, they may all be hidden.
    pub more: bool,
}

/// Appends the items of `entries` that are visible, separated by commas, up to the bounds of `page`.
///
/// A full page looks on for the next visible item: what is hidden behind its last one leaves no trace in the cursor, and
/// no empty page after it, unless more than `page.scan` items are examined.
pub(super) fn append<'c, I: Item<'c>>(
    entries: impl Iterator<Item = I>,
    page: Page,
    mut visible: impl FnMut(I) -> bool,
    out: &mut Vec<u8>,
) -> ListedPage {
    let mut entries = entries.peekable();
    let (mut count, mut last, mut examined) = (0, None, None);
    for _ in 0..page.scan {
        let Some(entry) = entries.next() else { return ListedPage::new(count, last, false) };
        if visible(entry) {
            if count == page.items {
                return ListedPage::new(count, last, true);
            }
            if count > 0 {
                out.push(b',');
            }
            out.extend_from_slice(entry.encoded(page.fields));
            count += 1;
            last = Some(entry.key());
        }
        examined = Some(entry.key());
    }
    ListedPage::new(count, examined, entries.peek().is_some())
}

/// The items of two lists in one order.
pub(super) fn merged<'c, I: Item<'c>>(
    one: impl Iterator<Item = I>,
    other: impl Iterator<Item = I>,
) -> impl Iterator<Item = I> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if first.key() > second.key() => other.next(),
        (None, _) => other.next(),
        _ => one.next(),
    })
}

impl ListedPage {
    fn new(count: usize, last: Option<&str>, more: bool) -> Self {
        Self { count, last: last.map(Arc::from), more }
    }
}
