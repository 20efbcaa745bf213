//! Files of configuration as JSON values.
//!
//! Law: whatever a file holds, the answer is an object of bounded size, or one of a few sentences and a line. No text of the
//! file is in an error: it may be a secret.

pub(super) use crate::values::Fault;
use crate::values::{self, Limits, Value};
use serde_json::Map;
use std::path::Path;

/// The largest file, in bytes.
pub(super) const MOST: u64 = 16 << 20;
/// How many values a file may have.
const VALUES: usize = 250_000;
/// Aliases can make the texts longer than the file.
const LIMITS: Limits = Limits { values: VALUES, bytes: 2 * MOST as usize, depth: 64 };

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
    Toml,
    Env,
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

    /// The members of a file.
    ///
    /// # Errors
    /// It is no text, not in this format, no object, or larger than a configuration may be.
    pub(super) fn parse(self, bytes: &[u8]) -> Result<Map<String, serde_json::Value>, Fault> {
        let fault = |what| Fault { what, line: None };
        let text = std::str::from_utf8(bytes).map_err(|_| fault("it is not UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.contains('\0') {
            return Err(fault("it has a NUL in it, so it is no text"));
        }
        let value = match self {
            Self::Env => {
                let what = "a line is not NAME=VALUE";
                return super::dotenv::parse(text, VALUES).map_err(|line| Fault { what, line });
            }
            Self::Json => values::json(text, LIMITS),
            Self::Yaml => values::yaml(text, LIMITS, true),
            Self::Toml => values::toml(text, LIMITS),
        };
        match value? {
            Value::Object(members) => Ok(members.into()),
            _ => Err(fault("it is no object with keys")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const TOML_TIME: &str = "$__toml_private_datetime";

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
        assert_eq!(
            value(Format::Yaml, "{a: 0644, b: .inf, c: -.INF, d: .nan, e: 1e400}"),
            r#"{"a":420,"b":".inf","c":"-.inf","d":".nan","e":".inf"}"#
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
