//! Routing: which entry serves a URI, how its values are checked, and which resources are its ancestors.

use super::*;
use crate::error::ReadError;
use crate::resource::{ListSource, Parameter, ParameterKind};

fn route(catalog: &Catalog, normal: &str) -> String {
    match catalog.route(normal) {
        CatalogRoute::Resource(entry) => format!("resource {}", entry.canonical),
        CatalogRoute::Template(entry, params) => {
            let values: Vec<_> = params.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
            format!("template {} {}", entry.template.uri_template, values.len())
        }
        CatalogRoute::Rejected { template, variable, .. } => {
            format!("rejected {} {variable}", template.parsed.as_str())
        }
        CatalogRoute::Fallback(handler) => format!("fallback {handler}"),
        CatalogRoute::None { .. } => "none".into(),
    }
}

// DEC-14: exact resources first, then the most specific template; no other template is tried after a refused value.
#[test]
fn resources_go_before_templates() {
    let catalog =
        catalog([matching("note://{id}"), at("note://1"), matching("note://{id}/{part}"), at("x:a")]);
    assert_eq!(route(&catalog, "note://1"), "resource note://1");
    assert_eq!(route(&catalog, "note://2"), "template note://{id} 1");
    assert_eq!(route(&catalog, "note://2/a"), "template note://{id}/{part} 2");
    assert_eq!(route(&catalog, "note://a%2Fb"), "rejected note://{id} id");
    assert_eq!(route(&catalog, "other://1"), "none");
    assert_eq!(route(&empty(), "note://1"), "none");
}

/// Routes stay correct while other templates are added and removed.
#[test]
fn routes_follow_the_templates_that_are_there() {
    let one = catalog([matching("b://{x}"), matching("d://{x}")]);
    let (two, _) = one.apply(vec![matching("a://{x}"), matching("c://{x}")]).unwrap();
    let (three, _) = two.apply(vec![Edit::RemoveTemplate { uri_template: "b://{x}".into() }]).unwrap();
    for scheme in ["a", "c", "d"] {
        let uri = format!("{scheme}://1");
        assert_eq!(route(&three, &uri), format!("template {scheme}://{{x}} 1"));
    }
    assert_eq!(route(&three, "b://1"), "none");
    assert!(three.template_by_text("c://{x}").is_some() && three.template_by_text("b://{x}").is_none());
}

// S-16: the values of a match are checked against the parameters.
#[test]
fn parameters_are_checked() {
    let forecast = Template::new("weather://{city}{?days}")
        .parameter(Parameter::new("city").values(["tokyo", "oslo"]))
        .parameter(Parameter::new("days").kind(ParameterKind::Integer));
    let catalog = catalog([template(forecast)]);
    let check = |uri| match catalog.route(uri) {
        CatalogRoute::Template(entry, params) => entry.check(&params),
        other => panic!("{other:?}"),
    };
    assert_eq!(check("weather://oslo?days=3"), Ok(()));
    assert_eq!(check("weather://oslo"), Ok(()));
    let refused = |parameter: &str, value: &str, reason: &str| {
        let parameter = parameter.into();
        let value = value.into();
        let reason = reason.into();
        Err(ReadError::RefusedParameter { parameter, value, reason })
    };
    assert_eq!(check("weather://oslo?days=three"), refused("days", "three", "expected an integer"));
    assert_eq!(check("weather://rome?days=3"), refused("city", "rome", "expected one of: tokyo, oslo"));
}

// R-107, S-16: the handler completes a variable; without one, the values that the parameter allows do.
#[test]
fn completers() {
    let things = Template::new("x://{a}/{b}/{c}/{d}")
        .completes("a")
        .parameter(Parameter::new("a").values(["no"]))
        .parameter(Parameter::new("b").values(["yes"]))
        .parameter(Parameter::new("c").kind(ParameterKind::Boolean));
    let with = catalog([template(things)]);
    let entry = &with.templates()[0];
    assert_eq!(entry.completer("a"), Some(Completer::Handler));
    assert_eq!(entry.completer("b"), Some(Completer::Values(&["yes".into()])));
    assert_eq!(entry.completer("c"), Some(Completer::Words(&["false", "true"])));
    assert_eq!(entry.completer("d"), Some(Completer::Nothing));
    assert_eq!(entry.completer("e"), None);
    assert!(with.has_completers());
    let without = catalog([template(Template::new("x://{a}").parameter(Parameter::new("a")))]);
    assert!(!without.has_completers());
}

#[test]
fn list_sources_stand_in_the_order_of_their_text() {
    let source = |text: &str| template(Template::new(text).list(ListSource { pages: true }));
    let catalog = catalog([source("c://{x}"), matching("b://{x}"), source("a://{x}")]);
    let after = |text: Option<&str>| {
        let text = text.map(|text| SourceKey::Template(text.to_owned()));
        catalog
            .listers_after(ListKind::Resources, text.as_ref())
            .map(|lister| lister.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(after(None), ["a://{x}", "c://{x}"]);
    assert_eq!(after(Some("a://{x}")), ["c://{x}"]);
    assert_eq!(after(Some("b://gone")), ["c://{x}"]);
    assert!(after(Some("c://{x}")).is_empty());
    assert!(catalog.has_list_sources() && !empty().has_list_sources());
}

fn parents<'u>(catalog: &Catalog, normal: &'u str) -> Vec<&'u str> {
    catalog.parents_of(normal).collect()
}

/// Subscribers of a directory are notified of changes under it, by whole segments.
#[test]
fn parents_are_directories_above() {
    let directory = |uri: &str| resource(Resource::new(uri).children(true));
    let files = catalog([
        directory("file:///"),
        directory("file:///docs"),
        directory("file:///docs/a/"),
        at("file:///docs/b"),
    ]);
    assert_eq!(parents(&files, "file:///docs/a/1.md"), ["file:///", "file:///docs", "file:///docs/a/"]);
    assert_eq!(parents(&files, "file:///docs/b/1.md"), ["file:///", "file:///docs"]);
    assert_eq!(parents(&files, "file:///docs2/1.md"), ["file:///"]);
    assert_eq!(parents(&files, "file:///docs"), ["file:///"]);
    assert_eq!(parents(&files, "file:///"), Vec::<&str>::new());
    assert_eq!(parents(&files, "file:///docs?q=/a/b"), ["file:///"]);
    let root = catalog([directory("docs://"), directory("docs://guide")]);
    assert_eq!(parents(&root, "docs://guide/a//b"), ["docs://", "docs://guide"]);
    let (fewer, _) = files.apply(vec![remove("file:///docs")]).unwrap();
    assert_eq!(parents(&fewer, "file:///docs/b"), ["file:///"]);
    assert_eq!(parents(&catalog([at("x:a")]), "x:a/b"), Vec::<&str>::new());
}

#[test]
fn templates_have_children_too() {
    let files = catalog([template(Template::new("file:///{+path}").children(true)), at("file:///docs/b")]);
    assert_eq!(parents(&files, "file:///docs/a"), ["file:///docs", "file:///docs/"]);
    assert_eq!(parents(&files, "file:///docs/b/1"), ["file:///docs", "file:///docs/", "file:///docs/b/"]);
}

/// The cost depends on the depth that is examined, not on the length of the URI.
#[test]
fn parents_of_a_deep_path_are_bounded() {
    let files = catalog([template(Template::new("x://{+path}").children(true))]);
    let deep = format!("x://{}", "a/".repeat(5_000));
    assert!(parents(&files, &deep).len() <= 512);
}
