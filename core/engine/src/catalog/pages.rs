//! Pages of a list, kept until the list changes.
//!
//! A page of a large catalogue is put together from items all over the memory, and waiting for them is most of its cost. A
//! kept page is one copy.
//!
//! Law: a kept page has all items of its range, so it is used only where everything is visible to everybody. A snapshot of
//! the catalogue with other items has other kept pages.

use crate::catalog::list::{CatalogPage, ListedPage};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of the pages that are kept of one list, in bytes. Further pages are put together for each request.
const MOST_BYTES: usize = 32 << 20;

/// The kept pages of one list.
#[derive(Debug, Default)]
pub(super) struct KeptPages(Mutex<PageTable>);

#[derive(Debug, Default)]
struct PageTable {
    pages: HashMap<PageKey, Arc<KeptPage>>,
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PageKey {
    /// The key after which the page begins; empty for the first page.
    after: Box<str>,
    items: usize,
    scan: usize,
    fields: usize,
}

#[derive(Debug)]
struct KeptPage {
    listed: ListedPage,
    items: Box<[u8]>,
}

impl KeptPages {
    /// Appends a page to `out`, which `list` makes unless it is kept.
    pub(super) fn append(
        &self,
        after: Option<&str>,
        page: CatalogPage,
        out: &mut Vec<u8>,
        list: impl FnOnce(&mut Vec<u8>) -> ListedPage,
    ) -> ListedPage {
        let CatalogPage { items, scan, fields } = page;
        let after = after.unwrap_or_default().into();
        let key = PageKey { after, items, scan, fields: fields.index() };
        let kept = self.with(|table| table.pages.get(&key).cloned());
        if let Some(kept) = kept {
            out.extend_from_slice(&kept.items);
            return kept.listed.clone();
        }
        let start = out.len();
        let listed = list(out);
        let items = out.get(start..).unwrap_or_default();
        self.with(|table| table.keep(key, &listed, items));
        listed
    }

    /// Nothing in here panics while the lock is held, so a poisoned table is whole.
    fn with<T>(&self, work: impl FnOnce(&mut PageTable) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PageTable {
    fn keep(&mut self, key: PageKey, listed: &ListedPage, items: &[u8]) {
        let size = items.len() + key.after.len() + size_of::<(PageKey, KeptPage)>();
        if self.bytes + size > MOST_BYTES {
            return;
        }
        let page = KeptPage { listed: listed.clone(), items: items.into() };
        // Another thread may have been faster.
        if self.pages.insert(key, Arc::new(page)).is_none() {
            self.bytes += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::FieldSet;

    fn page(items: usize, fields: FieldSet) -> CatalogPage {
        CatalogPage { items, scan: 1_000, fields }
    }

    fn listed(count: usize) -> ListedPage {
        ListedPage { count, last: Some("a://last".into()), more: true }
    }

    #[test]
    fn a_page_is_made_once_for_each_start_size_and_set_of_fields() {
        let pages = KeptPages::default();
        let mut made = 0;
        let kinds = [
            (None, 1, FieldSet::Full),
            (Some("a://1"), 1, FieldSet::Full),
            (Some("a://2"), 1, FieldSet::Full),
            (Some("a://1"), 2, FieldSet::Full),
            (Some("a://1"), 1, FieldSet::Basic),
        ];
        for _ in 0..3 {
            for (at, (after, items, fields)) in kinds.into_iter().enumerate() {
                let mut out = b"before".to_vec();
                let got = pages.append(after, page(items, fields), &mut out, |out| {
                    made += 1;
                    out.extend_from_slice(format!("page {at}").as_bytes());
                    listed(at)
                });
                assert_eq!((got, out), (listed(at), format!("beforepage {at}").into_bytes()));
            }
        }
        assert_eq!(made, kinds.len());
    }

    #[test]
    fn pages_above_the_limit_are_made_each_time() {
        let pages = KeptPages::default();
        let mut made = 0;
        let mut append = |after: &str, size: usize| {
            let before = made;
            pages.append(Some(after), page(1, FieldSet::Full), &mut Vec::new(), |out| {
                made += 1;
                out.resize(size, b'x');
                listed(1)
            });
            made > before
        };
        assert!(append("a", MOST_BYTES / 2));
        assert!(!append("a", 0));
        for _ in 0..2 {
            assert!(append("b", MOST_BYTES / 2 + 1));
        }
        assert!(append("c", 1));
        assert!(!append("c", 1));
        assert!(pages.with(|table| table.bytes) <= MOST_BYTES);
    }
}
