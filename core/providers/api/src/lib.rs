//! HTTP APIs: `api:///{name}/{endpoint}/{+id}`, for endpoints that the operator declares, or allows of an OpenAPI document.
//! An endpoint whose URL has other variables than `{id}` has a template of its own.
//!
//! ```text
//!   read ──▶ Service ──fresh copy──▶ answered
//!              └──▶ one request for all who wait ──▶ Fetcher: judges addresses, sends, bounds ──▶ Cache
//!   while somebody watches a resource, a thread requests it again and again, and compares
//! ```
//!
//! Law: only declared URLs are requested. Credentials are the operator's and stay in this process: no answer, error or
//! log line contains one. If an answer cannot be fetched, a stale copy marked as such is served, or an error without
//! any text of the server.

mod address;
mod body;
mod cache;
mod document;
mod echo;
mod fetch;
mod fresh;
mod openapi;
mod options;
mod pick;
mod service;
#[doc(hidden)]
pub mod template;
#[cfg(test)]
mod tests;
mod url;
mod watch;

pub use options::{ApiDeclaration, ApiEndpoint, ApiOptions};

use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::option_file;
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::watching::{OwnWatch, ProviderWatching};
use mcp_resources_runtime::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, ReadRef, Responder,
};
use serde_json::{Value, json};
use service::{ServedAnswer, Service};
use std::path::Path;
use std::sync::Arc;

const INDEX: &str = "api:///";
const ENDPOINT: &str = "api:///{name}/{endpoint}";
const ITEM: &str = "api:///{name}/{endpoint}/{+id}";
routes! {
    /// The resources and templates of the provider.
    enum ApiRoute {
        Index,
        Endpoints,
        Items,
        /// An endpoint with a template of its own, by its place among all.
        Own(at: usize),
    }
}
const JSON: &str = "application/json";
/// The longest id, in bytes.
const ID: usize = 1_024;

/// Endpoints of HTTP APIs that are served. They are in one server at a time.
#[derive(Debug)]
pub struct Api {
    /// One for each declaration, with its options.
    services: Vec<Arc<Service>>,
    own: OwnWatch,
    watching: Arc<ProviderWatching>,
}

impl Api {
    /// Makes a provider of the endpoints of `options`. Reads variables of the environment and OpenAPI documents. Sends no
    /// request, except for documents at a URL, which it waits for.
    ///
    /// # Errors
    /// There is no endpoint, two have the same name, a URL, header or pointer is wrong, a variable is not set, or a document
    /// cannot be had or read.
    pub fn new(options: ApiOptions) -> Result<Self, OptionError> {
        let service = Arc::new(Service::new(&options)?);
        Ok(Self { services: vec![service], own: OwnWatch::default(), watching: Arc::default() })
    }

    /// The endpoints of both, each with its own options.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn join(mut self, other: Self) -> Result<Self, OptionError> {
        self.merge(other)?;
        Ok(self)
    }

    /// All endpoints.
    fn endpoints(&self) -> impl Iterator<Item = (&Arc<Service>, usize, &ServedAnswer)> {
        self.services.iter().flat_map(|service| {
            service.endpoints.iter().enumerate().map(move |(number, served)| (service, number, served))
        })
    }

    fn find(
        &self,
        name: Option<&str>,
        endpoint: Option<&str>,
    ) -> Option<(&Arc<Service>, usize, &ServedAnswer)> {
        let name = name?;
        let endpoint = endpoint?;
        self.endpoints().find(|(_, _, served)| served.api == name && served.name == endpoint)
    }

    /// An endpoint with a template of its own, by its place among all.
    fn own(&self, at: usize) -> Option<(&Arc<Service>, usize, &ServedAnswer)> {
        self.endpoints().nth(at)
    }

    /// Answers what needs no request; the others are left to the service.
    fn read_local(&self, request: ReadRef<'_>) -> Result<Option<ReadResult<'static>>, ReadError> {
        let permits = |uri: &str| request.permits(uri);
        let route = ApiRoute::parse(request.route());
        if route == Some(ApiRoute::Index) {
            let endpoints: Vec<Value> = self
                .endpoints()
                .filter(|(_, _, served)| permits(&served.uri))
                .map(|(_, _, served)| served.described(&|_| false))
                .collect();
            return Ok(Some(json_contents(&json!({ "endpoints": endpoints }))));
        }
        if let Some(ApiRoute::Own(_)) = route {
            return Ok(None);
        }
        let (_, _, served) =
            self.find(request.param("name"), request.param("endpoint")).ok_or(ReadError::NotFound)?;
        let id = request.param("id").filter(|_| route == Some(ApiRoute::Items));
        if served.template.is_some() {
            return match id {
                Some(_) => Err(ReadError::NotFound),
                None if served.checked.url.has_segments() => {
                    Ok(Some(json_contents(&served.described(&permits))))
                }
                None => Ok(None),
            };
        }
        match id {
            None if !served.checked.url.takes_id() => Ok(None),
            None => Ok(Some(json_contents(&served.described(&permits)))),
            Some(id) if id.is_empty() || !served.checked.url.takes_id() => Err(ReadError::NotFound),
            Some(id) if id.len() > ID => Err(ReadError::InvalidParameter {
                parameter: "id".into(),
                expected: format!("a text of at most {ID} bytes"),
            }),
            Some(_) => Ok(None),
        }
    }
}

