//! Lookups are linear in the URI, whatever the templates: measured in steps, not in time.

use super::*;

/// A URI of about `n` bytes.
type Uri = fn(usize) -> String;

/// Templates, each with the URIs that cause the most work, as far as known.
fn hostile() -> Vec<(&'static str, Uri)> {
    fn repeated(before: &str, text: &str, bytes: usize, after: &str) -> String {
        format!("{before}{}{after}", text.repeat(bytes / text.len()))
    }
    vec![
        ("x://{a}-{b}-{c}-{d}", |n| repeated("x://", "-", n, "/")),
        ("x://{a}-{b}-{c}-{d}", |n| repeated("x:///", "-", n, "")),
        ("x://{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}", |n| repeated("x://", "-", n, "")),
        ("x://{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}", |n| repeated("x:///", "-", n, "")),
        ("x://{a}--{b}--{c}--{d}--{e}--{f}--{g}--{h}", |n| repeated("x:///", "-", n, "")),
        // No URI here contains `!`, so all of it is searched before the match fails.
        ("{+s}!{+a}/{+b}/{+c}/end", |n| repeated("x:", "/", n, "/end")),
        ("{+s}!{+a}x{+b}x{+c}x{+d}x{+e}x{+f}x{+g}", |n| repeated("x:", "x", n, "")),
        ("{+s}!{/a*}{.b*}-{c}-{d}{.e}", |n| repeated("x:", ".-", n, "a")),
        ("{+s}!{z}-h{.a*}{/b*}{.c}{/d*}", |n| repeated("x:", "./", n, "")),
        ("{+s}!{a}2D{b}2D{c}", |n| repeated("x:", "%2F2D", n, "")),
        ("{+s}!{;a*,b*,c*}", |n| repeated("x:", ";c", n, "")),
        ("{+s}!{;m*}{.n}", |n| repeated("x:", ";m=1", n, ".")),
        ("{+s}!{;a,b,c,d,e,f,g,h,i,j,k,l}", |n| repeated("x:;z=", "a", n, "")),
        ("{+s}!{a,b,c,d,e,f,g,h}-{i,j,k,l,m,n,o,p}", |n| repeated("x:", "-", n, "")),
        ("{+s}!{.a,b,c}{;i,j,k*,l,m,n}", |n| repeated("x:", ".", n, "")),
        ("{+s}!{.a,b,c,d,e}{/i,j,k,l,m,n}/z", |n| repeated("x:", ".", n, "/z")),
        ("x://s{?a,b,c,d,e,f,g,h}", |n| repeated("x://s?", "zz&", n, "")),
        ("x://s{?a*}", |n| repeated("x://s?", "a&", n, "")),
        ("x://s?{a}x{b}x{c}x{d}", |n| repeated("x://s?&", "x", n, "")),
        ("x://s{#a,b,c,d,e,f}", |n| repeated("x://s#", ",", n, "")),
        ("x://h/{+p}", |n| repeated("x://h/", "a/", n, "")),
        ("x://{a:9999}/{a}", |n| repeated("x://", "a", n, "/b")),
    ]
}

fn steps(index: &TemplateIndex, uri: &str) -> u64 {
    let normal = normalize(uri, 70_000).unwrap();
    let (found, steps) = index.lookup_within(&normal, TemplateIndex::STEP_BUDGET);
    assert_ne!(found, Lookup::None { exhausted: true }, "{} bytes", uri.len());
    steps
}

#[test]
fn steps_grow_linearly_with_a_hostile_uri() {
    for (template, uri) in hostile() {
        let index = index(&[template]);
        let [small, middle, large] = [1_000, 16_000, 64_000].map(|bytes| steps(&index, &uri(bytes)) as f64);
        // Between one and 64 KB, each byte costs at most a fifth more than in the smaller URI.
        assert!(
            middle <= 1.2 * 16.0 * small && large <= 1.2 * 4.0 * middle,
            "{template}: {small} {middle} {large}"
        );
    }
}

#[test]
fn many_ambiguous_templates_at_one_node_stay_within_the_budget() {
    let templates: Vec<_> = (0..10_000).map(|number| parse(&format!("x://{{a}}-k{number}-{{b}}"))).collect();
    let index = TemplateIndex::build(&templates).unwrap();
    let (found, few) = index.lookup_within("x://some-k4711-thing", TemplateIndex::STEP_BUDGET);
    assert!(matches!(found, Lookup::Match { index: 4711, .. }) && few < 200, "{few} steps");
    for uri in [
        format!("x://{}", "-".repeat(48_000)),
        format!("x://{}/", "-k1-".repeat(12_000)),
        format!("x://{}", "k1".repeat(24_000)),
    ] {
        steps(&index, &uri);
    }
}

/// No set of templates makes a lookup exceed the budget: it ends and reports that.
#[test]
fn a_uri_that_names_every_literal_ends_at_the_budget() {
    let templates: Vec<_> = (0..4_000).map(|number| parse(&format!("x://{{a}}-k{number}-{{b}}"))).collect();
    let index = TemplateIndex::build(&templates).unwrap();
    let uri = format!("x:///{}", (0..4_000).map(|number| format!("-k{number}-")).collect::<String>());
    let (found, steps) = index.lookup_within(&uri, TemplateIndex::STEP_BUDGET);
    assert_eq!((found, steps), (Lookup::None { exhausted: true }, TemplateIndex::STEP_BUDGET));
}

#[test]
fn other_templates_cost_nothing() {
    let text = |number: usize| format!("svc{number}://{{tenant}}/users/{{id}}");
    let all: Vec<_> = (0..10_000).map(|number| parse(&text(number))).collect();
    let many = TemplateIndex::build(&all).unwrap();
    let one = index(&[&text(77)]);
    let uri = "svc77://acme/users/1";
    assert!(matches!(many.lookup(uri), Lookup::Match { index: 77, .. }));
    assert!(steps(&many, uri) <= 2 * steps(&one, uri));
}
