//! The resources of the other server, as the results of a list source and of the fallback of this engine: so that one
//! policy, one list and one hub serve all.
//!
//! Law: each question is put to the other server on behalf of the client whose request needs it, and its answer is used for
//! that request alone.

use super::connection::TheirAnswer;
use super::{EmbeddedServer, Params};
use crate::catalog::CatalogRoute;
use crate::connection::{Answer, Completion, Event, Item, ListPage, RawResult, ReadResult};
use crate::error::{ReadError, Shown};
use crate::jsonrpc::{Json, JsonMembers, object};
use crate::limits::Limits;
use crate::version::{Answered, INTERNAL_ERROR, METHOD_NOT_FOUND, Meaning, ProtocolMethod, is_custom_code};
use mcp_resources_template::uri;

/// A question to the other server.
#[derive(Clone, Debug)]
pub(super) enum AdoptedQuestion {
    /// A page of its resources.
    List { cursor: Option<String> },
    /// A read.
    Read { uri: String },
    /// A completion: the client's own.
    Complete,
}

/// Its answer, for this engine.
pub(super) struct AdoptedAnswer {
    pub(super) answer: Answer<'static>,
    /// Whether it is an error that only the other server can describe.
    pub(super) is_their_error: bool,
}

/// The question for an event of the handler of adopted resources.
pub(super) fn question(event: &Event<'_>) -> Option<AdoptedQuestion> {
    Some(match event {
        Event::List(list) => AdoptedQuestion::List { cursor: list.cursor.clone() },
        Event::Read(read) => AdoptedQuestion::Read { uri: read.uri.clone().into_owned() },
        Event::Complete(_) => AdoptedQuestion::Complete,
        _ => return None,
    })
}

impl AdoptedQuestion {
    /// The request for the other server. It repeats the client's own if that is of the same method, else only its `_meta`,
    /// without the token for progress: the progress of a read within a tool is not that of the tool.
    pub(super) fn ask(
        &self,
        method: Option<ProtocolMethod>,
        params: &str,
        limits: &Limits,
    ) -> (&'static str, String) {
        let asked = match self {
            Self::List { .. } => ProtocolMethod::List,
            Self::Read { .. } => ProtocolMethod::Read,
            Self::Complete => ProtocolMethod::Complete,
        };
        let is_same = method == Some(asked);
        let given = Params::parse(params, limits);
        let mut out = Vec::new();
        object(&mut out, |writer| {
            match self {
                Self::List { cursor: Some(cursor) } => writer.str("cursor", cursor),
                Self::Read { uri } => writer.str("uri", uri),
                Self::List { cursor: None } | Self::Complete => {}
            }
            for (name, value) in given.0.iter().flat_map(|members| members.iter()) {
                if &*name == "_meta" && !is_same {
                    write_meta(writer.named(&name), value);
                } else if is_same
                    && !matches!((self, &*name), (Self::List { .. }, "cursor") | (Self::Read { .. }, "uri"))
                {
                    writer.named(&name).extend_from_slice(value.raw().as_bytes());
                }
            }
        });
        (asked.as_str(), String::from_utf8_lossy(&out).into_owned())
    }

    /// The answer for this engine.
    pub(super) fn read(&self, given: TheirAnswer<'_>, server: &EmbeddedServer) -> AdoptedAnswer {
        let answered = match given {
            TheirAnswer::Result(text) => self.result(text, server),
            TheirAnswer::Error { code, message, data } => Err((code, message, data)),
        };
        match answered {
            Ok(answer) => AdoptedAnswer { answer, is_their_error: false },
            Err((code, message, data)) => self.error(code, message, data, server.engine.limits()),
        }
    }

    fn result<'a>(
        &self,
        text: &str,
        server: &EmbeddedServer,
    ) -> Result<Answer<'static>, (i64, &'a str, Option<&'a str>)> {
        let members = Json::parse(text.as_bytes(), usize::MAX).and_then(Json::object);
        let answer = members.as_ref().and_then(|members| match self {
            Self::List { .. } => Some(Answer::Listed(page(members, server)?)),
            Self::Read { .. } => contents(members),
            Self::Complete => Some(Answer::Completion(Completion::from_foreign(members)?)),
        });
        answer.ok_or((INTERNAL_ERROR.into(), "the server's own result is not valid", None))
    }

    fn error(&self, code: i64, message: &str, data: Option<&str>, limits: &Limits) -> AdoptedAnswer {
        if let Self::List { .. } = self {
            // A server without resources. After another error our own are listed nevertheless.
            let page = ListPage::default();
            let page = if code == i64::from(METHOD_NOT_FOUND) { page } else { page.without(super::SOURCE) };
            return AdoptedAnswer { answer: Answer::Listed(page), is_their_error: false };
        }
        let members =
            data.and_then(|data| Json::parse(data.as_bytes(), limits.nesting)).and_then(Json::object);
        let kind = members.as_ref().and_then(|members| members.get("kind")?.as_str());
        let names_uri = members.as_ref().is_some_and(|members| members.get("uri").is_some());
        let meaning = Answered { code, message, kind: kind.as_deref(), names_uri }.meaning();
        let error = match meaning {
            Meaning::NotFound => ReadError::NotFound,
            Meaning::AccessDenied => ReadError::AccessDenied,
            Meaning::InvalidUri | Meaning::Other => ReadError::Custom {
                code: i32::try_from(code).ok().filter(|code| is_custom_code(*code)).unwrap_or(INTERNAL_ERROR),
                message: message.to_owned(),
                data: data.map(str::to_owned),
            },
        };
        let is_their_error = matches!(error, ReadError::Custom { .. });
        AdoptedAnswer { answer: Answer::Failed(error), is_their_error }
    }
}

fn write_meta(out: &mut Vec<u8>, meta: Json<'_>) {
    object(out, |writer| {
        for (name, value) in meta.object().iter().flat_map(JsonMembers::iter) {
            if &*name != crate::meta::PROGRESS_TOKEN {
                writer.named(&name).extend_from_slice(value.raw().as_bytes());
            }
        }
    });
}

fn page(members: &JsonMembers<'_>, server: &EmbeddedServer) -> Option<ListPage> {
    let engine = &server.engine;
    let mut items = Vec::new();
    for item in members.get("resources")?.array()? {
        let Some(given) = item.object().and_then(|item| item.get("uri")?.as_str()) else { continue };
        let normal = uri::normalize(&given, engine.limits().uri);
        let is_ours =
            normal.is_ok_and(|normal| !matches!(engine.catalog().route(&normal), CatalogRoute::Fallback(_)));
        if is_ours {
            server.warn(format!("{} is a resource of both servers; this one serves it", Shown(&given)));
        } else {
            items.push(Item::Foreign { uri: given.into_owned(), json: item.raw().to_owned() });
        }
    }
    let page = ListPage::new(items);
    Some(match members.get("nextCursor").and_then(Json::as_str) {
        Some(next) => page.with_next(next),
        None => page,
    })
}

/// The contents of a read; as they are if the server asks for input first.
fn contents(members: &JsonMembers<'_>) -> Option<Answer<'static>> {
    let raw = RawResult::from_foreign(members);
    if !raw.is_complete() {
        return Some(Answer::Raw(raw));
    }
    ReadResult::from_foreign(members).map(Answer::Contents)
}
