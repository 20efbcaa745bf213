//! Values of a file that stand elsewhere: `${NAME}`, `${NAME:-default}` and `{file: PATH}`.
//!
//! Law: what was put in the place of a reference is never printed: messages have the reference.

use mcp_resources_client::ExpandScope;
use mcp_resources_engine::guard::Redactor;
use mcp_resources_providers::options::OptionType;
use mcp_resources_providers::registry;
use mcp_resources_runtime::transport::document_text;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Values that are shorter than this would be found in words that have nothing to do with them.
const SHORTEST: usize = 4;
/// The keys of a document whose values are texts.
const TEXTS: [&str; 6] = ["name", "version", "title", "description", "instructions", "bus"];
/// Maximum size of a file with a secret in bytes.
const MOST: usize = 64 * 1024;

/// The values of this process, each with its reference.
static KNOWN: LazyLock<Mutex<BTreeMap<String, String>>> = LazyLock::new(Mutex::default);

/// The document with the values of all references. Relative paths begin at `folder`.
///
/// # Errors
/// One sentence that names the key, and the variable or the file.
pub(crate) fn resolved(document: Value, folder: &Path) -> Result<Value, String> {
    let variable = |name: &str| {
        let value = std::env::var(name).ok()?;
        know(&value, format!("${{{name}}}"));
        Some(value)
    };
    let scope = ExpandScope::new(folder, &variable);
    ReferenceValues { scope: &scope, folder }.value(document, &mut Vec::new())
}

/// The text without the values of references, which stand in their places.
pub fn without_values(text: &str) -> String {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // A value may be a part of another one.
    let mut values: Vec<(&String, &String)> = known.iter().collect();
    values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    values.into_iter().fold(text.to_owned(), |text, (value, reference)| match text.contains(value.as_str()) {
        true => text.replace(value.as_str(), reference),
        false => text,
    })
}

/// A message without the secrets that it may quote, such as the password in the URL of a database.
pub fn masked(message: &str) -> String {
    // The form that a message recommends is not a secret.
    const FORM: &str = "postgres://USER:PASSWORD@HOST";
    let redactor = Redactor::all();
    let parts: Vec<_> = message.split(FORM).map(|part| redactor.redact(part.into())).collect();
    without_values(&parts.join(FORM))
}

fn know(value: &str, reference: String) {
    if value.len() >= SHORTEST {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(value.to_owned(), reference);
    }
}

struct ReferenceValues<'r, 's> {
    scope: &'r ExpandScope<'s>,
    folder: &'r Path,
}

