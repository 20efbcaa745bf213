//! A page of Markdown: its front matter and its sections.
//!
//! ```text
//!   ---                          description of the page: title, priority, lang, …
//!   # Backups                    #backups     from its heading to the next one of the same level or above
//!   ## Restore                   #restore     within #backups; its own text goes to the next heading of any level
//! ```
//!
//! Law: the text is hostile. A front matter that is wrong costs its members, never the page; a slug is what GitHub makes of the
//! heading, and no two sections of a page have the same.

use crate::search::is_cjk;
use mcp_resources_engine::resource::Audience;
use mcp_resources_provider_files::folder::FileFacts;
use mcp_resources_provider_kit::digest::digest;
use mcp_resources_provider_kit::front_matter::{self, FileValue, ValueMembers};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;

/// Maximum number of sections of a page with a URI of their own. The rest belongs to the last of them.
const SECTIONS: usize = 4_096;
/// The longest title, description and language that are taken from a front matter, in bytes.
const TITLE: usize = 256;
const DESCRIPTION: usize = 1_024;
const LANG: usize = 35;

/// The message about a page that is not UTF-8.
pub(super) const NO_TEXT: &str =
    "it is not UTF-8, so it is served as bytes, without sections; save it as UTF-8";

/// The most of a page that is searched, in bytes.
pub(super) const INDEXED: u64 = 4 << 20;

/// Of a whole page, of which no more than this counts byte for byte.
pub(super) fn page_digest(bytes: &[u8], facts: &FileFacts) -> u64 {
    let max = usize::try_from(INDEXED).unwrap_or(usize::MAX);
    match bytes.get(..max) {
        Some(start) if bytes.len() > max => {
            digest(format!("{}{:?}", digest(start), facts.modified()).as_bytes())
        }
        _ => digest(bytes),
    }
}

/// The bytes of a page as text, without a character that `is_cut` off at the end. `None` if they are not UTF-8.
pub(super) fn text_of(bytes: &[u8], is_cut: bool) -> Option<&str> {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => return Some(text),
        Err(error) if is_cut && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return None,
    };
    std::str::from_utf8(bytes.get(..valid)?).ok()
}

/// The description of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Description {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// In thousandths.
    pub(crate) priority: Option<u16>,
    pub(crate) audience: Vec<Audience>,
    pub(crate) lang: Option<String>,
}

/// A page.
#[derive(Clone, Debug)]
pub(crate) struct DocsPage {
    pub(crate) description: Description,
    /// The first section is the text before the first heading, and has no slug.
    pub(crate) sections: Vec<PageSection>,
    /// A problem with its front matter, for the log.
    pub(crate) fault: Option<String>,
}

/// A section of a page.
#[derive(Clone, Debug)]
pub(crate) struct PageSection {
    /// The fragment that names the section; empty for the text before the first heading.
    pub(crate) slug: String,
    /// The heading as plain text.
    pub(crate) heading: String,
    /// Its own text, as plain text, without that of the sections in it.
    pub(crate) text: String,
    /// Its bytes in the file, with the sections in it.
    pub(crate) bytes: Range<usize>,
    level: u8,
}

impl DocsPage {
    /// Reads a whole file.
    pub(crate) fn parse(text: &str) -> Self {
        Self::parse_with(text, &|_| false)
    }

    /// Reads a whole file of MDX. What it imports, exports and comments is no text that a reader sees.
    pub(crate) fn parse_mdx(text: &str) -> Self {
        Self::parse_with(text, &is_code)
    }

    /// Reads a whole file. A paragraph outside of all other blocks `is_unseen` by its source.
    fn parse_with(text: &str, is_unseen: &dyn Fn(&str) -> bool) -> Self {
        let split = front_matter::split(text);
        let (description, fault) = match split.block.as_ref().map(front_matter::Block::parse) {
            None => (Description::default(), None),
            Some(Ok(members)) => Description::from_members(&members),
            Some(Err(fault)) => (Description::default(), Some(fault.to_string())),
        };
        let mut page = Self {
            description,
            sections: sections(split.body, text.len() - split.body.len(), is_unseen),
            fault,
        };
        if page.description.title.is_none() {
            let heading = page
                .sections
                .iter()
                .map(|section| section.heading.trim())
                .find(|heading| !heading.is_empty());
            page.description.title = heading.map(|heading| cut(heading, TITLE));
        }
        page
    }

