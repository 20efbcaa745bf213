//! Reads the catalog of a SQLite file.

use super::authorizer::AuthorizerScope;
use super::{FORM, OpenDatabase, fault};
use crate::db::catalog::{Column, DbCatalog, DbTable, KeyColumn, TableView, absent, quoted, twice};
use crate::db::key::Affinity;
use crate::db::query::of_row;
use crate::db::session::SessionFault;
use crate::db::source::{DbSource, DeclaredTable};

/// The names of the rowid, each with its SQL. A column may shadow one.
const ROWIDS: [(&str, &str); 3] = [("rowid", "r.rowid"), ("_rowid_", "r._rowid_"), ("oid", "r.oid")];

/// A table as SQLite describes it.
struct SqliteTableRow {
    name: String,
    /// `table`, `view`, `virtual`, or `shadow`: the table of a virtual one.
    kind: String,
    is_without_rowid: bool,
}

/// A column as SQLite describes it.
struct SqliteColumnRow {
    name: String,
    declared: String,
    is_not_null: bool,
    /// Its place in the primary key, from 1.
    key: i64,
}

impl OpenDatabase {
    pub(super) fn read_catalog(&self, source: &DbSource) -> Result<DbCatalog, SessionFault> {
        let mut catalog = DbCatalog::default();
        let all = self.tables()?;
        let tables = all.iter().filter(|table| table.kind == "table");
        catalog.all = tables.map(|table| table.name.clone()).collect();
        for declared in &source.tables {
            let table = match all.iter().find(|table| table.name == declared.name) {
                Some(table) if table.kind == "table" => self.table(source, declared, table)?,
                Some(SqliteTableRow { name, kind, .. }) => Err(format!(
                    "is {}; serve it with a view: `views: {{{name}: \"SELECT * FROM {name}\"}}`",
                    if kind == "view" { "a view of the database" } else { "a virtual table" },
                )),
                None => Err(absent(&declared.name, &catalog.all)),
            };
            match table {
                Ok(table) => catalog.tables.push(table),
                Err(reason) => catalog.faults.push(format!("the table {:?} {reason}", declared.name)),
            }
        }
        for view in &source.views {
            match self
                .view(&view.statement.render(|index| format!("?{}", index + 1)), view.statement.names.len())
            {
                Ok(found) => catalog.views.push(Some(found)),
                Err(SessionFault::Down(reason)) => {
                    catalog.views.push(None);
                    catalog.faults.push(format!("the view {:?} cannot be served: {reason}", view.name));
                }
                Err(other) => return Err(other),
            }
        }
        if source.has_denied() {
            let mut known = Vec::new();
            for SqliteTableRow { name, .. } in &all {
                // Those of a virtual table are unknown if its module is.
                let columns = self.columns(name).unwrap_or_default();
                known.extend(columns.into_iter().map(|column| (name.clone(), column.name)));
            }
            source.check_denied(&known, &mut catalog);
        }
        Ok(catalog)
    }

