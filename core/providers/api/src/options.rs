//! The options of the provider: its APIs and their endpoints.

use super::echo::SecretWords;
use super::pick::Pointer;
use super::url::UrlTemplate;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep, set_all};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{self, MIB, OptionDefault, OptionType};
use std::fmt;
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
        apis: custom(Vec<(String, String, ApiEndpoint)>, apis, OptionType::Named("an API", ApiEndpoint::TABLE));
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
    /// A declared endpoint.
    #[derive(Clone, Debug)]
    pub struct ApiEndpoint: "a URL or an object" {
        /// The URL. `{id}` in it stands for the end of the resource's URI, encoded as one path segment.
        url: custom(Option<Hidden>, url, OptionType::Text("URL"));
        /// Headers to send: their values, or the environment variables that contain them.
        headers: custom(Vec<(String, HeaderSource)>, headers, OptionType::NamedSecrets, OptionDefault::Names) = Vec::new();
        /// A JSON pointer to the part of the answer that is served. Default: the whole answer.
        pick: some_text("JSON pointer") = None;
        /// The ids that are listed and completed. Others can be read too.
        ids: texts("text") = [];
    }
}

/// A text that no log shows.
#[derive(Clone, Default)]
pub(crate) struct Hidden(String);

/// The source of a header's value.
#[derive(Clone, Debug)]
pub(crate) enum HeaderSource {
    Literal(Hidden),
    /// A variable of the environment.
    Env(String),
}

/// An endpoint that was checked.
#[derive(Debug)]
pub(super) struct CheckedService {
    pub(super) url: UrlTemplate,
    /// Values are marked as sensitive: they are not shown when they are formatted.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The headers whose values come from the environment, with the words of their values.
    secret: Vec<(HeaderName, SecretWords)>,
    pub(super) pick: Option<Pointer>,
    pub(super) ids: Vec<String>,
}

impl ApiEndpoint {
    /// Requests `url`, in which `{id}` is replaced by the end of the resource's URI.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: Some(Hidden(url.into())), ..Self::default() }
    }

    /// Sends a header with this value.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), HeaderSource::Literal(Hidden(value.into()))));
        self
    }

    /// Sends a header whose value a variable of the environment has when the provider is made.
    #[must_use]
    pub fn header_from_env(mut self, name: impl Into<String>, variable: impl Into<String>) -> Self {
        self.headers.push((name.into(), HeaderSource::Env(variable.into())));
        self
    }

    /// Checks the options and returns the request to send. `of` names the endpoint in the message.
    pub(super) fn check(&self, of: &str) -> Result<CheckedService, OptionError> {
        let refused = |what: String| OptionError::sentence(format!("api: {of}: {what}"));
        let Some(Hidden(url)) = &self.url else {
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
        let headers: Vec<(HeaderName, HeaderValue)> = self
            .headers
            .iter()
            .map(|(name, source)| checked(name, source).map_err(refused))
            .collect::<Result<_, _>>()?;
        let mut secret = Vec::new();
        for ((name, value), (_, source)) in headers.iter().zip(&self.headers) {
            if let (HeaderSource::Env(_), Ok(value)) = (source, value.to_str())
                && let Some(words) = SecretWords::new(value)
                    .map_err(|_| refused(format!("the value of the header {name} is too long")))?
            {
                secret.push((name.clone(), words));
            }
        }
        Ok(CheckedService { url, headers, secret, pick, ids: self.ids.clone() })
    }
}

impl CheckedService {
    /// The header whose value from the environment occurs in the answer: as a whole, or a word of it such as the token
    /// behind `Bearer`, in any encoding.
    pub(super) fn repeated_secret(&self, answer: &[u8]) -> Option<&HeaderName> {
        self.secret.iter().find(|(_, words)| words.are_in(answer)).map(|(name, _)| name)
    }
}

