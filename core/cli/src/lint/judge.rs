//! Finds mistakes in the collected data. Pure: sends nothing to the server.

use super::gather::{AbsentUri, GatheredList, ListEnd, ListPart, SeenResource};
use mcp_resources_template::uri::{MAX_URI, normalize};
use mcp_resources_template::{LintKind, TemplateSet, UriTemplate};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The error code for a failure of the server itself.
const FAILED: i64 = -32603;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// A client fails, or the protocol is broken.
    Error,
    /// A client may be misled.
    Warning,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One finding.
#[derive(Debug)]
pub(super) struct Finding {
    pub severity: Severity,
    /// A stable identifier of the rule.
    pub rule: &'static str,
    /// The URI, the template or the list.
    pub subject: String,
    /// The mistake.
    pub what: String,
    /// The fix.
    pub fix: String,
}

/// Mistakes in the order in which they were found.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, rule: &'static str, subject: &str, what: impl Into<String>, fix: &str) {
        self.add(Severity::Error, rule, subject, what.into(), fix);
    }

    fn warning(&mut self, rule: &'static str, subject: &str, what: impl Into<String>, fix: &str) {
        self.add(Severity::Warning, rule, subject, what.into(), fix);
    }

    fn add(&mut self, severity: Severity, rule: &'static str, subject: &str, what: String, fix: &str) {
        self.0.push(Finding { severity, rule, subject: subject.into(), what, fix: fix.into() });
    }
}

/// All mistakes.
pub(super) fn all(seen: &SeenResource) -> Vec<Finding> {
    let mut found = Findings::default();
    ends("resources/list", &seen.resources, &mut found);
    ends("resources/templates/list", &seen.templates, &mut found);
    entries("uri", &seen.resources.items, &mut found);
    entries("uriTemplate", &seen.templates.items, &mut found);
    resources(&seen.resources.items, &mut found);
    templates(&seen.templates.items, &mut found);
    reads(seen, &mut found);
    absent(seen, &mut found);
    for (template, count, why) in &seen.unreadable {
        let what = format!("none of {count} completed values can be read: {why}");
        found.warning("unreadable-template", template, what, "complete only what can be read");
    }
    for (template, variable, why) in &seen.completions {
        let what = format!("the completion of {variable:?} fails: {why}");
        found.error(
            "completion-fails",
            template,
            what,
            "answer with an empty list where there is nothing to offer",
        );
    }
    found.0
}

fn ends(method: &str, listed: &GatheredList, found: &mut Findings) {
    let count = listed.count;
    match &listed.end {
        ListEnd::Whole => {}
        ListEnd::Endless => found.warning(
            "endless-list",
            method,
            format!("the list goes on after {count} entries"),
            "send the last page without nextCursor, and list what is numerous with a template",
        ),
        ListEnd::Repeats(cursor) => {
            let shown: String = cursor.chars().take(100).collect();
            let what = format!("nextCursor {shown:?} came twice: a client would ask for ever");
            found.error(
                "repeated-cursor",
                method,
                what,
                "send a cursor that leads on, and none with the last page",
            );
        }
        ListEnd::OddCursor => {
            found.error("odd-cursor", method, "nextCursor is not a string", "send a string, or leave it out")
        }
        ListEnd::NoList => found.error(
            "no-list",
            method,
            "the result has no array of entries",
            "send an empty array for none",
        ),
    }
}

/// The rules for both resources and templates. `key` is the member that identifies an entry.
fn entries(key: &str, items: &[Value], found: &mut Findings) {
    for (index, item) in items.iter().enumerate() {
        let place = format!("{key} of entry {index}");
        let Some(subject) = item.get(key).and_then(Value::as_str) else {
            found.error(
                "odd-entry",
                &place,
                format!("the entry has no text {key:?}"),
                "send one, or leave the entry out",
            );
            continue;
        };
        match item.get("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => {}
            Some(Value::String(_)) => {
                found.warning("empty-name", subject, "the name is empty", "give it a name for people")
            }
            Some(_) => found.error("odd-entry", subject, "\"name\" is not a string", "send a string"),
            None => found.error(
                "missing-name",
                subject,
                "it has no \"name\", which every revision requires",
                "give it a name",
            ),
        }
        for (member, what) in odd_members(item) {
            let what = format!("{member:?} is not {what}");
            found.error("odd-entry", subject, what, "send a value of that type, or leave it out");
        }
    }
}

