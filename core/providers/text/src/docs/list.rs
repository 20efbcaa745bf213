//! Answers about many pages: lists, the contents of a site, and completion.
//!
//! Law: only pages that the client may read are listed or suggested. A cursor is a position in the order of pages, so
//! pages that come and go move nothing, and no page of a list looks again at the pages before it.

use super::MARKDOWN;
use super::library::{PageEntry, SiteSnapshot};
use super::page::Description;
use super::search::name;
use super::site::DocsSite;
use mcp_resources_engine::connection::ListPage;
use mcp_resources_engine::resource::Resource;
use mcp_resources_provider_kit::answers::COMPLETED;
use mcp_resources_provider_kit::media::DIRECTORY;
use mcp_resources_provider_kit::path;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// Whether a client may see a URI.
type Permits<'a> = dyn Fn(&str) -> bool + 'a;

/// A page in the order of lists: its priority, its site, its name.
type ListPosition<'p> = (u16, usize, &'p str);

/// A decoded cursor: the last listed page, and the number of pages of each group that were listed before.
struct PageCursor {
    rank: u16,
    site: usize,
    key: String,
    listed: Vec<usize>,
}

/// One page of the list of all pages. Its cost depends on the pages it looks at, not on those before them.
pub(super) fn page(
    sites: &[Arc<DocsSite>],
    snapshots: &[Arc<SiteSnapshot>],
    cursor: Option<&str>,
    limit: usize,
    permits: &Permits<'_>,
) -> ListPage {
    let groups = groups(sites);
    let after = cursor.map(|cursor| PageCursor::parse(cursor, sites));
    let mut page = ListPage { missing: missing(sites, snapshots), ..ListPage::default() };
    let Some(after) = after.map_or(Some(None), |read| read.map(Some)) else { return page };
    let mut listed = after.as_ref().map(|after| after.listed.clone()).unwrap_or_default();
    listed.resize(groups.len(), 0);
    let mut last: Option<ListPosition<'_>> = None;
    for (position, entry) in Merged::behind(after.as_ref(), snapshots) {
        let Some((site, group)) = sites.get(position.1).zip(groups.get(position.1)) else { continue };
        let Some(count) = listed.get_mut(*group).filter(|count| **count < site.group.list_max) else {
            continue;
        };
        let uri = site.page_uri(&entry.key);
        if !permits(&uri) {
            continue;
        }
        if page.items.len() >= limit.max(1) {
            page.next = last.and_then(|last| PageCursor::text(last, &listed, sites));
            break;
        }
        *count += 1;
        last = Some(position);
        page.items.push(item(uri, entry).into());
    }
    page
}

/// The sites that are not all there.
fn missing(sites: &[Arc<DocsSite>], snapshots: &[Arc<SiteSnapshot>]) -> Vec<String> {
    let missing =
        sites.iter().zip(snapshots).filter(|(_, snapshot)| !snapshot.is_there || !snapshot.is_whole);
    missing.map(|(site, _)| site.name().to_owned()).collect()
}

/// The number of each site's group: that of the first site in it.
fn groups(sites: &[Arc<DocsSite>]) -> Vec<usize> {
    let first = |site: &Arc<DocsSite>| sites.iter().position(|other| Arc::ptr_eq(&other.group, &site.group));
    sites.iter().map(|site| first(site).unwrap_or_default()).collect()
}

/// The pages of all sites after a position, in their order.
struct Merged<'s> {
    /// The remaining pages of each site, by the number of the site.
    rest: Vec<(usize, &'s [Arc<PageEntry>])>,
}

impl<'s> Merged<'s> {
    fn behind(after: Option<&PageCursor>, snapshots: &'s [Arc<SiteSnapshot>]) -> Self {
        let there = snapshots.iter().enumerate().filter(|(_, snapshot)| snapshot.is_there);
        let rest = there.map(|(at, snapshot)| {
            let pages = snapshot.by_priority();
            let is_before = |entry: &Arc<PageEntry>| {
                after.is_some_and(|after| position(at, entry) <= (after.rank, after.site, &*after.key))
            };
            (at, pages.get(pages.partition_point(is_before)..).unwrap_or_default())
        });
        Self { rest: rest.collect() }
    }
}

