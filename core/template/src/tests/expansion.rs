//! Cases that `uritemplate-next` alone gets wrong. The official cases are in `tests/rust/src/uritemplate.rs`.

use super::*;

fn values() -> Values<'static> {
    Values::new()
        .with("greek", "ὰβγ")
        .with("clef", "𝄞")
        .with("empties", vec!["", ""])
        .with("none", Vec::<&str>::new())
        .with("keys", [("a/b,c", "v")].into_iter().collect::<Value<'_>>())
        .with("list", vec!["a", "b,c"])
}

#[test]
fn expansion_follows_rfc_6570_where_the_crate_does_not() {
    for (template, expected) in [
        ("{greek:1}", "%E1%BD%B0"),
        ("{+greek:2}", "%E1%BD%B0%CE%B2"),
        ("{clef:1}", "%F0%9D%84%9E"),
        ("{keys*}", "a%2Fb%2Cc=v"),
        ("{keys}", "a%2Fb%2Cc,v"),
        ("{+keys*}", "a/b,c=v"),
        ("{;empties}", ";empties=,"),
        ("{?empties*}", "?empties=&empties="),
        ("x{?none,list}{&list*}", "x?list=a,b%2Cc&list=a&list=b%2Cc"),
        ("{#list,greek:1}", "#a,b,c,%E1%BD%B0"),
        ("caf\u{e9}%2f{undefined}", "caf%C3%A9%2f"),
    ] {
        assert_eq!(expand(template, &values()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn what_has_no_expansion_is_refused() {
    for template in ["{list:2}", "{?keys:1}"] {
        let error = expand(template, &values());
        assert!(matches!(error, Err(ExpandError::PrefixOnComposite { .. })), "{template}: {error:?}");
    }
    for template in ["{", "}", "{}", "{é}", "{a b}", "{x:0}", "{x:10000}", "{x..y}", "a b", "%"] {
        assert!(matches!(expand(template, &values()), Err(ExpandError::Template(_))), "{template}");
    }
}

#[test]
fn a_template_expands_with_its_literals_in_normal_form() {
    let template = parse("HTTPS://Example.COM/caf\u{e9}/[x]/{a}{?b}");
    let values = Values::new().with("a", "1/2").with("extra", "ignored");
    assert_eq!(template.expand(&values).as_deref(), Ok("https://example.com/caf%C3%A9/%5Bx%5D/1%2F2"));
}
