//! The env provider: `env:///{name}`, for the variables that are allowed.
//!
//! Law: the environment is read once, when the provider is made, and only allowed variables are kept, already masked.
//! It is not read again with each request: another language may change the environment while our thread reads it,
//! without a common lock, and the process would crash. To serve changed variables, mount another provider.

use crate::config::{JSON, TEXT};
use crate::masks::{Detectors, MASK, Masks, globs, is_secret};
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{OptionDefault, OptionKind, OptionType};
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_runtime::provider::{Complete, Feed, List, Mount, Provider, Read, ReadRef, Responder};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

const INDEX: &str = "env:///";
const NAME: &str = "env:///{name}";

routes! {
    /// The resources and templates of the provider.
    enum EnvRoute {
        Index,
        Names,
    }
}

provider_options! {
    /// The options of [`Env`].
    ///
    /// ```
    /// use mcp_resources_provider_local::env::{Env, EnvOptions};
    /// let env = Env::new(EnvOptions::new().allow(["CI", "TZ"]))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct EnvOptions: "a name, a list of names, or an object of options", or allow: Text | List {
        /// The names of the variables that are served, if they are set. `LC_*` stands for all names that begin with `LC_`.
        allow: some_texts("name");
        /// The names of variables whose values are never masked.
        reveal: texts("name") = [];
        /// The detectors of secrets that mask values, by name, or `all`. Variables such as `PASSWORD` or `API_KEY` are masked in
        /// any case.
        redact: custom(Detectors, Detectors::from_option, OptionType::AllOr("detector"), OptionDefault::Text("all"))
            = Detectors::All;
    }
}

impl EnvOptions {
    /// Selects the detectors that look for secrets in values: names of
    /// [`Redactor::names`](mcp_resources_engine::guard::Redactor::names). Default: all. Names such as `API_KEY` mask in
    /// any case.
    #[must_use]
    pub fn redact(mut self, detectors: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.redact = Detectors::Named(detectors.into_iter().map(Into::into).collect());
        self
    }
}

/// Variables that are served, as they were when this was made.
#[derive(Clone, Debug)]
pub struct Env {
    /// By their names as in URIs, before percent-encoding.
    variables: Arc<BTreeMap<String, EnvVariable>>,
}

#[derive(Clone, Debug)]
struct EnvVariable {
    name: String,
    uri: String,
    value: Arc<str>,
}

impl Env {
    /// The variables of this process that `options` allow.
    ///
    /// # Errors
    /// No variable is allowed, or a name or a detector is wrong.
    pub fn new(options: EnvOptions) -> Result<Self, OptionError> {
        Self::from_variables(options, std::env::vars_os())
    }

    fn from_variables(
        options: EnvOptions,
        all: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, OptionError> {
        let Some(names) = options.allow else {
            let reason = "env: nothing is allowed; name the variables: `allow: [CI, TZ]`, or env:CI,TZ";
            return Err(OptionError::sentence(reason));
        };
        // The name is not repeated: what stands behind `=` may be a secret.
        if let Some(at) = names.iter().position(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let reason =
                format!("env: name {} of `allow` is no name; a name is not empty and has no `=`", at + 1);
            return Err(OptionError::sentence(reason).under(PathStep::Name("allow".into())));
        }
        let allow = globs("allow", &names)?;
        let masks = Masks::new(&options.redact, &options.reveal)?;
        let variables = all
            // What is no text is not served: no detector could look at it.
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| allow.is_match(name) && !masks.finds_in(name))
            .map(|(name, value)| {
                let value: Arc<str> = match masks.reveals(&name) {
                    true => value.into(),
                    false if is_secret(&name) => MASK.into(),
                    false => masks.text(&value).into(),
                };
                let text = path::text(name.as_bytes());
                let mut uri = String::from(INDEX);
                path::append(&mut uri, &text);
                (text, EnvVariable { name, uri, value })
            });
        Ok(Self { variables: Arc::new(variables.collect()) })
    }

    /// The variables of both; where both have one, it is shown as here.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        let _ = Declare::merge(&mut self, other.clone());
        self
    }

    fn value(&self, request: ReadRef<'_>) -> Result<ReadResult<'static>, ReadError> {
        if EnvRoute::parse(request.route()) == Some(EnvRoute::Index) {
            let shown = self.variables.values().filter(|variable| request.permits(&variable.uri));
            let shown: Map<_, _> =
                shown.map(|variable| (variable.name.clone(), Value::from(&*variable.value))).collect();
            return Ok(Contents::text(Value::Object(shown).to_string()).with_mime_type(JSON).into());
        }
        let variable =
            self.variables.get(request.param("name").unwrap_or_default()).ok_or(ReadError::NotFound)?;
        Ok(Contents::shared_text(variable.value.clone()).with_mime_type(TEXT).into())
    }
}

impl Declare for Env {
    const KIND: OptionKind = OptionKind {
        name: "env",
        about: "The variables of the environment that are allowed, as env:///NAME.",
        options: EnvOptions::TABLE,
    };

    fn declare(options: OptionValue, _folder: &Path) -> Result<Self, OptionError> {
        Self::new(declared::read("env", options)?)
    }

    /// Adds the variables of `other`. A variable that both have stays as it is here.
    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let variables = Arc::make_mut(&mut self.variables);
        for (text, variable) in &*other.variables {
            variables.entry(text.clone()).or_insert_with(|| variable.clone());
        }
        Ok(())
    }

    /// `NAME,NAME`: the variables that are allowed.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        match rest {
            "" => Err(OptionError::sentence("\"env:\" names no variable; write env:NAME,NAME")),
            _ => Ok(OptionValue::List(rest.split(',').map(|name| name.trim().into()).collect())),
        }
    }
}

impl Provider for Env {
    fn mount(self: Arc<Self>, _feed: Feed) -> Result<Mount, RegistrationError> {
        let index = Resource::new(INDEX)
            .name("env")
            .title("The variables of the environment that are served, with their values")
            .mime_type(JSON)
            .priority(1.0);
        let names = Template::new(NAME)
            .title("A variable of the environment")
            .mime_type(TEXT)
            .completes("name")
            .list(ListSource { pages: true });
        Ok(Mount::new("env").resource(EnvRoute::Index, index).template(EnvRoute::Names, names).workers(1, 64))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        Some(self.value(request))
    }

    fn read(&self, _request: Read, reply: Responder<ReadResult<'static>>) {
        reply.send(Err(ReadError::NotFound));
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let after = request.cursor().unwrap_or_default();
        let rest = self
            .variables
            .iter()
            .filter(|(text, variable)| text.as_str() > after && request.permits(&variable.uri));
        let page = page(
            request.limit(),
            rest,
            |(text, _)| (*text).clone(),
            |(_, variable)| {
                let size = variable.value.len() as u64;
                Resource::new(&*variable.uri).name(&*variable.name).mime_type(TEXT).size(size)
            },
        );
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value().to_lowercase();
        let fits = self.variables.iter().filter(|(text, variable)| {
            text.to_lowercase().starts_with(&typed) && request.permits(&variable.uri)
        });
        reply.send(Ok(completion(fits.map(|(text, _)| text.clone()))));
    }
}
