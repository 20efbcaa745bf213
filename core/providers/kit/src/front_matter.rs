//! The front matter of a text: YAML between lines of `---`, or TOML between lines of `+++`, before the body. A line of `...`
//! ends YAML too, as in YAML itself, in Pandoc and in MkDocs.
//!
//! Law: the text is hostile. A block that is too long, too deep or multiplied by aliases is refused, and no error quotes it.

use crate::values::{self, ValueLimits};
pub use crate::values::{FileValue, ParseFault, ValueMembers};
use mcp_resources_runtime::transport::YamlSchema;

/// The longest block, in bytes.
const MOST: usize = 64 << 10;
const LIMITS: ValueLimits = ValueLimits { values: 4_096, bytes: 2 * MOST, depth: 32 };

/// A text in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split<'t> {
    /// The front matter. Without a closing line there is none, because `---` is also a horizontal rule.
    pub block: Option<Block<'t>>,
    /// The text behind the front matter, without a byte order mark.
    pub body: &'t str,
    /// The line of the text that the body begins with, from 1.
    pub body_line: u64,
}

/// A front matter that is not parsed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'t> {
    /// The syntax of the front matter.
    pub syntax: FrontMatterSyntax,
    /// The lines between the two fences.
    pub text: &'t str,
}

/// The syntax of a front matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontMatterSyntax {
    /// Between lines of `---`, or from `---` to `...`. `yes` and `no` are texts, as in YAML 1.2.
    Yaml,
    /// Between lines of `+++`.
    Toml,
}

/// Splits `text`, which may begin with a byte order mark. A line ends with LF, CRLF or CR, as in YAML and in Markdown.
pub fn split(text: &str) -> Split<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    fenced(text).unwrap_or(Split { block: None, body: text, body_line: 1 })
}

fn fenced(text: &str) -> Option<Split<'_>> {
    let (first, mut rest) = line(text);
    let (syntax, fences): (_, &[&str]) = match first.trim_end() {
        "---" => (FrontMatterSyntax::Yaml, &["---", "..."]),
        "+++" => (FrontMatterSyntax::Toml, &["+++"]),
        _ => return None,
    };
    let mut number = 2;
    while !rest.is_empty() {
        let (own, after) = line(rest);
        if fences.contains(&own.trim_end()) {
            let end = text.len() - rest.len();
            let block = Block { syntax, text: text.get(first.len()..end)? };
            return Some(Split { block: Some(block), body: after, body_line: number + 1 });
        }
        rest = after;
        number += 1;
    }
    None
}