impl Declare for Api {
    const KIND: OptionKind = OptionKind {
        name: "api",
        about: "Declared endpoints of HTTP APIs, as api:///API/ENDPOINT/ID.",
        options: ApiOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        declared::read("api", options).and_then(|options: ApiOptions| Self::new(options.at(folder)))
    }

    fn places(&self) -> Vec<String> {
        self.endpoints().map(|(_, _, served)| declared::place(&served.uri)).collect()
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        for (_, _, served) in other.endpoints() {
            if self.find(Some(&served.api), Some(&served.name)).is_some() {
                return Err(service::same_name(&served.api, &served.name));
            }
        }
        self.services.extend(other.services);
        Ok(())
    }

    /// `FILE`: a YAML or JSON file with the options.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        if rest.is_empty() {
            return Err(OptionError::sentence(
                "\"api:\" names no file; write api:FILE, a YAML file with the options of api",
            ));
        }
        option_file::read("api", Path::new(rest))
    }
}

impl Provider for Api {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        for note in self.services.iter().flat_map(|service| &service.notes) {
            feed.log(note);
        }
        self.own.mount("api", feed)?;
        self.watching.begin_anew();
        let index = Resource::new(INDEX)
            .name("api")
            .title("The endpoints of the APIs that are served, each with its URI")
            .mime_type(JSON)
            .priority(1.0);
        let endpoints = Template::new(ENDPOINT)
            .title("An endpoint of an API: its contents, or what it has")
            .completes("name")
            .completes("endpoint")
            .list(ListSource { pages: true });
        let items = Template::new(ITEM)
            .title("What an endpoint of an API has under an id")
            .completes("name")
            .completes("endpoint")
            .completes("id")
            .list(ListSource { pages: true });
        let mount = Mount::new("api").resource(ApiRoute::Index, index);
        let mount = mount.template(ApiRoute::Endpoints, endpoints).template(ApiRoute::Items, items);
        let own = self
            .endpoints()
            .enumerate()
            .filter_map(|(at, (_, _, served))| Some((at, served.own_template()?)));
        let mount = own.fold(mount, |mount, (at, template)| mount.template(ApiRoute::Own(at), template));
        Ok(mount.workers(8, 256))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        self.read_local(request).transpose()
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let found = match ApiRoute::parse(request.route()) {
            Some(ApiRoute::Own(at)) => self.own(at),
            _ => self.find(request.param("name"), request.param("endpoint")),
        };
        let Some((service, number, served)) = found else { return reply.send(Err(ReadError::NotFound)) };
        if served.template.is_none() {
            return service.read(number, request.param("id").unwrap_or_default(), reply);
        }
        match service.target(number, &|name| request.param(name)) {
            Ok(target) => service.read(number, &target, reply),
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Lists the declared resources. Sends no request.
    fn list(&self, request: List, reply: Responder<ListPage>) {
        let mut all: Vec<(String, Resource)> = Vec::new();
        for (_, _, served) in self.endpoints() {
            if ApiRoute::parse(request.route()) == Some(ApiRoute::Endpoints) {
                all.push((served.uri.clone(), served.listed()));
            } else {
                let items = served.checked.ids.iter().map(|id| (served.item(id), served.listed_item(id)));
                all.extend(items);
            }
        }
        all.retain(|(uri, _)| request.permits(uri));
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.dedup_by(|(one, _), (other, _)| one == other);
        let after = request.cursor().unwrap_or_default();
        let rest = all.into_iter().filter(|(uri, _)| uri.as_str() > after);
        reply.send(Ok(page(request.limit(), rest, |(uri, _)| uri.clone(), |(_, resource)| resource)));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value();
        let of = |served: &ServedAnswer| {
            request.argument("name").is_none_or(|name| name == served.api)
                && request.argument("endpoint").is_none_or(|name| name == served.name)
        };
        let mut values: Vec<String> = Vec::new();
        for (_, _, served) in self.endpoints() {
            if served.template.as_ref().is_some_and(|template| template.as_str() == request.reference()) {
                if request.permits(&served.uri) {
                    values.extend(served.values(request.variable()));
                }
                continue;
            }
            match request.variable() {
                "name" if request.permits(&served.uri) => values.push(served.api.clone()),
                "endpoint" if of(served) && request.permits(&served.uri) => values.push(served.name.clone()),
                "id" if of(served) => {
                    let ids = served.checked.ids.iter().filter(|id| request.permits(&served.item(id)));
                    values.extend(ids.map(|id| served.encode_id(id)));
                }
                _ => {}
            }
        }
        values.retain(|value| value.starts_with(typed));
        values.sort();
        values.dedup();
        reply.send(Ok(completion(values)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        self.watching.interest(change, self.own.feed(), "mcp-api", || watch::looks(self.services.clone()));
    }
}

impl ServedAnswer {
    /// The template of its resources, if they have one of their own.
    fn own_template(&self) -> Option<Template> {
        let facts = &self.checked.facts;
        let mut template = Template::new(self.template.as_ref()?.as_str()).name(self.full_name());
        for (text, set) in [
            (&facts.title, Template::title as fn(Template, String) -> Template),
            (&facts.description, Template::description),
            (&facts.mime_type, Template::mime_type),
        ] {
            if let Some(text) = text {
                template = set(template, text.clone());
            }
        }
        let completed = facts.parameters.iter().filter(|parameter| !parameter.values.is_empty());
        Some(completed.fold(template, |template, parameter| template.completes(parameter.name.as_str())))
    }

    /// The only values of a variable, if it has few.
    fn values(&self, variable: &str) -> Vec<String> {
        let found = self.checked.facts.parameters.iter().find(|parameter| parameter.name == variable);
        found.map(|parameter| parameter.values.clone()).unwrap_or_default()
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.api, self.name)
    }

    /// Describes an endpoint for the index, with those of its ids that the client may see.
    fn described(&self, permits: &dyn Fn(&str) -> bool) -> Value {
        if let Some(template) = &self.template {
            return json!({ "uri": self.uri, "uriTemplate": template.as_str() });
        }
        if !self.checked.url.takes_id() {
            return json!({ "uri": self.uri });
        }
        let items: Vec<String> =
            self.checked.ids.iter().map(|id| self.item(id)).filter(|uri| permits(uri)).collect();
        json!({ "uri": self.uri, "uriTemplate": format!("{}/{{+id}}", self.uri), "items": items })
    }

    fn listed(&self) -> Resource {
        let facts = &self.checked.facts;
        let mut listed = Resource::new(&*self.uri).name(self.full_name());
        if let Some(title) = &facts.title {
            listed = listed.title(title.as_str());
        }
        if let Some(description) = &facts.description {
            listed = listed.description(description.as_str());
        }
        let is_described = self.checked.url.takes_id() || self.checked.url.has_segments();
        match &facts.mime_type {
            _ if is_described => listed.mime_type(JSON),
            Some(mime_type) => listed.mime_type(mime_type.as_str()),
            None => listed,
        }
    }

    fn listed_item(&self, id: &str) -> Resource {
        let name =
            if id.trim().is_empty() { self.item(id) } else { format!("{}/{}/{id}", self.api, self.name) };
        Resource::new(self.item(id)).name(name)
    }

    /// The URI of the resource with this id.
    fn item(&self, id: &str) -> String {
        format!("{}/{}", self.uri, self.encode_id(id))
    }

    fn encode_id(&self, id: &str) -> String {
        let mut encoded = String::new();
        path::append(&mut encoded, id);
        encoded
    }
}

fn json_contents(value: &Value) -> ReadResult<'static> {
    Contents::text(value.to_string()).with_mime_type(JSON).into()
}
