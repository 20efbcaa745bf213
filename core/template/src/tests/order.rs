//! Precedence: the index agrees with trying the templates one after the other, in order.

use super::*;
use proptest::prelude::*;

const BUDGET: u64 = TemplateIndex::STEP_BUDGET;

/// The result without an index; `templates` are tried in order of precedence.
fn in_turn<'u>(templates: &[UriTemplate], normal: &'u str) -> Lookup<'u> {
    if let Some(index) = templates.iter().position(|template| template.0.exact().as_deref() == Some(normal)) {
        return Lookup::Match { index, params: MatchedParams::new(templates[index].0.variables.clone()) };
    }
    let mut order: Vec<usize> = (0..templates.len()).collect();
    order.sort_by(|&one, &other| {
        let one = &templates[one].0;
        let other = &templates[other].0;
        one.order.compare(&one.text, &other.order, &other.text)
    });
    for at in order {
        match templates[at].lookup(normal) {
            Lookup::Match { params, .. } => return Lookup::Match { index: at, params },
            Lookup::Rejected { variable, why, .. } => return Lookup::Rejected { index: at, variable, why },
            Lookup::None { .. } => {}
        }
    }
    Lookup::None { exhausted: false }
}

/// Templates built from few words, so that heads, nodes and needles are shared.
fn template() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", "-", ".", "a", "ab", "abc", "/a", "/ab/", "%2F", "2F", "{v}", "{v}", "{v}", "{v}",
        "{+v}", "{.v}", "{/v}", "{/v*}", "{;v}", "{v:2}", "{v,w}", "{v*}", "{?v}", "{?v,w}", "{?v*}", "?a=1",
        "?a={v}", "{&v}", "{#v}", "#a",
    ]);
    let start = prop::sample::select(vec!["x://", "x://a", "x:", "{s}:", "{+s}"]);
    (start, prop::collection::vec(piece, 0..7)).prop_map(|(start, pieces)| {
        let mut text = start.to_owned();
        for (number, piece) in pieces.into_iter().enumerate() {
            text += &piece.replace('v', &format!("v{number}")).replace('w', &format!("w{number}"));
        }
        text
    })
}

fn uri() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", "-", "-", ".", "a", "a", "ab", "abc", "b", "%2F", "2F", ",", ";", ";v1=a", "?",
        "?a=1", "&a=1", "v3=1", "&v4=", "#a", "..", "%C3%A9", "%FF",
    ]);
    let start = prop::sample::select(vec!["x://", "x://a", "x:", "a:"]);
    (start, prop::collection::vec(piece, 0..9))
        .prop_map(|(start, pieces)| start.to_owned() + &pieces.concat())
}

/// The valid templates among `texts`, without those that conflict with an earlier one.
fn registrable(texts: &[String]) -> Vec<UriTemplate> {
    let mut templates: Vec<UriTemplate> = Vec::new();
    for template in texts.iter().filter_map(|text| UriTemplate::parse(text).ok()) {
        if templates.iter().all(|other| other.0.order.shape != template.0.order.shape) {
            templates.push(template);
        }
    }
    templates
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_finds_what_trying_in_turn_finds(
        texts in prop::collection::vec(template(), 1..60),
        uris in prop::collection::vec(uri(), 1..20),
    ) {
        let templates = registrable(&texts);
        let index = TemplateIndex::build(&templates).unwrap();
        let reversed: Vec<_> = templates.iter().rev().cloned().collect();
        let other_way = TemplateIndex::build(&reversed).unwrap();
        for uri in uris {
            let Ok(normal) = normalize(&uri, 65_536) else { continue };
            let expected = in_turn(&templates, &normal);
            prop_assert_eq!(&index.lookup_within(&normal, BUDGET).0, &expected, "{}", normal);
            let mirrored = match other_way.lookup(&normal) {
                Lookup::Match { index, params } => Lookup::Match { index: templates.len() - 1 - index, params },
                Lookup::Rejected { index, variable, why } => {
                    Lookup::Rejected { index: templates.len() - 1 - index, variable, why }
                }
                none @ Lookup::None { .. } => none,
            };
            prop_assert_eq!(&mirrored, &expected, "{}", normal);
        }
    }

    /// More than eight programs at one node use a gate.
    #[test]
    fn a_gate_changes_nothing(
        words in prop::collection::vec("[abk-]{0,4}", 9..40),
        uris in prop::collection::vec("[abk-]{0,12}", 1..20),
    ) {
        let texts: Vec<_> = words.iter().map(|word| format!("x://h/{{a}}-{word}{{b}}")).collect();
        let templates = registrable(&texts);
        let index = TemplateIndex::build(&templates).unwrap();
        for uri in uris {
            let normal = format!("x://h/{uri}");
            prop_assert_eq!(index.lookup(&normal), in_turn(&templates, &normal), "{}", normal);
        }
    }

    #[test]
    fn parsing_is_total(text in "[a-cx:/{}+#.;?&*,%0-9 é-]{0,24}") {
        if let Err(error) = UriTemplate::parse(&text) {
            prop_assert!(error.offset <= text.len() && error.template == text);
        }
    }
}

#[test]
fn conflicts_name_the_first_pair() {
    let templates = ["x://{a}", "y://{a}", "x://{b}", "y://{b}"].map(parse);
    let conflict = TemplateIndex::build(&templates).unwrap_err();
    assert_eq!((conflict.index, conflict.with_index), (2, 0));
    assert_eq!((&*conflict.template, &*conflict.with), ("x://{b}", "x://{a}"));
}

#[test]
fn what_differs_in_more_than_names_is_no_conflict() {
    for pair in [
        ["x://{a}", "x://{a:3}"],
        ["x://{a:2}", "x://{a:3}"],
        ["x://h{;a}b", "x://h{;ab}"],
        ["x://h{?a}", "x://h"],
        ["x://h?a={v}", "x://h?b={v}"],
        ["x://h?a={v}", "x://h{?a}"],
        ["x://h", "x://h?"],
        ["x://h{#a}", "x://h#a"],
        ["x://h/{a}", "x://h{/a}"],
    ] {
        assert!(TemplateIndex::build(&pair.map(parse)).is_ok(), "{pair:?}");
    }
}

/// A template without variables is a URI: found by its normal form, before all others.
#[test]
fn exact_uris_come_first() {
    let index =
        index(&["X://h/caf\u{e9}?b=1&a=2", "x://h/{+p}?b=1&a={v}", "x://h/{a}#top", "x://h/list#top"]);
    let position = |uri: &str| match index.lookup(&normalize(uri, 100).unwrap()) {
        Lookup::Match { index, .. } => Some(index),
        _ => None,
    };
    assert_eq!(position("x://h/café?b=1&a=2"), Some(0));
    assert_eq!(position("x://h/list#top"), Some(3));
    assert_eq!(position("x://h/other#top"), Some(2));
}
