//! The texts that the tools for resources give to a model: lines of a list, and ranges of lines of a resource.
//!
//! Law: a text has at most the limit `tool_text` of characters, and says how to get the rest. The ranges that it names
//! cover the resource, so that following them reads all of it.

use super::answer::{Body, Contents};
use super::blocks::{ContentBlock, ToolResult};
use crate::jsonrpc::{Json, JsonMembers};
use std::borrow::Cow;

/// The names of the two tools.
pub(super) const LIST: &str = "list_resources";
pub(super) const READ: &str = "read_resource";

/// The sentence for a cursor that was not made for this list.
pub(super) const UNKNOWN_CURSOR: &str =
    "Unknown cursor. Call list_resources without a cursor to start again.";

/// A page of a list, as lines.
#[derive(Debug, Default)]
pub(super) struct LinePage {
    pub(super) lines: Vec<String>,
    /// The cursor of the next page.
    pub(super) next: Option<String>,
}

/// The part of a resource that a model asks for: from a character of the first line to the end of the last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextRange {
    /// The number of the first line, from 1.
    first: usize,
    /// The characters of the first line to leave out.
    skip: usize,
    last: usize,
}

/// An error response to a request of a tool.
#[derive(Debug)]
pub(super) struct ToolRefusal {
    pub(super) message: String,
    /// The member `kind` of its data.
    pub(super) kind: Option<String>,
}

/// The answer to a request: the members of the result, or the error.
pub(super) fn answered(response: &[u8]) -> Result<JsonMembers<'_>, ToolRefusal> {
    let members = Json::parse(response, usize::MAX).and_then(Json::object);
    let member = |name: &str| members.as_ref().and_then(|members| members.get(name)?.object());
    if let Some(result) = member("result") {
        return Ok(result);
    }
    let error = member("error");
    let text =
        |members: &JsonMembers<'_>, name: &str| members.get(name).and_then(Json::as_str).map(Cow::into_owned);
    let message = error.as_ref().and_then(|error| text(error, "message")).unwrap_or_default();
    let data = error.as_ref().and_then(|error| error.get("data")?.object());
    Err(ToolRefusal { message, kind: data.and_then(|data| text(&data, "kind")) })
}

impl LinePage {
    /// Reads a page of `items`, whose member `id` is a URI or template. A line has at most `longest` characters.
    pub(super) fn new(result: &JsonMembers<'_>, items: &str, id: &str, longest: usize) -> Self {
        let items = result.get(items).and_then(Json::array).into_iter().flatten();
        let lines = items.filter_map(|item| Some(line(&item.object()?, id, longest))).collect();
        let next = result.get("nextCursor").and_then(Json::as_str).map(Cow::into_owned);
        Self { lines, next }
    }

    /// Keeps the lines that contain `query`, whatever the case.
    pub(super) fn matching(mut self, query: Option<&str>) -> Self {
        if let Some(query) = query.map(str::to_lowercase) {
            self.lines.retain(|line| line.to_lowercase().contains(&query));
        }
        self
    }

    /// The text for the model.
    pub(super) fn text(mut self, query: Option<&str>) -> String {
        if self.lines.is_empty() {
            let place = if self.next.is_some() { " on this page" } else { "" };
            self.lines.push(match query {
                Some(query) => format!("No resource{place} contains {query:?}."),
                None => format!("There are no resources{place}."),
            });
        }
        if let Some(next) = &self.next {
            self.lines.push(format!("More: call {LIST} with cursor {next:?}"));
        }
        self.lines.join("\n")
    }
}

/// `URI | name | type | size | description`, without what is absent.
fn line(item: &JsonMembers<'_>, id: &str, longest: usize) -> String {
    let text = |name: &str| item.get(name).and_then(Json::as_str);
    let uri = text(id).unwrap_or_default();
    let name = text("name").filter(|name| *name != uri);
    let size = item.get("size").and_then(Json::as_u64).map(|size| Cow::Owned(format!("{size} bytes")));
    let parts = [name, text("mimeType"), size, text("description")];
    let mut line = uri.into_owned();
    for part in parts.into_iter().flatten() {
        line.push_str(" | ");
        line.extend(part.chars().map(|char| if char.is_control() { ' ' } else { char }));
    }
    match line.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

impl TextRange {
    /// Parses `FIRST-LAST` or `FIRST:CHARACTER-LAST`, all counted from 1.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (begin, last) = text.split_once('-')?;
        let (first, character) = begin.split_once(':').unwrap_or((begin, "1"));
        let range = Self { first: number(first)?, skip: number(character)? - 1, last: number(last)? };
        (range.first <= range.last).then_some(range)
    }
}

/// A number from 1, in up to 9 digits.
fn number(text: &str) -> Option<usize> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number > 0)
}

