//! The words of a client, in either era: what it asks, and what it hears. For tests of servers in any language.
//!
//! Law: no I/O and no state but the next id. What a server sends is sorted, not judged.

use crate::jsonrpc::{Json, Members};
use crate::version::{CANCELLED, INITIALIZED, Method, Revision, Told};
use serde_json::{Map, Value, json};

/// A client of one revision.
#[derive(Clone, Debug)]
pub struct Words {
    revision: Revision,
    capabilities: Value,
    next: u64,
}

/// What a client can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// The handshake of a legacy revision.
    Initialize,
    /// The server's description (2026-07-28).
    Discover,
    /// A page of resources.
    List,
    /// A page of templates.
    ListTemplates,
    /// The contents of a resource.
    Read,
    /// Values for a variable of a template.
    Complete,
    /// To hear of changes of a resource (legacy).
    Subscribe,
    /// To hear of them no longer (legacy).
    Unsubscribe,
    /// To hear of changes (2026-07-28).
    Listen,
    /// The least severe level of log messages (legacy).
    SetLevel,
    /// A method by its name.
    Method(&'a str),
}

/// A message of the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// What it is.
    pub sort: Sort,
    /// The request that it answers, or belongs to.
    pub id: Option<u64>,
    /// Its result, error or params: JSON text.
    pub body: String,
}

/// The sorts of message that a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A result.
    Result,
    /// An error.
    Error,
    /// A watched resource has changed.
    Updated,
    /// A list has changed.
    ListChanged,
    /// A listen is open.
    Acknowledged,
    /// A handler is so far.
    Progress,
    /// A log message.
    Log,
    /// A listen was torn down.
    Cancelled,
    /// Anything else.
    Other,
}

impl Words {
    /// A client that declares `capabilities`, the text of a JSON object. What is not one counts as empty.
    pub fn new(revision: Revision, capabilities: &str) -> Self {
        Self { revision, capabilities: object(capabilities).into(), next: 1 }
    }

    /// The same client with other capabilities, the text of a JSON object.
    #[must_use]
    pub fn declaring(self, capabilities: &str) -> Self {
        Self { capabilities: object(capabilities).into(), ..self }
    }

    /// A request with the members of `params` and of `meta`, both the text of a JSON object: its id, and a line. Members of a
    /// `_meta` in `params` are sent too.
    pub fn request(&mut self, ask: Ask<'_>, params: &str, meta: &str) -> (u64, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        let mut params = object(params);
        let mut own = match params.remove("_meta") {
            Some(Value::Object(given)) => given,
            _ => Map::new(),
        };
        own.extend(object(meta));
        if ask == Ask::Initialize {
            params.insert("protocolVersion".into(), self.revision.as_str().into());
            params.insert("capabilities".into(), self.capabilities.clone());
            params.insert("clientInfo".into(), client_info());
        } else if self.revision.is_modern() {
            let mut declare =
                |name: &str, value| own.insert(format!("io.modelcontextprotocol/{name}"), value);
            declare("protocolVersion", self.revision.as_str().into());
            declare("clientCapabilities", self.capabilities.clone());
            declare("clientInfo", client_info());
        }
        if !own.is_empty() {
            params.insert("_meta".into(), own.into());
        }
        (id, line(&json!({ "jsonrpc": "2.0", "id": id, "method": ask.method(), "params": params })))
    }

    /// The end of a handshake: a line.
    pub fn initialized() -> Vec<u8> {
        line(&json!({ "jsonrpc": "2.0", "method": INITIALIZED }))
    }

    /// A notification with the members of `params`, the text of a JSON object: a line.
    pub fn notification(method: &str, params: &str) -> Vec<u8> {
        line(&json!({ "jsonrpc": "2.0", "method": method, "params": object(params) }))
    }

    /// Takes a request back: a line.
    pub fn cancel(id: u64) -> Vec<u8> {
        line(&json!({ "jsonrpc": "2.0", "method": CANCELLED, "params": { "requestId": id } }))
    }
}

impl Ask<'_> {
    /// What a client asks, by the name that bindings use for it; a name with a slash is a method.
    pub fn named(name: &str) -> Option<Ask<'_>> {
        Some(match name {
            "initialize" => Ask::Initialize,
            "discover" => Ask::Discover,
            "list" => Ask::List,
            "list_templates" => Ask::ListTemplates,
            "read" => Ask::Read,
            "complete" => Ask::Complete,
            "subscribe" => Ask::Subscribe,
            "unsubscribe" => Ask::Unsubscribe,
            "listen" => Ask::Listen,
            "set_level" => Ask::SetLevel,
            _ if name.contains('/') => Ask::Method(name),
            _ => return None,
        })
    }

    fn method(&self) -> &str {
        let method = match self {
            Self::Initialize => Method::Initialize,
            Self::Discover => Method::Discover,
            Self::List => Method::List,
            Self::ListTemplates => Method::ListTemplates,
            Self::Read => Method::Read,
            Self::Complete => Method::Complete,
            Self::Subscribe => Method::Subscribe,
            Self::Unsubscribe => Method::Unsubscribe,
            Self::Listen => Method::Listen,
            Self::SetLevel => Method::SetLevel,
            Self::Method(name) => return name,
        };
        method.as_str()
    }
}