/// Members whose values the protocol does not allow.
fn odd_members(item: &Value) -> Vec<(&'static str, &'static str)> {
    let mut odd = Vec::new();
    let mut check = |name, what, is_right: &dyn Fn(&Value) -> bool| {
        if item.get(name).is_some_and(|value| !is_right(value)) {
            odd.push((name, what));
        }
    };
    for name in ["description", "title", "mimeType"] {
        check(name, "a string", &Value::is_string);
    }
    check("size", "a whole number of bytes", &Value::is_u64);
    check("_meta", "an object", &Value::is_object);
    check("icons", "an array", &Value::is_array);
    check("annotations", "an object with known values", &|value| {
        let is_right = |(key, value): (&String, &Value)| match key.as_str() {
            "priority" => value.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)),
            "audience" => value.as_array().is_some_and(|audience| {
                audience.iter().all(|role| matches!(role.as_str(), Some("user" | "assistant")))
            }),
            "lastModified" => value.is_string(),
            _ => true,
        };
        value.as_object().is_some_and(|members| members.iter().all(is_right))
    });
    odd
}

fn resources(items: &[Value], found: &mut Findings) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for uri in items.iter().filter_map(|item| item.get("uri")?.as_str()) {
        let normal = match normalize(uri, MAX_URI) {
            Ok(normal) => normal.into_owned(),
            Err(error) => {
                found.error(
                    "invalid-uri",
                    uri,
                    error.to_string(),
                    "percent-encode what a URI does not allow",
                );
                continue;
            }
        };
        if let Some(first) = seen.insert(normal, uri) {
            let what = match first == uri {
                true => "it is listed twice".to_owned(),
                false => format!("it is the same URI as {first:?}, spelled differently"),
            };
            found.error("duplicate-uri", uri, what, "list it once");
        }
    }
}

fn templates(items: &[Value], found: &mut Findings) {
    let mut parsed: Vec<UriTemplate> = Vec::new();
    for text in items.iter().filter_map(|item| item.get("uriTemplate")?.as_str()) {
        match UriTemplate::parse(text) {
            Ok(template) => parsed.push(template),
            Err(error) => {
                let what = format!("{} at offset {}", error.reason, error.offset);
                found.error("invalid-template", text, what, "write it as RFC 6570 does");
            }
        }
    }
    let set = loop {
        match TemplateSet::new(parsed.iter().cloned()) {
            Ok(set) => break set,
            Err(conflict) => {
                let what = format!("it matches the same URIs as {:?}", conflict.with);
                found.error(
                    "dead-template",
                    &conflict.template,
                    what,
                    "remove one of them, or make them differ",
                );
                parsed.remove(conflict.index);
            }
        }
    };
    for lint in set.lints() {
        match lint.kind {
            LintKind::Shadowed => {
                found.error(
                    "shadowed-template",
                    &lint.template,
                    format!("it never matches: {}", lint.message),
                    "make one of them narrower",
                );
            }
            _ => found.warning(
                "unclear-template",
                &lint.template,
                lint.message,
                "change the template, or ignore this if it is meant",
            ),
        }
    }
}

fn reads(seen: &SeenResource, found: &mut Findings) {
    let mut entries: HashMap<&str, &Value> = HashMap::new();
    for item in &seen.resources.items {
        if let Some(uri) = item.get("uri").and_then(Value::as_str) {
            entries.entry(uri).or_insert(item);
        }
    }
    for reading in &seen.reads {
        let uri = &reading.uri;
        match &reading.outcome {
            // Reported by another rule.
            Err(_) if normalize(uri, MAX_URI).is_err() => {}
            Err(why) => {
                let what = format!("it is listed, but cannot be read: {why}");
                found.error("unreadable", uri, what, "leave out of the list what cannot be read");
            }
            Ok(parts) if parts.is_empty() => {
                found.error(
                    "no-contents",
                    uri,
                    "a read gives no contents",
                    "answer not found for what does not exist",
                );
            }
            Ok(parts) => agree(uri, entries.get(uri.as_str()).copied(), parts, found),
        }
    }
}

