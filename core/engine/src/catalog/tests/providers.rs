//! Registrations of providers: sources and templates of mounts, a fallback, updates, and edits that are judged one by
//! one.

use super::*;

const ONE: MountId = MountId(1);
const OTHER: MountId = MountId(2);

fn source(key: &str, handler: HandlerId, mount: MountId) -> Edit {
    Edit::AddSource { list: ListKind::Resources, key: key.into(), handler, mount, pages: false }
}

fn foreign(mount: MountId, text: &str) -> Edit {
    let json = format!(r#"{{"uriTemplate": {text:?}, "name": "t", "later": [1]}}"#);
    Edit::AddForeignTemplate { mount, uri_template: text.into(), json }
}

fn mounted(uri_template: &str, handler: HandlerId, mount: MountId) -> Edit {
    Edit::AddTemplate { template: Box::new(Template::new(uri_template)), handler, mount: Some(mount) }
}

fn fallback(handler: impl Into<Option<HandlerId>>) -> Edit {
    Edit::SetFallback { handler: handler.into() }
}

fn update(uri: &str) -> Edit {
    let last_modified = Some("2026-01-02T03:04:05Z".into());
    let description = None;
    Edit::UpdateResource { uri: uri.into(), size: Some(7), last_modified, description }
}

fn listers(catalog: &Catalog, after: Option<&SourceKey>) -> Vec<SourceKey> {
    catalog.listers_after(ListKind::Resources, after).map(Lister::key).collect()
}

// R-101: sources without a template follow those of templates, in the order of their keys.
#[test]
fn sources_have_one_order() {
    let lists = Template::new("m:{x}").list(crate::resource::ListSource::default());
    let edits = [source("z", 1, ONE), template(lists), source("a", 2, OTHER), matching("b:{x}")];
    let catalog = catalog(edits);
    let keys = [SourceKey::Template("m:{x}".into()), SourceKey::Key("a".into()), SourceKey::Key("z".into())];
    assert_eq!(listers(&catalog, None), keys);
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(listers(&catalog, Some(key)), keys[at + 1..]);
        assert_eq!(catalog.lister(key).unwrap().key(), *key);
    }
    assert_eq!(listers(&catalog, Some(&SourceKey::Template("z:{gone}".into()))), keys[1..]);
    assert_eq!(listers(&catalog, Some(&SourceKey::Key("b".into()))), keys[2..]);
    assert!(catalog.lister(&SourceKey::Template("b:{x}".into())).is_none(), "it has no callback");
    assert!(catalog.has_list_sources() && !empty().has_list_sources());
}

#[test]
fn a_key_names_one_source_and_only_its_mount_removes_it() {
    let before = catalog([source("files:a", 4, ONE)]);
    let error = before.apply(vec![source("files:a", 5, OTHER)]).unwrap_err().to_string();
    assert!(error.contains("\"files:a\"") && error.contains("no other list source"), "{error}");
    for key in ["", "a\nb", &"x".repeat(1025)] {
        assert!(empty().apply(vec![source(key, 1, ONE)]).is_err(), "{key:?}");
    }
    let remove = |mount| vec![Edit::RemoveSource { mount, key: "files:a".into() }];
    assert_eq!(before.apply(remove(OTHER)).unwrap().1, Applied::default());
    let (after, applied) = before.apply(remove(ONE)).unwrap();
    assert!(after.is_empty() && applied.sources_changed);
    assert_eq!(applied.freed, [4]);
}

