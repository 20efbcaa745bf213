//! One skill: the front matter of its `SKILL.md`, and its files with their digests.
//!
//! Law: a skill that is served conforms to the Agent Skills specification. A file's digest and size come from one read of it.

use mcp_resources_engine::resource::Resource;
use mcp_resources_provider_files::open_folder::Stamp;
use mcp_resources_provider_kit::front_matter::{self, FileValue, FrontMatterSyntax, ValueMembers};
use mcp_resources_provider_kit::media::by_name;
use mcp_resources_provider_kit::uri_path;
use serde::ser::{Serialize, SerializeMap, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

pub(super) const SCHEME: &str = "skill://";
pub(super) const INDEX: &str = "skill:///";
/// The file that makes a directory a skill.
pub(super) const MANIFEST: &[u8] = b"SKILL.md";
/// The most files of a skill that every host accepts, and the most bytes they have together.
pub(super) const FILES: usize = 512;
pub(super) const BYTES: u64 = 16 << 20;
/// The most characters of a name and of a description.
const NAME: usize = 64;
const DESCRIPTION: usize = 1_024;
pub(super) const MARKDOWN: &str = "text/markdown";

/// The SHA-256 digest of a file's bytes.
pub(super) type Digest = [u8; 32];

/// The front matter of a `SKILL.md`.
#[derive(Debug, PartialEq)]
pub(super) struct SkillHead {
    pub(super) name: String,
    pub(super) description: String,
    /// All of it, verbatim.
    pub(super) members: ValueMembers,
}

/// A skill that is served.
#[derive(Debug)]
pub(super) struct Skill {
    /// `skill://acme/billing/refunds`: the URI of its directory.
    pub(super) base: String,
    /// The number of its folder, and the path of its directory there.
    pub(super) folder: usize,
    pub(super) dir: Vec<u8>,
    pub(super) head: std::sync::Arc<SkillHead>,
    /// In the order of their paths.
    pub(super) files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug)]
pub(super) struct SkillFile {
    /// Within the directory of the skill.
    pub(super) path: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) stamp: Stamp,
}

impl SkillHead {
    /// Reads a `SKILL.md`.
    ///
    /// # Errors
    /// Why it is not that of a skill in a directory with the name `directory`. Of its text only a valid name is quoted.
    pub(super) fn parse(bytes: &[u8], directory: &str) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "its SKILL.md is not UTF-8".to_owned())?;
        let block = match front_matter::split(text).block {
            Some(block) if block.syntax == FrontMatterSyntax::Yaml => block,
            Some(_) => return Err("the front matter of its SKILL.md is TOML between lines of +++; write YAML between lines of ---".into()),
            None => return Err("its SKILL.md does not begin with YAML front matter between lines of ---".into()),
        };
        let members = block.parse().map_err(|fault| format!("the front matter of its SKILL.md: {fault}"))?;
        let text = |key: &str| match members.get(key) {
            Some(FileValue::Text(text)) => Ok(text.clone()),
            Some(_) => Err(format!("{key} in its SKILL.md is not a text")),
            None => Err(format!("its SKILL.md has no {key}")),
        };
        let name = text("name")?;
        let description = text("description")?;
        if !is_name(&name) {
            return Err(format!(
                "name in its SKILL.md is not 1 to {NAME} lowercase letters, digits and single hyphens"
            ));
        }
        if !name.nfc().eq(directory.nfc()) {
            return Err(format!("name in its SKILL.md is {name:?}, not the name of its directory"));
        }
        let length = description.chars().count();
        if description.trim().is_empty() || length > DESCRIPTION {
            return Err(format!(
                "description in its SKILL.md has {length} characters, not 1 to {DESCRIPTION}"
            ));
        }
        Ok(Self { name, description, members })
    }
}

/// Whether the Agent Skills specification allows the name: letters of any script, as far as they have a case in lower case, with
/// the marks that belong to them. Composed and decomposed letters are the same.
fn is_name(name: &str) -> bool {
    let name: String = name.nfc().collect();
    let is_allowed = |char: char| char == '-' || char.is_alphanumeric() || is_combining_mark(char);
    let is_edged = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    let begins = name.starts_with(char::is_alphanumeric);
    let is_lower = name.chars().all(|char| char.to_lowercase().eq([char]));
    begins && name.chars().count() <= NAME && name.chars().all(is_allowed) && is_lower && !is_edged
}

impl Skill {
    /// The URI of its `SKILL.md`.
    pub(super) fn uri(&self) -> String {
        format!("{}/SKILL.md", self.base)
    }

    /// The URI of the entry at `path` within the skill.
    pub(super) fn uri_of(&self, path: &[u8]) -> String {
        if path.is_empty() { self.base.clone() } else { format!("{}/{}", self.base, uri_path::encode(path)) }
    }

    /// The path within the folder of the entry at `path` within the skill.
    pub(super) fn path_in_folder(&self, path: &[u8]) -> Vec<u8> {
        if path.is_empty() { self.dir.clone() } else { uri_path::join(&self.dir, path) }
    }

    /// The list entry of a file at `path`. `head` is given for the `SKILL.md` of a skill.
    pub(super) fn resource(&self, path: &[u8], stamp: &Stamp, head: Option<&SkillHead>) -> Resource {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let title = self.base.strip_prefix(SCHEME).unwrap_or_default();
        let title = format!("{title}/{}", String::from_utf8_lossy(path));
        let mut resource = Resource::new(self.uri_of(path)).title(title).size(stamp.size());
        resource.details.annotations.last_modified = stamp.modified();
        match head {
            Some(head) => resource
                .name(head.name.clone())
                .description(head.description.clone())
                .mime_type(MARKDOWN)
                .priority(0.9),
            None => {
                resource.details.mime_type = by_name(path).map(Into::into);
                resource.name(String::from_utf8_lossy(name))
            }
        }
    }

