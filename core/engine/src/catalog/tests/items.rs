//! List items, byte for byte, in each set of fields.

use super::*;
use crate::resource::{Annotations, Audience, Icon, Parameter, ParameterKind, Theme};
use serde_json::json;

fn rich() -> Resource {
    let annotations = Annotations { extra: Some(r#"{ "team": "docs" }"#.into()), ..Annotations::default() };
    Resource::new("file:///a.md")
        .annotations(annotations)
        .name("a.md")
        .title("A \"title\"")
        .description("資源")
        .mime_type("text/markdown")
        .size(42)
        .audience([Audience::User, Audience::Assistant])
        .priority(0.8)
        .last_modified("2025-01-12T15:00:58Z")
        .icon(Icon::new("https://example.com/a.png").mime_type("image/png").size("48x48").theme(Theme::Dark))
        .meta("{\n\"com.example/b\": [1, 2],\n\"a\": {}}")
}

fn encoded(fields: FieldSet) -> String {
    let mut out = Vec::new();
    catalog([resource(rich())]).list_resources(
        None,
        CatalogPage::new(&Limits::default(), fields),
        &mut |_| true,
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

// DEC-11, R-058: each revision gets the fields it defines, in one order.
#[test]
fn items_have_the_fields_of_their_revision() {
    assert_eq!(
        encoded(FieldSet::Basic),
        r#"{"uri":"file:///a.md","name":"a.md","description":"資源","mimeType":"text/markdown","annotations":{"audience":["user","assistant"],"priority":0.8},"size":42}"#
    );
    assert_eq!(
        encoded(FieldSet::Titled),
        r#"{"uri":"file:///a.md","name":"a.md","title":"A \"title\"","description":"資源","mimeType":"text/markdown","annotations":{"audience":["user","assistant"],"priority":0.8,"lastModified":"2025-01-12T15:00:58Z"},"size":42,"_meta":{"com.example/b":[1,2],"a":{},"io.github.mcp-resources/annotations":{"team":"docs"}}}"#
    );
    assert_eq!(
        encoded(FieldSet::Full),
        r#"{"uri":"file:///a.md","name":"a.md","title":"A \"title\"","description":"資源","mimeType":"text/markdown","annotations":{"audience":["user","assistant"],"priority":0.8,"lastModified":"2025-01-12T15:00:58Z"},"icons":[{"src":"https://example.com/a.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}],"size":42,"_meta":{"com.example/b":[1,2],"a":{},"io.github.mcp-resources/annotations":{"team":"docs"}}}"#
    );
}

/// Absent values are omitted: no nulls, no empty objects.
#[test]
fn the_name_of_a_bare_item_is_its_uri() {
    let bare = catalog([resource(Resource::new("x:a").meta("{}")), matching("x:t/{id}")]);
    assert_eq!(resources(&bare, FieldSet::Full), [json!({"uri": "x:a", "name": "x:a"})]);
    assert_eq!(templates(&bare, FieldSet::Full), [json!({"uriTemplate": "x:t/{id}", "name": "x:t/{id}"})]);
}

// R-073, DEC-29: a URI is listed as registered, unless RFC 3986 forbids one of its characters.
#[test]
fn uris_are_listed_as_given_or_in_canonical_form() {
    let listed = catalog([at("X:%61"), at("docs://ガ"), at("x:a|b")]);
    assert_eq!(uris(&listed), ["docs://%E3%82%AC", "X:%61", "x:a%7Cb"]);
    assert!(listed.resource("x:a").is_some() && listed.resource("docs://%E3%82%AC").is_some());
}

// S-16, R-060: parameters are published in `_meta`, and no template has a size.
#[test]
fn templates_publish_their_parameters() {
    let forecast = Template::new("weather://{city}/{day}{?unit,n,tags*}")
        .title("Forecast")
        .parameter(Parameter::new("city").description("A city"))
        .parameter(Parameter::new("day").kind(ParameterKind::Date))
        .parameter(Parameter::new("unit").values(["C", "F"]).required(true))
        .parameter(Parameter::new("n").kind(ParameterKind::Integer).values(["1", "-7"]))
        .parameter(Parameter::new("tags").pattern("[a-z]+"))
        .meta(r#"{"a":1}"#);
    let catalog = catalog([template(forecast)]);
    let parameters = json!({
        "city": {"type": "string", "description": "A city", "required": true},
        "day": {"type": "string", "format": "date", "required": true},
        "unit": {"type": "string", "enum": ["C", "F"], "required": true},
        "n": {"type": "integer", "enum": [1, -7]},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^(?:[a-z]+)$"}},
    });
    let expected = json!({
        "uriTemplate": "weather://{city}/{day}{?unit,n,tags*}",
        "name": "weather://{city}/{day}{?unit,n,tags*}",
        "title": "Forecast",
        "_meta": {"a": 1, "io.github.mcp-resources/parameters": parameters},
    });
    assert_eq!(templates(&catalog, FieldSet::Titled), std::slice::from_ref(&expected));
    assert_eq!(templates(&catalog, FieldSet::Full), [expected]);
    let basic = &templates(&catalog, FieldSet::Basic)[0];
    assert!(basic.get("_meta").is_none() && basic.get("title").is_none());
}

/// Items that a callback returns are checked and encoded like registered ones.
#[test]
fn unregistered_items_are_encoded_alike() {
    let mut item = rich();
    assert_eq!(&*check_resource(&mut item, &Limits::default()).unwrap(), "file:///a.md");
    let mut out = Vec::new();
    encode_item(&item, FieldSet::Full, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), encoded(FieldSet::Full));
}
