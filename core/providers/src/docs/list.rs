//! What is said of many pages: lists, the contents of a site, and completion.
//!
//! Law: nothing is listed or suggested that a client may not read. What follows a cursor is found by its place in the order, so
//! pages that come and go move nothing.

use super::MARKDOWN;
use super::library::{Entry, Snapshot};
use super::page::Description;
use super::search::name;
use super::site::Site;
use crate::answers::COMPLETED;
use crate::path;
use mcp_resources_engine::connection::ListPage;
use mcp_resources_engine::resource::Resource;
use serde_json::{Map, json};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// Whether a client may see a URI.
type Permits<'a> = dyn Fn(&str) -> bool + 'a;

/// A page in the order of lists: its priority, its site, its name.
type ListPosition<'p> = (u16, usize, &'p str);

/// A page of the list of all pages.
pub(super) fn page(
    sites: &[Arc<Site>],
    snapshots: &[Arc<Snapshot>],
    cursor: Option<&str>,
    limit: usize,
    permits: &Permits<'_>,
) -> ListPage {
    let all = merged(snapshots);
    let after = cursor.and_then(|cursor| parse(cursor, sites));
    let mut listed: HashMap<*const (), usize> = HashMap::new();
    let mut page = ListPage::default();
    let mut last = None;
    for (place, entry) in all {
        let Some(site) = sites.get(place.1) else { continue };
        let uri = site.page_uri(&entry.key);
        let count = listed.entry(Arc::as_ptr(&site.group).cast()).or_default();
        if *count >= site.group.list_max || !permits(&uri) {
            continue;
        }
        *count += 1;
        let is_behind = after.as_ref().is_none_or(|(rank, at, key)| place > (*rank, *at, &**key));
        if cursor.is_some() && after.is_none() || !is_behind {
            continue;
        }
        if page.items.len() >= limit.max(1) {
            page.next = last.map(|(rank, key, site): (u16, &str, &str)| format!("{rank}/{site}/{key}"));
            break;
        }
        last = Some((place.0, &*entry.key, site.name()));
        page.items.push(item(uri, entry).into());
    }
    let missing =
        sites.iter().zip(snapshots).filter(|(_, snapshot)| !snapshot.is_there || !snapshot.is_whole);
    page.missing = missing.map(|(site, _)| site.name().to_owned()).collect();
    page
}

/// The pages of all sites, in their order.
fn merged(snapshots: &[Arc<Snapshot>]) -> Vec<(ListPosition<'_>, &Entry)> {
    let mut all: Vec<(ListPosition<'_>, &Entry)> = Vec::new();
    for (at, snapshot) in snapshots.iter().enumerate().filter(|(_, snapshot)| snapshot.is_there) {
        all.extend(snapshot.by_priority().iter().map(|entry| {
            let (rank, key) = entry.rank();
            ((rank, at, key), &**entry)
        }));
    }
    if snapshots.len() > 1 {
        all.sort_by_key(|(place, _)| *place);
    }
    all
}

/// The place that a cursor names; `None` if it is no cursor.
fn parse(cursor: &str, sites: &[Arc<Site>]) -> Option<(u16, usize, String)> {
    let (rank, rest) = cursor.split_once('/')?;
    let (site, key) = rest.split_once('/')?;
    let at = sites.iter().position(|other| other.name() == site)?;
    Some((rank.parse().ok()?, at, key.to_owned()))
}

fn item(uri: String, entry: &Entry) -> Resource {
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
pub(super) fn index(sites: &[Arc<Site>], permits: &Permits<'_>) -> String {
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
pub(super) fn contents(site: &Site, snapshot: &Snapshot, permits: &Permits<'_>) -> String {
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

/// What a variable is to be completed from.
pub(super) struct Typed<'a> {
    pub(super) sites: &'a [Arc<Site>],
    pub(super) snapshots: &'a [Arc<Snapshot>],
    /// The values that were chosen.
    pub(super) site: Option<&'a str>,
    pub(super) page: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) permits: &'a Permits<'a>,
}

/// The values of a variable that begin with what was typed.
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
fn permitted<'t>(typed: &'t Typed<'_>) -> impl Iterator<Item = (&'t Arc<Entry>, String)> + 't {
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
    let fits = |entry: &Entry, encoded: &str| {
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
        .filter(|slug| (typed.permits)(&Site::section_uri(&uri, slug)))
        .map(str::to_owned)
        .take(COMPLETED)
        .collect()
}

/// Titles of pages, as words to search for.
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

    /// S-07: a title is a text, whatever is in it.
    #[test]
    fn titles_are_no_markdown() {
        assert_eq!(plain("a](b) *c* `d`"), "a\\](b) \\*c\\* \\`d\\`");
    }
}
