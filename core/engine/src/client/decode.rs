//! Decodes a server's results.
//!
//! Law: an invalid entry is left out and named; the other entries are kept. Numbers, lengths and texts of the server
//! are never trusted.

use super::{Access, ClientError, ClientLimits, Failure, Listed, Page};
use crate::base64;
use crate::connection::{Completion, Contents};
use crate::jsonrpc::{Elements, Json, JsonKind, JsonMembers};
use crate::meta;
use crate::now::Millis;
use crate::safe_text::shortened;
use crate::version::{Answered, METHOD_NOT_FOUND, Meaning, Revision};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length, in bytes, of a server's text that is shown to a person.
const SHOWN: usize = 500;
/// Maximum number of completion values that are read.
const VALUES: usize = 100;
/// Maximum number of characters of an entry that is left out.
const NAME: usize = 100;
/// Maximum number of names of missing parts that are read.
const MISSING: usize = 100;

/// The context for decoding: server, allow-list and limits.
#[derive(Debug)]
pub(super) struct ResultReader {
    pub(super) server: Arc<str>,
    pub(super) access: Access,
    pub(super) limits: ClientLimits,
}

/// The decoded result of a read.
pub(super) enum DecodedRead {
    /// The contents, and the invalid entries that were left out.
    Contents(Vec<Contents<'static>>, LeftOut),
    /// The server asks for input first.
    InputRequired {
        /// By key: method and params.
        questions: Vec<(String, String, String)>,
        /// To be sent back unchanged: a JSON string.
        state: Option<String>,
    },
}

impl ResultReader {
    /// Decodes a page of a list. `member` is `resources` or `resourceTemplates`; `name` is the member that identifies
    /// an entry.
    pub(super) fn page(
        &self,
        result: Json<'_>,
        member: &str,
        name: &str,
    ) -> Result<(Page, LeftOut), Failure> {
        let members = result.object().ok_or_else(|| bad("the result is no object"))?;
        let entries = entries(&members, member)?;
        let mut page = Page { next: text(&members, "nextCursor"), ..Page::default() };
        let mut left_out = LeftOut::default();
        let cursor = members.get("nextCursor").map(Json::kind);
        if !matches!(cursor, None | Some(JsonKind::Null | JsonKind::String)) {
            left_out.add(format!("the rest of {member:?}: nextCursor is not a string"));
        }
        page.missing = self.missing(&members);
        for (number, entry) in entries.into_iter().flatten().enumerate() {
            let found = match number < self.limits.page {
                true => self.entry(entry, name),
                false => Err(format!("a page has at most {} entries", self.limits.page)),
            };
            match found {
                Err(why) => left_out.add_entry(member, number, entry, &why),
                Ok(uri) if !self.shows(&uri, name) => {}
                Ok(uri) => {
                    let json = one_line(entry);
                    page.items.push(Listed { server: self.server.clone(), uri, json });
                }
            }
        }
        page.odd = left_out.count;
        Ok((page, left_out))
    }

    /// The URI or template of an entry, or the reason for which the entry cannot be used.
    fn entry(&self, entry: Json<'_>, name: &str) -> Result<String, String> {
        let limit = self.limits.item;
        if entry.raw().len() > limit {
            return Err(format!("it has {} bytes, more than {limit}", entry.raw().len()));
        }
        let members = entry.object().ok_or("it is not an object")?;
        let uri = members.get(name).ok_or_else(|| format!("it has no {name:?}"))?;
        let uri = uri.as_lossy_str().ok_or_else(|| format!("its {name:?} is not a string"))?;
        if name != URI && uri.is_empty() {
            return Err(format!("its {name:?} is empty"));
        }
        Ok(uri.into_owned())
    }

    fn shows(&self, uri: &str, name: &str) -> bool {
        if name == URI { self.access.allows(uri) } else { self.access.reaches(uri) }
    }

