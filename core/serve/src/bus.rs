//! The keys that the processes of a server share, and the bus between them.
//!
//! Law: a key is never printed, and a URL of a bus only without its credentials.

use mcp_resources_bus::from_url;
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::suggest::unexpected;
use mcp_resources_runtime::bus::Bus;
use serde_json::Value;
use std::sync::Arc;

/// The variable with the keys where the file has none: hexadecimal, separated by commas.
pub const KEYS_VARIABLE: &str = "MCP_RESOURCES_KEYS";

/// The keys of a file: a list of `{env: NAME}`, or of texts, which are hexadecimal.
pub(crate) fn keys(value: &Value) -> Result<Vec<SealKey>, String> {
    let Value::Array(items) = value else {
        return Err(
            "keys must be a list, such as [{env: NOTES_KEY}]; the value of each is hexadecimal".into()
        );
    };
    items.iter().enumerate().map(|(at, item)| one(&format!("keys[{at}]"), item)).collect()
}

fn one(place: &str, item: &Value) -> Result<SealKey, String> {
    match item {
        Value::String(text) => key(place, text),
        Value::Object(members) => {
            if let Some(name) = members.keys().find(|name| *name != "env") {
                return Err(format!("{place}: {}", unexpected("key", name, &["env"])));
            }
            let Some(Value::String(name)) = members.get("env") else {
                return Err(format!("{place}: expected {{env: NAME}}, the name of a variable with the key"));
            };
            let text = std::env::var(name).map_err(|_| {
                format!("{place}: the variable {name} is not set; make a key with: openssl rand -hex 32")
            })?;
            key(place, &text)
        }
        _ => Err(format!("{place}: expected {{env: NAME}}, the name of a variable with the key")),
    }
}

/// The keys of [`KEYS_VARIABLE`].
///
/// # Errors
/// One sentence that names the variable.
pub(crate) fn keys_of_environment() -> Result<Vec<SealKey>, String> {
    let text = std::env::var(KEYS_VARIABLE).unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| key(KEYS_VARIABLE, part)).collect()
}

fn key(place: &str, text: &str) -> Result<SealKey, String> {
    let wrong = || {
        let least = 2 * SealKey::MIN_SECRET;
        format!("{place}: a key is at least {least} hexadecimal digits; make one with: openssl rand -hex 32")
    };
    let text = text.trim();
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return Err(wrong());
    }
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u8::from_str_radix(pair, 16).ok()
    });
    let secret: Vec<u8> = digits.collect::<Option<_>>().ok_or_else(wrong)?;
    SealKey::from_secret(&secret).map_err(|_| wrong())
}

/// The bus at a URL, for a server with these keys.
///
/// # Errors
/// One sentence without credentials.
pub(crate) fn open(url: &str, keys: &[SealKey]) -> Result<Arc<dyn Bus>, String> {
    let bus = from_url(url).map_err(|error| error.to_string())?;
    match keys.is_empty() {
        false => Ok(bus),
        true => Err(format!(
            "the bus {} needs keys, which all processes of the server share: write keys: [{{env: NAME}}] into the file, or \
             set {KEYS_VARIABLE}; make a key with: openssl rand -hex 32",
            bus.name()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_hexadecimal_and_never_repeated() {
        let secret = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        assert_eq!(keys(&json!([secret, format!("{secret}{secret}\n")])).unwrap().len(), 2);
        for (value, said) in [
            (json!("x"), "keys must be a list"),
            (json!([7]), "keys[0]: expected {env: NAME}"),
            (
                json!([secret, "hunter2hunter2hunter2hunter2hunt"]),
                "keys[1]: a key is at least 32 hexadecimal digits",
            ),
            (json!([&secret[..30]]), "keys[0]: a key is at least 32"),
            (json!([{"env": "MCP_NONE_OF_THESE"}]), "keys[0]: the variable MCP_NONE_OF_THESE is not set"),
            (json!([{"evn": "X"}]), "keys[0]: unexpected key \"evn\"; did you mean \"env\"?"),
        ] {
            let error = keys(&value).unwrap_err();
            assert!(error.starts_with(said) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_bus_needs_keys() {
        let error = open("redis://me:hunter2@h:1/0", &[]).err().unwrap();
        assert!(
            error.starts_with("the bus redis://h:1/0 needs keys") && !error.contains("hunter2"),
            "{error}"
        );
        let keys = keys(&json!(["0f1e2d3c4b5a69788796a5b4c3d2e1f0"])).unwrap();
        assert_eq!(open("redis://me:hunter2@h:1/0", &keys).ok().unwrap().name(), "redis://h:1/0");
        assert!(open("http://h", &keys).err().unwrap().starts_with("bus has the scheme \"http\""));
    }
}