/// An item belongs to a source if the same mount serves it; without a mount, if the same handler does.
#[test]
fn a_source_owns_what_its_mount_serves() {
    let plain = |text: &str, handler| Edit::AddTemplate {
        template: Box::new(Template::new(text).list(crate::resource::ListSource::default())),
        handler,
        mount: None,
    };
    let catalog = catalog([
        mounted("a:{x}", 1, ONE),
        mounted("b:{x}", 2, ONE),
        mounted("c:{x}", 3, OTHER),
        plain("d:{x}", 4),
        plain("e:{x}", 5),
        source("one", 6, ONE),
        at("a:registered"),
    ]);
    let owned = |key: SourceKey| {
        let lister = catalog.lister(&key).unwrap();
        let uris = ["a:1", "b:1", "c:1", "d:1", "e:1", "none:1", "a:registered"];
        uris.into_iter().filter(|uri| lister.owns(&catalog.route(uri))).collect::<Vec<_>>()
    };
    assert_eq!(owned(SourceKey::Key("one".into())), ["a:1", "b:1"]);
    assert_eq!(owned(SourceKey::Template("d:{x}".into())), ["d:1"]);
    let catalog = catalog.apply(vec![fallback(9)]).unwrap().0;
    let owns = |key: SourceKey| catalog.lister(&key).unwrap().owns(&catalog.route("none:1"));
    assert!(owns(SourceKey::Key("one".into())) && !owns(SourceKey::Template("d:{x}".into())));
}

#[test]
fn the_fallback_comes_last() {
    use mcp_resources_template::TemplateOptions;
    let rejects = Template::new("f:{+path}").options(TemplateOptions::default());
    let catalog = catalog([at("x:a"), matching("t:{id}"), template(rejects), fallback(9)]);
    let handler = |uri| match catalog.route(uri) {
        CatalogRoute::Fallback(handler) => Some(handler),
        _ => None,
    };
    assert_eq!(["x:a", "t:1", "x:b", "none:1"].map(handler), [None, None, Some(9), Some(9)]);
    assert!(matches!(catalog.route("f:../../etc"), CatalogRoute::Rejected { .. }), "it stays refused");
    let (after, applied) = catalog.apply(vec![fallback(10)]).unwrap();
    assert_eq!((after.fallback(), applied.freed, applied.fallback_changed), (Some(10), vec![9], true));
    assert_eq!(after.apply(vec![fallback(10)]).unwrap().1, Applied::default());
    let gone = after.apply(vec![fallback(None)]).unwrap().0;
    assert!(matches!(gone.route("none:1"), CatalogRoute::None { .. }));
}

// R-060: a template of another server is listed in the order of its text, is never routed, and may repeat another
// template's text.
#[test]
fn templates_of_other_servers_are_listed_in_their_place() {
    let edits = [
        matching("b:{x}"),
        foreign(OTHER, "b:{x}"),
        foreign(ONE, "b:{x}"),
        foreign(ONE, "a:{odd"),
        foreign(ONE, "c:{+a}{+b}"),
        matching("d:{x}"),
    ];
    let catalog = catalog(edits);
    let expected = ["a:{odd", "b:{x}", "b:{x}", "b:{x}", "c:{+a}{+b}", "d:{x}"];
    let texts = |items: Vec<Value>| -> Vec<String> {
        items.iter().map(|item| item["uriTemplate"].as_str().unwrap().to_owned()).collect()
    };
    for fields in [FieldSet::Basic, FieldSet::Full] {
        assert_eq!(texts(templates(&catalog, fields)), expected);
    }
    assert_eq!(templates(&catalog, FieldSet::Basic)[0]["later"][0], 1, "members of other revisions stay");
    let mut walked = Vec::new();
    let mut after = None::<String>;
    loop {
        let mut out = Vec::new();
        let page = CatalogPage { items: 1, scan: 10, fields: FieldSet::Full };
        let done = catalog.list_templates(after.as_deref(), page, &mut |_| true, &mut out);
        walked.push(serde_json::from_slice(&out).unwrap());
        after = done.last.map(|last| last.to_string());
        if !done.more {
            break;
        }
    }
    assert_eq!(texts(walked), expected, "by pages");
    assert!(matches!(catalog.route("c:12"), CatalogRoute::None { .. }));
    assert!(catalog.template_by_text("c:{+a}{+b}").is_none());
    let remove = |mount, text: &str| Edit::RemoveForeignTemplate { mount, uri_template: text.into() };
    let (after, applied) = catalog.apply(vec![remove(ONE, "b:{x}"), remove(OTHER, "a:{odd")]).unwrap();
    assert!(applied.templates_changed);
    assert_eq!(texts(templates(&after, FieldSet::Full)).len(), 5);
    assert!(matches!(
        catalog.apply(vec![foreign(ONE, "a:{odd")]),
        Err(RegistrationError::TemplateConflict { .. })
    ));
}

