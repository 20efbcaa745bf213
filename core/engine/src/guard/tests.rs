//! Globs, sets of globs, subjects, and decisions.

use super::{Decision, Effort, Glob, Guard, Policy, granted_uris};
use crate::principal::Principal;

fn guard(policy: &str) -> Guard {
    Guard::new(&Policy::from_json(policy).unwrap(), false).unwrap()
}

fn sees(guard: &Guard, uri: &str) -> bool {
    guard.decide(&Principal::local(), uri) == Decision::Allow
}

// S-11.
#[test]
fn wildcards() {
    for (glob, good, bad) in [
        ("a://b/*", vec!["a://b/", "a://b/c"], vec!["a://b", "a://b/c/d"]),
        ("a://b/**", vec!["a://b/", "a://b/c/d"], vec!["a://b", "a://bc"]),
        ("a://?/c", vec!["a://b/c"], vec!["a:////c", "a://bb/c"]),
        (
            "a://src/**/*.ts",
            vec!["a://src/a.ts", "a://src/x/y/a.ts", "a://src/.ts"],
            vec!["a://src/a.tsx", "a://srca.ts"],
        ),
        ("**/.env", vec!["a://b/.env", "a://b/c/.env"], vec!["a://b/.envs", "a://b.env"]),
        (r"a://b\?q=\*", vec!["a://b?q=*"], vec!["a://b?q=1"]),
        ("*", vec!["a://b/c?d#e", "x:y"], vec![]),
        ("HTTPS://Ex.COM/A%2db", vec!["https://ex.com/A-b"], vec!["https://ex.com/a-b"]),
        ("a://日本/*", vec!["a://%E6%97%A5%E6%9C%AC/x"], vec![]),
    ] {
        let parsed = Glob::parse(glob).unwrap();
        for uri in good {
            assert!(parsed.matches(uri), "{glob} {uri}");
        }
        for uri in bad {
            assert!(!parsed.matches(uri), "{glob} {uri}");
        }
    }
}

#[test]
fn what_is_no_glob() {
    for bad in ["", "a b", "a://b/%zz", "a://b/../c", "a://./b", "x\\", "a://{b,c}"] {
        assert!(Glob::parse(bad).is_err(), "{bad}");
    }
}

