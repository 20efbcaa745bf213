//! Entries of a TOML file: a table each, below the table of all servers.

use jsonc_parser::cst::CstInputValue;
use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

pub(super) fn with_entry(text: &str, key: &str, name: &str, entry: &CstInputValue) -> Result<String, String> {
    let mut whole = parse(text)?;
    // Comments at the end of the file stand before what is added there.
    let end = whole.trailing().as_str().unwrap_or_default().to_owned();
    let is_empty = whole.is_empty();
    let servers = whole.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        // Its own header would be an empty line of noise.
        table.set_implicit(true);
        Item::Table(table)
    });
    let mut is_moved = false;
    let is_inline = servers.is_inline_table();
    let servers = servers.as_table_like_mut().ok_or_else(|| format!("{key:?} is not a table in it"))?;
    let new = match inline(entry) {
        toml_edit::Value::InlineTable(table) if !is_inline => {
            let mut table = table.into_table();
            // Where it stood, with the empty line that is before it.
            match servers.get(name).and_then(Item::as_table) {
                Some(old) => {
                    table.set_position(old.position());
                    *table.decor_mut() = old.decor().clone();
                }
                None if !end.trim().is_empty() => {
                    let line = if end.ends_with('\n') { "" } else { "\n" };
                    table.decor_mut().set_prefix(format!("{end}{line}{}", if is_empty { "" } else { "\n" }));
                    is_moved = true;
                }
                None => {}
            }
            Item::Table(table)
        }
        other => Item::Value(other),
    };
    servers.insert(name, new);
    if is_moved {
        whole.set_trailing("");
    }
    Ok(whole.to_string())
}

pub(super) fn without_entry(text: &str, key: &str, name: &str) -> Result<String, String> {
    let mut whole = parse(text)?;
    let servers: Option<&mut dyn TableLike> = whole.get_mut(key).and_then(Item::as_table_like_mut);
    if let Some(servers) = servers {
        servers.remove(name);
    }
    Ok(whole.to_string())
}

pub(super) fn document(text: &str) -> Result<Value, String> {
    parse(text).map(|whole| object(whole.as_table()))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        // Its display repeats the line, which may have a secret.
        format!("it is not TOML: {}", error.message().lines().next().unwrap_or_default())
    })
}

fn inline(value: &CstInputValue) -> toml_edit::Value {
    match value {
        CstInputValue::Null => "".into(),
        CstInputValue::Bool(is) => (*is).into(),
        CstInputValue::Number(text) => text.parse::<i64>().unwrap_or_default().into(),
        CstInputValue::String(text) => text.into(),
        CstInputValue::Array(all) => all.iter().map(inline).collect::<Array>().into(),
        CstInputValue::Object(all) => {
            all.iter().map(|(name, value)| (name, inline(value))).collect::<InlineTable>().into()
        }
    }
}

fn object(table: &dyn TableLike) -> Value {
    table.iter().map(|(name, item)| (name.to_owned(), item_value(item))).collect::<Map<_, _>>().into()
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain_value(value),
        Item::Table(table) => object(table),
        Item::ArrayOfTables(all) => all.iter().map(|table| object(table)).collect(),
    }
}

fn plain_value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(is) => (*is.value()).into(),
        Toml::Datetime(time) => time.value().to_string().into(),
        Toml::Array(all) => all.iter().map(plain_value).collect(),
        Toml::InlineTable(table) => object(table),
    }
}
