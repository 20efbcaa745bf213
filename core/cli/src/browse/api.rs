//! The requests of the page. Each is a JSON object, and so is each answer.
//!
//! Law: every call goes through the client, which checks the allow-list of its server first.

use super::events::WatchedResource;
use super::listings::BrowsedPart;
use super::{BrowsedServers, contents};
use crate::output;
use mcp_resources_client::{Client, ClientError, Failure, ListScope};
use mcp_resources_template::{Value as TemplateValue, Values, expand};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

/// Most bytes of a raw message that is shown.
const MOST_RAW: usize = 1 << 20;

/// The answer to a question: JSON text, or a sentence about a mistake in the question.
pub(super) type ApiAnswer = Result<String, &'static str>;

/// Answers a question; `None` if there is no such one.
pub(super) async fn answer(shared: &Arc<BrowsedServers>, name: &str, question: &Value) -> Option<ApiAnswer> {
    let text = |key: &str| question.get(key).and_then(Value::as_str);
    let client = |server: &str| {
        shared.client.with(ListScope { server: Some(server.to_owned()), ..ListScope::default() })
    };
    let server = text("server").unwrap_or_default();
    Some(match (name, text("uri")) {
        ("about", _) => Ok(about(&client(server)).await),
        ("list", _) => list(shared, &client(server), question).await,
        ("complete", _) => match (text("template"), text("variable")) {
            (Some(template), Some(variable)) => {
                Ok(complete(&client(server), template, variable, question).await)
            }
            _ => Err("a completion needs template and variable"),
        },
        ("expand", _) => match text("template") {
            Some(template) => Ok(expanded(template, question)),
            None => Err("template is missing"),
        },
        ("read", Some(uri)) => Ok(read(shared, &client(server), uri).await),
        ("raw", Some(uri)) => Ok(raw(shared, &client(server), uri).await),
        ("watch" | "unwatch", Some(uri)) => {
            let stream = question.get("stream").and_then(Value::as_u64).unwrap_or_default();
            let watched = WatchedResource { server: server.to_owned(), uri: uri.to_owned() };
            match name {
                "watch" => shared.streams.watch(shared, stream, watched).map(|()| "{}".into()),
                _ => {
                    shared.streams.unwatch(stream, &watched);
                    Ok("{}".into())
                }
            }
        }
        ("read" | "raw" | "watch" | "unwatch", None) => Err("uri is missing"),
        _ => return None,
    })
}

/// An error of the client, for people and for the page.
pub(super) fn error_json(error: &ClientError) -> Value {
    let kind = match error {
        ClientError::NotFound { .. } => "notFound",
        ClientError::AccessDenied { .. } => "accessDenied",
        ClientError::InvalidUri { .. } => "invalidUri",
        ClientError::Failed(Failure::Unreachable { .. }) => "unreachable",
        ClientError::Failed(Failure::Unsupported { .. }) => "unsupported",
        ClientError::Failed(Failure::TooLarge { .. }) => "tooLarge",
        _ => "failed",
    };
    let message = match error {
        // The words before it are about reads, and this may be a list.
        ClientError::Failed(failure) => failure.to_string(),
        error => error.to_string(),
    };
    json!({ "kind": kind, "message": message })
}

fn failed(error: &ClientError) -> String {
    json!({ "error": error_json(error) }).to_string()
}

async fn about(client: &Client) -> String {
    match client.about().await {
        Ok(about) => json!({
            "revision": about.revision.as_str(),
            "info": object(&about.info),
            "capabilities": object(&about.capabilities),
            "instructions": about.instructions,
            "hasSubscriptions": about.has_subscriptions,
            "hasCompletions": about.has_completions,
        })
        .to_string(),
        Err(error) => failed(&error),
    }
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

async fn list(shared: &BrowsedServers, client: &Client, question: &Value) -> ApiAnswer {
    let is_templates = question.get("templates") == Some(&Value::Bool(true));
    let BrowsedPart { items, next, error } = match question.get("next").and_then(Value::as_u64) {
        None => shared.listings.begin(client, is_templates).await,
        // The page begins again.
        Some(id) => shared.listings.proceed(id).await.ok_or("this list is not open any more")?,
    };
    // The entries are JSON already.
    let mut text = String::from("{\"items\":[");
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(&item.json);
    }
    text.push_str("],\"next\":");
    let _ = match next {
        Some(id) => write!(text, "{id}"),
        None => write!(text, "null"),
    };
    if let Some(error) = error {
        let _ = write!(text, ",\"error\":{}", error_json(&error));
    }
    text.push('}');
    Ok(text)
}

async fn complete(client: &Client, template: &str, variable: &str, question: &Value) -> String {
    let value = question.get("value").and_then(Value::as_str).unwrap_or_default();
    let none = Map::new();
    let context = question.get("context").and_then(Value::as_object).unwrap_or(&none);
    let context: Vec<(&str, &str)> =
        context.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
    match client.complete(template, variable, value, &context).await {
        Ok(found) => {
            json!({ "values": found.values, "total": found.total, "hasMore": found.has_more }).to_string()
        }
        Err(error) => failed(&error),
    }
}

/// The URI that a template and the texts of a form make. A text of a list is its values, separated by commas.
fn expanded(template: &str, question: &Value) -> String {
    let object = |key: &str| question.get(key).and_then(Value::as_object).into_iter().flatten();
    let texts = object("values").filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    let lists: Vec<&str> = object("lists").map(|(name, _)| name.as_str()).collect();
    let value = |name: &str, text: &str| match lists.contains(&name) {
        true => TemplateValue::List(text.split(',').map(|part| Cow::Owned(part.trim().to_owned())).collect()),
        false => TemplateValue::Scalar(Cow::Owned(text.to_owned())),
    };
    let values: Values<'_> = texts.map(|(name, text)| (name, value(name, text))).collect();
    match expand(template, &values) {
        Ok(uri) => json!({ "uri": uri }).to_string(),
        Err(error) => json!({ "error": { "kind": "failed", "message": error.to_string() } }).to_string(),
    }
}

async fn read(shared: &BrowsedServers, client: &Client, uri: &str) -> String {
    let Ok(_place) = shared.reads.acquire().await else { return String::new() };
    match client.read_whole(uri).await {
        Ok(read) => json!({
            "server": **read.server(),
            "uri": uri,
            "ttlMs": read.ttl,
            "contents": contents::shown(uri, &read.contents),
        })
        .to_string(),
        Err(error) => failed(&error),
    }
}

/// The result of a read as the server sent it. The client refuses it where an allow-list has to filter contents.
async fn raw(shared: &BrowsedServers, client: &Client, uri: &str) -> String {
    let Ok(_place) = shared.reads.acquire().await else { return String::new() };
    let params = json!({ "uri": uri }).to_string();
    match client.request("resources/read", &params).await {
        Ok(text) => {
            let kept = output::beginning(&text, MOST_RAW);
            json!({ "result": kept, "isCut": kept.len() < text.len() }).to_string()
        }
        Err(error) => failed(&error),
    }
}

/// The contents of a resource as bytes, for a download.
pub(super) async fn download(
    shared: &BrowsedServers,
    server: &str,
    uri: &str,
) -> Result<Vec<u8>, ClientError> {
    let client = shared.client.with(ListScope { server: Some(server.to_owned()), ..ListScope::default() });
    let _place = shared.reads.acquire().await;
    client.read(uri).await.map(contents::bytes)
}
