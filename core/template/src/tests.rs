//! Tests of the whole of matching. The cases of single rules are in `tests/fixtures/match`, for all languages.

mod bounds;
mod cost;
mod expansion;
mod lints;
mod order;
mod round_trip;

use super::*;

/// A template with default options.
fn parse(text: &str) -> UriTemplate {
    UriTemplate::parse(text).unwrap()
}

fn index(texts: &[&str]) -> TemplateIndex {
    TemplateIndex::build(&texts.iter().map(|text| parse(text)).collect::<Vec<_>>()).unwrap()
}

/// The offset at which a template is refused.
fn refused_at(text: &str) -> Option<usize> {
    UriTemplate::parse(text).err().map(|error| error.offset)
}

/// The same options for several variables.
fn options(names: &[&str], variable: VariableOptions) -> TemplateOptions {
    let variables = names.iter().map(|name| ((*name).to_owned(), variable)).collect();
    TemplateOptions { variables, ..TemplateOptions::default() }
}

#[test]
fn public_types_cross_threads() {
    fn check<T: Send + Sync + Clone + 'static>() {}
    check::<UriTemplate>();
    check::<TemplateIndex>();
    check::<TemplateSet>();
    check::<Lookup<'static>>();
}

#[test]
fn values_borrow_unless_they_were_decoded() {
    let set = TemplateSet::new([parse("x://h/{a}/{b}")]).unwrap();
    let Ok(Lookup::Match { params, .. }) = set.match_uri("x://h/plain/a%20b") else { panic!("no match") };
    assert!(matches!(params.get("a"), Some(Value::Scalar(Cow::Borrowed("plain")))));
    assert!(matches!(params.get("b"), Some(Value::Scalar(Cow::Owned(text))) if text == "a b"));
}

#[test]
fn more_values_than_fit_inline_keep_their_order() {
    let template = parse("x://h/{a}/{b}/{c}/{d}/{e}/{f}{?g}");
    let Ok(Lookup::Match { params, .. }) = template.match_uri("x://h/1/2/3/4/5/6?g=7") else {
        panic!("no match")
    };
    let found: Vec<_> = params.iter().filter_map(|(name, value)| Some((name, value.as_str()?))).collect();
    assert_eq!(found, [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5"), ("f", "6"), ("g", "7")]);
    assert_eq!((params.len(), params.into_owned().text("g")), (7, Some("7")));
}

#[test]
fn variables_say_what_the_author_declared() {
    let template = parse("x://{a}/{+b}{/c*}{?d}");
    let found: Vec<_> = template
        .variables()
        .iter()
        .map(|found| (&*found.name, found.kind, found.policy, found.required))
        .collect();
    assert_eq!(
        found,
        [
            ("a", Kind::Scalar, ValuePolicy::Segment, true),
            ("b", Kind::Scalar, ValuePolicy::Path, true),
            ("c", Kind::List, ValuePolicy::Segment, false),
            ("d", Kind::Scalar, ValuePolicy::Text, false),
        ]
    );
}

// looking up a text that is not in normal form never fails, whatever it finds.
#[test]
fn lookups_of_any_text_are_harmless() {
    let index = index(&["x://{a}", "{+b}", "x://h{/c*}{?d}{#e}", "x://{f}-{g:3}"]);
    for text in ["", "%", "x://%", "x://%4", "x://h?%#%", "é", "x://é-é", "#?#?", "x://h/%%%?d=%e#%"] {
        let _ = index.lookup(text);
    }
}
