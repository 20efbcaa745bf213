//! The methods of the skills extension, `skills/list` and `skills/get`, and the children of directories.
//!
//! Law: a page is limited in entries and in bytes, an entry is never split, and a cursor contains only data that the
//! client has seen. Absent and hidden entries get the same error.

use super::library::{SkillLibrary, SkillSnapshot};
use super::skill::Skill;
use super::skill::{INDEX, SCHEME};
use mcp_resources_engine::connection::RawResult;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::Resource;
use mcp_resources_provider_kit::media::DIRECTORY;
use mcp_resources_provider_kit::uri_path;
use mcp_resources_runtime::provider::{Call, Directory};
use mcp_resources_template::uri;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::Bound;

/// The code of errors about parameters.
const INVALID_PARAMS: i32 = -32602;
/// Maximum size of a page's entries in bytes: a further entry begins the next page.
const PAGE: usize = 1 << 20;

#[derive(Deserialize)]
struct MethodParams {
    uri: Option<Value>,
    cursor: Option<Value>,
}

/// The answer of a method.
type Answer = Result<RawResult<'static>, ReadError>;

/// `skills/list`.
pub(super) fn list(call: &Call, snapshot: &SkillSnapshot) -> Answer {
    let cursor = cursor(call)?;
    let after = cursor.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let permits = |uri: &str| call.permits(uri);
    let shows = |uri: &str| snapshot.shows(uri, &permits);
    let range = snapshot.skills.range::<str, _>((after, Bound::Unbounded));
    let visible = range.filter(|(_, skill)| permits(&skill.uri()));
    let entries = visible.map(|(base, skill)| (base.clone(), to_json(&skill.entry(&shows))));
    let (entries, next) = page(call, entries);
    let next = next.map(|next| format!(",\"nextCursor\":{}", json!(next))).unwrap_or_default();
    result(format!("{{\"skills\":[{entries}]{next},{FRESH}}}"))
}

/// `skills/get`.
pub(super) fn get(call: &Call, snapshot: &SkillSnapshot) -> Answer {
    let uri = uri_of(call)?;
    let skill = uri.strip_suffix("/SKILL.md").and_then(|base| snapshot.skills.get(base));
    match skill.filter(|_| call.permits(&uri)) {
        Some(skill) => {
            let shows = |uri: &str| snapshot.shows(uri, &|uri| call.permits(uri));
            result(format!("{{\"skill\":{},{FRESH}}}", to_json(&skill.entry(&shows))))
        }
        None => Err(refused(format!("No skill is served at {uri}"))),
    }
}

/// The children of a directory, for `resources/directory/read`. `None` if it is not a directory.
pub(super) fn directory(
    asked: &Directory,
    snapshot: &SkillSnapshot,
    library: &SkillLibrary,
) -> Option<Vec<Resource>> {
    let uri = asked.uri();
    let permits = |uri: &str| asked.permits(uri);
    let directory = uri.strip_suffix('/').filter(|_| uri != INDEX).unwrap_or(uri);
    let (skill, path) = snapshot.find(directory).filter(|_| snapshot.shows(directory, &permits))?;
    children(&permits, snapshot, library, skill, &path)
}

/// The children of a directory of a skill. `None` if it is not a directory.
fn children(
    permits: &dyn Fn(&str) -> bool,
    snapshot: &SkillSnapshot,
    library: &SkillLibrary,
    skill: &Skill,
    path: &[u8],
) -> Option<Vec<Resource>> {
    let folder = library.roots.get(skill.folder)?.folder.open().ok()?;
    let place = skill.path_in_folder(path);
    let (entries, _) = folder.entries(&folder.level(&place)?, &place, Directory::MOST_CHILDREN).ok()?;
    let children = entries.into_iter().map(|entry| {
        let own = uri_path::join(path, &entry.name);
        if entry.is_dir {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            return Resource::new(skill.uri_of(&own)).name(name).mime_type(DIRECTORY);
        }
        skill.resource(&own, &entry.stamp, snapshot.head(skill, &own))
    });
    Some(children.filter(|child| snapshot.shows(&child.uri, permits)).collect())
}

/// No answer may be kept: the files may change at any time, and are looked at again at little cost.
const FRESH: &str = r#""ttlMs":0,"cacheScope":"private""#;

/// The JSON of the entries that fit on a page, and the key of the last one if there are more.
fn page(call: &Call, entries: impl Iterator<Item = (String, String)>) -> (String, Option<String>) {
    let mut text = String::new();
    let mut last = None;
    for (count, (key, entry)) in entries.enumerate() {
        if count > 0 && (count >= call.page() || text.len() + entry.len() > PAGE) {
            return (text, last);
        }
        if count > 0 {
            text.push(',');
        }
        text.push_str(&entry);
        last = Some(key);
    }
    (text, None)
}

fn result(members: String) -> Answer {
    Ok(RawResult { members: members.into(), ..RawResult::default() })
}

fn to_json(value: &impl Serialize) -> String {
    // Only a map with keys that are no texts could fail.
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

fn params(call: &Call) -> Result<MethodParams, ReadError> {
    serde_json::from_str(call.params()).map_err(|_| invalid("params", "an object"))
}

/// The requested canonical URI.
fn uri_of(call: &Call) -> Result<String, ReadError> {
    let expected = "the URI of a resource";
    let Some(Value::String(text)) = params(call)?.uri else { return Err(invalid("uri", expected)) };
    let normal = uri::normalize(&text, call.longest_uri()).map_err(|_| invalid("uri", expected))?;
    Ok(normal.into_owned())
}

fn cursor(call: &Call) -> Result<Option<String>, ReadError> {
    match params(call)?.cursor {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.starts_with(SCHEME) => Ok(Some(text)),
        Some(_) => Err(invalid("cursor", "the nextCursor of an earlier page")),
    }
}

fn invalid(parameter: &str, expected: &str) -> ReadError {
    ReadError::InvalidParameter { parameter: parameter.into(), expected: expected.into() }
}

fn refused(message: String) -> ReadError {
    ReadError::Custom { code: INVALID_PARAMS, message, data: None }
}
