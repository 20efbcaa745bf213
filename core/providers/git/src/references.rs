//! Branches and tags: their names in URIs, and as JSON.

use super::answers::{Fingerprint, json};
use super::message::{CommitHeader, CommitText, Person, TagText};
use super::repository::Handle;
use super::revision::{self, GitRevision};
use gix::ObjectId;
use gix::objs::Kind;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::path;
use mcp_resources_runtime::provider::RequestContext;
use serde::Serialize;
use std::cmp::Reverse;

/// The most that an answer shows.
const SHOWN: usize = 1_000;
/// The most times of objects that are kept.
const TIMES: usize = 200_000;

/// A reference that can be named in a URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RefName {
    /// As in a URI, before percent-encoding.
    pub(super) encoded: String,
    pub(super) name: String,
    pub(super) is_tag: bool,
    /// The id that it points to: for an annotated tag, that of the tag.
    pub(super) id: ObjectId,
}

#[derive(Serialize)]
struct Branches {
    /// The branch that HEAD is on; `null` if it is on none.
    head: Option<String>,
    /// The newest first.
    branches: Vec<GitBranch>,
    more: bool,
    /// The URI of the rest, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct GitBranch {
    name: String,
    id: String,
    current: bool,
    author: Person,
    subject: String,
    uri: String,
}

#[derive(Serialize)]
struct Tags {
    /// The newest first.
    tags: Vec<Tag>,
    more: bool,
    /// The URI of the rest, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct Tag {
    name: String,
    /// The tagged object, usually a commit.
    id: String,
    /// The tag itself, if it is annotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tagger: Option<Person>,
    subject: String,
    uri: String,
}

/// The references of all folders that are allowed: branches first, then tags, then others, each by name.
pub(super) fn all(handle: &Handle<'_>) -> Result<Vec<RefName>, ReadError> {
    let folders = &handle.own.settings.refs;
    let rank = |folder: &String| match folder.as_str() {
        "heads" => 0,
        "tags" => 1,
        _ => 2,
    };
    let mut folders: Vec<&String> = folders.iter().collect();
    folders.sort_by_key(|folder| rank(folder));
    let mut found = Vec::new();
    for folder in folders {
        found.extend(of_folder(handle, folder)?);
    }
    Ok(found)
}

fn of_folder(handle: &Handle<'_>, folder: &str) -> Result<Vec<RefName>, ReadError> {
    let prefix = format!("refs/{folder}/");
    let is_tag = folder == "tags";
    let mut named = Vec::new();
    for (full, id) in handle.references(&prefix)? {
        handle.check()?;
        let Some(name) = full.strip_prefix(&prefix) else { continue };
        let name = match handle.means_another(name, &full) {
            true => format!("{folder}/{name}"),
            false => name.to_owned(),
        };
        let encoded = revision::encode_name(&name);
        // A name that values may not have, such as one that begins with a dash, can only be read by its id.
        if GitRevision::parse(&encoded).is_some() {
            named.push(RefName { encoded, name, is_tag, id });
        }
    }
    named.sort();
    named.dedup();
    Ok(named)
}

/// The position behind which a page begins: the time and the name of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct After {
    time: u64,
    encoded: String,
}

impl After {
    /// Reads the value of `after`, such as `1700000000-v1.0`.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let (time, encoded) = value.split_once('-')?;
        let is_number = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
        let time = is_number.then(|| time.parse().ok()).flatten()?;
        Some(Self { time, encoded: encoded.to_owned() })
    }
}

/// A part of the references that a client may see.
struct RefPage {
    shown: Vec<(RefName, String)>,
    /// The URI of the rest.
    next: Option<String>,
}

/// The references that a client may see, the newest first and then by name. `kind` is `branches` or `tags`.
fn page(
    handle: &Handle<'_>,
    kind: &str,
    all: Vec<RefName>,
    after: Option<&After>,
    context: &RequestContext<'_>,
) -> Result<RefPage, ReadError> {
    let mut shown: Vec<(RefName, String)> = Vec::new();
    let mut last = None;
    for (time, named) in newest_first(handle, all)? {
        handle.check()?;
        let is_behind =
            |after: &After| (Reverse(time), &named.encoded) > (Reverse(after.time), &after.encoded);
        if !after.is_none_or(is_behind) {
            continue;
        }
        let uri = handle.own.uri_of("log", &named.encoded);
        if !context.permits(&uri) {
            continue;
        }
        if shown.len() == SHOWN {
            let next = last.map(|(time, encoded): (u64, String)| {
                let mut next = format!("{}{kind}?after=", handle.own.uri);
                path::append(&mut next, &format!("{time}-{encoded}"));
                next
            });
            return Ok(RefPage { shown, next });
        }
        last = Some((time, named.encoded.clone()));
        shown.push((named, uri));
    }
    Ok(RefPage { shown, next: None })
}