    /// Reads a file that is not UTF-8. Clients get its bytes, so no section has a URI.
    pub(super) fn without_sections(bytes: &[u8]) -> Self {
        let mut page = Self::parse(&String::from_utf8_lossy(bytes));
        page.sections.iter_mut().for_each(|section| section.slug.clear());
        page.fault = Some(NO_TEXT.into());
        page
    }

    /// The section that a fragment names.
    pub(crate) fn section(&self, slug: &str) -> Option<&PageSection> {
        if slug.is_empty() {
            return None;
        }
        let is_named = |own: &str| self.sections.iter().find(|section| section.slug == own);
        is_named(slug).or_else(|| {
            // A person types composed characters, whatever the heading has.
            let normal: String = slug.nfc().collect();
            self.sections.iter().find(|section| section.slug.nfc().eq(normal.chars()))
        })
    }
}

impl Description {
    /// Reads the known members; also returns a problem with one of them.
    fn from_members(members: &ValueMembers) -> (Self, Option<String>) {
        let mut fault = None;
        let mut wrong = |name: &str, expected: &str| {
            fault.get_or_insert_with(|| format!("in its front matter, {name} is not {expected}"));
        };
        let mut text = |name: &str, max: usize| match members.get(name) {
            None | Some(FileValue::Null) => None,
            Some(FileValue::Text(text)) => Some(cut(text.trim(), max)).filter(|text| !text.is_empty()),
            Some(FileValue::Number { number, written }) => {
                // As it is written: a title `007` or `1.10` is no sum.
                Some(cut(written.as_deref().unwrap_or(&number.to_string()), max))
            }
            Some(_) => {
                wrong(name, "a text");
                None
            }
        };
        let title = text("title", TITLE);
        let description = text("description", DESCRIPTION);
        let lang = text("lang", LANG);
        let lang = lang.filter(|lang| {
            let is_tag = is_lang(lang);
            if !is_tag {
                wrong("lang", "a language such as ja or en-GB");
            }
            is_tag
        });
        let priority = match members.get("priority") {
            None | Some(FileValue::Null) => None,
            Some(value) => {
                let number = match value {
                    FileValue::Number { number, .. } => number.as_f64(),
                    _ => None,
                };
                let allowed = number.filter(|priority| (0.0..=1.0).contains(priority));
                if allowed.is_none() {
                    wrong("priority", "a number from 0 to 1");
                }
                allowed.map(|priority| (priority * 1_000.0).round() as u16)
            }
        };
        let audience = match members.get("audience") {
            None | Some(FileValue::Null) => Some(Vec::new()),
            Some(FileValue::Text(word)) => Audience::parse(word).map(|audience| vec![audience]),
            Some(FileValue::List(words)) => words
                .iter()
                .map(|word| match word {
                    FileValue::Text(word) => Audience::parse(word),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
                .filter(|audience| audience.len() <= 2),
            Some(_) => None,
        };
        let audience = audience.unwrap_or_else(|| {
            wrong("audience", "user, assistant or a list of both");
            Vec::new()
        });
        (Self { title, description, priority, audience, lang }, fault)
    }
}

/// Whether a text has the form of a language's name, as `ja` or `zh-Hant-TW`.
pub(crate) fn is_lang(text: &str) -> bool {
    let is_part =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    text.len() <= LANG
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.split('-').all(is_part)
}

/// The first `max` bytes of a text, cut between characters, with each control as a space.
fn cut(text: &str, max: usize) -> String {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end)
        .unwrap_or_default()
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

/// Whether a paragraph of MDX is code: an import, an export or a comment.
fn is_code(paragraph: &str) -> bool {
    let text = paragraph.trim_end();
    text.starts_with("import ")
        || text.starts_with("export ")
        || text.starts_with("{/*") && text.ends_with("*/}")
}

/// The sections of a text that begins `offset` bytes after the beginning of its file, without the text of paragraphs that
/// `is_unseen` by their source.
fn sections(body: &str, offset: usize, is_unseen: &dyn Fn(&str) -> bool) -> Vec<PageSection> {
    let first = PageSection {
        slug: String::new(),
        heading: String::new(),
        text: String::new(),
        bytes: offset..offset + body.len(),
        level: 0,
    };
    let mut reader = PageReader { sections: vec![first], ..PageReader::default() };
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    // The end of the paragraph that no reader sees.
    let mut unseen = 0;
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(body, options).into_offset_iter() {
        match &event {
            Event::Start(tag) => {
                if depth == 0 && *tag == Tag::Paragraph && body.get(range.clone()).is_some_and(is_unseen) {
                    unseen = range.end;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if range.end <= unseen {
            continue;
        }
        if let Event::Start(Tag::Heading { level, .. }) = &event {
            // The line that it is on: a quotation's marks belong to it.
            let line =
                body.get(..range.start).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |at| at + 1);
            reader.begin(*level, offset + line);
        } else {
            reader.event(event);
        }
    }
    let mut sections = reader.sections;
    name_empty(&mut sections);
    // Each ends where the next one of its level, or of one above, begins.
    let mut open: Vec<usize> = Vec::new();
    for at in 1..sections.len() {
        let Some((level, start)) = sections.get(at).map(|section| (section.level, section.bytes.start))
        else {
            break;
        };
        while let Some(above) =
            open.pop_if(|above| sections.get(*above).is_some_and(|other| other.level >= level))
        {
            if let Some(section) = sections.get_mut(above) {
                section.bytes.end = start;
            }
        }
        open.push(at);
    }
    if let [first, second, ..] = &mut *sections {
        first.bytes.end = second.bytes.start;
    }
    sections
}

/// Gathers sections from the events of the parser.
#[derive(Default)]
struct PageReader {
    sections: Vec<PageSection>,
    slugs: Slugs,
    heading: Option<Heading>,
    /// The lines of a block of HTML that is being read.
    html: String,
    /// The number of images around the text, which is then their alternative text.
    images: usize,
    /// Whether a line has ended in the middle of a paragraph.
    gap: bool,
}

/// A heading that is being read.
struct Heading {
    level: u8,
    /// The offset of its beginning.
    start: usize,
    text: String,
    /// The text from which its slug is made: GitHub leaves out the ends of lines and the text of images.
    plain: String,
}

impl PageReader {
    fn begin(&mut self, level: HeadingLevel, start: usize) {
        self.heading = Some(Heading { level: level as u8, start, text: String::new(), plain: String::new() });
        self.gap = false;
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Image { .. }) => self.images += 1,
            Event::End(TagEnd::Image) => self.images = self.images.saturating_sub(1),
            Event::End(TagEnd::Heading(_)) => self.end(),
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&text);
            }
            Event::Html(html) => self.html.push_str(&html),
            Event::End(TagEnd::HtmlBlock) => {
                let html = std::mem::take(&mut self.html);
                self.push(&shown(&html));
                self.space('\n');
            }
            Event::SoftBreak => self.gap = true,
            Event::HardBreak | Event::Rule => self.space('\n'),
            Event::End(TagEnd::TableCell) => self.space(' '),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::DefinitionListTitle
                | TagEnd::DefinitionListDefinition,
            ) => self.space('\n'),
            _ => {}
        }
    }

    fn text(&mut self) -> Option<&mut String> {
        match &mut self.heading {
            Some(heading) => Some(&mut heading.text),
            None => self.sections.last_mut().map(|section| &mut section.text),
        }
    }

    fn push(&mut self, piece: &str) {
        let gap = std::mem::take(&mut self.gap);
        if let Some(heading) = self.heading.as_mut().filter(|_| self.images == 0) {
            heading.plain.push_str(piece);
        }
        let Some(text) = self.text() else { return };
        // Between characters of a script without spaces, the end of a line is none.
        let joins = text.chars().next_back().is_some_and(is_cjk) && piece.chars().next().is_some_and(is_cjk);
        if gap && !joins {
            text.push(' ');
        }
        text.push_str(piece);
    }

    fn space(&mut self, space: char) {
        self.gap = false;
        if let Some(text) = self.text()
            && !text.is_empty()
            && !text.ends_with(char::is_whitespace)
        {
            text.push(space);
        }
    }

    fn end(&mut self) {
        let Some(Heading { level, start, text, plain }) = self.heading.take() else { return };
        if self.sections.len() > SECTIONS {
            return self.push(&text);
        }
        let slug = self.slugs.slug(&plain);
        let end = self.sections.first().map_or(start, |first| first.bytes.end);
        let heading = text.trim().to_owned();
        self.sections.push(PageSection { slug, heading, text: String::new(), bytes: start..end, level });
    }
}

