//! Queries, and their SQL for SQLite and Postgres.
//!
//! Law: SQL is built from the operator's declarations and from names that the database reports. Values from clients are bound as
//! parameters.

use super::catalog::{Column, DbTable, KeyColumn, TableForm, TableView, quoted};
use super::options::DbEngine;
use super::value::DbValue;

/// One query.
#[derive(Clone, Copy, Debug)]
pub(super) enum DbQuery<'q> {
    /// The rows behind a key, in the order of their keys.
    Page { table: &'q DbTable, after: Option<&'q [DbValue]>, limit: usize },
    /// The rows with this key: one, or several if it has a NULL.
    Row { table: &'q DbTable, key: &'q [DbValue] },
    /// Keys that begin with `first`, and whose next value begins with `prefix`.
    Keys { table: &'q DbTable, first: &'q [DbValue], prefix: &'q str, limit: usize },
    /// The result of a statement of the operator.
    View { view: &'q TableView, values: &'q [String], limit: usize },
}

/// A statement with the values of its parameters.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) sql: String,
    pub(super) values: Vec<DbValue>,
}

impl<'q> DbQuery<'q> {
    /// The most rows that it returns.
    pub(super) fn limit(&self) -> usize {
        match self {
            Self::Page { limit, .. } | Self::Keys { limit, .. } | Self::View { limit, .. } => *limit,
            Self::Row { .. } => 2,
        }
    }

    /// The columns of the values of a row.
    pub(super) fn columns(&self) -> &'q [Column] {
        match self {
            Self::Page { table, .. } | Self::Row { table, .. } => &table.columns,
            Self::Keys { .. } => &[],
            Self::View { view, .. } => &view.columns,
        }
    }

    /// The number of key values behind those of the columns.
    pub(super) fn keys(&self) -> usize {
        match self {
            Self::Page { table, .. } | Self::Row { table, .. } | Self::Keys { table, .. } => {
                table.key.len() + usize::from(table.tie.is_some())
            }
            Self::View { .. } => 0,
        }
    }

    pub(super) fn bind(&self, engine: DbEngine) -> Bound {
        let mut bound = Bound::default();
        let (table, condition) = match self {
            Self::View { view, values, .. } => {
                let values = values.iter().cloned().map(DbValue::Text).collect();
                return Bound { sql: view.sql.clone(), values };
            }
            Self::Page { table, after, .. } => (table, after.map(|after| bound.after(table, after, engine))),
            Self::Row { table, key } => (table, Some(bound.equal(&table.key, key, engine))),
            Self::Keys { table, first, prefix, .. } => {
                let mut condition = bound.equal(&table.key, first, engine);
                if let Some(column) = table.key.get(first.len()) {
                    let text = bound.parameter(DbValue::Text((*prefix).to_owned()), engine);
                    let is_first = if condition.is_empty() { "" } else { " AND " };
                    let value = &column.expression;
                    condition +=
                        &format!("{is_first}substr(CAST({value} AS text), 1, length({text})) = {text}");
                }
                (table, Some(condition))
            }
        };
        let columns = self.columns().iter().map(|column| match column.form {
            TableForm::Plain => of_row(&column.name),
            TableForm::Text | TableForm::Json => format!("{}::text", of_row(&column.name)),
        });
        let keys: Vec<&str> =
            table.key.iter().map(|column| column.expression.as_str()).chain(table.tie).collect();
        let texts = keys.iter().map(|key| match engine {
            DbEngine::Sqlite => (*key).to_owned(),
            DbEngine::Postgres => format!("{key}::text"),
        });
        let select = columns.chain(texts).collect::<Vec<_>>().join(", ");
        let condition = condition.filter(|condition| !condition.is_empty());
        let condition = condition.map(|condition| format!(" WHERE {condition}")).unwrap_or_default();
        bound.sql = format!(
            "SELECT {select} FROM {} AS r{condition} ORDER BY {} LIMIT {}",
            table.reference,
            keys.join(", "),
            self.limit()
        );
        bound
    }
}

impl Bound {
    /// The text of a parameter with this value.
    fn parameter(&mut self, value: DbValue, engine: DbEngine) -> String {
        self.values.push(value);
        let number = self.values.len();
        match engine {
            DbEngine::Sqlite => format!("?{number}"),
            DbEngine::Postgres => format!("${number}::text"),
        }
    }

    fn of_column(&mut self, column: &KeyColumn, value: &DbValue, engine: DbEngine) -> String {
        let text = self.parameter(value.clone(), engine);
        match &column.cast {
            Some(cast) => format!("{text}::{cast}"),
            None => text,
        }
    }

    /// That the columns have these values.
    fn equal(&mut self, columns: &[KeyColumn], values: &[DbValue], engine: DbEngine) -> String {
        let all = columns.iter().zip(values).map(|(column, value)| {
            let operator = if *value == DbValue::Null { "IS" } else { "=" };
            format!("{} {operator} {}", column.expression, self.of_column(column, value, engine))
        });
        all.collect::<Vec<_>>().join(" AND ")
    }

    /// That a row is behind the one with these values. NULL is before all other values.
    fn after(&mut self, table: &DbTable, after: &[DbValue], engine: DbEngine) -> String {
        let columns = after.get(..table.key.len()).unwrap_or(after);
        if !columns.contains(&DbValue::Null) {
            let names: Vec<&str> = table.key.iter().map(|column| column.expression.as_str()).collect();
            let pairs = table.key.iter().zip(columns);
            let values: Vec<String> =
                pairs.map(|(column, value)| self.of_column(column, value, engine)).collect();
            return format!("({}) > ({})", names.join(", "), values.join(", "));
        }
        let names = table.key.iter().map(|column| column.expression.as_str()).chain(table.tie);
        let pairs: Vec<(&str, &DbValue)> = names.zip(after).collect();
        let mut condition = String::new();
        for (name, value) in pairs.into_iter().rev() {
            let parameter = self.parameter(value.clone(), engine);
            let greater = match value {
                DbValue::Null => format!("{name} IS NOT NULL"),
                _ => format!("{name} > {parameter}"),
            };
            condition = match condition.as_str() {
                "" => greater,
                rest => format!("{greater} OR ({name} IS {parameter} AND ({rest}))"),
            };
        }
        condition
    }
}

/// A column of the queried table, as SQL. Without the alias, ORDER BY would take a name for that of a selected expression.
pub(super) fn of_row(name: &str) -> String {
    format!("r.{}", quoted(name))
}
