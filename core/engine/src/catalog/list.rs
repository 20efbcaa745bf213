//! Pages of a list: encoded items in key order that follow a given key.
//!
//! Law: the cost of a page depends on the items it examines, not on the size of the catalogue. Its position is a key,
//! never an offset, so edits elsewhere do not move it.

use crate::catalog::items::CatalogItem;
use crate::limits::Limits;
use crate::version::FieldSet;
use std::sync::Arc;

/// The limits and fields of one page.
#[derive(Clone, Copy, Debug)]
pub struct CatalogPage<Fields = FieldSet> {
    /// Maximum number of items to append.
    pub items: usize,
    /// Maximum number of items to examine, hidden ones included.
    pub scan: usize,
    /// The fields of the revision.
    pub fields: Fields,
}

impl<Fields> CatalogPage<Fields> {
    /// A page with the limits `page` and `list_scan` of `limits`, each at least 1, so that every page makes progress.
    pub fn new(limits: &Limits, fields: Fields) -> Self {
        Self { items: limits.page.max(1), scan: limits.list_scan.max(1), fields }
    }
}

/// The result of appending one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPage {
    /// The number of appended items.
    pub count: usize,
    /// The key after which the next page begins: of the last item appended or, if the page ended at the limit `scan`,
    /// of the last item examined. `None` if there is none.
    pub last: Option<Arc<str>>,
    /// Whether items follow. If the page ended at the limit `scan`, all of those may be hidden.
    pub more: bool,
}

/// Appends the visible items of `entries`, separated by commas, up to the limits of `page`.
///
/// A full page searches on for the next visible item, up to `page.scan` items. So hidden items after its last one leave
/// no trace in the cursor and cause no empty page.
pub(super) fn append<'c, I: CatalogItem<'c>>(
    entries: impl Iterator<Item = I>,
    page: CatalogPage<I::Fields>,
    visible: impl FnMut(I) -> bool,
    out: &mut Vec<u8>,
) -> ListedPage {
    let fields = page.fields;
    append_with(entries, page, visible, |entry, out| out.extend_from_slice(entry.encoded(fields)), out)
}

/// Like [`append`], with the items that `write` appends.
pub(super) fn append_with<'c, I: CatalogItem<'c>>(
    entries: impl Iterator<Item = I>,
    page: CatalogPage<I::Fields>,
    mut visible: impl FnMut(I) -> bool,
    mut write: impl FnMut(I, &mut Vec<u8>),
    out: &mut Vec<u8>,
) -> ListedPage {
    let mut entries = entries.peekable();
    let mut count = 0;
    let mut last = None;
    let mut examined = None;
    for _ in 0..page.scan {
        let Some(entry) = entries.next() else { return ListedPage::new(count, last, false) };
        if visible(entry) {
            if count == page.items {
                return ListedPage::new(count, last, true);
            }
            if count > 0 {
                out.push(b',');
            }
            write(entry, out);
            count += 1;
            last = Some(entry.key());
        }
        examined = Some(entry.key());
    }
    ListedPage::new(count, examined, entries.peek().is_some())
}

/// Merges two sorted lists.
pub(super) fn merged<'c, I: CatalogItem<'c>>(
    one: impl Iterator<Item = I>,
    other: impl Iterator<Item = I>,
) -> impl Iterator<Item = I> {
    let mut one = one.peekable();
    let mut other = other.peekable();
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
