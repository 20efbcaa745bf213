//! Paging: every item that stays is listed once, whatever is edited between two pages.

use super::*;
use crate::seal::Seal;
use proptest::prelude::*;
use std::collections::BTreeSet;

const FIELDS: FieldSet = FieldSet::Full;

// Sends a position through a sealed cursor and back, as a client does.
fn travel(list: ListKind, after: &str) -> String {
    let seal = Seal::new(&Cursor::derived_key("test"), &[]);
    let scope = CursorScope { server: "test", principal: "" };
    let cursor = Cursor { list, position: CursorPosition::Catalog, after: after.into(), shared: false };
    Cursor::open(&cursor.seal(&seal, scope).unwrap(), list, &seal, scope).unwrap().after
}

fn listed(out: &[u8]) -> Vec<Value> {
    serde_json::from_slice(&[b"[", out, b"]"].concat()).unwrap()
}

/// Walks the list of resources; `between` makes the next snapshot before each further page.
fn walk(
    mut catalog: Catalog,
    page: CatalogPage,
    mut between: impl FnMut(usize, &Catalog) -> Catalog,
) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after = None::<String>;
    for turn in 0.. {
        let mut out = Vec::new();
        let done = catalog.list_resources(after.as_deref(), page, &mut |_| true, &mut out);
        for _ in ["made", "kept"] {
            let mut all = Vec::new();
            assert_eq!(catalog.list_all_resources(after.as_deref(), page, &mut all), done);
            assert_eq!(all, out);
        }
        let items = listed(&out);
        assert_eq!(items.len(), done.count);
        assert!(done.count <= page.items);
        seen.extend(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()));
        if !done.more {
            break;
        }
        after = Some(travel(ListKind::Resources, &done.last.unwrap()));
        catalog = between(turn, &catalog);
    }
    seen
}

fn uri(number: u8) -> String {
    format!("x:{number}")
}

proptest! {
    // with any page size, and any insertions and removals between pages, no item is listed twice, and
    // every item that was there all the time is listed.
    #[test]
    fn survivors_are_listed_exactly_once(
        start in proptest::collection::btree_set(any::<u8>(), 0..60),
        items in 1usize..20,
        edits in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..12),
    ) {
        let first = catalog(start.iter().map(|number| at(&uri(*number))));
        let mut survivors: BTreeSet<String> = start.iter().map(|number| uri(*number)).collect();
        let page = CatalogPage { items, scan: 1_000, fields: FIELDS };
        let seen = walk(first, page, |turn, catalog| {
            edits.get(turn).into_iter().flatten().fold(catalog.clone(), |catalog, number| {
                let uri = uri(*number);
                let is_there = catalog.resource(&uri).is_some();
                survivors.remove(&uri);
                catalog.apply(vec![if is_there { remove(&uri) } else { at(&uri) }]).unwrap().0
            })
        });
        let distinct: BTreeSet<String> = seen.iter().cloned().collect();
        prop_assert_eq!(distinct.len(), seen.len());
        prop_assert!(survivors.is_subset(&distinct));
        prop_assert!(seen.is_sorted());
    }
}

// a kept page is one of its snapshot, however the next one was made from it.
#[test]
fn a_kept_page_ends_with_its_snapshot() {
    let before = catalog([at("x:1"), at("x:3")]);
    let page = CatalogPage { items: 3, scan: 100, fields: FIELDS };
    let first = |catalog: &Catalog| {
        let mut out = Vec::new();
        catalog.list_all_resources(None, page, &mut out);
        String::from_utf8(out).unwrap()
    };
    let update =
        Edit::UpdateResource { uri: "x:3".into(), size: Some(3), last_modified: None, description: None };
    let was = first(&before);
    for edit in [at("x:2"), remove("x:1"), update] {
        let (after, _) = before.apply(vec![edit.clone()]).unwrap();
        let (each, _, reports) = before.apply_each(vec![edit.clone()]);
        assert_eq!(reports, [Ok(())]);
        let mut expected = Vec::new();
        after.list_resources(None, page, &mut |_| true, &mut expected);
        assert_eq!(first(&after).as_bytes(), expected);
        assert_eq!(first(&each), first(&after));
        assert_ne!(first(&after), was, "{edit:?}");
        assert_eq!(first(&before), was);
    }
}

// the last page is marked as the last, also when it is full.
#[test]
fn more_is_false_exactly_at_the_end() {
    let seven = catalog((0..7).map(|number| at(&uri(number))));
    for (items, last, count, more) in [(7, None, 7, false), (6, None, 6, true), (3, Some("x:3"), 3, false)] {
        let page = CatalogPage { items, scan: 100, fields: FIELDS };
        let done = seven.list_resources(last, page, &mut |_| true, &mut Vec::new());
        assert_eq!((done.count, done.more), (count, more), "{items}");
    }
    let nothing = empty().list_resources(
        None,
        CatalogPage::new(&Limits::default(), FIELDS),
        &mut |_| true,
        &mut Vec::new(),
    );
    assert_eq!(nothing, ListedPage::default());
}

/// A filter that hides nearly everything costs at most `scan` items for each page, and the walk still reaches every
/// visible item.
#[test]
fn a_page_examines_no_more_than_its_scan() {
    let many = catalog((0..100).map(|number| at(&uri(number))));
    let mut asked = 0;
    let mut after = None;
    let mut pages = 0;
    let mut out = Vec::new();
    let page = CatalogPage { items: 10, scan: 7, fields: FIELDS };
    loop {
        let before = asked;
        let mut visible = |entry: &ResourceEntry| {
            asked += 1;
            &*entry.canonical == "x:95"
        };
        let done = many.list_resources(after.as_deref(), page, &mut visible, &mut out);
        assert!(asked - before <= 7);
        pages += 1;
        after = done.last;
        if !done.more {
            break;
        }
    }
    assert_eq!((asked, pages, uris_of(&out)), (100, 15, vec!["x:95".to_owned()]));
}

fn uris_of(out: &[u8]) -> Vec<String> {
    listed(out).iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
}

// a position stays valid when its item is removed.
#[test]
fn a_page_begins_after_a_key_that_is_gone() {
    let catalog = catalog([at("x:a"), at("x:c")]);
    let page = CatalogPage::new(&Limits::default(), FIELDS);
    for (after, expected) in [("x:b", vec!["x:c"]), ("x:c", vec![]), ("", vec!["x:a", "x:c"])] {
        let mut out = Vec::new();
        catalog.list_resources(Some(after), page, &mut |_| true, &mut out);
        assert_eq!(uris_of(&out), expected);
    }
}

// templates in the order of their text, by pages.
#[test]
fn templates_have_pages_too() {
    let many = catalog((0..250).rev().map(|number| matching(&format!("x{number:03}:{{id}}"))));
    let page = CatalogPage { items: 100, scan: 1_000, fields: FIELDS };
    let mut seen = Vec::new();
    let mut after = None::<String>;
    loop {
        let mut out = Vec::new();
        let done = many.list_templates(after.as_deref(), page, &mut |_| true, &mut out);
        seen.extend(listed(&out).iter().map(|item| item["uriTemplate"].as_str().unwrap().to_owned()));
        if !done.more {
            break;
        }
        after = Some(travel(ListKind::Templates, &done.last.unwrap()));
    }
    let expected: Vec<_> = (0..250).map(|number| format!("x{number:03}:{{id}}")).collect();
    assert_eq!(seen, expected);
    let mut out = Vec::new();
    many.list_templates(Some("x248:{gone}"), page, &mut |_| true, &mut out);
    assert_eq!(listed(&out).len(), 2);
}
