//! Conflicts between the servers of an agent: names, URIs and templates that two of them have, and servers that do not answer.

use crate::server::lock;
use crate::table::{MOST_ITEMS, MOST_PAGES, NamedTable};
use crate::view::UpstreamView;
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_template::{Lookup, UriTemplate, Value, Values};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Most conflicts that are reported of one kind.
const MOST_CONFLICTS: usize = 100;
/// Most templates of a server that are compared with those of another.
const MOST_TEMPLATES: usize = 200;

/// Something that a gateway cannot show as its servers have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UpstreamConflict {
    /// A server does not answer, for this reason.
    Unreachable {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// Servers have a tool with the same name.
    Tool {
        /// The name.
        name: String,
        /// The servers, in the order of their names.
        servers: Vec<String>,
    },
    /// Servers have a prompt with the same name.
    Prompt {
        /// The name.
        name: String,
        /// The servers, in the order of their names.
        servers: Vec<String>,
    },
    /// Servers have the same URI.
    Uri {
        /// The URI.
        uri: String,
        /// The servers, in the order of their names.
        servers: Vec<String>,
        /// The URIs under which agents see it, in the same order.
        shown: Vec<String>,
    },
    /// Servers have the same template, or a URI of one matches that of another.
    Template {
        /// The template of the first server.
        template: String,
        /// That of the second one.
        other: String,
        /// Both servers, in the order of their names.
        servers: Vec<String>,
    },
    /// A template cannot be parsed, so URIs are not found by it.
    InvalidTemplate {
        /// The server.
        server: String,
        /// Its text.
        template: String,
    },
}

/// The contents of one server.
struct ServerContents {
    tools: Option<Arc<NamedTable>>,
    prompts: Option<Arc<NamedTable>>,
    templates: Option<Arc<NamedTable>>,
    uris: Vec<String>,
    problem: Option<String>,
}

impl UpstreamView {
    /// Looks at everything that the servers have, for at most `time`.
    pub(crate) async fn conflicts(&self, time: Duration) -> Vec<UpstreamConflict> {
        let deadline = Instant::now() + time;
        let mut contents = Vec::with_capacity(self.servers.len());
        for at in 0..self.servers.len() {
            contents.push(self.contents(at, deadline).await);
        }
        let mut found = Vec::new();
        for (own, contents) in self.servers.iter().zip(&contents) {
            if let Some(reason) = contents.problem.clone() {
                found.push(UpstreamConflict::Unreachable { server: own.server.name().to_string(), reason });
            }
        }
        let tools: Vec<_> = contents.iter().map(|own| own.tools.clone()).collect();
        for (name, servers) in self.equal_names(&tools) {
            found.push(UpstreamConflict::Tool { name, servers });
        }
        let prompts: Vec<_> = contents.iter().map(|own| own.prompts.clone()).collect();
        for (name, servers) in self.equal_names(&prompts) {
            found.push(UpstreamConflict::Prompt { name, servers });
        }
        self.equal_uris(&contents, &mut found);
        self.templates_of(&contents, &mut found);
        found
    }