// S-19: deny takes precedence, an empty list allows nothing, no list allows everything.
#[test]
fn allow_and_deny() {
    let open = guard("{}");
    assert!(open.is_open() && sees(&open, "a://b"));
    assert!(!sees(&guard(r#"{"allow": []}"#), "a://b"));
    let some = guard(r#"{"allow": ["a://b/**"], "deny": ["**/.env"]}"#);
    assert!(sees(&some, "a://b/c") && !sees(&some, "a://b/.env") && !sees(&some, "a://c"));
    assert!(sees(&guard(r#"{"allow": "*"}"#), "a://b/c"));
}

/// A template gives its handler one value for `a,b` and `a%2Cb`, so a rule that narrows holds for both; a rule that
/// allows holds for its own encoding alone.
#[test]
fn another_encoding_evades_no_rule() {
    let denied =
        guard(r#"{"deny": ["a://b,c", "a://x%40y", "a://*:z", "a://q\\?r=1/2", "a://s\\?t=a%2Cb"]}"#);
    for uri in [
        "a://b,c",
        "a://b%2Cc",
        "a://b%2cc",
        "a://x@y",
        "a://x%40y",
        "a://n:z",
        "a://n%3Az",
        "a://q?r=1/2",
        "a://q?r=1%2F2",
        "a://s?t=a,b",
        "a://s?t=a%2Cb",
    ] {
        assert!(!sees(&denied, uri), "{uri}");
    }
    for uri in ["a://b", "a://bc", "a://b%252Cc", "a://q?r=1%262", "a://x%3Dy"] {
        assert!(sees(&denied, uri), "{uri}");
    }
    let allowed = guard(r#"{"allow": ["a://b,c"]}"#);
    assert!(sees(&allowed, "a://b,c") && !sees(&allowed, "a://b%2Cc"));
    let scoped = guard(r#"{"scopes": {"a://b,c": "s"}, "max_size": {"a://b,c": 7}}"#);
    assert_eq!(
        scoped.decide(&Principal::new("alice"), "a://b%2Cc"),
        Decision::MissingScope { scopes: vec!["s"] }
    );
}

// R-199: all missing scopes are reported; none for a URI that is hidden anyway.
#[test]
fn scopes() {
    let guard = guard(
        r#"{"allow": "db://**", "scopes": {"db://**": "db", "db://secret/**": ["secret", "db"]},
            "principals": {"": {"scopes": "db"}}}"#,
    );
    let decide = |principal: &Principal, uri: &str| guard.decide(principal, uri);
    let alice = Principal::new("alice");
    assert_eq!(decide(&alice, "db://x"), Decision::MissingScope { scopes: vec!["db"] });
    assert_eq!(decide(&alice, "db://secret/x"), Decision::MissingScope { scopes: vec!["db", "secret"] });
    assert_eq!(decide(&alice, "x://secret/x"), Decision::Hidden);
    assert_eq!(decide(&alice.with_scopes(["db"]), "db://x"), Decision::Allow);
    assert_eq!(decide(&Principal::local(), "db://x"), Decision::Allow);
}

// R-075: rules for one principal restrict, and never widen.
#[test]
fn principals_narrow() {
    let guard = guard(
        r#"{"allow": "a://**", "principals": {"bob": {"allow": ["a://b/**", "z://**"], "deny": "**/x"}}}"#,
    );
    let sees = |id: &str, uri: &str| guard.permits(&Principal::new(id), uri);
    assert!(sees("alice", "a://c") && sees("bob", "a://b/c") && guard.differs());
    assert!(!sees("bob", "a://c") && !sees("bob", "z://c") && !sees("bob", "a://b/x"));
}

#[test]
fn errors_name_the_field() {
    for (policy, field) in [
        (r#"{"allow": [1]}"#, "allow[0]"),
        (r#"{"alow": []}"#, "alow"),
        (r#"{"allow": null, "deny": {}}"#, "deny"),
        (r#"{"principals": {"a": {"x": 1}}}"#, "principals.a.x"),
        (r#"{"scopes": {"a://b": 7}}"#, "scopes.a://b"),
    ] {
        assert_eq!(Policy::from_json(policy).unwrap_err().field, field);
    }
    let globs = Policy::from_json(r#"{"principals": {"a": {"deny": ["x", "y z"]}}}"#).unwrap();
    let error = Guard::new(&globs, false).unwrap_err();
    assert_eq!(error.field, "principals.a.deny[1]");
    assert!(error.to_string().contains("y z"), "{error}");
}

// S-12: a template is visible if one of its URIs is.
#[test]
fn templates_that_reach() {
    for (policy, template, known) in [
        (r#"{"allow": "a://b/**"}"#, "a://b/{x}", true),
        (r#"{"allow": "a://b/**"}"#, "a://{x}/y", true),
        (r#"{"allow": "a://b/**"}"#, "a://c/{x}", false),
        (r#"{"allow": "a://b/*"}"#, "a://b/{x}/y", false),
        (r#"{"allow": "a://b/*"}"#, "a://b/{+x}", true),
        (r#"{"allow": "a://b/x"}"#, "a://b/{x}", true),
        (r#"{"allow": "a://b/x/y"}"#, "a://b/{x}", false),
        (r#"{"deny": "a://b/**"}"#, "a://b/{x}", false),
        (r#"{"deny": "a://b/**"}"#, "a://{x}/y", true),
        (r#"{"deny": "a://b/*.env"}"#, "a://b/{x}", true),
        (r#"{"deny": "a://b/*.env"}"#, "a://b/{x}.env", false),
        (r#"{"deny": ["a://b/?*"]}"#, "a://b/{x}", false),
        (r#"{"deny": "*"}"#, "{x}:y", false),
        (r#"{"deny": "a://b"}"#, "a://b{?q}", false),
        (r#"{"deny": "a://b"}"#, "a://b{#f}", false),
        (r#"{"deny": "a://b"}"#, "a://{b}{#f}", true),
        (r#"{"allow": "a://b\\?q=*"}"#, "a://b{?q}", true),
        (r#"{"allow": "a://b\\?z=*"}"#, "a://b{?q}", false),
        (r#"{"allow": "a://b"}"#, "a://b{?q}", true),
        (r#"{"allow": "a://b;v=1"}"#, "a://b{;v}", true),
        (r#"{"allow": "a://b/c/d"}"#, "a://b{/x*}", true),
        (r#"{"allow": "a://b/#x"}"#, "a://b/{#x}", true),
        (r#"{"allow": "a://**", "scopes": {"a://b/**": "s"}}"#, "a://b/{x}", false),
        (r#"{"allow": "a://**", "scopes": {"a://b/c/**": "s"}}"#, "a://b/{x}", true),
    ] {
        let guard = guard(policy);
        let outline = mcp_resources_template::UriTemplate::parse(template).unwrap().outline(&|_| None);
        let view = guard.view(&Principal::new("alice"));
        assert_eq!(guard.reaches(&view, &outline), known, "{policy} {template}");
    }
}

// R-112: a value is checked together with the values chosen before it.
#[test]
fn values_that_lead_on() {
    let guard = guard(r#"{"allow": "a://x/*/ok", "deny": "a://*/secret/**"}"#);
    let view = guard.view(&Principal::local());
    let template = mcp_resources_template::UriTemplate::parse("a://{h}/{d}/{f}").unwrap();
    for (values, known) in [
        (vec![("h", "x")], true),
        (vec![("h", "y")], false),
        (vec![("d", "secret")], false),
        (vec![("d", "b"), ("f", "ok")], true),
        (vec![("d", "b"), ("f", "no")], false),
        (vec![("h", "x"), ("d", "b"), ("f", "ok")], true),
    ] {
        let value = |name: &str| values.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
        let outline = template.outline(&value);
        assert_eq!(outline.only().is_some(), values.len() == 3);
        assert_eq!(guard.reaches(&view, &outline), known, "{values:?}");
    }
}

mod against_a_naive_model {
    use super::super::set::GlobSet;
    use super::*;
    use proptest::prelude::*;

    // S-11 as specified, by trying every choice.
    fn naive(glob: &[u8], uri: &[u8]) -> bool {
        match glob {
            [] => uri.is_empty(),
            [b'/', b'*', b'*', b'/', rest @ ..] => {
                uri.first() == Some(&b'/')
                    && (naive(&[b"/", rest].concat(), uri)
                        || (1..uri.len()).any(|at| naive(&[b"/", rest].concat(), &uri[at..])))
            }
            [b'*', b'*', rest @ ..] => (0..=uri.len()).any(|at| naive(rest, &uri[at..])),
            [b'*', rest @ ..] => {
                let run = uri.iter().position(|byte| *byte == b'/').unwrap_or(uri.len());
                (0..=run).any(|at| naive(rest, &uri[at..]))
            }
            [b'?', rest @ ..] => uri.first().is_some_and(|byte| *byte != b'/') && naive(rest, &uri[1..]),
            [byte, rest @ ..] => uri.first() == Some(byte) && naive(rest, &uri[1..]),
        }
    }

    fn glob() -> impl Strategy<Value = String> {
        let part =
            prop_oneof![Just("*"), Just("**"), Just("?"), Just("/"), Just("/**/"), Just("a"), Just("b")];
        proptest::collection::vec(part, 1..8).prop_map(|parts| format!("x:{}", parts.concat()))
    }

    proptest! {
        #[test]
        fn a_glob_matches_what_the_model_says(glob in glob(), uri in "x:[ab/]{0,9}") {
            let parsed = Glob::parse(&glob).unwrap();
            prop_assert_eq!(parsed.matches(&uri), naive(glob.as_bytes(), uri.as_bytes()), "{} {}", glob, uri);
        }

        #[test]
        fn a_set_finds_what_its_globs_match(globs in proptest::collection::vec(glob(), 0..40), uri in "x:[ab/]{0,6}") {
            let parsed: Vec<Glob> = globs.iter().map(|glob| Glob::parse(glob).unwrap()).collect();
            let expected: Vec<usize> =
                parsed.iter().enumerate().filter(|(_, glob)| glob.matches(&uri)).map(|(at, _)| at).collect();
            let mut found = Vec::new();
            let _ = GlobSet::new(parsed).each(&uri, &mut |at| {
                found.push(at);
                std::ops::ControlFlow::Continue(())
            });
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }

        // S-12: a template with a visible URI is visible.
        #[test]
        fn what_may_be_seen_is_reached(allow in glob(), deny in glob(), value in "[ab]{1,4}") {
            let policy = format!(r#"{{"allow": "{allow}", "deny": "{deny}"}}"#);
            let guard = guard(&policy);
            let view = guard.view(&Principal::local());
            let reaches = |text: &str| {
                guard.reaches(&view, &mcp_resources_template::UriTemplate::parse(text).unwrap().outline(&|_| None))
            };
            for (template, uri) in [("x:{a}", format!("x:{value}")), ("x:a/{a}", format!("x:a/{value}"))] {
                if sees(&guard, &uri) {
                    prop_assert!(reaches(template), "{} {}", template, uri);
                }
            }
            prop_assert_eq!(reaches("x:ab/ba"), sees(&guard, "x:ab/ba"));
        }
    }
}

// R-112, S-12: a long value is one text rather than many nodes, and the values of one completion share one limit.
#[test]
fn a_completion_has_a_budget() {
    let guard = guard(r#"{"allow": "a://*/*"}"#);
    let view = guard.view(&Principal::local());
    let template = mcp_resources_template::UriTemplate::parse("a://{h}/{d}").unwrap();
    let long = "x".repeat(60_000);
    let short = "x".to_owned();
    let outline = |value: &str| template.outline(&|name| (name == "h").then_some(value)).size();
    assert_eq!(outline(&long) - outline(&short), long.len() - short.len());
    let mut effort = Effort::of_completion();
    let mut tried = |value: &str| {
        let outline = template.outline(&|name| (name == "h").then_some(value));
        (0..10_000).take_while(|_| guard.reaches_within(&view, &outline, &mut effort)).count()
    };
    let count = tried(&long);
    assert!(count > 5 && count < 100, "{count}");
    assert_eq!(tried(&long), 0);
}

/// A verifier narrows what the policy allows; it never widens it.
#[test]
fn granted_uris_narrow_the_policy() {
    let globs = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let grant = |allow: Option<&[&str]>, deny: &[&str]| {
        let uris = granted_uris(allow.map(globs).as_deref(), &globs(deny)).unwrap();
        Principal::new("ada").with_uris(Some(uris))
    };
    let open = guard("{}");
    let closed = guard(r#"{"allow": ["a://**"], "principals": {"ada": {"deny": ["a://own"]}}}"#);
    let own = grant(Some(&["a://b/**", "c://d"]), &["a://b/secret"]);
    for (uri, in_open, in_closed) in [
        ("a://b/c", true, true),
        ("a://b/secret", false, false),
        ("a://b/%73ecret", false, false),
        ("c://d", true, false),
        ("a://own", false, false),
        ("z://z", false, false),
    ] {
        let decided = [&open, &closed].map(|guard| guard.decide_uri(&own, uri).unwrap() == Decision::Allow);
        assert_eq!(decided, [in_open, in_closed], "{uri}");
    }
    let template = |text: &str| mcp_resources_template::UriTemplate::parse(text).unwrap();
    assert!(
        open.knows_template(&own, &template("a://b/{x}")) && !open.knows_template(&own, &template("z://{x}"))
    );
    assert!(open.knows_template(&Principal::new("ada"), &template("z://{x}")));
    let nothing = grant(Some(&[]), &[]);
    assert!(!open.permits(&nothing, "a://b/c") && open.is_open_to(&Principal::new("ada")));
    assert_ne!(own.authority(), nothing.authority());
    assert_ne!(own.authority(), Principal::new("ada").authority());
    assert!(granted_uris(None, &globs(&["a b"])).is_err());
}
