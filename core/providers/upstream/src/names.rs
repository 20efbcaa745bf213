//! The names under which one agent sees what its servers have.
//!
//! ```text
//!   file:///a    the first server that has it, or the only one
//!   fs+file:///a the server whose prefix or name is fs; always, if it has a prefix
//!   ui://fs+a/b  the same for pages of MCP Apps: hosts open no other scheme
//!   read         the tool of one server; fs_read and git_read if two have it
//! ```
//!
//! Law: a name depends on the names of the servers and on what they have, never on the order of requests.

use crate::table::NamedTable;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The scheme that a prefix must not change.
const PAGE: &str = "ui://";

/// The prefix of each server of an agent, in their order.
#[derive(Clone, Debug)]
pub(crate) struct ServerPrefixes(Vec<String>);

impl ServerPrefixes {
    /// From the prefix of each server or, without one, its name. Characters that no scheme has are replaced.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut prefixes: Vec<String> = Vec::new();
        for name in names {
            let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
            let mut own: String = name.chars().map(|c| if is_scheme(c) { c } else { '-' }).collect();
            if !own.starts_with(|c: char| c.is_ascii_alphabetic()) {
                own.insert_str(0, "s-");
            }
            while prefixes.iter().any(|other| other.eq_ignore_ascii_case(&own)) {
                own.push_str("-2");
            }
            prefixes.push(own);
        }
        Self(prefixes)
    }

    /// A URI, or the text of a template, under the prefix of a server.
    pub(crate) fn with(&self, server: usize, uri: &str) -> String {
        let prefix = self.0.get(server).map_or("", String::as_str);
        match uri.get(..PAGE.len()).filter(|start| start.eq_ignore_ascii_case(PAGE)) {
            Some(_) => format!("{PAGE}{prefix}+{}", uri.get(PAGE.len()..).unwrap_or_default()),
            None => format!("{prefix}+{uri}"),
        }
    }

    /// The server whose prefix a URI has, and the URI without it.
    pub(crate) fn split(&self, uri: &str) -> Option<(usize, String)> {
        let page = uri.get(..PAGE.len()).filter(|start| start.eq_ignore_ascii_case(PAGE));
        let (before, rest) = uri.get(page.map_or(0, str::len)..)?.split_once('+')?;
        let server = self.0.iter().position(|prefix| prefix.eq_ignore_ascii_case(before))?;
        Some((server, if page.is_some() { format!("{PAGE}{rest}") } else { rest.to_owned() }))
    }
}

/// A server as far as the names of its tools matter.
pub(crate) struct NamingServer<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its prefix in the configuration.
    pub(crate) prefix: Option<&'a str>,
    /// Its table; `None` if that is not known now.
    pub(crate) table: Option<&'a Arc<NamedTable>>,
    /// Whether the agent has a tool.
    pub(crate) permits: &'a dyn Fn(&str) -> bool,
}

/// A tool or prompt of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedTarget {
    pub(crate) server: usize,
    /// Its name there.
    pub(crate) name: String,
}

/// All tools, or all prompts, of an agent.
#[derive(Debug, Default)]
pub(crate) struct NamedRoutes {
    by_name: HashMap<String, NamedTarget>,
    /// By server: the names here, with the index in its table, in the order of names.
    pub(crate) listed: Vec<Vec<(String, usize)>>,
}

