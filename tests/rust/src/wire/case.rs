//! The files of cases, and the runs that each case stands for.

use crate::vectors;
use mcp_resources_engine::version::Revision;
use serde_json::{Map, Value, json};
use std::fmt;
use std::fs;

/// One run of one case: under one revision, or under none when its steps say all.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) revision: Option<Revision>,
    members: Map<String, Value>,
}

impl Case {
    pub(crate) fn catalog(&self) -> Value {
        let name = self.members.get("catalog").and_then(Value::as_str).unwrap_or("basic");
        let mut catalog = read(&format!("catalog/{name}.json"));
        let given = self.members.get("options").and_then(Value::as_object);
        for (name, value) in given.into_iter().flatten() {
            catalog["options"][name] = value.clone();
        }
        catalog
    }

    pub(crate) fn capabilities(&self) -> Value {
        self.members.get("capabilities").cloned().unwrap_or_else(|| json!({}))
    }

    /// A member of the case; null if it is not there.
    pub(crate) fn member(&self, name: &str) -> &Value {
        self.members.get(name).unwrap_or(&Value::Null)
    }

    pub(crate) fn peer(&self) -> &str {
        self.members.get("peer").and_then(Value::as_str).unwrap_or("stdio")
    }

    /// Whether the run begins with a handshake.
    pub(crate) fn handshake(&self) -> bool {
        self.is_legacy() && self.members.get("handshake") != Some(&Value::Bool(false))
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.revision.is_some_and(|revision| !revision.is_modern())
    }

    pub(crate) fn steps(&self) -> Vec<Value> {
        let mut steps = Vec::new();
        unroll(self.members["steps"].as_array().expect("steps is a list"), &mut steps);
        steps
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.name)?;
        self.revision.map_or(Ok(()), |revision| write!(f, " [{revision}]"))
    }
}

/// Every run of every case of a folder, in the order of files, cases and revisions.
pub(crate) fn all(folder: &str) -> Vec<Case> {
    let name = folder;
    let folder = vectors::project().join("tests/fixtures").join(folder);
    let entries = fs::read_dir(folder).expect("the fixtures are there");
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    files.sort();
    files.iter().flat_map(|file| runs(file, &read(&format!("{name}/{file}")))).collect()
}

pub(crate) fn read(path: &str) -> Value {
    let text = fs::read_to_string(vectors::project().join("tests/fixtures").join(path));
    let text = text.unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn runs(file: &str, content: &Value) -> Vec<Case> {
    let mut defaults = content.as_object().expect("a file is an object").clone();
    let cases = defaults.remove("cases").expect("a file has cases");
    let mut runs = Vec::new();
    for case in cases.as_array().expect("cases is a list") {
        let mut members = defaults.clone();
        members.extend(case.as_object().expect("a case is an object").clone());
        let name = members["name"].as_str().expect("a case has a name").to_owned();
        for revision in revisions(members.get("revisions")) {
            runs.push(Case { file: file.to_owned(), name: name.clone(), revision, members: members.clone() });
        }
    }
    runs
}

/// Oldest first.
fn revisions(given: Option<&Value>) -> Vec<Option<Revision>> {
    let is_given = |revision: &Revision| match given {
        Some(Value::String(word)) => match word.as_str() {
            "all" => true,
            "legacy" => !revision.is_modern(),
            "modern" => revision.is_modern(),
            _ => panic!("{word}: all, legacy, modern or a list"),
        },
        Some(dates) => {
            dates.as_array().is_some_and(|dates| dates.iter().any(|date| date == revision.as_str()))
        }
        None => false,
    };
    match given {
        None => vec![None],
        Some(_) => Revision::ALL.into_iter().rev().filter(is_given).map(Some).collect(),
    }
}

fn unroll(given: &[Value], steps: &mut Vec<Value>) {
    for step in given {
        match step["repeat"].as_u64() {
            Some(times) => (0..times).for_each(|_| unroll(step["steps"].as_array().unwrap(), steps)),
            None => steps.push(step.clone()),
        }
    }
}
