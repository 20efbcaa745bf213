//! Files of configuration as JSON values.
//!
//! Law: whatever a file holds, the answer is an object of bounded size, or one of a few sentences and a line. No text of the
//! file is in an error: it may be a secret.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;
use std::path::Path;

/// The largest file, in bytes.
pub(super) const MOST: u64 = 16 << 20;
/// How many values a file may have, those that aliases repeat counted each time.
const VALUES: usize = 250_000;
/// How many bytes their texts may have, those that aliases repeat counted each time: a file alone has no more.
const BYTES: usize = 2 * MOST as usize;
/// How deep they may be nested.
const DEPTH: usize = 64;
/// How the crate `toml` hands out a time.
const TOML_TIME: &str = "$__toml_private_datetime";

const DEEP: &str = "it is nested too deeply";
const MANY: &str = "it has too many values";
const LONG: &str = "its texts are too long";
const TWICE: &str = "a key stands twice";

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
    Toml,
    Env,
}

/// Why a file has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) what: &'static str,
    /// Where, from 1.
    pub(super) line: Option<u64>,
}

impl Format {
    /// By the name of the file: its extension, or `.env` and `.env.local`.
    pub(super) fn of(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?.to_ascii_lowercase();
        let has = |extension: &str| name.ends_with(extension);
        if name == ".env" || name.starts_with(".env.") || has(".env") {
            Some(Self::Env)
        } else if has(".json") {
            Some(Self::Json)
        } else if has(".yaml") || has(".yml") {
            Some(Self::Yaml)
        } else {
            has(".toml").then_some(Self::Toml)
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "it is not JSON",
            Self::Yaml => "it is not YAML",
            Self::Toml => "it is not TOML",
            Self::Env => "a line is not NAME=VALUE",
        }
    }

    /// The members of a file.
    ///
    /// # Errors
    /// It is no text, not in this format, no object, or larger than a configuration may be.
    pub(super) fn parse(self, bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
        let fault = |what| Fault { what, line: None };
        let text = std::str::from_utf8(bytes).map_err(|_| fault("it is not UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.contains('\0') {
            return Err(fault("it has a NUL in it, so it is no text"));
        }
        let (left, bytes, why) = (Cell::new(VALUES), Cell::new(BYTES), Cell::new(None));
        let seed =
            Strict { left: &left, bytes: &bytes, why: &why, depth: DEPTH, is_toml: self == Self::Toml };
        let value = match self {
            Self::Env => {
                return super::dotenv::parse(text, VALUES).map_err(|line| Fault { what: self.name(), line });
            }
            Self::Json => json(seed, text),
            Self::Yaml => yaml(seed, text),
            Self::Toml => toml(seed, text),
        };
        match value.map_err(|line| Fault { what: why.get().unwrap_or(self.name()), line })? {
            Value::Object(members) => Ok(members),
            _ => Err(fault("it is no object with keys")),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

/// The value, or the line of what is wrong.
type Parsed = Result<Value, Option<u64>>;

fn json(seed: Strict<'_>, text: &str) -> Parsed {
    let mut from = serde_json::Deserializer::from_str(text);
    let parsed = seed.deserialize(&mut from).and_then(|value| from.end().map(|()| value));
    parsed.map_err(|error| Some(error.line() as u64).filter(|line| *line > 0))
}

fn yaml(seed: Strict<'_>, text: &str) -> Parsed {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: VALUES, max_depth: DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: VALUES },
        with_snippet: false,
    };
    let parsed =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |from| seed.deserialize(from));
    parsed.map_err(|error| error.location().map(|location| location.line()).filter(|line| *line > 0))
}

fn toml(seed: Strict<'_>, text: &str) -> Parsed {
    // The whole of it is in memory before a value is counted; each has one of these before it.
    if text.bytes().filter(|byte| matches!(byte, b'=' | b',' | b'[')).count() > VALUES {
        seed.why.set(Some(MANY));
        return Err(None);
    }
    let parsed = toml::Deserializer::parse(text).and_then(|from| seed.deserialize(from));
    parsed.map_err(|error| {
        let before = text.as_bytes().get(..error.span()?.start)?;
        Some(before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1)
    })
}

/// Reads a value, but none that is too large or has a key twice: which of them a program takes is not known.
#[derive(Clone, Copy)]
struct Strict<'c> {
    /// How many values there may still be.
    left: &'c Cell<usize>,
    /// How many bytes of text.
    bytes: &'c Cell<usize>,
    /// What is wrong, where this has found it.
    why: &'c Cell<Option<&'static str>>,
    depth: usize,
    is_toml: bool,
}

impl Strict<'_> {
    fn refuse<T, E: Error>(self, why: &'static str) -> Result<T, E> {
        self.why.set(Some(why));
        Err(E::custom(why))
    }