/// The contents of the resource at `uri` as blocks, or the part of their lines in `range`: at most `limit` characters
/// of text, then a block that says how to get the rest, with the URI if it is `named`. The lines of several texts are
/// counted together.
///
/// # Errors
/// A sentence for the model.
pub(super) fn blocks<'a>(
    result: &JsonMembers<'a>,
    uri: &str,
    named: Option<&str>,
    range: Option<TextRange>,
    limit: usize,
) -> Result<ToolResult<'a>, String> {
    let contents: Vec<Contents<'a>> =
        result.get("contents").and_then(Json::array).into_iter().flatten().filter_map(entry).collect();
    let total: usize = contents.iter().filter_map(|entry| entry.body.as_text()).map(count_lines).sum();
    let range = match range {
        Some(_) if total == 0 => return Err(format!("{uri} has no lines: call {READ} without range")),
        Some(range) if range.first > total => {
            return Err(format!(r#"range is "FIRST-LAST": {uri} has the lines 1-{total}"#));
        }
        range => range,
    };
    let wanted = range.unwrap_or(TextRange { first: 1, skip: 0, last: usize::MAX });
    let mut cut =
        TextCut { wanted: TextRange { last: wanted.last.min(total), ..wanted }, room: limit, next: None };
    let mut before = 0;
    let mut blocks = Vec::with_capacity(contents.len() + 1);
    for entry in contents {
        let Some(text) = entry.body.as_text() else {
            if range.is_none() {
                blocks.push(ContentBlock::from_contents(entry, uri));
            }
            continue;
        };
        if let Some(part) = cut.part(text, before) {
            blocks.push(ContentBlock::text(part));
        }
        before += count_lines(text);
    }
    if let Some(hint) = cut.hint(total, named) {
        blocks.push(ContentBlock::text(hint));
    }
    Ok(ToolResult::new(blocks))
}

/// One entry of the contents, borrowed from the response.
fn entry<'a>(entry: Json<'a>) -> Option<Contents<'a>> {
    let members = entry.object()?;
    let text = |name: &str| members.get(name).and_then(Json::as_str);
    let body = match (text("text"), text("blob")) {
        (Some(text), _) => Body::Text(text),
        (None, Some(blob)) => Body::Base64(blob),
        _ => return None,
    };
    Some(Contents { uri: text("uri"), mime_type: text("mimeType"), body, meta: None })
}

