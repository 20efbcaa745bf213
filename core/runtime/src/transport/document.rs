//! Configuration files: their maximum size, and YAML as JSON values.

use super::regular::open_to_read;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Maximum size of a file in bytes.
const MOST: u64 = 16 << 20;

/// Reads the text of a file of at most 16 MiB.
///
/// # Errors
/// The reason, without the path.
pub fn text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    // Limits the bytes that are read instead of the file's size, because a descriptor of a pipe has no size.
    let read = open_to_read(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
    read.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "it does not exist; create it, or name another file".to_owned(),
        ErrorKind::PermissionDenied => "it cannot be opened; let this process read it".to_owned(),
        ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    })?;
    match text.len() as u64 > MOST {
        true => Err(format!("it is larger than {MOST} bytes")),
        false => Ok(text),
    }
}

/// Whether the file's extension is `.yaml` or `.yml`.
fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("yaml") || ext.eq_ignore_ascii_case("yml"))
}

/// Parses a file as a JSON value: YAML for `.yaml` and `.yml`, else JSON.
///
/// # Errors
/// The reason, without the path and without an excerpt, which may contain secrets.
pub fn value(path: &Path) -> Result<serde_json::Value, String> {
    let text = text(path)?;
    if is_yaml(path) {
        return yaml(&text);
    }
    let is_json = path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("json"));
    json(&text).map_err(|reason| match is_json {
        true => reason,
        false => format!("{reason}; the name of a YAML file ends with .yaml or .yml"),
    })
}

/// Parses a JSON text in which no object has a key twice.
///
/// # Errors
/// The reason and the position.
pub fn json(text: &str) -> Result<serde_json::Value, String> {
    use serde::de::DeserializeSeed as _;
    let mut from = serde_json::Deserializer::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let read = unique::Unique.deserialize(&mut from).and_then(|value| from.end().map(|()| value));
    read.map_err(|error| match error.is_data() {
        true => error.to_string(),
        false => format!("it is not JSON: {error}"),
    })
}

/// JSON values without repeated keys. The usual reader takes the last of two, so that a mistake would go unnoticed.
mod unique {
    use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
    use serde_json::{Map, Value, map::Entry};
    use std::fmt;

    #[derive(Clone, Copy)]
    pub(super) struct Unique;

    impl<'de> DeserializeSeed<'de> for Unique {
        type Value = Value;

        fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
            from.deserialize_any(self)
        }
    }

    impl<'de> Visitor<'de> for Unique {
        type Value = Value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }

        fn visit_unit<E: Error>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
            let mut values = Vec::new();
            while let Some(value) = items.next_element_seed(self)? {
                values.push(value);
            }
            Ok(values.into())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
            let mut read = Map::new();
            while let Some(key) = members.next_key::<String>()? {
                let value = members.next_value_seed(self)?;
                match read.entry(key) {
                    Entry::Vacant(entry) => drop(entry.insert(value)),
                    Entry::Occupied(entry) => {
                        return Err(A::Error::custom(format!("the key {:?} stands twice", entry.key())));
                    }
                }
            }
            Ok(read.into())
        }
    }
}

/// Parses YAML, by the core schema of YAML 1.2, as a JSON value, so that later errors can name the member and not only the
/// line. Aliases cannot make it grow without limit.
///
/// # Errors
/// The reason and the position, without an excerpt of the text, which may contain secrets.
#[cfg(feature = "yaml")]
pub fn yaml(text: &str) -> Result<serde_json::Value, String> {
    use super::yaml::{NOT_YAML, TWICE, YamlFault, YamlLimits, YamlSchema, read_yaml};
    let limits = YamlLimits { values: 250_000, bytes: 2 * MOST as usize, depth: 64 };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    read_yaml(text, YamlSchema::Core, limits).map(Into::into).map_err(|fault| {
        let YamlFault { what, detail, line, column } = fault;
        let reason = match detail {
            Some(key) if what == TWICE => format!("the key {key:?} stands twice"),
            Some(reason) if what == NOT_YAML => format!("{what}: {reason}"),
            _ => what.to_owned(),
        };
        format!("{reason} at line {line} column {column}")
    })
}

/// The error without the feature `yaml`.
///
/// # Errors
/// Always.
#[cfg(not(feature = "yaml"))]
pub(crate) fn yaml(_: &str) -> Result<serde_json::Value, String> {
    Err("YAML needs the feature `yaml`".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    // S-01: a key that stands twice is refused in JSON as it is in YAML; all else is what any reader takes.
    #[test]
    fn no_key_stands_twice() {
        let text = r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "x\ud83d\ude00"], "b": {"a": {}}}"#;
        assert_eq!(json(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(json("\u{feff}[]").unwrap(), json!([]));
        for (text, said) in [
            (r#"{"a": 1, "a": 2}"#, "the key \"a\" stands twice at line 1 column"),
            ("{\"b\": [{\"a\": 1,\n \"a\": 2}]}", "the key \"a\" stands twice at line 2 column"),
            ("{} {}", "it is not JSON: trailing characters at line 1"),
            ("", "it is not JSON: EOF"),
        ] {
            let error = json(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    // S-01: what is wrong with a file, with the fix.
    #[test]
    fn faults_of_files_have_a_fix() {
        let folder = std::env::temp_dir().join(format!("mcp-resources-document-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).unwrap();
            value(&folder.join(name)).unwrap_err()
        };
        assert_eq!(file("a.json", b"\xff"), "it is not UTF-8");
        assert!(file("a.conf", b"a: 1").ends_with("; the name of a YAML file ends with .yaml or .yml"));
        assert!(!file("a.json", b"a: 1").contains(".yaml"));
        assert_eq!(value(&folder).unwrap_err(), "it is a directory; name a file");
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(value(&folder).unwrap_err(), "it does not exist; create it, or name another file");
    }
}
