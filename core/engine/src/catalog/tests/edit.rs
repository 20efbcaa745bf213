//! Edits: all or none, and snapshots that do not affect each other.

use super::*;

// one URI, one resource, whatever the spelling.
#[test]
fn a_uri_is_registered_once() {
    let one = catalog([at("HTTPS://Example.com/a")]);
    let again = one.apply(vec![at("https://example.com/%61")]);
    assert_eq!(
        again.unwrap_err(),
        RegistrationError::DuplicateResource { uri: "https://example.com/%61".into() }
    );
    assert!(empty().apply(vec![at("x:a"), at("X:a")]).is_err());
}

// the resource that holds the URI stays, in the list and behind the URI.
#[test]
fn a_refused_resource_leaves_the_one_that_holds_its_uri() {
    let one = catalog([at("x:a")]);
    let (again, _, reports) = one.apply_each(vec![at("X:a"), at("x:b")]);
    assert!(reports[0].is_err() && reports[1].is_ok());
    assert!(Arc::ptr_eq(one.resource("x:a").unwrap(), again.resource("x:a").unwrap()));
    assert_eq!(uris(&again), ["x:a", "x:b"]);
}

#[test]
fn edits_are_applied_all_or_none() {
    let before = catalog([at("x:a")]);
    assert!(before.apply(vec![at("x:b"), matching("x:{id}"), remove("x:a"), at("not a uri")]).is_err());
    assert_eq!(uris(&before), ["x:a"]);
    assert!(before.templates().is_empty());
}

#[test]
fn a_snapshot_does_not_change() {
    let before = catalog([at("x:a"), matching("x:t/{id}")]);
    let edits = vec![at("x:b"), remove("x:a"), Edit::RemoveTemplate { uri_template: "x:t/{id}".into() }];
    let (after, applied) = before.apply(edits).unwrap();
    assert_eq!((uris(&before), before.templates().len()), (vec!["x:a".to_owned()], 1));
    assert_eq!((uris(&after), after.templates().len()), (vec!["x:b".to_owned()], 0));
    assert!(applied.resources_changed && applied.templates_changed);
}

// an edit without effect announces no change.
#[test]
fn applied_says_what_changed() {
    let before = catalog([at("x:a"), matching("x:t/{id}")]);
    let nothing = vec![remove("x:b"), Edit::RemoveTemplate { uri_template: "x:t/{key}".into() }];
    assert_eq!(before.apply(nothing).unwrap().1, Applied::default());
    let (_, added) = before.apply(vec![at("x:b")]).unwrap();
    assert!(added.resources_changed && !added.templates_changed && added.removed.is_empty());
    let (_, added) = before.apply(vec![matching("y:{id}")]).unwrap();
    assert!(!added.resources_changed && added.templates_changed);
    assert!(before.apply(vec![remove("not a uri")]).is_err());
}

/// A removed or replaced URI counts as updated.
#[test]
fn removed_uris_are_canonical() {
    let before = catalog([at("x:a"), at("x:b")]);
    let replaced = Resource::new("x:a").name("new");
    let (after, applied) = before.apply(vec![remove("X:%61"), resource(replaced)]).unwrap();
    assert_eq!(applied.removed, [Arc::from("x:a")]);
    assert_eq!(after.resource("x:a").unwrap().resource.details.name.as_deref(), Some("new"));
}

// DEC-14.
#[test]
fn conflicts_name_the_new_template_first() {
    for (old, new) in [("x:t/{a}", "x:t/{b}"), ("x:t/{b}", "x:t/{a}"), ("x:t/{a}", "x:t/{a}")] {
        let error = catalog([matching(old)]).apply(vec![matching(new)]).unwrap_err();
        assert_eq!(error, RegistrationError::TemplateConflict { template: new.into(), with: old.into() });
    }
    let replace = vec![Edit::RemoveTemplate { uri_template: "x:t/{a}".into() }, matching("x:t/{b}")];
    assert!(catalog([matching("x:t/{a}")]).apply(replace).is_ok());
}

