//! Puts an entry into the text of a configuration file, or takes it out.
//!
//! Law: everything else of the file stays as it was, comments too. The new text is parsed, and compared with the old one: if
//! more than the entry differs, the file is not edited.

use super::{toml_file, yaml_file};
use crate::files::{FileFormat, KnownClient};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::{Map, Value};

/// The text of a file with the entry `name` in it, in place of one of that name.
///
/// # Errors
/// The reason why the text cannot be edited.
pub(super) fn with_entry(
    client: KnownClient,
    text: &str,
    name: &str,
    entry: CstInputValue,
) -> Result<String, String> {
    let key = client.key();
    let mut expected = document(client.format(), text)?;
    members(&mut expected, key)?.insert(name.into(), json(&entry));
    let mut after = match client.format() {
        FileFormat::Json => json_with(text, key, name, entry)?,
        FileFormat::Toml => toml_file::with_entry(text, key, name, &entry)?,
        FileFormat::Yaml => yaml_file::with_entry(text, key, name, &entry),
    };
    if !after.ends_with('\n') {
        after.push('\n');
    }
    verified(client, after, &expected)
}

/// The text of a file without the entry `name`, which it has.
///
/// # Errors
/// The reason why the text cannot be edited.
pub(super) fn without_entry(client: KnownClient, text: &str, name: &str) -> Result<String, String> {
    let key = client.key();
    let mut expected = document(client.format(), text)?;
    members(&mut expected, key)?.remove(name);
    let after = match client.format() {
        FileFormat::Json => json_without(text, key, name)?,
        FileFormat::Toml => toml_file::without_entry(text, key, name)?,
        FileFormat::Yaml => yaml_file::without_entry(text, key, name),
    };
    verified(client, after, &expected)
}

/// The entries of a file.
///
/// # Errors
/// The text has another format.
pub(super) fn entries(client: KnownClient, text: &str) -> Result<Map<String, Value>, String> {
    let mut whole = document(client.format(), text)?;
    members(&mut whole, client.key()).map(std::mem::take)
}

fn verified(client: KnownClient, after: String, expected: &Value) -> Result<String, String> {
    let mut found = document(client.format(), &after)?;
    // So that a key without a value counts as an empty one.
    members(&mut found, client.key())?;
    match found == *expected {
        true => Ok(after),
        false => Err("its form cannot be edited safely".into()),
    }
}

/// The value of a whole file; an empty file is an empty object.
fn document(format: FileFormat, text: &str) -> Result<Value, String> {
    let value = match format {
        FileFormat::Json => jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
            .map_err(|error| format!("it is not JSON: {}", error.kind()))?,
        FileFormat::Toml => toml_file::document(text)?,
        FileFormat::Yaml => mcp_resources_runtime::transport::document_yaml(text)?,
    };
    Ok(if value.is_null() { Value::Object(Map::new()) } else { value })
}

fn members<'v>(whole: &'v mut Value, key: &str) -> Result<&'v mut Map<String, Value>, String> {
    let object = whole.as_object_mut().ok_or("it is not an object")?;
    let servers = object.entry(key).or_insert(Value::Null);
    if servers.is_null() {
        *servers = Value::Object(Map::new());
    }
    servers.as_object_mut().ok_or_else(|| format!("{key:?} is not an object in it"))
}

/// An entry as a plain value.
fn json(value: &CstInputValue) -> Value {
    match value {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(is) => Value::Bool(*is),
        CstInputValue::Number(text) => serde_json::from_str(text).unwrap_or_default(),
        CstInputValue::String(text) => Value::String(text.clone()),
        CstInputValue::Array(all) => all.iter().map(json).collect(),
        CstInputValue::Object(all) => all.iter().map(|(name, value)| (name.clone(), json(value))).collect(),
    }
}

/// The JSON of one value, as this command writes it.
pub(super) fn json_text(value: CstInputValue) -> Result<String, String> {
    let root = json_root("")?;
    root.set_value(value);
    Ok(root.to_string())
}

fn json_root(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| format!("it is not JSON: {}", error.kind()))
}

fn json_with(text: &str, key: &str, name: &str, entry: CstInputValue) -> Result<String, String> {
    let root = json_root(text)?;
    let servers = root.object_value_or_create().and_then(|object| {
        object.ensure_multiline();
        object.object_value_or_create(key)
    });
    let servers = servers.ok_or_else(|| format!("{key:?} is not an object in it"))?;
    servers.ensure_multiline();
    match servers.get(name) {
        Some(member) => member.set_value(entry),
        None => drop(servers.append(name, entry)),
    }
    Ok(root.to_string())
}