/// Compares the description in the list with a read.
fn agree(uri: &str, entry: Option<&Value>, parts: &[ListPart], found: &mut Findings) {
    let member = |name| entry.and_then(|entry| entry.get(name));
    // With several contents, none need have the type or size of the whole.
    let [part] = parts else { return };
    // The same holds for the only child of a directory, which has its own URI.
    if part.uri.as_deref().is_some_and(|own| !is_same(own, uri)) {
        return;
    }
    let essence = |mime: &str| mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if let (Some(listed), Some(read)) =
        (member("mimeType").and_then(Value::as_str), part.mime_type.as_deref())
        && essence(listed) != essence(read)
    {
        let what = format!("the list says {listed:?}, a read says {read:?}");
        found.warning("mime-type-differs", uri, what, "give both the same mimeType");
    }
    if let Some(listed) = member("size").and_then(Value::as_u64)
        && listed != part.size
    {
        let what = format!("the list says {listed} bytes, a read gives {}", part.size);
        found.warning("size-differs", uri, what, "list the number of bytes, or leave the size out");
    }
}

/// Whether two URIs are spellings of one.
fn is_same(one: &str, other: &str) -> bool {
    one == other
        || matches!((normalize(one, MAX_URI), normalize(other, MAX_URI)), (Ok(one), Ok(other)) if one == other)
}

