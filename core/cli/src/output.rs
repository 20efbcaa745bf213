//! Output for terminals and pipes.
//!
//! Law: no control character, terminal escape or bidirectional override from a server reaches a terminal.

use clap::builder::styling::{AnsiColor, Style};
use mcp_resources_engine::connection::{Contents, PlainContents};
use mcp_resources_engine::safe_text::{self, is_unsafe};
use mcp_resources_serve::without_values;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text for one line: characters that control a terminal are written as `\x1b` or `\u{202e}`.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    safe_text::escape(text, |c| is_unsafe(c) || matches!(c, '\n' | '\t'))
}

/// Text of several lines: like [`plain`], but keeps line feeds and tabs.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    safe_text::escape(text, is_unsafe)
}

/// JSON for stdout: on a terminal, the characters that control one are written as JSON escapes, so that it is the same
/// value; a pipe gets it unchanged.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if is_terminal() { safe_text::escape_json(text) } else { Cow::Borrowed(text) }
}

/// Prints one line on stderr: `error: …` or `note: …`.
pub(crate) fn say(what: &str, text: &str) {
    let style = match what {
        "error" => AnsiColor::Red.on_default().bold(),
        "warning" => AnsiColor::Yellow.on_default().bold(),
        _ => AnsiColor::Cyan.on_default(),
    };
    let text = without_values(text);
    hint(&format!("{style}{what}:{style:#} {}\n", plain(&text)));
}

/// Writes text to stderr unchanged, without colours if stderr is not a terminal. Errors are ignored.
pub(crate) fn hint(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Whether stdout is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal at stdout, in columns; `None` if it is not a terminal.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    is_terminal().then_some(if size.ws_col == 0 { 80 } else { usize::from(size.ws_col) })
}

/// A table with its head. To fit into `width`, the widest column except the first is shortened; the
/// first column is a URI, and is kept whole so that it can be copied.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    const GAP: usize = 2;
    let cells = |row: &[String]| row.iter().map(|cell| cell.width()).collect::<Vec<_>>();
    let mut widths: Vec<usize> = head.iter().map(|name| name.len()).collect();
    for row in rows {
        widths.iter_mut().zip(cells(row)).for_each(|(max, width)| *max = (*max).max(width));
    }
    while let Some(over) =
        width.and_then(|width| (widths.iter().sum::<usize>() + GAP * (widths.len() - 1)).checked_sub(width))
    {
        let Some(widest) =
            (1..widths.len()).max_by_key(|&at| widths[at]).filter(|&at| over > 0 && widths[at] > 8)
        else {
            break;
        };
        widths[widest] = widths[widest].saturating_sub(over).max(8);
    }
    let bold = Style::new().bold();
    let mut text = format!("{bold}{}{bold:#}\n", line(head.iter().copied(), &widths));
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str), &widths));
        text.push('\n');
    }
    text
}

fn line<'c>(cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.zip(widths) {
        let cell = shortened(cell, *width);
        let _ = write!(line, "{cell}{}  ", " ".repeat(width.saturating_sub(cell.width())));
    }
    line.truncate(line.trim_end().len());
    line
}

/// The part of a text that fits, with `…` if it was shortened.
fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let own = c.width().unwrap_or(0);
        left.checked_sub(own).map(|rest| left = rest).is_some()
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    Cow::Owned(short)
}

/// A number of bytes in a readable form.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{value:.1} {unit}"),
    }
}

/// The number of bytes of contents.
pub(crate) fn bytes(contents: &[Contents<'_>]) -> u64 {
    let one = |contents: &Contents<'_>| match contents.body.clone().into_plain() {
        Some(PlainContents::Text(text)) => text.len() as u64,
        Some(PlainContents::Blob(bytes)) => bytes.len() as u64,
        None => 0,
    };
    contents.iter().map(one).sum()
}

/// Contents as JSON of the protocol. Those without a URI get `uri`, that of the resource.
pub(crate) fn contents_json(uri: &str, contents: &[Contents<'_>]) -> Value {
    let one = |contents: &Contents<'_>| {
        let mut members = Map::new();
        members.insert("uri".into(), json!(contents.uri.as_deref().unwrap_or(uri)));
        if let Some(mime) = contents.mime_type.as_deref() {
            members.insert("mimeType".into(), json!(mime));
        }
        match contents.body.clone().into_plain() {
            Some(PlainContents::Text(text)) => members.insert("text".into(), json!(text)),
            Some(PlainContents::Blob(bytes)) => members.insert("blob".into(), json!(base64(&bytes))),
            None => None,
        };
        if let Some(meta) = contents.meta.as_deref().and_then(|meta| serde_json::from_str(meta).ok()) {
            members.insert("_meta".into(), meta);
        }
        Value::Object(members)
    };
    contents.iter().map(one).collect()
}

/// The beginning of a text: at most so many bytes, and whole characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Bytes in base64.
pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_terminal_is_left() {
        for (text, one, several) in [
            ("plain é 漢 🦀", "plain é 漢 🦀", "plain é 漢 🦀"),
            ("a\nb\tc\r", r"a\nb\tc\r", "a\nb\tc\\r"),
            ("\u{1b}[31mred\u{1b}]0;x\u{7}", r"\x1b[31mred\x1b]0;x\x07", r"\x1b[31mred\x1b]0;x\x07"),
            ("\u{9b}2J\u{7f}\0", r"\u{9b}2J\x7f\x00", r"\u{9b}2J\x7f\x00"),
            ("\u{202e}exe.txt\u{2066}", r"\u{202e}exe.txt\u{2066}", r"\u{202e}exe.txt\u{2066}"),
        ] {
            assert_eq!((&*plain(text), &*lines(text)), (one, several), "{text:?}");
        }
    }

    #[test]
    fn tables_fit_the_terminal_and_keep_uris_whole() {
        let row = |name: &str| vec!["notes://monday".to_owned(), name.to_owned(), "text/plain".to_owned()];
        let text =
            table(&["URI", "NAME", "TYPE"], &[row("月曜日のメモ、とても長い名前"), row("b")], Some(40));
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.lines().all(|line| line.width() <= 40 && line == line.trim_end()), "{plain}");
        assert!(plain.contains("notes://monday  月曜日") && plain.contains('…'), "{plain}");
        assert!(!table(&["URI", "NAME", "TYPE"], &[row(&"x".repeat(500))], None).contains('…'));
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_250_000, "1.2 MB"), (u64::MAX, "18446744.1 TB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
