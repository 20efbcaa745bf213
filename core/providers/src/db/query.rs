//! Queries, and their SQL for SQLite and Postgres.
//!
//! Law: SQL is built from the operator's declarations and from names that the database reports. Values from clients are bound as
//! parameters.

use super::catalog::{Column, Form, KeyColumn, Table, View, quoted};
use super::options::Engine;
use super::value::Value;

/// One query.
#[derive(Clone, Copy, Debug)]
pub(super) enum Query<'q> {
    /// The rows behind a key, in the order of their keys.
    Page { table: &'q Table, after: Option<&'q [Value]>, limit: usize },
    /// The rows with this key: one, or several if it has a NULL.
    Row { table: &'q Table, key: &'q [Value] },
    /// Keys that begin with `first`, and whose next value begins with `prefix`.
    Keys { table: &'q Table, first: &'q [Value], prefix: &'q str, limit: usize },
    /// The result of a statement of the operator.
    View { view: &'q View, values: &'q [String], limit: usize },
}

/// A statement with the values of its parameters.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl<'q> Query<'q> {
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

    pub(super) fn bind(&self, engine: Engine) -> Bound {
        let mut bound = Bound::default();
        let (table, condition) = match self {
            Self::View { view, values, .. } => {
                let values = values.iter().cloned().map(Value::Text).collect();
                return Bound { sql: view.sql.clone(), values };
            }
            Self::Page { table, after, .. } => (table, after.map(|after| bound.after(table, after, engine))),
            Self::Row { table, key } => (table, Some(bound.equal(&table.key, key, engine))),
            Self::Keys { table, first, prefix, .. } => {
                let mut condition = bound.equal(&table.key, first, engine);
                if let Some(column) = table.key.get(first.len()) {
                    let text = bound.parameter(Value::Text((*prefix).to_owned()), engine);
                    let is_first = if condition.is_empty() { "" } else { " AND " };
                    let value = &column.expression;
                    condition +=
                        &format!("{is_first}substr(CAST({value} AS text), 1, length({text})) = {text}");
                }
                (table, Some(condition))
            }
        };
        let columns = self.columns().iter().map(|column| match column.form {
            Form::Plain => of_row(&column.name),
            Form::Text | Form::Json => format!("{}::text", of_row(&column.name)),
        });
        let keys: Vec<&str> =
            table.key.iter().map(|column| column.expression.as_str()).chain(table.tie).collect();
        let texts = keys.iter().map(|key| match engine {
            Engine::Sqlite => (*key).to_owned(),
            Engine::Postgres => format!("{key}::text"),
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
    fn parameter(&mut self, value: Value, engine: Engine) -> String {
        self.values.push(value);
        let number = self.values.len();
        match engine {
            Engine::Sqlite => format!("?{number}"),
            Engine::Postgres => format!("${number}::text"),
        }
    }

    fn of_column(&mut self, column: &KeyColumn, value: &Value, engine: Engine) -> String {
        let text = self.parameter(value.clone(), engine);
        match &column.cast {
            Some(cast) => format!("{text}::{cast}"),
            None => text,
        }
    }

    /// That the columns have these values.
    fn equal(&mut self, columns: &[KeyColumn], values: &[Value], engine: Engine) -> String {
        let all = columns.iter().zip(values).map(|(column, value)| {
            let operator = if *value == Value::Null { "IS" } else { "=" };
            format!("{} {operator} {}", column.expression, self.of_column(column, value, engine))
        });
        all.collect::<Vec<_>>().join(" AND ")
    }

    /// That a row is behind the one with these values. NULL is before all other values.
    fn after(&mut self, table: &Table, after: &[Value], engine: Engine) -> String {
        let columns = after.get(..table.key.len()).unwrap_or(after);
        if !columns.contains(&Value::Null) {
            let names: Vec<&str> = table.key.iter().map(|column| column.expression.as_str()).collect();
            let pairs = table.key.iter().zip(columns);
            let values: Vec<String> =
                pairs.map(|(column, value)| self.of_column(column, value, engine)).collect();
            return format!("({}) > ({})", names.join(", "), values.join(", "));
        }
        let names = table.key.iter().map(|column| column.expression.as_str()).chain(table.tie);
        let pairs: Vec<(&str, &Value)> = names.zip(after).collect();
        let mut condition = String::new();
        for (name, value) in pairs.into_iter().rev() {
            let parameter = self.parameter(value.clone(), engine);
            let greater = match value {
                Value::Null => format!("{name} IS NOT NULL"),
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
