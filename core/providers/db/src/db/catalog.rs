//! The schema of the served tables and statements, as the database reports it.

use super::key::{self, Affinity};
use super::value::DbValue;
use mcp_resources_engine::json_text;
use mcp_resources_engine::suggest::closest;
use mcp_resources_provider_kit::path;
use serde_json::json;

/// The served tables and statements. Read again after the schema has changed.
#[derive(Debug, Default)]
pub(super) struct DbCatalog {
    /// In the order in which they are declared.
    pub(super) tables: Vec<DbTable>,
    /// By the numbers of the declared statements; `None` is one that the database refuses.
    pub(super) views: Vec<Option<TableView>>,
    /// Why something that is declared cannot be served, one sentence each.
    pub(super) faults: Vec<String>,
    /// Messages for the log about possible mistakes.
    pub(super) notes: Vec<String>,
    /// All tables that could be declared. For messages at the start.
    pub(super) all: Vec<String>,
}

/// A table.
#[derive(Debug)]
pub(super) struct DbTable {
    /// As it is declared.
    pub(super) name: String,
    /// `db:///NAME/TABLE`.
    pub(super) uri: String,
    /// As SQL.
    pub(super) reference: String,
    /// Those that are served.
    pub(super) columns: Vec<Column>,
    pub(super) key: Vec<KeyColumn>,
    /// A further sort column, as SQL, that distinguishes rows whose key contains NULL.
    pub(super) tie: Option<&'static str>,
}

/// A column of a table or of a result.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// With the quotes and the colon of a member.
    member: Vec<u8>,
    /// Its type as it was declared.
    declared: String,
    /// `None`: unknown.
    is_nullable: Option<bool>,
    pub(super) form: TableForm,
}

/// The representation of a value that comes from the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableForm {
    /// Its own type.
    Plain,
    /// As a text, for which it is cast.
    Text,
    /// The same, and it is JSON.
    Json,
}

/// A column of a key.
#[derive(Debug)]
pub(super) struct KeyColumn {
    pub(super) name: String,
    /// As SQL.
    pub(super) expression: String,
    pub(super) affinity: Affinity,
    pub(super) is_nullable: bool,
    /// The type that a text is cast to, as SQL. SQLite casts none.
    pub(super) cast: Option<String>,
}

/// A statement of the operator's, as the database reads it.
#[derive(Debug)]
pub(super) struct TableView {
    pub(super) sql: String,
    /// For each parameter, a statement that casts a text to its type.
    pub(super) casts: Vec<String>,
    pub(super) columns: Vec<Column>,
}

/// One row that was read.
#[derive(Debug, Default)]
pub(super) struct CatalogRow {
    /// In the order of the columns.
    pub(super) values: Vec<DbValue>,
    /// The values of the key, and what [`DbTable::tie`] is.
    pub(super) key: Vec<DbValue>,
}

impl DbCatalog {
    pub(super) fn table(&self, name: &str) -> Option<&DbTable> {
        self.tables.iter().find(|table| table.name == name)
    }
}

impl Column {
    pub(super) fn new(
        name: impl Into<String>,
        declared: impl Into<String>,
        is_nullable: Option<bool>,
        form: TableForm,
    ) -> Self {
        let name = name.into();
        let mut member = Vec::with_capacity(name.len() + 3);
        json_text::escape_into(&name, &mut member);
        member.push(b':');
        Self { name, member, declared: declared.into(), is_nullable, form }
    }

    pub(super) fn describe(&self) -> serde_json::Value {
        let mut column = json!({ "name": self.name, "type": self.declared });
        if let (Some(is_nullable), Some(members)) = (self.is_nullable, column.as_object_mut()) {
            members.insert("nullable".into(), is_nullable.into());
        }
        column
    }
}

impl DbTable {
    /// The text of a key that was read.
    pub(super) fn key_text(&self, key: &[DbValue]) -> String {
        key::encode(key.get(..self.key.len()).unwrap_or(key), |at| self.affinity(at))
    }