    fn count<E: Error>(self, text: &str) -> Result<(), E> {
        let Some(left) = self.bytes.get().checked_sub(text.len()) else { return self.refuse(LONG) };
        self.bytes.set(left);
        Ok(())
    }

    /// For what is within.
    fn deeper<E: Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => self.refuse(DEEP),
        }
    }

    fn map_from<'de, A: MapAccess<'de>>(self, first: String, mut map: A) -> Result<Value, A::Error> {
        let within = self.deeper()?;
        let mut members = Map::new();
        let mut next = Some(first);
        while let Some(key) = next {
            self.count(&key)?;
            if members.contains_key(&key) {
                return self.refuse(TWICE);
            }
            let value = map.next_value_seed(within)?;
            members.insert(key, value);
            next = map.next_key()?;
        }
        Ok(Value::Object(members))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return self.refuse(MANY),
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        // A number that JSON readers would round is a text.
        Ok(Number::from_i128(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        Ok(Number::from_u128(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // JSON has neither `inf` nor `nan`.
        Ok(Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.count(value)?;
        Ok(Value::String(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.count(&value)?;
        Ok(Value::String(value))
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let within = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(within)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        match map.next_key::<String>()? {
            None => Ok(Value::Object(Map::new())),
            Some(key) if self.is_toml && key == TOML_TIME => map.next_value().map(Value::String),
            Some(key) => self.map_from(key, map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(format: Format, text: &str) -> String {
        match format.parse(text.as_bytes()) {
            Ok(members) => Value::Object(members).to_string(),
            Err(fault) => fault.to_string(),
        }
    }

    /// S-04: the same settings in four formats, with a BOM and CRLF too.
    #[test]
    fn formats_give_the_same() {
        let yaml = "server:\n  port: 8080\n  tls: true\n  host: a # comment\nlist: [1, two]\n";
        let toml = "list = [1, \"two\"]\n[server]\nport = 8080\ntls = true\nhost = 'a'\n";
        let json = r#"{"server": {"port": 8080, "tls": true, "host": "a"}, "list": [1, "two"]}"#;
        let expected = r#"{"list":[1,"two"],"server":{"host":"a","port":8080,"tls":true}}"#;
        for (format, text) in [(Format::Yaml, yaml), (Format::Toml, toml), (Format::Json, json)] {
            for text in [text.to_owned(), format!("\u{feff}{text}"), text.replace('\n', "\r\n")] {
                assert_eq!(value(format, &text), expected, "{format:?}");
            }
        }
        assert_eq!(value(Format::Yaml, "{8080: a, true: b}"), r#"{"8080":"a","true":"b"}"#);
        assert_eq!(
            value(Format::Toml, "a = 1979-05-27T07:32:00Z\nb = inf"),
            r#"{"a":"1979-05-27T07:32:00Z","b":"inf"}"#
        );
        assert_eq!(value(Format::Json, r#"{"a": 18446744073709551615}"#), r#"{"a":18446744073709551615}"#);
        assert_eq!(value(Format::Json, &format!("{{\"{TOML_TIME}\": 1}}")), format!("{{\"{TOML_TIME}\":1}}"));
    }

    /// S-04: anchors and merges are what YAML says; what they multiply is bounded.
    #[test]
    fn aliases_are_bounded() {
        let merged = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\n";
        assert_eq!(value(Format::Yaml, merged), r#"{"base":{"x":1,"y":2},"own":{"x":1,"y":3}}"#);
        let mut laughs = String::from("a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
        for level in 1..20 {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert!(Format::Yaml.parse(laughs.as_bytes()).is_err());
        assert!(Format::Yaml.parse(b"a: &a {b: *a}").is_err());
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(100));
        assert_eq!(value(Format::Yaml, &long), "line 2: its texts are too long");
    }

    /// S-04: an error names the line, and quotes nothing of the file.
    #[test]
    fn faults_quote_nothing() {
        let deep =
            |open: &str, shut: &str| format!("{{\"a\": {}1{}}}", open.repeat(100_000), shut.repeat(100_000));
        let many = format!("{{\"a\": [{}1]}}", "1,".repeat(VALUES));
        for (format, text, message) in [
            (Format::Json, r#"{"hunter2": "hunter2", "hunter2": 1}"#, "a key stands twice"),
            (Format::Toml, "hunter2 = 1\nhunter2 = 2", "line 2: "),
            (Format::Yaml, "hunter2: 1\nhunter2: 2", "line 2: "),
            (Format::Yaml, "a: hunter2\n b: [hunter2", "it is not YAML"),
            (Format::Yaml, "a: 1\n---\nhunter2: 2\n", "it is not YAML"),
            (Format::Yaml, "- hunter2", "it is no object with keys"),
            (Format::Yaml, "", "it is no object with keys"),
            (Format::Yaml, "? [hunter2]\n: 1", "it is not YAML"),
            (Format::Json, "", "it is not JSON"),
            (Format::Json, "\"hunter2\"", "it is no object with keys"),
            (Format::Json, "{\n\"a\": \"hunter2", "line 2: it is not JSON"),
            (Format::Json, "{} {}", "it is not JSON"),
            (Format::Json, "{\"a\": 1e999}", "it is not JSON"),
            (Format::Toml, "a = 1\nb = hunter2", "line 2: it is not TOML"),
            (Format::Toml, "a = \"hunter2\0\"", "NUL"),
            (Format::Json, &deep("[", "]"), "nested too deeply"),
            (Format::Json, &deep("{\"a\":", "}"), "nested too deeply"),
            (Format::Yaml, &deep("[", "]"), "it is not YAML"),
            (Format::Toml, &format!("a = {}", "[".repeat(100_000)), "it is not TOML"),
            (Format::Json, &many, "too many values"),
            (Format::Toml, &format!("a = [{}]", "1,".repeat(VALUES)), "too many values"),
            (Format::Yaml, &many, "it "),
            (Format::Env, "A=1\nhunter2", "line 2: a line is not NAME=VALUE"),
        ] {
            let said = value(format, text);
            assert!(said.contains(message) && !said.contains("hunter2"), "{format:?} {said}");
        }
        assert_eq!(Format::Json.parse(b"\xff\xfe{\0}\0").unwrap_err().what, "it is not UTF-8");
    }

    /// S-04: the name of a file says how it is written.
    #[test]
    fn formats_by_name() {
        for (name, format) in [
            ("a/app.YAML", Some(Format::Yaml)),
            ("app.yml", Some(Format::Yaml)),
            ("app.toml", Some(Format::Toml)),
            ("app.json", Some(Format::Json)),
            (".env", Some(Format::Env)),
            (".env.local", Some(Format::Env)),
            ("prod.env", Some(Format::Env)),
            ("app.conf", None),
            ("..", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }
}