// R-145, and the limits `list_item`, `nesting` and `templates`.
#[test]
fn invalid_templates_of_other_servers_are_refused() {
    let small = Limits { list_item: 100, nesting: 3, templates: 2, ..Limits::default() };
    let add = |json: &str| {
        let uri_template = "a:{".into();
        let edit = Edit::AddForeignTemplate { mount: ONE, uri_template, json: json.into() };
        Catalog::new(&small)
            .apply(vec![edit])
            .map(|(catalog, _)| templates(&catalog, FieldSet::Full).remove(0))
    };
    let name = r#""name":"n""#;
    let text = r#""uriTemplate":"a:{""#;
    let long = format!("{{{name},{text},\"x\":\"{}\"}}", "y".repeat(100));
    for (json, reason) in [
        ("[]", "not a JSON object"),
        ("{", "not a JSON object"),
        (&*format!("{{{name}}}"), "\\\"uriTemplate\\\" is not this text"),
        (&format!("{{{name},\"uriTemplate\":\"b:{{\"}}"), "is not this text"),
        (&format!("{{{name},{text},{text}}}"), "stands twice"),
        (&format!("{{{text}}}"), "\\\"name\\\" is not a text"),
        (&format!("{{{name},{text},\"x\":[[[1]]]}}"), "nested more than 3 deep"),
        (&long, "more than the limit `list_item` of 100"),
    ] {
        let error = add(json).unwrap_err().to_string();
        assert!(error.contains(reason), "{json}: {error}");
    }
    assert_eq!(add(&format!("{{{name},\r\n {text} }}")).unwrap()["name"], "n");
    let lines = Edit::AddForeignTemplate {
        mount: ONE,
        uri_template: "a:{".into(),
        json: format!("{{{name},\r\n {text} }}"),
    };
    let mut out = Vec::new();
    let catalog = catalog([lines]);
    catalog.list_templates(None, everything(FieldSet::Full), &mut |_| true, &mut out);
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
    let full = Catalog::new(&small).apply(vec![foreign(ONE, "a:{"), source("s", 1, ONE), matching("t:{x}")]);
    assert_eq!(full.unwrap_err(), RegistrationError::LimitReached { what: "templates", limit: 2 });
}

// R-076: updating a resource in place changes the list and removes nothing.
#[test]
fn a_resource_is_updated_in_place() {
    let before = catalog([resource(Resource::new("X:a").name("n").description("d").size(1)), at("x:b")]);
    let (after, applied) = before.apply(vec![update("x:%61")]).unwrap();
    assert_eq!(applied, Applied { resources_changed: true, ..Applied::default() });
    let item = &resources(&after, FieldSet::Full)[0];
    assert_eq!(
        (&item["uri"], &item["name"], &item["description"]),
        (&"X:a".into(), &"n".into(), &"d".into())
    );
    assert_eq!(
        (&item["size"], &item["annotations"]["lastModified"]),
        (&7.into(), &"2026-01-02T03:04:05Z".into())
    );
    assert_eq!(after.resource("x:a").unwrap().resource.size, Some(7));
    assert_eq!(resources(&before, FieldSet::Full)[0]["size"], 1, "a snapshot does not change");
    assert_eq!(after.apply(vec![update("x:a")]).unwrap().1, Applied::default(), "nothing new");
    let error = before.apply(vec![update("x:none")]).unwrap_err().to_string();
    assert!(error.contains("\"x:none\"") && error.contains("a registered resource"), "{error}");
    let wrong = Edit::UpdateResource {
        uri: "x:a".into(),
        size: None,
        last_modified: Some("yesterday".into()),
        description: None,
    };
    assert!(before.apply(vec![wrong]).unwrap_err().to_string().contains("lastModified"));
}

