//! Entries of a YAML file, edited by lines.
//!
//! The lines are those of a mapping in block style, as programs write it. For any other form the result is wrong, and the
//! caller, which parses it, refuses it.

use jsonc_parser::cst::CstInputValue;
use std::fmt::Write;
use std::ops::Range;

/// The spaces before each entry of a file that has none.
const INDENT: usize = 2;

pub(super) fn with_entry(text: &str, key: &str, name: &str, entry: &CstInputValue) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(head) = head(&lines, key) else {
        let mut text = ended(text);
        let _ = writeln!(text, "{key}:");
        return text + &block(name, entry, INDENT);
    };
    let body = body(&lines, head);
    let indent = lines[body.clone()].iter().find(|line| is_content(line)).map_or(INDENT, |line| width(line));
    let own = entry_lines(&lines, body.clone(), indent, name);
    let place = own.clone().unwrap_or(body.end..body.end);
    let mut text: String = lines[..head].concat();
    match value_of(lines[head]) {
        // An empty mapping on the line of the key gives way to a block.
        "{}" => drop(writeln!(text, "{key}:")),
        _ => text.push_str(lines[head]),
    }
    text.push_str(&lines[head + 1..place.start].concat());
    ended(&text) + &block(name, entry, indent) + &lines[place.end..].concat()
}

pub(super) fn without_entry(text: &str, key: &str, name: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(head) = head(&lines, key) else { return text.into() };
    let body = body(&lines, head);
    let indent = lines[body.clone()].iter().find(|line| is_content(line)).map_or(INDENT, |line| width(line));
    let body_end = body.end;
    let Some(own) = entry_lines(&lines, body, indent, name) else { return text.into() };
    let others = [&lines[head + 1..own.start], &lines[own.end..body_end]].concat();
    let head_line = match lines[head].split_once(':') {
        // A key without a value is null, which is no mapping.
        Some((key, comment)) if !others.iter().any(|line| is_content(line)) => {
            format!("{key}: {{}}{comment}")
        }
        _ => lines[head].into(),
    };
    lines[..head].concat() + &head_line + &others.concat() + &lines[body_end..].concat()
}

/// The line of the key, at the left edge.
fn head(lines: &[&str], key: &str) -> Option<usize> {
    lines.iter().position(|line| key_of(line) == Some(key) && width(line) == 0)
}

/// The lines below the key, without the comments and empty lines after the last entry.
fn body(lines: &[&str], head: usize) -> Range<usize> {
    let rest = &lines[head + 1..];
    let length = rest.iter().position(|line| is_content(line) && width(line) == 0).unwrap_or(rest.len());
    let length = rest[..length].iter().rposition(|line| is_content(line)).map_or(0, |last| last + 1);
    head + 1..head + 1 + length
}

/// The lines of one entry, with the comments in it.
fn entry_lines(lines: &[&str], body: Range<usize>, indent: usize, name: &str) -> Option<Range<usize>> {
    let start = body.clone().find(|&at| width(lines[at]) == indent && key_of(lines[at]) == Some(name))?;
    let next = (start + 1..body.end).find(|&at| is_content(lines[at]) && width(lines[at]) <= indent);
    // Comments in front of the next entry belong to that.
    let end = next.map_or(body.end, |next| {
        let is_own = |at: &usize| is_content(lines[*at]) || width(lines[*at]) > indent;
        (start..next).rev().find(is_own).map_or(next, |last| last + 1)
    });
    Some(start..end)
}

fn width(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#')
}

fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.trim_start_matches(' ').split_once(':')?;
    let quoted = |quote: char| key.strip_prefix(quote).and_then(|key| key.strip_suffix(quote));
    Some(quoted('"').or_else(|| quoted('\'')).unwrap_or(key))
}

/// The value on the line of a key, without a comment.
fn value_of(line: &str) -> &str {
    let value = line.split_once(':').map_or("", |(_, value)| value);
    value.split(" #").next().unwrap_or_default().trim()
}

fn ended(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.into(),
        false => format!("{text}\n"),
    }
}

/// One key with its value, as lines.
fn block(name: &str, value: &CstInputValue, indent: usize) -> String {
    let space = " ".repeat(indent);
    match value {
        CstInputValue::Object(all) if !all.is_empty() => {
            let inner: String = all.iter().map(|(name, value)| block(name, value, indent + INDENT)).collect();
            format!("{space}{}:\n{inner}", key(name))
        }
        other => format!("{space}{}: {}\n", key(name), flow(other)),
    }
}

/// A value on one line. JSON texts are YAML.
fn flow(value: &CstInputValue) -> String {
    match value {
        CstInputValue::Null => "null".into(),
        CstInputValue::Bool(is) => is.to_string(),
        CstInputValue::Number(text) => text.clone(),
        CstInputValue::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        CstInputValue::Array(all) => format!("[{}]", all.iter().map(flow).collect::<Vec<_>>().join(", ")),
        CstInputValue::Object(all) => {
            let member = |(name, value): &(String, CstInputValue)| format!("{}: {}", key(name), flow(value));
            format!("{{{}}}", all.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A key: plain where no reader could take it for anything but a text.
fn key(name: &str) -> String {
    let is_word = |word: &str| {
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&word.to_lowercase().as_str())
    };
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !is_word(name);
    match is_plain {
        true => name.into(),
        false => serde_json::Value::from(name).to_string(),
    }
}