    /// The parts of a list that the server could not list.
    fn missing(&self, members: &JsonMembers<'_>) -> Vec<String> {
        let own = members.get("_meta").and_then(Json::object);
        let names = own.and_then(|own| own.get(meta::MISSING)).and_then(Json::array);
        names
            .into_iter()
            .flatten()
            .take(MISSING)
            .filter_map(|name| Some(shown(&name.as_lossy_str()?)))
            .collect()
    }

    /// Decodes the result of a read. `uri` is the requested URI.
    pub(super) fn read(&self, result: Json<'_>, uri: &str) -> Result<DecodedRead, ClientError> {
        let members = result.object().ok_or_else(|| bad("the result is no object"))?;
        match text(&members, "resultType").as_deref() {
            None | Some("complete") => {}
            Some("input_required") => return Ok(required(&members)),
            Some(other) => return Err(bad(&format!("its resultType is {:?}", shown(other))).into()),
        }
        let entries = entries(&members, "contents")?;
        let mut contents = Vec::new();
        let mut left_out = LeftOut::default();
        let mut denied = false;
        let mut first = None;
        for (number, entry) in entries.into_iter().flatten().enumerate() {
            let found = match number < self.limits.contents {
                true => contents_of(entry, uri),
                false => Err(format!("a read has at most {} contents", self.limits.contents)),
            };
            match found {
                Err(why) => {
                    left_out.add_entry("contents", number, entry, &why);
                    first.get_or_insert(why);
                }
                Ok(entry)
                    if entry.uri.as_deref().is_some_and(|own| own != uri && !self.access.allows(own)) =>
                {
                    denied = true
                }
                Ok(entry) => contents.push(entry),
            }
        }
        match first.filter(|_| contents.is_empty()) {
            _ if contents.is_empty() && denied => Err(ClientError::AccessDenied { uri: uri.into() }),
            Some(why) => Err(bad(&format!("none of its contents can be used: {why}")).into()),
            None => Ok(DecodedRead::Contents(contents, left_out)),
        }
    }

