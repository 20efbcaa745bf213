//! Triggers that notify of changes in Postgres tables, as SQL for the operator to run. Nothing here installs them.

use super::catalog::quoted;
use super::options::{DbEngine, DbOptions};
use super::source::{DbSource, Location};
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};
use std::fmt::Write;
use std::path::Path;

const FUNCTION: &str =
    "CREATE OR REPLACE FUNCTION mcp_resources_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('mcp_resources', TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME);
  RETURN NULL;
END
$$;
";

/// Returns the SQL of triggers that notify of changes in the declared Postgres tables. Tables that only views read need
/// the same trigger by hand. No connection is made.
///
/// # Errors
/// The options are wrong, or they have no Postgres table.
pub fn triggers(
    declarations: impl IntoIterator<Item = OptionValue>,
    folder: &Path,
) -> Result<String, OptionError> {
    let mut sql = String::new();
    for options in declarations {
        for (name, database) in DbOptions::from_option(options)?.at(folder).databases {
            let source = DbSource::new(name, database)?;
            if source.engine() == DbEngine::Postgres {
                write_source(&source, &mut sql);
            }
        }
    }
    match sql.is_empty() {
        true => Err(OptionError::sentence(
            "db: no table of a Postgres database is declared; only these need triggers, SQLite needs none",
        )),
        false => Ok(sql),
    }
}

fn write_source(source: &DbSource, sql: &mut String) {
    if source.tables.is_empty() {
        return;
    }
    let dbname = match &source.location {
        Location::Postgres(location) => location.config.get_dbname().unwrap_or(&source.name).to_owned(),
        Location::Sqlite(_) => source.name.clone(),
    };
    // Writing to memory does not fail.
    let _ = writeln!(
        sql,
        "-- For {}: run it once in the database {dbname}, as the owner of the tables.",
        source.uri
    );
    sql.push_str(FUNCTION);
    for table in &source.tables {
        write_table(&table.name, sql);
    }
}

/// The triggers of a table and of its partitions: a write that names a partition runs no trigger of the table.
fn write_table(name: &str, sql: &mut String) {
    // With several dots, the database says which one ends the schema.
    let reference = match name.split('.').collect::<Vec<_>>().as_slice() {
        [schema, name] => Some(format!("{}.{}", quoted(schema), quoted(name))),
        [name] => Some(quoted(name)),
        _ => None,
    };
    let declared = literal(name);
    let schema = "(SELECT nspname FROM pg_namespace n WHERE n.oid = relnamespace)";
    let (root, leaves) = match &reference {
        Some(reference) => {
            let _ = write!(
                sql,
                "DROP TRIGGER IF EXISTS mcp_resources_changed ON {reference};\n\
                 CREATE TRIGGER mcp_resources_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {reference}\n  \
                 FOR EACH STATEMENT EXECUTE FUNCTION mcp_resources_changed();\n"
            );
            (format!("oid = {}::regclass", literal(reference)), "part.oid <> tree.root")
        }
        None => (
            format!(
                "relname = {declared} AND pg_table_is_visible(oid) OR {schema} || '.' || relname = {declared}"
            ),
            "true",
        ),
    };
    let _ = write!(
        sql,
        "DO $$ DECLARE part regclass; BEGIN\n  \
           FOR part IN WITH RECURSIVE tree(root, oid) AS (\n      \
               SELECT oid, oid FROM pg_class WHERE {root}\n      \
               UNION SELECT tree.root, inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid)\n    \
             SELECT part.oid FROM tree JOIN pg_class part ON part.oid = tree.oid\n    \
             WHERE {leaves} AND part.relkind IN ('r', 'p') AND (part.relispartition OR part.oid = tree.root)\n  \
           LOOP\n    \
             EXECUTE format('DROP TRIGGER IF EXISTS mcp_resources_changed ON %s', part);\n    \
             EXECUTE format('CREATE TRIGGER mcp_resources_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '\n      \
               'FOR EACH STATEMENT EXECUTE FUNCTION mcp_resources_changed()', part);\n  \
           END LOOP; END $$;\n"
    );
}

/// A text as SQL, also within `$$`.
fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    // Two dollars would end the block; a text with escapes has none.
    match quoted.contains('$') || quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\").replace('$', "\\x24")),
        false => format!("'{quoted}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::options::Database;

    // S-20: the triggers are printed for Postgres alone, with quoted names and without the password.
    #[test]
    fn triggers_are_printed() {
        let member = |name: &str, value| (name.to_owned(), value);
        let options = |url: &str| {
            let tables = OptionValue::List(vec!["sales.orders".into(), "a\"b".into()]);
            let shop = OptionValue::Members(vec![member("url", url.into()), member("tables", tables)]);
            OptionValue::Members(vec![member("databases", OptionValue::Members(vec![member("shop", shop)]))])
        };
        let sql = triggers([options("postgres://me:hunter2-canary@h/shopdb")], Path::new("")).unwrap();
        for part in [
            "in the database shopdb",
            "ON \"sales\".\"orders\"",
            "ON \"a\"\"b\"",
            "pg_notify('mcp_resources'",
        ] {
            assert!(sql.contains(part), "{sql}");
        }
        assert!(!sql.contains("hunter2"), "{sql}");
        assert!(triggers([options("sqlite:x")], Path::new("")).is_err());
        assert!(!format!("{:?}", Database::new("hunter2").password("hunter2")).contains("hunter2"));
    }
}
