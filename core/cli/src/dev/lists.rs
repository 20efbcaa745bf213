//! The lists of the server under development, and how they differ between two versions.
//!
//! Law: a process of its own is asked, before the clients' are restarted. So a version that does not start replaces nothing.

use super::messages::ServerList;
use super::report;
use mcp_resources_client::{Client, Target};
use mcp_resources_engine::client::{ClientError, Failure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Most entries of a list that are compared, and most pages that are requested of it.
const MOST_ENTRIES: usize = 10_000;
const MOST_PAGES: usize = 100;
/// Most changes that are printed.
const MOST_PRINTED: usize = 30;
/// Maximum time for a version to start and to list.
const START: Duration = Duration::from_secs(30);

/// The entries of a server, by what they are and their names, as JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerLists(BTreeMap<(ListedKind, String), String>);

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListedKind {
    Resource,
    Template,
    Tool,
    Prompt,
}

/// The difference between two versions.
#[derive(Debug, Default)]
pub(super) struct ListsChange {
    /// A sign, what it is, and its name.
    entries: Vec<(char, ListedKind, String)>,
}

impl ListedKind {
    const ALL: [Self; 4] = [Self::Resource, Self::Template, Self::Tool, Self::Prompt];

    fn word(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
        }
    }

    fn list(self) -> ServerList {
        match self {
            Self::Resource | Self::Template => ServerList::Resources,
            Self::Tool => ServerList::Tools,
            Self::Prompt => ServerList::Prompts,
        }
    }
}

impl ServerLists {
    /// Starts the command, takes its lists, and ends it.
    ///
    /// # Errors
    /// A sentence: it does not start, or does not answer.
    pub(super) async fn from_command(command: &[String]) -> Result<Self, String> {
        let (program, words) = command.split_first().ok_or("no command")?;
        let builder = Client::builder().server("dev", Target::command(program, words));
        let client = builder.info("mcp-resources dev", env!("CARGO_PKG_VERSION")).connect();
        let client = client.map_err(|error| error.to_string())?;
        let taken = timeout(START, Self::take(&client)).await;
        client.close().await;
        match taken {
            Ok(taken) => taken.map_err(|error| error.to_string()),
            Err(_) => Err(format!("it does not answer within {} seconds", START.as_secs())),
        }
    }

    async fn take(client: &Client) -> Result<Self, ClientError> {
        let mut lists = Self::default();
        for kind in [ListedKind::Resource, ListedKind::Template] {
            let mut listing =
                if kind == ListedKind::Template { client.list_templates() } else { client.list() };
            while let Some(listed) = listing.next().await {
                match listed {
                    Ok(listed) => lists.put(kind, listed.uri.to_string(), listed.json.to_string()),
                    // A server without the capability has none.
                    Err(ClientError::Failed(Failure::Unsupported { .. })) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        for kind in [ListedKind::Tool, ListedKind::Prompt] {
            lists.take_named(client, kind).await;
        }
        Ok(lists)
    }

    /// Takes a list whose entries have names. A server without it has none.
    async fn take_named(&mut self, client: &Client, kind: ListedKind) {
        let list = kind.list();
        let mut params = serde_json::json!({});
        for _ in 0..MOST_PAGES {
            let Ok(text) = client.request(&list.method(), &params.to_string()).await else { return };
            let page: Value = serde_json::from_str(&text).unwrap_or_default();
            let entries = page.as_object().into_iter().flat_map(|members| members.values());
            for entry in entries.filter_map(Value::as_array).flatten() {
                if let Some(name) = entry.get("name").and_then(Value::as_str) {
                    self.put(kind, name.to_owned(), entry.to_string());
                }
            }
            match page.get("nextCursor") {
                Some(cursor) if !cursor.is_null() => params = serde_json::json!({ "cursor": cursor }),
                _ => return,
            }
        }
    }

    fn put(&mut self, kind: ListedKind, name: String, text: String) {
        if self.0.len() < MOST_ENTRIES {
            self.0.insert((kind, name), text);
        }
    }

    /// The number of entries of each kind, as half a sentence.
    pub(super) fn counted(&self) -> String {
        let counts = ListedKind::ALL.map(|kind| {
            let count = self.0.keys().filter(|(of, _)| *of == kind).count();
            format!("{count} {}{}", kind.word(), if count == 1 { "" } else { "s" })
        });
        counts.join(", ")
    }

    /// The difference that `now` makes.
    pub(super) fn change_to(&self, now: &Self) -> ListsChange {
        let mut entries = Vec::new();
        for ((kind, name), text) in &now.0 {
            match self.0.get(&(*kind, name.clone())) {
                None => entries.push(('+', *kind, name.clone())),
                Some(before) if before != text => entries.push(('~', *kind, name.clone())),
                Some(_) => {}
            }
        }
        let gone = self.0.keys().filter(|entry| !now.0.contains_key(entry));
        entries.extend(gone.map(|(kind, name)| ('-', *kind, name.clone())));
        ListsChange { entries }
    }
}

impl ListsChange {
    /// The lists that differ.
    pub(super) fn lists(&self) -> Vec<ServerList> {
        let differs = |list: &ServerList| self.entries.iter().any(|(_, kind, _)| kind.list() == *list);
        ServerList::ALL.into_iter().filter(differs).collect()
    }

    /// Prints what differs.
    pub(super) fn print(&self) {
        for (sign, kind, name) in self.entries.iter().take(MOST_PRINTED) {
            report::add(&format!("{sign} {} {name}", kind.word()));
        }
        if let Some(more @ 1..) = self.entries.len().checked_sub(MOST_PRINTED) {
            report::add(&format!("and {more} more"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(entries: &[(ListedKind, &str, &str)]) -> ServerLists {
        let mut lists = ServerLists::default();
        entries.iter().for_each(|(kind, name, text)| lists.put(*kind, (*name).into(), (*text).into()));
        lists
    }

    #[test]
    fn versions_are_compared() {
        let before = lists(&[
            (ListedKind::Resource, "a:1", "x"),
            (ListedKind::Tool, "t", "x"),
            (ListedKind::Prompt, "p", "x"),
        ]);
        let now = lists(&[
            (ListedKind::Resource, "a:2", "x"),
            (ListedKind::Tool, "t", "y"),
            (ListedKind::Prompt, "p", "x"),
        ]);
        let change = before.change_to(&now);
        let expected = [
            ('+', ListedKind::Resource, "a:2"),
            ('~', ListedKind::Tool, "t"),
            ('-', ListedKind::Resource, "a:1"),
        ];
        assert_eq!(change.entries, expected.map(|(sign, kind, name)| (sign, kind, name.to_owned())));
        assert_eq!(change.lists(), [ServerList::Resources, ServerList::Tools]);
        assert_eq!(now.counted(), "1 resource, 0 templates, 1 tool, 1 prompt");
        assert!(now.change_to(&now).lists().is_empty());
    }
}