    /// Decodes the result of a completion.
    pub(super) fn completion(&self, result: Json<'_>) -> Result<Completion<'static>, Failure> {
        let found = result.object().and_then(|members| members.get("completion")?.object());
        let found = found.ok_or_else(|| bad("the result has no object \"completion\""))?;
        let values = entries(&found, "values")?;
        let values = values.into_iter().flatten().take(VALUES);
        let values = values.filter_map(|value| Some(Cow::Owned(value.as_lossy_str()?.into_owned())));
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

/// The array `member`. Many encoders write an empty list as `null`.
fn entries<'m>(members: &JsonMembers<'m>, member: &str) -> Result<Option<Elements<'m>>, Failure> {
    let value = members.get(member);
    match value.map(Json::kind) {
        Some(JsonKind::Array) => Ok(value.and_then(Json::array)),
        Some(JsonKind::Null) => Ok(None),
        None => Err(bad(&format!("the result has no array {member:?}"))),
        Some(_) => Err(bad(&format!("the result has no array {member:?}, but another value there"))),
    }
}

/// One entry of contents, or the reason for which it cannot be used.
fn contents_of(entry: Json<'_>, asked: &str) -> Result<Contents<'static>, String> {
    let members = entry.object().ok_or("it is not an object")?;
    let member = |name| members.get(name).filter(|value| value.kind() != JsonKind::Null);
    let contents = match (member("text"), member("blob")) {
        (Some(text), _) => {
            Contents::text(text.as_lossy_str().ok_or("its \"text\" is not a string")?.into_owned())
        }
        (None, Some(blob)) => {
            let text = blob.as_str().ok_or("its \"blob\" is not a string")?;
            Contents::blob(
                base64::decode_any(&text).map_err(|why| format!("its \"blob\" is not base64: {why}"))?,
            )
        }
        (None, None) => return Err("it has neither \"text\" nor \"blob\"".into()),
    };
    let mut contents = contents.with_uri(text(&members, URI).unwrap_or_else(|| asked.to_owned()));
    contents.mime_type = text(&members, "mimeType").map(Cow::Owned);
    let own = members.get("_meta").filter(|own| own.kind() == JsonKind::Object);
    contents.meta = own.map(|own| Cow::Owned(one_line(own)));
    Ok(contents)
}

fn required(members: &JsonMembers<'_>) -> DecodedRead {
    let requests = members.get("inputRequests").and_then(Json::object);
    let questions = requests.iter().flat_map(JsonMembers::iter).filter_map(|(key, request)| {
        let request = request.object()?;
        let params = request.get("params").map_or_else(|| "{}".to_owned(), one_line);
        Some((key.into_owned(), text(&request, "method")?, params))
    });
    let questions = questions.collect();
    let state = members.get("requestState").filter(|state| state.kind() == JsonKind::String);
    DecodedRead::InputRequired { questions, state: state.map(|state| state.raw().to_owned()) }
}

/// Decodes the member `error` of a response. `uri` is the URI of the request, if it has one.
pub(super) fn refused(error: Json<'_>, uri: Option<&str>) -> ClientError {
    let Some(members) = error.object() else { return bad("the error is no object").into() };
    let code = members.get("code").and_then(Json::as_i64).unwrap_or_default();
    let message = shown(&text(&members, "message").unwrap_or_default());
    let data = members.get("data");
    let facts = data.and_then(Json::object);
    let fact = |name| facts.as_ref().and_then(|facts| text(facts, name));
    let kind = fact("kind");
    let named = fact(URI);
    // The whole message of some servers is the URI.
    let names_uri = named.is_some() || uri.is_some_and(|uri| message == uri);
    let answered = Answered { code, message: &message, kind: kind.as_deref(), names_uri };
    let about = uri.map(str::to_owned);
    match (answered.meaning(), about) {
        (Meaning::NotFound, Some(uri)) => ClientError::NotFound { uri },
        (Meaning::AccessDenied, Some(uri)) => ClientError::AccessDenied { uri },
        (Meaning::InvalidUri, Some(uri)) => ClientError::InvalidUri { uri },
        _ => Failure::Server { code, message, data: data.map(one_line) }.into(),
    }
}

/// Whether the server does not know the method of the request.
pub(super) fn is_unsupported(error: &ClientError) -> bool {
    matches!(error, ClientError::Failed(Failure::Server { code, .. }) if *code == i64::from(METHOD_NOT_FOUND))
}

/// Prepares a server's text for display: shortens it and removes characters that a terminal would interpret.
pub(super) fn shown(text: &str) -> String {
    shortened(text, SHOWN)
}

pub(super) fn bad(reason: &str) -> Failure {
    Failure::BadAnswer { reason: reason.into() }
}

pub(super) fn text(members: &JsonMembers<'_>, name: &str) -> Option<String> {
    members.get(name)?.as_lossy_str().map(Cow::into_owned)
}

/// Removes the line breaks between the tokens of `json`, and replaces text that is not Unicode.
pub(super) fn one_line(json: Json<'_>) -> String {
    json.without_lone_surrogates().replace(['\n', '\r'], " ")
}

/// Entries of a result that were left out: sentences for people, and how many there are.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) sentences: Vec<String>,
    pub(super) count: usize,
}

impl LeftOut {
    /// Maximum number of sentences.
    const NAMED: usize = 20;

    fn add(&mut self, sentence: String) {
        self.count += 1;
        if self.count <= Self::NAMED {
            self.sentences.push(sentence);
        }
    }

    fn add_entry(&mut self, list: &str, number: usize, entry: Json<'_>, why: &str) {
        // Most of a long list may be wrong; the sentences beyond the limit are not even made.
        let sentence = match self.count < Self::NAMED {
            true => format!("entry {} of {list:?}, {}: {why}", number + 1, shortened(entry.raw(), NAME)),
            false => String::new(),
        };
        self.add(sentence);
    }

    /// One sentence for each entry that is named, and one for the others.
    pub(super) fn into_notes(self) -> impl Iterator<Item = String> {
        let others = self.count - self.sentences.len();
        let others = (others > 0).then(|| format!("{others} more entries are left out"));
        self.sentences.into_iter().map(|sentence| format!("left out: {sentence}")).chain(others)
    }
}
