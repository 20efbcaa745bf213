//! Globs, sets of them, subjects, and decisions.

use super::{Action, Decision, Glob, Guard, Policy};
use crate::principal::Principal;

fn guard(policy: &str) -> Guard {
    Guard::new(&Policy::from_json(policy).unwrap(), false).unwrap()
}

fn sees(guard: &Guard, uri: &str) -> bool {
    guard.decide(&Principal::local(), Action::Read, uri) == Decision::Allow
}

/// S-11.
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

/// S-19: deny wins, an empty list allows nothing, none at all allows everything.
#[test]
fn allow_and_deny() {
    let open = guard("{}");
    assert!(open.is_open() && sees(&open, "a://b"));
    assert!(!sees(&guard(r#"{"allow": []}"#), "a://b"));
    let some = guard(r#"{"allow": ["a://b/**"], "deny": ["**/.env"]}"#);
    assert!(sees(&some, "a://b/c") && !sees(&some, "a://b/.env") && !sees(&some, "a://c"));
    assert!(sees(&guard(r#"{"allow": "*"}"#), "a://b/c"));
}