impl<'s> Iterator for Merged<'s> {
    type Item = (ListPosition<'s>, &'s PageEntry);

    fn next(&mut self) -> Option<Self::Item> {
        let heads = self.rest.iter_mut().filter_map(|(at, rest)| Some((position(*at, rest.first()?), rest)));
        let (position, rest) = heads.min_by_key(|(position, _)| *position)?;
        let (entry, after) = rest.split_first()?;
        *rest = after;
        Some((position, entry))
    }
}

fn position(at: usize, entry: &PageEntry) -> ListPosition<'_> {
    let (rank, key) = entry.rank();
    (rank, at, key)
}

impl PageCursor {
    /// `None`: it is not one of ours.
    fn parse(cursor: &str, sites: &[Arc<DocsSite>]) -> Option<Self> {
        let mut parts = cursor.splitn(4, '/');
        let rank = parts.next()?;
        let listed = parts.next()?;
        let site = parts.next()?;
        Some(Self {
            rank: rank.parse().ok()?,
            site: sites.iter().position(|other| other.name() == site)?,
            key: parts.next()?.to_owned(),
            listed: listed.split(',').map(|count| count.parse().ok()).collect::<Option<_>>()?,
        })
    }

    fn text((rank, at, key): ListPosition<'_>, listed: &[usize], sites: &[Arc<DocsSite>]) -> Option<String> {
        let site = sites.get(at)?.name();
        let listed: Vec<String> = listed.iter().map(usize::to_string).collect();
        Some(format!("{rank}/{}/{site}/{key}", listed.join(",")))
    }
}

/// The pages directly below `directory`, a path within the site, and the directories that have pages: only what the
/// client may see. `None` if there is no such directory.
pub(super) fn children(
    site: &DocsSite,
    snapshot: &SiteSnapshot,
    directory: &str,
    permits: &Permits<'_>,
) -> Option<Vec<Resource>> {
    let below = match directory.trim_end_matches('/') {
        "" => String::new(),
        path => format!("{path}/"),
    };
    let mut children = Vec::new();
    let mut last: Option<String> = None;
    for (key, entry) in snapshot.pages.range(below.clone()..) {
        let Some(rest) = key.strip_prefix(&below) else { break };
        let uri = site.page_uri(key);
        if !permits(&uri) {
            continue;
        }
        match rest.split_once('/') {
            None => children.push(Resource::new(uri.as_str()).name(rest)),
            Some((name, _)) if last.as_deref() == Some(name) => continue,
            Some((name, _)) => {
                let uri = format!("{}/", site.page_uri(&format!("{below}{name}")));
                children.push(Resource::new(uri).name(name).mime_type(DIRECTORY));
                last = Some(name.to_owned());
                continue;
            }
        }
        if let Some(page) = children.last_mut() {
            *page = item(uri, entry).name(rest);
        }
    }
    (below.is_empty() || !children.is_empty()).then_some(children)
}

fn item(uri: String, entry: &PageEntry) -> Resource {
    let Description { title, description, priority, audience, .. } = &entry.description;
    let mut item = Resource::new(uri).name(&*entry.key).mime_type(MARKDOWN).size(entry.size);
    item = item.title(title.clone().unwrap_or_else(|| name(&entry.key).to_owned()));
    item = item.audience(audience.iter().copied());
    item.details.description.clone_from(description);
    item.details.annotations.priority = priority.map(|priority| f64::from(priority) / 1_000.0);
    item.details.annotations.last_modified.clone_from(&entry.modified);
    item.details.meta = meta(&entry.description);
    item
}

/// `_meta` of a page.
pub(super) fn meta(description: &Description) -> Option<String> {
    description.lang.as_ref().map(|lang| json!({ "lang": lang }).to_string())
}