impl ReferenceValues<'_, '_> {
    /// The value at a path, whose steps are keys and numbers.
    fn value(&self, value: Value, at: &mut Vec<String>) -> Result<Value, String> {
        match value {
            // The bus replaces variables itself, after it has found the parts of its URL.
            Value::String(text) if text.contains("${") && !is_bus(at) => {
                self.scope.expand(&text, &joined(at)).map(Value::String)
            }
            Value::Array(items) => {
                let item = |(number, item)| self.below(format!("[{number}]"), item, at);
                items.into_iter().enumerate().map(item).collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(members) => {
                if let (1, Some(Value::String(path))) = (members.len(), members.get("file"))
                    && takes_text(at)
                {
                    return self.file(path, at).map(Value::String);
                }
                let member = |(key, value): (String, Value)| {
                    let value = self.below(key.clone(), value, at)?;
                    Ok((key, value))
                };
                members.into_iter().map(member).collect::<Result<_, _>>().map(Value::Object)
            }
            other => Ok(other),
        }
    }

    fn below(&self, step: String, value: Value, at: &mut Vec<String>) -> Result<Value, String> {
        at.push(step);
        let value = self.value(value, at);
        at.pop();
        value
    }

    /// The text of a file, without the line break at its end.
    fn file(&self, path: &str, at: &[String]) -> Result<String, String> {
        let key = joined(at);
        let named = self.scope.expand(path, &key)?;
        let place = self.folder.join(&named);
        let text =
            document_text(&place).map_err(|reason| format!("{key}.file: {}: {reason}", place.display()))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() || text.len() > MOST {
            let reason = "it is empty or too long; it must have the value alone";
            return Err(format!("{key}.file: {}: {reason}", place.display()));
        }
        know(text, format!("{{file: {path}}}"));
        Ok(text.to_owned())
    }
}

/// Whether a text may stand at a place, so that an object with the only key `file` is a reference. The options of a provider may
/// have such a key, and so may the names that an option has.
fn takes_text(at: &[String]) -> bool {
    match at {
        [first, _, kind, rest @ ..] if first == "providers" => match rest {
            [] => false,
            [option] => row_of(kind, option).is_none_or(|is_text| is_text),
            _ => true,
        },
        // The log's own options.
        [guard, audit] => !(guard == "guard" && audit == "audit"),
        [first] => TEXTS.contains(&first.as_str()),
        _ => !at.is_empty(),
    }
}

/// Whether a place is that of the URL of the bus.
fn is_bus(at: &[String]) -> bool {
    matches!(at, [first] if first == "bus")
}

/// Whether an option of a kind is a text; `None` if there is no such option.
fn row_of(kind: &str, option: &str) -> Option<bool> {
    let kind = registry::kinds().find(|known| known.name == kind)?;
    let row = kind.options.iter().find(|row| row.name == option)?;
    Some(matches!(row.kind, OptionType::Secret | OptionType::Text(_) | OptionType::File))
}

/// The path of a key, as in other messages.
fn joined(at: &[String]) -> String {
    at.iter().fold(String::new(), |path, step| match step.starts_with('[') || path.is_empty() {
        true => path + step,
        false => format!("{path}.{step}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // S-20: what a message quotes is masked, and what it recommends is not.
    #[test]
    fn messages_have_no_secrets() {
        let form = "write postgres://USER:PASSWORD@HOST:PORT/NAME";
        for (message, expected) in [
            (
                "db is \"postgres://me:hunter2@host/x\", expected an object",
                "db is \"postgres://me:[redacted:url-password]@host/x\", expected an object",
            ),
            ("the root ././a does not exist", "the root ././a does not exist"),
            (form, form),
        ] {
            assert_eq!(masked(message), expected);
        }
    }

    // S-20: references are replaced wherever a text may be, and messages have them in the place of their values.
    #[test]
    fn references_have_values_and_messages_have_references() {
        let folder = std::env::temp_dir().join(format!("mcp-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("password"), "hunter2 hunter2\n").unwrap();
        let document = json!({
            "title": "${MCP_NONE_OF_THESE:-The handbook}",
            "providers": [
                {"results": {"file": "results.db"}},
                {"db": {"databases": {"shop": {"url": "postgres://h/x", "password": {"file": "password"}}}}},
                {"files": {"roots": {"file": "docs"}}},
            ],
        });
        let found = resolved(document, &folder).unwrap();
        assert_eq!(found["title"], "The handbook");
        assert_eq!(found["providers"][0]["results"], json!({"file": "results.db"}));
        assert_eq!(found["providers"][1]["db"]["databases"]["shop"]["password"], "hunter2 hunter2");
        assert_eq!(found["providers"][2]["files"]["roots"], json!({"file": "docs"}));
        assert_eq!(without_values("no: hunter2 hunter2!"), "no: {file: password}!");
        for (document, said) in [
            (json!({"name": "${MCP_NONE_OF_THESE}"}), "name: the variable MCP_NONE_OF_THESE is not set"),
            (json!({"auth": {"tokens": {"file": "none"}}}), "auth.tokens.file: "),
            (
                json!({"providers": [{"db": {"url": "${MCP_NONE_OF_THESE}"}}]}),
                "providers[0].db.url: the variable",
            ),
        ] {
            let error = resolved(document, &folder).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
