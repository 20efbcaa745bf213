//! Every message that is sent, against the official schema of its revision.
//!
//! The schemas are others' files: see `vectors`. Without them nothing is validated, and the run says so.

use crate::vectors;
use jsonschema::Validator;
use mcp_resources_engine::version::Revision;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const CLAIMS: [&str; 2] =
    ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"];

/// The schemas of the five revisions.
pub(crate) struct Schemas {
    documents: HashMap<Revision, Value>,
    /// By revision and definition, made when first asked for.
    validators: RefCell<HashMap<(Revision, &'static str), Rc<Validator>>>,
}

impl Schemas {
    /// The schemas, if they are there.
    pub(crate) fn load() -> Option<Self> {
        let folder = vectors::directory("spec/schema")?;
        let read = |revision: Revision| {
            let text = std::fs::read_to_string(folder.join(format!("{revision}.json"))).ok()?;
            Some((revision, serde_json::from_str(&text).ok()?))
        };
        let documents = Revision::ALL.into_iter().map(read).collect::<Option<_>>()?;
        Some(Self { documents, validators: RefCell::default() })
    }

    /// Validates `value` against one definition.
    pub(crate) fn check(
        &self,
        revision: Revision,
        definition: &'static str,
        value: &Value,
    ) -> Result<(), String> {
        let validator = self.validator(revision, definition);
        let wrong = validator
            .iter_errors(value)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .next();
        wrong.map_or(Ok(()), |wrong| Err(format!("not a {definition} of {revision}: {wrong}: {value}")))
    }

    fn validator(&self, revision: Revision, definition: &'static str) -> Rc<Validator> {
        let make = || {
            let mut document = self.documents[&revision].clone();
            let folder = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
            assert!(document[folder].get(definition).is_some(), "{revision} has no {definition}");
            document["$ref"] = format!("#/{folder}/{definition}").into();
            let options = jsonschema::options().should_validate_formats(true);
            Rc::new(options.build(&document).expect("the official schema is one"))
        };
        self.validators.borrow_mut().entry((revision, definition)).or_insert_with(make).clone()
    }
}

/// The messages that one connection has received; they determine the schema of its answers.
pub(crate) struct Witness<'s> {
    schemas: &'s Schemas,
    negotiated: Option<Revision>,
    /// Requests by the text of their id.
    asked: HashMap<String, Asked>,
}

#[derive(Clone)]
struct Asked {
    method: String,
    revision: Option<Revision>,
    uri: Value,
}

impl<'s> Witness<'s> {
    pub(crate) fn new(schemas: &'s Schemas) -> Self {
        Self { schemas, negotiated: None, asked: HashMap::new() }
    }

    /// Takes note of a message of the client's, well-formed or not.
    pub(crate) fn received(&mut self, message: &[u8]) {
        match serde_json::from_slice(message) {
            Ok(Value::Array(messages)) => messages.iter().for_each(|message| self.note(message)),
            Ok(message) => self.note(&message),
            Err(_) => {}
        }
    }

    /// Holds a message of the server's to its definition.
    pub(crate) fn sent(&mut self, message: &Value) -> Result<(), String> {
        check_meta_keys(message)?;
        match message {
            Value::Array(messages) => messages.iter().try_for_each(|message| self.sent(message)),
            _ if message.get("method").is_some() => self.check_notification(message),
            _ if message.get("error").is_some() => self.check_error(message),
            _ => self.check_result(message),
        }
    }

    fn note(&mut self, message: &Value) {
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { return };
        let meta = &message["params"]["_meta"];
        let is_modern = CLAIMS.iter().any(|claim| meta.get(claim).is_some());
        let revision = if is_modern { Some(Revision::V2026_07_28) } else { self.negotiated };
        let uri = message["params"]["uri"].clone();
        self.asked.insert(id.to_string(), Asked { method: method.to_owned(), revision, uri });
    }

    fn check_notification(&self, message: &Value) -> Result<(), String> {
        let definition = match message["method"].as_str().unwrap_or_default() {
            _ if message.get("id").is_some() => "JSONRPCRequest",
            "notifications/resources/updated" => "ResourceUpdatedNotification",
            "notifications/resources/list_changed" => "ResourceListChangedNotification",
            "notifications/tools/list_changed" => "ToolListChangedNotification",
            "notifications/prompts/list_changed" => "PromptListChangedNotification",
            "notifications/progress" => "ProgressNotification",
            "notifications/message" => "LoggingMessageNotification",
            "notifications/cancelled" => "CancelledNotification",
            "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
            other => return Err(format!("{other}: a server does not send this")),
        };
        let of_listen = message["params"]["_meta"].get(SUBSCRIPTION_ID).is_some()
            || definition == "CancelledNotification";
        let revision = self.negotiated.filter(|_| !of_listen).unwrap_or(Revision::V2026_07_28);
        if definition == "JSONRPCRequest" && revision.is_modern() {
            return Err("a modern server sends no requests (R-019)".into());
        }
        self.schemas.check(revision, definition, message)
    }

