//! Registrations that are refused. Each case is a line: a field and a value, valid or not.

use super::*;
use crate::resource::{Annotations, CacheHint, CacheScope, Icon, Parameter, ParameterKind};

fn field(edit: Edit) -> String {
    match refused(edit) {
        RegistrationError::InvalidField { field, .. } => field,
        other => panic!("{other}"),
    }
}

fn any() -> Resource {
    Resource::new("config://app")
}

// R-078.
#[test]
fn priority_is_between_0_and_1() {
    for good in [0.0, -0.0, 0.5, 1.0] {
        catalog([resource(any().priority(good))]);
    }
    for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(field(resource(any().priority(bad))), "priority");
    }
    let error = refused(resource(any().priority(1.5))).to_string();
    assert_eq!(error, r#""config://app": priority is "1.5", expected a number from 0 to 1"#);
}

// R-078.
#[test]
fn last_modified_has_a_zone() {
    catalog([resource(any().last_modified("2025-01-12T15:00:58+09:00"))]);
    for bad in ["2025-01-12T15:00:58", "yesterday", ""] {
        assert_eq!(field(resource(any().last_modified(bad))), "lastModified");
    }
}

// R-079.
#[test]
fn icons_are_http_or_data() {
    for good in ["https://example.com/a.png", "HTTP://example.com/a.png", "data:image/png;base64,AAAA"] {
        catalog([resource(any().icon(Icon::new(good).size("48x48").size("any").mime_type("image/png")))]);
    }
    for bad in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "",
        "icon.png",
        "https:///a",
        "https://",
        "http:a.png",
        "data:image/png",
        "data:text/html,a b",
        "https://exa mple.com/",
        "ftp://example.com/a",
    ] {
        assert_eq!(field(resource(any().icon(Icon::new(bad)))), "icons[0].src", "{bad}");
    }
    let icons = [Icon::new("https://example.com/"), Icon::new("https://example.com/").size("48")];
    assert_eq!(field(resource(any().icons(icons))), "icons[1].sizes");
    let icon = Icon::new("https://example.com/").mime_type("png");
    assert_eq!(field(resource(any().icon(icon))), "icons[0].mimeType");
}

// R-069, R-073: the scheme is checked, and everything behind it.
#[test]
fn uris() {
    for good in ["a+b.c-1:x", "file:///a.md", "docs://ガイド/概要", "urn:isbn:1"] {
        catalog([at(good)]);
    }
    for bad in ["my scheme:x", "1ab:x", "", "a.md", "/a", "x://a b", "x://100%", "my_app://x", "x://a\nb"] {
        assert!(matches!(refused(at(bad)), RegistrationError::InvalidUri { .. }), "{bad}");
    }
    let error = refused(at("weather://{city}")).to_string();
    assert!(error.contains("registered as a template"), "{error}");
}

/// A URI too long for a cursor would end every walk of the list.
#[test]
fn uris_have_a_longest_key() {
    let long = format!("x:{}", "a".repeat(Cursor::MAX_KEY));
    assert_eq!(refused(at(&long)), RegistrationError::LimitReached { what: "uri", limit: Cursor::MAX_KEY });
    catalog([at(&long[..Cursor::MAX_KEY])]);
}

// R-021, R-022.
#[test]
fn meta_keys_are_the_authors_own() {
    catalog([resource(any().meta(r#"{"com.example/team":"docs","plain":1}"#))]);
    for key in ["io.modelcontextprotocol/x", "traceparent", "io.github.mcp-resources/parameters"] {
        let error = refused(resource(any().meta(format!("{{\"{key}\":1}}"))));
        assert_eq!(error, RegistrationError::ReservedMetaKey { of: "config://app".into(), key: key.into() });
    }
    for bad in ["[]", "{", "", r#"{"a b":1}"#, r#"{"a":1,"a":2}"#] {
        assert_eq!(field(resource(any().meta(bad))), "_meta", "{bad}");
    }
}

#[test]
fn the_other_fields() {
    assert_eq!(field(resource(any().name(" "))), "name");
    assert_eq!(field(resource(any().mime_type("text"))), "mimeType");
    assert_eq!(field(resource(any().size(1 << 53))), "size");
    let cache = CacheHint { ttl_ms: 1 << 53, scope: CacheScope::Public };
    assert_eq!(field(resource(any().cache(cache))), "ttlMs");
    assert_eq!(field(resource(Resource::new("x://a?b").children(true))), "children");
    let annotations = Annotations { extra: Some("[]".into()), ..Annotations::default() };
    assert_eq!(field(resource(any().annotations(annotations))), "annotations");
}

// R-060.
#[test]
fn templates_are_refused_with_their_offset() {
    match refused(matching("note://{id")) {
        RegistrationError::InvalidTemplate { template, offset, .. } => {
            assert_eq!(template, "note://{id");
            assert!(offset >= 7, "{offset}");
        }
        other => panic!("{other}"),
    }
}

// S-16: options of a variable must be consistent with the template.
#[test]
fn parameters_belong_to_the_template() {
    let note = || Template::new("note://{id}{?day}");
    let with = |parameter| template(note().parameter(parameter));
    catalog([with(Parameter::new("id").kind(ParameterKind::Integer).values(["1", "2"]))]);
    assert_eq!(field(with(Parameter::new("key"))), "parameters[0].name");
    assert_eq!(field(with(Parameter::new("id").pattern("(a"))), "parameters[0].pattern");
    assert_eq!(
        field(with(Parameter::new("id").kind(ParameterKind::Integer).values(["1", "b"]))),
        "parameters[0].enum"
    );
    let twice = note().parameter(Parameter::new("id")).parameter(Parameter::new("id"));
    assert_eq!(field(template(twice)), "parameters[1].name");
    assert_eq!(field(template(note().completes("day").completes("key"))), "completes[1]");
    let mut options = mcp_resources_template::TemplateOptions::default();
    options.variables.insert("key".into(), Default::default());
    assert_eq!(field(template(note().options(options))), "vars");
    let error = refused(template(note().completes("key"))).to_string();
    assert!(
        error.ends_with(r#"completes[0] is "key", expected a variable of the template: id, day"#),
        "{error}"
    );
}