/// The text that a reader sees of HTML: without tags, comments, scripts and styles.
fn shown(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        out.push(' ');
        // What the tag begins with, and what ends all that is not shown.
        let ends = [("!--", "-->"), ("script", "</script"), ("style", "</style")];
        let begins = |name: &str| tag.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
        let end = ends.iter().find(|(name, _)| begins(name)).map_or(">", |(_, end)| *end);
        let after = end_of(tag, end);
        rest = if end.ends_with('>') { after } else { end_of(after, ">") };
    }
    out.push_str(rest);
    out
}

/// Returns the text behind the first `end`, in any case; nothing if there is none.
fn end_of<'t>(text: &'t str, end: &str) -> &'t str {
    let places = text.char_indices().map(|(at, _)| at);
    let mut found =
        places.filter(|at| text.get(*at..at + end.len()).is_some_and(|own| own.eq_ignore_ascii_case(end)));
    found.next().and_then(|at| text.get(at + end.len()..)).unwrap_or_default()
}

/// The fragments of a page's headings, as GitHub makes them. It does not normalise them.
#[derive(Default)]
struct Slugs {
    taken: HashSet<String>,
    next: HashMap<String, usize>,
}

impl Slugs {
    fn slug(&mut self, heading: &str) -> String {
        let kept = heading.to_lowercase();
        let plain: String = kept
            .chars()
            .filter(|char| matches!(char, ' ' | '-') || is_of_word(*char))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        let mut slug = plain.clone();
        let number = self.next.entry(plain.clone()).or_default();
        while !self.taken.insert(slug.clone()) {
            *number += 1;
            slug = format!("{plain}-{number}");
        }
        slug
    }
}