fn count_lines(text: &str) -> usize {
    1 + text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The texts of a resource that are still wanted, and the room for them.
struct TextCut {
    wanted: TextRange,
    /// Characters.
    room: usize,
    /// The line where the next part begins, and the characters of it that were shown.
    next: Option<(usize, usize)>,
}

impl TextCut {
    /// The wanted part of a text whose first line has the number `before + 1`. `None` if nothing of it is wanted, or
    /// the room is used up.
    fn part(&mut self, text: &str, before: usize) -> Option<String> {
        let wanted = self.wanted;
        if self.next.is_some() || wanted.last <= before || wanted.first > before + count_lines(text) {
            return None;
        }
        let mut part = String::new();
        for (line, number) in text.split('\n').zip(before + 1..=wanted.last) {
            if number < wanted.first {
                continue;
            }
            let skip = if number == wanted.first { wanted.skip } else { 0 };
            let rest = line.char_indices().nth(skip).map_or("", |(at, _)| line.get(at..).unwrap_or_default());
            // A text that ends with a line break keeps it, because an empty line follows.
            let is_begun = number > wanted.first.max(before + 1);
            let length = rest.chars().count() + usize::from(is_begun);
            if length > self.room {
                let shown = if is_begun { 0 } else { self.room };
                let end = rest.char_indices().nth(shown).map_or(rest.len(), |(at, _)| at);
                part.push_str(rest.get(..end).unwrap_or_default());
                self.next = Some((number, if shown == 0 { 0 } else { skip + shown }));
                return Some(part).filter(|_| is_begun || shown > 0);
            }
            self.room -= length;
            if is_begun {
                part.push('\n');
            }
            part.push_str(rest);
        }
        Some(part)
    }

    /// The text that says how to get the lines after these, out of `total`.
    fn hint(&self, total: usize, named: Option<&str>) -> Option<String> {
        let TextRange { first, last, .. } = self.wanted;
        let (line, shown) = match self.next {
            Some(next) => next,
            None if last < total => (last + 1, 0),
            None => return None,
        };
        let count = (line - first).max(1);
        let end = (line + count - 1).min(total);
        let with = named.map_or_else(|| "range".to_owned(), |uri| format!("uri {uri:?} and range"));
        Some(if shown == 0 {
            let before = grouped(line.saturating_sub(1));
            format!(
                r#"Cut after line {before} of {}: call {READ} with {with} "{line}-{end}""#,
                grouped(total)
            )
        } else {
            let character = shown + 1;
            format!(
                r#"Cut within line {} of {}: call {READ} with {with} "{line}:{character}-{end}""#,
                grouped(line),
                grouped(total)
            )
        })
    }
}

/// A number with commas between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::BlockKind;
    use serde_json::{Value, json};

    fn read(contents: &Value, range: Option<&str>, limit: usize) -> Result<Vec<String>, String> {
        let response = json!({ "jsonrpc": "2.0", "id": 0, "result": { "contents": contents } }).to_string();
        let result = answered(response.as_bytes()).unwrap();
        let range = range.map(|range| TextRange::parse(range).unwrap());
        let shown = |block: ContentBlock<'_>| match block.kind {
            BlockKind::Text(text) => text.into_owned(),
            BlockKind::Image(..) => "image".into(),
            BlockKind::Embedded(_) => "embedded".into(),
            _ => "other".into(),
        };
        Ok(blocks(&result, "a:b", None, range, limit)?.content.into_iter().map(shown).collect())
    }

    fn text(text: &str) -> Value {
        json!([{ "uri": "a:b", "mimeType": "text/plain", "text": text }])
    }

    #[test]
    fn ranges() {
        let range = |first, skip, last| Some(TextRange { first, skip, last });
        assert_eq!(TextRange::parse("813-1624"), range(813, 0, 1624));
        assert_eq!(TextRange::parse("5:40001-9"), range(5, 40_000, 9));
        for wrong in ["", "1", "0-1", "2-1", "1-", "-1", "1:0-2", "a-b", "1-2-3", "+1-2", "1-9999999999"] {
            assert_eq!(TextRange::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_lines() {
        let whole = (1..=3_000).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
        let blocks = read(&text(&whole), None, 100).unwrap();
        assert_eq!(blocks.len(), 2);
        assert!(blocks[0].ends_with("line 13"), "{blocks:?}");
        assert_eq!(blocks[1], r#"Cut after line 13 of 3,000: call read_resource with range "14-26""#);
        assert_eq!(read(&text("a\nb\nc"), Some("3-9"), 9).unwrap(), ["c"]);
        let asked = read(&text("a\nb\nc"), Some("1-2"), 9).unwrap();
        assert_eq!(asked, ["a\nb", r#"Cut after line 2 of 3: call read_resource with range "3-3""#]);
    }

    /// Follows the ranges that the texts name; together they are the resource.
    fn followed(whole: &str, limit: usize) -> String {
        let mut range: Option<String> = None;
        let mut together = String::new();
        for _ in 0..100_000 {
            let mut blocks = read(&text(whole), range.as_deref(), limit).unwrap();
            let hint = blocks.iter().position(|block| block.starts_with("Cut ")).map(|at| blocks.remove(at));
            let begins_line = range.as_ref().is_some_and(|range| !range.contains(':'));
            if begins_line {
                together.push('\n');
            }
            together.push_str(&blocks.concat());
            let Some(hint) = hint else { return together };
            range = hint.rsplit('"').nth(1).map(str::to_owned);
        }
        panic!("no end: {range:?}");
    }

    // S-62: the union of the ranges is the resource, whatever its lines.
    #[test]
    fn the_ranges_together_are_the_resource() {
        for whole in
            ["", "a", "\n", "\n\n\n", "a\nb", "a\n", "ä\r\nöö\nü\n\n", "0123456789\nabc\n0123456789x"]
        {
            for limit in 1..25 {
                assert_eq!(followed(whole, limit), whole, "{whole:?} at {limit}");
            }
        }
    }

    #[test]
    fn bytes_have_no_lines() {
        let image = json!([{ "uri": "a:b", "mimeType": "image/png", "blob": "AA==" }, { "uri": "a:c", "blob": "AA==" }]);
        assert_eq!(read(&image, None, 9).unwrap(), ["image", "embedded"]);
        assert_eq!(
            read(&image, Some("1-2"), 9).unwrap_err(),
            "a:b has no lines: call read_resource without range"
        );
        assert_eq!(
            read(&text("a"), Some("2-3"), 9).unwrap_err(),
            r#"range is "FIRST-LAST": a:b has the lines 1-1"#
        );
    }

    #[test]
    fn lines_of_a_list() {
        let response = json!({ "result": { "nextCursor": "c\"", "resources": [
            { "uri": "a:b", "name": "a:b" },
            { "uri": "a:c", "name": "c", "mimeType": "text/plain", "size": 7, "description": "two\nlines" } ] } });
        let response = response.to_string();
        let page = || LinePage::new(&answered(response.as_bytes()).unwrap(), "resources", "uri", 100);
        let lines = "a:b\na:c | c | text/plain | 7 bytes | two lines\n";
        let more = r#"More: call list_resources with cursor "c\"""#;
        assert_eq!(page().text(None), format!("{lines}{more}"));
        assert_eq!(page().matching(Some("TWO")).text(Some("TWO")).lines().count(), 2);
        let none = page().matching(Some("zz")).text(Some("zz"));
        assert_eq!(none, format!("No resource on this page contains \"zz\".\n{more}"));
        assert_eq!(LinePage::default().text(None), "There are no resources.");
    }
}
