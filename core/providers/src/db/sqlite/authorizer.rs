//! Decides what a statement may do. SQLite asks about each table, column and function while it compiles the statement.
//!
//! Law: only the actions listed here are allowed.

use crate::db::source::Source;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::{Arc, Mutex, PoisonError};

/// The functions that statements may call: they read nothing but their arguments, and change nothing.
const FUNCTIONS: &[&str] = &[
    "->",
    "->>",
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "avg",
    "bm25",
    "ceil",
    "ceiling",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "highlight",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "match",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "percentile",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "snippet",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "tan",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unixepoch",
    "unlikely",
    "upper",
];
/// Pragmas that report on the database. Only the last takes a value.
const PRAGMAS: [&str; 4] = ["data_version", "schema_version", "table_list", "table_xinfo"];

/// What a statement is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The pragmas alone.
    Nothing,
    /// One table that is served, without its denied columns.
    Table(String),
    /// A statement of the operator's: all tables, without their denied columns.
    Statement,
}

/// See the module.
pub(super) struct Allowed {
    source: Arc<Source>,
    scope: Mutex<Scope>,
}

impl Allowed {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self { source, scope: Mutex::new(Scope::Nothing) }
    }

    /// Sets the scope of the statements compiled or run from now on: SQLite may recompile a cached statement when it runs.
    pub(super) fn enter(&self, scope: Scope) {
        *self.scope.lock().unwrap_or_else(PoisonError::into_inner) = scope;
    }

    pub(super) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        let scope = self.scope.lock().unwrap_or_else(PoisonError::into_inner);
        let is_allowed = match context.action {
            AuthAction::Pragma { pragma_name, pragma_value } => {
                let takes_value = pragma_name == "table_xinfo";
                // FTS5 asks for the version of the data while a statement runs.
                (*scope == Scope::Nothing && PRAGMAS.contains(&pragma_name) || pragma_name == "data_version")
                    && (pragma_value.is_none() || takes_value)
            }
            AuthAction::Select | AuthAction::Recursive => *scope != Scope::Nothing,
            AuthAction::Function { function_name } => {
                *scope != Scope::Nothing && FUNCTIONS.contains(&function_name.to_ascii_lowercase().as_str())
            }
            AuthAction::Read { table_name, column_name } => {
                if self.source.denies(table_name, column_name) {
                    // A view of the database names all its columns, also those that the statement does not want.
                    return match context.accessor {
                        Some(_) => Authorization::Ignore,
                        None => Authorization::Deny,
                    };
                }
                match &*scope {
                    Scope::Nothing => false,
                    Scope::Table(name) => table_name == name && context.accessor.is_none(),
                    Scope::Statement => !table_name.to_ascii_lowercase().starts_with("sqlite_"),
                }
            }
            _ => false,
        };
        if is_allowed { Authorization::Allow } else { Authorization::Deny }
    }
}
