//! Results of other servers, as answers of this one.
//!
//! Law: members that the engine has no place for are left out of contents, and pass unchanged in a raw result.

use super::answer::{Completion, Contents, RawResult, ReadResult};
use super::response;
use crate::jsonrpc::{Json, JsonMembers, object};
use crate::resource::{CacheHint, CacheScope};
use std::borrow::Cow;

/// For the engine's part of another server's process, and for providers that ask other servers.
#[doc(hidden)]
impl ReadResult<'static> {
    /// The contents of the result of `resources/read`, with its caching hint. `None` if it has another form.
    pub fn from_foreign(members: &JsonMembers<'_>) -> Option<Self> {
        let mut contents = Vec::new();
        for entry in members.get("contents")?.array()? {
            let entry = entry.object()?;
            let text = |name: &str| Some(entry.get(name)?.as_lossy_str()?.into_owned());
            let mut one = match (text("text"), text("blob")) {
                (Some(text), _) => Contents::text(text),
                (None, Some(blob)) => Contents::base64(blob),
                (None, None) => return None,
            };
            one.uri = text("uri").map(Cow::Owned);
            one.mime_type = text("mimeType").map(Cow::Owned);
            one.meta = entry.get("_meta").map(|meta| Cow::Owned(meta.raw().to_owned()));
            contents.push(one);
        }
        let cache = members.get("ttlMs").and_then(Json::as_u64).map(|ttl_ms| {
            let scope = members.get("cacheScope").and_then(Json::as_str);
            let is_public = scope.as_deref() == Some(CacheScope::Public.as_str());
            CacheHint { ttl_ms, scope: if is_public { CacheScope::Public } else { CacheScope::Private } }
        });
        Some(Self { contents, cache })
    }
}

#[doc(hidden)]
impl Completion<'static> {
    /// The result of `completion/complete`. `None` if it has another form.
    pub fn from_foreign(members: &JsonMembers<'_>) -> Option<Self> {
        let completion = members.get("completion")?.object()?;
        let values = completion.get("values")?.array()?;
        Some(Self {
            values: values.filter_map(|value| Some(Cow::Owned(value.as_str()?.into_owned()))).collect(),
            total: completion.get("total").and_then(Json::as_u64),
            has_more: completion.get("hasMore").and_then(Json::as_bool),
        })
    }
}

#[doc(hidden)]
impl RawResult<'static> {
    /// Any result, unchanged.
    pub fn from_foreign(members: &JsonMembers<'_>) -> Self {
        let mut own = Vec::new();
        object(&mut own, |writer| {
            for (name, value) in members.iter().filter(|(name, _)| !matches!(&**name, "resultType" | "_meta"))
            {
                writer.named(&name).extend_from_slice(value.raw().as_bytes());
            }
        });
        let result_type = members.get("resultType").and_then(Json::as_str);
        Self {
            members: String::from_utf8_lossy(&own).into_owned().into(),
            result_type: result_type.map(|own| own.into_owned().into()),
            meta: members.get("_meta").map(|meta| meta.raw().to_owned().into()),
        }
    }
}

#[doc(hidden)]
impl RawResult<'_> {
    /// Whether the work is done, as opposed to a question to the client.
    pub fn is_complete(&self) -> bool {
        self.result_type.as_deref().is_none_or(|own| own == response::COMPLETE)
    }
}
