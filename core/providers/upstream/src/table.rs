//! All entries of one kind that a server has: its templates, its tools or its prompts.

use crate::wire::ForeignItem;
use mcp_resources_template::{Lookup, UriTemplate};

/// Most entries that are kept of one kind and server; the rest is left out.
pub(crate) const MOST_ITEMS: usize = 10_000;
/// Most pages that are read of one kind and server.
pub(crate) const MOST_PAGES: usize = 1_000;

/// All entries of one kind.
#[derive(Debug, Default)]
pub(crate) struct NamedTable {
    /// In the order of their ids.
    pub(crate) items: Vec<ForeignItem>,
    /// For templates: each parsed, if it can be.
    pub(crate) templates: Vec<Option<UriTemplate>>,
}

impl NamedTable {
    /// Makes a table. Of entries with the same id, the first counts.
    pub(crate) fn new(mut items: Vec<ForeignItem>, parses: bool) -> Self {
        items.sort_by(|one, other| one.id.cmp(&other.id));
        items.dedup_by(|one, other| one.id == other.id);
        items.truncate(MOST_ITEMS);
        let parse = |item: &ForeignItem| UriTemplate::parse(&item.id).ok();
        let templates = if parses { items.iter().map(parse).collect() } else { Vec::new() };
        Self { items, templates }
    }

    /// The parsed template with this text; `None` if it is not there, or cannot be parsed.
    pub(crate) fn template(&self, text: &str) -> Option<&UriTemplate> {
        let at = self.items.binary_search_by(|item| item.id.as_str().cmp(text)).ok()?;
        self.templates.get(at)?.as_ref()
    }

    /// Whether an entry has this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.items.binary_search_by(|item| item.id.as_str().cmp(id)).is_ok()
    }

    /// Whether a template matches `uri`.
    pub(crate) fn matches(&self, uri: &str) -> bool {
        let is_match = |template: &UriTemplate| matches!(template.match_uri(uri), Ok(Lookup::Match { .. }));
        self.templates.iter().flatten().any(is_match)
    }
}
