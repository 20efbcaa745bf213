//! Which requirement which test cites: every one of `tests/requirements.json` is cited by a test, or says why not.
//!
//! A citation is an entry of `covers` in a fixture, or the number in the text of a test.

use crate::vectors;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const TESTS: [&str; 5] = ["tests/fixtures", "tests/rust/src", "tests/python", "tests/conformance", "core"];

#[test]
fn every_requirement_is_cited_or_says_why_not() {
    let known = requirements();
    let cited = cited();
    let (mut missing, mut stale) = (Vec::new(), Vec::new());
    for (id, untested) in &known {
        match (cited.contains(id), untested) {
            (false, None) => missing.push(id.as_str()),
            (true, Some(_)) => stale.push(id.as_str()),
            _ => {}
        }
    }
    let count = known.keys().filter(|id| cited.contains(*id)).count();
    println!(
        "{count} of {} requirements are cited by a test, {} say why not",
        known.len(),
        known.len() - count
    );
    assert!(missing.is_empty(), "no test cites {missing:?}, and tests/requirements.json does not say why");
    assert!(stale.is_empty(), "a test cites {stale:?}: take `untested` out of tests/requirements.json");
}

/// A citation of a number that does not exist is a slip of the pen.
#[test]
fn fixtures_cite_what_there_is() {
    let known: BTreeSet<_> = requirements().into_keys().collect();
    let mut cited = BTreeSet::new();
    let mut note = |path: &str, text: &str| {
        let file: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        for case in file["cases"].as_array().into_iter().flatten().chain([&file]) {
            cited.extend(
                case["covers"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
            );
        }
    };
    for folder in ["wire", "http"] {
        each_file(&vectors::project().join("tests/fixtures").join(folder), &mut note);
    }
    // Later numbers are of clients.
    let number = |id: &String| id.strip_prefix("R-").and_then(|number| number.parse::<u32>().ok());
    let in_scope = |id: &&String| number(id).is_some_and(|number| number < 210);
    let unknown: Vec<_> = cited.iter().filter(in_scope).filter(|id| !known.contains(*id)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(cited.len() > 200, "{}", cited.len());
}

/// Each requirement, and why no test cites it.
fn requirements() -> BTreeMap<String, Option<String>> {
    let text = fs::read_to_string(vectors::project().join("tests/requirements.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let entries = file["requirements"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    entries.map(|entry| (text(&entry["id"]).unwrap(), text(&entry["untested"]))).collect()
}

/// The numbers in the texts of the tests.
fn cited() -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    for folder in TESTS {
        each_file(&vectors::project().join(folder), &mut |path, text| {
            let text = if path.contains("core") { tests_of(path, text) } else { text };
            for (at, _) in text.match_indices('-') {
                let bytes = text.as_bytes();
                let letters = bytes[..at].iter().rev().take_while(|byte| byte.is_ascii_uppercase()).count();
                let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let start = at - letters;
                if matches!(&bytes[start..at], b"R" | b"DEC" | b"S" | b"X") && digits >= 2 {
                    cited.insert(text[start..=at + digits].to_owned());
                }
            }
        });
    }
    cited
}

/// The part of a source file that is tests.
fn tests_of<'t>(path: &str, text: &'t str) -> &'t str {
    if path.ends_with("tests.rs") || path.contains("/tests/") {
        return text;
    }
    let mut modules = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| &text[at..]);
    modules.find(|rest| rest.lines().nth(1).is_some_and(|line| line.ends_with('{'))).unwrap_or_default()
}

fn each_file(folder: &Path, look: &mut dyn FnMut(&str, &str)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.strip_prefix(vectors::project()).unwrap_or(&path).to_string_lossy().into_owned();
        let is_source = [".json", ".rs", ".py"].iter().any(|ending| name.ends_with(ending));
        if path.is_dir() {
            each_file(&path, look);
        } else if is_source && let Ok(text) = fs::read_to_string(&path) {
            look(&name, &text);
        }
    }
}