fn absent(seen: &SeenResource, found: &mut Findings) {
    let (right, fix) = match seen.is_modern {
        true => (-32602, "answer -32602 with data.uri, as 2026-07-28 does"),
        false => (-32002, "answer -32002, as revisions before 2026-07-28 do"),
    };
    let mut rules = HashSet::new();
    for (probe, answer) in &seen.absent {
        let (rule, what) = match answer {
            // The server may have what a template matches, and may refuse its form in a way of its own.
            AbsentUri::Refused { code: FAILED, .. } if probe.is_matched => (
                "not-found-code",
                format!("a value that cannot exist is answered with {FAILED}, as if the server failed"),
            ),
            _ if probe.is_matched => continue,
            AbsentUri::Contents => ("absent-readable", "a URI that cannot exist has contents".to_owned()),
            AbsentUri::Refused { code, .. } if *code != right => {
                ("not-found-code", format!("a URI that cannot exist is answered with {code}"))
            }
            AbsentUri::Refused { uri: None, .. } if seen.is_modern => (
                "not-found-data",
                "the error has no data.uri, so it cannot be told from wrong parameters".to_owned(),
            ),
            AbsentUri::Refused { .. } => continue,
        };
        // Most servers answer all of them in one way; the first of each mistake is enough.
        if rules.insert(rule) {
            found.error(rule, &probe.uri, what, fix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::absent::{ABSENT, Probe};
    use super::super::gather::Reading;
    use super::*;
    use serde_json::json;

    fn seen(resources: Value, templates: Value) -> SeenResource {
        let listed = |items: Value| GatheredList {
            items: items.as_array().cloned().unwrap_or_default(),
            count: 0,
            end: ListEnd::Whole,
        };
        SeenResource { resources: listed(resources), templates: listed(templates), ..SeenResource::default() }
    }

    fn rules(seen: &SeenResource) -> Vec<&'static str> {
        all(seen).iter().map(|finding| finding.rule).collect()
    }

    fn absent(is_matched: bool) -> Probe {
        Probe { uri: ABSENT.into(), is_matched }
    }

    #[test]
    fn entries_that_are_right_give_no_finding() {
        let resources = json!([{"uri": "a://b", "name": "b", "size": 1, "mimeType": "text/plain; charset=utf-8",
            "annotations": {"priority": 0.5, "audience": ["user"], "lastModified": "2026-01-01T00:00:00Z", "x": 1}}]);
        let mut seen = seen(
            resources,
            json!([{"uriTemplate": "a://{x}", "name": "a"}, {"uriTemplate": "c://{x}", "name": "c"}]),
        );
        let part = ListPart { uri: Some("A://b".into()), mime_type: Some("TEXT/plain".into()), size: 1 };
        seen.reads = vec![Reading { uri: "a://b".into(), outcome: Ok(vec![part]) }];
        seen.absent = vec![(absent(false), AbsentUri::Refused { code: -32002, uri: None })];
        assert_eq!(rules(&seen), [""; 0]);
    }

    #[test]
    fn each_mistake_in_a_list_has_its_rule() {
        for (entry, rule) in [
            (json!({"name": "x"}), "odd-entry"),
            (json!("x"), "odd-entry"),
            (json!({"uri": "a://b"}), "missing-name"),
            (json!({"uri": "a://b", "name": " "}), "empty-name"),
            (json!({"uri": "a://b", "name": 1}), "odd-entry"),
            (json!({"uri": "a://b", "name": "x", "size": -1}), "odd-entry"),
            (json!({"uri": "a://b", "name": "x", "annotations": {"priority": 2}}), "odd-entry"),
            (json!({"uri": "a://b", "name": "x", "annotations": {"audience": ["me"]}}), "odd-entry"),
            (json!({"uri": "no scheme", "name": "x"}), "invalid-uri"),
        ] {
            assert_eq!(rules(&seen(json!([entry]), json!([]))), [rule], "{entry}");
        }
        let same = json!([{"uri": "a://b/%41", "name": "x"}, {"uri": "A://b/A", "name": "y"}]);
        assert_eq!(rules(&seen(same, json!([]))), ["duplicate-uri"]);
        for (end, rule) in [
            (ListEnd::Endless, "endless-list"),
            (ListEnd::Repeats("a".into()), "repeated-cursor"),
            (ListEnd::OddCursor, "odd-cursor"),
            (ListEnd::NoList, "no-list"),
        ] {
            let seen = SeenResource {
                templates: GatheredList { items: vec![], count: 0, end },
                ..SeenResource::default()
            };
            assert_eq!(rules(&seen), [rule]);
        }
    }

    #[test]
    fn templates_are_judged_as_a_set() {
        for (templates, rule) in [
            (json!([{"uriTemplate": "a://{", "name": "x"}]), "invalid-template"),
            (
                json!([{"uriTemplate": "a://{x}", "name": "x"}, {"uriTemplate": "a://{y}", "name": "y"}]),
                "dead-template",
            ),
            (json!([{"uriTemplate": "a://{path}", "name": "x"}]), "unclear-template"),
        ] {
            assert_eq!(rules(&seen(json!([]), templates.clone())), [rule], "{templates}");
        }
    }

    #[test]
    fn the_code_for_what_is_not_there_depends_on_the_era() {
        let refused = |code, uri: Option<&str>| AbsentUri::Refused { code, uri: uri.map(str::to_owned) };
        for (is_modern, is_matched, answer, rule) in [
            (false, false, refused(-32002, None), None),
            (false, false, refused(-32602, None), Some("not-found-code")),
            (true, false, refused(-32602, Some(ABSENT)), None),
            (true, false, refused(-32602, None), Some("not-found-data")),
            (true, false, refused(-32002, None), Some("not-found-code")),
            (true, false, AbsentUri::Contents, Some("absent-readable")),
            (true, true, AbsentUri::Contents, None),
            (false, true, refused(-32602, None), None),
            (true, true, refused(-32603, None), Some("not-found-code")),
        ] {
            // Beside others that are right; a second of the same kind adds nothing.
            let right = if is_modern { refused(-32602, Some(ABSENT)) } else { refused(-32002, None) };
            let again = match &answer {
                AbsentUri::Contents => AbsentUri::Contents,
                AbsentUri::Refused { code, uri } => refused(*code, uri.as_deref()),
            };
            let absent = [(false, right), (is_matched, answer), (is_matched, again)]
                .map(|(is_matched, answer)| (absent(is_matched), answer));
            let seen = SeenResource { is_modern, absent: absent.into(), ..SeenResource::default() };
            assert_eq!(rules(&seen), rule.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn reads_are_compared_with_the_list() {
        let mut seen =
            seen(json!([{"uri": "a://b", "name": "b", "size": 2, "mimeType": "text/plain"}]), json!([]));
        let part = || ListPart { uri: None, mime_type: Some("text/html".into()), size: 1 };
        let child = ListPart { uri: Some("a://b/c".into()), ..part() };
        for (outcome, expected) in [
            (Ok(vec![part()]), &["mime-type-differs", "size-differs"][..]),
            (Ok(vec![part(), part()]), &[]),
            (Ok(vec![child]), &[]),
            (Ok(vec![]), &["no-contents"]),
            (Err("gone".to_owned()), &["unreadable"]),
        ] {
            seen.reads = vec![Reading { uri: "a://b".into(), outcome }];
            assert_eq!(rules(&seen), expected);
        }
        seen.reads.clear();
        seen.completions = vec![("a://{x}".into(), "x".into(), "no".into())];
        assert_eq!(rules(&seen), ["completion-fails"]);
        seen.completions.clear();
        seen.unreadable = vec![("a://{x}".into(), 3, "not found".into())];
        assert_eq!(rules(&seen), ["unreadable-template"]);
    }
}
