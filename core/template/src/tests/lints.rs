//! The warnings at registration.

use super::*;

fn kinds(lints: &[TemplateLint]) -> Vec<LintKind> {
    lints.iter().map(|lint| lint.kind).collect()
}

#[test]
fn suspicious_templates_are_reported() {
    for (text, expected) in [
        ("x://h/{id}", &[][..]),
        ("file:///{path}", &[LintKind::OneSegment]),
        ("file:///{+path}", &[]),
        ("x://h/{File}/raw", &[]),
        ("x://{a}-{b}", &[LintKind::NotReversible]),
        ("x://h/{path*}", &[LintKind::CommaList]),
        ("x://h{/path*}", &[]),
    ] {
        assert_eq!(kinds(&parse(text).lints()), expected, "{text}");
    }
    let path = VariableOptions { policy: Some(ValuePolicy::Path), ..VariableOptions::default() };
    let template = UriTemplate::with_options("file:///{path}", &options(&["path"], path)).unwrap();
    assert_eq!(template.lints(), []);
    assert!(parse("file:///{path}").lints()[0].to_string().contains("{+path}"));
}

#[test]
fn shadowed_templates_are_reported() {
    for (dead, winner) in [
        ("x://h/{a,b}", "x://h/{c}"),
        ("x://h/{name}{.ext}", "x://h/{name}"),
        ("x://h/{+p}{.ext}", "x://h/{+p}"),
    ] {
        let index = index(&[dead, "x://other/{a}", winner]);
        let lint = index.lints_of(0).into_iter().find(|lint| lint.kind == LintKind::Shadowed).unwrap();
        assert!(lint.template == dead && lint.message.contains(winner), "{lint}");
        assert!(!kinds(&index.lints_of(2)).contains(&LintKind::Shadowed), "{winner}");
    }
}

#[test]
fn live_templates_are_not_called_shadowed() {
    let index = index(&[
        "x://h/{a}",
        "x://h/{a:3}",
        "x://h/{a}/{b}",
        "x://h/{a}{?q}",
        "x://h{/p*}",
        "x://h/{+p}",
        "x://h/{a}.json",
        "x://h/{a}#top",
        "x://h/list",
        "x://{+p}",
        "{+all}",
    ]);
    let shadowed: Vec<_> = index.lints().into_iter().filter(|lint| lint.kind == LintKind::Shadowed).collect();
    assert_eq!(shadowed, []);
    assert_eq!(index.lints_of(99), []);
}
