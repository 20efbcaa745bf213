//! The answer of a `respond` step.

use super::catalog::{annotations, cache, list, resource, text};
use super::write;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_resources_engine::connection::{
    Answer, BlockKind, Body, Completion, ContentBlock, Contents, ContentsGatherer, InputAsk, InputRequest,
    InputRequired, ListPage, PromptMessage, PromptResult, RawResult, ReadResult, ToolResult,
};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::Audience;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The answer; `gather` is called for contents that come in chunks.
pub(crate) fn answer(given: &Value, gather: impl FnOnce() -> ContentsGatherer) -> Answer<'static> {
    let members = given.as_object().expect("an answer is an object");
    for (name, value) in members {
        return match name.as_str() {
            "text" | "blob" => Answer::Contents(ReadResult::from(contents(given))),
            "json" => {
                Answer::Contents(Contents::text(write(value)).with_mime_type("application/json").into())
            }
            "contents" => {
                let entries = list(value).map(contents).collect();
                Answer::Contents(ReadResult { contents: entries, cache: cache(given) })
            }
            "chunks" => chunks(given, gather()),
            "completion" => Answer::Completion(completion(value)),
            "listed" => {
                let items = list(value).map(resource);
                Answer::Listed(ListPage { next: text(&given["next"]), ..ListPage::new(items) })
            }
            "content" | "structured" => Answer::Tool(tool_result(given)),
            "messages" => Answer::Prompt(prompt_result(given)),
            "raw" => Answer::Raw(raw(given)),
            "input_required" => Answer::InputRequired(input_required(value)),
            "error" => Answer::Failed(error(value)),
            "raises" => Answer::Failed(ReadError::Failed),
            _ => continue,
        };
    }
    panic!("{given}: no answer")
}

pub(crate) fn bytes(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).expect("base64")
}

fn contents(given: &Value) -> Contents<'static> {
    let body = match (text(&given["text"]), text(&given["blob"])) {
        (Some(text), None) => Body::Text(text.into()),
        (None, Some(blob)) => Body::Blob(bytes(&blob).into()),
        _ => panic!("{given}: either text or blob"),
    };
    let own = |name: &str| text(&given[name]).map(Cow::Owned);
    Contents {
        uri: own("uri"),
        mime_type: own("mimeType"),
        body,
        meta: given.get("_meta").map(|meta| write(meta).into()),
    }
}

fn tool_result(given: &Value) -> ToolResult<'static> {
    ToolResult {
        content: list(&given["content"]).map(block).collect(),
        structured: given.get("structured").map(|value| write(value).into()),
        is_error: given["isError"] == Value::Bool(true),
        meta: given.get("_meta").map(|meta| write(meta).into()),
    }
}

fn prompt_result(given: &Value) -> PromptResult<'static> {
    let message = |given: &Value| PromptMessage {
        role: given["role"].as_str().and_then(Audience::parse).expect("user or assistant"),
        content: block(&given["content"]),
    };
    PromptResult {
        description: text(&given["description"]).map(Cow::Owned),
        messages: list(&given["messages"]).map(message).collect(),
        meta: given.get("_meta").map(|meta| write(meta).into()),
    }
}

/// A block, as the protocol writes it.
fn block(given: &Value) -> ContentBlock<'static> {
    let said = |name: &str| Cow::Owned(text(&given[name]).expect("a text"));
    let data = || Body::Blob(bytes(&said("data")).into());
    let kind = match given["type"].as_str() {
        Some("text") => BlockKind::Text(said("text")),
        Some("image") => BlockKind::Image(data(), said("mimeType")),
        Some("audio") => BlockKind::Audio(data(), said("mimeType")),
        Some("resource_link") => BlockKind::Link(Box::new(resource(given))),
        Some("resource") => BlockKind::Embedded(contents(&given["resource"])),
        _ => panic!("{given}: no block"),
    };
    let mut block = ContentBlock::new(kind);
    block.annotations = annotations(&given["annotations"]);
    block.meta = given.get("_meta").map(|meta| write(meta).into());
    block
}

fn chunks(given: &Value, mut gather: ContentsGatherer) -> Answer<'static> {
    for chunk in list(&given["chunks"]) {
        let taken = match chunk {
            Value::String(text) => gather.text(text),
            blob => gather.blob(&bytes(blob["blob"].as_str().expect("a chunk is text or blob"))),
        };
        if let Err(error) = taken {
            return Answer::Failed(error);
        }
    }
    match given.get("then") {
        None => Answer::Gathered(gather),
        Some(_) => Answer::Failed(ReadError::Failed),
    }
}

fn completion(given: &Value) -> Completion<'static> {
    let values = |values| list(values).filter_map(text).map(Cow::Owned).collect();
    match given {
        Value::Array(_) => Completion { values: values(given), ..Completion::default() },
        _ => Completion {
            values: values(&given["values"]),
            total: given["total"].as_u64(),
            has_more: given["has_more"].as_bool(),
        },
    }
}

fn raw(given: &Value) -> RawResult<'static> {
    RawResult {
        members: write(&given["raw"]).into(),
        result_type: text(&given["resultType"]).map(Cow::Owned),
        meta: given.get("_meta").map(|meta| write(meta).into()),
    }
}

fn input_required(given: &Value) -> InputRequired<'static> {
    let requests = given["requests"].as_object().into_iter().flatten();
    let request = |(key, ask): (&String, &Value)| InputRequest { key: key.clone().into(), ask: asked(ask) };
    InputRequired {
        requests: requests.map(request).collect(),
        state: given.get("state").map(|state| write(state).into_bytes().into()),
    }
}

fn asked(given: &Value) -> InputAsk<'static> {
    let said = |value: &Value| Cow::Owned(text(value).expect("a text"));
    match given.as_object().and_then(|members| members.iter().next()) {
        Some((kind, form)) if kind == "form" => {
            InputAsk::Form { message: said(&form["message"]), schema: write(&form["schema"]).into() }
        }
        Some((kind, page)) if kind == "url" => {
            InputAsk::Url { message: said(&page["message"]), url: said(&page["url"]) }
        }
        Some((kind, params)) if kind == "sampling" => InputAsk::Sampling(write(params).into()),
        Some((kind, _)) if kind == "roots" => InputAsk::Roots,
        _ => panic!("{given}: no question"),
    }
}

fn error(given: &Value) -> ReadError {
    let nothing = Map::new();
    let (kind, members) = match given {
        Value::String(kind) => (kind.as_str(), &nothing),
        _ => (given["kind"].as_str().expect("an error has a kind"), given.as_object().expect("an object")),
    };
    let said = |name: &str| members.get(name).and_then(text).expect("a text");
    let number = |name: &str| members.get(name).and_then(Value::as_u64);
    match kind {
        "not_found" => ReadError::NotFound,
        "invalid_parameter" => {
            ReadError::InvalidParameter { parameter: said("parameter"), expected: said("expected") }
        }
        "access_denied" => ReadError::AccessDenied,
        "invalid_uri" => ReadError::InvalidUri,
        "read_error" => ReadError::Failed,
        "size_exceeded" => {
            ReadError::SizeExceeded { limit: number("limit").expect("a limit"), size: number("size") }
        }
        "rate_limited" => ReadError::RateLimited { retry_after: number("retryAfterMs").expect("a time") },
        "input_declined" => ReadError::InputDeclined,
        "custom" => ReadError::Custom {
            code: i32::try_from(given["code"].as_i64().expect("a code")).expect("small"),
            message: said("message"),
            data: members.get("data").map(write),
        },
        _ => panic!("{kind}: no kind of error"),
    }
}