impl Heard {
    /// Sorts a line of the server's. `None` if it is not a message.
    pub fn sort(line: &[u8]) -> Option<Self> {
        const NESTING: usize = 128;
        let message = Json::parse(line.trim_ascii(), NESTING)?.object()?;
        let body =
            |name| message.get(name).map_or_else(|| "{}".to_owned(), |body: Json<'_>| body.raw().to_owned());
        let id = message.get("id").and_then(Json::as_u64);
        if message.get("result").is_some() {
            return Some(Self { sort: Sort::Result, id, body: body("result") });
        }
        if message.get("error").is_some() {
            return Some(Self { sort: Sort::Error, id, body: body("error") });
        }
        let sort = Sort::of(&message.get("method")?.as_str()?);
        Some(Self { sort, id: id.or_else(|| belongs_to(&message)), body: body("params") })
    }
}

impl Sort {
    fn of(method: &str) -> Self {
        match Told::parse(method) {
            Some(Told::Updated) => Self::Updated,
            Some(Told::Acknowledged) => Self::Acknowledged,
            Some(Told::Progress) => Self::Progress,
            Some(Told::Cancelled) => Self::Cancelled,
            Some(Told::ListChanged) => Self::ListChanged,
            None if method == "notifications/message" => Self::Log,
            None if method.ends_with("/list_changed") => Self::ListChanged,
            None => Self::Other,
        }
    }

    /// Its name in bindings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
            Self::Updated => "updated",
            Self::ListChanged => "list_changed",
            Self::Acknowledged => "acknowledged",
            Self::Progress => "progress",
            Self::Log => "log",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }
}

/// The params of [`Ask::Complete`]: a template, a variable, the `value` typed so far, and the values `chosen` for other
/// variables.
pub fn completion(template: &str, variable: &str, value: &str, chosen: &[(&str, &str)]) -> Value {
    let reference = json!({ "type": "ref/resource", "uri": template });
    let mut params = json!({ "ref": reference, "argument": { "name": variable, "value": value } });
    if !chosen.is_empty() {
        let chosen = chosen.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
        params["context"] = json!({ "arguments": chosen.collect::<Map<_, _>>() });
    }
    params
}

/// What a completion gave: the values, how many there are if that is said, and whether there are more.
pub fn completed(result: &Value) -> Option<(Vec<String>, Option<u64>, bool)> {
    let completion = result.get("completion")?;
    let values = completion.get("values")?.as_array()?.iter();
    let values = values.map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let has_more = completion.get("hasMore").and_then(Value::as_bool).unwrap_or_default();
    Some((values, completion.get("total").and_then(Value::as_u64), has_more))
}

/// The params of [`Ask::Listen`]: the resources to hear of, and whether to hear of their list.
pub fn listening(uris: &[&str], list_changed: bool) -> Value {
    json!({ "notifications": { "resourceSubscriptions": uris, "resourcesListChanged": list_changed } })
}

/// What an acknowledgement says of a listen: the part of its filter that is granted.
pub fn honoured(params: &Value) -> Value {
    params.get("notifications").cloned().unwrap_or_default()
}

/// The items of a page of [`Ask::List`] or [`Ask::ListTemplates`], and the cursor of the next.
pub fn page(mut result: Value) -> Option<(Vec<Value>, Option<Value>)> {
    let members = result.as_object_mut()?;
    let items = members.remove("resources").or_else(|| members.remove("resourceTemplates"))?;
    let Value::Array(items) = items else { return None };
    Some((items, members.remove("nextCursor")))
}

/// The listen or request that a notification belongs to.
fn belongs_to(message: &Members<'_>) -> Option<u64> {
    let params = message.get("params")?.object()?;
    let listen = params.get("_meta").and_then(Json::object);
    let listen = listen.and_then(|meta| meta.get("io.modelcontextprotocol/subscriptionId"));
    let request = || params.get("progressToken").or_else(|| params.get("requestId"));
    listen.or_else(request)?.as_u64()
}

fn client_info() -> Value {
    json!({ "name": "mcp-resources-testing", "version": env!("CARGO_PKG_VERSION") })
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modern_request_describes_itself_and_a_legacy_one_does_not() {
        let (id, line) = Words::new(Revision::V2026_07_28, r#"{"elicitation":{}}"#).request(
            Ask::Read,
            r#"{"uri":"a:b"}"#,
            "{}",
        );
        let message: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((id, &message["method"]), (1, &json!("resources/read")));
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({ "elicitation": {} }));
        let (_, line) = Words::new(Revision::V2025_11_25, "{}").request(Ask::List, "{}", "{}");
        let message: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(message["params"], json!({}));
    }

    #[test]
    fn what_comes_back_is_sorted() {
        let heard = |text: &str| Heard::sort(text.as_bytes()).map(|heard| (heard.sort, heard.id, heard.body));
        assert_eq!(heard(r#"{"id":3,"result":{"a":1}}"#), Some((Sort::Result, Some(3), r#"{"a":1}"#.into())));
        let (sort, id, _) = heard(
            r#"{"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#,
        )
        .unwrap();
        assert_eq!((sort, id), (Sort::Updated, Some(7)));
        assert_eq!(heard("[]"), None);
    }
}
