//! Results of other servers: their entries unchanged but for a name or a URI that is another one here.
//!
//! Law: everything here comes from another server. An entry without its name is left out; the others stay.

use crate::entries::tidied;
use mcp_resources_engine::connection::{InputAsk, InputRequest, InputRequired, LogLevel};
use mcp_resources_engine::jsonrpc::{Json, JsonMembers, object};
use mcp_resources_engine::meta::{CLIENT_CAPABILITIES, LOG_LEVEL, PROGRESS_TOKEN};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Deepest nesting of a result; the client refuses what is deeper.
const NESTING: usize = 128;

/// An entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignItem {
    /// Its URI, the text of its template, or its name.
    pub(crate) id: String,
    /// The whole entry: a JSON object.
    pub(crate) json: String,
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForeignPage {
    pub(crate) items: Vec<ForeignItem>,
    pub(crate) next: Option<String>,
    /// For how long it may be kept, in ms.
    pub(crate) ttl: u64,
}

/// The members of a JSON object.
pub(crate) fn members(json: &str) -> Option<JsonMembers<'_>> {
    Json::parse(json.as_bytes(), NESTING).and_then(Json::object)
}

/// A page: the entries of the member `list`, each known by its member `id`. `None` if it has another form. Of entries with
/// the same id the first is kept, and no more than `max`; members of a wrong type are left out.
pub(crate) fn page(result: &str, list: &str, id: &str, max: usize) -> Option<ForeignPage> {
    let members = members(result)?;
    let mut seen = HashSet::new();
    let mut items = Vec::new();
    for item in members.get(list)?.array()? {
        let Some(own) = item.object().and_then(|item| item.get(id)?.as_str()) else { continue };
        if items.len() < max
            && let Some(json) = tidied(item, list, &own)
            && seen.insert(own.to_string())
        {
            items.push(ForeignItem { id: own.into_owned(), json });
        }
    }
    let next = members.get("nextCursor").and_then(Json::as_str).map(Cow::into_owned);
    let ttl = members.get("ttlMs").and_then(Json::as_u64).unwrap_or_default();
    Some(ForeignPage { items, next, ttl })
}

/// The object `json` with another text in its member `name`.
pub(crate) fn with_text(json: &str, name: &str, value: &str) -> String {
    rewritten(json, |own, _| (own == name).then(|| quoted(value)))
}

/// The object `json` whose page of a tool (MCP Apps), if it names one, is what `map` makes of it.
pub(crate) fn with_page(json: &str, map: &dyn Fn(&str) -> String) -> String {
    if !json.contains("ui") || !json.contains("esourceUri") {
        return json.to_owned();
    }
    rewritten(json, |name, value| (name == "_meta").then(|| meta_with_page(value.raw(), map)))
}

/// The same for the object `_meta` alone.
pub(crate) fn meta_with_page(meta: &str, map: &dyn Fn(&str) -> String) -> String {
    let uri = |value: Json<'_>| value.as_str().map(|uri| quoted(&map(&uri)));
    rewritten(meta, |name, value| match name {
        // Of the first draft of MCP Apps.
        "ui/resourceUri" => uri(value),
        "ui" => Some(rewritten(value.raw(), |name, value| match name {
            "resourceUri" => uri(value),
            _ => None,
        })),
        _ => None,
    })
}

/// The pages that a tool names.
pub(crate) fn pages_of(json: &str) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    with_page(json, &|uri| {
        found.borrow_mut().push(uri.to_owned());
        uri.to_owned()
    });
    found.into_inner()
}

/// The members of `_meta` of a client's request that another server may get: not those that belong to this connection.
pub(crate) fn passed_meta(meta: Option<&str>, terms: &PassedTerms) -> Option<String> {
    let members = meta.and_then(members);
    let mut out = Vec::new();
    object(&mut out, |writer| {
        for (name, value) in members.iter().flat_map(JsonMembers::iter) {
            let is_passed = match &*name {
                PROGRESS_TOKEN => false,
                CLIENT_CAPABILITIES => terms.is_modern && terms.is_client_modern,
                other => !other.starts_with("io.modelcontextprotocol/"),
            };
            if is_passed {
                writer.named(&name).extend_from_slice(value.raw().as_bytes());
            }
        }
        if let Some(level) = terms.level.filter(|_| terms.is_modern) {
            writer.str(LOG_LEVEL, level.as_str());
        }
    });
    String::from_utf8(out).ok().filter(|meta| meta != "{}")
}