/// One bad edit does not refuse the others, and each report is about its own edit.
#[test]
fn edits_are_checked_one_by_one() {
    let before = catalog([matching("a:{x}"), at("x:a")]);
    let edits = vec![
        at("x:b"),
        at("x:a"),
        matching("a:{y}"),
        matching("b:{x}"),
        matching("b:{y}"),
        matching("{"),
        Edit::RemoveTemplate { uri_template: "a:{x}".into() },
        matching("a:{z}"),
        at("not a uri"),
        source("s", 3, ONE),
        source("s", 4, ONE),
        update("x:none"),
        remove("x:a"),
    ];
    let (after, applied, reports) = before.apply_each(edits);
    let refused: Vec<_> =
        reports.iter().enumerate().filter(|(_, report)| report.is_err()).map(|(at, _)| at).collect();
    assert_eq!(refused, [1, 2, 4, 5, 8, 10, 11]);
    let conflict = |template: &str, with: &str| RegistrationError::TemplateConflict {
        template: template.into(),
        with: with.into(),
    };
    assert_eq!(reports[2], Err(conflict("a:{y}", "a:{x}")));
    assert_eq!(reports[4], Err(conflict("b:{y}", "b:{x}")));
    assert_eq!(uris(&after), ["x:b"]);
    let texts: Vec<_> = after.templates().iter().map(|entry| entry.template.uri_template.clone()).collect();
    assert_eq!(texts, ["a:{z}", "b:{x}"]);
    assert!(
        matches!(after.route("a:1"), CatalogRoute::Template(..))
            && matches!(after.route("b:1"), CatalogRoute::Template(..))
    );
    assert!(applied.resources_changed && applied.templates_changed && applied.sources_changed);
    assert!(after.apply(vec![matching("b:{z}")]).is_err(), "the shapes are kept");
    let (same, applied, reports) = after.apply_each(vec![matching("a:{q}")]);
    assert!(reports[0].is_err() && same.templates().len() == 2 && applied == Applied::default());
}

/// A provider that publishes 10,000 entries, 100 of them bad.
#[test]
fn many_edits_are_one_change() {
    let edits =
        (0..10_000).map(|number| at(&if number % 100 == 7 { "bad".into() } else { format!("x:{number}") }));
    let (after, _, reports) = empty().apply_each(edits.collect());
    assert_eq!((after.len(), reports.iter().filter(|report| report.is_err()).count()), (9_900, 100));
}

// S-57: a method and an extension belong to one mount, and only this mount can remove them.
#[test]
fn methods_and_extensions_belong_to_one_mount() {
    let method = |mount| Edit::AddMethod {
        mount: Some(mount),
        extension: Box::new(Extension { method: "notes/list".into(), handler: 4, ..Extension::default() }),
    };
    let extension =
        |mount| Edit::AddExtension { mount, id: "com.example/notes".into(), settings: "{\n}".into() };
    let before = catalog([method(ONE), extension(ONE)]);
    let handler = |method: &str| before.method(method).map(|entry| entry.extension.handler);
    assert_eq!([handler("notes/list"), handler("notes/get")], [Some(4), None]);
    assert_eq!(before.extensions().map(|entry| &*entry.settings).collect::<Vec<_>>(), ["{}"]);
    assert!(before.apply(vec![method(OTHER)]).is_err() && before.apply(vec![extension(OTHER)]).is_err());
    assert!(before.without(OTHER, &[]).is_empty() && !before.is_empty());
    let others = vec![
        Edit::RemoveMethod { mount: Some(OTHER), method: "notes/list".into() },
        Edit::RemoveExtension { mount: OTHER, id: "com.example/notes".into() },
    ];
    assert!(!before.apply(others).unwrap().0.is_empty());
    let (after, applied) = before.apply(before.without(ONE, &[])).unwrap();
    assert!(after.is_empty() && applied.freed == [4]);
}
