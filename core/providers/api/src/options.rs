//! The options of the provider: its APIs and their endpoints.

use super::echo::SecretWords;
use super::openapi::EndpointFacts;
use super::pick::Pointer;
use super::template::UrlTemplate;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep, set_all};
use mcp_resources_provider_kit::named_secrets::{self, HiddenText, SecretSource, pairs};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{MIB, OptionDefault, OptionType};
use std::path::Path;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue};

provider_options! {
    /// The options of [`Api`](super::Api).
    ///
    /// ```
    /// use mcp_resources_provider_api::{Api, ApiEndpoint, ApiOptions};
    /// let item = ApiEndpoint::new("https://shop.example/items/{id}").header("Accept", "application/json").pick("/data");
    /// let api = Api::new(ApiOptions::new().endpoint("shop", "item", item))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct ApiOptions: "an object of options" {
        /// Serves each endpoint of each API as `api:///API/ENDPOINT/ID`.
        apis: custom(Vec<(String, ApiDeclaration)>, apis, OptionType::Named("an API", ApiDeclaration::TABLE));
        /// Whether requests may go to addresses that are not public, such as those of this machine.
        private_networks: flag = false;
        /// The maximum number of redirects that are followed. Headers are not sent to another origin.
        redirects: count = 0;
        /// The maximum time for an answer, with redirects.
        timeout: time = Duration::from_secs(10);
        /// The largest answer.
        bytes: size = MIB;
        /// The interval at which a resource is requested while clients watch it: at least 100 ms.
        poll: time = Duration::from_secs(30);
    }
}

provider_options! {
    /// An API: endpoints that are declared one by one, or operations of an OpenAPI document.
    ///
    /// ```no_run
    /// use mcp_resources_provider_api::{Api, ApiDeclaration, ApiOptions};
    /// let shop = ApiDeclaration::new().openapi("shop.yaml").allow(["GET /items/*"]).header_from_env("Authorization", "TOKEN");
    /// let api = Api::new(ApiOptions::new().api("shop", shop))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct ApiDeclaration: "an object with endpoints or openapi" {
        /// The endpoints by name. Each is a URL, or an object.
        endpoints: custom(
            Vec<(String, ApiEndpoint)>, endpoints, OptionType::Named("an endpoint", ApiEndpoint::TABLE), OptionDefault::Names
        ) = Vec::new();
        /// An OpenAPI document of version 3.0 or 3.1, in YAML or JSON, whose GET operations are endpoints: a file, or a URL
        /// that is requested at the start.
        openapi: some_text("file or URL") = None;
        /// The operations of the document that are served, such as `GET /items/*`: `*` is one segment, `**` any.
        allow: texts("operation") = [];
        /// The URL that the document's paths are behind. Default: the first of its `servers`.
        base_url: some_text("URL") = None;
        /// Headers to send to the operations: their values, or the environment variables that contain them.
        headers: custom(Vec<(String, SecretSource)>, headers, OptionType::NamedSecrets, OptionDefault::Names) = Vec::new();
    }
}

provider_options! {
    /// A declared endpoint.
    #[derive(Clone, Debug)]
    pub struct ApiEndpoint: "a URL or an object" {
        /// The URL. `{id}` in it stands for the end of the resource's URI, encoded as one path segment. Any other template of
        /// RFC 6570, such as `https://host/items/{id}/reviews{?page}`, has resources such as `…/7?page=2`.
        url: custom(Option<HiddenText>, url, OptionType::Text("URL"));
        /// Headers to send: their values, or the environment variables that contain them.
        headers: custom(Vec<(String, SecretSource)>, headers, OptionType::NamedSecrets, OptionDefault::Names) = Vec::new();
        /// A JSON pointer to the part of the answer that is served. Default: the whole answer.
        pick: some_text("JSON pointer") = None;
        /// The ids that are listed and completed. Others can be read too.
        ids: texts("text") = [];
        /// A description for clients.
        description: some_text("text") = None;
    }
}

/// Headers whose values are secrets, wherever they come from: a text may have been put together of a variable.
const CREDENTIALS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// An endpoint that was checked.
#[derive(Debug)]
pub(super) struct CheckedService {
    pub(super) url: UrlTemplate,
    /// Values are marked as sensitive: they are not shown when they are formatted.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The headers whose values come from the environment or are credentials, with the words of their values.
    secret: Vec<(HeaderName, SecretWords)>,
    pub(super) pick: Option<Pointer>,
    pub(super) ids: Vec<String>,
    pub(super) facts: EndpointFacts,
}