/// The first section of a page whose heading has no letter has no fragment at GitHub. It gets one here that no other has.
fn name_empty(sections: &mut [PageSection]) {
    let taken: HashSet<&str> = sections.iter().map(|section| &*section.slug).collect();
    let names = std::iter::once("section".to_owned()).chain((1..).map(|number| format!("section-{number}")));
    let name = names.into_iter().find(|name| !taken.contains(&**name));
    let empty = sections.iter_mut().skip(1).find(|section| section.slug.is_empty());
    if let (Some(section), Some(name)) = (empty, name) {
        section.slug = name;
    }
}

/// Whether GitHub keeps a character in a slug: a letter, a mark, a decimal digit or a connector such as `_`.
fn is_of_word(char: char) -> bool {
    // What joins letters without being one.
    let is_joiner = matches!(char, '\u{200c}' | '\u{200d}');
    !is_joiner && regex_syntax::try_is_word_character(char).unwrap_or_else(|_| char.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slugs(text: &str) -> Vec<String> {
        DocsPage::parse(text).sections.into_iter().skip(1).map(|section| section.slug).collect()
    }

    fn read(text: &str, slug: &str) -> String {
        DocsPage::parse(text)
            .section(slug)
            .map_or_else(String::new, |section| text[section.bytes.clone()].to_owned())
    }

    // S-07: slugs are GitHub's, in any script, and no two are alike.
    #[test]
    fn slugs_are_githubs() {
        for (heading, slug) in [
            ("Getting Started", "getting-started"),
            ("検索の設定", "検索の設定"),
            ("API と `max_bytes`", "api-と-max_bytes"),
            ("What's new? (v2.0)", "whats-new-v20"),
            ("ＡＰＩ", "ａｐｉ"),
            ("a -- b", "a----b"),
            ("全角　空白", "全角空白"),
            ("**bold** [link](x.md)", "bold-link"),
            ("ガイド", "ガイド"),
            ("① 準備", "-準備"),
            ("第２章 Ⅳ", "第２章-ⅳ"),
            ("x² ½ ❶ ㈠ 🄂", "x----"),
            ("full＿width", "full＿width"),
            ("🚀 Start", "-start"),
            ("⚙️ Settings", "\u{fe0f}-settings"),
            ("👨\u{200d}👩 family", "-family"),
            ("Title ![badge](x.png)", "title-"),
            ("<a name=\"x\"></a> Title", "-title"),
        ] {
            assert_eq!(slugs(&format!("# {heading}\n")), [slug], "{heading}");
        }
        assert_eq!(slugs("# A\n# A\n# A-1\n# A\n"), ["a", "a-1", "a-1-1", "a-2"]);
        assert_eq!(slugs("# !\n# ?\nX\n===\nY\n---\n"), ["section", "-1", "x", "y"]);
        // What has a fragment at GitHub keeps it.
        assert_eq!(slugs("# !\n# Section\n# Section\n"), ["section-2", "section", "section-1"]);
        // Neither composed nor decomposed: as the heading has it.
        assert_eq!(
            slugs("# Cafe\u{301}\n# Café\n# \u{9df} \u{9af}\u{9bc}\n"),
            ["cafe\u{301}", "café", "\u{9df}-\u{9af}\u{9bc}"]
        );
        assert_eq!(slugs("# ΣΊΣΥΦΟΣ\n# İ\n# a\u{200d}b\n"), ["σίσυφος", "i\u{307}", "ab"]);
        assert_eq!(slugs("Two\nlines\n---\n"), ["twolines"]);
        assert_eq!(slugs("```\n# no\n```\n> # yes\n"), ["yes"]);
    }

    // S-07: a section is what is under its heading, byte for byte, with the sections in it.
    #[test]
    fn sections_are_cut_exactly() {
        let text = "---\ntitle: T\n---\nbefore\n# One\na\n## Two\nb\n### Three\nc\n## Two\r\nd\r\n# Four\ne";
        for (slug, expected) in [
            ("one", "# One\na\n## Two\nb\n### Three\nc\n## Two\r\nd\r\n"),
            ("two", "## Two\nb\n### Three\nc\n"),
            ("three", "### Three\nc\n"),
            ("two-1", "## Two\r\nd\r\n"),
            ("four", "# Four\ne"),
            ("", ""),
            ("none", ""),
        ] {
            assert_eq!(read(text, slug), expected, "{slug}");
        }
        let page = DocsPage::parse(text);
        assert_eq!(page.sections[0].text.trim(), "before");
        assert_eq!(&text[page.sections[0].bytes.clone()], "before\n");
        assert_eq!(page.description.title.as_deref(), Some("T"));
        assert_eq!(
            DocsPage::parse("text\n\n# First\n# Second\n").description.title.as_deref(),
            Some("First")
        );
    }

    // S-07: what is searched is the text that a reader sees.
    #[test]
    fn texts_are_plain() {
        let text = "検\n索する\nword\nnext `code` [link](https://hidden.example/url)\n\n| a | b |\n|---|---|\n| c | d |\n\n```sh\nrun --this\n```\n<details>\n<b title='hidden'>shown</b>\n</details>\n";
        let page = DocsPage::parse(text);
        let plain = &page.sections[0].text;
        for shown in ["検索する word next code link", "a b", "c d", "run --this", "shown"] {
            assert!(plain.contains(shown), "{shown}: {plain}");
        }
        assert!(!plain.contains("hidden"), "{plain}");
        for (html, expected) in [
            ("<!--\nhidden\n\nhidden > x\n-->\n\nshown\n", "shown"),
            ("<script src=x>\nhidden < 3;\n</script>\nshown\n", "shown"),
            ("<div>\n<STYLE>\nhidden {}\n</STYLE>shown\n</div>\n", "shown"),
            ("<p>日本<b>語</b></p>\n", "日本 語"),
            ("<!-- open\n", ""),
            ("<", "<"),
        ] {
            let page = DocsPage::parse(html);
            let words: Vec<_> = page.sections[0].text.split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "{html}");
        }
    }

    // S-07: of MDX, imports, exports and comments are not searched; code of an example is, and so is prose.
    #[test]
    fn mdx_is_read_as_its_reader_sees_it() {
        let text = "---\ntitle: T\n---\nimport { Tabs } from 'hidden';\nimport X from 'hidden'\n\nexport const hidden = {\n  a: 1,\n}\n\n{/* hidden */}\n\nimporting is shown\n\n# Use\n\n<Tabs hidden=\"1\">\n<Item>inner</Item>\n</Tabs>\n\n```js\nimport kept from 'astro';\n```\n\n> import quoted\n\nexport is a word here\n";
        let texts =
            |page: &DocsPage| page.sections.iter().map(|section| section.text.clone()).collect::<String>();
        let page = DocsPage::parse_mdx(text);
        let seen = texts(&page);
        assert!(!seen.contains("hidden"), "{seen}");
        for shown in ["importing is shown", "inner", "import kept", "import quoted"] {
            assert!(seen.contains(shown), "{shown}: {seen}");
        }
        let plain = DocsPage::parse(text);
        assert!(texts(&plain).contains("export is a word here"));
        let places =
            |page: &DocsPage| page.sections.iter().map(|section| section.bytes.clone()).collect::<Vec<_>>();
        assert_eq!((places(&page), &page.description), (places(&plain), &plain.description));
    }

    // S-07: what is cut off at the end is no fault; anything else that is not UTF-8 is.
    #[test]
    fn bytes_are_texts() {
        let text = "あ検".as_bytes();
        assert_eq!(text_of(text, true), Some("あ検"));
        assert_eq!(text_of(&text[..5], true), Some("あ"));
        assert_eq!((text_of(&text[..5], false), text_of(b"a\xffb", true)), (None, None));
        let page = DocsPage::without_sections(b"# A\xff\n\nneedle\n");
        assert!(page.sections.iter().all(|section| section.slug.is_empty()));
        assert!(page.sections[1].text.contains("needle") && page.fault.unwrap().contains("not UTF-8"));
    }

    // S-07: a front matter describes the page; one that is wrong is said to be so, and the rest counts.
    #[test]
    fn front_matter_describes() {
        let text = "---\ntitle: 検索\ndescription: How\npriority: 0.75\naudience: [user, assistant]\nlang: ja\n---\n# Other\n";
        let Description { title, description, priority, audience, lang } = DocsPage::parse(text).description;
        assert_eq!((title.as_deref(), description.as_deref()), (Some("検索"), Some("How")));
        assert_eq!((priority, lang.as_deref()), (Some(750), Some("ja")));
        assert_eq!(audience, [Audience::User, Audience::Assistant]);
        let toml = DocsPage::parse("+++\ntitle = \"T\"\npriority = 1\naudience = \"user\"\n+++\n");
        assert_eq!(
            (toml.description.priority, toml.description.audience),
            (Some(1_000), vec![Audience::User])
        );
        for (front, fault) in [
            ("priority: 2", "priority is not a number from 0 to 1"),
            ("priority: high", "priority is not"),
            ("audience: all", "audience is not"),
            ("lang: [ja]", "lang is not a text"),
            ("lang: 日本語", "lang is not a language"),
            ("title: [", "line "),
            ("- a", "it is not YAML"),
        ] {
            let page = DocsPage::parse(&format!("---\n{front}\ntitle: Kept\n---\n# Head\n"));
            let said = page.fault.unwrap_or_default();
            assert!(said.contains(fault), "{front}: {said}");
            assert_eq!(page.sections.len(), 2, "{front}");
        }
    }
}