fn json_without(text: &str, key: &str, name: &str) -> Result<String, String> {
    let root = json_root(text)?;
    let servers = root.object_value().and_then(|object| object.object_value(key));
    if let Some(member) = servers.and_then(|servers| servers.get(name)) {
        member.remove();
    }
    Ok(root.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> CstInputValue {
        let text = |text: &str| CstInputValue::String(text.into());
        CstInputValue::Object(vec![
            ("command".into(), text("server")),
            ("args".into(), CstInputValue::Array(vec![text("a \"b\""), text("#")])),
            ("env".into(), CstInputValue::Object(vec![("A".into(), text("yes"))])),
            ("enabled".into(), CstInputValue::Bool(true)),
            ("timeout".into(), CstInputValue::Number("300".into())),
        ])
    }

    #[track_caller]
    fn round(client: KnownClient, before: &str, kept: &[&str]) -> String {
        let after = with_entry(client, before, "shop", example()).unwrap();
        assert_eq!(entries(client, &after).unwrap()["shop"], json(&example()), "{after}");
        assert_eq!(with_entry(client, &after, "shop", example()).unwrap(), after);
        let removed = without_entry(client, &after, "shop").unwrap();
        assert!(!entries(client, &removed).unwrap().contains_key("shop"), "{removed}");
        for part in kept {
            assert!(after.contains(part) && removed.contains(part), "{part}\n{after}\n{removed}");
        }
        removed
    }

    #[test]
    fn everything_else_of_a_json_file_is_kept() {
        let before = "{\n  // mine\n  \"inputs\": [1, 2],\n  \"servers\": {\n    \"other\": {\"command\": \"x\"}, /* old */\n    \"shop\": {\"url\": \"http://a\"}\n  }\n}\n";
        let kept = ["// mine", "\"inputs\": [1, 2]", "\"other\": {\"command\": \"x\"}", "/* old */"];
        assert!(!round(KnownClient::Vscode, before, &kept).contains("http://a"));
        round(KnownClient::Zed, "// Zed\n{\"theme\": \"One\",}\n", &["// Zed", "\"theme\": \"One\""]);
        let new = with_entry(KnownClient::ClaudeCode, "", "a", example()).unwrap();
        let value: Value = serde_json::from_str(&new).unwrap();
        assert_eq!(value["mcpServers"]["a"]["command"], "server");
        for wrong in ["[]", "{\"servers\": 1}", "{", "1", "{\"servers\": {}} x"] {
            assert!(with_entry(KnownClient::Vscode, wrong, "a", example()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn everything_else_of_a_toml_file_is_kept() {
        let before = "# mine\nmodel = \"gpt\" # best\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[mcp_servers.shop]\nurl = \"http://a\"\n[mcp_servers.shop.env]\nOLD = \"1\"\n\n[projects.\"/home/me\"]\ntrust_level = \"trusted\"\n";
        let kept = [
            "# mine\nmodel = \"gpt\" # best\n",
            "[mcp_servers.other]\ncommand = \"x\"\n",
            "[projects.\"/home/me\"]",
        ];
        let removed = round(KnownClient::Codex, before, &kept);
        assert!(!removed.contains("OLD"), "{removed}");
        round(KnownClient::Codex, "", &[]);
        round(KnownClient::Codex, "mcp_servers = { other = { command = \"x\" } }\n", &["other = { command"]);
        for wrong in ["mcp_servers = 1\n", "a = \n", "[mcp_servers\n"] {
            assert!(with_entry(KnownClient::Codex, wrong, "a", example()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn everything_else_of_a_yaml_file_is_kept() {
        for (before, kept) in [
            ("", &[][..]),
            ("GOOSE_MODE: auto # mine\n", &["GOOSE_MODE: auto # mine\n"]),
            ("extensions:\nother: 1\n", &["other: 1\n"]),
            ("extensions: {} # none\nother: 1\n", &["other: 1\n"]),
            (
                "# top\nextensions:\n    # first\n    developer:\n        enabled: true # on\n        type: builtin\n\n# keys\nGOOSE_MODEL: x\n",
                &[
                    "# top\n",
                    "    # first\n    developer:\n        enabled: true # on\n        type: builtin\n",
                    "\n# keys\nGOOSE_MODEL: x\n",
                ],
            ),
            (
                "extensions:\n  \"shop\":\n    uri: http://a\n    # old\n  other:\n    cmd: |\n      a\n\n      b",
                &["  other:\n    cmd: |\n      a\n\n      b"],
            ),
        ] {
            let removed = round(KnownClient::Goose, before, kept);
            assert!(!removed.contains("http://a"), "{removed}");
        }
        for wrong in [
            "[]\n",
            "extensions: 1\n",
            "extensions: [a]\n",
            "extensions: {a: {b: 1}}\n",
            "{extensions: {}}\n",
            "a: 'b\nextensions:\n  c: 1'\n",
            "a: *x\n",
            "extensions:\n  a: 1\n extensions: 2\n",
            "a: 1\n...\n",
        ] {
            assert!(with_entry(KnownClient::Goose, wrong, "shop", example()).is_err(), "{wrong}");
        }
    }
}