/// The first line of a text with its end, and the rest.
fn line(text: &str) -> (&str, &str) {
    let end = text.find(['\n', '\r']).map_or(text.len(), |at| {
        let is_pair = text.get(at..).is_some_and(|rest| rest.starts_with("\r\n"));
        at + 1 + usize::from(is_pair)
    });
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl Block<'_> {
    /// Its members; none if it is empty.
    ///
    /// # Errors
    /// It is not in its syntax, is no object, has a key twice, or is longer or deeper than a front matter may be. The line is
    /// that of the whole text.
    pub fn parse(&self) -> Result<ValueMembers, ParseFault> {
        let fault = |what| ParseFault { what, line: None };
        if self.text.len() > MOST {
            return Err(fault("the front matter is longer than 64 KiB"));
        }
        if self.text.contains('\0') {
            return Err(fault("the front matter has a NUL in it"));
        }
        let parsed = match self.syntax {
            FrontMatterSyntax::Yaml => values::yaml(self.text, LIMITS, YamlSchema::Core),
            FrontMatterSyntax::Toml => values::toml::read(self.text, LIMITS),
        };
        match parsed {
            Ok(FileValue::Object(members)) => Ok(members),
            Ok(FileValue::Null) => Ok(ValueMembers::default()),
            Ok(_) => Err(fault("the front matter is no object with keys")),
            Err(ParseFault { what, line }) => {
                Err(ParseFault { what, line: line.map(|line| line.saturating_add(1)) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members as JSON or the fault, and the body with its line.
    fn shown(text: &str) -> (String, String) {
        let Split { block, body, body_line } = split(text);
        let json = block.map_or_else(String::new, |block| match block.parse() {
            Ok(members) => serde_json::to_string(&members).unwrap(),
            Err(fault) => fault.to_string(),
        });
        (json, format!("{body_line}:{body}"))
    }

    // S-07, S-56: the values are those of the text, in its order; what follows is the body.
    #[test]
    fn values_are_verbatim() {
        for (text, json, body) in [
            ("---\nname: b\na: 1\n---\nbody", r#"{"name":"b","a":1}"#, "5:body"),
            ("+++\nname = 'b'\na = 1\n+++\nbody", r#"{"name":"b","a":1}"#, "5:body"),
            ("\u{feff}---\r\nname: b\r\n---\r\nbody\r\n", r#"{"name":"b"}"#, "4:body\r\n"),
            ("---  \nname: b\n--- \t\n", r#"{"name":"b"}"#, "4:"),
            ("---\nname: b\n---", r#"{"name":"b"}"#, "4:"),
            ("---\nname: b\n...\nbody\n---\n", r#"{"name":"b"}"#, "4:body\n---\n"),
            ("---\nname: b\n... \t", r#"{"name":"b"}"#, "4:"),
            ("---\rname: b\r---\rbody\r", r#"{"name":"b"}"#, "4:body\r"),
            ("---\rname: b\r\n---\n\rbody", r#"{"name":"b"}"#, "4:\rbody"),
            ("---\na: |\n  ...\n---\n", r#"{"a":"...\n"}"#, "5:"),
            ("+++\na = 1\n+++\n...\n", r#"{"a":1}"#, "4:...\n"),
            (
                "---\na: [007, 0123, 08, -08, 1_000, 0o17, 1:30, 1e3, .5]\n---\n",
                r#"{"a":[7,123,8,-8,"1_000",15,"1:30",1000.0,0.5]}"#,
                "4:",
            ),
            ("---\n~: 1\nnull : 2\n---\n", "line 3: a key stands twice", "5:"),
            ("---\n---\nbody", "{}", "3:body"),
            ("---\n# a comment\n---\nbody", "{}", "4:body"),
            ("---\na: |\n  x\n  ---\n---\n", r#"{"a":"x\n---\n"}"#, "6:"),
            (
                "---\nz: [yes, on, true, ~, 1.5, 0x10, 2024-01-31, '8', \"\\u00e9\"]\nm: {version: \"1.0\"}\n8: x\n---\n",
                r#"{"z":["yes","on",true,null,1.5,16,"2024-01-31","8","é"],"m":{"version":"1.0"},"8":"x"}"#,
                "6:",
            ),
            (
                "+++\nz = 1979-05-27T07:32:00Z\n[a]\nb = inf\n+++\n",
                r#"{"z":"1979-05-27T07:32:00Z","a":{"b":"inf"}}"#,
                "6:",
            ),
            ("---\nd: >-\n  one\n  two\n---\n", r#"{"d":"one two"}"#, "6:"),
        ] {
            assert_eq!(shown(text), (json.into(), body.into()), "{text:?}");
        }
    }

    // S-07: a text without front matter is its own body.
    #[test]
    fn without_a_fence_all_is_body() {
        for text in [
            "",
            "body",
            "---",
            "---\nname: b",
            "--- #\nname: b\n---\n",
            " ---\na: 1\n---\n",
            "+++\na = 1\n---\n",
        ] {
            assert_eq!(shown(text), (String::new(), format!("1:{text}")));
        }
        assert_eq!(shown("\u{feff}body").1, "1:body");
    }

    // S-07, S-56: a front matter that is wrong has a line, is never quoted, and costs little.
    #[test]
    fn faults_have_lines() {
        let mut laughs = String::from("---\na0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
        for level in 1..20 {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        laughs.push_str("---\n");
        let deep = format!("---\na: {}1{}\n---\n", "[".repeat(1_000), "]".repeat(1_000));
        for (text, message) in [
            ("---\na: 1\nhunter2: [\n---\n", "line "),
            ("---\nhunter2: 1\nhunter2: 2\n---\n", "line 3: a key stands twice"),
            ("---\rno ename: |\r\n  two\r\r\"\n---\r\nbody\r\n", "line 6: it is not YAML"),
            ("+++\ra = 1\rb = hunter2\r+++\r", "line 3: it is not TOML"),
            ("+++\na = 1\nb = hunter2\n+++\n", "line 3: it is not TOML"),
            ("---\n- hunter2\n---\n", "the front matter is no object with keys"),
            ("---\nhunter2\n---\n", "the front matter is no object with keys"),
            ("---\na: \"hunter2\0\"\n---\n", "NUL"),
            ("---\na: &a {b: *a}\n---\n", "line 2: an alias stands within what it names"),
            (&format!("---\na: {}\n---\n", "x".repeat(MOST)), "longer than 64 KiB"),
            (&format!("---\na: [{}]\n---\n", "1,".repeat(LIMITS.values)), "it "),
            (&format!("+++\na = [{}]\n+++\n", "1,".repeat(LIMITS.values)), "it has too many values"),
            (
                &format!("---\na: &a {}\nb: [*a, *a, *a]\n---\n", "x".repeat(MOST / 2)),
                "its texts are too long",
            ),
            (&deep, "it "),
            (&laughs, "it "),
        ] {
            let (said, _) = shown(text);
            assert!(said.contains(message) && !said.starts_with('{') && !said.contains("hunter2"), "{said}");
        }
    }

    // S-07: members are found by their names.
    #[test]
    fn members_by_name() {
        let members = split("---\ntitle: A\nweight: 3\n---\n").block.unwrap().parse().unwrap();
        assert_eq!(
            (members.text("title"), members.text("weight"), members.get("none")),
            (Some("A"), None, None)
        );
        assert_eq!(members.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["title", "weight"]);
    }
}