    fn check_error(&self, message: &Value) -> Result<(), String> {
        let asked = message.get("id").and_then(|id| self.asked.get(&id.to_string()));
        let revision =
            asked.map_or(self.negotiated, |asked| asked.revision).unwrap_or(Revision::NEWEST_LEGACY);
        let mut message = message.clone();
        if message.get("id").is_some_and(Value::is_null) {
            // JSON-RPC's own form, which the schemas have no place for.
            if revision > Revision::V2025_06_18 {
                return Err(format!("{revision} has no null id"));
            }
            message["id"] = 0.into();
        }
        let is_new = revision >= Revision::V2025_11_25;
        let definition = if is_new { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        self.schemas.check(revision, definition, &message)?;
        if revision.is_modern() { self.check_modern_error(&message) } else { Ok(()) }
    }

    /// of the reserved range the five codes of JSON-RPC and the three of this revision.
    fn check_modern_error(&self, message: &Value) -> Result<(), String> {
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        let (definition, of_error) = match code {
            -32700 => ("ParseError", true),
            -32600 => ("InvalidRequestError", true),
            -32601 => ("MethodNotFoundError", true),
            -32602 => ("InvalidParamsError", true),
            -32603 => ("InternalError", true),
            -32020 => ("HeaderMismatchError", false),
            -32021 => ("MissingRequiredClientCapabilityError", false),
            -32022 => ("UnsupportedProtocolVersionError", false),
            -32768..=-32000 => return Err(format!("{code} is reserved (R-024)")),
            _ => return Ok(()),
        };
        let value = if of_error { &message["error"] } else { message };
        self.schemas.check(Revision::V2026_07_28, definition, value)
    }

    fn check_result(&mut self, message: &Value) -> Result<(), String> {
        let asked = self.asked.get(&message["id"].to_string()).cloned();
        let Asked { method, revision, uri } = asked.ok_or_else(|| format!("{message}: nobody asked"))?;
        let mut message = message.clone();
        // The client's URI is echoed as it came, also where it is an IRI (DEC-29).
        let contents = message["result"].get_mut("contents").and_then(Value::as_array_mut);
        for entry in contents.into_iter().flatten().filter(|entry| uri.is_string() && entry["uri"] == uri) {
            entry["uri"] = "echo:uri".into();
        }
        let result = &message["result"];
        if method == "initialize" {
            self.negotiated = result["protocolVersion"].as_str().and_then(Revision::parse);
        }
        let revision = revision.or(self.negotiated).unwrap_or(Revision::NEWEST_LEGACY);
        let response =
            if revision >= Revision::V2025_11_25 { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
        self.schemas.check(revision, response, &message)?;
        let own = definition(&method);
        if let Some(leak) =
            ["resultType", "ttlMs", "cacheScope"].iter().find(|name| result.get(name).is_some())
            && own.is_some()
            && !revision.is_modern()
        {
            return Err(format!("{leak} does not belong to {revision} (DEC-09)"));
        }
        let can_ask = ["resources/read", "tools/call", "prompts/get"].contains(&method.as_str());
        let asks = revision.is_modern() && can_ask && result["resultType"] == "input_required";
        let definition = if asks { "InputRequiredResult" } else { own.unwrap_or("Result") };
        self.schemas.check(revision, definition, result)
    }
}

/// The definition of a method's result; custom methods have none.
fn definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeResult",
        "ping" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => "EmptyResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "server/discover" => "DiscoverResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        _ => return None,
    })
}

/// `[prefix/]name`.
fn check_meta_keys(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(check_meta_keys),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            let keys = value.as_object().filter(|_| name == "_meta").into_iter().flatten();
            let wrong = keys.map(|(key, _)| key).find(|key| !is_meta_key(key));
            wrong.map_or_else(
                || check_meta_keys(value),
                |key| Err(format!("{key:?} is no key of _meta (R-021)")),
            )
        }),
        _ => Ok(()),
    }
}

fn is_meta_key(key: &str) -> bool {
    let is_ends = |text: &str, first: fn(&char) -> bool| {
        text.chars().next().is_some_and(|char| first(&char))
            && text.ends_with(|char: char| char.is_ascii_alphanumeric())
    };
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_label = |label: &str| {
        is_ends(label, char::is_ascii_alphabetic)
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(is_label))
        && is_ends(name, char::is_ascii_alphanumeric)
        && name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
}

/// A check that finds nothing wrong with anything would hold every message valid.
#[test]
fn what_breaks_a_schema_is_found() {
    let Some(schemas) = Schemas::load() else {
        vectors::left_out("no schemas of the protocol: make setup");
        return;
    };
    let mut witness = Witness::new(&schemas);
    let ask = |witness: &mut Witness<'_>, id: i32, method: &str| {
        let meta = json!({ CLAIMS[0]: "2026-07-28", CLAIMS[1]: {} });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": meta } });
        witness.received(message.to_string().as_bytes());
    };
    ask(&mut witness, 1, "resources/list");
    ask(&mut witness, 2, "resources/read");
    let list = json!({ "resultType": "complete", "resources": [], "ttlMs": 0, "cacheScope": "private" });
    assert_eq!(witness.sent(&json!({ "jsonrpc": "2.0", "id": 1, "result": list })), Ok(()));
    for wrong in [
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "complete", "resources": [], "ttlMs": -1, "cacheScope": "private" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": null }),
        json!({ "jsonrpc": "2.0", "id": 2, "result": { "resultType": "complete", "contents": [{ "text": "no uri" }], "ttlMs": 0, "cacheScope": "private" } }),
        json!({ "jsonrpc": "2.0", "id": "2", "result": list }),
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "m" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32002, "message": "m" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32022, "message": "m" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1.5, "message": "m" } }),
        json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/of/none" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "a:b", "_meta": { "-x/y": 1 } } }),
    ] {
        assert!(witness.sent(&wrong).is_err(), "{wrong}");
    }
}
