//! One site, and the names of its pages in URIs.
//!
//! ```text
//!   name on disk, any bytes ──key──▶ normalised text (NFC), as the value of `page` ──uri──▶ docs:///handbook/ガイド.md, encoded
//!   value of `page` ──locate──▶ name on disk, in whatever normalisation it is written there
//! ```
//!
//! Law: a page has one URI, in NFC. Another spelling of it is not found, so that a rule of the guard for the one cannot be
//! evaded with another.

use crate::indexes::IndexFile;
use mcp_resources_provider_files::folder::Folder;
use mcp_resources_provider_kit::offered::OfferedTools;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::uri_path;
use std::sync::Arc;
use std::time::Duration;
use unicode_normalization::{UnicodeNormalization, is_nfc};

pub(super) const SCHEME: &str = "docs:///";
/// The segment that searches a site.
const SEARCH: &str = "search";

/// Settings shared by the sites of one declaration.
#[derive(Debug)]
pub(super) struct SiteGroup {
    pub(super) list_max: usize,
    pub(super) max_bytes: Option<u64>,
    pub(super) watch: bool,
    /// Maximum time that a request waits for the first index.
    pub(super) patience: Duration,
    pub(super) index: Arc<IndexFile>,
    pub(super) tools: OfferedTools,
}

/// One site at run time.
#[derive(Debug)]
pub(super) struct DocsSite {
    pub(super) folder: Folder,
    /// `docs:///NAME/`.
    pub(super) uri: String,
    /// The settings shared by the sites that were declared together.
    pub(super) group: Arc<SiteGroup>,
}

/// The target of a canonical URI of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageTarget {
    /// The list of its pages.
    Contents,
    /// A page, and a section of it.
    Page(String, Option<String>),
    /// A search, whatever it looks for.
    Search,
}

impl DocsSite {
    pub(super) fn new(folder: Folder, group: &Arc<SiteGroup>) -> Self {
        let uri = folder.uri(SCHEME, b"");
        Self { folder, uri, group: group.clone() }
    }

    pub(super) fn name(&self) -> &str {
        self.folder.name()
    }

    /// The URI of a page.
    pub(super) fn page_uri(&self, key: &str) -> String {
        let mut uri = self.uri.clone();
        path::append(&mut uri, key);
        uri
    }

    /// The URI of a section.
    pub(super) fn section_uri(page: &str, slug: &str) -> String {
        let mut uri = String::with_capacity(page.len() + slug.len() + 1);
        uri.push_str(page);
        if !slug.is_empty() {
            uri.push('#');
            path::append(&mut uri, slug);
        }
        uri
    }

    /// Parses a canonical URI; `None` if it is not one of this site. `is_page` reports whether a page of a name exists.
    pub(super) fn target(&self, uri: &str, is_page: impl Fn(&str) -> bool) -> Option<PageTarget> {
        if self.uri.strip_suffix('/') == Some(uri) {
            return Some(PageTarget::Contents);
        }
        let rest = uri.strip_prefix(&*self.uri)?;
        if rest.is_empty() {
            return Some(PageTarget::Contents);
        }
        let (whole, fragment) = rest.split_once('#').map_or((rest, None), |(rest, slug)| (rest, Some(slug)));
        let (page, query) = whole.split_once('?').map_or((whole, None), |(page, query)| (page, Some(query)));
        let key = path::decoded(page)?;
        let is_search = key == SEARCH && query.is_some() || key.starts_with("search/") && !is_page(&key);
        if is_search {
            return Some(PageTarget::Search);
        }
        Some(PageTarget::Page(key, fragment.map(path::decoded).unwrap_or_default()))
    }

    /// The path on disk of the page that a value of `page` names; `None` if there is none.
    pub(super) fn locate(&self, key: &str) -> Option<Vec<u8>> {
        if !is_nfc(key) || !is_page(key.as_bytes()) {
            return None;
        }
        let exact = uri_path::decode(key).filter(|path| path.len() <= uri_path::PATH)?;
        let is_file = |path: &[u8]| self.folder.is_dir(path) == Some(false);
        if is_file(&exact) {
            return Some(exact);
        }
        if key.is_ascii() {
            return None;
        }
        let mut path = Vec::new();
        for name in uri_path::components(&exact) {
            let own = uri_path::join(&path, name);
            path = if self.folder.is_dir(&own).is_some() {
                own
            } else {
                let wanted = uri_path::text(name);
                let is_it = |other: &[u8]| uri_path::text(other).nfc().eq(wanted.chars());
                let found = self.folder.name_in(&path, &is_it)?;
                uri_path::join(&path, &found)
            };
        }
        Some(path).filter(|path| is_file(path))
    }
}

/// The normalised text of a path on disk: the value of `page`.
pub(crate) fn key(path: &[u8]) -> String {
    let mut key = String::with_capacity(path.len());
    for name in uri_path::components(path) {
        if !key.is_empty() {
            key.push('/');
        }
        let text = uri_path::text(name);
        if is_nfc(&text) { key.push_str(&text) } else { key.extend(text.nfc()) }
    }
    key
}

/// Whether a file of this name is a page.
pub(crate) fn is_page(path: &[u8]) -> bool {
    ["md", "markdown"].iter().any(|ending| ends_with(path, ending)) || is_mdx(path)
}

/// Whether a file of this name is MDX: Markdown with components and their imports.
pub(crate) fn is_mdx(path: &[u8]) -> bool {
    ends_with(path, "mdx")
}

/// Whether what follows the last dot of a file's name is `ending`.
fn ends_with(path: &[u8], ending: &str) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let own = name.iter().rposition(|byte| *byte == b'.').and_then(|at| name.get(at + 1..));
    own.is_some_and(|own| own.eq_ignore_ascii_case(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-07: names in any normalisation have one key.
    #[test]
    fn names_have_one_key() {
        for (path, expected) in [
            ("guide/search.md", "guide/search.md"),
            ("ガイド/設定.md", "ガイド/設定.md"),
            ("カ\u{3099}イト\u{3099}.md", "ガイド.md"),
            ("u\u{308}.md", "ü.md"),
        ] {
            assert_eq!(key(path.as_bytes()), expected);
        }
        assert_eq!(key(b"\xff.md"), "~FF.md");
        let pages = ["a.md", "b/A.MD", ".md", "x.markdown", "a.b.md", "a.mdx"];
        assert!(pages.iter().all(|name| is_page(name.as_bytes())));
        assert!(!["a.mdxx", "md", "a.md/b.txt", "a.png", ""].iter().any(|name| is_page(name.as_bytes())));
    }
}
