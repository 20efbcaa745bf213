//! The second fixture server in Rust: what it has stands in `methods.json`, for every language; here is how that is done.

use mcp_resources::{
    Answer, Builder, CacheHint, CacheScope, Call, Contents, Handled, HandlerError, InputAsk, InputRequest,
    InputRequired, IntoAnswer, ListKinds, LogLevel, NamedCall, Polling, Prompt, PromptArgument, ReadError,
    ReadRequest, Resource, ResourceServer, Rules, Template, Tool,
};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use std::time::Duration;

static METHODS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("methods.json")).unwrap_or_default());
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ["--http", port] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err("usage: conformance-full --http PORT".into());
    };
    let hint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };
    let server =
        add_resources(add_named(ResourceServer::builder("conformance-full", "1.0.0").logging(true)))?;
    let mut rules = Rules::default();
    rules.polling = Some(Polling { after: 200, retry: 100 });
    Ok(server.list_cache(hint).build()?.http().rules(rules).run((Ipv4Addr::LOCALHOST, port.parse()?)).await?)
}

fn add_named(mut server: Builder) -> Builder {
    let entries = |kind: &str| METHODS[kind].as_object().into_iter().flatten();
    let said = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    for (name, entry) in entries("tools") {
        let schema = entry["inputSchema"].to_string();
        let tool = Tool::new(name).description(said(entry, "description")).input_schema(schema);
        server = server.tool_with(tool, |call| perform("tools", call));
    }
    for (name, entry) in entries("prompts") {
        let arguments: Vec<&Value> = entry["arguments"].as_array().into_iter().flatten().collect();
        let mut prompt = Prompt::new(name).description(said(entry, "description"));
        for argument in &arguments {
            let own = PromptArgument::new(said(argument, "name")).description(said(argument, "description"));
            prompt = prompt.argument(own.required(argument["required"] == true));
        }
        server = server.prompt_with(prompt, |call| perform("prompts", call));
        for argument in &arguments {
            server = server.complete(said(argument, "name"), |_| async { Vec::<String>::new() });
        }
    }
    server
}

fn add_resources(mut server: Builder) -> Result<Builder, Box<dyn Error>> {
    use base64::Engine as _;
    for entry in METHODS["resources"].as_array().into_iter().flatten() {
        let said = |name: &str| entry[name].as_str().unwrap_or_default();
        let about = Resource::new(said("uri")).name(said("name")).mime_type(said("mimeType"));
        let about = about.description(said("description"));
        server = match entry["blob"].as_str() {
            Some(blob) => server.bytes(about, base64::engine::general_purpose::STANDARD.decode(blob)?),
            None => server.text(about, said("text")),
        };
    }
    let template = Template::new("test://template/{id}/data").name("template").mime_type("application/json");
    Ok(server.template(template.description("One of many"), |request: ReadRequest| async move {
        let id = request.param("id").unwrap_or_default().to_owned();
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        Contents::json(&data).map_err(HandlerError::from)
    }))
}

/// Takes the steps of a tool or prompt until one answers.
async fn perform(kind: &'static str, request: NamedCall) -> Handled {
    let name = request.name.as_str();
    let parsed = |text: Option<&str>| text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let arguments = parsed(Some(&request.arguments));
    let mut scope = json!({
        "arguments": arguments,
        "meta": parsed(request.context.meta()),
        "inputs": parsed(request.inputs.as_deref()).unwrap_or_else(|| json!({})),
        "state": request.state.as_deref().and_then(|state| serde_json::from_slice::<Value>(state).ok()),
    });
    let Some(steps) = METHODS[kind][name]["steps"].as_array() else {
        return Err(custom(-32602, format!("Unknown: {name}")));
    };
    for step in steps.iter().filter_map(Value::as_object) {
        let when = step.get("when").unwrap_or(&Value::Null);
        if holds(when, &scope)
            && let Some(answer) = take(step, &mut scope, &request).await?
        {
            return Ok(answer);
        }
    }
    Err(custom(-32603, "no step has answered".into()))
}

fn custom(code: i32, message: String) -> HandlerError {
    ReadError::Custom { code, message, data: None }.into()
}

/// Whether a step is to be taken.
fn holds(when: &Value, scope: &Value) -> bool {
    let all = |of: &str, among: &Value| {
        let mut names = when[of].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.all(|name| among.get(name).is_some())
    };
    all("inputs", &scope["inputs"])
        && all("declared", &scope["meta"][CAPABILITIES])
        && when.get("state").is_none_or(|state| *state == scope["state"])
}

/// What a step answers, if it does.
async fn take(
    step: &Map<String, Value>,
    scope: &mut Value,
    request: &NamedCall,
) -> Result<Option<Answer<'static>>, HandlerError> {
    let context = &request.context;
    if let Some(line) = step.get("log") {
        context.log(LogLevel::Info, None, line);
    }
    if let Some(progress) = step.get("progress") {
        let done = progress[0].as_f64().unwrap_or_default();
        context.progress(done, progress[1].as_f64(), progress[2].as_str());
    }
    if let Some(milliseconds) = step.get("wait").and_then(Value::as_u64) {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
    if let Some(kind) = step.get("notify").and_then(Value::as_str).and_then(ListKinds::parse) {
        context.server().notify_lists_changed(kind);
    }
    if let Some(ask) = step.get("ask") {
        let method = ask[0].as_str().unwrap_or_default();
        match context.ask(method, &filled(&ask[1], scope)).await {
            Ok(result) => scope["result"] = result,
            Err(error) => {
                let content = json!({ "content": [{ "type": "text", "text": error.to_string() }] });
                return IntoAnswer::<Call>::into_answer(content).map(Some);
            }
        }
    }
    if let Some(asks) = step.get("require").and_then(Value::as_object) {
        let requests =
            asks.iter().map(|(key, ask)| InputRequest { key: key.clone().into(), ask: asked(ask) });
        let state = step.get("state").map(|state| filled(state, scope).to_string().into_bytes().into());
        return Ok(Some(Answer::InputRequired(InputRequired { requests: requests.collect(), state })));
    }
    let answer = step.get("answer").map(|result| IntoAnswer::<Call>::into_answer(filled(result, scope)));
    answer.transpose()
}

fn asked(ask: &Value) -> InputAsk<'static> {
    if let Some(form) = ask.get("form") {
        let message = form["message"].as_str().unwrap_or_default().to_owned();
        return InputAsk::Form { message: message.into(), schema: form["schema"].to_string().into() };
    }
    ask.get("sampling").map_or(InputAsk::Roots, |params| InputAsk::Sampling(params.to_string().into()))
}

/// `value`, its `{path.to.member}` filled in: texts as they are, anything else as JSON.
fn filled(value: &Value, scope: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), filled(member, scope))).collect()
        }
        Value::Array(items) => items.iter().map(|item| filled(item, scope)).collect(),
        Value::String(text) => replaced(text, scope).into(),
        other => other.clone(),
    }
}

fn replaced(text: &str, scope: &Value) -> String {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_path =
            |path: &str| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
        match part.split_once('}').filter(|(path, _)| !path.is_empty() && is_path(path)) {
            Some((path, rest)) => {
                let found = path.split('.').fold(scope, |at, name| &at[name]);
                out += &found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                out += rest;
            }
            None => {
                out.push('{');
                out += part;
            }
        }
    }
    out
}
