//! An engine made from a catalogue fixture.

use super::write;
use mcp_resources_engine::catalog::{Edit, HandlerId, ItemSource, ToolSource};
use mcp_resources_engine::connection::{AccessRequest, Answer};
use mcp_resources_engine::engine::{
    AccessQuestion, Engine, EngineOptions, Extension, Interest, Observer, ServerInfo,
};
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::{
    Annotations, Audience, CacheHint, CacheScope, Details, Icon, ListSource, Parameter, ParameterKind,
    Prompt, PromptArgument, RegistrationError, Resource, Template, Theme, Tool, ToolAnnotations,
    ToolVisibility, UiCsp, UiPage, UiPermission,
};
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::version::Revision;
use mcp_resources_template::{TemplateOptions, VariableOptions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// The handlers by name, and what those that decide about access say. The engine gives them numbers.
#[derive(Debug, Default)]
pub(crate) struct Handlers(BTreeMap<String, HandlerId>, Watches, BTreeMap<HandlerId, Value>);

/// Who began or ceased to be watched, as the format writes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches(Arc<Mutex<Vec<Value>>>);

impl Observer for Watches {
    fn interest(&self, change: Interest<'_>) {
        if let Interest::Uri { uri, before, now } = change
            && before.is_watched != now.is_watched
        {
            let word = if now.is_watched { "watched" } else { "unwatched" };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(json!({ word: **uri }));
        }
    }
}

impl Handlers {
    /// The URIs that began or ceased to be watched since the last call.
    #[cfg(test)]
    pub(crate) fn take_watches(&self, engine: &Engine) -> Vec<Value> {
        engine.settle_interest();
        std::mem::take(&mut *self.1.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn name(&self, id: HandlerId) -> &str {
        self.0.iter().find(|(_, other)| **other == id).map_or("?", |(name, _)| name)
    }

    /// The answer of a handler that decides about access.
    pub(crate) fn decides(&self, request: &AccessRequest) -> Answer<'static> {
        let access = self.2.get(&request.batch.handler).unwrap_or(&Value::Null);
        let variable = access["variable"].as_str().expect("a variable");
        let who = request.caller.principal.id();
        let may = |question: &AccessQuestion| {
            let value = question.param(variable).unwrap_or_default();
            Some(list(&access["may"][value]).any(|one| one == who))
        };
        Answer::Access(request.batch.questions.iter().map(may).collect())
    }

    fn number(&mut self, name: &str, engine: &Engine) -> HandlerId {
        *self.0.entry(name.to_owned()).or_insert_with(|| engine.new_handler())
    }
}

/// The engine, and what its handlers are called.
pub(crate) fn engine(catalog: &Value) -> Result<(Arc<Engine>, Handlers), RegistrationError> {
    let mut options = options(&catalog["options"]);
    let mut handlers = Handlers::default();
    // Extensions are given before there is an engine to number their handlers: it will number from 0 as well.
    for extension in list(&catalog["extensions"]) {
        let name = text(&extension["handler"]).expect("an extension has a handler");
        let number = HandlerId::try_from(handlers.0.len()).expect("a few");
        handlers.0.insert(name.clone(), number);
        options.extensions.push(door(extension, number));
    }
    let engine = Engine::new(server(&catalog["server"]), options)?;
    engine.observe(Arc::new(handlers.1.clone()));
    for number in handlers.0.values().collect::<std::collections::BTreeSet<_>>() {
        assert_eq!(engine.new_handler(), *number);
    }
    let entries = ENTRIES.iter().flat_map(|kind| list(&catalog[*kind]).map(move |entry| (*kind, entry)));
    let edits =
        entries.map(|(kind, entry)| added(kind, entry, &engine, &mut handlers)).collect::<Result<_, _>>();
    engine.publish(edits?, super::START)?;
    Ok((engine, handlers))
}

/// The edits of an `edit` step: removals first, then additions.
pub(crate) fn edits(
    step: &Value,
    engine: &Engine,
    handlers: &mut Handlers,
) -> Result<Vec<Edit>, RegistrationError> {
    let removed = list(&step["remove"]).map(|removed| match removed.as_str() {
        Some(template) if template.contains('{') => {
            Edit::RemoveTemplate { uri_template: template.to_owned() }
        }
        Some(uri) => Edit::RemoveResource { uri: uri.to_owned() },
        None => match (text(&removed["tool"]), text(&removed["prompt"])) {
            (Some(name), _) => Edit::RemoveTool { name },
            (_, Some(name)) => Edit::RemovePrompt { name },
            _ => panic!("{removed}: nothing that can be removed"),
        },
    });
    let mut edits: Vec<_> = removed.collect();
    let entries = ["add", "tools", "prompts"].into_iter();
    let entries = entries.flat_map(|kind| list(&step[kind]).map(move |entry| (kind, entry)));
    for (kind, entry) in entries {
        edits.push(added(kind, entry, engine, handlers)?);
    }
    Ok(edits)
}

/// The word of the format for an error.
#[cfg(test)]
pub(crate) fn word(error: &RegistrationError) -> &'static str {
    match error {
        RegistrationError::InvalidUri { .. } => "invalid_uri",
        RegistrationError::InvalidTemplate { .. } => "invalid_template",
        RegistrationError::TemplateConflict { .. } => "template_conflict",
        RegistrationError::DuplicateResource { .. } => "duplicate_resource",
        RegistrationError::InvalidField { .. } => "invalid_field",
        RegistrationError::DuplicateTool { .. } => "duplicate_tool",
        RegistrationError::DuplicatePrompt { .. } => "duplicate_prompt",
        RegistrationError::ReservedMetaKey { .. } => "reserved_meta_key",
        RegistrationError::LimitReached { .. } => "limit_reached",
        _ => "?",
    }
}

/// A resource of the catalogue, or one that a `.list` callback gives.
pub(crate) fn resource(entry: &Value) -> Resource {
    let mut resource = Resource::new(text(&entry["uri"]).expect("a resource has a uri"));
    resource.size = entry["size"].as_u64();
    resource.children = entry["children"] == Value::Bool(true);
    describe(&mut resource.details, entry);
    resource
}

pub(crate) fn list_kinds(word: &Value) -> ListKinds {
    match word.as_str() {
        Some("resources") => ListKinds::RESOURCES,
        Some("tools") => ListKinds::TOOLS,
        Some("prompts") => ListKinds::PROMPTS,
        _ => panic!("{word}: no list"),
    }
}

/// `ttlMs` and `cacheScope`, if either is given.
pub(crate) fn cache(entry: &Value) -> Option<CacheHint> {
    let ttl = entry["ttlMs"].as_u64();
    let scope = entry["cacheScope"].as_str();
    let scope = scope.map(|word| CacheScope::parse(word).expect("public or private"));
    (ttl.is_some() || scope.is_some())
        .then(|| CacheHint { ttl_ms: ttl.unwrap_or_default(), scope: scope.unwrap_or_default() })
}

pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The lists of a catalogue, whose entries are registered in this order.
const ENTRIES: [&str; 4] = ["resources", "templates", "tools", "prompts"];

fn added(
    kind: &str,
    entry: &Value,
    engine: &Engine,
    handlers: &mut Handlers,
) -> Result<Edit, RegistrationError> {
    let mut handler = || handlers.number(entry["handler"].as_str().expect("a handler"), engine);
    match kind {
        "tools" => {
            let source = ToolSource::Handler(handler());
            return Ok(Edit::AddTool { tool: tool(entry).into(), source, mount: None });
        }
        "prompts" => {
            return Ok(Edit::AddPrompt { prompt: prompt(entry).into(), handler: handler(), mount: None });
        }
        _ => {}
    }
    if let Some(uri_template) = text(&entry["uriTemplate"]) {
        let handler = handler();
        if let Some(access) = entry.get("access") {
            handlers.2.insert(handler, access.clone());
        }
        return Ok(Edit::AddTemplate {
            template: Box::new(template(uri_template, entry)),
            handler,
            mount: None,
        });
    }
    let source = match (&entry["text"], &entry["blob"]) {
        (Value::String(constant), _) => ItemSource::Text(constant.as_str().into()),
        (_, Value::String(constant)) => ItemSource::Bytes(super::answer::bytes(constant).into()),
        _ => ItemSource::Handler(handler()),
    };
    let resource = match entry.get("page") {
        Some(about) => page(entry, about).into_resource()?.0,
        None => resource(entry),
    };
    Ok(Edit::AddResource { resource, source })
}

/// A page with what it says about itself.
fn page(entry: &Value, about: &Value) -> UiPage {
    let mut page = UiPage::new(text(&entry["uri"]).expect("a page has a uri"), "");
    let origins = |name: &str| list(&about["csp"][name]).filter_map(text).collect();
    page.csp = UiCsp {
        connect_domains: origins("connectDomains"),
        resource_domains: origins("resourceDomains"),
        frame_domains: origins("frameDomains"),
        base_uri_domains: origins("baseUriDomains"),
    };
    let permissions = list(&about["permissions"]).filter_map(Value::as_str);
    page.permissions = permissions.filter_map(UiPermission::parse).collect();
    page.domain = text(&about["domain"]);
    page.prefers_border = about["prefersBorder"].as_bool();
    describe(&mut page.details, entry);
    page
}

fn template(uri_template: String, entry: &Value) -> Template {
    let mut template = Template::new(uri_template);
    template.children = entry["children"] == Value::Bool(true);
    template.tool = text(&entry["tool"]);
    template.completes = list(&entry["complete"]).filter_map(text).collect();
    template.list = entry["list"].as_str().map(|how| ListSource { pages: how == "paged" });
    template.options = TemplateOptions::default();
    if let Some(word) = entry["extraQuery"].as_str() {
        template.options.extra_query = word.parse().expect("ignore or reject");
    }
    for (name, given) in entry["vars"].as_object().into_iter().flatten() {
        let variable = VariableOptions {
            kind: parsed(&given["kind"]),
            policy: parsed(&given["policy"]),
            empty: given["empty"] == Value::Bool(true),
            chars: parsed(&given["chars"]).unwrap_or_default(),
        };
        template.options.variables.insert(name.clone(), variable);
        template.parameters.extend(parameter(name, given));
    }
    describe(&mut template.details, entry);
    template.details.access = entry.get("access").is_some();
    template
}

fn tool(entry: &Value) -> Tool {
    let mut tool = Tool::new(text(&entry["name"]).expect("a tool has a name"));
    tool.title = text(&entry["title"]);
    tool.description = text(&entry["description"]);
    if let Some(schema) = entry.get("inputSchema") {
        tool.input_schema = write(schema);
    }
    tool.output_schema = entry.get("outputSchema").map(write);
    let hints = &entry["annotations"];
    let hint = |name: &str| hints[name].as_bool();
    tool.annotations = ToolAnnotations {
        title: text(&hints["title"]),
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    };
    tool.icons = list(&entry["icons"]).map(icon).collect();
    tool.meta = entry.get("_meta").map(write);
    tool.scopes = list(&entry["scopes"]).filter_map(text).collect();
    tool.ui = text(&entry["ui"]);
    let callers = list(&entry["uiVisibility"]).filter_map(Value::as_str);
    tool.ui_visibility = callers.filter_map(ToolVisibility::parse).collect();
    tool
}

fn prompt(entry: &Value) -> Prompt {
    let mut prompt = Prompt::new(text(&entry["name"]).expect("a prompt has a name"));
    prompt.title = text(&entry["title"]);
    prompt.description = text(&entry["description"]);
    let argument = |given: &Value| {
        let mut argument = PromptArgument::new(text(&given["name"]).expect("an argument has a name"));
        argument.title = text(&given["title"]);
        argument.description = text(&given["description"]);
        argument.required = given["required"] == Value::Bool(true);
        argument.values = list(&given["values"]).filter_map(text).collect();
        argument
    };
    prompt.arguments = list(&entry["arguments"]).map(argument).collect();
    prompt.completes = list(&entry["complete"]).filter_map(text).collect();
    prompt.icons = list(&entry["icons"]).map(icon).collect();
    prompt.meta = entry.get("_meta").map(write);
    prompt.scopes = list(&entry["scopes"]).filter_map(text).collect();
    prompt
}

fn parsed<T: FromStr>(word: &Value) -> Option<T> {
    word.as_str().map(|word| word.parse().unwrap_or_else(|_| panic!("{word}: no such word")))
}

/// The description of a variable, without its rules of matching.
fn parameter(name: &str, given: &Value) -> Option<Parameter> {
    let said = ["type", "values", "pattern", "required", "description"];
    said.iter().any(|member| given.get(member).is_some()).then(|| {
        let mut parameter = Parameter::new(name).kind(kind(given["type"].as_str().unwrap_or("string")));
        parameter.values = list(&given["values"]).filter_map(text).collect();
        parameter.pattern = text(&given["pattern"]);
        parameter.description = text(&given["description"]);
        parameter.required = given["required"] == Value::Bool(true);
        parameter
    })
}

fn kind(word: &str) -> ParameterKind {
    match word {
        "string" => ParameterKind::String,
        "integer" => ParameterKind::Integer,
        "number" => ParameterKind::Number,
        "boolean" => ParameterKind::Boolean,
        "date" => ParameterKind::Date,
        "date-time" => ParameterKind::DateTime,
        "uuid" => ParameterKind::Uuid,
        _ => panic!("{word}: no type"),
    }
}

fn describe(details: &mut Details, entry: &Value) {
    details.name = text(&entry["name"]);
    details.title = text(&entry["title"]);
    details.description = text(&entry["description"]);
    details.mime_type = text(&entry["mimeType"]);
    details.icons = list(&entry["icons"]).map(icon).collect();
    details.annotations = annotations(&entry["annotations"]);
    details.meta = entry.get("_meta").map(write);
    details.cache = cache(entry).unwrap_or_default();
}

pub(crate) fn annotations(given: &Value) -> Annotations {
    let mut annotations = Annotations::default();
    let words = list(&given["audience"]).filter_map(Value::as_str);
    annotations.audience = words.map(|word| Audience::parse(word).expect("user or assistant")).collect();
    annotations.priority = given["priority"].as_f64();
    annotations.last_modified = text(&given["lastModified"]);
    annotations
}

fn icon(given: &Value) -> Icon {
    let mut icon = Icon::new(text(&given["src"]).expect("an icon has a src"));
    icon.mime_type = text(&given["mimeType"]);
    icon.sizes = list(&given["sizes"]).filter_map(text).collect();
    icon.theme = given["theme"].as_str().map(|word| Theme::parse(word).expect("light or dark"));
    icon
}

fn server(given: &Value) -> ServerInfo {
    ServerInfo {
        name: text(&given["name"]).expect("a server has a name"),
        version: text(&given["version"]).expect("a server has a version"),
        title: text(&given["title"]),
        description: text(&given["description"]),
        website_url: text(&given["websiteUrl"]),
        icons: list(&given["icons"]).map(icon).collect(),
        instructions: text(&given["instructions"]),
        ..ServerInfo::default()
    }
}

fn door(given: &Value, handler: HandlerId) -> Extension {
    let capability = given["capability"].as_array();
    Extension {
        method: text(&given["method"]).expect("an extension has a method"),
        handler,
        name_param: text(&given["nameParam"]),
        capability: capability.map(|pair| (text(&pair[0]).expect("a name"), write(&pair[1]))),
        list_kind: given.get("listKind").map(list_kinds),
        timeout: given["timeout"].as_u64(),
    }
}

fn options(given: &Value) -> EngineOptions {
    let mut options = EngineOptions::default();
    for (name, value) in given.as_object().into_iter().flatten() {
        let switch = || value.as_bool().expect("a switch");
        match name.as_str() {
            "limits" => limits(&mut options.limits, value.as_object().expect("limits are an object")),
            "revisions" => {
                let dates = list(value).filter_map(Value::as_str);
                options.revisions = dates.map(|date| Revision::parse(date).expect("a revision")).collect();
            }
            "subscribe" => options.subscribe = switch(),
            "list_changed" => options.list_changed = switch(),
            "completions" => options.completions = Some(switch()),
            "tools" => options.tools = switch(),
            "expose_as_tools" => options.expose_as_tools = switch(),
            "prompts" => options.prompts = switch(),
            "logging" => options.logging = switch(),
            "server_info_in_results" => options.server_info_in_results = switch(),
            "explicit_denials" => options.explicit_denials = switch(),
            "cache" => options.cache = switch(),
            "guard" => options.guard = Policy::from_value(value.clone()).expect("a policy"),
            "list_cache" => options.list_cache = cache(value).expect("a hint"),
            "discover_cache" => options.discover_cache = cache(value).expect("a hint"),
            "keys" => {
                let key = |text: String| SealKey::from_secret(text.as_bytes()).expect("long enough");
                options.keys = list(value).filter_map(text).map(key).collect();
            }
            "extension_capabilities" => {
                let pair = |pair: &Value| (text(&pair[0]).expect("an id"), write(&pair[1]));
                options.extension_capabilities = list(value).map(pair).collect();
            }
            _ => panic!("{name}: no option"),
        }
    }
    options
}

fn limits(limits: &mut Limits, given: &Map<String, Value>) {
    for (name, value) in given {
        let number = value.as_u64().expect("a number");
        let size = usize::try_from(number).expect("small");
        match name.as_str() {
            "message" => limits.message = size,
            "nesting" => limits.nesting = size,
            "id" => limits.id = size,
            "client_info" => limits.client_info = size,
            "batch_bytes" => limits.batch_bytes = size,
            "arguments" => limits.arguments = size,
            "uri" => limits.uri = size,
            "list_ttl" => limits.list_ttl = number,
            "page" => limits.page = size,
            "in_flight" => limits.in_flight = size,
            "subscriptions" => limits.subscriptions = size,
            "filter_uris" => limits.filter_uris = size,
            "watched_bytes" => limits.watched_bytes = size,
            "watched_total" => limits.watched_total = size,
            "contents" => limits.contents = size,
            "completion_values" => limits.completion_values = size,
            "log_messages" => limits.log_messages = size,
            "read_timeout" => limits.read_timeout = number,
            "call_timeout" => limits.call_timeout = number,
            "tools" => limits.tools = size,
            "tool_text" => limits.tool_text = size,
            "output" => limits.output = size,
            "head" => limits.head = size,
            "headers" => limits.headers = size,
            "sessions" => limits.sessions = size,
            "session_idle" => limits.session_idle = number,
            "sessions_per_client" => limits.sessions_per_client = size,
            "streams" => limits.streams = size,
            "replay" => limits.replay = size,
            "keep_alive" => limits.keep_alive = number,
            "sse_after" => limits.sse_after = number,
            _ => panic!("{name}: no limit that a fixture sets"),
        }
    }
}