/// The params of a server's question for another client: without a token for progress, which belongs to this connection.
pub(crate) fn without_progress(params: &str) -> String {
    let Some(members) = members(params) else { return "{}".to_owned() };
    let mut out = Vec::with_capacity(params.len());
    object(&mut out, |writer| {
        for (name, value) in members.iter() {
            if name != "_meta" {
                writer.named(&name).extend_from_slice(value.raw().as_bytes());
            } else if let Some(meta) = passed_meta(Some(value.raw()), &PassedTerms::default()) {
                writer.value("_meta").extend_from_slice(meta.as_bytes());
            }
        }
    });
    String::from_utf8(out).unwrap_or_else(|_| "{}".to_owned())
}

/// The text of the member `message` of a client's error.
pub(crate) fn message_of(error: &str) -> String {
    let message = members(error).and_then(|error| Some(error.get("message")?.as_str()?.into_owned()));
    message.unwrap_or_else(|| "the client has refused the question".to_owned())
}

/// The facts about the client of a request that a server gets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassedTerms {
    /// Whether the server speaks 2026-07-28, where a request has its own terms.
    pub(crate) is_modern: bool,
    /// Whether the client does too.
    pub(crate) is_client_modern: bool,
    /// The log messages that the client wants.
    pub(crate) level: Option<LogLevel>,
}

/// A retry of a read with the client's input.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadInput {
    /// A JSON object.
    pub(crate) responses: Option<String>,
    /// The server's state.
    pub(crate) state: Option<String>,
}