/// References with the times of their objects: when a tag was made, or its commit.
pub(super) fn newest_first(handle: &Handle<'_>, all: Vec<RefName>) -> Result<Vec<(u64, RefName)>, ReadError> {
    let mut timed = Vec::with_capacity(all.len());
    for named in all {
        handle.check()?;
        // What cannot be read is the oldest.
        timed.push((time(handle, named.id).unwrap_or_default(), named));
    }
    handle.check()?;
    timed.sort_by(|(one, this), (other, that)| {
        (Reverse(one), &this.encoded).cmp(&(Reverse(other), &that.encoded))
    });
    Ok(timed)
}

fn time(handle: &Handle<'_>, id: ObjectId) -> Result<u64, ReadError> {
    if let Some(time) = handle.open.times().get(&id) {
        return Ok(*time);
    }
    let time = match handle.kind(id)? {
        Kind::Commit => CommitHeader::parse(&handle.commit(id)?).time,
        Kind::Tag => TagText::parse(&handle.tag(id)?).time,
        _ => 0,
    };
    let mut times = handle.open.times();
    if times.len() >= TIMES {
        times.clear();
    }
    times.insert(id, time);
    Ok(time)
}

/// The branches that a client may see, as JSON. References of all folders but `tags` count as branches.
pub(super) fn branches(
    handle: &Handle<'_>,
    after: Option<&After>,
    context: &RequestContext<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let mark = fingerprint_of_branches(handle)?;
    let current = handle.branch()?;
    let head = current.as_deref().and_then(|full| full.strip_prefix("refs/heads/")).map(str::to_owned);
    let all = all(handle)?.into_iter().filter(|named| !named.is_tag).collect();
    let page = page(handle, "branches", all, after, context)?;
    let mut branches = Branches { head, branches: Vec::new(), more: page.next.is_some(), next: page.next };
    for (named, uri) in page.shown {
        handle.check()?;
        // A branch whose commit cannot be read is skipped.
        let Ok(data) = handle.commit(named.id) else { continue };
        let (author, subject) = CommitText::brief(&data);
        let plain = named.name.strip_prefix("heads/").unwrap_or(&named.name);
        branches.branches.push(GitBranch {
            current: branches.head.as_deref() == Some(plain),
            id: named.id.to_string(),
            author,
            subject,
            name: named.name,
            uri,
        });
    }
    if branches.head.as_ref().is_some_and(|head| !may_name(handle, head, context)) {
        branches.head = None;
    }
    Ok((json(&branches)?, mark))
}

/// Whether a client may know of a branch.
pub(super) fn may_name(handle: &Handle<'_>, branch: &str, context: &RequestContext<'_>) -> bool {
    handle.own.settings.refs.iter().any(|folder| folder == "heads")
        && context.permits(&handle.own.uri_of("log", &revision::encode_name(branch)))
}

/// The tags that a client may see, as JSON.
pub(super) fn tags(
    handle: &Handle<'_>,
    after: Option<&After>,
    context: &RequestContext<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let all = all(handle)?;
    let mark = fingerprint_of_tags(&all);
    let all = all.into_iter().filter(|named| named.is_tag).collect();
    let page = page(handle, "tags", all, after, context)?;
    let mut tags = Tags { tags: Vec::new(), more: page.next.is_some(), next: page.next };
    for (named, uri) in page.shown {
        handle.check()?;
        // A tag whose object is missing is skipped.
        if let Ok(tag) = tag(handle, named, uri) {
            tags.tags.push(tag);
        }
    }
    Ok((json(&tags)?, mark))
}

fn tag(handle: &Handle<'_>, named: RefName, uri: String) -> Result<Tag, ReadError> {
    let id = handle.peel(named.id)?;
    let mut tag =
        Tag { name: named.name, id: id.to_string(), tag: None, tagger: None, subject: String::new(), uri };
    if id == named.id {
        if handle.kind(id)? == Kind::Commit {
            (_, tag.subject) = CommitText::brief(&handle.commit(id)?);
        }
        return Ok(tag);
    }
    let text = TagText::parse(&handle.tag(named.id)?);
    tag.tag = Some(named.id.to_string());
    tag.tagger = text.tagger;
    tag.subject = text.subject;
    Ok(tag)
}

pub(super) fn fingerprint_of_branches(handle: &Handle<'_>) -> Result<Fingerprint, ReadError> {
    let branches: Vec<RefName> = all(handle)?.into_iter().filter(|named| !named.is_tag).collect();
    Ok(Fingerprint::from_value((handle.branch()?, branches)))
}

pub(super) fn fingerprint_of_tags(named: &[RefName]) -> Fingerprint {
    Fingerprint::from_value(named.iter().filter(|named| named.is_tag).collect::<Vec<_>>())
}