impl NamedRoutes {
    pub(crate) fn new(servers: &[NamingServer<'_>]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let permitted = |server: &NamingServer<'_>| -> Vec<usize> {
            let items = server.table.iter().flat_map(|table| table.items.iter().enumerate());
            items.filter(|(_, item)| (server.permits)(&item.id)).map(|(at, _)| at).collect()
        };
        let own: Vec<Vec<usize>> = servers.iter().map(permitted).collect();
        let id = |server: usize, at: usize| -> &str {
            let table = servers.get(server).and_then(|server| server.table);
            table.and_then(|table| table.items.get(at)).map_or("", |item| item.id.as_str())
        };
        for (server, items) in own.iter().enumerate() {
            if servers.get(server).is_some_and(|server| server.prefix.is_none()) {
                items.iter().for_each(|at| *counts.entry(id(server, *at)).or_default() += 1);
            }
        }
        let mut routes = Self::default();
        for (index, (server, items)) in servers.iter().zip(&own).enumerate() {
            let mut listed = Vec::with_capacity(items.len());
            for at in items {
                let name = id(index, *at);
                let is_kept = server.prefix.is_none() && counts.get(name) == Some(&1);
                let mut shown = if is_kept { name.to_owned() } else { joined(server, name) };
                while routes.by_name.contains_key(&shown) {
                    shown = joined(server, &shown);
                }
                routes.by_name.insert(shown.clone(), NamedTarget { server: index, name: name.to_owned() });
                listed.push((shown, *at));
            }
            listed.sort();
            routes.listed.push(listed);
        }
        routes
    }

    pub(crate) fn find(&self, name: &str) -> Option<&NamedTarget> {
        self.by_name.get(name)
    }
}

/// `SERVER_name`, of the characters that names of tools have.
fn joined(server: &NamingServer<'_>, name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let own = server.prefix.unwrap_or(server.name);
    let own: String = own.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{own}_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ForeignItem;

    #[test]
    fn a_uri_gets_a_prefix_and_loses_it() {
        let prefixes = ServerPrefixes::new(["Docs", "a b", "a-b", "3d"]);
        for (server, uri, expected) in [
            (0, "file:///a+b", "Docs+file:///a+b"),
            (1, "note://x", "a-b+note://x"),
            (2, "note://x", "a-b-2+note://x"),
            (3, "{+any}", "s-3d+{+any}"),
            (0, "ui://shop/order", "ui://Docs+shop/order"),
        ] {
            assert_eq!(prefixes.with(server, uri), expected);
            assert_eq!(prefixes.split(expected), Some((server, uri.to_owned())));
            assert_eq!(prefixes.split(&expected.to_ascii_lowercase()).map(|(own, _)| own), Some(server));
        }
        for other in ["git+https://x", "note://a+b", "ui://x/a+b", "", "+", "docs", "ui://é+"] {
            assert_eq!(prefixes.split(other), None, "{other}");
        }
    }

    fn table(names: &[&str]) -> Arc<NamedTable> {
        let items = names.iter().map(|name| ForeignItem { id: (*name).into(), json: String::new() });
        Arc::new(NamedTable { items: items.collect(), templates: Vec::new() })
    }

    // G2: a name is kept unless two servers have it; then both are SERVER_name.
    #[test]
    fn names_are_kept_unless_two_have_them() {
        let all = |_: &str| true;
        let some = |name: &str| name != "hidden";
        let [one, two, three] =
            [table(&["read", "own", "hidden"]), table(&["read", "hidden"]), table(&["read", "p"])];
        let server = |name, prefix, table, permits| NamingServer { name, prefix, table, permits };
        let routes = NamedRoutes::new(&[
            server("a b", None, Some(&one), &all),
            server("b", None, Some(&two), &some),
            server("c", Some("p"), Some(&three), &all),
            server("d", None, None, &all),
        ]);
        let names: Vec<Vec<&str>> =
            routes.listed.iter().map(|own| own.iter().map(|(name, _)| name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["a_b_read", "hidden", "own"], vec!["b_read"], vec!["p_p", "p_read"], vec![]]);
        let find = |name: &str| routes.find(name).map(|target| (target.server, target.name.as_str()));
        assert_eq!(find("b_read"), Some((1, "read")));
        assert_eq!(find("hidden"), Some((0, "hidden")), "the other one is hidden, and takes no name");
        assert_eq!((find("read"), find("b_hidden")), (None, None));
    }

    #[test]
    fn a_name_with_a_prefix_may_exist_already() {
        let all = |_: &str| true;
        let [one, two] = [table(&["x", "b_x"]), table(&["x"])];
        let server = |name, table| NamingServer { name, prefix: None, table: Some(table), permits: &all };
        let routes = NamedRoutes::new(&[server("a", &one), server("b", &two)]);
        let names: Vec<_> = routes.listed.iter().flatten().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a_x", "b_x", "b_b_x"]);
    }
}
