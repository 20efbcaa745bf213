//! Runs cases of the format in `tests/fixtures/match/README.md` through the crate.

use mcp_resources_template::{
    ExtraQuery, Lookup, MatchedParams, TemplateOptions, TemplateSet, UriTemplate, Value, VariableOptions,
};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The result of a file of cases.
#[derive(Debug, Default)]
pub struct Report {
    /// How many cases gave what they ask for.
    pub passed: usize,
    /// A line for each case that did not.
    pub failures: Vec<String>,
}

/// Runs all cases of a file, each in both orders of registration.
///
/// # Errors
/// A sentence, if `text` is not of the format.
pub fn run(text: &str) -> Result<Report, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut report = Report::default();
    for case in &file.cases {
        match case.check() {
            Ok(()) => report.passed += 1,
            Err(failure) => report.failures.push(format!("{}: {failure}", case.id)),
        }
    }
    Ok(report)
}

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    template: Option<String>,
    templates: Option<Vec<String>>,
    uri: Option<String>,
    outcome: String,
    expect: Option<Expect>,
    var: Option<String>,
    why: Option<String>,
    #[serde(default)]
    opts: Options,
}

#[derive(Deserialize)]
struct Expect {
    template: String,
    vars: Map<String, Json>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    vars: BTreeMap<String, VariableWords>,
    extra_query: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableWords {
    kind: Option<String>,
    policy: Option<String>,
    #[serde(default)]
    empty: bool,
    chars: Option<String>,
}

/// The outcome of a case, in the format of the file.
#[derive(Debug, PartialEq)]
enum Outcome {
    Match { template: String, vars: Map<String, Json> },
    Rejected { var: String, why: String },
    Other(&'static str),
}

impl Case {
    fn check(&self) -> Result<(), String> {
        let mut texts: Vec<&str> =
            self.templates.iter().flatten().chain(&self.template).map(String::as_str).collect();
        let options = self.opts.read().map_err(|error| format!("bad option: {error}"))?;
        for order in ["given", "reversed"] {
            let got = self.run(&texts, &options);
            if !self.expects(&got) {
                let uri = &self.uri;
                let outcome = &self.outcome;
                return Err(format!(
                    "{texts:?} on {uri:?} in {order} order: expected {outcome}, got {got:?}"
                ));
            }
            texts.reverse();
        }
        Ok(())
    }

    fn expects(&self, got: &Outcome) -> bool {
        match got {
            Outcome::Match { template, vars } => {
                let expected = self.expect.as_ref().map(|expect| (&expect.template, &expect.vars));
                self.outcome == "match" && expected == Some((template, vars))
            }
            Outcome::Rejected { var, why } => {
                let agrees =
                    |expected: &Option<String>, got| expected.as_ref().is_none_or(|expected| expected == got);
                self.outcome == "rejected" && agrees(&self.var, var) && agrees(&self.why, why)
            }
            Outcome::Other(word) => self.outcome == *word,
        }
    }

    fn run(&self, texts: &[&str], options: &TemplateOptions) -> Outcome {
        let templates: Result<Vec<_>, _> =
            texts.iter().map(|text| UriTemplate::with_options(text, options)).collect();
        let Ok(templates) = templates else { return Outcome::Other("invalid_template") };
        let Ok(set) = TemplateSet::new(templates.clone()) else { return Outcome::Other("conflict") };
        let Some(uri) = &self.uri else { return Outcome::Other("registered") };
        let Ok(lookup) = set.match_uri(uri) else { return Outcome::Other("invalid_uri") };
        if let [alone] = &templates[..]
            && alone.match_uri(uri).as_ref() != Ok(&lookup)
        {
            return Outcome::Other("something else without an index");
        }
        match lookup {
            Lookup::Match { index, params } => {
                Outcome::Match { template: texts[index].to_owned(), vars: json(&params) }
            }
            Lookup::Rejected { variable, why, .. } => {
                Outcome::Rejected { var: variable.to_string(), why: why.as_str().to_owned() }
            }
            Lookup::None { exhausted: false } => Outcome::Other("none"),
            Lookup::None { exhausted: true } => Outcome::Other("exhausted"),
        }
    }
}

impl Options {
    fn read(&self) -> Result<TemplateOptions, String> {
        let mut options = TemplateOptions::default();
        for (name, words) in &self.vars {
            let variable = VariableOptions {
                kind: word(words.kind.as_deref())?,
                policy: word(words.policy.as_deref())?,
                empty: words.empty,
                chars: word(words.chars.as_deref())?.unwrap_or_default(),
            };
            options.variables.insert(name.clone(), variable);
        }
        options.extra_query = word::<ExtraQuery>(self.extra_query.as_deref())?.unwrap_or_default();
        Ok(options)
    }
}

fn word<T: FromStr<Err: ToString>>(word: Option<&str>) -> Result<Option<T>, String> {
    word.map(str::parse).transpose().map_err(|error: T::Err| error.to_string())
}

fn json(params: &MatchedParams<'_>) -> Map<String, Json> {
    let value = |value: &Value<'_>| match value {
        Value::Scalar(text) => Json::from(text.as_ref()),
        Value::List(items) => items.iter().map(|item| Json::from(item.as_ref())).collect(),
        Value::Map(pairs) => Json::Object(
            pairs.iter().map(|(key, value)| (key.to_string(), Json::from(value.as_ref()))).collect(),
        ),
    };
    params.iter().map(|(name, found)| (name.to_owned(), value(found))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_passes() {
        let report = run(include_str!("../../fixtures/match/corpus.json")).unwrap();
        assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
        assert!(report.passed >= 327);
    }

    /// The runner has to be able to fail.
    #[test]
    fn a_wrong_expectation_is_a_failure() {
        for case in [
            r#"{"id":"a","template":"x://{a}","uri":"x://1","outcome":"match","expect":{"template":"x://{a}","vars":{"a":"2"}}}"#,
            r#"{"id":"b","template":"x://{a}","uri":"x://1","outcome":"none"}"#,
            r#"{"id":"c","template":"x://{a}","uri":"x://..","outcome":"rejected","var":"a","why":"Slash"}"#,
            r#"{"id":"d","template":"x://{a}","uri":null,"outcome":"conflict"}"#,
        ] {
            let report = run(&format!(r#"{{"cases":[{case}]}}"#)).unwrap();
            assert_eq!((report.passed, report.failures.len()), (0, 1), "{case}");
        }
        assert!(run("[]").is_err());
    }
}