/// A header that may be sent, with its current value.
fn checked(name: &str, source: &HeaderSource) -> Result<(HeaderName, HeaderValue), String> {
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
    let value = match source {
        HeaderSource::Literal(Hidden(value)) => value.clone(),
        HeaderSource::Env(variable) => match std::env::var(variable) {
            Ok(value) => value,
            Err(std::env::VarError::NotPresent) => {
                return Err(format!(
                    "the header {name} comes from the variable {}, which is not set; set it, and start again",
                    options::variable(variable)
                ));
            }
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(format!(
                    "the variable {} for the header {name} is no text",
                    options::variable(variable)
                ));
            }
        },
    };
    let mut value: HeaderValue = value.parse().map_err(|_| {
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

    /// Serves an endpoint as `api:///API/NAME/{+id}`, or as `api:///API/NAME` if its URL takes no id.
    #[must_use]
    pub fn endpoint(
        mut self,
        api: impl Into<String>,
        name: impl Into<String>,
        endpoint: ApiEndpoint,
    ) -> Self {
        self.apis.push((api.into(), name.into(), endpoint));
        self
    }
}

/// Names with a value each: an object, or pairs of a language whose objects have names of options alone.
fn named(value: OptionValue) -> Result<Vec<(String, OptionValue)>, OptionError> {
    let pair = |item: OptionValue| match item {
        OptionValue::List(pair) => match <[OptionValue; 2]>::try_from(pair) {
            Ok([OptionValue::Text(name), value]) => Some((name, value)),
            _ => None,
        },
        _ => None,
    };
    match value {
        OptionValue::Members(members) => Ok(members),
        OptionValue::List(items) => {
            let pairs: Option<Vec<_>> = items.into_iter().map(pair).collect();
            pairs.ok_or_else(|| OptionError::wrong_type(&OptionValue::Other, "pairs of a name and a value"))
        }
        other => Err(OptionError::wrong_type(&other, "an object of names")),
    }
}

fn apis(value: OptionValue) -> Result<Vec<(String, String, ApiEndpoint)>, OptionError> {
    let mut endpoints = Vec::new();
    for (api, value) in named(value)? {
        let under = |error: OptionError| error.under(PathStep::Name(api.clone().into()));
        for (name, value) in named(value).map_err(under)? {
            if name != "endpoints" {
                return Err(under(OptionError::unknown("option", &name, &["endpoints"])));
            }
            let under = |error: OptionError| under(error.under(PathStep::Name("endpoints".into())));
            for (endpoint, value) in named(value).map_err(under)? {
                let read = match value {
                    OptionValue::Text(url) => Ok(ApiEndpoint::new(url)),
                    value => {
                        let mut read = ApiEndpoint::default();
                        set_all(&mut read, value).map(|()| read)
                    }
                };
                let read =
                    read.map_err(|error| under(error.under(PathStep::Name(endpoint.clone().into()))))?;
                endpoints.push((api.clone(), endpoint, read));
            }
        }
    }
    Ok(endpoints)
}

fn url(value: OptionValue) -> Result<Option<Hidden>, OptionError> {
    String::from_option(value).map(|url| Some(Hidden(url)))
}

fn headers(value: OptionValue) -> Result<Vec<(String, HeaderSource)>, OptionError> {
    named(value)?.into_iter().map(|(name, value)| header(name, value)).collect()
}

fn header(name: String, value: OptionValue) -> Result<(String, HeaderSource), OptionError> {
    let source = match value {
        OptionValue::Text(text) => HeaderSource::Literal(Hidden(text)),
        OptionValue::Members(mut members) if members.len() == 1 => match members.pop() {
            Some((env, OptionValue::Text(variable))) if env == "env" => HeaderSource::Env(variable),
            // The value may be a secret that was written in the wrong place.
            _ => return Err(wrong_header(&name)),
        },
        _ => return Err(wrong_header(&name)),
    };
    Ok((name, source))
}

fn wrong_header(name: &str) -> OptionError {
    OptionError::sentence(format!(
        "api: the header {name} has neither a text nor `{{env: NAME}}` as its value"
    ))
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