    /// Its entry, with the files that `shows` allows.
    pub(super) fn entry<'s>(&'s self, shows: &'s dyn Fn(&str) -> bool) -> SkillEntry<'s> {
        SkillEntry { skill: self, shows }
    }
}

/// The JSON of a `Skill` entry.
pub(super) struct SkillEntry<'s> {
    skill: &'s Skill,
    shows: &'s dyn Fn(&str) -> bool,
}

impl Serialize for SkillEntry<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut entry = to.serialize_map(Some(3))?;
        entry.serialize_entry("uri", &self.skill.uri())?;
        entry.serialize_entry("frontmatter", &self.skill.head.members)?;
        entry.serialize_entry("resources", &SkillFiles(self))?;
        entry.end()
    }
}

struct SkillFiles<'e>(&'e SkillEntry<'e>);

impl Serialize for SkillFiles<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let SkillEntry { skill, shows } = self.0;
        let files = skill.files.iter().map(|file| (skill.uri_of(&file.path), file));
        to.collect_seq(files.filter(|(uri, _)| shows(uri)).map(|(uri, file)| FileEntry { uri, file }))
    }
}

struct FileEntry<'s> {
    uri: String,
    file: &'s SkillFile,
}

impl Serialize for FileEntry<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut file = to.serialize_map(Some(3))?;
        file.serialize_entry("uri", &self.uri)?;
        file.serialize_entry("digest", &format!("sha256:{}", hex(&self.file.digest)))?;
        file.serialize_entry("size", &self.file.size)?;
        file.end()
    }
}

/// The digest of some bytes.
pub(super) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

fn hex(digest: &Digest) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-56: the front matter is that of the Agent Skills specification, or the log says why not.
    #[test]
    fn heads_conform() {
        let head = |text: &str, directory: &str| SkillHead::parse(text.as_bytes(), directory);
        let sound = "---\nname: pdf-2\ndescription: Fills forms\nmetadata: {version: \"1.0\"}\n---\n# PDF\n";
        let parsed = head(sound, "pdf-2").unwrap();
        assert_eq!((&*parsed.name, &*parsed.description), ("pdf-2", "Fills forms"));
        assert_eq!(
            serde_json::to_string(&parsed.members).unwrap(),
            r#"{"name":"pdf-2","description":"Fills forms","metadata":{"version":"1.0"}}"#
        );
        for name in
            ["日本語", "技能", "мой-навык", "é", "cafe\u{301}", "हिन्दी-1", "straße", "٣", &"字".repeat(NAME)]
        {
            for end in ["---", "...", "--- "] {
                let text = format!("---\nname: {name}\ndescription: x\n{end}\nbody");
                assert_eq!(head(&text, &name.nfc().collect::<String>()).unwrap().name, name);
                assert_eq!(head(&text, &name.nfd().collect::<String>()).unwrap().name, name);
            }
        }
        assert!(
            head(
                &format!("---\nname: {0}\ndescription: x\n---\n", "字".repeat(NAME + 1)),
                &"字".repeat(NAME + 1)
            )
            .is_err()
        );
        let verbatim = "---\nname: a\ndescription: x\nmetadata: {n: 08, v: '007', e: 0123}\n---\n";
        let members = serde_json::to_string(&head(verbatim, "a").unwrap().members).unwrap();
        assert!(members.ends_with(r#""metadata":{"n":8,"v":"007","e":123}}"#), "{members}");
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1_025));
        for (text, directory, message) in [
            ("# hunter2", "a", "does not begin with YAML front matter"),
            ("+++\nname = 'a'\n+++\n", "a", "is TOML between lines of +++; write YAML"),
            ("---\nname: a\n", "a", "does not begin with YAML front matter"),
            ("---\nname: [hunter2\n---\n", "a", "the front matter of its SKILL.md: "),
            ("---\ndescription: hunter2\n---\n", "a", "has no name"),
            ("---\nname: a\n---\n", "a", "has no description"),
            ("---\nname: 7\ndescription: x\n---\n", "7", "name in its SKILL.md is not a text"),
            (
                "---\nname: b\ndescription: x\n---\n",
                "a",
                "name in its SKILL.md is \"b\", not the name of its directory",
            ),
            ("---\nname: A\ndescription: x\n---\n", "A", "lowercase"),
            ("---\nname: -a\ndescription: x\n---\n", "-a", "lowercase"),
            ("---\nname: a--b\ndescription: x\n---\n", "a--b", "lowercase"),
            ("---\nname: É\ndescription: x\n---\n", "É", "lowercase"),
            ("---\nname: ǅ\ndescription: x\n---\n", "ǅ", "lowercase"),
            ("---\nname: мой_навык\ndescription: x\n---\n", "мой_навык", "lowercase"),
            ("---\nname: 技能！\ndescription: x\n---\n", "技能！", "lowercase"),
            ("---\nname: \u{301}a\ndescription: x\n---\n", "\u{301}a", "lowercase"),
            ("---\nname: a b\ndescription: x\n---\n", "a b", "lowercase"),
            ("---\nname: a\ndescription: ' '\n---\n", "a", "not 1 to 1024"),
            (&long, "a", "has 1025 characters"),
        ] {
            let said = head(text, directory).unwrap_err();
            assert!(said.contains(message) && !said.contains("hunter2"), "{said}");
        }
        assert!(SkillHead::parse(b"---\nname: \xff\n---\n", "a").unwrap_err().contains("UTF-8"));
    }

    // S-54: `sha256:` and 64 lowercase hexadecimal digits, as `sha256sum` prints them.
    #[test]
    fn digests_are_hexadecimal() {
        assert_eq!(hex(&digest(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
