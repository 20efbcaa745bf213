//! Parses configuration files into JSON values.
//!
//! Law: whatever a file holds, the answer is an object of bounded size, or one of a few sentences and a line. No text of the
//! file is in an error: it may be a secret.

use super::dotenv::{self, Variables};
pub(super) use mcp_resources_provider_kit::values::ParseFault;
use mcp_resources_provider_kit::values::{self, FileValue, ValueLimits};
use mcp_resources_runtime::transport::YamlSchema;
use serde_json::Map;
use std::borrow::Cow;
use std::path::Path;

/// The largest file, in bytes.
pub(super) const MOST: u64 = 16 << 20;
/// Maximum number of values in a file.
const VALUES: usize = 250_000;
/// Aliases can make the texts longer than the file.
const LIMITS: ValueLimits = ValueLimits { values: VALUES, bytes: 2 * MOST as usize, depth: 64 };

/// The contents of a parsed file.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) members: Map<String, serde_json::Value>,
    /// A sentence for the log about omitted parts.
    pub(super) left_out: Option<String>,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigFormat {
    Json,
    Yaml,
    Toml,
    Env,
}

impl ConfigFormat {
    /// By the name of the file: its extension, or `.env` and `.env.local`.
    pub(super) fn from_path(file: &Path) -> Option<Self> {
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
    pub(super) fn parse(self, bytes: &[u8]) -> Result<Parsed, ParseFault> {
        let fault = |what| ParseFault { what, line: None };
        let text = match utf16(bytes).filter(|_| self == Self::Yaml) {
            Some(units) => {
                String::from_utf16(&units).map(Cow::Owned).map_err(|_| fault("it is not UTF-16"))?
            }
            None => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| fault("it is not UTF-8"))?,
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.contains('\0') {
            return Err(fault("it has a NUL in it, so it is no text"));
        }
        let value = match self {
            Self::Env => return variables(text),
            Self::Json => values::json::read(text, LIMITS),
            Self::Yaml => values::yaml(text, LIMITS, YamlSchema::Yaml11),
            Self::Toml => values::toml::read(text, LIMITS),
        };
        match value? {
            FileValue::Object(members) => Ok(Parsed { members: members.into(), left_out: None }),
            _ => Err(fault("it is no object with keys")),
        }
    }
}

fn variables(text: &str) -> Result<Parsed, ParseFault> {
    let read = dotenv::parse(text, VALUES);
    let Variables { members, left_out } = read.map_err(|unreadable| {
        let what = if unreadable.is_too_long { values::counters::TOO_MANY } else { "a quote does not close" };
        ParseFault { what, line: Some(unreadable.line) }
    })?;
    let left_out = left_out.map(|(line, count)| match count {
        1 => format!("line {line} is not NAME=VALUE and is left out"),
        _ => format!("line {line} and {} more are not NAME=VALUE and are left out", count - 1),
    });
    Ok(Parsed { members, left_out })
}

/// The units of a text that begins with a byte order mark of UTF-16, which YAML may be written in.
fn utf16(bytes: &[u8]) -> Option<Vec<u16>> {
    let (unit, rest): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xff, 0xfe, rest @ ..] => (u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => (u16::from_be_bytes, rest),
        _ => return None,
    };
    let (pairs, odd) = rest.as_chunks::<2>();
    // Half of a unit is not of a text.
    odd.is_empty().then(|| pairs.iter().map(|pair| unit(*pair)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const TOML_TIME: &str = "$__toml_private_datetime";

    fn value(format: ConfigFormat, text: &str) -> String {
        match format.parse(text.as_bytes()) {
            Ok(parsed) => Value::Object(parsed.members).to_string(),
            Err(fault) => fault.to_string(),
        }
    }

    // S-04: the same settings in four formats, with a BOM and CRLF too.
    #[test]
    fn formats_give_the_same() {
        let yaml = "server:\n  port: 8080\n  tls: true\n  host: a # comment\nlist: [1, two]\n";
        let toml = "list = [1, \"two\"]\n[server]\nport = 8080\ntls = true\nhost = 'a'\n";
        let json = r#"{"server": {"port": 8080, "tls": true, "host": "a"}, "list": [1, "two"]}"#;
        let expected = r#"{"list":[1,"two"],"server":{"host":"a","port":8080,"tls":true}}"#;
        for (format, text) in
            [(ConfigFormat::Yaml, yaml), (ConfigFormat::Toml, toml), (ConfigFormat::Json, json)]
        {
            for text in [text.to_owned(), format!("\u{feff}{text}"), text.replace('\n', "\r\n")] {
                assert_eq!(value(format, &text), expected, "{format:?}");
            }
        }
        assert_eq!(value(ConfigFormat::Yaml, "{8080: a, true: b}"), r#"{"8080":"a","true":"b"}"#);
        assert_eq!(
            value(
                ConfigFormat::Toml,
                "a = 1979-05-27T07:32:00Z\nb = inf\nc = 0xff\nd = 18446744073709551615\ne = 1_8446744073709551616"
            ),
            r#"{"a":"1979-05-27T07:32:00Z","b":"inf","c":255,"d":18446744073709551615,"e":"18446744073709551616"}"#
        );
        assert_eq!(
            value(ConfigFormat::Toml, &format!("a = {{\"{TOML_TIME}\" = 'x'}}")),
            format!("{{\"a\":{{\"{TOML_TIME}\":\"x\"}}}}")
        );
        assert_eq!(
            value(ConfigFormat::Yaml, "{a: 0644, b: .inf, c: -.INF, d: .nan, e: 1.0e+400}"),
            r#"{"a":420,"b":".inf","c":"-.INF","d":".nan","e":"1.0e+400"}"#
        );
        assert_eq!(
            value(ConfigFormat::Json, r#"{"a": 18446744073709551615}"#),
            r#"{"a":18446744073709551615}"#
        );
        assert_eq!(
            value(
                ConfigFormat::Json,
                r#"{"a": [1e400, -1E+999, 1e-400, 18446744073709551616, -9223372036854775809, 1.5], "1e400": "1e400\"1e400"}"#
            ),
            r#"{"1e400":"1e400\"1e400","a":["1e400","-1E+999",0.0,"18446744073709551616","-9223372036854775809",1.5]}"#
        );
        assert_eq!(
            value(
                ConfigFormat::Yaml,
                "{month: 08, zip: 01089, id: 0089, neg: -08, y: y, n: n, e: 1e3, t: 1:30, u: 1_000, b: 0b11}"
            ),
            r#"{"b":3,"e":"1e3","id":"0089","month":"08","n":"n","neg":"-08","t":90,"u":1000,"y":"y","zip":"01089"}"#
        );
        assert_eq!(
            value(
                ConfigFormat::Yaml,
                "{a: !!int 3, b: !!bool yes, c: !!float 3, d: !!timestamp 2001-01-01, null: 1, ~x: 2, on: 3, 007: 4}"
            ),
            r#"{"007":4,"a":3,"b":true,"c":3.0,"d":"2001-01-01","null":1,"on":3,"~x":2}"#
        );
        let utf16: Vec<u8> = "\u{feff}a: 検索\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(ConfigFormat::Yaml.parse(&utf16).unwrap().members["a"], "検索");
        let utf16: Vec<u8> = "\u{feff}a: 検索\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(ConfigFormat::Yaml.parse(&utf16).unwrap().members["a"], "検索");
        assert_eq!(ConfigFormat::Yaml.parse(b"\xff\xfea\0\0\xd8").unwrap_err().what, "it is not UTF-16");
        assert_eq!(
            value(ConfigFormat::Json, &format!("{{\"{TOML_TIME}\": 1}}")),
            format!("{{\"{TOML_TIME}\":1}}")
        );
    }

    // S-04: anchors and merges are what YAML says; what they multiply is bounded.
    #[test]
    fn aliases_are_bounded() {
        let merged = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\n";
        assert_eq!(value(ConfigFormat::Yaml, merged), r#"{"base":{"x":1,"y":2},"own":{"x":1,"y":3}}"#);
        let mut laughs = String::from("a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
        for level in 1..20 {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert!(ConfigFormat::Yaml.parse(laughs.as_bytes()).is_err());
        assert!(ConfigFormat::Yaml.parse(b"a: &a {b: *a}").is_err());
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(100));
        assert_eq!(value(ConfigFormat::Yaml, &long), "line 1: its texts are too long");
    }

    // S-04: an error names the line, and quotes nothing of the file.
    #[test]
    fn faults_quote_nothing() {
        let deep =
            |open: &str, shut: &str| format!("{{\"a\": {}1{}}}", open.repeat(100_000), shut.repeat(100_000));
        let many = format!("{{\"a\": [{}1]}}", "1,".repeat(VALUES));
        for (format, text, message) in [
            (ConfigFormat::Json, r#"{"hunter2": "hunter2", "hunter2": 1}"#, "a key stands twice"),
            (ConfigFormat::Toml, "hunter2 = 1\nhunter2 = 2", "line 2: "),
            (ConfigFormat::Yaml, "hunter2: 1\nhunter2: 2", "line 2: a key stands twice"),
            (ConfigFormat::Yaml, "null: hunter2\n~: 2", "line 2: a key stands twice"),
            (ConfigFormat::Yaml, "a: hunter2\n b: [hunter2", "it is not YAML"),
            (ConfigFormat::Yaml, "a: 1\n---\nhunter2: 2\n", "line 2: it has more than one document"),
            (ConfigFormat::Yaml, "a: !!int hunter2", "line 1: a value does not fit its tag"),
            (ConfigFormat::Yaml, "a: !!map [hunter2]", "line 1: a value does not fit its tag"),
            (ConfigFormat::Yaml, "a: {<<: hunter2}", "line 1: what is merged is no object"),
            (ConfigFormat::Yaml, "- hunter2", "it is no object with keys"),
            (ConfigFormat::Yaml, "", "it is no object with keys"),
            (ConfigFormat::Yaml, "? [hunter2]\n: 1", "line 1: a key is a list or an object"),
            (ConfigFormat::Json, "", "it is not JSON"),
            (ConfigFormat::Json, "\"hunter2\"", "it is no object with keys"),
            (ConfigFormat::Json, "{\n\"a\": \"hunter2", "line 2: it is not JSON"),
            (ConfigFormat::Json, "{} {}", "it is not JSON"),
            (ConfigFormat::Json, "{\"a\": 01e999}", "it is not JSON"),
            (ConfigFormat::Json, "{\"a\": NaN}", "it is not JSON"),
            (ConfigFormat::Toml, "a = 1\nb = hunter2", "line 2: it is not TOML"),
            (ConfigFormat::Toml, "a = \"hunter2\0\"", "NUL"),
            (ConfigFormat::Json, &deep("[", "]"), "nested too deeply"),
            (ConfigFormat::Json, &deep("{\"a\":", "}"), "nested too deeply"),
            (ConfigFormat::Yaml, &deep("[", "]"), "line 1: it is nested too deeply"),
            (ConfigFormat::Toml, &format!("a = {}", "[".repeat(100_000)), "it is not TOML"),
            (ConfigFormat::Json, &many, "too many values"),
            (ConfigFormat::Toml, &format!("a = [{}]", "1,".repeat(VALUES)), "too many values"),
            (ConfigFormat::Yaml, &many, "line 1: it has too many values"),
            (ConfigFormat::Env, "A=1\nB='hunter2", "line 2: a quote does not close"),
        ] {
            let said = value(format, text);
            assert!(said.contains(message) && !said.contains("hunter2"), "{format:?} {said}");
        }
        assert_eq!(ConfigFormat::Json.parse(b"\xff\xfe{\0}\0").unwrap_err().what, "it is not UTF-8");
    }

    // S-04: the name of a file says how it is written.
    #[test]
    fn formats_by_name() {
        for (name, format) in [
            ("a/app.YAML", Some(ConfigFormat::Yaml)),
            ("app.yml", Some(ConfigFormat::Yaml)),
            ("app.toml", Some(ConfigFormat::Toml)),
            ("app.json", Some(ConfigFormat::Json)),
            (".env", Some(ConfigFormat::Env)),
            (".env.local", Some(ConfigFormat::Env)),
            ("prod.env", Some(ConfigFormat::Env)),
            ("app.conf", None),
            ("..", None),
        ] {
            assert_eq!(ConfigFormat::from_path(Path::new(name)), format, "{name}");
        }
    }
}
