//! Reads the catalog of a Postgres database.

use super::{PostgresConnection, SAID};
use crate::db::catalog::{
    Column, DbCatalog, DbTable, KeyColumn, TableForm, TableView, absent, quoted, twice,
};
use crate::db::key::Affinity;
use crate::db::options::MOST_ROWS;
use crate::db::query::of_row;
use crate::db::source::{DbSource, DeclaredTable, DeclaredView};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row, Statement};

/// The tables in which this role may read at least one column.
const TABLES: &str = "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, pg_table_is_visible(c.oid) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
     AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT') ORDER BY 2, 3 LIMIT 10000";
/// The columns of a table, each with its place in the primary key.
const COLUMNS: &str = "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, t.typname::text, \
     format_type(a.atttypid, -1), has_column_privilege(a.attrelid, a.attnum, 'SELECT'), \
     (SELECT k.place::int4 FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) \
      WHERE i.indrelid = a.attrelid AND i.indisprimary AND k.place <= i.indnkeyatts AND k.attnum = a.attnum) \
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
     WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
/// The name of a column, that of its table, and that of the schema.
const ORIGIN: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text FROM pg_attribute a \
     JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE a.attrelid = $1 AND a.attnum = $2";
/// All columns, each with its table and its schema.
const ALL_COLUMNS: &str = "SELECT n.nspname::text || '.' || c.relname::text, a.attname::text FROM pg_attribute a \
     JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
     AND a.attnum > 0 AND NOT a.attisdropped";

/// The most tables, columns of one table, and columns of all tables that are looked at.
const MOST_TABLES: usize = 10_000;
const MOST_OF_TABLE: usize = 2_000;
const MOST_COLUMNS: usize = 200_000;

/// A table that could be served.
struct PostgresTableRow {
    oid: u32,
    schema: String,
    name: String,
    kind: String,
    is_visible: bool,
}

/// A column as Postgres describes it.
struct PostgresColumnRow {
    name: String,
    declared: String,
    is_not_null: bool,
    kind: String,
    cast: String,
    is_readable: bool,
    /// Its place in the primary key, from 1.
    place: Option<i32>,
}

