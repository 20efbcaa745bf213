//! Every limit has a test at the limit and one above it.

use super::*;

#[test]
fn templates_are_bounded_in_length() {
    let longest = format!("x:{}{{a}}", "b".repeat(UriTemplate::MAX_BYTES - 5));
    assert_eq!(longest.len(), UriTemplate::MAX_BYTES);
    assert_eq!(refused_at(&longest), None);
    assert_eq!(refused_at(&(longest + "c")), Some(UriTemplate::MAX_BYTES));
}

#[test]
fn variables_are_bounded_in_number() {
    let with = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| format!("v{number}")).collect();
        format!("x://h{{?{}}}", names.join(","))
    };
    assert_eq!(refused_at(&with(UriTemplate::MAX_VARIABLES)), None);
    assert_eq!(refused_at(&with(UriTemplate::MAX_VARIABLES + 1)), Some(5));
}

#[test]
fn captures_that_share_a_segment_are_bounded() {
    let with = |count: usize, between: &str| {
        let names: Vec<_> = (0..count).map(|number| format!("{{v{number}}}")).collect();
        format!("x://h/{}", names.join(between))
    };
    assert_eq!(refused_at(&with(8, "-")), None);
    assert_eq!(refused_at(&with(9, "-")), Some(6 + 8 * 5 + 1));
    let raised = TemplateOptions { captures: 9, ..TemplateOptions::default() };
    assert!(UriTemplate::with_options(&with(9, "-"), &raised).is_ok());
    // A text that the left or the right variable cannot contain separates them.
    for text in [
        with(64, "/"),
        "x://h{/a,b,c,d,e,f,g,h,i,j}".into(),
        "x://h/{a,b,c,d,e,f,g,h,i,j}".into(),
        "x://h{;a,b,c,d,e,f,g,h,i,j}".into(),
        "x://h{?a,b,c,d,e,f,g,h,i,j}".into(),
    ] {
        assert_eq!(refused_at(&text), None, "{text}");
    }
    for text in ["x://h{.a,b,c,d,e,f,g,h,i}", "x://h/{+a,b,c,d,e,f,g,h,i}", "x://h{#a,b,c,d,e,f,g,h,i}"] {
        assert!(refused_at(text).is_some(), "{text}");
    }
    // An optional expression separates nothing when it is absent.
    assert!(refused_at("x://{a}{/z}-{b}-{c}-{d}-{e}-{f}-{g}-{h}-{i}").is_some());
}

#[test]
fn uris_are_bounded_in_length() {
    let template = parse("x:{+a}");
    let longest = format!("x:{}", "a".repeat(65_534));
    assert!(matches!(template.match_uri(&longest), Ok(Lookup::Match { .. })));
    let longer = longest + "a";
    assert_eq!(template.match_uri(&longer).map_err(|error| error.offset), Err(65_536));
    let set = TemplateSet::new([template]).unwrap();
    assert_eq!(set.match_uri(&longer).map_err(|error| error.offset), Err(65_536));
}

#[test]
fn an_exceeded_budget_is_reported_as_no_match() {
    let index = index(&["x://{a}-{b}"]);
    let uri = "x://1-2-3";
    let (found, steps) = index.lookup_within(uri, TemplateIndex::STEP_BUDGET);
    assert!(matches!(found, Lookup::Match { .. }) && steps > 1);
    assert!(matches!(index.lookup_within(uri, steps), (Lookup::Match { .. }, taken) if taken == steps));
    assert_eq!(index.lookup_within(uri, steps - 1).0, Lookup::None { exhausted: true });
}

#[test]
fn a_long_chain_of_nested_heads_needs_no_stack() {
    let texts: Vec<_> = (1..2_000).map(|length| format!("x:{}", "a".repeat(length))).collect();
    let with_variable: Vec<_> = texts.iter().map(|text| parse(&format!("{text}{{?q}}"))).collect();
    let index = TemplateIndex::build(&with_variable).unwrap();
    for at in [0, 1_000, texts.len() - 1] {
        assert!(matches!(index.lookup(&texts[at]), Lookup::Match { index, .. } if index == at));
    }
}

#[test]
fn faults_are_reported_where_they_are() {
    for (text, offset) in [
        ("", 0),
        ("note", 0),
        ("{?a}", 0),
        ("x://h/{a", 6),
        ("x://h/a}", 7),
        ("x://h/{a,}", 9),
        ("x://h/{a:0}", 7),
        ("x://h/{a}{b}", 10),
        ("x://h/{a}{/b}{c}", 14),
        ("x://h/{a}/{b}/%z", 14),
        ("x://h{?a}{?b}", 9),
        ("x://h{?a,b,a}", 11),
        ("x://h{#a}{#b}", 9),
        ("x://h{&a*}", 7),
        ("x://h/{a*}/{a}", 12),
    ] {
        assert_eq!(refused_at(text), Some(offset), "{text}");
    }
    assert_eq!(refused_at("{/a}x://h"), None);
}
