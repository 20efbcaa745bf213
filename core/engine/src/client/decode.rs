//! Decodes a server's results (R-058 … ).
//!
//! Law: an invalid entry is left out and counted; the other entries are kept. Numbers, lengths and texts of the server
//! are never trusted.

use super::{Access, ClientError, ClientLimits, Failure, Listed, Page};
use crate::base64;
use crate::connection::{Completion, Contents};
use crate::jsonrpc::{Json, JsonKind, Members};
use crate::meta;
use crate::now::Millis;
use crate::version::{Answered, Meaning, Revision};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length, in bytes, of a server's text that is shown to a person.
const SHOWN: usize = 500;
/// Maximum number of completion values that are read.
const VALUES: usize = 100;
/// Maximum number of names of missing parts that are read.
const MISSING: usize = 100;

/// The context for decoding: server, allow-list and limits.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) server: Arc<str>,
    pub(super) access: Access,
    pub(super) limits: ClientLimits,
}

/// The decoded result of a read.
pub(super) enum Read {
    /// The contents, and the number of invalid entries that were left out.
    Contents(Vec<Contents<'static>>, usize),
    /// The server asks for input first.
    InputRequired {
        /// By key: method and params.
        questions: Vec<(String, String, String)>,
        /// To be sent back unchanged: a JSON string.
        state: Option<String>,
    },
}

impl Reader {
    /// Decodes a page of a list. `member` is `resources` or `resourceTemplates`; `name` is the member that identifies
    /// an entry.
    pub(super) fn page(&self, result: Json<'_>, member: &str, name: &str) -> Result<Page, Failure> {
        let members = result.object().ok_or_else(|| bad("the result is no object"))?;
        let entries = members.get(member).and_then(Json::array);
        let entries = entries.ok_or_else(|| bad(&format!("the result has no array {member:?}")))?;
        let mut page = Page { next: text(&members, "nextCursor"), ..Page::default() };
        page.missing = self.missing(&members);
        for (number, entry) in entries.enumerate() {
            match self.entry(entry, name).filter(|_| number < self.limits.page) {
                None => page.odd += 1,
                Some(uri) if !self.shows(&uri, name) => {}
                Some(uri) => {
                    let json = one_line(entry.raw());
                    page.items.push(Listed { server: self.server.clone(), uri, json });
                }
            }
        }
        Ok(page)
    }

    fn entry(&self, entry: Json<'_>, name: &str) -> Option<String> {
        if entry.raw().len() > self.limits.item {
            return None;
        }
        let uri = entry.object()?.get(name)?.as_str()?.into_owned();
        let is_sound = name != URI || mcp_resources_template::uri::normalize(&uri, self.limits.item).is_ok();
        (is_sound && !uri.is_empty()).then_some(uri)
    }

    fn shows(&self, uri: &str, name: &str) -> bool {
        if name == URI { self.access.allows(uri) } else { self.access.reaches(uri) }
    }

    /// The parts of a list that the server could not list.
    fn missing(&self, members: &Members<'_>) -> Vec<String> {
        let own = members.get("_meta").and_then(Json::object);
        let names = own.and_then(|own| own.get(meta::MISSING)).and_then(Json::array);
        names.into_iter().flatten().take(MISSING).filter_map(|name| Some(shown(&name.as_str()?))).collect()
    }

    /// Decodes the result of a read. `uri` is the requested URI.
    pub(super) fn read(&self, result: Json<'_>, uri: &str) -> Result<Read, ClientError> {
        let members = result.object().ok_or_else(|| bad("the result is no object"))?;
        match text(&members, "resultType").as_deref() {
            None | Some("complete") => {}
            Some("input_required") => return Ok(required(&members)),
            Some(other) => return Err(bad(&format!("its resultType is {:?}", shown(other))).into()),
        }
        let entries = members.get("contents").and_then(Json::array);
        let entries = entries.ok_or_else(|| bad("the result has no array \"contents\""))?;
        let (mut contents, mut odd, mut denied) = (Vec::new(), 0, false);
        for (number, entry) in entries.enumerate() {
            match contents_of(entry, uri).filter(|_| number < self.limits.contents) {
                None => odd += 1,
                Some(entry) if entry.uri.as_deref().is_some_and(|uri| !self.access.allows(uri)) => {
                    denied = true
                }
                Some(entry) => contents.push(entry),
            }
        }
        match contents.is_empty() {
            true if denied => Err(ClientError::AccessDenied { uri: uri.into() }),
            true if odd > 0 => Err(bad("no entry of the contents makes sense").into()),
            _ => Ok(Read::Contents(contents, odd)),
        }
    }