/// The sites, as JSON.
pub(super) fn index(sites: &[Arc<DocsSite>], permits: &Permits<'_>) -> String {
    let sites = sites.iter().filter(|site| permits(&site.uri));
    let sites: Map<_, _> = sites
        .map(|site| {
            let about = json!({ "uri": site.uri, "search": format!("{}search/{{+query}}", site.uri) });
            (site.name().to_owned(), about)
        })
        .collect();
    serde_json::Value::Object(sites).to_string()
}

/// The pages of a site as Markdown, the most important first.
pub(super) fn contents(site: &DocsSite, snapshot: &SiteSnapshot, permits: &Permits<'_>) -> String {
    let mut text = format!("# {}\n\n", plain(site.name()));
    let mut listed = 0;
    for entry in snapshot.by_priority() {
        let uri = site.page_uri(&entry.key);
        if !permits(&uri) {
            continue;
        }
        listed += 1;
        if listed > site.group.list_max {
            let _ = writeln!(text, "\nThere are more pages. Search them: {}search/WORDS", site.uri);
            break;
        }
        let title = entry.description.title.as_deref().unwrap_or_else(|| name(&entry.key));
        let _ = write!(text, "- [{}]({uri})", plain(title));
        if let Some(description) = &entry.description.description {
            let _ = write!(text, ": {}", plain(description));
        }
        text.push('\n');
    }
    text
}

/// A text that is no Markdown.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '[' | ']' | '\\' | '`' | '*' | '_' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// The input of a completion.
pub(super) struct Typed<'a> {
    pub(super) sites: &'a [Arc<DocsSite>],
    pub(super) snapshots: &'a [Arc<SiteSnapshot>],
    /// The values that were chosen.
    pub(super) site: Option<&'a str>,
    pub(super) page: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) permits: &'a Permits<'a>,
}

/// The values of a variable that begin with the typed text.
pub(super) fn complete(typed: &Typed<'_>, variable: &str) -> Vec<String> {
    let begins = |value: &&str| value.starts_with(typed.text);
    match variable {
        "site" => {
            let sites = typed.sites.iter().filter(|site| (typed.permits)(&site.uri)).map(|site| site.name());
            sites.filter(begins).map(str::to_owned).collect()
        }
        "k" => ["5", "10", "20", "50", "100"]
            .iter()
            .filter(|value| begins(value))
            .map(|&k| k.to_owned())
            .collect(),
        "page" => pages(typed),
        "section" => sections(typed),
        "query" | "q" => titles(typed, variable == "query"),
        "lang" => {
            let langs: BTreeSet<String> =
                permitted(typed).filter_map(|(entry, _)| entry.description.lang.clone()).collect();
            langs.into_iter().filter(|lang| begins(&&**lang)).collect()
        }
        _ => Vec::new(),
    }
}

/// The pages of the chosen site that the client may see, with their URIs.
fn permitted<'t>(typed: &'t Typed<'_>) -> impl Iterator<Item = (&'t Arc<PageEntry>, String)> + 't {
    let chosen = match typed.site {
        Some(name) => typed.sites.iter().position(|site| site.name() == name),
        None => Some(0).filter(|_| typed.sites.len() == 1),
    };
    let found = chosen.and_then(|at| typed.sites.get(at).zip(typed.snapshots.get(at)));
    found.into_iter().flat_map(move |(site, snapshot)| {
        let pages = snapshot.pages.values().map(move |entry| (entry, site.page_uri(&entry.key)));
        pages.filter(|(_, uri)| (typed.permits)(uri))
    })
}

fn pages(typed: &Typed<'_>) -> Vec<String> {
    let decoded = path::decoded(typed.text);
    let fits = |entry: &PageEntry, encoded: &str| {
        encoded.starts_with(typed.text) || decoded.as_ref().is_some_and(|plain| entry.key.starts_with(plain))
    };
    let encoded = permitted(typed).map(|(entry, _)| {
        let mut encoded = String::new();
        path::append(&mut encoded, &entry.key);
        (entry, encoded)
    });
    encoded
        .filter(|(entry, encoded)| fits(entry, encoded))
        .map(|(_, encoded)| encoded)
        .take(COMPLETED)
        .collect()
}