    async fn contents(&self, at: usize, deadline: Instant) -> ServerContents {
        let mut contents =
            ServerContents { tools: None, prompts: None, templates: None, uris: Vec::new(), problem: None };
        let Some(own) = self.servers.get(at) else { return contents };
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Templates] {
            let table = match own.server.table(list, deadline).await {
                Some(Ok(table)) => Some(table),
                Some(Err(error)) => {
                    contents.problem.get_or_insert(error.to_string());
                    None
                }
                None => {
                    contents.problem.get_or_insert("no answer".to_owned());
                    None
                }
            };
            match list {
                ListKind::Tools => contents.tools = table,
                ListKind::Prompts => contents.prompts = table,
                ListKind::Templates | ListKind::Resources => contents.templates = table,
            }
        }
        if !own.has_resources || contents.problem.is_some() {
            return contents;
        }
        let mut cursor: Option<String> = None;
        let mut seen = HashSet::new();
        for _ in 0..MOST_PAGES {
            let page = timeout_at(deadline, own.server.resources(cursor.as_deref())).await;
            match page {
                Ok(Ok(page)) => {
                    let allowed = page.items.into_iter().filter(|item| own.access.allows(&item.id));
                    contents.uris.extend(allowed.map(|item| item.id));
                    match page.next {
                        Some(next) if seen.insert(next.clone()) && contents.uris.len() < MOST_ITEMS => {
                            cursor = Some(next);
                        }
                        _ => break,
                    }
                }
                Ok(Err(error)) => {
                    contents.problem = Some(error.to_string());
                    break;
                }
                Err(_elapsed) => {
                    contents.problem = Some("no answer".to_owned());
                    break;
                }
            }
        }
        contents
    }

    /// The names that several servers without a prefix have, with those servers.
    fn equal_names(&self, tables: &[Option<Arc<NamedTable>>]) -> Vec<(String, Vec<String>)> {
        let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (own, table) in self.servers.iter().zip(tables).filter(|(own, _)| own.prefix.is_none()) {
            let items = table.iter().flat_map(|table| &table.items);
            for item in items.filter(|item| own.permits(&item.id)) {
                by_name.entry(&item.id).or_default().push(own.server.name().to_string());
            }
        }
        let equal = by_name.into_iter().filter(|(_, servers)| servers.len() > 1);
        equal.map(|(name, servers)| (name.to_owned(), servers)).take(MOST_CONFLICTS).collect()
    }

    fn equal_uris(&self, contents: &[ServerContents], found: &mut Vec<UpstreamConflict>) {
        let mut by_uri: BTreeMap<String, Vec<(usize, &String)>> = BTreeMap::new();
        for (at, own) in self.servers.iter().enumerate().filter(|(_, own)| own.prefix.is_none()) {
            let mut seen = HashSet::new();
            for uri in contents.get(at).iter().flat_map(|contents| &contents.uris) {
                let canonical = crate::owners::canonical(uri).into_owned();
                // In this order the first server keeps it.
                lock(&self.owners).claim(at, uri);
                if own.access.allows(uri) && seen.insert(canonical.clone()) {
                    by_uri.entry(canonical).or_default().push((at, uri));
                }
            }
        }
        let equal = by_uri.into_values().filter(|servers| servers.len() > 1).take(MOST_CONFLICTS);
        for owners in equal {
            let servers = owners.iter().filter_map(|(at, _)| self.servers.get(*at));
            let servers = servers.map(|own| own.server.name().to_string()).collect();
            let shown = owners.iter().map(|(at, uri)| self.shown(*at, uri)).collect();
            let uri = owners.first().map(|(_, uri)| (*uri).clone()).unwrap_or_default();
            found.push(UpstreamConflict::Uri { uri, servers, shown });
        }
    }

    fn templates_of(&self, contents: &[ServerContents], found: &mut Vec<UpstreamConflict>) {
        let mut parsed: Vec<(String, Vec<UriTemplate>)> = Vec::new();
        for (own, contents) in self.servers.iter().zip(contents).filter(|(own, _)| own.has_resources) {
            let name = own.server.name().to_string();
            let mut templates = Vec::new();
            for item in contents.templates.iter().flat_map(|table| &table.items) {
                match UriTemplate::parse(&item.id) {
                    Ok(template) if own.access.reaches(&item.id) => templates.push(template),
                    Ok(_) => {}
                    Err(_) => found.push(UpstreamConflict::InvalidTemplate {
                        server: name.clone(),
                        template: item.id.clone(),
                    }),
                }
            }
            templates.truncate(MOST_TEMPLATES);
            if own.prefix.is_none() {
                parsed.push((name, templates));
            }
        }
        let mut left = MOST_CONFLICTS;
        for (at, (name, templates)) in parsed.iter().enumerate() {
            for (other_name, others) in parsed.iter().skip(at + 1) {
                let pairs = templates.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
                for (one, other) in pairs.filter(|(one, other)| overlap(one, other)).take(left) {
                    left -= 1;
                    found.push(UpstreamConflict::Template {
                        template: one.as_str().to_owned(),
                        other: other.as_str().to_owned(),
                        servers: vec![name.clone(), other_name.clone()],
                    });
                }
            }
        }
    }
}

/// Whether a plain URI of one template matches the other.
fn overlap(one: &UriTemplate, other: &UriTemplate) -> bool {
    let matches = |from: &UriTemplate, to: &UriTemplate| {
        let names = from.variables().iter().map(|variable| variable.name.to_string());
        let values: Values<'_> = names.map(|name| (name, Value::from("x".to_owned()))).collect();
        let uri = from.expand(&values).ok();
        uri.is_some_and(|uri| matches!(to.match_uri(&uri), Ok(Lookup::Match { .. })))
    };
    one.as_str() == other.as_str() || matches(one, other) || matches(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_overlap_if_a_uri_of_one_matches_the_other() {
        let parse = |text| UriTemplate::parse(text).unwrap();
        for (one, other, expected) in [
            ("note://{id}", "note://{name}", true),
            ("note://{id}", "note://{+path}", true),
            ("note://{+path}", "note://a/{id}", true),
            ("note://{id}", "wiki://{id}", false),
            ("note://a/{id}", "note://b/{id}", false),
        ] {
            assert_eq!(overlap(&parse(one), &parse(other)), expected, "{one} {other}");
        }
    }
}