    /// Decodes the result of a completion.
    pub(super) fn completion(&self, result: Json<'_>) -> Result<Completion<'static>, Failure> {
        let found = result.object().and_then(|members| members.get("completion")?.object());
        let found = found.ok_or_else(|| bad("the result has no object \"completion\""))?;
        let values = found.get("values").and_then(Json::array);
        let values = values.ok_or_else(|| bad("the completion has no array \"values\""))?;
        let values = values.take(VALUES).filter_map(|value| Some(Cow::Owned(value.as_str()?.into_owned())));
        Ok(Completion {
            values: values.collect(),
            total: found.get("total").and_then(Json::as_u64),
            has_more: found.get("hasMore").and_then(Json::as_bool),
        })
    }
}

/// The member that identifies a resource.
pub(super) const URI: &str = "uri";
/// The member that identifies a template.
pub(super) const TEMPLATE: &str = "uriTemplate";

/// Returns how long a result may be cached, in ms.
pub(super) fn ttl(result: Json<'_>, revision: Revision) -> Millis {
    if !revision.is_modern() {
        return 0;
    }
    result.object().and_then(|members| members.get("ttlMs")?.as_u64()).unwrap_or_default()
}

fn contents_of(entry: Json<'_>, asked: &str) -> Option<Contents<'static>> {
    let members = entry.object()?;
    let contents = match (members.get("text"), members.get("blob")) {
        (Some(text), _) => Contents::text(text.as_str()?.into_owned()),
        (None, Some(blob)) => {
            let text = blob.as_str()?;
            Contents::blob(base64::decode(&text).or_else(|| base64::decode_url(text.trim_end_matches('=')))?)
        }
        (None, None) => return None,
    };
    let mut contents = contents.with_uri(text(&members, URI).unwrap_or_else(|| asked.to_owned()));
    contents.mime_type = text(&members, "mimeType").map(Cow::Owned);
    let own = members.get("_meta").filter(|own| own.kind() == JsonKind::Object);
    contents.meta = own.map(|own| Cow::Owned(one_line(own.raw())));
    Some(contents)
}

fn required(members: &Members<'_>) -> Read {
    let requests = members.get("inputRequests").and_then(Json::object);
    let questions = requests.iter().flat_map(Members::iter).filter_map(|(key, request)| {
        let request = request.object()?;
        let params = request.get("params").map_or_else(|| "{}".to_owned(), |params| one_line(params.raw()));
        Some((key.into_owned(), text(&request, "method")?, params))
    });
    let questions = questions.collect();
    let state = members.get("requestState").filter(|state| state.kind() == JsonKind::String);
    Read::InputRequired { questions, state: state.map(|state| state.raw().to_owned()) }
}

/// Decodes the member `error` of a response. `uri` is the URI of the request, if it has one.
pub(super) fn refused(error: Json<'_>, uri: Option<&str>) -> ClientError {
    let Some(members) = error.object() else { return bad("the error is no object").into() };
    let code = members.get("code").and_then(Json::as_i64).unwrap_or_default();
    let message = shown(&text(&members, "message").unwrap_or_default());
    let data = members.get("data");
    let facts = data.and_then(Json::object);
    let fact = |name| facts.as_ref().and_then(|facts| text(facts, name));
    let (kind, named) = (fact("kind"), fact(URI));
    // The whole message of some servers is the URI.
    let names_uri = named.is_some() || uri.is_some_and(|uri| message == uri);
    let answered = Answered { code, message: &message, kind: kind.as_deref(), names_uri };
    let about = uri.map(str::to_owned);
    match (answered.meaning(), about) {
        (Meaning::NotFound, Some(uri)) => ClientError::NotFound { uri },
        (Meaning::AccessDenied, Some(uri)) => ClientError::AccessDenied { uri },
        (Meaning::InvalidUri, Some(uri)) => ClientError::InvalidUri { uri },
        _ => Failure::Server { code, message, data: data.map(|data| one_line(data.raw())) }.into(),
    }
}

/// Prepares a server's text for display: shortens it and removes control characters.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

pub(super) fn bad(reason: &str) -> Failure {
    Failure::BadAnswer { reason: reason.into() }
}

pub(super) fn text(members: &Members<'_>, name: &str) -> Option<String> {
    members.get(name)?.as_str().map(Cow::into_owned)
}

/// Removes the line breaks between the tokens of `json`.
pub(super) fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}
