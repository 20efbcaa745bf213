//! Runs guard cases of the format in `tests/fixtures/README.md` through the crate.

use mcp_resources_engine::guard::{Decision, Guard, Policy, PolicyError};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::principal::Principal;
use mcp_resources_template::UriTemplate;
use mcp_resources_template::uri::normalize;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of a file of cases.
#[derive(Debug, Default)]
pub struct Report {
    /// How many decisions were as the cases want them.
    pub passed: usize,
    /// A line for each that was not.
    pub failures: Vec<String>,
}

/// Runs all cases of a file.
///
/// # Errors
/// A sentence, if `text` is not of the format.
pub fn run(text: &str) -> Result<Report, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut report = Report::default();
    file.cases.iter().for_each(|case| case.check(&mut report));
    Ok(report)
}

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "covers", default)]
    _covers: Vec<String>,
    policy: serde_json::Value,
    #[serde(default)]
    explicit: bool,
    #[serde(rename = "as", default)]
    who: Who,
    refused: Option<String>,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    hidden: Vec<String>,
    #[serde(default)]
    denied: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
    #[serde(default)]
    missing: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    known: Vec<String>,
    #[serde(default)]
    unknown: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Who {
    principal: String,
    scopes: Vec<String>,
    groups: Vec<String>,
}

impl Case {
    fn check(&self, report: &mut Report) {
        let guard = match (self.compile(), &self.refused) {
            (Err(error), Some(field)) => return report.expect(&self.name, "the policy", &error.field, field),
            (Ok(_), Some(field)) => return report.expect(&self.name, "the policy", "accepted", field),
            (Err(error), None) => {
                return report.expect(&self.name, "the policy", &error.to_string(), "accepted");
            }
            (Ok(guard), None) => guard,
        };
        let who = self.principal();
        for (word, uris) in [("allow", &self.allow), ("hidden", &self.hidden), ("denied", &self.denied)] {
            uris.iter().for_each(|uri| report.expect(&self.name, uri, &decided(&guard, &who, uri), word));
        }
        for uri in &self.never {
            let word = decided(&guard, &who, uri);
            let word = if word == "invalid_uri" { "hidden" } else { &word };
            report.expect(&self.name, uri, word, "hidden");
        }
        for (uri, scopes) in &self.missing {
            let wanted = format!("missing_scope {}", scopes.join(" "));
            report.expect(&self.name, uri, &decided(&guard, &who, uri), &wanted);
        }
        for (word, templates) in [("known", &self.known), ("unknown", &self.unknown)] {
            for text in templates {
                let found = UriTemplate::parse(text).map(|template| guard.knows_template(&who, &template));
                let found = found.map_or_else(
                    |error| error.to_string(),
                    |known| if known { "known".into() } else { "unknown".to_owned() },
                );
                report.expect(&self.name, text, &found, word);
            }
        }
    }

    fn compile(&self) -> Result<Guard, PolicyError> {
        Guard::new(&Policy::from_json(&self.policy.to_string())?, self.explicit)
    }

    fn principal(&self) -> Arc<Principal> {
        Principal::new(&*self.who.principal).with_scopes(&self.who.scopes).with_groups(&self.who.groups)
    }
}

/// The word for what is said of a URI, with the scopes that are missing.
fn decided(guard: &Guard, who: &Principal, uri: &str) -> String {
    let Ok(normal) = normalize(uri, Limits::default().uri) else { return "invalid_uri".into() };
    let decision = guard.decide(who, &normal);
    match &decision {
        Decision::MissingScope { scopes } => format!("{} {}", decision.as_str(), scopes.join(" ")),
        other => other.as_str().into(),
    }
}

impl Report {
    fn expect(&mut self, case: &str, what: &str, got: &str, wanted: &str) {
        if got == wanted {
            self.passed += 1;
        } else {
            self.failures.push(format!("{case}: {what}: expected {wanted}, got {got}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> usize {
        let report = run(text).unwrap();
        assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
        report.passed
    }

    /// S-11.
    #[test]
    fn globs() {
        assert!(passes(include_str!("../../fixtures/guard/globs.json")) > 60);
    }

    /// R-075, R-199, S-12, S-19.
    #[test]
    fn decisions() {
        assert!(passes(include_str!("../../fixtures/guard/decisions.json")) > 60);
    }

    /// S-18: no spelling of a traversal is seen.
    #[test]
    fn hostile_spellings() {
        assert!(passes(include_str!("../../fixtures/guard/hostile.json")) > 300);
    }

    /// The runner has to be able to fail.
    #[test]
    fn a_wrong_expectation_is_a_failure() {
        for case in [
            r#""allow": ["a://b"]"#,
            r#""denied": ["a://b"]"#,
            r#""never": ["c://b"]"#,
            r#""missing": {"a://b": ["x"]}"#,
            r#""known": ["a://{x}"]"#,
            r#""unknown": ["c://{x}"]"#,
            r#""refused": "allow""#,
        ] {
            let text = format!(r#"{{"cases": [{{"name": "x", "policy": {{"allow": "c://*"}}, {case}}}]}}"#);
            let report = run(&text).unwrap();
            assert_eq!((report.passed, report.failures.len()), (0, 1), "{case}");
        }
        assert!(run("[]").is_err());
    }
}