/// The questions of a result `input_required`, and its state behind the name of the server.
pub(crate) fn input_required(result: &JsonMembers<'_>, server: &str) -> Option<InputRequired<'static>> {
    let state = result.get("requestState").and_then(Json::as_str);
    let state = state.map_or_else(|| server.to_owned(), |state| format!("{server}\n{state}"));
    let mut requests = Vec::new();
    let asked = result.get("inputRequests").and_then(Json::object);
    for (key, request) in asked.iter().flat_map(JsonMembers::iter) {
        let request = request.object()?;
        let params = request.get("params");
        let text =
            |name: &str| params.and_then(Json::object)?.get(name)?.as_str().map(|text| text.into_owned());
        let method = request.get("method")?.as_str()?;
        let raw = |json: Json<'_>| json.raw().to_owned();
        let ask = match &*method {
            "elicitation/create" if text("mode").as_deref() == Some("url") => {
                InputAsk::Url { message: text("message")?.into(), url: text("url")?.into() }
            }
            "elicitation/create" => {
                let schema = params.and_then(Json::object)?.get("requestedSchema").map(raw)?;
                InputAsk::Form { message: text("message")?.into(), schema: schema.into() }
            }
            "sampling/createMessage" => InputAsk::Sampling(params.map(raw)?.into()),
            "roots/list" => InputAsk::Roots,
            _ => return None,
        };
        requests.push(InputRequest { key: key.into_owned().into(), ask });
    }
    Some(InputRequired { requests, state: Some(state.into_bytes().into()) })
}

/// A log message of a server.
pub(crate) struct ServerLog {
    pub(crate) level: LogLevel,
    pub(crate) logger: Option<String>,
    /// JSON text.
    pub(crate) data: String,
}

/// Gets a log message of a server.
pub(crate) type LogFn = Arc<dyn Fn(&ServerLog) + Send + Sync>;

impl ServerLog {
    /// Of the params of `notifications/message`.
    pub(crate) fn parse(params: &str) -> Option<Self> {
        let members = members(params)?;
        Some(Self {
            level: LogLevel::parse(&members.get("level")?.as_str()?)?,
            logger: members.get("logger").and_then(Json::as_str).map(Cow::into_owned),
            data: members.get("data")?.raw().to_owned(),
        })
    }
}

/// The object `json`, in which `replace` may give a member another value, as JSON text.
pub(crate) fn rewritten(json: &str, replace: impl Fn(&str, Json<'_>) -> Option<String>) -> String {
    let Some(members) = members(json) else { return json.to_owned() };
    let mut out = Vec::with_capacity(json.len() + 32);
    object(&mut out, |writer| {
        for (name, value) in members.iter() {
            let own = replace(&name, value);
            writer.named(&name).extend_from_slice(own.as_deref().unwrap_or(value.raw()).as_bytes());
        }
    });
    String::from_utf8(out).unwrap_or_else(|_| json.to_owned())
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_pass_unchanged_but_for_their_name() {
        let result = r#"{"tools":[{"name":"a","x":1.50,"inputSchema":{"type":"object"}},{"name":"a"},7,{"title":"no name"},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"n","ttlMs":5}"#;
        let page = page(result, "tools", "name", 10).unwrap();
        let ids: Vec<_> = page.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!((ids, page.next.as_deref(), page.ttl), (vec!["a", "b"], Some("n"), 5));
        assert_eq!(
            with_text(&page.items[0].json, "name", "s_\"a"),
            r#"{"name":"s_\"a","x":1.50,"inputSchema":{"type":"object"}}"#
        );
        assert!(super::page(r#"{"tools":7}"#, "tools", "name", 10).is_none());
        assert!(super::page("[]", "tools", "name", 10).is_none());
    }

    // Done when 6: the page of a tool follows its URI.
    #[test]
    fn the_page_of_a_tool_follows() {
        let map = |uri: &str| uri.replace("ui://", "ui://s+");
        let tool = r#"{"name":"t","_meta":{"ui":{"resourceUri":"ui://a/b","x":[1]},"ui/resourceUri":"ui://a/b","y":"ui://a/b"}}"#;
        let expected = r#"{"name":"t","_meta":{"ui":{"resourceUri":"ui://s+a/b","x":[1]},"ui/resourceUri":"ui://s+a/b","y":"ui://a/b"}}"#;
        assert_eq!(with_page(tool, &map), expected);
        assert_eq!(pages_of(tool), ["ui://a/b", "ui://a/b"]);
        for odd in [r#"{"name":"ui","_meta":{"ui":7,"resourceUri":1}}"#, r#"{"_meta":"ui resourceUri"}"#] {
            assert_eq!(with_page(odd, &map), odd);
        }
    }

    #[test]
    fn what_belongs_to_one_connection_stays_there() {
        let meta = r#"{"progressToken":1,"io.modelcontextprotocol/clientInfo":{},"traceparent":"00-1"}"#;
        let legacy = PassedTerms { level: Some(LogLevel::Info), ..PassedTerms::default() };
        assert_eq!(passed_meta(Some(meta), &legacy).as_deref(), Some(r#"{"traceparent":"00-1"}"#));
        assert_eq!(passed_meta(Some(r#"{"progressToken":1}"#), &legacy), None);
        let meta = r#"{"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"debug"}"#;
        let modern = PassedTerms { is_modern: true, is_client_modern: true, ..legacy };
        let both = r#"{"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"info"}"#;
        assert_eq!(passed_meta(Some(meta), &modern).as_deref(), Some(both));
        assert_eq!(passed_meta(Some(meta), &legacy), None);
    }

    #[test]
    fn questions_of_a_read_are_read_with_their_server() {
        let result = r#"{"resultType":"input_required","requestState":"s","inputRequests":{
            "f":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}},
            "u":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x"}},
            "r":{"method":"roots/list"},"s":{"method":"sampling/createMessage","params":{"maxTokens":1}}}}"#;
        let read = input_required(&members(result).unwrap(), "a").unwrap();
        assert_eq!(read.state.as_deref(), Some(&b"a\ns"[..]));
        let kinds: Vec<_> = read.requests.iter().map(|one| (&*one.key, format!("{:?}", one.ask))).collect();
        assert!(
            kinds[0].1.starts_with("Form")
                && kinds[1].1.starts_with("Url")
                && kinds[3].1.contains("maxTokens")
        );
        assert_eq!(kinds[2], ("r", "Roots".to_owned()));
        for odd in [r#"{"inputRequests":{"x":{"method":"tools/call"}}}"#, r#"{"inputRequests":{"x":7}}"#] {
            assert!(input_required(&members(odd).unwrap(), "a").is_none());
        }
    }
}