impl ApiEndpoint {
    /// Requests `url`, in which `{id}` is replaced by the end of the resource's URI.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: Some(HiddenText(url.into())), ..Self::default() }
    }

    /// Sends a header with this value.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), SecretSource::Literal(HiddenText(value.into()))));
        self
    }

    /// Sends a header whose value a variable of the environment has when the provider is made.
    #[must_use]
    pub fn header_from_env(mut self, name: impl Into<String>, variable: impl Into<String>) -> Self {
        self.headers.push((name.into(), SecretSource::Env(variable.into())));
        self
    }

    /// Checks the options and returns the request to send. `of` names the endpoint in the message.
    pub(super) fn check(&self, of: &str) -> Result<CheckedService, OptionError> {
        let refused = |what: String| OptionError::sentence(format!("api: {of}: {what}"));
        let Some(HiddenText(url)) = &self.url else {
            return Err(refused("there is no url; write `url: \"https://host/items/{id}\"`".into()));
        };
        let url = UrlTemplate::parse(url).map_err(|fault| refused(format!("the url {fault}")))?;
        let pick = match &self.pick {
            Some(text) => Some(Pointer::parse(text).ok_or_else(|| {
                refused(format!("pick is {text:?}, expected a JSON pointer such as \"/data/0\""))
            })?),
            None => None,
        };
        if !self.ids.is_empty() && !url.takes_id() {
            return Err(refused("it has ids, and its url has no place for one; add {id} to the url".into()));
        }
        for id in &self.ids {
            let mut uri = String::from("api:///-/-/");
            mcp_resources_provider_kit::path::append(&mut uri, id);
            let is_canonical = mcp_resources_template::uri::normalize(&uri, 1 << 20).as_deref() == Ok(&*uri);
            let has_dots = id.split('/').any(|segment| matches!(segment, "" | "." | ".."));
            if has_dots || !is_canonical || !mcp_resources_engine::guard::is_harmless(&uri) {
                return Err(refused(format!("the id {id:?} cannot stand in a URI; leave it out")));
            }
        }
        let facts = EndpointFacts { description: self.description.clone(), ..EndpointFacts::default() };
        CheckedService::new(url, &self.headers, facts)
            .map(|checked| CheckedService { pick, ids: self.ids.clone(), ..checked })
            .map_err(refused)
    }
}

impl CheckedService {
    /// An endpoint whose whole answer is served.
    ///
    /// # Errors
    /// A header is wrong, or its variable is not set: half a sentence.
    pub(super) fn new(
        url: UrlTemplate,
        sources: &[(String, SecretSource)],
        facts: EndpointFacts,
    ) -> Result<Self, String> {
        let headers: Vec<(HeaderName, HeaderValue)> =
            sources.iter().map(|(name, source)| checked(name, source)).collect::<Result<_, _>>()?;
        let mut secret = Vec::new();
        for ((name, value), (_, source)) in headers.iter().zip(sources) {
            let is_secret = matches!(source, SecretSource::Env(_)) || CREDENTIALS.contains(&name.as_str());
            if let (true, Ok(value)) = (is_secret, value.to_str())
                && let Some(words) = SecretWords::new(value)
                    .map_err(|_| format!("the value of the header {name} is too long"))?
            {
                secret.push((name.clone(), words));
            }
        }
        Ok(Self { url, headers, secret, pick: None, ids: Vec::new(), facts })
    }

    /// The URL to request for a resource: its id, or for a template of its own the URL itself.
    pub(super) fn target(&self, id: &str) -> String {
        if self.url.is_template() { id.to_owned() } else { self.url.expand(id) }
    }

    /// The header whose secret value occurs in the answer: as a whole, or a word of it such as the token
    /// behind `Bearer`, in any encoding.
    pub(super) fn repeated_secret(&self, answer: &[u8]) -> Option<&HeaderName> {
        self.secret.iter().find(|(_, words)| words.are_in(answer)).map(|(name, _)| name)
    }
}

