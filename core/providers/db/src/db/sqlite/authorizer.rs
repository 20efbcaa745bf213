//! Decides which actions a statement may perform. SQLite asks about each table, column and function while it compiles
//! the statement.
//!
//! Law: only the actions listed here are allowed.

use crate::db::source::DbSource;
use mcp_resources_runtime::sync::Mutex;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::Arc;

/// The functions that statements may call: they read nothing but their arguments, and change nothing.
pub(super) const FUNCTIONS: &[&str] = &[
    "->",
    "->>",
    "abs",
    "avg",
    "bm25",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "dense_rank",
    "first_value",
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
    "json_array_insert",
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
    "jsonb",
    "jsonb_array",
    "jsonb_array_insert",
    "jsonb_extract",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_patch",
    "jsonb_remove",
    "jsonb_replace",
    "jsonb_set",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "lower",
    "ltrim",
    "match",
    "matchinfo",
    "max",
    "min",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "offsets",
    "percent_rank",
    "printf",
    "quote",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "snippet",
    "soundex",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "time",
    "timediff",
    "total",
    "trim",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unistr_quote",
    "unixepoch",
    "unlikely",
    "upper",
];
/// Pragmas that report on the database, and those that take the name of a table.
const PRAGMAS: [&str; 5] = ["data_version", "index_list", "schema_version", "table_list", "table_xinfo"];
const OF_TABLES: [&str; 2] = ["index_list", "table_xinfo"];
/// Tables that are none of the file: they report on it, and read it in ways that are refused when they run.
const REPORTS: [&str; 7] =
    ["bytecode", "completion", "dbstat", "fts3tokenize", "sqlite_dbpage", "sqlite_stmt", "tables_used"];

/// The purpose of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuthorizerScope {
    /// The pragmas alone.
    Nothing,
    /// One table that is served, without its denied columns.
    Table(String),
    /// A statement of the operator's: all tables, without their denied columns.
    Statement,
}

/// The tables and columns that statements may use.
pub(super) struct AllowedTables {
    source: Arc<DbSource>,
    scope: Mutex<AuthorizerScope>,
}

impl AllowedTables {
    pub(super) fn new(source: Arc<DbSource>) -> Self {
        Self { source, scope: Mutex::new(AuthorizerScope::Nothing) }
    }

    /// Sets the scope of the statements compiled or run from now on: SQLite may recompile a cached statement when it runs.
    pub(super) fn enter(&self, scope: AuthorizerScope) {
        *self.scope.lock() = scope;
    }

    pub(super) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        let scope = self.scope.lock();
        let is_allowed = match context.action {
            AuthAction::Pragma { pragma_name, pragma_value } => {
                let takes_value = OF_TABLES.contains(&pragma_name);
                // FTS5 asks for the version of the data while a statement runs.
                (*scope == AuthorizerScope::Nothing && PRAGMAS.contains(&pragma_name)
                    || pragma_name == "data_version")
                    && (pragma_value.is_none() || takes_value)
            }
            AuthAction::Select | AuthAction::Recursive => *scope != AuthorizerScope::Nothing,
            AuthAction::Function { function_name } => {
                *scope != AuthorizerScope::Nothing
                    && FUNCTIONS.contains(&function_name.to_ascii_lowercase().as_str())
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
                    AuthorizerScope::Nothing => false,
                    AuthorizerScope::Table(name) => table_name == name && context.accessor.is_none(),
                    AuthorizerScope::Statement => {
                        let name = table_name.to_ascii_lowercase();
                        let is_report = name.starts_with("pragma_") || REPORTS.contains(&&*name);
                        !name.starts_with("sqlite_") && !is_report
                    }
                }
            }
            _ => false,
        };
        if is_allowed { Authorization::Allow } else { Authorization::Deny }
    }
}
