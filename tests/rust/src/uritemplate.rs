//! The official cases of RFC 6570 expansion (`uritemplate-test`), which are others' files: see `vectors`.

use crate::vectors;
use mcp_resources_template::{Value, Values, expand};
use serde_json::{Map, Value as Json};
use std::path::PathBuf;

/// The directory of the cases, if it is there.
pub fn directory() -> Option<PathBuf> {
    vectors::directory("uritemplate-test")
}

/// Runs the cases of one file; gives how many passed and a line for each other one.
///
/// # Errors
/// A sentence, if `text` is not of the format.
pub fn run(text: &str) -> Result<(usize, Vec<String>), String> {
    let groups: Map<String, Json> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut passed = 0;
    let mut failures = Vec::new();
    for (name, group) in &groups {
        let variables = group["variables"].as_object().ok_or("a group has no variables")?;
        let values: Values<'_> =
            variables.iter().filter_map(|(name, found)| Some((name.as_str(), value(found)?))).collect();
        for case in group["testcases"].as_array().ok_or("a group has no cases")? {
            let template = case[0].as_str().ok_or("a case has no template")?;
            let got = expand(template, &values);
            let passes = match (&case[1], &got) {
                (Json::Bool(false), Err(_)) => true,
                (Json::String(expected), Ok(got)) => expected == got,
                (Json::Array(choices), Ok(got)) => choices.iter().any(|choice| choice == got),
                _ => false,
            };
            if passes {
                passed += 1;
            } else {
                failures.push(format!("{name}: {template:?} should give {}, gave {got:?}", case[1]));
            }
        }
    }
    Ok((passed, failures))
}

fn value(json: &Json) -> Option<Value<'_>> {
    let text = |json: &Json| json.as_str().map_or_else(|| json.to_string(), str::to_owned);
    match json {
        Json::Null => None,
        Json::Array(items) => Some(Value::from(items.iter().map(text).collect::<Vec<_>>())),
        Json::Object(pairs) => Some(
            pairs
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, text(value)))
                .collect(),
        ),
        other => Some(Value::from(text(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_official_cases_pass() {
        let Some(directory) = directory() else {
            crate::vectors::left_out("no cases of uritemplate-test: make setup");
            return;
        };
        let mut total = 0;
        for file in std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "json") {
                let (passed, failures) = run(&std::fs::read_to_string(&file).unwrap()).unwrap();
                assert!(failures.is_empty(), "{}: {}", file.display(), failures.join("\n"));
                total += passed;
            }
        }
        assert!(total >= 200, "only {total} cases");
    }
}