/// A header that may be sent, with its current value.
fn checked(name: &str, source: &SecretSource) -> Result<(HeaderName, HeaderValue), String> {
    /// Headers that the client sets itself, or that delimit a message.
    const OWN: [&str; 9] = [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "if-modified-since",
        "if-none-match",
        "transfer-encoding",
        "upgrade",
    ];
    let header: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
    if OWN.contains(&header.as_str()) {
        return Err(format!("the header {name} cannot be set; leave it out"));
    }
    let text = source.text(&format!("the header {name}"))?;
    let mut value: HeaderValue = text.parse().map_err(|_| {
        format!(
            "the value of the header {name} has a character that no header can have, such as a line break"
        )
    })?;
    value.set_sensitive(true);
    Ok((header, value))
}

impl ApiOptions {
    /// The defaults, and no endpoint yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves an endpoint as `api:///API/NAME/{+id}`, as `api:///API/NAME` if its URL has no variable, or by a template of its
    /// own.
    #[must_use]
    pub fn endpoint(
        mut self,
        api: impl Into<String>,
        name: impl Into<String>,
        endpoint: ApiEndpoint,
    ) -> Self {
        let api = api.into();
        match self.apis.iter_mut().find(|(known, _)| *known == api) {
            Some((_, declaration)) => declaration.endpoints.push((name.into(), endpoint)),
            None => {
                let endpoints = vec![(name.into(), endpoint)];
                self.apis.push((api, ApiDeclaration { endpoints, ..ApiDeclaration::default() }));
            }
        }
        self
    }

    /// Serves an API as `api:///NAME/…`.
    #[must_use]
    pub fn api(mut self, name: impl Into<String>, api: ApiDeclaration) -> Self {
        self.apis.push((name.into(), api));
        self
    }

    /// Takes relative paths of documents as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        let documents = self.apis.iter_mut().filter_map(|(_, api)| api.openapi.as_mut());
        for document in documents.filter(|document| !is_url(document)) {
            *document = folder.join(&*document).to_string_lossy().into_owned();
        }
        self
    }
}

impl ApiDeclaration {
    /// An API without endpoints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an endpoint.
    #[must_use]
    pub fn endpoint(mut self, name: impl Into<String>, endpoint: ApiEndpoint) -> Self {
        self.endpoints.push((name.into(), endpoint));
        self
    }

    /// Sends a header with this value to the document's operations.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), SecretSource::Literal(HiddenText(value.into()))));
        self
    }

    /// Sends a header to the document's operations whose value a variable of the environment has when the provider is made.
    #[must_use]
    pub fn header_from_env(mut self, name: impl Into<String>, variable: impl Into<String>) -> Self {
        self.headers.push((name.into(), SecretSource::Env(variable.into())));
        self
    }
}

/// Whether a document is at a URL, and not in a file.
pub(super) fn is_url(document: &str) -> bool {
    document.starts_with("https://") || document.starts_with("http://")
}

fn apis(value: OptionValue) -> Result<Vec<(String, ApiDeclaration)>, OptionError> {
    let read = |(api, value): (String, OptionValue)| {
        let mut declaration = ApiDeclaration::default();
        let members = pairs(value).map(OptionValue::Members);
        match members.and_then(|members| set_all(&mut declaration, members)) {
            Ok(()) => Ok((api, declaration)),
            Err(error) => Err(error.under(PathStep::Name(api.into()))),
        }
    };
    pairs(value)?.into_iter().map(read).collect()
}

fn endpoints(value: OptionValue) -> Result<Vec<(String, ApiEndpoint)>, OptionError> {
    let read = |(name, value): (String, OptionValue)| match value {
        OptionValue::Text(url) => Ok((name, ApiEndpoint::new(url))),
        value => {
            let mut read = ApiEndpoint::default();
            match set_all(&mut read, value) {
                Ok(()) => Ok((name, read)),
                Err(error) => Err(error.under(PathStep::Name(name.into()))),
            }
        }
    };
    pairs(value)?.into_iter().map(read).collect()
}

fn url(value: OptionValue) -> Result<Option<HiddenText>, OptionError> {
    String::from_option(value).map(|url| Some(HiddenText(url)))
}

fn headers(value: OptionValue) -> Result<Vec<(String, SecretSource)>, OptionError> {
    named_secrets::read(value, "api: the header")
}