    /// The tables and views of the file.
    fn tables(&self) -> Result<Vec<SqliteTableRow>, SessionFault> {
        self.allowed.enter(AuthorizerScope::Nothing);
        let mut statement = self.connection.prepare("PRAGMA table_list").map_err(fault)?;
        let mut rows = statement.query([]).map_err(fault)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let read = || -> rusqlite::Result<_> {
                let table =
                    SqliteTableRow { name: row.get(1)?, kind: row.get(2)?, is_without_rowid: row.get(4)? };
                Ok((row.get::<_, String>(0)?, table))
            };
            // A name that is no text cannot be declared.
            let Ok((schema, table)) = read() else { continue };
            if schema == "main" && !table.name.to_ascii_lowercase().starts_with("sqlite_") {
                all.push(table);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn columns(&self, table: &str) -> Result<Vec<SqliteColumnRow>, SessionFault> {
        self.allowed.enter(AuthorizerScope::Nothing);
        let pragma = format!("PRAGMA table_xinfo({})", quoted(table));
        let mut statement = self.connection.prepare(&pragma).map_err(fault)?;
        let read = |row: &rusqlite::Row<'_>| {
            let name = row.get(1)?;
            let declared = row.get(2)?;
            Ok(SqliteColumnRow { name, declared, is_not_null: row.get(3)?, key: row.get(5)? })
        };
        let rows = statement.query_map([], read).map_err(fault)?;
        rows.collect::<Result<_, _>>().map_err(fault)
    }

    /// Whether the primary key of a table has an index.
    fn has_key_index(&self, table: &str) -> Result<bool, SessionFault> {
        self.allowed.enter(AuthorizerScope::Nothing);
        let pragma = format!("PRAGMA index_list({})", quoted(table));
        let mut statement = self.connection.prepare(&pragma).map_err(fault)?;
        let mut origins = statement.query_map([], |row| row.get::<_, String>(3)).map_err(fault)?;
        Ok(origins.any(|origin| origin.is_ok_and(|origin| origin == "pk")))
    }

    /// A table, or why it cannot be served.
    fn table(
        &self,
        source: &DbSource,
        declared: &DeclaredTable,
        table: &SqliteTableRow,
    ) -> Result<Result<DbTable, String>, SessionFault> {
        let name = table.name.as_str();
        let is_without_rowid = table.is_without_rowid;
        let columns = self.columns(name)?;
        let has_index = self.has_key_index(name)?;
        let mut keys: Vec<&SqliteColumnRow> = columns.iter().filter(|column| column.key > 0).collect();
        keys.sort_by_key(|column| column.key);
        if let Some(column) = keys.iter().find(|column| source.denies(name, &column.name)) {
            return Ok(Err(format!(
                "has the denied column {:?} in its key, which would stand in URIs; serve it with a view",
                column.name
            )));
        }
        let rowid = ROWIDS.into_iter().find(|(alias, _)| {
            !is_without_rowid && !columns.iter().any(|column| column.name.eq_ignore_ascii_case(alias))
        });
        // A column that is the rowid itself has whole numbers, and no NULL. Any other key has an index, also one that is declared
        // as INTEGER PRIMARY KEY DESC.
        let has_rowid = keys.len() == 1 && !is_without_rowid && !has_index;
        let is_rowid =
            |column: &SqliteColumnRow| has_rowid && column.declared.eq_ignore_ascii_case("integer");
        let is_nullable =
            |column: &SqliteColumnRow| !column.is_not_null && !is_without_rowid && !is_rowid(column);
        let key_column = |name: &str, expression: String, affinity, is_nullable| KeyColumn {
            name: name.into(),
            expression,
            affinity,
            is_nullable,
            cast: None,
        };
        let key = match (keys.as_slice(), rowid) {
            ([], Some((alias, sql))) => vec![key_column(alias, sql.into(), Affinity::Integer, false)],
            ([], None) => return Ok(Err("has no key; give it a primary key".into())),
            (keys, _) => keys
                .iter()
                .map(|column| {
                    let affinity =
                        if is_rowid(column) { Affinity::Integer } else { affinity(&column.declared) };
                    key_column(&column.name, of_row(&column.name), affinity, is_nullable(column))
                })
                .collect(),
        };
        let shown = columns.iter().filter(|column| !source.denies(name, &column.name)).map(|column| {
            let can_be_null = if column.key > 0 { is_nullable(column) } else { !column.is_not_null };
            Column::new(&column.name, &column.declared, Some(can_be_null), FORM)
        });
        Ok(Ok(DbTable {
            name: declared.name.clone(),
            uri: declared.uri.clone(),
            reference: quoted(name),
            columns: shown.collect(),
            tie: rowid.map(|(_, sql)| sql).filter(|_| keys.iter().any(|column| is_nullable(column))),
            key,
        }))
    }

    /// A statement of the operator's, if it only reads.
    fn view(&self, sql: &str, parameters: usize) -> Result<TableView, SessionFault> {
        self.allowed.enter(AuthorizerScope::Statement);
        let statement = self.connection.prepare(sql).map_err(|error| match fault(error) {
            SessionFault::Down(what) if what == "not authorized" => {
                SessionFault::Down("it does more than to read; a view is one SELECT".into())
            }
            other => other,
        })?;
        let refused = |reason: &str| Err(SessionFault::Down(reason.into()));
        if !statement.readonly() || statement.column_count() == 0 || statement.is_explain() != 0 {
            return refused("it is no SELECT");
        }
        if statement.parameter_count() != parameters {
            return refused("it has a parameter that is not written as :name");
        }
        let names = statement.column_names();
        let columns: Vec<Column> = names.into_iter().map(|name| Column::new(name, "", None, FORM)).collect();
        if let Some(name) = twice(&columns) {
            return refused(&format!(
                "two of its columns have the name {name:?}; write AS NAME behind one of them"
            ));
        }
        Ok(TableView { sql: sql.into(), casts: Vec::new(), columns })
    }
}

/// SQLite's storage rule for a column of this type (its documentation, "Determination Of Column Affinity").
fn affinity(declared: &str) -> Affinity {
    let declared = declared.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    match !has("INT") && (has("CHAR") || has("CLOB") || has("TEXT")) {
        true => Affinity::Text,
        false => Affinity::Number,
    }
}