impl PostgresTableRow {
    /// As it is declared.
    fn label(&self) -> String {
        if self.is_visible { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }

    fn is(&self, declared: &str) -> bool {
        // Both names may have dots.
        let in_schema = || declared.strip_prefix(&self.schema)?.strip_prefix('.');
        (self.is_visible && self.name == declared) || in_schema() == Some(&self.name)
    }
}

/// Reads the catalog. A table or statement that cannot be served is recorded as a fault.
pub(super) async fn read(source: &DbSource, link: &mut PostgresConnection) -> Result<DbCatalog, Error> {
    let mut catalog = DbCatalog::default();
    let mut all = Vec::new();
    let mut add = |row: &Row| {
        all.push(PostgresTableRow {
            oid: row.try_get(0)?,
            schema: row.try_get(1)?,
            name: row.try_get(2)?,
            kind: row.try_get(3)?,
            is_visible: row.try_get(4)?,
        });
        Ok(())
    };
    link.rows(TABLES, &[], MOST_TABLES, &mut add).await?;
    catalog.all = all.iter().map(PostgresTableRow::label).collect();
    for declared in &source.tables {
        let named: Vec<&PostgresTableRow> = all.iter().filter(|found| found.is(&declared.name)).collect();
        let first = named.iter().find(|found| found.is_visible && found.name == declared.name);
        let table = match (first, &*named) {
            (Some(found), _) | (None, [found]) => read_table(source, declared, found, link).await?,
            (None, []) => Err(absent(&declared.name, &catalog.all)),
            (None, [one, other, ..]) => Err(format!(
                "is {:?} in the schema {:?} and {:?} in {:?}; serve it with a view: `views: {{NAME: \"SELECT …\"}}`",
                one.name, one.schema, other.name, other.schema
            )),
        };
        match table {
            Ok(table) => catalog.tables.push(table),
            Err(reason) => catalog.faults.push(format!("the table {:?} {reason}", declared.name)),
        }
    }
    for view in &source.views {
        match read_view(source, view, link).await? {
            Ok(found) => catalog.views.push(Some(found)),
            Err(reason) => {
                catalog.views.push(None);
                catalog.faults.push(format!("the view {:?} cannot be served: {reason}", view.name));
            }
        }
    }
    if source.has_denied() {
        let mut known = Vec::new();
        let mut add = |row: &Row| {
            known.push((row.try_get(0)?, row.try_get(1)?));
            Ok(())
        };
        link.rows(ALL_COLUMNS, &[], MOST_COLUMNS, &mut add).await?;
        if known.len() < MOST_COLUMNS {
            source.check_denied(&known, &mut catalog);
        } else {
            catalog
                .notes
                .push("columns_deny is not checked for misspelled names: there are too many columns".into());
        }
    }
    Ok(catalog)
}

async fn columns(link: &PostgresConnection, table: u32) -> Result<Vec<PostgresColumnRow>, Error> {
    let mut columns = Vec::new();
    let mut add = |row: &Row| {
        columns.push(PostgresColumnRow {
            name: row.try_get(0)?,
            declared: row.try_get(1)?,
            is_not_null: row.try_get(2)?,
            kind: row.try_get(3)?,
            cast: row.try_get(4)?,
            is_readable: row.try_get(5)?,
            place: row.try_get(6)?,
        });
        Ok(())
    };
    link.rows(COLUMNS, &[&table], MOST_OF_TABLE, &mut add).await?;
    Ok(columns)
}

/// A table, or why it cannot be served.
async fn read_table(
    source: &DbSource,
    declared: &DeclaredTable,
    found: &PostgresTableRow,
    link: &PostgresConnection,
) -> Result<Result<DbTable, String>, Error> {
    let columns = columns(link, found.oid).await?;
    let mut keys: Vec<&PostgresColumnRow> = columns.iter().filter(|column| column.place.is_some()).collect();
    keys.sort_by_key(|column| column.place);
    if keys.is_empty() {
        let what =
            if matches!(found.kind.as_str(), "r" | "p") { "has no primary key" } else { "is no table" };
        return Ok(Err(format!(
            "{what}; add one with ALTER TABLE {} ADD PRIMARY KEY (…), or serve it with a view: `views: {{NAME: \"SELECT …\"}}`",
            found.label()
        )));
    }
    let denies = |column: &PostgresColumnRow| source.denies_in(&found.schema, &found.name, &column.name);
    if let Some(column) = keys.iter().find(|column| denies(column) || !column.is_readable) {
        return Ok(Err(format!(
            "has the denied column {:?} in its key, which would stand in URIs; serve it with a view",
            column.name
        )));
    }
    let key = keys.iter().map(|column| KeyColumn {
        name: column.name.clone(),
        expression: of_row(&column.name),
        affinity: Affinity::Text,
        is_nullable: false,
        cast: Some(column.cast.clone()),
    });
    let shown = columns.iter().filter(|column| column.is_readable && !denies(column)).map(|column| {
        Column::new(&column.name, &column.declared, Some(!column.is_not_null), form_of(&column.kind))
    });
    Ok(Ok(DbTable {
        name: declared.name.clone(),
        uri: declared.uri.clone(),
        reference: format!(
            "{}{}.{}",
            // The key of a table is none of the tables that inherit from it. Partitions have it.
            if found.kind == "r" { "ONLY " } else { "" },
            quoted(&found.schema),
            quoted(&found.name)
        ),
        key: key.collect(),
        columns: shown.collect(),
        tie: None,
    }))
}

/// Checks a statement of the operator. Inside FROM, Postgres accepts only a SELECT without data-modifying parts.
async fn read_view(
    source: &DbSource,
    view: &DeclaredView,
    link: &PostgresConnection,
) -> Result<Result<TableView, String>, Error> {
    if let Some(column) = source.denied_in(&view.statement) {
        return Ok(Err(format!("it names the denied column {column:?}")));
    }
    let plain = view.statement.render(|index| format!("${}", index + 1));
    let statement = match link.prepare(&format!("SELECT * FROM (\n{plain}\n) AS v")).await {
        Ok(statement) => statement,
        Err(error) => match error.as_db_error() {
            Some(error) => return Ok(Err(unprepared(error, &view.statement.names))),
            None => return Err(error),
        },
    };
    if statement.params().len() != view.statement.names.len() {
        return Ok(Err("it has a parameter that is not written as :name".into()));
    }
    let columns = match view_columns(source, &statement, link).await? {
        Ok(columns) => columns,
        Err(reason) => return Ok(Err(reason)),
    };
    let types: Vec<String> = statement.params().iter().map(type_name).collect();
    let cast = |number: usize, index: usize| {
        let kind = types.get(index).map_or("text", String::as_str);
        format!("CAST(${number}::text AS {kind})")
    };
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let select: Vec<String> = columns
        .iter()
        .zip(&names)
        .map(|(column, name)| match column.form {
            TableForm::Plain => format!("v.{name}"),
            TableForm::Text | TableForm::Json => format!("v.{name}::text"),
        })
        .collect();
    let own = view.statement.render(|index| cast(index + 1, index));
    let sql = format!(
        "SELECT {} FROM (\n{own}\n) AS v({}) LIMIT {}",
        select.join(", "),
        names.join(", "),
        MOST_ROWS + 1
    );
    let casts = (0..types.len()).map(|index| format!("SELECT {}", cast(1, index))).collect();
    Ok(Ok(TableView { sql, casts, columns }))
}

/// The columns of a statement, or why they cannot be served.
async fn view_columns(
    source: &DbSource,
    statement: &Statement,
    link: &PostgresConnection,
) -> Result<Result<Vec<Column>, String>, Error> {
    let mut columns = Vec::new();
    for column in statement.columns() {
        let mut is_denied = false;
        if let (Some(table), Some(column)) = (column.table_oid(), column.column_id()) {
            let mut look = |row: &Row| {
                let (schema, table, name): (&str, &str, &str) =
                    (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                is_denied |= source.denies_in(schema, table, name);
                Ok(())
            };
            link.rows(ORIGIN, &[&table, &column], 1, &mut look).await?;
        }
        if is_denied || source.denies("", column.name()) {
            return Ok(Err(format!("its column {:?} is denied", column.name())));
        }
        let kind = column.type_();
        columns.push(Column::new(column.name(), kind.name(), None, form_of(kind.name())));
    }
    if columns.is_empty() {
        return Ok(Err("it has no column".into()));
    }
    if let Some(name) = twice(&columns) {
        return Ok(Err(format!(
            "two of its columns have the name {name:?}; write AS NAME behind one of them"
        )));
    }
    Ok(Ok(columns))
}

/// The reason why a statement cannot be prepared, with the names of its parameters instead of their numbers.
fn unprepared(error: &DbError, names: &[String]) -> String {
    let mut text: String = error.message().chars().filter(|letter| !letter.is_control()).take(SAID).collect();
    // From the last one: `$1` begins `$10`.
    for (at, name) in names.iter().enumerate().rev() {
        text = text.replace(&format!("parameter ${}", at + 1), &format!("parameter :{name}"));
    }
    let first = names.first().map_or("x", String::as_str);
    match *error.code() {
        SqlState::SYNTAX_ERROR => format!("{text}; a view is one SELECT"),
        SqlState::INDETERMINATE_DATATYPE | SqlState::AMBIGUOUS_PARAMETER => {
            format!("{text}; write its type behind it in each place, such as :{first}::text")
        }
        _ => text,
    }
}

fn form_of(kind: &str) -> TableForm {
    match kind {
        "bool" | "int2" | "int4" | "int8" | "float4" | "float8" | "bytea" => TableForm::Plain,
        "json" | "jsonb" => TableForm::Json,
        _ => TableForm::Text,
    }
}

fn type_name(kind: &Type) -> String {
    format!("{}.{}", quoted(kind.schema()), quoted(kind.name()))
}
