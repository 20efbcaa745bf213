//! Tests of the catalogue through its public functions.

mod check;
mod edit;
mod items;
mod list;
mod providers;
mod routes;

use super::*;
use crate::resource::{RegistrationError, Resource, Template};
use crate::version::FieldSet;
use serde_json::Value;

fn empty() -> Catalog {
    Catalog::new(&Limits::default())
}

fn catalog(edits: impl IntoIterator<Item = Edit>) -> Catalog {
    empty().apply(edits.into_iter().collect()).unwrap().0
}

fn resource(resource: Resource) -> Edit {
    Edit::AddResource { resource, source: ItemSource::Handler(0) }
}

fn at(uri: &str) -> Edit {
    resource(Resource::new(uri))
}

fn remove(uri: &str) -> Edit {
    Edit::RemoveResource { uri: uri.into() }
}

fn template(template: Template) -> Edit {
    Edit::AddTemplate { template: Box::new(template), handler: 0, mount: None }
}

fn matching(uri_template: &str) -> Edit {
    template(Template::new(uri_template))
}

fn refused(edit: Edit) -> RegistrationError {
    empty().apply(vec![edit]).unwrap_err()
}

/// All items of a list of resources, as JSON.
fn resources(catalog: &Catalog, fields: FieldSet) -> Vec<Value> {
    array(|out| drop(catalog.list_resources(None, everything(fields), &mut |_| true, out)))
}

/// All items of a list of templates, as JSON.
fn templates(catalog: &Catalog, fields: FieldSet) -> Vec<Value> {
    array(|out| drop(catalog.list_templates(None, everything(fields), &mut |_| true, out)))
}

fn everything(fields: FieldSet) -> CatalogPage {
    CatalogPage { items: usize::MAX, scan: usize::MAX, fields }
}

/// Parses the items that `write` appends as a JSON array.
fn array(write: impl FnOnce(&mut Vec<u8>)) -> Vec<Value> {
    let mut out = b"[".to_vec();
    write(&mut out);
    out.push(b']');
    serde_json::from_slice(&out).unwrap()
}

fn uris(catalog: &Catalog) -> Vec<String> {
    let uri = |item: Value| item["uri"].as_str().unwrap().to_owned();
    resources(catalog, FieldSet::Full).into_iter().map(uri).collect()
}