fn sections(typed: &Typed<'_>) -> Vec<String> {
    let Some(key) = typed.page.and_then(path::decoded) else { return Vec::new() };
    let Some((entry, uri)) = permitted(typed).find(|(entry, _)| entry.key == key) else { return Vec::new() };
    let slugs = entry.slugs().filter(|slug| slug.starts_with(typed.text));
    slugs
        .filter(|slug| (typed.permits)(&DocsSite::section_uri(&uri, slug)))
        .map(str::to_owned)
        .take(COMPLETED)
        .collect()
}

/// Titles of pages, as searches.
fn titles(typed: &Typed<'_>, is_encoded: bool) -> Vec<String> {
    let plain = path::decoded(typed.text).unwrap_or_default().to_lowercase();
    let titles = permitted(typed).filter_map(|(entry, _)| entry.description.title.clone());
    let fits = titles.filter(|title| title.to_lowercase().starts_with(&plain));
    let spelled = |title: String| {
        if !is_encoded {
            return title;
        }
        let mut encoded = String::new();
        path::append(&mut encoded, &title);
        encoded
    };
    let unique: BTreeSet<String> = fits.map(spelled).collect();
    unique.into_iter().take(COMPLETED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::connection::Item;

    // S-07: pages of a list, however long, are the whole list in its order: by priority over all sites, no more of a group than
    // its limit, and nothing that is hidden.
    #[test]
    fn pages_are_the_list() {
        let folder = std::env::temp_dir().join(format!("mcp-docs-list-{}", std::process::id()));
        let sites: Vec<Arc<DocsSite>> = [(0, 7), (1, 1_000), (2, 5)]
            .iter()
            .flat_map(|(group, max)| {
                let dirs = [folder.join(format!("a{group}")), folder.join(format!("b{group}"))];
                dirs.iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
                let options = super::super::DocsOptions::new().dir(&dirs[0]).dir(&dirs[1]).list_max(*max);
                super::super::Docs::new(options).unwrap().sites
            })
            .collect();
        let snapshots: Vec<Arc<SiteSnapshot>> = (0..sites.len())
            .map(|site| {
                let pages = (0..40).map(|at| (format!("p{at}.md"), (at * 7 + site * 3) % 5 * 250));
                Arc::new(SiteSnapshot::with_pages(pages))
            })
            .collect();
        std::fs::remove_dir_all(&folder).unwrap();
        let permits = |uri: &str| !uri.contains("p1");
        let mut all: Vec<_> = (0..sites.len())
            .flat_map(|at| snapshots[at].pages.values().map(move |entry| position(at, entry)))
            .collect();
        all.sort_unstable();
        let groups = groups(&sites);
        let mut listed = vec![0; sites.len()];
        let mut expected = Vec::new();
        for (_, at, key) in all {
            let uri = sites[at].page_uri(key);
            if permits(&uri) && listed[groups[at]] < sites[at].group.list_max {
                listed[groups[at]] += 1;
                expected.push(uri);
            }
        }
        assert_eq!(expected.len(), 7 + 2 * 29 + 5);
        for limit in [1, 2, 7, 30, 1_000] {
            let mut found = Vec::new();
            let mut cursor = None;
            loop {
                let page = page(&sites, &snapshots, cursor.as_deref(), limit, &permits);
                assert!(page.items.len() <= limit && page.missing.is_empty());
                found.extend(page.items.into_iter().map(|item| match item {
                    Item::Resource(resource) => resource.uri,
                    other => panic!("{other:?}"),
                }));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "{limit}");
        }
        for cursor in ["", "x", "500/1/none/p", "500/x/a0/p", "500/1,2/a0/p"] {
            let page = page(&sites, &snapshots, Some(cursor), 10, &permits);
            assert!(page.next.is_none() || cursor.starts_with("500/1,2"), "{cursor}");
        }
    }

    // S-07: a title is a text, whatever is in it.
    #[test]
    fn titles_are_no_markdown() {
        assert_eq!(plain("a](b) *c* `d`"), "a\\](b) \\*c\\* \\`d\\`");
    }
}