//
#[test]
fn templates_that_are_added_one_by_one_are_routed_and_refused_like_a_batch() {
    let text = |number: usize| format!("x{number}://{{a}}/{{b}}");
    let one_by_one =
        (0..300).fold(empty(), |catalog, number| catalog.apply(vec![matching(&text(number))]).unwrap().0);
    for number in [0, 128, 299] {
        let uri = format!("x{number}://1/2");
        let CatalogRoute::Template(entry, _) = one_by_one.route(&uri) else {
            panic!("{uri} has no template")
        };
        assert_eq!(entry.template.uri_template, text(number));
    }
    let refused = one_by_one.apply(vec![matching("x7://{c}/{d}")]).unwrap_err();
    let template = "x7://{c}/{d}".to_owned();
    let with = text(7);
    assert_eq!(refused, RegistrationError::TemplateConflict { template, with });
    let without = Edit::RemoveTemplate { uri_template: text(7) };
    let (other, _) = one_by_one.apply(vec![without, matching("x7://{c}/{d}")]).unwrap();
    assert!(matches!(other.route("x7://1/2"), CatalogRoute::Template(..)));
}

// with few templates, each edit reports the shadowed ones; with many, only a batch of edits does.
#[test]
fn shadows_are_looked_for_in_proportion_to_what_is_edited() {
    let shadowed = ["y://h/{a,b}", "y://h/{c}"];
    let warned = |catalog: &Catalog, texts: &[String]| {
        let edits = texts.iter().map(|text| matching(text)).collect();
        let (_, applied) = catalog.apply(edits).unwrap();
        applied.warnings.iter().any(|warning| warning.contains("more specific"))
    };
    let many: Vec<_> = (0..300).map(|number| format!("x{number}://{{a}}")).collect();
    let catalog = catalog(many.iter().map(|text| matching(text)));
    let shadowed = shadowed.map(str::to_owned);
    assert!(warned(&empty(), &shadowed));
    assert!(!warned(&catalog, &shadowed));
    assert!(warned(&empty(), &[&many[..], &shadowed[..]].concat()));
}

// R-071, and the lints of templates: reported once, when the cause is registered.
#[test]
fn warnings_are_reported_once() {
    let (one, applied) =
        empty().apply(vec![at("https://example.com/a"), matching("file:///{path}")]).unwrap();
    assert_eq!(applied.warnings.len(), 2, "{:?}", applied.warnings);
    assert!(applied.warnings[0].starts_with("https://example.com/a: "), "{:?}", applied.warnings);
    assert!(applied.warnings[1].contains("{+path}"), "{:?}", applied.warnings);
    let (_, applied) = one.apply(vec![at("x:a"), matching("x:t/{id}")]).unwrap();
    assert_eq!(applied.warnings, Vec::<String>::new());
}

#[test]
fn the_catalogue_has_bounds() {
    let limits = Limits { resources: 2, templates: 1, ..Limits::default() };
    let full = Catalog::new(&limits).apply(vec![at("x:a"), at("x:b"), matching("x:t/{id}")]).unwrap().0;
    let reached = |what, limit| RegistrationError::LimitReached { what, limit };
    assert_eq!(full.apply(vec![at("x:c")]).unwrap_err(), reached("resources", 2));
    assert_eq!(full.apply(vec![matching("x:u/{id}")]).unwrap_err(), reached("templates", 1));
    let duplicate = RegistrationError::DuplicateResource { uri: "x:a".into() };
    assert_eq!(full.apply(vec![at("x:a")]).unwrap_err(), duplicate);
    assert!(full.apply(vec![remove("x:a"), at("x:c")]).is_ok());
}

/// Templates added one by one do not each build an index: it is built at the first lookup.
#[test]
fn templates_that_are_added_one_by_one_share_one_index() {
    let mut catalog = Catalog::new(&Limits::default());
    for number in 0..300 {
        let template = Template::new(format!("t{number}://{{x}}"));
        catalog = catalog
            .apply(vec![Edit::AddTemplate { template: Box::new(template), handler: 0, mount: None }])
            .unwrap()
            .0;
        assert_eq!(catalog.templates.is_indexed(), number < 128, "{number}");
    }
    assert!(matches!(catalog.route("t7://a"), CatalogRoute::Template(..)));
    assert!(catalog.templates.is_indexed());
}
