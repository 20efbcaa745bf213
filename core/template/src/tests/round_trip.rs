//! Matching undoes expansion for reversible templates, whatever the values.

use super::*;
use proptest::prelude::*;

/// A draft of an expression: operator, and for each variable whether it is exploded and its value.
type Draft = (&'static str, Vec<(bool, Option<Vec<String>>)>);

/// A template with its values. Names are unique, and expressions are filled from the left.
fn case() -> impl Strategy<Value = (String, Values<'static>)> {
    let literal = prop::sample::select(vec![
        "/", "-", ".", ":", "a", "/x", "/x/", ",", "2F", "--", "é", "%2F", ".json", "@",
    ]);
    let operator = prop::sample::select(vec!["", "", "", "+", ".", "/", ";", "?", "#"]);
    let items = prop::collection::vec(text(), 1..4);
    let variable = (prop::bool::weighted(0.2), prop::option::weighted(0.8, items));
    let expression = (operator, prop::collection::vec(variable, 1..3));
    let piece = prop_oneof![literal.prop_map(Err), expression.prop_map(Ok)];
    prop::collection::vec(piece, 1..6).prop_map(|pieces: Vec<Result<Draft, &str>>| {
        let mut template = String::from("s://h/");
        let mut values = Values::new();
        let mut names = 0..;
        for piece in pieces {
            match piece {
                Err(literal) => template += literal,
                Ok((operator, variables)) => {
                    expression_of(operator, variables, &mut names, &mut template, &mut values)
                }
            }
        }
        (template, values)
    })
}

fn expression_of(
    operator: &str,
    variables: Vec<(bool, Option<Vec<String>>)>,
    names: &mut impl Iterator<Item = usize>,
    template: &mut String,
    values: &mut Values<'static>,
) {
    let is_named = matches!(operator, ";" | "?");
    let mut specs = Vec::new();
    let mut is_filled = true;
    for (at, (exploded, items)) in variables.into_iter().zip(names).map(|(variable, name)| (name, variable)) {
        let name = format!("v{at}");
        let is_required = specs.is_empty() && matches!(operator, "" | "+");
        specs.push(format!("{name}{}", if exploded { "*" } else { "" }));
        let items = if is_required { items.or_else(|| Some(vec!["z".into()])) } else { items };
        is_filled &= items.is_some() || is_named;
        if let Some(mut items) = items.filter(|_| is_filled) {
            match operator {
                "+" => items.iter_mut().for_each(|item| *item = item.replace(['?', '#'], "_")),
                "#" => items.iter_mut().for_each(|item| *item = item.replace('#', "_")),
                _ => {}
            }
            if exploded {
                values.insert(name, items);
            } else {
                values.insert(name, items.swap_remove(0));
            }
        }
    }
    *template += &format!("{{{operator}{}}}", specs.join(","));
}

/// A value that is not empty and has no percent-triplet.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "-", ".", "~", "/", ",", ";", ":", "@", "&", "=", "+", " ", "é", "日", "🦀", "\\", "\"",
        "{", "}", "[", "]", "|", "\u{0}", "\n", "x2F", "%", "?", "#",
    ]);
    let is_plain = |text: &String| !text.contains("%a") && !text.contains("%b");
    prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat()).prop_filter("a triplet", is_plain)
}

/// The template with all policies off, because the values here are nasty on purpose.
fn permissive(text: &str) -> Option<UriTemplate> {
    let any = VariableOptions { policy: Some(ValuePolicy::Any), ..VariableOptions::default() };
    let names: Vec<String> = (0..16).map(|number| format!("v{number}")).collect();
    UriTemplate::with_options(text, &options(&names.iter().map(String::as_str).collect::<Vec<_>>(), any)).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    /// P1 `match(expand(values)) == values`, and P2 `expand(match(uri)) == uri` in normal form.
    #[test]
    fn matching_undoes_expansion((text, values) in case()) {
        let Some(template) = permissive(&text).filter(UriTemplate::is_reversible) else { return Ok(()) };
        let uri = template.expand(&values).unwrap();
        let Ok(Lookup::Match { params, .. }) = template.match_uri(&uri) else {
            return Err(TestCaseError::fail(format!("{text} does not match {uri}")));
        };
        prop_assert_eq!(&Values::from(&params), &values, "{} on {}", &text, &uri);
        let again = template.expand(&Values::from(&params)).unwrap();
        prop_assert_eq!(normalize(&again, 65_536).unwrap(), normalize(&uri, 65_536).unwrap(), "{}", &text);
    }

    /// Every template, reversible or not, matches the URIs that it expands to: the search is complete. Text after a
    /// `{?x}` or `{#x}` would become part of the path if they are undefined, so these come last here.
    #[test]
    fn expansion_matches_its_template((text, values) in case()) {
        let sections = text.find("{?").or(text.find("{#")).map_or("", |at| &text[at..]);
        prop_assume!(sections.split_inclusive('}').all(|part| part.starts_with("{?") || part.starts_with("{#")));
        let Some(template) = permissive(&text) else { return Ok(()) };
        let uri = template.expand(&values).unwrap();
        let found = template.match_uri(&uri);
        prop_assert!(matches!(found, Ok(Lookup::Match { .. })), "{} on {}: {:?}", text, uri, found);
    }
}

#[test]
fn what_is_reversible_is_decided_by_the_gaps() {
    for (text, expected) in [
        ("x://h/{a}/{b}", true),
        ("x://h/{+a}", true),
        ("x://{a}/{+b}", true),
        ("x://h/{+a}/{b}", true),
        ("x://{a}{?q,r*}", true),
        ("x://h{/a,b}", true),
        ("x://h{/a*}", true),
        ("x://h{;a,b}", true),
        ("x://{a}@{b}", true),
        ("x://{a,b}", true),
        ("x://h{#f}", true),
        ("x://{a}-{b}", false),
        ("x://h/{+a}/{+b}", false),
        ("x://h/{+a,b}", false),
        ("x://{name}{.ext}", false),
        ("x://{a}{.b,c}", false),
        ("x://{a:3}", false),
        ("x://h{.a*}", false),
        ("x://h?q={a}", false),
        ("x://h{?a}{&b}", false),
        ("x://h{/a}/{b}", false),
    ] {
        assert_eq!(parse(text).is_reversible(), expected, "{text}");
    }
}