    /// The cursor behind a row: its key, followed by the value of [`DbTable::tie`] if the key contains NULL.
    pub(super) fn cursor_text(&self, key: &[DbValue]) -> String {
        let columns = key.get(..self.key.len()).unwrap_or(key);
        match columns.contains(&DbValue::Null) {
            true => key::encode(key, |at| self.affinity(at)),
            false => key::encode(columns, |at| self.affinity(at)),
        }
    }

    /// The values that a key's text represents; `None` if it is not a key of this table. With `is_cursor` it may also
    /// have the value of [`DbTable::tie`].
    pub(super) fn read_key(&self, text: &str, is_cursor: bool) -> Option<Vec<DbValue>> {
        let values = self.decode(text)?;
        let is_tied = is_cursor && self.tie.is_some() && values.len() == self.key.len() + 1;
        (is_tied || values.len() == self.key.len()).then_some(values)
    }

    /// Splits a partly typed key into the values of its complete columns and the text of the next one.
    pub(super) fn read_prefix(&self, typed: &str) -> Option<(Vec<DbValue>, String)> {
        let (first, last) = typed.rsplit_once(',').map_or((None, typed), |(first, last)| (Some(first), last));
        let first = match first {
            Some(first) => self.decode(first)?,
            None => Vec::new(),
        };
        (first.len() < self.key.len()).then(|| key::decode_prefix(last).map(|last| (first, last))).flatten()
    }

    /// The values of columns, unless a column has no such value: no statement is made for that.
    fn decode(&self, text: &str) -> Option<Vec<DbValue>> {
        let values = key::decode(text, |at| self.affinity(at))?;
        let is_possible = |(column, value): (&KeyColumn, &DbValue)| match value {
            DbValue::Null => column.is_nullable,
            // Postgres casts a text to the type of the column.
            DbValue::Blob(_) | DbValue::OddText(_) => column.cast.is_none(),
            _ => true,
        };
        self.key.iter().zip(&values).all(is_possible).then_some(values)
    }

    fn affinity(&self, at: usize) -> Affinity {
        self.key.get(at).map_or(Affinity::Integer, |column| column.affinity)
    }

    /// The URI of the row with this key.
    pub(super) fn row_uri(&self, key: &str) -> String {
        let mut uri = self.uri.clone();
        uri.push('/');
        path::append(&mut uri, key);
        uri
    }

    pub(super) fn describe(&self) -> serde_json::Value {
        let key: Vec<&str> = self.key.iter().map(|column| column.name.as_str()).collect();
        let columns: Vec<_> = self.columns.iter().map(Column::describe).collect();
        json!({ "uri": self.uri, "key": key, "columns": columns })
    }
}

impl CatalogRow {
    /// Appends the row as an object.
    pub(super) fn write(&self, columns: &[Column], out: &mut Vec<u8>) {
        out.push(b'{');
        for (at, (column, value)) in columns.iter().zip(&self.values).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&column.member);
            value.write(out);
        }
        out.push(b'}');
    }
}

/// A name as SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The first name that two columns have.
pub(super) fn twice(columns: &[Column]) -> Option<&str> {
    let mut seen = std::collections::HashSet::new();
    columns.iter().map(|column| column.name.as_str()).find(|name| !seen.insert(*name))
}

/// That a table is not there.
pub(super) fn absent(name: &str, all: &[String]) -> String {
    let in_schema =
        || all.iter().find(|other| other.rsplit_once('.').is_some_and(|(_, other)| other == name));
    let close = closest(name, all.iter().map(String::as_str)).or_else(|| in_schema().map(String::as_str));
    let fix = close.map(|close| format!("; did you mean {close:?}?")).unwrap_or_default();
    match (fix.is_empty(), all.is_empty()) {
        (false, _) => format!("does not exist{fix}"),
        (true, true) => "does not exist, and there is no other".into(),
        (true, false) => format!("does not exist; there are {}", some(all)),
    }
}

/// Names for a message.
pub(super) fn some(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", "))
}
